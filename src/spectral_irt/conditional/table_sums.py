"""The rarer uses of the series: squares of people's scores without a matrix, steps of single items, people alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.conditional.exact import tilt
from spectral_irt.conditional.information import by_blocks, to_levels
from spectral_irt.conditional.series_tables import (
    APART,
    ORDER,
    TablePoint,
    TableRows,
    Tables,
    derivatives,
    sums_in,
    sums_of,
    weights,
)
from spectral_irt.data.block import Floats, Ints, Thresholds

if TYPE_CHECKING:
    from spectral_irt.chain.prior import Prior

FAR = 0.2  # logits ...
FARTHER = 5.0  # ... and times the median move, beyond which an item that moves takes steps by itself
OWN_STEPS = 4  # of these


class ScoreSums(NamedTuple):
    """What squares of people's scores need of those with much information, P by two terms of the series: sums of 1 and
    of u_1 for every cell and category; of u_1^2, z and u_1 z for every cell, with z a person's score times v; and of z
    for every item and category. And the `squares` and `twice` of the others."""

    by_category: Floats
    by_cell: Floats
    by_item: Floats
    squares: Floats | float
    twice: Floats | float


def score_sums(point: TablePoint, v: Floats) -> tuple[Floats, Floats]:
    """The part of each item of the sum over people of their scores' squares, and all of it times v."""
    tables = point.tables
    layout = point.layout
    width = layout.widest + 1
    two_terms = tables.tails[:2]
    v_of_levels = to_levels(layout, v)
    up_to = np.cumsum(np.concatenate([0 * v_of_levels[:1], v_of_levels]), axis=0)
    up_to = up_to.T.ravel().astype(tables.moments.dtype)
    spread = np.stack([tables.weighted_sum(table, v) for table in two_terms])
    sums = ScoreSums(*point.rows.sum(_score_sums, spread, up_to, v))
    by_category = sums.by_category.reshape(2, len(tables.grid), -1, width).astype(np.float64, copy=False)
    # (P - x) (P - x)' = P P' - P x' - x P' + x x', where x is 1 for thresholds at or below the category
    cross: Any = 0.0
    for table, of_category in zip(two_terms, by_category, strict=True):
        tail = table.reshape(layout.widest, len(tables.grid), -1)
        cross = cross + np.einsum("kgi,gic->ikc", tail, of_category)
    cross = _at_or_above(cross)
    count = _at_or_above(by_category[0].sum(axis=0))
    z = _at_or_above(sums.by_item.reshape(-1, width))
    both = tables.products(by_category.sum(axis=-1).reshape(2, -1), sums.by_cell[0])
    level = np.arange(layout.widest)
    squares = sums.squares + both - cross - cross.transpose(0, 2, 1) + count[:, np.maximum.outer(level, level)]
    twice = sums.twice + tables.contract(two_terms, sums.by_cell[1:])
    return squares, twice - z[layout.item, layout.level - 1]


def _at_or_above(by_category: Floats) -> Floats:
    """Sums over the categories at or above each one but the lowest; categories are the last axis."""
    return by_category[..., ::-1].cumsum(axis=-1)[..., -2::-1]


def _score_sums(part: TableRows, spread: Floats, up_to: Floats, v: Floats) -> ScoreSums:
    """Of one block; `spread` is v in two tables, `up_to` in the thresholds passed."""
    rows = part.rows
    u = part.u[1]
    width = part.layout.widest + 1
    n_cells = spread.shape[1]
    weight = part.long_weight * np.ones(rows.n_persons)
    code = rows.items * np.int32(width)
    if rows.category is not None:
        code += rows.category
    expected = sums_of(rows, part.cells, spread)
    z = weight**2 * (expected[0] + u * expected[1] - sums_of(rows, code, up_to[None])[0])
    by_item = sums_in(rows, code, z[None], len(up_to), spread.dtype)
    code += (part.cells - rows.items) * np.int32(width)
    by_category = sums_in(rows, code, (weight**2, weight**2 * u), n_cells * width, spread.dtype)
    by_cell = sums_in(rows, part.cells, ((weight * u) ** 2, z, z * u), n_cells, spread.dtype)
    squares: Floats | float = 0.0
    twice: Floats | float = 0.0
    if part.exact:
        squares, twice = part.exact.score_sums(None, v)
    return ScoreSums(by_category, by_cell, by_item, squares, twice)


def far_items(point: Any, beta: Floats, step: Floats, prior: Prior | None) -> Floats:
    """`beta` with items of few answers that a step from this `TablePoint` has moved far brought to where their own
    score is zero. Such a threshold comes nearer by no more than a logit a step, which is a pass over the answers; this
    is arithmetic on tables of few items."""
    layout = point.layout
    moved = np.abs(step) > max(FAR, FARTHER * float(np.median(np.abs(step))))
    if prior is not None:
        moved = moved | (prior.counts > 0)
    far = np.unique(layout.item[moved])
    if not len(far):
        return beta
    grid = point.tables.grid
    places = layout.of_items(far)
    few = Thresholds(layout.max_score[far])
    n_terms = len(point.collected)
    cells = point.collected.reshape(n_terms, len(grid), -1)[:, :, far].reshape(n_terms, -1)
    # People with exact sums are in no table: what they expect follows by their information, as it is here.
    expected = point.tables.contract(point.tables.tails, point.collected)
    others = point.gradient[places] - expected[places]
    in_tables = point.tables.covariances(expected, point.collected)
    exact = (point.own - in_tables)[far][:, : few.widest, : few.widest]
    start = beta[places]
    penalty: Floats | float = 0.0
    if prior is not None:
        penalty = prior.within()[far][:, : few.widest, : few.widest]
    inside = few.table(np.ones(few.n_entries), 0.0)
    for _ in range(OWN_STEPS):
        tables = Tables.at(few, beta[places], grid, point.tables.order)
        expected = tables.contract(tables.tails, cells)
        information = tables.covariances(expected, cells) + exact
        ridge = 1e-3 * np.maximum(np.einsum("ikk->ik", information), 1e-3) + (1 - inside)
        matrix = information + penalty + ridge[:, :, None] * np.eye(few.widest)
        score = expected + others - by_blocks(few, exact, beta[places] - start)
        if prior is not None:
            score -= (prior @ beta)[places]
        beta = beta.copy()
        beta[places] += np.clip(by_blocks(few, np.linalg.inv(matrix), score), -1.0, 1.0)
    return beta


def passed_by_series(cumulated: Floats, scores: Ints, most: Ints, least: float) -> Floats | None:
    """P(X >= k | s), levels x items x people; nothing unless the answers of all count as so many equal ones. For people
    whose items hardly anybody else met, so that tables would be larger than the answers."""
    _, p, variance = tilt(cumulated, scores, most)
    categories, n, people = p.shape
    k = np.arange(categories, dtype=float)
    of_answers = np.tensordot(k**2, p, 1) - np.tensordot(k, p, 1) ** 2
    n_equal = variance**2 / np.maximum((of_answers**2).sum(axis=0), 1e-300)
    if np.minimum(variance, n_equal).min() < least:
        return None
    tails = np.empty((ORDER + 1, categories - 1, n * people))
    moments = derivatives(p.reshape(categories, -1), ORDER, tails).reshape(-1, n, people).sum(axis=1)
    total = np.zeros((categories - 1, n, people))
    for tail, u in zip(tails, weights(scores - moments[0], moments[1:-1], APART), strict=True):
        total += tail.reshape(total.shape) * u
    return total
