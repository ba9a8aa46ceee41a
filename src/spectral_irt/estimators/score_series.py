"""E[h(X_i) | total score] of people with many answers, from sums over their answers alone.

With phi_S the characteristic function of the total score S at any ability theta, and h(theta) the mean of h(X_i) there,

    E[h(X_i) e^{itS}] = phi_S(t) h(theta + it),     so     E[h(X_i) | S = s] = sum_r u_r h^(r)(theta),

    u_r = (1 / r!) int (it)^r phi_S(t) e^{-its} dt / int phi_S(t) e^{-its} dt:

derivatives by ability that depend on the item alone, times numbers that depend on the person alone. No answer of a
person has to be taken out of the sum, and no number has to be formed for an answer: sums over people are sums of u_r.

At the ability where S has the mean s, phi_S is a normal one times the Edgeworth series with the cumulants of S, which
are the sums of those of the answers, and those are the derivatives of the mean answer. The items' derivatives are
tabulated on a grid of abilities; u for an ability beside the grid is that of a shift.

The error of P(X >= k | s) falls with the third power of N, for people whose answers count as N equal ones;
`tests/unit/estimators/test_step_landing.py` compares it with exact sums.

References
----------
Kolassa (2006), Series Approximation Methods in Statistics, ch. 3.
"""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np

from spectral_irt.responses.block import Floats

ORDER = 6  # derivatives that are used, and powers of 1 / sqrt(V) in the series
SHIFTS = 3  # Newton steps for the ability at which the mean is the score


def weights(missing: Floats, cumulants: Floats, reach: float) -> Floats:
    """u_0, ..., u_ORDER of every person, one below the other.

    Parameters
    ----------
    missing : people
        The total score less its mean at the ability of the grid.
    cumulants : (ORDER + 1) x people
        Of the total score, from the second on; there are as many orders as there are of these, less one.
    reach : float
        The farthest shift that the derivatives stand for.
    """
    order = len(cumulants) - 1
    shift = _shift(missing, cumulants, reach)
    moved = [_taylor(cumulants[r:], shift) for r in range(order + 1)]
    inverse = 1 / np.sqrt(np.maximum(moved[0], cumulants[0] / 10))
    lambdas, power = [], inverse * inverse
    for r in range(1, order + 1):
        power = power * inverse
        lambdas.append(moved[r] * power)
    centered = np.empty((order + 1, len(missing)))
    density = _density(lambdas, order)
    for r in range(order + 1):
        above = sum((_moment(j + r) * value for p in range(order + 1 - r) for j, value in density[p].items()), 0.0)
        below = sum((_moment(j) * value for p in range(order + 1 - r) for j, value in density[p].items()), 0.0)
        centered[r] = above / below * inverse**r / factorial(r)  # r derivatives count as r orders
    u = np.empty_like(centered)
    for r in range(order + 1):
        u[r] = _taylor(centered[r::-1], shift)
    return u


def _density(lambdas: list[Floats], order: int) -> list[dict[int, Floats]]:
    """The Edgeworth polynomial in it, by orders: A_p = 1 / p sum_i i q_i A_{p-i}, q_i that of the cumulant i + 2.

    Powers that no moment needs are there too: an odd one may meet an odd derivative.
    """
    series: list[dict[int, Floats]] = [{0: np.ones(1)}]
    for p in range(1, order + 1):
        here: dict[int, Floats] = {}
        for i in range(1, p + 1):
            q = lambdas[i - 1] * (i / p / factorial(i + 2))
            for power, value in series[p - i].items():
                here[power + i + 2] = here.get(power + i + 2, 0.0) + q * value
        series.append(here)
    return series


@cache
def _moment(power: int) -> float:
    """E (it)^power for a standard normal t."""
    if power % 2:
        return 0.0
    return float((-1) ** (power // 2) * np.prod(np.arange(power - 1, 0, -2, dtype=float)))


def _taylor(derivatives: Floats, shift: Floats) -> Floats:
    """sum over a of derivatives_a shift^a / a!."""
    total = derivatives[-1].copy()
    for a in range(len(derivatives) - 1, 0, -1):
        total *= shift / a
        total += derivatives[a - 1]
    return total


def _shift(missing: Floats, cumulants: Floats, reach: float) -> Floats:
    """Where the mean, as its Taylor series has it, is the score."""
    shift = np.clip(missing / cumulants[0], -reach, reach)
    mean = np.concatenate([-missing[None], cumulants])
    for _ in range(SHIFTS - 1):
        slope = np.maximum(_taylor(cumulants, shift), cumulants[0] / 10)
        shift = np.clip(shift - _taylor(mean, shift) / slope, -reach, reach)
    return shift
