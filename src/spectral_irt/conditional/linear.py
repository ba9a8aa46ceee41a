"""Linear designs beta = A eta: what the answers leave open, and a prior on the parameters.

A direction u of the parameters is not identified when A u is constant on every part of the thresholds that people link.
With items and raters there are two in an ordinary design: all items against all people, and all raters against all
items. More are what Facets calls disjoint subsets: levels of a facet that such a direction moves apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from spectral_irt.chain.prior import IMAGINARY_ITEMS, prior_precision, share_of_prior
from spectral_irt.chain.stationary import by_size
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.errors import DesignError, OptionError

MOST_COLUMNS = 3000  # of a design beside its largest term: their equations are solved as a dense system
MOST_OPEN = 2 * 10**7  # numbers of the open directions, levels x subsets: 160 MB, and half a minute to orthogonalize
ROWS_AT_A_TIME = 20_000  # of the design, dense
ZERO_EIGENVALUE = 1e-9  # where columns have the length one


def unidentified_directions(
    design: sparse.csr_array, parts: Ints, fixed: Mask | None = None, term: slice | None = None
) -> Floats:
    """Orthonormal directions of the free parameters along which all thresholds of a part move alike, as columns.

    `term` are columns of which every row has a single one, its value 1: the largest facet, beside which all others are
    to be few. A row says a x + b y = 0 of the others, x, and of the levels of the term and the parts, y: two nodes of a
    graph with the row as an edge. So y follows from x by the graph's Laplacian b' b, but for a shift of each tree
    without a fixed level, and what is left of a x then are equations in x alone."""
    n_rows, n_parameters = design.shape
    free = np.ones(n_parameters, dtype=bool) if fixed is None else ~fixed
    in_term = np.isin(np.arange(n_parameters), np.arange(n_parameters)[term or slice(0)])
    term_levels = np.flatnonzero(free & in_term)
    others = np.flatnonzero(free & ~in_term)
    if len(others) > MOST_COLUMNS:
        raise OptionError(
            f"the design has {len(others):,} parameters beside its largest facet; up to {MOST_COLUMNS:,} are possible."
        )
    columns = sparse.csc_array(design)
    a = sparse.csr_array(columns[:, others])
    part_of_row = sparse.csr_array((np.ones(n_rows), (np.arange(n_rows), parts)))
    b = sparse.hstack([columns[:, term_levels], -part_of_row], format="csr")
    if len(term_levels):
        y, shifts = _levels_given_others(a, b)
    else:
        y, shifts = _parts_given_others(a, part_of_row), np.zeros((b.shape[1], 0))
    x = _open_among_others(a, b, y)
    directions = np.zeros((n_parameters, x.shape[1] + shifts.shape[1]))
    directions[others, : x.shape[1]] = x
    directions[term_levels, : x.shape[1]] = (y @ x)[: len(term_levels)]
    directions[term_levels, x.shape[1] :] = shifts[: len(term_levels)]
    return np.linalg.qr(directions)[0]


def _levels_given_others(a: sparse.csr_array, b: sparse.csr_array) -> tuple[Floats, Floats]:
    """The y that follows from each column of x, and the shifts of whole trees of the graph that nothing fixes."""
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu

    laplacian = b.T @ b
    n_trees, tree = connected_components(laplacian, directed=False)
    trees = sparse.eye_array(n_trees, format="csr")[tree]
    floating = np.flatnonzero(abs(b @ trees).sum(axis=0) == 0)
    if len(floating) * b.shape[1] > MOST_OPEN:
        raise DesignError(
            f"the levels of the facets fall into {len(floating):,} subsets that no person and no common level links, "
            f"so that nobody can compare them; of so many levels up to {MOST_OPEN // b.shape[1]:,} subsets can be "
            "calibrated together. Leave out levels with few ratings, such as raters of one or two persons, or fit "
            "the subsets one by one."
        )
    # One node of each floating tree is held at zero, so that the Laplacian can be inverted.
    first_node = np.unique(tree, return_index=True)[1]
    held = np.isin(np.arange(len(tree)), first_node[floating]).astype(float)
    solver = splu(
        sparse.csc_array(laplacian + sparse.diags_array(held)),
        diag_pivot_thresh=0.0,
        permc_spec="MMD_AT_PLUS_A",  # of a symmetric matrix few entries fill up
        options={"SymmetricMode": True},
    )
    y = -solver.solve((b.T @ a).toarray())
    return y, trees[:, floating].toarray()


def _parts_given_others(a: sparse.csr_array, part_of_row: sparse.csr_array) -> Floats:
    """The same y where the parts are the only nodes, without an edge: the mean of a x over the rows of each part."""
    n_rows = np.maximum(part_of_row.sum(axis=0), 1.0)
    return np.asarray((part_of_row.T @ a).toarray() / n_rows[:, None])


def _open_among_others(a: sparse.csr_array, b: sparse.csr_array, y: Floats) -> Floats:
    """The directions x for which a x + b y x is zero in every row, as columns of length one."""
    n_others = a.shape[1]
    system = np.zeros((n_others, n_others))
    for start in range(0, a.shape[0], ROWS_AT_A_TIME):
        rows = a[start : start + ROWS_AT_A_TIME].toarray() + b[start : start + ROWS_AT_A_TIME] @ y
        system += rows.T @ rows
    # Columns of length one: whether a direction is open must not depend on the units of properties.
    length = np.sqrt((a * a).sum(axis=0))
    unit = np.where(length > 0, length, 1.0)
    values, vectors = np.linalg.eigh(system / np.outer(unit, unit))
    x = vectors[:, values <= ZERO_EIGENVALUE] / unit[:, None]
    return x / np.maximum(np.linalg.norm(x, axis=0), np.finfo(float).tiny)


def subsets(directions: Floats) -> Ints:
    """Which of these parameters can be compared: the same number for those that no direction moves apart. Numbered from
    0 by falling size. `directions` are the rows of `unidentified_directions` for the levels of one facet."""
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
        members = np.flatnonzero(self.group >= 0)
        shape = (len(self.alpha), len(self.group))
        return sparse.csr_array((np.ones(len(members)), (self.group[members], members)), shape=shape)

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

    def pulls_unsure(self, eta: Floats, unknown: Floats) -> Floats:
        """By how much the pull at these parameters may be off because precisions were learned: parameters x groups, a
        standard deviation each. `unknown` is as for `with_new_precision`.

        Of the logarithm of alpha the variance is 2 / (sum_i s_i gamma_i^2 + 2 alpha), from the curvature of what
        `prior_precision` maximizes: little is known where a prior acts on a single rater, and one far out is drawn in
        by much more or less than by the best guess (Kass and Steffey 1989).
        """
        pull = self @ eta
        columns = np.zeros((len(eta), len(self.alpha)))
        if not self.estimated:
            return columns
        for g in np.flatnonzero(self.alpha > 0):
            members = np.flatnonzero(self.group == g)
            share = unknown[members] / (unknown[members] + self.alpha[g])
            curvature = self.fade[members] @ share**2 + IMAGINARY_ITEMS * self.alpha[g]
            columns[members, g] = np.sqrt(2 / curvature) * pull[members]
        return columns

    def with_new_precision(self, eta: Floats, information: Floats, unknown: Floats) -> Ridge:
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
            members = self.group == g
            given_others = information[members]
            share = given_others / (given_others + alpha[g])
            weight[members] = 1 / members.sum()
            if share.sum() > 0:
                weight[members] = share / share.sum()
            if not self.estimated:
                continue
            deviation = eta[members] - weight[members] @ eta[members]
            others_unknown = unknown[members]
            # Of values under as much of a prior as they have, those under all of it.
            pulled = deviation * (others_unknown + self.precision[members])
            of_all[g] = prior_precision(pulled / (others_unknown + of_all[g]), others_unknown, of_all[g])
            fade[members] = share_of_prior(given_others, self.tied[members], of_all[g])
            values = pulled / (others_unknown + alpha[g])
            alpha[g] = prior_precision(values, others_unknown, alpha[g], fade[members])
        return replace(self, alpha=alpha, of_all=of_all, fade=fade, weight=weight)

    def distance(self, other: Ridge) -> float:
        """The largest difference of precisions, by their logarithm, of what they count, and of means."""
        acts = self.alpha > 0
        precision_change = np.abs(np.log(other.alpha[acts] / self.alpha[acts]))
        fade_change = np.abs(other.fade - self.fade)
        weight_change = np.abs(other.weight - self.weight)
        return max(
            float(precision_change.max(initial=0.0)), float(fade_change.max(initial=0.0)), float(weight_change.sum())
        )
