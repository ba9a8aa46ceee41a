"""Distinct patterns: who saw the same items and has the same score tells the same about P(X_i = 1 | score).

The conditional likelihood sees a person only through the set of items answered and the score. People who agree in both
share one computation: on complete data with m items there are at most m - 1 of them, however many people took the
test. The distinct ones are laid out in tiles, rectangles that numpy runs through without a loop over people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.estimators.esf import contour
from spectral_irt.numerics import scramble
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.pack import user_chunks

# Responses in a tile: its dozen temporary arrays then fit the second-level cache of one core.
TILE_RESPONSES = 16_384
# People side by side in a tile, at least: numpy's inner loop runs over them. Above LONG answers each person is a tile.
TILE_USERS, LONG = 16, 8_000
# Responses in a part, the unit that a thread works on.
PART_RESPONSES = 100_000


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct pairs (set of items, score) and how many people have each.

    The items of pattern `g` are `items[indptr[g]:indptr[g + 1]]`, increasing.
    """

    indptr: Ints
    items: NDArray[np.int32]
    scores: Ints
    weights: Floats
    keys: NDArray[np.uint64]

    @property
    def counts(self) -> Ints:
        return np.diff(self.indptr)

    def take(self, which: Ints, weights: Floats | None = None) -> Patterns:
        """These patterns, in this order."""
        counts = self.counts[which]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        where = spans(self.indptr[:-1][which], counts)
        weights = self.weights[which] if weights is None else weights
        return Patterns(indptr, self.items[where], self.scores[which], weights, self.keys[which])


def spans(starts: Ints, counts: Ints) -> Ints:
    """The positions start, start + 1, ... of each run, one run after the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def patterns_of(block: Block) -> tuple[Patterns, Ints, Ints]:
    """The distinct patterns of a block, the pattern of each informative person, and those people.

    People with all answers right or all wrong (or a single one) are left out: they carry no information.
    """
    users = np.flatnonzero(block.informative)
    chosen = block.take(users)
    slot = chosen.user_of_response() << 32
    slot += chosen.items
    slot.sort()  # items increase within each person, right and wrong alike
    items = (slot & 0xFFFFFFFF).astype(np.int32)
    keys = np.empty((len(users), 4), dtype=np.uint64)
    keys[:, 0], keys[:, 1] = chosen.counts, chosen.scores
    for column in (2, 3):  # 128 bits of a sum over the items: equal sets have equal sums, others do not meet
        keys[:, column] = np.add.reduceat(scramble(items, column), chosen.indptr[:-1]) if len(users) else 0
    everyone = Patterns(chosen.indptr, items, chosen.scores, np.ones(len(users)), keys)
    patterns, pattern_of_user = _group(everyone)
    return patterns, pattern_of_user, users


def distinct(block: Block) -> Patterns:
    """The distinct patterns of a block."""
    return patterns_of(block)[0]


def merge(parts: Sequence[Patterns]) -> Patterns:
    """The distinct patterns of several blocks."""
    if len(parts) == 1:
        return parts[0]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part.counts for part in parts]))])
    together = Patterns(
        indptr.astype(np.int64),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.keys for part in parts]),
    )
    return _group(together)[0]


def _group(patterns: Patterns) -> tuple[Patterns, Ints]:
    """Equal patterns counted once; which of the new ones each old one became."""
    keys = patterns.keys
    order = np.lexsort(keys.T[::-1])  # by length, then score, then set; stable
    ordered = keys[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    weights = np.bincount(group, weights=patterns.weights, minlength=int(new.sum())).astype(np.float64)
    return patterns.take(order[new], weights), group


# ----------------------------------------------------------------------- tiles


@dataclass(frozen=True, eq=False)
class Tile:
    """Patterns of similar length side by side: a column each, its items downwards, padded with the code `n_items`."""

    items: NDArray[np.int32]
    counts: Ints
    scores: Ints
    weights: Floats
    start: int  # the first response of the first pattern, in the part's order
    one_set: bool  # whether all columns have the same items

    def flat(self, values: Floats) -> Floats:
        """Values of the tile, pattern after pattern, without the padding."""
        inside = np.arange(len(self.items))[None, :] < self.counts[:, None]
        return values.T[inside]


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the patterns, tiled; `which` says which of all they are."""

    patterns: Patterns
    which: Ints
    n_items: int
    tiles: tuple[Tile, ...]


def split_in_parts(patterns: Patterns, n_items: int) -> list[Part]:
    """The patterns in tiles of like length and score, and the tiles in parts of like cost.

    How they are split depends on the patterns alone, never on the number of threads: results have the same bits.
    """
    n, s = patterns.counts, patterns.scores
    points = contour(0.8 * s * (n - s) / n, n, s)[1]  # of the contour sum, about
    order = np.lexsort((patterns.keys[:, 2], n, points // 4))
    parts = []
    for start, stop in user_chunks(np.concatenate([[0], np.cumsum(n[order])]), PART_RESPONSES):
        piece = patterns.take(order[start:stop])
        parts.append(Part(piece, order[start:stop], n_items, tuple(_tiles(piece, n_items))))
    return parts


def _tiles(patterns: Patterns, n_items: int) -> Iterator[Tile]:
    counts, indptr = patterns.counts, patterns.indptr
    start = 0
    while start < len(counts):
        stop = _end_of_tile(counts, start)
        longest = int(counts[start:stop].max())
        items = np.full((longest, stop - start), n_items, dtype=np.int32)
        inside = np.arange(longest)[None, :] < counts[start:stop, None]
        items.T[inside] = patterns.items[indptr[start] : indptr[stop]]
        sets = patterns.keys[start:stop, 2]
        yield Tile(
            items,
            counts[start:stop],
            patterns.scores[start:stop],
            patterns.weights[start:stop],
            int(indptr[start]),
            bool(np.all(sets == sets[0]) and np.all(counts[start:stop] == longest)),
        )
        start = stop


def _end_of_tile(counts: Ints, start: int) -> int:
    """As many patterns as fit, of lengths within a quarter of each other."""
    first = int(counts[start])
    if first > LONG:
        return start + 1
    users = max(TILE_USERS, TILE_RESPONSES // first)
    ahead = counts[start : start + users]
    unlike = (ahead > 1.25 * first) | (ahead < first)
    return start + (int(np.argmax(unlike)) if unlike.any() else len(ahead))
