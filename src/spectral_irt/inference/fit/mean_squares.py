"""Does each item behave as the model says? Sums over people, item by item.

Two sets of mean squares. The **conventional** ones compare answers with P(X = 1) at the estimated ability, as Winsteps
and eRm do; the ability has already adapted to the answers, so their mean is below 1, the more so the shorter the test.
The **conditional** ones compare answers with P(X = 1 | score), which contains no ability at all: their mean is 1 and
their standardized form keeps its level (Müller 2020): see `conditional_fit`. Decide by these; the others, here, are for
comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.packing import person_chunks
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.persons.residuals import (
    FARTHEST,
    MeanSquares,
    mean_squares,
    probabilities,
)

CACHED = 32_768  # answers whose dozen numbers each stay in a core's second-level cache
SIZES = 17  # sums that `_item_sums` makes for every item

WITH_FIT = ("ok", "anchored")  # what an item's status must be for its fit to mean anything


@dataclass(frozen=True, eq=False)
class ItemStatistics:
    """What `item_statistics` found, one number an item; NaN for items that nobody with a mixed score answered.

    Attributes
    ----------
    mean_squares : MeanSquares
        Conventional infit and outfit.
    point_measure, point_measure_expected : float arrays
        Correlation of the answers with the abilities, and what the model expects of it.
    exact_match, exact_match_expected : float arrays
        Percentage of answers that are the likelier ones, and what the model expects of it.
    displacement : float array
        What to add to the difficulty so that as many answers are right as the abilities let expect, roughly.
    discrimination : float array
        The slope of the item, one Newton step from the model's 1: 1 + sum (x - P) (theta - b) / sum V (theta - b)^2, as
        in Winsteps. Above 1 it tells people apart more sharply than the items together do. In a short test all of them
        are somewhat above 1 (1.09 on average with 8 items, 1.02 with 40), for abilities have adapted to the answers.
    """

    mean_squares: MeanSquares
    point_measure: Floats
    point_measure_expected: Floats
    exact_match: Floats
    exact_match_expected: Floats
    displacement: Floats
    discrimination: Floats


def item_statistics(responses: Responses, difficulty: Floats, ability: Floats) -> ItemStatistics:
    """Conventional fit statistics of every item at given difficulties and abilities.

    People with everything right or everything wrong are left out, as in eRm and Winsteps: whatever they do fits.

    Parameters
    ----------
    responses : Responses
        Item codes are positions in `difficulty`.
    difficulty : float array
        Answers to items without a finite one are left out.
    ability : float array, one per person
        Maximum likelihood, to compare with eRm.

    References
    ----------
    Wright & Masters (1982), Rating Scale Analysis, ch. 5.
    """
    known = ability[np.isfinite(ability)]
    centre = float(known.mean()) if len(known) else 0.0  # keeps digits in the correlations
    sums = responses.sum(_item_sums, difficulty, centre, persons=(ability,))
    n, *terms, x, p, p2, theta, theta2, x_theta, p_theta, match, likelier, v_theta, v_theta2 = sums
    v = terms[2]
    off = difficulty - centre  # of an item from where abilities are counted from
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(n * theta2 - theta**2)
        point = (n * x_theta - x * theta) / (np.sqrt(n * x - x**2) * spread)
        expected = (n * p_theta - p * theta) / (np.sqrt(n * (p2 + v) - p**2) * spread)
        return ItemStatistics(
            mean_squares(n, *terms),
            np.where(np.isfinite(point), point, np.nan),
            np.where(np.isfinite(expected), expected, np.nan),
            100 * match / n,
            100 * likelier / n,
            (p - x) / v,
            1 + (x_theta - p_theta - off * (x - p)) / (v_theta2 - 2 * off * v_theta + off**2 * v),
        )


def _item_sums(block: Block, ability: Floats, difficulty: Floats, centre: float) -> Floats:
    """Sums over people with a mixed score: a row for each statistic, a column for each item.

    What is a number of the person times one of the item is added up by two sparse products: counts, sums of abilities,
    and with z^2 = exp(b - theta) for a right and exp(theta - b) for a wrong answer the outfits.
    """
    block = answers_with_difficulty(block, difficulty)
    if not block.informative.all():
        persons = np.flatnonzero(block.informative)
        block, ability = block.take(persons), ability[persons]
    m = len(difficulty)
    if not block.n_persons:
        return np.zeros((SIZES, m))
    theta = ability - centre
    ease = np.exp(np.clip(np.where(np.isfinite(difficulty), centre - difficulty, 0.0), -FARTHEST, FARTHEST))
    able = np.exp(np.clip(theta, -FARTHEST, FARTHEST))
    of_person = np.stack([np.ones(len(theta)), theta, theta**2, 1 / able, able], axis=1)
    right, wrong = (half.T @ of_person for half in block.halves(m))
    n, sum_theta, sum_theta2, inverse, odds = (right + wrong).T
    z2 = right[:, 3] / ease + wrong[:, 4] * ease
    one_over_v = 2 * n + inverse / ease + odds * ease
    p, v, square, v2, p_theta, *more = _by_answers(block, ability, difficulty, theta)
    rows = [n, z2, square, v, v2, one_over_v, right[:, 0], p, p - v, sum_theta, sum_theta2, right[:, 1], p_theta]
    return np.array([*rows, *more])


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
