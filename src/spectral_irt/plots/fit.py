"""Infit against outfit: which items are noisier or steeper than the model says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.folder import affordable
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.item_fit import MATERIAL
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import NAMED, name_points
from spectral_irt.plots.style import BLUE, GREEN, INK, PALE, RED, SMALL, cloud, dress, note
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

LOOKS = {"underfit": (RED, "^", "underfit: noisier than the model"), "overfit": (GREEN, "v", "overfit: steeper")}
OUTER = 0.002  # share of the items that fit and may lie beyond the picture: few answers make odd mean squares
FEW = 3  # named where every item fits
NARROWEST = 0.25  # each axis reaches at least so far from 1, on the scale of ratios


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitMap(Display):
    """Mean squares of every item: 1 fits, above 1 noisier than the model says, below 1 more regular.

    Given the scores (conditional) where that does not take long; otherwise at the estimated abilities, whose mean
    squares are a little below 1 on average, and then no item is judged.

    Attributes
    ----------
    table : mapping of columns
        `item, n, infit, outfit, infit_z, misfit`, of items that have a fit.
    conditional : bool
    """

    table: Columns
    conditional: bool = True

    @classmethod
    def of(cls, study: Analysis) -> FitMap:
        conditional = affordable(study.responses, writing=True).fit
        found = columns_of(study.item_fit, conditional=conditional)
        return cls.of_columns(found, conditional=conditional, frame_kind=study.responses.frame_kind)

    @classmethod
    def of_columns(cls, found: Columns, *, conditional: bool, frame_kind: str | None = None) -> FitMap:
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
        return cls(table=table, conditional=conditional, frame_kind=frame_kind)

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
        ax.set(xscale="log", yscale="log", xlim=_limits(infit, fits), ylim=_limits(outfit, fits))
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
        _plain_ticks(ax)
        kind = "given the scores" if self.conditional else "at estimated abilities"
        dress(ax, f"Fit of {count(len(infit), 'item')}, {kind}", "infit mean square", "outfit mean square")
        if not fits.all():
            ax.legend(loc="upper left", fontsize=SMALL, frameon=True, framealpha=0.9, edgecolor="none")
        worst = self.worst(NAMED if not fits.all() else FEW)
        worst = worst[~fits[worst] | fits.all()]
        name_points(ax, infit[worst], outfit[worst], self.table["item"][worst].tolist(), among=(infit, outfit))
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        beyond = int(((infit < left) | (infit > right) | (outfit < low) | (outfit > high)).sum())
        near = f"gray: infit within {MATERIAL:g} of 1, negligible" if self.conditional else ""
        note(ax, near, f"{count(beyond, 'item')} beyond the limits of the picture" if beyond else "")


def _limits(values: Floats, fits: np.ndarray) -> tuple[float, float]:
    """All items that misfit, and all but a few of the others; 1 and its neighborhood in any case."""
    logs = np.log(values)
    low, high = np.quantile(logs, [OUTER / 2, 1 - OUTER / 2])
    low, high = min(low, logs[~fits].min(initial=0)), max(high, logs[~fits].max(initial=0))
    least = np.log1p(NARROWEST)
    return float(np.exp(min(1.15 * low, -least))), float(np.exp(max(1.15 * high, least)))


def _plain_ticks(ax: Axes) -> None:
    """Ratios written as numbers, not as powers of ten; after the last artist that sets ticks of its own."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        near, far = (1.0, 1.1, 1.2, 1.4, 1.6, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0), (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=near if high / low < 5 else far, numticks=12))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
