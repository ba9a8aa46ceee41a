"""Block: the responses of whole people, packed; and thresholds: which item each belongs to.

An answer x to an item with categories 0 to K is an entry among the ones of its person for the threshold that it passed
last (if x > 0), and an entry among the zeros for the next one (if x < K). A right or wrong answer is one entry. On its
way into a block an answer is one number, its *slot*: the item, followed by the bits of the category. Person and slot
are one number again, and sorting those brings equal items of a person together: repeated answers are settled there.

`docs/design.md` draws it ("Words for parts of the data"). `ResponsesBuilder` packs what is read (`pack_block`), and
every kernel gets a `Block` at a time; those that need whole answers take its `Rows`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.engine.base import budget
from spectral_irt.errors import DuplicateResponseError, ReadError
from spectral_irt.numerics import add_columns, chosen_or_none, counting_sort, csr, read_only, shared_ones, taken_rows
from spectral_irt.text import NAMED, first_of, listed, one_or_many

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.integer[Any]]
Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")

# Responses in a block: small enough that its temporary arrays stay in the cache of one core, large enough that the
# per-item sums it returns cost little beside it, and that a few blocks keep every thread busy.
BLOCK_RESPONSES = 500_000
CACHED = 32_768  # answers whose numbers fit in a core's cache together


class AnswerRows(NamedTuple):
    """Answers in any order, arrays of one length: the code of the person, the slot (item and category), the option
    chosen where there is a key, and a number that orders repeated answers."""

    person: NDArray[Any]
    slot: NDArray[Any]
    option: NDArray[np.uint8] | None = None
    time: NDArray[Any] | None = None

    def take(self, where: Any) -> AnswerRows:
        """Some of them, by position, mask or slice."""
        return self.each(lambda column: column[where])

    def each(self, change: Callable[[NDArray[Any]], Any]) -> AnswerRows:
        """With every column changed that there is."""
        columns = [None if column is None else change(column) for column in self]
        return AnswerRows(*columns)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Block:
    """Whole people, packed in four bytes a response: person `l` answered `items[indptr[l]:indptr[l + 1]]`, those before
    `split[l]` right (1) and the rest wrong (0), item codes increasing within each."""

    indptr: Ints  # people + 1
    split: Ints  # where the zeros of each person begin
    items: NDArray[np.int32]
    options: NDArray[np.uint8] | None = None  # with an answer key: what was chosen, a code into `Responses.raw.options`
    _cache: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_persons(self) -> int:
        return len(self.split)

    @property
    def n_responses(self) -> int:
        return len(self.items)

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
        matrix = self._cache.get(("pattern", n_items))
        if matrix is None:
            ones = shared_ones(self.n_responses)
            matrix = budget().keep(csr(self.bounds.astype(np.int32), np.asarray(self.items), ones, n_items))
            self._cache["pattern", n_items] = matrix
        return matrix

    def halves(self, n_items: int) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Two 0/1 matrices, people x items: right answers, and wrong answers. Made once, four bytes a response."""
        halves: tuple[sparse.csr_array, sparse.csr_array] | None = self._cache.get(("halves", n_items))
        if halves is None:
            right = self.right()
            halves = (
                _half(self.scores, self.items[right], n_items),
                _half(self.counts - self.scores, self.items[~right], n_items),
            )
            halves = budget().keep(halves)
            self._cache["halves", n_items] = halves  # both at once: another thread may look in between
        return halves

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
        stays = codes >= 0
        n_before = np.concatenate([[0], np.cumsum(stays)])
        options = chosen_or_none(self.options, stays)
        return Block(n_before[self.indptr], n_before[self.split], codes[stays], options)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_cache": {}}


def _half(counts: Ints, items: NDArray[np.int32], n_items: int) -> sparse.csr_array:
    """A 0/1 matrix, people x items, of so many items of each person."""
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return csr(indptr, items, shared_ones(len(items)), n_items)


def spans(starts: Ints, counts: Ints) -> Ints:
    """The positions start, start + 1, ... of each run, one run after the other."""
    ends = np.cumsum(counts)
    total = ends[-1] if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)


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
    """Which item each threshold belongs to, from K_i = `max_score` of each item, which has the categories 0 to K_i.

    `all_ones` says that every K_i is 1, without a look at them: there may be millions.
    """

    max_score: Ints
    all_ones: bool = False

    @classmethod
    def ones(cls, n_items: int) -> Thresholds:
        """Items that are answered right or wrong; they take no space."""
        return cls(np.broadcast_to(np.int64(1), n_items), all_ones=True)

    @property
    def n_items(self) -> int:
        return len(self.max_score)

    @cached_property
    def n_entries(self) -> int:
        """How many thresholds all items have."""
        return self.n_items if self.all_ones else int(self.max_score.sum())

    @cached_property
    def widest(self) -> int:
        """The highest K_i."""
        return 1 if self.all_ones else int(self.max_score.max(initial=1))

    @property
    def bits(self) -> int:
        """That a category takes."""
        return self.widest.bit_length()

    @property
    def binary(self) -> bool:
        """Whether every answer is right or wrong: an entry is an answer, and a threshold an item."""
        return self.widest == 1

    @cached_property
    def first(self) -> Ints:
        return read_only(np.cumsum(self.max_score) - self.max_score)

    @cached_property
    def item(self) -> Ints:
        return read_only(np.repeat(np.arange(self.n_items), self.max_score))

    @cached_property
    def level(self) -> Ints:
        """k = 1, ..., K_i of each threshold."""
        return read_only(np.arange(self.n_entries) - self.first[self.item] + 1)

    @cached_property
    def below(self) -> NDArray[np.bool_]:
        """Thresholds with another of the same item below them."""
        return read_only(self.level > 1)

    def sum(self, values: Floats) -> Floats:
        return np.bincount(self.item, weights=values, minlength=self.n_items).astype(np.float64, copy=False)

    def mean(self, values: Floats) -> Floats:
        return self.sum(values) / np.maximum(self.max_score, 1)

    def mean_weights(self) -> Floats:
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
    right = block.right()
    # One entry of each answer: the threshold that it passed last, or the first one, which it failed.
    is_answer = right | ~layout.below[block.items]
    entry = block.items[is_answer]
    indptr = np.concatenate([[0], np.cumsum(is_answer)])[block.indptr]
    category = np.where(right[is_answer], layout.level[entry], 0)
    return indptr, layout.item[entry].astype(np.int32), category


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
        """The people from one number to before the other."""
        low = self.indptr[start]
        high = self.indptr[stop]
        return Rows(
            indptr=self.indptr[start : stop + 1] - low,
            items=self.items[low:high],
            counts=self.counts[start:stop],
            scores=self.scores[start:stop],
            max_scores=self.max_scores[start:stop],
            category=chosen_or_none(self.category, slice(low, high)),
        )

    def take(self, people: Ints) -> Rows:
        indptr, items, category = taken_rows(self.indptr, people, self.items, self.category)
        return Rows(
            indptr=indptr,
            items=items,
            counts=self.counts[people],
            scores=self.scores[people],
            max_scores=self.max_scores[people],
            category=category,
        )

    def sums(self, values: NDArray[np.generic]) -> Floats:
        out = np.zeros(len(self.counts))
        some = np.flatnonzero(self.counts)
        if len(some):
            out[some] = np.add.reduceat(values, self.indptr[some])
        return out


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """The rows of several blocks, one after the other."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([part.counts for part in parts])
    category = None
    if parts[0].category is not None:
        category = np.concatenate([part.category for part in parts if part.category is not None])
    return Rows(
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        items=np.concatenate([part.items for part in parts]),
        counts=counts,
        scores=np.concatenate([part.scores for part in parts]),
        max_scores=np.concatenate([part.max_scores for part in parts]),
        category=category,
    )


def rows_of(block: Block, layout: Thresholds) -> Rows:
    """The rows of a block: its own arrays where answers are right or wrong, else made once."""
    if layout.binary:
        return Rows(block.indptr, np.asarray(block.items), block.counts, block.scores, block.counts)
    rows: Rows | None = block._cache.get(("rows", layout.n_entries))
    if rows is None:
        indptr, items, category = answered_items(block, layout)
        score_before = np.concatenate([[0], np.cumsum(category)])
        max_score_before = np.concatenate([[0], np.cumsum(layout.max_score[items])])
        rows = budget().keep(
            Rows(
                indptr=indptr,
                items=items,
                counts=np.diff(indptr),
                scores=np.diff(score_before[indptr]),
                max_scores=np.diff(max_score_before[indptr]),
                category=category.astype(np.int16),
            )
        )
        block._cache["rows", layout.n_entries] = rows
    return rows


def of_people(block: Block, thresholds: Thresholds, name: str) -> Ints:
    """The `counts`, `scores` or `max_scores` of each person."""
    values: Ints = getattr(rows_of(block, thresholds), name)
    return values


def kinds_of_people(block: Block, thresholds: Thresholds) -> Ints:
    """How many have no answer, a single one, several and all right, several and all wrong, and a mixed score."""
    rows = rows_of(block, thresholds)
    several = rows.counts > 1
    kinds = (
        rows.counts == 0,
        rows.counts == 1,
        several & (rows.scores == rows.max_scores),
        several & (rows.scores == 0),
        rows.informative,
    )
    return np.count_nonzero(kinds, axis=1)


def pair_work(block: Block, thresholds: Thresholds) -> float:
    return float((rows_of(block, thresholds).counts.astype(np.float64) ** 2).sum())


def answers(block: Block, person: Ints, thresholds: Thresholds) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
    """Person, item and category of each answer: True for right where answers are right or wrong."""
    indptr, item, category = answered_items(block, thresholds)
    if thresholds.binary:
        category = category.astype(bool)
    return np.repeat(person, np.diff(indptr)), item, category


# Fields of a block as kernels.
n_persons = attrgetter("n_persons")
n_responses = attrgetter("n_responses")
items = attrgetter("items")
options = attrgetter("options")


def item_counts(block: Block, n_items: int) -> tuple[Ints, Ints]:
    """How many answered each item, and how many of them right; by sparse sums, in a third of the time of counting."""
    rows = (2 * block.n_persons, block.bounds.astype(np.int32), np.asarray(block.items))
    ones = shared_ones(block.n_responses)
    totals = np.zeros((2, n_items))
    for half, total in enumerate(totals):  # rows of right answers, and of wrong ones
        in_half = np.tile(np.arange(2.0) == half, block.n_persons).astype(np.float64)
        add_columns(rows, ones, in_half, total)
    right, wrong = totals.astype(np.int64)
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
            remedy = "If several raters gave them, say `facets=` with the column of the raters; otherwise "
            raise duplicate_error(
                source, self.pairs, first, f"{remedy}`duplicates='first' or 'last'` keeps one answer of each."
            )


def duplicate_error(source: str, pairs: int, first: Iterable[tuple[Any, Any]], remedy: str) -> DuplicateResponseError:
    shown = first_of((f"({listed([person])}, {listed([item])})" for person, item in first), pairs)
    what = one_or_many(pairs, "pair is", "pairs are")
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


def pack_block(
    rows: AnswerRows, persons: range, thresholds: Thresholds = BINARY, repeats: Repeats | None = None
) -> Block:
    """One block of these people: by person, then right before wrong, then item. Person codes count from 0. Without
    `repeats` none is repeated. Arrays are changed in place, and let go at once."""
    bits = thresholds.bits
    n_persons = len(persons)
    with_options = rows.option is not None
    key, slot_bits, option_bits = _sorted_keys(rows, bits, persons, repeats or Repeats())
    del rows
    chosen: NDArray[Any] = (key & 0xFF).astype(np.uint8) if with_options else np.empty(len(key), dtype=np.int8)
    key >>= option_bits
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
        options = chosen if with_options else None
        return Block(bounds[::2].copy(), bounds[1::2].copy(), items, options)
    item = slots >> bits
    slots &= (1 << bits) - 1
    passed = slots > 0  # a first threshold, at least
    failed = slots < thresholds.max_score.astype(np.int32)[item]
    slots += thresholds.first.astype(np.int32)[item]
    del item
    limits = np.arange(n_persons + 1, dtype=np.int32)
    n_right = np.searchsorted(person[passed], limits)
    n_wrong = np.searchsorted(person[failed], limits)
    del person
    indptr = n_right + n_wrong
    options = np.empty(indptr[-1], dtype=np.uint8) if with_options else None
    block = Block(indptr, indptr[:-1] + np.diff(n_right), np.empty(indptr[-1], dtype=np.int32), options)
    right = block.right()
    block.items[~right] = slots[failed]  # the threshold that it failed next ...
    slots -= 1
    block.items[right] = slots[passed]  # ... and the one that it passed last, where there are
    if options is not None:
        options[right] = chosen[passed]
        options[~right] = chosen[failed]
    return block


class SortedKeys(NamedTuple):
    """Person, slot and option as one number each, in order; and how many bits slots and options take in it."""

    key: NDArray[Any]
    slot_bits: int
    option_bits: int


def _sorted_keys(rows: AnswerRows, bits: int, persons: range, repeats: Repeats) -> SortedKeys:
    """The rows as numbers, of 32 bits if they can be (sorted twice as fast). Of repeated answers one, where that is
    asked for."""
    slot_bits = max(int(rows.slot.max(initial=1)).bit_length(), bits)
    option_bits = 0 if rows.option is None else 8
    all_bits = len(persons).bit_length() + slot_bits + option_bits
    width = np.uint32 if all_bits <= 32 else np.uint64
    key: NDArray[Any] = rows.person.astype(np.dtype(width))
    key <<= slot_bits
    key |= rows.slot.view(f"u{rows.slot.itemsize}")
    if rows.option is not None:
        key <<= option_bits
        key |= rows.option
    pair = key >> (bits + option_bits)  # person and item
    if np.any(pair[1:] <= pair[:-1]):
        key.sort()
        np.right_shift(key, bits + option_bits, out=pair)
        repeated_pairs = pair[1:][pair[1:] == pair[:-1]]
        if len(repeated_pairs):
            item_bits = slot_bits - bits
            item = repeated_pairs & ((1 << item_bits) - 1)
            repeats.add((repeated_pairs >> item_bits).astype(np.int64) + persons.start, item.astype(np.int64))
            if repeats.counts != "error":
                one_each = rows.take(_first_or_last(rows, bits, repeats.counts))
                return _sorted_keys(one_each, bits, persons, repeats)
    return SortedKeys(key, slot_bits, option_bits)


def _first_or_last(rows: AnswerRows, bits: int, counts: Duplicates) -> Ints:
    """Positions of the answers that count: the first, or the last, of a person to an item."""
    pair = (rows.person.astype(np.int64) << 32) + (rows.slot >> bits)
    order = np.argsort(pair, kind="stable") if rows.time is None else np.lexsort((rows.time, pair))
    is_first = np.concatenate([[True], np.diff(pair[order]) != 0])
    if counts == "first":
        return order[is_first]
    return order[np.concatenate([is_first[1:], [True]])]
