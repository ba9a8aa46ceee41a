"""The steps of a spectral fit: what takes part, the chain, the prior; then standard errors, findings, the estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.chain.operator import PERSONS, ItemChain, Neighbors
from spectral_irt.chain.prior import (
    AMPLE_INFORMATION,
    FEW_ANSWERS,
    LocationPrior,
    Prior,
    Regularization,
    acted,
    enough_is_known,
    fading,
    fading_of_both,
    plan_prior,
)
from spectral_irt.chain.stationary import Rounds, Stationary, linked_items, weak_links
from spectral_irt.conditional.errors import (
    Matrices,
    centered,
    displacements,
    location_variance,
    standard_errors,
    variance_from_anchors,
)
from spectral_irt.conditional.newton import CLOSE, NEWTON, QUICK_ANSWERS, Newton
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Design, Mask, estimable, tied_to
from spectral_irt.data.same_items import SharedSets
from spectral_irt.errors import LARGEST_COMPONENT
from spectral_irt.estimators.base import WEAK_LINKS, Estimate, Tell, convergence, with_missing
from spectral_irt.estimators.estimable import DENSE_ITEMS, weights_finding
from spectral_irt.text import first_of, listed

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
FARTHEST = 1.0  # logits by which an item that the chain pulled in is let out again


@dataclass(frozen=True, eq=False)
class Known:
    """Anchored thresholds."""

    value: Floats  # of every threshold of the data; NaN for those that are to be found
    place: Ints  # of each among the anchors, or -1
    errors: Any = None  # JointErrors of the anchors; without them they count as exact

    @property
    def fixed(self) -> Mask:
        return np.isfinite(self.value)


@dataclass(frozen=True, eq=False)
class Start:
    """Where Newton's steps start: thresholds, the chain that gave them, its passes, and the precision it had."""

    beta: Floats
    found: Stationary | None  # nothing where everything is anchored
    passes: int
    alpha: float

    @property
    def contraction(self) -> float:
        return self.found.contraction if self.found else 0.0


@dataclass(frozen=True, eq=False)
class TakingPart:
    """What takes part in a fit: items kept, what the data alone tie to the scale, the plan of a prior, findings."""

    design: Design
    plan: Regularization
    rest: Responses
    kept: Mask
    tied: Mask  # of the thresholds kept: to the largest component, or to the anchors
    known: Known | None
    findings: list[Finding]

    @property
    def mask(self) -> Mask:
        """The thresholds of the items kept."""
        return self.kept[self.design.answers.thresholds.item]

    @property
    def information(self) -> Floats:
        return self.design.information[self.mask]


def noun_of(layout: Thresholds) -> str:
    return "item" if layout.binary else "threshold"


def taking_part(design: Design, regularization: str | float, known: Known | None) -> TakingPart:
    """Which items take part, whether there may be a prior, and what the design has to say."""
    responses, noun = design.answers, noun_of(design.layout)
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


def solve_chain(fit: TakingPart, shared: SharedSets | None, **solving: Any) -> Start:
    """The chain's thresholds; beside anchors with their mean in each part of the data, and these where they are.

    Where there is a prior, the chain has its simple one, around the mean of all. It pulls on every item: those without
    a prior in the Newton steps are let out again, which saves an evaluation where it takes time. With several
    thresholds it is weak, so that the start lies far out for thresholds far out: steps that lead inwards do not
    overshoot.
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
    weighting = "ability" if binary and shared is None else PERSONS.name
    given = None if shared is None else ItemChain.by_persons(rest, shared)
    solving |= {"tol": max(solving["tol"], START), "rough": True, "given": given}
    rounds = Rounds(rest, weighting, tie, fit.information, **solving)
    found = rounds.solve()
    beta, alpha = rounds.beta, rounds.plan.alpha
    if binary and tie.estimated and rest.n_responses > QUICK_ANSWERS:
        told = rounds.information()
        pull = (1 - fading(fit.information, fit.tied, alpha)) * alpha * beta
        beta = beta + np.clip(np.divide(pull, told, out=np.zeros(len(beta)), where=told > 0), -FARTHEST, FARTHEST)
    if known is not None:
        value, part = known.value[fit.mask], fit.design.component[fit.mask]
        off, there = np.nan_to_num(value - beta), np.isfinite(value).astype(float)
        number = np.bincount(part, weights=there)
        shift = np.bincount(part, weights=off) / np.maximum(number, 1)
        shift[number == 0] = off.sum() / there.sum()
        beta = np.where(np.isfinite(value), value, beta + shift[part])
    return Start(beta, found, rounds.passes, alpha if binary else plan.alpha)


def make_prior(fit: TakingPart, start: Start) -> tuple[Prior | None, Ints, Regularization]:
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
        near = LocationPrior(neighbors, start.alpha, location)
    if near is None and not offsets[~fixed[: len(offsets)]].any():
        return None, parts, enough_is_known(fit.information, noun_of(layout))
    return Prior(layout, near, 0.0 if layout.binary else start.alpha, offsets, plan.estimated), parts, plan


def describe_prior(plan: Regularization, found: Newton, rest: Responses, tied: Mask) -> Regularization:
    """The plan with what the prior did."""
    prior, layout, answers = found.prior, rest.thresholds, np.nan_to_num(rest.category_counts)
    assert prior is not None
    step = replace(found, prior=None).roughly(prior @ found.beta)
    counts = answers[layout.item, layout.level - 1], answers[layout.item, layout.level]
    acts = prior.counts > 0 if found.fixed is None else (prior.counts > 0) & ~found.fixed
    return acted(plan, prior, rest.items, acts, tied & (found.information > 1e-9), step, counts)


def estimate(
    fit: TakingPart,
    plan: Regularization,
    start: Start,
    found: Newton,
    parts: Ints,
    shared: SharedSets | None,
    weights: Floats | None,
    equal_means: bool,
    se: str,
    seed: int,
    tell: Tell,
) -> Estimate:
    """What Newton's steps found, with standard errors and findings, said of all items."""
    design, rest, layout, known, kept, mask = fit.design, fit.rest, found.layout, fit.known, fit.kept, fit.mask
    method = chosen_method("dense" if shared is not None and se == "auto" else se, rest, start.contraction, tell)
    errors, location, beta = np.full(len(found.beta), np.nan), np.full(rest.n_items, np.nan), found.beta
    matrices = matrix = None
    if method in ("dense", "information"):
        single = start.contraction < SLUGGISH and rest.n_persons * rest.n_items**2 > MANY_PAIRS and known is None
        matrices = Matrices.of(found, single=single)
        matrix = matrices.covariance(method == "dense")
    elif method != "none":
        errors, location = standard_errors(found, method, start.contraction, seed)
    if known is not None and known.errors is not None and method != "none":
        mine, held = known.errors.take(known.place[mask][found.fixed]), found.fixed
        assert held is not None
        if matrices is not None and matrix is not None:
            matrix = matrix + matrices.from_anchors(held, mine.full())
        else:
            variance = np.zeros(len(beta))
            variance[held] = mine.variance
            more = variance_from_anchors(found, variance, seed)
            errors, location = np.sqrt(errors**2 + more), np.sqrt(location**2 + layout.mean(more))
    if known is None and not layout.binary:
        beta, matrix = centered(layout, beta, matrix, parts)
    if matrix is not None:
        errors, location = np.sqrt(np.maximum(np.diag(matrix), 0)), np.sqrt(location_variance(layout, matrix))
    findings = fit.findings
    if parts.any():
        part = parts if known is None else found.floating[layout.first] + 1
        unknown = between_parts(part, plan.alpha, equal_means)
        unknown = unknown if known is None else np.where(part == 0, 0.0, unknown)
        wider, own = unknown[layout.item], part[layout.item]
        errors, location = np.sqrt(errors**2 + wider), np.sqrt(location**2 + unknown)
        matrix = None if matrix is None else matrix + np.where(own[:, None] == own, wider, 0.0)
        if known is None:
            findings = [each for each in findings if each.code != "disconnected"]
            findings.append(unlinked(rest, parts, equal_means))
    remedy = (
        "Intervals under a prior cover the truth in 95% of cases over all items; of the hardest and the easiest items "
        "with few answers, which it draws towards the others, they cover fewer."
    )
    findings = [*findings, Finding("regularization", "note", plan.sentence, remedy if plan.kind == "neighbors" else "")]
    findings += [] if weights is None else [weights_finding(weights)]
    what = "the conditional likelihood"
    findings += convergence(what, found.evaluations, "steps", "a move of", found.move, CLOSE, remedy=WEAK_LINKS)
    findings += slow_mixing(design, rest, kept, start.contraction, method) if known is None else []
    made = Estimate(
        with_missing(beta, mask),
        with_missing(errors, mask),
        design.status,
        start.passes + found.evaluations,
        found.move,
        item_se=with_missing(location, kept),
        covariance=None if matrix is None else with_missing(matrix, mask),
        information=with_missing(found.point.own.sum(axis=(1, 2)), kept),
        findings=tuple(findings),
        regularization=plan,
        se_method=method,
        solver=start.found.method + NEWTON if start.found else "none",
        contraction=start.contraction,
    )
    return made if known is None else _anchored(made, fit, found, matrices)


def _anchored(made: Estimate, fit: TakingPart, found: Newton, matrices: Matrices | None) -> Estimate:
    """The estimate with anchors where they are, also those that nobody informs on, and how far they are displaced."""
    known, layout, kept = fit.known, fit.design.layout, fit.kept
    assert known is not None
    fixed = known.fixed
    item = layout.sum(fixed.astype(float)) == layout.max_score
    tied = np.zeros(layout.n_entries, dtype=bool)
    tied[fit.mask] = fit.tied
    status = made.status.copy()
    status[status == "unlinked"] = "ok"
    status[(layout.sum((~tied).astype(float)) > 0) & (status == "ok")] = "unlinked"
    status[item] = "anchored"
    displacement, displacement_se = (with_missing(each, kept) for each in displacements(found, matrices))
    assert made.item_se is not None
    return replace(
        made,
        thresholds=np.where(fixed, known.value, made.thresholds),
        se=np.where(fixed, 0.0, made.se),
        item_se=np.where(item, 0.0, made.item_se),
        status=status,
        further={"anchored": item, "displacement": displacement, "displacement_se": displacement_se},
    )


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


def chosen_method(se: str, rest: Responses, contraction: float, tell: Tell, *, multipliers: bool = True) -> str:
    """Which way to standard errors is taken; the chain alone has no multipliers."""
    method, m = se, rest.thresholds.n_entries
    if se == "auto" and multipliers and not rest.thresholds.binary:
        method = "dense" if m <= QUICK_ITEMS else "one-pass" if contraction < MIXING else "multiplier"
    elif se == "auto":
        method = choose_method(m, contraction, rest.pair_work)
        if method == "multiplier" and not multipliers:
            method = "dense" if m <= DENSE_ITEMS else "one-pass"
    if method != "none":
        tell(f"standard errors ({method})")
    return method


def between_parts(parts: Ints, alpha: float, equal_means: bool) -> Floats:
    """Variance of each item's part against the scale, which is that of part 0: infinite, unless difficulties of all
    parts are draws from one distribution, where the mean of k of them has the variance 1 / (alpha k)."""
    if equal_means:
        return 1 / (alpha * np.bincount(parts + 1)[parts + 1])
    return np.where(parts > 0, np.inf, 0.0)


def unlinked(rest: Responses, parts: Ints, equal_means: bool) -> Finding:
    """What was assumed about groups of items that nobody links."""
    sizes, outside = np.bincount(parts), rest.items[parts > 0]
    sentence = (
        f"The items fall into {len(sizes):,} groups that share no people (sizes {first_of(f'{n:,}' for n in sizes)}): "
        "nothing tells how their difficulties compare. Each group has a mean of zero of its own"
    )
    remedy = "Fit each group on its own, add a form that links them, or take " + LARGEST_COMPONENT
    if equal_means:
        sentence += ", for the groups were assumed to be equally hard on average."
    else:
        sentence += f"; the standard error of items outside the largest group is infinite: {listed(outside)}."
        remedy += "; `assume_equal_means=True` assumes that groups are equally hard on average"
    return Finding("disconnected", "warning", sentence, remedy + ".", tuple(outside.tolist()))


def slow_mixing(design: Design, rest: Responses, kept: Mask, contraction: float, method: str) -> list[Finding]:
    """The finding of weak links, where the chain mixes slowly; ties hide them, so they are looked for in the data."""
    if contraction <= SLOW:
        return []
    outside = design.component[kept[design.answers.thresholds.item]] != 0
    weak = weak_links(rest.take_items(rest.thresholds.sum(outside) == 0))
    if weak and method == "one-pass":
        remedy = "Standard errors by one pass are too small for differences between the groups; say `se='dense'`."
        weak = replace(weak, severity="warning", remedy=remedy)
    return [weak] if weak else []
