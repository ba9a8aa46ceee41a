"""Standard errors of a spectral fit: which way to the sandwich is taken, and what anchors and loose parts add.

The ways themselves are in `conditional.errors`; those of the chain alone in `chain.errors`. `spectral_steps` calls
`errors_of` where Newton's steps ended, `chain_alone` asks `chosen_method` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.chain.prior import precision_of
from spectral_irt.conditional.errors import Matrices, centered_covariance, standard_errors
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.estimators.base import Tell, reserve_memory
from spectral_irt.estimators.estimable import DENSE_ITEMS, Errors, between_parts

if TYPE_CHECKING:
    from spectral_irt.estimators.spectral_steps import Solution

SE_METHODS = ("auto", "dense", "one-pass", "multiplier", "information", "none")
QUICK_ITEMS = 1000  # thresholds below which the dense sandwich costs next to nothing
DENSE_WORK = 4e9  # multiplications that the dense Omega may cost before a cheaper valid way is preferred
FAST = 0.3  # contraction up to which one pass is within about 3% of the dense value
SLUGGISH = 0.9  # contraction from which the multipliers' correction is as large as what it corrects
ONE_PASS_ITEMS = 20  # fewer items than this are too entangled by the centering for one pass
SLOW = 0.5  # contraction above which weak links between groups of items are looked for
MANY_PAIRS = 1e8  # multiplications of the dense sandwich from which single precision is worth having
MIXING = 0.5  # contraction up to which one pass is near the dense value for several thresholds: a per cent above at 0.4


def choose_method(n_items: int, contraction: float, pair_work: float) -> str:
    """Which way to standard errors "auto" takes where there are multipliers, too.

    Dense where it is cheap. Beyond, one pass where that is valid, or where pairs of answers cannot be looked at;
    multipliers where they are accurate or nothing else fits; dense for slow chains of up to 5,000 items.
    """
    if n_items < ONE_PASS_ITEMS or (n_items <= QUICK_ITEMS and pair_work + n_items**3 <= DENSE_WORK):
        return "dense"
    if contraction < FAST or np.isinf(pair_work):
        return "one-pass"
    if contraction >= SLUGGISH and n_items <= DENSE_ITEMS:
        return "dense"
    return "multiplier"


def chosen_method(usable: Responses, contraction: float, *, multipliers: bool = True) -> str:
    """Which way "auto" takes for any number of thresholds; the chain alone has no multipliers."""
    n_thresholds = usable.thresholds.n_entries
    if multipliers and not usable.thresholds.binary:
        if n_thresholds <= QUICK_ITEMS:
            return "dense"
        return "one-pass" if contraction < MIXING else "multiplier"
    method = choose_method(n_thresholds, contraction, usable.pair_work)
    if method == "multiplier" and not multipliers:
        return "dense" if n_thresholds <= DENSE_ITEMS else "one-pass"
    return method


def errors_of(solution: Solution, *, se: str, seed: int, tell: Tell) -> Errors:
    """Standard errors by this method, or the one that "auto" takes; with those of the anchors, where they have any."""
    method = se
    if method == "auto":
        method = chosen_method(solution.plan.responses, solution.chain.contraction)
    if method == "none":
        return Errors.none(solution.optimum.point.layout)
    tell(f"standard errors ({method})")
    if method in ("dense", "information"):
        return _from_matrices(solution, method, seed)
    return _without_matrices(solution, method, seed)


def _without_matrices(solution: Solution, method: str, seed: int) -> Errors:
    """By one pass, or by random right-hand sides."""
    optimum = solution.optimum
    anchored = solution.plan.anchored
    thresholds, locations = standard_errors(optimum, method, solution.chain.contraction, seed)
    if anchored is not None and anchored.errors is not None:
        of_anchors = anchored.passed_on(optimum, solution.plan.included_thresholds, None, seed)
        thresholds = np.sqrt(thresholds**2 + of_anchors)
        locations = np.sqrt(locations**2 + optimum.point.layout.mean(of_anchors))
    return Errors(thresholds, locations, method)


def _from_matrices(solution: Solution, method: str, seed: int) -> Errors:
    """The dense sandwich; or the inverse of the information."""
    optimum = solution.optimum
    usable = solution.plan.responses
    layout = optimum.point.layout
    anchored = solution.plan.anchored
    contraction = solution.chain.contraction
    reserve_memory(usable, matrices_certain=True)  # the fit began without them where "auto" might have taken one pass
    many_pairs = usable.n_persons * usable.n_items**2 > MANY_PAIRS
    single = contraction < SLUGGISH and many_pairs and anchored is None
    information = information_at(solution.likelihood, optimum.point.beta, single=single)
    matrices = Matrices.of(optimum, information.matrix, single=single)
    if contraction > SLOW:
        expected = expected_meat(solution.likelihood, optimum.point.beta, information.matrix)
        matrices = matrices.across_weak_links(layout, expected)
    covariance = matrices.covariance(robust=method == "dense")
    if anchored is None and not layout.binary:
        covariance = centered_covariance(layout, covariance, solution.parts)
    elif anchored is not None and anchored.errors is not None:
        covariance = covariance + anchored.passed_on(optimum, solution.plan.included_thresholds, matrices, seed)
    return Errors.of(layout, covariance, method, matrices)


def expected_meat(likelihood: Likelihood, beta: Floats, information: Floats) -> Floats:
    """What the sum over people of their squared scores is under the model: the information, each person counting by the
    square of their weight."""
    if likelihood.weights is None:
        return information
    squared = Likelihood(likelihood.responses, beta, weights=likelihood.weights**2)
    return information_at(squared, beta).matrix


def unknown_levels(solution: Solution, equal_means: bool) -> tuple[Ints, Floats]:
    """The part of each item, and the variance of the level of that part against the scale."""
    alpha = solution.regularization.alpha
    if equal_means and not solution.regularization.fixed:
        # How far all items spread, where a prior knows those that it acts on.
        point = solution.optimum.point
        alpha = precision_of(point.layout.mean(solution.optimum.beta), point.own.sum(axis=(1, 2)))
    if solution.plan.anchored is None:
        return solution.parts, between_parts(solution.parts, alpha, equal_means)
    part = solution.optimum.floating[solution.optimum.point.layout.first] + 1  # 0: tied to the anchors
    return part, np.where(part == 0, 0.0, between_parts(part, alpha, equal_means))
