"""Thresholds: which item each threshold belongs to; and the rows of answers in blocks of them.

An answer x to an item with categories 0 to K is an entry among the ones of its person for the threshold that it passed
last (if x > 0), and an entry among the zeros for the next one (if x < K). A right or wrong answer (K = 1) is one entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Floats, Ints, taken
from spectral_irt.numerics import fixed


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Which item each threshold belongs to, from K_i = `max_score` of each item, which has the categories 0 to K_i."""

    max_score: Ints

    @classmethod
    def ones(cls, n_items: int) -> Thresholds:
        """Items that are answered right or wrong; they take no space."""
        ones = cls(np.broadcast_to(np.int64(1), n_items))
        vars(ones)["widest"] = 1  # not to look at each of many items
        return ones

    @property
    def n_items(self) -> int:
        return len(self.max_score)

    @cached_property
    def n_entries(self) -> int:
        return int(self.max_score.sum())

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

    @cached_property
    def binary(self) -> bool:
        """Whether every answer is right or wrong: an entry is an answer then, and a threshold an item."""
        return self.widest == 1

    @cached_property
    def widest(self) -> int:
        return int(self.max_score.max(initial=1))

    @property
    def bits(self) -> int:
        return self.widest.bit_length()

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

    def of_items(self, items: Ints) -> Ints:
        counts = self.max_score[items]
        ends = np.cumsum(counts)
        return np.repeat(self.first[items] - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


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
        indptr, category = (
            self.indptr[start : stop + 1] - low,
            None if self.category is None else self.category[low:high],
        )
        of_people = (self.counts[mine], self.scores[mine], self.max_scores[mine])
        return Rows(indptr, self.items[low:high], *of_people, category)

    def take(self, people: Ints) -> Rows:
        indptr, where = taken(self.indptr, people)
        category = None if self.category is None else self.category[where]
        counts, scores, highest = self.counts[people], self.scores[people], self.max_scores[people]
        return Rows(indptr, self.items[where], counts, scores, highest, category)

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
        found = block.remember(("rows", layout.n_entries), made)
    return found


def counts_and_scores(block: Block, thresholds: Thresholds) -> tuple[Ints, ...]:
    """Of each person; and the highest score that they could have, where that is not the count."""
    rows = rows_of(block, thresholds)
    return (rows.counts, rows.scores) if thresholds.binary else (rows.counts, rows.scores, rows.max_scores)


def kinds_of_people(block: Block, thresholds: Thresholds) -> Ints:
    """How many have no answer, a single one, several and all right, several and all wrong, and a mixed score."""
    rows = rows_of(block, thresholds)
    n, s, several = rows.counts, rows.scores, rows.counts > 1
    kinds = (n == 0, n == 1, several & (s == rows.max_scores), several & (s == 0), rows.informative)
    return np.array([np.count_nonzero(kind) for kind in kinds])


def pair_work(block: Block, thresholds: Thresholds) -> float:
    return float((rows_of(block, thresholds).counts.astype(np.float64) ** 2).sum())


def answers(block: Block, person: Ints, thresholds: Thresholds) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
    if thresholds.binary:
        return np.repeat(person, block.counts), np.asarray(block.items), block.right()
    indptr, item, category = answered_items(block, thresholds)
    return np.repeat(person, np.diff(indptr)), item, category


def dense(block: Block, thresholds: Thresholds) -> Floats:
    table = np.full((block.n_persons, thresholds.n_items), np.nan)
    person, item, category = answers(block, np.arange(block.n_persons), thresholds)
    table[person, item] = category
    return table
