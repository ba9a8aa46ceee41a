"""The chain when some difficulties are known beforehand.

All anchored items together are one state, the ground. Its mass is 1, and it holds each anchored item a at its pi_a: a
free item j flows to the ground at the rate sum_a Y_ja, and the ground to j at the rate sum_a pi_a Y_aj. Stationarity of
the free items,

    pi_i d_i = sum_{j free} pi_j Y_ji + sum_a pi_a Y_ai,

is their estimating equation with the anchored pi as given sources, and solver, weights and passes are those of every
other chain. What is known with a normal error is a tie to the ground: a flow that pulls item i towards its prior mean
with the prior's precision. The scale is that of what is known; nothing is centred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.covariance import (
    _contributions,
    _in_slices,
    _matrix,
    _omega,
    _rates,
    _squared,
    signed_sums,
)
from spectral_irt.chain.operator import Chain, ItemChain, Part
from spectral_irt.chain.regularization import log_mean_weight
from spectral_irt.chain.stationary import SMALL, Stationary, stationary
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats

Mask = NDArray[np.bool_]

LEAST_ROUNDS, MOST_ROUNDS = 2, 50
SETTLED = 0.01  # rounds end when one moved no item by more than this many standard errors
CLOSE = 1e-3  # relative accuracy of the solves of multiplier standard errors ...
MOST_PASSES = 1000  # ... and the most passes these may take


@dataclass(frozen=True, eq=False)
class Known:
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


class GroundedChain:
    """The free items of a chain, with ties and weights at the difficulties `beta`; the last state is the ground."""

    def __init__(self, chain: Chain, beta: Floats, known: Known) -> None:
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
class Grounded:
    """A solved chain with known items: difficulties of all items, and what their standard errors need."""

    beta: Floats
    known: Known
    data: ItemChain
    found: Stationary | None
    passes: int

    @property
    def even(self) -> Mask:
        """Free items with a prior, for which outflow and inflow are averaged; see `covariance`."""
        return ~self.known.fixed & (self.known.precision > 0)

    @cached_property
    def information(self) -> Floats:
        """What the answers tell about each item, without what was known before."""
        pi = np.exp(self.beta)
        out = pi * self.data.rates
        return np.where(self.even, (out + self.data.inflow(pi)) / 2, out) if self.even.any() else out


def solve_grounded(
    responses: Responses,
    beta: Floats,
    known: Known,
    *,
    tol: float = 1e-10,
    max_passes: int = 10_000,
    renew: Callable[[Floats, Floats, Known], Known] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Grounded:
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
        data = ItemChain.able(responses, beta, data)
        if not free.any():
            break
        before = beta
        start = np.append(np.exp(beta[free]), 1.0)
        found = stationary(GroundedChain(data, beta, known), start=start, tol=tol, max_passes=max_passes)
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
    assert data is not None
    return Grounded(beta, known, data, found, passes)


# --------------------------------------------------------------------- which items the anchors reach


def tied(responses: Responses, anchors: Mask) -> Mask:
    """Items that have a finite difficulty given the anchored ones: reached from them and reaching them.

    Item i points to item j when somebody answered i right and j wrong; the anchored items count as one.
    """
    both = np.ones(len(anchors), dtype=bool)
    for against in (False, True):
        marks = anchors.copy()
        while True:
            found = responses.sum(_spread_marks, marks.astype(float), against) > 0
            grown = marks | found
            if (grown == marks).all():
                break
            marks = grown
        both &= marks
    return both


def _spread_marks(block: Block, marks: Floats, against: bool) -> Floats:
    start, end = block.halves(len(marks))
    if against:
        start, end = end, start
    return end.T @ (start @ marks > 0).astype(float)


# ------------------------------------------------------------- standard errors, given what is known


@dataclass(frozen=True, eq=False)
class GroundedErrors:
    """Standard errors given the anchors, and how far each anchored item is from where these data would put it.

    `displacement` is the difficulty that an anchored item would have if it alone were set free, minus its anchor; NaN
    for free items, for a single anchor, and where the data put no finite value on it.
    """

    se: Floats
    displacement: Floats
    displacement_se: Floats


def grounded_errors(solved: Grounded, method: str, seed: int = 0) -> GroundedErrors:
    """The sandwich with the anchors fixed: J_FF^-1 Omega_FF J_FF^-T over the free items F.

    "dense" forms the matrices, and lets the free items follow when an anchored item is set free. "one-pass" takes J for
    its diagonal, and the free items' common shift apart; "multiplier" corrects that by random probes. Both measure
    displacements with the free items held.

    Set free, anchored item a has the mass pi_a' with pi_a' d_a = inflow, of which the part `follow` (at pi_a) comes
    back to it by way of the free items and grows with pi_a. So pi_a' / pi_a = (inflow - follow) / (outflow - follow).
    Slope and noise of its equation, and hence its standard error, are taken there, not at the anchor: off by three
    logits the slope at the anchor is twenty times too small or too large.
    """
    known, data, pi = solved.known, solved.data, np.exp(solved.beta)
    free = ~known.fixed
    diagonal = solved.information + np.where(free, known.precision, 0)
    into = data.inflow(pi)
    out = pi * data.rates
    if method == "dense":
        se, follow, noise = _dense(solved, pi, diagonal)
        follow = np.where(follow < np.minimum(into, out), follow, 0.0)
    else:
        rough = _Rough.of(solved, pi, diagonal)
        omega, cross, common = data.parts.sum(_spread, pi, rough.shift)
        variance = (omega + _meat(known, solved.information, omega)) * rough.scale**2 + 2 * rough.scale * cross + common
        if method == "multiplier" and free.any():
            variance = np.maximum(variance + _correction(solved, pi, rough, seed), 0.05 * variance)
        se, follow = np.sqrt(np.maximum(variance, 0)), np.zeros(len(pi))
        on_wrong = data.parts.sum(_spread_on_wrong, pi)
        noise = _Noise(on_wrong, np.zeros(len(pi)), omega - on_wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        displacement = np.log(into - follow) - np.log(out - follow)
        growth = np.exp(displacement)
        displacement_se = np.sqrt(np.maximum(noise.at(growth), 0)) / (into - follow)
    # A single anchor has nothing to be displaced from: set free, the whole scale would move with it.
    measured = known.fixed & np.isfinite(displacement) & (out - follow > 1e-9 * diagonal) & (known.fixed.sum() > 1)
    return GroundedErrors(
        np.where(free, se, 0.0),
        np.where(measured, displacement, np.nan),
        np.where(measured, displacement_se, np.nan),
    )


def _meat(known: Known, information: Floats, omega: Floats) -> Floats:
    """What a prior adds to the diagonal of Omega; where it does, Omega is at least its expectation under the model."""
    prior = np.where(known.fixed, 0, known.precision)
    return np.where(prior > 0, prior + np.maximum(information - omega, 0), 0)


@dataclass(frozen=True, eq=False)
class _Noise:
    """Squared noise of each anchored item's equation, when its pi grows by a factor: constant + f linear + f^2 square.

    On wrong answers its contributions do not depend on its own pi, on right ones they are proportional to it.
    """

    constant: Floats
    linear: Floats
    square: Floats

    def at(self, growth: Floats) -> Floats:
        return self.constant + growth * self.linear + growth**2 * self.square


def _dense(solved: Grounded, pi: Floats, diagonal: Floats) -> tuple[Floats, Floats, _Noise]:
    """Standard errors of the free items; what comes back to each anchored item, and its noise, once these follow.

    With L = J_AF J_FF^-1 the free items answer to a change of anchored item a, whose own equation then has the slope
    J_aa - L_a J_Fa and the noise g_a - L_a g_F.
    """
    data, m = solved.data, len(pi)
    free, fixed = np.flatnonzero(~solved.known.fixed), np.flatnonzero(solved.known.fixed)
    flows = pi[:, None] * data.parts.sum(_rates)
    both = np.outer(solved.even, solved.even)
    jacobian = -np.where(both, (flows + flows.T) / 2, flows.T)
    jacobian[np.diag_indices(m)] = diagonal
    omega = data.parts.sum(_omega, pi)
    wrong = data.parts.sum(_omega_on_wrong, pi)
    right = omega - wrong
    # Between right and wrong answers of one item there is nothing: nobody gave both.
    constant, linear, square = np.diag(wrong).copy(), np.zeros(m), np.diag(right).copy()
    follow, se = np.zeros(m), np.zeros(m)
    if len(free):
        inverse = np.linalg.inv(jacobian[np.ix_(free, free)])
        lever = jacobian[np.ix_(fixed, free)] @ inverse
        follow[fixed] = np.einsum("af,fa->a", lever, jacobian[np.ix_(free, fixed)])
        moved = lever @ omega[np.ix_(free, free)]
        constant[fixed] += np.einsum("af,af->a", lever, moved - 2 * wrong[np.ix_(fixed, free)])
        linear[fixed] = np.einsum("af,af->a", lever, -2 * right[np.ix_(fixed, free)])
        meat = omega[np.ix_(free, free)]
        meat[np.diag_indices(len(free))] += _meat(solved.known, solved.information, np.diag(omega))[free]
        se[free] = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", inverse, meat, inverse, optimize=True), 0))
    return se, follow, _Noise(constant, linear, square)


def _omega_on_wrong(part: Part, pi: Floats) -> Floats:
    """Omega with its rows' contributions from wrong answers only: sum_l g_li [l wrong on i] g_lj."""

    def product(piece: Part) -> Floats:
        wrong = sparse.diags_array(_contributions(piece, pi)[0]) @ piece.wrong
        return np.asarray((wrong.T @ _matrix(piece, pi)).toarray())

    return _in_slices(part, product)


@dataclass(frozen=True, eq=False)
class _Rough:
    """An approximate inverse of J_FF: delta = b / J_ii + shift' b, item by item and then the free items together.

    All free items move together against the anchors much more easily than any of them against the others. The shift
    is the c for which b - J (b / J_ii + c 1) adds to zero: c = sum_k (1 - a_k / J_kk) b_k / sum_k a_k with a = 1' J_FF,
    what flows from item k to the ground.
    """

    scale: Floats  # 1 / J_ii; 0 for anchored items
    shift: Floats

    @classmethod
    def of(cls, solved: Grounded, pi: Floats, diagonal: Floats) -> _Rough:
        free = ~solved.known.fixed
        among = _out_of(solved, pi, free.astype(float)[:, None])[:, 0]
        scale = np.divide(1.0, diagonal, out=np.zeros(len(pi)), where=free & (diagonal > 0))
        down = np.where(free, diagonal - among, 0.0)
        total = down.sum()
        return cls(scale, np.where(scale > 0, 1 - down * scale, 0.0) / total if total > 0 else np.zeros(len(pi)))

    def __matmul__(self, b: Floats) -> Floats:
        return np.where(self.scale > 0, 1.0, 0.0)[:, None] * (self.scale[:, None] * b + self.shift @ b)


def _into(solved: Grounded, pi: Floats, x: Floats) -> Floats:
    """F^T x for the columns of x; between items for which J is even, the mean of that and F x."""
    pi, even = pi[:, None], solved.even[:, None]
    return solved.data.inflow(pi * x) + _odd(solved, pi, x, even)


def _out_of(solved: Grounded, pi: Floats, x: Floats) -> Floats:
    """The transpose of `_into`."""
    pi, even = pi[:, None], solved.even[:, None]
    return pi * solved.data.outflow(x) - _odd(solved, pi, x, even)


def _odd(solved: Grounded, pi: Floats, x: Floats, even: Mask) -> Floats:
    """(F - F^T) x / 2 between items for which J is even."""
    if not even.any():
        return np.zeros_like(x)
    among = np.where(even, x, 0.0)
    return np.where(even, pi * solved.data.outflow(among) - solved.data.inflow(pi * among), 0.0) / 2


def _spread(part: Part, pi: Floats, shift: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums over users of g_li^2, of g_li u_l and of u_l^2, where u_l = sum_k shift_k g_lk."""
    won, lost = _contributions(part, pi)
    common = won * (part.wrong @ shift) - lost * (part.right @ (pi * shift))
    right, wrong = part.right_t, part.wrong_t
    omega = _squared(wrong) @ won**2 + pi**2 * (_squared(right) @ lost**2)
    cross = wrong @ (won * common) - pi * (right @ (lost * common))
    return omega, cross, np.array(common @ common)


def _spread_on_wrong(part: Part, pi: Floats) -> Floats:
    """Sums over users who were wrong of g_li^2."""
    return np.asarray(_squared(part.wrong_t) @ _contributions(part, pi)[0] ** 2)


def _correction(solved: Grounded, pi: Floats, rough: _Rough, seed: int) -> Floats:
    """What the rough inverse leaves out: mean over random signs of delta^2 - delta_0^2, J_FF delta = b.

    Solved by iteration: delta grows by the rough inverse of what is left.
    """
    data, free = solved.data, ~solved.known.fixed
    rng = np.random.default_rng(seed)
    b = data.parts.sum(signed_sums, pi, each=[data.parts.seeds(seed)])
    b += np.sqrt(solved.known.precision)[:, None] * rng.standard_normal(b.shape)
    b[~free] = 0
    zero = rough @ b
    delta, flow = zero, (solved.information + solved.known.precision)[:, None]
    for _ in range(MOST_PASSES):
        step = rough @ np.where(free[:, None], b - flow * delta + _into(solved, pi, delta), 0.0)
        delta = delta + step
        if np.abs(step).sum() <= CLOSE * np.abs(delta).sum():
            break
    return np.mean(delta**2 - zero**2, axis=1)
