"""The models from the best down, with the intervals of their ranks and their tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import name_rows
from spectral_irt.plots.style import BLUE, GRAY, INK, SMALL, dress, note, rows_height, whole_ticks
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.leaderboard.board import Leaderboard

MOST = 60  # models in the picture


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankPlot(Display):
    """The first models of a leaderboard, each with the interval of its rank."""

    table: Columns

    @classmethod
    def of(cls, board: Leaderboard) -> RankPlot:
        return cls(table=board.model_columns(), frame_kind=board.answers.frame_kind)

    def columns(self) -> Columns:
        return self.table

    def size(self) -> tuple[float, float]:
        return 7.2, rows_height(min(MOST, len(self.table["model"])))

    def draw(self, ax: Axes) -> None:
        m = len(self.table["model"])
        rows = min(m, MOST)
        one = {name: values[:rows] for name, values in self.table.items()}
        y = np.arange(rows)
        which = f"The first {rows} of {m:,} models" if rows < m else f"{m:,} models"
        dress(ax, f"{which}: ranks that hold for all at once, 95%", "rank, 1 = best", "", grid="x")
        ax.hlines(y, one["rank_low"], one["rank_high"], color=BLUE, linewidth=2.2)
        ax.plot(one["rank"], y, "o", color=INK, markersize=3.2)
        for k in np.flatnonzero(np.diff(one["tier"])).tolist():
            ax.axhline(k + 0.5, color=GRAY, linewidth=0.8, linestyle=(0, (3, 3)))
        right = float(np.max(one["rank_high"]))
        ax.set_xlim(0.3, right + 0.7)
        whole_ticks(ax, "x")
        name_rows(ax, one["model"].tolist())
        for k in range(rows):
            text = f"{100 * one['accuracy'][k]:.1f}%"
            ax.text(
                1.02, k, text, transform=ax.get_yaxis_transform(), ha="left", va="center", fontsize=SMALL, color=INK
            )
        note(ax, "dashed: tiers; at the right: accuracy")
