"""Answers to an item by stratum of ability, beside what the model expects of the very same people.

Strata go by an ability that depends on a person's items and score alone, so that given the scores the model says what
mean a stratum has in item i (of right and wrong answers, what share is right), without any error of the abilities in
it. People with the lowest or the highest score are left out: whatever they do fits.

Answers are summed over a fine grid of abilities, one pass for all items, and cells of the grid are joined afterwards,
so that each item has strata of about equal size of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Z95, Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.inference.fit.moments import GivenScore, answers_given_score
from spectral_irt.persons.abilities import known_rows
from spectral_irt.tables import Columns

STRATA = 8  # few enough to look at, many enough to show the shape of a curve
FEWEST = 15  # people in a stratum where an item has few; but three strata, to see a curve
TIE = 1e-10  # abilities closer than this are the same: solved for in 16 digits
CURVES = 5_000  # items whose curves are kept; beyond, those that fit worst
GRID = 200  # cells of equal numbers of people, of which strata are made


def strata_columns(
    responses: Responses, given: GivenScore, ability: Floats, items: Ints, strata: int = STRATA
) -> Columns:
    """Rows of `item` (its position), `stratum, n, ability, observed, ci_low, ci_high, expected`, item after item.

    The interval of right and wrong answers is Wilson's; else observed -+ 1.96 sqrt(sum V) / n, with V the variance of
    an answer given the score, within 0 and the highest category. Abilities depend on items and score alone ("wle" or
    "eap"); an item has fewer strata where people have fewer different ones.
    """
    used = responses.entries.gather(_informative, given.beta, given.layout) & np.isfinite(ability)
    edges = cell_edges(ability[used])
    place = np.full(responses.n_items, -1)
    place[items] = np.arange(len(items))
    sums = responses.entries.sum(_grid_sums, given, place, edges, persons=(given.pattern, ability))
    rows = [_joined(one, strata) for one in np.moveaxis(sums, 1, 0)]
    n, total, expected, variance, theta = np.concatenate(rows, axis=1)
    lengths = [row.shape[1] for row in rows]
    if given.layout.binary:
        low, high = wilson_interval(total, n)
    else:
        half = Z95 * np.sqrt(variance) / n
        low = np.maximum(total / n - half, 0.0)
        high = np.minimum(total / n + half, np.repeat(given.layout.max_score[items], lengths))
    return {
        "item": np.repeat(items, lengths),
        "stratum": np.concatenate([np.arange(1, length + 1) for length in lengths]),
        "n": n.astype(np.int64),
        "ability": theta / n,
        "observed": total / n,
        "ci_low": low,
        "ci_high": high,
        "expected": expected / n,
    }


def _informative(block: Block, beta: Floats, layout: Thresholds) -> NDArray[np.bool_]:
    return known_rows(block, beta, layout).informative


def cell_edges(ability: Floats) -> Floats:
    """Limits of cells with about equal numbers of people, each between two abilities that do differ.

    People with the same items and score have the same ability but for the last digits, and those depend on which
    answers were right: cells that told them apart would sort people by their answers.
    """
    ordered = np.sort(ability)
    ends = np.flatnonzero(np.diff(ordered) > TIE)
    wanted = len(ordered) * np.arange(1, GRID) / GRID
    chosen = ends[np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))] if len(ends) else ends
    return (ordered[chosen] + ordered[chosen + 1]) / 2


def _grid_sums(block: Block, pattern: Ints, ability: Floats, given: GivenScore, place: Ints, edges: Floats) -> Floats:
    """Of every wanted item and cell: people, their answers, mean and variance given the score, ability."""
    cells, wanted = len(edges) + 1, int(place.max()) + 1
    person, item, x, mean, variance, *_ = answers_given_score(block, pattern, given)
    theta = ability[person]
    chosen = np.flatnonzero((place[item] >= 0) & np.isfinite(theta))
    theta = theta[chosen]
    cell = place[item[chosen]] * cells + np.searchsorted(edges, theta)
    values = (None, x[chosen], mean[chosen], variance[chosen], theta)
    sums = [np.bincount(cell, weights=each, minlength=wanted * cells) for each in values]
    return np.array(sums, dtype=np.float64).reshape(len(values), wanted, cells)


def _joined(sums: Floats, strata: int) -> Floats:
    """Neighboring cells of one item put together to about so many strata of equal size; empty ones are left out."""
    if not sums[0].any():
        return np.zeros((len(sums), 0))
    stratum = stratum_of_cells(sums[0], strata)
    joined = np.array([np.bincount(stratum, weights=each, minlength=strata) for each in sums])
    return joined[:, joined[0] > 0]


def stratum_of_cells(n: Floats, strata: int) -> NDArray[np.int64]:
    """The stratum of each of these cells with so many people: about equal ones, fewer where people are few."""
    strata = int(np.clip(n.sum() // FEWEST, 3, strata)) if strata > 3 else strata
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


def curved(calibration: Calibration, fit: Columns) -> Ints:
    """Positions of the items with a place on the scale; of very many, those that fit worst."""
    place = np.flatnonzero(calibration.known & (calibration.status != "unlinked"))
    if len(place) <= CURVES:
        return place
    z = np.nan_to_num(np.abs(fit["infit_conditional_z"][place]), nan=-1.0)
    return np.sort(place[np.argsort(-z, kind="stable")[:CURVES]])
