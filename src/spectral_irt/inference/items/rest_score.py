"""Item-restscore association: does an item go along with the rest of the test as the model says?

Goodman and Kruskal's gamma between the answer to an item and the score on the others: of all pairs of people who differ
in both, the share in which the one who got the item right also has the higher rest score, minus the share in which the
other has. Where people saw different items, the rest measure is PROX, the closed-form ability on the other items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import conditional_probabilities
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.inference.items.classical import rest_of
from spectral_irt.inference.results import two_sided
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.tables import Columns

MOST_RESPONSES = 10_000_000  # all of an item's answers are needed at once, some 40 bytes each: beyond, a sample
DIGITS = 9  # rest measures that agree to so many decimals are ties


def restscore_columns(calibration: Calibration, responses: Responses, seed: int = 0) -> Columns:
    """`item, n, gamma, gamma_expected, se, z, p`; of more than ten million answers, of a sample of people.

    Expected: each person answers right with P(X = 1 | score), and then has one less on the rest than by a wrong answer.
    `se` is that of the difference given the scores, sqrt(sum V h^2 - (sum V h)^2 / sum V) with V = P (1 - P) and h what
    one right answer instead of a wrong one does to gamma; the second term is taken up by the estimated difficulty.
    """
    responses.right_and_wrong_only()
    if responses.n_responses > MOST_RESPONSES:
        share = MOST_RESPONSES / responses.n_responses
        responses, _ = responses.sample(int(share * responses.n_persons), generator(seed))
    difficulty, m = calibration.difficulty, len(calibration.labels)
    gamma, expected, se = (np.full(m, np.nan) for _ in range(3))
    items, right, p, if_right, if_wrong = responses.gather(_positions, difficulty, responses.thresholds)
    order = np.argsort(items, kind="stable")
    limits = np.searchsorted(items[order], np.arange(m + 1))
    for item in range(m):
        rows = order[limits[item] : limits[item + 1]]
        if len(rows) < 2:
            continue
        x = right[rows]
        levels, where = np.unique(np.concatenate([if_right[rows], if_wrong[rows]]), return_inverse=True)
        one, zero, size = where[: len(rows)], where[len(rows) :], len(levels)
        gamma[item] = gamma_with_slopes(np.bincount(one[x], minlength=size), np.bincount(zero[~x], minlength=size))[0]
        model = np.bincount(one, p[rows], minlength=size), np.bincount(zero, 1 - p[rows], minlength=size)
        expected[item], by_one, by_zero = gamma_with_slopes(*model)
        v, h = p[rows] * (1 - p[rows]), by_one[one] - by_zero[zero]
        if v.sum() > 0:
            se[item] = np.sqrt(max(v @ h**2 - (v @ h) ** 2 / v.sum(), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (gamma - expected) / se
    z[~np.isfinite(z)] = np.nan
    columns: Columns = {"item": calibration.labels, "n": np.diff(limits), "gamma": gamma, "gamma_expected": expected}
    return columns | {"se": se, "z": z, "p": two_sided(z)}


def _positions(block: Block, difficulty: Floats, layout: Thresholds) -> tuple[NDArray[Any], ...]:
    """Of every answer: its item, whether it is right, P(right | score), and the rest measure if right and if wrong."""
    rest = rest_of(answers_with_difficulty(block, difficulty), difficulty, layout)
    score = rest.points + rest.x
    measures = [np.round(rest.ability(np.clip(score - less, 0, rest.most)), DIGITS) for less in (1, 0)]
    return rest.item, rest.x > 0, conditional_probabilities(rest.block, difficulty), measures[0], measures[1]


def gamma_with_slopes(ones: NDArray[Any], zeros: NDArray[Any]) -> tuple[float, Floats, Floats]:
    """Gamma of a table with two rows, and its derivatives by every cell: how many are right and wrong at each level.

    >>> gamma_with_slopes(np.array([0.0, 1.0, 3.0]), np.array([3.0, 1.0, 0.0]))[0]
    1.0
    """
    zeros_below, ones_below = np.cumsum(zeros) - zeros, np.cumsum(ones) - ones
    zeros_above, ones_above = zeros.sum() - zeros_below - zeros, ones.sum() - ones_below - ones
    agree, differ = float(ones @ zeros_below), float(ones @ zeros_above)
    pairs = agree + differ
    if pairs <= 0:
        return np.nan, np.zeros(len(ones)), np.zeros(len(ones))
    by_one = 2 * (differ * zeros_below - agree * zeros_above) / pairs**2
    by_zero = 2 * (differ * ones_above - agree * ones_below) / pairs**2
    return (agree - differ) / pairs, by_one, by_zero
