"""Thresholds of a known form, beta = A eta, on the conditional likelihood: Newton steps for eta.

As `step_landing`, with A' score and A' H A; H is formed, for there are few thresholds where items share their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spectral_irt.conditional.patterns import padded
from spectral_irt.conditional.series_tables import StepTables
from spectral_irt.conditional.step_rows import evaluate, prepare_step_rows
from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Responses
from spectral_irt.estimators.landing import FINER, LONGEST, MOST
from spectral_irt.estimators.step_errors import bread_and_meat
from spectral_irt.estimators.step_landing import StepLanded, information_of, passed_counts


@dataclass(frozen=True, eq=False)
class Tied:
    """The solution, and the covariance of the thresholds (up to a common shift)."""

    thresholds: Floats
    covariance: Floats
    rounds: int
    residual: float


def land_tied(
    responses: Responses,
    design: Floats,
    start: Floats,
    tell: Callable[[str], None] = lambda text: None,
) -> Tied:
    """Newton steps from the thresholds `start`, and the sandwich where they end."""
    steps = responses.thresholds
    shift: Floats = np.linalg.lstsq(design, np.ones(len(design)), rcond=None)[0].astype(np.float64)
    eta: Floats = np.linalg.lstsq(design, start, rcond=None)[0].astype(np.float64)
    rows, tables = prepare_step_rows(responses, design @ eta, FINER)
    passed = passed_counts(responses)
    floating = np.zeros(steps.n_entries, dtype=np.int64)
    for k in range(1, MOST + 1):
        beta = design @ eta
        tables = StepTables.at(steps, beta, tables.grid, tables.terms)
        rows, sums = rows.map_and_sum(evaluate, tables, padded(steps, beta))
        expected, own, outer = information_of(tables, sums)
        here = StepLanded(beta, steps, rows, tables, own, outer, None, None, floating, k, 0.0)
        bread, meat = bread_and_meat(here, meat=False)
        small = design.T @ bread @ design
        c = np.trace(small) / len(small)
        inverse = np.linalg.inv(small + c * np.outer(shift, shift) / (shift @ shift))
        step = np.clip(inverse @ (design.T @ (expected - passed)), -LONGEST, LONGEST)
        move = float(np.max(np.abs(step) * np.sqrt(np.diag(small)), initial=0.0))
        eta = eta + step
        tell(f"landing on the conditional likelihood: step {k}, {move:.2f} standard errors at most")
        if move < FINER:
            break
    _, meat = bread_and_meat(here)
    back = design @ inverse @ design.T
    return Tied(design @ eta, back @ meat @ back.T, k, move)
