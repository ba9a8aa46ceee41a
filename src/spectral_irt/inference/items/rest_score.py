"""Item-restscore association: does an item go along with the rest of the test as the model says?

Goodman and Kruskal's gamma between the answer to an item and the score on the others: of all pairs of people who differ
in both, the share in which the one who got the item right also has the higher rest score, minus the share in which the
other has (Kreiner 2011). Where people saw different items, the rest measure is PROX, the closed-form ability on the
other items. `Analysis.item_restscore` shows it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import conditional_probabilities
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Mask, Thresholds
from spectral_irt.inference.items.rest_ability import rest_scores
from spectral_irt.inference.results import two_sided
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.tables import Columns

MOST_RESPONSES = 10_000_000  # all of an item's answers are needed at once, some 40 bytes each: beyond, a sample
DIGITS = 9  # rest measures that agree to so many decimals are ties


class RestMeasures(NamedTuple):
    """Of every answer its item, whether it is right, P(right | score), and the measure that the person would have on
    the other items with this score and the item right, and wrong: one point less, and the same."""

    item: NDArray[np.int32]
    right: Mask
    p: Floats
    if_right: Floats
    if_wrong: Floats

    def take(self, rows: NDArray[np.intp]) -> RestMeasures:
        arrays: tuple[NDArray[Any], ...] = self
        return RestMeasures(*(values[rows] for values in arrays))


class Association(NamedTuple):
    """Gamma of an item, what is expected of it given the scores, and the standard error of the difference."""

    gamma: float
    expected: float
    se: float


class Gamma(NamedTuple):
    """Gamma of a table with two rows, right and wrong by level of the rest, and its derivatives by every cell."""

    gamma: float
    by_right: Floats
    by_wrong: Floats


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
    answers = RestMeasures(*responses.gather(_rest_measures, calibration.difficulty, responses.thresholds))
    order = np.argsort(answers.item, kind="stable")
    limits = np.searchsorted(answers.item[order], np.arange(len(calibration.labels) + 1))
    associations = [_association(answers.take(order[start:stop])) for start, stop in pairwise(limits)]
    gamma, expected, se = np.array(associations).reshape(-1, 3).T
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (gamma - expected) / se
    z[~np.isfinite(z)] = np.nan
    return {
        "item": calibration.labels,
        "n": np.diff(limits),
        "gamma": gamma,
        "gamma_expected": expected,
        "se": se,
        "z": z,
        "p": two_sided(z),
    }


def _association(answers: RestMeasures) -> Association:
    """Of the answers to one item; NaN where there is none."""
    n = len(answers.p)
    if n < 2:
        return Association(np.nan, np.nan, np.nan)
    p = answers.p
    levels, level = np.unique(np.concatenate([answers.if_right, answers.if_wrong]), return_inverse=True)
    size = len(levels)
    if_right = level[:n]
    if_wrong = level[n:]
    n_right = np.bincount(if_right[answers.right], minlength=size)
    n_wrong = np.bincount(if_wrong[~answers.right], minlength=size)
    model = gamma_with_derivatives(
        np.bincount(if_right, p, minlength=size), np.bincount(if_wrong, 1 - p, minlength=size)
    )
    v = p * (1 - p)
    h = model.by_right[if_right] - model.by_wrong[if_wrong]
    se = np.nan
    if v.sum() > 0:
        se = float(np.sqrt(max(v @ h**2 - (v @ h) ** 2 / v.sum(), 0)))
    return Association(gamma_with_derivatives(n_right, n_wrong).gamma, model.gamma, se)


def _rest_measures(block: Block, difficulty: Floats, layout: Thresholds) -> RestMeasures:
    rest_of_person = rest_scores(answers_with_difficulty(block, difficulty), difficulty, layout)
    score = rest_of_person.score + rest_of_person.x
    return RestMeasures(
        item=rest_of_person.item,
        right=rest_of_person.x > 0,
        p=conditional_probabilities(rest_of_person.block, difficulty),
        if_right=np.round(rest_of_person.ability_at(np.clip(score - 1, 0, rest_of_person.max_score)), DIGITS),
        if_wrong=np.round(rest_of_person.ability_at(np.clip(score, 0, rest_of_person.max_score)), DIGITS),
    )


def gamma_with_derivatives(right: NDArray[np.number], wrong: NDArray[np.number]) -> Gamma:
    """From how many are right and wrong at each level, rising.

    >>> gamma_with_derivatives(np.array([0.0, 1.0, 3.0]), np.array([3.0, 1.0, 0.0])).gamma
    1.0
    """
    wrong_below = np.cumsum(wrong) - wrong
    right_below = np.cumsum(right) - right
    wrong_above = wrong.sum() - wrong_below - wrong
    right_above = right.sum() - right_below - right
    agree = float(right @ wrong_below)
    differ = float(right @ wrong_above)
    pairs = agree + differ
    if pairs <= 0:
        return Gamma(np.nan, np.zeros(len(right)), np.zeros(len(right)))
    by_right = 2 * (differ * wrong_below - agree * wrong_above) / pairs**2
    by_wrong = 2 * (differ * right_above - agree * right_below) / pairs**2
    return Gamma((agree - differ) / pairs, by_right, by_wrong)
