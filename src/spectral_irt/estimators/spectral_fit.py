"""The spectral estimate in eight steps: the function behind `SpectralRasch` and `SpectralPartialCredit`.

1. `examine` the design; 2. plan whether there is a prior; 3. keep the items that can be estimated; 4. solve the chain,
where Newton's steps start (the chain alone, `refine=False`, stops here); 5. make the prior; 6. Newton steps on the
conditional likelihood; 7. standard errors; 8. the estimate, with findings. Anchored thresholds are fixed throughout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.chain.operator import ItemChain, covariance, one_pass
from spectral_irt.chain.prior import LocationPrior, Neighbors, Prior, fading_of_both
from spectral_irt.chain.regularization import (
    AMPLE_INFORMATION,
    FEW_ANSWERS,
    Regularization,
    acted,
    check_regularization,
    enough_is_known,
    fading,
    linked_items,
    met_items,
    plan_prior,
    plan_regularization,
)
from spectral_irt.chain.stationary import Rounds
from spectral_irt.chain.weights import PERSONS, weighting_named
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import Newton, newton
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask, estimable, examine, tied_to
from spectral_irt.data.same_items import SharedSets
from spectral_irt.errors import OptionError, check_option, listed
from spectral_irt.estimators.base import WEAK_LINKS, Tell
from spectral_irt.estimators.estimate import Estimate, Kept, centered, convergence, person_weights
from spectral_irt.estimators.spectral_errors import (
    QUICK_ITEMS,
    SE_METHODS,
    Known,
    Start,
    TakingPart,
    chosen_method,
    estimate,
    slow_mixing,
)

# Parameters that estimators and `spectral_fit` have by the same name.
SHARED = ("weighting", "regularization", "nu", "nu_rule", "refine", "assume_equal_means", "se", "tol")
CHAIN_ERRORS = ("auto", "dense", "one-pass", "none")  # ways to standard errors of the chain alone
START = 1e-5  # residual of the chain from which Newton's steps start
WEAK_TIE = 0.1  # precision


def spectral_fit(
    responses: Responses,
    *,
    weighting: str = "ability",
    regularization: str | float = "auto",
    nu: float = 0.0,
    nu_rule: str = "differed",
    refine: str | bool = "auto",
    assume_equal_means: bool = False,
    weights: ArrayLike | None = None,
    known: Known | None = None,
    se: str = "auto",
    tol: float = 1e-10,
    max_passes: int = 10_000,
    seed: int = 0,
    progress: Tell | None = None,
) -> Estimate:
    """Thresholds with standard errors by the spectral method, for any number of thresholds.

    sum_l sum_j h_ij^l ( pi_i X_li (1 - X_lj) - pi_j X_lj (1 - X_li) ) = 0,   beta_i = log pi_i - mean.

    The parameters are those of `SpectralRasch`; `known` are anchors.

    >>> from spectral_irt import datasets
    >>> spectral_fit(datasets.load_lsat()).thresholds.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """
    check_option("se", se, SE_METHODS)
    if not 0 < tol < 1:
        raise OptionError(f"`tol` is {tol}; it must lie between 0 and 1.")
    tell = progress or (lambda text: None)
    tell("looking at the design")
    design = examine(responses)
    check_regularization(regularization, nu, nu_rule, weighting)
    each = None if weights is None else person_weights(responses, weights)
    solving: dict[str, Any] = {"max_passes": max_passes, "tell": tell}
    if not refined(refine, weighting, nu):
        if each is not None or known is not None:
            what = "people have weights" if known is None else "items are anchored"
            raise OptionError(f"{what} in the Newton steps only; leave out `refine=False`, and weight by ability.")
        noun = _noun(responses.thresholds)
        plan = plan_regularization(design, regularization, nu, nu_rule, weighting, noun)
        return _chain_alone(design, plan, weighting, nu_rule, se, tol, **solving)

    fit = taking_part(design, regularization, known)
    plan, rest, mask = fit.plan, fit.rest, fit.mask
    shared = None  # what people on shared sets told, where it is all that a fit needs
    if each is None and known is None and plan.kind == "none" and rest.n_items <= QUICK_ITEMS:
        shared = rest.shared if se in ("auto", "dense", "information", "none") else None
    start = _solved(fit, shared, tol, **solving)
    prior, parts, plan = _prior(fit, start)
    likelihood = Likelihood(rest, start.beta, weights=each, shared=shared)
    fixed = None if known is None else known.fixed[mask]
    found = newton(likelihood, start.beta, prior=prior, fixed=fixed, parts=parts[rest.thresholds.item], tell=tell)
    plan = _acted(plan, found, rest, fit.tied) if found.prior else plan
    return estimate(fit, plan, start, found, parts, shared, each, assume_equal_means, se, seed, tell)


def options_of(estimator: Any, tell: Tell, weights: ArrayLike | None = None) -> dict[str, Any]:
    """The parameters of an estimator as `spectral_fit` has them."""
    given = estimator.get_params()
    options = {name: given[name] for name in SHARED if name in given}
    how = {"max_passes": estimator.max_iter, "seed": estimator.random_state, "progress": tell, "weights": weights}
    return options | how


def refined(refine: str | bool, weighting: str, nu: float) -> bool:
    """Whether the chain is followed by Newton steps: by default under ability weights without nu."""
    moving = weighting_named(weighting).moving
    if refine == "auto":
        return moving and nu == 0
    if refine not in (True, False):
        raise OptionError(f"`refine` is {refine!r}; it is 'auto', True or False.")
    if refine and (nu > 0 or not moving):
        raise OptionError("`refine=True` goes with `weighting='ability'` and without `nu`.")
    return bool(refine)


def start_thresholds(responses: Responses) -> Floats:
    """Where other iterations start: what the chain alone gives; 0 for an unanswered item."""
    weighting = "ability" if responses.thresholds.binary else "persons"
    beta = spectral_fit(responses, weighting=weighting, refine=False, se="none", tol=1e-6).thresholds
    return np.where(np.isfinite(beta), beta, 0.0)


def _noun(layout: Thresholds) -> str:
    return "item" if layout.binary else "threshold"


def taking_part(design: Design, regularization: str | float, known: Known | None) -> TakingPart:
    """Which items take part, whether there may be a prior, and what the design has to say."""
    responses, noun = design.answers, _noun(design.layout)
    if known is None:
        plan = plan_prior(design, regularization, noun)
        rest, kept, findings = kept_items(design, plan)
        return TakingPart(design, plan, rest, kept, design.component[kept[design.layout.item]] == 0, None, findings)
    reached = tied_to(responses, known.fixed)
    plan, kept = _plan_beside(design, known.fixed, reached, regularization, noun)
    rest = responses if kept.all() else responses.take_items(kept)
    mask = kept[design.layout.item]
    findings = [finding for finding in design.findings if finding.code != "disconnected"]
    return TakingPart(design, plan, rest, kept, reached[mask], known, findings)


def kept_items(design: Design, plan: Regularization) -> tuple[Responses, Mask, list[Finding]]:
    """The items that take part (without a prior some are left out), which they are, and findings on the design."""
    responses, findings = design.answers, list(design.findings)
    if plan.kind == "none" and not (design.connected and design.answered.all()):
        rest, kept, left_out = estimable(responses)
        said = ("extreme_items", "uninformed_items", "empty_categories")
        return rest, kept, [f for f in findings if f.code not in said] + list(left_out)
    kept = responses.item_counts > 0
    return responses if kept.all() else responses.take_items(kept), kept, findings


def _plan_beside(
    design: Design, fixed: Mask, reached: Mask, regularization: str | float, noun: str
) -> tuple[Regularization, Mask]:
    """Whether the free thresholds need a prior beside anchors, and which items take part."""
    responses, layout = design.answers, design.layout
    kept, free = responses.item_counts > 0, design.answered & ~fixed
    if isinstance(regularization, str):
        loose = int((free & ~reached).sum())
        if loose:
            verb = f"{noun} is" if loose == 1 else f"{noun}s are"
            reason = f"{loose:,} {verb} not tied to the anchors by the data alone"
            return Regularization("neighbors", reason, 1.0, True), kept
        if design.information[free].min(initial=AMPLE_INFORMATION) < AMPLE_INFORMATION:
            return Regularization("neighbors", FEW_ANSWERS.format(noun), 1.0, True), kept
        return enough_is_known(design.information[design.answered], noun), kept
    if regularization > 0:
        return Regularization("neighbors", "as asked", alpha=float(regularization)), kept
    while True:  # without the answers to items left out, others may lose their tie
        rest, mask = responses.take_items(kept), kept[layout.item]
        good = tied_to(rest, fixed[mask]) | fixed[mask]
        if good.all():
            return Regularization("none", "as asked"), kept
        kept[np.flatnonzero(kept)[np.unique(rest.thresholds.item[~good])]] = False


def _solved(fit: TakingPart, shared: SharedSets | None, tol: float, **solving: Any) -> Start:
    """The chain's thresholds; beside anchors with their mean in each part of the data, and these where they are.

    Where there is a prior, the chain has its simple one, around the mean of all; with several thresholds it is weak, so
    that the start lies far out for thresholds far out: steps that lead inwards do not overshoot.
    """
    rest, plan, known = fit.rest, fit.plan, fit.known
    if known is not None and known.fixed[fit.mask].all():
        return Start(known.value[fit.mask], None, 0, plan.alpha)
    binary = rest.thresholds.binary
    needed = plan.kind != "none" or (known is not None and not fit.design.connected)
    tie = replace(plan, kind="virtual item", alpha=plan.alpha or 1.0) if needed else plan
    if needed and not binary:
        tie = replace(tie, alpha=WEAK_TIE, estimated=False)
    solving["tell"]("solving the chain")
    rounds = Rounds(
        rest,
        "ability" if binary and shared is None else PERSONS.name,
        tie,
        fit.information,
        tol=max(tol, START),
        rough=True,
        chain=None if shared is None else ItemChain.by_persons(rest, shared),
        **solving,
    )
    found = rounds.solve()
    beta = rounds.beta
    if known is not None:
        value, part = known.value[fit.mask], fit.design.component[fit.mask]
        off, there = np.nan_to_num(value - beta), np.isfinite(value).astype(float)
        number = np.bincount(part, weights=there)
        shift = np.bincount(part, weights=off) / np.maximum(number, 1)
        shift[number == 0] = off.sum() / there.sum()
        beta = np.where(np.isfinite(value), value, beta + shift[part])
    return Start(beta, found, rounds.passes, rounds.plan.alpha if binary else plan.alpha)


def _prior(fit: TakingPart, start: Start) -> tuple[Prior | None, Ints, Regularization]:
    """The prior, which items are linked (part 0 has the scale), and the plan: without a prior where none counts."""
    rest, plan, layout, tied = fit.rest, fit.plan, fit.rest.thresholds, fit.tied
    parts = np.zeros(rest.n_items, dtype=np.int64)
    if plan.kind == "none":
        return None, parts, plan
    fixed = np.zeros(len(tied), dtype=bool) if fit.known is None else fit.known.fixed[fit.mask]
    tied = tied | fixed
    location, offsets = np.ones(rest.n_items), np.zeros(0) if layout.binary else np.ones(layout.n_entries)
    if plan.estimated and layout.binary:
        location = fading(fit.information, tied, start.alpha)
    elif plan.estimated:
        location, offsets = fading_of_both(layout, fit.information, tied, start.beta)
    on_scale = layout.sum(tied.astype(float)) > 0
    held = layout.sum((~fixed).astype(float)) == 0
    near = None
    if location[~held].any() or not on_scale.all():
        neighbors = Neighbors(rest)
        if not on_scale.all():
            parts = linked_items(rest)[0]  # renumbered: 0 is the one of the items that give the scale
            first = int(np.bincount(parts[on_scale]).argmax())
            parts = np.where(parts == first, 0, np.where(parts < first, parts + 1, parts))
        near = LocationPrior(neighbors, start.alpha, location, plan.estimated)
    if near is None and not offsets[~fixed[: len(offsets)]].any():
        return None, parts, enough_is_known(fit.information, _noun(layout))
    return Prior(layout, near, 0.0 if layout.binary else start.alpha, offsets, plan.estimated), parts, plan


def _acted(plan: Regularization, found: Newton, rest: Responses, tied: Mask) -> Regularization:
    """The plan with what the prior did."""
    prior, layout, answers = found.prior, rest.thresholds, np.nan_to_num(rest.category_counts)
    assert prior is not None
    near = prior.location
    plan = replace(plan, alpha=near.alpha if near else 0.0)
    if not layout.binary:
        located = int((near.fade > 0).sum()) if near else 0
        plan = replace(plan, offsets=prior.alpha, offset_sd=float(prior.alpha**-0.5), located=located)
    step = replace(found, prior=None).roughly(prior @ found.beta)
    counts = answers[layout.item, layout.level - 1], answers[layout.item, layout.level]
    acts = prior.counts > 0 if found.fixed is None else (prior.counts > 0) & ~found.fixed

    def name(k: int) -> str:
        which = f"item {listed([rest.items[layout.item[k]]])}"
        return f"threshold {layout.level[k]} of {which}" if layout.max_score[layout.item[k]] > 1 else which

    return acted(plan, acts, tied & (found.information > 1e-9), step, counts, name)


def _chain_alone(
    design: Design,
    plan: Regularization,
    weighting: str,
    nu_rule: str,
    se: str,
    tol: float,
    *,
    max_passes: int,
    tell: Tell,
) -> Estimate:
    """Thresholds as the chain itself has them."""
    check_option("se", se, CHAIN_ERRORS)
    responses = design.answers
    if plan.kind == "pairs":
        kept, findings = met_items(design, nu_rule), list(design.findings)
        rest = responses if kept.all() else responses.take_items(kept)
    else:
        rest, kept, findings = kept_items(design, plan)
    thresholds, mask = rest.thresholds, kept[responses.thresholds.item]
    tell("solving the chain")
    rounds = Rounds(rest, weighting, plan, design.information[mask], tol=tol, max_passes=max_passes, tell=tell)
    found = rounds.solve()
    plan, balance = rounds.plan, rounds.balance()

    method = chosen_method(se, rest, found.contraction, tell, multipliers=False)
    matrix = covariance(balance) if method == "dense" else None
    beta = rounds.beta
    if not thresholds.binary:
        beta, matrix = centered(thresholds, beta, matrix)
    errors, location = np.full(len(beta), np.nan), np.full(rest.n_items, np.nan)
    if method == "one-pass":
        errors, location = one_pass(balance)
    status = design.status()
    alone = np.zeros(len(beta), dtype=bool)
    if not balance.in_information and method != "none":
        # The sandwich takes what flows out of an item for information, which it is under ability weights only. What
        # rests on the prior alone has the prior's error; nu is no distribution, and what rests on it has none.
        if plan.kind == "pairs":
            alone, prior_se = status[kept] != "ok", np.nan
        else:
            alone, prior_se = design.information[mask] == 0, plan.alpha**-0.5 if plan.alpha else np.nan
        errors[alone] = prior_se
        if matrix is not None:
            matrix[alone] = matrix[:, alone] = prior_se * 0
            matrix[alone, alone] = prior_se**2
    if matrix is None and alone.any():  # an item with such a threshold: as if each were known by itself
        own = np.sqrt(thresholds.mean(errors**2) / thresholds.max_score)
        location = np.where(thresholds.mean(alone.astype(float)) > 0, own, location)

    findings.append(Finding("regularization", "note", plan.sentence))
    counted = ("the chain", found.passes, "passes", "residual", found.residual, tol)
    findings += convergence(*counted, remedy=WEAK_LINKS, warn=False)  # the solver has warned
    findings += slow_mixing(design, rest, kept, found.contraction, method)
    told = balance.through if balance.in_information else rounds.information()
    more: dict[str, Any] = {"location": location, "covariance": matrix, "information": thresholds.sum(told)}
    more |= {"regularization": plan, "se_method": method, "solver": found.method, "contraction": found.contraction}
    of_all = Kept(rest, kept, status, tuple(findings), responses.thresholds)
    return of_all.estimate(beta, errors, rounds.passes, found.residual, **more)
