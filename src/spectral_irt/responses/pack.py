"""From answers in any order to packed blocks.

An answer on its way in is one number, `2 * item + wrong`, in the slot of its user; the slots of a user hold its
answers in the order they arrived. `pack` sorts each user's slots, settles repeated answers, and puts ones before zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import NAMED
from spectral_irt.responses.block import BLOCK_RESPONSES, Block, Ints

Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")
CACHED = 16_384  # answers whose numbers fit in a core's cache together


@dataclass
class Repeats:
    """Repeated (user, item) pairs met while packing: how many extra answers, and the first few pairs."""

    extra: int = 0
    pairs: int = 0
    first: list[tuple[int, int]] | None = None

    def add(self, users: Ints, items: Ints) -> None:
        self.extra += len(users)
        pairs = np.unique(np.stack([users, items], axis=1), axis=0)
        self.pairs += len(pairs)
        known = self.first or []
        self.first = known + [(int(u), int(i)) for u, i in pairs[: NAMED - len(known)]]


def user_chunks(indptr: Ints, size: int = BLOCK_RESPONSES) -> Iterator[tuple[int, int]]:
    """Consecutive runs of whole users with about `size` responses each (one user may exceed it)."""
    n_users = len(indptr) - 1
    start = 0
    while start < n_users:
        stop = int(np.searchsorted(indptr, indptr[start] + size, side="right")) - 1
        stop = min(max(stop, start + 1), n_users)
        yield start, stop
        start = stop


def pack(indptr: Ints, slots: NDArray[np.int32], *, duplicates: Duplicates, repeats: Repeats) -> tuple[Block, ...]:
    """Blocks from slots `2 * item + wrong`, user by user in arrival order. `slots` is used up: blocks share its memory.

    With `duplicates="error"` the repeats are only recorded; the caller, who knows the labels, complains.
    """
    blocks = []
    for start, stop in user_chunks(indptr):
        chunk = slots[indptr[start] : indptr[stop]]
        limits = indptr[start : stop + 1] - indptr[start]
        blocks.append(_pack_chunk(limits, chunk, start, duplicates, repeats))
    return tuple(blocks)


def pack_block(indptr: Ints, slots: NDArray[np.int32]) -> Block:
    """One block from the slots of its users, none of them repeated."""
    return _pack_chunk(indptr, slots, 0, "error", Repeats())


def _pack_chunk(
    indptr: Ints, chunk: NDArray[np.int32], first_user: int, duplicates: Duplicates, repeats: Repeats
) -> Block:
    user = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    key = user << 32
    key += chunk
    key.sort()  # by user, then item, then right before wrong
    same = (key[1:] >> 1) == (key[:-1] >> 1)
    if same.any():
        again = np.flatnonzero(same) + 1
        repeats.add((key[again] >> 32) + first_user, (key[again] & 0xFFFFFFFF) >> 1)
        if duplicates != "error":
            key = _settle(user, chunk, keep_first=duplicates == "first")
    user = key >> 32
    code = (key & 0xFFFFFFFF).astype(np.int32)
    wrong = (code & 1).astype(bool)
    counts = np.bincount(user, minlength=len(indptr) - 1)
    rights = np.bincount(user[~wrong], minlength=len(indptr) - 1)
    limits = np.concatenate([[0], np.cumsum(counts)])
    split = limits[:-1] + rights
    # Ones first: the k-th right answer of the whole chunk moves forward past the wrong ones of its own user only.
    n_wrong_before = np.cumsum(wrong) - wrong
    n_right_before = np.cumsum(~wrong) - ~wrong
    wrong_at_start = np.concatenate([[0], np.cumsum(counts - rights)])[:-1]
    right_at_start = np.concatenate([[0], np.cumsum(rights)])[:-1]
    place = np.where(
        wrong,
        split[user] + n_wrong_before - wrong_at_start[user],
        limits[:-1][user] + n_right_before - right_at_start[user],
    )
    items = chunk[: len(code)]
    items[place] = code >> 1
    return Block(limits.astype(np.int64), split.astype(np.int64), items)


def _settle(user: Ints, chunk: NDArray[np.int32], *, keep_first: bool) -> Ints:
    """Keep one answer of each (user, item): the first or the last to arrive."""
    pair = (user << 32) + (chunk >> 1)
    order = np.argsort(pair, kind="stable")
    new = np.concatenate([[True], np.diff(pair[order]) != 0])
    kept = order[new] if keep_first else order[np.concatenate([new[1:], [True]])]
    key = (user[kept] << 32) + chunk[kept]
    key.sort()
    return key
