"""The chain alone: its stationary distribution and its own sandwich."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spectral_irt.chain.errors import DENSE_ITEMS, ONE_PASS_ITEMS, choose_method, covariance, one_pass
from spectral_irt.chain.regularization import Regularization, met_items
from spectral_irt.chain.rounds import Rounds
from spectral_irt.chain.stationary import Stationary
from spectral_irt.chain.weak_links import weak_links
from spectral_irt.data import Finding, Responses
from spectral_irt.data.design import Design, Mask, estimable
from spectral_irt.errors import check_option
from spectral_irt.estimators.base import WEAK_LINKS
from spectral_irt.estimators.estimate import Estimate, centered, convergence, location_errors, with_missing

CHAIN_ERRORS = ("auto", "dense", "one-pass", "none")  # ways to standard errors of the chain alone
SLOW = 0.5  # contraction above which weak links between groups of items are looked for


def chain_thresholds(
    design: Design,
    plan: Regularization,
    *,
    weighting: str,
    nu_rule: str = "differed",
    se: str,
    tol: float,
    max_passes: int,
    tell: Callable[[str], None],
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
        # The sandwich takes what flows out of an item for information, which it is under ability weights only: an item
        # that everybody got right would seem known to a few hundredths. What rests on the prior alone has the prior's
        # error; nu is no distribution, and what rests on it has none.
        if plan.kind == "pairs":
            alone, prior_se = status[kept] != "ok", np.nan
        else:
            alone, prior_se = design.information[mask] == 0, plan.alpha**-0.5 if plan.alpha else np.nan
        errors[alone] = prior_se
        if matrix is not None:
            matrix[alone] = matrix[:, alone] = prior_se * 0
            matrix[alone, alone] = prior_se**2
    if matrix is not None:
        errors = np.sqrt(np.maximum(np.diag(matrix), 0))
        location = errors if thresholds.binary else location_errors(thresholds, matrix)
    elif alone.any():  # of an item with such a threshold: as if what is known of each were known by itself
        own = np.sqrt(thresholds.mean(errors**2) / thresholds.max_score)
        location = np.where(thresholds.mean(alone.astype(float)) > 0, own, location)

    findings.append(Finding("regularization", "note", f"Regularization: {plan}."))
    findings += chain_convergence(found, tol)
    findings += slow_mixing(design, rest, kept, found.contraction)
    told = balance.through if balance.in_information else rounds.information()
    return Estimate(
        with_missing(beta, mask),
        with_missing(errors, mask),
        status,
        rounds.passes,
        found.residual,
        item_se=with_missing(location, kept),
        covariance=None if matrix is None else with_missing(matrix, mask),
        information=with_missing(thresholds.sum(told), kept),
        findings=tuple(findings),
        regularization=plan,
        se_method=method,
        solver=found.method,
        contraction=found.contraction,
    )


def kept_items(design: Design, plan: Regularization) -> tuple[Responses, Mask, list[Finding]]:
    """The items that take part, which they are, and the findings on the design: without a prior some are left out."""
    responses, findings = design.answers, list(design.findings)
    if plan.kind == "none" and not (design.connected and design.answered.all()):
        rest, kept, left_out = estimable(responses)
        said = ("extreme_items", "uninformed_items", "empty_categories")
        return rest, kept, [f for f in findings if f.code not in said] + list(left_out)
    kept = responses.item_counts > 0
    return responses if kept.all() else responses.take_items(kept), kept, findings


def chosen_method(
    se: str, rest: Responses, contraction: float, tell: Callable[[str], None], *, multipliers: bool = True
) -> str:
    """Which way to standard errors is taken."""
    method, m = se, rest.thresholds.n_entries
    if se == "auto":
        if rest.engine.gathers:
            work = float((rest.counts.astype(float) ** 2).sum())
            method = choose_method(m, contraction, work)
            if method == "multiplier" and not multipliers:
                method = "dense" if m <= DENSE_ITEMS else "one-pass"
        else:
            method = "dense" if m < ONE_PASS_ITEMS else "one-pass"
    if method != "none":
        tell(f"standard errors ({method})")
    return method


def slow_mixing(design: Design, rest: Responses, kept: Mask, contraction: float) -> list[Finding]:
    """The finding of weak links, where the chain mixes slowly; ties hide them, so they are looked for in the data."""
    if contraction <= SLOW:
        return []
    if not rest.engine.gathers:  # to name the sides would take a hundred passes more
        return [
            Finding(
                "weak_links",
                "warning",
                "Few people link some groups of items: the chain mixes slowly.",
                "Standard errors by one pass are too small for differences between such groups. A fit where the "
                "answers are at hand names the groups and has the errors.",
            )
        ]
    outside = design.component[kept[design.answers.thresholds.item]] != 0
    weak = weak_links(rest.take_items(rest.thresholds.sum(outside) == 0))
    return [weak] if weak else []


def chain_convergence(found: Stationary, tol: float) -> list[Finding]:
    """The finding that a chain was not solved to its tolerance, if it was not; the solver has warned of it."""
    return convergence(
        "the chain", found.passes, "passes", "residual", found.residual, tol, remedy=WEAK_LINKS, warn=False
    )
