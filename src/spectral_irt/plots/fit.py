"""Infit against outfit: which items misfit; residual correlations: which pairs of items depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.item_fit import MATERIAL
from spectral_irt.inference.results import EXCESS
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import NAMED, all_shown, as_is, interval_rows, label_text, name_points
from spectral_irt.plots.style import BLUE, GRAY, GREEN, INK, PALE, RED, SMALL, cloud, dress, note, room_for, rows_height
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis
    from spectral_irt.inference.dimensions.local_dependence import LocalDependence

LOOKS = {"underfit": (RED, "^", "underfit (noise)"), "overfit": (GREEN, "v", "overfit (too regular)")}
OUTER = 0.002  # share of the items that fit and may lie beyond the picture: few answers make odd mean squares
MANY = 200  # items of one verdict beyond which their marks are small and pale
FEW = 3  # named where every item fits
ALL_NAMED = 15  # items that are all named, where there is room
BAND = ("low", "high")  # of infit, by draws
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
    def of(cls, study: Analysis, critical: int = 0) -> FitMap:
        about_study: dict[str, Any] = {"frame_kind": study.responses.frame_kind, "words": study._words}
        if study.facets:
            return cls.of_columns(study._rated_items(), conditional=True, **about_study)
        conditional = study.parts(writing=True).fit
        item_fit = columns_of(study.item_fit, critical=critical, conditional=conditional)
        return cls.of_columns(item_fit, conditional=conditional, **about_study)

    @classmethod
    def of_columns(cls, item_fit: Columns, *, conditional: bool, **about_study: Any) -> FitMap:
        """From the columns of `item_fit`."""
        kind = "_conditional" if conditional else ""
        infit = item_fit[f"infit{kind}"]
        outfit = item_fit[f"outfit{kind}"]
        has_fit = np.isfinite(infit) & np.isfinite(outfit) & (infit > 0) & (outfit > 0)
        if not has_fit.any():
            raise OptionError(
                "no item has a fit to show: it takes people with neither the lowest nor the highest score, and items "
                "whose difficulty rests on their own answers."
            )
        columns = {
            "item": item_fit["item"],
            "n": item_fit["n"],
            "infit": infit,
            "outfit": outfit,
            "infit_z": item_fit[f"infit{kind}_z"],
            "misfit": item_fit.get("misfit", np.full(len(infit), "", dtype=object)),
        }
        columns |= {
            name: item_fit[f"infit_conditional_{name}"] for name in BAND if f"infit_conditional_{name}" in item_fit
        }
        table = {name: values[has_fit] for name, values in columns.items()}
        return cls(table=table, conditional=conditional, **about_study)

    def columns(self) -> Columns:
        """`item, n, infit, outfit, infit_z, misfit`, and with critical values `low, high`."""
        return self.table

    def worst(self, most: int) -> Ints:
        """Rows from the worst fit down: items that misfit first, then by how unlikely their infit is."""
        z = np.nan_to_num(np.abs(self.table["infit_z"]))
        return np.lexsort((-z, self.table["misfit"] == ""))[:most]

    def size(self) -> tuple[float, float]:
        return 6.4, 5.6

    def draw(self, ax: Axes) -> None:
        infit = self.table["infit"]
        outfit = self.table["outfit"]
        misfit = self.table["misfit"]
        fits = misfit == ""
        remarks = self._draw_bands(ax)
        ax.set(xscale="log", yscale="log", xlim=mean_square_limits(infit, fits), ylim=mean_square_limits(outfit, fits))
        ax.axvspan(1 - MATERIAL, 1 + MATERIAL, color=PALE, alpha=0.6, linewidth=0, zorder=0)
        ax.axvline(1, color=INK, linewidth=0.8)
        ax.axhline(1, color=INK, linewidth=0.8)
        cloud(ax, infit[fits], outfit[fits], color=BLUE, label=f"fits ({int(fits.sum()):,})", fixed=True)
        for word, (color, mark, text) in LOOKS.items():
            chosen = misfit == word
            if chosen.any():
                name = f"{text} ({int(chosen.sum()):,})"
                look: dict[str, Any] = {"markersize": 5.5, "alpha": 1.0}
                if chosen.sum() > MANY:
                    look = {"markersize": 3, "alpha": 0.5}
                ax.plot(infit[chosen], outfit[chosen], mark, color=color, mew=0, label=name, **look)
        plain_ticks(ax.xaxis, ax.get_xlim())
        plain_ticks(ax.yaxis, ax.get_ylim())
        items = count(len(infit), "item")
        if self.conditional:
            dress(ax, f"Fit of {items}, given the scores", "conditional infit", "conditional outfit")
            remarks.append(f"gray: infit within {MATERIAL:g} of 1, negligible")
        else:
            dress(ax, f"Fit of {items}, at maximum likelihood {self.words.traits}", "infit", "outfit")
        if not fits.all():
            ax.legend(loc="upper left", fontsize=SMALL, frameon=True, framealpha=0.9, edgecolor="none")
        named = self._rows_with_name()
        name_points(ax, infit[named], outfit[named], self.table["item"][named].tolist(), among=(infit, outfit))
        left, right = ax.get_xlim()
        bottom, top = ax.get_ylim()
        beyond = int(((infit < left) | (infit > right) | (outfit < bottom) | (outfit > top)).sum())
        if beyond:
            remarks.append(f"{count(beyond, 'item')} beyond the limits of the picture")
        note(ax, *remarks)

    def _draw_bands(self, ax: Axes) -> list[str]:
        """Where the infit of each item is in 95% of data sets drawn given the scores, and a remark on that."""
        if "low" not in self.table:
            return []
        outfit = self.table["outfit"]
        few = len(outfit) <= MANY
        look: dict[str, Any] = {"color": GRAY, "linewidth": 3.0 if few else 0.6, "alpha": 0.45, "zorder": 1}
        ax.hlines(outfit, self.table["low"], self.table["high"], **look)
        return ["bars: infit of 95% of data sets drawn given the scores"]

    def _rows_with_name(self) -> Ints:
        """Rows of the items that get a name, the worst fit first: all of few, else those that misfit, or some."""
        fits = self.table["misfit"] == ""
        if len(fits) <= ALL_NAMED:
            return self.worst(len(fits))
        if fits.all():
            return self.worst(FEW)
        worst = self.worst(NAMED)
        return worst[~fits[worst]]


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
UNSHOWN = ("q3_critical", "p", "p_adjusted", "p_slopes")  # of the pairs
WIDEST = 0.5  # correlation that has the full color, unless there are larger ones


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResidualCorrelations(Display):
    """Yen's Q3 above the average pair: a map of all pairs of up to 30 items, the strongest pairs of more."""

    dependence: LocalDependence

    @classmethod
    def of(cls, dependence: LocalDependence) -> ResidualCorrelations:
        return cls(dependence=dependence, frame_kind=dependence.frame_kind)

    def columns(self) -> Columns:
        """`item_1, item_2, n, q3, q3_above_mean, z, dependent`, the strongest pair first."""
        columns = self.dependence.columns
        return {name: values for name, values in columns.items() if name not in UNSHOWN}

    def size(self) -> tuple[float, float]:
        if len(self.dependence.items) <= CELLS:
            side = 2.6 + 0.17 * max(len(self.dependence.items), 12)
            return side + 0.8, side
        return 6.4, rows_height(min(TOP, len(self.dependence.pairs[0])))

    def draw(self, ax: Axes) -> None:
        if len(self.dependence.items) <= min(CELLS, room_for(ax)):
            self._draw_map(ax)
        else:
            self._draw_pairs(ax)

    def _draw_map(self, ax: Axes) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        first, second = self.dependence.pairs
        n_items = len(self.dependence.items)
        excess = self.dependence.matrix - self.dependence.mean
        np.fill_diagonal(excess, np.nan)
        excess[np.triu_indices(n_items)] = np.nan
        most = max(WIDEST, float(np.nanmax(np.abs(excess), initial=0)))
        shades = LinearSegmentedColormap.from_list("signed", [BLUE, "white", RED])
        image = ax.imshow(excess, cmap=shades, vmin=-most, vmax=most, aspect="equal")
        marked = self.columns()["dependent"]
        ax.plot(first[marked], second[marked], "k*", markersize=7)
        names = all_shown(self.dependence.items.tolist(), 18)
        dress(ax, "Residual correlation (Q3) above the average pair", "", "", grid="")
        ax.set_xticks(range(n_items), names, rotation=90, fontsize=SMALL, **as_is())
        ax.set_yticks(range(n_items), names, fontsize=SMALL, **as_is())
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
        bar.outline.set_visible(False)
        text = f"mean Q3 {self.dependence.mean:.3f}\n"
        text += f"{count(int(marked.sum()), 'dependent pair')} at {self.dependence.level:.0%} (stars)"
        place: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "va": "top"}
        ax.text(0.98, 0.98, text, fontsize=SMALL, color=INK, **place)

    def _draw_pairs(self, ax: Axes) -> None:
        table = self.columns()
        rows = min(TOP, len(table["n"]), max(1, room_for(ax)))
        excess = table["q3_above_mean"][:rows]
        dependent = table["dependent"][:rows].astype(bool)
        half = 1.96 / np.sqrt(np.maximum(table["n"][:rows] - 3, 1)) * (1 - np.minimum(table["q3"][:rows] ** 2, 1))
        dress(ax, f"The {rows} strongest residual correlations", "Q3 above the average pair, with 95% interval", "")
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.axvline(EXCESS, color=INK, linewidth=0.8, linestyle=":")
        labels = zip(table["item_1"][:rows].tolist(), table["item_2"][:rows].tolist(), strict=True)
        names = [f"{label_text(a, 18)} – {label_text(b, 18)}" for a, b in labels]
        kinds = [(~dependent, GRAY, "o"), (dependent, RED, "D")]
        interval_rows(ax, names, excess, excess - half, excess + half, kinds, longest=40)
        pairs = f"{len(self.dependence.pairs[0]):,} pairs, mean Q3 {self.dependence.mean:.3f}"
        note(ax, f"diamonds: dependent at {self.dependence.level:.0%}; {pairs}")
