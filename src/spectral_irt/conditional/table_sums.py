"""The rarer uses of the series: squares of people's scores without a matrix, steps of single items, people alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.conditional.exact import tilt
from spectral_irt.conditional.information import by_blocks, to_levels
from spectral_irt.conditional.series_tables import (
    APART,
    ORDER,
    TableRows,
    Tables,
    derivatives,
    sums_in,
    sums_of,
    weights,
)
from spectral_irt.data.block import Floats, Ints, Thresholds

FAR, FARTHER = 0.2, 5.0  # logits, and medians, beyond which an item that moves takes steps by itself
OWN_STEPS = 4  # of these


def score_sums(point: Any, v: Floats) -> tuple[Floats, Floats]:
    """The part of each item of the sum over people of their scores' squares, and all of it times v."""
    tables, layout = point.tables, point.layout
    two, own, width = tables.tails[:2], to_levels(layout, v), layout.widest + 1
    upto = np.cumsum(np.concatenate([0 * own[:1], own]), axis=0).T.ravel().astype(tables.moments.dtype)
    spread = np.stack([tables.weighted(table, v) for table in two])
    by_category, by_cell, by_item, squares, twice = point.rows.sum(_score_sums, spread, upto, v)
    by_category = by_category.reshape(2, len(tables.grid), -1, width).astype(np.float64, copy=False)
    # (P - x) (P - x)' = P P' - P x' - x P' + x x', where x is 1 for thresholds at or below the category
    tails = [table.reshape(layout.widest, len(tables.grid), -1) for table in two]
    cross = sum(np.einsum("kgi,gic->ikc", *each) for each in zip(tails, by_category, strict=True))
    cross, count, z = (
        each[..., ::-1].cumsum(axis=-1)[..., -2::-1]  # at or above each category
        for each in (cross, by_category[0].sum(axis=0), by_item.reshape(-1, width))
    )
    both = tables.products(by_category.sum(axis=-1).reshape(2, -1), by_cell[0])
    level = np.arange(layout.widest)
    squares = squares + both - cross - cross.transpose(0, 2, 1) + count[:, np.maximum.outer(level, level)]
    twice = twice + tables.contract(two, by_cell[1:])
    return squares, twice - z[layout.item, layout.level - 1]


def _score_sums(part: TableRows, spread: Floats, upto: Floats, v: Floats) -> tuple[Floats | float, ...]:
    """What that needs of the long rows, P by two terms of the series; and the sums of the others. Sums of 1 and of u_1
    for every cell and category; of u_1^2, z and u_1 z for every cell, with z a person's score times v; and of z for
    every item and category. `spread` is v in two tables, `upto` in the thresholds passed."""
    rows, u, width, n = part.rows, part.u[1], part.layout.widest + 1, spread.shape[1]
    weight = part.own_weight * np.ones(rows.n_persons)
    code = rows.items * np.int32(width)
    code += 0 if rows.category is None else rows.category
    expected = sums_of(rows, part.cells, spread)
    z = weight**2 * (expected[0] + u * expected[1] - sums_of(rows, code, upto[None])[0])
    by_item = sums_in(rows, code, z[None], len(upto), spread.dtype)
    code += (part.cells - rows.items) * np.int32(width)
    by_category = sums_in(rows, code, (weight**2, weight**2 * u), n * width, spread.dtype)
    by_cell = sums_in(rows, part.cells, ((weight * u) ** 2, z, z * u), n, spread.dtype)
    return by_category, by_cell, by_item, *(part.exact.score_sums(None, v) if part.exact else (0.0, 0.0))


def far_items(point: Any, beta: Floats, step: Floats, prior: Any) -> Floats:
    """`beta` with items of few answers that a step has moved far brought to where their own score is zero. Such a
    threshold comes nearer by no more than a logit a step, which is a pass over the answers; this is arithmetic on
    tables of few items."""
    layout, grid, size = point.layout, point.tables.grid, len(point.collected)
    moved = np.abs(step) > max(FAR, FARTHER * float(np.median(np.abs(step))))
    far = np.unique(layout.item[moved if prior is None else moved | (prior.counts > 0)])
    if not len(far):
        return beta
    own, few = layout.of_items(far), Thresholds(layout.max_score[far])
    cells = point.collected.reshape(size, len(grid), -1)[:, :, far].reshape(size, -1)
    # People with exact sums are in no table: what they expect follows by their information, as it is here.
    expected = point.tables.contract(point.tables.tails, point.collected)
    others = point.gradient[own] - expected[own]
    in_tables = point.tables.covariances(expected, point.collected)
    exact = (point.own - in_tables)[far][:, : few.widest, : few.widest]
    start = beta[own]
    penalty = 0.0 if prior is None else prior.within()[far][:, : few.widest, : few.widest]
    inside = few.table(np.ones(few.n_entries), 0.0)
    for _ in range(OWN_STEPS):
        tables = Tables.at(few, beta[own], grid, point.tables.order)
        expected = tables.contract(tables.tails, cells)
        told = tables.covariances(expected, cells)
        ridge = 1e-3 * np.maximum(np.einsum("ikk->ik", told + exact), 1e-3) + (1 - inside)
        matrix = told + exact + penalty + ridge[:, :, None] * np.eye(few.widest)
        score = expected + others - by_blocks(few, exact, beta[own] - start)
        if prior is not None:
            score -= (prior @ beta)[own]
        beta = beta.copy()
        beta[own] += np.clip(by_blocks(few, np.linalg.inv(matrix), score), -1.0, 1.0)
    return beta


def passed_by_series(cumulated: Floats, scores: Ints, most: Ints, least: float) -> Floats | None:
    """P(X >= k | s), levels x items x people; nothing unless the answers of all count as so many equal ones. For people
    whose items hardly anybody else met, so that tables would be larger than the answers."""
    _, p, variance = tilt(cumulated, scores, most)
    k, (categories, n, people) = np.arange(len(p), dtype=float), p.shape
    each = np.tensordot(k**2, p, 1) - np.tensordot(k, p, 1) ** 2
    if np.minimum(variance, variance**2 / np.maximum((each**2).sum(axis=0), 1e-300)).min() < least:
        return None
    tails = np.empty((ORDER + 1, categories - 1, n * people))
    moments = derivatives(p.reshape(categories, -1), ORDER, tails).reshape(-1, n, people).sum(axis=1)
    total = np.zeros((categories - 1, n, people))
    for tail, each in zip(tails, weights(scores - moments[0], moments[1:-1], APART), strict=True):
        total += tail.reshape(total.shape) * each
    return total
