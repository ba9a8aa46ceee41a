"""What data said about thresholds, kept after the data are gone.

Near thresholds beta the conditional log-likelihood of all answers seen is, as a function of the thresholds b,
g' (b - beta) - (b - beta)' M (b - beta) / 2. M is their information: the whole matrix where it is small enough, so that
weak links between test forms stay weak; beyond, the items' blocks of it, which are right where answers link all items
well. g is the score of the answers, which is zero without a prior, and minus the gradient of the prior with one: so the
prior can be taken off, or another put on, without the data.

The prior is that of every calibration (`chain.prior`). Here the other items that an item's people met count by the
information that they share with it: d = E^-1 N delta, where N = B M B' adds up the thresholds of each item, so that its
rows add to zero, and E is its diagonal. Where only blocks are kept, so is the mean of the others, the prior's mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.operator import Neighbors
from spectral_irt.chain.prior import LocationPrior, Prior, fading, renewed_precision
from spectral_irt.conditional.information import Point, by_blocks, from_levels
from spectral_irt.conditional.newton import CERTAIN, centered_within
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.numerics import centered_inverse, conjugate_gradients, fixed

Mask = NDArray[np.bool_]

MATRIX_SIZE = 2000  # thresholds up to which the whole matrix is kept: at most 16 MB on disk
MATRIX_WORK = 4e8  # pairs of answers of the same person that may be looked at to form it: about 10 s on one core
DENSE_GAIN = 400  # a pair costs this much more in a sparse product than a cell in a dense one
LONGEST_STEP = 2.0  # logits that one step may move a threshold: a new item starts from nowhere
SOLVED = 1e-6  # of each linear system


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a bank keeps of the answers that it has seen; see the module's text.

    Attributes
    ----------
    information : float array
        Of each threshold, the others given.
    prior_mean, prior_gradient : float arrays
        For each threshold the mean location of the other items that its people met, in logits, and the gradient of the
        prior, against the answers.
    link_group : int array
        Items of different groups are linked by no answers. 0 is the group whose items have the status "ok".
    prior_precision, offset_precision : float
        Of the deviations of locations from that mean, and of thresholds from the offsets of all items; 0 is no prior.
    fixed_prior : bool
        Whether these were asked for (`regularization=`): then they stay as they are, in full for all items.
    matrix : float array or None
        The whole information matrix, kept for up to 2,000 thresholds.
    blocks : float array, items x levels x levels, or None
        Of items with several thresholds, where there is no whole matrix: each item's block of it.
    """

    information: Floats
    prior_mean: Floats
    prior_gradient: Floats
    link_group: Ints
    prior_precision: float = 0.0
    offset_precision: float = 0.0
    fixed_prior: bool = False
    matrix: Floats | None = None
    blocks: Floats | None = None

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                object.__setattr__(self, name, fixed(values))

    def matrix_or_blocks(self, layout: Thresholds) -> Floats:
        """The matrix, or the items' blocks where that is all there is."""
        if self.matrix is not None:
            return self.matrix
        if self.blocks is not None:
            return self.blocks
        return layout.table(self.information, 0.0)[:, :, None] * np.eye(layout.widest)


def matrix_is_affordable(responses: Responses) -> bool:
    """Whether the whole information matrix of these responses is small enough to keep and quick enough to form."""
    pairs, size = responses.pair_work, responses.thresholds.n_entries
    return size <= MATRIX_SIZE and min(pairs, responses.n_persons * float(size) ** 2 / DENSE_GAIN) <= MATRIX_WORK


def diagonal_of(information: Floats, layout: Thresholds) -> Floats:
    """Of the whole matrix, or of blocks."""
    if information.ndim == 2:
        return np.diag(information).copy()
    return from_levels(layout, np.einsum("ikk->ik", information)).copy()


def blocks_of(information: Floats, layout: Thresholds) -> Floats:
    """The items' blocks of the whole matrix, or blocks as they are."""
    if information.ndim == 3:
        return information
    item, level = layout.item, layout.level - 1
    same = np.nonzero(item[:, None] == item)
    out = np.zeros((layout.n_items, layout.widest, layout.widest))
    out[item[same[0]], level[same[0]], level[same[1]]] = information[same]
    return out


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 1e-12)


def compared(point: Point, location: Floats) -> Floats:
    """N of these answers times this, of items."""
    return point.layout.sum(point @ location[point.layout.item])


def own_information(point: Point) -> Floats:
    """E of these answers, the diagonal of N."""
    return point.layout.sum(by_blocks(point.layout, point.own, np.ones(point.layout.n_entries)))


@dataclass(frozen=True, eq=False)
class Quadratic:
    """What all answers counted so far say near the thresholds beta: M or its blocks, g, the mean `level` of the others
    that each item's people met (used with blocks only), and sums over people of squared scores, which are the
    information if the model holds."""

    beta: Floats
    information: Floats
    gradient: Floats
    level: Floats
    squares: Floats

    def times(self, v: Floats, layout: Thresholds) -> Floats:
        """M v."""
        return self.information @ v if self.information.ndim == 2 else by_blocks(layout, self.information, v)

    def between(self, layout: Thresholds) -> Floats:
        """N; beside blocks its diagonal, as the others are held at their mean."""
        if self.information.ndim == 3:
            return np.asarray(self.information.sum(axis=(1, 2)))
        if layout.binary:
            return self.information
        return np.add.reduceat(np.add.reduceat(self.information, layout.first, axis=0), layout.first, axis=1)


@dataclass(frozen=True, eq=False)
class Met:
    """The items that people met, of what is kept and of the answers at hand: `Neighbors`, by information."""

    kept: Floats
    answers: Point | None

    def deviation(self, v: Floats) -> Floats:
        """N v, of items."""
        old = self.kept * v if self.kept.ndim == 1 else self.kept @ v
        return old + (compared(self.answers, v) if self.answers else 0.0)

    @cached_property
    def self_weight(self) -> Floats:
        """1 - E, with E the diagonal of N."""
        old = self.kept if self.kept.ndim == 1 else np.diag(self.kept)
        return 1 - old - (own_information(self.answers) if self.answers else 0.0)

    def around(self, chosen: Mask) -> Met:
        return self

    def mean_squares(self, weight: Floats) -> Floats:
        """Beside blocks the deviations of other items add nothing."""
        return np.zeros(len(weight))

    def dense(self) -> Floats:
        return self.kept


@dataclass(frozen=True, eq=False)
class KeptLocations(LocationPrior):
    """The prior of locations whose others are, as far as blocks are kept, `held` at the mean they had."""

    held: Floats

    def deviation(self, beta: Floats) -> Floats:
        return self._per_other * (self.neighbors.deviation(beta) - self.held)

    def pull_of_held(self) -> Floats:
        """What the prior's matrix times beta has too much."""
        return self.neighbors.deviation(self.alpha * self.fade * self._per_other**2 * self.held)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Kept evidence, answers at hand if there are any, and a prior, at the thresholds beta.

    `precisions` are those of the prior of locations and of offsets; for thresholds that answers do not link with the
    scale (not `tied`) the prior does not fade, and nowhere if it was asked for (`fixed_prior`); `fixed` ones do not
    move; `floating` numbers the parts without a fixed one, which keep their mean (-1: others).
    """

    layout: Thresholds
    kept: Quadratic
    answers: Point | None
    beta: Floats
    precisions: tuple[float, float]
    tied: Mask
    fixed: Mask
    floating: Ints
    fixed_prior: bool = False

    @cached_property
    def data(self) -> Floats:
        """The information on each threshold."""
        own = diagonal_of(self.kept.information, self.layout)
        return own + (self.answers.information if self.answers else 0.0)

    @cached_property
    def location(self) -> KeptLocations:
        """The prior of the locations."""
        met = Met(self.kept.between(self.layout), self.answers)
        held = met.kept * self.kept.level if met.kept.ndim == 1 else np.zeros(len(met.kept))
        tied = self.layout.sum(self.tied.astype(float)) > 0
        fade = self._fade(self.layout.sum(self.data), tied, self.precisions[0])
        return KeptLocations(cast(Neighbors, met), self.precisions[0], fade, held)

    def _fade(self, information: Floats, tied: Mask, precision: float) -> Floats:
        """How much the prior counts; one that was asked for does so in full, or not at all."""
        if self.fixed_prior:
            return np.full(len(information), 1.0 if precision else 0.0)
        return fading(information, tied, precision)

    @cached_property
    def prior(self) -> Prior:
        """That of locations and offsets."""
        fade = np.zeros(len(self.data))
        if not self.layout.binary:
            fade = self._fade(self.data, self.tied, self.precisions[1])
        return Prior(self.layout, self.location, self.precisions[1], fade, not self.fixed_prior)

    def _informed(self, v: Floats) -> Floats:
        return self.kept.times(v, self.layout) + (self.answers @ v if self.answers else 0.0)

    def levels(self) -> Floats:
        """The mean of the others that each item was compared with; of one that met none, itself."""
        place = self.layout.mean(self.beta)
        return self.kept.level if self.kept.information.ndim == 3 else place - self.location.deviation(place)

    def gradient(self) -> Floats:
        """Of the log-likelihood of all answers."""
        old = self.kept.gradient - self.kept.times(self.beta - self.kept.beta, self.layout)
        return old + (self.answers.gradient if self.answers else 0.0)

    def step(self) -> Floats:
        """Where Newton's method goes next, at most `LONGEST_STEP` for each threshold."""
        data, layout, prior = self.data, self.layout, self.prior
        held = (self.location.pull_of_held() / layout.max_score)[layout.item]
        down = self.gradient() - prior @ self.beta + held
        down[self.fixed] = 0

        def matrix(v: Floats) -> Floats:
            image = self._informed(v) + prior @ v
            image[self.fixed] = 0
            return image

        own = (self.location.alpha * self.location.fade / layout.max_score**2)[layout.item] + prior.alpha * prior.fade
        diagonal = np.where(self.fixed | (data <= 1e-12), 0.0, data + own)
        down = np.where(diagonal > 0, centered_within(down, self.floating), 0.0)
        step, _ = conjugate_gradients(matrix, diagonal, down, tol=SOLVED, centered=False)
        return np.clip(step, -LONGEST_STEP, LONGEST_STEP)

    def after(self, step: Floats) -> Quadratic:
        """The evidence of everything, the answers at hand with it, at the thresholds after this step."""
        kept, new, layout, beta = self.kept, self.answers, self.layout, self.beta + step
        gradient = self.gradient() - self._informed(step)
        if new is None:
            return replace(kept, beta=beta, gradient=gradient)
        if kept.information.ndim == 2:
            squares = kept.squares + diagonal_of(new.score_sums(0 * new.gradient)[0], layout)
            return Quadratic(beta, kept.information + new.dense(), gradient, kept.level, squares)
        own = diagonal_of(kept.information, layout)
        told = own > 0  # beside blocks the ratio also has what weak links add to variances: it stays
        ratio = np.divide(kept.squares, own, out=np.full(len(told), np.nan), where=told)
        ratio = np.where(told, ratio, np.median(ratio[told]) if told.any() else 1.0)
        squares = kept.squares + ratio * new.information
        place, others = layout.mean(beta), own_information(new)
        before = kept.between(layout)
        met, total = before * kept.level + others * place - compared(new, place), before + others
        level = np.where(total > 1e-12, _over(met, total), place)
        return Quadratic(beta, kept.information + new.own, gradient, level, squares)

    def renewed(self, low: Floats, high: Floats) -> tuple[float, float]:
        """The precisions of the prior after a step of empirical Bayes; `low` and `high` are the answers in the
        categories below and above each threshold."""
        layout, data = self.layout, self.data
        share = _over(high + self.gradient(), low + high)
        if layout.binary:
            known, chosen = np.where(self.fixed, CERTAIN, data), data > 1e-12
            d = self.location.deviation(self.beta)
            fade = self.location.fade[chosen]
            return renewed_precision(d[chosen], known[chosen], share[chosen], self.precisions[0], fade), 0.0
        own = blocks_of(self.kept.information, layout) + (self.answers.own if self.answers else 0.0)
        sure = self.fixed & (data > 1e-12)
        own[layout.item[sure], layout.level[sure] - 1, layout.level[sure] - 1] = CERTAIN
        new = self.prior.renewed(self.beta, own, share)
        return cast(LocationPrior, new.location).alpha, new.alpha

    def ratio(self) -> Floats:
        """What variances are to the model's; where the prior counts, answers that look too regular do not count."""
        data, squares = self.data, self.kept.squares
        squares = squares + self.prior.counts * np.maximum(data - squares, 0)
        return np.where(data > 1e-12, _over(squares, data), 1.0)

    def variance(self) -> tuple[Floats, Floats]:
        """Of each threshold that is not fixed, and of each location, within its part, under the model and the prior."""
        layout, m = self.layout, self.kept.information
        if m.ndim == 3:
            free = layout.table((~self.fixed & (self.data > 1e-12)).astype(float), 0.0)
            both = free[:, :, None] * free[:, None, :]
            bread, meat = (m + self.prior.within()) * both, (m + self.prior.within(2)) * both
            ridge = np.where(free > 0, 1e-10 * np.einsum("ikk->ik", bread), 1.0)
            inverse = np.linalg.inv(bread + ridge[:, :, None] * np.eye(layout.widest)) * both
            full = inverse @ meat @ inverse
            return from_levels(layout, np.einsum("ikk->ik", full)), full.sum(axis=(1, 2)) / layout.max_score**2
        chosen = np.flatnonzero(~self.fixed)
        if not len(chosen):
            return np.zeros(len(m)), np.zeros(layout.n_items)
        square = np.ix_(chosen, chosen)
        bread, lacking = m, None
        if self.prior.counts.any():
            # Of the sandwich B^-1 (M + pull) B^-1 with B = M + penalty: B^-1 less what a prior that fades lacks.
            penalty, pull = self.prior.dense()
            bread = m + penalty
            lacking = (penalty - pull)[square]
        inverse = centered_inverse(bread[square], self.floating[chosen])
        out = np.zeros(len(m))
        if layout.binary:
            out[chosen] = np.diag(inverse)
            if lacking is not None:
                out[chosen] -= ((inverse @ lacking) * inverse).sum(axis=1)
            out = np.maximum(out, 0)
            return out, out
        full = np.zeros_like(m)
        full[square] = inverse if lacking is None else inverse - inverse @ lacking @ inverse
        full = centered_on_parts(full, 1 / layout.max_score[layout.item], self.floating)
        by_item = np.add.reduceat(np.add.reduceat(full, layout.first, axis=0), layout.first, axis=1)
        return np.maximum(np.diag(full), 0), np.maximum(np.diag(by_item), 0) / layout.max_score**2


def centered_on_parts(covariance: Floats, weight: Floats, floating: Ints) -> Floats:
    """The covariance where every floating part has the mean zero, thresholds counting by these weights in it."""
    number = floating + 1
    total = np.bincount(number, weights=weight)
    mean = np.zeros((len(total), len(number)))
    mean[number, np.arange(len(number))] = np.where(floating >= 0, weight / total[number], 0.0)
    cross = (mean @ covariance)[number]
    return covariance - cross - cross.T + (mean @ covariance @ mean.T)[np.ix_(number, number)]
