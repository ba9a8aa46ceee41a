"""Answers given the total score: mean, variance, third and fourth central moment of every answer, without abilities.

Given the score, a person's answers depend on the thresholds alone. For right and wrong answers the mean is P = P(X = 1
| score), and the moments are P, V = P (1 - P), V (1 - 2 P) and V (1 - 3 V): kernels form them as they go. In several
categories they are computed once for all people with the same items and score, and kept.

(The moments at an ability are those of `persons.residuals.answers_at`.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import central_moments
from spectral_irt.conditional.exact import PatternPart, padded, part_given, pattern_parts, threshold_codes
from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities
from spectral_irt.conditional.information import by_item
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items, rows_of
from spectral_irt.data.patterns import distinct_rows
from spectral_irt.engine.base import budget
from spectral_irt.model import above
from spectral_irt.persons.abilities import answers_with_difficulty, checked, with_thresholds
from spectral_irt.persons.residuals import LEAST

# What estimated thresholds take up of a sum over the answers to an item, in several categories. With d_k = 1{x >= k} -
# P_k, and f = (x - E)^2 - V (for infit) or that over V (for outfit), sums over people of Cov(f, d_k), 2 x thresholds;
# of Cov(d_k, d_k'), items x thresholds of one x thresholds of one; and of P_k.
Directions = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class GivenScore:
    """What kernels need for the moments of answers; `of` makes it.

    `beta` has a number for each threshold, NaN for items that are left out, of the score too; from the information
    `series_from` on, the probabilities of a person's right and wrong answers come from a series; `pattern` is that of
    each person, which kernels want beside the block. In several categories there are the moments, 4 x answers of all
    patterns, by item within a pattern, where each pattern begins in them, and `Directions`.
    """

    layout: Thresholds
    beta: Floats
    series_from: float
    pattern: Ints
    indptr: Ints | None = None
    moments: Floats | None = None
    directions: Directions | None = None

    @classmethod
    def of(cls, responses: Responses, thresholds: Floats, *, series_from: float = SERIES_FROM) -> GivenScore:
        layout, beta = responses.thresholds, checked(responses, thresholds)
        if layout.binary:
            return cls(layout, beta, series_from, np.broadcast_to(np.int64(0), responses.n_persons))
        people, thresholds = with_thresholds(responses, beta)
        patterns, own = distinct_rows(people), people.thresholds
        rows, _ = by_item(patterns.rows)
        moments = budget().keep(np.zeros((4, len(rows.items))))  # 32 bytes a response: on disk where there is no room
        sums = _no_directions(own, 1)  # with room for what belongs to no item
        parts = responses.engine.hold(pattern_parts(rows, patterns.count, own))
        for which, inside, found, more in parts.map(_part, padded(own, thresholds), threshold_codes(own), own):
            place = rows.indptr[which][:, None] + np.arange(inside.shape[1])
            moments[:, place[inside]] = found[:, inside]
            for total, each in zip(sums, more, strict=True):
                total += each
        known = np.isfinite(layout.mean(beta))
        at = layout.of_items(np.flatnonzero(known))
        tilted, between, expected = every = _no_directions(layout)
        tilted[:, at], expected[at] = sums[0][:, :-1], sums[2][:-1]
        between[known, : own.widest, : own.widest] = sums[1][:-1]
        return cls(layout, beta, series_from, patterns.of_person, rows.indptr, moments, every)


def _no_directions(layout: Thresholds, more: int = 0) -> Directions:
    size, m = layout.n_entries + more, layout.n_items + more
    return np.zeros((2, size)), np.zeros((m, layout.widest, layout.widest)), np.zeros(size)


def _part(
    part: PatternPart, cumulated: Floats, codes: Ints, layout: Thresholds
) -> tuple[Ints, NDArray[np.bool_], Floats, Directions]:
    """Moments of the answers of some patterns, 4 x patterns x items, and what they add to `Directions`."""
    found = part_given(part, cumulated).p
    p = np.concatenate([np.maximum(1 - found.sum(axis=0, keepdims=True), 0.0), found]).transpose(0, 2, 1)
    k = np.arange(len(p), dtype=float)[:, None, None]
    moments = np.array(central_moments(p.copy()))
    mean, v = moments[0], np.maximum(moments[1], LEAST)
    inside = part.inside
    weight = np.where(inside, part.people[:, None], 0.0)
    passed = above(p, axis=0)
    tilted = above(p * (k - mean) ** 2, axis=0) - v * passed
    code, item = codes[part.items].transpose(2, 0, 1).ravel(), part.items.ravel()
    size, width = layout.n_entries + 1, layout.widest

    def by_threshold(values: Floats) -> Floats:
        return np.bincount(code, weights=(weight * values).ravel(), minlength=size).astype(np.float64)

    between = np.empty((layout.n_items + 1, width, width))
    for a in range(width):
        for b in range(a + 1):
            both = weight * (passed[a] - passed[a] * passed[b])
            between[:, a, b] = between[:, b, a] = np.bincount(item, both.ravel(), minlength=layout.n_items + 1)
    sums = np.array([by_threshold(tilted), by_threshold(tilted / v)])
    return part.which, inside, moments, (sums, between, by_threshold(passed))


def answers_given_score(
    block: Block, pattern: Ints, given: GivenScore
) -> tuple[Ints, NDArray[np.int32], Floats, Floats, Floats, Floats, Floats]:
    """The answers x of the people of a block without an extreme score: positions of person and item, x, and its mean,
    variance, third and fourth central moment."""
    layout = given.layout
    block = answers_with_difficulty(block, given.beta)
    if layout.binary:
        people = np.flatnonzero(block.informative)
        block = block if len(people) == block.n_persons else block.take(people)
        p = conditional_probabilities(block, given.beta, series_from=given.series_from)
        v = p * (1 - p)
        x = block.right().astype(np.float64)
        return np.repeat(people, block.counts), block.items, x, p, v, v * (1 - 2 * p), v * (1 - 3 * v)
    assert given.indptr is not None
    assert given.moments is not None
    rows = rows_of(block, layout)
    _, item, category = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    order = np.argsort((person << 32) + item)
    where = given.indptr[pattern[person]] + np.arange(len(person)) - rows.indptr[person]
    kept = np.flatnonzero(rows.informative[person])
    order, where = order[kept], where[kept]
    mean, variance, third, fourth = given.moments[:, where]
    return person[kept], item[order], category[order].astype(np.float64), mean, variance, third, fourth
