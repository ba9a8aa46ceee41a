"""Symmetric functions of ordered answers: the probability of each category given the total score, exactly.

Given the total score s, answers in the categories x_i of n items no longer depend on ability:

    P(x | s) = exp(-sum_i sum_{v <= x_i} beta_iv) / gamma_s.

As in `esf.py`, gamma_s is tilted by an ability at which the total score S has mean s, and P(S = s) is the coefficient
of z^s in prod_i g_i(z), g_i(z) = sum_k p_ik z^k, a mean over points of the unit circle. It is exact when there are more
points than scores on either side of s; where scores spread wider than that, the aliases of s at a distance of some nine
standard deviations are below rounding. Leaving item i out is a division by g_i(z), which gives

    P(X_i = k | s) = p_ik P(S - X_i = s - k) / P(S = s),

and the pairs of the exact information. A factor g_i(z) may vanish on the circle; it is kept at 1e-30 there, which adds
nothing, and divided by the same number afterwards.

Arrays here are rows (people or patterns) x items x categories or points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.estimators.esf import NEGLIGIBLE
from spectral_irt.model import category_probabilities
from spectral_irt.responses.block import Floats, Ints

Complex = NDArray[np.complex128]
LEAST = 1e-30
ENOUGH = 0.05  # of a standard deviation, to which the mean of the tilted score meets the score


@dataclass(frozen=True, eq=False)
class Given:
    """What the total score says about rows of items.

    Attributes
    ----------
    p : rows x items x categories
        P(X_i = k | s).
    log_gamma : rows
    points : rows x items x points, weight : rows x points
        g_i(z), and the weight of each point in a mean given the score; for the pairs.
    tilted : rows x items x categories
        P(X_i = k) at the tilting ability.
    z : categories x points
        z^k.
    """

    p: Floats
    log_gamma: Floats
    tilted: Floats
    points: Complex
    weight: Complex
    z: Complex

    def passed(self) -> Floats:
        """P(X_i >= k | s) for k = 1, ..., K: rows x items x thresholds."""
        return above(self.p)

    def pair_factors(self) -> Complex:
        """a_ik(z) sqrt(weight) with P(X_i >= k, X_j >= k' | s) = Re sum_z a_ik a_jk' for i != j.

        Rows x (items x thresholds) x points.
        """
        tails = above(self.tilted[..., None] * self.z[None, None], axis=2)
        tails /= self.points[:, :, None, :]
        tails *= np.sqrt(self.weight)[:, None, None, :]
        rows, items, thresholds, points = tails.shape
        return tails.reshape(rows, items * thresholds, points)


def above(values: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """Sums over the categories k and above, for k = 1, ..., K."""
    sums: NDArray[Any] = np.flip(np.cumsum(np.flip(values, axis), axis), axis)
    return np.take(sums, np.arange(1, values.shape[axis]), axis=axis)


def tilt(cumulated: Floats, scores: Ints, most: Ints) -> Floats:
    """An ability at which each row's total score has about the mean s."""
    k = np.arange(cumulated.shape[2], dtype=float)
    inner = np.where(np.isfinite(cumulated), cumulated, np.nan)
    top = np.nanmax(np.abs(inner), axis=(1, 2))
    low, high = -top - 40.0, top + 40.0
    theta = np.log(scores / (most - scores))
    for _ in range(100):
        p = category_probabilities(np.broadcast_to(theta[:, None], cumulated.shape[:2]), cumulated)
        mean = p @ k
        variance = (p @ k**2 - mean**2).sum(axis=1)
        missing = scores - mean.sum(axis=1)
        if np.all(np.abs(missing) <= ENOUGH * np.sqrt(np.maximum(variance, 0.04))):
            break
        low, high = np.where(missing > 0, theta, low), np.where(missing > 0, high, theta)
        newton = theta + np.clip(missing / np.maximum(variance, 1e-300), -3, 3)
        theta = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
    return theta


def n_points(variance: Floats, widest: int, scores: Ints, most: Ints) -> int:
    """An even number of points of the whole circle that is enough for all rows."""
    third = widest * NEGLIGIBLE / 3
    enough = third + np.sqrt(third**2 + 2 * NEGLIGIBLE * variance)
    needed = np.minimum(enough, np.maximum(scores, most - scores) + 1)
    return int(2 * np.ceil(needed.max() / 2))


def given_score(cumulated: Floats, scores: Ints, most: Ints) -> Given:
    """P(X_i = k | s) for rows of items.

    Parameters
    ----------
    cumulated : rows x items x categories
        Sums of thresholds up to each category; +inf where an item has fewer, and everywhere above 0 for padding.
    scores, most : rows
        The total score, between 0 and the highest possible one, and that.

    >>> found = given_score(np.array([[[0.0, -1.0], [0.0, 0.0], [0.0, 1.0]]]), np.array([1]), np.array([3]))
    >>> weight = np.exp([1.0, 0.0, -1.0])
    >>> bool(np.allclose(found.p[0, :, 1], weight / weight.sum()))
    True
    """
    rows, items, width = cumulated.shape
    theta = tilt(cumulated, scores, most)
    p = category_probabilities(np.broadcast_to(theta[:, None], (rows, items)), cumulated)
    k = np.arange(width)
    variance = (p @ k.astype(float) ** 2 - (p @ k.astype(float)) ** 2).sum(axis=1)
    period = n_points(variance, width - 1, scores, most)
    point = np.arange(period // 2)
    z = np.exp(1j * np.pi * ((2 * point + 1) * k[:, None] % (2 * period)) / period)
    points = p @ z.real + 1j * (p @ z.imag)
    points[np.abs(points) < LEAST] = LEAST
    back = np.pi * ((2 * point + 1) * scores[:, None] % (2 * period)) / period
    weight = np.multiply.reduce(points, axis=1) * np.exp(-1j * back) * (2.0 / period)
    probability = weight.real.sum(axis=1)
    without = weight[:, None, :] / points
    found = p * (without.real @ z.real.T - without.imag @ z.imag.T)
    found = np.maximum(found / probability[:, None, None], 0.0)
    found /= found.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        log_gamma = np.log(probability) - np.log(p[:, :, 0]).sum(axis=1) - scores * theta
    return Given(found, log_gamma, p, points, weight / probability[:, None], z)
