"""The prior of ordered answers: an item lies near the items that its own people met, and its steps are like others'.

Thresholds are beta_ik = delta_i + t_ik, a location and steps around it that add to zero. The locations have the prior
of right and wrong answers (`prior`): how far delta_i lies from the other items that its people met is normal, so that
vertical scales are not flattened. The steps of an item differ from the mean steps of the items with as many categories
by a normal deviation of a precision of its own. Each fades where the answers know better: the prior of locations with
the information on the location, that of steps with that on the threshold.

The mean steps are those of the items and of one more with equal thresholds, so that an item that is alone with its
number of categories has a prior too: with Q = (I - 1/K) (I - rho M), M the mean over those items and rho = n / (n + 1),
the deviations are Q beta and the penalty is alpha / 2 sum_ik f_ik (Q beta)_ik^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.prior import Prior, fading
from spectral_irt.chain.regularization import IMAGINARY, Regularization, least_precision
from spectral_irt.responses.block import Floats
from spectral_irt.responses.ordered import Steps

Mask = NDArray[np.bool_]


def step_fading(steps: Steps, information: Floats, tied: Mask) -> tuple[Floats, Floats]:
    """How much the prior counts for each location, and for each threshold's step.

    What the answers tell about a location is taken for the sum over its thresholds: of one that nobody passed the prior
    of the steps knows where it lies beside the others.
    """
    told, ties = (np.bincount(steps.item, weights=each, minlength=steps.n_items) for each in (information, tied))
    return fading(told.astype(np.float64), ties > 0), fading(information, tied)


@dataclass(frozen=True)
class StepRegularization(Regularization):
    """`alpha` is the precision of the locations, `steps` that of the steps of an item around the mean steps."""

    steps: float = 0.0

    def __str__(self) -> str:
        how = "by empirical Bayes" if self.estimated else "as asked"
        steps = f"of an item are like those of other items, alpha = {self.steps:.3g}"
        if not self.alpha:
            return f"the steps {steps} {how} ({self.reason})"
        near = f"each item is like the items of its own people, alpha = {self.alpha:.3g}"
        return f"{near}, and the steps {steps}, {how} ({self.reason})"


@dataclass(frozen=True, eq=False)
class StepPrior:
    """The prior of the locations, the precision of the steps, and how much that counts for each threshold.

    Where only thresholds are thin, no location has a prior, and its passes over the answers are saved.
    """

    steps: Steps
    location: Prior | None
    alpha: float
    fade: Floats
    estimated: bool

    @cached_property
    def average(self) -> sparse.csr_array:
        """Items x thresholds: the mean of an item's thresholds."""
        steps = self.steps
        indptr = np.append(steps.first, steps.n_steps)
        return sparse.csr_array(
            (1 / steps.counts[steps.item], np.arange(steps.n_steps), indptr), shape=(steps.n_items, steps.n_steps)
        )

    @cached_property
    def _alike(self) -> sparse.csr_array:
        """(Thresholds of the same level of items with as many) x thresholds: their mean, times rho."""
        steps = self.steps
        own = steps.counts[steps.item]
        _, code, count = np.unique(own * (steps.widest + 1) + steps.level, return_inverse=True, return_counts=True)
        values = 1 / (count[code] + 1.0)
        return sparse.csr_array((values, (code, np.arange(steps.n_steps))), shape=(len(count), steps.n_steps))

    def deviation(self, v: Floats) -> Floats:
        """Q v, for one vector or for the columns of a matrix; Q is symmetric."""
        t = v - (self.average @ v)[self.steps.item]
        groups = self._alike
        return t - (groups @ t)[self._group]

    @cached_property
    def _group(self) -> NDArray[np.int64]:
        return np.asarray(self._alike.tocsc().indices, dtype=np.int64)

    def __matmul__(self, v: Floats) -> Floats:
        """The penalty's matrix times v."""
        steps = self._steps(v, self.fade)
        return steps + (self.average.T @ (self.location @ (self.average @ v)) if self.location else 0.0)

    @property
    def counts(self) -> Floats:
        """How much the prior counts for each threshold, by its step or by its location."""
        return self.fade if self.location is None else np.maximum(self.fade, self.location.fade[self.steps.item])

    def spread(self, v: Floats) -> Floats:
        """The covariance of the pull where deviations are drawn from the prior, times v."""
        steps = self._steps(v, self.fade**2)
        return steps + (self.average.T @ self.location.spread(self.average @ v) if self.location else 0.0)

    def _steps(self, v: Floats, fade: Floats) -> Floats:
        weight = self.alpha * (fade if v.ndim == 1 else fade[:, None])
        return self.deviation(weight * self.deviation(v))

    def within(self) -> Floats:
        """Of the penalty's matrix, the part of each item: levels x levels."""
        return self._blocks(self.location.diagonal if self.location else np.zeros(self.steps.n_items), self.fade)

    def spread_within(self) -> Floats:
        """The same of the covariance of the pull."""
        diagonal = self.location.spread_diagonal if self.location else np.zeros(self.steps.n_items)
        return self._blocks(diagonal, self.fade**2)

    def _blocks(self, diagonal: Floats, fade: Floats) -> Floats:
        steps = self.steps
        inside = steps.table(np.ones(steps.n_steps), 0.0)
        k = steps.counts[:, None, None]
        pairs = inside[:, :, None] * inside[:, None, :]
        center = inside[:, :, None] * np.eye(steps.widest) - pairs / k
        scaled = center * steps.table(self.alpha * fade, 0.0)[:, None, :]
        return pairs * (diagonal[:, None, None] / k**2) + scaled @ center

    def dense(self) -> tuple[Floats, Floats]:
        """The penalty's matrix and the covariance of its pull."""
        a = self.average.toarray()
        q = self.deviation(np.eye(self.steps.n_steps))
        penalty, pull = (self.alpha * (q * fade) @ q for fade in (self.fade, self.fade**2))
        if self.location is None:
            return penalty, pull
        own, its_pull = self.location.dense()
        return penalty + a.T @ own @ a, pull + a.T @ its_pull @ a

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        normal = noise.standard_normal((self.steps.n_steps, columns))
        steps = np.sqrt(self.alpha) * self.deviation(self.fade[:, None] * normal)
        return steps + (self.average.T @ self.location.draw(noise, columns) if self.location else 0.0)

    def renewed(self, beta: Floats, own: Floats) -> StepPrior:
        """With the precisions that the deviations at these thresholds speak for, as `Prior.renewed`.

        `own` are the items' blocks of the information. What is known of a deviation is taken for normal.
        """
        steps, several = self.steps, self.steps.counts > 1
        inside = steps.table(np.ones(steps.n_steps), 0.0)
        location, alpha = self.location, self.location.alpha if self.location else 0.0
        full = self._blocks(np.full(steps.n_items, alpha), np.ones(steps.n_steps))
        known = np.linalg.inv(own + full + np.eye(steps.widest) * (1 - inside)[:, None, :])
        known = known * inside[:, :, None] * inside[:, None, :]
        around = known.sum(axis=(1, 2)) / steps.counts**2  # variance of the location
        trace = np.einsum("ikk->i", known) - around * steps.counts  # of the steps
        told = np.maximum(1 / np.maximum(around, 1e-12) - alpha, 0.0)
        if location:
            d = location.deviation(self.average @ beta)
            share = np.clip(1 - alpha * around, 0.0, 1.0).sum()
            locations = max((share + IMAGINARY) / (np.sum(d**2) + IMAGINARY), least_precision(d, told))
            location = replace(location, alpha=float(locations))
        if not several.any():
            return replace(self, location=location)
        t = self.deviation(beta)
        degrees = (steps.counts - 1).astype(float)
        share = np.clip(degrees - self.alpha * trace, 0.0, degrees)[several].sum()
        each = told[steps.item]
        alpha = max((share + IMAGINARY) / (np.sum(t**2) + IMAGINARY), least_precision(t, each))
        return replace(self, location=location, alpha=float(alpha))
