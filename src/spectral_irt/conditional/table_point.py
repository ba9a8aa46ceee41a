"""The conditional likelihood of answers in categories at some thresholds: what the rows of `table_rows` add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.information import Point, balanced, by_blocks
from spectral_irt.conditional.patterns import padded
from spectral_irt.conditional.series_tables import Tables
from spectral_irt.conditional.table_rows import (
    TableRows,
    evaluate,
    factor_gram,
    factors_twice,
    score_gram,
    score_matrix,
    times,
)
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import Prepared
from spectral_irt.numerics import signed

USED = 3  # terms of the series in sums of squares, which the others hardly change
THIN_STEPS = 4  # of items with a prior by themselves


# ----------------------------------------------------------------------- sums of scores, without matrices


def _up_to(layout: Thresholds, v: Floats) -> Floats:
    """Sums of v over the thresholds of the item up to each."""
    total = np.cumsum(v, axis=0)
    before = np.concatenate([np.zeros((1, *v.shape[1:])), total])[layout.first]
    return total - before[layout.item]


def _from(layout: Thresholds, v: Floats) -> Floats:
    """Sums of v over the thresholds of the item from each on."""
    return _up_to(layout, v)[(layout.first + layout.max_score - 1)[layout.item]] - _up_to(layout, v) + v


def _by_weight(values: Floats, weight: Floats | None) -> Floats:
    return values if weight is None else values * weight[:, None]


def _scored(part: TableRows, v: Floats, up_to: Floats, cells: Floats) -> list[Floats]:
    """What the scores of the long and of the exact people are, times the columns of v."""
    found = []
    if part.long is not None:
        long = part.long
        terms = [
            sum(u * (long.cells @ one) for u, one in zip(long.u, own, strict=False)) for own in cells.swapaxes(0, 1)
        ]
        found.append(_by_weight(np.stack(terms, axis=1) - long.passed @ up_to, long.weight))
    if part.exact is not None:
        assert part.exact.passed is not None
        found.append(_by_weight(part.exact.expected_of(v) - part.exact.passed @ up_to, part.exact.weight))
    return found


def _back(part: TableRows, scores: list[Floats], n_cells: int) -> tuple[Floats, Floats, Floats]:
    """The transpose: what was passed last, what is expected in cells, and what is expected exactly."""
    n, columns = part.layout.n_entries, scores[0].shape[1] if scores else 0
    passed, cells, direct = np.zeros((n, columns)), np.zeros((USED, columns, n_cells)), np.zeros((n, columns))
    rest = list(scores)
    if part.long is not None:
        z = _by_weight(rest.pop(0), part.long.weight)
        passed += part.long.passed.T @ z
        for column in range(columns):
            cells[:, column] = times(part.long.cells_t, part.long.u[:USED] * z[:, column])
    if part.exact is not None:
        assert part.exact.passed is not None
        z = _by_weight(rest.pop(0), part.exact.weight)
        passed += part.exact.passed.T @ z
        direct += part.exact.expected_back(z)
    return passed, cells, direct


def _score_twice(part: TableRows, v: Floats, up_to: Floats, cells: Floats) -> tuple[Floats, Floats, Floats]:
    return _back(part, _scored(part, v, up_to, cells), cells.shape[2])


def _signed(part: TableRows, seed: np.random.SeedSequence, columns: int, n_cells: int) -> tuple[Floats, ...]:
    noise = np.random.default_rng(seed)
    sizes = [len(part.long.at)] if part.long is not None else []
    sizes += [part.exact.passed.shape[0]] if part.exact is not None and part.exact.passed is not None else []
    signs: list[Any] = [noise.integers(0, 2, (n, columns)) * 2.0 - 1 for n in sizes]
    return _back(part, signs, n_cells)


def _signed_by_design(
    part: TableRows, seed: np.random.SeedSequence, tables: Tables, design: sparse.csr_array, columns: int
) -> Floats:
    return signed(score_matrix(part, tables), seed, columns, design)


def _passed_cells(part: TableRows, n_grid: int) -> tuple[Floats, Floats, Floats]:
    """How often each threshold was passed last at each ability, by u_r; and blocks of the exact people's squares."""
    layout = part.layout
    size = n_grid * layout.n_entries
    seen, own = np.zeros((USED, size)), np.zeros((layout.n_items, layout.widest, layout.widest))
    collected = np.zeros((USED + 1, n_grid * layout.n_items))
    if part.long is not None:
        long = part.long
        counts = np.diff(long.passed.indptr)
        where = np.repeat(long.at.astype(np.int64) * layout.n_entries, counts) + long.passed.indices
        by = np.concatenate([long.u[:USED], long.u[1:2] ** 2])
        by = by if long.weight is None else by * long.weight**2
        for r in range(USED):
            weight = None if r == 0 and long.weight is None else np.repeat(by[r], counts)
            seen[r] = np.bincount(where, weights=weight, minlength=size)
        collected = times(long.cells_t, by)
    if part.exact is not None:
        own += item_squares(part.exact.scores(), layout)
    return seen, collected, own


def item_squares(scores: sparse.csr_array, layout: Thresholds) -> Floats:
    """Items x levels x levels: sums over people of the products of an item's scores."""
    own = np.zeros((layout.n_items, layout.widest, layout.widest))
    column = scores.indices
    item = layout.item[column]
    row = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    for apart in range(layout.widest):
        end = len(column) - apart
        same = np.flatnonzero((item[:end] == item[apart:]) & (row[:end] == row[apart:]))
        product = np.bincount(
            column[same], weights=scores.data[same] * scores.data[same + apart], minlength=layout.n_entries
        )
        lower = layout.level + apart <= layout.max_score[layout.item]
        i, k = layout.item[lower], layout.level[lower] - 1
        own[i, k, k + apart] = own[i, k + apart, k] = product[lower]
    return own


# ----------------------------------------------------------------------------------- the likelihood there


@dataclass(frozen=True, eq=False)
class TablePoint(Point):
    """The likelihood at some thresholds; `collected` is what the long people add, `passed` who passed them."""

    tables: Tables
    collected: Floats
    passed: Floats

    @classmethod
    def at(cls, tables: Tables, rows: Prepared, beta: Floats, passed: Floats) -> TablePoint:
        layout = tables.layout
        tables = Tables.at(layout, beta, tables.grid, tables.terms)
        rows, sums = rows.map_and_sum(evaluate, tables, padded(layout, beta))
        expected, own, inner = information_of(tables, sums)
        return cls(beta, layout, rows, expected - passed, own, inner, tables, sums[0], passed)

    def factors_twice(self, v: Floats) -> Floats:
        columns = v if v.ndim == 2 else v[:, None]
        tables = self.tables
        cells, direct = self.rows.sum(factors_twice, tables.weighted(tables.factors, columns), columns)
        back = [tables.contract(tables.factors, cells[:, k]) for k in range(columns.shape[1])]
        return (direct + np.stack(back, axis=1)).reshape(v.shape)

    def factor_gram(self, *, single: bool = False, design: sparse.csr_array | None = None) -> Any:
        return self.rows.sum(factor_gram, self.tables, design)

    def score_gram(self, *, single: bool = False, design: sparse.csr_array | None = None) -> Any:
        return self.rows.sum(score_gram, self.tables, design)

    def score_blocks(self) -> Floats:
        tables, layout = self.tables, self.layout
        n_grid, width = len(tables.grid), layout.widest
        seen, few, own = self.rows.sum(_passed_cells, n_grid)
        table = np.zeros((USED, width, n_grid, layout.n_items))
        table[:, layout.level - 1, :, layout.item] = seen.reshape(USED, n_grid, layout.n_entries).transpose(2, 0, 1)
        from_level = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]  # passed this one, whatever came after
        own = own + from_level[0].sum(axis=1).T[:, _higher(width)]
        for r in range(USED):
            cross = from_level[r].transpose(2, 0, 1) @ tables.by_item(tables.tails[r]).transpose(0, 2, 1)
            own -= cross + cross.transpose(0, 2, 1)
        return own + products(tables, few, few[USED])

    def score_twice(self, v: Floats) -> Floats:
        columns = v if v.ndim == 2 else v[:, None]
        cells = self.tables.weighted(self.tables.tails[:USED], columns)
        sums = self.rows.sum(_score_twice, columns, _up_to(self.layout, columns), cells)
        return self._gathered(sums).reshape(v.shape)

    def signed_scores(self, seed: int, columns: int, design: sparse.csr_array | None = None) -> Floats:
        if design is not None:
            return self.rows.sum(_signed_by_design, self.tables, design, columns, each=[self.rows.seeds(seed)])
        return self._gathered(self.rows.sum(_signed, columns, self.tables.n_cells, each=[self.rows.seeds(seed)]))

    def _gathered(self, sums: tuple[Floats, Floats, Floats]) -> Floats:
        passed, cells, direct = sums
        tables = self.tables
        expected = [tables.contract(tables.tails[:USED], cells[:, k]) for k in range(passed.shape[1])]
        return np.stack(expected, axis=1) + direct - _from(self.layout, passed)

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
