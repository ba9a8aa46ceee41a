"""The information of the conditional likelihood, and what it says about the standard errors.

A person's information matrix is the covariance of the answers given the score. It is a graph Laplacian on the items
(its rows sum to zero), and comes in two forms:

- exact, from the pair probabilities of `contour`: dense, for standard errors;
- matched: off-diagonal -c_i c_j, with c such that the diagonal is the exact P_i (1 - P_i). It is a product, so that
  `H y = d y - C' (C y)` costs one light pass over the answers: this drives the Newton steps. Equal to the exact one
  where people answer two items, and close to it elsewhere: standard errors differ by less than 0.01% where people
  answer 30 items or more, and by 0.03% (median; at most 2%) where they answer three. So it also gives the standard
  errors of data too large for the exact one. It improves on n / (n - 1) (diag(v) - v v' / V), which is its limit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.contour import Contour, n_points
from spectral_irt.conditional.patterns import PatternPart, columns_of
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import Prepared

CELLS = 300_000  # patterns x thresholds x points of the pairs at a time: some ten megabytes
SHORT = 24  # thresholds; below, the pairs of many patterns are added at once, above, pattern by pattern


# ------------------------------------------------------------------------------- the matched form


def matched_factors(variance: Floats, counts: Ints) -> Floats:
    """c with c_i sum_{j != i} c_j = the variance of answer i given the score, column by column.

    Five rounds settle it to a per cent or better.
    """
    inside = np.arange(len(variance))[:, None] < counts
    total = np.sqrt(variance.sum(axis=0) * counts / (counts - 1))
    c = np.broadcast_to(total / counts, variance.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(5):
            c = np.where(inside & (variance > 0), variance / (total - c), 0.0)
            total = np.sqrt((variance + c * c).sum(axis=0))
    return c


@dataclass(frozen=True, eq=False)
class Point(ABC):
    """The conditional likelihood at some thresholds: its gradient, and its matched information as an operator.

    Given the score, thresholds of one item have the covariance D_i of the category probabilities, those of two items
    -c_i c_j'. Rows add to zero, so c_i (T - s_i) = D_i 1 with s_i the sum of c_i and T that of all s: the s are the
    `matched_factors` of the variances of the answers.

    Attributes
    ----------
    rows : Prepared
        Every person's score and c there; their memory is used again by the next evaluation.
    gradient : float array
        People expected to pass each threshold given their scores, less those who did.
    own, inner : float arrays, items x levels x levels
        The items' blocks D of the information; and D + sum c c' within items: the information is inner - C' C.
    loglik : float
        The log-likelihood, where all sums are exact; NaN elsewhere.
    """

    beta: Floats
    layout: Thresholds
    rows: Prepared
    gradient: Floats
    own: Floats
    inner: Floats
    loglik: float = field(default=np.nan, kw_only=True)

    @cached_property
    def information(self) -> Floats:
        """What the answers tell about each threshold, the others given."""
        return from_levels(self.layout, np.einsum("ikk->ik", self.own))

    def __matmul__(self, v: Floats) -> Floats:
        """The information times v; one vector, or the columns of a matrix."""
        return by_blocks(self.layout, self.inner, v) - self.factors_twice(v)

    @abstractmethod
    def factors_twice(self, v: Floats) -> Floats:
        """C' C v."""

    @abstractmethod
    def factor_gram(self, *, single: bool = False, design: sparse.csr_array | None = None) -> Any:
        """C' C; or with a design A' C' C A, sparse."""

    def dense(self, *, single: bool = False) -> Floats:
        """The information, thresholds x thresholds.

        For right and wrong answers what is added up are positive numbers, each good to its own 1e-6 in `single`
        precision, and rows are made to add to zero.
        """
        matrix = -self.factor_gram(single=single)
        if self.layout.binary:
            np.fill_diagonal(matrix, 0)
            np.fill_diagonal(matrix, -matrix.sum(axis=1))
            return matrix
        item, level = self.layout.item, self.layout.level - 1
        same = np.nonzero(item[:, None] == item)
        matrix[same] += self.inner[item[same[0]], level[same[0]], level[same[1]]]
        return matrix

    def of_parameters(self, design: sparse.csr_array) -> sparse.csr_array:
        """A' H A, parameters x parameters: as sparse as there are parameters of which no person meets two."""
        own = design.T @ (block_diagonal(self.layout, self.inner) @ design)
        return sparse.csr_array(own - self.factor_gram(design=design))

    @abstractmethod
    def score_gram(self, *, single: bool = False, design: sparse.csr_array | None = None) -> Any:
        """The sum over people of their scores' squares g g', thresholds x thresholds; or with a design A' g g' A."""

    @abstractmethod
    def score_blocks(self) -> Floats:
        """Of that, the part of each item: levels x levels."""

    @abstractmethod
    def score_twice(self, v: Floats) -> Floats:
        """That times v."""

    @abstractmethod
    def signed_scores(self, seed: int, columns: int, design: sparse.csr_array | None = None) -> Floats:
        """Columns of sums of people's scores with random signs: their covariance is that matrix; A' times them."""

    def beyond_thin(self, beta: Floats, prior: Any) -> Floats:
        """`beta` with thin items brought nearer to their place, where that is cheap; see `table_rows`."""
        return beta


def by_blocks(layout: Thresholds, blocks: Floats, v: Floats) -> Floats:
    """A matrix with these blocks for the items, times v; one vector, or the columns of a matrix."""
    if layout.binary:
        return (blocks[:, 0, 0] if v.ndim == 1 else blocks[:, 0]) * v
    columns = v if v.ndim == 2 else v[:, None]
    levels = np.zeros((layout.n_items, layout.widest, columns.shape[1]))
    levels[layout.item, layout.level - 1] = columns
    return (blocks @ levels)[layout.item, layout.level - 1].reshape(v.shape)


def balanced(layout: Thresholds, own: Floats, outer: Floats, around: Floats) -> tuple[Floats, Floats]:
    """`own` and `inner` of a `Point`, from sums of D and of c c' within items and from C' C 1.

    Rows of the whole must add to zero: what a series or a few rounds have left goes to the diagonal.
    """
    left = around - by_blocks(layout, own + outer, np.ones(layout.n_entries))
    own[layout.item, layout.level - 1, layout.level - 1] += left
    return own, own + outer


def block_diagonal(layout: Thresholds, blocks: Floats) -> sparse.csr_array:
    """A sparse matrix with these blocks for the items, thresholds x thresholds."""
    inside = np.arange(layout.widest) < layout.max_score[:, None]
    item, one, other = np.nonzero(inside[:, :, None] & inside[:, None, :])
    places = layout.first[item] + one, layout.first[item] + other
    n = layout.n_entries
    return sparse.csr_array((blocks[item, one, other], places), shape=(n, n))


def from_levels(layout: Thresholds, values: Floats) -> Floats:
    """Items x levels -> thresholds."""
    return values[:, 0] if layout.binary else values[layout.item, layout.level - 1]


# --------------------------------------------------------------------------------- the exact form


def contours(part: PatternPart, cumulated: Floats) -> Iterator[tuple[slice, Contour]]:
    """Some patterns at a time, with the contour sums that pairs of items need."""
    width = cumulated.shape[1] - 1
    points = int(n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)[1].max())
    size = max(1, CELLS // (part.items.shape[1] * points * width))
    for start in range(0, len(part.scores), size):
        some = slice(start, start + size)
        yield some, Contour.of(columns_of(part, cumulated, some), part.scores[some], part.max_scores[some])


def exact_information(part: PatternPart, cumulated: Floats, codes: Ints, n_thresholds: int) -> Floats:
    """sum of Cov(1{X_i >= k}, 1{X_j >= k'} | s), thresholds x thresholds; `cumulated` is `padded`."""
    total = np.zeros((n_thresholds + 1, n_thresholds + 1))  # the last row and column take the padding
    items, width = part.items.shape[1], cumulated.shape[1] - 1
    level = np.arange(width)
    higher = np.maximum(level[:, None], level)
    own = np.arange(items)[:, None, None] * width
    block = (own + level[:, None] + 0 * level, own + level + 0 * level[:, None])  # thresholds of one item
    for some, sums in contours(part, cumulated):
        people = part.people[some, None, None]
        passed = sums.given.passed.transpose(2, 1, 0)
        within = (passed[:, :, higher] - passed[:, :, :, None] * passed[:, :, None, :]) * people[..., None]
        flat = passed.reshape(len(passed), items * width, 1)
        real, imaginary = (factor.reshape(len(passed), items * width, -1) for factor in sums.pair_factors())
        left = np.concatenate([real, imaginary, flat], axis=2)
        right = np.concatenate([real, -imaginary, -flat], axis=2) * people
        where = codes[part.items[some]].reshape(len(passed), -1)
        if part.one_set:
            pairs = np.tensordot(left, right, axes=([0, 2], [0, 2]))
            pairs[block] = within.sum(axis=0)
            total[np.ix_(where[0], where[0])] += pairs
        elif items * width < SHORT:
            pairs = left @ right.transpose(0, 2, 1)
            pairs[(slice(None), *block)] = within
            np.add.at(total.reshape(-1), where[:, :, None] * len(total) + where[:, None, :], pairs)
        else:
            for row, here in enumerate(where):
                pairs = left[row] @ right[row].T
                pairs[block] = within[row]
                total.reshape(-1)[(here[:, None] * len(total) + here).reshape(-1)] += pairs.reshape(-1)
    return total[:n_thresholds, :n_thresholds]


def exact_work(part: PatternPart) -> float:
    """Pairs of items that the exact information adds up."""
    return float(part.items.size * part.items.shape[1])
