"""Some items at known thresholds: the others are put on their scale by the chain with these states held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spectral_irt.chain.anchored import Known, solve_grounded
from spectral_irt.chain.step_weights import step_weighting
from spectral_irt.chain.steps import StepBalance, StepChain
from spectral_irt.chain.weights import weighting_named
from spectral_irt.errors import OptionError, listed, option
from spectral_irt.estimators.landed import START
from spectral_irt.estimators.landing import LANDED
from spectral_irt.estimators.ordered_base import StepEstimate, location_errors, spread, spread_matrix
from spectral_irt.estimators.step_errors import covariance
from spectral_irt.estimators.step_landing import land_steps
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Floats
from spectral_irt.responses.design import Mask
from spectral_irt.responses.labels import positions
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.responses.step_design import estimable_items, examine_ordered

Anchors = Mapping[Any, Sequence[float]] | OrderedCalibration
MOST_STEPS = 5000  # thresholds whose sandwich is a matrix in memory


def anchor_values(responses: OrderedResponses, anchors: Anchors) -> Floats:
    """The known thresholds, NaN for those that are to be found."""
    if isinstance(anchors, OrderedCalibration):
        steps = anchors.steps
        own = np.split(anchors.thresholds, np.cumsum(steps.counts)[:-1])
        named: dict[Any, Any] = dict(zip(anchors.labels.tolist(), own, strict=True))
    else:
        named = dict(anchors)
    steps = responses.steps
    beta = np.full(steps.n_steps, np.nan)
    place = positions(list(named), responses.items)
    for (label, given), k in zip(named.items(), place.tolist(), strict=True):
        if k < 0:
            continue
        values = np.atleast_1d(np.asarray(given, dtype=float))
        if len(values) != steps.counts[k]:
            raise OptionError(
                f"the anchor {label!r} has {len(values):,} thresholds, and its answers are in {steps.counts[k] + 1:,} "
                "categories; give one threshold less than there are categories, or keep categories that nobody used "
                "(",
                option("unused", "keep"),
                ").",
            )
        if np.all(np.isfinite(values)):
            beta[steps.first[k] : steps.first[k] + steps.counts[k]] = values
    if not np.isfinite(beta).any():
        raise OptionError(f"none of the anchors ({listed(named)}) is an item of the data, {listed(responses.items)}.")
    return beta


def anchored_steps(
    responses: OrderedResponses,
    anchors: Anchors,
    weighting: str,
    tol: float,
    max_passes: int,
    tell: Callable[[str], None],
    landing: bool = True,
) -> StepEstimate:
    """Thresholds on the scale of the anchors, with the sandwich of the free ones; landed, or as the chain has them."""
    if not weighting_named(weighting).moving:
        raise OptionError("anchors go with ", option("weighting", "ability"), ".")
    if responses.steps.n_steps > MOST_STEPS:
        raise OptionError(f"anchors are for up to {MOST_STEPS:,} thresholds.")
    every = anchor_values(responses, anchors)
    rest, kept, findings = estimable_items(responses)
    steps, mask = rest.steps, kept[responses.steps.item]
    held = every[mask]
    fixed = np.isfinite(held)
    if not fixed.any():
        raise OptionError("no anchored item has answers on both sides of its thresholds: nothing ties the others.")
    kind = step_weighting(weighting, steps)
    known = Known(fixed, np.where(fixed, held, 0.0), np.zeros(len(held)))
    start = np.where(fixed, held, held[fixed].mean())
    found = solve_grounded(
        rest.thresholds,
        start,
        known,
        tol=max(tol, START) if landing else tol,
        max_passes=max_passes,
        tell=tell,
        chain_at=lambda beta, old: StepChain.of(rest, kind, beta, old),
    )
    residual = 0.0 if found.found is None else found.found.residual
    beta, passes, method = found.beta, found.passes, "" if found.found is None else found.found.method
    if landing:
        landed = land_steps(rest, beta, fixed=fixed, tell=tell)
        beta, passes, residual, method = landed.beta, passes + landed.evaluations, landed.move, method + LANDED
        matrix = covariance(landed)
    else:
        matrix = _sandwich(rest, beta, fixed)
    se = np.sqrt(np.maximum(np.diag(matrix), 0))
    location = location_errors(steps, matrix)
    full = np.where(mask, spread(beta, mask), every)  # an anchor that nobody informs on stays an anchor
    status = examine_ordered(responses).item_status()
    anchored = np.bincount(responses.steps.item, weights=np.isfinite(every), minlength=responses.n_items) > 0
    status[anchored] = "anchored"
    note = Finding("anchored", "note", f"{int(anchored.sum()):,} items are held at their known thresholds.")
    return StepEstimate(
        full,
        np.where(mask, spread(se, mask), np.where(np.isfinite(every), 0.0, np.nan)),
        spread(location, kept),
        status,
        passes,
        residual,
        covariance=spread_matrix(matrix, mask),
        findings=(*findings, note),
        se_method="dense",
        solver=method or None,
        further={"anchored": anchored},
        extra={"kept": kept},
    )


def _sandwich(responses: OrderedResponses, beta: Floats, fixed: Mask) -> Floats:
    """J^-1 Omega J^-T of the free thresholds; 0 for the anchors, which are taken as they are."""
    pi, nothing = np.exp(beta), np.zeros(len(beta))
    chain = StepChain.of(responses, step_weighting("ability", responses.steps), beta)
    flow = pi[:, None] * chain.matrix()
    j = np.diag(flow.sum(axis=1)) - flow.T
    free = np.ix_(~fixed, ~fixed)
    matrix = np.zeros((len(beta), len(beta)))
    if not fixed.all():
        inverse = np.linalg.inv(j[free])
        omega = StepBalance(chain, chain, pi, nothing, nothing).omega()
        matrix[free] = inverse @ omega[free] @ inverse.T
    return matrix
