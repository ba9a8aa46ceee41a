"""The score and the information of the conditional likelihood of answers in categories, person by person.

People with much information are `LongRows`: what they add is collected for every ability of a grid and every item, and
multiplied with the items' tables afterwards (`series_tables`). The others are exact (`pattern_rows`), each pattern of
items and total score once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.weights import prox_ability
from spectral_irt.conditional.pattern_rows import PatternRows, less_passed, weighted
from spectral_irt.conditional.series_tables import Tables, Terms, grid_over, weights
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import row_keys
from spectral_irt.data.thresholds import Rows, Thresholds, rows_of
from spectral_irt.engine import Prepared
from spectral_irt.numerics import gram_of
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


@dataclass(frozen=True, eq=False)
class LongRows:
    """People with much information.

    Attributes
    ----------
    rows : Rows
        Their items and total scores.
    passed : csr matrix, people x thresholds
        The threshold that each answer passed last.
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
    passed: sparse.csr_array
    at: NDArray[np.int32]
    cells: sparse.csr_array
    cells_t: sparse.csc_array
    weight: Floats | None
    u: Floats
    factor: Floats

    @classmethod
    def of(cls, people: _People, who: Ints, tables: Tables) -> LongRows:
        rows, at = people.rows.take(who), people.at[who]
        cells, nothing = cells_of(rows, at, tables), np.empty((0, 0))
        return cls(
            rows, _rows_of_matrix(people.passed, who), at, cells, cells.T, people.weight_of(who), nothing, nothing
        )

    def matrix(self, layout: Thresholds, tables: list[Floats], by: Floats) -> sparse.csr_array:
        """sum over r of by_r tables_r, people x thresholds: those of the items that they answered, in order."""
        rows, where = self.rows, self.cells.indices
        total: Any = 0.0
        for table, each in zip(tables, by, strict=True):
            total = total + table[:, where] * np.repeat(each, rows.counts)
        counts = layout.max_score[rows.items]
        inside = np.arange(layout.widest) < counts[:, None]
        columns = (layout.first[rows.items][:, None] + np.arange(layout.widest))[inside]
        indptr = np.concatenate([[0], np.cumsum(counts)])[rows.indptr].astype(np.int32)
        values = np.ascontiguousarray(total.T)[inside]
        return csr(indptr, columns.astype(np.int32), values, layout.n_entries)

    def scores(self, layout: Thresholds, tables: Tables) -> sparse.csr_array:
        """P(X >= k | s) - 1{X >= k}, people x thresholds, by their weights."""
        return weighted(less_passed(self.matrix(layout, tables.tails, self.u), self.passed, layout), self.weight)


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
class TableRows:
    """The informative people of one block."""

    long: LongRows | None
    exact: PatternRows | None
    layout: Thresholds

    def stacked(self, of_long: Any, of_exact: Any) -> sparse.csr_array:
        """What the long people and the exact ones give, one below the other."""
        there = [] if self.long is None else [of_long(self.long)]
        there += [] if self.exact is None else [of_exact(self.exact)]
        return there[0] if len(there) == 1 else sparse.csr_array(sparse.vstack(there))


# ------------------------------------------------------------------------------------------ making


@dataclass(frozen=True, eq=False)
class _People:
    """Informative people with abilities of the grid, the information of their answers and how many it is worth."""

    rows: Rows
    passed: sparse.csr_array
    theta: Floats
    at: NDArray[np.int32]
    size: Floats
    repeated: NDArray[np.bool_]
    weight: Floats | None

    @classmethod
    def of(cls, block: Block, weight: Floats | None, layout: Thresholds, beta: Floats) -> _People:
        rows = rows_of(block, layout)
        passed, theta = block.halves(layout.n_entries)[0], prox_ability(block, beta, layout)
        if not rows.informative.all():
            who = np.flatnonzero(rows.informative)
            rows, passed, theta = rows.take(who), _rows_of_matrix(passed, who), theta[who]
            weight = None if weight is None else weight[who]
        return cls(rows, passed, theta, np.empty(0, np.int32), np.empty(0), _repeated(rows, layout), weight)

    def weight_of(self, who: Ints) -> Floats | None:
        return None if self.weight is None else self.weight[who]

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
        size[np.abs(move) > tables.apart] = 0  # beyond the grid
        return replace(self, at=at, size=size)

    def rows_from(self, least: float, tables: Tables, layout: Thresholds) -> TableRows:
        exact = (self.size < least) | self.repeated
        long = brief = None
        if not exact.all():
            who = np.flatnonzero(~exact)
            who = who[np.argsort(self.at[who], kind="stable")]  # neighbors in the table stay in the cache
            long = LongRows.of(self, who, tables)
        if exact.any():
            who = np.flatnonzero(exact)
            brief = PatternRows.of(self.rows.take(who), _rows_of_matrix(self.passed, who), layout, self.weight_of(who))
        return TableRows(long, brief, layout)


def _rows_of_matrix(matrix: sparse.csr_array, who: Ints) -> sparse.csr_array:
    counts = np.diff(matrix.indptr)[who]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    where = np.repeat(matrix.indptr[:-1][who] - indptr[:-1], counts) + np.arange(indptr[-1])
    return csr(indptr.astype(np.int32), matrix.indices[where], shared_ones(len(where)), matrix.shape[1])


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
    """All people, ready to be evaluated, and tables; exact where the series would move a threshold by more.

    As `binary_rows.prepare_people` does it: the series is off by about .05 / N^3 for a threshold of a person whose
    answers tell as much as N equal ones (by comparison with exact sums), and that over the answers of the item with
    most of them is to stay within `allowed` standard errors.
    """
    layout = responses.thresholds
    people = responses.entries.prepare(_People.of, layout, beta, persons=(weights_of_people,))
    ends = list(people.map(_ends))
    grid = grid_over(min(low for low, _ in ends), max(high for _, high in ends), layout)
    rough = Tables.at(layout, beta, grid, Terms(0))
    people = people.prepare(_People.settled, rough)
    answers = people.sum(_by_size)
    each = np.sqrt(responses.item_counts.max(initial=0) / 0.18) * answers / max(answers.sum(), 1)
    terms, least = BRIEF, _limit(each * BRIEF_ERROR / LIMITS**2, allowed)
    if answers[least > LIMITS].sum() > SEVERAL * answers.sum():
        terms, least = Terms(), _limit(each * SERIES_ERROR / LIMITS**3, allowed)
    return people.prepare(_People.rows_from, least, rough, layout), replace(rough, terms=terms)


def _limit(off: Floats, allowed: float) -> float:
    """The size above which all that is off stays within what is allowed."""
    return float(LIMITS[np.argmax(np.cumsum(off[::-1])[::-1] <= allowed)])


def _ends(people: _People) -> tuple[float, float]:
    return float(people.theta.min(initial=0.0)), float(people.theta.max(initial=0.0))


def _by_size(people: _People) -> Floats:
    """Answers of people whose size lies above each of `LIMITS`, and below the next."""
    place = np.searchsorted(LIMITS, people.size, side="right") - 1
    counts = np.where((place < 0) | people.repeated, 0, people.rows.counts)
    return np.bincount(np.maximum(place, 0), weights=counts, minlength=len(LIMITS)).astype(np.float64)


# -------------------------------------------------------------------------------------- evaluating


def evaluate(part: TableRows, tables: Tables, cumulated: Floats) -> tuple[TableRows, tuple[Any, ...]]:
    """The rows at other thresholds, and sums: what the long ones collect for every cell; and those of the exact ones.

    The latter are the expected number of people who passed each threshold; D and c c' of every item, levels x levels;
    and C' C 1.
    """
    long = part.long
    if long is None:
        collected = np.zeros((tables.terms.size, tables.n_cells))
    else:
        long, columns = _advanced(long, tables)
        collected = times(long.cells_t, columns)
    exact, sums = None, _nothing(part.layout)
    if part.exact is not None:
        exact, sums, _ = part.exact.evaluated(cumulated)
    return replace(part, long=long, exact=exact), (collected, *sums)


def _nothing(layout: Thresholds) -> tuple[Floats, Floats, Floats, Floats]:
    square = (layout.n_items, layout.widest, layout.widest)
    return np.zeros(layout.n_entries), np.zeros(square), np.zeros(square), np.zeros(layout.n_entries)


def _advanced(long: LongRows, tables: Tables) -> tuple[LongRows, Floats]:
    rows, at, cells, terms = long.rows, long.at, long.cells, tables.terms
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
    collected, direct = np.zeros_like(spread), np.zeros_like(v)
    if part.long is not None:
        long = part.long
        for column in range(spread.shape[1]):
            each = sum(one * (long.cells @ cells) for one, cells in zip(long.factor, spread[:, column], strict=True))
            collected[:, column] = times(long.cells_t, long.factor * each)
    if part.exact is not None:
        direct = part.exact.factors_twice(v)
    return collected, direct


def score_matrix(part: TableRows, tables: Tables) -> sparse.csr_array:
    """P(X >= k | s) - 1{X >= k}, people x thresholds."""
    return part.stacked(lambda long: long.scores(part.layout, tables), PatternRows.scores)


def score_gram(part: TableRows, tables: Tables, design: sparse.csr_array | None) -> Any:
    return gram_of(score_matrix(part, tables), design)


def factor_gram(part: TableRows, tables: Tables, design: sparse.csr_array | None) -> Any:
    factors = part.stacked(lambda long: long.matrix(part.layout, tables.factors, long.factor), PatternRows.factors)
    return gram_of(factors, design)
