"""Chain, then landing, for ordered answers: the default of `SpectralPartialCredit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectral_irt.chain.neighbors import Neighbors
from spectral_irt.chain.prior import Prior
from spectral_irt.chain.regularization import Regularization, plan_prior
from spectral_irt.chain.step_prior import StepPrior, StepRegularization, step_fading
from spectral_irt.chain.steps import StepRounds
from spectral_irt.chain.weights import PERSONS
from spectral_irt.estimators.base import WEAK_LINKS, convergence
from spectral_irt.estimators.landed import (
    START,
    apart,
    between_parts,
    landed_difficulty,
    regularization_finding,
    with_scale_first,
)
from spectral_irt.estimators.landing import CLOSE, LANDED
from spectral_irt.estimators.ordered_base import StepEstimate, location_errors, spread, spread_matrix
from spectral_irt.estimators.step_errors import covariance, threshold_errors
from spectral_irt.estimators.step_landing import land_steps
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.design import Mask, examine
from spectral_irt.responses.ordered import OrderedResponses, Steps
from spectral_irt.responses.step_design import StepDesign, estimable_items, examine_ordered

QUICK_STEPS = 1000  # thresholds up to which the dense sandwich costs little
MIXING = 0.5  # contraction up to which one pass is near the dense value: a per cent above it at 0.3 to 0.4, measured
FEW = 20  # thresholds
WEAK_TIE = 0.1  # precision


def landed_thresholds(
    responses: OrderedResponses,
    regularization: str | float,
    *,
    equal_means: bool,
    se: str,
    tol: float,
    max_passes: int,
    seed: int,
    tell: Callable[[str], None],
) -> StepEstimate:
    """Thresholds on the penalized conditional likelihood, started from the chain that counts every person once."""
    tell("looking at the design")
    if responses.steps.binary:
        return _right_and_wrong(responses, regularization, equal_means, se, tol, max_passes, seed, tell)
    design = examine_ordered(responses)
    plan = plan_prior(design, regularization, "threshold")
    rest, kept, findings = kept_ordered(design, plan)
    steps, mask = rest.steps, kept[responses.steps.item]
    information, tied = design.information[mask], design.component[mask] == 0
    # Where there is a prior, the chain has a weak tie to the mean of all thresholds, for a start that lies far out for
    # thresholds far out: steps that lead inwards are short of the mark, those that lead outwards go past it.
    tie = plan if plan.kind == "none" else replace(plan, kind="virtual item", alpha=WEAK_TIE, estimated=False)
    tell("solving the chain")
    rounds = StepRounds(
        rest, PERSONS.name, tie, information, tol=max(tol, START), max_passes=max_passes, tell=tell, rough=True
    )
    found, beta, passes, alpha = rounds.solve(), rounds.beta, rounds.passes, plan.alpha
    del rounds  # its memory is wanted

    prior, parts = None, np.zeros(rest.n_items, dtype=np.int64)
    if plan.kind != "none":
        fades = step_fading(steps, information, tied)
        if not plan.estimated:
            fades = np.ones(rest.n_items), np.ones(steps.n_steps)
        scale = np.bincount(steps.item, weights=tied, minlength=rest.n_items) > 0
        near: Prior | None = None
        if fades[0].any() or not scale.all():
            neighbors = Neighbors.of_ordered(rest)
            parts = parts if scale.all() else with_scale_first(neighbors.parts(), scale)
            near = Prior(neighbors, alpha, fades[0], plan.estimated)
        prior = StepPrior(steps, near, alpha, fades[1], plan.estimated)
    landed = land_steps(rest, beta, prior=prior, parts=parts, tell=tell)
    if landed.prior:
        last, near = landed.prior, landed.prior.location
        plan = StepRegularization(plan.kind, plan.reason, near.alpha if near else 0.0, plan.estimated, steps=last.alpha)

    method = se if se != "auto" else chosen_method(steps, found.contraction)
    if method != "none":
        tell(f"standard errors ({method})")
    matrix = covariance(landed, method == "dense") if method in ("dense", "information") else None
    beta, matrix = centered_by_part(steps, landed.beta, matrix, parts)
    if matrix is not None:
        errors, location = np.sqrt(np.maximum(np.diag(matrix), 0)), location_errors(steps, matrix)
    elif method == "none":
        errors, location = np.full(len(beta), np.nan), np.full(rest.n_items, np.nan)
    else:
        errors, location = threshold_errors(landed, method, found.contraction, seed)
    if parts.any():
        unknown = between_parts(parts, plan.alpha, equal_means)
        location = np.sqrt(location**2 + unknown)
        wider = unknown[steps.item]
        errors = np.sqrt(errors**2 + wider)
        own = parts[steps.item]
        matrix = None if matrix is None else matrix + np.where(own[:, None] == own, wider, 0.0)
        findings = [each for each in findings if each.code != "disconnected"]
        findings.append(apart(rest, parts, equal_means))
    findings.append(regularization_finding(plan))
    findings += convergence(
        "the conditional likelihood", landed.evaluations, "steps", "a move of", landed.move, CLOSE, remedy=WEAK_LINKS
    )
    return StepEstimate(
        spread(beta, mask),
        spread(errors, mask),
        spread(location, kept),
        design.item_status(),
        passes + landed.evaluations,
        landed.move,
        covariance=None if matrix is None else spread_matrix(matrix, mask),
        findings=tuple(findings),
        regularization=plan,
        se_method=method,
        solver=found.method + LANDED,
        contraction=found.contraction,
        extra={"kept": kept},
    )


def _right_and_wrong(
    responses: OrderedResponses,
    regularization: str | float,
    equal_means: bool,
    se: str,
    tol: float,
    max_passes: int,
    seed: int,
    tell: Callable[[str], None],
) -> StepEstimate:
    """Where every item is right or wrong, the blocks are those of `Responses`, and the estimate is that of these."""
    fit = landed_difficulty(
        examine(responses),
        regularization,
        equal_means=equal_means,
        weights=None,
        se=se,
        tol=tol,
        max_passes=max_passes,
        seed=seed,
        tell=tell,
    )
    return StepEstimate(
        fit.difficulty,
        fit.se,
        fit.se,
        fit.status,
        fit.passes,
        fit.residual,
        covariance=None if fit.covariance is None else spread_matrix(fit.covariance, fit.kept),
        findings=fit.findings,
        regularization=fit.regularization,
        se_method=fit.se_method,
        solver=fit.solver,
        contraction=fit.contraction,
        extra={"kept": fit.kept},
    )


def chosen_method(steps: Steps, contraction: float) -> str:
    """Which way to standard errors "auto" takes."""
    if steps.n_steps <= QUICK_STEPS:
        return "dense"
    return "one-pass" if contraction < MIXING and steps.n_steps >= FEW else "multiplier"


def centered_by_part(
    steps: Steps, thresholds: Floats, covariance: Floats | None, parts: Ints
) -> tuple[Floats, Floats | None]:
    """Thresholds whose items have the mean location zero within each part, and their covariance."""
    size = np.bincount(parts)[parts]
    weight = 1 / (size * steps.counts)[steps.item]
    own = parts[steps.item]
    beta = thresholds - np.bincount(own, weights=weight * thresholds)[own]
    if covariance is None:
        return beta, None
    mean = np.zeros((int(parts.max()) + 1, steps.n_steps))
    mean[own, np.arange(steps.n_steps)] = weight
    cross = (mean @ covariance)[own]
    return beta, covariance - cross - cross.T + (mean @ covariance @ mean.T)[np.ix_(own, own)]


def kept_ordered(design: StepDesign, plan: Regularization) -> tuple[OrderedResponses, Mask, list[Finding]]:
    """The items that take part, which they are, and the findings on the design."""
    responses, findings = design.ordered, list(design.findings)
    if plan.kind == "none" and not (design.connected and design.answered.all()):
        rest, kept, left_out = estimable_items(responses)
        said = ("extreme_items", "uninformed_items", "empty_categories")
        return rest, kept, [f for f in findings if f.code not in said] + list(left_out)
    kept = responses.item_counts > 0
    return responses if kept.all() else responses.take_items(kept), kept, findings
