"""The score and the information of the conditional likelihood of ordered answers, person by person.

People with much information are `LongRows`: what they add is collected for every ability of a grid and every item, and
multiplied with the items' tables afterwards (`series_tables`). The others are exact (`step_exact`),
each pattern of items and total score once.

The information is matched, as that of right and wrong answers (`information`): given the score, thresholds of one item
have the covariance D_i of the category probabilities, those of two items -c_i c_j'. Rows add to zero, so c_i (T - s_i)
= D_i 1 with s_i the sum of c_i and T that of all s: the s are the `links` of the variances of the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.series_tables import StepTables, Terms, grid_over, weights
from spectral_irt.conditional.step_exact import ExactRows
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import row_keys
from spectral_irt.data.thresholds import Rows, Thresholds, rows_of
from spectral_irt.engine import Prepared
from spectral_irt.model import prox
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
    u : float array, (order + 1) x people
    link : float array, n_links x people
        u_0 / T, u_1 / T and u_2 / T: c = (w + u_1 w' + u_2 w'') / T with w = dP(X >= k) / dtheta of the tables.
    """

    rows: Rows
    passed: sparse.csr_array
    at: NDArray[np.int32]
    cells: sparse.csr_array
    cells_t: sparse.csc_array
    u: Floats
    link: Floats

    @classmethod
    def of(cls, rows: Rows, passed: sparse.csr_array, at: NDArray[np.int32], tables: StepTables) -> LongRows:
        cells, nothing = cells_of(rows, at, tables), np.empty((0, 0))
        return cls(rows, passed, at, cells, cells.T, nothing, nothing)


def times(matrix: Any, vectors: Floats) -> Floats:
    """The matrix times each of these vectors: one at a time, which is twice as fast as the columns of a matrix."""
    return np.stack([matrix @ one for one in vectors])


def cells_of(rows: Rows, at: NDArray[np.int32], tables: StepTables) -> sparse.csr_array:
    """The 0/1 matrix of people and cells."""
    m = tables.steps.n_items
    columns = np.repeat((at * m).astype(np.int32), rows.counts)
    columns += rows.items
    indptr = rows.indptr.astype(np.int32)
    return csr(indptr, columns, shared_ones(len(columns)), len(tables.grid) * m)


@dataclass(frozen=True, eq=False)
class StepRows:
    """The informative people of one block."""

    long: LongRows | None
    exact: ExactRows | None
    steps: Thresholds


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

    @classmethod
    def of(cls, block: Block, steps: Thresholds, beta: Floats) -> _People:
        rows = rows_of(block, steps)
        passed = block.halves(steps.n_entries)[0]
        if not rows.informative.all():
            who = np.flatnonzero(rows.informative)
            rows, passed = rows.take(who), _rows_of_matrix(passed, who)
        sums = [np.bincount(steps.item, weights=beta**power, minlength=steps.n_items) for power in (1, 2)]
        mean, square = (rows.sums(one[rows.items]) / rows.most for one in sums)
        theta = prox(mean, np.maximum(square - mean**2, 0), np.log(rows.scores / (rows.most - rows.scores)))
        return cls(rows, passed, theta, np.empty(0, np.int32), np.empty(0), _repeated(rows, steps))

    def settled(self, tables: StepTables) -> _People:
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

    def rows_from(self, least: float, tables: StepTables, steps: Thresholds) -> StepRows:
        exact = (self.size < least) | self.repeated
        long = brief = None
        if not exact.all():
            who = np.flatnonzero(~exact)
            who = who[np.argsort(self.at[who], kind="stable")]  # neighbors in the table stay in the cache
            long = LongRows.of(self.rows.take(who), _rows_of_matrix(self.passed, who), self.at[who], tables)
        if exact.any():
            who = np.flatnonzero(exact)
            brief = ExactRows.of(self.rows.take(who), _rows_of_matrix(self.passed, who), steps)
        return StepRows(long, brief, steps)


def _rows_of_matrix(matrix: sparse.csr_array, who: Ints) -> sparse.csr_array:
    counts = np.diff(matrix.indptr)[who]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    where = np.repeat(matrix.indptr[:-1][who] - indptr[:-1], counts) + np.arange(indptr[-1])
    return csr(indptr.astype(np.int32), matrix.indices[where], shared_ones(len(where)), matrix.shape[1])


def _repeated(rows: Rows, steps: Thresholds) -> NDArray[np.bool_]:
    """People whose items and total score many others of the block have; nobody, where a first look finds few."""
    few = rows.part(0, min(LOOKED_AT, rows.n_persons))
    if len(np.unique(row_keys(few, steps, np.zeros(few.n_persons, dtype=np.int64)))) * 2 > few.n_persons:
        return np.zeros(rows.n_persons, dtype=bool)
    _, of_person, count = np.unique(row_keys(rows, steps, rows.scores), return_inverse=True, return_counts=True)
    return count[of_person.ravel()] >= REPEATED


def prepare_step_rows(responses: Responses, beta: Floats, allowed: float) -> tuple[Prepared, StepTables]:
    """All people, ready to be evaluated, and tables; exact where the series would move a threshold by more.

    As `rows.prepare_rows` does it: the series is off by about .05 / N^3 for a threshold of a person whose answers tell
    as much as N equal ones (by comparison with exact sums), and that over the answers of the item with most of them is
    to stay within `allowed` standard errors.
    """
    steps = responses.thresholds
    people = responses.entries.prepare(_People.of, steps, beta)
    ends = list(people.map(_ends))
    grid = grid_over(min(low for low, _ in ends), max(high for _, high in ends), steps)
    rough = StepTables.at(steps, beta, grid, Terms(0))
    people = people.prepare(_People.settled, rough)
    answers = people.sum(_by_size)
    each = np.sqrt(responses.item_counts.max(initial=0) / 0.18) * answers / max(answers.sum(), 1)
    terms, least = BRIEF, _limit(each * BRIEF_ERROR / LIMITS**2, allowed)
    if answers[least > LIMITS].sum() > SEVERAL * answers.sum():
        terms, least = Terms(), _limit(each * SERIES_ERROR / LIMITS**3, allowed)
    return people.prepare(_People.rows_from, least, rough, steps), replace(rough, terms=terms)


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


def evaluate(part: StepRows, tables: StepTables, cumulated: Floats) -> tuple[StepRows, tuple[Any, ...]]:
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
    exact, sums = (None, _nothing(part.steps)) if part.exact is None else part.exact.evaluated(cumulated)
    return replace(part, long=long, exact=exact), (collected, *sums)


def _nothing(steps: Thresholds) -> tuple[Floats, Floats, Floats, Floats]:
    square = (steps.n_items, steps.widest, steps.widest)
    return np.zeros(steps.n_entries), np.zeros(square), np.zeros(square), np.zeros(steps.n_entries)


def _advanced(long: LongRows, tables: StepTables) -> tuple[LongRows, Floats]:
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
    told, spread = u[: terms.n_links], cumulants[: terms.n_links]
    link = told / np.sqrt(np.maximum((told * spread).sum(axis=0), variance / 2))
    columns = np.empty((terms.size, rows.n_persons))
    columns[: terms.square] = u
    columns[terms.square] = u[1] ** 2
    columns[terms.links] = link[0] * link
    columns[terms.around] = link * (link * spread).sum(axis=0)  # times C 1
    cells_t = long.cells_t if cells is long.cells else cells.T
    return replace(long, at=at, cells=cells, cells_t=cells_t, u=u, link=link), columns


def linked(part: StepRows, spread: Floats, v: Floats) -> tuple[Floats, Floats]:
    """C' C v: in cells for the long rows, where `spread` are the `linking` tables' sums of v; and for the others."""
    collected, direct = np.zeros_like(spread), np.zeros_like(v)
    if part.long is not None:
        long = part.long
        for column in range(spread.shape[1]):
            each = sum(one * (long.cells @ cells) for one, cells in zip(long.link, spread[:, column], strict=True))
            collected[:, column] = times(long.cells_t, long.link * each)
    if part.exact is not None:
        direct = part.exact.linked(v)
    return collected, direct
