"""Infit and outfit of every item: sums over people.

The **conventional** ones compare answers with what is expected at the estimated ability, as Winsteps and eRm do; the
ability has already adapted to the answers, so their mean is below 1, the more so the shorter the test. The
**conditional** ones compare answers with what is expected given the score: their mean is 1 in tests of any length, and
their standardized form keeps its level (Müller 2020). Decide by these; the others are for comparison.

Estimated thresholds have used up the directions sum d_k = 0, d_k = 1{x >= k} - P(X >= k | score). With f = (x - E)^2 -
V, or that over V, r = sum Cov(f, d) and S = sum Cov(d, d'), what is left is the sum of f - r' S^-1 d, of variance sum
Var f - r' S^-1 r. (Right or wrong: d = x - P, r = sum V (1 - 2 P), or sum (1 - 2 P), and S = sum V.) Without this the
standard deviation of the standardized conditional forms is 0.8 instead of 1 (measured, 10 to 60 items)."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.conditional.exact import DOUBLE, SINGLE, Precision, given_every_score
from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities
from spectral_irt.conditional.newton import QUICK_ANSWERS
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, person_chunks
from spectral_irt.data.design import SharedSet
from spectral_irt.inference.fit.moments import GivenScore, answers_given_score
from spectral_irt.model import above
from spectral_irt.persons.abilities import answers_with_difficulty, checked
from spectral_irt.persons.residuals import (
    CERTAIN,
    FARTHEST,
    LEAST,
    answers_at,
    mean_squares,
    probabilities,
    standardized,
)
from spectral_irt.tables import Columns

CACHED = 32_768  # answers whose dozen numbers each stay in a core's second-level cache
ROUNDING = 1e-6  # a standard error below this is one of rounding


def item_statistics(
    responses: Responses, thresholds: Floats, ability: Floats, level: Ints | None = None, n_levels: int = 0
) -> Columns:
    """Conventional fit statistics of every item (Wright & Masters 1982, ch. 5); NaN for items that nobody with a mixed
    score answered, whose people alone count, as in eRm and Winsteps.

    `n, infit, infit_z, outfit, outfit_z`; `point_measure, point_measure_expected`: correlation of the answers with the
    abilities, and what the model expects of it; `exact_match, exact_match_expected`: percentage of answers within half
    a category of what is expected (right or wrong: the likelier ones), and what the model expects of it;
    `displacement`: what to add to the difficulty so that the answers add up to what the abilities let expect, roughly;
    `discrimination`: the slope of the item, one Newton step from the model's 1, as in Winsteps,

        1 + sum (x - E) (theta - b) / sum V (theta - b)^2,

    with its standard error `discrimination_se`. In a short test slopes are somewhat above 1 (1.09 on average with 8
    items, 1.02 with 40), for abilities have adapted to the answers.

    Of ratings, where each of these items is a combination, the same of every `level` that they are combined of.
    """
    layout, beta = responses.thresholds, checked(responses, thresholds)
    known = ability[np.isfinite(ability)]
    centre = float(known.mean()) if len(known) else 0.0  # keeps digits in the correlations
    kernel = _sums_of_right_and_wrong if layout.binary else _item_sums
    sums = responses.entries.sum(kernel, beta, layout, centre, persons=(ability,))
    v, x, e, x_theta, e_theta, v_theta, v_theta2 = sums[[3, 6, 8, 12, 13, 16, 17]]
    off = (beta if layout.binary else layout.mean(beta)) - centre  # of an item from where abilities are counted from
    sums[16:] = x_theta - e_theta - off * (x - e), v_theta2 - 2 * off * v_theta + off**2 * v
    if level is not None:
        sums = np.array([np.bincount(level, weights=row, minlength=n_levels) for row in sums])
    n, *terms, x, xx, e, ee, theta, theta2, x_theta, e_theta, match, likelier, steeper, known_by = sums
    v = terms[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(n * theta2 - theta**2)
        point = (n * x_theta - x * theta) / (np.sqrt(n * xx - x**2) * spread)
        expected = (n * e_theta - e * theta) / (np.sqrt(n * (ee + v) - e**2) * spread)
        return vars(mean_squares(n, *terms)) | {
            "point_measure": np.where(np.isfinite(point), point, np.nan),
            "point_measure_expected": np.where(np.isfinite(expected), expected, np.nan),
            "exact_match": 100 * match / n,
            "exact_match_expected": 100 * likelier / n,
            "displacement": (e - x) / v,
            "discrimination": 1 + steeper / known_by,
            "discrimination_se": 1 / np.sqrt(known_by),
        }


def _item_sums(block: Block, ability: Floats, beta: Floats, layout: Thresholds, centre: float) -> Floats:
    """Sums over people with a mixed score: a row for each statistic, a column for each item.

    What `mean_squares` takes; x, x^2, E, E^2, theta, theta^2, x theta, E theta; whether x is as expected, and how
    likely that is; V theta, V theta^2.
    """
    total = np.zeros((18, layout.n_items))
    for one in answers_at(block, ability, beta, layout):
        x, e, theta = one.x, one.mean, one.theta - centre
        terms = one.terms()
        v_theta = one.variance * theta
        close = np.abs(x - e) < 0.5
        more = (x, x * x, e, e * e, theta, theta**2, x * theta, e * theta, close, one.likely, v_theta, v_theta * theta)
        for row, value in zip(total, (*terms, *more), strict=True):
            row += np.bincount(one.item, weights=value, minlength=layout.n_items)
    return total


def _sums_of_right_and_wrong(
    block: Block, ability: Floats, difficulty: Floats, layout: Thresholds, centre: float
) -> Floats:
    """The same: what is a number of the person times one of the item is added up by two sparse products: counts, sums
    of abilities, and with z^2 = exp(b - theta) for a right and exp(theta - b) for a wrong answer the outfits."""
    block, m = answers_with_difficulty(block, difficulty), layout.n_items
    if not block.informative.all():
        persons = np.flatnonzero(block.informative)
        block, ability = block.take(persons), ability[persons]
    if not block.n_persons:
        return np.zeros((18, m))
    theta = ability - centre
    ease = np.exp(np.clip(np.where(np.isfinite(difficulty), centre - difficulty, 0.0), -FARTHEST, FARTHEST))
    able = np.exp(np.clip(theta, -FARTHEST, FARTHEST))
    of_person = np.stack([np.ones(len(theta)), theta, theta**2, 1 / able, able], axis=1)
    passed, failed = block.halves(m)
    right, wrong = passed.T @ of_person, failed.T @ of_person
    n, sum_theta, sum_theta2, inverse, odds = (right + wrong).T
    z2 = right[:, 3] / ease + wrong[:, 4] * ease
    one_over_v = 2 * n + inverse / ease + odds * ease
    p, v, square, v2, p_theta, *more = _by_answers(block, ability, difficulty, theta)
    rows = [n, z2, square, v, one_over_v - 4 * n, v - 4 * v2, right[:, 0], right[:, 0], p, p - v]
    return np.array([*rows, sum_theta, sum_theta2, right[:, 1], p_theta, *more])


def _by_answers(block: Block, ability: Floats, difficulty: Floats, theta: Floats) -> Floats:
    """Sums over the answers to each item of p, v, (x - p)^2, v^2, p theta, whether the answer is the likelier one and
    how likely that is, v theta, v theta^2."""
    m = len(difficulty)
    total = np.zeros((9, m))
    every_right = block.right()
    for start, stop in person_chunks(block.indptr, CACHED):
        span = slice(int(block.indptr[start]), int(block.indptr[stop]))
        items, right = block.items[span], every_right[span]
        p = probabilities(block, difficulty, ability, start, stop)
        each = np.repeat(theta[start:stop], np.diff(block.indptr[start : stop + 1]))
        off = np.abs(right - p)
        v = p * (1 - p)
        v_theta = v * each
        as_expected = (off < 0.5) + 0.5 * (off == 0.5)
        values = (p, v, off * off, v * v, p * each, as_expected, np.maximum(p, 1 - p), v_theta, v_theta * each)
        for row, value in zip(total, values, strict=True):
            row += np.bincount(items, weights=value, minlength=m)
    return total


def conditional_statistics(
    responses: Responses, thresholds: Floats, *, given: GivenScore | None = None, series_from: float | None = None
) -> Columns:
    """Conditional infit and outfit of every item; NaN for items that nobody with a mixed score answered.

    `n, infit, infit_z, outfit, outfit_z`; `displacement`: one Newton step of the conditional likelihood for each item
    with the others held, zero for estimates by conditional maximum likelihood, and for an anchored item how far from
    its difficulty these answers would put it; `infit_se`: the standard error of the infit under the model. Answers to
    items without finite thresholds are left out, of the score too. `given` has the moments of ordered answers, where
    they are known already. People whose right and wrong answers carry the information `series_from` or more have their
    probabilities from a series (by default nobody up to 100,000 answers in all, and beyond that people with 4 or more).

    References
    ----------
    Müller (2020), J. Stat. Distrib. Appl. 7:5; Christensen, Kreiner & Mesbah (2013), Rasch Models in Health, ch. 5.
    """
    layout = responses.thresholds
    if layout.binary:
        sums, r, inverse, off = _right_and_wrong(responses, checked(responses, thresholds), series_from)
    else:
        given = GivenScore.of(responses, thresholds) if given is None else given
        sums, r, inverse, off = _categories(responses, given)
    n, z2, square, v, outer, inner = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        infit, outfit = square / v, z2 / n
        c_in, c_out = np.einsum("ikl,til->tik", inverse, r)
        q_in = np.sqrt(np.maximum(inner - (c_in * r[0]).sum(axis=1), 0)) / v
        q_out = np.sqrt(np.maximum(outer - (c_out * r[1]).sum(axis=1), 0)) / n
        q_in = np.where(q_in > ROUNDING, q_in, 0.0)  # of two items, say, where the infit cannot vary
        return {
            "n": n,
            "infit": infit,
            "infit_z": standardized(np.maximum(infit - (c_in * off).sum(axis=1) / v, 0), q_in),
            "outfit": outfit,
            "outfit_z": standardized(np.maximum(outfit - (c_out * off).sum(axis=1) / n, 0), q_out),
            "displacement": -off.sum(axis=1) / v,
            "infit_se": np.where(q_in > 0, q_in, np.nan),
        }


Sums = tuple[Floats, Floats, Floats, Floats]  # for `mean_squares`; r of both; S^-1; sum of d: items x thresholds of one


def _categories(responses: Responses, given: GivenScore) -> Sums:
    layout, directions = given.layout, given.directions
    assert directions is not None
    tilted, between, expected = directions
    sums, counts = responses.entries.sum(_sums_by_item, given, persons=(given.pattern,))
    passed = above(counts)
    off = passed - layout.table(expected, 0.0)
    r = np.array([layout.table(each, 0.0) for each in tilted])
    inverse: Floats = np.linalg.pinv(between, rcond=1e-10, hermitian=True).astype(np.float64)
    return sums, r, inverse, off


def _sums_by_item(block: Block, pattern: Ints, given: GivenScore) -> tuple[Floats, Floats]:
    """What `mean_squares` takes, of each item; and items x categories, how many gave each answer."""
    m, width = given.layout.n_items, given.layout.widest + 1
    _, item, x, mean, variance, _, fourth = answers_given_score(block, pattern, given)
    v, square = np.maximum(variance, LEAST), (x - mean) ** 2
    values = (None, square / v, square, v, fourth / v**2 - 1, fourth - v**2)
    sums = np.array([np.bincount(item, weights=each, minlength=m) for each in values], dtype=np.float64)
    counts = np.bincount(item.astype(np.int64) * width + x.astype(np.int64), minlength=m * width).reshape(m, width)
    return sums, counts.astype(np.float64)


def _right_and_wrong(responses: Responses, difficulty: Floats, series_from: float | None) -> Sums:
    if series_from is None:
        series_from = np.inf if responses.n_responses <= QUICK_ANSWERS else SERIES_FROM
    precision = DOUBLE if responses.n_responses <= QUICK_ANSWERS else SINGLE
    shared = responses.shared if np.isfinite(difficulty).all() else None
    left = responses if shared is None else shared.rest
    total = np.zeros((9, len(difficulty)))
    if left is not None:
        total += left.sum(_conditional_sums, difficulty, series_from, precision)
    for one in () if shared is None else shared.sets:
        total[:, one.items] += _sums_of_set(one, difficulty[one.items])
    n, z2, square, v, v2, inverse, p, off, lean = total
    with np.errstate(divide="ignore"):
        one_over = np.where(v > 0, 1 / v, np.nan)[:, None, None]
    r = np.array([lean, n - 2 * p])[:, :, None]
    return np.array([n, z2, square, v, inverse - 4 * n, v - 4 * v2]), r, one_over, off[:, None]


def _sums_of_set(one: SharedSet, difficulty: Floats) -> Floats:
    """What `_conditional_sums` gives for people who share a set of items, from how many of each score were right."""
    right, people = one.right[1:-1], one.people[1:-1][:, None]
    p = np.clip(given_every_score(difficulty[None]).p[0].T, CERTAIN, 1 - CERTAIN)
    v = p * (1 - p)
    square = right * (1 - p) ** 2 + (people - right) * p**2
    every = np.broadcast_to(people, p.shape)
    values = (every, square / v, square, people * v, people * v * v, people / v, people * p, right - people * p)
    return np.array([*values, people * v * (1 - 2 * p)]).sum(axis=1)


def _conditional_sums(block: Block, difficulty: Floats, series_from: float, precision: Precision) -> Floats:
    """Sums over people with a mixed score of 1, z^2, (x - p)^2, v, v^2, 1 / v, p, x - p, v (1 - 2 p), by item."""
    block = answers_with_difficulty(block, difficulty)
    persons = np.flatnonzero(block.informative)
    m = len(difficulty)
    total = np.zeros((9, m))
    if not len(persons):
        return total
    if len(persons) < block.n_persons:
        block = block.take(persons)
    every_p = conditional_probabilities(block, difficulty, series_from=series_from, precision=precision)
    every_right = block.right()
    for start in range(0, block.n_responses, CACHED):
        span = slice(start, start + CACHED)
        items, right = block.items[span], every_right[span]
        p = np.clip(every_p[span], CERTAIN, 1 - CERTAIN)
        v, off = p * (1 - p), right - p
        inverse, square = 1 / v, off * off
        values: list[Any] = [None, square * inverse, square, v, v * v, inverse, p, off, v * (1 - 2 * p)]
        for row, value in zip(total, values, strict=True):
            row += np.bincount(items, weights=value, minlength=m)
    return total
