"""Ordered answers given the total score, exactly: people with little information, and patterns that repeat.

What depends on the items answered and the total score alone is computed once for a pattern of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from spectral_irt.conditional.given_score import passed_given
from spectral_irt.conditional.information import variance_links
from spectral_irt.conditional.patterns import PatternPart, pattern_parts, step_codes
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import same_rows
from spectral_irt.data.thresholds import Rows, Thresholds
from spectral_irt.sparse_kernels import csr

Sums = tuple[Floats, Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class ExactRows:
    """People, and the patterns that they have.

    Attributes
    ----------
    passed : csr matrix, people x thresholds
        The threshold that each answer passed last.
    of_person : int array
        The pattern of each.
    patterns : list of PatternPart
        The patterns, some at a time.
    expected, link : csr matrices, patterns x thresholds
        P(X >= k | s); and c, times the root of how many people have the pattern.
    """

    passed: sparse.csr_array
    of_person: Ints
    patterns: list[PatternPart]
    steps: Thresholds
    codes: Ints
    expected: sparse.csr_array | None = None
    link: sparse.csr_array | None = None

    @classmethod
    def of(cls, rows: Rows, passed: sparse.csr_array, steps: Thresholds) -> ExactRows:
        found = same_rows(rows, steps)
        parts = pattern_parts(found.rows, found.count, steps)
        order = np.concatenate([part.which for part in parts])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return cls(passed, rank[found.of_person], parts, steps, step_codes(steps))

    def evaluated(self, cumulated: Floats) -> tuple[ExactRows, Sums]:
        """At other thresholds; and the sums of `step_rows.evaluate`."""
        pieces = [_given(part, cumulated, self.steps) for part in self.patterns]
        expected, link = (_stacked([piece[k] for piece in pieces], self.patterns, self.codes) for k in (0, 1))
        people = np.concatenate([part.people for part in self.patterns])
        root = np.repeat(np.sqrt(people), np.diff(link.indptr))
        link = csr(link.indptr, link.indices, link.data * root, link.shape[1])
        there = slice(0, self.steps.n_entries)  # the column after them is padding
        passed = (expected.T @ people)[there]
        within, outer = (np.sum([piece[k] for piece in pieces], axis=0) for k in (2, 3))
        around = (link.T @ (link @ np.ones(link.shape[1])))[there]
        return replace(self, expected=expected, link=link), (passed, within, outer, around)

    def linked(self, v: Floats) -> Floats:
        """C' C v."""
        assert self.link is not None
        padding = np.zeros((1, *v.shape[1:]))
        return (self.link.T @ (self.link @ np.concatenate([v, padding])))[:-1]

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

    def expected_rows(self) -> sparse.csr_array:
        """P(X >= k | s), people x thresholds."""
        assert self.expected is not None
        return sparse.csr_array(self.expected[self.of_person][:, : self.steps.n_entries])


def _given(part: PatternPart, cumulated: Floats, steps: Thresholds) -> tuple[Floats, Floats, Floats, Floats]:
    """P(X >= k | s) and c, patterns x items x levels; and sums of D and of c c' for every item."""
    passed = passed_given(part, cumulated)
    width = passed.shape[2]
    lower = passed @ np.triu(np.ones((width, width)), 1)  # sum over k' < k of P(X >= k')
    _, level = np.ogrid[:1, :width]
    # sum over k' of P(X >= max(k, k')) = (k) P(X >= k) + sum over k' > k of P(X >= k')
    higher = passed.sum(axis=2, keepdims=True) - lower - passed
    w = (level + 1) * passed + higher - passed * passed.sum(axis=2, keepdims=True)
    variance = w.sum(axis=2)
    s = variance_links(variance.T, part.counts).T
    rest = s.sum(axis=1, keepdims=True) - s
    c = w * np.divide(1.0, rest, out=np.zeros_like(rest), where=(rest > 0) & (variance > 0))[:, :, None]
    items = part.items.ravel()
    n = steps.n_items + 1
    within, outer = np.zeros((n, width, width)), np.zeros((n, width, width))
    people = part.people[:, None]
    for a in range(width):
        for b in range(a, width):
            covariance = people * passed[:, :, b] * (1 - passed[:, :, a])
            product = people * c[:, :, a] * c[:, :, b]
            for total, values in ((within, covariance), (outer, product)):
                total[:, a, b] = total[:, b, a] = np.bincount(items, weights=values.ravel(), minlength=n)
    return passed, c, within[:-1], outer[:-1]


def _stacked(values: list[Floats], parts: list[PatternPart], codes: Ints) -> sparse.csr_array:
    """All patterns x thresholds; padding is in a last column."""
    where = np.concatenate([codes[part.items].reshape(-1) for part in parts])
    counts = np.concatenate([np.full(len(part.items), part.items.shape[1] * codes.shape[1]) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    data = np.concatenate([each.reshape(-1) for each in values])
    return csr(indptr, where.astype(np.int32), data, int(codes.max()) + 1)
