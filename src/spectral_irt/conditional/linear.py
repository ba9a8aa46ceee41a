"""Linear designs beta = A eta: what the answers leave open, and a prior on the parameters.

A direction u of the parameters is not identified when A u is constant on every part of the thresholds that people link.
With items and raters there are two in an ordinary design: all items against all people, and all raters against all
items. More are what Facets calls disjoint subsets: levels of a facet that such a direction moves apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.chain.prior import fading, prior_precision
from spectral_irt.chain.stationary import by_size
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.errors import OptionError

MOST_COLUMNS = 3000  # of a design beside its largest term
ROWS = 20_000  # at a time
ZERO = 1e-9  # of an eigenvalue, where columns have the length one


def unidentified(design: sparse.csr_array, parts: Ints, fixed: Mask | None = None, term: slice | None = None) -> Floats:
    """Orthonormal directions of the free parameters along which all thresholds of a part move alike, as columns. `term`
    are columns of which every row has a single one, its value 1: the largest facet, beside which all others are to be
    few. A row says a x + b y = 0 of the others, x, and of the levels of the term and the parts, y: two nodes of a graph
    with the row as an edge. So y follows from x by the graph's Laplacian b' b, but for a shift of each tree without a
    fixed level, and what is left of a x then are equations in x alone."""
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    n, size = design.shape
    free = np.ones(size, dtype=bool) if fixed is None else ~fixed
    in_term = np.isin(np.arange(size), np.arange(size)[term or slice(0)])
    levels, rest = np.flatnonzero(free & in_term), np.flatnonzero(free & ~in_term)
    if len(rest) > MOST_COLUMNS:
        raise OptionError(
            f"the design has {len(rest):,} parameters beside its largest facet; up to {MOST_COLUMNS:,} are possible."
        )
    columns = sparse.csc_array(design)
    a = sparse.csr_array(columns[:, rest])
    b = sparse.hstack([columns[:, levels], -sparse.csr_array((np.ones(n), (np.arange(n), parts)))], format="csr")
    laplacian = b.T @ b
    n_trees, tree = connected_components(laplacian, directed=False)
    trees = sparse.eye_array(n_trees, format="csr")[tree]
    floating = np.flatnonzero(abs(b @ trees).sum(axis=0) == 0)
    rooted = np.isin(np.arange(len(tree)), np.unique(tree, return_index=True)[1][floating]).astype(float)
    how: dict[str, Any] = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}  # few entries fill up
    solver = splu(sparse.csc_array(laplacian + sparse.diags_array(rooted)), diag_pivot_thresh=0.0, **how)
    y = -solver.solve((b.T @ a).toarray())
    system = np.zeros((len(rest), len(rest)))
    for start in range(0, n, ROWS):
        rows = a[start : start + ROWS].toarray() + b[start : start + ROWS] @ y
        system += rows.T @ rows
    # Columns of length one: whether a direction is open must not depend on the units of properties.
    length = np.sqrt((a * a).sum(axis=0))
    unit = np.where(length > 0, length, 1.0)
    values, vectors = np.linalg.eigh(system / np.outer(unit, unit))
    x = vectors[:, values <= ZERO] / unit[:, None]
    x /= np.maximum(np.linalg.norm(x, axis=0), np.finfo(float).tiny)
    found = np.zeros((size, x.shape[1] + len(floating)))
    found[rest, : x.shape[1]] = x
    found[levels, : x.shape[1]] = (y @ x)[: len(levels)]
    found[levels, x.shape[1] :] = trees[: len(levels), floating].toarray()
    return np.linalg.qr(found)[0]


def subsets(directions: Floats) -> Ints:
    """Which of these parameters can be compared: the same number for those that no direction moves apart. Numbered from
    0 by falling size. `directions` are the rows of `unidentified` for the levels of one facet."""
    return by_size(np.unique(np.round(directions, 8) + 0.0, axis=0, return_inverse=True)[1].ravel())


@dataclass(frozen=True, eq=False)
class Ridge:
    """A normal prior on the parameters of a design, each around the mean of its group: raters, thresholds of a level.
    Parameters of group -1 have none; `tied` are those that the data alone tie to the others; `alpha` is the precision
    of each group, by empirical Bayes from those on which it acts where `estimated`; `fade` is how much it counts for
    each parameter, which goes by the precision `of_all` values of its group; and `weight` is that of each in the mean
    of its group, from the first time that it is `renewed`."""

    group: Ints
    tied: Mask
    alpha: Floats
    of_all: Floats
    fade: Floats
    weight: Floats
    estimated: bool = True

    @classmethod
    def of(cls, group: Ints, tied: Mask, alpha: float | None = None) -> Ridge:
        """With this precision, or an estimated one."""
        inside = group >= 0
        alphas = np.where(np.bincount(group[inside]) > 1, 1.0 if alpha is None else alpha, 0.0)
        return cls(group, tied, alphas, alphas, inside.astype(float), np.zeros(len(group)), alpha is None)

    @cached_property
    def precision(self) -> Floats:
        """Of every parameter."""
        return np.append(self.alpha, 0.0)[self.group] * self.fade

    @cached_property
    def _members(self) -> sparse.csr_array:
        """Groups x parameters."""
        own = np.flatnonzero(self.group >= 0)
        shape = (len(self.alpha), len(self.group))
        return sparse.csr_array((np.ones(len(own)), (self.group[own], own)), shape=shape)

    def __matmul__(self, v: Floats) -> Floats:
        """The penalty's matrix times v, one vector or the columns of a matrix."""
        return self.spread(v, 1)

    def spread(self, v: Floats, power: int = 2) -> Floats:
        """The covariance of the pull where deviations are drawn from the prior, times v; or the penalty's matrix."""
        mean = self._members @ (sparse.diags_array(self.weight) @ v)
        return self._pull(self.precision * self.fade ** (power - 1), v - self._members.T @ mean)

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        return self._pull(np.sqrt(self.precision * self.fade), noise.standard_normal((len(self.group), columns)))

    def _pull(self, strength: Floats, deviation: Floats) -> Floats:
        """How deviations pull at the parameters, which move the mean of their group as well."""
        pull = sparse.diags_array(strength) @ deviation
        return pull - sparse.diags_array(self.weight) @ (self._members.T @ (self._members @ pull))

    def renewed(self, eta: Floats, information: Floats, unknown: Floats) -> Ridge:
        """With the precisions that these parameters speak for, and as much of the prior as they need.

        `information` is that on each parameter given the others, by which the prior fades; `unknown` that where the
        others are not known: a rater is compared with others who have few ratings, too, and what these leave open must
        not pass for a spread of severities.
        """
        alpha = self.alpha.copy()
        of_all = self.of_all.copy()
        fade = self.fade.copy()
        weight = self.weight.copy()
        for g in np.flatnonzero(alpha > 0):
            own = self.group == g
            told = information[own]
            share = told / (told + alpha[g])
            weight[own] = share / share.sum() if share.sum() > 0 else 1 / own.sum()
            if self.estimated:
                deviation = eta[own] - weight[own] @ eta[own]
                # Of values under as much of a prior as they have, those under all of it.
                pulled = deviation * (unknown[own] + self.precision[own])
                of_all[g] = prior_precision(pulled / (unknown[own] + of_all[g]), unknown[own], of_all[g])
                fade[own] = fading(told, self.tied[own], of_all[g])
                alpha[g] = prior_precision(pulled / (unknown[own] + alpha[g]), unknown[own], alpha[g], fade[own])
        return replace(self, alpha=alpha, of_all=of_all, fade=fade, weight=weight)

    def distance(self, other: Ridge) -> float:
        """The largest difference of precisions, by their logarithm, of what they count, and of means."""
        alpha = np.abs(np.log(other.alpha[self.alpha > 0] / self.alpha[self.alpha > 0]))
        fade, weight = np.abs(other.fade - self.fade), np.abs(other.weight - self.weight)
        return max(float(alpha.max(initial=0.0)), float(fade.max(initial=0.0)), float(weight.sum()))
