"""Right answers to an item by stratum of ability, beside what the model expects of the very same people.

Strata go by an ability that depends on a person's items and score alone, so that given the scores the model says what
share of a stratum answers item i right: the mean of P(X = 1 | score), without any error of the abilities in it.
People with everything right or everything wrong are left out: whatever they do fits.

Counts are summed over a fine grid of abilities, one pass for all items, and cells of the grid are joined afterwards, so
that each item has strata of about equal size of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Z95, Calibration
from spectral_irt.conditional.given_score import SERIES_FROM, conditional_probabilities
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.persons.abilities import Abilities, answers_with_difficulty
from spectral_irt.tables import Columns

STRATA = 8  # few enough to look at, many enough to show the shape of a curve
FEWEST = 15  # people in a stratum where an item has few; but three strata, to see a curve
TIE = 1e-10  # abilities closer than this are the same: solved for in 16 digits
CURVES = 5_000  # items whose curves are kept; beyond, those that fit worst
GRID = 200  # cells of equal numbers of people, of which strata are made


def strata_columns(
    responses: Responses, difficulty: Floats, found: Abilities, items: Ints, strata: int = STRATA
) -> Columns:
    """Rows of `item` (its position), `stratum, n, ability, observed, ci_low, ci_high, expected`, item after item.

    Parameters
    ----------
    responses : Responses
        Item codes are positions in `difficulty`.
    found : Abilities
        Of these people, by items and score alone ("wle" or "eap").
    items : int array
        Positions of the items wanted, each with a difficulty.
    strata : int
        How many for each item; fewer where people have fewer different abilities.
    """
    mixed = (found.score > 0) & (found.score < found.n) & np.isfinite(found.ability)
    ability = np.where(mixed, found.ability, np.nan)
    edges = cell_edges(ability[mixed])
    place = np.full(len(difficulty), -1)
    place[items] = np.arange(len(items))
    sums = responses.sum(_grid_sums, difficulty, place, edges, persons=(ability,))
    rows = [joined_cells(one, strata) for one in np.moveaxis(sums, 1, 0)]
    n, right, expected, theta = np.concatenate(rows, axis=1)
    low, high = wilson_interval(right, n)
    return {
        "item": np.repeat(items, [row.shape[1] for row in rows]),
        "stratum": np.concatenate([np.arange(1, row.shape[1] + 1) for row in rows]),
        "n": n.astype(np.int64),
        "ability": theta / n,
        "observed": right / n,
        "ci_low": low,
        "ci_high": high,
        "expected": expected / n,
    }


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


def _grid_sums(block: Block, ability: Floats, difficulty: Floats, place: Ints, edges: Floats) -> Floats:
    """Of every wanted item and cell: people, right answers, P(X = 1 | score), ability."""
    cells = len(edges) + 1
    wanted = int(place.max()) + 1
    block = answers_with_difficulty(block, difficulty)
    some = np.bincount(block.person_of_response(), weights=place[block.items] >= 0, minlength=block.n_persons) > 0
    people = np.flatnonzero(some & np.isfinite(ability) & block.informative)
    if not len(people):
        return np.zeros((4, wanted, cells))
    block, theta = block.take(people), ability[people]
    chosen = np.flatnonzero(place[block.items] >= 0)
    p = conditional_probabilities(block, difficulty, series_from=SERIES_FROM)[chosen]
    theta = theta[block.person_of_response()[chosen]]
    cell = place[block.items[chosen]] * cells + np.searchsorted(edges, theta)
    values = (None, block.right()[chosen].astype(float), p, theta)
    sums = [np.bincount(cell, weights=each, minlength=wanted * cells) for each in values]
    return np.array(sums, dtype=np.float64).reshape(4, wanted, cells)


def joined_cells(sums: Floats, strata: int) -> Floats:
    """Neighboring cells of one item put together to about so many strata of equal size; empty ones are left out."""
    n = sums[0]
    if not n.any():
        return np.zeros((len(sums), 0))
    strata = int(np.clip(n.sum() // FEWEST, 3, strata)) if strata > 3 else strata
    middle = np.cumsum(n) - n / 2
    stratum: NDArray[np.int64] = np.minimum((middle * strata / n.sum()).astype(np.int64), strata - 1)
    joined = np.array([np.bincount(stratum, weights=each, minlength=strata) for each in sums])
    return joined[:, joined[0] > 0]


def wilson_interval(right: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Wilson's 95% interval of a proportion; within 0 and 1 even where all were right.

    >>> low, high = wilson_interval(np.array([8.0]), np.array([10.0]))
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.49, 0.943)
    """
    z2 = Z95**2
    middle = (right + z2 / 2) / (n + z2)
    half = Z95 / (n + z2) * np.sqrt(right * (n - right) / n + z2 / 4)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def curved(calibration: Calibration, fit: Columns) -> Ints:
    """Positions of the items with a place on the scale; of very many, those that fit worst."""
    place = np.flatnonzero(calibration.known & (calibration.status != "apart"))
    if len(place) <= CURVES:
        return place
    z = np.nan_to_num(np.abs(fit["infit_conditional_z"][place]), nan=-1.0)
    return np.sort(place[np.argsort(-z, kind="stable")[:CURVES]])
