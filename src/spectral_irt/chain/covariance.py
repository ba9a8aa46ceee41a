"""Standard errors of log pi by the sandwich of the chain.

At the solution every person adds a vector g_l to the balance of flows, g_li = w_l a_li [(1 - X_li) S_l - X_li pi_i Z_l]
with S_l = sum of a_lj pi_j over the right and Z_l = sum of a_lj over the wrong answers. With F_ij = pi_i Y_ij,

    J = diag(F 1) - F^T,    Omega = sum_l g_l g_l^T,    Cov(beta) = J^+ Omega J^+T.

J maps constants to zero, so its pseudo-inverse is taken, and beta is mean-centered.

A prior of precision alpha adds alpha to the diagonals of both J and Omega (times the scale of the item's flow, and its
square): the error is then the mean squared distance from difficulties that were themselves drawn from the prior. Its
pull also sets outflow and inflow of an item apart, up to an item that everybody got wrong and that has no outflow at
all. Where flows are in units of information both estimate the same information, and exchanging right and wrong
exchanges them, so between items with a prior J is then taken even: diag(F 1 + F^T 1) / 2 - (F + F^T) / 2.

Three ways to the diagonal: "dense" forms the matrices; "one-pass" takes J for its diagonal and a common shift, right
where the chain mixes fast; "multiplier" solves J delta = sum_l xi_l g_l for random signs xi and corrects the one-pass
value by what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.operator import ItemChain, Part
from spectral_irt.chain.pairs import PairChain
from spectral_irt.numerics import bicgstab, centered_inverse, gram
from spectral_irt.responses.block import Floats, csr

Mask = NDArray[np.bool_]
SeMethod = Literal["auto", "dense", "one-pass", "multiplier", "information", "none"]

SE_METHODS = get_args(SeMethod)
DENSE_ITEMS = 5000  # the dense sandwich holds four m x m matrices: 800 MB here
QUICK_ITEMS = 1000  # below this the dense sandwich costs next to nothing
DENSE_WORK = 4e9  # multiplications that the dense Omega may cost before a cheaper valid way is preferred
MIXING = 0.3  # contraction up to which one pass is within about 3% of the dense value
SLUGGISH = 0.9  # contraction from which the multipliers' correction is as large as what it corrects
ONE_PASS_ITEMS = 20  # fewer items than this are too entangled by the centering for one pass
PROBES = 100  # random sign vectors: about 1 / sqrt(2 PROBES) = 7% of the correction remains as noise
CLOSE, MOST_PASSES = 1e-4, 1500  # of the solves for probes: four digits are plenty for a standard error


@dataclass(frozen=True, eq=False)
class Dense:
    """The pseudo-inverse of J, and Omega, as matrices."""

    inverse: Floats
    omega: Floats


@dataclass(frozen=True, eq=False)
class Balance:
    """A solved chain, ready for its sandwich.

    Attributes
    ----------
    data : ItemChain
        The responses under the weighting of the solution; gives the persons' contributions.
    chain : ItemChain or PairChain
        What was solved without its prior: `data`, or the same with the paper's nu added.
    pi : float array
        The solution, on any scale.
    precision, meat : float arrays
        What the prior adds to the diagonals of J and Omega, in the units of the chain's flow; 0 without a prior.
    in_information : bool
        Whether flows are in units of information (ability weights), where Omega and J agree under the model.
    """

    data: ItemChain
    chain: ItemChain | PairChain
    pi: Floats
    precision: Floats
    meat: Floats
    in_information: bool = False

    @cached_property
    def even(self) -> Mask:
        """Items between which J is the mean of the two that outflow and inflow give."""
        return self.in_information & (self.meat > 0)

    @cached_property
    def through(self) -> Floats:
        """What flows through each item; under ability weights, the information that its answers carry."""
        out = self.pi * self.chain.rates
        return np.where(self.even, (out + self.chain.inflow(self.pi)) / 2, out) if self.even.any() else out

    @property
    def diagonal(self) -> Floats:
        """J_ii."""
        return self.through + self.precision

    def exchanged(self, x: Floats) -> Floats:
        """F^T x for the columns of x, between even items the mean of that and F x."""
        pi, even = self.pi[:, None], self.even[:, None]
        y = self.chain.inflow(pi * x)
        if not even.any():
            return y
        among = np.where(even, x, 0.0)
        same = y if even.all() else self.chain.inflow(pi * among)
        return y + np.where(even, pi * self.data.outflow(among) - same, 0.0) / 2

    def apply(self, x: Floats) -> Floats:
        """J x for the columns of x. The prior is on beta - mean."""
        alpha = self.precision
        pulled = x - (alpha @ x) / alpha.sum() if alpha.any() else x
        return self.through[:, None] * x - self.exchanged(x) + alpha[:, None] * pulled

    @cached_property
    def scale(self) -> Floats:
        """1 / J_ii: J taken for its diagonal, and the mean taken away afterwards."""
        return np.divide(1.0, self.diagonal, out=np.zeros(len(self.pi)), where=self.diagonal > 0)

    def roughly(self, b: Floats) -> Floats:
        """About J^+ b, by the diagonal of J alone."""
        delta = self.scale[:, None] * b
        return delta - delta.mean(axis=0)

    @cached_property
    def spread(self) -> tuple[Floats, Floats, Floats]:
        """Sums over persons of g_li^2, of g_li u_l and of u_l^2, where u_l = -mean of g_l / J_ii."""
        return self.data.parts.sum(spread_of_persons, self.pi, -self.scale / len(self.pi))

    @cached_property
    def dense(self) -> Dense:
        m, alpha = len(self.pi), self.precision
        flows = self.pi[:, None] * self.chain.matrix()
        jacobian = -flows.T
        if self.even.any():
            jacobian = np.where(np.outer(self.even, self.even), -(flows + flows.T) / 2, jacobian)
        jacobian[np.diag_indices(m)] = self.diagonal
        if alpha.any():
            jacobian -= np.outer(alpha, alpha) / alpha.sum()
        return Dense(centered_inverse(jacobian), self.omega())

    def omega(self) -> Floats:
        """sum_l g_l g_l^T."""
        return self.data.parts.sum(products_of_persons, self.pi)

    def signed(self, seed: int) -> Floats:
        """sum_l xi_l g_l for vectors of random signs xi."""
        return self.data.parts.sum(_signed_sums, self.pi, each=[self.data.parts.seeds(seed)])

    def prior_meat(self, omega: Floats) -> Floats:
        """What is added to the diagonal `omega` of Omega under a prior.

        The prior's own part; and, where an item's persons all answered alike, what they would have added had chance
        treated them otherwise: their answers look far too regular to judge by, so Omega is taken at least as large as
        J, its expectation under the model.
        """
        return self.meat + np.where(self.even, np.maximum(self.through - omega, 0), 0.0)


def choose_method(n_items: int, contraction: float, pair_work: float) -> str:
    """Which way to standard errors "auto" takes.

    Dense where it is cheap. Beyond, one pass where that is valid (contraction < 0.3 and at least 20 items); multipliers
    where they are accurate (contraction < 0.9: half a per cent) or nothing else fits; dense for slow chains of up to
    5,000 items, where multipliers would leave some per cent of noise.
    """
    if n_items < ONE_PASS_ITEMS or (n_items <= QUICK_ITEMS and pair_work + n_items**3 <= DENSE_WORK):
        return "dense"
    if contraction < MIXING:
        return "one-pass"
    return "dense" if contraction >= SLUGGISH and n_items <= DENSE_ITEMS else "multiplier"


def standard_errors(balance: Balance, method: str, seed: int = 0) -> Floats:
    """Standard error of every mean-centered difficulty."""
    if method == "dense":
        variance = np.diag(covariance(balance))
    else:
        variance = _one_pass(balance)
        if method == "multiplier":
            variance = np.maximum(variance + _correction(balance, seed), 0.05 * variance)
    return np.sqrt(np.maximum(variance, 0))


def covariance(balance: Balance) -> Floats:
    """The whole covariance matrix J^-1 Omega J^-T; m x m, for moderate m."""
    inverse, omega = balance.dense.inverse, balance.dense.omega.copy()
    omega[np.diag_indices(len(omega))] += balance.prior_meat(np.diag(omega))
    cov = inverse @ omega @ inverse.T
    return (cov + cov.T) / 2


def _one_pass(balance: Balance) -> Floats:
    """Var_i = sum_l (g_li / J_ii + u_l)^2; the prior adds its own term alike."""
    scale = balance.scale
    shift = -scale / len(scale)
    omega, cross, common = balance.spread
    meat = balance.prior_meat(omega)
    prior = meat * scale**2 + 2 * meat * scale * shift + meat @ shift**2
    return omega * scale**2 + 2 * scale * cross + common + prior


def _correction(balance: Balance, seed: int) -> Floats:
    """What one pass leaves out: mean over probes of delta^2 - delta_0^2, J delta = b and delta_0 its rough solution."""
    rng = np.random.default_rng(seed)
    b = balance.signed(seed)
    b += np.sqrt(balance.prior_meat(balance.spread[0]))[:, None] * rng.standard_normal(b.shape)
    zero = balance.roughly(b)
    b -= b.mean(axis=0)  # what J can reach
    delta = bicgstab(balance.apply, balance.roughly, b, tol=CLOSE, max_passes=MOST_PASSES)
    delta -= delta.mean(axis=0)
    return np.mean(delta**2 - zero**2, axis=1)


# ------------------------------------------------------------------------- contributions of persons


def contributions(part: Part, pi: Floats) -> tuple[Floats, Floats]:
    """w_l S_l and w_l Z_l: g_li is a_li times the first on wrong answers, minus a_li pi_i times the second on right."""
    return part.weight * (part.right @ pi), part.weight * (part.wrong @ np.ones(len(pi)))


def products_of_persons(part: Part, pi: Floats) -> Floats:
    won, lost = contributions(part, pi)
    wrong = sparse.diags_array(won) @ part.wrong
    return gram(sparse.csr_array(wrong - sparse.diags_array(lost) @ part.right @ sparse.diags_array(pi)))


def spread_of_persons(part: Part, pi: Floats, shift: Floats) -> tuple[Floats, Floats, Floats]:
    won, lost = contributions(part, pi)
    common = won * (part.wrong @ shift) - lost * (part.right @ (pi * shift))
    right, wrong = part.right.T, part.wrong.T
    omega = squared(wrong) @ won**2 + pi**2 * (squared(right) @ lost**2)
    cross = wrong @ (won * common) - pi * (right @ (lost * common))
    return omega, cross, np.array(common @ common)


def squared(matrix: sparse.csc_array) -> sparse.csc_array:
    """The matrix with its values squared."""
    if matrix.data.flags.writeable:  # values of its own; the shared pattern of ones is its own square
        return csr(matrix.indptr, matrix.indices, matrix.data**2, matrix.shape[0]).T
    return matrix


def _signed_sums(part: Part, seed: np.random.SeedSequence, pi: Floats) -> Floats:
    """sum_l xi_l g_l for `PROBES` vectors of random signs xi."""
    signs = np.random.default_rng(seed).integers(0, 2, (len(part.weight), PROBES)) * 2.0 - 1
    won, lost = contributions(part, pi)
    return part.wrong.T @ (won[:, None] * signs) - pi[:, None] * (part.right.T @ (lost[:, None] * signs))
