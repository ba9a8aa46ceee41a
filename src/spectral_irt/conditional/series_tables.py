"""Answers given the score of people with many answers, in any number of categories: a series, and tables for it.

With phi_S the characteristic function of the total score S at any ability theta, and h(theta) the mean of h(X_i) there,

    E[h(X_i) e^{itS}] = phi_S(t) h(theta + it),     so     E[h(X_i) | S = s] = sum_r u_r h^(r)(theta),

    u_r = (1 / r!) int (it)^r phi_S(t) e^{-its} dt / int phi_S(t) e^{-its} dt:

derivatives by ability that depend on the item alone, times numbers that depend on the person alone. No answer of a
person has to be taken out of the sum, and no number has to be formed for an answer: sums over people are sums of u_r.

At the ability where S has the mean s, phi_S is a normal one times the Edgeworth series with the cumulants of S, which
are the sums of those of the answers, and those are the derivatives of the mean answer. The items' derivatives are
tabulated on a grid of abilities; u for an ability beside the grid is that of a shift.

The error of P(X >= k | s) falls with the third power of N, for people whose answers count as N equal ones;
tests/unit/conditional/test_likelihood.py compares it with exact sums.

So what people with many answers add to a sum depends on the item and their ability alone, times numbers of their own.
A pass collects these numbers for every ability of the grid and every item, and the rest is
arithmetic on a table that has nothing to do with how many people there are. A cell is an ability and an item, abilities
first: `cell = ability * n_items + item`.

References
----------
Kolassa (2006), Series Approximation Methods in Statistics, ch. 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds

ORDER = 6  # derivatives that are used, and powers of 1 / sqrt(V) in the series
SHIFTS = 3  # Newton steps for the ability at which the mean is the score
APART = 0.25  # logits between abilities of the grid; a person lies half of that from one
WIDE = 1.5  # standard deviations of an answer from which on abilities are closer: derivatives grow with them
MARGIN = 1.0  # logits that the grid goes beyond the people


@dataclass(frozen=True)
class Terms:
    """How many terms of the series are used, for probabilities and for the factors of the information.

    Its properties say where sums are kept: u_0 to u_order, u_1^2, products of factors, and factors times C 1.
    """

    order: int = ORDER
    n_factors: int = 3

    @property
    def square(self) -> int:
        return self.order + 1

    @property
    def factors(self) -> slice:
        return slice(self.order + 2, self.order + 2 + self.n_factors)

    @property
    def around(self) -> slice:
        return slice(self.factors.stop, self.size)

    @property
    def size(self) -> int:
        return self.order + 2 + 2 * self.n_factors


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables at these thresholds.

    Attributes
    ----------
    tails : list of float arrays, levels x cells
        Derivatives 0, 1, ... by ability of P(X >= k); 0 for levels that the item does not have.
    moments : float array, (order + 3) x cells
        The mean of the answer, its cumulants from the second on, and the square of its variance.
    """

    layout: Thresholds
    grid: Floats
    terms: Terms
    tails: list[Floats]
    moments: Floats

    @classmethod
    def at(cls, layout: Thresholds, beta: Floats, grid: Floats, terms: Terms) -> Tables:
        order, width = terms.order, layout.widest
        cumulated = np.ascontiguousarray(layout.cumulated(beta).T)  # categories x items
        k = np.arange(width + 1, dtype=float)
        p = (grid[None, :, None] * k[:, None, None] - cumulated[:, None, :]).reshape(width + 1, -1)
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        return cls(layout, grid, terms, *derivatives(p, order))

    @property
    def apart(self) -> float:
        return float(self.grid[1] - self.grid[0])

    @property
    def n_cells(self) -> int:
        return len(self.grid) * self.layout.n_items

    @cached_property
    def _level_item(self) -> tuple[Any, Any]:
        return self.layout.level - 1, self.layout.item

    def levels(self, tables: list[Floats], collected: Floats) -> Floats:
        """Levels x items: sums over abilities and r of tables_r times what was collected, r x cells."""
        shape = (len(self.grid), self.layout.n_items)
        total = np.zeros((self.layout.widest, self.layout.n_items))
        for table, values in zip(tables, collected, strict=False):
            total += np.einsum("kgi,gi->ki", table.reshape(-1, *shape), values.reshape(shape))
        return total

    def contract(self, tables: list[Floats], collected: Floats) -> Floats:
        """`levels` as a number for each threshold."""
        return self.levels(tables, collected)[self._level_item]

    def by_item(self, table: Floats) -> Floats:
        """Items x levels x abilities."""
        return table.reshape(self.layout.widest, len(self.grid), -1).transpose(2, 0, 1)

    def pairs(self, left: Floats, right: Floats, weight: Floats) -> Floats:
        """Items x levels x levels: sums over abilities of left_k right_k' weight; left and right are `by_item`."""
        return (left * weight.reshape(len(self.grid), -1).T[:, None, :]) @ right.transpose(0, 2, 1)

    @property
    def factors(self) -> list[Floats]:
        """w = dP(X >= k) / dtheta, w' and w'', or the first of them: what the c of the information are made of."""
        return self.tails[1 : 1 + self.terms.n_factors]

    def weighted(self, tables: list[Floats], v: Floats) -> Floats:
        """sum over k of v_k table_k in every cell, tables x cells; a third axis for the columns of a matrix v."""
        shape = (self.layout.widest, self.layout.n_items, *v.shape[1:])
        levels = np.zeros(shape)
        levels[self._level_item] = v
        cells = (self.layout.widest, len(self.grid), self.layout.n_items)
        made = [np.einsum("kgi,ki...->...gi", table.reshape(cells), levels) for table in tables]
        return np.stack(made).reshape(len(tables), *v.shape[1:], -1)

    def nearest(self, theta: Floats) -> NDArray[np.int32]:
        return np.clip(np.rint((theta - self.grid[0]) / self.apart), 0, len(self.grid) - 1).astype(np.int32)


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
    return [np.cumsum(one[:0:-1], axis=0)[::-1] for one in found[: order + 1]], moments


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


# ----------------------------------------------------------------------------- numbers of each person


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
