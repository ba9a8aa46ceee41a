"""What two items with ordered answers share given the total score; `conditional_pairs.py` for more than two categories.

The covariance of two answers given the score is exact here too: with g_i(z) the generating function of item i at the
tilting ability (`contour.py`), E(X_i X_j | s) is a mean over points of the circle of h_i(z) h_j(z), where
h_i(z) = sum_k k p_ik z^k / g_i(z). Where there are too many sets of items and scores for that, a covariance of rank one
whose rows have the right sums takes its place: with many items it is small beside the variances.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.conditional.contour import n_points
from spectral_irt.conditional.information import contours
from spectral_irt.conditional.patterns import PatternPart, padded, pattern_parts
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import Prepared
from spectral_irt.inference.dimensions.pairs import PairSums, Residuals, centered, finished, pair_products, rank_one
from spectral_irt.inference.fit.ordered_fit import (
    LEAST,
    AnswerMoments,
    answers_with_moments,
    informative,
    moments_given_score,
)
from spectral_irt.persons.abilities import Persons

EXACT_WORK = 3e9  # multiplications that exact covariances may cost: a few seconds


def ordered_pair_sums(people: Persons, half: Ints) -> tuple[Prepared, tuple[PairSums, PairSums]]:
    """Residuals of the people given their scores, dense; and what pairs of items share in either half of them."""
    used = informative(people)
    pattern = people.patterns.of_person
    parts = people.responses.entries.prepare(
        _residuals, moments_given_score(people), people.steps, persons=(pattern, used, half)
    )
    parts = centered(parts)
    first, second = (
        finished(parts.sum(pair_products, k), _expected(people, parts, pattern[(half == k) & (used > 0)], k))
        for k in (0, 1)
    )
    return parts, (first, second)


def _residuals(
    block: Block, pattern: Ints, used: Floats, half: Ints, given: AnswerMoments, steps: Thresholds
) -> Residuals:
    person, item, category, where = answers_with_moments(block, pattern, used, given, steps)
    kept = np.flatnonzero(used > 0)
    row = np.zeros(block.n_persons, dtype=np.int64)
    row[kept] = np.arange(len(kept))
    e, v, lean, p, seen = (np.zeros((len(kept), steps.n_items)) for _ in range(5))
    cell = (row[person], item)
    p[cell], seen[cell] = given.mean[where], 1.0
    e[cell] = category - given.mean[where]
    v[cell] = given.variance[where]
    lean[cell] = given.third[where] / np.maximum(given.variance[where], LEAST)
    return Residuals(e, v, lean, p, seen, half[kept])


def _expected(people: Persons, parts: Prepared, pattern: Ints, half: int) -> Floats:
    """Sums of the covariances given the score over the people of a half, who have these patterns."""
    rows, steps = people.patterns.rows, people.steps
    number = np.bincount(pattern, minlength=len(rows.counts))
    there = np.flatnonzero((number > 0) & rows.informative)
    if not len(there):
        return np.zeros((steps.n_items, steps.n_items))
    held = people.responses.engine.hold(pattern_parts(rows.take(there), number[there], steps))
    if held.sum(_work, steps.widest) > EXACT_WORK:
        return -np.asarray(parts.sum(_by_rank_one, half))
    return np.asarray(held.sum(_covariances, padded(steps, people.thresholds), steps.n_items))


def _work(part: PatternPart, widest: int) -> float:
    points = n_points(part.most * widest / 4.0, widest, part.scores, part.most)[1].max()
    return float(np.sum(part.counts.astype(float) ** 2) * points)


def _by_rank_one(part: Residuals, half: int) -> Floats:
    part = part.of(half)
    c = rank_one(part.v, part.seen)
    return c.T @ c


def _covariances(part: PatternPart, cumulated: Floats, n_items: int) -> Floats:
    total = np.zeros((n_items + 1, n_items + 1))
    for some, sums in contours(part, cumulated):
        real, imaginary = (factor.sum(axis=2) for factor in sums.pair_factors())  # X is how many thresholds it passed
        mean = sums.given.passed.sum(axis=0).T
        together = real @ real.transpose(0, 2, 1) - imaginary @ imaginary.transpose(0, 2, 1)
        together -= mean[:, :, None] * mean[:, None, :]
        together *= part.people[some, None, None]
        items = part.items[some]
        np.add.at(total, (items[:, :, None], items[:, None, :]), together)
    return total[:-1, :-1]
