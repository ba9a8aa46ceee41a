"""The tests of all pairs of items and of the first contrast: by draws given the score, or the normal distribution.

`Reference` has the same statistics in data sets drawn given the scores. Where draws would take long, the sums of
`pairs.py` are normal in large samples: z of every pair; and the strongest contrast of one half of the people, a
direction fixed in advance for the other half, where its strength d' S d is a sum over people, compared with its own
standard error. Either half may look for it: p is doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.dimensions.contrast import CONTRASTS
from spectral_irt.inference.dimensions.local_dependence import DrawnPairs, PairTest, normal_test, share_as_large
from spectral_irt.inference.dimensions.pairs import HalfOfPeople, PairSums, pair_sums, variance_along, with_gaps
from spectral_irt.inference.dimensions.residual_table import Correlations, ResidualTable
from spectral_irt.numerics import safe_divide

FEWEST_DRAWS = 200  # by default: a p-value of 1% then has a standard error of 0.7%,
MOST_DRAWS = 1_000  # and of 0.3% with so many
DRAWS_WORK = 3e9  # of draws by default, as `work_of_a_draw` counts: 0.6 s of CPU
WORK_OF_A_RESPONSE = 50.0  # drawn, in products of residuals


class BothTests(NamedTuple):
    """The test of every pair, and the p-value of the first contrast."""

    pairs: PairTest
    contrast_p: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What both tests look at: the residuals, their correlations, sums of pairs in either `half` of the people, and the
    pairs (positions of their items) that enough people answered."""

    table: ResidualTable
    observed: Correlations
    half: Ints
    halves: tuple[HalfOfPeople, HalfOfPeople]
    first: Ints
    second: Ints
    min_people: int

    @classmethod
    def of(cls, responses: Responses, thresholds: Floats, min_people: int) -> Evidence:
        table = ResidualTable.of(responses, thresholds)
        observed = table.correlations(min_people)
        half = np.random.default_rng(1).permutation(responses.n_persons) % 2
        halves = pair_sums(responses, thresholds_of_sums(table), half)
        varies = sums_over_both(halves).variance > 0
        first, second = np.nonzero(np.triu(np.isfinite(observed.q3) & varies, 1))
        return cls(table, observed, half, halves, first, second, min_people)

    @property
    def q3(self) -> Floats:
        return self.observed.q3[self.first, self.second]

    @property
    def eigenvalue(self) -> float:
        """Of the first contrast."""
        return float(np.linalg.eigvalsh(self.observed.standardized)[-1])


def thresholds_of_sums(table: ResidualTable) -> Floats:
    """As `pair_sums` takes them."""
    if table.responses.thresholds.binary:
        return with_gaps(table.thresholds)
    return table.thresholds


def sums_over_both(halves: tuple[HalfOfPeople, HalfOfPeople]) -> PairSums:
    first, second = halves
    return PairSums(*(a + b for a, b in zip(first.sums, second.sums, strict=True)))


@dataclass(frozen=True, eq=False)
class Reference:
    """The same statistics in data sets drawn given the scores: of pairs; and eigenvalues of the first contrasts, data
    sets x contrasts."""

    pairs: DrawnPairs
    eigenvalues: Floats

    @classmethod
    def drawn(cls, evidence: Evidence, draws: int, seed: int) -> Reference:
        q3 = []
        eigenvalues = []
        for batch in evidence.table.correlations_of_draws(range(draws), seed, evidence.min_people):
            # Where a residual happens not to vary in a draw, the pair shares nothing there.
            q3.append(np.nan_to_num(batch.q3[:, evidence.first, evidence.second]))
            eigenvalues.append(np.linalg.eigvalsh(batch.standardized)[:, : -1 - CONTRASTS : -1])
        return cls(DrawnPairs.of(evidence.q3, np.concatenate(q3)), np.concatenate(eigenvalues))

    @property
    def draws(self) -> int:
        return len(self.eigenvalues)

    @property
    def first_eigenvalue(self) -> Floats:
        return self.eigenvalues[:, 0]


def affordable_draws(people: int, items: int) -> int:
    """How many are made by default; 0 where they would be too few."""
    affordable = int(DRAWS_WORK / work_of_a_draw(people, items))
    return min(affordable, MOST_DRAWS) if affordable >= FEWEST_DRAWS else 0


def work_of_a_draw(people: int, items: int) -> float:
    """In products of residuals, 5e6 of which are a millisecond; eigenvalues come besides."""
    return people * items * (WORK_OF_A_RESPONSE + items) + items**3


def judge_by_draws(evidence: Evidence, reference: Reference) -> BothTests:
    p = share_as_large(reference.first_eigenvalue, np.array([evidence.eigenvalue]))
    return BothTests(reference.pairs.test(evidence.q3), float(p[0]))


def judge_by_normal(
    evidence: Evidence, halves: tuple[HalfOfPeople, HalfOfPeople], variance_factor: float = 1.0
) -> BothTests:
    """The tests for large samples; variances of the contrast are larger by this factor, where sums allow for slopes."""
    first, second = halves
    sums = sums_over_both(halves)
    pairs = (evidence.first, evidence.second)
    p_first = contrast_in_other_half(second.sums, first, variance_factor).p
    p_second = contrast_in_other_half(first.sums, second, variance_factor).p
    test_of_pairs = normal_test(sums.shared[pairs], sums.variance[pairs], sums.n[pairs])
    return BothTests(test_of_pairs, min(1.0, 2 * p_first, 2 * p_second))


def contrast_strength(evidence: Evidence) -> float:
    """Of the strongest contrast of either half of the people in the other half, in items."""
    first, second = evidence.halves
    in_first = contrast_in_other_half(second.sums, first).strength
    in_second = contrast_in_other_half(first.sums, second).strength
    return (in_first + in_second) / 2


class ContrastTest(NamedTuple):
    """The chance of so strong a contrast, and its strength: what an eigenvalue would be, 1 on average if there is
    none."""

    p: float
    strength: float


def contrast_in_other_half(found: PairSums, tested: HalfOfPeople, variance_factor: float = 1.0) -> ContrastTest:
    """The strongest contrast that one half of the people found, in the other.

    The eigenvalue of the half that chose the direction is larger by chance, much so where few people answered the same
    items.
    """
    spread = np.sqrt(np.diag(found.scale))  # items that vary little must not count for less
    z = np.divide(found.shared, np.sqrt(found.variance), out=np.zeros_like(found.shared), where=found.variance > 0)
    vector = first_eigenvector(z)
    direction = vector * safe_divide(1.0, spread)
    variance = variance_factor * float(tested.residuals.sum(variance_along, direction))
    p = 1.0
    if variance > 0:
        p = float(scipy.special.ndtr(-(direction @ tested.sums.shared @ direction) / np.sqrt(variance)))
    return ContrastTest(p, 1 + float(vector @ tested.sums.correlation @ vector))


def first_eigenvector(matrix: Floats) -> Floats:
    """Of the largest eigenvalue, its larger side positive."""
    vector = np.linalg.eigh(matrix)[1][:, -1]
    return np.asarray(vector * np.where((vector**3).sum() < 0, -1.0, 1.0))
