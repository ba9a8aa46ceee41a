"""Answers to an item by stratum of ability, beside what the model expects of the very same people.

Strata go by an ability that depends on a person's items and score alone, so that given the scores the model says what
mean a stratum has in item i (of right and wrong answers, what share is right), without any error of the abilities in
it. People with the lowest or the highest score are left out: whatever they do fits.

Answers are summed over a fine grid of abilities, one pass for all items, and cells of the grid are joined afterwards,
so that each item has strata of about equal size of its own. Curves of items (`plots/curves.py`) are drawn from these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Z95, Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.persons.abilities import known_rows
from spectral_irt.tables import Columns

STRATA = 8  # few enough to look at, many enough to show the shape of a curve
FEWEST_STRATA = 3  # to see a curve, however few people an item has
FEWEST_PEOPLE = 15  # in a stratum, where there are more strata than that
TIE = 1e-10  # abilities closer than this are the same: solved for in 16 digits
MOST_CURVES = 5_000  # items whose curves are kept; beyond, those that fit worst
CELLS = 200  # of equal numbers of people, of which strata are made


def strata_columns(
    responses: Responses, given: GivenScore, ability: Floats, items: Ints, strata: int = STRATA
) -> Columns:
    """Rows of `item` (its position), `stratum, n, ability, observed, ci_low, ci_high, expected`, item after item.

    The interval of right and wrong answers is Wilson's; else observed -+ 1.96 sqrt(sum V) / n, with V the variance of
    an answer given the score, within 0 and the highest category. Abilities depend on items and score alone ("wle" or
    "eap"); an item has fewer strata where people have fewer different ones.
    """
    takes_part = responses.entries.gather(_informative, given.beta, given.layout) & np.isfinite(ability)
    edges = cell_edges(ability[takes_part])
    row_of_item = np.full(responses.n_items, -1)
    row_of_item[items] = np.arange(len(items))
    cells = responses.entries.sum(_cell_sums, given, row_of_item, edges, persons=(given.pattern, ability))
    strata_of_items = [_strata_of(cells_of_item, strata) for cells_of_item in np.moveaxis(cells, 1, 0)]
    n_strata = [sums.shape[1] for sums in strata_of_items]
    n, sum_x, sum_mean, sum_variance, sum_theta = np.concatenate(strata_of_items, axis=1)
    if given.layout.binary:
        low, high = wilson_interval(sum_x, n)
    else:
        half = Z95 * np.sqrt(sum_variance) / n
        low = np.maximum(sum_x / n - half, 0.0)
        high = np.minimum(sum_x / n + half, np.repeat(given.layout.max_score[items], n_strata))
    return {
        "item": np.repeat(items, n_strata),
        "stratum": np.concatenate([np.arange(1, number + 1) for number in n_strata]),
        "n": n.astype(np.int64),
        "ability": sum_theta / n,
        "observed": sum_x / n,
        "ci_low": low,
        "ci_high": high,
        "expected": sum_mean / n,
    }


def _informative(block: Block, beta: Floats, layout: Thresholds) -> NDArray[np.bool_]:
    return known_rows(block, beta, layout).informative


def cell_edges(ability: Floats) -> Floats:
    """Limits of cells with about equal numbers of people, each between two abilities that do differ.

    People with the same items and score have the same ability but for the last digits, and those depend on which
    answers were right: cells that told them apart would sort people by their answers.
    """
    ordered = np.sort(ability)
    gaps = np.flatnonzero(np.diff(ordered) > TIE)  # between one ability and the next
    if len(gaps):
        cell_ends = np.searchsorted(gaps, len(ordered) * np.arange(1, CELLS) / CELLS)
        gaps = gaps[np.unique(np.minimum(cell_ends, len(gaps) - 1))]
    return (ordered[gaps] + ordered[gaps + 1]) / 2


def _cell_sums(
    block: Block, pattern: Ints, ability: Floats, given: GivenScore, row_of_item: Ints, edges: Floats
) -> Floats:
    """Of every item with a row and every cell: people, their answers, mean and variance given the score, ability."""
    n_cells = len(edges) + 1
    n_rows = int(row_of_item.max()) + 1
    answers = answers_with_moments(block, pattern, given)
    theta = ability[answers.person]
    chosen = np.flatnonzero((row_of_item[answers.item] >= 0) & np.isfinite(theta))
    theta = theta[chosen]
    cell = row_of_item[answers.item[chosen]] * n_cells + np.searchsorted(edges, theta)
    values = (None, answers.x[chosen], answers.mean[chosen], answers.variance[chosen], theta)
    sums = [np.bincount(cell, weights=value, minlength=n_rows * n_cells) for value in values]
    return np.array(sums, dtype=np.float64).reshape(len(values), n_rows, n_cells)


def _strata_of(cells: Floats, strata: int) -> Floats:
    """Neighboring cells of one item put together to about so many strata of equal size; empty ones are left out."""
    if not cells[0].any():
        return np.zeros((len(cells), 0))
    stratum = stratum_of_cells(cells[0], strata)
    sums = np.array([np.bincount(stratum, weights=row, minlength=strata) for row in cells])
    return sums[:, sums[0] > 0]


def stratum_of_cells(n: Floats, strata: int) -> Ints:
    """The stratum of each of these cells with so many people: about equal ones, fewer where people are few."""
    if strata > FEWEST_STRATA:
        strata = int(np.clip(n.sum() // FEWEST_PEOPLE, FEWEST_STRATA, strata))
    middle = np.cumsum(n) - n / 2
    return np.minimum((middle * strata / max(n.sum(), 1.0)).astype(np.int64), strata - 1)


def wilson_interval(right: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Wilson's 95% interval of a proportion; within 0 and 1 even where all were right.

    >>> [round(float(end[0]), 3) for end in wilson_interval(np.array([8.0]), np.array([10.0]))]
    [0.49, 0.943]
    """
    z2 = Z95**2
    middle = (right + z2 / 2) / (n + z2)
    half = Z95 / (n + z2) * np.sqrt(right * (n - right) / n + z2 / 4)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def items_with_curves(calibration: Calibration, fit: Columns) -> Ints:
    """Positions of the items with a place on the scale; of very many, those that fit worst."""
    items = np.flatnonzero(calibration.known & (calibration.status != "unlinked"))
    if len(items) <= MOST_CURVES:
        return items
    size = np.nan_to_num(np.abs(fit["infit_conditional_z"][items]), nan=-1.0)
    return np.sort(items[np.argsort(-size, kind="stable")[:MOST_CURVES]])
