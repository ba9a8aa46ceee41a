"""Infit and outfit: how far answers are from what the model expects of them, by item and by person.

With P the probability of a right answer, V = P (1 - P) and x the answer,

    outfit = mean of (x - P)^2 / V,         infit = sum (x - P)^2 / sum V;

both are 1 on average when P is right. Their variances follow from those of single answers,

    q_out^2 = sum (1 / V - 4) / n^2,        q_in^2 = sum V (1 - 4 V) / (sum V)^2,

and z = 3 (cbrt(mean square) - 1) / q + q / 3 is about standard normal (Wilson & Hilferty), as in eRm and Winsteps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.ordered_ability import answer_moments
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats, Ints, fill_scaled
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.tables import Columns

ERRATIC = 2.0  # standardized infit or outfit above which a person answers less predictably than the model says
CERTAIN = 1e-15  # nothing is more certain: V stays above zero, and one such surprise is still a finite number


@dataclass(frozen=True, eq=False)
class MeanSquares:
    """Infit and outfit with their standardized forms, one of each per item or person; NaN where there is nothing."""

    n: Floats
    infit: Floats
    infit_z: Floats
    outfit: Floats
    outfit_z: Floats


# What each answer adds to the mean squares, in this order: z^2, (x - P)^2, V, V^2, 1 / V.
Terms = tuple[Floats, Floats, Floats, Floats, Floats]


def probabilities(block: Block, difficulty: Floats, ability: Floats) -> Floats:
    """P(X = 1) of every response, in the order of `block.items`; NaN where difficulty or ability is."""
    p = np.empty(block.n_responses)
    with np.errstate(over="ignore", invalid="ignore"):
        fill_scaled(block.indptr.astype(np.int32), np.asarray(block.items), np.exp(-ability), np.exp(difficulty), p)
    p += 1
    return np.reciprocal(p, out=p)


def residual_terms(right: Floats, p: Floats) -> Terms:
    """z^2, (x - P)^2, V, V^2 and 1 / V of every response."""
    p = np.clip(p, CERTAIN, 1 - CERTAIN)
    v = p * (1 - p)
    square = (right - p) ** 2
    inverse = 1 / v
    return square * inverse, square, v, v * v, inverse


def mean_squares(n: Floats, z2: Floats, square: Floats, v: Floats, v2: Floats, inverse: Floats) -> MeanSquares:
    """Infit and outfit from sums over the answers of an item or of a person."""
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        outfit, infit = z2 / n, square / v
        q_out = np.sqrt(np.maximum(inverse - 4 * n, 0)) / n
        q_in = np.sqrt(np.maximum(v - 4 * v2, 0)) / v
        return MeanSquares(n, infit, standardized(infit, q_in), outfit, standardized(outfit, q_out))


def standardized(mean_square: Floats, q: Floats) -> Floats:
    """Wilson & Hilferty's normal form; NaN where the mean square cannot vary (all V = 1/4)."""
    z = (np.cbrt(mean_square) - 1) * 3 / q + q / 3
    return np.where(q > 0, z, np.nan)


def person_mean_squares(responses: Responses, difficulty: Floats, ability: Floats) -> MeanSquares:
    """Infit and outfit of every person at the given abilities; NaN for extreme scores, which cannot misfit."""
    return mean_squares(*responses.gather(_person_sums, difficulty, persons=(ability,)))


def _person_sums(block: Block, theta: Floats, difficulty: Floats) -> tuple[Floats, ...]:
    block = answers_with_difficulty(block, difficulty)
    theta = np.where(block.informative, theta, np.nan)
    users = np.flatnonzero(block.counts)
    sums = [np.full(block.n_users, np.nan) for _ in range(5)]
    if len(users):
        values = residual_terms(block.right().astype(np.float64), probabilities(block, difficulty, theta))
        for total, value in zip(sums, values, strict=True):
            total[users] = np.add.reduceat(value, block.indptr[users])
    return (np.where(np.isnan(theta), np.nan, block.counts), *sums)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Every answer x: positions of person and item, x (right is 1), what is expected, and z = (x - E) / sqrt(V)."""

    person: Ints
    item: Ints
    answer: NDArray[Any]
    expected: Floats
    z: Floats


def residuals(responses: Responses, difficulty: Floats, ability: Floats) -> Residuals:
    """Every answer beside what is expected of it, NaN where difficulty or ability is; for few people.

    Of ordered answers `difficulty` has the thresholds.
    """
    person, item, right = responses.answers()
    if isinstance(responses, OrderedResponses):
        known = np.isfinite(responses.steps.mean(difficulty))[item] & np.isfinite(ability)[person]
        cumulated = responses.steps.cumulated(np.nan_to_num(difficulty))
        mean, variance, _ = answer_moments(np.where(known, ability[person], 0.0), item, cumulated)
        mean = np.where(known, mean, np.nan)
        z = (right - mean) / np.sqrt(np.maximum(variance, CERTAIN))
        return Residuals(person, item.astype(np.int64), right, mean, z)
    p = responses.gather(_probabilities, difficulty, persons=(ability,))
    with np.errstate(invalid="ignore", divide="ignore"):
        return Residuals(person, item.astype(np.int64), right, p, (right - p) / np.sqrt(p * (1 - p)))


def residual_columns(responses: Responses, difficulty: Floats, ability: Floats) -> Columns:
    """Every answer: `person, item, response, expected, residual, z`."""
    found = residuals(responses, difficulty, ability)
    return {
        "person": responses.users[found.person],
        "item": responses.items[found.item],
        "response": found.answer.astype(np.int64),
        "expected": found.expected,
        "residual": found.answer - found.expected,
        "z": found.z,
    }


def _probabilities(block: Block, theta: Floats, difficulty: Floats) -> Floats:
    return probabilities(block, difficulty, theta)
