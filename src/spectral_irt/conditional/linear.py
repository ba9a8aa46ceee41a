"""Linear designs beta = A eta: what the answers leave open, and a prior on the parameters.

A direction u of the parameters is not identified when A u is constant on every part of the thresholds that people link.
With items and raters there are two in an ordinary design: all items against all people, and all raters against all
items. More are what Facets calls disjoint subsets: levels of a facet that such a direction moves apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from spectral_irt.chain.regularization import fading, prior_precision
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.errors import OptionError

MOST_COLUMNS = 3000  # of a design beside its largest term
ROWS = 20_000  # at a time
ZERO = 1e-9  # of an eigenvalue, to the largest; of a direction, to its length


def unidentified(design: sparse.csr_array, parts: Ints, fixed: Mask | None = None, term: slice | None = None) -> Floats:
    """Orthonormal directions of the free parameters along which all thresholds of a part move alike, as columns.

    `term` are columns of which every row has a single one, its value 1: the largest facet, beside which all others are
    to be few. A parameter u_b of it and the level p_c of a part are the nodes of a graph with an edge for each row,
    u_b + a x = p_c, so that along a tree everything follows from the other parameters x, and the edges that are left
    are equations in these alone. Without a term there is one u, known to be zero.
    """
    n, size = design.shape
    others = np.ones(size, dtype=bool) if fixed is None else ~fixed
    level, n_levels, tied = np.zeros(n, dtype=np.int64), 1, np.zeros(1, dtype=np.int64)
    if term is not None:
        level, n_levels = sparse.csr_array(sparse.csc_array(design)[:, term]).indices, term.stop - term.start
        tied = np.flatnonzero(~others[term])
        others[term] = False
    rest = np.flatnonzero(others)
    if len(rest) > MOST_COLUMNS:
        raise OptionError(
            f"the design has {len(rest):,} parameters beside its largest facet; up to {MOST_COLUMNS:,} are possible."
        )
    a = sparse.csr_array(sparse.csc_array(design)[:, rest])
    potential, tree, n_floating = _potential(level, n_levels, parts, a, tied)
    system = potential[tied].T @ potential[tied]
    for start in range(0, n, ROWS):
        some = slice(start, start + ROWS)
        rows = a[some].toarray() + potential[level[some]] - potential[n_levels + parts[some]]
        system += rows.T @ rows
    values, vectors = np.linalg.eigh(system) if len(rest) else (np.zeros(0), np.zeros((0, 0)))
    x = vectors[:, values <= ZERO * max(values.max(initial=0.0), 1.0)]
    found = np.zeros((size, x.shape[1] + (n_floating if term is not None else 0)))
    found[rest, : x.shape[1]] = x
    if term is not None:
        found[term, : x.shape[1]] = potential[:n_levels] @ x
        floats = np.flatnonzero(tree[:n_levels] < n_floating)
        found[term.start + floats, x.shape[1] + tree[floats]] = 1.0
    return np.linalg.qr(found)[0] if found.shape[1] else found


def _potential(level: Ints, n_levels: int, parts: Ints, a: sparse.csr_array, tied: Ints) -> tuple[Floats, Ints, int]:
    """What each level, and then each part, is in terms of the other parameters along a spanning forest; which tree each
    is in; and how many trees, the first ones, have no fixed level."""
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    ground = n_levels + int(parts.max()) + 1  # fixed levels hang on it
    top, n = ground + 1, len(level)  # above a root of each tree; the row `n` is that of edges that say nothing
    heads, tails = np.concatenate([level, tied]), np.concatenate([n_levels + parts, np.full(len(tied), ground)])
    row = np.append(np.arange(n), np.full(len(tied), n))
    _, first = np.unique(heads * np.int64(top) + tails, return_index=True)
    graph = sparse.csr_array((row[first] + 1, (heads[first], tails[first])), shape=(top + 1, top + 1))
    tree = connected_components(graph, directed=False)[1][:top]
    tree = np.unique(np.where(tree == tree[ground], top, tree), return_inverse=True)[1].ravel()  # the ground's is last
    roots = np.unique(tree, return_index=True)[1]
    roots[-1] = ground
    above = (np.full(len(roots), n + 1), (np.full(len(roots), top), roots))
    graph = sparse.csr_array(graph + graph.T + sparse.csr_array(above, shape=graph.shape))
    before = breadth_first_order(graph, top)[1]
    before[top] = top
    row = np.append(graph[before[:-1], np.arange(top)] - 1, n)
    potential = sparse.csr_array(sparse.vstack([a, sparse.csr_array((1, a.shape[1]))]))[row].toarray()
    potential[:n_levels] *= -1
    while (before != top).any():  # each has what leads to a node above it, and then what that has
        potential += potential[before]
        before = before[before]
    return potential[:top], tree, int(tree.max())


def subsets(directions: Floats) -> Ints:
    """Which of these parameters can be compared: the same number for those that no direction moves apart.

    Numbered from 0 by falling size. `directions` are the rows of `unidentified` for the levels of one facet.
    """
    _, code, count = np.unique(np.round(directions, 8) + 0.0, axis=0, return_inverse=True, return_counts=True)
    rank = np.empty(len(count), dtype=np.int64)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    return rank[code.ravel()]


@dataclass(frozen=True, eq=False)
class Ridge:
    """A normal prior on the parameters of a design, each around the mean of its group: raters, thresholds of a level.

    Parameters of group -1 have none; `tied` are those that the data alone tie to the others; `alpha` is the precision
    of each group, by empirical Bayes where `estimated`, `fade` how much it counts for each parameter, and `weight` that
    of each in the mean of its group.
    """

    group: Ints
    tied: Mask
    alpha: Floats
    fade: Floats
    weight: Floats
    estimated: bool = True

    @classmethod
    def of(cls, group: Ints, tied: Mask, alpha: float | None = None) -> Ridge:
        """With this precision, or an estimated one."""
        n = int(group.max(initial=-1)) + 1
        sizes = np.append(np.bincount(group[group >= 0], minlength=n), 0)
        weight = np.where(group >= 0, 1 / np.maximum(sizes[group], 1), 0.0)
        alphas = np.where(sizes[:n] > 1, 1.0 if alpha is None else alpha, 0.0)
        return cls(group, tied, alphas, np.where(group >= 0, 1.0, 0.0), weight, alpha is None)

    @cached_property
    def precision(self) -> Floats:
        """Of every parameter."""
        return np.append(self.alpha, 0.0)[self.group] * self.fade

    def deviation(self, v: Floats) -> Floats:
        """v less the mean of its group; one vector, or the columns of a matrix."""
        return v - (self._members.T @ (self._members @ (v * _column(self.weight, v))))

    def _back(self, v: Floats) -> Floats:
        """The transpose of `deviation`."""
        return v - _column(self.weight, v) * (self._members.T @ (self._members @ v))

    @cached_property
    def _members(self) -> sparse.csr_array:
        own = np.flatnonzero(self.group >= 0)
        shape = (len(self.alpha), len(self.group))
        return sparse.csr_array((np.ones(len(own)), (self.group[own], own)), shape=shape)

    def __matmul__(self, v: Floats) -> Floats:
        """The penalty's matrix times v."""
        return self.spread(v, 1)

    def spread(self, v: Floats, power: int = 2) -> Floats:
        """The covariance of the pull where deviations are drawn from the prior, times v; or the penalty's matrix."""
        return self._back(_column(self.precision * self.fade ** (power - 1), v) * self.deviation(v))

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        normal = noise.standard_normal((len(self.group), columns))
        return self._back(np.sqrt(self.precision * self.fade)[:, None] * normal)

    def renewed(self, eta: Floats, information: Floats) -> Ridge:
        """With the precisions that these parameters speak for, and as much of the prior as they need."""
        alpha, fade, weight = self.alpha.copy(), self.fade.copy(), self.weight.copy()
        for g in np.flatnonzero(alpha > 0):
            own = self.group == g
            told = information[own]
            share = told / (told + alpha[g])
            weight[own] = share / share.sum() if share.sum() > 0 else 1 / own.sum()
            if self.estimated:
                alpha[g] = prior_precision(eta[own] - weight[own] @ eta[own], told, alpha[g])
                fade[own] = fading(told, self.tied[own], alpha[g])
        return replace(self, alpha=alpha, fade=fade, weight=weight)

    def distance(self, other: Ridge) -> float:
        """The largest difference of precisions, by their logarithm, of what they count, and of means."""
        alpha = np.abs(np.log(other.alpha[self.alpha > 0] / self.alpha[self.alpha > 0]))
        fade, weight = np.abs(other.fade - self.fade), np.abs(other.weight - self.weight)
        return max(float(alpha.max(initial=0.0)), float(fade.max(initial=0.0)), float(weight.sum()))


def _column(values: Floats, v: Floats) -> Floats:
    return values if v.ndim == 1 else values[:, None]
