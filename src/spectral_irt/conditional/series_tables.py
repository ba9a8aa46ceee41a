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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
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
    tails: Floats
    moments: Floats
    factor: Floats

    @classmethod
    def at(cls, layout: Thresholds, beta: Floats, grid: Floats, order: int, precision: Any = np.float64) -> Tables:
        width, m = layout.widest, layout.n_items
        cumulated = np.ascontiguousarray(layout.cumulated(beta).T)[:, None, :]  # categories x abilities x items
        k = np.arange(width + 1, dtype=float)[:, None, None]
        tails = np.empty((order + 1, width, len(grid) * m))  # in one piece: many small ones cost the system more
        moments = np.empty((order + 3, len(grid) * m), dtype=precision)
        some = max(CACHED // max(m, 1), 1)
        for start in range(0, len(grid), some):
            p = (grid[start : start + some, None] * k - cumulated).reshape(width + 1, -1)
            p -= p.max(axis=0)
            np.exp(p, out=p)
            p /= p.sum(axis=0)
            span = slice(start * m, start * m + p.shape[1])
            moments[:, span] = derivatives(p, order, tails[:, :, span])
        return cls(layout, grid, order, tails, moments, tails[min(1, order)])

    def scaled(self, by: Floats) -> Tables:
        """With the factor of each threshold times a number."""
        own, shape = to_levels(self.layout, by)[:, None], (self.layout.widest, len(self.grid), -1)
        return replace(self, factor=(self.factor.reshape(shape) * own).reshape(self.factor.shape))

    @property
    def apart(self) -> float:
        return float(self.grid[1] - self.grid[0])

    def pairs(self, left: Iterable[Floats], right: Callable[[int], Iterable[Floats]]) -> Floats:
        """Items x levels x levels: for each k, `levels` of these tables with the cells that `right` has for k."""
        return np.stack([self.levels(left, right(k)).T for k in range(self.layout.widest)], axis=-1)

    def levels(self, tables: Iterable[Floats], collected: Any) -> Floats:
        """Levels x items: sums over abilities and r of tables_r times what was collected, r x cells."""
        shape = (len(self.grid), self.layout.n_items)
        total = np.zeros((self.layout.widest, shape[1]))
        for table, values in zip(tables, collected, strict=False):
            total += np.einsum("kgi,gi->ki", table.reshape(-1, *shape), values.reshape(shape))
        return total

    def contract(self, tables: Iterable[Floats], collected: Any) -> Floats:
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


def derivatives(p: Floats, order: int, tails: Floats) -> Floats:
    """`moments` of `Tables`, from the probabilities of the categories in every cell; `tails` are written."""
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
    for tail, one in zip(tails, found, strict=False):
        tail[-1] = one[-1]
        for level in range(len(tail) - 1, 0, -1):
            np.add(one[level], tail[level], out=tail[level - 1])
    return moments


def passed_by_series(p: Floats, scores: Ints) -> Floats:
    """P(X >= k | s), levels x items x people, from the chances of the categories (from 0 on) near the right ability.

    For people whose items hardly anybody else met, so that tables would be larger than the answers.
    """
    categories, n, people = p.shape
    tails = np.empty((ORDER + 1, categories - 1, n * people))
    moments = derivatives(p.reshape(categories, -1), ORDER, tails)
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
    shift = np.clip(missing / cumulants[0], -reach, reach)
    powers = _powers(shift, order + 1)
    for _ in range(SHIFTS - 1):  # to where the mean, as its Taylor series has it, is the score
        slope = np.maximum(_taylor(cumulants, powers), cumulants[0] / 10)
        shift = np.clip(shift - (_taylor(cumulants, powers[1:]) - missing) / slope, -reach, reach)
        powers = _powers(shift, order + 1)
    moved = [_taylor(cumulants[r:], powers) for r in range(order + 1)]
    scale = np.empty((order + 2, len(missing)))  # powers of 1 / sqrt(V)
    scale[0] = 1 / np.sqrt(np.maximum(moved[0], cumulants[0] / 10))
    for r in range(order + 1):
        np.multiply(scale[r], scale[0], out=scale[r + 1])
    made, above, below = _edgeworth(order)
    terms = np.ones((len(made), len(missing)))
    for term, (smaller, k) in enumerate(made[1:], start=1):
        np.multiply(terms[smaller], moved[k] * scale[k + 1], out=terms[term])
    centered = np.ones((order + 1, len(missing)))
    centered[1:] = (above @ terms) / (below @ terms) * scale[:order]
    return np.stack([_taylor(centered[r::-1], powers) for r in range(order + 1)])


@lru_cache(maxsize=4)
def _edgeworth(order: int) -> tuple[list[tuple[int, int]], Floats, Floats]:
    """The Edgeworth series up to this order, as products of the standardized cumulants l_1, l_2, ..., from the third.

    It is exp(sum_k l_k z^(k + 2) / (k + 2)!), z = it, where l_k counts as k orders. For every product: the one that it
    is made of, and the k of the last factor. `above` and `below` have a row for each r = 1, ..., order, with the means
    of z^r / r! and of 1 over the normal distribution times the series; r derivatives count as r orders.
    """
    made = [(0, 0)]
    found: list[tuple[tuple[int, ...], int, int, float]] = [((), 0, 0, 1.0)]  # factors, orders, power of z, coefficient
    for place, (factors, orders, power, value) in enumerate(found):
        for k in range(factors[-1] if factors else 1, order - orders):
            more = (*factors, k)
            found.append((more, orders + k, power + k + 2, value / factorial(k + 2) / more.count(k)))
            made.append((place, k))
    # The mean of z^n over the normal distribution.
    mean = [0.0 if n % 2 else (-0.5) ** (n // 2) * factorial(n) / factorial(n // 2) for n in range(4 * order)]
    above, below = np.zeros((2, order, len(found)))
    for column, (_, orders, power, value) in enumerate(found):
        for r in range(1, order + 1 - orders):
            above[r - 1, column] = value * mean[power + r] / factorial(r)
            below[r - 1, column] = value * mean[power]
    return made, above, below


def _powers(shift: Floats, most: int) -> Floats:
    """shift^a / a! for a = 0, ..., most."""
    powers = np.ones((most + 1, len(shift)))
    for a in range(1, most + 1):
        np.multiply(powers[a - 1], shift / a, out=powers[a])
    return powers


def _taylor(derivatives: Floats, powers: Floats) -> Floats:
    """sum over a of derivatives_a shift^a / a!, as far as the derivatives go."""
    return np.einsum("ap,ap->p", derivatives, powers[: len(derivatives)])
