"""People who answered the same items: the conditional likelihood sees a person only through the set of items and the
score, so three tables for each set are all that a fit needs on complete data and booklets. They come from one sweep
over the answers, as products of 0/1 matrices in single precision, which are exact. People whose set few others share
stay as they are (`SharedSets.rest`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, rows_of
from spectral_irt.numerics import csr, scramble, shared_ones

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses

SAMPLE = 100  # people of each block looked at first: where the sets of most of them differ nothing is shared
PER_ITEM = 2  # people per item of a set, at least: the set's tables have a row for every score
PER_BLOCK = 2_000  # answers of a set per block, at least: below, going through the sets costs more than it saves
SHARED = 0.5  # of all answers must be on shared sets; else two ways of doing everything are not worth it
LONGEST = 2_000  # items of a set: its pairs are 32 MB then
CELLS = 500_000  # of a dense slice: 2 MB
EXACT = 1 << 24  # whole numbers up to here are exact in single precision


@dataclass(frozen=True, eq=False)
class SharedSet:
    items: Ints  # increasing
    people: Floats  # with each score, k + 1
    right: Floats  # answers by score and item, (k + 1) x k
    together: Floats  # people with a mixed score who answered both items right, k x k

    @property
    def won(self) -> Floats:
        """How many people answered item i right and item j wrong."""
        won = self.right[1:-1].sum(axis=0)[:, None] - self.together
        np.fill_diagonal(won, 0)
        return won


@dataclass(frozen=True, eq=False)
class SharedSets:
    """Sets of items that many people answered; and the other people, if any."""

    sets: tuple[SharedSet, ...]
    rest: Responses | None
    n_items: int


def shared_sets(
    responses: Responses, *, per_item: float = PER_ITEM, per_block: float = PER_BLOCK, shared: float = SHARED
) -> SharedSets | None:
    """What the people on repeated sets told; None where too few people share theirs for that to pay."""
    m = responses.n_items
    if not responses.n_persons:
        return None
    table = scramble(np.arange(m, dtype=np.int32), 0)
    different, people = responses.sum(sampled_sets, table)
    if different > (people / 2 if shared > 0 and responses.n_persons > SAMPLE else people):
        return None
    keys, counts = responses.gather(set_keys, table)
    first, people, code = _distinct(keys)
    lengths = counts[first]
    worth = (people >= per_item * lengths) & (people * lengths >= per_block * len(responses.blocks))
    worth &= (lengths > 1) & (lengths <= LONGEST)
    if not worth.any() or np.sum((people * lengths)[worth]) < shared * counts.sum():
        return None
    code = np.where(worth, np.cumsum(worth) - 1, -1)[code]
    sets = _items_of(responses, first[worth])
    sums = []
    for items, k in zip(sets, map(len, sets), strict=True):
        empty = SharedSet(items, np.zeros(k + 1), np.zeros((k + 1, k)), np.zeros((k, k)))
        sums.append(responses.engine.keep(empty))
    for tables in responses.map(_tables, sets, m, persons=(code,)):
        for which, *more in tables:
            if not more:
                return None  # two sets have the same key, as chance has it once in the life of a universe
            for total, part in zip((sums[which].people, sums[which].right, sums[which].together), more, strict=True):
                total += part
    for one in sums:
        one.together[:] -= one.people[-1]  # those who had all right
    outside = code < 0
    return SharedSets(tuple(sums), responses.take_persons(outside) if outside.any() else None, m)


def _distinct(keys: NDArray[np.uint64]) -> tuple[Ints, Ints, Ints]:
    """Who is the first with each key, in their order; how many have it; and which one each person has."""
    if len(keys) and keys.min() == keys.max():
        return np.zeros(1, dtype=np.int64), np.array([len(keys)]), np.zeros(len(keys), dtype=np.int64)
    _, first, of_person, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], count[order], rank[of_person.ravel()]


def sampled_sets(block: Block, table: NDArray[np.uint64]) -> tuple[int, int]:
    """How many different sets the first people of a block answered, and how many these people are."""
    keys, counts = set_keys(block.take(np.arange(min(SAMPLE, block.n_persons))), table)
    some = keys[counts > 0]
    return len(np.unique(some)), len(some)


def set_keys(block: Block | Rows, table: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Ints]:
    """64 bits by which equal sets of items are known, sums of well-mixed numbers; and how many items there are."""
    counts = block.counts
    keys = counts.astype(np.uint64)
    some = np.flatnonzero((counts > 0) & (counts < len(table)))
    if len(some) == block.n_persons:
        keys += np.add.reduceat(table[block.items], block.indptr[:-1])
    elif len(some):
        part = block.take(some)
        keys[some] += np.add.reduceat(table[part.items], part.indptr[:-1])
    return keys, counts


def _items_of(responses: Responses, people: Ints) -> list[Ints]:
    place, asked = np.unique(people, return_inverse=True)  # `take_persons` keeps the order of the data
    person, items, _ = responses.take_persons(place).answers()
    order = np.lexsort((items, person))
    ends = np.cumsum(np.bincount(person, minlength=len(place)))[:-1]
    sets = np.split(items[order].astype(np.int64), ends)
    return [sets[k] for k in asked]


def _tables(block: Block, code: Ints, sets: list[Ints], n_items: int) -> list[tuple[Any, ...]]:
    """For every set in this block: which it is, people by score, right answers by score and item, pairs of these; which
    it is alone, where somebody answered other items than the set has."""
    if not len(code):
        return []
    if code.min() == code.max():
        return [] if code[0] < 0 else [(int(code[0]), *_products(block, sets[code[0]], n_items))]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-2))
    found: list[tuple[Any, ...]] = []
    for start, stop in zip(starts, [*starts[1:], len(code)], strict=True):
        which = int(code[order[start]])
        if which >= 0:
            found.append((which, *_products(block.take(order[start:stop]), sets[which], n_items)))
    return found


def _products(block: Block, items: Ints, n_items: int) -> tuple[Floats, ...]:
    k = len(items)
    codes = np.asarray(block.items)
    if k < n_items:
        place = np.full(n_items, k, dtype=np.int32)
        place[items] = np.arange(k)
        codes = place[codes]
        if codes.max() == k or np.any(block.counts != k):
            return ()
    scores, right, together = block.scores, np.zeros((k + 1, k)), np.zeros((k, k))
    size = min(max(CELLS // k, 1), EXACT)
    for start in range(0, block.n_persons, size):
        stop = min(start + size, block.n_persons)
        bounds = block.bounds[2 * start : 2 * stop + 1]
        own = codes[bounds[0] : bounds[-1]]
        both = csr((bounds - bounds[0]).astype(np.int32), own, shared_ones(len(own), np.float32), k)
        x = both.toarray()[::2]  # every second row: right, and wrong
        has_score = np.zeros((stop - start, k + 1), dtype=np.float32)
        has_score[np.arange(stop - start), scores[start:stop]] = 1
        right += has_score.T @ x
        together += x.T @ x
    return np.bincount(scores, minlength=k + 1).astype(np.float64), right, together


@dataclass(frozen=True, eq=False)
class Patterns:
    rows: Rows  # one for each
    count: Ints  # people who have it
    of_person: Ints  # which one each person has


def distinct_rows(responses: Responses) -> Patterns:
    """The patterns of these people. Sets of items are told apart by `set_keys`."""
    first, count, of_person = _distinct(responses.entries.gather(_pattern_keys, responses.thresholds))
    (together,) = responses.take_persons(first).in_one_block().blocks
    return Patterns(rows_of(together, responses.thresholds), count, of_person)


def same_rows(rows: Rows, layout: Thresholds) -> Patterns:
    first, count, of_person = _distinct(row_keys(rows, layout, rows.scores))
    return Patterns(rows.take(first), count, of_person)


def _pattern_keys(block: Block, layout: Thresholds) -> NDArray[np.uint64]:
    rows = rows_of(block, layout)
    return row_keys(rows, layout, rows.scores)


def row_keys(rows: Rows, layout: Thresholds, beside: Ints) -> NDArray[np.uint64]:
    """A number for each set of items and the number beside it."""
    table = scramble(np.arange(layout.n_items, dtype=np.int32), 0)
    keys = set_keys(rows, table)[0]
    keys += scramble(beside.astype(np.int32), 1)
    return keys
