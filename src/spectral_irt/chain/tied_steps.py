"""Thresholds of a known form, beta = A eta, from the same balance of flows.

Every person's contribution to the balance is a sum of antisymmetric terms with mean zero at the truth, so A^T g = 0 is
an unbiased equation for eta whatever A is. Newton's steps on it with J = diag(F 1) - F^T, and the sandwich

    Cov(eta) = (A^T J A)^+  A^T Omega A  (A^T J A)^+T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spectral_irt.chain.step_weights import step_weighting
from spectral_irt.chain.steps import StepBalance, StepChain
from spectral_irt.responses.block import Floats
from spectral_irt.responses.ordered import OrderedResponses

MOST_ROUNDS, MOST_STEPS = 20, 50
SETTLED = 1e-3  # logits that a round of weights moves eta by, at the end; weights do not bias, so that this is plenty
LONGEST = 2.0  # logits of a step


@dataclass(frozen=True, eq=False)
class Tied:
    """The solution, and the covariance of the thresholds (up to a common shift)."""

    thresholds: Floats
    covariance: Floats
    rounds: int
    residual: float


def solve_tied(
    responses: OrderedResponses,
    design: Floats,
    start: Floats,
    weighting: str = "ability",
    tell: Callable[[str], None] = lambda text: None,
) -> Tied:
    """Rounds of weights at the thresholds of the round before; Newton's steps within each."""
    shift: Floats = np.linalg.lstsq(design, np.ones(len(design)), rcond=None)[0].astype(np.float64)
    eta: Floats = np.linalg.lstsq(design, start, rcond=None)[0].astype(np.float64)
    kind = step_weighting(weighting, responses.steps)
    old: StepChain | None = None
    for k in range(1, MOST_ROUNDS + 1):
        chain = StepChain.of(responses, kind, design @ eta, old)
        old = chain if kind.moving else None
        rates = chain.matrix()
        before, (eta, residual) = eta, _newton(rates, design, eta, shift)
        moved = float(np.max(np.abs(eta - before)))
        tell(f"rating scale: round {k}, moved {moved:.0e}")
        if moved < SETTLED or not kind.moving:
            break
    beta = design @ eta
    pi = np.exp(beta)
    inverse = _inverse(rates, design, pi, shift)
    nothing = np.zeros(len(pi))
    omega = StepBalance(chain, chain, pi, nothing, nothing).omega()
    back = design @ inverse @ design.T
    return Tied(beta, back @ omega @ back.T, k, residual)


def _newton(rates: Floats, design: Floats, eta: Floats, shift: Floats) -> tuple[Floats, float]:
    out = rates.sum(axis=1)
    residual = np.inf
    for _ in range(MOST_STEPS):
        pi = np.exp(design @ eta)
        g = design.T @ (rates.T @ pi - pi * out)
        residual = float(np.abs(g).sum() / (pi @ out))
        if residual < 1e-13:
            break
        step = np.clip(_inverse(rates, design, pi, shift) @ g, -LONGEST, LONGEST)
        eta = eta + step
        if np.max(np.abs(step)) < 1e-12:
            break
    return eta, residual


def _inverse(rates: Floats, design: Floats, pi: Floats, shift: Floats) -> Floats:
    """(A^T J A)^-1, with a row that fixes the common shift, which J maps to zero."""
    flow = pi[:, None] * rates
    j = np.diag(flow.sum(axis=1)) - flow.T
    small = design.T @ j @ design
    c = np.trace(small) / len(small)
    return np.linalg.inv(small + c * np.outer(shift, shift) / (shift @ shift))
