"""The hardest items (of ratings, the best liked) with the intervals of their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.plots.asking import with_errors
from spectral_irt.plots.display import Display
from spectral_irt.plots.look import BLUE, INK, ROWS, SMALL, dress, note, room_for, rows_height, whole_ticks
from spectral_irt.plots.names import name_rows
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis


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
        found = study.ranking_columns(top=top)
        some = np.isfinite(found["p_top"])
        return cls(
            table={name: values[some] for name, values in found.items()},
            top=top,
            frame_kind=study.responses.frame_kind,
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
