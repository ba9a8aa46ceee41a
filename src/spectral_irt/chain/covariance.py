"""Standard errors of log pi by the sandwich.

At the solution every user adds a vector g_l to the balance of flows, g_li = w_l a_li [(1 - X_li) S_l - X_li pi_i Z_l]
with S_l = sum of a_lj pi_j over its right and Z_l = sum of a_lj over its wrong answers. With F_ij = pi_i Y_ij,
J = diag(F 1) - F^T, and Omega = sum_l g_l g_l^T,

    Cov(beta, mean-centred) = J^+ Omega J^+T.

A prior of precision alpha adds alpha to the diagonals of both J and Omega (times the scale of the item's flow, and its
square): the error is then the mean squared distance from difficulties that were themselves drawn from the prior. Its
pull also sets outflow and inflow of an item apart, up to an item that everybody got wrong and that has no outflow at
all. Under ability weights both are estimates of the same information, and exchanging right and wrong exchanges them, so
J is then taken even: diag(F 1 + F^T 1) / 2 - (F + F^T) / 2.

Three ways to the diagonal: "dense" forms the matrices; "one-pass" takes J for its diagonal, right where the chain mixes
fast; "multiplier" solves J delta = sum_l xi_l g_l for random signs xi and corrects the one-pass value by what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import Chain, ItemChain, Part
from spectral_irt.numerics import centred_inverse
from spectral_irt.responses.block import Floats, csr

SE_METHODS = ("auto", "dense", "one-pass", "multiplier", "none")
DENSE_ITEMS = 5000  # the dense sandwich holds three m x m matrices: 600 MB here
QUICK_ITEMS = 1000  # below this the dense sandwich costs next to nothing
DENSE_WORK = 4e9  # multiplications that the dense Omega may cost before a cheaper valid way is preferred
MIXING = 0.3  # contraction up to which one pass is within about 3 % of the dense value
SLUGGISH = 0.9  # contraction from which the multipliers' correction is as large as what it corrects
ONE_PASS_ITEMS = 20  # fewer items than this are too entangled by the centring for one pass
PROBES = 100  # random sign vectors: about 1 / sqrt(2 PROBES) = 7 % of the correction remains as noise


@dataclass(frozen=True, eq=False)
class Balance:
    """A solved chain, ready for its sandwich.

    Attributes
    ----------
    data : ItemChain
        The responses under the weighting of the solution; gives the users' contributions.
    chain : Chain
        What was solved without its prior: `data`, or the same with the paper's nu added.
    pi : float array
        The solution, on any scale.
    precision, meat : float arrays
        What the prior adds to the diagonals of J and Omega, in the units of the chain's flow; 0 without a prior.
    in_information : bool
        Whether flows are in units of information (ability weights), where Omega and J agree under the model.
    """

    data: ItemChain
    chain: Chain
    pi: Floats
    precision: Floats
    meat: Floats
    in_information: bool = False

    @property
    def even(self) -> bool:
        """Whether J is the mean of the two that outflow and inflow give."""
        return self.in_information and bool(self.meat.any())

    @cached_property
    def through(self) -> Floats:
        """What flows through each item; under ability weights, the information that its answers carry."""
        out = self.pi * self.chain.rates
        return (out + self.chain.inflow(self.pi)) / 2 if self.even else out

    @property
    def diagonal(self) -> Floats:
        """J_ii."""
        return self.through + self.precision

    def exchanged(self, x: Floats) -> Floats:
        """F^T x for the columns of x; where J is even, the mean of that and F x."""
        pi = self.pi[:, None]
        into = self.chain.inflow(pi * x)
        return (into + pi * self.data.outflow(x)) / 2 if self.even else into


def _prior_meat(balance: Balance, omega: Floats) -> Floats:
    """What is added to the diagonal of Omega under a prior.

    The prior's own part; and, where an item's users all answered alike, what they would have added had chance treated
    them otherwise: their answers look far too regular to judge by, so Omega is taken at least as large as J, its
    expectation under the model.
    """
    return balance.meat + np.maximum(balance.through - omega, 0) if balance.even else balance.meat


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
    """Standard error of every mean-centred difficulty."""
    if method == "dense":
        variance = np.diag(covariance(balance))
    else:
        variance = _one_pass(balance)
        if method == "multiplier":
            variance = np.maximum(variance + _correction(balance, seed), 0.05 * variance)
    return np.sqrt(np.maximum(variance, 0))


# ----------------------------------------------------------------------------- contributions of users


def _contributions(part: Part, pi: Floats) -> tuple[Floats, Floats]:
    """w_l S_l and w_l Z_l: g_li is a_li times the first on wrong answers, minus a_li pi_i times the second on right."""
    return part.weight * (part.right @ pi), part.weight * (part.wrong @ np.ones(len(pi)))


def _matrix(part: Part, pi: Floats) -> sparse.csr_array:
    """g_li as a sparse matrix, users x items."""
    won, lost = _contributions(part, pi)
    wrong = sparse.diags_array(won) @ part.wrong
    right = sparse.diags_array(lost) @ part.right @ sparse.diags_array(pi)
    return sparse.csr_array(wrong - right)


# --------------------------------------------------------------------------------------------- dense


def covariance(balance: Balance) -> Floats:
    """The whole covariance matrix of the mean-centred difficulties; m x m, for moderate m."""
    m = len(balance.pi)
    inverse = _inverse(balance)
    omega = balance.data.parts.sum(_omega, balance.pi)
    omega[np.diag_indices(m)] += _prior_meat(balance, np.diag(omega))
    cov = inverse @ omega @ inverse.T
    return (cov + cov.T) / 2


def _inverse(balance: Balance) -> Floats:
    """J^+, with the prior centred: alpha acts on beta - mean."""
    m = len(balance.pi)
    flows = _flows(balance)
    jacobian = -(flows + flows.T) / 2 if balance.even else -flows.T
    jacobian[np.diag_indices(m)] = balance.through
    alpha = balance.precision
    if alpha.any():
        jacobian[np.diag_indices(m)] += alpha
        jacobian -= np.outer(alpha, alpha) / alpha.sum()
    return centred_inverse(jacobian)


def _flows(balance: Balance) -> Floats:
    """F_ij = pi_i Y_ij, dense."""
    explicit = getattr(balance.chain, "y", None)
    if explicit is not None:
        y = explicit.toarray() if sparse.issparse(explicit) else explicit
    else:
        y = balance.data.parts.sum(_rates)
    return balance.pi[:, None] * y


def _rates(part: Part) -> Floats:
    users, m = part.right.shape
    if part.right.nnz + part.wrong.nnz > 0.05 * users * m:
        return _in_slices(part, lambda p: p.right.toarray().T @ (p.weight[:, None] * p.wrong.toarray()))
    return (part.right_t @ (sparse.diags_array(part.weight) @ part.wrong)).toarray()


def _omega(part: Part, pi: Floats) -> Floats:
    users, m = part.right.shape
    if part.right.nnz + part.wrong.nnz > 0.05 * users * m:

        def product(piece: Part) -> Floats:
            g = _matrix(piece, pi).toarray()
            return g.T @ g

        return _in_slices(part, product)
    g = _matrix(part, pi)
    return (g.T @ g).toarray()


def _in_slices(part: Part, product: Any) -> Floats:
    """Add a dense product over slices of users that fit in the cache."""
    users, m = part.right.shape
    size = max(1, 2_000_000 // m)
    total = np.zeros((m, m))
    for start in range(0, users, size):
        rows = slice(start, start + size)
        right, wrong = part.right[rows], part.wrong[rows]
        total += product(Part(part.block, part.weight[rows], right, wrong, right.T, wrong.T))
    return total


# ------------------------------------------------------------------------------------------ one pass


def _one_pass(balance: Balance) -> Floats:
    """Var_i = sum_l (e_li - mean_i e_li)^2 with e_li = g_li / J_ii; the prior adds its own term alike."""
    m = len(balance.pi)
    diagonal = balance.diagonal
    omega, cross, common = balance.data.parts.sum(_spread, balance.pi, 1 / diagonal)
    own, prior = omega / diagonal**2, _prior_meat(balance, omega) / diagonal**2
    return own - 2 * cross + common + prior * (1 - 2 / m) + prior.sum() / m**2


def _spread(part: Part, pi: Floats, inverse: Floats) -> tuple[Floats, Floats, Floats]:
    won, lost = _contributions(part, pi)
    mean = (won * (part.wrong @ inverse) - lost * (part.right @ (pi * inverse))) / len(pi)
    right, wrong = part.right_t, part.wrong_t
    omega = _squared(wrong) @ won**2 + pi**2 * (_squared(right) @ lost**2)
    cross = inverse * (wrong @ (won * mean) - pi * (right @ (lost * mean)))
    return omega, cross, np.array(mean @ mean)


def _squared(matrix: sparse.csc_array) -> sparse.csc_array:
    if matrix.data.flags.writeable:  # values of its own; the shared pattern of ones is its own square
        return csr(matrix.indptr, matrix.indices, matrix.data**2, matrix.shape[0]).T
    return matrix


# --------------------------------------------------------------------------------------- multipliers


def _correction(balance: Balance, seed: int) -> Floats:
    """What one pass leaves out: mean over probes of delta^2 - delta_0^2, J delta = b and delta_0 = b / diag J."""
    m = len(balance.pi)
    rng = np.random.default_rng(seed)
    parts = balance.data.parts
    probes = parts.sum(signed_sums, balance.pi, each=[parts.seeds(seed)])
    omega = balance.data.parts.sum(_spread, balance.pi, 1 / balance.diagonal)[0]
    probes += np.sqrt(_prior_meat(balance, omega))[:, None] * rng.standard_normal((m, PROBES))
    zero = probes / balance.diagonal[:, None]
    delta = _solve(balance, probes)
    delta -= delta.mean(axis=0)
    zero -= zero.mean(axis=0)
    return np.mean(delta**2 - zero**2, axis=1)


def signed_sums(part: Part, seed: np.random.SeedSequence, pi: Floats) -> Floats:
    """sum_l xi_l g_l for `PROBES` vectors of random signs xi."""
    signs = np.random.default_rng(seed).integers(0, 2, (len(part.weight), PROBES)) * 2.0 - 1
    won, lost = _contributions(part, pi)
    return part.wrong_t @ (won[:, None] * signs) - pi[:, None] * (part.right_t @ (lost[:, None] * signs))


def _solve(balance: Balance, b: Floats, tol: float = 1e-4, max_passes: int = 1500) -> Floats:
    """Solve J delta = b for every column by BiCGSTAB with the diagonal as preconditioner; columns share their passes.

    J maps constants to zero, so b is first freed of its mean; four digits are plenty for a standard error.
    """
    alpha, through, inverse = balance.precision, balance.through[:, None], 1 / balance.diagonal[:, None]

    def apply(x: Floats) -> Floats:
        y = through * x - balance.exchanged(x)
        if alpha.any():
            y += alpha[:, None] * (x - (alpha @ x) / alpha.sum())
        return y

    def dot(u: Floats, v: Floats) -> Floats:
        return np.einsum("ij,ij->j", u, v)

    def over(u: Floats, v: Floats) -> Floats:
        return np.divide(u, v, out=np.zeros_like(u), where=v != 0)

    x = np.zeros_like(b)
    r = b - b.mean(axis=0)
    shadow, p = r * inverse, r.copy()
    goal = tol * np.sqrt(dot(r, r))
    rho = dot(shadow, r)
    for _ in range(max_passes // 2):
        q = apply(inverse * p)
        a = over(rho, dot(shadow, q))
        s = r - a * q
        t = apply(inverse * s)
        omega = over(dot(t, s), dot(t, t))
        x += inverse * (a * p + omega * s)
        r = s - omega * t
        if np.all(np.sqrt(dot(r, r)) <= goal):
            break
        rho, last = dot(shadow, r), rho
        p = r + over(rho, last) * over(a, omega) * (p - omega * q)
    return x
