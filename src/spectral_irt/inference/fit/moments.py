"""Answers given the total score: mean, variance, third and fourth central moment of every answer, without abilities.

Given the score, a person's answers depend on the thresholds alone. For right and wrong answers the mean is P = P(X = 1
| score), and the moments are P, V = P (1 - P), V (1 - 2 P) and V (1 - 3 V): kernels form them as they go. In several
categories they are computed once for all people with the same items and score, and kept.

Conditional fit, strata, causes of misfit, halo and pairs of items are sums over these. (The moments at an ability are
those of `persons.residuals.answers_at`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import central_moments
from spectral_irt.conditional.exact import PatternPart, padded_sums, part_given, pattern_parts, threshold_codes
from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds, answered_items, rows_of
from spectral_irt.data.patterns import distinct_sets
from spectral_irt.engine.base import budget
from spectral_irt.model import above
from spectral_irt.persons.abilities import answers_with_difficulty, thresholds_of, with_thresholds
from spectral_irt.persons.residuals import LEAST


class ThresholdSums(NamedTuple):
    """What estimated thresholds take up of sums over the answers to an item, in several categories.

    With d_k = 1{x >= k} - P_k, P_k = P(X >= k | score), and f = (x - E)^2 - V, sums over people of Cov(f, d_k) and of
    that of f / V, a number for each threshold; of Cov(d_k, d_k'), items x thresholds of one x thresholds of one; and of
    P_k.
    """

    r_infit: Floats
    r_outfit: Floats
    between: Floats
    passed: Floats

    @classmethod
    def zeros(cls, layout: Thresholds, padding: int = 0) -> ThresholdSums:
        """With room for the thresholds that belong to no item, by which patterns are padded."""
        size = layout.n_entries + padding
        between = np.zeros((layout.n_items + padding, layout.widest, layout.widest))
        return cls(np.zeros(size), np.zeros(size), between, np.zeros(size))


class PatternMoments(NamedTuple):
    """Moments of the answers of some `patterns`, 4 x patterns x items, where they have an item (`inside`), and what
    their people add to the sums."""

    patterns: Ints
    inside: Mask
    moments: Floats
    sums: ThresholdSums


@dataclass(frozen=True, eq=False)
class GivenScore:
    """What kernels need for the moments of answers; `of` makes it.

    `beta` has a number for each threshold, NaN for items that are left out, of the score too; from the information
    `series_from` on, the probabilities of a person's right and wrong answers come from a series; `pattern` is that of
    each person, which kernels want beside the block. In several categories there are the moments, 4 x answers of all
    patterns, by item within a pattern, where each pattern begins in them (`indptr`), and `threshold_sums`.
    """

    layout: Thresholds
    beta: Floats
    series_from: float
    pattern: Ints
    indptr: Ints | None = None
    moments: Floats | None = None
    threshold_sums: ThresholdSums | None = None

    @classmethod
    def of(cls, responses: Responses, thresholds: Floats, *, series_from: float = SERIES_FROM) -> GivenScore:
        layout = responses.thresholds
        beta = thresholds_of(responses, thresholds)
        if layout.binary:
            return cls(layout, beta, series_from, np.broadcast_to(np.int64(0), responses.n_persons))
        measured, thresholds = with_thresholds(responses, beta)
        patterns = distinct_sets(measured)
        rows = patterns.rows
        moments = budget().keep(np.zeros((4, len(rows.items))))  # 32 bytes a response: on disk where there is no room
        sums = ThresholdSums.zeros(measured.thresholds, padding=1)
        parts = responses.engine.hold(pattern_parts(rows, patterns.count, measured.thresholds))
        tables = (
            padded_sums(measured.thresholds, thresholds),
            threshold_codes(measured.thresholds),
            measured.thresholds,
        )
        for part in parts.map(_pattern_moments, *tables):
            place = rows.indptr[part.patterns][:, None] + np.arange(part.inside.shape[1])
            moments[:, place[part.inside]] = part.moments[:, part.inside]
            for total, of_part in zip(sums, part.sums, strict=True):
                total += of_part
        return cls(
            layout=layout,
            beta=beta,
            series_from=series_from,
            pattern=patterns.of_person,
            indptr=rows.indptr,
            moments=moments,
            threshold_sums=_with_all_items(sums, measured.thresholds, layout, np.isfinite(layout.mean(beta))),
        )


def _with_all_items(sums: ThresholdSums, measured: Thresholds, layout: Thresholds, known: Mask) -> ThresholdSums:
    """Sums of the items with thresholds among those of all items, without the padding."""
    total = ThresholdSums.zeros(layout)
    entry = layout.of_items(np.flatnonzero(known))
    total.r_infit[entry] = sums.r_infit[:-1]
    total.r_outfit[entry] = sums.r_outfit[:-1]
    total.passed[entry] = sums.passed[:-1]
    total.between[known, : measured.widest, : measured.widest] = sums.between[:-1]
    return total


def _pattern_moments(part: PatternPart, cumulated: Floats, codes: Ints, layout: Thresholds) -> PatternMoments:
    above_lowest = part_given(part, cumulated).p
    lowest = np.maximum(1 - above_lowest.sum(axis=0, keepdims=True), 0.0)
    p = np.concatenate([lowest, above_lowest]).transpose(0, 2, 1)  # categories x patterns x items
    category = np.arange(len(p), dtype=float)[:, None, None]
    moments = np.array(central_moments(p.copy()))
    mean = moments[0]
    v = np.maximum(moments[1], LEAST)
    people = np.where(part.inside, part.people[:, None], 0.0)
    passed = above(p, axis=0)
    covariance = above(p * (category - mean) ** 2, axis=0) - v * passed  # of f and d_k
    entry = codes[part.items].transpose(2, 0, 1).ravel()
    item = part.items.ravel()

    def by_threshold(values: Floats) -> Floats:
        return np.bincount(entry, weights=(people * values).ravel(), minlength=layout.n_entries + 1).astype(np.float64)

    between = np.empty((layout.n_items + 1, layout.widest, layout.widest))
    for a in range(layout.widest):
        for b in range(a + 1):
            both = people * (passed[a] - passed[a] * passed[b])
            between[:, a, b] = between[:, b, a] = np.bincount(item, both.ravel(), minlength=layout.n_items + 1)
    sums = ThresholdSums(by_threshold(covariance), by_threshold(covariance / v), between, by_threshold(passed))
    return PatternMoments(part.which, part.inside, moments, sums)


class AnswersGivenScore(NamedTuple):
    """Answers x: positions of person and item, and mean, variance, third and fourth central moment of x given the
    score."""

    person: Ints
    item: NDArray[np.int32]
    x: Floats
    mean: Floats
    variance: Floats
    third: Floats
    fourth: Floats

    def counts(self, layout: Thresholds) -> Floats:
        """How many people gave each answer, items x categories."""
        width = layout.widest + 1
        cell = self.item.astype(np.int64) * width + self.x.astype(np.int64)
        return np.bincount(cell, minlength=layout.n_items * width).reshape(-1, width).astype(np.float64)


def answers_with_moments(block: Block, pattern: Ints, given: GivenScore) -> AnswersGivenScore:
    """The answers of the people of a block whose score is neither the lowest nor the highest."""
    block = answers_with_difficulty(block, given.beta)
    if given.layout.binary:
        return _right_and_wrong_with_moments(block, given)
    assert given.indptr is not None
    assert given.moments is not None
    rows = rows_of(block, given.layout)
    _, item, category = answered_items(block, given.layout)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    # Moments are kept by item within a pattern, so the answers of a person are sorted by item.
    order = np.argsort((person << 32) + item)
    place = given.indptr[pattern[person]] + np.arange(len(person)) - rows.indptr[person]
    mixed = np.flatnonzero(rows.informative[person])
    order = order[mixed]
    moments = given.moments[:, place[mixed]]
    return AnswersGivenScore(person[mixed], item[order], category[order].astype(np.float64), *moments)


def _right_and_wrong_with_moments(block: Block, given: GivenScore) -> AnswersGivenScore:
    people = np.flatnonzero(block.informative)
    if len(people) < block.n_persons:
        block = block.take(people)
    p = conditional_probabilities(block, given.beta, series_from=given.series_from)
    v = p * (1 - p)
    return AnswersGivenScore(
        person=np.repeat(people, block.counts),
        item=block.items,
        x=block.right().astype(np.float64),
        mean=p,
        variance=v,
        third=v * (1 - 2 * p),
        fourth=v * (1 - 3 * v),
    )
