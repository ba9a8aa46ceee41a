"""Local dependence: Yen's Q3 of every pair of items, and which pairs share more than the model allows.

Q3 is the correlation of residuals at Warm's abilities (`residual_table.py`). Its mean and spread under the model depend
on the items, their thresholds and the scores: with floors, many pairs are far from the textbook's normal distribution
around -1 / (m - 1). So each pair is set against its own distribution in data sets drawn given the scores,

    z_ij = (Q3_ij - mean of the draws) / sd of the draws,

and its p-value is the share of data sets, the observed one among them, whose *largest* z of all pairs is as large
(Westfall & Young 1993): the chance that any pair of a test that fits is declared dependent is the level. The thresholds
of the draws are the estimated ones and stay as they are: correlations hardly depend on them.

Where draws would take long (many people and items), z is that of the sums of `pairs.py`, normal in large samples, and
p-values are adjusted by the number of pairs (Bonferroni).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.inference.results import EACH
from spectral_irt.numerics import safe_divide
from spectral_irt.tables import Columns, Table, make_table

BY_DRAWS = "draws given the score"
BY_NORMAL = "normal distribution"
POWER = 0.8  # with which dependence of `detectable` size is found


class PairTest(NamedTuple):
    """Of every pair: z, the p-value adjusted for all pairs, and the standard deviation of Q3 under the model; z that is
    significant at the level of the checks; and the p-value of the pair alone."""

    z: Floats
    p: Floats
    sd: Floats
    z_critical: float
    p_alone: Floats


class DrawnPairs(NamedTuple):
    """Q3 of every pair in data sets drawn under the model: its mean and its standard deviation; the largest z of every
    data set; the largest Q3 less the mean of all (Q3*); and z of every pair, data sets x pairs."""

    mean: Floats
    sd: Floats
    largest_z: Floats
    q3_star: Floats
    z: Floats

    @classmethod
    def of(cls, observed: Floats, drawn: Floats) -> DrawnPairs:
        """From Q3 of the pairs as observed, which is one more data set under the model, and data sets x pairs."""
        every = np.vstack([observed, drawn])
        mean = every.mean(axis=0)
        sd = every.std(axis=0)
        z = safe_divide(drawn - mean, sd)
        return cls(mean, sd, z.max(axis=1), drawn.max(axis=1) - drawn.mean(axis=1), z)

    def test(self, q3: Floats, mean: Floats | None = None, variance_factor: float = 1.0) -> PairTest:
        """These Q3 against the draws, around their mean or another, whose error makes variances larger by the
        factor."""
        if mean is None:
            mean = self.mean
        deviation = q3 - mean
        sd = self.sd * np.sqrt(variance_factor)
        z = safe_divide(deviation, sd)
        z_critical = float(np.quantile(self.largest_z, 1 - EACH))
        p_alone = (1 + (self.z >= z).sum(axis=0)) / (1 + len(self.z))
        return PairTest(z=z, p=share_as_large(self.largest_z, z), sd=sd, z_critical=z_critical, p_alone=p_alone)


class DependentPairs(NamedTuple):
    """Positions of the items of the dependent pairs, the most significant first, and their Q3."""

    first: Ints
    second: Ints
    q3: Floats


def share_as_large(drawn: Floats, observed: Floats) -> Floats:
    """p-values: the share of data sets, the observed one among them, with a statistic as large as observed."""
    rising = np.sort(drawn)
    larger = len(rising) - np.searchsorted(rising, observed, side="left")
    return np.asarray((1 + larger) / (1 + len(rising)), dtype=np.float64)


def normal_test(shared: Floats, variance: Floats, n: Floats) -> PairTest:
    """The sums of `pairs.pair_sums` of every pair against the normal distribution, adjusted for all (Bonferroni)."""
    z = shared / np.sqrt(variance)
    p_alone = np.asarray(scipy.special.ndtr(-z))
    p = np.minimum(p_alone * len(z), 1.0)
    z_critical = float(scipy.special.ndtri(1 - EACH / len(z)))
    return PairTest(z=z, p=p, sd=1 / np.sqrt(n), z_critical=z_critical, p_alone=p_alone)


@dataclass(frozen=True, eq=False, repr=False)
class LocalDependence:
    """Q3 of pairs of items, and which are dependent: what terminal, report, files and `study.local_dependence()` show.

    Attributes
    ----------
    items, matrix, n : labels, items x items, items x items
        Those looked at; Q3 of every pair, 1 on the diagonal, NaN where too few people answered both; how many did.
    first, second, test : int arrays, PairTest
        The items of every pair with a Q3, as positions in `items`, and the test of each.
    p_slopes : float array
        Of a pair that is significant: the p-value where items may differ in slope; else NaN.
    dependent : bool array
        Of every pair: significant at `level`, and not explained by unequal slopes.
    mean, q3_star, q3_star_critical : float
        The average Q3 of all pairs; the largest less that; and its critical value at `level`, NaN without draws.
    method, draws : str, int
        By what a pair is judged: "draws given the score", and how many, or the "normal distribution" of large samples.
    level : float
        Chance that any pair of a test that fits is declared dependent: 1%.
    """

    items: NDArray[Any]
    matrix: Floats
    n: Ints
    first: Ints
    second: Ints
    test: PairTest
    p_slopes: Floats
    dependent: Mask
    q3_star_critical: float
    draws: int
    frame_kind: str | None
    level: float = field(default=EACH)

    @property
    def method(self) -> str:
        return BY_DRAWS if self.draws else BY_NORMAL

    @property
    def q3(self) -> Floats:
        return self.matrix[self.first, self.second]

    @property
    def mean(self) -> float:
        return float(self.q3.mean())

    @property
    def q3_star(self) -> float:
        return float(self.q3.max()) - self.mean

    @property
    def detectable(self) -> float:
        """Q3 above the mean of a pair that would be found with a probability of 80%."""
        return float((self.test.z_critical + scipy.special.ndtri(POWER)) * np.median(self.test.sd))

    @property
    def q3_critical(self) -> Floats:
        """Q3 that each pair exceeds where it is significant, all pairs being asked."""
        return self.q3 + (self.test.z_critical - self.test.z) * self.test.sd

    @cached_property
    def strongest(self) -> Ints:
        """Pairs from the most significant down: dependent ones first."""
        return np.lexsort((-self.test.z, ~self.dependent))

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Positions of the items of every pair, the most significant first."""
        return self.first[self.strongest], self.second[self.strongest]

    @property
    def dependent_pairs(self) -> DependentPairs:
        pairs = self.strongest[: int(self.dependent.sum())]
        return DependentPairs(self.first[pairs], self.second[pairs], self.q3[pairs])

    @property
    def columns(self) -> Columns:
        """The columns of `table()`."""
        order = self.strongest
        first, second = self.pairs
        return {
            "item_1": self.items[first],
            "item_2": self.items[second],
            "n": self.n[first, second],
            "q3": self.q3[order],
            "q3_above_mean": self.q3[order] - self.mean,
            "q3_critical": self.q3_critical[order],
            "z": self.test.z[order],
            "p": self.test.p_alone[order],
            "p_adjusted": self.test.p[order],
            "p_slopes": self.p_slopes[order],
            "dependent": self.dependent[order],
        }

    def table(self) -> Table:
        """The pairs, the most significant first: `item_1, item_2, n, q3, q3_above_mean, q3_critical, z, p, p_adjusted,
        p_slopes, dependent`.

        `q3_above_mean` is Q3 less the average of all pairs (its largest is Q3*), `z` how far Q3 is above what the model
        expects of this pair in standard deviations under the model, `p` one-sided, `p_adjusted` adjusted for all pairs,
        and `q3_critical` the Q3 at which that is 1%.
        A pair is `dependent` when that is below 1% and unequal slopes do not explain it (`p_slopes` below 5%).
        """
        return make_table(self.columns, self.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data, but for the pairs."""
        critical = self.q3_star_critical
        return {
            "method": self.method,
            "draws": self.draws,
            "mean_q3": self.mean,
            "q3_star": self.q3_star,
            "q3_star_critical": critical if np.isfinite(critical) else None,
        }

    def __repr__(self) -> str:
        number = int(self.dependent.sum())
        return (
            f"<Local dependence: {number:,} of {len(self.first):,} pairs at {self.level:.0%}, mean Q3 {self.mean:.3f}, "
            f"Q3* {self.q3_star:.3f}>"
        )
