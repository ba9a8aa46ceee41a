"""The prior: an item is like the other items that its own people met, up to a deviation.

With L of `neighbors`, (L beta)_i / (1 - W_ii) is how far item i lies from the level of the *other* items that its
people met: d = D^-1 L beta with D = diag(1 - W_ii), so that an item that few met does not make its own level. The prior
is d ~ N(0, 1 / alpha). It fades where the answers know better: item i counts s_i, which is 1 up to an information of
25, 0 from 50 on, and linear in between. The penalty is alpha / 2 sum_i s_i d_i^2, its matrix P = alpha L D^-1 S D^-1 L;
and where deviations are drawn from the prior, its pull P beta has the covariance alpha L D^-1 S^2 D^-1 L.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.neighbors import Neighbors
from spectral_irt.chain.regularization import AMPLE_INFORMATION, ENOUGH_INFORMATION, IMAGINARY, least_precision
from spectral_irt.responses.block import Floats


def fading(information: Floats, tied: NDArray[np.bool_]) -> Floats:
    """How much the prior counts for items with this information: in full up to 25, not at all from 50 on.

    Where the data alone do not tie an item to the others it counts in full: nothing else gives a finite difficulty.
    """
    faded = np.clip((AMPLE_INFORMATION - information) / (AMPLE_INFORMATION - ENOUGH_INFORMATION), 0.0, 1.0)
    return np.where(tied, faded, 1.0)


@dataclass(frozen=True, eq=False)
class Prior:
    """Precision alpha of the deviations, and how much it counts for each item."""

    neighbors: Neighbors
    alpha: float
    fade: Floats
    estimated: bool

    def deviation(self, beta: Floats) -> Floats:
        """d: how far each item lies from the other items that its people met."""
        return self._per_other * self.neighbors.deviation(beta)

    def __matmul__(self, v: Floats) -> Floats:
        """P v."""
        return self._twice(v, self.fade)

    def spread(self, v: Floats) -> Floats:
        """The covariance of the pull, times v."""
        return self._twice(v, self.fade**2)

    def _twice(self, v: Floats, weight: Floats) -> Floats:
        weight = self.alpha * weight * self._per_other**2
        near = self._near
        return near.deviation((weight if v.ndim == 1 else weight[:, None]) * near.deviation(v))

    @property
    def _near(self) -> Neighbors:
        """All that deviations of items with a prior have to do with."""
        return self.neighbors.around(self.fade > 0)

    @property
    def _per_other(self) -> Floats:
        """1 / (1 - W_ii); 0 for items without neighbors."""
        others = 1 - self.neighbors.own
        return np.divide(1.0, others, out=np.zeros(len(others)), where=others > 1e-9)

    @property
    def diagonal(self) -> Floats:
        """P_ii, about; see `_diagonal`."""
        return self._diagonal(self.fade)

    @property
    def spread_diagonal(self) -> Floats:
        """Diagonal of the covariance of the pull, about: of items that others add to, a little too large."""
        return np.maximum(self.alpha * self.fade**2 * (self._per_other > 0), self.diagonal * self.fade)

    def _diagonal(self, weight: Floats) -> Floats:
        """alpha weight_i, and what the deviations of other items add: much, where many rare items met a popular one.

        That part is sum_j G_ji^2 over the others with G = sqrt(weight) D^-1 L, the mean square of G' signs for random
        signs: known to a quarter of itself, which is enough for a conditioner and for the errors of thin items.
        """
        own = weight * (self._per_other > 0)
        return self.alpha * np.maximum(own, self._near.mean_squares(np.sqrt(weight) * self._per_other))

    def draw(self, noise: np.random.Generator, columns: int) -> Floats:
        """Columns of random pulls."""
        normal = noise.standard_normal((len(self.fade), columns))
        return np.sqrt(self.alpha) * self._near.deviation((self.fade * self._per_other)[:, None] * normal)

    def dense(self) -> tuple[Floats, Floats]:
        """P and the covariance of its pull, m x m each."""
        scaled = self.neighbors.dense() * self._per_other  # L D^-1
        return self.alpha * (scaled * self.fade) @ scaled.T, self.alpha * (scaled * self.fade**2) @ scaled.T

    def renewed(self, beta: Floats, information: Floats, share: Floats) -> Prior:
        """With the precision that the deviations at these difficulties speak for (one step of empirical Bayes).

        alpha = (sum_i g_i + 2) / (sum_i d_i^2 + 2) with g_i = 1 - alpha (E d_i^2 - d_i^2), the share of each deviation
        that the answers determine (MacKay 1992): the fixed point of alpha = 1 / mean E d^2, reached in fewer steps. The
        twos are two imaginary items of spread 1: a handful of items that happen to look alike must not pass for proof
        that all are. As in `prior_precision`, 1 / alpha is bounded by what answers can show.
        """
        if not self.estimated:
            return self
        return replace(self, alpha=renewed_precision(self.deviation(beta), information, share, self.alpha))


def renewed_precision(d: Floats, information: Floats, share: Floats, alpha: float) -> float:
    """One step of empirical Bayes from these deviations; see `Prior.renewed`."""
    beyond = second_moment(d, information, share, alpha) - d**2
    step = (max(np.sum(1 - alpha * beyond), 0.0) + IMAGINARY) / (np.sum(d**2) + IMAGINARY)
    return max(float(step), least_precision(d, information))


def second_moment(d: Floats, information: Floats, share: Floats, alpha: float) -> Floats:
    """E d^2 of each deviation under the prior and its answers, of which d is the most likely value.

    With few answers it is far from normal, so it is integrated. An item's answers are taken for those of as many people
    of one ability as have its information at its share of right answers: log-likelihood r x - n log(1 + exp(x)) with x
    their distance from the item. r is such that d is the most likely value.
    """
    p = np.clip(share, 1e-3, 1 - 1e-3)
    n = information / (p * (1 - p))
    r = n * p - alpha * d
    half = 1 / np.sqrt(information + alpha)
    x = np.log(p / (1 - p))
    u = _NODES[:, None] * half  # the item is harder by this
    log_density = -r * u - n * (np.logaddexp(0, x - u) - np.logaddexp(0, x)) - alpha * ((d + u) ** 2 - d**2) / 2
    weight = np.exp(log_density - log_density.max(axis=0))
    return np.sum(weight * (d + u) ** 2, axis=0) / weight.sum(axis=0)


_NODES = np.linspace(-8, 8, 81)  # in standard deviations of the normal approximation
