"""Chain, then landing, for ordered answers: the default of `SpectralPartialCredit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectral_irt.chain.neighbors import Neighbors
from spectral_irt.chain.prior import LocationPrior, Prior, fading_of_both
from spectral_irt.chain.regularization import Regularization, acted, enough_is_known, plan_prior
from spectral_irt.chain.rounds import Rounds
from spectral_irt.chain.weights import PERSONS
from spectral_irt.conditional.errors import Matrices, standard_errors
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import CLOSE, NEWTON, Newton, newton
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask, examine
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import listed
from spectral_irt.estimators.base import WEAK_LINKS
from spectral_irt.estimators.chain_alone import kept_items, slow_mixing
from spectral_irt.estimators.estimate import Estimate, convergence, location_errors, with_missing
from spectral_irt.estimators.landed import (
    START,
    apart,
    between_parts,
    landed_difficulty,
    regularization_finding,
    with_scale_first,
)

QUICK_STEPS = 1000  # thresholds up to which the dense sandwich costs little
MIXING = 0.5  # contraction up to which one pass is near the dense value: a per cent above it at 0.3 to 0.4, measured
FEW = 20  # thresholds
WEAK_TIE = 0.1  # precision


def landed_thresholds(
    responses: Responses,
    regularization: str | float,
    *,
    equal_means: bool,
    se: str,
    tol: float,
    max_passes: int,
    seed: int,
    tell: Callable[[str], None],
) -> Estimate:
    """Thresholds on the penalized conditional likelihood, started from the chain that counts every person once."""
    tell("looking at the design")
    design = examine(responses)
    if responses.thresholds.binary:
        return landed_difficulty(
            design,
            regularization,
            equal_means=equal_means,
            weights=None,
            se=se,
            tol=tol,
            max_passes=max_passes,
            seed=seed,
            tell=tell,
        )
    plan = plan_prior(design, regularization, "threshold")
    rest, kept, findings = kept_items(design, plan)
    steps, mask = rest.thresholds, kept[responses.thresholds.item]
    information, tied = design.information[mask], design.component[mask] == 0
    # Where there is a prior, the chain has a weak tie to the mean of all thresholds, for a start that lies far out for
    # thresholds far out: steps that lead inwards are short of the mark, those that lead outwards go past it.
    tie = plan if plan.kind == "none" else replace(plan, kind="virtual item", alpha=WEAK_TIE, estimated=False)
    tell("solving the chain")
    rounds = Rounds(
        rest, PERSONS.name, tie, information, tol=max(tol, START), max_passes=max_passes, tell=tell, rough=True
    )
    found, beta, passes, alpha = rounds.solve(), rounds.beta, rounds.passes, plan.alpha
    del rounds  # its memory is wanted

    prior, parts = None, np.zeros(rest.n_items, dtype=np.int64)
    if plan.kind != "none":
        fades = np.ones(rest.n_items), np.ones(steps.n_entries)
        fades = fading_of_both(steps, information, tied, beta) if plan.estimated else fades
        scale = np.bincount(steps.item, weights=tied, minlength=rest.n_items) > 0
        near: LocationPrior | None = None
        if fades[0].any() or not scale.all():
            neighbors = Neighbors(rest)
            parts = parts if scale.all() else with_scale_first(neighbors.parts(), scale)
            near = LocationPrior(neighbors, alpha, fades[0], plan.estimated)
        if near or fades[1].any():
            prior = Prior(steps, near, alpha, fades[1], plan.estimated)
        else:
            plan = enough_is_known(information, "threshold")
    landed = newton(Likelihood(rest, beta), beta, prior=prior, parts=parts[steps.item], tell=tell)
    if landed.prior:
        last, near = landed.prior, landed.prior.location
        plan = replace(plan, alpha=near.alpha if near else 0.0, offsets=last.alpha)
        plan = steps_acted(plan, landed, rest, tied)

    method = se if se != "auto" else chosen_method(steps, found.contraction)
    if method != "none":
        tell(f"standard errors ({method})")
    matrix = Matrices.of(landed).covariance(method == "dense") if method in ("dense", "information") else None
    beta, matrix = centered_by_part(steps, landed.beta, matrix, parts)
    if matrix is not None:
        errors, location = np.sqrt(np.maximum(np.diag(matrix), 0)), location_errors(steps, matrix)
    elif method == "none":
        errors, location = np.full(len(beta), np.nan), np.full(rest.n_items, np.nan)
    else:
        errors, location = standard_errors(landed, method, found.contraction, seed)
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
    findings += slow_mixing(design, rest, kept, found.contraction)
    return Estimate(
        with_missing(beta, mask),
        with_missing(errors, mask),
        design.status(),
        passes + landed.evaluations,
        landed.move,
        item_se=with_missing(location, kept),
        covariance=None if matrix is None else with_missing(matrix, mask),
        information=with_missing(landed.point.own.sum(axis=(1, 2)), kept),
        findings=tuple(findings),
        regularization=plan,
        se_method=method,
        solver=found.method + NEWTON,
        contraction=found.contraction,
    )


def steps_acted(plan: Regularization, landed: Newton, rest: Responses, tied: Mask) -> Regularization:
    """The plan with what the prior of locations and steps did."""
    prior, steps, answers = landed.prior, rest.thresholds, np.nan_to_num(rest.category_counts)
    assert prior is not None
    step = replace(landed, prior=None).roughly(prior @ landed.beta)
    counts = answers[steps.item, steps.level - 1], answers[steps.item, steps.level]

    def name(k: int) -> str:
        which = f"item {listed([rest.items[steps.item[k]]])}"
        return f"threshold {steps.level[k]} of {which}" if steps.max_score[steps.item[k]] > 1 else which

    located = int((prior.location.fade > 0).sum()) if prior.location else 0
    plan = replace(plan, offset_sd=float(prior.alpha**-0.5), located=located)
    return acted(plan, prior.counts > 0, tied, step, counts, name)


def chosen_method(steps: Thresholds, contraction: float) -> str:
    """Which way to standard errors "auto" takes."""
    if steps.n_entries <= QUICK_STEPS:
        return "dense"
    return "one-pass" if contraction < MIXING and steps.n_entries >= FEW else "multiplier"


def centered_by_part(
    steps: Thresholds, thresholds: Floats, covariance: Floats | None, parts: Ints
) -> tuple[Floats, Floats | None]:
    """Thresholds whose items have the mean location zero within each part, and their covariance."""
    size = np.bincount(parts)[parts]
    weight = 1 / (size * steps.max_score)[steps.item]
    own = parts[steps.item]
    beta = thresholds - np.bincount(own, weights=weight * thresholds)[own]
    if covariance is None:
        return beta, None
    mean = np.zeros((int(parts.max()) + 1, steps.n_entries))
    mean[own, np.arange(steps.n_entries)] = weight
    cross = (mean @ covariance)[own]
    return beta, covariance - cross - cross.T + (mean @ covariance @ mean.T)[np.ix_(own, own)]
