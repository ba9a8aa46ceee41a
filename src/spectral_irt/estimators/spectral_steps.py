"""The spectral fit: thresholds as the log of the stationary distribution of a Markov chain, then Newton's steps.

`spectral_fit` takes eight steps: 1. `examine` the design; 2. plan whether there is a prior; 3. keep the items that can
be estimated; 4. solve the chain, where Newton's steps start (the chain alone, `refine=False`, stops here); 5. make the
prior; 6. Newton steps on the conditional likelihood; 7. standard errors; 8. the estimate, with findings. Anchored
thresholds are fixed throughout (`anchored`). The spectral estimators call it, and `bootstrap` and `calibrate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.chain.operator import PERSONS, ItemChain, Neighbors, weighting_named
from spectral_irt.chain.prior import (
    LocationPrior,
    Prior,
    RareCategories,
    Regularization,
    check_regularization,
    enough_is_known,
    fading_of_both,
    plan_prior,
    precision_of_some,
    share_of_prior,
    shift_of_step,
    with_effect,
)
from spectral_irt.chain.stationary import Rounds, linked_items
from spectral_irt.conditional.errors import center_parts
from spectral_irt.conditional.likelihood import QUICK_ANSWERS, Likelihood
from spectral_irt.conditional.newton import CLOSE, NEWTON, Newton
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask, examine
from spectral_irt.data.shared_sets import SharedSets
from spectral_irt.errors import OptionError, unknown_option
from spectral_irt.estimators.base import WEAK_LINKS, Estimate, Tell, convergence, with_missing
from spectral_irt.estimators.chain_alone import ChainOptions, ChainPrior, chain_alone
from spectral_irt.estimators.estimable import (
    Errors,
    EstimableItems,
    finding_on_groups,
    items_taking_part,
    person_weights,
    slow_mixing,
    weights_finding,
)
from spectral_irt.estimators.spectral_errors import QUICK_ITEMS, SE_METHODS, SLOW, errors_of, unknown_levels
from spectral_irt.numerics import safe_divide

if TYPE_CHECKING:
    from spectral_irt.estimators.anchored import Anchored

START = 1e-5  # residual of the chain from which Newton's steps start
WEAK_TIE = 0.1  # precision
UNDER_A_PRIOR = (
    "A prior draws items with few answers towards the others: intervals cover the truth in 95% of cases over all "
    "items, and in fewer for the hardest and the easiest items with few answers."
)
FEW_ITEMS = 50  # up to so many it matters, and costs little, that other items move with the one that a prior moves
FEW_RESPONSES = 200_000  # up to so many the likelihood without a prior costs well under a second
FARTHEST = 1.0  # logits by which an item that the chain pulled in is let out again
NO_INFORMATION = 1e-9  # on a threshold: up to so little is rounding


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
    anchored: Anchored | None = None,
    se: str = "auto",
    tol: float = 1e-10,
    max_passes: int = 10_000,
    seed: int = 0,
    progress: Tell | None = None,
) -> Estimate:
    """Thresholds with standard errors by the spectral method, for any number of thresholds.

    sum_l sum_j h_ij^l ( pi_i X_li (1 - X_lj) - pi_j X_lj (1 - X_li) ) = 0,   beta_i = log pi_i - mean.

    The parameters are those of `SpectralRasch`; `anchored` are thresholds that keep their value.

    >>> from spectral_irt import datasets
    >>> spectral_fit(datasets.load_lsat()).thresholds.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """
    if se not in SE_METHODS:
        raise unknown_option("se", se, SE_METHODS)
    if not 0 < tol < 1:
        raise OptionError(f"`tol` is {tol}; it must lie between 0 and 1.")
    tell = progress or (lambda text: None)
    tell("looking at the design")
    design = examine(responses)
    check_regularization(regularization, nu, nu_rule, weighting)
    weight_of_person = None if weights is None else person_weights(responses, weights)
    options = ChainOptions(tol, max_passes, tell)
    by_chain_only = nu > 0 or not weighting_named(weighting).moving
    _check_refine(refine, by_chain_only)
    if by_chain_only or not refine:
        if weight_of_person is not None or anchored is not None:
            what = "people have weights" if anchored is None else "items are anchored"
            raise OptionError(f"{what} in the Newton steps only; leave out `refine=False`, and weight by ability.")
        return chain_alone(design, ChainPrior(regularization, nu, nu_rule), weighting, se, options)

    plan = fit_plan(design, regularization, anchored)
    return _newton_fit(plan, weight_of_person, assume_equal_means, se=se, seed=seed, options=options)


def _newton_fit(
    plan: FitPlan, weights: Floats | None, equal_means: bool, *, se: str, seed: int, options: ChainOptions
) -> Estimate:
    """The chain, and Newton's steps from there, with standard errors: steps 4 to 8."""
    usable = plan.responses
    shared = None
    if weights is None and se in ("auto", "dense", "information", "none"):
        shared = plan.shared_sets()
    if shared is not None and se == "auto":
        se = "dense"
    chain = solve_chain(plan, shared, options)
    prior, parts, regularization = make_prior(plan, chain)
    likelihood = Likelihood(usable, chain.thresholds, weights=weights, shared=shared)
    part = parts[usable.thresholds.item]
    problem = Newton(likelihood, prior=prior, fixed=plan.fixed, parts=part)
    optimum = problem.solve(chain.thresholds, tell=options.tell)
    without_prior = None
    if optimum.prior:
        without_prior = thresholds_without_prior(optimum, likelihood, usable, plan.tied_within_parts, part)
        has_no_link = (part > 0) & ~plan.tied_within_parts
        regularization = describe_prior(regularization, optimum, usable, without_prior, has_no_link)
    solution = Solution(plan, chain, likelihood, optimum, parts, regularization)
    errors = errors_of(solution, se=se, seed=seed, tell=options.tell)
    estimate = estimate_of(solution, errors, equal_means)
    if without_prior is None:
        return estimate
    moved_by_prior = with_missing(without_prior - optimum.beta, plan.included_thresholds)
    return replace(estimate, without_prior=estimate.thresholds + moved_by_prior)


def _check_refine(refine: str | bool, by_chain_only: bool) -> None:
    """Refuse Newton steps from a chain that has none."""
    if refine not in ("auto", True, False):
        raise OptionError(f"`refine` is {refine!r}; it is 'auto', True or False.")
    if refine != "auto" and refine and by_chain_only:
        raise OptionError("`refine=True` goes with `weighting='ability'` and without `nu`.")


@dataclass(frozen=True, eq=False)
class FitPlan:
    """What goes into a fit: the items that take part, what the data alone tie to the scale and tell about each of
    their thresholds, and whether there is to be a prior."""

    design: Design
    regularization: Regularization
    items: EstimableItems
    tied: Mask  # of the thresholds that take part: to the largest component, or to the anchors
    anchored: Anchored | None

    @property
    def responses(self) -> Responses:
        """Those to the items that take part."""
        return self.items.responses

    @property
    def included_thresholds(self) -> Mask:
        return self.items.included_thresholds

    @property
    def information(self) -> Floats:
        """What the answers tell about each threshold that takes part, roughly."""
        return self.design.information[self.included_thresholds]

    @property
    def fixed(self) -> Mask | None:
        """The thresholds that take part and are anchored; None without anchors."""
        return None if self.anchored is None else self.anchored.fixed[self.included_thresholds]

    @cached_property
    def parts(self) -> Ints:
        """The part of each item: people link items of one part, and 0 is the one of the items that give the scale."""
        on_scale = self.responses.thresholds.sum(self._tied_or_fixed.astype(float)) > 0
        if self.regularization.kind == "none" or on_scale.all():
            return np.zeros(self.responses.n_items, dtype=np.int64)
        return _parts_from_the_scale(linked_items(self.responses)[0], on_scale)

    @cached_property
    def tied_within_parts(self) -> Mask:
        """Which thresholds the answers tie to the scale, or, in a part that nothing links with it, to each other."""
        component = self.design.component[self.included_thresholds]
        return tied_within(self.parts, component, self._tied_or_fixed, self.responses.thresholds)

    @property
    def _tied_or_fixed(self) -> Mask:
        if self.fixed is None:
            return self.tied
        return self.tied | self.fixed

    def shared_sets(self) -> SharedSets | None:
        """What people on shared sets of items told, where it is all that a fit needs."""
        few_items = self.responses.n_items <= QUICK_ITEMS
        if self.anchored is None and self.regularization.kind == "none" and few_items:
            return self.responses.shared
        return None


def _parts_from_the_scale(parts: Ints, on_scale: Mask) -> Ints:
    """The parts renumbered: 0 is the one of the items that give the scale, the others keep their order."""
    first = int(np.bincount(parts[on_scale]).argmax())
    return np.where(parts == first, 0, np.where(parts < first, parts + 1, parts))


def tied_within(parts: Ints, component: Ints, tied: Mask, layout: Thresholds) -> Mask:
    """Which thresholds are tied to the scale, or belong to the largest connected component, of two items or more, of
    their part. A part of 300 people is no less known for having no link, and no prior is to draw its items together."""
    part = parts[layout.item]
    apart = (part > 0) & ~tied & (component >= 0)
    if not apart.any():
        return tied
    places = np.flatnonzero(apart)
    n_components = int(component.max()) + 1
    component_of_part = part[places] * n_components + component[places]
    with_items = np.unique(np.stack([component_of_part, layout.item[places]]), axis=1)
    candidates, n_items = np.unique(with_items[0], return_counts=True)
    by_size = np.argsort(n_items, kind="stable")  # of each part the last is the largest
    candidates = candidates[by_size]
    core = np.full(int(part.max()) + 1, -1, dtype=np.int64)
    core[candidates // n_components] = np.where(n_items[by_size] > 1, candidates % n_components, -1)
    return tied | (apart & (component == core[part]))


def fit_plan(design: Design, regularization: str | float, anchored: Anchored | None) -> FitPlan:
    """Which items take part, whether there may be a prior, and what the design has to say."""
    if anchored is not None:
        return anchored.plan(design, regularization)
    noun = "item" if design.answers.thresholds.binary else "threshold"
    planned = plan_prior(design, regularization, noun)
    items = items_taking_part(design, planned)
    in_largest = design.component == 0
    return FitPlan(design, planned, items, in_largest[items.included_thresholds], None)


class ChainStart(NamedTuple):
    """Where Newton's steps start: the thresholds, the precision of the chain's prior, which acts on every item, and of
    the prior in the steps, as far as that is known; and how the chain was solved: passes over the data, the way, and
    how much one pass shrinks the slowest error."""

    thresholds: Floats
    chain_precision: float
    precision: float
    passes: int
    solver: str
    contraction: float


def solve_chain(plan: FitPlan, shared: SharedSets | None, options: ChainOptions) -> ChainStart:
    """The chain's thresholds: not solved at all where all are anchored.

    Beside anchors they have their mean in each part of the data, and these are where they are.
    Where there is a prior, the chain has its simple one, around the mean of all. It pulls on every item: those with
    less of a prior, or none, in the Newton steps are let out again, which saves an evaluation.
    With several thresholds it is weak, so that the start lies far out for thresholds far out: steps that lead inwards
    do not overshoot.
    """
    usable = plan.responses
    anchored = plan.anchored
    regularization = plan.regularization
    if anchored is not None and anchored.fixed[plan.included_thresholds].all():
        value = anchored.value[plan.included_thresholds]
        alpha = regularization.alpha
        return ChainStart(value, alpha, alpha, passes=0, solver="none", contraction=0.0)
    binary = usable.thresholds.binary
    needs_tie = regularization.kind != "none" or (anchored is not None and not plan.design.connected)
    tie = regularization
    if needs_tie:
        tie = replace(regularization, kind="virtual item", alpha=regularization.alpha or 1.0)
    if needs_tie and not binary:
        tie = replace(tie, alpha=WEAK_TIE, estimated=False)
    options.tell("solving the chain")
    rounds = Rounds(
        usable,
        "ability" if binary and shared is None else PERSONS.name,
        tie,
        plan.information,
        tol=max(options.tol, START),
        max_passes=options.max_passes,
        tell=options.tell,
        rough=True,
        given=None if shared is None else ItemChain.by_persons(usable, shared),
    )
    stationary = rounds.solve()
    beta = rounds.beta
    chain_precision = rounds.plan.alpha if binary else regularization.alpha
    precision = chain_precision
    if binary and tie.estimated:
        beta, precision_of_steps = _let_out(plan, rounds)
        if usable.n_responses > QUICK_ANSWERS:
            precision = precision_of_steps  # each precision that is tried costs passes over the responses
    if anchored is not None:
        beta = anchored.around(beta, plan.included_thresholds, plan.design.component)
    solver = stationary.method + NEWTON
    return ChainStart(beta, chain_precision, precision, rounds.passes, solver, stationary.contraction)


class LetOut(NamedTuple):
    """The thresholds of a chain without what its prior pulls too much, and the precision of the prior in the steps."""

    thresholds: Floats
    precision: float


def _let_out(plan: FitPlan, rounds: Rounds) -> LetOut:
    """The chain's thresholds where the pull of its prior is only as strong as that of the prior in the Newton steps."""
    beta = rounds.beta
    alpha = rounds.plan.alpha
    # Flow out of an item; what flows in is more by the prior's pull, and the information is between the two.
    information = np.maximum(rounds.information() + alpha * beta / 2, 0.0)
    fade = share_of_prior(plan.information, plan.tied_within_parts, alpha)
    precision = precision_of_some(beta, information, alpha, fade)
    faded = fade * precision
    total = information + faded
    move = safe_divide((alpha - faded) * beta, total)
    return LetOut(beta + np.clip(move, -FARTHEST, FARTHEST), precision)


class PlannedPrior(NamedTuple):
    """The prior, the part of each item (items of part 0 have the scale), and the plan: without a prior where none
    counts."""

    prior: Prior | None
    parts: Ints
    regularization: Regularization


def make_prior(plan: FitPlan, chain: ChainStart) -> PlannedPrior:
    """The prior on locations and offsets, as far as it counts."""
    usable = plan.responses
    layout = usable.thresholds
    regularization = plan.regularization
    parts = plan.parts
    if regularization.kind == "none":
        return PlannedPrior(None, parts, regularization)
    fixed = np.zeros(layout.n_entries, dtype=bool) if plan.fixed is None else plan.fixed
    tied = plan.tied_within_parts
    location_fade = np.ones(usable.n_items)
    offset_fade = np.zeros(0) if layout.binary else np.ones(layout.n_entries)
    if regularization.estimated and layout.binary:
        location_fade = share_of_prior(plan.information, tied, chain.chain_precision)
    elif regularization.estimated:
        location_fade, offset_fade = fading_of_both(layout, plan.information, tied, chain.thresholds)
    held = layout.sum((~fixed).astype(float)) == 0
    location_prior = None
    if location_fade[~held].any():
        location_prior = LocationPrior(Neighbors(usable), chain.precision, location_fade)
    if location_prior is None and not offset_fade[~fixed[: len(offset_fade)]].any():
        noun = "item" if layout.binary else "threshold"
        return PlannedPrior(None, parts, enough_is_known(plan.information, noun, several_parts=bool(parts.any())))
    offset_precision = 0.0 if layout.binary else chain.precision
    rare = None
    if not layout.binary:
        counts = np.nan_to_num(usable.category_counts)
        rare = RareCategories.of(layout, counts[layout.item, layout.level - 1], counts[layout.item, layout.level])
    prior = Prior(layout, location_prior, offset_precision, offset_fade, regularization.estimated, rare)
    return PlannedPrior(prior, parts, regularization)


def thresholds_without_prior(
    optimum: PenalizedPoint, likelihood: Likelihood, usable: Responses, tied: Mask, part: Ints
) -> Floats:
    """Conditional maximum likelihood itself, of the thresholds that have it; NaN for the others.

    Of a test of ordinary size by Newton's steps from the estimate, those without a finite value held where the prior
    has them; of a large one as far as a single step tells.
    """
    assert optimum.prior is not None
    beta = optimum.beta
    has_estimate = tied & (optimum.point.information > NO_INFORMATION)
    anchored = np.zeros(len(beta), dtype=bool) if optimum.fixed is None else optimum.fixed
    held = ~has_estimate | anchored
    if usable.n_items <= FEW_ITEMS and usable.n_responses <= FEW_RESPONSES:
        # Those held are a part of their own, so that their values do not give the level of the others.
        parts = np.where(has_estimate | anchored, part, part.max() + 1)
        problem = Newton(likelihood, fixed=held if held.any() else None, parts=parts)
        without_prior = problem.solve(beta).beta
        # On the level of the estimate, which other thresholds share in; anchors give it where there are any.
        moved = np.bincount(part, (beta - without_prior) * has_estimate)
        n_own = np.bincount(part, has_estimate)
        is_free = (n_own > 0) & (np.bincount(part, anchored) == 0)
        without_prior = without_prior + np.divide(moved, n_own, out=np.zeros(len(n_own)), where=is_free)[part]
    else:
        layout = usable.thresholds
        answers = np.nan_to_num(usable.category_counts)
        n_below = answers[layout.item, layout.level - 1]
        n_above = answers[layout.item, layout.level]
        step = replace(optimum, prior=None).roughly(optimum.prior @ beta)
        without_prior = beta - shift_of_step(step, n_below, n_above)
    return np.where(has_estimate | anchored, without_prior, np.nan)


def describe_prior(
    plan: Regularization, optimum: PenalizedPoint, usable: Responses, without_prior: Floats, has_no_link: Mask
) -> Regularization:
    """The plan with what the prior did; `without_prior` are the thresholds without it."""
    prior = optimum.prior
    assert prior is not None
    acts = prior.counts > 0
    if optimum.fixed is not None:
        acts &= ~optimum.fixed
    shift = optimum.beta - without_prior
    return with_effect(plan, prior, usable.items, acts, np.isfinite(without_prior), shift, has_no_link)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where Newton's steps ended and what led there: of this the errors, the findings and the estimate are made."""

    plan: FitPlan
    chain: ChainStart
    likelihood: Likelihood
    optimum: PenalizedPoint
    parts: Ints  # of each item that takes part; 0: on the scale
    regularization: Regularization  # with what the prior did


def estimate_of(solution: Solution, errors: Errors, equal_means: bool) -> Estimate:
    """What Newton's steps found, with standard errors and findings, said of all items."""
    plan = solution.plan
    optimum = solution.optimum
    layout = optimum.point.layout
    items = plan.items
    beta = optimum.beta
    if solution.parts.any():
        part, unknown = unknown_levels(solution, equal_means)
        errors = errors.with_unknown_levels(layout, part, unknown)
        if plan.anchored is None:
            items = replace(items, findings=_about_loose_parts(items, solution.parts, equal_means))
    if plan.anchored is None and not layout.binary:
        beta, _ = center_parts(layout, beta, None, solution.parts)
    estimate = items.estimate(
        beta,
        errors,
        solution.chain.passes + optimum.evaluations,
        optimum.move,
        information=optimum.point.own.sum(axis=(1, 2)),
        threshold_information=optimum.point.own,
        threshold_score=with_missing(score_against_prior(optimum), plan.included_thresholds),
        findings=_findings(solution, errors.method),
        regularization=solution.regularization,
        solver=solution.chain.solver,
        contraction=solution.chain.contraction,
    )
    if plan.anchored is None:
        return estimate
    return plan.anchored.beside(estimate, solution, errors.matrices)


def _about_loose_parts(items: EstimableItems, parts: Ints, equal_means: bool) -> tuple[Finding, ...]:
    """The findings on the design, with what was assumed about parts without a link in the place of that they exist."""
    others = [finding for finding in items.findings if finding.code != "disconnected"]
    return (*others, finding_on_groups(items.responses, parts, equal_means))


def _findings(solution: Solution, method: str | None) -> list[Finding]:
    """What to know about the prior, the weights, the steps and the links of a fit."""
    plan = solution.plan
    optimum = solution.optimum
    remedy = UNDER_A_PRIOR if solution.regularization.kind == "neighbors" else ""
    findings = [Finding("regularization", "note", str(solution.regularization), remedy)]
    if solution.likelihood.weights is not None:
        findings.append(weights_finding(solution.likelihood.weights))
    if not optimum.move <= CLOSE:  # also where it is no number
        findings += convergence(
            "the conditional likelihood",
            optimum.evaluations,
            "steps",
            "a move of",
            optimum.move,
            CLOSE,
            remedy=WEAK_LINKS,
        )
    if solution.chain.contraction > SLOW and plan.anchored is None:
        findings += slow_mixing(plan.design, plan.responses, plan.items.included, method)
    return findings


def score_against_prior(optimum: PenalizedPoint) -> Floats:
    """The score of the answers where the steps ended: there it is the gradient of the prior; zero of fixed thresholds,
    which the answers do not move."""
    if not optimum.prior:
        return np.zeros(len(optimum.beta))
    score = optimum.prior @ optimum.beta
    if optimum.fixed is None:
        return score
    return np.where(optimum.fixed, 0.0, score)
