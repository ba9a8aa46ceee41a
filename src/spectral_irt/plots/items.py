"""Items with their intervals, from the hardest down; two calibrations against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.calibration import Z95
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.responses import Labels
from spectral_irt.plots.base import Display, with_errors
from spectral_irt.plots.labels import NAMED, interval_rows, name_points, name_rows
from spectral_irt.plots.style import (
    BLUE,
    INK,
    RED,
    ROWS,
    SKY,
    SMALL,
    cloud,
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
    from spectral_irt.bank.linking import Link

OUTER = 0.002  # share of the ends of intervals that may lie beyond the picture, on each side
LINES = 2_000  # intervals that are drawn; of more items, so many at equal distances
ENDS = 3  # hardest, easiest and least sure items that are named where not all can be


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemIntervals(Display):
    """Difficulties with 95% intervals, the hardest on top; where items are many, by rank. Of ratings, also severities.

    Those on the common scale that have a standard error; the others are `left_out`.
    """

    labels: Labels
    difficulty: Floats
    se: Floats
    anchored: np.ndarray
    left_out: int = 0
    what: tuple[str, str, str] = ("item", "difficulty", "hard")
    ci_width: float = Z95  # standard errors that an interval reaches either way

    @classmethod
    def of(cls, study: Analysis, facet: str | None = None) -> ItemIntervals:
        if facet is None:
            made = study.calibration.own_items
            place = with_errors(made)
            found = {"labels": made.labels, "difficulty": made.difficulty, "se": made.se, "anchored": made.anchored}
            words = ("item", "difficulty", "hard")
        else:
            table = columns_of(study.facet, facet)
            found = {"labels": table[facet], "difficulty": table["severity"], "se": table["se"]}
            found["anchored"] = table["status"] == "anchored"
            place = np.flatnonzero(np.isfinite(table["severity"]) & np.isfinite(table["se"]))
            words = (facet, "severity", "severe")
        order = place[np.argsort(-found["difficulty"][place], kind="stable")]
        some = {name: values[order] for name, values in found.items()}
        width = study.calibration.ci_width
        return cls.about(study, **some, left_out=len(found["se"]) - len(place), what=words, ci_width=width)

    def columns(self) -> Columns:
        """`rank` from the hardest down, `item, difficulty, se, ci_low, ci_high`, as they are reported; of a facet its
        name and `severity`."""
        middle, se = self.scale.measure(self.difficulty), self.scale.width(self.se)
        return {
            "rank": np.arange(1, len(self.labels) + 1),
            self.what[0]: self.labels,
            self.what[1]: middle,
            "se": se,
            "ci_low": middle - self.ci_width * se,
            "ci_high": middle + self.ci_width * se,
        }

    def size(self) -> tuple[float, float]:
        return 6.4, rows_height(len(self.labels)) if len(self.labels) <= ROWS else 6.4

    def draw(self, ax: Axes) -> None:
        table, (noun, measure, adjective) = self.columns(), self.what
        title = f"How {adjective} each {noun} is, with its 95% interval"
        x = f"{measure} ({unit(self.scale)})"
        middle, low, high = table[measure], table["ci_low"], table["ci_high"]
        if len(self.labels) <= min(ROWS, room_for(ax)):
            dress(ax, title, x, "")
            given = self.anchored.astype(bool)
            kinds = [(~given, BLUE, "o"), (given, RED, "s")]
            interval_rows(ax, self.labels.tolist(), middle, low, high, kinds)
            said = "squares: anchored" if given.any() else ""
        else:
            dress(ax, title, x, f"rank, 1 = most {adjective}")
            m = len(self.labels)
            some = np.arange(0, m, -(-m // LINES))
            ax.hlines(some + 1, low[some], high[some], color=SKY, linewidth=0.7, rasterized=True)
            ax.plot(middle, np.arange(1, m + 1), color=INK, linewidth=1.1, rasterized=m > LINES)
            ax.set_ylim(m * 1.03 + 1, -m * 0.03)
            whole_ticks(ax, "y")
            ends = [np.quantile(low, OUTER), np.quantile(high, 1 - OUTER)]
            farthest = middle.min() - np.ptp(middle), middle.max() + np.ptp(middle)  # for intervals without measure
            ax.set_xlim(*finite_range(middle, np.clip(ends, *farthest)))
            unsure = np.argsort(-self.se, kind="stable")[:ENDS]
            chosen = np.unique([*range(ENDS), *range(m - ENDS, m), *unsure.tolist()])
            ax.plot(middle[chosen], chosen + 1, "o", color=RED, markersize=3.5)
            ax.hlines(chosen + 1, low[chosen], high[chosen], color=RED, linewidth=0.9)
            along = np.linspace(low[chosen], high[chosen], 40).ravel(), np.tile(chosen + 1.0, 40)
            name_points(ax, middle[chosen], chosen + 1.0, self.labels[chosen].tolist(), among=along)
            said = "line: estimates; red: both ends, and the largest standard errors"
        left = f"{count(self.left_out, noun)} without a standard error left out" if self.left_out else ""
        note(ax, said, left)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankIntervals(Display):
    """The first items of the ranking, each with a 95% interval of its rank and its chance of being among the first."""

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


BARS = 60  # items up to which each has an error bar of its own
GROUPS = 25  # neighbors whose median error makes the band


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Agreement(Display):
    """Difficulties of the common items in two calibrations, the second brought to the scale of the first.

    Items within the band around the identity differ by chance alone (95% of them).
    """

    link: Link

    @classmethod
    def of(cls, study: Analysis, other: Any, method: str = "robust") -> Agreement:
        second = getattr(other, "calibration", None)
        from spectral_irt.bank.bank import calibration_of
        from spectral_irt.bank.linking import link

        found = link(study.calibration, calibration_of(other) if second is None else second, method)
        return cls.about(study, link=found)

    def columns(self) -> Columns:
        """`item, difficulty_a, difficulty_b, difference, se, z, robust_z, drift`, in logits of the first."""
        return self.link.columns()

    def size(self) -> tuple[float, float]:
        return 5.8, 5.8

    def draw(self, ax: Axes) -> None:
        a, b, se, drift = self.link.difficulty_a, self.link.difficulty_b, self.link.se, self.link.drift
        ends = np.array(finite_range(a, b))
        order = np.argsort(a, kind="stable")
        groups = np.array_split(order, max(1, min(GROUPS, len(a) // 4)))
        half = np.array([Z95 * np.median(se[g]) for g in groups])
        at = np.array([a[g].mean() for g in groups])
        at, half = np.concatenate([ends[:1], at, ends[1:]]), np.concatenate([half[:1], half, half[-1:]])
        ax.fill_between(at, at - half, at + half, color=SKY, alpha=0.3, linewidth=0)
        ax.plot(ends, ends, color=INK, linewidth=0.9)
        if len(a) <= BARS:
            ax.vlines(a, b - Z95 * se, b + Z95 * se, color=BLUE, linewidth=0.8, alpha=0.6)
        cloud(ax, a[~drift], b[~drift], color=BLUE)
        ax.plot(a[drift], b[drift], "D", color=RED, markersize=5, mec="white", mew=0.4)
        ax.set_xlim(*ends)
        ax.set_ylim(*finite_range(a, b, *([b - Z95 * se, b + Z95 * se] if len(a) <= BARS else [])))
        title = f"{count(len(a), 'common item')} in two calibrations"
        x, y = "difficulty, first (logits)", "difficulty, second, on the scale of the first"
        dress(ax, title, x, y)
        said = f"shift {self.link.shift:.3f} (se {self.link.shift_se:.3f}), {self.link.method}"
        said += f"\nr = {np.corrcoef(a, b)[0, 1]:.3f}; drifted (diamonds): {int(drift.sum()):,}"
        ax.text(0.02, 0.98, said, transform=ax.transAxes, va="top", fontsize=SMALL, color=INK)
        size = np.abs(self.link.robust_z)
        worst = np.flatnonzero(drift)[np.argsort(-size[drift], kind="stable")][:NAMED]
        name_points(ax, a[worst], b[worst], self.link.item[worst].tolist(), among=(a, b))
