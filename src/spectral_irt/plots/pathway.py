"""The pathway chart: how hard each item is against how well it fits, in bubbles as large as its error (Bond & Fox).

Difficulty goes up, infit to the right: items that fit stand on the path around 1, misfitting ones beside it.
`study.plot.pathway()` makes it; where `study.plot.fit()` compares infit with outfit, this shows where on the scale an
item is that does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.item_fit import MATERIAL
from spectral_irt.plots.base import Display
from spectral_irt.plots.fit import LOOKS, FitMap, mean_square_limits, plain_ticks
from spectral_irt.plots.labels import NAMED, name_points
from spectral_irt.plots.style import BLUE, INK, PALE, SMALL, dress, note, unit
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

ALL_NAMED = 30  # items that are all named, where there is room
LARGEST_BUBBLE = 22.0  # points across, of the item with the largest standard error
SMALLEST_BUBBLE = 3.0  # points: an anchor, or an item known exactly, is still seen


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathwayChart(Display):
    """Infit against difficulty of every item; the width of a bubble is the standard error of the difficulty."""

    fit_map: FitMap
    difficulty: Floats
    se: Floats

    @classmethod
    def of(cls, study: Analysis) -> PathwayChart:
        if study.facets:
            raise OptionError(
                "a pathway chart is about items, and these are ratings; `study.plot.fit()` shows the fit of the rated "
                "items, and `study.facet()` that of the raters."
            )
        fit_map = FitMap.of(study)
        position = study.calibration.positions(fit_map.table["item"].tolist())
        return cls.about(
            study,
            fit_map=fit_map,
            difficulty=study.calibration.difficulty[position],
            se=np.nan_to_num(study.calibration.se[position], posinf=np.nan),
        )

    def columns(self) -> Columns:
        """`item, difficulty, se, infit, infit_z, misfit`, the hardest first."""
        fit = self.fit_map.table
        order = np.argsort(-self.difficulty, kind="stable")
        columns = {
            "item": fit["item"],
            "difficulty": self.scale.measure(self.difficulty),
            "se": self.scale.width(self.se),
            "infit": fit["infit"],
            "infit_z": fit["infit_z"],
            "misfit": fit["misfit"],
        }
        return {name: values[order] for name, values in columns.items()}

    def size(self) -> tuple[float, float]:
        return 6.4, 6.4

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        infit, height, misfit = table["infit"], table["difficulty"], table["misfit"]
        fits = misfit == ""
        ax.set_xscale("log")
        ax.set_xlim(mean_square_limits(infit, fits))
        ax.axvspan(1 - MATERIAL, 1 + MATERIAL, color=PALE, alpha=0.6, linewidth=0, zorder=0)
        ax.axvline(1, color=INK, linewidth=0.8)
        # The area that `scatter` takes is the square of the width in points.
        widths = LARGEST_BUBBLE * np.nan_to_num(table["se"] / np.nanmax(table["se"], initial=1e-300))
        areas = np.maximum(widths, SMALLEST_BUBBLE) ** 2
        for verdict, (color, text) in _looks().items():
            chosen = misfit == verdict
            if chosen.any():
                name = f"{text} ({int(chosen.sum()):,})"
                style: dict[str, Any] = {"alpha": 0.45, "edgecolors": color, "linewidths": 1.0, "label": name}
                ax.scatter(infit[chosen], height[chosen], areas[chosen], color=color, **style)
        plain_ticks(ax.xaxis, ax.get_xlim())
        kind = "conditional infit" if self.fit_map.conditional else "infit"
        dress(ax, "Difficulty and fit of the items", kind, f"difficulty ({unit(self.scale)})")
        if not fits.all():
            legend: Any = ax.legend(loc="best", fontsize=SMALL, frameon=True, framealpha=0.9, edgecolor="none")
            for handle in legend.legend_handles:
                handle.set_sizes([30.0])
        named = self._rows_with_name(table)
        name_points(ax, infit[named], height[named], table["item"][named].tolist(), among=(infit, height))
        low, high = ax.get_xlim()
        beyond = int(((infit < low) | (infit > high)).sum())
        note(
            ax,
            "width of a bubble: standard error",
            f"gray: infit within {MATERIAL:g} of 1, negligible" if self.fit_map.conditional else "",
            f"{count(beyond, 'item')} beyond the limits of the picture" if beyond else "",
        )

    def _rows_with_name(self, table: Columns) -> np.ndarray:
        """Rows of the items that get a name, the worst fit first: all, or those that misfit."""
        z = np.nan_to_num(np.abs(table["infit_z"]))
        worst_first = np.lexsort((-z, table["misfit"] == ""))
        if len(worst_first) <= ALL_NAMED:
            return worst_first
        return worst_first[: max(min(int((table["misfit"] != "").sum()), NAMED), 3)]


def _looks() -> dict[str, tuple[str, str]]:
    """Color and words for each verdict on an item."""
    misfits = {verdict: (color, text) for verdict, (color, _, text) in LOOKS.items()}
    return {"": (BLUE, "fits"), **misfits}
