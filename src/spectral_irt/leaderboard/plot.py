"""The models from the best down, with the intervals of their ranks and their tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.plots.base import Display
from spectral_irt.plots.items import rank_rows
from spectral_irt.plots.style import GRAY, INK, dress, note, rows_height, whole_ticks
from spectral_irt.tables import Columns
from spectral_irt.text import percent

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
        which = f"The first {rows} of {m:,} models" if rows < m else f"{m:,} models"
        dress(ax, f"{which}: ranks that hold for all at once, 95%", "rank, 1 = best", "", grid="x")
        accuracies = [percent(accuracy) for accuracy in one["accuracy"].tolist()]
        rank_rows(ax, one["model"].tolist(), one["rank_low"], one["rank_high"], accuracies)
        ax.plot(one["rank"], np.arange(rows), "o", color=INK, markersize=3.2)
        for k in np.flatnonzero(np.diff(one["tier"])).tolist():
            ax.axhline(k + 0.5, color=GRAY, linewidth=0.8, linestyle=(0, (3, 3)))
        ax.set_xlim(0.3, float(np.max(one["rank_high"])) + 0.7)
        whole_ticks(ax, "x")
        note(ax, "dashed: tiers; at the right: accuracy")
