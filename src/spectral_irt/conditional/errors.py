"""Standard errors where Newton's steps ended: the sandwich of the penalized conditional likelihood.

H is the information (`information_at`) plus the prior's matrix, M the sum over people of their scores' squares plus the
covariance of the prior's pull: H^-1 M H^-1 is the mean squared distance from thresholds whose deviations were drawn
from the prior, and the classical robust covariance where there is none. With a design beta = A eta it is
(A' H A)^-1 A' M A (A' H A)^-1. Three ways to its diagonal: "dense" forms the matrices; "one-pass" takes H for the
blocks of its items and a common shift, right where the chain mixes fast; "multiplier" corrects that by random solves.

`estimators.spectral_errors` chooses among them; conditional likelihood and groups take `free_inverse` and
`centered_covariance`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.prior import skewed_posterior
from spectral_irt.conditional.information import block_diagonal, blocks_of, by_blocks, from_levels
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.numerics import centered_inverse, largest_eigenvectors, safe_divide

PROBES = 100  # random right-hand sides: about 7% of the correction remains as noise
FEW_PROBES = 20  # of several thresholds, where the correction is small because ...
FAST = 0.6  # ... the chain mixes faster than this
PROBE_TOLERANCE = 1e-2  # how well each is solved
LEAST_VARIANCE = 0.05  # of the rough variance: below, the correction is noise
WEAK = 0.2  # of its information on single items: what people tell about a direction below this is a weak link
RIDGE = 1e-10  # of the information on a threshold, where that on a contrast of two may be rounding
MOST_WEAK_LINKS = 10  # directions that are looked at
ALL_ALIKE = 0.8  # share of the expected squares that is missing: one person in a category, and less is
NO_INFORMATION = 1e-9  # on a direction, or of a prior: up to so little is rounding


@dataclass(frozen=True, eq=False)
class Matrices:
    """H and M, thresholds x thresholds, and the inverse of H on the free ones, 0 elsewhere; in `single` precision."""

    bread: Floats
    meat: Floats
    inverse: Floats
    single: bool

    @classmethod
    def of(cls, optimum: PenalizedPoint, information: Floats | None = None, *, single: bool = False) -> Matrices:
        """H is this information (`information_at`), by default the matched one. `single` precision will do where items
        mix well: its weakest direction feels M, good to 1e-7 of its size."""
        assert optimum.design is None  # see `parameter_covariance`
        single = single and optimum.point.layout.binary
        bread = optimum.point.dense(single=single) if information is None else information
        meat = optimum.point.score_gram(single=single)
        if optimum.prior:
            layout = optimum.point.layout
            penalty, pull = optimum.prior.dense()
            missing = block_diagonal(layout, missing_spread(optimum, blocks_of(layout, meat)))
            meat = meat + pull + missing @ (missing @ bread).T
            bread = bread + penalty
        return cls(bread, meat, free_inverse(optimum, bread), single)

    def across_weak_links(self, layout: Thresholds, expected: Floats) -> Matrices:
        """With M not below what is `expected` of it, along directions that move groups of items against each other and
        that few people inform on: from few scores one cannot tell how they spread, and the sandwich is too small.

        Such a direction v has v'Hv below `WEAK` times v'Bv, B the blocks of the items in H: each item by itself would
        be known well. With V such v of H v = lambda B v, V'BV = 1, G = V'MV is compared with E = V' expected V: what
        the eigenvalues of G, in units of E, are below one is added.
        """
        same_item = layout.item[:, None] == layout.item
        free = np.flatnonzero(np.diag(self.inverse) > 0)
        places = np.ix_(free, free)
        blocks = np.where(same_item, self.bread, 0.0)[places]
        root = np.linalg.cholesky(blocks + RIDGE * np.diag(np.diag(blocks)))
        one_over_lambda, vectors = largest_eigenvectors(root.T @ self.inverse[places] @ root, most=MOST_WEAK_LINKS)
        weak = vectors[:, one_over_lambda > 1 / WEAK]
        if not weak.size:
            return self
        directions = np.linalg.solve(root.T, weak)
        # A prior may hold a direction on which no answer informs; V'BV = 1 gives the unit of the ridge.
        unit = np.linalg.cholesky(directions.T @ expected[places] @ directions + RIDGE * np.eye(directions.shape[1]))
        observed = directions.T @ self.meat[places] @ directions
        share, turned = np.linalg.eigh(np.linalg.solve(unit, np.linalg.solve(unit, observed).T))
        turned = unit @ turned
        lacking = (turned * np.maximum(1 - share, 0.0)) @ turned.T
        pull = root @ weak  # BV: scores that are one along V, and nothing along the other directions
        meat = self.meat.copy()
        meat[places] += pull @ lacking @ pull.T
        return replace(self, meat=meat)

    def covariance(self, robust: bool = True) -> Floats:
        """The sandwich; centered within parts, or given the fixed items (zero for these). Else the inverse of H."""
        covariance = self.inverse
        if robust and self.single:
            # H^-1 + H^-1 (M - H) H^-1: only a difference is rounded, which is small where the model holds.
            rough = covariance.astype(np.float32)
            covariance = covariance + rough @ ((self.meat - self.bread).astype(np.float32) @ rough)
        elif robust:
            covariance = covariance @ self.meat @ covariance
        return (covariance + covariance.T) / 2

    def from_anchors(self, fixed: NDArray[np.bool_], errors: Floats) -> Floats:
        """The covariance that free thresholds have from `errors`, those of the anchors in the order of `fixed`:
        D errors D', D = d beta_free / d beta_anchor = -H_ff^-1 H_fa; moving an anchor moves the free ones with it."""
        follow = -(self.inverse @ self.bread[:, fixed])  # the inverse is 0 outside the free ones
        return follow @ errors @ follow.T


def free_inverse(optimum: PenalizedPoint, bread: Floats) -> Floats:
    """The inverse of this H on the free thresholds, centered within parts; A (A' H A)^-1 A' with a design."""
    if optimum.design is not None:
        a = optimum.design
        return a @ (a @ optimum.dense_inverse(a.T @ (bread @ a))).T
    if optimum.fixed is None:
        return centered_inverse(bread, optimum.floating)
    free = np.flatnonzero(~optimum.fixed)
    inverse = np.zeros_like(bread)
    if len(free):
        inverse[np.ix_(free, free)] = centered_inverse(bread[np.ix_(free, free)], optimum.floating[free])
    return inverse


def score_factors(information: Floats, squares: Floats, people: Floats, group: Ints) -> Floats:
    """By what to multiply each parameter's scores, where few people show how they spread. M / H is known to about
    sqrt(2 / people), too badly for a rater who met a dozen: so these ratios are drawn towards their mean over a group,
    the more the less they differ beyond chance."""
    factor = np.ones(len(information))
    usable = (information > 0) & (squares > 0) & (people > 1)
    for g in np.unique(group[usable & (group >= 0)]):
        members = np.flatnonzero(usable & (group == g))
        n = people[members]
        observed = squares[members] / information[members]
        ratio = observed * n / (n - 1)
        mean = float(ratio @ n / n.sum())
        beyond_chance = max(float(((ratio / mean - 1) ** 2 - 2 / n) @ n / n.sum()), 0.0)
        share = beyond_chance / (beyond_chance + 2 / n)
        factor[members] = np.sqrt((share * ratio + (1 - share) * mean) / observed)
    return factor


def parameter_covariance(
    optimum: PenalizedPoint,
    robust: bool = True,
    information: Floats | None = None,
    factor: Floats | None = None,
    meat: Floats | None = None,
) -> Floats:
    """The covariance of the parameters of a design, scores times `factor`; or the inverse of their information. `meat`
    is the sum of squared scores of clusters, where people do not come one by one. Precisions of a prior that were
    learned add how far they may be off."""
    inverse = optimum.dense_inverse(information)
    covariance = inverse
    if robust:
        if meat is None:
            meat = optimum.point.score_gram(design=optimum.design)
        if factor is not None:
            meat = factor[:, None] * meat * factor
        if optimum.ridge:
            meat += optimum.ridge.spread(np.eye(len(meat)))
        covariance = inverse @ meat @ inverse
    if optimum.ridge:
        unsure = inverse @ optimum.ridge.pulls_unsure(optimum.eta, optimum.information)
        covariance = covariance + unsure @ unsure.T
    return (covariance + covariance.T) / 2


def parameter_variance(
    optimum: PenalizedPoint, contrasts: Callable[[Floats], Floats], squares: Floats, factor: Floats, seed: int = 0
) -> Floats:
    """Its diagonal where there are many parameters, after `contrasts` (a linear map of columns), by random solves.
    `squares` is the diagonal of M."""
    assert optimum.design is not None
    diagonal = optimum.diagonal
    inverse = np.zeros(len(diagonal))
    inverse[diagonal > 0] = 1 / diagonal[diagonal > 0]
    meat = factor**2 * squares
    b = factor[:, None] * optimum.point.signed_scores(seed, PROBES, optimum.design)
    if optimum.ridge:
        unsure = optimum.ridge.pulls_unsure(optimum.eta, optimum.information)
        noise = np.random.default_rng(seed)
        meat = meat + optimum.ridge.precision * optimum.ridge.fade + (unsure**2).sum(axis=1)
        b += optimum.ridge.draw(noise, PROBES) + unsure @ noise.standard_normal((unsure.shape[1], PROBES))
    if optimum.fixed is not None:
        b[optimum.fixed] = 0
    exact = contrasts(optimum.solve(b, tol=PROBE_TOLERANCE))
    rough = inverse[:, None] * b
    variance = inverse**2 * meat
    return np.maximum(variance + np.mean(exact**2 - rough**2, axis=1), LEAST_VARIANCE * variance)


def missing_spread(optimum: PenalizedPoint, observed: Floats) -> Floats:
    """Blocks S of the items such that S H S is by how much their people's answers are too regular to judge by.

    With few answers, all alike, sums of squared scores (`observed`, of each item, levels x levels) are far below what
    is expected, the information D (times the `noise` of weights). What is missing is made up for as far as the prior
    counts, along each eigenvector of D: beside a category that nobody used it is the contrast of two thresholds that
    is too regular, and neither of them alone.
    """
    assert optimum.prior is not None
    layout = optimum.point.layout
    noise = np.broadcast_to(optimum.noise, layout.n_entries)[layout.first][:, None]
    counts = layout.table(optimum.prior.counts, 0.0)
    if layout.binary:
        information = optimum.point.own[:, 0]
        vectors = np.ones_like(optimum.point.own)
    else:
        information, vectors = np.linalg.eigh(optimum.point.own)
    expected = information * noise
    along = np.einsum("iku,ikl,ilu->iu", vectors, observed, vectors)
    lacking = safe_divide(expected - along, expected, where_above=NO_INFORMATION)
    counts_along = np.einsum("iku,ik->iu", vectors**2, counts)
    share = np.clip(lacking, 0.0, 1.0) * noise
    if not layout.binary:
        share += beside_empty_categories(optimum, information, vectors, lacking)
    size = np.sqrt(counts_along * share)
    return np.einsum("iku,iu,ilu->ikl", vectors, size, vectors)


def beside_empty_categories(optimum: PenalizedPoint, information: Floats, vectors: Floats, lacking: Floats) -> Floats:
    """What is missing besides, in units of the information D, along directions (items x directions) in which nobody
    used the category that would hold thresholds together.

    There the posterior is skewed (`skewed_posterior`): with D the information and P the precision of the prior along
    the direction, its mean square about the mode exceeds 1 / (P + D), by a fifth where D = 2 P = 0.3. The sandwich then
    has that mean square.
    """
    assert optimum.prior is not None
    precision = np.einsum("iku,ikl,ilu->iu", vectors, optimum.prior.within(), vectors)
    several = (optimum.point.layout.max_score > 1)[:, None]
    informed = (information > NO_INFORMATION) & (precision > NO_INFORMATION)
    skewed = np.nonzero(several & (lacking > ALL_ALIKE) & informed)
    rate = np.abs(np.cumsum(vectors, axis=1)).max(axis=1)[skewed]
    total = information[skewed] + precision[skewed]
    mean_square = skewed_posterior(information[skewed], precision[skewed], rate).mean_square
    missing = np.zeros(information.shape)
    missing[skewed] = np.maximum(total * (total * mean_square - 1), 0.0) / information[skewed]
    return missing


def roots_of(blocks: Floats) -> Floats:
    """Symmetric square roots of blocks."""
    values, vectors = np.linalg.eigh(blocks)
    return np.einsum("iku,iu,ilu->ikl", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)


def center_parts(
    layout: Thresholds, thresholds: Floats, covariance: Floats | None, parts: Ints | None = None
) -> tuple[Floats, Floats | None]:
    """Thresholds whose items have the mean location zero, within each part if there are any, and their covariance."""
    if parts is None:
        parts = np.zeros(layout.n_items, dtype=np.int64)
    part = parts[layout.item]
    beta = thresholds - np.bincount(part, weights=_weight_in_mean(layout, parts) * thresholds)[part]
    if covariance is None:
        return beta, None
    return beta, centered_covariance(layout, covariance, parts)


def _weight_in_mean(layout: Thresholds, parts: Ints) -> Floats:
    """The weight of each threshold in the mean location of its part."""
    weight: Floats = 1 / (np.bincount(parts)[parts] * layout.max_score)[layout.item]
    return weight


def centered_covariance(layout: Thresholds, covariance: Floats, parts: Ints) -> Floats:
    """Of thresholds whose items have the mean location zero within each part."""
    part = parts[layout.item]
    mean = np.zeros((int(parts.max()) + 1, layout.n_entries))
    mean[part, np.arange(layout.n_entries)] = _weight_in_mean(layout, parts)
    cross = (mean @ covariance)[part]
    return covariance - cross - cross.T + (mean @ covariance @ mean.T)[np.ix_(part, part)]


def location_covariance(layout: Thresholds, covariance: Floats) -> Floats:
    """Of the means of the items' thresholds."""
    if layout.binary:
        return covariance
    places = (layout.item, np.arange(layout.n_entries))
    mean = sparse.csr_array((1 / layout.max_score[layout.item], places), shape=(layout.n_items, layout.n_entries))
    return mean @ (mean @ covariance).T


class StandardErrors(NamedTuple):
    """Of every threshold, and of the locations, whose mean is zero."""

    thresholds: Floats
    locations: Floats


def standard_errors(optimum: PenalizedPoint, method: str, contraction: float = 1.0, seed: int = 0) -> StandardErrors:
    """By one of the last two ways: the rough inverse by itself, or corrected by random right-hand sides."""
    layout = optimum.point.layout
    rough_inverse = RoughInverse.of(optimum)
    shift = rough_inverse.shift
    moves = rough_inverse.moves
    meat, image = optimum.point.score_sums(shift)  # M's blocks, and M times the shift
    missing = None
    if optimum.prior:
        missing = missing_spread(optimum, meat)
        meat = meat + optimum.prior.within(2) + missing @ optimum.point.own @ missing
        through = optimum.point @ by_blocks(layout, missing, shift)
        image = image + optimum.prior.spread(shift) + by_blocks(layout, missing, through)
    common = shift @ image
    cross = by_blocks(layout, optimum.inverse, image)
    blocks = optimum.inverse @ meat @ optimum.inverse
    variance = from_levels(layout, np.einsum("ikk->ik", blocks)) + moves * (2 * cross + common)
    location = blocks.sum(axis=(1, 2)) / layout.max_score**2
    location = location + layout.mean(moves) * (2 * layout.mean(cross) + common)
    if method == "multiplier":
        exact, rough = _probe(optimum, missing, rough_inverse, contraction, seed)
        variance = _variance_by_probes(variance, exact, rough)
        location = _variance_by_probes(location, _column_means(layout, exact), _column_means(layout, rough))
    return StandardErrors(np.sqrt(np.maximum(variance, 0)), np.sqrt(np.maximum(location, 0)))


def _variance_by_probes(variance: Floats, exact: Floats, rough: Floats) -> Floats:
    """Variances by the rough inverse, and by how much solutions of random columns differ from what it makes of them."""
    return np.maximum(variance + np.mean(exact**2 - rough**2, axis=1), LEAST_VARIANCE * variance)


def _column_means(layout: Thresholds, columns: Floats) -> Floats:
    """The mean over the thresholds of each item, column by column."""
    return np.stack([layout.mean(column) for column in columns.T], axis=1)


class RoughInverse(NamedTuple):
    """delta = R b + (shift' b) moves, R the inverses of the items' blocks: each item by itself, then all that `moves`
    together. The shift takes the mean location away; or, beside fixed ones, b - H (R b + c u) adds to zero over the
    free ones."""

    shift: Floats
    moves: Floats

    @classmethod
    def of(cls, optimum: PenalizedPoint) -> RoughInverse:
        layout = optimum.point.layout
        inverse = optimum.inverse
        free = (from_levels(layout, np.einsum("ikk->ik", inverse)) > 0).astype(float)
        if optimum.fixed is None:
            return cls(-by_blocks(layout, inverse, layout.mean_weights()), free)
        pull = optimum @ free  # what ties each free one to the fixed ones, or to the prior
        total = pull.sum()
        if total <= 0:
            return cls(np.zeros(len(free)), free)
        return cls((free - by_blocks(layout, inverse, pull)) / total, free)

    def __call__(self, optimum: PenalizedPoint, b: Floats) -> Floats:
        """Columns b solved roughly."""
        return by_blocks(optimum.point.layout, optimum.inverse, b) + np.outer(self.moves, self.shift @ b)


class Probes(NamedTuple):
    """Solutions for random b with covariance M, and what the rough inverse makes of these b."""

    exact: Floats
    rough: Floats


def _probe(
    optimum: PenalizedPoint, missing: Floats | None, rough_inverse: RoughInverse, contraction: float, seed: int
) -> Probes:
    """Random right-hand sides, solved both ways."""
    layout = optimum.point.layout
    n_probes = FEW_PROBES if contraction < FAST and not layout.binary else PROBES
    noise = np.random.default_rng(seed)
    b = optimum.point.signed_scores(seed, n_probes)
    if missing is not None:
        b += by_blocks(layout, missing @ roots_of(optimum.point.own), noise.standard_normal(b.shape))
    if optimum.prior:
        b += optimum.prior.draw(noise, n_probes)
    if optimum.fixed is not None:
        b[optimum.fixed] = 0
    rough = rough_inverse(optimum, b)
    exact = optimum.solve(b, tol=PROBE_TOLERANCE)
    if optimum.fixed is None and not layout.binary:
        exact -= layout.mean_weights() @ exact
    return Probes(exact, rough)


def variance_from_anchors(optimum: PenalizedPoint, variance: Floats, seed: int = 0) -> Floats:
    """The diagonal of `Matrices.from_anchors` without the matrices: by solves for random errors, independent."""
    assert optimum.fixed is not None
    noise = np.random.default_rng(seed).standard_normal((len(variance), PROBES))
    v = np.where(optimum.fixed, np.sqrt(np.nan_to_num(variance)), 0.0)[:, None] * noise
    b = -(optimum.point @ v)
    if optimum.prior:
        b -= optimum.prior @ v
    b[optimum.fixed] = 0
    return np.where(optimum.fixed, 0.0, np.mean(optimum.solve(b, tol=PROBE_TOLERANCE) ** 2, axis=1))
