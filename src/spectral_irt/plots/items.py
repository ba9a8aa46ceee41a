"""Items with their intervals, from the hardest down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.calibration import LOGITS, Z95, Scale
from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Labels
from spectral_irt.plots.base import Display, with_errors
from spectral_irt.plots.labels import all_shown, apart, as_is, name_rows
from spectral_irt.plots.style import (
    BAND_NOTE,
    BLUE,
    INK,
    RED,
    ROWS,
    SMALL,
    dress,
    finite_range,
    note,
    room_for,
    rows_height,
    sorted_bands,
    unit,
    whole_ticks,
)
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

OUTER = 0.002  # share of the ends of intervals that may lie beyond the picture, on each side
ENDS = 3  # hardest, easiest and least sure items that are named where not all can be


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemIntervals(Display):
    """Difficulties with 95% intervals, the hardest on top; where items are many, bands that hold their intervals.

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
    scale: Scale = LOGITS

    @classmethod
    def of(cls, study: Analysis) -> ItemIntervals:
        calibration = study.calibration
        place = with_errors(calibration)
        place = place[np.argsort(-calibration.difficulty[place], kind="stable")]
        return cls(
            labels=calibration.labels[place],
            difficulty=calibration.difficulty[place],
            se=calibration.se[place],
            anchored=calibration.anchored[place],
            left_out=calibration.n_items - len(place),
            scale=calibration.scale,
            frame_kind=study.responses.frame_kind,
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
            y = np.arange(len(self.labels))
            ax.hlines(y, table["ci_low"], table["ci_high"], color=BLUE, linewidth=1.6)
            given = self.anchored.astype(bool)
            ax.plot(table["difficulty"][~given], y[~given], "o", color=BLUE, markersize=4.5)
            ax.plot(table["difficulty"][given], y[given], "s", color=RED, markersize=4.5)
            name_rows(ax, self.labels.tolist())
            said = "squares: anchored" if given.any() else ""
        else:
            dress(ax, title, x, "rank, 1 = hardest")
            sorted_bands(ax, table["difficulty"], table["ci_low"], table["ci_high"])
            ax.set_xlim(*self._limits())
            unsure = np.argsort(-self.se, kind="stable")[:ENDS]
            ends = [*range(ENDS), *range(len(self.labels) - ENDS, len(self.labels))]
            chosen = np.array(list(dict.fromkeys([*ends, *unsure.tolist()])))
            ax.plot(table["difficulty"][chosen], chosen + 1, "o", color=RED, markersize=3.5)
            ax.hlines(chosen + 1, table["ci_low"][chosen], table["ci_high"][chosen], color=RED, linewidth=0.9)
            self._name(ax, chosen)
            said = f"{BAND_NOTE}; red: hardest, easiest, least sure"
        left = f"{count(self.left_out, 'item')} without a standard error left out" if self.left_out else ""
        note(ax, "; ".join(part for part in (said, left) if part))

    def _limits(self) -> tuple[float, float]:
        """All difficulties and almost all intervals; one that is wider than everything else goes beyond the picture."""
        table = self.columns()
        middle = table["difficulty"]
        wide = float(np.ptp(middle)) + 1e-9
        low = max(float(np.quantile(table["ci_low"], OUTER)), middle.min() - wide)
        high = min(float(np.quantile(table["ci_high"], 1 - OUTER)), middle.max() + wide)
        return finite_range(middle, np.array([low, high]))

    def _name(self, ax: Axes, chosen: np.ndarray) -> None:
        """Names in the empty corners: of hard items at the top left, of easy ones at the bottom right."""
        low, table = 1.0, self.columns()
        high = float(len(self.labels))
        gap = (high - low) * 1.06 / max(room_for(ax), 1)
        for side, x, ha in (
            (chosen < len(self.labels) / 2, 0.02, "left"),
            (chosen >= len(self.labels) / 2, 0.98, "right"),
        ):
            mine = chosen[side]
            at = apart(mine + 1.0, gap, low, high)
            for k, y, name in zip(mine.tolist(), at.tolist(), all_shown(self.labels[mine]), strict=True):
                end = table["ci_low" if ha == "left" else "ci_high"][k]
                ax.annotate(
                    name,
                    (end, k + 1.0),
                    (x, y),
                    textcoords=ax.get_yaxis_transform(),
                    ha=ha,
                    va="center",
                    fontsize=SMALL,
                    color=INK,
                    arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 1, "shrinkB": 1},
                    **as_is(),
                )


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
        return cls(
            table={name: values[some] for name, values in found.items()}, top=top, frame_kind=study.responses.frame_kind
        )

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
        y = np.arange(rows)
        which = f"The first {rows} of {m:,} items" if rows < m else f"{m:,} items"
        dress(ax, f"{which}, with 95% intervals of their ranks", "rank, 1 = hardest", "")
        ax.hlines(y, low, high, color=BLUE, linewidth=2.2)
        ax.plot(low, y, "|", color=BLUE, markersize=7)
        ax.plot(high, y, "|", color=BLUE, markersize=7)
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
        name_rows(ax, self.table["item"][:rows].tolist())
        style = {"ha": "left", "va": "center", "fontsize": SMALL, "color": INK}
        for k in range(rows):
            chance = "<1%" if 0 < p[k] < 0.01 else f"{100 * p[k]:.0f}%"
            ax.text(1.02, k, chance, transform=ax.get_yaxis_transform(), **style)  # type: ignore[arg-type]
        note(ax, f"at the right: chance of being among the {self.top} hardest")
