"""The last steps of a spectral fit: standard errors, findings, and the estimate of all items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.chain.regularization import Regularization
from spectral_irt.chain.stationary import Stationary, weak_links
from spectral_irt.conditional.errors import (
    Matrices,
    displacements,
    location_variance,
    standard_errors,
    variance_from_anchors,
)
from spectral_irt.conditional.newton import CLOSE, NEWTON, Newton
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Design, Mask
from spectral_irt.data.same_items import SharedSets
from spectral_irt.errors import LARGEST_COMPONENT, first_of, listed
from spectral_irt.estimators.base import WEAK_LINKS, Tell
from spectral_irt.estimators.estimate import DENSE_ITEMS, Estimate, centered, convergence, weights_finding, with_missing

SE_METHODS = ("auto", "dense", "one-pass", "multiplier", "information", "none")
QUICK_ITEMS = 1000  # thresholds below which the dense sandwich costs next to nothing
DENSE_WORK = 4e9  # multiplications that the dense Omega may cost before a cheaper valid way is preferred
FAST = 0.3  # contraction up to which one pass is within about 3% of the dense value
SLUGGISH = 0.9  # contraction from which the multipliers' correction is as large as what it corrects
ONE_PASS_ITEMS = 20  # fewer items than this are too entangled by the centering for one pass
SLOW = 0.5  # contraction above which weak links between groups of items are looked for
MANY_PAIRS = 1e8  # multiplications of the dense sandwich from which single precision is worth having
MIXING = 0.5  # contraction up to which one pass is near the dense value for several thresholds: a per cent above at 0.4


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
        design.status(),
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
    status = made.status
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
