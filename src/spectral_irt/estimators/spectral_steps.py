"""The spectral fit: thresholds as the log of the stationary distribution of a Markov chain, then Newton's steps.

`spectral_fit` takes eight steps: 1. `examine` the design; 2. plan whether there is a prior; 3. keep the items that can
be estimated; 4. solve the chain, where Newton's steps start (the chain alone, `refine=False`, stops here); 5. make the
prior; 6. Newton steps on the conditional likelihood; 7. standard errors; 8. the estimate, with findings. Anchored
thresholds are fixed throughout (`anchored`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.chain.operator import PERSONS, ItemChain, Neighbors, weighting_named
from spectral_irt.chain.prior import (
    LocationPrior,
    Prior,
    Regularization,
    check_regularization,
    enough_is_known,
    fading,
    fading_of_both,
    plan_prior,
    precision_of_some,
    shift_of_step,
    with_effect,
)
from spectral_irt.chain.stationary import Rounds, linked_items
from spectral_irt.conditional.errors import (
    Matrices,
    centered,
    centered_covariance,
    location_covariance,
    standard_errors,
)
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.likelihood import QUICK_ANSWERS, Likelihood
from spectral_irt.conditional.newton import CLOSE, NEWTON, Newton
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask, examine
from spectral_irt.data.scoring import several
from spectral_irt.data.shared_sets import SharedSets
from spectral_irt.data.unlinked import estimable
from spectral_irt.errors import OptionError, unknown_option
from spectral_irt.estimators.base import (
    ADAPTIVE,
    DESIGNS,
    FIXED,
    WEAK_LINKS,
    Estimate,
    RaschEstimator,
    Tell,
    convergence,
    of_all_items,
    reserve_memory,
    with_missing,
)
from spectral_irt.estimators.estimable import (
    DENSE_ITEMS,
    between_parts,
    person_weights,
    slow_mixing,
    unlinked,
    weights_finding,
)

if TYPE_CHECKING:
    from spectral_irt.estimators import LinearDesign
    from spectral_irt.estimators.anchored import Known

SE_METHODS = ("auto", "dense", "one-pass", "multiplier", "information", "none")
QUICK_ITEMS = 1000  # thresholds below which the dense sandwich costs next to nothing
DENSE_WORK = 4e9  # multiplications that the dense Omega may cost before a cheaper valid way is preferred
FAST = 0.3  # contraction up to which one pass is within about 3% of the dense value
SLUGGISH = 0.9  # contraction from which the multipliers' correction is as large as what it corrects
ONE_PASS_ITEMS = 20  # fewer items than this are too entangled by the centering for one pass
SLOW = 0.5  # contraction above which weak links between groups of items are looked for
MANY_PAIRS = 1e8  # multiplications of the dense sandwich from which single precision is worth having
MIXING = 0.5  # contraction up to which one pass is near the dense value for several thresholds: a per cent above at 0.4
START = 1e-5  # residual of the chain from which Newton's steps start
WEAK_TIE = 0.1  # precision
UNDER_A_PRIOR = (
    "Intervals under a prior cover the truth in 95% of cases over all items; of the hardest and the easiest items with "
    "few answers, which it draws towards the others, they cover fewer."
)
FEW_ITEMS = 50  # up to so many it matters, and costs little, that other items move with the one that a prior moves
FEW_RESPONSES = 200_000  # up to so many the likelihood without a prior costs well under a second
FARTHEST = 1.0  # logits by which an item that the chain pulled in is let out again
NOT_OF_A_FIT = ("anchors", "free", "threads", "threshold", "unused")  # parameters that `spectral_fit` does not have


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
    if se not in SE_METHODS:
        raise unknown_option("se", se, SE_METHODS)
    if not 0 < tol < 1:
        raise OptionError(f"`tol` is {tol}; it must lie between 0 and 1.")
    tell = progress or (lambda text: None)
    tell("looking at the design")
    design = examine(responses)
    check_regularization(regularization, nu, nu_rule, weighting)
    each = None if weights is None else person_weights(responses, weights)
    solving: dict[str, Any] = {"tol": tol, "max_passes": max_passes, "tell": tell}
    counted = nu > 0 or not weighting_named(weighting).moving
    if refine not in ("auto", True, False):
        raise OptionError(f"`refine` is {refine!r}; it is 'auto', True or False.")
    if refine != "auto" and refine and counted:
        raise OptionError("`refine=True` goes with `weighting='ability'` and without `nu`.")
    if counted or not refine:
        if each is not None or known is not None:
            what = "people have weights" if known is None else "items are anchored"
            raise OptionError(f"{what} in the Newton steps only; leave out `refine=False`, and weight by ability.")
        from spectral_irt.estimators.spectral import chain_alone  # a rare wish

        return chain_alone(design, (regularization, nu, nu_rule), weighting, se, **solving)

    fit = taking_part(design, regularization, known)
    plan, rest, mask = fit.plan, fit.rest, fit.mask
    shared = None  # what people on shared sets told, where it is all that a fit needs
    if each is None and known is None and plan.kind == "none" and rest.n_items <= QUICK_ITEMS:
        shared = rest.shared if se in ("auto", "dense", "information", "none") else None
        se = "dense" if shared is not None and se == "auto" else se
    chain = solve_chain(fit, shared, **solving)
    start = chain.thresholds
    prior, parts, plan = make_prior(fit, chain)
    likelihood = Likelihood(rest, start, weights=each, shared=shared)
    fixed = None if known is None else known.fixed[mask]
    problem = Newton(likelihood, prior=prior, fixed=fixed, parts=parts[rest.thresholds.item])
    found = problem.solve(start, tell=tell)
    without = None
    if found.prior:
        without = thresholds_without_prior(found, likelihood, rest, fit.tied)
        plan = describe_prior(plan, found, rest, without, parts[rest.thresholds.item] > 0)
    made = estimate(
        fit, plan, chain.solved, found, likelihood, parts, equal_means=assume_equal_means, se=se, seed=seed, tell=tell
    )
    if without is None:
        return made
    return replace(made, without_prior=made.thresholds + with_missing(without - found.beta, mask))


def options_of(estimator: Any, tell: Tell, weights: ArrayLike | None = None) -> dict[str, Any]:
    """The parameters of an estimator as `spectral_fit` has them."""
    given = estimator.get_params()
    for name in NOT_OF_A_FIT:
        given.pop(name, None)
    how = {"max_passes": given.pop("max_iter"), "seed": given.pop("random_state")}
    return {**given, **how, "progress": tell, "weights": weights}


class Solved(NamedTuple):
    """Of a chain: passes over the data, how it was solved, and how much one pass shrinks the slowest error."""

    passes: int
    solver: str
    contraction: float


class Start(NamedTuple):
    """Where Newton's steps start: the thresholds, the precision of the chain's prior, which acts on every item, and of
    the prior in the steps, as far as that is known; and how the chain was solved."""

    thresholds: Floats
    chain_precision: float
    precision: float
    solved: Solved


@dataclass(frozen=True, eq=False)
class TakingPart:
    """What takes part in a fit: items kept and their thresholds, what the data alone tie to the scale and tell about
    each, the plan of a prior, findings."""

    design: Design
    plan: Regularization
    rest: Responses
    kept: Mask
    mask: Mask
    tied: Mask  # of the thresholds kept: to the largest component, or to the anchors
    information: Floats
    known: Known | None
    findings: list[Finding]


def taking_part(design: Design, regularization: str | float, known: Known | None) -> TakingPart:
    """Which items take part, whether there may be a prior, and what the design has to say."""
    if known is None:
        plan = plan_prior(design, regularization, "item" if design.answers.thresholds.binary else "threshold")
        (rest, kept, findings), reached = kept_items(design, plan), design.component == 0
    else:
        plan, rest, kept, findings, reached = known.plan(design, regularization)
    mask = kept[design.answers.thresholds.item]
    return TakingPart(design, plan, rest, kept, mask, reached[mask], design.information[mask], known, findings)


def kept_items(design: Design, plan: Regularization) -> tuple[Responses, Mask, list[Finding]]:
    """The items that take part (without a prior some are left out), which they are, and findings on the design."""
    responses, findings = design.answers, list(design.findings)
    if plan.kind == "none" and not (design.connected and design.answered.all()):
        rest, kept, left_out = estimable(responses)
        said = ("extreme_items", "uninformed_items", "empty_categories")
        return rest, kept, [f for f in findings if f.code not in said] + list(left_out)
    kept = responses.item_counts > 0
    return responses if kept.all() else responses.take_items(kept), kept, findings


def solve_chain(fit: TakingPart, shared: SharedSets | None, **solving: Any) -> Start:
    """The chain's thresholds and how it was solved: not at all where all are anchored.

    Beside anchors they have their mean in each part of the data, and these are where they are.
    Where there is a prior, the chain has its simple one, around the mean of all. It pulls on every item: those with
    less of a prior, or none, in the Newton steps are let out again, which saves an evaluation.
    With several thresholds it is weak, so that the start lies far out for thresholds far out: steps that lead inwards
    do not overshoot.
    """
    rest, plan, known = fit.rest, fit.plan, fit.known
    if known is not None and known.fixed[fit.mask].all():
        return Start(known.value[fit.mask], plan.alpha, plan.alpha, Solved(0, "none", 0.0))
    binary = rest.thresholds.binary
    needed = plan.kind != "none" or (known is not None and not fit.design.connected)
    tie = replace(plan, kind="virtual item", alpha=plan.alpha or 1.0) if needed else plan
    if needed and not binary:
        tie = replace(tie, alpha=WEAK_TIE, estimated=False)
    solving["tell"]("solving the chain")
    weighting = "ability" if binary and shared is None else PERSONS.name
    given = None if shared is None else ItemChain.by_persons(rest, shared)
    solving |= {"tol": max(solving["tol"], START), "rough": True, "given": given}
    rounds = Rounds(rest, weighting, tie, fit.information, **solving)
    found = rounds.solve()
    beta, alpha = rounds.beta, rounds.plan.alpha
    precision = alpha
    if binary and tie.estimated:
        # Flow out of an item; what flows in is more by the prior's pull, and the information is between the two.
        told = np.maximum(rounds.information() + alpha * beta / 2, 0.0)
        fade = fading(fit.information, fit.tied, alpha)
        of_some = precision_of_some(beta, told, alpha, fade)
        left = fade * of_some  # of the pull on each
        move = np.divide((alpha - left) * beta, told + left, out=np.zeros(len(beta)), where=told + left > 0)
        beta = beta + np.clip(move, -FARTHEST, FARTHEST)
        if rest.n_responses > QUICK_ANSWERS:
            precision = of_some  # each precision that is tried costs passes over the responses
    if known is not None:
        beta = known.around(beta, fit.mask, fit.design.component)
    solved = Solved(rounds.passes, found.method + NEWTON, found.contraction)
    if not binary:
        return Start(beta, plan.alpha, plan.alpha, solved)
    return Start(beta, alpha, precision, solved)


def make_prior(fit: TakingPart, chain: Start) -> tuple[Prior | None, Ints, Regularization]:
    """The prior, which items are linked (part 0 has the scale), and the plan: without a prior where none counts."""
    rest, plan, layout, tied = fit.rest, fit.plan, fit.rest.thresholds, fit.tied
    parts = np.zeros(rest.n_items, dtype=np.int64)
    if plan.kind == "none":
        return None, parts, plan
    fixed = np.zeros(len(tied), dtype=bool) if fit.known is None else fit.known.fixed[fit.mask]
    tied = tied | fixed
    location, offsets = np.ones(rest.n_items), np.zeros(0) if layout.binary else np.ones(layout.n_entries)
    if plan.estimated and layout.binary:
        location = fading(fit.information, tied, chain.chain_precision)
    elif plan.estimated:
        location, offsets = fading_of_both(layout, fit.information, tied, chain.thresholds)
    on_scale = layout.sum(tied.astype(float)) > 0
    held = layout.sum((~fixed).astype(float)) == 0
    near = None
    if location[~held].any() or not on_scale.all():
        neighbors = Neighbors(rest)
        if not on_scale.all():
            parts = linked_items(rest)[0]  # renumbered: 0 is the one of the items that give the scale
            first = int(np.bincount(parts[on_scale]).argmax())
            parts = np.where(parts == first, 0, np.where(parts < first, parts + 1, parts))
        near = LocationPrior(neighbors, chain.precision, location)
    if near is None and not offsets[~fixed[: len(offsets)]].any():
        return None, parts, enough_is_known(fit.information, "item" if layout.binary else "threshold")
    return Prior(layout, near, 0.0 if layout.binary else chain.precision, offsets, plan.estimated), parts, plan


def thresholds_without_prior(found: PenalizedPoint, likelihood: Likelihood, rest: Responses, tied: Mask) -> Floats:
    """Conditional maximum likelihood itself, of the thresholds that have it; NaN for the others.

    Of a test of ordinary size by Newton's steps from the estimate, those without a finite value held where the prior
    has them; of a large one as far as a single step tells.
    """
    assert found.prior is not None
    own_estimate = tied & (found.point.information > 1e-9)
    anchored = np.zeros(len(found.beta), dtype=bool) if found.fixed is None else found.fixed
    held = ~own_estimate | anchored
    if rest.n_items <= FEW_ITEMS and rest.n_responses <= FEW_RESPONSES:
        # Those held are a part of their own, so that their values do not give the level of the others.
        parts = np.where(own_estimate | anchored, 0, 1)
        fixed = held if held.any() else None
        without = Newton(likelihood, fixed=fixed, parts=parts).solve(found.beta).beta
        if not anchored.any():  # on the level of the estimate, which other thresholds share in
            without = without + np.mean((found.beta - without)[own_estimate])
    else:
        layout = rest.thresholds
        answers = np.nan_to_num(rest.category_counts)
        low, high = answers[layout.item, layout.level - 1], answers[layout.item, layout.level]
        step = replace(found, prior=None).roughly(found.prior @ found.beta)
        without = found.beta - shift_of_step(step, low, high)
    return np.where(own_estimate | anchored, without, np.nan)


def describe_prior(
    plan: Regularization, found: PenalizedPoint, rest: Responses, without: Floats, unlinked: Mask
) -> Regularization:
    """The plan with what the prior did; `without` are the thresholds without it, `unlinked` those of items without a
    link."""
    prior = found.prior
    assert prior is not None
    acts = prior.counts > 0
    if found.fixed is not None:
        acts &= ~found.fixed
    return with_effect(plan, prior, rest.items, acts, np.isfinite(without), found.beta - without, unlinked)


class Errors(NamedTuple):
    """Standard errors of thresholds and of locations, and by which method; their covariance and the matrices that it
    came from, where these were formed."""

    method: str
    thresholds: Floats
    locations: Floats
    covariance: Floats | None = None
    matrices: Matrices | None = None

    @classmethod
    def of(cls, method: str, layout: Thresholds, covariance: Floats, matrices: Matrices) -> Errors:
        thresholds = np.sqrt(np.maximum(np.diag(covariance), 0))
        locations = np.sqrt(np.maximum(np.diag(location_covariance(layout, covariance)), 0))
        return cls(method, thresholds, locations, covariance, matrices)

    def with_unknown_levels(self, layout: Thresholds, part: Ints, unknown: Floats) -> Errors:
        """With the variance `unknown` of the level of each item's part, which all items of a part share."""
        part_of_threshold = part[layout.item]
        wider = unknown[layout.item]
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance + np.where(part_of_threshold[:, None] == part_of_threshold, wider, 0.0)
        return self._replace(
            thresholds=np.sqrt(self.thresholds**2 + wider),
            locations=np.sqrt(self.locations**2 + unknown),
            covariance=covariance,
        )


def estimate(
    fit: TakingPart,
    plan: Regularization,
    solved: Solved,
    found: PenalizedPoint,
    likelihood: Likelihood,
    parts: Ints,
    *,
    equal_means: bool,
    se: str,
    seed: int,
    tell: Tell,
) -> Estimate:
    """What Newton's steps found, with standard errors and findings, said of all items."""
    layout = found.point.layout
    errors = errors_of(fit, solved, found, likelihood, parts, se=se, seed=seed, tell=tell)
    if parts.any():
        part, unknown = unknown_levels(fit, plan, found, parts, equal_means)
        errors = errors.with_unknown_levels(layout, part, unknown)
    about_design = fit.findings
    if parts.any() and fit.known is None:
        about_design = [finding for finding in fit.findings if finding.code != "disconnected"]
        about_design.append(unlinked(fit.rest, parts, equal_means))
    beta = found.beta
    if fit.known is None and not layout.binary:
        beta, _ = centered(layout, beta, None, parts)
    result = Estimate(
        with_missing(beta, fit.mask),
        with_missing(errors.thresholds, fit.mask),
        fit.design.status,
        solved.passes + found.evaluations,
        found.move,
        item_se=with_missing(errors.locations, fit.kept),
        covariance=None if errors.covariance is None else with_missing(errors.covariance, fit.mask),
        information=with_missing(found.point.own.sum(axis=(1, 2)), fit.kept),
        threshold_information=of_all_items(found.point.own, fit.kept, fit.design.answers.thresholds),
        threshold_score=with_missing(score_against_prior(found), fit.mask),
        findings=(*about_design, *findings_of(fit, plan, solved, found, likelihood, errors.method)),
        regularization=plan,
        se_method=errors.method,
        solver=solved.solver,
        contraction=solved.contraction,
    )
    return result if fit.known is None else fit.known.beside(result, fit, found, likelihood, errors.matrices)


def errors_of(
    fit: TakingPart,
    solved: Solved,
    found: PenalizedPoint,
    likelihood: Likelihood,
    parts: Ints,
    *,
    se: str,
    seed: int,
    tell: Tell,
) -> Errors:
    """Standard errors by this method, or the one that "auto" takes; with those of the anchors, where they have any."""
    rest, layout, known = fit.rest, found.point.layout, fit.known
    method = chosen_method(rest, solved.contraction) if se == "auto" else se
    if method == "none":
        return Errors(method, np.full(len(found.beta), np.nan), np.full(rest.n_items, np.nan))
    tell(f"standard errors ({method})")
    passes_errors_on = known is not None and known.errors is not None
    if method not in ("dense", "information"):
        thresholds, locations = standard_errors(found, method, solved.contraction, seed)
        if known is not None and passes_errors_on:
            more = known.passed_on(found, fit.mask, None, seed)
            thresholds = np.sqrt(thresholds**2 + more)
            locations = np.sqrt(locations**2 + layout.mean(more))
        return Errors(method, thresholds, locations)
    reserve_memory(rest, matrices_certain=True)  # the fit began without them where "auto" might have taken one pass
    many_pairs = rest.n_persons * rest.n_items**2 > MANY_PAIRS
    single = solved.contraction < SLUGGISH and many_pairs and known is None
    information = information_at(likelihood, found.point.beta, single=single)
    matrices = Matrices.of(found, information.matrix, single=single)
    if solved.contraction > SLOW:
        matrices = matrices.across_weak_links(layout, expected_meat(likelihood, found, information.matrix))
    covariance = matrices.covariance(robust=method == "dense")
    if known is not None and passes_errors_on:
        covariance = covariance + known.passed_on(found, fit.mask, matrices, seed)
    if known is None and not layout.binary:
        covariance = centered_covariance(layout, covariance, parts)
    return Errors.of(method, layout, covariance, matrices)


def unknown_levels(
    fit: TakingPart, plan: Regularization, found: PenalizedPoint, parts: Ints, equal_means: bool
) -> tuple[Ints, Floats]:
    """The part of each item, and the variance of the level of that part against the scale."""
    if fit.known is None:
        return parts, between_parts(parts, plan.alpha, equal_means)
    part = found.floating[found.point.layout.first] + 1  # 0: tied to the anchors
    return part, np.where(part == 0, 0.0, between_parts(part, plan.alpha, equal_means))


def findings_of(
    fit: TakingPart, plan: Regularization, solved: Solved, found: PenalizedPoint, likelihood: Likelihood, method: str
) -> list[Finding]:
    """What to know about the prior, the weights, the steps and the links of a fit."""
    remedy = UNDER_A_PRIOR if plan.kind == "neighbors" else ""
    findings = [Finding("regularization", "note", str(plan), remedy)]
    if likelihood.weights is not None:
        findings.append(weights_finding(likelihood.weights))
    if not found.move <= CLOSE:  # also where it is no number
        what = "the conditional likelihood"
        findings += convergence(what, found.evaluations, "steps", "a move of", found.move, CLOSE, remedy=WEAK_LINKS)
    if solved.contraction > SLOW and fit.known is None:
        findings += slow_mixing(fit.design, fit.rest, fit.kept, method)
    return findings


def expected_meat(likelihood: Likelihood, found: PenalizedPoint, information: Floats) -> Floats:
    """What the sum over people of their squared scores is under the model: the information, each person counting by the
    square of their weight."""
    if likelihood.weights is None:
        return information
    squared = Likelihood(likelihood.responses, found.point.beta, weights=likelihood.weights**2)
    return information_at(squared, found.point.beta).matrix


def score_against_prior(found: PenalizedPoint) -> Floats:
    """The score of the answers where the steps ended: there it is the gradient of the prior; zero of fixed thresholds,
    which the answers do not move."""
    if not found.prior:
        return np.zeros(len(found.beta))
    score = found.prior @ found.beta
    return score if found.fixed is None else np.where(found.fixed, 0.0, score)


def choose_method(n_items: int, contraction: float, pair_work: float) -> str:
    """Which way to standard errors "auto" takes where there are multipliers, too.

    Dense where it is cheap. Beyond, one pass where that is valid, or where pairs of answers cannot be looked at;
    multipliers where they are accurate or nothing else fits; dense for slow chains of up to 5,000 items.
    """
    if n_items < ONE_PASS_ITEMS or (n_items <= QUICK_ITEMS and pair_work + n_items**3 <= DENSE_WORK):
        return "dense"
    if contraction < FAST or np.isinf(pair_work):
        return "one-pass"
    return "dense" if contraction >= SLUGGISH and n_items <= DENSE_ITEMS else "multiplier"


def chosen_method(rest: Responses, contraction: float, *, multipliers: bool = True) -> str:
    """Which way "auto" takes for any number of thresholds; the chain alone has no multipliers."""
    m = rest.thresholds.n_entries
    if multipliers and not rest.thresholds.binary:
        return "dense" if m <= QUICK_ITEMS else "one-pass" if contraction < MIXING else "multiplier"
    method = choose_method(m, contraction, rest.pair_work)
    if method == "multiplier" and not multipliers:
        return "dense" if m <= DENSE_ITEMS else "one-pass"
    return method


class Spectral(RaschEstimator):
    """The spectral estimators: a fixed design is theirs, an adaptive one that of marginal likelihood."""

    se: str
    takes_facets: ClassVar[bool] = True
    scaled: ClassVar[bool] = False  # whether items share offsets: a rating scale
    marginal: ClassVar[str] = "MarginalRasch"  # the estimator of adaptive designs

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        anchors: Any = None,
        free: Any = (),
        design: str | LinearDesign = FIXED,
        groups: Any = None,
        weights: ArrayLike | None = None,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as for every estimator.

        Parameters
        ----------
        anchors : Bank, Calibration, mapping from item to difficulty (or its thresholds), or path, optional
            Items that stay where they are known to be; the others are put on their scale. See `AnchoredRasch`.
        free : labels of items, optional
            Anchors that are dropped: these items stay in the test, and are estimated.
        design : "fixed", "adaptive" or LinearDesign
            "adaptive" where the answers decided what a person was asked next, or when to stop: difficulties then come
            from marginal maximum likelihood (`MarginalRasch`), and the findings say so. A `LinearDesign` says of what
            thresholds are the sum: by default of items and every facet.
        groups : labels, optional
            With an adaptive design, the population that each person is from.
        weights : numbers, optional
            How much each person counts, in the order of the people, as survey weights say. Standard errors allow for
            them, and so do mean, standard deviation and reliability of the people.
        """
        if anchors is None and several(free):
            raise OptionError("`free` names anchors that are to be estimated, and there are no `anchors`.")
        if not isinstance(design, str):
            return self._fitted(data, progress, anchors=anchors, weights=weights, design=design)
        if design not in DESIGNS:
            raise unknown_option("design", design, DESIGNS)
        if design == ADAPTIVE:
            if anchors is not None:
                raise OptionError("anchors are for a fixed design, and `design` is 'adaptive'; leave one of them out.")
            from spectral_irt.estimators import marginal

            model = getattr(marginal, self.marginal)
            return marginal.fit_adaptive(self, model, data, groups=groups, weights=weights, progress=progress)
        if groups is not None:
            raise OptionError("groups are for `design='adaptive'`; here nothing depends on them.")
        return self._fitted(data, progress, anchors=anchors, free=several(free), weights=weights)

    def _surely_forms_matrices(
        self, responses: Responses, anchors: Any = None, design: LinearDesign | None = None, **others: Any
    ) -> bool:
        """Not for right and wrong answers to many items, where "auto" may take one pass or multipliers. A design,
        facets, a rating scale, anchors and the chain alone are solved with matrices."""
        if design is not None or responses.facets is not None or self.scaled or anchors is not None:
            return True
        given = self.get_params()
        if given["weighting"] != "ability" or given.get("nu") or not given["refine"]:
            return True
        if not responses.thresholds.binary:
            return True
        return self.se in ("dense", "information") or responses.thresholds.n_entries <= QUICK_ITEMS

    def _estimate(
        self,
        responses: Responses,
        tell: Tell,
        anchors: Any = None,
        free: Sequence[Any] = (),
        weights: ArrayLike | None = None,
        design: LinearDesign | None = None,
    ) -> Estimate:
        each = None if weights is None else person_weights(responses, weights)
        if design is not None or responses.facets is not None or self.scaled:
            from spectral_irt.estimators.linear_fit import fit_of_design

            found = fit_of_design(self, responses, tell, design, anchors, each)
        elif anchors is not None:
            from spectral_irt.estimators.anchored import fit_beside, given_anchors

            found = fit_beside(responses, given_anchors(anchors), free=free, **options_of(self, tell, each))
        else:
            found = spectral_fit(responses, **options_of(self, tell, each))
        if each is None:
            return found
        # People, and how much each counts: for means and reliability of these people.
        return replace(found, extra={**found.extra, "weighted": (responses.persons, each)})
