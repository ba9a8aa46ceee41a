"""The conditional likelihood of answers in categories, person by person, and what they add up to.

People with much information are `LongRows`: what they add is collected for every ability of a grid and every item, and
multiplied with the items' tables afterwards (`series_tables`). The others are exact (`pattern_rows`), each pattern of
items and total score once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.weights import prox_ability
from spectral_irt.conditional.given_score import answers_above, padded, series_limit
from spectral_irt.conditional.information import Levels, PeopleRows, Point, balanced, by_blocks
from spectral_irt.conditional.pattern_rows import PatternRows
from spectral_irt.conditional.series_tables import Tables, Terms, grid_over, weights
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.packing import person_chunks
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import row_keys
from spectral_irt.data.thresholds import Rows, Thresholds, rows_of
from spectral_irt.engine import Prepared
from spectral_irt.sparse_kernels import csr, shared_ones

TRIES = 20  # of bringing an ability near a point of the grid
NEAR = 0.7  # of the distance between points: within it the shift of `series_tables` does
# The error of the series for a threshold of a person whose answers count as N equal ones: this times N^-3, or N^-2 with
# fewer terms, which do where people have many answers.
SERIES_ERROR = 0.05
BRIEF, BRIEF_ERROR = Terms(4, 1), 0.03
SEVERAL = 0.02  # share of the answers that fewer terms may make exact sums of
LIMITS = np.concatenate([np.arange(4.0, 60.0, 2.0), [np.inf]])
REPEATED = 4  # people with the same items and the same score from whom on exact sums are cheap
LOOKED_AT = 256  # people of a block by whom it is known whether patterns repeat
USED = 3  # terms of the series in sums of squares, which the others hardly change
PIECE = 32_768  # answers at a time
THIN_STEPS = 4  # of items with a prior by themselves


@dataclass(frozen=True, eq=False)
class LongRows:
    """People with much information.

    Attributes
    ----------
    rows : Rows
        Their items, categories and total scores.
    at : int array
        The ability of the grid that each is near.
    cells, cells_t : sparse matrices
        The 0/1 matrix of people and cells, and its transpose.
    weight : float array, optional
        How much each counts.
    u : float array, (order + 1) x people
    factor : float array, n_factors x people
        u_0 / T, u_1 / T and u_2 / T: c = (w + u_1 w' + u_2 w'') / T with w = dP(X >= k) / dtheta of the tables.
    """

    rows: Rows
    at: NDArray[np.int32]
    cells: sparse.csr_array
    cells_t: sparse.csc_array
    weight: Floats | None
    u: Floats
    factor: Floats

    def scores(self, layout: Thresholds, tables: list[Floats], start: int = 0, stop: int | None = None) -> Levels:
        """P(X >= k | s) - 1{X >= k} by so many terms of the series, of these people."""
        rows = self.rows.part(start, self.rows.n_persons if stop is None else stop)
        own = self.levels(layout, tables, self.u[: len(tables), start:stop], rows, self.rows.indptr[start])
        return own.less_passed(rows.category, None if self.weight is None else self.weight[start:stop])

    def levels(self, layout: Thresholds, tables: list[Floats], by: Floats, rows: Rows, first: int = 0) -> Levels:
        """sum over r of by_r tables_r, people x thresholds; of those whose first answer is this one."""
        where = self.cells.indices[first : first + len(rows.items)]
        total = np.zeros((layout.widest, len(where)))
        for table, each in zip(tables, by, strict=True):
            total += table.take(where, axis=1) * np.repeat(each, rows.counts)
        return Levels(rows.indptr.astype(np.int32), rows.items, total, layout)


def times(matrix: Any, vectors: Floats) -> Floats:
    """The matrix times each of these vectors: one at a time, which is twice as fast as the columns of a matrix."""
    return np.stack([matrix @ one for one in vectors])


def cells_of(rows: Rows, at: NDArray[np.int32], tables: Tables) -> sparse.csr_array:
    """The 0/1 matrix of people and cells."""
    m = tables.layout.n_items
    columns = np.repeat((at * m).astype(np.int32), rows.counts)
    columns += rows.items
    indptr = rows.indptr.astype(np.int32)
    return csr(indptr, columns, shared_ones(len(columns)), len(tables.grid) * m)


@dataclass(frozen=True, eq=False)
class TableRows(PeopleRows):
    """The informative people of one block: those with much information, and the others."""

    long: LongRows
    exact: PatternRows
    layout: Thresholds
    weight: Floats | None

    def scores(self, tables: Tables) -> Levels:
        return self.long.scores(self.layout, tables.tails).with_more(self.exact.scores())

    def factors(self, tables: Tables) -> Levels:
        long = self.long
        return long.levels(self.layout, tables.factors, long.factor, long.rows).with_more(self.exact.factors())

    def score_sums(self, tables: Tables, v: Floats) -> tuple[Floats, Floats]:
        """By few terms of the series, and some people at a time, whose numbers stay in a core's cache."""
        squares, twice = self.exact.score_sums(None, v)
        for start, stop in person_chunks(self.long.rows.indptr, PIECE):
            scores = self.long.scores(self.layout, tables.tails[:USED], start, stop)
            squares, twice = squares + scores.squares(), twice + scores.twice(v)
        return squares, twice


# ------------------------------------------------------------------------------------------ making


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
        rows = rows_of(block, layout)
        theta = prox_ability(block, beta, layout)
        return cls(rows, weight, theta, _repeated(rows, layout), np.empty(0, np.int32), np.empty(0))

    def settled(self, tables: Tables) -> _People:
        """At the point of the grid where the expected total score is nearest."""
        rows, at = self.rows, tables.nearest(self.theta)
        for _ in range(TRIES):
            cells = cells_of(rows, at, tables)
            mean, variance = times(cells, tables.moments[:2])
            move = (rows.scores - mean) / np.maximum(variance, 1e-12)
            there = tables.nearest(tables.grid[at] + np.clip(move, -1, 1))
            if not np.any(np.abs(move) > NEAR * tables.apart) or np.array_equal(there, at):
                break
            at = np.where(np.abs(move) > NEAR * tables.apart, there, at).astype(np.int32)
        square = cells @ tables.moments[-1]
        size = np.minimum(variance, variance**2 / np.maximum(square, 1e-300))
        size[(np.abs(move) > tables.apart) | ~rows.informative] = 0  # beyond the grid, or without a say
        return replace(self, at=at, size=size)

    def rows_from(self, least: float, tables: Tables, layout: Thresholds) -> TableRows:
        exact = (self.size < least) | self.repeated
        who = np.flatnonzero(~exact & self.rows.informative)
        who = who[np.argsort(self.at[who], kind="stable")]  # neighbors in the table stay in the cache
        others = np.flatnonzero(exact & self.rows.informative)
        rows, at, nothing = self.rows.take(who), self.at[who], np.empty((0, 0))
        everyone, mine, theirs = (
            None if self.weight is None else self.weight[some] for some in (np.concatenate([who, others]), who, others)
        )
        cells = cells_of(rows, at, tables)
        long = LongRows(rows, at, cells, cells.T, mine, nothing, nothing)
        return TableRows(long, PatternRows.of(self.rows.take(others), theirs, layout), layout, everyone)


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
    ends = list(people.map(_ends))
    grid = grid_over(min(low for low, _ in ends), max(high for _, high in ends), layout)
    rough = Tables.at(layout, beta, grid, Terms(0))
    people = people.prepare(_People.settled, rough)
    answers, counts = people.sum(_by_size), responses.item_counts
    terms, (least, exact) = BRIEF, series_limit(answers, LIMITS, BRIEF_ERROR / LIMITS**2, counts, allowed)
    if exact > SEVERAL:
        terms, (least, _) = Terms(), series_limit(answers, LIMITS, SERIES_ERROR / LIMITS**3, counts, allowed)
    return people.prepare(_People.rows_from, least, rough, layout), replace(rough, terms=terms)


def _ends(people: _People) -> tuple[float, float]:
    return float(people.theta.min(initial=0.0)), float(people.theta.max(initial=0.0))


def _by_size(people: _People) -> Floats:
    return answers_above(LIMITS, people.size, np.where(people.repeated, 0, people.rows.counts))


# -------------------------------------------------------------------------------------- evaluating


def evaluate(part: TableRows, tables: Tables, cumulated: Floats) -> tuple[TableRows, tuple[Any, ...]]:
    """The rows at other thresholds, and sums: what the long ones collect for every cell; those of the exact ones."""
    long, columns = _advanced(part.long, tables)
    exact, (_, *sums) = part.exact.evaluated(cumulated)
    return replace(part, long=long, exact=exact), (times(long.cells_t, columns), *sums)


def _advanced(long: LongRows, tables: Tables) -> tuple[LongRows, Floats]:
    rows, at, cells, terms = long.rows, long.at, long.cells, tables.terms
    if not rows.n_persons:
        nothing = np.empty((terms.size, 0))
        return replace(long, u=nothing[: terms.square], factor=nothing[: terms.n_factors]), nothing
    for _ in range(2):
        mean, variance = times(cells, tables.moments[:2])
        move = (rows.scores - mean) / variance
        far = np.abs(move) > NEAR * tables.apart
        there = np.where(far, tables.nearest(tables.grid[at] + np.clip(move, -1, 1)), at).astype(np.int32)
        if np.array_equal(there, at):
            break
        at = there
        cells = cells_of(rows, at, tables)
    cumulants = np.concatenate([variance[None], times(cells, tables.moments[2:-1])])
    u = weights(rows.scores - mean, cumulants, tables.apart)
    # D_i 1 given the score is w + u_1 w' + u_2 w'' - w v / V, and T - s_i is T (1 - v / V): the last term cancels.
    told, spread = u[: terms.n_factors], cumulants[: terms.n_factors]
    factor = told / np.sqrt(np.maximum((told * spread).sum(axis=0), variance / 2))
    columns = np.empty((terms.size, rows.n_persons))
    columns[: terms.square] = u
    columns[terms.square] = u[1] ** 2
    if long.weight is not None:
        columns[: terms.square + 1] *= long.weight
        factor *= np.sqrt(long.weight)
    columns[terms.factors] = factor[0] * factor
    columns[terms.around] = factor * (factor * spread).sum(axis=0)  # times C 1
    cells_t = long.cells_t if cells is long.cells else cells.T
    return replace(long, at=at, cells=cells, cells_t=cells_t, u=u, factor=factor), columns


def factors_twice(part: TableRows, spread: Floats, v: Floats) -> tuple[Floats, Floats]:
    """C' C v: in cells for the long rows, with `spread` the sums of v in the tables' `factors`; and for the others."""
    collected, long = np.zeros_like(spread), part.long
    for column in range(spread.shape[1]):
        each = sum(one * (long.cells @ cells) for one, cells in zip(long.factor, spread[:, column], strict=True))
        collected[:, column] = times(long.cells_t, long.factor * each)
    return collected, part.exact.factors_twice(None, v)


# ----------------------------------------------------------------------------------- the likelihood there


@dataclass(frozen=True, eq=False)
class TablePoint(Point):
    """The likelihood at some thresholds; `collected` is what the long people add."""

    collected: Floats = field(kw_only=True)

    @classmethod
    def at(cls, tables: Tables, rows: Prepared, beta: Floats, passed: Floats) -> TablePoint:
        layout = tables.layout
        tables = Tables.at(layout, beta, tables.grid, tables.terms)
        rows, sums = rows.map_and_sum(evaluate, tables, padded(layout, beta))
        expected, own, inner = information_of(tables, sums)
        return cls(beta, layout, rows, expected - passed, own, inner, tables, collected=sums[0])

    def factors_twice(self, v: Floats) -> Floats:
        columns = v if v.ndim == 2 else v[:, None]
        tables = self.tables
        cells, direct = self.rows.sum(factors_twice, tables.weighted(tables.factors, columns), v)
        back = [tables.contract(tables.factors, cells[:, k]) for k in range(columns.shape[1])]
        return direct + np.stack(back, axis=1).reshape(v.shape)

    def beyond_thin(self, beta: Floats, prior: Any) -> Floats:
        """Items with a prior, brought to where their own score is zero, people and the other items as they are.

        Far from its place a threshold with few answers comes nearer by no more than a logit a step, and a step for all
        items is a pass over the answers; this is arithmetic on tables of few items.
        """
        layout, grid = self.layout, self.tables.grid
        thin = np.unique(layout.item[prior.counts > 0])
        own = layout.of_items(thin)
        few, size = Thresholds(layout.max_score[thin]), len(self.collected)
        cells = self.collected.reshape(size, len(grid), -1)[:, :, thin].reshape(size, -1)
        # What people with exact sums expect stays as it is.
        others = self.gradient[own] - self.tables.contract(self.tables.tails, self.collected)[own]
        penalty = prior.within()[thin][:, : few.widest, : few.widest]
        inside = few.table(np.ones(few.n_entries), 0.0)
        for _ in range(THIN_STEPS):
            tables = Tables.at(few, beta[own], grid, self.tables.terms)
            levels = tables.levels(tables.tails, cells)
            told = levels.T[:, _higher(few.widest)] - products(tables, cells, cells[tables.terms.square])
            ridge = 1e-3 * np.maximum(np.einsum("ikk->ik", told), 1e-3) + (1 - inside)
            matrix = told + penalty + ridge[:, :, None] * np.eye(few.widest)
            score = levels[few.level - 1, few.item] + others - (prior @ beta)[own]
            beta = beta.copy()
            beta[own] += np.clip(by_blocks(few, np.linalg.inv(matrix), score), -1.0, 1.0)
        return beta


def _higher(width: int) -> Ints:
    return np.maximum.outer(np.arange(width), np.arange(width))


def information_of(tables: Tables, sums: tuple[Floats, ...]) -> tuple[Floats, Floats, Floats]:
    """Expected numbers of people who passed each threshold; the information's blocks, without and with c c'."""
    collected, expected, own, outer, around = sums
    layout, terms = tables.layout, tables.terms
    levels = tables.levels(tables.tails, collected)
    expected = expected + levels[layout.level - 1, layout.item]
    own = own + levels.T[:, _higher(layout.widest)] - products(tables, collected, collected[terms.square])
    w, *further = (tables.by_item(one) for one in tables.factors)
    first, *others = collected[terms.factors]
    mixed = sum((tables.pairs(w, one, weight) for one, weight in zip(further, others, strict=True)), np.zeros_like(own))
    outer = outer + tables.pairs(w, w, first) + mixed + mixed.transpose(0, 2, 1)
    around = around + tables.contract(tables.factors, collected[terms.around])
    return expected, *balanced(layout, own, outer, around)


def products(tables: Tables, collected: Floats, squared: Floats) -> Floats:
    """Sums over people of P_k P_k' for the levels of every item, to second order; from those of u and of u_1^2."""
    h, w, second = (tables.by_item(one) for one in tables.tails[:3])
    mixed = tables.pairs(h, w, collected[1]) + tables.pairs(h, second, collected[2])
    squares = tables.pairs(h, h, collected[0]) + tables.pairs(w, w, squared)
    return squares + mixed + mixed.transpose(0, 2, 1)
