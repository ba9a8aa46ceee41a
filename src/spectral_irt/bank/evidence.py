"""What data said about thresholds, kept after the data are gone.

Near thresholds beta the conditional log-likelihood of all answers seen is, as a function of the thresholds b,
g' (b - beta) - (b - beta)' M (b - beta) / 2. M is their information; its diagonal alone is right where answers link all
items well, and the whole matrix is kept where it is small enough, so that weak links between test forms stay as weak as
they are. g is the score of the answers: zero without a prior, and where one holds the items it is just what the prior
pulls with, so that the prior can be taken off, or another put on, without the data.

The prior is that of every calibration (`chain.prior`): a threshold is like those of the other items that its people
met, up to a deviation d with precision alpha, which fades where the answers know better. Here the others count by the
information they share with it: d = E^-1 N beta, where N has the entries of M between different items, and a diagonal E
such that its rows add to zero; where items are right or wrong, N is M. So d is how far a threshold lies from a mean of
the others. Where only the diagonal is kept, that mean is kept too, one number a threshold: the prior's mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.prior import fading, renewed_precision
from spectral_irt.conditional.information import Point, by_blocks, from_levels
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import CERTAIN, centered_within
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds
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
        What the answers tell about each threshold, the others given.
    matrix : float array or None
        The whole information matrix, kept for up to 2,000 thresholds: what updates and links need where test forms are
        connected by few items.
    prior_mean, prior_gradient : float arrays
        The mean of the other thresholds that a threshold's people met, in logits, and what the prior pulls with,
        against the answers.
    prior_precision : float
        Of the deviations from that mean, where answers are few; 0 is no prior.
    link_group : int array
        Which items are on one scale: those of different groups are linked by no answers. 0 is the group whose items
        have the status "ok".
    """

    information: Floats
    prior_mean: Floats
    prior_gradient: Floats
    link_group: Ints
    prior_precision: float = 0.0
    matrix: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("information", "prior_mean", "prior_gradient", "link_group", "matrix"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, fixed(values))

    @property
    def known(self) -> Floats:
        """The matrix, or its diagonal where that is all there is."""
        return self.information if self.matrix is None else self.matrix

    def scaled(self, shift: float, slope: float) -> Evidence:
        """That of shift + slope * threshold."""
        return Evidence(
            self.information / slope**2,
            shift + slope * self.prior_mean,
            self.prior_gradient / slope,
            self.link_group,
            self.prior_precision / slope**2,
            None if self.matrix is None else self.matrix / slope**2,
        )


def matrix_is_affordable(responses: Responses) -> bool:
    """Whether the whole information matrix of these responses is small enough to keep and quick enough to form."""
    pairs = responses.pair_work
    size = responses.thresholds.n_entries
    return size <= MATRIX_SIZE and min(pairs, responses.n_persons * float(size) ** 2 / DENSE_GAIN) <= MATRIX_WORK


def diagonal_of(information: Floats) -> Floats:
    return information if information.ndim == 1 else np.diag(information).copy()


def times(information: Floats, v: Floats) -> Floats:
    return information * v if information.ndim == 1 else information @ v


def between_items(information: Floats, layout: Thresholds) -> Floats:
    """N of this information: of thresholds of the same item only what makes its rows add to zero."""
    if information.ndim == 1 or layout.binary:
        return information
    own = layout.item[:, None] == layout.item
    out = np.where(own, 0.0, information)
    np.fill_diagonal(out, np.where(own, information, 0.0).sum(axis=1))
    return out


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 1e-12)


# ------------------------------------------------------------------------------------- answers at hand


@dataclass(frozen=True, eq=False)
class Answers:
    """The conditional likelihood of answers at some thresholds: its score, and its information as an operator.

    The score is positive where the threshold is harder than that.
    """

    likelihood: Likelihood
    point: Point

    @classmethod
    def at(cls, responses: Responses, beta: Floats) -> Answers:
        likelihood = Likelihood(responses, beta)
        return cls(likelihood, likelihood.at(beta))

    def moved(self, beta: Floats) -> Answers:
        return Answers(self.likelihood, self.likelihood.at(beta))

    @property
    def score(self) -> Floats:
        return self.point.gradient

    @property
    def diagonal(self) -> Floats:
        return self.point.information

    def __matmul__(self, v: Floats) -> Floats:
        return self.point @ v

    def compared(self, v: Floats) -> Floats:
        """N v."""
        point = self.point
        return point @ v if point.layout.binary else point @ v - by_blocks(point.layout, point.own, v) + self.others * v

    @cached_property
    def others(self) -> Floats:
        """E, the diagonal of N."""
        return by_blocks(self.point.layout, self.point.own, np.ones(len(self.score)))

    def squares(self) -> Floats:
        """Sums over people of their squared scores."""
        return from_levels(self.point.layout, np.einsum("ikk->ik", self.point.score_blocks()))

    def matrix(self) -> Floats:
        return self.point.dense()


# ------------------------------------------------------------------------- what is kept, new answers, the prior


@dataclass(frozen=True, eq=False)
class Quadratic:
    """What all answers counted so far say near the thresholds beta; see the module's text.

    `information` is M or its diagonal, `gradient` is g; `level` counts only beside a diagonal. `squares` are sums over
    people of their squared scores, the information if the model holds: what variances are to the model's.
    """

    beta: Floats
    information: Floats
    gradient: Floats
    level: Floats
    squares: Floats


@dataclass(frozen=True, eq=False)
class Posterior:
    """Kept evidence, answers at hand if there are any, and a prior, at the thresholds beta.

    Attributes
    ----------
    alpha : float
        Precision of the prior.
    tied : bool array
        Thresholds that answers tie to the scale; for the others the prior does not fade.
    fixed : bool array
        Thresholds that do not move.
    floating : int array
        Which hang together without a fixed one among them, -1 for others: such a part keeps its mean.
    """

    layout: Thresholds
    kept: Quadratic
    answers: Answers | None
    beta: Floats
    alpha: float
    tied: Mask
    fixed: Mask
    floating: Ints

    @property
    def data(self) -> Floats:
        """What the answers tell about each threshold."""
        return diagonal_of(self.kept.information) + (self.answers.diagonal if self.answers else 0.0)

    def _informed(self, v: Floats) -> Floats:
        """M v."""
        return times(self.kept.information, v) + (self.answers @ v if self.answers else 0.0)

    @cached_property
    def _between(self) -> Floats:
        return between_items(self.kept.information, self.layout)

    def _compared(self, v: Floats) -> Floats:
        """N v."""
        return times(self._between, v) + (self.answers.compared(v) if self.answers else 0.0)

    @property
    def _others(self) -> Floats:
        """E."""
        return diagonal_of(self._between) + (self.answers.others if self.answers else 0.0)

    def deviation(self) -> Floats:
        """How far each threshold lies from those of the other items that its people met."""
        if self.kept.information.ndim == 2:
            return _over(self._compared(self.beta), self._others)
        away = self.kept.information * (self.beta - self.kept.level)
        return _over(away + (self.answers.compared(self.beta) if self.answers else 0.0), self._others)

    def levels(self) -> Floats:
        """The mean of the others that each was compared with; of one that met none, itself."""
        return self.kept.level if self.kept.information.ndim == 1 else self.beta - self.deviation()

    def gradient(self) -> Floats:
        """Of the log-likelihood of all answers."""
        kept = self.kept
        old = kept.gradient - times(kept.information, self.beta - kept.beta)
        return old + (self.answers.score if self.answers else 0.0)

    def step(self) -> Floats:
        """Where Newton's method goes next, at most `LONGEST_STEP` for each threshold."""
        data, others = self.data, self._others
        fade = fading(data, self.tied, self.alpha)
        weight = self.alpha * _over(fade, others)
        down = self.gradient() - self._compared(weight * self.deviation())
        down[self.fixed] = 0

        def matrix(v: Floats) -> Floats:
            image = self._informed(v)
            met = image if self.layout.binary else self._compared(v)
            image = image + self._compared(_over(weight * met, others))
            image[self.fixed] = 0
            return image

        diagonal = np.where(self.fixed | (data <= 1e-12), 0.0, data + self.alpha * fade)
        down = np.where(diagonal > 0, centered_within(down, self.floating), 0.0)
        step, _ = conjugate_gradients(matrix, diagonal, down, tol=SOLVED, centered=False)
        return np.clip(step, -LONGEST_STEP, LONGEST_STEP)

    def after(self, step: Floats) -> Quadratic:
        """The evidence of everything, the answers at hand with it, at the thresholds after this step."""
        kept, new, beta = self.kept, self.answers, self.beta + step
        gradient = self.gradient() - self._informed(step)
        if new is None:
            return replace(kept, beta=beta, gradient=gradient)
        if kept.information.ndim == 2:
            squares = kept.squares + new.squares()
            return Quadratic(beta, kept.information + new.matrix(), gradient, kept.level, squares)
        told = kept.information > 0  # beside a diagonal the ratio also has what weak links add to variances: it stays
        ratio = np.divide(kept.squares, kept.information, out=np.full(len(told), np.nan), where=told)
        ratio = np.where(told, ratio, np.median(ratio[told]) if told.any() else 1.0)
        squares = kept.squares + ratio * new.diagonal
        met = kept.information * kept.level + new.others * beta - new.compared(beta)
        others = self._others
        return Quadratic(beta, self.data, gradient, np.where(others > 1e-12, _over(met, others), beta), squares)

    def renewed(self, low: Floats, high: Floats) -> float:
        """The precision of the prior after a step of empirical Bayes, as calibrations take it.

        `low` and `high` are the answers in the categories below and above each threshold.
        """
        share = _over(high + self.gradient(), low + high)
        data = self.data
        known = np.where(self.fixed, CERTAIN, data)
        chosen = data > 1e-12
        return renewed_precision(self.deviation()[chosen], known[chosen], share[chosen], self.alpha)

    def ratio(self) -> Floats:
        """What variances are to the model's; where the prior counts, answers that look too regular do not count."""
        data, squares = self.data, self.kept.squares
        squares = squares + fading(data, self.tied, self.alpha) * np.maximum(data - squares, 0)
        return np.where(data > 1e-12, _over(squares, data), 1.0)

    def variance(self) -> tuple[Floats, Floats]:
        """Of each threshold that is not fixed, and of each location, within its part, under the model and the prior."""
        data, layout = self.data, self.layout
        fade = fading(data, self.tied, self.alpha)
        if self.kept.information.ndim == 1:
            total = data + self.alpha * fade
            own = np.where(self.fixed, 0.0, _over(data + self.alpha * fade**2, total**2))
            return own, own if layout.binary else layout.sum(own) / layout.max_score**2
        free = np.flatnonzero(~self.fixed)
        m, n, others = self.kept.information, self._between, self._others
        bread, meat = (m + self.alpha * (n * _over(weight, others**2)) @ n for weight in (fade, fade**2))
        square = np.ix_(free, free)
        inverse = centered_inverse(bread[square], self.floating[free])
        out = np.zeros(len(data))
        if layout.binary:
            out[free] = np.maximum(((inverse @ meat[square]) * inverse).sum(axis=1), 0)
            return out, out
        full = np.zeros_like(m)
        full[square] = inverse @ meat[square] @ inverse
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
