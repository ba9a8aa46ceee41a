"""Standard errors where Newton's steps ended: the sandwich of the penalized conditional likelihood.

H is the information (`information_at`) plus the prior's matrix, M the sum over people of their scores' squares plus the
covariance of the prior's pull: H^-1 M H^-1 is the mean squared distance from thresholds whose deviations were drawn
from the prior, and the classical robust covariance where there is none. With a design beta = A eta it is
(A' H A)^-1 A' M A (A' H A)^-1. Three ways to its diagonal: "dense" forms the matrices; "one-pass" takes H for the
blocks of its items and a common shift, right where the chain mixes fast; "multiplier" corrects that by random solves.

The displacement of an anchored item is how far it is from where the data would put it if it alone were set free; that
is another fit, or a step of one where the item is close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.information import PeopleRows, block_diagonal, blocks_of, by_blocks, from_levels
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import Newton
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.numerics import centered_inverse, largest_eigenvectors

PROBES = 100  # random right-hand sides: about 7% of the correction remains as noise
FEW_PROBES, FAST = 20, 0.6  # of several thresholds, where the chain mixes faster than this: the correction is small
CLOSE = 1e-2  # how well each is solved
STEPS, LONGEST = 40, 2.0  # Newton steps for all fixed items at once, and how far one may go
SETTLED = 1e-6  # logits
FARTHEST = 30.0  # logits: farther is nowhere
WEAK = 0.1  # of its information on single items: what people tell about a direction below this is a weak link
RIDGE = 1e-10  # of the information on a threshold, where that on a contrast of two may be rounding
MOST_WEAK_LINKS = 10  # directions that are looked at
NEAR = 0.15  # logits up to which one Newton step says how far an anchor is off
REFIT_ANSWERS = 1e6  # that other fits, each with one anchor free, may go through: some tenths of a second
SINGULAR = 1e10  # condition number of an item's own equation
ALL_ALIKE = 0.8  # share of the expected squares that is missing: one person in a category, and less is
POINTS = 1_000  # of the quadrature of a posterior ...
SPREADS = 8.0  # ... which goes as many standard deviations of the prior from the mode ...
FALLEN = 40.0  # ... and no farther than where the likelihood has fallen by exp(-40)
NOTHING = 1e-9  # of a score: the threshold was passed, or failed, for sure


@dataclass(frozen=True, eq=False)
class Matrices:
    """H and M, thresholds x thresholds, and the inverse of H on the free ones, 0 elsewhere; in `single` precision."""

    bread: Floats
    meat: Floats
    inverse: Floats
    single: bool

    @classmethod
    def of(cls, found: PenalizedPoint, information: Floats | None = None, *, single: bool = False) -> Matrices:
        """H is this information (`information_at`), by default the matched one. `single` precision will do where items
        mix well: its weakest direction feels M, good to 1e-7 of its size."""
        assert found.design is None  # see `parameter_covariance`
        single = single and found.point.layout.binary
        bread = found.point.dense(single=single) if information is None else information
        meat = found.point.score_gram(single=single)
        if found.prior:
            layout = found.point.layout
            penalty, pull = found.prior.dense()
            missing = block_diagonal(layout, missing_spread(found, blocks_of(layout, meat)))
            meat = meat + pull + missing @ (missing @ bread).T
            bread = bread + penalty
        return cls(bread, meat, free_inverse(found, bread), single)

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
        found = self.inverse
        if robust and self.single:
            # H^-1 + H^-1 (M - H) H^-1: only a difference is rounded, which is small where the model holds.
            rough = found.astype(np.float32)
            found = found + rough @ ((self.meat - self.bread).astype(np.float32) @ rough)
        elif robust:
            found = found @ self.meat @ found
        return (found + found.T) / 2

    def from_anchors(self, fixed: NDArray[np.bool_], errors: Floats) -> Floats:
        """The covariance that free thresholds have from `errors`, those of the anchors in the order of `fixed`:
        D errors D', D = d beta_free / d beta_anchor = -H_ff^-1 H_fa; moving an anchor moves the free ones with it."""
        follow = -(self.inverse @ self.bread[:, fixed])  # the inverse is 0 outside the free ones
        return follow @ errors @ follow.T


def free_inverse(found: PenalizedPoint, bread: Floats) -> Floats:
    """The inverse of this H on the free thresholds, centered within parts; A (A' H A)^-1 A' with a design."""
    if found.design is not None:
        a = found.design
        return a @ (a @ found.dense_inverse(a.T @ (bread @ a))).T
    if found.fixed is None:
        return centered_inverse(bread, found.floating)
    free = np.flatnonzero(~found.fixed)
    inverse = np.zeros_like(bread)
    if len(free):
        inverse[np.ix_(free, free)] = centered_inverse(bread[np.ix_(free, free)], found.floating[free])
    return inverse


def steadied(told: Floats, squares: Floats, people: Floats, group: Ints) -> Floats:
    """By what to multiply each parameter's scores, where few people show how they spread. M / H is known to about
    sqrt(2 / people), too badly for a rater who met a dozen: so these ratios are drawn towards their mean over a group,
    the more the less they differ beyond chance."""
    factor = np.ones(len(told))
    good = (told > 0) & (squares > 0) & (people > 1)
    for g in np.unique(group[good & (group >= 0)]):
        own = np.flatnonzero(good & (group == g))
        n = people[own]
        ratio = squares[own] / told[own] * n / (n - 1)
        mean = float(ratio @ n / n.sum())
        apart = max(float(((ratio / mean - 1) ** 2 - 2 / n) @ n / n.sum()), 0.0)
        share = apart / (apart + 2 / n)
        factor[own] = np.sqrt((share * ratio + (1 - share) * mean) / (squares[own] / told[own]))
    return factor


def parameter_covariance(
    found: PenalizedPoint, robust: bool = True, information: Floats | None = None, factor: Floats | None = None
) -> Floats:
    """The covariance of the parameters of a design, scores times `factor`; or the inverse of their information."""
    inverse = found.dense_inverse(information)
    if not robust:
        return (inverse + inverse.T) / 2
    meat = found.point.score_gram(design=found.design)
    if factor is not None:
        meat = factor[:, None] * meat * factor
    if found.ridge:
        meat += found.ridge.spread(np.eye(len(meat)))
    sandwich = inverse @ meat @ inverse
    return (sandwich + sandwich.T) / 2


def parameter_variance(
    found: PenalizedPoint, contrasts: Callable[[Floats], Floats], squares: Floats, factor: Floats, seed: int = 0
) -> Floats:
    """Its diagonal where there are many parameters, after `contrasts` (a linear map of columns), by random solves.
    `squares` is the diagonal of M."""
    assert found.design is not None
    told, rough = found.diagonal > 0, np.zeros(len(found.eta))
    rough[told] = 1 / found.diagonal[told]
    noise = np.random.default_rng(seed)
    spread = factor**2 * squares + (found.ridge.precision * found.ridge.fade if found.ridge else 0.0)
    b = factor[:, None] * found.point.signed_scores(seed, PROBES, found.design)
    if found.ridge:
        b += found.ridge.draw(noise, PROBES)
    if found.fixed is not None:
        b[found.fixed] = 0
    exact = contrasts(found.solve(b, tol=CLOSE))
    variance = rough**2 * spread
    return np.maximum(variance + np.mean(exact**2 - (rough[:, None] * b) ** 2, axis=1), 0.05 * variance)


def missing_spread(found: PenalizedPoint, observed: Floats) -> Floats:
    """Blocks S of the items such that S H S is by how much their people's answers are too regular to judge by.

    With few answers, all alike, sums of squared scores (`observed`, of each item, levels x levels) are far below what
    is expected, the information D (times the `noise` of weights). What is missing is made up for as far as the prior
    counts, along each eigenvector of D: beside a category that nobody used it is the contrast of two thresholds that
    is too regular, and neither of them alone.
    """
    assert found.prior is not None
    layout = found.point.layout
    noise = np.broadcast_to(found.noise, layout.n_entries)[layout.first][:, None]
    counts = layout.table(found.prior.counts, 0.0)
    if layout.binary:
        told, vectors = found.point.own[:, 0], np.ones_like(found.point.own)
    else:
        told, vectors = np.linalg.eigh(found.point.own)
    expected = told * noise
    along = np.einsum("iku,ikl,ilu->iu", vectors, observed, vectors)
    lacking = np.divide(expected - along, expected, out=np.zeros_like(along), where=expected > NOTHING)
    counts_along = np.einsum("iku,ik->iu", vectors**2, counts)
    share = np.clip(lacking, 0.0, 1.0) * noise
    if not layout.binary:
        share += beside_empty_categories(found, told, vectors, lacking)
    size = np.sqrt(counts_along * share)
    return np.einsum("iku,iu,ilu->ikl", vectors, size, vectors)


def beside_empty_categories(found: PenalizedPoint, told: Floats, vectors: Floats, lacking: Floats) -> Floats:
    """What is missing besides, in units of the information D, along directions (items x directions) in which nobody
    used the category that would hold thresholds together.

    There the posterior is skewed: the normal of the prior on one side, cut off by the likelihood on the other. With y
    the distance from its mode, P the precision of the prior, k the rate at which the chance of the category falls,

        q(y) ~ exp(-P y^2 / 2 - (D / k) y - (D / k^2) exp(-k y)),

    whose mean square exceeds 1 / (P + D), by a fifth where D = 2 P = 0.3. The sandwich then has the mean square of q.
    """
    assert found.prior is not None
    precision = np.einsum("iku,ikl,ilu->iu", vectors, found.prior.within(), vectors)
    several = (found.point.layout.max_score > 1)[:, None]
    skewed = np.nonzero(several & (lacking > ALL_ALIKE) & (told > NOTHING) & (precision > NOTHING))
    more = np.zeros(told.shape)
    rate = np.abs(np.cumsum(vectors, axis=1)).max(axis=1)[skewed]
    total = told[skewed] + precision[skewed]
    mean_square = skewed_mean_square(told[skewed], precision[skewed], rate)
    more[skewed] = np.maximum(total * (total * mean_square - 1), 0.0) / told[skewed]
    return more


def skewed_mean_square(information: Floats, precision: Floats, rate: Floats) -> Floats:
    """The mean square of the posterior q of `beside_empty_categories`, by quadrature."""
    depth = information / rate**2
    lowest = -np.minimum(np.log(FALLEN / depth + 2) / rate, SPREADS / np.sqrt(precision))
    y = np.linspace(lowest, SPREADS / np.sqrt(precision), POINTS)
    log_q = -precision * y**2 / 2 - depth * (rate * y + np.exp(-rate * y))
    q = np.exp(log_q - log_q.max(axis=0))
    mean_square: Floats = (q * y**2).sum(axis=0) / q.sum(axis=0)  # evenly spaced, and nothing at the ends
    return mean_square


def roots_of(blocks: Floats) -> Floats:
    """Symmetric square roots of blocks."""
    values, vectors = np.linalg.eigh(blocks)
    return np.einsum("iku,iu,ilu->ikl", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)


def centered(
    layout: Thresholds, thresholds: Floats, covariance: Floats | None, parts: Ints | None = None
) -> tuple[Floats, Floats | None]:
    """Thresholds whose items have the mean location zero, within each part if there are any, and their covariance."""
    parts = np.zeros(layout.n_items, dtype=np.int64) if parts is None else parts
    weight = 1 / (np.bincount(parts)[parts] * layout.max_score)[layout.item]
    own = parts[layout.item]
    beta = thresholds - np.bincount(own, weights=weight * thresholds)[own]
    return beta, None if covariance is None else centered_covariance(layout, covariance, parts)


def centered_covariance(layout: Thresholds, covariance: Floats, parts: Ints) -> Floats:
    """Of thresholds whose items have the mean location zero within each part."""
    own = parts[layout.item]
    mean = np.zeros((int(parts.max()) + 1, layout.n_entries))
    mean[own, np.arange(layout.n_entries)] = 1 / (np.bincount(parts)[parts] * layout.max_score)[layout.item]
    cross = (mean @ covariance)[own]
    return covariance - cross - cross.T + (mean @ covariance @ mean.T)[np.ix_(own, own)]


def location_covariance(layout: Thresholds, covariance: Floats) -> Floats:
    """Of the means of the items' thresholds."""
    if layout.binary:
        return covariance
    places = (layout.item, np.arange(layout.n_entries))
    mean = sparse.csr_array((1 / layout.max_score[layout.item], places), shape=(layout.n_items, layout.n_entries))
    return mean @ (mean @ covariance).T


def standard_errors(
    found: PenalizedPoint, method: str, contraction: float = 1.0, seed: int = 0
) -> tuple[Floats, Floats]:
    """Standard error of every threshold, and of the locations, whose mean is zero, by one of the last two ways."""
    layout, prior = found.point.layout, found.prior
    inverse, (shift, together) = found.inverse, _common_shift(found)
    meat, moved = found.point.score_sums(shift)
    missing = None
    if prior:
        missing = missing_spread(found, meat)
        meat = meat + prior.within(2) + missing @ found.point.own @ missing
        through = found.point @ by_blocks(layout, missing, shift)
        moved = moved + prior.spread(shift) + by_blocks(layout, missing, through)
    common, cross = shift @ moved, by_blocks(layout, inverse, moved)
    inner = inverse @ meat @ inverse
    variance = from_levels(layout, np.einsum("ikk->ik", inner)) + together * (2 * cross + common)
    location = inner.sum(axis=(1, 2)) / layout.max_score**2 + layout.mean(together) * (2 * layout.mean(cross) + common)
    if method == "multiplier":
        exact, rough = _probed(found, missing, shift, together, contraction, seed)
        variance = np.maximum(variance + np.mean(exact**2 - rough**2, axis=1), 0.05 * variance)
        mean = [np.stack([layout.mean(column) for column in one.T], axis=1) for one in (exact, rough)]
        location = np.maximum(location + np.mean(mean[0] ** 2 - mean[1] ** 2, axis=1), 0.05 * location)
    return np.sqrt(np.maximum(variance, 0)), np.sqrt(np.maximum(location, 0))


def _common_shift(found: PenalizedPoint) -> tuple[Floats, Floats]:
    """`shift` of the rough inverse delta = R b + (shift' b) u, each item by itself, then all free ones together; and u.
    It takes the mean location away; or, beside fixed ones, b - H (R b + c u) adds to zero over the free ones."""
    layout, inverse = found.point.layout, found.inverse
    free = (from_levels(layout, np.einsum("ikk->ik", inverse)) > 0).astype(float)
    if found.fixed is None:
        return -by_blocks(layout, inverse, layout.averaging()), free
    down = found @ free  # what ties each free one to the fixed ones, or to the prior
    total = down.sum()
    return (free - by_blocks(layout, inverse, down)) / total if total > 0 else np.zeros(len(free)), free


def _probed(
    found: PenalizedPoint, missing: Floats | None, shift: Floats, together: Floats, contraction: float, seed: int
) -> tuple[Floats, Floats]:
    """Solutions for random b with covariance M, and what the rough inverse makes of these b."""
    layout, prior = found.point.layout, found.prior
    probes = FEW_PROBES if contraction < FAST and not layout.binary else PROBES
    noise = np.random.default_rng(seed)
    b = found.point.signed_scores(seed, probes)
    if missing is not None:
        b += by_blocks(layout, missing @ roots_of(found.point.own), noise.standard_normal(b.shape))
    if prior:
        b += prior.draw(noise, probes)
    if found.fixed is not None:
        b[found.fixed] = 0
    rough = by_blocks(layout, found.inverse, b) + np.outer(together, shift @ b)
    exact = found.solve(b, tol=CLOSE)
    if found.fixed is None and not layout.binary:
        exact -= layout.averaging() @ exact
    return exact, rough


def variance_from_anchors(found: PenalizedPoint, variance: Floats, seed: int = 0) -> Floats:
    """The diagonal of `Matrices.from_anchors` without the matrices: by solves for random errors, independent."""
    assert found.fixed is not None
    noise = np.random.default_rng(seed).standard_normal((len(variance), PROBES))
    v = np.where(found.fixed, np.sqrt(np.nan_to_num(variance)), 0.0)[:, None] * noise
    b = -(found.point @ v)
    if found.prior:
        b -= found.prior @ v
    b[found.fixed] = 0
    return np.where(found.fixed, 0.0, np.mean(found.solve(b, tol=CLOSE) ** 2, axis=1))


class Displacements(NamedTuple):
    """By how much the data would move each fixed item if it alone were set free, and the standard error of that; NaN
    for free items, and where the data put no finite value on an item."""

    displacement: Floats
    se: Floats


def displacements(
    found: PenalizedPoint, matrices: Matrices | None, likelihood: Likelihood, comparable: Mask
) -> Displacements:
    """Of fixed items beside which there are other fixed ones, `comparable`: else the whole scale would move with them.

    With matrices, all other free items follow and the item's thresholds are free: one Newton step for items close to
    where they are; another fit for those that are off by more than `NEAR`, as far as `REFIT_ANSWERS` allow. Without
    matrices, or beyond, an item moves as a whole. The likelihood is evaluated elsewhere: `found.point` is used up.
    """
    assert found.fixed is not None
    layout = found.point.layout
    fixed = layout.sum((~found.fixed).astype(float)) == 0
    measured = fixed & comparable
    if not measured.any():
        nothing = np.full(layout.n_items, np.nan)
        return Displacements(nothing, nothing)
    moved = displaced_as_a_whole(found, matrices, fixed)
    if matrices is not None:
        step = displaced_by_a_step(found, matrices, measured)
        near = np.abs(step.displacement) <= NEAR
        moved = Displacements(*(np.where(near, own, other) for own, other in zip(step, moved, strict=True)))
        far = np.flatnonzero(measured & ~near & np.isfinite(moved.displacement))
        farthest_first = far[np.argsort(-np.abs(moved.displacement[far]), kind="stable")]
        most = int(REFIT_ANSWERS // max(likelihood.responses.n_responses, 1))
        for item in farthest_first[:most].tolist():
            moved.displacement[item], moved.se[item] = displaced_in_a_refit(found, likelihood, item)
    return Displacements(*(np.where(measured, values, np.nan) for values in moved))


def displaced_in_a_refit(found: PenalizedPoint, likelihood: Likelihood, item: int) -> tuple[float, float]:
    """How far another fit puts an item, which is free there, from where it was held; and its standard error."""
    assert found.fixed is not None
    layout = found.point.layout
    own = layout.item == item
    fixed = found.fixed & ~own
    refit = Newton(likelihood, prior=found.prior, fixed=fixed, parts=found.floating).solve(found.beta)
    information = information_at(likelihood, refit.point.beta).matrix
    covariance = Matrices.of(refit, information).covariance()
    displacement = float(np.mean(refit.beta[own] - found.beta[own]))
    return displacement, float(np.sqrt(covariance[np.ix_(own, own)].mean()))


def displaced_by_a_step(found: PenalizedPoint, matrices: Matrices, items: Mask) -> Displacements:
    """One Newton step of each of these fixed items, its thresholds free and all free items following.

    With T = H_aF H_FF^-1 for the thresholds a of an item and the free ones F, the equation of the item alone has the
    slope S = H_aa - T H_Fa, the value g_a - T g_F, and the noise R M R', R = 1_a - T.
    """
    layout = found.point.layout
    pull = replace(found, fixed=None).pull()
    displacement = np.full(layout.n_items, np.nan)
    se = np.full(layout.n_items, np.nan)
    for item in np.flatnonzero(items).tolist():
        own = np.flatnonzero(layout.item == item)
        rest = -(matrices.bread[own] @ matrices.inverse)  # 0 outside the free thresholds
        rest[np.arange(len(own)), own] += 1.0
        slope = rest @ matrices.bread[:, own]
        noise = rest @ matrices.meat @ rest.T
        scale = np.sqrt(np.maximum(np.diag(slope), 0.0))
        if not scale.all() or np.linalg.cond(slope / np.outer(scale, scale)) > SINGULAR:
            continue  # a category that nobody used, or all answers alike
        mean = np.linalg.solve(slope, np.full(len(own), 1 / len(own)))
        displacement[item] = mean @ (rest @ pull)
        se[item] = np.sqrt(max(float(mean @ noise @ mean), 0.0))
    return Displacements(displacement, se)


def displaced_as_a_whole(found: PenalizedPoint, matrices: Matrices | None, fixed: Mask) -> Displacements:
    """All thresholds of a fixed item moved alike, by the equation of the item alone. With matrices, the free items
    follow as at the anchor; without them they are held."""
    layout = found.point.layout
    m = layout.n_items
    answers = found.point.scored.prepare(answers_given_score, found.point.tables)
    delta = np.zeros(m)
    at_anchor = missing, steep, noise = answers.sum(_equation, delta)
    missing_at_anchor, slope, _ = at_anchor
    for _ in range(STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(fixed & (steep > 0), np.clip(missing / steep, -LONGEST, LONGEST), 0.0)
        delta = np.clip(delta + step, -FARTHEST, FARTHEST)
        missing, steep, noise = answers.sum(_equation, delta)
        if np.all((np.abs(step) < SETTLED) | (np.abs(delta) == FARTHEST)):
            break
    back, extra = np.zeros((2, m)) if matrices is None else _following(layout, fixed, matrices, slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = np.where(delta == 0, slope, missing_at_anchor / delta)
        # What comes back to an item by way of the others grows as its information does.
        left, left_there = (np.maximum(1 - back * one / slope, 0.05) for one in (secant, steep))
        displacement = np.clip(delta / left, -FARTHEST, FARTHEST)
        se = np.sqrt(np.maximum(noise + extra, 0)) / (steep * left_there)
    measured = fixed & (np.abs(delta) < FARTHEST) & np.isfinite(displacement) & (steep > 0)
    return Displacements(np.where(measured, displacement, np.nan), np.where(measured, se, np.nan))


def _following(layout: Thresholds, fixed: Mask, matrices: Matrices, slope: Floats) -> tuple[Floats, Floats]:
    """The share of each fixed item's slope that comes back by way of the free items; what they add to its noise.
    With T = H_AF H_FF^-1, fixed item a set free has the slope H_aa - T_a H_Fa and the noise g_a - T_a g_F."""
    back, extra = np.zeros(layout.n_items), np.zeros(layout.n_items)
    bread, meat = (
        one[fixed] if layout.binary else np.add.reduceat(one, layout.first, axis=0)[fixed]
        for one in (matrices.bread, matrices.meat)
    )
    lever, slope = bread @ matrices.inverse, slope[fixed]
    back[fixed] = np.divide(np.einsum("af,af->a", lever, bread), slope, out=np.zeros(len(slope)), where=slope > 0)
    extra[fixed] = np.einsum("af,af->a", lever, lever @ matrices.meat - 2 * meat)
    return np.clip(back, 0, 1), extra


Answers = tuple[NDArray[np.int32], Ints, Floats, Any]  # item, category, P(X = c | s) (categories x answers), weight


def answers_given_score(rows: PeopleRows, tables: Any) -> Answers:
    """From people's scores P(X >= k | s) - 1{X >= k}, below zero where a threshold was passed. Where the score is zero
    the threshold was passed, or failed, for sure: passed if a higher one is open."""
    scores = rows.scores(tables)
    weight = 1.0 if rows.weight is None else np.repeat(rows.weight, np.diff(scores.indptr))
    values = scores.values / np.where(weight == 0, 1.0, weight)
    some = np.abs(values) > NOTHING
    passed = np.where(some, values < 0, np.logical_or.accumulate(some[::-1])[::-1])
    ends = np.ones((1, len(scores.items)))
    higher = np.concatenate([ends, values + passed, 0 * ends])
    return scores.items, passed.sum(axis=0), np.maximum(higher[:-1] - higher[1:], 0), weight


def _equation(answers: Answers, delta: Floats) -> tuple[Floats, ...]:
    """For every item at its delta: what sum_l (E_la(delta) - X_la) = 0 lacks, its slope, its squared noise. Moving item
    a by delta multiplies every person's odds of category c, given the score, by exp(-c delta)."""
    items, x, p, weight = answers
    category = np.arange(len(p))
    p = p * np.exp(-category[:, None] * delta)[:, items]
    p /= p.sum(axis=0)
    mean = category @ p
    lacking = weight * (mean - x)
    sums = (lacking, weight * (category**2 @ p - mean**2), lacking**2)
    return tuple(np.bincount(items, weights=each, minlength=len(delta)).astype(np.float64) for each in sums)
