"""The prior: an item is like the other items that its own people met, up to a deviation.

W_ij = sum_{l answered i and j} (1 / n_i) (1 / n_j) / z_l, z_l = sum_{k answered by l} 1 / n_k, is symmetric, with rows
that add to 1: (W beta)_i is the level of the items that item i's people met, and L beta = beta - W beta. In linked
forms the direction in which forms shift against each other hardly moves L beta, so such a prior leaves it to the data,
where one around a single mean would flatten a vertical scale. Items that nobody who answered two answered are alone.

d = D^-1 L beta with D = diag(1 - W_ii) is how far an item lies from the *other* items that its people met, and the
prior is d ~ N(0, 1 / alpha). It fades where the answers know better (`fading`): item i counts s_i, from 1 to 0. The
penalty's matrix is P = alpha L D^-1 S D^-1 L; its pull has the covariance alpha L D^-1 S^2 D^-1 L where deviations are
drawn from the prior.

Thresholds are beta_ik = delta_i + t_ik, a location, with the prior above, and offsets that add to zero. Offsets differ
from the mean offsets of the items with as many categories, and of one more with equal thresholds, by a normal deviation
of a precision of its own: with Q = (I - 1/K) (I - rho M), M the mean over those items and rho = n / (n + 1), the
penalty is alpha / 2 sum_ik f_ik (Q beta)_ik^2.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from spectral_irt.chain.regularization import fading, precision_of, precision_step, renewed_precision
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.numerics import csr, gram, shared_ones

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
        """With the people of the chosen items only: the same L v on these, and for a v that is zero on the others."""
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


@dataclass(frozen=True, eq=False)
class LocationPrior:
    """Precision alpha of the deviations, and how much it counts for each item."""

    neighbors: Neighbors
    alpha: float
    fade: Floats
    estimated: bool

    def deviation(self, beta: Floats) -> Floats:
        """d: how far each item lies from the other items that its people met."""
        return self._per_other * self.neighbors.deviation(beta)

    def __matmul__(self, v: Floats) -> Floats:
        """P v."""
        return self.spread(v, 1)

    def spread(self, v: Floats, power: int = 2) -> Floats:
        """The covariance of the pull, times v; or P v, with the first power of the fading."""
        weight, near = self.alpha * self.fade**power * self._per_other**2, self._near
        return near.deviation((weight if v.ndim == 1 else weight[:, None]) * near.deviation(v))

    @property
    def _near(self) -> Neighbors:
        """All that deviations of items with a prior have to do with."""
        return self.neighbors.around(self.fade > 0)

    @property
    def _per_other(self) -> Floats:
        """1 / (1 - W_ii); 0 for items without neighbors."""
        others = 1 - self.neighbors.own
        return np.divide(1.0, others, out=np.zeros(len(others)), where=others > 1e-9)

    def diagonal(self, power: int = 1) -> Floats:
        """P_ii, about: alpha s_i, and what the deviations of others add: much, where many rare items met a popular one.

        That is sum_j G_ji^2 with G = sqrt(S) D^-1 L, by random signs: known to a quarter of itself, which is enough. Or
        that of the covariance of the pull, of items that others add to a little too large.
        """
        own = self.fade * (self._per_other > 0)
        both = self.alpha * np.maximum(own, self._near.mean_squares(np.sqrt(self.fade) * self._per_other))
        return both if power == 1 else np.maximum(self.alpha * self.fade * own, both * self.fade)

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        normal = noise.standard_normal((len(self.fade), columns))
        return np.sqrt(self.alpha) * self._near.deviation((self.fade * self._per_other)[:, None] * normal)

    def dense(self) -> tuple[Floats, Floats]:
        """P and the covariance of its pull, m x m each."""
        scaled = self.neighbors.dense() * self._per_other  # L D^-1
        return self.alpha * (scaled * self.fade) @ scaled.T, self.alpha * (scaled * self.fade**2) @ scaled.T

    def renewed(self, beta: Floats, information: Floats, share: Floats) -> LocationPrior:
        """With the precision that the deviations at these difficulties speak for (one step of empirical Bayes).

        alpha = (sum_i g_i + 2) / (sum_i d_i^2 + 2) with g_i = 1 - alpha (E d_i^2 - d_i^2), the share of each deviation
        that the answers determine (MacKay 1992); the twos and a bound of 1 / alpha are those of `prior_precision`.
        """
        if not self.estimated:
            return self
        return replace(self, alpha=renewed_precision(self.deviation(beta), information, share, self.alpha))


def fading_of_both(layout: Thresholds, information: Floats, tied: Mask, beta: Floats) -> tuple[Floats, Floats]:
    """How much the prior counts for each location, and for each threshold's offset, where thresholds lie about here.

    What the answers tell about a location is taken for the sum over its thresholds.
    """
    told, ties = layout.mean(information) * layout.max_score, layout.mean(tied.astype(np.float64))
    away = Prior(layout, None, 1.0, np.ones(layout.n_entries), True).deviation(beta)
    own = fading(information, tied, precision_of(away, information))
    return fading(told, ties > 0, precision_of(layout.mean(beta), told)), own


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of the locations, if any; the precision of the offsets, and how much it counts for each threshold."""

    layout: Thresholds
    location: LocationPrior | None
    alpha: float
    fade: Floats
    estimated: bool

    @property
    def precisions(self) -> Floats:
        """Of the locations and of the offsets, where there are any."""
        return np.array(([self.location.alpha] if self.location else []) + ([] if self.layout.binary else [self.alpha]))

    @property
    def counts(self) -> Floats:
        """How much the prior counts for each threshold, by its offset or by its location."""
        if self.layout.binary and self.location:
            return self.location.fade
        return self.fade if self.location is None else np.maximum(self.fade, self.location.fade[self.layout.item])

    @cached_property
    def average(self) -> sparse.csr_array:
        """Items x thresholds: the mean of an item's thresholds."""
        layout = self.layout
        indptr = np.append(layout.first, layout.n_entries)
        shape = (layout.n_items, layout.n_entries)
        return sparse.csr_array((1 / layout.max_score[layout.item], np.arange(layout.n_entries), indptr), shape=shape)

    @cached_property
    def _alike(self) -> tuple[sparse.csr_array, Ints]:
        """(Thresholds of the same level of items with as many) x thresholds: their mean, times rho; which each is."""
        layout = self.layout
        own = layout.max_score[layout.item] * (layout.widest + 1) + layout.level
        _, code, count = np.unique(own, return_inverse=True, return_counts=True)
        entries = (1 / (count[code] + 1.0), (code, np.arange(layout.n_entries)))
        return sparse.csr_array(entries, shape=(len(count), layout.n_entries)), code

    def deviation(self, v: Floats) -> Floats:
        """Q v, for one vector or for the columns of a matrix; Q is symmetric."""
        t, (alike, code) = v - (self.average @ v)[self.layout.item], self._alike
        return t - (alike @ t)[code]

    def __matmul__(self, v: Floats) -> Floats:
        """The penalty's matrix times v."""
        return self.spread(v, 1)

    def spread(self, v: Floats, power: int = 2) -> Floats:
        """The covariance of the pull where deviations are drawn from the prior, times v; or the penalty's matrix."""
        if self.layout.binary and self.location:
            return self.location.spread(v, power)
        weight = self.alpha * self.fade**power
        offsets = self.deviation((weight if v.ndim == 1 else weight[:, None]) * self.deviation(v))
        return offsets + (self.average.T @ self.location.spread(self.average @ v, power) if self.location else 0.0)

    def within(self, power: int = 1) -> Floats:
        """Of the penalty's matrix, the part of each item, levels x levels; or of the covariance of the pull."""
        diagonal = self.location.diagonal(power) if self.location else np.zeros(self.layout.n_items)
        return self._blocks(diagonal, self.fade**power)

    def _blocks(self, diagonal: Floats, fade: Floats) -> Floats:
        layout = self.layout
        if layout.binary:
            return diagonal[:, None, None]
        inside = layout.table(np.ones(layout.n_entries), 0.0)
        k = layout.max_score[:, None, None]
        pairs = inside[:, :, None] * inside[:, None, :]
        center = inside[:, :, None] * np.eye(layout.widest) - pairs / k
        scaled = center * layout.table(self.alpha * fade, 0.0)[:, None, :]
        return pairs * (diagonal[:, None, None] / k**2) + scaled @ center

    def dense(self) -> tuple[Floats, Floats]:
        """The penalty's matrix and the covariance of its pull."""
        if self.layout.binary and self.location:
            return self.location.dense()
        a = self.average.toarray()
        q = self.deviation(np.eye(self.layout.n_entries))
        penalty, pull = (self.alpha * (q * fade) @ q for fade in (self.fade, self.fade**2))
        if self.location is None:
            return penalty, pull
        own, its_pull = self.location.dense()
        return penalty + a.T @ own @ a, pull + a.T @ its_pull @ a

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        if self.layout.binary and self.location:
            return self.location.draw(noise, columns)
        normal = noise.standard_normal((self.layout.n_entries, columns))
        offsets = np.sqrt(self.alpha) * self.deviation(self.fade[:, None] * normal)
        return offsets + (self.average.T @ self.location.draw(noise, columns) if self.location else 0.0)

    def renewed(self, beta: Floats, own: Floats, share: Floats) -> Prior:
        """With the precisions that the deviations at these thresholds speak for, as `LocationPrior.renewed`.

        `own` are the items' blocks of the information, `share` is the share of people who pass each threshold.
        """
        layout, location = self.layout, self.location
        if layout.binary and location:
            return replace(self, location=location.renewed(beta, own[:, 0, 0], share))
        several, alpha = layout.max_score > 1, location.alpha if location else 0.0
        inside = layout.table(np.ones(layout.n_entries), 0.0)
        full = self._blocks(np.full(layout.n_items, alpha), np.ones(layout.n_entries))
        known = np.linalg.inv(own + full + np.eye(layout.widest) * (1 - inside)[:, None, :])
        known = known * inside[:, :, None] * inside[:, None, :]
        around = known.sum(axis=(1, 2)) / layout.max_score**2  # variance of the location
        trace = np.einsum("ikk->i", known) - around * layout.max_score  # of the offsets
        told = np.maximum(1 / np.maximum(around, 1e-12) - alpha, 0.0)
        if location:
            d, certain = location.deviation(self.average @ beta), np.clip(1 - alpha * around, 0.0, 1.0).sum()
            location = replace(location, alpha=precision_step(certain, d, told))
        t, degrees = self.deviation(beta), (layout.max_score - 1).astype(float)
        certain = np.clip(degrees - self.alpha * trace, 0.0, degrees)[several].sum()
        return replace(self, location=location, alpha=precision_step(certain, t, told[layout.item]))
