"""Answers given the score in any number of categories: the series of people with many answers, and tables for it.

With phi_S the characteristic function of the total score S at any ability theta, and h(theta) the mean of h(X_i) there,

    E[h(X_i) e^{itS}] = phi_S(t) h(theta + it),     so     E[h(X_i) | S = s] = sum_r u_r h^(r)(theta),

    u_r = (1 / r!) int (it)^r phi_S(t) e^{-its} dt / int phi_S(t) e^{-its} dt:

derivatives by ability that depend on the item alone, times numbers that depend on the person alone. At the ability
where S has the mean s, phi_S is a normal one times the Edgeworth series with the cumulants of S, which are the sums of
those of the answers, and those are the derivatives of the mean answer. The error of P(X >= k | s) falls with the third
power of N, for people whose answers count as N equal ones (tests/unit/conditional/test_likelihood.py).

The items' derivatives are tabulated on a grid of abilities; u for an ability beside the grid is that of a shift. A pass
collects u for every cell, an ability and an item (`cell = ability * n_items + item`); the rest is arithmetic on tables,
whatever the number of people (`table_rows`).

References
----------
Kolassa (2006), Series Approximation Methods in Statistics, ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.information import to_levels
from spectral_irt.data.block import Floats, Ints, Rows, Thresholds

ORDER = 6  # derivatives that are used, and powers of 1 / sqrt(V) in the series
SHIFTS = 3  # Newton steps for the ability at which the mean is the score
APART = 0.25  # logits between abilities of the grid; a person lies half of that from one
WIDE = 1.5  # standard deviations of an answer from which on abilities are closer: derivatives grow with them
MARGIN = 1.0  # logits that the grid goes beyond the people
CACHED = 4096  # cells at a time: their derivatives fit the second cache of a core


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables at these thresholds, for a series of this order.

    `tails` are the derivatives 0, 1, ... by ability of P(X >= k), levels x cells; 0 for levels that the item does not
    have. `moments` are the mean of the answer, its cumulants from the second on, and the square of its variance, as
    precise as what is summed over people. `factor` is dP(X >= k) / dtheta times a number for each threshold: what the c
    of the information are made of.
    """

    layout: Thresholds
    grid: Floats
    order: int
    tails: list[Floats]
    moments: Floats
    factor: Floats

    @classmethod
    def at(cls, layout: Thresholds, beta: Floats, grid: Floats, order: int, precision: Any = np.float64) -> Tables:
        width, m = layout.widest, layout.n_items
        cumulated = np.ascontiguousarray(layout.cumulated(beta).T)[:, None, :]  # categories x abilities x items
        k = np.arange(width + 1, dtype=float)[:, None, None]
        tails = [np.empty((width, len(grid) * m)) for _ in range(order + 1)]
        moments = np.empty((order + 3, len(grid) * m), dtype=precision)
        some = max(CACHED // max(m, 1), 1)
        for start in range(0, len(grid), some):
            p = (grid[start : start + some, None] * k - cumulated).reshape(width + 1, -1)
            p -= p.max(axis=0)
            np.exp(p, out=p)
            p /= p.sum(axis=0)
            span = slice(start * m, start * m + p.shape[1])
            found, moments[:, span] = derivatives(p, order)
            for tail, one in zip(tails, found, strict=True):
                tail[:, span] = one
        return cls(layout, grid, order, tails, moments, tails[min(1, order)])

    def scaled(self, by: Floats) -> Tables:
        """With the factor of each threshold times a number."""
        own, shape = to_levels(self.layout, by)[:, None], (self.layout.widest, len(self.grid), -1)
        return replace(self, factor=(self.factor.reshape(shape) * own).reshape(self.factor.shape))

    @property
    def apart(self) -> float:
        return float(self.grid[1] - self.grid[0])

    def by_item(self, table: Floats) -> Floats:
        """Items x levels x abilities."""
        return table.reshape(self.layout.widest, len(self.grid), -1).transpose(2, 0, 1)

    def pairs(self, left: Floats, right: Floats, weight: Floats) -> Floats:
        """Items x levels x levels: sums over abilities of left_k right_k' weight; left and right are `by_item`."""
        return (left * weight.reshape(len(self.grid), -1).T[:, None, :]) @ right.transpose(0, 2, 1)

    def levels(self, tables: Sequence[Floats], collected: Any) -> Floats:
        """Levels x items: sums over abilities and r of tables_r times what was collected, r x cells."""
        shape = (len(self.grid), self.layout.n_items)
        total = np.zeros((self.layout.widest, shape[1]))
        for table, values in zip(tables, collected, strict=False):
            total += np.einsum("kgi,gi->ki", table.reshape(-1, *shape), values.reshape(shape))
        return total

    def contract(self, tables: Sequence[Floats], collected: Any) -> Floats:
        """`levels` as a number for each threshold."""
        return self.levels(tables, collected)[self.layout.level - 1, self.layout.item]

    def weighted(self, table: Floats, v: Floats) -> Floats:
        """sum over k of v_k table_k in every cell; a first axis for the columns of a matrix v."""
        own, shape = to_levels(self.layout, v), (self.layout.widest, len(self.grid), -1)
        made = np.einsum("kgi,ki...->...gi", table.reshape(shape), own)
        return made.reshape(*v.shape[1:], -1).astype(self.moments.dtype, copy=False)

    def nearest(self, theta: Floats) -> NDArray[np.int32]:
        return np.clip(np.rint((theta - self.grid[0]) / self.apart), 0, len(self.grid) - 1).astype(np.int32)

    def cells(self, rows: Rows, at: NDArray[np.int32]) -> NDArray[np.int32]:
        """The cell of every answer."""
        cells = np.repeat((at * self.layout.n_items).astype(np.int32), rows.counts)
        cells += rows.items
        return cells


def derivatives(p: Floats, order: int) -> tuple[list[Floats], Floats]:
    """`tails` and `moments` of `Tables`, from the probabilities of the categories in every cell."""
    k = np.arange(len(p), dtype=float)
    moments = np.empty((order + 3, p.shape[1]))
    moments[0] = k @ p
    # p^(r) = p Y_r with the complete Bell polynomials Y of k - mean and the cumulants.
    away = k[:, None] - moments[0]
    found = [p]
    for r in range(1, order + 2):
        new = away * found[r - 1]
        for j in range(1, r):
            new -= (comb(r - 1, j) * moments[j]) * found[r - 1 - j]
        found.append(new)
        moments[r] = k @ new
    moments[order + 2] = moments[1] ** 2
    tails = [one[1:].copy() for one in found[: order + 1]]
    for tail in tails:
        for level in range(len(tail) - 2, -1, -1):
            tail[level] += tail[level + 1]
    return tails, moments


def passed_by_series(p: Floats, scores: Ints) -> Floats:
    """P(X >= k | s), levels x items x people, from the chances of the categories (from 0 on) near the right ability.

    For people whose items hardly anybody else met, so that tables would be larger than the answers.
    """
    categories, n, people = p.shape
    tails, moments = derivatives(p.reshape(categories, -1), ORDER)
    cumulants = moments.reshape(-1, n, people).sum(axis=1)
    u = weights(scores - cumulants[0], cumulants[1:-1], APART)
    total = np.zeros((categories - 1, n, people))
    for tail, each in zip(tails, u, strict=True):
        total += tail.reshape(total.shape) * each
    return total


def grid_over(low: float, high: float, layout: Thresholds) -> Floats:
    """Abilities for people from `low` to `high`."""
    apart = APART / max(1.0, layout.widest / 4 / WIDE)  # an answer in K categories spreads by about a quarter of them
    low, high = low - MARGIN, high + MARGIN
    return np.linspace(low, high, max(int(np.ceil((high - low) / apart)) + 1, 2))


def weights(missing: Floats, cumulants: Floats, reach: float) -> Floats:
    """u_0, ..., u_order of every person, one below the other.

    `missing` is the total score less its mean at the ability of the grid, `cumulants` are those of the total score from
    the second on, order + 1 of them, and `reach` is the farthest shift that the derivatives stand for.
    """
    order = len(cumulants) - 1
    shift = _shift(missing, cumulants, reach)
    moved = [_taylor(cumulants[r:], shift) for r in range(order + 1)]
    inverse = 1 / np.sqrt(np.maximum(moved[0], cumulants[0] / 10))
    lambdas, power = [], inverse * inverse
    for r in range(1, order + 1):
        power = power * inverse
        lambdas.append(moved[r] * power)
    centered, density = np.empty((order + 1, len(missing))), _density(lambdas, order - 1)
    centered[0] = 1.0
    for r in range(1, order + 1):  # r derivatives count as r orders
        above, below = (_mean_power(density[: order + 1 - r], power) for power in (r, 0))
        centered[r] = above / below * inverse**r / factorial(r)
    return np.stack([_taylor(centered[r::-1], shift) for r in range(order + 1)])


def _density(lambdas: list[Floats], order: int) -> list[dict[int, Floats]]:
    """The Edgeworth polynomial in it, by orders: A_p = 1 / p sum_i i q_i A_{p-i}, q_i that of the cumulant i + 2."""
    series: list[dict[int, Floats]] = [{0: np.ones(1)}]
    for p in range(1, order + 1):
        here: dict[int, Floats] = {}
        for i in range(1, p + 1):
            q = lambdas[i - 1] * (i / p / factorial(i + 2))
            for power, value in series[p - i].items():
                here[power + i + 2] = here.get(power + i + 2, 0.0) + q * value
        series.append(here)
    return series


def _mean_power(density: list[dict[int, Floats]], power: int) -> Any:
    """The mean of (it)^power over the normal distribution times this series, whose even orders have even powers."""
    terms = ((j + power, value) for order in density[power % 2 :: 2] for j, value in order.items())
    return sum((-0.5) ** (n // 2) * factorial(n) / factorial(n // 2) * value for n, value in terms)  # E (it)^n, n even


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
