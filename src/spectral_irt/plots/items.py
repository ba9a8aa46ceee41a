"""Items with their intervals, from the hardest down; two calibrations against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Subject(NamedTuple):
    """What the rows of a picture are, what is measured of them, and what those on top are."""

    noun: str
    measure: str
    adjective: str


OF_ITEMS = Subject("item", "difficulty", "hard")


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
    words_of: Subject = OF_ITEMS
    ci_width: float = Z95  # standard errors that an interval reaches either way

    @classmethod
    def of(cls, study: Analysis, facet: str | None = None) -> ItemIntervals:
        if facet is None:
            items = study.calibration.own_items
            place = with_errors(items)
            columns = {
                "labels": items.labels,
                "difficulty": items.difficulty,
                "se": items.se,
                "anchored": items.anchored,
            }
            subject = OF_ITEMS
        else:
            table = columns_of(study.facet, facet)
            columns = {"labels": table[facet], "difficulty": table["severity"], "se": table["se"]}
            columns["anchored"] = table["status"] == "anchored"
            place = np.flatnonzero(np.isfinite(table["severity"]) & np.isfinite(table["se"]))
            subject = Subject(facet, "severity", "severe")
        order = place[np.argsort(-columns["difficulty"][place], kind="stable")]
        return cls.about(
            study,
            **{name: values[order] for name, values in columns.items()},
            left_out=len(columns["se"]) - len(place),
            words_of=subject,
            ci_width=study.calibration.ci_width,
        )

    def columns(self) -> Columns:
        """`rank` from the hardest down, `item, difficulty, se, ci_low, ci_high`, as they are reported; of a facet its
        name and `severity`."""
        middle = self.scale.measure(self.difficulty)
        se = self.scale.width(self.se)
        return {
            "rank": np.arange(1, len(self.labels) + 1),
            self.words_of.noun: self.labels,
            self.words_of.measure: middle,
            "se": se,
            "ci_low": middle - self.ci_width * se,
            "ci_high": middle + self.ci_width * se,
        }

    def size(self) -> tuple[float, float]:
        if len(self.labels) > ROWS:
            return 6.4, 6.4
        return 6.4, rows_height(len(self.labels))

    def draw(self, ax: Axes) -> None:
        noun, measure, adjective = self.words_of
        title = f"How {adjective} each {noun} is, with its 95% interval"
        x = f"{measure} ({unit(self.scale)})"
        if len(self.labels) <= min(ROWS, room_for(ax)):
            dress(ax, title, x, "")
            remark = self._draw_rows(ax)
        else:
            dress(ax, title, x, f"rank, 1 = most {adjective}")
            remark = self._draw_by_rank(ax)
        remarks = [remark]
        if self.left_out:
            remarks.append(f"{count(self.left_out, noun)} without a standard error left out")
        note(ax, *remarks)

    def _draw_rows(self, ax: Axes) -> str:
        """A row for each item; a remark on the marks."""
        table = self.columns()
        anchored = self.anchored.astype(bool)
        kinds = [(~anchored, BLUE, "o"), (anchored, RED, "s")]
        middle = table[self.words_of.measure]
        interval_rows(ax, self.labels.tolist(), middle, table["ci_low"], table["ci_high"], kinds)
        if anchored.any():
            return "squares: anchored"
        return ""

    def _draw_by_rank(self, ax: Axes) -> str:
        """Many items as a line with intervals; both ends and the largest standard errors by name; a remark on these."""
        table = self.columns()
        middle = table[self.words_of.measure]
        low = table["ci_low"]
        high = table["ci_high"]
        n_items = len(self.labels)
        with_line = np.arange(0, n_items, -(-n_items // LINES))
        ax.hlines(with_line + 1, low[with_line], high[with_line], color=SKY, linewidth=0.7, rasterized=True)
        ax.plot(middle, np.arange(1, n_items + 1), color=INK, linewidth=1.1, rasterized=n_items > LINES)
        ax.set_ylim(n_items * 1.03 + 1, -n_items * 0.03)
        whole_ticks(ax, "y")
        ends = [np.quantile(low, OUTER), np.quantile(high, 1 - OUTER)]
        # One interval without measure does not flatten all others.
        farthest = (middle.min() - np.ptp(middle), middle.max() + np.ptp(middle))
        ax.set_xlim(*finite_range(middle, np.clip(ends, *farthest)))
        largest_errors = np.argsort(-self.se, kind="stable")[:ENDS]
        named = np.unique([*range(ENDS), *range(n_items - ENDS, n_items), *largest_errors.tolist()])
        ax.plot(middle[named], named + 1, "o", color=RED, markersize=3.5)
        ax.hlines(named + 1, low[named], high[named], color=RED, linewidth=0.9)
        along_intervals = (np.linspace(low[named], high[named], 40).ravel(), np.tile(named + 1.0, 40))
        name_points(ax, middle[named], named + 1.0, self.labels[named].tolist(), among=along_intervals)
        return "line: estimates; red: both ends, and the largest standard errors"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankIntervals(Display):
    """The first items of the ranking, each with a 95% interval of its rank and its chance of being among the first."""

    table: Columns
    top: int

    @classmethod
    def of(cls, study: Analysis, top: int = 10) -> RankIntervals:
        with_errors(study.calibration)
        ranking = columns_of(study.ranking, top=top)
        ranked = np.isfinite(ranking["p_top"])
        return cls.about(study, table={name: values[ranked] for name, values in ranking.items()}, top=top)

    def columns(self) -> Columns:
        """The columns of `ranking`: `rank, item, difficulty, se, lower, rank_low, rank_high, p_top, n, status`."""
        return self.table

    def size(self) -> tuple[float, float]:
        return 6.4, rows_height(min(ROWS, len(self.table["item"])))

    def draw(self, ax: Axes) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        n_items = len(self.table["item"])
        rows = min(ROWS, n_items, max(1, room_for(ax)))
        low = self.table["rank_low"][:rows]
        high = self.table["rank_high"][:rows]
        which = f"{n_items:,} items"
        if rows < n_items:
            which = f"The first {rows} of {which}"
        dress(ax, f"{which}, with 95% intervals of their ranks", "rank, 1 = hardest", "")
        chances = list(map(_percent, self.table["p_top"][:rows].tolist()))
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


def _percent(p: float) -> str:
    """A chance in percent, such as "42%"; "<1%" of a small one that is not zero."""
    if 0 < p < 0.01:
        return "<1%"
    return f"{100 * p:.0f}%"


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
        from spectral_irt.bank.bank import calibration_of
        from spectral_irt.bank.linking import link

        second = getattr(other, "calibration", None)
        if second is None:
            second = calibration_of(other)
        return cls.about(study, link=link(study.calibration, second, method))

    def columns(self) -> Columns:
        """`item, difficulty_a, difficulty_b, difference, se, z, robust_z, drift`, in logits of the first."""
        return self.link.columns()

    def size(self) -> tuple[float, float]:
        return 5.8, 5.8

    def draw(self, ax: Axes) -> None:
        a = self.link.difficulty_a
        b = self.link.difficulty_b
        drift = self.link.drift
        ends = np.array(finite_range(a, b))
        self._draw_band(ax, ends)
        ax.plot(ends, ends, color=INK, linewidth=0.9)
        heights = [a, b]
        if len(a) <= BARS:
            half = Z95 * self.link.se
            heights += [b - half, b + half]
            ax.vlines(a, b - half, b + half, color=BLUE, linewidth=0.8, alpha=0.6)
        cloud(ax, a[~drift], b[~drift], color=BLUE)
        ax.plot(a[drift], b[drift], "D", color=RED, markersize=5, mec="white", mew=0.4)
        ax.set_xlim(*ends)
        ax.set_ylim(*finite_range(*heights))
        title = f"{count(len(a), 'common item')} in two calibrations"
        dress(ax, title, "difficulty, first (logits)", "difficulty, second, on the scale of the first")
        text = f"shift {self.link.shift:.3f} (se {self.link.shift_se:.3f}), {self.link.method}"
        text += f"\nr = {np.corrcoef(a, b)[0, 1]:.3f}; drifted (diamonds): {int(drift.sum()):,}"
        ax.text(0.02, 0.98, text, transform=ax.transAxes, va="top", fontsize=SMALL, color=INK)
        size = np.abs(self.link.robust_z)
        worst = np.flatnonzero(drift)[np.argsort(-size[drift], kind="stable")][:NAMED]
        name_points(ax, a[worst], b[worst], self.link.item[worst].tolist(), among=(a, b))

    def _draw_band(self, ax: Axes, ends: Floats) -> None:
        """Around the identity, where 95% of items lie that differ by chance: by the median error of neighbors."""
        a = self.link.difficulty_a
        groups = np.array_split(np.argsort(a, kind="stable"), max(1, min(GROUPS, len(a) // 4)))
        middle = np.array([a[group].mean() for group in groups])
        half = np.array([Z95 * np.median(self.link.se[group]) for group in groups])
        middle = np.concatenate([ends[:1], middle, ends[1:]])
        half = np.concatenate([half[:1], half, half[-1:]])
        ax.fill_between(middle, middle - half, middle + half, color=SKY, alpha=0.3, linewidth=0)
