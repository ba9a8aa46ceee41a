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
from spectral_irt.persons.abilities import Abilities, answers_with_difficulty, thresholds_of
from spectral_irt.tables import Columns
from spectral_irt.text import listed

ERRATIC = 2.0  # standardized infit or outfit above which a person answers less predictably than the model says
FARTHEST = 300.0  # logits of a person or an item from 0: two such are still finitely far apart
LARGEST_Q = 2.0  # half a degree of freedom; beyond, a mean square is a rare surprise or none, nothing like chi-square
LEAST = 1e-12  # of a response in ordered categories, where mean squares divide by it
CERTAIN = 1e-15  # variance of a single residual: above zero, so that one such surprise is still a finite number
UNEXPECTED_OF_PERSON = 3  # unexpected responses that are listed: what somebody can look at
UNEXPECTED_OF_ALL = 1_000


@dataclass(frozen=True, eq=False)
class MeanSquares:
    """Infit and outfit with their standardized forms, one of each per item or person; NaN where there is nothing."""

    n: Floats
    infit: Floats
    infit_z: Floats
    outfit: Floats
    outfit_z: Floats

    def take(self, chosen: NDArray[Any]) -> MeanSquares:
        """Of some of the items or people."""
        return MeanSquares(*(values[chosen] for values in vars(self).values()))


def probabilities(block: Block, difficulty: Floats, ability: Floats, start: int = 0, stop: int | None = None) -> Floats:
    """P(X = 1) of every response of these people, in the order of `block.items`; NaN where difficulty or ability is."""
    if stop is None:
        stop = block.n_persons
    bounds = block.indptr[start : stop + 1]
    low = int(bounds[0])
    high = int(bounds[-1])
    items = np.asarray(block.items[low:high])
    p = np.empty(high - low)
    with np.errstate(over="ignore", invalid="ignore"):
        fill_scaled((bounds - low).astype(np.int32), items, np.exp(-ability[start:stop]), np.exp(difficulty), p)
    p += 1
    return np.reciprocal(p, out=p)


def mean_squares(n: Floats, z2: Floats, square: Floats, v: Floats, outer: Floats, inner: Floats) -> MeanSquares:
    """Infit and outfit from sums over answers of 1, (x - E)^2 / V, (x - E)^2, V, C / V^2 - 1 and C - V^2."""
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        outfit = z2 / n
        infit = square / v
        q_out = np.sqrt(np.maximum(outer, 0)) / n
        q_in = np.sqrt(np.maximum(inner, 0)) / v
        return MeanSquares(n, infit, z_of_mean_square(infit, q_in), outfit, z_of_mean_square(outfit, q_out))


def z_of_mean_square(mean_square: Floats, q: Floats) -> Floats:
    """Wilson & Hilferty's normal form; NaN where the mean square cannot vary (all V = 1/4)."""
    z = (np.cbrt(mean_square) - 1) * 3 / np.minimum(q, LARGEST_Q) + np.minimum(q, LARGEST_Q**2 / q) / 3
    return np.where(q > 0, z, np.nan)


def person_mean_squares(responses: Responses, thresholds: Floats, ability: Floats) -> MeanSquares:
    """Infit and outfit of every person at the given abilities; NaN for extreme scores, which cannot misfit."""
    beta = thresholds_of(responses, thresholds)
    layout = responses.thresholds
    sums = _sums_of_right_and_wrong if layout.binary else _sums_of_categories
    return mean_squares(*responses.entries.gather(sums, beta, layout, persons=(ability,)))


def _sums_of_categories(block: Block, theta: Floats, beta: Floats, layout: Thresholds) -> tuple[Floats, ...]:
    """What `mean_squares` takes."""
    sums = np.zeros((6, block.n_persons))
    for run in answers_at(block, theta, beta, layout):
        for total, values in zip(sums, run.terms(), strict=True):
            total += np.bincount(run.person, weights=values, minlength=block.n_persons)
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
        v = np.maximum(self.variance, LEAST)
        square = (self.x - self.mean) ** 2
        return None, square / v, square, v, self.fourth / v**2 - 1, self.fourth - v**2


def answers_at(
    block: Block, theta: Floats, beta: Floats, layout: Thresholds, *, everybody: bool = False
) -> Iterator[AnswersAt]:
    """The answers to items with thresholds of people with an ability, in runs that fit a cache.

    Without `everybody` people with an extreme score or a single answer are left out.
    """
    block = answers_with_difficulty(block, beta)
    rows = rows_of(block, layout)
    cumulated = layout.cumulated(np.nan_to_num(beta))
    _, items, category = answered_items(block, layout)
    takes_part = np.isfinite(theta) & (everybody | rows.informative)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    answers = np.arange(len(person)) if takes_part.all() else np.flatnonzero(takes_part[person])
    size = CACHED // layout.widest
    for start in range(0, len(answers), size):
        run = answers[start : start + size]
        theta_of_answer = theta[person[run]]
        moments = answer_moments(theta_of_answer, items[run], cumulated)
        yield AnswersAt(person[run], items[run], category[run].astype(np.float64), theta_of_answer, *moments)


def _sums_of_right_and_wrong(block: Block, theta: Floats, difficulty: Floats, layout: Thresholds) -> tuple[Floats, ...]:
    """z^2 is exp(b - theta) for a right and exp(theta - b) for a wrong answer, and 1 / V is 2 and both of these, so
    their sums need numbers of the items alone."""
    block = answers_with_difficulty(block, difficulty)
    theta = np.where(block.informative & np.isfinite(theta), theta, np.nan)
    exp_theta = np.exp(np.clip(theta, -FARTHEST, FARTHEST))
    exp_b = np.exp(np.clip(difficulty, -FARTHEST, FARTHEST))
    exp_b = np.where(np.isfinite(exp_b), exp_b, 1.0)
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
    # Of each person's right responses, then of the wrong ones: sums of exp(b) and of exp(-b).
    halves = block.pattern(len(difficulty)) @ np.stack([exp_b, 1 / exp_b], axis=1)
    right_b, right_inverse_b = halves[0::2].T
    wrong_b, wrong_inverse_b = halves[1::2].T
    z2 = right_b / exp_theta + wrong_inverse_b * exp_theta
    inverse = 2 * block.counts + (right_b + wrong_b) / exp_theta + (right_inverse_b + wrong_inverse_b) * exp_theta
    n = np.where(np.isnan(theta), np.nan, block.counts)
    return n, z2, square, v, inverse - 4 * block.counts, v - 4 * v2


def residuals(
    responses: Responses, thresholds: Floats, ability: Floats
) -> tuple[Ints, Ints, NDArray[Any], Floats, Floats]:
    """Of every answer x the positions of person and item, x, what is expected, and z = (x - E) / sqrt(V); for few."""
    person, item, x = responses.answers()
    layout = responses.thresholds
    has_both = np.isfinite(layout.mean(thresholds))[item] & np.isfinite(ability)[person]
    cumulated = layout.cumulated(np.nan_to_num(thresholds))
    mean, variance, *_ = answer_moments(np.where(has_both, ability[person], 0.0), item, cumulated)
    mean = np.where(has_both, mean, np.nan)
    variance = np.maximum(variance, CERTAIN)
    with np.errstate(invalid="ignore", divide="ignore"):
        return person, item.astype(np.int64), x, mean, (x - mean) / np.sqrt(variance)


def residual_columns(responses: Responses, thresholds: Floats, ability: Floats) -> Columns:
    """`person, item, response, expected, residual, z` of every answer."""
    person, item, x, expected, z = residuals(responses, thresholds, ability)
    return {
        "person": responses.persons[person],
        "item": responses.items[item],
        "response": x.astype(np.int64),
        "expected": expected,
        "residual": x - expected,
        "z": z,
    }


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
    estimates: Abilities,
    fits: MeanSquares,
    *,
    people: Ints | None = None,
    per_person: int = UNEXPECTED_OF_PERSON,
    limit: int = UNEXPECTED_OF_ALL,
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
    location = difficulty
    if not responses.thresholds.binary:
        location = responses.thresholds.mean(difficulty)
    sorted_people = np.unique(people)
    ability = estimates.ability[sorted_people]
    ability = np.where(np.isfinite(ability), ability, np.nan)
    person, item, x, expected, z = residuals(responses.take_persons(sorted_people), difficulty, ability)
    # In the order in which people were asked for, the most unexpected response of each first.
    turn = np.zeros(len(sorted_people), dtype=np.int64)
    turn[np.searchsorted(sorted_people, people)] = np.arange(len(people))
    size = np.abs(np.nan_to_num(z))
    order = np.lexsort((-size, turn[person]))
    order = order[size[order] > 1]
    turn_of_response = turn[person[order]]
    rank_within_person = np.arange(len(order)) - np.searchsorted(turn_of_response, turn_of_response)
    chosen = order[rank_within_person < per_person][:limit]
    chosen_people = sorted_people[person[chosen]]
    chosen_items = item[chosen]
    return {
        "person": responses.persons[chosen_people],
        "misfit_z": worst[chosen_people],
        "item": responses.items[chosen_items],
        "response": x[chosen].astype(np.int64),
        "expected": expected[chosen],
        "z": z[chosen],
        "ability": estimates.ability[chosen_people],
        "difficulty": location[chosen_items],
    }
