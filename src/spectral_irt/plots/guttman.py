"""The picture of Guttman's scalogram; `persons/scalogram.py` has its table and what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.persons.scalogram import UNEXPECTED_Z, Scalogram
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import all_shown, as_is
from spectral_irt.plots.style import BLUE, INK, RED, ROWS, SMALL, dress, note
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScalogramPlot(Display):
    """Responses as shades, unexpected ones marked; names and codes where there is room for them."""

    table: Columns
    scalogram: Scalogram

    @classmethod
    def of(cls, study: Analysis, persons: Sequence[Any] | None = None) -> ScalogramPlot:
        return cls.about(study, table=study._guttman_columns(persons), scalogram=study._scalogram(persons))

    def columns(self) -> Columns:
        """`person, score, ability, n_unexpected`, then a column for each item, the easiest first, with the responses in
        the codes of the data: `*` behind one that was unexpected, nothing where there is none."""
        return self.table

    @property
    def _has_room_for_names(self) -> bool:
        """Whether every response has room for its code, and every person and item for a name."""
        return len(self.scalogram.persons) <= ROWS and len(self.scalogram.items) <= ROWS

    def size(self) -> tuple[float, float]:
        if not self._has_room_for_names:
            return 7.2, 7.2
        n_persons, n_items = self.scalogram.category.shape
        return 2.2 + 0.26 * max(n_items, 14), 2.2 + 0.2 * max(n_persons, 10)

    def draw(self, ax: Axes) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        shades = LinearSegmentedColormap.from_list("responses", ["#F3F7FA", BLUE])
        share = self.scalogram.category / self.scalogram.max_score
        ax.imshow(share, cmap=shades, vmin=0, vmax=1.6, aspect="auto", interpolation="nearest")
        unexpected = np.argwhere(self.scalogram.unexpected)
        if self._has_room_for_names:
            self._spell(ax)
        else:
            ax.plot(unexpected[:, 1], unexpected[:, 0], "s", color=RED, markersize=1.5, mew=0)
            ax.set_xticks([])
            ax.set_yticks([])
        dress(ax, "Responses of persons (highest on top) to items (easiest left)", *self._axes, grid="")
        ax.spines[:].set_visible(False)
        n_responses = int(np.isfinite(self.scalogram.category).sum())
        marked = "boxes" if self._has_room_for_names else "red"
        note(
            ax,
            f"{marked}: {len(unexpected):,} of {n_responses:,} responses with a standardized residual beyond "
            f"{UNEXPECTED_Z:g}; darker: higher; white: none",
        )

    @property
    def _axes(self) -> tuple[str, str]:
        """What the axes are called; names on them say it themselves."""
        if self._has_room_for_names:
            return "", ""
        across = f"{count(len(self.scalogram.items), 'item')}, from the easiest to the hardest"
        down = f"{count(len(self.scalogram.persons), 'person')}, from the highest {self.words.trait} down"
        return across, down

    def _spell(self, ax: Axes) -> None:
        """Names of persons and items, the code of every response, and a box around each unexpected one."""
        from matplotlib.patches import Rectangle

        table = self.scalogram
        ax.xaxis.tick_top()
        ax.set_xticks(
            range(len(table.items)), all_shown(table.items.tolist(), 16), rotation=90, fontsize=SMALL, **as_is()
        )
        ax.set_yticks(range(len(table.persons)), all_shown(table.persons.tolist(), 18), fontsize=SMALL, **as_is())
        ax.tick_params(length=0)
        for row, column in np.argwhere(np.isfinite(table.category)).tolist():
            code = f"{table.codes[column, int(table.category[row, column])]:g}"
            ax.text(column, row, code, fontsize=SMALL - 1, color=INK, ha="center", va="center")
        for row, column in np.argwhere(table.unexpected).tolist():
            ax.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=RED, linewidth=1.4))
