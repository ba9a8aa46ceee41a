"""Do votes fit the board: judges by judge, contestants two by two, triples that go round; and which pairs to ask next.

Of each vote the model gives the chances of its three outcomes (`Chances`); what is observed is compared with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.ranks.intervals import OrderTests
from spectral_irt.inference.results import adjust_p, two_sided
from spectral_irt.leaderboard.contrasts import LEVEL
from spectral_irt.numerics import generator
from spectral_irt.pairs.source import Votes
from spectral_irt.tables import Columns

DRAWS = 200  # of all votes, for the number of triples that go round by chance
DRAWN_VOTES = 10_000_000  # in all draws: a second or so
MOST_IN_TRIPLES = 300  # contestants: every draw is a product of matrices of that size
ASK_NEXT = 20  # pairs that are named
POINTS = np.array([0.0, 0.5, 1.0])  # of the first contestant where it lost, tied, won


class Chances(NamedTuple):
    """Of each vote: the log odds that the first contestant wins, not loses, and the chances to lose, tie and win; and
    the logarithm of nu, which says how often there is a tie."""

    log_odds: Floats
    p: Floats
    tie: float

    @classmethod
    def of(cls, log_odds: Floats, tie: float) -> Chances:
        """`tie` is the logarithm of nu; minus infinity without ties."""
        size = np.stack([-log_odds / 2, np.full(len(log_odds), tie), log_odds / 2], axis=1)
        size = np.exp(size - size.max(axis=1, keepdims=True))
        return cls(log_odds, size / size.sum(axis=1, keepdims=True), tie)

    @property
    def expected(self) -> Floats:
        """Points of the first contestant, 1 where it wins for certain."""
        return self.p @ POINTS

    @property
    def variance(self) -> Floats:
        return self.p @ POINTS**2 - self.expected**2

    @property
    def fourth(self) -> Floats:
        """Fourth central moments of the points."""
        return (self.p * (POINTS - self.expected[:, None]) ** 4).sum(axis=1)


def judge_columns(votes: Votes, chances: Chances) -> Columns:
    """A row for each judge: mean squares of residuals, the slope of verdicts on the log odds, and agreement.

    `sensitivity` is by a step from 1, where the model holds: sum of (points - expected) d over sum of variance d^2, d
    the log odds; below 1, the judge tells contestants apart less than all together. `p_holm` is for the test against 1.
    """
    assert votes.judge is not None
    judge = votes.judge
    n_judges = len(votes.judges)

    def total(values: Floats) -> Floats:
        return np.bincount(judge, weights=values, minlength=n_judges).astype(np.float64)

    n = np.bincount(judge, minlength=n_judges)
    residual = votes.points / 2 - chances.expected
    variance = np.maximum(chances.variance, 1e-12)
    # The variances of mean squares, as of infit and outfit: that of squared residuals is C - V^2.
    spread = np.maximum(chances.fourth - variance**2, 0)
    infit = total(residual**2) / total(variance)
    outfit = total(residual**2 / variance) / n
    infit_se = np.sqrt(total(spread)) / total(variance)
    slope_variance = 1 / np.maximum(total(variance * chances.log_odds**2), 1e-12)
    sensitivity = 1 + total(residual * chances.log_odds) * slope_variance
    sensitivity_se = np.sqrt(slope_variance)
    favorite = np.where(chances.log_odds >= 0, chances.p[:, 2], chances.p[:, 0])
    agrees = np.where(chances.log_odds >= 0, votes.points == 2, votes.points == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        infit_z = (infit - 1) / infit_se
        z = (sensitivity - 1) / sensitivity_se
    return {
        "judge": np.array(votes.judges, dtype=object),
        "n": n,
        "ties": total((votes.points == 1).astype(float)) / n,
        "first_chosen": total((votes.points == 2).astype(float)) / n,
        "agreement": total(agrees.astype(float)) / n,
        "agreement_expected": total(favorite) / n,
        "infit": infit,
        "infit_z": infit_z,
        "outfit": outfit,
        "sensitivity": sensitivity,
        "sensitivity_se": sensitivity_se,
        "p_holm": adjust_p(two_sided(z), "holm"),
    }


class _MetPairs(NamedTuple):
    """Sums over the votes about each two contestants: matrices, the first by the second."""

    n: Floats
    points: Floats
    expected: Floats
    variance: Floats


def _met(votes: Votes, chances: Chances) -> _MetPairs:
    n = votes.table(np.ones(votes.n))
    points = votes.table(votes.points / 2)
    expected = votes.table(chances.expected)
    variance = votes.table(chances.variance)
    return _MetPairs(
        n=n + n.T, points=points + (n - points).T, expected=expected + (n - expected).T, variance=variance + variance.T
    )


def pair_columns(
    votes: Votes,
    chances: Chances,
    order: Ints,
    ability: Floats,
    tests: OrderTests,
    covariance: Floats | None,
    se: Floats,
) -> Columns:
    """Every two contestants, the better first: how they met and whether that fits; are they told apart; and by how much
    a vote more would narrow their difference, for those who are not."""
    met = _met(votes, chances)
    first, second = np.triu_indices(len(order), 1)
    a = order[first]
    b = order[second]
    difference = ability[a] - ability[b]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (met.points - met.expected)[a, b] / np.sqrt(met.variance[a, b])
        z = np.where(met.n[a, b] > 0, z, np.nan)
    variance = se[a] ** 2 + se[b] ** 2
    if covariance is not None:
        variance = variance - 2 * covariance[a, b]
    information = Chances.of(difference, chances.tie).variance
    with np.errstate(invalid="ignore"):
        # Variance of the difference taken off by a vote more, V^2 I / (1 + V I); 0 where they are told apart.
        gain = variance**2 * information / (1 + variance * information)
    gain = np.where(np.isfinite(variance) & (tests.p[a, b] >= LEVEL), gain, 0.0)
    ask = np.zeros(len(gain), dtype=np.int64)
    best = np.argsort(-gain, kind="stable")[:ASK_NEXT]
    best = best[gain[best] > 0]
    ask[best] = 1 + np.arange(len(best))
    names = np.array(votes.contestants, dtype=object)
    return {
        "contestant": names[a],
        "other": names[b],
        "difference": difference,
        "se": np.sqrt(variance),
        "p_adjusted": tests.p[a, b],
        "n": met.n[a, b].astype(np.int64),
        "points": met.points[a, b],
        "expected": met.expected[a, b],
        "z": z,
        "p_holm": adjust_p(two_sided(z), "holm"),
        "ask_next": ask,
    }


class Triples(NamedTuple):
    """Triples of contestants that go round (a mostly beats b, b beats c, c beats a), of those who all met; how many are
    expected by chance, and p of so many. None are looked for among very many contestants."""

    n: int
    round: int
    expected: float
    p: float


def triples(votes: Votes, chances: Chances, seed: int = 0) -> Triples | None:
    """Triples that go round, and as many in votes drawn from the model."""
    m = len(votes.contestants)
    if m < 3 or m > MOST_IN_TRIPLES:
        return None
    n = votes.table(np.ones(votes.n))
    met = (n + n.T > 0).astype(np.float32)
    all_met = float(np.sum((met @ met) * met)) / 6
    observed = _going_round(votes, votes.points)
    rng = generator(seed)
    draws = max(1, min(DRAWS, DRAWN_VOTES // votes.n))
    below = np.cumsum(chances.p, axis=1)
    counts = []
    for _ in range(draws):
        u = rng.random(votes.n)
        counts.append(_going_round(votes, (u >= below[:, 0]).astype(np.int64) + (u >= below[:, 1])))
    p = (1 + sum(count >= observed for count in counts)) / (draws + 1)
    return Triples(round(all_met), observed, float(np.mean(counts)), p)


def _going_round(votes: Votes, points: Ints) -> int:
    margin = votes.table(points.astype(np.float64) - 1)
    beats = (margin - margin.T > 0).astype(np.float32)
    return round(float(np.sum((beats @ beats) * beats.T)) / 3)
