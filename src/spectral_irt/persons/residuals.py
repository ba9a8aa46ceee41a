"""Infit and outfit: how far answers are from what the model expects of them, by item and by person.

With E, V and C the mean, the variance and the fourth central moment of an answer x under the model,

    outfit = mean of (x - E)^2 / V,           infit = sum (x - E)^2 / sum V;

both are 1 on average when the model holds. Their variances follow from those of single answers,

    q_out^2 = sum (C / V^2 - 1) / n^2,        q_in^2 = sum (C - V^2) / (sum V)^2

(right or wrong: C / V^2 = 1 / V - 3), and z = 3 (cbrt(mean square) - 1) / q + q / 3 is about standard normal (Wilson
& Hilferty), as in eRm and Winsteps: a chi-square of 2 / q^2 degrees of freedom. One item many logits away makes q as
large as one likes, and anybody whose answers are as expected would be above 2; so beyond q = 2 the scale stays that of
q = 2, and the median moves back to 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ability import answer_moments
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import CACHED, Floats, Ints, Thresholds, answered_items, person_chunks, rows_of
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.numerics import fill_scaled
from spectral_irt.persons.abilities import Abilities, answers_with_difficulty, checked
from spectral_irt.tables import Columns
from spectral_irt.text import listed

ERRATIC = 2.0  # standardized infit or outfit above which a person answers less predictably than the model says
FARTHEST = 300.0  # logits of a person or an item from 0: two such are still finitely far apart
REACH = 2.0  # of q: half a degree of freedom; beyond, a mean square is a rare surprise or none, nothing like chi-square
LEAST = 1e-12  # of a variance in ordered categories
EACH, MOST = 3, 1_000  # unexpected answers of a person, and of all: what somebody can look at
CERTAIN = 1e-15  # nothing is more certain: V stays above zero, and one such surprise is still a finite number


@dataclass(frozen=True, eq=False)
class MeanSquares:
    """Infit and outfit with their standardized forms, one of each per item or person; NaN where there is nothing."""

    n: Floats
    infit: Floats
    infit_z: Floats
    outfit: Floats
    outfit_z: Floats


def probabilities(block: Block, difficulty: Floats, ability: Floats, start: int = 0, stop: int | None = None) -> Floats:
    """P(X = 1) of every response of these people, in the order of `block.items`; NaN where difficulty or ability is."""
    bounds = block.indptr[start : None if stop is None else stop + 1]
    low, high = int(bounds[0]), int(bounds[-1])
    p = np.empty(high - low)
    with np.errstate(over="ignore", invalid="ignore"):
        rows, columns = np.exp(-ability[start:stop]), np.exp(difficulty)
        fill_scaled((bounds - low).astype(np.int32), np.asarray(block.items[low:high]), rows, columns, p)
    p += 1
    return np.reciprocal(p, out=p)


def mean_squares(n: Floats, z2: Floats, square: Floats, v: Floats, outer: Floats, inner: Floats) -> MeanSquares:
    """Infit and outfit from sums over answers of 1, (x - E)^2 / V, (x - E)^2, V, C / V^2 - 1 and C - V^2."""
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        outfit, infit = z2 / n, square / v
        q_out, q_in = np.sqrt(np.maximum(outer, 0)) / n, np.sqrt(np.maximum(inner, 0)) / v
        return MeanSquares(n, infit, standardized(infit, q_in), outfit, standardized(outfit, q_out))


def standardized(mean_square: Floats, q: Floats) -> Floats:
    """Wilson & Hilferty's normal form; NaN where the mean square cannot vary (all V = 1/4)."""
    z = (np.cbrt(mean_square) - 1) * 3 / np.minimum(q, REACH) + np.minimum(q, REACH**2 / q) / 3
    return np.where(q > 0, z, np.nan)


def person_mean_squares(responses: Responses, thresholds: Floats, ability: Floats) -> MeanSquares:
    """Infit and outfit of every person at the given abilities; NaN for extreme scores, which cannot misfit."""
    beta, layout = checked(responses, thresholds), responses.thresholds
    sums = _sums_of_right_and_wrong if layout.binary else _sums_of_categories
    return mean_squares(*responses.entries.gather(sums, beta, layout, persons=(ability,)))


def _sums_of_categories(block: Block, theta: Floats, beta: Floats, layout: Thresholds) -> tuple[Floats, ...]:
    """What `mean_squares` takes."""
    sums = np.zeros((6, block.n_persons))
    for one in answers_at(block, theta, beta, layout):
        for total, values in zip(sums, one.terms(), strict=True):
            total += np.bincount(one.person, weights=values, minlength=block.n_persons)
    return tuple(np.where(sums[0] > 0, sums, np.nan))


@dataclass(frozen=True, eq=False)
class AnswersAt:
    """Some answers x: positions of person and item, the ability; mean, variance, third and fourth central moment of x
    there; and how likely the category nearest to the mean is."""

    person: Ints
    item: NDArray[np.int32]
    x: Floats
    theta: Floats
    mean: Floats
    variance: Floats
    third: Floats
    fourth: Floats
    likely: Floats

    def terms(self) -> tuple[Floats | None, ...]:
        """What the mean squares add up."""
        v, square = np.maximum(self.variance, LEAST), (self.x - self.mean) ** 2
        return None, square / v, square, v, self.fourth / v**2 - 1, self.fourth - v**2


def answers_at(
    block: Block, theta: Floats, beta: Floats, layout: Thresholds, *, everybody: bool = False
) -> Iterator[AnswersAt]:
    """The answers to items with thresholds of people with an ability, in runs that fit a cache.

    Without `everybody` people with an extreme score or a single answer are left out.
    """
    block = answers_with_difficulty(block, beta)
    rows, cumulated = rows_of(block, layout), layout.cumulated(np.nan_to_num(beta))
    _, items, category = answered_items(block, layout)
    used = np.isfinite(theta) & (everybody | rows.informative)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    kept = np.arange(len(person)) if used.all() else np.flatnonzero(used[person])
    size = CACHED // layout.widest
    for start in range(0, len(kept), size):
        some = kept[start : start + size]
        own = theta[person[some]]
        moments = answer_moments(own, items[some], cumulated)
        yield AnswersAt(person[some], items[some], category[some].astype(np.float64), own, *moments)


def _sums_of_right_and_wrong(block: Block, theta: Floats, difficulty: Floats, layout: Thresholds) -> tuple[Floats, ...]:
    """z^2 is exp(b - theta) for a right and exp(theta - b) for a wrong answer, and 1 / V is 2 and both of these, so
    their sums need numbers of the items alone."""
    block = answers_with_difficulty(block, difficulty)
    theta = np.where(block.informative & np.isfinite(theta), theta, np.nan)
    able, hard = np.exp(np.clip(theta, -FARTHEST, FARTHEST)), np.exp(np.clip(difficulty, -FARTHEST, FARTHEST))
    hard = np.where(np.isfinite(hard), hard, 1.0)
    ease = 1 / hard
    sums = np.full((3, block.n_persons), np.nan)
    every_right = block.right()
    for start, stop in person_chunks(block.indptr, CACHED):
        people = start + np.flatnonzero(np.diff(block.indptr[start : stop + 1]))
        if not len(people):
            continue
        low = int(block.indptr[start])
        p = probabilities(block, difficulty, theta, start, stop)
        v = p * (1 - p)
        p -= every_right[low : low + len(p)]
        p *= p
        for row, values in zip(sums, (p, v, np.multiply(v, v)), strict=True):
            row[people] = np.add.reduceat(values, block.indptr[people] - low)
    square, v, v2 = sums
    of_halves = block.pattern(len(difficulty)) @ np.stack([hard, ease], axis=1)
    right, wrong = of_halves[0::2], of_halves[1::2]
    z2 = right[:, 0] / able + wrong[:, 1] * able
    inverse = 2 * block.counts + (right[:, 0] + wrong[:, 0]) / able + (right[:, 1] + wrong[:, 1]) * able
    n = np.where(np.isnan(theta), np.nan, block.counts)
    return n, z2, square, v, inverse - 4 * block.counts, v - 4 * v2


def residuals(
    responses: Responses, thresholds: Floats, ability: Floats
) -> tuple[Ints, Ints, NDArray[Any], Floats, Floats]:
    """Of every answer x the positions of person and item, x, what is expected, and z = (x - E) / sqrt(V); for few."""
    person, item, x = responses.answers()
    layout = responses.thresholds
    known = np.isfinite(layout.mean(thresholds))[item] & np.isfinite(ability)[person]
    cumulated = layout.cumulated(np.nan_to_num(thresholds))
    mean, variance, *_ = answer_moments(np.where(known, ability[person], 0.0), item, cumulated)
    mean, variance = np.where(known, mean, np.nan), np.maximum(variance, CERTAIN)
    with np.errstate(invalid="ignore", divide="ignore"):
        return person, item.astype(np.int64), x, mean, (x - mean) / np.sqrt(variance)


def residual_columns(responses: Responses, thresholds: Floats, ability: Floats) -> Columns:
    """`person, item, response, expected, residual, z` of every answer."""
    person, item, x, expected, z = residuals(responses, thresholds, ability)
    columns = {"person": responses.persons[person], "item": responses.items[item], "response": x.astype(np.int64)}
    return columns | {"expected": expected, "residual": x - expected, "z": z}


def people_at(responses: Responses, people: Sequence[Any]) -> Ints:
    """Positions of these people, by label."""
    place = positions(people, responses.persons)
    unknown = [label for label, k in zip(people, place.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(f"unknown people {listed(unknown)}; the responses have {listed(responses.persons)}.")
    return place


def unexpected_columns(
    responses: Responses,
    difficulty: Floats,
    found: Abilities,
    fits: MeanSquares,
    *,
    people: Ints | None = None,
    per_person: int = EACH,
    limit: int = MOST,
) -> Columns:
    """`person, misfit_z, item, response, expected, z, ability, difficulty`: the most unexpected answers of each person.

    Of the people at these positions, by default of those whose infit or outfit, standardized (`misfit_z`), is above 2,
    the worst first. Only answers of which the model expects the opposite count (`z` beyond 1), `per_person` of each and
    `limit` of all.
    """
    worst = np.fmax(fits.infit_z, fits.outfit_z)
    if people is None:
        people = np.flatnonzero(worst > ERRATIC)
        people = people[np.argsort(-worst[people], kind="stable")][:limit]
    where = responses.thresholds.mean(difficulty) if not responses.thresholds.binary else difficulty
    some = np.unique(people)
    ability = np.where(np.isfinite(found.ability[some]), found.ability[some], np.nan)
    person, item, x, expected, z = residuals(responses.take_persons(some), difficulty, ability)
    turn = np.zeros(len(some), dtype=np.int64)
    turn[np.searchsorted(some, people)] = np.arange(len(people))
    size = np.abs(np.nan_to_num(z))
    order = np.lexsort((-size, turn[person]))
    order = order[size[order] > 1]
    mine = turn[person[order]]
    chosen = order[np.arange(len(order)) - np.searchsorted(mine, mine) < per_person][:limit]
    who, item = some[person[chosen]], item[chosen]
    return {
        "person": responses.persons[who],
        "misfit_z": worst[who],
        "item": responses.items[item],
        "response": x[chosen].astype(np.int64),
        "expected": expected[chosen],
        "z": z[chosen],
        "ability": found.ability[who],
        "difficulty": where[item],
    }
