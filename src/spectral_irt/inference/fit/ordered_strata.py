"""Mean answers to an item by stratum of ability, beside what the model expects of the very same people.

As in `strata`: strata go by an ability that depends on a person's items and total score alone, and given these the
model says what mean a stratum has in item i, and how far chance moves it, without any error of the abilities in it.
People with the lowest or the highest total score are left out.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.calibration import Z95
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.inference.fit.ordered_fit import AnswerMoments, answers_with_moments, informative
from spectral_irt.inference.fit.strata import STRATA, cell_edges, joined_cells
from spectral_irt.persons.abilities import Persons
from spectral_irt.tables import Columns


def ordered_strata(
    people: Persons, ability: Floats, given: AnswerMoments, items: Ints, strata: int = STRATA
) -> Columns:
    """Rows of `item` (its position), `stratum, n, ability, observed, ci_low, ci_high, expected`, item after item.

    The interval is observed -+ 1.96 sqrt(sum V) / n, with V the variance of an answer given the total score, within 0
    and the highest category.

    Parameters
    ----------
    people : Persons
    ability : float array
        Of every person, by items and score alone ("wle" or "eap").
    given : AnswerMoments
        Given the total scores.
    items : int array
        Positions of the items wanted among those of `people`.
    strata : int
        How many for each item; fewer where people have fewer different abilities.
    """
    used = informative(people) * np.isfinite(ability)
    edges = cell_edges(ability[used > 0])
    place = np.full(people.steps.n_items, -1)
    place[items] = np.arange(len(items))
    persons = (people.patterns.of_person, used, ability)
    sums = people.responses.entries.sum(_grid_sums, given, people.steps, place, edges, persons=persons)
    rows = [joined_cells(one, strata) for one in np.moveaxis(sums, 1, 0)]
    n, total, expected, variance, theta = np.concatenate(rows, axis=1)
    lengths = [row.shape[1] for row in rows]
    half = Z95 * np.sqrt(variance) / n
    return {
        "item": np.repeat(items, lengths),
        "stratum": np.concatenate([np.arange(1, length + 1) for length in lengths]),
        "n": n.astype(np.int64),
        "ability": theta / n,
        "observed": total / n,
        "ci_low": np.maximum(total / n - half, 0.0),
        "ci_high": np.minimum(total / n + half, np.repeat(people.steps.max_score[items], lengths)),
        "expected": expected / n,
    }


def _grid_sums(
    block: Block,
    pattern: Ints,
    used: Floats,
    ability: Floats,
    given: AnswerMoments,
    steps: Thresholds,
    place: Ints,
    edges: Floats,
) -> Floats:
    """Of every wanted item and cell: people, their answers, mean and variance given the score, ability."""
    cells, wanted = len(edges) + 1, int(place.max()) + 1
    person, item, category, where = answers_with_moments(block, pattern, used, given, steps)
    chosen = np.flatnonzero(place[item] >= 0)
    theta = ability[person[chosen]]
    cell = place[item[chosen]] * cells + np.searchsorted(edges, theta)
    of = where[chosen]
    values = (None, category[chosen].astype(float), given.mean[of], given.variance[of], theta)
    sums = [np.bincount(cell, weights=each, minlength=wanted * cells) for each in values]
    return np.array(sums, dtype=np.float64).reshape(len(values), wanted, cells)
