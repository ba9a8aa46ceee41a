"""The chain by itself: thresholds as the log of its stationary distribution, without Newton's steps.

`spectral_fit` calls it for `refine=False`, for the weights "persons" and "pairs" and for the paper's `nu`; the other
estimators start from `start_thresholds`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectral_irt.chain.prior import ENOUGH_INFORMATION, Regularization, plan_prior
from spectral_irt.chain.stationary import Rounds, Stationary
from spectral_irt.conditional.errors import center_parts, centered_covariance
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import Design, Mask, examine
from spectral_irt.errors import check_option
from spectral_irt.estimators.base import WEAK_LINKS, Estimate, convergence
from spectral_irt.estimators.estimable import Errors, EstimableItems, items_taking_part, slow_mixing
from spectral_irt.estimators.spectral_errors import SLOW, chosen_method

if TYPE_CHECKING:
    from spectral_irt.chain.errors import Balance

CHAIN_ERRORS = ("auto", "dense", "one-pass", "none")  # ways to standard errors of the chain alone
START_RESIDUAL = 1e-6  # of a chain from which another iteration starts


class ChainOptions(NamedTuple):
    """When a chain counts as solved, after how many passes it is left, and who is told."""

    tol: float = 1e-10
    max_passes: int = 10_000
    tell: Callable[[str], None] = lambda text: None


class ChainPrior(NamedTuple):
    """What is added to the answers: a precision, or "auto"; or the paper's `nu`, by its rule."""

    regularization: str | float = "auto"
    nu: float = 0.0
    nu_rule: str = "differed"


def start_thresholds(responses: Responses) -> Floats:
    """Where other iterations start: what the chain alone gives; 0 for an unanswered item."""
    weighting = "ability" if responses.thresholds.binary else "persons"
    options = ChainOptions(tol=START_RESIDUAL)
    beta = chain_alone(examine(responses), ChainPrior(), weighting, "none", options).thresholds
    return np.where(np.isfinite(beta), beta, 0.0)


def chain_alone(design: Design, prior: ChainPrior, weighting: str, se: str, options: ChainOptions) -> Estimate:
    """Thresholds as the chain itself has them."""
    check_option("se", se, CHAIN_ERRORS)
    items, plan = _items_and_plan(design, prior)
    usable = items.responses
    layout = usable.thresholds
    rough_information = design.information[items.included_thresholds]
    options.tell("solving the chain")
    rounds = Rounds(
        usable, weighting, plan, rough_information, tol=options.tol, max_passes=options.max_passes, tell=options.tell
    )
    solution = rounds.solve()
    plan = rounds.plan
    balance = rounds.balance()
    method = se
    if se == "auto":
        method = chosen_method(usable, solution.contraction, multipliers=False)
    if method != "none":
        options.tell(f"standard errors ({method})")
    errors = _errors(rounds, balance, items, rough_information, method)
    beta = rounds.beta
    if not layout.binary:
        beta, _ = center_parts(layout, beta, None)
    information = balance.through if balance.in_information else rounds.information()
    return items.estimate(
        beta,
        errors,
        rounds.passes,
        solution.residual,
        information=layout.sum(information),
        findings=_findings(design, items, plan, solution, method, options.tol),
        regularization=plan,
        solver=solution.method,
        contraction=solution.contraction,
    )


def _items_and_plan(design: Design, prior: ChainPrior) -> tuple[EstimableItems, Regularization]:
    """Which items take part, and what is added to the answers."""
    if prior.nu > 0:
        from spectral_irt.chain.paper import met_items

        plan = Regularization("pairs", "as asked", nu=float(prior.nu), rule=prior.nu_rule)
        included = met_items(design, plan.rule)
        usable = design.answers
        if not included.all():
            usable = usable.take_items(included)
        return EstimableItems(usable, included, design.status, design.findings, design.answers.thresholds), plan
    noun = "item" if design.answers.thresholds.binary else "threshold"
    plan = plan_prior(design, prior.regularization, noun, kind="virtual item", enough=ENOUGH_INFORMATION)
    return items_taking_part(design, plan), plan


def _errors(rounds: Rounds, balance: Balance, items: EstimableItems, rough_information: Floats, method: str) -> Errors:
    """Standard errors of the chain: the sandwich, and what rests on the prior alone."""
    from spectral_irt.chain.errors import covariance, one_pass

    layout = items.responses.thresholds
    plan = rounds.plan
    if method == "none":
        return Errors.none(layout)
    # The sandwich takes what flows out of an item for information, which it is under ability weights only. What
    # rests on the prior alone has the prior's error; nu is no distribution, and what rests on it has none.
    on_prior_alone = np.zeros(layout.n_entries, dtype=bool)
    prior_se = np.nan
    if not balance.in_information:
        if plan.kind == "pairs":
            on_prior_alone = items.status[items.included] != "ok"
        else:
            on_prior_alone = rough_information == 0
            if plan.alpha:
                prior_se = plan.alpha**-0.5
    if method == "dense":
        matrix = covariance(balance)
        if not layout.binary:
            matrix = centered_covariance(layout, matrix, np.zeros(layout.n_items, dtype=np.int64))
        return Errors.of(layout, _with_prior_alone(matrix, on_prior_alone, prior_se), method)
    thresholds, locations = one_pass(balance)
    if on_prior_alone.any():  # an item with such a threshold: as if each were known by itself
        thresholds[on_prior_alone] = prior_se
        each_by_itself = np.sqrt(layout.mean(thresholds**2) / layout.max_score)
        locations = np.where(layout.mean(on_prior_alone.astype(float)) > 0, each_by_itself, locations)
    return Errors(thresholds, locations, method)


def _with_prior_alone(matrix: Floats, on_prior_alone: Mask, prior_se: float) -> Floats:
    """The covariance with the prior's variance, and nothing in common with others, for what rests on it alone."""
    matrix[on_prior_alone] = prior_se * 0  # no number, where the prior has none
    matrix[:, on_prior_alone] = prior_se * 0
    matrix[on_prior_alone, on_prior_alone] = prior_se**2
    return matrix


def _findings(
    design: Design, items: EstimableItems, plan: Regularization, solution: Stationary, method: str, tol: float
) -> list[Finding]:
    """The prior, whether the chain was solved, and weak links."""
    findings = [Finding("regularization", "note", str(plan))]
    findings += convergence(
        "the chain",
        solution.passes,
        "passes",
        "residual",
        solution.residual,
        tol,
        remedy=WEAK_LINKS,
        warn=False,  # the solver has warned
    )
    if solution.contraction > SLOW:
        findings += slow_mixing(design, items.responses, items.included, method)
    return findings
