"""Which option people of each ability choose: strata of ability by the other items, one pass for all items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.choices import BLANK, KEY, OTHER
from spectral_irt.inference.fit.strata import stratum_of_cells, wilson_interval
from spectral_irt.inference.items.classical import own_rest_ability, with_rest
from spectral_irt.inference.items.distractors import natural, require_options
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.tables import Columns

STRATA = 6  # few enough that options have people in each, many enough to show where a curve turns
GRID = 120  # cells of equal numbers of people, of which strata are made


def option_curves(
    responses: Responses, difficulty: Floats, ability: Floats, items: Ints, strata: int = STRATA
) -> list[Columns]:
    """Of each of these items a row for every option and stratum: `item, option, key, stratum, n, chose, share, ci_low,
    ci_high, ability`.

    `n` people in the stratum, `chose` of them this option; `ability` is their mean, by the other items; intervals are
    Wilson's, 95%.

    Parameters
    ----------
    responses : Responses
        Read with a key; item codes are positions in `difficulty`.
    ability : float array, one per person
        Only says where the people are, so that strata have about equal numbers of them.
    items : int array
        Positions of the items wanted.
    """
    k = len(require_options(responses))
    assert responses.raw is not None
    options, key = responses.raw.options, responses.raw.key
    known = np.sort(ability[np.isfinite(ability)])
    edges = np.unique(np.quantile(known, np.arange(1, GRID) / GRID)) if len(known) else np.zeros(0)
    place = np.full(len(difficulty), -1)
    place[items] = np.arange(len(items))
    sums = responses.sum(_grid_sums, difficulty, place, edges, k)
    labels = responses.items[items].tolist()
    return [
        _rows(one, strata, label, np.array([options[0], key.get(label, ""), *options[2:]], dtype=object))
        for label, one in zip(labels, sums.transpose(1, 0, 2, 3), strict=True)
    ]


def _grid_sums(block: Block, difficulty: Floats, place: Ints, edges: Floats, k: int) -> Floats:
    """Of every wanted item, cell and option: people, and their abilities by the other items."""
    cells, wanted = len(edges) + 1, int(place.max()) + 1
    total = np.zeros((2, wanted * cells * k))
    part = with_rest(answers_with_difficulty(block, difficulty))
    if part.n_persons and part.options is not None:
        chosen = np.flatnonzero(place[part.items] >= 0)
        measure = own_rest_ability(part, difficulty)[chosen]
        slot = (place[part.items[chosen]] * cells + np.searchsorted(edges, measure)) * k + part.options[chosen]
        total[0] += np.bincount(slot, minlength=total.shape[1])
        total[1] += np.bincount(slot, weights=measure, minlength=total.shape[1])
    return total.reshape(2, wanted, cells, k)


def _rows(sums: Floats, strata: int, label: Any, texts: NDArray[Any]) -> Columns:
    """Neighboring cells of one item put together, and a row for each option that was chosen, and for the key."""
    of_cell = stratum_of_cells(sums[0].sum(axis=1), strata)
    joined = np.array([sums[:, of_cell == k].sum(axis=1) for k in range(strata)]).transpose(1, 0, 2)
    counts, totals = joined[0], joined[1].sum(axis=1)
    there = np.flatnonzero(counts.sum(axis=1) > 0)
    codes = np.flatnonzero((counts.sum(axis=0) > 0) | (np.arange(sums.shape[2]) == KEY))
    codes = np.array(sorted(codes.tolist(), key=lambda code: (code in (BLANK, OTHER), natural(str(texts[code])))))
    chose = counts[np.ix_(there, codes)].T.ravel()
    people = np.tile(counts[there].sum(axis=1), len(codes))
    low, high = wilson_interval(chose, people)
    item = np.empty(len(chose), dtype=object)
    item[:] = [label] * len(chose)
    return {
        "item": item,
        "option": np.repeat(texts[codes], len(there)),
        "key": np.repeat(codes == KEY, len(there)),
        "stratum": np.tile(np.arange(1, len(there) + 1), len(codes)),
        "n": people.astype(np.int64),
        "chose": chose.astype(np.int64),
        "share": chose / people,
        "ci_low": low,
        "ci_high": high,
        "ability": np.tile(totals[there] / counts[there].sum(axis=1), len(codes)),
    }
