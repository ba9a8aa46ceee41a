"""Distinct patterns: who saw the same items and has the same score tells the same about answers given the score.

The conditional likelihood sees a person only through the set of items answered and the score. People who agree in both
share one computation: on complete data there are fewer of them than scores, however many people took the test. The
distinct ones are laid out in tiles, rectangles that numpy runs through without a loop over people, and that fit the
cache of one core. How they are laid out depends on the patterns alone, never on the number of threads: results have
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import row_keys
from spectral_irt.data.thresholds import Rows, Thresholds

TILE_CELLS = 131_072  # numbers of a table: a megabyte, which the second cache of a core holds
MANY = 64  # people in a tile where there are so many of their kind
ALIKE = 1.3  # lengths within this factor share a tile
SHORT_ORDER = 16  # steps up or down, per threshold of the widest item, up to which the recursion is cheapest
MOST_SCORES = 0.25  # of all scores of a set, from which on the tree is cheapest: it gives them all
SEVERAL = 8  # patterns of a set that are a tile of their own, with so many of its scores
TREE_CELLS = 2_000_000  # thresholds x scores of such a set, at most


def spans(starts: Ints, counts: Ints) -> Ints:
    """The positions start, start + 1, ... of each run, one run after the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def end_of_tile(counts: Ints, orders: Ints, start: int, width: int = 1) -> int:
    """As many people as fit the cache, of lengths and orders (fewest steps up or down) near those of the first."""
    first, short = int(orders[start]), int(orders[start]) <= SHORT_ORDER * width
    size = int(counts[start]) * (first + 1 if short else 4 * (width + 1))
    ahead = slice(start, start + max(MANY, TILE_CELLS // size))
    n, order = counts[ahead], orders[ahead]
    unlike = (n > ALIKE * n[0]) | (n < n[0] / ALIKE) | ((order <= SHORT_ORDER * width) != short)
    unlike |= order > (first + 2 * width if short else ALIKE * first)
    return start + (int(np.argmax(unlike)) if unlike.any() else len(n))


def by_order(counts: Ints, scores: Ints, most: Ints) -> Ints:
    """People in the order in which they share tiles."""
    return np.lexsort((counts, np.minimum(scores, most - scores)))


@dataclass(frozen=True, eq=False)
class PatternPart:
    """Patterns of like length and score, or many scores of one set: items padded with one that has no thresholds.

    `which` says which of all patterns they are.
    """

    which: Ints
    items: NDArray[np.int64]
    counts: Ints
    scores: Ints
    max_scores: Ints
    people: Floats
    one_set: bool


def pattern_parts(rows: Rows, people: Ints, layout: Thresholds) -> list[PatternPart]:
    """The patterns of people whose total score is neither the lowest nor the highest, in tiles."""
    who = np.flatnonzero(rows.informative)
    counts, most = rows.counts[who], rows.max_scores[who]
    keys = row_keys(rows, layout, np.zeros_like(rows.scores))[who]
    _, of_set, size = np.unique(keys, return_inverse=True, return_counts=True)
    size = size[of_set]
    shared = (size >= np.maximum(MOST_SCORES * (most - 1), SEVERAL)) & (counts * layout.widest * most <= TREE_CELLS)
    sets = np.flatnonzero(shared)[np.argsort(of_set[shared], kind="stable")]
    ends = np.flatnonzero(np.diff(of_set[sets])) + 1
    parts = [_part(rows, who[one], people, layout, True) for one in np.split(sets, ends) if len(one)]
    who = who[~shared]
    who = who[by_order(rows.counts[who], rows.scores[who], rows.max_scores[who])]
    counts, orders = rows.counts[who], np.minimum(rows.scores, rows.max_scores - rows.scores)[who]
    start = 0
    while start < len(who):
        stop = end_of_tile(counts, orders, start, layout.widest)
        parts.append(_part(rows, who[start:stop], people, layout, False))
        start = stop
    return parts


def _part(rows: Rows, which: Ints, people: Ints, layout: Thresholds, one_set: bool) -> PatternPart:
    mine = rows.take(which)
    items = np.full((len(which), int(mine.counts.max())), layout.n_items)
    if one_set:  # the same items, in any order
        items[:] = mine.items[: mine.counts[0]]
    else:
        place = np.arange(len(mine.items)) - np.repeat(mine.indptr[:-1], mine.counts)
        items[np.repeat(np.arange(len(which)), mine.counts), place] = mine.items
    return PatternPart(which, items, mine.counts, mine.scores, mine.max_scores, people[which].astype(float), one_set)


def padded(layout: Thresholds, thresholds: Floats) -> Floats:
    """Cumulated thresholds, with a last row for the padding."""
    cumulated = layout.cumulated(thresholds)
    nothing = np.full((1, cumulated.shape[1]), np.inf)
    nothing[0, 0] = 0.0
    return np.concatenate([cumulated, nothing])


def threshold_codes(layout: Thresholds) -> Ints:
    """Items (and padding) x thresholds: the code of each threshold, or one past the last where there is none."""
    codes = np.full((layout.n_items + 1, layout.widest), layout.n_entries)
    codes[layout.item, layout.level - 1] = np.arange(layout.n_entries)
    return codes


def columns_of(part: PatternPart, cumulated: Floats, some: slice = slice(None)) -> Floats:
    """Sums of thresholds as the methods of this room take them: categories x items x patterns."""
    return cumulated.T[1:, part.items[some].T]
