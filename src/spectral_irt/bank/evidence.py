"""What data said about difficulties, kept after the data are gone.

Near difficulties beta the conditional log-likelihood of all answers seen is, as a function of the difficulties b,
g' (b - beta) - (b - beta)' M (b - beta) / 2. M is the matched information of `estimators.information`; its diagonal
alone is right where answers link all items well, and the whole matrix is kept where it is small enough, so that weak
links between test forms stay as weak as they are. g is the score of the answers: zero without a prior, and where one
holds the items it is just what the prior pulls with, so that the prior can be taken off, or another put on, without
the data.

The prior is that of every calibration (`chain.prior`): an item is like the other items that its people met, up to a
deviation d with precision alpha, which fades where the answers know better. Here the others count by the information
they share with the item, d = D^-1 M beta with D the diagonal of M: its rows add to zero, so d_i is how far item i lies
from a mean of the others. Where only the diagonal is kept, that mean is kept too, one number an item: its level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.prior import fading, renewed_precision
from spectral_irt.conditional.information import Point
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import CERTAIN, centered_within
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.numerics import centered_inverse, conjugate_gradients

Mask = NDArray[np.bool_]

MATRIX_ITEMS = 2000  # up to here the whole matrix is kept: at most 16 MB on disk
MATRIX_WORK = 4e8  # pairs of answers of the same person that may be looked at to form it: about 10 s on one core
DENSE_GAIN = 400  # a pair costs this much more in a sparse product than a cell in a dense one
LONGEST_STEP = 2.0  # logits that one step may move an item: a new item starts from nowhere
SOLVED = 1e-6  # of each linear system


def matrix_is_affordable(responses: Responses) -> bool:
    """Whether the whole information matrix of these responses is small enough to keep and quick enough to form."""
    pairs = float((responses.counts.astype(float) ** 2).sum())
    cells = responses.n_persons * float(responses.n_items) ** 2
    return responses.n_items <= MATRIX_ITEMS and min(pairs, cells / DENSE_GAIN) <= MATRIX_WORK


# ------------------------------------------------------------------------------------- answers at hand


@dataclass(frozen=True, eq=False)
class Answers:
    """The conditional likelihood of answers at some difficulties: score of each item, and information as an operator.

    The score is positive where the item is harder than that.
    """

    likelihood: Likelihood
    point: Point

    @classmethod
    def at(cls, responses: Responses, beta: Floats) -> Answers:
        likelihood = Likelihood(responses, beta)
        return cls(likelihood, likelihood.at(beta))

    def moved(self, beta: Floats) -> Answers:
        return Answers(self.likelihood, self.likelihood.at(beta))

    def __matmul__(self, v: Floats) -> Floats:
        return self.point @ v

    @property
    def score(self) -> Floats:
        return self.point.gradient

    @property
    def diagonal(self) -> Floats:
        return self.point.information

    def squares(self) -> Floats:
        """Sums over people of their squared scores."""
        return self.point.score_blocks()[:, 0, 0]

    def matrix(self) -> Floats:
        return self.point.dense()


# ---------------------------------------------------------------------------------------- what is kept


def diagonal_of(information: Floats) -> Floats:
    return information if information.ndim == 1 else np.diag(information).copy()


def part_of(information: Floats, chosen: Mask) -> Floats:
    """The information on some of the items."""
    return information[chosen] if information.ndim == 1 else information[np.ix_(chosen, chosen)]


def times(information: Floats, v: Floats) -> Floats:
    return information * v if information.ndim == 1 else information @ v


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all answers counted so far say near the difficulties beta; see the module's text.

    `information` is M or its diagonal, `gradient` is g; `level` counts only beside a diagonal. `squares` are sums over
    people of their squared scores, the information if the model holds: what variances are to the model's.
    """

    beta: Floats
    information: Floats
    gradient: Floats
    level: Floats
    squares: Floats

    @property
    def levels(self) -> Floats:
        """The mean of the other items that each item was compared with; of one that met none, itself."""
        if self.information.ndim == 1:
            return self.level
        return self.beta - _over(self.information @ self.beta, diagonal_of(self.information))


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 1e-12)


# ------------------------------------------------------------------------- what is kept, new answers, the prior


@dataclass(frozen=True, eq=False)
class Posterior:
    """Kept evidence, answers at hand if there are any, and a prior, at the difficulties beta.

    Attributes
    ----------
    alpha : float
        Precision of the prior.
    tied : bool array
        Items that answers tie to the scale; for the others the prior does not fade.
    fixed : bool array
        Items that do not move.
    floating : int array
        Which items hang together without a fixed one among them, -1 for others: such a part keeps its mean.
    """

    kept: Evidence
    answers: Answers | None
    beta: Floats
    alpha: float
    tied: Mask
    fixed: Mask
    floating: Ints

    @property
    def data(self) -> Floats:
        """What the answers tell about each item."""
        return diagonal_of(self.kept.information) + (self.answers.diagonal if self.answers else 0.0)

    def _informed(self, v: Floats) -> Floats:
        """M v."""
        return times(self.kept.information, v) + (self.answers @ v if self.answers else 0.0)

    def deviation(self) -> Floats:
        """How far each item lies from the other items that its people met."""
        if self.kept.information.ndim == 2:
            return _over(self._informed(self.beta), self.data)
        away = self.kept.information * (self.beta - self.kept.level)
        return _over(away + (self.answers @ self.beta if self.answers else 0.0), self.data)

    def gradient(self) -> Floats:
        """Of the log-likelihood of all answers."""
        kept = self.kept
        old = kept.gradient - times(kept.information, self.beta - kept.beta)
        return old + (self.answers.score if self.answers else 0.0)

    def step(self) -> Floats:
        """Where Newton's method goes next, at most `LONGEST_STEP` for each item."""
        data = self.data
        fade = fading(data, self.tied, self.alpha)
        per_item = self.alpha * _over(fade, data)
        down = self.gradient() - self._informed(per_item * self.deviation())
        down[self.fixed] = 0

        def matrix(v: Floats) -> Floats:
            image = self._informed(v)
            image = image + self._informed(_over(per_item * image, data))
            image[self.fixed] = 0
            return image

        diagonal = np.where(self.fixed | (data <= 1e-12), 0.0, data + self.alpha * fade)
        down = np.where(diagonal > 0, centered_within(down, self.floating), 0.0)
        step, _ = conjugate_gradients(matrix, diagonal, down, tol=SOLVED, centered=False)
        return np.clip(step, -LONGEST_STEP, LONGEST_STEP)

    def after(self, step: Floats) -> Evidence:
        """The evidence of everything, the answers at hand with it, at the difficulties after this step."""
        kept, new, beta = self.kept, self.answers, self.beta + step
        gradient = self.gradient() - self._informed(step)
        if new is None:
            return replace(kept, beta=beta, gradient=gradient)
        if kept.information.ndim == 2:
            squares = kept.squares + new.squares()
            return Evidence(beta, kept.information + new.matrix(), gradient, kept.level, squares)
        told = kept.information > 0  # beside a diagonal the ratio also has what weak links add to variances: it stays
        ratio = np.divide(kept.squares, kept.information, out=np.full(len(told), np.nan), where=told)
        ratio = np.where(told, ratio, np.median(ratio[told]) if told.any() else 1.0)
        squares = kept.squares + ratio * new.diagonal
        met = kept.information * kept.level + new.diagonal * beta - new @ beta
        data = self.data
        return Evidence(beta, data, gradient, np.where(data > 1e-12, _over(met, data), beta), squares)

    def renewed(self, n: Ints, right: Ints) -> float:
        """The precision of the prior after a step of empirical Bayes, as calibrations take it."""
        share = _over(right + self.gradient(), n.astype(float))
        data = self.data
        known = np.where(self.fixed, CERTAIN, data)
        chosen = data > 1e-12
        return renewed_precision(self.deviation()[chosen], known[chosen], share[chosen], self.alpha)

    def ratio(self) -> Floats:
        """What variances are to the model's; where the prior counts, answers that look too regular do not count."""
        data, squares = self.data, self.kept.squares
        squares = squares + fading(data, self.tied, self.alpha) * np.maximum(data - squares, 0)
        return np.where(data > 1e-12, _over(squares, data), 1.0)

    def variance(self) -> Floats:
        """Of each difficulty that is not fixed, within its part, under the model and the prior."""
        data = self.data
        fade = fading(data, self.tied, self.alpha)
        if self.kept.information.ndim == 1:
            total = data + self.alpha * fade
            return np.where(self.fixed, 0.0, _over(data + self.alpha * fade**2, total**2))
        free = ~self.fixed
        m = self.kept.information
        bread, meat = (m + self.alpha * (m * _over(weight, data**2)) @ m for weight in (fade, fade**2))
        inverse = centered_inverse(part_of(bread, free), self.floating[free])
        out = np.zeros(len(data))
        out[free] = np.maximum(((inverse @ part_of(meat, free)) * inverse).sum(axis=1), 0)
        return out
