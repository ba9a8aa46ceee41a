"""Items with their intervals, from the hardest down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.calibration import Z95
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.responses import Labels
from spectral_irt.plots.base import Display, with_errors
from spectral_irt.plots.labels import interval_rows, name_points, name_rows
from spectral_irt.plots.style import (
    BLUE,
    INK,
    RED,
    ROWS,
    SKY,
    SMALL,
    dress,
    finite_range,
    note,
    room_for,
    rows_height,
    unit,
    whole_ticks,
)
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

OUTER = 0.002  # share of the ends of intervals that may lie beyond the picture, on each side
LINES = 2_000  # intervals that are drawn; of more items, so many at equal distances
ENDS = 3  # hardest, easiest and least sure items that are named where not all can be


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemIntervals(Display):
    """Difficulties with 95% intervals, the hardest on top; where items are many, by rank.

    Attributes
    ----------
    labels, difficulty, se, anchored : arrays
        Items on the common scale that have a standard error, from the hardest down.
    left_out : int
        The others.
    """

    labels: Labels
    difficulty: Floats
    se: Floats
    anchored: np.ndarray
    left_out: int = 0

    @classmethod
    def of(cls, study: Analysis) -> ItemIntervals:
        calibration = study.calibration
        place = with_errors(calibration)
        place = place[np.argsort(-calibration.difficulty[place], kind="stable")]
        return cls.about(
            study,
            labels=calibration.labels[place],
            difficulty=calibration.difficulty[place],
            se=calibration.se[place],
            anchored=calibration.anchored[place],
            left_out=calibration.n_items - len(place),
        )

    def columns(self) -> Columns:
        """`rank` from the hardest down, `item, difficulty, se, ci_low, ci_high`, as they are reported."""
        middle, se = self.scale.measure(self.difficulty), self.scale.width(self.se)
        return {
            "rank": np.arange(1, len(self.labels) + 1),
            "item": self.labels,
            "difficulty": middle,
            "se": se,
            "ci_low": middle - Z95 * se,
            "ci_high": middle + Z95 * se,
        }

    def size(self) -> tuple[float, float]:
        return 6.4, rows_height(len(self.labels)) if len(self.labels) <= ROWS else 6.4

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        title, x = "How hard each item is, with its 95% interval", f"difficulty ({unit(self.scale)})"
        if len(self.labels) <= min(ROWS, room_for(ax)):
            dress(ax, title, x, "")
            given = self.anchored.astype(bool)
            interval_rows(
                *(ax, self.labels.tolist(), table["difficulty"], table["ci_low"], table["ci_high"]),
                [(~given, BLUE, "o"), (given, RED, "s")],
            )
            said = "squares: anchored" if given.any() else ""
        else:
            dress(ax, title, x, "rank, 1 = hardest")
            m = len(self.labels)
            some = np.arange(0, m, -(-m // LINES))
            ax.hlines(
                some + 1, table["ci_low"][some], table["ci_high"][some], color=SKY, linewidth=0.7, rasterized=True
            )
            ax.plot(table["difficulty"], np.arange(1, m + 1), color=INK, linewidth=1.1, rasterized=m > LINES)
            ax.set_ylim(m * 1.03 + 1, -m * 0.03)
            whole_ticks(ax, "y")
            ends = [np.quantile(table["ci_low"], OUTER), np.quantile(table["ci_high"], 1 - OUTER)]
            middle = table["difficulty"]
            farthest = middle.min() - np.ptp(middle), middle.max() + np.ptp(middle)  # for intervals without measure
            ax.set_xlim(*finite_range(middle, np.clip(ends, *farthest)))
            unsure = np.argsort(-self.se, kind="stable")[:ENDS]
            chosen = np.unique([*range(ENDS), *range(m - ENDS, m), *unsure.tolist()])
            ax.plot(middle[chosen], chosen + 1, "o", color=RED, markersize=3.5)
            ax.hlines(chosen + 1, table["ci_low"][chosen], table["ci_high"][chosen], color=RED, linewidth=0.9)
            along = (
                np.linspace(table["ci_low"][chosen], table["ci_high"][chosen], 40).ravel(),
                np.tile(chosen + 1.0, 40),
            )
            name_points(ax, middle[chosen], chosen + 1.0, self.labels[chosen].tolist(), among=along)
            said = "line: difficulties; red: hardest, easiest, least sure"
        left = f"{count(self.left_out, 'item')} without a standard error left out" if self.left_out else ""
        note(ax, said, left)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankIntervals(Display):
    """The first items of the ranking, each with a 95% interval of its rank and its chance of being among the first.

    Attributes
    ----------
    table : mapping of columns
        The columns of `ranking`, without items that have no interval.
    top : int
        Of `p_top`.
    """

    table: Columns
    top: int

    @classmethod
    def of(cls, study: Analysis, top: int = 10) -> RankIntervals:
        with_errors(study.calibration)
        found = columns_of(study.ranking, top=top)
        some = np.isfinite(found["p_top"])
        return cls.about(study, table={name: values[some] for name, values in found.items()}, top=top)

    def columns(self) -> Columns:
        """The columns of `ranking`: `rank, item, difficulty, se, lower, rank_low, rank_high, p_top, n, status`."""
        return self.table

    def size(self) -> tuple[float, float]:
        return 6.4, rows_height(min(ROWS, len(self.table["item"])))

    def draw(self, ax: Axes) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        m = len(self.table["item"])
        rows = min(ROWS, m, max(1, room_for(ax)))
        low, high, p = (self.table[name][:rows] for name in ("rank_low", "rank_high", "p_top"))
        which = f"The first {rows} of {m:,} items" if rows < m else f"{m:,} items"
        dress(ax, f"{which}, with 95% intervals of their ranks", "rank, 1 = hardest", "")
        chances = ["<1%" if 0 < one < 0.01 else f"{100 * one:.0f}%" for one in p.tolist()]
        rank_rows(ax, self.table["item"][:rows].tolist(), low, high, chances)
        ax.plot(np.concatenate([low, high]), np.tile(np.arange(rows), 2), "|", color=BLUE, markersize=7)
        right = float(high.max())
        if right > 4 * rows and right > 60:
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            ax.set_xlim(0.9, right * 1.1)
        else:
            ax.set_xlim(0, right * 1.03 + 0.5)
            whole_ticks(ax, "x")
        note(ax, f"at the right: chance of being among the {self.top} hardest")


def rank_rows(ax: Axes, labels: Sequence[object], low: Ints, high: Ints, beside: Sequence[str]) -> None:
    """Names down the y axis, each with the interval of its rank, and a word at the right."""
    ax.hlines(np.arange(len(labels)), low, high, color=BLUE, linewidth=2.2)
    name_rows(ax, labels)
    place = ax.get_yaxis_transform()
    for k, text in enumerate(beside):
        ax.text(1.02, k, text, transform=place, ha="left", va="center", fontsize=SMALL, color=INK)
