"""The chain alone: its stationary distribution and its own sandwich; and what every spectral fit returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.chain.covariance import ONE_PASS_ITEMS, choose_method, covariance, standard_errors
from spectral_irt.chain.links import weak_links
from spectral_irt.chain.regularization import Regularization, met_items
from spectral_irt.chain.rounds import Rounds
from spectral_irt.chain.stationary import Stationary
from spectral_irt.estimators.base import WEAK_LINKS, convergence
from spectral_irt.responses import Finding, Responses
from spectral_irt.responses.block import Floats
from spectral_irt.responses.design import Design, Mask, estimable

SLOW = 0.5  # contraction above which weak links between groups of items are looked for


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What `spectral_difficulty` found, in the order of the responses' items.

    `covariance` is that of the mean-centered difficulties of the `kept` items, where the dense sandwich formed it.
    """

    difficulty: Floats
    se: Floats
    status: Any
    passes: int
    residual: float
    contraction: float
    solver: str
    se_method: str
    regularization: Regularization
    findings: tuple[Finding, ...]
    information: Floats
    covariance: Floats | None
    kept: Any


def chain_difficulty(
    design: Design,
    plan: Regularization,
    *,
    weighting: str,
    nu_rule: str,
    se: str,
    tol: float,
    max_passes: int,
    seed: int,
    tell: Callable[[str], None],
) -> SpectralFit:
    """Difficulties as the chain itself has them."""
    responses = design.responses
    if plan.kind == "pairs":
        kept, findings = met_items(design, nu_rule), list(design.findings)
        rest = responses if kept.all() else responses.take_items(kept)
    else:
        rest, kept, findings = kept_items(design, plan)
    tell("solving the chain")
    rounds = Rounds(rest, weighting, plan, design.information[kept], tol=tol, max_passes=max_passes, tell=tell)
    found = rounds.solve()
    plan, balance = rounds.plan, rounds.balance()

    contraction = found.contraction
    method = chosen_method(se, rest, contraction, tell)
    matrix = covariance(balance) if method == "dense" else None
    if matrix is not None:
        errors = np.sqrt(np.maximum(np.diag(matrix), 0))
    else:
        errors = np.full(rest.n_items, np.nan) if method == "none" else standard_errors(balance, method, seed)
    status = design.status()
    if not balance.in_information and method != "none":
        # The sandwich takes what flows out of an item for information, which it is under ability weights only: an item
        # that everybody got right would seem known to a few hundredths. What rests on the prior alone has the prior's
        # error; nu is no distribution, and what rests on it has none.
        if plan.kind == "pairs":
            alone, prior_se = status[kept] != "ok", np.nan
        else:
            alone, prior_se = design.information[kept] == 0, plan.alpha**-0.5 if plan.alpha else np.nan
        errors[alone] = prior_se
        if matrix is not None:
            matrix[alone] = matrix[:, alone] = prior_se * 0
            matrix[alone, alone] = prior_se**2

    findings.append(Finding("regularization", "note", f"Regularization: {plan}."))
    findings += chain_convergence(found, tol)
    findings += slow_mixing(design, rest, kept, contraction)
    told = balance.through if balance.in_information else rounds.information()
    difficulty, every_se, information = (np.full(responses.n_items, np.nan) for _ in range(3))
    difficulty[kept], every_se[kept], information[kept] = rounds.beta, errors, told
    return SpectralFit(
        difficulty,
        every_se,
        status,
        rounds.passes,
        found.residual,
        contraction,
        found.method,
        method,
        plan,
        tuple(findings),
        information,
        matrix,
        kept,
    )


def kept_items(design: Design, plan: Regularization) -> tuple[Responses, Mask, list[Finding]]:
    """The items that take part, which they are, and the findings on the design: without a prior some are left out."""
    responses, findings = design.responses, list(design.findings)
    if plan.kind == "none" and not (design.connected and design.answered.all()):
        rest, kept, left_out = estimable(responses)
        return rest, kept, [f for f in findings if f.code not in ("extreme_items", "uninformed_items")] + list(left_out)
    kept = design.answered
    return responses if kept.all() else responses.take_items(kept), kept, findings


def chosen_method(se: str, rest: Responses, contraction: float, tell: Callable[[str], None]) -> str:
    """Which way to standard errors is taken."""
    method = se
    if se == "auto":
        if rest.engine.gathers:
            work = float((rest.counts.astype(float) ** 2).sum())
            method = choose_method(rest.n_items, contraction, work)
        else:
            method = "dense" if rest.n_items < ONE_PASS_ITEMS and rest.engine.by_pairs else "one-pass"
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
                f"The chain mixes slowly (contraction {contraction:.3f}): few people link some groups of items.",
                "Standard errors by one pass are too small for differences between such groups. A fit where the "
                "answers are at hand names the groups and has the errors.",
            )
        ]
    weak = weak_links(rest.take_items(design.component[kept] == 0))
    return [weak] if weak else []


def chain_convergence(found: Stationary, tol: float) -> list[Finding]:
    """The finding that a chain was not solved to its tolerance, if it was not; the solver has warned of it."""
    return convergence(
        "the chain", found.passes, "passes", "residual", found.residual, tol, remedy=WEAK_LINKS, warn=False
    )
