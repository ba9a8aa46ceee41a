"""Infit and outfit of items and people with ordered answers, conventional and conditional.

With E, V and C the mean, the variance and the fourth central moment of an answer x,

    outfit = mean of (x - E)^2 / V,                   infit = sum (x - E)^2 / sum V,
    q_out^2 = sum (C / V^2) / n^2 - 1 / n,            q_in^2 = sum (C - V^2) / (sum V)^2.

Conventional: moments at the maximum likelihood ability, as in eRm and Winsteps; their mean is below 1. Conditional:
moments given the total score, which contain no ability: their mean is 1. Moments depend on the items answered and the
total score alone, so they are computed once for all people who share these.

The standardized forms of the conditional ones allow for the estimated thresholds of the item, which have used up the
directions sum (1{x >= k} - P_k) = 0, as in `conditional_fit`: with f = (x - E)^2 - V or that over V, d_k = 1{x >= k} -
P_k, r = sum Cov(f, d) and S = sum Cov(d, d'), the sum of f - r' S^-1 d has variance sum Var f - r' S^-1 r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.given_score import categories_given
from spectral_irt.conditional.likelihood import ExactLikelihood
from spectral_irt.conditional.patterns import PatternPart, padded, pattern_parts, threshold_codes
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Rows, Thresholds, answered_items
from spectral_irt.model import above, category_probabilities
from spectral_irt.persons.abilities import Persons
from spectral_irt.persons.residuals import MeanSquares, standardized

LEAST = 1e-12  # of a variance: nothing is more certain
CELLS = 500_000
ROUNDING = 1e-6  # a standard error below this is one of rounding


@dataclass(frozen=True, eq=False)
class AnswerMoments:
    """Mean, variance, third and fourth central moment of every answer of every pattern, by item within a pattern."""

    indptr: Ints
    mean: Floats
    variance: Floats
    third: Floats
    fourth: Floats


def by_item(rows: Rows) -> Rows:
    """The same rows with the items of each in increasing order."""
    person = np.repeat(np.arange(len(rows.counts)), rows.counts)
    order = np.lexsort((rows.items, person))
    return Rows(rows.indptr, rows.items[order], rows.counts, rows.scores, rows.most)


def _moments(p: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    k = np.arange(p.shape[-1], dtype=float)
    mean = p @ k
    away = k - mean[..., None]
    square = away * away
    second = p * square
    return mean, second.sum(axis=-1), (second * away).sum(axis=-1), (second * square).sum(axis=-1)


def moments_at(people: Persons, ability: Floats) -> AnswerMoments:
    """At these abilities, one for each pattern."""
    rows = by_item(people.patterns.rows)
    cumulated = people.steps.cumulated(people.thresholds)
    theta = np.repeat(np.where(np.isfinite(ability), ability, 0.0), rows.counts)
    found = [np.empty(len(theta)) for _ in range(4)]
    size = max(1, CELLS // cumulated.shape[1])
    for start in range(0, len(theta), size):
        part = slice(start, start + size)
        each = _moments(category_probabilities(theta[part], cumulated[rows.items[part]]))
        for out, values in zip(found, each, strict=True):
            out[part] = values
    return AnswerMoments(rows.indptr, *found)


def moments_given_score(people: Persons) -> AnswerMoments:
    """Given the total score; nothing for people at the ends of the scale."""
    rows = by_item(people.patterns.rows)
    steps = people.steps
    cumulated = padded(steps, people.thresholds)
    found = [np.zeros(len(rows.items)) for _ in range(4)]
    parts = people.responses.engine.hold(pattern_parts(rows, np.ones(len(rows.counts), dtype=np.int64), steps))
    for places, counts, *each in parts.map(_part_moments, cumulated):
        inside = np.arange(each[0].shape[1]) < counts[:, None]
        where = (rows.indptr[places][:, None] + np.arange(each[0].shape[1]))[inside]
        for out, values in zip(found, each, strict=True):
            out[where] = values[inside]
    return AnswerMoments(rows.indptr, *found)


def _part_moments(part: PatternPart, cumulated: Floats) -> tuple[Ints, Ints, Floats, Floats, Floats, Floats]:
    return part.which, part.counts, *_moments(categories_given(part, cumulated))


def answers_with_moments(
    block: Block, pattern: Ints, used: Floats, moments: AnswerMoments, steps: Thresholds
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], Ints]:
    """Of every answer of the people used: whose it is, to which item, its category, and where its moments are."""
    indptr, item, category = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    order = np.lexsort((item, person))
    person, item, category = person[order], item[order], category[order]
    where = moments.indptr[pattern[person]] + np.arange(len(person)) - indptr[person]
    kept = used[person] > 0
    return person[kept], item[kept], category[kept], where[kept]


def _terms(
    block: Block, pattern: Ints, used: Floats, moments: AnswerMoments, steps: Thresholds
) -> tuple[NDArray[Any], NDArray[Any], list[Floats]]:
    """Of every answer of the people used: whose it is, to which item, and what it adds to the mean squares."""
    person, item, category, where = answers_with_moments(block, pattern, used, moments, steps)
    v = np.maximum(moments.variance[where], LEAST)
    square = (category - moments.mean[where]) ** 2
    fourth = moments.fourth[where]
    return person, item, [np.ones(len(v)), square / v, square, v, fourth / v**2, fourth - v**2]


def _item_sums(block: Block, pattern: Ints, used: Floats, moments: AnswerMoments, steps: Thresholds) -> Floats:
    _, item, terms = _terms(block, pattern, used, moments, steps)
    return np.array([np.bincount(item, weights=term, minlength=steps.n_items) for term in terms], dtype=np.float64)


def _person_sums(
    block: Block, pattern: Ints, used: Floats, moments: AnswerMoments, steps: Thresholds
) -> tuple[Floats, ...]:
    person, _, terms = _terms(block, pattern, used, moments, steps)
    return tuple(np.bincount(person, weights=term, minlength=block.n_persons).astype(np.float64) for term in terms)


def _mean_squares(n: Floats, z2: Floats, square: Floats, v: Floats, q_out: Floats, q_in: Floats) -> MeanSquares:
    nothing = n == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        outfit, infit = z2 / n, square / v
        out = np.sqrt(np.maximum(q_out / n**2 - 1 / n, 0))
        inside = np.sqrt(np.maximum(q_in, 0)) / v
        columns = (n, infit, standardized(infit, inside), outfit, standardized(outfit, out))
    return MeanSquares(n, *(np.where(nothing, np.nan, values) for values in columns[1:]))


def item_mean_squares(people: Persons, moments: AnswerMoments) -> MeanSquares:
    """Infit and outfit of every item, over the people who are not at the ends of the scale."""
    used = informative(people)
    return _mean_squares(
        *people.responses.entries.sum(_item_sums, moments, people.steps, persons=(people.patterns.of_person, used))
    )


def conditional_item_mean_squares(people: Persons, given: AnswerMoments) -> tuple[MeanSquares, Floats]:
    """Infit and outfit of every item given the total scores, and the standard error of the infit.

    Standardized forms and errors allow for the thresholds of the item, which were estimated.
    """
    steps, rows = people.steps, people.patterns.rows
    found = item_mean_squares(people, given)
    parts = people.responses.engine.hold(pattern_parts(rows, people.patterns.count, steps))
    codes = threshold_codes(steps)
    moments, r, s, expected = parts.sum(_directions, padded(steps, people.thresholds), codes, steps)
    off = ExactLikelihood(people.responses).passed - expected
    n, v, var_in, var_out = moments
    z_in, z_out, infit_se = (np.full(steps.n_items, np.nan) for _ in range(3))
    for i in range(steps.n_items):
        mine = slice(steps.first[i], steps.first[i] + steps.max_score[i])
        k = int(steps.max_score[i])
        if not n[i]:
            continue
        for z, which, variance, size, square in (
            (z_in, 0, var_in[i], v[i], found.infit[i]),
            (z_out, 1, var_out[i], n[i], found.outfit[i]),
        ):
            c = np.linalg.lstsq(s[i, :k, :k], r[which, mine], rcond=1e-10)[0]
            left = max(variance - c @ r[which, mine], 0.0)
            q = np.sqrt(left) / size
            q = q if q > ROUNDING else 0.0
            if not which:
                infit_se[i] = q
            with np.errstate(divide="ignore", invalid="ignore"):
                adjusted = np.array(max(square - c @ off[mine] / size, 0.0))
                z[i] = standardized(adjusted, np.array(q))
    return MeanSquares(found.n, found.infit, z_in, found.outfit, z_out), infit_se


def _directions(
    part: PatternPart, cumulated: Floats, codes: Ints, steps: Thresholds
) -> tuple[Floats, Floats, Floats, Floats]:
    """Per item: n, sum V and the sums of Var f; per threshold r of both kinds; S of each item; and expected passes."""
    p = categories_given(part, cumulated)
    mean, v, _, fourth = _moments(p)
    k = np.arange(p.shape[2], dtype=float)
    there = part.items < steps.n_items
    v = np.maximum(v, LEAST)
    weight = np.where(there, part.people[:, None], 0.0)
    passed = above(p)
    tilted = above(p * (k - mean[..., None]) ** 2) - v[..., None] * passed
    item = part.items.ravel()
    terms = (np.ones_like(v), v, fourth - v**2, fourth / v**2 - 1)
    size = steps.n_items + 1
    sums = np.array([np.bincount(item, weights=(weight * one).ravel(), minlength=size)[:-1] for one in terms])
    code = codes[part.items].ravel()
    of_step = [weight[..., None] * one for one in (tilted, tilted / v[..., None], passed)]
    each = [np.bincount(code, weights=one.ravel(), minlength=steps.n_entries + 1)[:-1] for one in of_step]
    s = np.zeros((size, steps.widest, steps.widest))
    for a in range(steps.widest):
        for b in range(steps.widest):
            both = passed[..., max(a, b)] - passed[..., a] * passed[..., b]
            s[:, a, b] = np.bincount(item, weights=(weight * both).ravel(), minlength=size)
    return sums, np.array(each[:2], dtype=np.float64), s[:-1], each[2].astype(np.float64)


def person_mean_squares(people: Persons, moments: AnswerMoments) -> MeanSquares:
    """Infit and outfit of every person; NaN for those at the ends of the scale."""
    used = informative(people)
    return _mean_squares(
        *people.responses.entries.gather(_person_sums, moments, people.steps, persons=(people.patterns.of_person, used))
    )


def spread_squares(found: MeanSquares, known: NDArray[np.bool_]) -> MeanSquares:
    """Of all items: NaN for those without an estimate."""
    if known.all():
        return found
    columns = []
    for name in ("n", "infit", "infit_z", "outfit", "outfit_z"):
        full = np.full(len(known), 0.0 if name == "n" else np.nan)
        full[known] = getattr(found, name)
        columns.append(full)
    return MeanSquares(*columns)


def informative(people: Persons) -> Floats:
    """1 for people whose total score is neither the lowest nor the highest, on two items at least."""
    return people.patterns.rows.informative[people.patterns.of_person].astype(float)


def cronbach_alpha(responses: Responses) -> float | None:
    """alpha = k / (k - 1) (1 - sum of the items' variances / variance of the total), for people who answered all.

    For right and wrong answers it is KR-20. None for fewer than two items or people, or equal scores.
    """
    m = responses.n_items
    complete = responses.counts == m
    n = int(complete.sum())
    if m < 2 or n < 2:
        return None
    first, second = responses.entries.sum(_category_sums, responses.thresholds, persons=(complete.astype(float),))
    items = float(np.sum(second - first**2 / n)) / (n - 1)
    total = float(np.var(responses.scores[complete], ddof=1))
    return m / (m - 1) * (1 - items / total) if total > 0 else None


def _category_sums(block: Block, used: Floats, steps: Thresholds) -> tuple[Floats, Floats]:
    indptr, item, category = answered_items(block, steps)
    weight = np.repeat(used, np.diff(indptr))
    return (
        np.bincount(item, weights=weight * category, minlength=steps.n_items).astype(np.float64),
        np.bincount(item, weights=weight * category**2, minlength=steps.n_items).astype(np.float64),
    )
