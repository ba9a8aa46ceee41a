"""People who answered the same items with the same total score: what depends on these alone is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.responses.block import Block, Ints
from spectral_irt.responses.ordered import OrderedResponses, Rows, Steps, rows_of

SEED = 20240229  # of the numbers that stand for items; any will do


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct pairs (items answered, total score).

    Attributes
    ----------
    rows : Rows
        One row for each.
    count : int array
        How many people have it.
    of_person : int array
        Which one each person has.
    """

    rows: Rows
    count: Ints
    of_person: Ints


def distinct_rows(responses: OrderedResponses) -> Patterns:
    """The patterns of these people. Sets of items are told apart by sums of 64-bit random numbers."""
    first, count, of_person = _distinct(responses.thresholds.gather(_keys, responses.steps))
    return Patterns(all_rows(responses.take_users(first)), count, of_person)


def same_rows(rows: Rows, steps: Steps) -> Patterns:
    """The patterns of these rows."""
    first, count, of_person = _distinct(row_keys(rows, steps, rows.scores))
    return Patterns(rows.take(first), count, of_person)


def _distinct(keys: NDArray[np.uint64]) -> tuple[Ints, Ints, Ints]:
    """Who is the first with each key, in their order; how many have it; and which one each person has."""
    _, first, of_person, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], count[order], rank[of_person.ravel()]


def all_rows(responses: Any) -> Rows:
    """The rows of all people, one after the other."""
    parts = list(responses.thresholds.map(rows_of, responses.steps))
    ends = np.cumsum([0, *(len(part.items) for part in parts)])
    indptr = np.concatenate([[0], *(part.indptr[1:] + start for part, start in zip(parts, ends[:-1], strict=True))])
    columns = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("items", "counts", "scores", "most")
    )
    return Rows(indptr, *columns)


def _keys(block: Block, steps: Steps) -> NDArray[np.uint64]:
    rows = rows_of(block, steps)
    return row_keys(rows, steps, rows.scores)


def row_keys(rows: Rows, steps: Steps, beside: Ints) -> NDArray[np.uint64]:
    """A number for each set of items and the number beside it."""
    numbers = np.random.default_rng(SEED).integers(0, 2**64, steps.n_items + 1, dtype=np.uint64, endpoint=False)
    keys = beside.astype(np.uint64) * numbers[-1]
    some = np.flatnonzero(rows.counts)
    if len(some):
        keys[some] += np.add.reduceat(numbers[rows.items], rows.indptr[some])
    return keys
