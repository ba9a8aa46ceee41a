"""From answers in any order to packed blocks. An answer on its way in is one number, its *slot*: the item, followed by
the bits of the category. Rows are first dealt out to blocks, a counting pass; within a block, person and slot are one
number, and sorting those brings equal items of a person together. Repeated answers are settled there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import BINARY, Block, Ints, Thresholds, person_chunks
from spectral_irt.engine.base import budget
from spectral_irt.engine.spill import give_back_freed
from spectral_irt.errors import DuplicateResponseError, ReadError
from spectral_irt.numerics import counting_sort
from spectral_irt.text import NAMED, first_of, listed

Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")
RUNS = 8  # of blocks whose rows lie together while they wait to be packed


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
        if self.extra and self.counts == "error":
            first = [(persons[u], items[i]) for u, i in self.first]
            remedy = "Say `duplicates='first' or 'last'` to keep one answer of each; or `facets=` with the column "
            raise repeated(source, self.pairs, first, f"{remedy}of the raters, if there are several.")


def repeated(source: str, pairs: int, first: Iterable[tuple[Any, Any]], remedy: str) -> DuplicateResponseError:
    shown = first_of((f"({listed([person])}, {listed([item])})" for person, item in first), pairs)
    what = "pair is" if pairs == 1 else "pairs are"
    problem = f"{source}: {pairs:,} (person, item) {what} answered more than once: {shown}."
    return DuplicateResponseError(f"{problem} {remedy}")


def pack_block(indptr: Ints, slots: NDArray[np.int32], thresholds: Thresholds = BINARY) -> Block:
    """One block from the slots of its people, none of them repeated."""
    person = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    return _packed(AnswerRows(person, slots), thresholds, range(len(indptr) - 1), Repeats())


def slots_of(item: NDArray[np.integer[Any]], category: Any, bits: int) -> NDArray[np.int32]:
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


class AnswerRows(NamedTuple):
    """Answers in order of arrival: person and slot; where kept, the option chosen, and numbers that order them."""

    person: NDArray[np.int32]
    slots: NDArray[np.int32]
    options: NDArray[np.uint8] | None = None
    when: NDArray[Any] | None = None

    def at(self, where: Any) -> AnswerRows:
        person, slots, options, when = self
        options, when = (None if each is None else each[where] for each in (options, when))
        return AnswerRows(person[where], slots[where], options, when)


def pack_rows(pieces: Iterable[AnswerRows], counts: Ints, layout: Thresholds, repeats: Repeats) -> Iterator[Block]:
    """Blocks from pieces of rows in any order, in memory while the budget has room, else mapped from a temporary file;
    `counts` are the answers of each person. Of repeated answers the first is the one that arrived first, or has the
    lowest `when`."""
    chunks = list(person_chunks(limits_of(counts)))
    starts = np.array([start for start, _ in chunks])
    block_of = np.repeat(np.arange(len(chunks), dtype=np.int32), [stop - start for start, stop in chunks])
    # Rows lie in runs of blocks, which are let go as their blocks are packed.
    n_runs = min(len(chunks), RUNS)
    runs = np.linspace(0, len(chunks), n_runs + 1).astype(int).tolist()
    dealt, ends = SpillColumns(), []
    for piece in pieces:
        rows, limits = _dealt(piece, block_of, starts)
        for a, b in pairwise(runs):
            person, *others = rows.at(slice(limits[a], limits[b]))
            dealt.add(person - np.int32(starts[a]), *others)
        ends.append(limits)
        del piece, rows
    for r, (a, b) in enumerate(pairwise(runs)):
        if len(chunks) > 1:
            give_back_freed()
        for k in range(a, b):
            start, stop = chunks[k]
            places = [slice(limits[k] - limits[a], limits[k + 1] - limits[a]) for limits in ends]
            own = [AnswerRows(*rows).at(place) for rows, place in zip(dealt[r::n_runs], places, strict=True)]
            person, *others = _joined(own)
            rows = AnswerRows(person - np.int32(start - chunks[a][0]), *others)  # type: ignore[arg-type]
            del own, person, others
            block = _packed(rows, layout, range(start, stop), repeats)
            del rows
            yield budget().keep(block, IN_MEMORY)
        dealt[r::n_runs] = [()] * len(ends)


def limits_of(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _dealt(rows: AnswerRows, block_of: NDArray[np.int32], starts: Ints) -> tuple[AnswerRows, list[int]]:
    """The rows block by block, order of arrival kept within each; and where each block ends."""
    person, n_blocks = rows.person.astype(np.int32, copy=False), len(starts)
    if n_blocks == 1:
        return rows, [0, len(person)]
    if not np.any(person[1:] < person[:-1]):
        return rows, [*np.searchsorted(person, starts).tolist(), len(person)]
    block = block_of[person]
    if rows.options is None and rows.when is None:
        ends, person, slots = counting_sort(block, n_blocks, person, rows.slots)
        return AnswerRows(person, slots), ends.tolist()
    places = np.arange(len(block), dtype=np.int32)
    ends, order, _ = counting_sort(block, n_blocks, places, np.empty_like(block, dtype=np.int8))
    return rows.at(order), ends.tolist()


def _packed(rows: AnswerRows, thresholds: Thresholds, persons: range, repeats: Repeats) -> Block:
    """One block: by person, then right before wrong, then item. Arrays are changed in place, and let go at once."""
    bits, n_persons, with_options = thresholds.bits, len(persons), rows.options is not None
    key, slot_bits, low = _sorted_keys(rows, bits, persons, repeats)
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


def _sorted_keys(rows: AnswerRows, bits: int, persons: range, repeats: Repeats) -> tuple[NDArray[Any], int, int]:
    """Person, slot and option as one number, of 32 bits if it can be (sorted twice as fast), in order; and the bits of
    the latter two. Of repeated answers one, where that is asked for."""
    slot_bits = max(int(rows.slots.max(initial=1)).bit_length(), bits)
    low = 0 if rows.options is None else 8
    dtype = np.dtype(np.uint32 if len(persons).bit_length() + slot_bits + low <= 32 else np.uint64)
    key: NDArray[Any] = rows.person.astype(dtype)
    key <<= slot_bits
    key |= rows.slots.view(f"u{rows.slots.itemsize}")
    if rows.options is not None:
        key <<= low
        key |= rows.options
    pair = key >> (bits + low)  # person and item
    if np.any(pair[1:] <= pair[:-1]):
        key.sort()
        np.right_shift(key, bits + low, out=pair)
        again = pair[1:][pair[1:] == pair[:-1]]
        if len(again):
            person, item = again >> (slot_bits - bits), again & ((1 << (slot_bits - bits)) - 1)
            repeats.add(person.astype(np.int64) + persons.start, item.astype(np.int64))
            if repeats.counts != "error":
                return _sorted_keys(rows.at(_settle(rows, bits, repeats.counts)), bits, persons, repeats)
    return key, slot_bits, low


def _settle(rows: AnswerRows, bits: int, which: Duplicates) -> Ints:
    """Positions of one answer of each (person, item), in this order: the first or the last."""
    pair = (rows.person.astype(np.int64) << 32) + (rows.slots >> bits)
    order = np.argsort(pair, kind="stable") if rows.when is None else np.lexsort((rows.when, pair))
    new = np.concatenate([[True], np.diff(pair[order]) != 0])
    return order[new] if which == "first" else order[np.concatenate([new[1:], [True]])]


SHARE = 0.25  # of the room that the budget leaves; there are two of them at times, and half is for the blocks
IN_MEMORY = 0.5  # of the room, for packed answers: they are only read, so a mapped file serves them nearly as well

Column = Any  # an array, or None where there is none


class SpillColumns(list[tuple[Column, ...]]):
    """Pieces of several columns, in order, mapped from a file where memory does not suffice; None if absent."""

    held, spilled = 0, False  # bytes in memory; whether some pieces are not there

    def add(self, *columns: Column) -> None:
        columns = tuple(None if column is None else _narrow(column) for column in columns)
        size = sum(column.nbytes for column in columns if column is not None)
        if self.held + size <= SHARE * budget().room:
            self.held += size
        else:
            self.spilled = True
            columns = tuple(None if column is None else budget().spill.put(column) for column in columns)
        self.append(columns)

    def used_up(self, n_rows: float = 1) -> Iterator[tuple[Column, ...]]:
        """The pieces in order, several together until they have so many rows; each is let go when it was used."""
        waiting: list[tuple[Column, ...]] = []
        n_waiting = 0
        for k in range(len(self)):
            waiting.append(self[k])
            self[k] = ()
            n_waiting += len(waiting[-1][0])
            if k + 1 == len(self) or n_waiting >= n_rows:
                together, waiting, n_waiting = waiting, [], 0
                yield _joined(together)
                del together


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """A copy, made by this thread, whose memory serves it again; codes that fit have two bytes each."""
    fits = column.dtype == np.int32 and int(column.max(initial=0)) < 1 << 16
    return column.astype(np.uint16 if fits else column.dtype)


def _joined(pieces: Sequence[tuple[Column, ...]]) -> tuple[Column, ...]:
    if len(pieces) == 1:
        return pieces[0]
    return tuple(None if each[0] is None else np.concatenate(each) for each in zip(*pieces, strict=True))
