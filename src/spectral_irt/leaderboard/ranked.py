"""What boards of models and of contestants have in common: order, ranks that hold for all at once, tiers, files.

A board has labels, abilities with standard errors (and their covariance, where it was formed), and says which of them
can be compared. `Leaderboard`, `JudgedLeaderboard` and `Pairs` are boards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import t_quantile
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.inference.ranks.intervals import LEAST_SE, OrderTests, order_p, sure_ranks
from spectral_irt.leaderboard.contrasts import LEVEL, tiers
from spectral_irt.leaderboard.prompts import places
from spectral_irt.leaderboard.scale import BoardScale, Shown
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns, Table, make_table

if TYPE_CHECKING:
    from spectral_irt.leaderboard.ranked_page import RankedPage, RankPlot

Tell = Callable[[str], None]


def tell_nobody(text: str) -> None:
    """Progress that nobody asked for."""


def tiers_in_words(noun: str) -> str:
    """What a tier is."""
    return (
        f"Tier: down the table, a new tier begins with a {noun} significantly worse than the first of the current one, "
        f"by the same comparisons. Two {noun}s of neighboring tiers need not differ."
    )


class RankedBoard(ABC):
    """Labels with abilities, intervals, ranks and tiers; `noun` is what a label is of."""

    noun: ClassVar[str] = "model"

    def __init__(self, scale: str, anchor: Mapping[Any, float] | None, seed: int, progress: Tell | None) -> None:
        self.scale = BoardScale.of(scale, anchor)
        self.seed = seed
        self.tell: Tell = progress or tell_nobody

    @property
    @abstractmethod
    def labels(self) -> NDArray[Any]:
        """Who is compared."""

    @property
    @abstractmethod
    def ability(self) -> Floats:
        """Of each, in logits; their mean is zero within what can be compared."""

    @property
    @abstractmethod
    def se(self) -> Floats:
        """Of the abilities; not finite where an ability cannot be compared."""

    @property
    @abstractmethod
    def covariance(self) -> Floats | None:
        """Of the abilities, where they are not too many."""

    @property
    @abstractmethod
    def df(self) -> float:
        """Degrees of freedom of the standard errors."""

    @property
    @abstractmethod
    def subset(self) -> Ints:
        """Those with the same number can be compared; 0 is the largest set, the only one with ranks."""

    @property
    @abstractmethod
    def frame_kind(self) -> str | None:
        """The dataframe library of the tables."""

    @property
    @abstractmethod
    def findings(self) -> tuple[Finding, ...]:
        """What is odd."""

    @property
    @abstractmethod
    def page(self) -> RankedPage:
        """The board as files and as a page."""

    @cached_property
    def has_estimate(self) -> Mask:
        """Whose ability can be compared with others."""
        return np.isfinite(self.ability) & np.isfinite(self.se)

    @cached_property
    def order(self) -> Ints:
        """From the best to the last, those of the largest set first; those without an estimate last."""
        estimate = np.where(np.isfinite(self.ability), self.ability, -np.inf)
        return np.lexsort((-estimate, self.subset))

    @cached_property
    def tests(self) -> OrderTests:
        """Is the order of every two sure?"""
        self.tell("ranks")
        m = len(self.ability)
        tests = OrderTests(np.full((m, m), np.inf), np.zeros((m, m)), np.ones((m, m)))
        known = self.has_estimate
        if known.any():
            among = np.ix_(known, known)
            of_known = order_p(
                self.ability[known],
                np.maximum(self.se[known], LEAST_SE),
                covariance=None if self.covariance is None else self.covariance[among],
                df=self.df,
                rng=generator(1, self.seed),
            )
            for matrix, values in zip(tests, of_known, strict=True):
                matrix[among] = values
        return tests

    @property
    def sure(self) -> Mask:
        """Row surely above column."""
        return np.asarray((self.tests.p < LEVEL) & (self.tests.z > 0))

    @cached_property
    def tier(self) -> Ints:
        """None of a tier is significantly worse than its first."""
        return tiers(self.order, self.sure)

    @cached_property
    def half_width(self) -> float:
        """Standard errors from an estimate to the end of its 95% interval."""
        return t_quantile(self.df)

    @cached_property
    def shown(self) -> Shown:
        """Abilities and errors on the scale of the board."""
        return self.scale.shown(self.labels, self.ability, self.se, self.covariance)

    def ranked_columns(self) -> Columns:
        """Ranks, abilities and tiers, in the order of the labels."""
        rank_low, rank_high = sure_ranks(self.sure)
        rank = np.zeros(len(self.ability), dtype=np.int64)
        linked = self.subset == 0
        rank[linked] = places(self.ability[linked])
        shown = self.shown
        return {
            "rank": rank,
            self.noun: self.labels,
            "ability": shown.ability,
            "se": shown.se,
            "ci_low": shown.ability - self.half_width * shown.se,
            "ci_high": shown.ability + self.half_width * shown.se,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "tier": self.tier,
        }

    def _from_the_best(self, columns: Columns) -> Columns:
        """Columns in the order of the labels, from the best down."""
        return {name: values[self.order] for name, values in columns.items()}

    @abstractmethod
    def main_columns(self) -> Columns:
        """All that is said of each, from the best down."""

    def _as_table(self, columns: Columns) -> Table:
        """Columns as a dataframe."""
        return make_table(columns, self.frame_kind)

    @property
    def plot(self) -> RankPlot:
        """The intervals of the ranks: `board.plot.save("ranks.svg")`."""
        return self.page.rank_plot()

    def record(self) -> dict[str, Any]:
        """All of it as data: the content of the JSON file."""
        return self.page.record()

    def write(self, folder: str | Path) -> list[Path]:
        """Write tables, JSON and the plot to a folder, or the page to "board.html"; their paths.

        Parameters
        ----------
        folder : path
            The folder, or an HTML file.
        """
        return self.page.write(Path(folder))

    def report(self, path: str | Path) -> Path:
        """Write one HTML page that needs no network.

        Parameters
        ----------
        path : path
            The HTML file.
        """
        return self.page.write(None, Path(path))[0]
