"""Standard errors of thresholds and locations where the landing of ordered answers ended: the sandwich.

As `landing_errors` for right and wrong answers: H is the matched information plus the prior's matrix, M the sum over
people of their scores' squares plus the covariance of the prior's pull, and the errors those of H^-1 M H^-1. "dense"
forms the matrices; "one-pass" takes H for the blocks of its items and a common shift, right where the chain mixes fast;
"multiplier" corrects that by solves for random right-hand sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.series_tables import StepTables
from spectral_irt.conditional.step_rows import StepRows, times
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.estimators.landing_errors import CLOSE, PROBES, from_anchors
from spectral_irt.estimators.step_landing import StepLanded, by_blocks, from_levels, products
from spectral_irt.numerics import centered_inverse, gram
from spectral_irt.sparse_kernels import csr

USED = 3  # terms of the series in sums of squares, which the others hardly change
FEW_PROBES, FAST = 20, 0.6  # where the chain mixes faster than this, the correction is small, and noise in it smaller


# ----------------------------------------------------------------------------- people x thresholds


def score_matrix(part: StepRows, tables: StepTables) -> sparse.csr_array:
    """P(X >= k | s) - 1{X >= k}, people x thresholds: those of the items that they answered, in order."""
    return _stack(
        [
            None
            if part.long is None
            else _less(_of_long(part, tables, tables.tails, part.long.u), part.long.passed, part.steps),
            None if part.exact is None else _less(part.exact.expected_rows(), part.exact.passed, part.steps),
        ]
    )


def link_matrix(part: StepRows, tables: StepTables) -> sparse.csr_array:
    """c of every person, or of every pattern times the root of their number."""
    exact = None if part.exact is None else part.exact.link
    return _stack(
        [
            None if part.long is None else _of_long(part, tables, tables.linking, part.long.link),
            None if exact is None else sparse.csr_array(exact[:, : part.steps.n_entries]),
        ]
    )


def _stack(matrices: list[Any]) -> sparse.csr_array:
    there = [one for one in matrices if one is not None]
    return there[0] if len(there) == 1 else sparse.csr_array(sparse.vstack(there))


def _of_long(part: StepRows, tables: StepTables, terms: list[Floats], weight: Floats) -> sparse.csr_array:
    """sum over r of weight_r terms_r, people x thresholds."""
    assert part.long is not None
    steps, rows, where = part.steps, part.long.rows, part.long.cells.indices
    total: Any = 0.0
    for r, table in enumerate(terms):
        total = total + table[:, where] * np.repeat(weight[r], rows.counts)
    counts = steps.max_score[rows.items]
    inside = np.arange(steps.widest) < counts[:, None]
    columns = (steps.first[rows.items][:, None] + np.arange(steps.widest))[inside]
    indptr = np.concatenate([[0], np.cumsum(counts)])[rows.indptr]
    return csr(
        indptr.astype(np.int32), columns.astype(np.int32), np.ascontiguousarray(total.T)[inside], steps.n_entries
    )


def _less(matrix: sparse.csr_array, passed: sparse.csr_array, steps: Thresholds) -> sparse.csr_array:
    """The matrix less 1 at every threshold up to the one that was passed last."""
    matrix.sort_indices()
    n, m = matrix.shape
    row = np.repeat(np.arange(n), np.diff(matrix.indptr))
    keys = row * np.int64(m) + matrix.indices
    level = steps.level[passed.indices]
    last = np.repeat(np.repeat(np.arange(n), np.diff(passed.indptr)) * np.int64(m) + passed.indices, level)
    back = np.arange(level.sum()) - np.repeat(np.cumsum(level) - level, level)
    matrix.data[np.searchsorted(keys, last - back)] -= 1.0
    return matrix


def _score_gram(part: StepRows, tables: StepTables) -> Floats:
    return gram(score_matrix(part, tables))


def _link_gram(part: StepRows, tables: StepTables) -> Floats:
    return gram(link_matrix(part, tables))


# --------------------------------------------------------------------------------------- all of it


def bread_and_meat(landed: StepLanded, *, meat: bool = True) -> tuple[Floats, Floats]:
    """H and M, thresholds x thresholds; M is left at zero where it is not asked for."""
    steps = landed.steps
    bread = -landed.rows.sum(_link_gram, landed.tables)
    within = np.zeros_like(bread)
    item, level = steps.item, steps.level - 1
    same = np.nonzero(item[:, None] == item)
    within[same] = (landed.own + landed.outer)[item[same[0]], level[same[0]], level[same[1]]]
    bread += within
    squares: Floats = landed.rows.sum(_score_gram, landed.tables) if meat else np.zeros_like(bread)
    if landed.prior:
        penalty, pull = landed.prior.dense()
        lacking = np.sqrt(too_regular(landed, np.diag(squares)))
        bread, squares = bread + penalty, squares + pull + lacking[:, None] * bread * lacking
    return bread, squares


def covariance(landed: StepLanded, robust: bool = True, anchors: Floats | None = None) -> Floats:
    """The sandwich, or the inverse of H: centered within parts, or given the fixed thresholds (zero for these).

    `anchors` is the covariance of the fixed thresholds; what the free ones have from it is added.
    """
    bread, meat = bread_and_meat(landed)
    if landed.fixed is None:
        inverse = centered_inverse(bread, landed.floating)
    else:
        free = np.flatnonzero(~landed.fixed)
        inverse = np.zeros_like(bread)
        if len(free):
            inverse[np.ix_(free, free)] = centered_inverse(bread[np.ix_(free, free)], landed.floating[free])
    result = inverse @ meat @ inverse if robust else inverse
    if anchors is not None and landed.fixed is not None:
        result = result + from_anchors(bread, inverse, landed.fixed, anchors)
    return (result + result.T) / 2


def too_regular(landed: StepLanded, omega: Floats) -> Floats:
    """As `landing_errors.too_regular`, for thresholds."""
    assert landed.prior is not None
    told = landed.information
    lacking = np.divide(told - omega, told, out=np.zeros(len(omega)), where=told > 0)
    return landed.prior.counts * np.maximum(lacking, 0)


# ----------------------------------------------------------------------------- without the matrices


def _up_to(steps: Thresholds, v: Floats) -> Floats:
    """Sums of v over the thresholds of the item up to each."""
    total = np.cumsum(v, axis=0)
    before = np.concatenate([np.zeros((1, *v.shape[1:])), total])[steps.first]
    return total - before[steps.item]


def _from(steps: Thresholds, v: Floats) -> Floats:
    """Sums of v over the thresholds of the item from each on."""
    return _up_to(steps, v)[(steps.first + steps.max_score - 1)[steps.item]] - _up_to(steps, v) + v


def _scored(part: StepRows, v: Floats, up_to: Floats, cells: Floats) -> list[Floats]:
    """What the scores of the long and of the exact people are, times the columns of v."""
    found = []
    if part.long is not None:
        long = part.long
        terms = [
            sum(u * (long.cells @ one) for u, one in zip(long.u, own, strict=False)) for own in cells.swapaxes(0, 1)
        ]
        found.append(np.stack(terms, axis=1) - long.passed @ up_to)
    if part.exact is not None:
        found.append(part.exact.expected_of(v) - part.exact.passed @ up_to)
    return found


def _back(part: StepRows, scores: list[Floats], n_cells: int) -> tuple[Floats, Floats, Floats]:
    """The transpose: what was passed last, what is expected in cells, and what is expected exactly."""
    n, columns = part.steps.n_entries, scores[0].shape[1] if scores else 0
    passed, cells, direct = np.zeros((n, columns)), np.zeros((USED, columns, n_cells)), np.zeros((n, columns))
    rest = list(scores)
    if part.long is not None:
        z = rest.pop(0)
        passed += part.long.passed.T @ z
        for column in range(columns):
            cells[:, column] = times(part.long.cells_t, part.long.u[:USED] * z[:, column])
    if part.exact is not None:
        z = rest.pop(0)
        passed += part.exact.passed.T @ z
        direct += part.exact.expected_back(z)
    return passed, cells, direct


def _score_twice(part: StepRows, v: Floats, up_to: Floats, cells: Floats) -> tuple[Floats, Floats, Floats]:
    return _back(part, _scored(part, v, up_to, cells), cells.shape[2])


def _signed(part: StepRows, seed: np.random.SeedSequence, columns: int, n_cells: int) -> tuple[Floats, Floats, Floats]:
    noise = np.random.default_rng(seed)
    sizes = [len(part.long.at)] if part.long is not None else []
    sizes += [len(part.exact.of_person)] if part.exact is not None else []
    signs: list[Any] = [noise.integers(0, 2, (n, columns)) * 2.0 - 1 for n in sizes]
    return _back(part, signs, n_cells)


def _gathered(landed: StepLanded, sums: tuple[Floats, Floats, Floats]) -> Floats:
    passed, cells, direct = sums
    tables = landed.tables
    expected = [tables.contract(tables.tails[:USED], cells[:, k]) for k in range(passed.shape[1])]
    return np.stack(expected, axis=1) + direct - _from(landed.steps, passed)


def squares_times(landed: StepLanded, v: Floats) -> Floats:
    """The sum over people of their scores' squares, times the columns of v."""
    cells = landed.tables.weighted(landed.tables.tails[:USED], v)
    return _gathered(landed, landed.rows.sum(_score_twice, v, _up_to(landed.steps, v), cells))


def _passed_cells(part: StepRows, n_grid: int) -> tuple[Floats, Floats, Floats]:
    """How often each threshold was passed last at each ability, by u_r; and blocks of the exact people's squares."""
    steps = part.steps
    size = n_grid * steps.n_entries
    seen, own = np.zeros((USED, size)), np.zeros((steps.n_items, steps.widest, steps.widest))
    collected = np.zeros((USED + 1, n_grid * steps.n_items))
    if part.long is not None:
        long = part.long
        counts = np.diff(long.passed.indptr)
        where = np.repeat(long.at.astype(np.int64) * steps.n_entries, counts) + long.passed.indices
        for r in range(USED):
            weight = None if r == 0 else np.repeat(long.u[r], counts)
            seen[r] = np.bincount(where, weights=weight, minlength=size)
        collected = times(long.cells_t, np.concatenate([long.u[:USED], long.u[1:2] ** 2]))
    if part.exact is not None:
        own += _item_squares(_less(part.exact.expected_rows(), part.exact.passed, steps), steps)
    return seen, collected, own


def _item_squares(scores: sparse.csr_array, steps: Thresholds) -> Floats:
    """Items x levels x levels: sums over people of the products of an item's scores."""
    own = np.zeros((steps.n_items, steps.widest, steps.widest))
    column = scores.indices
    item = steps.item[column]
    row = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    for apart in range(steps.widest):
        end = len(column) - apart
        same = np.flatnonzero((item[:end] == item[apart:]) & (row[:end] == row[apart:]))
        product = np.bincount(
            column[same], weights=scores.data[same] * scores.data[same + apart], minlength=steps.n_entries
        )
        lower = steps.level + apart <= steps.max_score[steps.item]
        i, k = steps.item[lower], steps.level[lower] - 1
        own[i, k, k + apart] = own[i, k + apart, k] = product[lower]
    return own


def squared_blocks(landed: StepLanded) -> Floats:
    """Of the sum over people of their scores' squares, the part of each item: levels x levels."""
    tables, steps = landed.tables, landed.steps
    n_grid, width = len(tables.grid), steps.widest
    seen, few, own = landed.rows.sum(_passed_cells, n_grid)
    table = np.zeros((USED, width, n_grid, steps.n_items))
    table[:, steps.level - 1, :, steps.item] = seen.reshape(USED, n_grid, steps.n_entries).transpose(2, 0, 1)
    from_level = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]  # passed this one, whatever came after
    higher = np.maximum.outer(np.arange(width), np.arange(width))
    own = own + from_level[0].sum(axis=1).T[:, higher]
    for r in range(USED):
        cross = from_level[r].transpose(2, 0, 1) @ tables.by_item(tables.tails[r]).transpose(0, 2, 1)
        own -= cross + cross.transpose(0, 2, 1)
    return own + products(tables, few, few[USED])


def threshold_errors(landed: StepLanded, method: str, contraction: float, seed: int = 0) -> tuple[Floats, Floats]:
    """Standard errors of the thresholds and of the locations, whose mean over all free items is zero."""
    steps, inverse, prior = landed.steps, landed.inverse, landed.prior
    meat = squared_blocks(landed)
    lacking = np.zeros(steps.n_entries)
    if prior:
        lacking = np.sqrt(too_regular(landed, from_levels(steps, np.einsum("ikk->ik", meat))))
        each = steps.table(lacking, 0.0)
        meat = meat + prior.spread_within() + each[:, :, None] * landed.own * each[:, None, :]
    floats = landed.fixed is None
    weight = steps.averaging() if floats else np.zeros(steps.n_entries)
    shift = -by_blocks(steps, inverse, weight)
    moved = squares_times(landed, shift[:, None])[:, 0] if floats else np.zeros(steps.n_entries)
    if prior and floats:
        moved = moved + prior.spread(shift) + lacking * landed.told(lacking * shift)
    common, cross = shift @ moved, by_blocks(steps, inverse, moved)
    inner = inverse @ meat @ inverse
    variance = from_levels(steps, np.einsum("ikk->ik", inner)) + 2 * cross + common
    location = inner.sum(axis=(1, 2)) / steps.max_score**2 + 2 * steps.mean(cross) + common
    if method == "multiplier":
        probes = FEW_PROBES if contraction < FAST else PROBES
        noise = np.random.default_rng(seed)
        sums = landed.rows.sum(_signed, probes, landed.tables.n_cells, each=[landed.rows.seeds(seed)])
        b = _gathered(landed, sums)
        b += (lacking * np.sqrt(landed.information))[:, None] * noise.standard_normal(b.shape)
        if prior:
            b += prior.draw(noise, probes)
        if landed.fixed is not None:
            b[landed.fixed] = 0
        rough = by_blocks(steps, inverse, b)
        rough -= weight @ rough
        exact = landed.solve(b, tol=CLOSE)
        exact -= weight @ exact
        variance = np.maximum(variance + np.mean(exact**2 - rough**2, axis=1), 0.05 * variance)
        mean = [np.stack([steps.mean(column) for column in one.T], axis=1) for one in (exact, rough)]
        location = np.maximum(location + np.mean(mean[0] ** 2 - mean[1] ** 2, axis=1), 0.05 * location)
    return np.sqrt(np.maximum(variance, 0)), np.sqrt(np.maximum(location, 0))
