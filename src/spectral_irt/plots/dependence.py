"""Residual correlations: pairs of items that share more than the ability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.inference.dimensions.q3 import EXCESS, LocalDependence
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import all_shown, as_is, interval_rows, shown
from spectral_irt.plots.style import BLUE, GRAY, INK, RED, SMALL, dress, note, room_for, rows_height
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELLS = 30  # items whose pairs are all shown, each in a cell that can be seen and named
TOP = 25  # pairs shown of more items
WIDEST = 0.5  # correlation that has the full color, unless there are larger ones


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResidualCorrelations(Display):
    """Yen's Q3 above the average pair: a map of all pairs of up to 30 items, the strongest pairs of more.

    Attributes
    ----------
    found : LocalDependence
    """

    found: LocalDependence

    @classmethod
    def of(cls, found: LocalDependence) -> ResidualCorrelations:
        return cls(found=found, frame_kind=found.frame_kind)

    def columns(self) -> Columns:
        """`item_1, item_2, n, q3, excess, z, dependent`, the strongest pair first."""
        return {name: values for name, values in self.found.columns.items() if name != "p"}

    def size(self) -> tuple[float, float]:
        if len(self.found.items) <= CELLS:
            side = 2.6 + 0.17 * max(len(self.found.items), 12)
            return side + 0.8, side
        return 6.4, rows_height(min(TOP, len(self.found.pairs[0])))

    def draw(self, ax: Axes) -> None:
        if len(self.found.items) <= min(CELLS, room_for(ax)):
            self._draw_map(ax)
        else:
            self._draw_pairs(ax)

    def _draw_map(self, ax: Axes) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        (first, second), m = self.found.pairs, len(self.found.items)
        excess = self.found.matrix - self.found.mean
        np.fill_diagonal(excess, np.nan)
        excess[np.triu_indices(m)] = np.nan
        most = max(WIDEST, float(np.nanmax(np.abs(excess), initial=0)))
        shades = LinearSegmentedColormap.from_list("signed", [BLUE, "white", RED])
        image = ax.imshow(excess, cmap=shades, vmin=-most, vmax=most, aspect="equal")
        marked = self.columns()["dependent"]
        ax.plot(first[marked], second[marked], "k*", markersize=7)
        names = all_shown(self.found.items.tolist(), 18)
        dress(ax, "Residual correlation (Q3) above the average pair", "", "", grid="")
        ax.set_xticks(range(m), names, rotation=90, fontsize=SMALL, **as_is())
        ax.set_yticks(range(m), names, fontsize=SMALL, **as_is())
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
        bar.outline.set_visible(False)
        dependent = count(int(marked.sum()), "dependent pair")
        where: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "va": "top"}
        ax.text(0.98, 0.98, f"mean Q3 {self.found.mean:.3f}\n{dependent} (stars)", fontsize=SMALL, color=INK, **where)

    def _draw_pairs(self, ax: Axes) -> None:
        table = self.columns()
        rows = min(TOP, len(table["n"]), max(1, room_for(ax)))
        excess, marked = table["excess"][:rows], table["dependent"][:rows].astype(bool)
        half = 1.96 / np.sqrt(np.maximum(table["n"][:rows] - 3, 1)) * (1 - np.minimum(table["q3"][:rows] ** 2, 1))
        dress(ax, f"The {rows} strongest residual correlations", "Q3 above the average pair, with 95% interval", "")
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.axvline(EXCESS, color=INK, linewidth=0.8, linestyle=":")
        pairs = zip(table["item_1"][:rows].tolist(), table["item_2"][:rows].tolist(), strict=True)
        names = [f"{shown(a, 18)} – {shown(b, 18)}" for a, b in pairs]
        kinds = [(~marked, GRAY, "o"), (marked, RED, "D")]
        interval_rows(ax, names, excess, excess - half, excess + half, kinds, longest=40)
        note(ax, f"diamonds: dependent; {len(self.found.pairs[0]):,} pairs, mean Q3 {self.found.mean:.3f}")
