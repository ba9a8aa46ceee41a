"""From the chain's thresholds onto the conditional likelihood of ordered answers, by a few Newton steps.

As `landing` does it for right and wrong answers: sum_l ( P(X_li >= k | s_l) - 1{X_li >= k} ) - (P beta)_ik = 0. The
matrix is the matched information of `step_rows` plus the prior's; conjugate gradients take the blocks of the items,
whose thresholds move together, for a conditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.prior import StepPrior
from spectral_irt.conditional.ordered_likelihood import _passed
from spectral_irt.conditional.patterns import padded
from spectral_irt.conditional.series_tables import StepTables
from spectral_irt.conditional.step_rows import evaluate, linked, prepare_step_rows
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import Prepared
from spectral_irt.estimators.landing import (
    ALLOWED,
    CLOSE,
    FEW,
    FINER,
    LONGEST,
    MOST,
    MOST_ITERATIONS,
    RENEWALS,
    SETTLING,
    SOLVED,
    STEADY,
    STEADY_PRIOR,
    centered_within,
)
from spectral_irt.numerics import conjugate_gradients

THIN_STEPS = 4  # of items with a prior by themselves


@dataclass(frozen=True, eq=False)
class StepLanded:
    """Where the steps ended; as `Landed`, for thresholds.

    Attributes
    ----------
    own : float array, items x levels x levels
        The items' blocks of the information of the answers.
    outer : float array, items x levels x levels
        Sums of c c' within items: the information is own + outer - C' C.
    """

    beta: Floats
    steps: Thresholds
    rows: Prepared
    tables: StepTables
    own: Floats
    outer: Floats
    prior: StepPrior | None
    fixed: NDArray[np.bool_] | None
    floating: Ints
    evaluations: int
    move: float

    @property
    def information(self) -> Floats:
        """What the answers tell about each threshold, the others given."""
        return from_levels(self.steps, np.einsum("ikk->ik", self.own))

    @cached_property
    def blocks(self) -> Floats:
        """The items' blocks of the Newton matrix."""
        return self.own + self.prior.within() if self.prior else self.own

    @cached_property
    def inverse(self) -> Floats:
        """The inverses of the blocks; 0 for fixed thresholds and levels that an item does not have."""
        mine = np.ones(self.steps.n_entries) if self.fixed is None else (~self.fixed).astype(np.float64)
        free = self.steps.table(mine, 0.0)
        both = free[:, :, None] * free[:, None, :]
        size = np.einsum("ikk->ik", self.blocks)
        nothing = (free == 0) | (size <= 0)
        ridge = np.where(nothing, 1.0, 1e-10 * size)
        inverse = np.linalg.inv(self.blocks * both + ridge[:, :, None] * np.eye(self.steps.widest))
        return inverse * both * ~(nothing[:, :, None] | nothing[:, None, :])

    def __matmul__(self, v: Floats) -> Floats:
        """The Newton matrix times v, which is 0 on fixed thresholds; one vector, or the columns of a matrix."""
        image = self.told(v)
        if self.prior:
            image += self.prior @ v
        if self.fixed is not None:
            image[self.fixed] = 0
        return image

    def told(self, v: Floats) -> Floats:
        """The information of the answers, times v."""
        steps, tables = self.steps, self.tables
        columns = v if v.ndim == 2 else v[:, None]
        cells, direct = self.rows.sum(linked, tables.weighted(tables.linking, columns), columns)
        back = [tables.contract(tables.linking, cells[:, k]) for k in range(columns.shape[1])]
        inner = by_blocks(steps, self.own + self.outer, columns)
        return (inner - direct - np.stack(back, axis=1)).reshape(v.shape)

    def roughly(self, b: Floats) -> Floats:
        """The conditioner: each item by itself."""
        return by_blocks(self.steps, self.inverse, b)

    def solve(self, b: Floats, tol: float = SOLVED) -> Floats:
        """The matrix's solution for b, or for its columns, as `Landed.solve`."""
        b = centered_within(b, self.floating)
        step, _ = conjugate_gradients(
            self.__matmul__, self.roughly, b, tol=tol, most=MOST_ITERATIONS, centered=self.fixed is None
        )
        return centered_within(step, self.floating)


def by_blocks(steps: Thresholds, blocks: Floats, v: Floats) -> Floats:
    """A matrix with these blocks for the items, times v; one vector, or the columns of a matrix."""
    columns = v if v.ndim == 2 else v[:, None]
    levels = np.zeros((steps.n_items, steps.widest, columns.shape[1]))
    levels[steps.item, steps.level - 1] = columns
    return (blocks @ levels)[steps.item, steps.level - 1].reshape(v.shape)


def from_levels(steps: Thresholds, values: Floats) -> Floats:
    """Items x levels -> thresholds."""
    return values[steps.item, steps.level - 1]


def passed_counts(responses: Responses) -> Floats:
    """How many informative people passed each threshold."""
    return responses.entries.sum(_passed, responses.thresholds)


def land_steps(
    responses: Responses,
    beta: Floats,
    *,
    prior: StepPrior | None = None,
    fixed: NDArray[np.bool_] | None = None,
    parts: Ints | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> StepLanded:
    """Newton steps on the penalized conditional likelihood from the thresholds `beta`.

    `fixed` and `parts`, which say which items hang together, are as for `land`.
    """
    steps = responses.thresholds
    floating = np.zeros(steps.n_entries, dtype=np.int64) if parts is None else parts[steps.item]
    if fixed is not None:
        floating = np.where(np.isin(floating, floating[fixed]), -1, floating)
    few = responses.n_responses <= FEW
    rows, tables = prepare_step_rows(responses, beta, FINER if few else ALLOWED)
    passed = passed_counts(responses)
    close = FINER if few and not (prior and prior.estimated) else CLOSE
    beta = beta if fixed is not None else centered_within(beta, floating)
    step, last_move, decrement = np.zeros(len(beta)), np.inf, np.inf
    for k in range(1, MOST + 1):
        tables = StepTables.at(steps, beta, tables.grid, tables.terms)
        rows, sums = rows.map_and_sum(evaluate, tables, padded(steps, beta))
        expected, own, outer = information_of(tables, sums)
        here = StepLanded(beta, steps, rows, tables, own, outer, prior, fixed, floating, k, 0.0)
        here, full, gain = _aimed(here, expected - passed)
        prior = here.prior
        if gain > 2 * decrement and np.abs(step).max() > 1e-3:  # too far: half the way back
            step = step / 2
            beta = beta - step
            continue
        step, decrement = np.clip(full, -LONGEST, LONGEST), gain
        diagonal = from_levels(steps, np.einsum("ikk->ik", here.blocks))
        move = float(np.max(np.abs(step) * np.sqrt(diagonal), initial=0.0))
        share = min(max(move / last_move, STEADY), 1.0) if last_move < np.inf else STEADY
        beta, last_move = beta + step, move
        if k == 1 and prior and not few:
            beta = _thin_items(here, beta, sums[0], expected, passed)
        tell(f"landing on the conditional likelihood: step {k}, {move:.2f} standard errors at most")
        if move * share < close:
            break
    return replace(here, beta=beta, move=move * share)


def information_of(tables: StepTables, sums: tuple[Floats, ...]) -> tuple[Floats, Floats, Floats]:
    """Expected numbers of people who passed each threshold; the information's blocks, without and of c c'."""
    collected, expected, own, outer, around = sums
    steps, width, terms = tables.steps, tables.steps.widest, tables.terms
    levels = tables.levels(tables.tails, collected)
    expected = expected + levels[steps.level - 1, steps.item]
    higher = np.maximum.outer(np.arange(width), np.arange(width))
    own = own + levels.T[:, higher] - products(tables, collected, collected[terms.square])
    w, *further = (tables.by_item(one) for one in tables.linking)
    first, *others = collected[terms.links]
    mixed = sum((tables.pairs(w, one, weight) for one, weight in zip(further, others, strict=True)), np.zeros_like(own))
    outer = outer + tables.pairs(w, w, first) + mixed + mixed.transpose(0, 2, 1)
    around = around + tables.contract(tables.linking, collected[terms.around])
    # Rows of the whole must add to zero: what the series leaves goes to the diagonal.
    left = around - by_blocks(steps, own + outer, np.ones(steps.n_entries))
    own[steps.item, steps.level - 1, steps.level - 1] += left
    return expected, own, outer


def products(tables: StepTables, collected: Floats, squared: Floats) -> Floats:
    """Sums over people of P_k P_k' for the levels of every item, to second order; from those of u and of u_1^2."""
    h, w, second = (tables.by_item(one) for one in tables.tails[:3])
    mixed = tables.pairs(h, w, collected[1]) + tables.pairs(h, second, collected[2])
    squares = tables.pairs(h, h, collected[0]) + tables.pairs(w, w, squared)
    return squares + mixed + mixed.transpose(0, 2, 1)


def _thin_items(here: StepLanded, beta: Floats, collected: Floats, expected: Floats, passed: Floats) -> Floats:
    """Items with a prior, brought to where their own score is zero, people and the other items as they are.

    Far from its place a threshold with few answers comes nearer by no more than a logit a step, and a step for all
    items is a pass over the answers; this is arithmetic on tables of few items.
    """
    assert here.prior is not None
    steps, grid = here.steps, here.tables.grid
    thin = np.unique(steps.item[here.prior.counts > 0])
    own = steps.of_items(thin)
    few = Thresholds(steps.max_score[thin])
    cells = collected.reshape(len(collected), len(grid), -1)[:, :, thin].reshape(len(collected), -1)
    # What people with exact sums expect stays as it is.
    others = expected[own] - here.tables.contract(here.tables.tails, collected)[own] - passed[own]
    penalty = here.prior.within()[thin][:, : few.widest, : few.widest]
    inside = few.table(np.ones(few.n_entries), 0.0)
    higher = np.maximum.outer(np.arange(few.widest), np.arange(few.widest))
    for _ in range(THIN_STEPS):
        tables = StepTables.at(few, beta[own], grid, here.tables.terms)
        levels = tables.levels(tables.tails, cells)
        told = levels.T[:, higher] - products(tables, cells, cells[tables.terms.square])
        ridge = 1e-3 * np.maximum(np.einsum("ikk->ik", told), 1e-3) + (1 - inside)
        matrix = told + penalty + ridge[:, :, None] * np.eye(few.widest)
        score = levels[few.level - 1, few.item] + others - (here.prior @ beta)[own]
        beta = beta.copy()
        beta[own] += np.clip(by_blocks(few, np.linalg.inv(matrix), score), -1.0, 1.0)
    return beta


def _aimed(here: StepLanded, score: Floats) -> tuple[StepLanded, Floats, float]:
    """The Newton step from here, with the prior's precisions taken where the step leads; and what it gains."""
    for _ in range(RENEWALS if here.evaluations < SETTLING else 1):
        pulled = score - here.prior @ here.beta if here.prior else score.copy()
        if here.fixed is not None:
            pulled[here.fixed] = 0
        step = here.solve(pulled)
        if here.prior is None or not here.prior.estimated or here.evaluations >= SETTLING:
            break
        renewed = here.prior.renewed(here.beta + np.clip(step, -LONGEST, LONGEST), here.own)
        change = abs(np.log(renewed.alpha / here.prior.alpha))
        if renewed.location and here.prior.location:
            change = max(change, abs(np.log(renewed.location.alpha / here.prior.location.alpha)))
        if change < STEADY_PRIOR:
            break
        here = replace(here, prior=renewed)
    return here, step, float(pulled @ step)
