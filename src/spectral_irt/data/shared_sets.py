"""Sets of items that many people answered, and what their people told: tables instead of answers.

The conditional likelihood sees a person only through the set of items and the score, so three tables for each set are
all that a fit needs on complete data and booklets. They come from one sweep over the answers, as products of 0/1
matrices in single precision, which are exact. People whose set few others share stay as they are (`SharedSets.rest`).

`Responses.shared` has them (`shared_sets`); the chain and the conditional likelihood go over the tables, and over the
answers of the other people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Floats, Ints, Rows, person_chunks
from spectral_irt.engine.base import budget
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
    """What the people who answered exactly these k items told."""

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
    if not responses.n_persons or not _most_are_alike(responses, shared):
        return None
    n_items = responses.n_items
    keys, counts = responses.gather(set_keys, _item_numbers(n_items))
    first, people, code = distinct_keys(keys)
    lengths = counts[first]
    worth = (people >= per_item * lengths) & (people * lengths >= per_block * len(responses.blocks))
    worth &= (lengths > 1) & (lengths <= LONGEST)
    if not worth.any() or np.sum((people * lengths)[worth]) < shared * counts.sum():
        return None
    set_of_person = np.where(worth, np.cumsum(worth) - 1, -1)[code]
    sets = _tables_of_sets(responses, items_of_people(responses, first[worth]), set_of_person)
    if sets is None:
        return None
    others = None
    if (set_of_person < 0).any():
        others = responses.take_persons(set_of_person < 0)
    return SharedSets(sets, others, n_items)


def _item_numbers(n_items: int) -> NDArray[np.uint64]:
    """A well-mixed number for each item: their sums tell sets of items apart."""
    return scramble(np.arange(n_items, dtype=np.int32), 0)


def _most_are_alike(responses: Responses, shared: float) -> bool:
    """Whether the first people of each block share their sets of items with others."""
    different, people = responses.sum(sampled_sets, _item_numbers(responses.n_items))
    most = people
    if shared > 0 and responses.n_persons > SAMPLE:
        most = people / 2
    return bool(different <= most)


def _tables_of_sets(responses: Responses, items: list[Ints], set_of_person: Ints) -> tuple[SharedSet, ...] | None:
    """The tables of these sets, from one sweep over the answers. None where two sets have the same key, as chance has
    it once in the life of a universe."""
    sets = []
    for items_of_set in items:
        k = len(items_of_set)
        empty = SharedSet(items_of_set, np.zeros(k + 1), np.zeros((k + 1, k)), np.zeros((k, k)))
        sets.append(budget().keep(empty))
    for tables in responses.map(_tables, items, responses.n_items, persons=(set_of_person,)):
        for number, *parts in tables:
            if not parts:
                return None
            totals = (sets[number].people, sets[number].right, sets[number].together)
            for total, part in zip(totals, parts, strict=True):
                total += part
    for shared_set in sets:
        shared_set.together[:] -= shared_set.people[-1]  # those who had all right
    return tuple(sets)


def distinct_keys(keys: NDArray[np.uint64]) -> tuple[Ints, Ints, Ints]:
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
    if len(some) < block.n_persons:
        if len(some):
            keys[some] = set_keys(block.take(some), table)[0]
        return keys, counts
    # Rows may be those of everybody: numbers of eight bytes are made for some people at a time.
    for start, stop in person_chunks(block.indptr):
        first = block.indptr[start]
        numbers = table[block.items[first : block.indptr[stop]]]
        keys[start:stop] += np.add.reduceat(numbers, block.indptr[start:stop] - first)
    return keys, counts


def items_of_people(responses: Responses, people: Ints) -> list[Ints]:
    """The items that each of these people answered, increasing."""
    place, asked = np.unique(people, return_inverse=True)  # `take_persons` keeps the order of the data
    person, items, _ = responses.take_persons(place).answers()
    order = np.lexsort((items, person))
    ends = np.cumsum(np.bincount(person, minlength=len(place)))[:-1]
    sets = np.split(items[order].astype(np.int64), ends)
    return [sets[k] for k in asked.tolist()]


def _tables(block: Block, code: Ints, sets: list[Ints], n_items: int) -> list[tuple[Any, ...]]:
    """For every set in this block: which it is, people by score, right answers by score and item, pairs of these; which
    it is alone, where somebody answered other items than the set has."""
    if not len(code):
        return []
    if code.min() == code.max():  # all people of the block have one set, or none has a shared one
        number = int(code[0])
        if number < 0:
            return []
        return [(number, *_products(block, sets[number], n_items))]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-2))
    tables: list[tuple[Any, ...]] = []
    for start, stop in zip(starts, [*starts[1:], len(code)], strict=True):
        number = int(code[order[start]])
        if number >= 0:
            tables.append((number, *_products(block.take(order[start:stop]), sets[number], n_items)))
    return tables


def _products(block: Block, items: Ints, n_items: int) -> tuple[Floats, ...]:
    """People by score, right answers by score and item, and pairs of these, of people who answered these items;
    nothing where somebody answered others."""
    k = len(items)
    codes = np.asarray(block.items)
    if k < n_items:
        place = np.full(n_items, k, dtype=np.int32)
        place[items] = np.arange(k)
        codes = place[codes]
        if codes.max() == k or np.any(block.counts != k):
            return ()
    scores = block.scores
    right = np.zeros((k + 1, k))
    together = np.zeros((k, k))
    size = min(max(CELLS // k, 1), EXACT)
    for start in range(0, block.n_persons, size):
        stop = min(start + size, block.n_persons)
        bounds = block.bounds[2 * start : 2 * stop + 1]
        codes_here = codes[bounds[0] : bounds[-1]]
        ones = shared_ones(len(codes_here), np.float32)
        right_and_wrong = csr((bounds - bounds[0]).astype(np.int32), codes_here, ones, k)
        x = right_and_wrong.toarray()[::2]  # every second row: right, and wrong
        has_score = np.zeros((stop - start, k + 1), dtype=np.float32)
        has_score[np.arange(stop - start), scores[start:stop]] = 1
        right += has_score.T @ x
        together += x.T @ x
    return np.bincount(scores, minlength=k + 1).astype(np.float64), right, together
