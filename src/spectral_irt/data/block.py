"""Block: the answers of whole people, packed; and thresholds: which item each belongs to.

An answer x to an item with categories 0 to K is an entry among the ones of its person for the threshold that it passed
last (if x > 0), and an entry among the zeros for the next one (if x < K). A right or wrong answer is one entry. On its
way into a block an answer is one number, its *slot*: the item, followed by the bits of the category. Person and slot
are one number again, and sorting those brings equal items of a person together: repeated answers are settled there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.engine.base import budget
from spectral_irt.errors import DuplicateResponseError, ReadError
from spectral_irt.numerics import add_columns, counting_sort, csr, fixed, shared_ones, taken_rows
from spectral_irt.text import NAMED, first_of, listed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.integer[Any]]
Columns = tuple[Any, ...]  # arrays of one length, None where there is none: person, slot, option chosen, time
Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")

# Responses in a block: small enough that its temporary arrays stay in the cache of one core, large enough that the
# per-item sums it returns cost little beside it, and that a few blocks keep every thread busy.
BLOCK_RESPONSES = 500_000
CACHED = 32_768  # answers whose numbers fit in a core's cache together


@dataclass(frozen=True, eq=False)
class Block:
    """Whole people, packed in four bytes a response: person `l` answered `items[indptr[l]:indptr[l + 1]]`, those before
    `split[l]` right (1) and the rest wrong (0), item codes increasing within each."""

    indptr: Ints  # people + 1
    split: Ints  # where the zeros of each person begin
    items: NDArray[np.int32]
    options: NDArray[np.uint8] | None = None  # with an answer key: what was chosen, a code into `Responses.raw.options`
    _cache: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)
    n_persons: int = field(init=False)
    n_responses: int = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update(n_persons=len(self.split), n_responses=len(self.items))

    @property
    def counts(self) -> Ints:
        """n_l: how many items each person answered."""
        return np.diff(self.indptr)

    @property
    def scores(self) -> Ints:
        """s_l: how many of them right."""
        return self.split - self.indptr[:-1]

    @property
    def informative(self) -> NDArray[np.bool_]:
        """People with both a right and a wrong answer; the others carry no information about difficulty."""
        return (self.scores > 0) & (self.scores < self.counts)

    @property
    def bounds(self) -> Ints:
        """Row limits of the matrix with two rows per person: row 2l the right answers, row 2l + 1 the wrong ones."""
        bounds = np.empty(2 * self.n_persons + 1, dtype=np.int64)
        bounds[0:-1:2] = self.indptr[:-1]
        bounds[1::2] = self.split
        bounds[-1] = self.indptr[-1]
        return bounds

    def pattern(self, n_items: int) -> sparse.csr_array:
        """The 0/1 matrix with two rows per person (right, wrong) and a column per item; the items are not copied."""
        found = self._cache.get(("pattern", n_items))
        if found is None:
            bounds, ones = self.bounds.astype(np.int32), shared_ones(self.n_responses)
            found = budget().keep(csr(bounds, np.asarray(self.items), ones, n_items))
            self._cache["pattern", n_items] = found
        return found

    def halves(self, n_items: int) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Two 0/1 matrices, people x items: right answers, and wrong answers. Made once, four bytes a response."""
        found: tuple[sparse.csr_array, sparse.csr_array] | None = self._cache.get(("halves", n_items))
        if found is None:
            right, made = self.right(), []
            for sizes, items in ((self.scores, self.items[right]), (self.counts - self.scores, self.items[~right])):
                indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
                made.append(csr(indptr, items, shared_ones(len(items)), n_items))
            found = budget().keep(tuple(made))
            self._cache["halves", n_items] = found  # both at once: another thread may look in between
        return found

    def person_of_response(self) -> Ints:
        return np.repeat(np.arange(self.n_persons), self.counts)

    def right(self) -> NDArray[np.bool_]:
        """Whether each response is right, in the order of `items`."""
        return np.repeat(np.tile([True, False], self.n_persons), np.diff(self.bounds))

    def take(self, persons: Ints) -> Block:
        indptr, items, options = taken_rows(self.indptr, persons, self.items, self.options)
        return Block(indptr, indptr[:-1] + self.scores[persons], items, options)

    def keep_items(self, new_code: NDArray[np.int32]) -> Block:
        """The block with item `i` renamed `new_code[i]`, and dropped where that is negative."""
        codes = new_code[self.items]
        kept = codes >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        options = None if self.options is None else self.options[kept]
        return Block(before[self.indptr], before[self.split], codes[kept], options)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_cache": {}}


def spans(starts: Ints, counts: Ints) -> Ints:
    """The positions start, start + 1, ... of each run, one run after the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def person_chunks(indptr: Ints, size: int = BLOCK_RESPONSES) -> Iterator[tuple[int, int]]:
    """Consecutive runs of whole people with about `size` entries each (one person may exceed it)."""
    n_persons = len(indptr) - 1
    start = 0
    while start < n_persons:
        stop = int(np.searchsorted(indptr, indptr[start] + size, side="right")) - 1
        stop = min(max(stop, start + 1), n_persons)
        yield start, stop
        start = stop


EMPTY = Block(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))  # nobody


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Which item each threshold belongs to, from K_i = `max_score` of each item, which has the categories 0 to K_i."""

    max_score: Ints
    widest: int = 0  # the highest of them; 1: all are; 0: see there, which takes a while for many items
    n_items: int = field(init=False)
    n_entries: int = field(init=False)
    bits: int = field(init=False)  # that a category takes
    binary: bool = field(init=False)  # every answer is right or wrong: an entry is an answer, and a threshold an item

    def __post_init__(self) -> None:
        n_items, widest = len(self.max_score), self.widest or int(self.max_score.max(initial=1))
        n_entries = n_items if self.widest == 1 else int(self.max_score.sum())
        vars(self).update(widest=widest, bits=widest.bit_length(), binary=widest == 1)
        vars(self).update(n_items=n_items, n_entries=n_entries)

    @classmethod
    def ones(cls, n_items: int) -> Thresholds:
        """Items that are answered right or wrong; they take no space."""
        return cls(np.broadcast_to(np.int64(1), n_items), 1)

    @cached_property
    def first(self) -> Ints:
        return fixed(np.cumsum(self.max_score) - self.max_score)

    @cached_property
    def item(self) -> Ints:
        return fixed(np.repeat(np.arange(self.n_items), self.max_score))

    @cached_property
    def level(self) -> Ints:
        """k = 1, ..., K_i of each threshold."""
        return fixed(np.arange(self.n_entries) - self.first[self.item] + 1)

    @cached_property
    def below(self) -> NDArray[np.bool_]:
        """Thresholds with another of the same item below them."""
        return fixed(self.level > 1)

    def sum(self, values: Floats) -> Floats:
        return np.bincount(self.item, weights=values, minlength=self.n_items).astype(np.float64, copy=False)

    def mean(self, values: Floats) -> Floats:
        return self.sum(values) / np.maximum(self.max_score, 1)

    def averaging(self) -> Floats:
        """Weights of the thresholds in the mean of all items' locations."""
        return 1 / (self.n_items * self.max_score[self.item])

    def table(self, values: Floats, fill: float) -> Floats:
        """Items x levels, filled where an item has fewer."""
        out = np.full((self.n_items, self.widest), fill)
        out[self.item, self.level - 1] = values
        return out

    def cumulated(self, thresholds: Floats) -> Floats:
        """Items x categories 0 to K: sums of the thresholds up to each category, +inf where an item has fewer."""
        total = np.cumsum(self.table(thresholds, np.inf), axis=1)
        return np.concatenate([np.zeros((self.n_items, 1)), total], axis=1)

    def at_or_above(self, values: Floats) -> Floats:
        """The sums over each threshold and the higher ones of its item."""
        if self.binary:
            return values
        total = np.append(np.cumsum(values[::-1])[::-1], 0.0)
        return total[:-1] - total[(self.first + self.max_score)[self.item]]

    def of_items(self, items: Ints) -> Ints:
        return spans(self.first[items], self.max_score[items])


BINARY = Thresholds.ones(1)  # stands for items that are right or wrong, however many they are


def answered_items(block: Block, layout: Thresholds) -> tuple[Ints, NDArray[np.int32], Ints]:
    """Where each person's answers begin, and the item and category of each answer."""
    if layout.binary:
        return block.indptr, np.asarray(block.items), block.right().astype(np.int64)
    one = block.right() | ~layout.below[block.items]  # what it passed last, or the first threshold, which it failed
    code = block.items[one]
    indptr = np.concatenate([[0], np.cumsum(one)])[block.indptr]
    return indptr, layout.item[code].astype(np.int32), np.where(block.right()[one], layout.level[code], 0)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a person's weight depends on: the items answered, and the total score; and the category of each answer,
    where K > 1."""

    indptr: Ints
    items: NDArray[np.int32]
    counts: Ints
    scores: Ints
    max_scores: Ints
    category: NDArray[np.int16] | None = None

    @property
    def n_persons(self) -> int:
        return len(self.counts)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Neither the lowest nor the highest total score, on two items at least."""
        return (self.scores > 0) & (self.scores < self.max_scores) & (self.counts > 1)

    def part(self, start: int, stop: int) -> Rows:
        low, high, mine = self.indptr[start], self.indptr[stop], slice(start, stop)
        category = None if self.category is None else self.category[low:high]
        of_people = (self.counts[mine], self.scores[mine], self.max_scores[mine])
        return Rows(self.indptr[start : stop + 1] - low, self.items[low:high], *of_people, category)

    def take(self, people: Ints) -> Rows:
        indptr, items, category = taken_rows(self.indptr, people, self.items, self.category)
        return Rows(indptr, items, self.counts[people], self.scores[people], self.max_scores[people], category)

    def sums(self, values: NDArray[np.generic]) -> Floats:
        out = np.zeros(len(self.counts))
        some = np.flatnonzero(self.counts)
        if len(some):
            out[some] = np.add.reduceat(values, self.indptr[some])
        return out


def rows_of(block: Block, layout: Thresholds) -> Rows:
    """The rows of a block: its own arrays where answers are right or wrong, else made once."""
    if layout.binary:
        return Rows(block.indptr, np.asarray(block.items), block.counts, block.scores, block.counts)
    found: Rows | None = block._cache.get(("rows", layout.n_entries))
    if found is None:
        indptr, items, category = answered_items(block, layout)
        before = np.concatenate([[0], np.cumsum(category)])
        size = np.concatenate([[0], np.cumsum(layout.max_score[items])])
        scores, most = np.diff(before[indptr]), np.diff(size[indptr])
        made = Rows(indptr, items, np.diff(indptr), scores, most, category.astype(np.int16))
        found = block._cache["rows", layout.n_entries] = budget().keep(made)
    return found


def of_people(block: Block, thresholds: Thresholds, name: str) -> Ints:
    """The `counts`, `scores` or `max_scores` of each person."""
    found: Ints = getattr(rows_of(block, thresholds), name)
    return found


def kinds_of_people(block: Block, thresholds: Thresholds) -> Ints:
    """How many have no answer, a single one, several and all right, several and all wrong, and a mixed score."""
    rows = rows_of(block, thresholds)
    n, s, several = rows.counts, rows.scores, rows.counts > 1
    kinds = (n == 0, n == 1, several & (s == rows.max_scores), several & (s == 0), rows.informative)
    return np.count_nonzero(kinds, axis=1)


def pair_work(block: Block, thresholds: Thresholds) -> float:
    return float((rows_of(block, thresholds).counts.astype(np.float64) ** 2).sum())


def answers(block: Block, person: Ints, thresholds: Thresholds) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
    indptr, item, category = answered_items(block, thresholds)
    return np.repeat(person, np.diff(indptr)), item, category.astype(bool) if thresholds.binary else category


n_persons, n_responses, items, options = map(attrgetter, ("n_persons", "n_responses", "items", "options"))


def item_counts(block: Block, n_items: int) -> tuple[Ints, Ints]:
    """How many answered each item, and how many of them right; by sparse sums, in a third of the time of counting."""
    cells = (2 * block.n_persons, block.bounds.astype(np.int32), np.asarray(block.items))
    halves, ones = np.zeros((2, n_items)), shared_ones(block.n_responses)
    for half, total in enumerate(halves):  # right, and wrong
        add_columns(cells, ones, np.tile(np.arange(2.0) == half, block.n_persons).astype(np.float64), total)
    right, wrong = halves.astype(np.int64)
    return right + wrong, right


def item_bytes(block: Block, whole: bool) -> bytes:
    codes = np.ascontiguousarray(block.items).tobytes()
    return codes if whole else hashlib.blake2b(codes, digest_size=16).digest()


@dataclass
class Repeats:
    """Repeated (person, item) pairs met while packing: which answer counts, how many are extra, the first few pairs."""

    counts: Duplicates = "error"
    extra: int = 0
    pairs: int = 0
    first: list[tuple[int, int]] = field(default_factory=list)

    def add(self, persons: Ints, items: Ints) -> None:
        self.extra += len(persons)
        pairs = np.unique(np.stack([persons, items], axis=1), axis=0)
        self.pairs += len(pairs)
        self.first += [(int(u), int(i)) for u, i in pairs[: NAMED - len(self.first)]]

    def complain(self, persons: Any, items: Any, source: str) -> None:
        """An error, unless one of them was asked for."""
        if self.counts == "error":
            first = [(persons[u], items[i]) for u, i in self.first]
            remedy = "Say `duplicates='first' or 'last'` to keep one answer of each; or `facets=` with the column "
            raise repeated(source, self.pairs, first, f"{remedy}of the raters, if there are several.")


def repeated(source: str, pairs: int, first: Iterable[tuple[Any, Any]], remedy: str) -> DuplicateResponseError:
    shown = first_of((f"({listed([person])}, {listed([item])})" for person, item in first), pairs)
    what = "pair is" if pairs == 1 else "pairs are"
    problem = f"{source}: {pairs:,} (person, item) {what} answered more than once: {shown}."
    return DuplicateResponseError(problem, remedy)


def slots_of(item: Codes, category: Any, bits: int) -> NDArray[np.int32]:
    """Item and category as one number of 32 bits, so many of them for the category; an error where that is too few."""
    if len(item) and int(item.max()) >> (31 - bits):
        raise ReadError(
            f"there are more than {1 << (31 - bits):,} items, the most that answers in up to {1 << bits:,} categories "
            "can have. Read the items in parts, or say which answers are right (`threshold=`, `correct=`): that leaves "
            f"room for {1 << 30:,}."
        )
    slots = item.astype(np.int32) << np.int32(bits)
    slots |= category
    return slots


def at(columns: Columns, where: Any) -> Columns:
    return tuple(None if each is None else each[where] for each in columns)


def pack_block(rows: Columns, persons: range, thresholds: Thresholds = BINARY, repeats: Repeats | None = None) -> Block:
    """One block of these people: by person, then right before wrong, then item. Person codes count from 0. Without
    `repeats` none is repeated. Arrays are changed in place, and let go at once."""
    bits, n_persons, with_options = thresholds.bits, len(persons), rows[2] is not None
    key, slot_bits, low = _sorted_keys(rows, bits, persons, repeats or Repeats())
    del rows
    chosen: NDArray[Any] = (key & 0xFF).astype(np.uint8) if with_options else np.empty(len(key), dtype=np.int8)
    key >>= low
    person = (key >> slot_bits).astype(np.int32)
    key &= (1 << slot_bits) - 1
    slots = key.astype(np.int32)
    del key
    if thresholds.binary:
        half = np.left_shift(person, 1, out=person)  # of a person: right, then wrong
        half += (slots & 1) == 0
        slots >>= 1
        ends, items, chosen = counting_sort(half, 2 * n_persons, slots, chosen)
        bounds = ends.astype(np.int64)
        return Block(bounds[::2].copy(), bounds[1::2].copy(), items, chosen if with_options else None)
    item = slots >> bits
    slots &= (1 << bits) - 1
    passed, failed = slots > 0, slots < thresholds.max_score.astype(np.int32)[item]
    slots += thresholds.first.astype(np.int32)[item]
    del item
    limits = np.arange(n_persons + 1, dtype=np.int32)
    n_right, n_wrong = (np.searchsorted(person[mask], limits) for mask in (passed, failed))
    del person
    indptr = n_right + n_wrong
    options = np.empty(indptr[-1], dtype=np.uint8) if with_options else None
    block = Block(indptr, indptr[:-1] + np.diff(n_right), np.empty(indptr[-1], dtype=np.int32), options)
    right = block.right()
    block.items[~right] = slots[failed]  # the threshold that it failed next ...
    slots -= 1
    block.items[right] = slots[passed]  # ... and the one that it passed last, where there are
    if options is not None:
        options[right], options[~right] = chosen[passed], chosen[failed]
    return block


def _sorted_keys(rows: Columns, bits: int, persons: range, repeats: Repeats) -> tuple[NDArray[Any], int, int]:
    """Person, slot and option as one number, of 32 bits if it can be (sorted twice as fast), in order; and the bits of
    the latter two. Of repeated answers one, where that is asked for."""
    person, slots, options, when = rows
    slot_bits = max(int(slots.max(initial=1)).bit_length(), bits)
    low = 0 if options is None else 8
    dtype = np.dtype(np.uint32 if len(persons).bit_length() + slot_bits + low <= 32 else np.uint64)
    key: NDArray[Any] = person.astype(dtype)
    key <<= slot_bits
    key |= slots.view(f"u{slots.itemsize}")
    if options is not None:
        key <<= low
        key |= options
    pair = key >> (bits + low)  # person and item
    if np.any(pair[1:] <= pair[:-1]):
        key.sort()
        np.right_shift(key, bits + low, out=pair)
        again = pair[1:][pair[1:] == pair[:-1]]
        if len(again):
            item = again & ((1 << (slot_bits - bits)) - 1)
            repeats.add((again >> (slot_bits - bits)).astype(np.int64) + persons.start, item.astype(np.int64))
            if repeats.counts != "error":
                pair = (person.astype(np.int64) << 32) + (slots >> bits)
                order = np.argsort(pair, kind="stable") if when is None else np.lexsort((when, pair))
                new = np.concatenate([[True], np.diff(pair[order]) != 0])
                kept = new if repeats.counts == "first" else np.concatenate([new[1:], [True]])
                return _sorted_keys(at(rows, order[kept]), bits, persons, repeats)
    return key, slot_bits, low
