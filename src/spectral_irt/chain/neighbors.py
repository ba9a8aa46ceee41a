"""The level of the items that an item's own people met.

Average over the people of an item, then over their items, each person and each item counting by 1 / n_i:

    W_ij = sum_{l answered i and j} (1 / n_i) (1 / n_j) / z_l,    z_l = sum_{k answered by l} 1 / n_k,

symmetric, with rows that add to 1. (W beta)_i is the level that item i's people met, and (L beta)_i = beta_i -
(W beta)_i how far the item lies from it. A prior on these deviations is, on complete data where W is 1 / m everywhere,
a normal prior around the mean. In linked forms the direction in which forms shift against each other hardly moves
L beta, so such a prior leaves it to the data, where one around a single mean would flatten a vertical scale.

People with a single answer met nothing else and are left out. Items that nobody who answered two answered are alone:
their row of L is zero.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.data.thresholds import Thresholds, rows_of
from spectral_irt.numerics import gram
from spectral_irt.sparse_kernels import csr, shared_ones

PROBES, FEWER, MANY = 16, 4, 1_000_000  # random signs for the mean squares; fewer for more answers than this
MOST = 0.7  # share of the people from which on leaving out the others is not worth a copy


class Neighbors:
    """W and L of the items of these responses, as operators: one pass over the answers each."""

    def __init__(self, responses: Responses) -> None:
        rows = responses.entries.prepare(_Rows.of, responses.thresholds)
        m = responses.n_items
        self.n_items = m
        met = rows.sum(_met)
        self.share: Floats = np.divide(1.0, met, out=np.zeros(m), where=met > 0)
        self.alone = met == 0
        self.rows = rows.prepare(_Rows.shared, self.share)
        self.probes = PROBES if responses.n_responses <= MANY else FEWER
        self._squares: dict[bytes, Floats] = {}
        self._around: dict[bytes, Neighbors] = {}

    def level(self, v: Floats) -> Floats:
        """W v, for one vector or for the columns of a matrix; what is alone is its own level."""
        share, alone = (each if v.ndim == 1 else each[:, None] for each in (self.share, self.alone))
        return np.where(alone, v, share * self.rows.sum(_averages, share * v))

    def deviation(self, v: Floats) -> Floats:
        """L v = v - W v."""
        return v - self.level(v)

    @cached_property
    def own(self) -> Floats:
        """W_ii: how much of its level an item is itself."""
        return np.where(self.alone, 1.0, self.share**2 * self.rows.sum(_inverse_sums))

    def around(self, chosen: Mask) -> Neighbors:
        """As these, but with the people of the chosen items only: the same L v on these items, for every v, and the
        same L v everywhere for a v that is zero on the others."""
        key = chosen.tobytes()
        if key not in self._around:
            fewer = copy(self)
            fewer.rows = self.rows.prepare(_Rows.meeting, chosen.astype(float))
            self._around[key] = fewer
        return self._around[key]

    def mean_squares(self, scale: Floats) -> Floats:
        """About sum_j (scale_j L_ji)^2 for every item i: the mean of (L scale signs)_i^2 over random signs."""
        key = scale.tobytes()
        if key not in self._squares:
            signs = np.random.default_rng(0).integers(0, 2, (self.n_items, self.probes)) * 2.0 - 1
            self._squares[key] = np.mean(self.deviation(scale[:, None] * signs) ** 2, axis=1)
        return self._squares[key]

    def dense(self) -> Floats:
        """L itself, m x m."""
        w = self.rows.sum(_pairs, self.share)
        return np.diag((~self.alone).astype(float)) - w

    def parts(self) -> Ints:
        """Which items hang together through people who answered two: numbered from 0 by falling size."""
        from scipy.sparse.csgraph import connected_components

        trees: list[Ints] = list(self.rows.map(_forest))
        here, there = (np.concatenate([tree[k] for tree in trees]) for k in (0, 1))
        graph = sparse.coo_array((np.ones(len(here), dtype=np.int8), (here, there)), shape=(self.n_items,) * 2)
        _, labels = connected_components(graph, directed=False)
        order = np.argsort(-np.bincount(labels), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank[labels]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Who answered what in one block, people with two answers or more: a 0/1 matrix, people x items."""

    matrix: sparse.csr_array
    inverse: Floats | None = None  # 1 / z_l

    def shared(self, share: Floats) -> _Rows:
        return replace(self, inverse=1 / (self.matrix @ share))

    def meeting(self, chosen: Floats) -> _Rows:
        """Without the people who met none of the chosen items, where these are many."""
        meets = self.matrix @ chosen > 0
        if meets.mean() > MOST:
            return self
        return _Rows(self.matrix[np.flatnonzero(meets)], None if self.inverse is None else self.inverse[meets])

    @classmethod
    def of(cls, block: Block, thresholds: Thresholds) -> _Rows:
        rows = rows_of(block, thresholds)
        several = rows.counts > 1
        if not several.all():
            rows = rows.take(np.flatnonzero(several))
        ones = shared_ones(len(rows.items))
        return cls(csr(rows.indptr.astype(np.int32), np.asarray(rows.items), ones, thresholds.n_items))


def _met(rows: _Rows) -> Floats:
    return np.bincount(rows.matrix.indices, minlength=rows.matrix.shape[1]).astype(np.float64)


def _averages(rows: _Rows, v: Floats) -> Floats:
    assert rows.inverse is not None
    return rows.matrix.T @ ((rows.matrix @ v) * (rows.inverse if v.ndim == 1 else rows.inverse[:, None]))


def _inverse_sums(rows: _Rows) -> Floats:
    return rows.matrix.T @ rows.inverse


def _pairs(rows: _Rows, share: Floats) -> Floats:
    scale = sparse.diags_array(1 / np.sqrt(rows.matrix @ share))
    return gram(sparse.csr_array(scale @ rows.matrix @ sparse.diags_array(share)))


def _forest(rows: _Rows) -> tuple[Ints, Ints]:
    """Pairs of items, few, that hang together in this block just as all its pairs do."""
    from scipy.sparse.csgraph import connected_components

    n, m = rows.matrix.shape
    person = np.repeat(np.arange(n), np.diff(rows.matrix.indptr))
    graph = sparse.coo_array(
        (np.ones(len(person), dtype=np.int8), (m + person, rows.matrix.indices)), shape=(m + n, m + n)
    )
    labels = connected_components(graph, directed=False)[1][:m]
    first = np.full(labels.max(initial=0) + 1, m)
    np.minimum.at(first, labels, np.arange(m))
    return np.arange(m), first[labels]
