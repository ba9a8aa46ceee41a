"""How many people have which score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data.block import Ints
from spectral_irt.errors import OptionError
from spectral_irt.plots.base import Display
from spectral_irt.plots.style import BLUE, INK, RED, SMALL, dress, whole_ticks
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}  # behind words
BARS = 60  # scores beyond which neighbors share a bar


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScoreDistribution(Display):
    """Raw scores where everybody answered the same number of items; otherwise percentages right.

    Attributes
    ----------
    score, n : int arrays
        Right answers and answers of everybody who answered anything.
    highest : int array
        The highest score that each could have; n, where answers are right or wrong.
    """

    score: Ints
    n: Ints
    highest: Ints

    @classmethod
    def of(cls, study: Analysis) -> ScoreDistribution:
        answers = study.responses
        some = answers.counts > 0
        if not some.any():
            raise OptionError("the analysis has no people with answers, so there are no scores to show.")
        return cls.about(study, score=answers.scores[some], n=answers.counts[some], highest=answers.max_scores[some])

    @property
    def binary(self) -> bool:
        """Whether answers are right or wrong."""
        return bool((self.highest == self.n).all())

    @property
    def alike(self) -> bool:
        """Whether everybody answered as many items with the same highest score, so that scores can be compared."""
        return bool((self.n == self.n[0]).all() and (self.highest == self.highest[0]).all())

    def columns(self) -> Columns:
        """`score` (or `percent_low, percent_high`), `persons, share, extreme` (the lowest or the highest score).

        Every score has a row; percentages are in twenty steps, of which the last takes in 100.
        """
        extreme = (self.score == 0) | (self.score == self.highest)
        if self.alike:
            place, rows = self.score, int(self.highest[0]) + 1
            where: Columns = {"score": np.arange(rows)}
        else:
            rows = 20
            place = np.minimum(self.score * rows // self.highest, rows - 1)
            where = {"percent_low": np.arange(rows) * 5, "percent_high": np.arange(1, rows + 1) * 5}
        persons = np.bincount(place, minlength=rows)
        return {
            **where,
            "persons": persons,
            "share": persons / len(self.score),
            "extreme": np.bincount(place[extreme], minlength=rows),
        }

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        persons, extreme = table["persons"], table["extreme"]
        if self.alike:
            step = -(-len(persons) // BARS)
            starts = np.arange(0, len(persons), step)
            persons, extreme = np.add.reduceat(persons, starts), np.add.reduceat(extreme, starts)
            left, wide = starts - 0.5, float(step)
            mean, text = float(self.score.mean()), f"score on {count(int(self.n[0]), 'item')}"
            whole_ticks(ax, "x")
        else:
            left, wide = table["percent_low"].astype(float), 5.0
            mean = float((100 * self.score / self.highest).mean())
            of = "right" if self.binary else "of the highest score"
            text = f"percent {of} (people answered {self.n.min():,} to {self.n.max():,} items)"
        look = {"align": "edge", "edgecolor": "white", "linewidth": 0.5}
        ax.bar(left, persons - extreme, wide, color=BLUE, **look)  # type: ignore[arg-type]
        ax.bar(left, extreme, wide, persons - extreme, color=RED, hatch="////", **look)  # type: ignore[arg-type]
        ax.axvline(mean, color=INK, linestyle="--", linewidth=1)
        ax.set_ylim(0, 1.16 * persons.max())
        dress(ax, "How many people have which score", text, "people", grid="y")
        whole_ticks(ax, "y")
        said = [f"{count(len(self.score), 'person')}, mean {mean:.1f}{'' if self.alike else '%'} (dashed)"]
        if extreme.any():
            what = "everything right or wrong" if self.binary else "the lowest or the highest score"
            said.append(f"{int(extreme.sum()):,} extreme: {what} (hatched)")
        ax.text(0.01, 0.985, "\n".join(said), transform=ax.transAxes, va="top", fontsize=SMALL, color=INK, bbox=WHITE)
