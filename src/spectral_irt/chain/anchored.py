"""The chain when some difficulties are known beforehand.

All anchored items together are one state, the ground. Its mass is 1, and it holds each anchored item a at its pi_a: a
free item j flows to the ground at the rate sum_a Y_ja, and the ground to j at the rate sum_a pi_a Y_aj. Stationarity of
the free items,

    pi_i d_i = sum_{j free} pi_j Y_ji + sum_a pi_a Y_ai,

is their estimating equation with the anchored pi as given sources, and solver, weights and passes are those of every
other chain. What is known with a normal error is a tie to the ground: a flow that pulls item i towards its prior mean
with the prior's precision. The scale is that of what is known; nothing is centered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spectral_irt.chain.operator import Chain, ItemChain
from spectral_irt.chain.stationary import SMALL, Stationary, stationary
from spectral_irt.chain.weights import ABILITY, log_mean_weight
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import Mask

LEAST_ROUNDS, MOST_ROUNDS = 2, 50
SETTLED = 0.01  # rounds end when one moved no item by more than this many standard errors


@dataclass(frozen=True, eq=False)
class FixedAndPrior:
    """What is known of each item before the data.

    Attributes
    ----------
    fixed : bool array
        Anchored items; their value is `mean`.
    mean, precision : float arrays
        Normal prior of each free item, in logits; precision 0 where there is none.
    """

    fixed: Mask
    mean: Floats
    precision: Floats


class AnchoredChain:
    """The free items of a chain, with ties and weights at the difficulties `beta`; the last state is the ground."""

    def __init__(self, chain: Chain, beta: Floats, known: FixedAndPrior) -> None:
        self.chain, self.fixed, self.free = chain, known.fixed, ~known.fixed
        self.held = np.where(known.fixed, np.exp(known.mean), 0.0)
        base = np.exp(known.mean[self.free])
        # The flow h (pi / base - 1) equals precision (beta - mean) at the present beta, as a normal prior pulls.
        self.tie: Floats = known.precision[self.free] * log_mean_weight(np.exp(beta[self.free]) / base)
        self.to_ground: Floats = self.tie / base
        into = chain.inflow(self.held)
        # Flows from anchored to anchored items stay in the ground. They keep the iteration from swinging between the
        # ground and the rest; elimination, for small chains, asks for rates without them.
        inside = into[self.fixed].sum()
        self.left_out = inside if len(self.tie) < SMALL else 0.0
        leaving = into[self.free].sum() + self.tie.sum() + inside - self.left_out
        self.rates: Floats = np.append(chain.rates[self.free] + self.to_ground, leaving)

    def inflow(self, flow: Floats) -> Floats:
        items, ground = flow[:-1], flow[-1]
        full = np.multiply.outer(self.held, ground)
        full[self.free] = items
        into = self.chain.inflow(full)
        to_ground = into[self.fixed].sum(axis=0) - self.left_out * ground + self.to_ground @ items
        return np.concatenate([into[self.free] + np.multiply.outer(self.tie, ground), to_ground[None]])


# ------------------------------------------------------------------------------------------ the solution


@dataclass(frozen=True, eq=False)
class AnchoredSolution:
    """A solved chain with known items: difficulties of all items, and what was known in the end."""

    beta: Floats
    known: FixedAndPrior
    found: Stationary | None
    passes: int


def solve_anchored(
    responses: Responses,
    beta: Floats,
    known: FixedAndPrior,
    *,
    tol: float = 1e-10,
    max_passes: int = 10_000,
    renew: Callable[[Floats, Floats, FixedAndPrior], FixedAndPrior] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> AnchoredSolution:
    """Rounds of ability weights at the difficulties of the round before, until none moves.

    Parameters
    ----------
    beta : float array
        Where to start; anchored items are put to their values. Every free item needs answers that tie it to the known
        ones, or a prior of its own.
    renew : callable, optional
        `renew(beta, information, known)` gives what is known for the next round: empirical Bayes.
    """
    beta = np.where(known.fixed, known.mean, beta)
    free = ~known.fixed
    data: ItemChain | None = None
    found: Stationary | None = None
    passes = 0
    for k in range(1, MOST_ROUNDS + 1):
        data = ItemChain.under(responses, ABILITY, beta, data)
        if not free.any():
            break
        before = beta
        start = np.append(np.exp(beta[free]), 1.0)
        found = stationary(AnchoredChain(data, beta, known), start=start, tol=tol, max_passes=max_passes)
        passes += found.passes
        beta = beta.copy()
        beta[free] = np.log(found.pi[:-1] / found.pi[-1])
        information = np.exp(beta) * data.rates + known.precision
        move = float(np.max(np.abs(beta - before) * np.sqrt(information)))
        tell(f"anchored chain: round {k}, residual {found.residual:.0e} after {passes} passes")
        if renew is not None:
            known = renew(beta, np.exp(beta) * data.rates, known)
        if k >= LEAST_ROUNDS and move < SETTLED:
            break
    return AnchoredSolution(beta, known, found, passes)
