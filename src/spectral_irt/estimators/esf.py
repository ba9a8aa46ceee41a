"""Elementary symmetric functions at any length, and the probability of each answer given the score.

Given the score s, the answers of a person to n items no longer depend on ability:

    P(x | s) = exp(-sum_i x_i beta_i) / gamma_s,      P_i = P(X_i = 1 | s) = -d log gamma_s / d beta_i,

with gamma_s the elementary symmetric function of order s in exp(-beta_i). It has up to 10^400 terms, so it is
tilted: with t = exp(theta) and p_i = t / (t + exp(beta_i)), gamma_s = P(S = s) / (t^s prod q_i), where S adds
independent right answers. theta is chosen so that S has mean s: then P(S = s) is of order one over its standard
deviation, and nothing overflows or underflows.

P(S = s) is a coefficient of the polynomial prod_i (q_i + p_i z), an average over points z_k of the unit circle:

    P(S = s) = (2 / K) Re sum_k z_k^-s prod_i (q_i + p_i z_k),    z_k = exp(i u_k), u_k = pi (2k + 1) / K, k < K / 2.

Exact for K > max(s, n - s). Beyond a variance V of 20 or so most of it is zero to machine precision: the product falls
like exp(-2 V sin^2(u / 2)), and K of about 9 standard deviations already separates s from its aliases s +- K (by
Bernstein's inequality). So 13 to 28 points do for any number of answers, where the classical recursion takes
n min(s, n - s) steps: the cost is linear in the number of answers, and the error stays near 1e-15. Dropping item i from
the product is a division, and the same points give its probability, its pairs, and with them the exact information:

    P_i = Re sum_k w_k a_ik,   P(X_i = X_j = 1 | s) = Re sum_k w_k a_ik a_jk,   a_ik = p_i z_k / (q_i + p_i z_k).

With an even K no point is z = -1, the only place where a factor can vanish.

Arrays here have items downwards and people (patterns) across; a difficulty of +inf is padding: its p is 0.

References
----------
Fischer & Molenaar (1995), Rasch Models, ch. 3 and 8 (the functions and recursions); Hong (2013), CSDA 59 (the
Fourier form of the Poisson-binomial distribution).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.model import prox, sigmoid
from spectral_irt.responses.block import Floats, Ints

# What is left out is below exp(-37) = 1e-16 of what is kept.
NEGLIGIBLE = 37.0
TIGHT = 1e-12  # of a score, where theta must be exact
BALANCED = 10  # right and wrong answers, each, that the saddlepoint needs to be good to three digits


def tilt(b: Floats, counts: Ints, scores: Ints, *, tight: bool = False) -> Floats:
    """theta with sum_i p_i = s, one for each column: exactly if `tight`, else to a twentieth of a standard deviation.

    Any theta is right for the contour sum; a rough one only spends some of its safety margin.
    """
    inside = np.arange(len(b))[:, None] < counts
    logit = np.log(scores / (counts - scores))
    low, high = b.min(axis=0) + logit, np.where(inside, b, -np.inf).max(axis=0) + logit
    mean = np.where(inside, b, 0.0).sum(axis=0) / counts
    spread = (np.where(inside, b - mean, 0.0) ** 2).sum(axis=0) / counts
    theta = np.clip(prox(mean, spread, logit), low, high)
    for _ in range(100):
        p = sigmoid(theta - b)
        missing = scores - p.sum(axis=0)
        variance = (p * (1 - p)).sum(axis=0)
        allowed = TIGHT * counts if tight else 0.05 * np.sqrt(np.maximum(variance, 0.04))
        if np.all(np.abs(missing) <= allowed):
            break
        low, high = np.where(missing > 0, theta, low), np.where(missing > 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = theta + missing / variance
        theta = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
    return theta


def contour(variance: Floats, counts: Ints, scores: Ints) -> tuple[Ints, Ints]:
    """K and the number of points used, for each column."""
    third = NEGLIGIBLE / 3
    enough = third + np.sqrt(third**2 + 2 * NEGLIGIBLE * variance)
    period = 2 * np.ceil(np.minimum(enough, np.maximum(scores, counts - scores) + 1) / 2)
    sine = np.sqrt(np.minimum(NEGLIGIBLE / 2 / np.maximum(variance, 1e-300), 1.0))
    used = np.ceil(np.arcsin(sine) * period / np.pi)
    return period.astype(np.int64), np.clip(used, 1, period / 2).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tilted:
    """The contour sum of some columns: points across the first axis of `cos`, `sin` and `weight`."""

    p: Floats
    v: Floats
    cos: Floats
    sin: Floats
    weight: NDArray[np.complex128]
    log_gamma: Floats

    def probabilities(self) -> Floats:
        """P(X_i = 1 | s) for every item and column."""
        square, twice = self.p * self.p, 2 * self.v
        along = self.weight.real * self.cos - self.weight.imag * self.sin
        total = np.zeros_like(self.p)
        one, other, size = (np.empty_like(total) for _ in range(3))
        for cos, a, w in zip(self.cos, along, np.ascontiguousarray(self.weight.real), strict=True):
            np.multiply(twice, cos - 1, out=size)
            size += 1  # |q + p z|^2
            np.multiply(square, w, out=one)
            np.multiply(self.v, a, out=other)
            one += other
            one /= size
            total += one
        return np.clip(total, 0.0, 1.0, out=total)

    def pair_factors(self) -> tuple[Floats, Floats]:
        """B and C with P(X_i = X_j = 1 | s) = sum_k B_ik B_jk - C_ik C_jk; columns x items x points."""
        cos, sin = self.cos.T[:, None, :], self.sin.T[:, None, :]
        p, v = self.p.T[:, :, None], self.v.T[:, :, None]
        factor = (v * (cos + 1j * sin) + p * p) / (1 + 2 * v * (cos - 1))
        factor *= np.sqrt(self.weight).T[:, None, :]
        return np.ascontiguousarray(factor.real), np.ascontiguousarray(factor.imag)


def tilted(b: Floats, counts: Ints, scores: Ints) -> Tilted:
    """Set up the contour sum of each column of difficulties, with its log gamma_s."""
    theta = tilt(b, counts, scores)
    x = b - theta
    p, q = sigmoid(-x), sigmoid(x)
    v = p * q
    period, used = contour(v.sum(axis=0), counts, scores)
    k = np.arange(int(used.max()))[:, None]
    u = np.pi * (2 * k + 1) / period
    cos, sin = np.cos(u), np.sin(u)
    factors = np.empty(b.shape, dtype=np.complex128)
    weight = np.empty(u.shape, dtype=np.complex128)
    for row, c, s in zip(weight, cos, sin, strict=True):
        np.multiply(p, c, out=factors.real)
        factors.real += q
        np.multiply(p, s, out=factors.imag)
        np.multiply.reduce(factors, axis=0, out=row)
    # z^-s by whole numbers: an angle of thousands of turns would lose digits.
    back = np.pi * np.mod((2 * k + 1) * scores, 2 * period) / period
    weight *= np.exp(-1j * back) * ((2 * k + 1 < period) * 2.0 / period)
    probability = weight.real.sum(axis=0)
    with np.errstate(divide="ignore"):
        log_gamma = np.log(probability) - np.log(q).sum(axis=0) - scores * theta
    return Tilted(p, v, cos, sin, weight / probability, log_gamma)


def saddlepoint(b: Floats, counts: Ints, scores: Ints) -> tuple[Floats, Floats]:
    """log gamma_s and P(X_i = 1 | s) to the first order in 1 / n, for people with many answers.

    log gamma_s ~ -sum_i log q_i - s theta - log(2 pi V) / 2,
    P_i ~ p_i + v_i / (2 V) (sum_j v_j (1 - 2 p_j) / V - (1 - 2 p_i)),   v = p q, V = sum v;

    the second is the derivative of the first. Measured error of P_i: about 0.03 / min(s, n - s)^2.
    """
    theta = tilt(b, counts, scores, tight=True)
    x = b - theta
    p, q = sigmoid(-x), sigmoid(x)
    v = p * q
    total = np.maximum(v.sum(axis=0), np.finfo(float).tiny)
    lean = q - p
    skew = (v * lean).sum(axis=0) / total
    log_gamma = -np.log(q).sum(axis=0) - scores * theta - np.log(2 * np.pi * total) / 2
    return log_gamma, np.clip(p + v / (2 * total) * (skew - lean), 0.0, 1.0)


def conditional_moments(b: Floats, counts: Ints, scores: Ints, cutoff: float = np.inf) -> tuple[Floats, Floats]:
    """log gamma_s of each column and P(X_i = 1 | s) of its items; by the saddlepoint for more than `cutoff` items.

    People with fewer than ten right or ten wrong answers are exact whatever the cut-off.

    Parameters
    ----------
    b : items x people
        Difficulties, +inf below a column's last item.
    counts, scores : people
        Items in each column, and how many were answered right: at least one, and not all.

    >>> b = np.array([[-1.0], [0.0], [1.0]])
    >>> log_gamma, p = conditional_moments(b, np.array([3]), np.array([1]))
    >>> bool(np.allclose(p, np.exp(-b) / np.exp(-b).sum()))
    True
    """
    long = (counts > cutoff) & (np.minimum(scores, counts - scores) >= BALANCED)
    if long.all():
        return saddlepoint(b, counts, scores)
    if not long.any():
        sums = tilted(b, counts, scores)
        return sums.log_gamma, sums.probabilities()
    log_gamma, p = np.empty(len(counts)), np.empty_like(b)
    for group in (long, ~long):
        log_gamma[group], p[:, group] = conditional_moments(b[:, group], counts[group], scores[group], cutoff)
    return log_gamma, p
