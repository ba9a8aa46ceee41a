"""Patterns: sets of items with the total score on them.

People with the same pattern are one for everything that is given the score.

The exact conditional likelihood and its draws, moments and tests of fit go over patterns; abilities, over those of one
block (`same_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Ints, Mask, Rows, Thresholds, joined_rows, rows_of
from spectral_irt.data.shared_sets import distinct_keys, set_keys
from spectral_irt.engine.base import budget, identity
from spectral_irt.numerics import scramble

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses


@dataclass(frozen=True, eq=False)
class Patterns:
    """Sets of items with the score on them, each once."""

    rows: Rows  # one for each
    count: Ints  # people who have it
    of_person: Ints  # which one each person has


def distinct_rows(responses: Responses, keys: NDArray[np.uint64] | None = None) -> Patterns:
    """The patterns of these people. Sets of items are told apart by `set_keys`; `keys` are people's `row_keys`."""
    if keys is None:
        keys = responses.entries.gather(row_keys, responses.thresholds)
    is_first, count, of_person = _first_of_each(keys)
    # Block by block: all responses in a single one would be there twice, and packed into rows with longer numbers.
    parts = responses.entries.map(_rows_of_some, responses.thresholds, persons=(is_first,))
    return Patterns(joined_rows(list(parts)), count, of_person)


def distinct_sets(responses: Responses) -> Patterns:
    """The patterns of these people, the items of each in increasing order, without what was answered. Where nearly
    everybody has a pattern of their own these are as many items as responses: on disk where there is no room."""
    keys = responses.entries.gather(row_keys, responses.thresholds)
    is_first, count, of_person = _first_of_each(keys)
    kept = responses.entries.prepare(_sets_of_some, responses.thresholds, persons=(is_first,))
    parts = list(kept.map(identity))
    counts = np.concatenate([part.counts for part in parts])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    items = budget().keep(np.zeros(indptr[-1], dtype=np.int32))
    start = 0
    for part in parts:
        stop = start + len(part.items)
        items[start:stop] = part.items
        start = stop
    scores = np.concatenate([part.scores for part in parts])
    max_scores = np.concatenate([part.max_scores for part in parts])
    return Patterns(Rows(indptr, items, counts, scores, max_scores), count, of_person)


def _first_of_each(keys: NDArray[np.uint64]) -> tuple[Mask, Ints, Ints]:
    """Of people with these keys: who is the first with a key, how many have each, and which one each person has."""
    first, count, of_person = distinct_keys(keys)
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[first] = True
    return is_first, count, of_person


def _sets_of_some(block: Block, chosen: Mask, layout: Thresholds) -> Rows:
    rows = _rows_of_some(block, chosen, layout)
    person = np.repeat(np.arange(rows.n_persons), rows.counts)
    items = np.sort((person << 32) + rows.items).astype(np.int32)  # of the sum its last half, the item
    return replace(rows, items=items, category=None)


def _rows_of_some(block: Block, chosen: Mask, layout: Thresholds) -> Rows:
    rows = rows_of(block, layout)
    if chosen.all():
        return rows
    return rows.take(np.flatnonzero(chosen))


def same_rows(rows: Rows, layout: Thresholds) -> Patterns:
    """The patterns of these rows."""
    first, count, of_person = distinct_keys(row_keys(rows, layout))
    return Patterns(rows.take(first), count, of_person)


def row_keys(rows: Rows | Block, layout: Thresholds, beside: Ints | None = None) -> NDArray[np.uint64]:
    """A number for each set of items and the number beside it, by default the score."""
    if isinstance(rows, Block):
        rows = rows_of(rows, layout)
    if beside is None:
        beside = rows.scores
    table = scramble(np.arange(layout.n_items, dtype=np.int32), 0)
    keys = set_keys(rows, table)[0]
    keys += scramble(beside.astype(np.int32), 1)
    return keys
