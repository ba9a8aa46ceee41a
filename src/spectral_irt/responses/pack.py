"""From answers in any order to packed blocks.

An answer on its way in is one number, `2 * item + wrong`, in the slot of its person; the slots of a person hold
the answers in the order they arrived. `pack` sorts each person's slots, settles repeated answers, and puts ones before
zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import NAMED
from spectral_irt.responses.block import BLOCK_RESPONSES, Block, Ints

Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")
CACHED = 16_384  # answers whose numbers fit in a core's cache together


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
    """Blocks from slots `2 * item + wrong`, person by person in arrival order. `slots` is used up: blocks share it.

    `options` are the codes of what was chosen, if that is kept.

    With `duplicates="error"` the repeats are only recorded; the caller, who knows the labels, complains.
    """
    blocks = []
    for start, stop in user_chunks(indptr):
        chunk = slots[indptr[start] : indptr[stop]]
        limits = indptr[start : stop + 1] - indptr[start]
        chosen = None if options is None else options[indptr[start] : indptr[stop]]
        blocks.append(_pack_chunk(limits, chunk, chosen, start, duplicates, repeats))
    return tuple(blocks)


def pack_block(indptr: Ints, slots: NDArray[np.int32]) -> Block:
    """One block from the slots of its people, none of them repeated."""
    return _pack_chunk(indptr, slots, None, 0, "error", Repeats())


def in_user_order(user: NDArray[Any], *values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """All sorted by person, order of arrival kept within each; faster than a stable argsort."""
    key = (user.astype(np.int64) << 32) + np.arange(len(user))
    key.sort()
    return (key >> 32).astype(np.int32), *(each[key & 0xFFFFFFFF] for each in values)


def _pack_chunk(
    indptr: Ints,
    chunk: NDArray[np.int32],
    options: NDArray[np.uint8] | None,
    first_user: int,
    duplicates: Duplicates,
    repeats: Repeats,
) -> Block:
    packed = chunk
    items = chunk >> 1
    rising = items[1:] > items[:-1]
    rising[indptr[(indptr > 0) & (indptr < len(chunk))] - 1] = True
    if not rising.all():
        indptr, chunk, options = _sorted(indptr, chunk, options, first_user, duplicates, repeats)
        items = chunk >> 1
    is_right = (chunk & 1) == 0
    right, wrong = np.flatnonzero(is_right), np.flatnonzero(~is_right)  # much faster than masks
    rights_before = np.searchsorted(right, indptr)
    wrongs_before = indptr - rights_before
    split = indptr[:-1] + np.diff(rights_before)
    # Ones first: an answer moves past those of the other kind of its own person only.
    packed = packed[: len(items)]  # no memory of its own
    chosen = None if options is None else np.empty_like(options)
    for kind, starts, before in ((right, indptr[:-1], rights_before), (wrong, split, wrongs_before)):
        places = np.repeat(starts - before[:-1], np.diff(before)) + np.arange(len(kind))
        packed[places] = items.take(kind)
        if chosen is not None and options is not None:
            chosen[places] = options.take(kind)
    return Block(indptr.astype(np.int64), split.astype(np.int64), packed, chosen)


def _sorted(
    indptr: Ints,
    chunk: NDArray[np.int32],
    options: NDArray[np.uint8] | None,
    first_user: int,
    duplicates: Duplicates,
    repeats: Repeats,
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint8] | None]:
    """The slots of each person by item, and what goes with them, repeated answers settled."""
    user = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    key = (user << 32) + chunk
    given = options
    if given is not None:
        options = given[np.argsort(key, kind="stable")]
    key.sort()  # by person, then item, then right before wrong
    same = (key[1:] >> 1) == (key[:-1] >> 1)
    if same.any():
        again = np.flatnonzero(same) + 1
        repeats.add((key[again] >> 32) + first_user, (key[again] & 0xFFFFFFFF) >> 1)
        if duplicates != "error":
            kept = _settle(user, chunk, keep_first=duplicates == "first")
            key = (user[kept] << 32) + chunk[kept]
            options = None if given is None else given[kept]
            indptr = np.concatenate([[0], np.cumsum(np.bincount(key >> 32, minlength=len(indptr) - 1))])
    return indptr, (key & 0xFFFFFFFF).astype(np.int32), options


def _settle(user: Ints, chunk: NDArray[np.int32], *, keep_first: bool) -> Ints:
    """Positions of one answer of each (person, item), in this order: the first or the last to arrive."""
    pair = (user << 32) + (chunk >> 1)
    order = np.argsort(pair, kind="stable")
    new = np.concatenate([[True], np.diff(pair[order]) != 0])
    return order[new] if keep_first else order[np.concatenate([new[1:], [True]])]
