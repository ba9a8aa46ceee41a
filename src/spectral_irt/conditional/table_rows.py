"""The conditional likelihood of answers in categories, person by person, and what they add up to.

People with much information take the series of `series_tables`: what they add is collected for every ability of a grid
and every item, and multiplied with the items' tables afterwards. The others are exact (`pattern_rows`), each pattern of
items and total score once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.given_score import answers_above, padded, series_limit
from spectral_irt.conditional.information import Levels, PeopleRows, Point, balanced, by_blocks, to_levels
from spectral_irt.conditional.pattern_rows import PatternRows
from spectral_irt.conditional.series_binary import DOUBLE, ROUGH, SINGLE
from spectral_irt.conditional.series_tables import ORDER, Tables, grid_over, weights
from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, rows_of, spans
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import row_keys
from spectral_irt.engine import Prepared
from spectral_irt.numerics import add_columns, row_sums, shared_ones

TRIES, AGAIN = 20, 2  # of bringing an ability near a point of the grid; when thresholds have moved a little
NEAR = 0.7  # of the distance between points: within it the shift does
# The error of the series for a threshold of a person whose answers count as N equal ones: this times N^-3, or N^-2 with
# fewer terms, which do where people have many answers.
SERIES_ERROR, BRIEF_ERROR = 0.05, 0.03
SEVERAL = 0.02  # share of the answers that fewer terms may make exact sums of
LIMITS = np.concatenate([np.arange(4.0, 60.0, 2.0), [np.inf]])
REPEATED = 4  # people with the same items and the same score from whom on exact sums are cheap
LOOKED_AT = 256  # people of a block by whom it is known whether patterns repeat
FAR, FARTHER = 0.2, 5.0  # logits, and medians, beyond which an item that moves takes steps by itself
OWN_STEPS = 4  # of these
BRIEF = 4  # the order with fewer terms
AT_ONCE = 7  # rows of sums from which on a loop over all is faster
SCALING = 5  # rounds in which factors of the tables are fitted to the rows of the information


def sums_of(rows: Rows, columns: NDArray[np.int32], values: Any) -> Floats:
    """Sums over the answers of each person of these values, rows of one number for each column.

    As precise as the values. One row at a time, which is twice as fast as all at once.
    """
    cells, ones = (rows.n_persons, rows.indptr.astype(np.int32), columns), shared_ones(len(columns), values.dtype)
    return np.stack([row_sums(cells, ones, each) for each in values])


def sums_in(rows: Rows, columns: NDArray[np.int32], values: Any, n: int, precision: Any) -> Floats:
    """Sums of people's values over the answers in each of n columns, for every row of values.

    Many rows are added at once, in half the time. That loop goes by fours, so that rows of zeros may follow.
    """
    cells, ones = (rows.n_persons, rows.indptr.astype(np.int32), columns), shared_ones(len(columns), precision)
    if len(values) < AT_ONCE:
        total = np.zeros((len(values), n), dtype=precision)
        for each, out in zip(values, total, strict=True):
            add_columns(cells, ones, each.astype(precision, copy=False), out)
        return total
    wide = np.zeros((rows.n_persons, -(-len(values) // 4) * 4), dtype=precision)
    wide[:, : len(values)] = np.transpose(values)
    total = np.zeros((n, wide.shape[1]), dtype=precision)
    add_columns(cells, ones, wide, total)
    return total.T


def settled(
    rows: Rows, at: NDArray[np.int32], cells: NDArray[np.int32], tables: Tables, tries: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """People at the point of the grid where the expected total score is nearest: points, cells, mean and variance."""
    at, who, moments = at.copy(), np.arange(rows.n_persons), sums_of(rows, cells, tables.moments[:2])
    for k in range(tries):
        mean, variance = moments[:, who]
        move = (rows.scores[who] - mean) / np.maximum(variance, 1e-12)
        there = tables.nearest(tables.grid[at[who]] + np.clip(move, -1, 1))
        far = (np.abs(move) > NEAR * tables.apart) & (there != at[who])
        who = who[far]
        if not len(who):
            break
        some, at[who] = rows.take(who), there[far]
        new = tables.cells(some, at[who])
        moments[:, who] = sums_of(some, new, tables.moments[:2])
        cells = cells.copy() if k == 0 else cells  # the engine may keep the old ones in a file
        cells[spans(rows.indptr[who], some.counts)] = new
    return at, cells, moments


@dataclass(frozen=True, eq=False)
class TableRows(PeopleRows):
    """The informative people of one block: those with much information, `rows`, and after them the `exact` ones.

    `at` is the ability of the grid that each is near, `cells` the cell of each answer, `u` is (order + 1) x people, and
    `factor` is 1 / sqrt(V), times the root of the weight: c is that times the `factor` of the tables.
    """

    rows: Rows
    at: NDArray[np.int32]
    cells: NDArray[np.int32]
    exact: PatternRows | None
    layout: Thresholds
    weight: Floats | None
    u: Floats = field(default_factory=lambda: np.empty((0, 0)))
    factor: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def own_weight(self) -> Any:
        """Of the people with much information."""
        return None if self.weight is None else self.weight[: self.rows.n_persons]

    def scores(self, tables: Tables) -> Levels:
        own = self._levels(tables.tails, self.u).less_passed(self.rows.category, self.own_weight)
        return own.with_more(self.exact.scores()) if self.exact else own

    def factors(self, tables: Tables) -> Levels:
        own = self._levels([tables.factor], self.factor[None])
        return own.with_more(self.exact.factors()) if self.exact else own

    def _levels(self, tables: Iterable[Floats], by: Floats) -> Levels:
        """sum over r of by_r tables_r, people x thresholds."""
        total = np.zeros((self.layout.widest, len(self.cells)))
        for table, each in zip(tables, by, strict=True):
            total += table.take(self.cells, axis=1) * np.repeat(each, self.rows.counts)
        return Levels(self.rows.indptr.astype(np.int32), self.rows.items, total, self.layout)

    def evaluated(self, tables: Tables, cumulated: Floats) -> tuple[TableRows, tuple[Any, ...]]:
        """At other thresholds; and what the long rows collect in every cell, and the sums of the exact ones."""
        exact, (_, *sums) = self.exact.evaluated(cumulated) if self.exact else (None, (0.0,) * 5)
        rows, n = self.rows, tables.moments.shape[1]
        at, cells, (mean, variance) = settled(rows, self.at, self.cells, tables, AGAIN)
        cumulants = np.concatenate([variance[None], sums_of(rows, cells, tables.moments[2:-1])]).astype(np.float64)
        u, factor = weights(rows.scores - mean, cumulants, tables.apart), 1 / np.sqrt(cumulants[0])
        columns = [*u, u[1] ** 2]
        if self.weight is not None:
            columns = [each * self.own_weight for each in columns]
            factor *= np.sqrt(self.own_weight)
        new = replace(self, at=at, cells=cells, exact=exact, u=u, factor=factor)
        return new, (sums_in(rows, cells, [*columns, factor**2], n, tables.moments.dtype), *sums)


def factors_twice(part: TableRows, spread: Floats, v: Floats) -> tuple[Floats, Floats | float]:
    """C' C v: in cells for the long rows, where `spread` is v in the tables' `factor`; and for the others."""
    made = []
    for each in np.atleast_2d(spread):
        (sums,) = sums_of(part.rows, part.cells, each[None])
        made.append(sums_in(part.rows, part.cells, [part.factor**2 * sums], len(each), spread.dtype)[0])
    return np.stack(made).reshape(spread.shape), part.exact.factors_twice(None, v) if part.exact else 0.0


def score_sums(part: TableRows, spread: Floats, upto: Floats, v: Floats) -> tuple[Floats | float, ...]:
    """What `TablePoint.score_sums` needs of the long rows, P by two terms of the series; and the sums of the others.

    Sums of 1 and of u_1 for every cell and category; of u_1^2, z and u_1 z for every cell, with z a person's score
    times v; and of z for every item and category. `spread` is v in two tables, `upto` in the thresholds passed.
    """
    rows, u, width, n = part.rows, part.u[1], part.layout.widest + 1, spread.shape[1]
    weight = np.ones(rows.n_persons) if part.weight is None else part.weight[: rows.n_persons]
    code = rows.items * np.int32(width)
    code += 0 if rows.category is None else rows.category
    expected = sums_of(rows, part.cells, spread)
    z = weight**2 * (expected[0] + u * expected[1] - sums_of(rows, code, upto[None])[0])
    by_item = sums_in(rows, code, z[None], len(upto), spread.dtype)
    code += (part.cells - rows.items) * np.int32(width)
    by_category = sums_in(rows, code, (weight**2, weight**2 * u), n * width, spread.dtype)
    by_cell = sums_in(rows, part.cells, ((weight * u) ** 2, z, z * u), n, spread.dtype)
    return by_category, by_cell, by_item, *(part.exact.score_sums(None, v) if part.exact else (0.0, 0.0))


@dataclass(frozen=True, eq=False)
class _People:
    """The people of a block with abilities of the grid, and how many equal answers theirs are worth: `size`."""

    rows: Rows
    weight: Floats | None
    theta: Floats
    repeated: NDArray[np.bool_]
    at: NDArray[np.int32]
    size: Floats

    @classmethod
    def of(cls, block: Block, weight: Floats | None, layout: Thresholds, beta: Floats) -> _People:
        theta, _ = prox_ability(block, beta, layout)
        order = np.argsort(theta)  # neighbors in the table stay in the cache
        rows, weight = rows_of(block, layout).take(order), None if weight is None else weight[order]
        return cls(rows, weight, theta[order], _repeated(rows, layout), np.empty(0, np.int32), np.empty(0))

    def ends(self) -> tuple[float, float]:
        return self.theta.min(initial=0.0), self.theta.max(initial=0.0)

    def settled(self, tables: Tables) -> _People:
        rows, at = self.rows, tables.nearest(self.theta)
        at, cells, (mean, variance) = settled(rows, at, tables.cells(rows, at), tables, TRIES)
        (square,) = sums_of(rows, cells, tables.moments[2:])
        size = np.minimum(variance, variance**2 / np.maximum(square, 1e-300))
        beyond = np.abs(rows.scores - mean) > tables.apart * variance
        return replace(self, at=at, size=np.where(beyond | ~rows.informative, 0.0, size))

    def by_size(self) -> Floats:
        return answers_above(LIMITS, self.size, np.where(self.repeated, 0, self.rows.counts))

    def rows_from(self, least: float, tables: Tables) -> TableRows:
        """With the series for people worth so many equal answers, unless others have their items and score too."""
        layout, informative, exact = tables.layout, self.rows.informative, (self.size < least) | self.repeated
        who, others = np.flatnonzero(~exact & informative), np.flatnonzero(exact & informative)
        rows, at, weight, theirs = self.rows, self.at, self.weight, None
        if len(who) < len(at):
            rows, at = rows.take(who), at[who]
        if weight is not None:
            weight, theirs = weight[np.concatenate([who, others])], weight[others]
        patterns = PatternRows.of(self.rows.take(others), theirs, layout) if len(others) else None
        return TableRows(rows, at, tables.cells(rows, at), patterns, layout, weight)


def _repeated(rows: Rows, layout: Thresholds) -> NDArray[np.bool_]:
    """People whose items and total score many others of the block have; nobody, where a first look finds few."""
    few = rows.part(0, min(LOOKED_AT, rows.n_persons))
    if len(np.unique(row_keys(few, layout, np.zeros(few.n_persons, dtype=np.int64)))) * 2 > few.n_persons:
        return np.zeros(rows.n_persons, dtype=bool)
    _, of_person, count = np.unique(row_keys(rows, layout, rows.scores), return_inverse=True, return_counts=True)
    return count[of_person.ravel()] >= REPEATED


def prepare_people(
    responses: Responses, beta: Floats, allowed: float, weights_of_people: Floats | None = None
) -> tuple[Prepared, Tables]:
    """All people, ready to be evaluated, and tables; exact where the series would move a threshold by more."""
    layout = responses.thresholds
    people = responses.entries.prepare(_People.of, layout, beta, persons=(weights_of_people,))
    low, high = np.array([[0.0, 0.0], *people.map(_People.ends)]).T
    precision = SINGLE if allowed >= ROUGH else DOUBLE
    rough = Tables.at(layout, beta, grid_over(low.min(), high.max(), layout), 0, precision)
    people = people.prepare(_People.settled, rough)
    answers, counts = people.sum(_People.by_size), responses.item_counts
    order, (least, exact) = BRIEF, series_limit(answers, LIMITS, BRIEF_ERROR / LIMITS**2, counts, allowed)
    if exact > SEVERAL:
        order, (least, _) = ORDER, series_limit(answers, LIMITS, SERIES_ERROR / LIMITS**3, counts, allowed)
    return people.prepare(_People.rows_from, least, rough), replace(rough, order=order)


@dataclass(frozen=True, eq=False)
class TablePoint(Point):
    """The likelihood at some thresholds; `collected` is what the long rows add, terms x cells."""

    collected: Floats = field(kw_only=True)

    @classmethod
    def at(cls, tables: Tables, rows: Prepared, beta: Floats, passed: Floats) -> TablePoint:
        layout = tables.layout
        tables = Tables.at(layout, beta, tables.grid, tables.order, tables.moments.dtype)
        rows, sums = rows.map_and_sum(TableRows.evaluated, tables, padded(layout, beta))
        collected, expected, own, outer, _ = sums
        collected = np.ascontiguousarray(collected[: tables.order + 3], dtype=np.float64)
        levels, ones = tables.levels(tables.tails, collected), np.ones(layout.n_entries)
        blocks = levels.T[:, _higher(layout.widest)] - products(tables, collected, collected[-2])
        pairs = tables.pairs([tables.factor], lambda k: [tables.factor[k] * collected[-1]])
        scale = _scale(tables, collected[0], blocks, pairs)
        tables, each = tables.scaled(scale), layout.table(scale, 0.0)
        outer = outer + each[:, :, None] * pairs * each[:, None, :]
        cells, around = rows.sum(factors_twice, tables.weighted(tables.factor, ones), ones)
        around = around + tables.contract([tables.factor], [cells])
        own, inner = balanced(layout, own + blocks, outer, around)
        gradient = expected + levels[layout.level - 1, layout.item] - passed
        return cls(beta, layout, rows, gradient, own, inner, tables, collected=collected)

    def factors_twice(self, v: Floats) -> Floats:
        tables = self.tables
        cells, direct = self.rows.sum(factors_twice, tables.weighted(tables.factor, v), v)
        back = [tables.contract([tables.factor], [one]) for one in np.atleast_2d(cells)]
        return direct + np.stack(back, axis=-1).reshape(v.shape)

    def score_sums(self, v: Floats) -> tuple[Floats, Floats]:
        tables, layout = self.tables, self.layout
        two, own, width = tables.tails[:2], to_levels(layout, v), layout.widest + 1
        upto = np.cumsum(np.concatenate([0 * own[:1], own]), axis=0).T.ravel().astype(tables.moments.dtype)
        spread = np.stack([tables.weighted(table, v) for table in two])
        by_category, by_cell, by_item, squares, twice = self.rows.sum(score_sums, spread, upto, v)
        by_category = by_category.reshape(2, len(tables.grid), -1, width).astype(np.float64, copy=False)
        # (P - x) (P - x)' = P P' - P x' - x P' + x x', where x is 1 for thresholds at or below the category
        tails = [table.reshape(layout.widest, len(tables.grid), -1) for table in two]
        cross = sum(np.einsum("kgi,gic->ikc", *each) for each in zip(tails, by_category, strict=True))
        cross, count, z = (
            each[..., ::-1].cumsum(axis=-1)[..., -2::-1]  # at or above each category
            for each in (cross, by_category[0].sum(axis=0), by_item.reshape(-1, width))
        )
        both = products(tables, by_category.sum(axis=-1).reshape(2, -1), by_cell[0])
        squares = squares + both - cross - cross.transpose(0, 2, 1) + count[:, _higher(layout.widest)]
        twice = twice + tables.contract(two, by_cell[1:])
        return squares, twice - z[layout.item, layout.level - 1]

    def far_items(self, beta: Floats, step: Floats, prior: Any) -> Floats:
        """Items with few answers that a step has moved far, brought to where their own score is zero.

        Such a threshold comes nearer by no more than a logit a step, which is a pass over the answers; this is
        arithmetic on tables of few items.
        """
        layout, grid, size = self.layout, self.tables.grid, len(self.collected)
        moved = np.abs(step) > max(FAR, FARTHER * float(np.median(np.abs(step))))
        far = np.unique(layout.item[moved if prior is None else moved | (prior.counts > 0)])
        if not len(far):
            return beta
        own, few = layout.of_items(far), Thresholds(layout.max_score[far])
        cells = self.collected.reshape(size, len(grid), -1)[:, :, far].reshape(size, -1)
        # What people with exact sums expect stays as it is.
        others = self.gradient[own] - self.tables.contract(self.tables.tails, self.collected)[own]
        penalty = 0.0 if prior is None else prior.within()[far][:, : few.widest, : few.widest]
        inside = few.table(np.ones(few.n_entries), 0.0)
        for _ in range(OWN_STEPS):
            tables = Tables.at(few, beta[own], grid, self.tables.order)
            levels = tables.levels(tables.tails, cells)
            told = levels.T[:, _higher(few.widest)] - products(tables, cells, cells[-2])
            ridge = 1e-3 * np.maximum(np.einsum("ikk->ik", told), 1e-3) + (1 - inside)
            matrix = told + penalty + ridge[:, :, None] * np.eye(few.widest)
            score = levels[few.level - 1, few.item] + others - (0.0 if prior is None else (prior @ beta)[own])
            beta = beta.copy()
            beta[own] += np.clip(by_blocks(few, np.linalg.inv(matrix), score), -1.0, 1.0)
        return beta


def _higher(width: int) -> Ints:
    return np.maximum.outer(np.arange(width), np.arange(width))


def _scale(tables: Tables, count: Floats, blocks: Floats, pairs: Floats) -> Floats:
    """Numbers for the factors of the thresholds with which C' C 1 = (D + c c') 1, about.

    (C 1)_l is sqrt(V) times the mean of the numbers over the factors that people of this ability meet.
    """
    layout, n = tables.layout, len(tables.grid)
    scale = ones = np.ones(layout.n_entries)
    met = np.empty((n, layout.widest * layout.n_items))
    each = tables.factor.reshape(layout.widest, n, -1).swapaxes(0, 1)
    np.multiply(each, count.reshape(n, 1, -1), out=met.reshape(each.shape))
    target, plain = by_blocks(layout, blocks, ones), met.sum(axis=1)
    for _ in range(SCALING):
        mean = np.divide(met @ to_levels(layout, scale).ravel(), plain, out=np.ones(n), where=plain > 0)
        between = (mean @ met).reshape(layout.widest, -1)[layout.level - 1, layout.item]
        between -= by_blocks(layout, pairs, scale)
        new = np.divide(target, between, out=ones.copy(), where=between > 1e-9 * target)
        scale = np.sqrt(scale * np.clip(new, 0.5, 2.0))
    return scale


def products(tables: Tables, collected: Any, squared: Floats) -> Floats:
    """Sums over people of P_k P_k' for the levels of every item; from those of u and of u_1^2, as far as these go."""

    def mixed(k: int) -> list[Floats]:
        total = tables.tails[0, k] * (collected[0] / 2)
        for tail, u in zip(tables.tails[1:3, k], collected[1:3], strict=False):
            total += tail * u
        return [total, tables.tails[1, k] * (squared / 2)]

    half = tables.pairs(tables.tails[:2], mixed)
    return half + half.transpose(0, 2, 1)
