"""Answers given the score, exactly: people with little information, and patterns that repeat.

What depends on the items answered and the score alone is computed once for a pattern of these, for any number of
categories.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.given_score import part_given
from spectral_irt.conditional.information import matched_factors
from spectral_irt.conditional.patterns import PatternPart, padded, pattern_parts, threshold_codes
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.same_items import same_rows
from spectral_irt.data.thresholds import Rows, Thresholds, rows_of
from spectral_irt.sparse_kernels import csr

Sums = tuple[Floats, Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class PatternRows:
    """Patterns of items and score, and the people who have them.

    Attributes
    ----------
    patterns : list of PatternPart
        The patterns, some at a time; their `people` count by their weights.
    expected, factor : csr matrices, patterns x thresholds
        P(X >= k | s); and c, times the root of how many people have the pattern.
    passed : csr matrix, people x thresholds, optional
        The threshold that each answer passed last.
    of_person : int array, optional
        The pattern of each.
    weight : float array, optional
        How much each counts.
    """

    patterns: list[PatternPart]
    layout: Thresholds
    codes: Ints
    expected: sparse.csr_array | None = None
    factor: sparse.csr_array | None = None
    passed: sparse.csr_array | None = None
    of_person: Ints | None = None
    weight: Floats | None = None

    @classmethod
    def of(cls, rows: Rows, passed: sparse.csr_array, layout: Thresholds, weight: Floats | None) -> PatternRows:
        found = same_rows(rows, layout)
        count = found.count if weight is None else np.bincount(found.of_person, weights=weight)
        parts = pattern_parts(found.rows, count, layout)
        order = np.concatenate([part.which for part in parts])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        codes = threshold_codes(layout)
        return cls(parts, layout, codes, passed=passed, of_person=rank[found.of_person], weight=weight)

    def evaluated(self, cumulated: Floats) -> tuple[PatternRows, Sums, float]:
        """At other thresholds; the sums of `table_rows.evaluate`; and the sum of log gamma."""
        pieces: list[Any] = [_given(part, cumulated, self.layout) for part in self.patterns]
        expected, factor = (_stacked([piece[k] for piece in pieces], self.patterns, self.codes) for k in (0, 1))
        people = np.concatenate([part.people for part in self.patterns])
        root = np.repeat(np.sqrt(people), np.diff(factor.indptr))
        factor = csr(factor.indptr, factor.indices, factor.data * root, factor.shape[1])
        there = slice(0, self.layout.n_entries)  # the column after them is padding
        passed = (expected.T @ people)[there]
        within, outer = (np.sum([piece[k] for piece in pieces], axis=0) for k in (2, 3))
        around = (factor.T @ (factor @ np.ones(factor.shape[1])))[there]
        log_gamma = float(sum(piece[4] for piece in pieces))
        return replace(self, expected=expected, factor=factor), (passed, within, outer, around), log_gamma

    def factors_twice(self, v: Floats) -> Floats:
        """C' C v."""
        assert self.factor is not None
        padding = np.zeros((1, *v.shape[1:]))
        return (self.factor.T @ (self.factor @ np.concatenate([v, padding])))[:-1]

    def factors(self) -> sparse.csr_array:
        """c of every pattern, times the root of the number of its people."""
        assert self.factor is not None
        return sparse.csr_array(self.factor[:, : self.layout.n_entries])

    def scores(self) -> sparse.csr_array:
        """P(X >= k | s) - 1{X >= k}, people x thresholds, by their weights."""
        assert self.passed is not None
        return weighted(less_passed(self.expected_rows(), self.passed, self.layout), self.weight)

    def expected_rows(self) -> sparse.csr_array:
        """P(X >= k | s), people x thresholds."""
        assert self.expected is not None
        return sparse.csr_array(self.expected[self.of_person][:, : self.layout.n_entries])

    def expected_of(self, v: Floats) -> Floats:
        """sum over thresholds of v_k P(X >= k | s), for every person."""
        assert self.expected is not None
        return (self.expected @ np.concatenate([v, np.zeros((1, *v.shape[1:]))]))[self.of_person]

    def expected_back(self, z: Floats) -> Floats:
        """sum over people of z P(X >= k | s), for every threshold."""
        assert self.expected is not None
        n = self.expected.shape[0]
        together = sparse.csr_array((np.ones(len(z)), (self.of_person, np.arange(len(z)))), shape=(n, len(z)))
        return (self.expected.T @ (together @ z))[:-1]


def weighted(matrix: sparse.csr_array, weight: Floats | None) -> sparse.csr_array:
    """The rows by their weights."""
    if weight is not None:
        matrix.data *= np.repeat(weight, np.diff(matrix.indptr))
    return matrix


def less_passed(matrix: sparse.csr_array, passed: sparse.csr_array, layout: Thresholds) -> sparse.csr_array:
    """The matrix less 1 at every threshold up to the one that was passed last."""
    matrix.sort_indices()
    n, m = matrix.shape
    row = np.repeat(np.arange(n), np.diff(matrix.indptr))
    keys = row * np.int64(m) + matrix.indices
    level = layout.level[passed.indices]
    last = np.repeat(np.repeat(np.arange(n), np.diff(passed.indptr)) * np.int64(m) + passed.indices, level)
    back = np.arange(level.sum()) - np.repeat(np.cumsum(level) - level, level)
    matrix.data[np.searchsorted(keys, last - back)] -= 1.0
    return matrix


def residuals(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), people x thresholds, in the order of the block; nothing for extreme scores."""
    rows = rows_of(block, layout)
    who = np.flatnonzero(rows.informative)
    out = sparse.csr_array((block.n_persons, layout.n_entries))
    if not len(who):
        return out
    passed = sparse.csr_array(block.halves(layout.n_entries)[0][who])
    made, *_ = PatternRows.of(rows.take(who), passed, layout, None).evaluated(padded(layout, beta))
    scores = made.scores()
    indptr = np.zeros(block.n_persons + 1, dtype=np.int32)
    indptr[who + 1] = np.diff(scores.indptr)
    return csr(np.cumsum(indptr, dtype=np.int32), scores.indices, -scores.data, layout.n_entries)


def _given(part: PatternPart, cumulated: Floats, layout: Thresholds) -> tuple[Floats, Floats, Floats, Floats, float]:
    """P(X >= k | s) and c, patterns x items x levels; sums of D and of c c' for every item; and of log gamma."""
    found = part_given(part, cumulated)
    passed = np.ascontiguousarray(found.passed.transpose(2, 1, 0))
    width = passed.shape[2]
    lower = passed @ np.triu(np.ones((width, width)), 1)  # sum over k' < k of P(X >= k')
    _, level = np.ogrid[:1, :width]
    # sum over k' of P(X >= max(k, k')) = (k) P(X >= k) + sum over k' > k of P(X >= k')
    higher = passed.sum(axis=2, keepdims=True) - lower - passed
    w = (level + 1) * passed + higher - passed * passed.sum(axis=2, keepdims=True)
    variance = w.sum(axis=2)
    s = matched_factors(variance.T, part.counts).T
    rest = s.sum(axis=1, keepdims=True) - s
    c = w * np.divide(1.0, rest, out=np.zeros_like(rest), where=(rest > 0) & (variance > 0))[:, :, None]
    items = part.items.ravel()
    n = layout.n_items + 1
    within, outer = np.zeros((n, width, width)), np.zeros((n, width, width))
    people = part.people[:, None]
    for a in range(width):
        for b in range(a, width):
            covariance = people * passed[:, :, b] * (1 - passed[:, :, a])
            product = people * c[:, :, a] * c[:, :, b]
            for total, values in ((within, covariance), (outer, product)):
                total[:, a, b] = total[:, b, a] = np.bincount(items, weights=values.ravel(), minlength=n)
    return passed, c, within[:-1], outer[:-1], float(part.people @ found.log_gamma)


def _stacked(values: list[Floats], parts: list[PatternPart], codes: Ints) -> sparse.csr_array:
    """All patterns x thresholds; padding is in a last column."""
    where = np.concatenate([codes[part.items].reshape(-1) for part in parts])
    counts = np.concatenate([np.full(len(part.items), part.items.shape[1] * codes.shape[1]) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    data = np.concatenate([each.reshape(-1) for each in values])
    return csr(indptr, where.astype(np.int32), data, int(codes.max()) + 1)
