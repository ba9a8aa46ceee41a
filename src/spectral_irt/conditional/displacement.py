"""The displacement of an anchored item: how far it is from where the data would put it if it alone were set free.

That is another fit, one Newton step of one where the item is close, or, where there are no matrices, the root of the
item's own equation

    sum_l ( E_la(delta) - X_la ) = 0,

E_la(delta) the answer that is expected of person l given the score, where item a is moved by delta. Fits beside anchors
(`estimators.anchored`) and the drift of a bank (`bank.drift`) use it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.errors import Matrices
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.information import PeopleRows
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import Newton
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.numerics import safe_divide

STEPS = 40  # Newton steps for all fixed items at once
LONGEST_STEP = 2.0  # logits
SETTLED = 1e-6  # logits
FARTHEST = 30.0  # logits: farther is nowhere
NEAR = 0.15  # logits up to which one Newton step says how far an anchor is off
REFIT_ANSWERS = 1e6  # that other fits, each with one anchor free, may go through: some tenths of a second
SINGULAR = 1e10  # condition number of an item's own equation
LEAST_SHARE = 0.05  # of an item's information that is left when the free items have followed
CERTAIN = 1e-9  # of a score: the threshold was passed, or failed, for sure


class Displacements(NamedTuple):
    """By how much the data would move each fixed item if it alone were set free, and the standard error of that; NaN
    for free items, and where the data put no finite value on an item."""

    displacement: Floats
    se: Floats


def displacements(
    optimum: PenalizedPoint, matrices: Matrices | None, likelihood: Likelihood, comparable: Mask
) -> Displacements:
    """Of fixed items beside which there are other fixed ones, `comparable`: else the whole scale would move with them.

    With matrices, all other free items follow and the item's thresholds are free: one Newton step for items close to
    where they are; another fit for those that are off by more than `NEAR`, as far as `REFIT_ANSWERS` allow. Without
    matrices, or beyond, an item moves as a whole. The likelihood is evaluated elsewhere: `optimum.point` is used up.
    """
    assert optimum.fixed is not None
    layout = optimum.point.layout
    fixed = layout.sum((~optimum.fixed).astype(float)) == 0
    measured = fixed & comparable
    if not measured.any():
        nothing = np.full(layout.n_items, np.nan)
        return Displacements(nothing, nothing)
    moved = displaced_as_a_whole(optimum, matrices, fixed)
    if matrices is not None:
        step = displaced_by_a_step(optimum, matrices, measured)
        near = np.abs(step.displacement) <= NEAR
        moved = Displacements(np.where(near, step.displacement, moved.displacement), np.where(near, step.se, moved.se))
        far = np.flatnonzero(measured & ~near & np.isfinite(moved.displacement))
        farthest_first = far[np.argsort(-np.abs(moved.displacement[far]), kind="stable")]
        n_refits = int(REFIT_ANSWERS // max(likelihood.responses.n_responses, 1))
        for item in farthest_first[:n_refits].tolist():
            moved.displacement[item], moved.se[item] = displaced_in_a_refit(optimum, likelihood, item)
    return Displacements(np.where(measured, moved.displacement, np.nan), np.where(measured, moved.se, np.nan))


def displaced_in_a_refit(optimum: PenalizedPoint, likelihood: Likelihood, item: int) -> tuple[float, float]:
    """How far another fit puts an item, which is free there, from where it was held; and its standard error."""
    assert optimum.fixed is not None
    of_item = optimum.point.layout.item == item
    fixed = optimum.fixed & ~of_item
    problem = Newton(likelihood, prior=optimum.prior, fixed=fixed, parts=optimum.floating)
    refit = problem.solve(optimum.beta)
    information = information_at(likelihood, refit.point.beta).matrix
    covariance = Matrices.of(refit, information).covariance()
    displacement = float(np.mean(refit.beta[of_item] - optimum.beta[of_item]))
    return displacement, float(np.sqrt(covariance[np.ix_(of_item, of_item)].mean()))


def displaced_by_a_step(optimum: PenalizedPoint, matrices: Matrices, items: Mask) -> Displacements:
    """One Newton step of each of these fixed items, its thresholds free and all free items following.

    With T = H_aF H_FF^-1 for the thresholds a of an item and the free ones F, the equation of the item alone has the
    slope S = H_aa - T H_Fa, the value g_a - T g_F, and the noise R M R', R = 1_a - T.
    """
    layout = optimum.point.layout
    pull = replace(optimum, fixed=None).pull()
    displacement = np.full(layout.n_items, np.nan)
    se = np.full(layout.n_items, np.nan)
    for item in np.flatnonzero(items).tolist():
        a = np.flatnonzero(layout.item == item)
        r = -(matrices.bread[a] @ matrices.inverse)  # 0 outside the free thresholds
        r[np.arange(len(a)), a] += 1.0
        slope = r @ matrices.bread[:, a]
        noise = r @ matrices.meat @ r.T
        scale = np.sqrt(np.maximum(np.diag(slope), 0.0))
        if not scale.all() or np.linalg.cond(slope / np.outer(scale, scale)) > SINGULAR:
            continue  # a category that nobody used, or all answers alike
        mean = np.linalg.solve(slope, np.full(len(a), 1 / len(a)))
        displacement[item] = mean @ (r @ pull)
        se[item] = np.sqrt(max(float(mean @ noise @ mean), 0.0))
    return Displacements(displacement, se)


def displaced_as_a_whole(optimum: PenalizedPoint, matrices: Matrices | None, fixed: Mask) -> Displacements:
    """All thresholds of a fixed item moved alike, by the equation of the item alone. With matrices, the free items
    follow as at the anchor; without them they are held."""
    layout = optimum.point.layout
    answers = optimum.point.rows_with_scores.prepare(answers_given_score, optimum.point.tables)
    delta = np.zeros(layout.n_items)
    at_anchor = ItemEquations(*answers.sum(item_equations, delta))
    equations = at_anchor
    for _ in range(STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            newton_step = np.clip(equations.value / equations.slope, -LONGEST_STEP, LONGEST_STEP)
            step = np.where(fixed & (equations.slope > 0), newton_step, 0.0)
        delta = np.clip(delta + step, -FARTHEST, FARTHEST)
        equations = ItemEquations(*answers.sum(item_equations, delta))
        if np.all((np.abs(step) < SETTLED) | (np.abs(delta) == FARTHEST)):
            break
    feedback = Feedback(np.zeros(layout.n_items), np.zeros(layout.n_items))
    if matrices is not None:
        feedback = _feedback(layout, fixed, matrices, at_anchor.slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = np.where(delta == 0, at_anchor.slope, at_anchor.value / delta)
        # What comes back to an item by way of the others grows as its information does.
        left = np.maximum(1 - feedback.share * secant / at_anchor.slope, LEAST_SHARE)
        left_there = np.maximum(1 - feedback.share * equations.slope / at_anchor.slope, LEAST_SHARE)
        displacement = np.clip(delta / left, -FARTHEST, FARTHEST)
        se = np.sqrt(np.maximum(equations.noise + feedback.noise, 0)) / (equations.slope * left_there)
    has_value = fixed & (np.abs(delta) < FARTHEST) & np.isfinite(displacement) & (equations.slope > 0)
    return Displacements(np.where(has_value, displacement, np.nan), np.where(has_value, se, np.nan))


class Feedback(NamedTuple):
    """The share of each fixed item's slope that comes back by way of the free items; what they add to its noise."""

    share: Floats
    noise: Floats


def _feedback(layout: Thresholds, fixed: Mask, matrices: Matrices, slope: Floats) -> Feedback:
    """With T = H_AF H_FF^-1, fixed item a set free has the slope H_aa - T_a H_Fa and the noise g_a - T_a g_F."""
    bread = matrices.bread
    meat = matrices.meat
    if not layout.binary:
        bread = np.add.reduceat(bread, layout.first, axis=0)
        meat = np.add.reduceat(meat, layout.first, axis=0)
    bread = bread[fixed]
    meat = meat[fixed]
    slope = slope[fixed]
    lever = bread @ matrices.inverse
    share = np.zeros(layout.n_items)
    noise = np.zeros(layout.n_items)
    comes_back = np.einsum("af,af->a", lever, bread)
    share[fixed] = safe_divide(comes_back, slope)
    noise[fixed] = np.einsum("af,af->a", lever, lever @ matrices.meat - 2 * meat)
    return Feedback(np.clip(share, 0, 1), noise)


@dataclass(frozen=True, eq=False)
class GivenAnswers:
    """Answers with what the score says about them: item, category, P(X = c | s), categories x answers, and weight."""

    items: NDArray[np.int32]
    category: Ints
    p: Floats
    weight: Floats | float


def answers_given_score(rows: PeopleRows, tables: Any) -> GivenAnswers:
    """From people's scores P(X >= k | s) - 1{X >= k}, below zero where a threshold was passed. Where the score is zero
    the threshold was passed, or failed, for sure: passed if a higher one is open."""
    scores = rows.scores(tables)
    weight: Floats | float = 1.0
    if rows.weight is not None:
        weight = np.repeat(rows.weight, np.diff(scores.indptr))
    values = scores.values / np.where(weight == 0, 1.0, weight)
    is_open = np.abs(values) > CERTAIN
    passed = np.where(is_open, values < 0, np.logical_or.accumulate(is_open[::-1])[::-1])
    ends = np.ones((1, len(scores.items)))
    tails = np.concatenate([ends, values + passed, 0 * ends])
    return GivenAnswers(scores.items, passed.sum(axis=0), np.maximum(tails[:-1] - tails[1:], 0), weight)


class ItemEquations(NamedTuple):
    """For every item moved by its delta: what sum_l (E_la(delta) - X_la) = 0 lacks, its slope, its squared noise."""

    value: Floats
    slope: Floats
    noise: Floats


def item_equations(answers: GivenAnswers, delta: Floats) -> ItemEquations:
    """Moving item a by delta multiplies every person's odds of category c, given the score, by exp(-c delta)."""
    category = np.arange(len(answers.p))
    p = answers.p * np.exp(-category[:, None] * delta)[:, answers.items]
    p /= p.sum(axis=0)
    mean = category @ p
    lacking = answers.weight * (mean - answers.category)
    variance = answers.weight * (category**2 @ p - mean**2)

    def by_item(values: Floats) -> Floats:
        return np.bincount(answers.items, weights=values, minlength=len(delta)).astype(np.float64)

    return ItemEquations(by_item(lacking), by_item(variance), by_item(lacking**2))
