"""From answers in any order to packed blocks.

An answer on its way in is one number, its *slot*: `2 * item + wrong`. Rows of any order are first dealt out to blocks,
a counting pass that goes through memory in order; within a block, person and slot are one number, and sorting those
brings equal items of a person together. Repeated answers are settled there, and ones put before zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import _sparsetools

from spectral_irt.errors import NAMED, DuplicateResponseError, listed, option
from spectral_irt.responses.block import BLOCK_RESPONSES, Block, Ints
from spectral_irt.responses.pile import Pile

Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")
PIECE_ROWS = 1_000_000
CACHED = 32_768  # answers whose numbers fit in a core's cache together


@dataclass
class Repeats:
    """Repeated (person, item) pairs met while packing: how many extra answers, and the first few pairs."""

    extra: int = 0
    pairs: int = 0
    first: list[tuple[int, int]] | None = None

    def add(self, users: Ints, items: Ints) -> None:
        self.extra += len(users)
        pairs = np.unique(np.stack([users, items], axis=1), axis=0)
        self.pairs += len(pairs)
        known = self.first or []
        self.first = known + [(int(u), int(i)) for u, i in pairs[: NAMED - len(known)]]

    def join(self, others: Repeats, first_user: int) -> None:
        """Those met elsewhere, where this was the first person."""
        self.extra += others.extra
        self.pairs += others.pairs
        known = self.first or []
        self.first = known + [(first_user + u, i) for u, i in (others.first or [])[: NAMED - len(known)]]

    def complain(self, users: Any, items: Any, source: str) -> None:
        """Raise when there were any; `users` and `items` are the labels."""
        if not self.extra:
            return
        first = [f"({listed([users[u]])}, {listed([items[i]])})" for u, i in self.first or []]
        more = f" and {self.pairs - len(first):,} more" if self.pairs > len(first) else ""
        raise DuplicateResponseError(
            f"{source}: {self.pairs:,} (person, item) {'pair is' if self.pairs == 1 else 'pairs are'} answered more "
            f"than once: {', '.join(first)}{more}. Say ",
            option("duplicates", "first", "last"),
            " to keep one answer of each.",
        )


def user_chunks(indptr: Ints, size: int = BLOCK_RESPONSES) -> Iterator[tuple[int, int]]:
    """Consecutive runs of whole people with about `size` responses each (one person may exceed it)."""
    n_users = len(indptr) - 1
    start = 0
    while start < n_users:
        stop = int(np.searchsorted(indptr, indptr[start] + size, side="right")) - 1
        stop = min(max(stop, start + 1), n_users)
        yield start, stop
        start = stop


def pack(
    indptr: Ints,
    slots: NDArray[np.int32],
    options: NDArray[np.uint8] | None = None,
    *,
    duplicates: Duplicates,
    repeats: Repeats,
) -> tuple[Block, ...]:
    """Blocks from slots, person by person in arrival order.

    `options` are the codes of what was chosen, if that is kept.

    With `duplicates="error"` the repeats are only recorded; the caller, who knows the labels, complains.
    """
    blocks = []
    for start, stop in user_chunks(indptr):
        part = slice(int(indptr[start]), int(indptr[stop]))
        person = np.repeat(np.arange(stop - start, dtype=np.int32), np.diff(indptr[start : stop + 1]))
        rows = Rows(person, slots[part], None if options is None else options[part])
        blocks.append(_packed(rows, stop - start, start, duplicates, repeats))
    return tuple(blocks)


def pack_block(indptr: Ints, slots: NDArray[np.int32]) -> Block:
    """One block from the slots of its people, none of them repeated."""
    person = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    return _packed(Rows(person, slots), len(indptr) - 1, 0, "error", Repeats())


class Rows(NamedTuple):
    """Answers in the order of their arrival: the person and the slot of each; and, where they are kept, what was chosen
    and when it was (any numbers that order the answers)."""

    person: NDArray[np.int32]
    slots: NDArray[np.int32]
    options: NDArray[np.uint8] | None = None
    when: NDArray[Any] | None = None

    def at(self, where: Any) -> Rows:
        """Some of the rows: a slice, or positions."""
        person, slots, options, when = self
        options, when = (None if each is None else each[where] for each in (options, when))
        return Rows(person[where], slots[where], options, when)


def pack_rows(pieces: Iterable[Rows], counts: Ints, *, duplicates: Duplicates, repeats: Repeats) -> Iterator[Block]:
    """Blocks from pieces of rows in any order; `counts` are the answers of each person.

    An answer that comes twice counts as it arrived, or by `when`, equal ones as they arrived.
    """
    chunks = list(user_chunks(limits_of(counts)))
    starts = np.array([start for start, _ in chunks])
    block_of = np.repeat(np.arange(len(chunks), dtype=np.int32), [stop - start for start, stop in chunks])
    dealt, ends = Pile(), []
    for piece in pieces:
        rows, limits = _dealt(piece, block_of, starts)
        dealt.add(*rows)
        ends.append(limits)
    for k, (start, stop) in enumerate(chunks):
        own = [Rows(*dealt.part(p, slice(limits[k], limits[k + 1]))) for p, limits in enumerate(ends)]  # type: ignore[arg-type]
        rows = joined(own)
        rows = rows._replace(person=rows.person - np.int32(start))
        yield _packed(rows, stop - start, start, duplicates, repeats)


def in_pieces(rows: Rows) -> Iterator[Rows]:
    """Rows in pieces that are dealt out within a core's reach."""
    for start in range(0, len(rows.person), PIECE_ROWS):
        yield rows.at(slice(start, start + PIECE_ROWS))


def limits_of(counts: Ints) -> Ints:
    """Where the answers of each person begin, and the number of all."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _dealt(rows: Rows, block_of: NDArray[np.int32], starts: Ints) -> tuple[Rows, list[int]]:
    """The rows block by block, order of arrival kept within each; and where each block ends."""
    person, n_blocks = rows.person, len(starts)
    if n_blocks == 1:
        return rows, [0, len(person)]
    if not np.any(person[1:] < person[:-1]):
        return rows, [*np.searchsorted(person, starts).tolist(), len(person)]
    block = block_of[person]
    if rows.options is None and rows.when is None:
        ends, person, slots = counting_sort(block, n_blocks, person, rows.slots)
        return Rows(person, slots), ends.tolist()
    ends, order, _ = counting_sort(block, n_blocks, np.arange(len(block), dtype=np.int32), _nothing(len(block)))
    return rows.at(order), ends.tolist()


def counting_sort(
    key: NDArray[np.int32], n_keys: int, whole: NDArray[np.int32], other: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]:
    """Where each key begins, and two columns sorted by key, order of arrival kept: the loop by which scipy makes rows
    of a matrix from its cells."""
    ends = np.empty(n_keys + 1, dtype=np.int32)
    out, also = np.empty_like(whole), np.empty_like(other)
    _sparsetools.coo_tocsr(n_keys, 1, len(key), key, whole, other, ends, out, also)
    return ends, out, also


def _nothing(size: int) -> NDArray[np.int8]:
    return np.empty(size, dtype=np.int8)


def joined(parts: list[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Rows(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))
    columns: list[Any] = [None if each[0] is None else np.concatenate(each) for each in zip(*parts, strict=True)]
    return Rows(*columns)


def _packed(rows: Rows, n_persons: int, first_person: int, duplicates: Duplicates, repeats: Repeats) -> Block:
    """One block: by person, then right before wrong, then item."""
    key, slot_bits, low = _keys(rows, n_persons)
    pair = key >> (1 + low)
    if not (pair[1:] > pair[:-1]).all():
        key.sort()
        pair = key >> (1 + low)
        again = np.flatnonzero(pair[1:] == pair[:-1]) + 1
        if len(again):
            person, item = (pair[again] >> (slot_bits - 1)), pair[again] & ((1 << (slot_bits - 1)) - 1)
            repeats.add(person.astype(np.int64) + first_person, item.astype(np.int64))
            if duplicates != "error":
                kept = rows.at(_settle(rows, keep_first=duplicates == "first"))
                key, slot_bits, low = _keys(kept, n_persons)
    slots = ((key >> low) & ((1 << slot_bits) - 1)).astype(np.int32)
    half = ((key >> (slot_bits + low)) << 1).astype(np.int32) | (slots & 1)  # of a person: right, then wrong
    chosen: NDArray[Any] = _nothing(len(key)) if rows.options is None else (key & 0xFF).astype(np.uint8)
    ends, items, chosen = counting_sort(half, 2 * n_persons, slots >> 1, chosen)
    bounds = ends.astype(np.int64)
    return Block(bounds[::2].copy(), bounds[1::2].copy(), items, None if rows.options is None else chosen)


def _keys(rows: Rows, n_persons: int) -> tuple[NDArray[np.unsignedinteger[Any]], int, int]:
    """Person, slot and option as one number, narrow if it can be: sorting that is twice as fast; and the bits of the
    latter two."""
    slot_bits = int(rows.slots.max(initial=1)).bit_length()
    low = 0 if rows.options is None else 8
    dtype = np.dtype(np.uint32 if n_persons.bit_length() + slot_bits + low <= 32 else np.uint64)
    key: NDArray[Any] = rows.person.astype(dtype)
    key <<= slot_bits
    key |= rows.slots.astype(dtype)
    if rows.options is not None:
        key <<= low
        key |= rows.options
    return key, slot_bits, low


def _settle(rows: Rows, *, keep_first: bool) -> Ints:
    """Positions of one answer of each (person, item), in this order: the first or the last."""
    pair = (rows.person.astype(np.int64) << 32) + (rows.slots >> 1)
    order = np.argsort(pair, kind="stable") if rows.when is None else np.lexsort((rows.when, pair))
    new = np.concatenate([[True], np.diff(pair[order]) != 0])
    return order[new] if keep_first else order[np.concatenate([new[1:], [True]])]
