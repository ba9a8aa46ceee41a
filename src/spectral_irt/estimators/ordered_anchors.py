"""Some items at known thresholds: the others are put on their scale by the chain with these states held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.chain.anchored import FixedAndPrior, solve_anchored
from spectral_irt.chain.errors import Balance
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.weights import ABILITY, weighting_named
from spectral_irt.conditional.errors import Matrices, anchored_finding
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.newton import NEWTON, newton
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask, estimable, examine
from spectral_irt.data.labels import positions
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, listed
from spectral_irt.estimators.estimate import Estimate, location_errors, with_missing
from spectral_irt.estimators.landed import START


@dataclass(frozen=True, eq=False)
class KnownThresholds:
    """Thresholds by the label of the item, and the covariance of all of them, one after the other, if it is known."""

    thresholds: Mapping[Any, Sequence[float]]
    covariance: Floats | None = None

    @classmethod
    def of(cls, given: Anchors) -> KnownThresholds:
        if isinstance(given, KnownThresholds):
            return given
        if not isinstance(given, Calibration):
            return cls(dict(given))
        own = [each.tolist() for each in np.split(given.thresholds, np.cumsum(given.layout.max_score)[:-1])]
        se = np.nan_to_num(given.threshold_se)
        return cls(dict(zip(given.labels.tolist(), own, strict=True)), np.diag(se**2) if se.any() else None)


Anchors = Mapping[Any, Sequence[float]] | Calibration | KnownThresholds
MOST_STEPS = 5000  # thresholds whose sandwich is a matrix in memory


def anchor_values(responses: Responses, anchors: KnownThresholds) -> tuple[Floats, Ints]:
    """The known thresholds, NaN for those that are to be found; and the place of each among the anchors, or -1."""
    named = anchors.thresholds
    steps = responses.thresholds
    beta, where, before = np.full(steps.n_entries, np.nan), np.full(steps.n_entries, -1), 0
    place = positions(list(named), responses.items)
    for (label, given), k in zip(named.items(), place.tolist(), strict=True):
        values = np.atleast_1d(np.asarray(given, dtype=float))
        first, before = before, before + len(values)
        if k < 0:
            continue
        if len(values) != steps.max_score[k]:
            raise OptionError(
                f"the anchor {label!r} has {len(values):,} thresholds, and its answers are in "
                f"{steps.max_score[k] + 1:,} categories; give one threshold less than there are categories, or keep "
                "categories that nobody used (`unused='keep'`)."
            )
        if np.all(np.isfinite(values)):
            mine = slice(steps.first[k], steps.first[k] + steps.max_score[k])
            beta[mine], where[mine] = values, np.arange(first, before)
    if not np.isfinite(beta).any():
        raise OptionError(f"none of the anchors ({listed(named)}) is an item of the data, {listed(responses.items)}.")
    return beta, where


def anchored_steps(
    responses: Responses,
    anchors: Anchors,
    weighting: str,
    tol: float,
    max_passes: int,
    tell: Callable[[str], None],
    landing: bool = True,
) -> Estimate:
    """Thresholds on the scale of the anchors, with the sandwich of the free ones; landed, or as the chain has them."""
    if not weighting_named(weighting).moving:
        raise OptionError("anchors go with `weighting='ability'`.")
    if responses.thresholds.n_entries > MOST_STEPS:
        raise OptionError(f"anchors are for up to {MOST_STEPS:,} thresholds.")
    given = KnownThresholds.of(anchors)
    every, where = anchor_values(responses, given)
    rest, kept, findings = estimable(responses)
    steps, mask = rest.thresholds, kept[responses.thresholds.item]
    held = every[mask]
    fixed = np.isfinite(held)
    if not fixed.any():
        raise OptionError("no anchored item has answers on both sides of its thresholds: nothing ties the others.")
    known = FixedAndPrior(fixed, np.where(fixed, held, 0.0), np.zeros(len(held)))
    start = np.where(fixed, held, held[fixed].mean())
    found = solve_anchored(
        rest,
        start,
        known,
        tol=max(tol, START) if landing else tol,
        max_passes=max_passes,
        tell=tell,
    )
    residual = 0.0 if found.found is None else found.found.residual
    beta, passes, method = found.beta, found.passes, "" if found.found is None else found.found.method
    if landing:
        landed = newton(Likelihood(rest, beta), beta, fixed=fixed, tell=tell)
        beta, passes, residual, method = landed.beta, passes + landed.evaluations, landed.move, method + NEWTON
        place = where[mask][fixed]
        errors = None if given.covariance is None else given.covariance[np.ix_(place, place)]
        matrices = Matrices.of(landed)
        matrix = matrices.covariance()
        matrix = matrix if errors is None else matrix + matrices.from_anchors(fixed, errors)
    else:
        matrix = _sandwich(rest, beta, fixed)
    se = np.sqrt(np.maximum(np.diag(matrix), 0))
    location = location_errors(steps, matrix)
    full = np.where(mask, with_missing(beta, mask), every)  # an anchor that nobody informs on stays an anchor
    status = examine(responses).status()
    anchored = np.bincount(responses.thresholds.item, weights=np.isfinite(every), minlength=responses.n_items) > 0
    status[anchored] = "anchored"
    note = anchored_finding(int(anchored.sum()), landing and given.covariance is not None)
    return Estimate(
        full,
        np.where(mask, with_missing(se, mask), np.where(np.isfinite(every), 0.0, np.nan)),
        status,
        passes,
        residual,
        item_se=with_missing(location, kept),
        covariance=with_missing(matrix, mask),
        findings=(*findings, note),
        se_method="dense",
        solver=method or None,
        further={"anchored": anchored},
    )


def _sandwich(responses: Responses, beta: Floats, fixed: Mask) -> Floats:
    """J^-1 Omega J^-T of the free thresholds; 0 for the anchors, which are taken as they are."""
    pi, nothing = np.exp(beta), np.zeros(len(beta))
    chain = ItemChain.under(responses, ABILITY, beta)
    flow = pi[:, None] * chain.matrix()
    j = np.diag(flow.sum(axis=1)) - flow.T
    free = np.ix_(~fixed, ~fixed)
    matrix = np.zeros((len(beta), len(beta)))
    if not fixed.all():
        inverse = np.linalg.inv(j[free])
        omega = Balance(chain, chain, pi, nothing, nothing).omega()
        matrix[free] = inverse @ omega[free] @ inverse.T
    return matrix
