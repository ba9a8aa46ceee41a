"""Answers given the score in any number of categories: the series of people with many answers, by tables.

With phi_S the characteristic function of the total score S at any ability theta, and h(theta) the mean of h(X_i) there,

    E[h(X_i) e^{itS}] = phi_S(t) h(theta + it),     so     E[h(X_i) | S = s] = sum_r u_r h^(r)(theta),

    u_r = (1 / r!) int (it)^r phi_S(t) e^{-its} dt / int phi_S(t) e^{-its} dt:

derivatives by ability that depend on the item alone, times numbers that depend on the person alone. At the ability
where S has the mean s, phi_S is a normal one times the Edgeworth series with the cumulants of S, which are the sums of
those of the answers, and those are the derivatives of the mean answer. The error of P(X >= k | s) falls with the third
power of N, for people whose answers count as N equal ones (tests/unit/conditional/test_likelihood.py).

The items' derivatives are tabulated on a grid of abilities; u for an ability beside the grid is that of a shift. A pass
collects u for every cell, an ability and an item (`cell = ability * n_items + item`); the rest is arithmetic on tables,
whatever the number of people. People with little information are exact, each pattern of items and total score once.

Kolassa (2006), Series Approximation Methods in Statistics, ch. 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import comb, factorial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.exact import answers_above, dtype_for, padded_sums, series_limit
from spectral_irt.conditional.information import (
    PatternRows,
    PeopleRows,
    Point,
    ThresholdRows,
    balance_rows,
    by_blocks,
    to_levels,
)
from spectral_irt.data.block import Block, Floats, Rows, Thresholds, rows_of, spans
from spectral_irt.data.patterns import row_keys
from spectral_irt.data.responses import Responses
from spectral_irt.engine import Prepared
from spectral_irt.numerics import Places, add_columns, chosen_or_none, row_sums, safe_divide, shared_ones

ORDER = 6  # derivatives that are used, and powers of 1 / sqrt(V) in the series
SHIFTS = 3  # Newton steps for the ability at which the mean is the score
APART = 0.25  # logits between abilities of the grid; a person lies half of that from one
WIDE = 1.5  # standard deviations of an answer from which on abilities are closer: derivatives grow with them
MARGIN = 1.0  # logits that the grid goes beyond the people
CACHED = 4096  # cells at a time: their derivatives fit the second cache of a core
TRIES = 20  # of bringing an ability near a point of the grid ...
AGAIN = 2  # ... when thresholds have moved a little
NEAR = 0.7  # of the distance between points: within it the shift does
# The error of the series for a threshold of a person whose answers count as N equal ones, with sign, since estimates go
# by sums: this times N^-3, or N^-2 with fewer terms, which do where people have many answers. By the thresholds of the
# widest item, whose extreme ones it is that of; measured beside exact sums, N from 2 to 40.
SERIES_ERROR = {1: 0.001, 2: 0.001, 3: 0.002}
BRIEF_ERROR = {1: 0.001, 2: 0.001}
ERROR_OF_WIDE_ITEMS = 0.05
BRIEF_ERROR_OF_WIDE_ITEMS = 0.03
SEVERAL = 0.02  # share of the answers that fewer terms may make exact sums of
LIMITS = np.concatenate([np.arange(4.0, 60.0, 2.0), [np.inf]])
LIMITS_OF_NARROW_ITEMS = np.concatenate([[2.0, 3.0], LIMITS])  # of up to two thresholds
REPEATED = 4  # people with the same items and the same score from whom on exact sums are cheap
LOOKED_AT = 256  # people of a block by whom it is known whether patterns repeat
BRIEF = 4  # the order with fewer terms
AT_ONCE = 7  # rows of sums from which on a loop over all is faster
SCALING = 5  # rounds in which factors of the tables are fitted to the rows of the information


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables at these thresholds, for a series of this order. `tails` are the derivatives 0, 1, ... by ability of P(X
    >= k), levels x cells; 0 for levels that the item does not have. `moments` are the mean of the answer, its cumulants
    from the second on, and the square of its variance, as precise as what is summed over people. `factor` is dP(X >= k)
    / dtheta times a number for each threshold: what the c of the information are made of."""

    layout: Thresholds
    grid: Floats
    order: int
    tails: Floats
    moments: Floats
    factor: Floats

    @classmethod
    def at(cls, layout: Thresholds, beta: Floats, grid: Floats, order: int, precision: Any = np.float64) -> Tables:
        width = layout.widest
        n_items = layout.n_items
        cumulated = np.ascontiguousarray(layout.cumulated(beta).T)[:, None, :]  # categories x abilities x items
        k = np.arange(width + 1, dtype=float)[:, None, None]
        # In one piece: many small ones cost the system more.
        tails = np.empty((order + 1, width, len(grid) * n_items))
        moments = np.empty((order + 3, len(grid) * n_items), dtype=precision)
        step = max(CACHED // max(n_items, 1), 1)
        for start in range(0, len(grid), step):
            p = (grid[start : start + step, None] * k - cumulated).reshape(width + 1, -1)
            p -= p.max(axis=0)
            np.exp(p, out=p)
            p /= p.sum(axis=0)
            cells = slice(start * n_items, start * n_items + p.shape[1])
            moments[:, cells] = derivatives(p, order, tails[:, :, cells])
        return cls(layout, grid, order, tails, moments, tails[min(1, order)])

    @property
    def spacing(self) -> float:
        """Logits between the abilities of the grid."""
        return float(self.grid[1] - self.grid[0])

    def pairs(self, left: Floats, right: Floats) -> Floats:
        """Items x levels x levels: sums over abilities of the products of two tables."""
        shape = (self.layout.widest, len(self.grid), self.layout.n_items)
        left = left.reshape(shape)
        products = [np.einsum("kgi,gi->ik", left, of_level) for of_level in right.reshape(shape)]
        return np.stack(products, axis=-1)  # faster than all at once

    def covariances(self, expected: Floats, collected: Any) -> Floats:
        """Sums over people of Cov(1{X >= k}, 1{X >= k'}), items x levels x levels; `expected` those of P(X >= k)."""
        level = np.arange(self.layout.widest)
        highest = to_levels(self.layout, expected).T[:, np.maximum.outer(level, level)]
        return highest - self.products(collected, collected[-2])

    def products(self, collected: Any, squared: Floats) -> Floats:
        """Sums over people of P_k P_k' for the levels of each item, from those of u and of u_1^2, as far as they go."""
        mixed = self.tails[0] * (collected[0] / 2)
        for tail, u in zip(self.tails[1:3], collected[1:3], strict=False):
            mixed += tail * u
        half = self.pairs(self.tails[0], mixed) + self.pairs(self.tails[1], self.tails[1] * (squared / 2))
        return half + half.transpose(0, 2, 1)

    def contract(self, tables: Iterable[Floats], collected: Any) -> Floats:
        """Of each threshold: the sum over abilities and r of tables_r times what was collected, r x cells."""
        shape = (len(self.grid), self.layout.n_items)
        total = np.zeros((self.layout.widest, shape[1]))
        for table, values in zip(tables, collected, strict=False):
            total += np.einsum("kgi,gi->ki", table.reshape(-1, *shape), values.reshape(shape))
        return total[self.layout.level - 1, self.layout.item]

    def weighted_sum(self, table: Floats, v: Floats) -> Floats:
        """sum over k of v_k table_k in every cell; a first axis for the columns of a matrix v."""
        shape = (self.layout.widest, len(self.grid), -1)
        sums = np.einsum("kgi,ki...->...gi", table.reshape(shape), to_levels(self.layout, v))
        return sums.reshape(*v.shape[1:], -1).astype(self.moments.dtype, copy=False)

    def nearest(self, theta: Floats) -> Places:
        return np.clip(np.rint((theta - self.grid[0]) / self.spacing), 0, len(self.grid) - 1).astype(np.int32)

    def cells(self, rows: Rows, at: Places) -> Places:
        """The cell of every answer."""
        return np.repeat((at * self.layout.n_items).astype(np.int32), rows.counts) + rows.items


def derivatives(p: Floats, order: int, tails: Floats) -> Floats:
    """`moments` of `Tables`, from the probabilities of the categories in every cell; `tails` are written."""
    k = np.arange(len(p), dtype=float)
    moments = np.empty((order + 3, p.shape[1]))
    moments[0] = k @ p
    # p^(r) = p Y_r with the complete Bell polynomials Y of k - mean and the cumulants.
    deviation = k[:, None] - moments[0]
    of_p = [p]
    for r in range(1, order + 2):
        new = deviation * of_p[r - 1]
        for j in range(1, r):
            new -= (comb(r - 1, j) * moments[j]) * of_p[r - 1 - j]
        of_p.append(new)
        moments[r] = k @ new
    moments[order + 2] = moments[1] ** 2
    for tail, derivative in zip(tails, of_p, strict=False):
        tail[-1] = derivative[-1]
        for level in range(len(tail) - 1, 0, -1):
            np.add(derivative[level], tail[level], out=tail[level - 1])
    return moments


def grid_over(low: float, high: float, layout: Thresholds) -> Floats:
    """Abilities for people from `low` to `high`."""
    apart = APART / max(1.0, layout.widest / 4 / WIDE)  # an answer in K categories spreads by about a quarter of them
    low -= MARGIN
    high += MARGIN
    return np.linspace(low, high, max(int(np.ceil((high - low) / apart)) + 1, 2))


def weights(missing: Floats, cumulants: Floats, reach: float) -> Floats:
    """u_0, ..., u_order of every person, one below the other. `missing` is the total score less its mean at the ability
    of the grid, `cumulants` are those of the total score from the second on, order + 1 of them, and `reach` is the
    farthest shift that the derivatives stand for."""
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
    products, above, below = _edgeworth(order)
    terms = np.ones((len(products), len(missing)))
    for term, (smaller, k) in enumerate(products[1:], start=1):
        np.multiply(terms[smaller], moved[k] * scale[k + 1], out=terms[term])
    centered = np.ones((order + 1, len(missing)))
    centered[1:] = (above @ terms) / (below @ terms) * scale[:order]
    return np.stack([_taylor(centered[r::-1], powers) for r in range(order + 1)])


class EdgeworthTerm(NamedTuple):
    """A product of standardized cumulants: their numbers, of how many orders it is, the power of z, the coefficient."""

    factors: tuple[int, ...]
    orders: int
    power: int
    coefficient: float


@lru_cache(maxsize=4)
def _edgeworth(order: int) -> tuple[list[tuple[int, int]], Floats, Floats]:
    """The Edgeworth series up to this order, as products of the standardized cumulants l_1, l_2, ..., from the third.
    It is exp(sum_k l_k z^(k + 2) / (k + 2)!), z = it, where l_k counts as k orders. For every product: the one that it
    is made of, and the k of the last factor. `above` and `below` have a row for each r = 1, ..., order, with the means
    of z^r / r! and of 1 over the normal distribution times the series; r derivatives count as r orders."""
    products = [(0, 0)]
    terms = [EdgeworthTerm((), 0, 0, 1.0)]
    for place, term in enumerate(terms):
        largest = term.factors[-1] if term.factors else 1
        for k in range(largest, order - term.orders):
            factors = (*term.factors, k)
            coefficient = term.coefficient / factorial(k + 2) / factors.count(k)
            terms.append(EdgeworthTerm(factors, term.orders + k, term.power + k + 2, coefficient))
            products.append((place, k))
    # The mean of z^n over the normal distribution.
    mean = [0.0 if n % 2 else (-0.5) ** (n // 2) * factorial(n) / factorial(n // 2) for n in range(4 * order)]
    above = np.zeros((order, len(terms)))
    below = np.zeros((order, len(terms)))
    for column, term in enumerate(terms):
        for r in range(1, order + 1 - term.orders):
            above[r - 1, column] = term.coefficient * mean[term.power + r] / factorial(r)
            below[r - 1, column] = term.coefficient * mean[term.power]
    return products, above, below


def _powers(shift: Floats, most: int) -> Floats:
    """shift^a / a! for a = 0, ..., most."""
    powers = np.ones((most + 1, len(shift)))
    for a in range(1, most + 1):
        np.multiply(powers[a - 1], shift / a, out=powers[a])
    return powers


def _taylor(derivatives: Floats, powers: Floats) -> Floats:
    """sum over a of derivatives_a shift^a / a!, as far as the derivatives go."""
    return np.einsum("ap,ap->p", derivatives, powers[: len(derivatives)])


def sums_of(rows: Rows, columns: Places, values: Any) -> Floats:
    """Sums over the answers of each person of these values, rows of one number for each column, as precise as these.
    One row at a time, which is twice as fast as all at once."""
    cells = (rows.n_persons, rows.indptr.astype(np.int32), columns)
    ones = shared_ones(len(columns), values.dtype)
    return np.stack([row_sums(cells, ones, row) for row in values])


def sums_in(rows: Rows, columns: Places, values: Any, n: int, precision: Any) -> Floats:
    """Sums of people's values over the answers in each of n columns, for every row of values. Many rows are added at
    once, in half the time; that loop goes by fours, so that rows of zeros may follow."""
    cells = (rows.n_persons, rows.indptr.astype(np.int32), columns)
    ones = shared_ones(len(columns), precision)
    if len(values) < AT_ONCE:
        total = np.zeros((len(values), n), dtype=precision)
        for row, sums in zip(values, total, strict=True):
            add_columns(cells, ones, row.astype(precision, copy=False), sums)
        return total
    wide = np.zeros((rows.n_persons, -(-len(values) // 4) * 4), dtype=precision)
    wide[:, : len(values)] = np.transpose(values)
    total = np.zeros((n, wide.shape[1]), dtype=precision)
    add_columns(cells, ones, wide, total)
    return total.T


class OnGrid(NamedTuple):
    """People near points of the grid of abilities: the point of each, the cells of their answers, and mean and variance
    of the total score there."""

    at: Places
    cells: Places
    moments: Floats


def settle(rows: Rows, at: Places, cells: Places, tables: Tables, tries: int) -> OnGrid:
    """People at the point of the grid where the expected total score is nearest."""
    at = at.copy()
    who = np.arange(rows.n_persons)
    moments = sums_of(rows, cells, tables.moments[:2])
    for k in range(tries):
        mean, variance = moments[:, who]
        move = (rows.scores[who] - mean) / np.maximum(variance, 1e-12)
        nearest = tables.nearest(tables.grid[at[who]] + np.clip(move, -1, 1))
        far = (np.abs(move) > NEAR * tables.spacing) & (nearest != at[who])
        who = who[far]
        if not len(who):
            break
        at[who] = nearest[far]
        some = rows.take(who)
        new_cells = tables.cells(some, at[who])
        moments[:, who] = sums_of(some, new_cells, tables.moments[:2])
        if k == 0:
            cells = cells.copy()  # the engine may keep the old ones in a file
        cells[spans(rows.indptr[who], some.counts)] = new_cells
    return OnGrid(at, cells, moments)


class TableSums(NamedTuple):
    """What the people with much information collect in every cell; and the sums of the exact ones, as `OrderedSums` has
    them."""

    collected: Floats
    expected: Any
    covariance: Any
    outer: Any
    around: Any


@dataclass(frozen=True, eq=False)
class TableRows(PeopleRows):
    """The informative people of one block: those with much information, `rows`, and after them the `exact` ones. `at`
    is the ability of the grid that each is near, `cells` the cell of each answer, `u` is (order + 1) x people, and
    `factor` is 1 / sqrt(V), times the root of the weight: c is that times the `factor` of the tables."""

    rows: Rows
    at: Places
    cells: Places
    exact: PatternRows | None
    layout: Thresholds
    weight: Floats | None  # of all of them
    u: Any = None
    factor: Any = None

    @property
    def long_weight(self) -> Any:
        """Of the people with much information."""
        return 1.0 if self.weight is None else self.weight[: self.rows.n_persons]

    def scores(self, tables: Tables) -> ThresholdRows:
        of_long = self._threshold_rows(tables.tails, self.u).less_passed(self.rows.category, self.long_weight)
        if not self.exact:
            return of_long
        return of_long.with_more(self.exact.scores())

    def factors(self, tables: Tables) -> ThresholdRows:
        of_long = self._threshold_rows([tables.factor], self.factor[None])
        if not self.exact:
            return of_long
        return of_long.with_more(self.exact.factors())

    def _threshold_rows(self, tables: Sequence[Floats] | Floats, coefficients: Floats) -> ThresholdRows:
        """sum over r of coefficient_r tables_r, people x thresholds."""
        total = np.zeros((self.layout.widest, len(self.cells)))
        of_answers = [np.repeat(coefficient, self.rows.counts) for coefficient in coefficients]
        levels_of_answer = self.layout.max_score[self.rows.items]
        for level, sums in enumerate(total):
            where: Any = slice(None)
            cells = self.cells
            if level:  # which few items may have
                where = np.flatnonzero(levels_of_answer > level)
                cells = self.cells[where]
            for table, coefficient in zip(tables, of_answers, strict=True):
                sums[where] += table[level].take(cells) * coefficient[where]
        return ThresholdRows(self.rows.indptr.astype(np.int32), self.rows.items, total, self.layout)

    def evaluate(self, tables: Tables, cumulated: Floats) -> tuple[TableRows, TableSums]:
        """At other thresholds, and their sums."""
        exact = None
        sums: Any = (0.0, 0.0, 0.0, 0.0)
        if self.exact:
            exact, (_, *sums) = self.exact.evaluate(cumulated)
        rows = self.rows
        precision = tables.moments.dtype
        on_grid = settle(rows, self.at, self.cells, tables, AGAIN)
        mean, variance = on_grid.moments
        higher = sums_of(rows, on_grid.cells, tables.moments[2:-1])
        cumulants = np.concatenate([variance[None], higher]).astype(np.float64)
        u = weights(rows.scores - mean, cumulants, tables.spacing)
        factor = np.sqrt(self.long_weight / cumulants[0])
        weighted_u = u if self.weight is None else u * self.long_weight
        values = [*weighted_u, weighted_u[1] * u[1], factor**2]
        collected = sums_in(rows, on_grid.cells, values, tables.moments.shape[1], precision)
        part = replace(self, at=on_grid.at, cells=on_grid.cells, exact=exact, u=u, factor=factor)
        return part, TableSums(collected, *sums)


def factors_twice(part: TableRows, spread: Floats, v: Floats) -> tuple[Floats, Floats | float]:
    """C' C v: in cells for the long rows, where `spread` is v in the tables' `factor`; and for the others."""
    columns = []
    for column in np.atleast_2d(spread):
        (sums,) = sums_of(part.rows, part.cells, column[None])
        columns.append(sums_in(part.rows, part.cells, [part.factor**2 * sums], len(column), spread.dtype)[0])
    of_exact: Floats | float = 0.0
    if part.exact:
        of_exact = part.exact.factors_twice(None, v)
    return np.stack(columns).reshape(spread.shape), of_exact


@dataclass(frozen=True, eq=False)
class TablePoint(Point):
    """The likelihood at some thresholds; `collected` is what the long rows add, terms x cells."""

    collected: Floats = field(kw_only=True)

    def __matmul__(self, v: Floats) -> Floats:
        tables = self.tables
        cells, direct = self.rows.sum(factors_twice, tables.weighted_sum(tables.factor, v), v)
        columns = [tables.contract([tables.factor], [column]) for column in np.atleast_2d(cells)]
        return by_blocks(self.layout, self.inner, v) - direct - np.stack(columns, axis=-1).reshape(v.shape)

    def score_sums(self, v: Floats) -> tuple[Floats, Floats]:
        from spectral_irt.conditional.table_sums import score_sums  # where thresholds are too many for a matrix

        return score_sums(self, v)


def point_at(tables: Tables, rows: Prepared, beta: Floats, passed: Floats) -> TablePoint:
    """The likelihood of `TableRows` at other thresholds than the tables."""
    layout = tables.layout
    tables = Tables.at(layout, beta, tables.grid, tables.order, tables.moments.dtype)
    rows, totals = rows.map_and_sum(TableRows.evaluate, tables, padded_sums(layout, beta))
    sums = TableSums(*totals)
    collected = np.ascontiguousarray(sums.collected[: tables.order + 3], dtype=np.float64)
    expected = tables.contract(tables.tails, collected)  # of those with much information
    blocks = tables.covariances(expected, collected)
    pairs = tables.pairs(tables.factor, tables.factor * collected[-1])
    scale = layout.table(_scale(tables, collected[0], blocks, pairs), 0.0)
    tables = replace(tables, factor=tables.factor * np.tile(scale.T, len(tables.grid)))
    outer = sums.outer + scale[:, :, None] * pairs * scale[:, None, :]
    ones = np.ones(layout.n_entries)
    cells, around = rows.sum(factors_twice, tables.weighted_sum(tables.factor, ones), ones)
    around = around + tables.contract([tables.factor], [cells])
    own_blocks, inner = balance_rows(layout, sums.covariance + blocks, outer, around)
    gradient = sums.expected + expected - passed
    return TablePoint(beta, layout, rows, gradient, own_blocks, inner, tables, collected=collected)


def _scale(tables: Tables, count: Floats, blocks: Floats, pairs: Floats) -> Floats:
    """Numbers for the factors of the thresholds with which C' C 1 = (D + c c') 1, about: (C 1)_l is sqrt(V) times the
    mean of the numbers over the factors that people of this ability meet."""
    layout = tables.layout
    n_abilities = len(tables.grid)
    ones = np.ones(layout.n_entries)
    scale = ones
    met = np.empty((n_abilities, layout.widest * layout.n_items))
    factor = tables.factor.reshape(layout.widest, n_abilities, -1).swapaxes(0, 1)
    np.multiply(factor, count.reshape(n_abilities, 1, -1), out=met.reshape(factor.shape))
    target = by_blocks(layout, blocks, ones)
    plain = met.sum(axis=1)
    for _ in range(SCALING):
        scaled = met @ to_levels(layout, scale).ravel()
        mean = safe_divide(scaled, plain, otherwise=1.0)
        between = (mean @ met).reshape(layout.widest, -1)[layout.level - 1, layout.item]
        between -= by_blocks(layout, pairs, scale)
        new = np.divide(target, between, out=ones.copy(), where=between > 1e-9 * target)
        scale = np.sqrt(scale * np.clip(new, 0.5, 2.0))
    return scale


def prepare_people(
    responses: Responses, beta: Floats, allowed: float, weight: Floats | None
) -> tuple[Prepared, Tables]:
    """All people, ready to be evaluated, and tables; exact where the series would move a threshold by more."""
    layout = responses.thresholds
    counts = responses.item_counts
    people = responses.entries.prepare(_with_abilities, layout, beta, persons=(weight,))
    theta = np.concatenate([np.zeros(1), *people.map(attrgetter("theta"))])
    rough = Tables.at(layout, beta, grid_over(theta.min(), theta.max(), layout), 0, dtype_for(allowed))
    limits = LIMITS
    brief_error = BRIEF_ERROR_OF_WIDE_ITEMS
    error = ERROR_OF_WIDE_ITEMS
    # Narrow are right and wrong answers with a super-item among them. The severity of a rater, or an offset of a rating
    # scale, collects the errors of many thresholds: ratings and items of equal width keep the wide margin.
    if responses.facets is None and layout.max_score.min() == 1:
        if layout.widest <= 2:
            limits = LIMITS_OF_NARROW_ITEMS
        brief_error = BRIEF_ERROR.get(layout.widest, brief_error)
        error = SERIES_ERROR.get(layout.widest, error)
    people, answers = people.map_and_sum(_with_sizes, rough, limits)
    order = BRIEF
    least, exact_share = series_limit(answers, limits, brief_error / limits**2, counts, allowed)
    if exact_share > SEVERAL:
        order = ORDER
        least, _ = series_limit(answers, limits, error / limits**3, counts, allowed)
    return people.prepare(_rows_from, least, rough), replace(rough, order=order)


@dataclass(frozen=True, eq=False)
class RoughPeople:
    """The people of a block by rough ability: their weights, and whether many others have their pattern."""

    rows: Rows
    weight: Floats | None
    repeated: NDArray[np.bool_]
    theta: Floats


@dataclass(frozen=True, eq=False)
class SizedPeople:
    """The people of a block at points of the grid, and how many equal answers theirs are worth."""

    rows: Rows
    weight: Floats | None
    repeated: NDArray[np.bool_]
    at: Places
    size: Floats


def _with_abilities(block: Block, weight: Floats | None, layout: Thresholds, beta: Floats) -> RoughPeople:
    """The people of a block in the order of their rough abilities: neighbors in the table stay in the cache."""
    theta, _ = prox_ability(block, beta, layout)
    order = np.argsort(theta)
    rows = rows_of(block, layout).take(order)
    if weight is not None:
        weight = weight[order]
    return RoughPeople(rows, weight, _has_many_alike(rows, layout), theta[order])


def _has_many_alike(rows: Rows, layout: Thresholds) -> NDArray[np.bool_]:
    """People whose items and total score many others of the block have; nobody, where a first look finds few."""
    few = rows.part(0, min(LOOKED_AT, rows.n_persons))
    if len(np.unique(row_keys(few, layout, 0 * few.scores))) * 2 > few.n_persons:
        return np.zeros(rows.n_persons, dtype=bool)
    _, of_person, count = np.unique(row_keys(rows, layout), return_inverse=True, return_counts=True)
    return count[of_person.ravel()] >= REPEATED


def _with_sizes(people: RoughPeople, tables: Tables, limits: Floats) -> tuple[SizedPeople, Floats]:
    """The people at points of the grid; and how many people have answers worth so many equal ones."""
    rows = people.rows
    at = tables.nearest(people.theta)
    on_grid = settle(rows, at, tables.cells(rows, at), tables, TRIES)
    mean, variance = on_grid.moments
    (square,) = sums_of(rows, on_grid.cells, tables.moments[2:])
    size = np.minimum(variance, variance**2 / np.maximum(square, 1e-300))
    beyond = np.abs(rows.scores - mean) > tables.spacing * variance
    size = np.where(beyond | ~rows.informative, 0.0, size)
    answers = answers_above(limits, size, np.where(people.repeated, 0, rows.counts))
    return SizedPeople(rows, people.weight, people.repeated, on_grid.at, size), answers


def _rows_from(people: SizedPeople, least: float, tables: Tables) -> TableRows:
    """With the series for people worth so many equal answers, unless others have their items and score too."""
    rows = people.rows
    at = people.at
    weight = people.weight
    is_exact = (people.size < least) | people.repeated
    long = np.flatnonzero(~is_exact & rows.informative)
    exact = np.flatnonzero(is_exact & rows.informative)
    patterns = None
    if len(exact):
        weight_of_exact = chosen_or_none(weight, exact)
        patterns = PatternRows.of(rows.take(exact), weight_of_exact, tables.layout)
    if weight is not None:
        weight = weight[np.concatenate([long, exact])]
    if len(long) < len(at):
        rows = rows.take(long)
        at = at[long]
    return TableRows(rows, at, tables.cells(rows, at), patterns, tables.layout, weight)
