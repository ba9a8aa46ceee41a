"""Infit and outfit: how far answers are from what the model expects of them, by item and by person.

With P the probability of a right answer, V = P (1 - P) and x the answer,

    outfit = mean of (x - P)^2 / V,         infit = sum (x - P)^2 / sum V;

both are 1 on average when P is right. Their variances follow from those of single answers,

    q_out^2 = sum (1 / V - 4) / n^2,        q_in^2 = sum V (1 - 4 V) / (sum V)^2,

and z = 3 (cbrt(mean square) - 1) / q + q / 3 is about standard normal (Wilson & Hilferty), as in eRm and Winsteps. That
takes a mean square for a chi-square of 2 / q^2 degrees of freedom. One item many logits away makes q as large as one
likes, and a chi-square of next to no degrees of freedom has its median near 0: anybody whose answers are as expected
would be above 2. Beyond q = 2, therefore, the scale stays that of q = 2, and the median moves back to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.packing import CACHED, person_chunks
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.sparse_kernels import fill_scaled
from spectral_irt.tables import Columns
from spectral_irt.total_score import answer_moments

ERRATIC = 2.0  # standardized infit or outfit above which a person answers less predictably than the model says
FARTHEST = 300.0  # logits of a person or an item from 0: two such are still finitely far apart
REACH = 2.0  # of q: half a degree of freedom; beyond, a mean square is a rare surprise or none, nothing like chi-square
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
    """P(X = 1) of every response, in the order of `block.items`, perhaps of some people only; NaN where difficulty or
    ability is."""
    bounds = block.indptr[start : None if stop is None else stop + 1]
    low, high = int(bounds[0]), int(bounds[-1])
    p = np.empty(high - low)
    with np.errstate(over="ignore", invalid="ignore"):
        rows, columns = np.exp(-ability[start:stop]), np.exp(difficulty)
        fill_scaled((bounds - low).astype(np.int32), np.asarray(block.items[low:high]), rows, columns, p)
    p += 1
    return np.reciprocal(p, out=p)


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
    z = (np.cbrt(mean_square) - 1) * 3 / np.minimum(q, REACH) + np.minimum(q, REACH**2 / q) / 3
    return np.where(q > 0, z, np.nan)


def person_mean_squares(responses: Responses, difficulty: Floats, ability: Floats) -> MeanSquares:
    """Infit and outfit of every person at the given abilities; NaN for extreme scores, which cannot misfit."""
    return mean_squares(*responses.gather(_person_sums, difficulty, persons=(ability,)))


def _person_sums(block: Block, theta: Floats, difficulty: Floats) -> tuple[Floats, ...]:
    """n, and sums over the answers of each person of z^2, (x - P)^2, V, V^2 and 1 / V.

    z^2 is exp(b - theta) for a right and exp(theta - b) for a wrong answer, and 1 / V is 2 and both of these, so their
    sums need numbers of the items alone.
    """
    block = answers_with_difficulty(block, difficulty)
    theta = np.where(block.informative & np.isfinite(theta), theta, np.nan)
    hard, able = (np.exp(np.clip(each, -FARTHEST, FARTHEST)) for each in (difficulty, theta))
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
    return np.where(np.isnan(theta), np.nan, block.counts), z2, square, v, v2, inverse


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
    if not responses.thresholds.binary:
        known = np.isfinite(responses.thresholds.mean(difficulty))[item] & np.isfinite(ability)[person]
        cumulated = responses.thresholds.cumulated(np.nan_to_num(difficulty))
        mean, variance = answer_moments(np.where(known, ability[person], 0.0), item, cumulated)
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
        "person": responses.persons[found.person],
        "item": responses.items[found.item],
        "response": found.answer.astype(np.int64),
        "expected": found.expected,
        "residual": found.answer - found.expected,
        "z": found.z,
    }


def _probabilities(block: Block, theta: Floats, difficulty: Floats) -> Floats:
    return probabilities(block, difficulty, theta)
