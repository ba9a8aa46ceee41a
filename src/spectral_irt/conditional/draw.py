"""Draws of responses given each person's score and answered items: exact, with no ability and no population.

Given the score s, the responses of a person have the known distribution P(x | s) ~ exp(-sum_i sum_{v <= x_i} beta_iv).
With p_kc = P(X_k = c) at an ability where the score has about the mean s (any ability gives the same P(x | s)), and
F_k(r) = sum_c p_kc F_{k-1}(r - c) the chance of a score of r on the first k items, responses are drawn from the last
item to the first:

    P(x_k = c | r points are left for items 1 to k) = p_kc F_{k-1}(r - c) / F_k(r).

All terms are positive, and nothing cancels. Missing responses stay missing. People who agree in items and score have
one pattern and share one table; blocks of people bound the memory.

Each response has a uniform number of its own, a hash of seed, draw, person and item (SplitMix64: Steele, Lea & Flood
2014, OOPSLA): draws depend neither on blocks nor on threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.exact import tilt
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Rows, Thresholds
from spectral_irt.data.patterns import distinct_rows, row_keys
from spectral_irt.errors import OptionError

TABLE_CELLS = 2_000_000  # numbers of the tables of a block of patterns, 16 MB
DRAWN_CELLS = 16_000_000  # responses of a block, all draws of its people: a byte each
CACHED = 16_384  # responses to one item that are drawn at once: their numbers stay in the cache of a core
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: the step of SplitMix64
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


class DrawnBlock(NamedTuple):
    """Draws of some people: their positions, the items that any of them answered, and the drawn categories, draws x
    people x items; 0 where a person did not answer the item."""

    persons: Ints
    items: Ints
    categories: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PatternBlock:
    """Patterns (items and score) that are drawn together: their people, in the order of `pattern`, which says the
    column of the tables; the items that any of them has; which of these each has, items x patterns."""

    persons: Ints
    pattern: Ints
    items: Ints
    answered: NDArray[np.bool_]
    scores: Ints
    max_scores: Ints

    def take(self, people: slice) -> PatternBlock:
        """Some of its people, with the same tables."""
        return replace(self, persons=self.persons[people], pattern=self.pattern[people])


def draws_given_score(responses: Responses, thresholds: Floats, *, draws: range, seed: int = 0) -> Iterator[DrawnBlock]:
    """Response patterns of every person with a response, drawn given the person's score and answered items.

    Yields block after block of people, each with all its draws: statistics of a draw are sums over the blocks.

    Parameters
    ----------
    responses : Responses
        Right and wrong or in ordered categories, with missing responses or without.
    thresholds : float array
        Of every item; a person with a response to an item without thresholds (NaN) is an error: leave such items out.
    draws : range
        Which data sets of the stream of the seed to draw: `range(1000)` are the first thousand.
    seed : int
        Random seed (default 0), zero or more.
    """
    if not np.isfinite(thresholds[responses.thresholds.of_items(np.flatnonzero(responses.item_counts))]).all():
        raise OptionError("an item with responses has no thresholds; responses to it cannot be drawn. Leave it out.")
    cumulated = responses.thresholds.cumulated(np.nan_to_num(thresholds))
    for block in _pattern_blocks(responses):
        passed = _chances_of_passing(block, cumulated[block.items])
        size = max(1, DRAWN_CELLS // (len(draws) * len(block.items)))
        for start in range(0, len(block.persons), size):
            some = block.take(slice(start, start + size))
            yield DrawnBlock(some.persons, some.items, _draw_categories(some, passed, responses, draws, seed))


def _pattern_blocks(responses: Responses) -> Iterator[PatternBlock]:
    """Patterns in blocks that bound the tables; those of one set of items side by side."""
    layout = responses.thresholds
    patterns = distinct_rows(responses)
    rows = patterns.rows
    set_of_items = row_keys(rows, layout, np.zeros_like(rows.scores))
    order = np.lexsort((rows.scores, set_of_items, rows.counts))
    order = order[rows.counts[order] > 0]
    people = np.argsort(patterns.of_person, kind="stable")
    ends = np.concatenate([[0], np.cumsum(patterns.count)])
    start = 0
    while start < len(order):
        chosen = order[start:]
        chosen = chosen[: _block_size(rows, chosen, set_of_items[chosen], layout)]
        mine = rows.take(chosen)
        items, place = np.unique(mine.items, return_inverse=True)
        answered = np.zeros((len(items), len(chosen)), dtype=bool)
        answered[place, np.repeat(np.arange(len(chosen)), mine.counts)] = True
        yield PatternBlock(
            persons=np.concatenate([people[ends[k] : ends[k + 1]] for k in chosen]),
            pattern=np.repeat(np.arange(len(chosen)), patterns.count[chosen]),
            items=items.astype(np.int64),
            answered=answered,
            scores=mine.scores,
            max_scores=mine.max_scores,
        )
        start += len(chosen)


def _block_size(rows: Rows, order: Ints, set_of_items: NDArray[np.uint64], layout: Thresholds) -> int:
    """How many of these patterns, one at least, have tables that fit a block."""
    ahead = order[: 1 + TABLE_CELLS // int(rows.counts[order[0]])]
    another_set = np.diff(set_of_items[: len(ahead)], prepend=set_of_items[0] + np.uint64(1)) != 0
    items = np.minimum(np.cumsum(rows.counts[ahead] * another_set), layout.n_items)  # at most, of all sets together
    top = np.maximum.accumulate(rows.scores[ahead])
    cells = items * layout.widest * (top + 1) * np.arange(1, len(ahead) + 1)
    return max(1, int(np.searchsorted(cells, TABLE_CELLS, side="right")))


def _chances_of_passing(block: PatternBlock, cumulated: Floats) -> Floats:
    """P(x_k >= c | r points left for the items up to k): items x categories above 0 x scores x patterns."""
    n, categories = cumulated.shape
    columns = np.where(block.answered, cumulated.T[1:, :, None], np.inf)
    # An extreme score has no ability of its own, and its responses are certain at any.
    scores = np.clip(block.scores, 0.5, block.max_scores - 0.5)
    p = tilt(columns, scores, block.max_scores)[1]
    top = int(block.scores.max())
    before = np.zeros((top + 1, len(block.scores)))
    before[0] = 1.0
    passed = np.zeros((n, categories - 1, top + 1, len(block.scores)))
    for k in range(n):
        for c in range(min(categories - 1, top), 0, -1):
            passed[k, c - 1, c:] = before[: top + 1 - c] * p[c, k]
            if c < categories - 1:
                passed[k, c - 1] += passed[k, c]
        after = before * p[0, k] + passed[k, 0]
        np.divide(passed[k], after, out=passed[k], where=after > 0)
        before = after
    return passed


def _draw_categories(
    block: PatternBlock, passed: Floats, responses: Responses, draws: range, seed: int
) -> NDArray[np.uint8]:
    n_patterns = len(block.scores)
    categories = np.zeros((len(draws), len(block.persons), len(block.items)), dtype=np.uint8)
    start_score = block.scores[block.pattern]
    flat = passed.reshape(len(passed), passed.shape[1], -1)
    step = max(1, CACHED // len(block.persons))
    for first in range(0, len(draws), step):
        rows = np.array(draws[first : first + step], dtype=np.uint64)
        # The cell (draw, person, item) has a number of its own, and a hash of it is its uniform number.
        cell = rows[:, None] * np.uint64(responses.n_persons) + block.persons.astype(np.uint64)
        cell *= np.uint64(responses.n_items)
        place = np.tile(start_score * n_patterns + block.pattern, (len(rows), 1))
        for k in range(len(block.items) - 1, -1, -1):
            u = uniforms(seed, cell + np.uint64(block.items[k]))
            category = u < flat[k, 0][place]
            if flat.shape[1] > 1:
                category = category.astype(np.int64)
                for chance in flat[k, 1:]:
                    category += u < chance[place]
            place -= category * n_patterns
            categories[first : first + len(rows), :, k] = category
    return categories


def uniforms(seed: int, cell: NDArray[np.uint64]) -> Floats:
    """A uniform number in [0, 1) for each cell: the output of SplitMix64 at this place of the stream of the seed."""
    start = _hash(np.array([seed + 1], dtype=np.uint64) * GOLDEN)
    bits = _hash(start + (cell + np.uint64(1)) * GOLDEN) >> np.uint64(11)
    return bits * np.float64(2.0**-53)


def _hash(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state ^= state >> np.uint64(30)
    state *= FIRST_FACTOR
    state ^= state >> np.uint64(27)
    state *= SECOND_FACTOR
    state ^= state >> np.uint64(31)
    return state
