"""Infit against outfit: which items misfit; residual correlations: which pairs of items depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Floats, Mask
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.item_fit import MATERIAL
from spectral_irt.inference.results import EXCESS
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import NAMED, all_shown, as_is, interval_rows, name_points, shown
from spectral_irt.plots.style import BLUE, GRAY, GREEN, INK, PALE, RED, SMALL, cloud, dress, note, room_for, rows_height
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis
    from spectral_irt.inference.dimensions.local_dependence import LocalDependence

LOOKS = {"underfit": (RED, "^", "underfit (noise)"), "overfit": (GREEN, "v", "overfit (too regular)")}
OUTER = 0.002  # share of the items that fit and may lie beyond the picture: few answers make odd mean squares
FEW = 3  # named where every item fits
ALL_NAMED = 15  # items that are all named, where there is room
NARROWEST = 0.25  # each axis reaches at least so far from 1, on the scale of ratios


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitMap(Display):
    """Mean squares of every item: 1 fits, above 1 is underfit (noise), below 1 overfit (too regular).

    Given the scores (conditional) where that does not take long and the answers did not choose the items; otherwise at
    the estimated abilities, whose mean squares are a little below 1 on average, and then no item is judged.
    """

    table: Columns
    conditional: bool = True

    @classmethod
    def of(cls, study: Analysis) -> FitMap:
        conditional = bool(study.facets) or study.parts(writing=True).fit
        found = study._rated_items() if study.facets else columns_of(study.item_fit, conditional=conditional)
        own: dict[str, Any] = {"frame_kind": study.responses.frame_kind, "words": study._words}
        return cls.of_columns(found, conditional=conditional, **own)

    @classmethod
    def of_columns(cls, found: Columns, *, conditional: bool, **own: Any) -> FitMap:
        """From the columns of `item_fit`."""
        kind = "_conditional" if conditional else ""
        infit, outfit = found[f"infit{kind}"], found[f"outfit{kind}"]
        some = np.isfinite(infit) & np.isfinite(outfit) & (infit > 0) & (outfit > 0)
        if not some.any():
            raise OptionError(
                "no item has a fit to show: it takes people with neither the lowest nor the highest score, and items "
                "whose difficulty rests on their own answers."
            )
        misfit = found.get("misfit", np.full(len(infit), "", dtype=object))
        named = ("item", "n", "infit", "outfit", "infit_z", "misfit")
        values = (found["item"], found["n"], infit, outfit, found[f"infit{kind}_z"], misfit)
        table = {name: each[some] for name, each in zip(named, values, strict=True)}
        return cls(table=table, conditional=conditional, **own)

    def columns(self) -> Columns:
        """`item, n, infit, outfit, infit_z, misfit`."""
        return self.table

    def worst(self, most: int) -> np.ndarray:
        """Rows from the worst fit down: items that misfit first, then by how unlikely their infit is."""
        z = np.nan_to_num(np.abs(self.table["infit_z"]))
        return np.lexsort((-z, self.table["misfit"] == ""))[:most]

    def size(self) -> tuple[float, float]:
        return 6.4, 5.6

    def draw(self, ax: Axes) -> None:
        infit, outfit, misfit = (self.table[name] for name in ("infit", "outfit", "misfit"))
        fits = misfit == ""
        ax.set(xscale="log", yscale="log", xlim=mean_square_limits(infit, fits), ylim=mean_square_limits(outfit, fits))
        ax.axvspan(1 - MATERIAL, 1 + MATERIAL, color=PALE, alpha=0.6, linewidth=0, zorder=0)
        ax.axvline(1, color=INK, linewidth=0.8)
        ax.axhline(1, color=INK, linewidth=0.8)
        cloud(ax, infit[fits], outfit[fits], color=BLUE, label=f"fits ({int(fits.sum()):,})", fixed=True)
        for word, (color, mark, text) in LOOKS.items():
            chosen = misfit == word
            if chosen.any():
                name = f"{text} ({int(chosen.sum()):,})"
                size, alpha = (5.5, 1.0) if chosen.sum() <= 200 else (3, 0.5)
                ax.plot(
                    infit[chosen], outfit[chosen], mark, color=color, markersize=size, alpha=alpha, mew=0, label=name
                )
        plain_ticks(ax.xaxis, ax.get_xlim())
        plain_ticks(ax.yaxis, ax.get_ylim())
        kind = "given the scores" if self.conditional else f"at estimated {self.words.traits}"
        which = "conditional " if self.conditional else ""
        dress(ax, f"Fit of {count(len(infit), 'item')}, {kind}", f"{which}infit", f"{which}outfit")
        if not fits.all():
            ax.legend(loc="upper left", fontsize=SMALL, frameon=True, framealpha=0.9, edgecolor="none")
        if len(fits) <= ALL_NAMED:
            worst = self.worst(len(fits))
        else:
            worst = self.worst(NAMED if not fits.all() else FEW)
            worst = worst[~fits[worst] | fits.all()]
        name_points(ax, infit[worst], outfit[worst], self.table["item"][worst].tolist(), among=(infit, outfit))
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        beyond = int(((infit < left) | (infit > right) | (outfit < low) | (outfit > high)).sum())
        near = f"gray: infit within {MATERIAL:g} of 1, negligible" if self.conditional else ""
        note(ax, near, f"{count(beyond, 'item')} beyond the limits of the picture" if beyond else "")


def mean_square_limits(values: Floats, fits: Mask) -> tuple[float, float]:
    """Limits of an axis: all items that misfit, and all but a few of the others; 1 and its neighborhood in any case."""
    logs = np.log(values)
    low, high = np.quantile(logs, [OUTER / 2, 1 - OUTER / 2])
    low = min(low, logs[~fits].min(initial=0))
    high = max(high, logs[~fits].max(initial=0))
    least = np.log1p(NARROWEST)
    return float(np.exp(min(1.15 * low, -least))), float(np.exp(max(1.15 * high, least)))


def plain_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Ratios written as numbers, not as powers of ten; after the last artist that sets ticks of its own."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = limits
    multiples: tuple[float, ...] = (1.0, 2.0, 5.0)
    if high / low < 5:
        multiples = (1.0, 1.1, 1.2, 1.4, 1.6, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0)
    axis.set_major_locator(LogLocator(subs=multiples, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


CELLS = 30  # items whose pairs are all shown, each in a cell that can be seen and named
TOP = 25  # pairs shown of more items
WIDEST = 0.5  # correlation that has the full color, unless there are larger ones


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResidualCorrelations(Display):
    """Yen's Q3 above the average pair: a map of all pairs of up to 30 items, the strongest pairs of more."""

    found: LocalDependence

    @classmethod
    def of(cls, found: LocalDependence) -> ResidualCorrelations:
        return cls(found=found, frame_kind=found.frame_kind)

    def columns(self) -> Columns:
        """`item_1, item_2, n, q3, q3_above_mean, z, dependent`, the strongest pair first."""
        return {name: values for name, values in self.found.columns.items() if name not in ("p_adjusted", "p_slopes")}

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
        ax.text(
            0.98,
            0.98,
            f"mean Q3 {self.found.mean:.3f}\n{dependent} at {self.found.level:.0%} (stars)",
            fontsize=SMALL,
            color=INK,
            **where,
        )

    def _draw_pairs(self, ax: Axes) -> None:
        table = self.columns()
        rows = min(TOP, len(table["n"]), max(1, room_for(ax)))
        excess, marked = table["q3_above_mean"][:rows], table["dependent"][:rows].astype(bool)
        half = 1.96 / np.sqrt(np.maximum(table["n"][:rows] - 3, 1)) * (1 - np.minimum(table["q3"][:rows] ** 2, 1))
        dress(ax, f"The {rows} strongest residual correlations", "Q3 above the average pair, with 95% interval", "")
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.axvline(EXCESS, color=INK, linewidth=0.8, linestyle=":")
        labels = zip(table["item_1"][:rows].tolist(), table["item_2"][:rows].tolist(), strict=True)
        names = [f"{shown(a, 18)} – {shown(b, 18)}" for a, b in labels]
        kinds = [(~marked, GRAY, "o"), (marked, RED, "D")]
        interval_rows(ax, names, excess, excess - half, excess + half, kinds, longest=40)
        pairs = f"{len(self.found.pairs[0]):,} pairs, mean Q3 {self.found.mean:.3f}"
        note(ax, f"diamonds: dependent at {self.found.level:.0%}; {pairs}")
