"""How far each fixed item is from where the data would put it, if it alone were set free.

Set free, fixed item a has the mass pi_a' with pi_a' d_a = inflow, of which the part `follow` (at pi_a) comes back to it
by way of the free items and grows with pi_a. So

    displacement_a = log(pi_a' / pi_a) = log(inflow - follow) - log(outflow - follow).

Slope and noise of its equation, and hence its standard error, are taken there, not at the anchor: off by three logits
the slope at the anchor is twenty times too small or too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.chain.covariance import Balance, contribution_matrices, contributions, squared
from spectral_irt.chain.operator import Part
from spectral_irt.numerics import gram
from spectral_irt.responses.block import Floats


@dataclass(frozen=True, eq=False)
class _Noise:
    """Squared noise of each fixed item's equation, when its pi grows by a factor: constant + f linear + f^2 square.

    On wrong answers its contributions do not depend on its own pi, on right ones they are proportional to it.
    """

    constant: Floats
    linear: Floats
    square: Floats

    def at(self, growth: Floats) -> Floats:
        return self.constant + growth * self.linear + growth**2 * self.square


def displacements(balance: Balance, method: str) -> tuple[Floats, Floats]:
    """Displacement of every fixed item and its standard error.

    "dense" lets the free items follow when a fixed item is set free; the other ways hold them. NaN for free items, for
    a single fixed one (set free, the whole scale would move with it), and where the data put no finite value on it.
    """
    into, out = balance.data.inflow(balance.pi), balance.pi * balance.data.rates
    fixed = ~balance.free
    if method == "dense":
        follow, noise = _following(balance)
        follow = np.where(follow < np.minimum(into, out), follow, 0.0)
    else:
        none = follow = np.zeros(len(fixed))
        on_wrong = balance.data.parts.sum(_spread_on_wrong, balance.pi)
        noise = _Noise(on_wrong, none, balance.spread[0] - on_wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        displacement = np.log(into - follow) - np.log(out - follow)
        se = np.sqrt(np.maximum(noise.at(np.exp(displacement)), 0)) / (into - follow)
    measured = fixed & np.isfinite(displacement) & (out - follow > 1e-9 * balance.diagonal) & (fixed.sum() > 1)
    return np.where(measured, displacement, np.nan), np.where(measured, se, np.nan)


def _following(balance: Balance) -> tuple[Floats, _Noise]:
    """What comes back to each fixed item, and its noise, once the free items follow.

    With L = J_AF J_FF^-1 the free items answer to a change of fixed item a, whose own equation then has the slope
    J_aa - L_a J_Fa and the noise g_a - L_a g_F.
    """
    jacobian, omega = balance.dense.jacobian, balance.dense.omega
    wrong = balance.data.parts.sum(_omega_on_wrong, balance.pi)
    right = omega - wrong
    # Between right and wrong answers of one item there is nothing: nobody gave both.
    constant, linear, square = np.diag(wrong).copy(), np.zeros(len(omega)), np.diag(right).copy()
    follow = np.zeros(len(omega))
    fixed = np.flatnonzero(~balance.free)
    lever = jacobian[fixed] @ balance.dense.inverse
    follow[fixed] = np.einsum("af,fa->a", lever, jacobian[:, fixed])
    constant[fixed] += np.einsum("af,af->a", lever, lever @ omega - 2 * wrong[fixed])
    linear[fixed] = -2 * np.einsum("af,af->a", lever, right[fixed])
    return follow, _Noise(constant, linear, square)


def _omega_on_wrong(part: Part, pi: Floats) -> Floats:
    """Omega with its rows' contributions from wrong answers only: sum_l g_li [l wrong on i] g_lj."""
    every, wrong = contribution_matrices(part, pi)
    return gram(wrong, every)


def _spread_on_wrong(part: Part, pi: Floats) -> Floats:
    """Sums over persons who were wrong of g_li^2."""
    return np.asarray(squared(part.wrong_t) @ contributions(part, pi)[0] ** 2)
