"""What responses told about thresholds, kept after the responses are gone.

Near thresholds beta the conditional log-likelihood of all responses seen is, as a function of the thresholds b,

    g' (b - beta) - (b - beta)' M (b - beta) / 2.

M is their information: the whole matrix where it is small enough, so that weak links between test forms stay weak;
beyond, the items' blocks of it, which are right where responses link all items well. g is the score of the responses,
which is zero without a prior, and minus the gradient of the prior with one: so the prior can be taken off, or another
put on, without the data.

The prior is that of every calibration (`chain.prior`). Here the other items that an item's people met count by the
information that they share with it: d = E^-1 N delta, where N = B M B' adds up the thresholds of each item, so that its
rows add to zero, and E is its diagonal. Where only blocks are kept, so is the mean of the others, the prior's mean.

`Evidence` is what a bank keeps. An update (`update.py`) takes it for a `Quadratic` and adds the likelihood of the new
responses and a prior; together they are a `Posterior`, which has the gradient, the steps of Newton's method, and the
variances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from spectral_irt.chain.operator import Neighbors
from spectral_irt.chain.prior import LocationPrior, Prior, RareCategories, renewed_precision, share_of_prior
from spectral_irt.conditional.information import Point, by_blocks, from_levels
from spectral_irt.conditional.newton import CERTAIN
from spectral_irt.conditional.penalized import centered_within
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.numerics import centered_inverse, conjugate_gradients, read_only, safe_divide

MATRIX_SIZE = 2000  # thresholds up to which the whole matrix is kept: at most 16 MB on disk
MATRIX_WORK = 4e8  # pairs of answers of the same person that may be looked at to form it: about 10 s on one core
DENSE_GAIN = 400  # a pair costs this much more in a sparse product than a cell in a dense one
LONGEST_STEP = 2.0  # logits that one step may move a threshold: a new item starts from nowhere
SOLVED = 1e-6  # of each linear system: its relative residual
NO_INFORMATION = 1e-12  # on a threshold: nothing but rounding
RIDGE = 1e-10  # of the diagonal of a block, so that one whose thresholds move together can be inverted


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a bank keeps of the responses that it has seen; see the module's text.

    Attributes
    ----------
    information : float array
        Of each threshold, the others given.
    prior_mean, prior_gradient : float arrays
        For each threshold the mean location of the other items that its people met, in logits, and the gradient of the
        prior, against the responses.
    link_group : int array
        Items of different groups are linked by no responses. 0 is the group whose items have the status "ok".
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
        # Banks share arrays (`replace` copies none), so these can be read only.
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                object.__setattr__(self, name, read_only(values))

    def matrix_or_blocks(self, layout: Thresholds) -> Floats:
        """The information matrix, thresholds x thresholds; or, where there is none, the items' blocks of it."""
        if self.matrix is not None:
            return self.matrix
        if self.blocks is not None:
            return self.blocks
        return layout.table(self.information, 0.0)[:, :, None] * np.eye(layout.widest)


def matrix_is_affordable(responses: Responses) -> bool:
    """Whether the whole information matrix of these responses is small enough to keep and quick enough to form."""
    size = responses.thresholds.n_entries
    dense_work = responses.n_persons * float(size) ** 2 / DENSE_GAIN
    return size <= MATRIX_SIZE and min(responses.pair_work, dense_work) <= MATRIX_WORK


def is_matrix(information: Floats) -> bool:
    """Whether this is the whole information matrix, not the items' blocks of it."""
    return information.ndim == 2


def diagonal_of(information: Floats, layout: Thresholds) -> Floats:
    """Of the whole matrix, or of blocks."""
    if is_matrix(information):
        return np.diag(information).copy()
    return from_levels(layout, np.einsum("ikk->ik", information)).copy()


def blocks_of(information: Floats, layout: Thresholds) -> Floats:
    """The items' blocks of the whole matrix, or blocks as they are."""
    if not is_matrix(information):
        return information
    row, column = np.nonzero(layout.item[:, None] == layout.item)  # two thresholds of the same item
    level = layout.level - 1
    out = np.zeros((layout.n_items, layout.widest, layout.widest))
    out[layout.item[row], level[row], level[column]] = information[row, column]
    return out


def added_up(matrix: Floats, layout: Thresholds) -> Floats:
    """Items x items: a matrix of thresholds, those of each item added up."""
    return np.add.reduceat(np.add.reduceat(matrix, layout.first, axis=0), layout.first, axis=1)


def ratio_or_zero(above: Floats, below: Floats) -> Floats:
    """above / below; zero where there is nothing below."""
    return safe_divide(above, below, where_above=NO_INFORMATION)


def compare_with_others(point: Point, location: Floats) -> Floats:
    """N of these responses times the locations, of items."""
    return point.layout.sum(point @ location[point.layout.item])


def own_information(point: Point) -> Floats:
    """E of these responses, the diagonal of N."""
    return point.layout.sum(by_blocks(point.layout, point.own, np.ones(point.layout.n_entries)))


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The log-likelihood of all responses counted so far, near the thresholds beta.

    Attributes
    ----------
    beta, gradient : float arrays
        The thresholds, and g there.
    information : float array
        M, or its blocks.
    mean_of_others : float array
        For each item the mean location of the others that its people met; used with blocks only.
    squares : float array
        Sums over people of squared scores, which are the information if the model holds.
    """

    beta: Floats
    information: Floats
    gradient: Floats
    mean_of_others: Floats
    squares: Floats

    @property
    def has_matrix(self) -> bool:
        """Whether M is known as a whole."""
        return is_matrix(self.information)

    def times(self, v: Floats, layout: Thresholds) -> Floats:
        """M v."""
        if self.has_matrix:
            return self.information @ v
        return by_blocks(layout, self.information, v)

    def between_items(self, layout: Thresholds) -> Floats:
        """N; beside blocks its diagonal, as the others are held at their mean."""
        if not self.has_matrix:
            return np.asarray(self.information.sum(axis=(1, 2)))
        if layout.binary:
            return self.information
        return added_up(self.information, layout)


@dataclass(frozen=True, eq=False)
class SharedInformation:
    """The other items that people met, counted by the information shared with them: `Neighbors` of kept evidence and
    of new responses. `kept` is N of the evidence, or its diagonal."""

    kept: Floats
    new: Point | None

    @property
    def kept_is_diagonal(self) -> bool:
        return self.kept.ndim == 1

    def deviation(self, v: Floats) -> Floats:
        """N v, of items."""
        total = self.kept * v if self.kept_is_diagonal else self.kept @ v
        if self.new is None:
            return total
        return total + compare_with_others(self.new, v)

    @cached_property
    def self_weight(self) -> Floats:
        """1 - E, with E the diagonal of N."""
        diagonal = self.kept if self.kept_is_diagonal else np.diag(self.kept)
        if self.new is None:
            return 1 - diagonal
        return 1 - diagonal - own_information(self.new)

    def around(self, chosen: Mask) -> SharedInformation:
        """All of them: nothing is saved by leaving items out."""
        return self

    def mean_squares(self, weight: Floats) -> Floats:
        """Beside blocks the deviations of other items add nothing."""
        return np.zeros(len(weight))

    def dense(self) -> Floats:
        return self.kept


@dataclass(frozen=True, eq=False)
class BankLocationPrior(LocationPrior):
    """The prior of the locations in a bank. Where only blocks are kept, the others of each item are held at the mean
    that they had, and N v has this `constant` less: E times that mean."""

    constant: Floats

    def deviation(self, beta: Floats) -> Floats:
        return self._per_other * (self.neighbors.deviation(beta) - self.constant)

    def constant_pull(self) -> Floats:
        """What P beta has more than the gradient of the penalty, as the constant does not move with beta."""
        return self.neighbors.deviation(self.alpha * self.fade * self._per_other**2 * self.constant)


class Precisions(NamedTuple):
    """Of a prior: of the deviations of locations, and of thresholds from the offsets of all items; 0 is no prior."""

    locations: float
    offsets: float


class Variances(NamedTuple):
    """Of each threshold, and of each location."""

    thresholds: Floats
    locations: Floats


@dataclass(frozen=True, eq=False)
class Posterior:
    """Kept evidence, new responses if there are any, and a prior, at the thresholds beta.

    Attributes
    ----------
    kept, new : Quadratic, Point
        The evidence so far, and the conditional likelihood of new responses at beta.
    precisions : Precisions
        Of the prior. For thresholds that responses do not link with the scale (not `tied`) it does not fade, and
        nowhere if it was asked for (`fixed_prior`).
    fixed : bool array
        Thresholds that do not move.
    floating : int array
        For each threshold the number of its part of the items, where that part has no fixed threshold and keeps its
        mean; -1 for others.
    """

    layout: Thresholds
    kept: Quadratic
    new: Point | None
    beta: Floats
    precisions: Precisions
    tied: Mask
    fixed: Mask
    floating: Ints
    fixed_prior: bool = False

    @cached_property
    def information(self) -> Floats:
        """On each threshold, the others given."""
        of_kept = diagonal_of(self.kept.information, self.layout)
        if self.new is None:
            return of_kept
        return of_kept + self.new.information

    @cached_property
    def has_information(self) -> Mask:
        """Thresholds about which something is known."""
        return self.information > NO_INFORMATION

    @cached_property
    def location_prior(self) -> BankLocationPrior:
        shared = SharedInformation(self.kept.between_items(self.layout), self.new)
        constant = np.zeros(len(shared.kept))
        if shared.kept_is_diagonal:
            constant = shared.kept * self.kept.mean_of_others
        tied = self.layout.sum(self.tied.astype(float)) > 0
        alpha = self.precisions.locations
        fade = self._fade(self.layout.sum(self.information), tied, alpha)
        return BankLocationPrior(cast(Neighbors, shared), alpha, fade, constant)

    def _fade(self, information: Floats, tied: Mask, precision: float) -> Floats:
        """How much the prior counts; one that was asked for does so in full, or not at all."""
        if self.fixed_prior:
            return np.full(len(information), float(precision > 0))
        return share_of_prior(information, tied, precision)

    @cached_property
    def prior(self) -> Prior:
        """That of locations and offsets."""
        alpha = self.precisions.offsets
        fade = np.zeros(len(self.information))
        if not self.layout.binary:
            fade = self._fade(self.information, self.tied, alpha)
        return Prior(self.layout, self.location_prior, alpha, fade, estimated=not self.fixed_prior)

    def _information_times(self, v: Floats) -> Floats:
        """M v, of all responses."""
        of_kept = self.kept.times(v, self.layout)
        if self.new is None:
            return of_kept
        return of_kept + self.new @ v

    def means_of_others(self) -> Floats:
        """The mean of the others that each item was compared with; of one that met none, itself."""
        if not self.kept.has_matrix:
            return self.kept.mean_of_others
        location = self.layout.mean(self.beta)
        return location - self.location_prior.deviation(location)

    def gradient(self) -> Floats:
        """Of the log-likelihood of all responses."""
        of_kept = self.kept.gradient - self.kept.times(self.beta - self.kept.beta, self.layout)
        if self.new is None:
            return of_kept
        return of_kept + self.new.gradient

    def step(self) -> Floats:
        """Where Newton's method goes next, at most `LONGEST_STEP` for each threshold."""
        layout = self.layout
        prior = self.prior
        location_prior = self.location_prior
        constant_pull = (location_prior.constant_pull() / layout.max_score)[layout.item]
        gradient = self.gradient() - prior @ self.beta + constant_pull
        gradient[self.fixed] = 0

        def curvature_times(v: Floats) -> Floats:
            image = self._information_times(v) + prior @ v
            image[self.fixed] = 0
            return image

        of_locations = (location_prior.alpha * location_prior.fade / layout.max_score**2)[layout.item]
        of_offsets = prior.alpha * prior.fade
        free = ~self.fixed & self.has_information
        diagonal = np.where(free, self.information + (of_locations + of_offsets), 0.0)
        gradient = np.where(diagonal > 0, centered_within(gradient, self.floating), 0.0)
        step, _ = conjugate_gradients(curvature_times, diagonal, gradient, tol=SOLVED, centered=False)
        return np.clip(step, -LONGEST_STEP, LONGEST_STEP)

    def after(self, step: Floats) -> Quadratic:
        """The evidence of everything, the new responses with it, at the thresholds after this step."""
        evidence = self.kept
        new = self.new
        beta = self.beta + step
        gradient = self.gradient() - self._information_times(step)
        if new is None:
            return replace(evidence, beta=beta, gradient=gradient)
        if evidence.has_matrix:
            score_squares = new.score_sums(0 * new.gradient)[0]
            return Quadratic(
                beta=beta,
                information=evidence.information + new.dense(),
                gradient=gradient,
                mean_of_others=evidence.mean_of_others,
                squares=evidence.squares + diagonal_of(score_squares, self.layout),
            )
        return Quadratic(
            beta=beta,
            information=evidence.information + new.own,
            gradient=gradient,
            mean_of_others=self._renewed_means_of_others(new, self.layout.mean(beta)),
            squares=evidence.squares + self._kept_ratio() * new.information,
        )

    def _kept_ratio(self) -> Floats:
        """Squared scores over the information, of the evidence kept; of thresholds without any, what is usual.

        Beside blocks the ratio also has what weak links add to variances, which new responses do not change.
        """
        information = diagonal_of(self.kept.information, self.layout)
        informed = information > 0
        ratio = np.divide(self.kept.squares, information, out=np.full(len(informed), np.nan), where=informed)
        usual = 1.0
        if informed.any():
            usual = np.median(ratio[informed])
        return np.where(informed, ratio, usual)

    def _renewed_means_of_others(self, new: Point, location: Floats) -> Floats:
        """The mean of the others that people met, of kept and new responses, by information."""
        kept_information = self.kept.between_items(self.layout)
        new_information = own_information(new)
        total = kept_information + new_information
        sums = (
            kept_information * self.kept.mean_of_others
            + new_information * location
            - compare_with_others(new, location)
        )
        return np.where(total > NO_INFORMATION, ratio_or_zero(sums, total), location)

    def renewed_precisions(self, n_below: Floats, n_above: Floats) -> Precisions:
        """Of the prior, after a step of empirical Bayes; given are the numbers of responses in the categories below and
        above each threshold."""
        layout = self.layout
        share_above = ratio_or_zero(n_above + self.gradient(), n_below + n_above)
        if layout.binary:
            information = np.where(self.fixed, CERTAIN, self.information)
            deviation = self.location_prior.deviation(self.beta)
            some = self.has_information
            alpha = renewed_precision(
                deviation[some],
                information[some],
                share_above[some],
                self.precisions.locations,
                self.location_prior.fade[some],
            )
            return Precisions(alpha, 0.0)
        blocks = blocks_of(self.kept.information, layout)
        blocks = blocks.copy() if self.new is None else blocks + self.new.own
        certain = self.fixed & self.has_information
        level = layout.level[certain] - 1
        blocks[layout.item[certain], level, level] = CERTAIN
        prior = replace(self.prior, rare=RareCategories.of(layout, n_below, n_above))
        prior = prior.with_new_precision(self.beta, blocks, share_above)
        return Precisions(cast(LocationPrior, prior.location).alpha, prior.alpha)

    def variance_ratio(self) -> Floats:
        """What variances are to the model's; where the prior counts, responses that look too regular do not count."""
        squares = self.kept.squares
        squares = squares + self.prior.counts * np.maximum(self.information - squares, 0)
        return np.where(self.has_information, ratio_or_zero(squares, self.information), 1.0)

    def variance(self) -> Variances:
        """Of each threshold that is not fixed, and of each location, within its part, under the model and the prior."""
        if not self.kept.has_matrix:
            return self._variance_by_blocks()
        free = np.flatnonzero(~self.fixed)
        if not len(free):
            return Variances(np.zeros(len(self.fixed)), np.zeros(self.layout.n_items))
        return self._variance_by_matrix(free)

    def _variance_by_blocks(self) -> Variances:
        """The sandwich B^-1 (M + pull) B^-1 with B = M + penalty, item by item."""
        layout = self.layout
        information = self.kept.information
        free = layout.table((~self.fixed & self.has_information).astype(float), 0.0)
        both_free = free[:, :, None] * free[:, None, :]
        bread = (information + self.prior.within()) * both_free
        meat = (information + self.prior.within(2)) * both_free
        ridge = np.where(free > 0, RIDGE * np.einsum("ikk->ik", bread), 1.0)
        inverse = np.linalg.inv(bread + ridge[:, :, None] * np.eye(layout.widest)) * both_free
        covariance = inverse @ meat @ inverse
        thresholds = from_levels(layout, np.einsum("ikk->ik", covariance))
        return Variances(thresholds, covariance.sum(axis=(1, 2)) / layout.max_score**2)

    def _variance_by_matrix(self, free: Ints) -> Variances:
        """The same sandwich of the whole matrix, computed as B^-1 less what a prior that fades lacks."""
        layout = self.layout
        square = np.ix_(free, free)
        bread = self.kept.information
        lacking = None
        if self.prior.counts.any():
            penalty, pull = self.prior.dense()
            bread = bread + penalty
            lacking = (penalty - pull)[square]
        inverse = centered_inverse(bread[square], self.floating[free])
        if layout.binary:
            variance = np.zeros(len(bread))
            variance[free] = np.diag(inverse)
            if lacking is not None:
                variance[free] -= ((inverse @ lacking) * inverse).sum(axis=1)
            variance = np.maximum(variance, 0)
            return Variances(variance, variance)
        if lacking is not None:
            inverse = inverse - inverse @ lacking @ inverse
        covariance = np.zeros_like(bread)
        covariance[square] = inverse
        covariance = centered_on_parts(covariance, 1 / layout.max_score[layout.item], self.floating)
        thresholds = np.maximum(np.diag(covariance), 0)
        locations = np.maximum(np.diag(added_up(covariance, layout)), 0) / layout.max_score**2
        return Variances(thresholds, locations)


def centered_on_parts(covariance: Floats, weight: Floats, floating: Ints) -> Floats:
    """The covariance where every floating part has the mean zero, thresholds counting by these weights in it."""
    number = floating + 1  # 0: of no floating part
    total = np.bincount(number, weights=weight)
    mean = np.zeros((len(total), len(number)))  # parts x thresholds
    mean[number, np.arange(len(number))] = np.where(floating >= 0, weight / total[number], 0.0)
    with_mean = (mean @ covariance)[number]
    of_means = (mean @ covariance @ mean.T)[np.ix_(number, number)]
    return covariance - with_mean - with_mean.T + of_means
