"""What ordered answers are at each of a few abilities, for every item: probabilities and their derivatives by ability.

What people with many answers add to a sum depends on the item and their ability alone, times numbers of their own
(`score_series`). So a pass collects these numbers for every ability of the grid and every item, and the rest is
arithmetic on a table that has nothing to do with how many people there are. A cell is an ability and an item, abilities
first: `cell = ability * n_items + item`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.estimators.score_series import ORDER
from spectral_irt.responses.block import Floats
from spectral_irt.responses.ordered import Steps

APART = 0.25  # logits between abilities of the grid; a person lies half of that from one
WIDE = 1.5  # standard deviations of an answer from which on abilities are closer: derivatives grow with them
MARGIN = 1.0  # logits that the grid goes beyond the people


@dataclass(frozen=True)
class Terms:
    """How many terms of the series are used, for probabilities and for the links of the information.

    Its properties say where sums are kept: u_0 to u_order, u_1^2, products of links, and links times C 1.
    """

    order: int = ORDER
    n_links: int = 3

    @property
    def square(self) -> int:
        return self.order + 1

    @property
    def links(self) -> slice:
        return slice(self.order + 2, self.order + 2 + self.n_links)

    @property
    def around(self) -> slice:
        return slice(self.links.stop, self.size)

    @property
    def size(self) -> int:
        return self.order + 2 + 2 * self.n_links


@dataclass(frozen=True, eq=False)
class StepTables:
    """Tables at these thresholds.

    Attributes
    ----------
    tails : list of float arrays, levels x cells
        Derivatives 0, 1, ... by ability of P(X >= k); 0 for levels that the item does not have.
    moments : float array, (order + 3) x cells
        The mean of the answer, its cumulants from the second on, and the square of its variance.
    """

    steps: Steps
    grid: Floats
    terms: Terms
    tails: list[Floats]
    moments: Floats

    @classmethod
    def at(cls, steps: Steps, beta: Floats, grid: Floats, terms: Terms) -> StepTables:
        order, width = terms.order, steps.widest
        cumulated = np.ascontiguousarray(steps.cumulated(beta).T)  # categories x items
        k = np.arange(width + 1, dtype=float)
        p = (grid[None, :, None] * k[:, None, None] - cumulated[:, None, :]).reshape(width + 1, -1)
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        moments = np.empty((order + 3, p.shape[1]))
        moments[0] = k @ p
        # p^(r) = p Y_r with the complete Bell polynomials Y of k - mean and the cumulants.
        away = k[:, None] - moments[0]
        derivatives = [p]
        for r in range(1, order + 2):
            new = away * derivatives[r - 1]
            for j in range(1, r):
                new -= (comb(r - 1, j) * moments[j]) * derivatives[r - 1 - j]
            derivatives.append(new)
            moments[r] = k @ new
        moments[order + 2] = moments[1] ** 2
        tails = [np.cumsum(one[:0:-1], axis=0)[::-1] for one in derivatives[: order + 1]]
        return cls(steps, grid, terms, tails, moments)

    @property
    def apart(self) -> float:
        return float(self.grid[1] - self.grid[0])

    @property
    def n_cells(self) -> int:
        return len(self.grid) * self.steps.n_items

    @cached_property
    def _level_item(self) -> tuple[Any, Any]:
        return self.steps.level - 1, self.steps.item

    def levels(self, tables: list[Floats], collected: Floats) -> Floats:
        """Levels x items: sums over abilities and r of tables_r times what was collected, r x cells."""
        shape = (len(self.grid), self.steps.n_items)
        total = np.zeros((self.steps.widest, self.steps.n_items))
        for table, values in zip(tables, collected, strict=False):
            total += np.einsum("kgi,gi->ki", table.reshape(-1, *shape), values.reshape(shape))
        return total

    def contract(self, tables: list[Floats], collected: Floats) -> Floats:
        """`levels` as a number for each threshold."""
        return self.levels(tables, collected)[self._level_item]

    def by_item(self, table: Floats) -> Floats:
        """Items x levels x abilities."""
        return table.reshape(self.steps.widest, len(self.grid), -1).transpose(2, 0, 1)

    def pairs(self, left: Floats, right: Floats, weight: Floats) -> Floats:
        """Items x levels x levels: sums over abilities of left_k right_k' weight; left and right are `by_item`."""
        return (left * weight.reshape(len(self.grid), -1).T[:, None, :]) @ right.transpose(0, 2, 1)

    @property
    def linking(self) -> list[Floats]:
        """w = dP(X >= k) / dtheta, w' and w'', or the first of them: what the links are made of."""
        return self.tails[1 : 1 + self.terms.n_links]

    def weighted(self, tables: list[Floats], v: Floats) -> Floats:
        """sum over k of v_k table_k in every cell, tables x cells; a third axis for the columns of a matrix v."""
        shape = (self.steps.widest, self.steps.n_items, *v.shape[1:])
        levels = np.zeros(shape)
        levels[self._level_item] = v
        cells = (self.steps.widest, len(self.grid), self.steps.n_items)
        made = [np.einsum("kgi,ki...->...gi", table.reshape(cells), levels) for table in tables]
        return np.stack(made).reshape(len(tables), *v.shape[1:], -1)

    def nearest(self, theta: Floats) -> NDArray[np.int32]:
        return np.clip(np.rint((theta - self.grid[0]) / self.apart), 0, len(self.grid) - 1).astype(np.int32)


def grid_over(low: float, high: float, steps: Steps) -> Floats:
    """Abilities for people from `low` to `high`."""
    apart = APART / max(1.0, steps.widest / 4 / WIDE)  # an answer in K categories spreads by about a quarter of them
    low, high = low - MARGIN, high + MARGIN
    return np.linspace(low, high, max(int(np.ceil((high - low) / apart)) + 1, 2))
