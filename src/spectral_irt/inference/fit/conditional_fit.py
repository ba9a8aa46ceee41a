"""Item fit without abilities: residuals from P(X = 1 | score).

Given the score a person's answers depend on the difficulties alone, and answers of different people are independent,
with variance V = P (1 - P). So infit and outfit have mean 1 in tests of any length, where the conventional ones fall
short because abilities were estimated from the same answers.

Their spread needs one more thought. With x the answers to one item,

    infit - 1 = sum (x - P) (1 - 2 P) / sum V,       outfit - 1 = sum (x - P) (1 - 2 P) / V / n,

and the estimated difficulty of that item has used up the direction sum (x - P) = 0. What is left of the factors g, that
is 1 - 2 P or (1 - 2 P) / V, after their part along it, is g - c with c = sum V g / sum V, so that

    variance of sum (x - P) (g - c) = sum V g^2 - c^2 sum V.

The standardized forms use this: without it their standard deviation is 0.8 instead of 1 (measured, 10 to 60 items).
Since a shift of the difficulty no longer matters either, they ask about misfit apart from displacement, and serve items
that were calibrated elsewhere as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.conditional.given_score import SERIES_FROM, conditional_probabilities
from spectral_irt.conditional.likelihood import FEW_ANSWERS
from spectral_irt.conditional.series_binary import DOUBLE, SINGLE, Precision
from spectral_irt.conditional.tree import given_every_score
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.same_items import SharedSet
from spectral_irt.inference.fit.mean_squares import CACHED
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.persons.residuals import CERTAIN, MeanSquares, standardized

ROUNDING = 1e-6  # a standard error below this is one of rounding
SIZES = 9  # sums that `_item_sums` makes for every item


@dataclass(frozen=True, eq=False)
class ConditionalStatistics:
    """What `conditional_statistics` found, one number an item; NaN for items that nobody with a mixed score answered.

    Attributes
    ----------
    mean_squares : MeanSquares
        Conditional infit and outfit.
    displacement : float array
        One Newton step of the conditional likelihood for each item with the others held: zero for estimates by
        conditional maximum likelihood, and for an anchored item how far from its difficulty these answers would put it.
    infit_se : float array
        Standard error of the infit under the model: what chance makes of 1.
    """

    mean_squares: MeanSquares
    displacement: Floats
    infit_se: Floats


def conditional_statistics(
    responses: Responses, difficulty: Floats, *, series_from: float | None = None
) -> ConditionalStatistics:
    """Conditional infit and outfit of every item.

    Parameters
    ----------
    responses : Responses
        Item codes are positions in `difficulty`.
    difficulty : float array
        Answers to items without a finite one are left out, of the score too.
    series_from : number, optional
        People whose answers carry so much information have their probabilities from a series (`series_binary`) instead
        of the exact sum. By default nobody up to 100,000 answers in all, and beyond that people with 4 or more.

    References
    ----------
    Müller (2020), Item fit statistics for Rasch analysis: can we trust them?, J. Stat. Distrib. Appl. 7:5;
    Christensen, Kreiner & Mesbah (2013), Rasch Models in Health, ch. 5.
    """
    if series_from is None:
        series_from = np.inf if responses.n_responses <= FEW_ANSWERS else SERIES_FROM
    precision = DOUBLE if responses.n_responses <= FEW_ANSWERS else SINGLE
    shared = responses.shared if np.isfinite(difficulty).all() else None
    left = responses if shared is None else shared.rest
    sums = np.zeros((SIZES, len(difficulty)))
    if left is not None:
        sums += left.sum(_item_sums, difficulty, series_from, precision)
    for one in () if shared is None else shared.sets:
        sums[:, one.items] += _sums_of_set(one, difficulty[one.items])
    n, z2, square, v, v2, inverse, p, off, lean = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        infit, outfit = square / v, z2 / n
        along_in, along_out = lean / v, (n - 2 * p) / v
        q_in = np.sqrt(np.maximum(v - 4 * v2 - along_in * lean, 0)) / v
        q_in = np.where(q_in > ROUNDING, q_in, 0.0)  # of two items, say, where the infit cannot vary
        q_out = np.sqrt(np.maximum(inverse - 4 * n - along_out**2 * v, 0)) / n
        squares = MeanSquares(
            n,
            infit,
            standardized(np.maximum(infit - along_in * off / v, 0), q_in),
            outfit,
            standardized(np.maximum(outfit - along_out * off / n, 0), q_out),
        )
        return ConditionalStatistics(squares, -off / v, np.where(q_in > 0, q_in, np.nan))


def _sums_of_set(one: SharedSet, difficulty: Floats) -> Floats:
    """What `_item_sums` gives for people who share a set of items, from how many of each score were right."""
    right, people = one.right[one.mixed], one.people[one.mixed][:, None]
    p = np.clip(given_every_score(difficulty[None]).p[0].T, CERTAIN, 1 - CERTAIN)
    v = p * (1 - p)
    square = right * (1 - p) ** 2 + (people - right) * p**2
    every = np.broadcast_to(people, p.shape)
    values = (every, square / v, square, people * v, people * v * v, people / v, people * p, right - people * p)
    return np.array([each.sum(axis=0) for each in (*values, people * v * (1 - 2 * p))])


def _item_sums(block: Block, difficulty: Floats, series_from: float, precision: Precision) -> Floats:
    """Sums over people with a mixed score: a row for each statistic, a column for each item."""
    block = answers_with_difficulty(block, difficulty)
    persons = np.flatnonzero(block.informative)
    m = len(difficulty)
    total = np.zeros((SIZES, m))
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
        v = p * (1 - p)
        lean, off, inverse = 1 - 2 * p, right - p, 1 / v
        square = off * off
        values: list[Any] = [None, square * inverse, square, v, v * v, inverse, p, off, v * lean]
        for row, value in zip(total, values, strict=True):
            row += np.bincount(items, weights=value, minlength=m)
    return total
