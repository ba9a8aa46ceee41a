"""Chain, then landing: the default of `SpectralRasch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spectral_irt.chain.errors import QUICK_ITEMS, SLUGGISH
from spectral_irt.chain.neighbors import Neighbors
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.prior import LocationPrior, Prior, fading
from spectral_irt.chain.regularization import Regularization, acted, enough_is_known, plan_prior
from spectral_irt.chain.rounds import Rounds
from spectral_irt.conditional.errors import Matrices, standard_errors
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import CLOSE, NEWTON, Newton, newton
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Design, Mask
from spectral_irt.data.same_items import SharedSets
from spectral_irt.errors import LARGEST_COMPONENT, listed
from spectral_irt.estimators.base import WEAK_LINKS
from spectral_irt.estimators.chain_alone import chosen_method, kept_items, slow_mixing
from spectral_irt.estimators.estimate import Estimate, convergence, weights_finding, with_missing

MANY_PAIRS = 1e8  # multiplications of the dense sandwich from which single precision is worth having
START = 1e-5  # residual of the chain from which the landing starts


def landed_difficulty(
    design: Design,
    regularization: str | float,
    *,
    equal_means: bool,
    weights: Floats | None,
    se: str,
    tol: float,
    max_passes: int,
    seed: int,
    tell: Callable[[str], None],
) -> Estimate:
    """Difficulties on the penalized conditional likelihood, started from the ability-weighted chain."""
    plan = plan_prior(design, regularization)
    rest, kept, findings = kept_items(design, plan)
    whole = design.connected or plan.kind == "none"
    # Where there is a prior, the chain has its simple one, around the mean of all items, as a place to start from.
    tie = plan if plan.kind == "none" else replace(plan, kind="virtual item")
    shared = _usable_sets(rest, plan, weights, se)
    tell("solving the chain")
    rounds = Rounds(
        rest,
        "ability" if shared is None else "persons",
        tie,
        design.information[kept],
        tol=max(tol, START),
        max_passes=max_passes,
        tell=tell,
        rough=True,
        chain=None if shared is None else ItemChain.by_persons(rest, shared),
    )
    found, beta, passes, alpha = rounds.solve(), rounds.beta, rounds.passes, rounds.plan.alpha
    del rounds  # its memory is wanted

    prior, parts = None, np.zeros(rest.n_items, dtype=np.int64)
    if plan.kind != "none":
        tied, fade = design.component[kept] == 0, np.ones(len(beta))
        fade = fading(design.information[kept], tied, alpha) if plan.estimated else fade
        if fade.any():
            neighbors = Neighbors(rest)
            parts = parts if whole else with_scale_first(neighbors.parts(), tied)
            prior = Prior.of_items(rest.thresholds, LocationPrior(neighbors, alpha, fade, plan.estimated))
        else:
            plan = enough_is_known(design.information[kept])
    likelihood = Likelihood(rest, beta, weights=weights, shared=shared)
    landed = newton(likelihood, beta, prior=prior, parts=parts, tell=tell)
    if landed.prior:
        plan = replace(plan, alpha=float(landed.prior.precisions[0]))
        plan = prior_acted(plan, landed, rest, design.component[kept] == 0)

    method = chosen_method("dense" if shared is not None and se == "auto" else se, rest, found.contraction, tell)
    matrix = None
    if method in ("dense", "information"):
        single = found.contraction < SLUGGISH and rest.n_persons * rest.n_items**2 > MANY_PAIRS
        matrix = Matrices.of(landed, single=single).covariance(method == "dense")
        errors = np.sqrt(np.maximum(np.diag(matrix), 0))
    else:
        errors = (
            np.full(rest.n_items, np.nan)
            if method == "none"
            else standard_errors(landed, method, found.contraction, seed)[0]
        )
    if parts.any():
        unknown = between_parts(parts, plan.alpha, equal_means)
        errors = np.sqrt(errors**2 + unknown)
        matrix = None if matrix is None else matrix + np.where(parts[:, None] == parts, unknown, 0.0)
        findings = [each for each in findings if each.code != "disconnected"]
        findings.append(apart(rest, parts, equal_means))

    findings.append(regularization_finding(plan))
    findings += [] if weights is None else [weights_finding(weights)]
    findings += convergence(
        "the conditional likelihood", landed.evaluations, "steps", "a move of", landed.move, CLOSE, remedy=WEAK_LINKS
    )
    findings += slow_mixing(design, rest, kept, found.contraction)
    return Estimate(
        with_missing(landed.beta, kept),
        with_missing(errors, kept),
        design.status(),
        passes + landed.evaluations,
        landed.move,
        covariance=None if matrix is None else with_missing(matrix, kept),
        information=with_missing(landed.information, kept),
        findings=tuple(findings),
        regularization=plan,
        se_method=method,
        solver=found.method + NEWTON,
        contraction=found.contraction,
    )


def _usable_sets(rest: Responses, plan: Regularization, weights: Floats | None, se: str) -> SharedSets | None:
    """What people on shared sets told, where it is all that a fit needs.

    Not where people have weights of their own, nor under a prior (which looks at who met what); and standard errors by
    one pass or by multipliers look at people one by one, so there are these matrices instead.
    """
    if weights is not None or plan.kind != "none" or rest.n_items > QUICK_ITEMS:
        return None
    return rest.shared if se in ("auto", "dense", "information", "none") else None


def with_scale_first(parts: Ints, scale: Mask) -> Ints:
    """Parts so numbered that 0 is the one of the items that give the scale."""
    first = int(np.bincount(parts[scale]).argmax())
    return np.where(parts == first, 0, np.where(parts < first, parts + 1, parts))


def prior_acted(plan: Regularization, landed: Newton, rest: Responses, tied: Mask) -> Regularization:
    """The plan with what the prior of right and wrong answers did."""
    assert landed.prior is not None
    pull, told = landed.prior @ landed.beta, landed.information
    step = np.divide(pull, told, out=np.zeros(len(told)), where=told > 1e-9)
    free = True if landed.fixed is None else ~landed.fixed
    counts = (rest.item_counts - rest.item_scores).astype(float), rest.item_scores.astype(float)
    acts, name = (landed.prior.counts > 0) & free, lambda k: f"item {listed([rest.items[k]])}"
    return acted(plan, acts, tied & (told > 1e-9), step, counts, name)


def regularization_finding(plan: Regularization) -> Finding:
    """What the prior was, and what it does to intervals."""
    sentence, remedy = f"Regularization: {plan}.", ""
    if plan.kind == "neighbors":
        remedy = (
            "Intervals under a prior cover the truth in 95% of cases over all items; of the hardest and the easiest "
            "items with few answers, which it draws towards the others, they cover fewer."
        )
    return Finding("regularization", "note", sentence, remedy)


def between_parts(parts: Ints, alpha: float, equal_means: bool) -> Floats:
    """Variance of each item's part against the scale, which is that of part 0 (the largest) or below.

    Nothing is known of it, unless difficulties of all parts are taken for drawn from one distribution: then the mean of
    k of them has the variance 1 / (alpha k).
    """
    if equal_means:
        return 1 / (alpha * np.bincount(parts + 1)[parts + 1])
    return np.where(parts > 0, np.inf, 0.0)


def apart(rest: Responses, parts: Ints, equal_means: bool) -> Finding:
    """What was assumed about groups of items that nobody links."""
    sizes = np.bincount(parts)
    shown = ", ".join(f"{size:,}" for size in sizes[:5]) + (f" and {len(sizes) - 5:,} more" if len(sizes) > 5 else "")
    outside = rest.items[parts > 0]
    sentence = (
        f"The items fall into {len(sizes):,} groups that share no people (sizes {shown}): nothing tells how their "
        f"difficulties compare. Each group has a mean of zero of its own"
    )
    remedy = "Fit each group on its own, add a form that links them, or take " + LARGEST_COMPONENT
    if equal_means:
        sentence += ", for the groups were assumed to be equally hard on average."
    else:
        sentence += f"; the standard error of items outside the largest group is infinite: {listed(outside)}."
        remedy += "; `assume_equal_means=True` assumes that groups are equally hard on average"
    return Finding("disconnected", "warning", sentence, remedy + ".", tuple(outside.tolist()))
