"""Standard errors of the chain alone, by the sandwich.

Person l adds g_li = w_l a_li [(1 - X_li) S_l - X_li pi_i Z_l] to the balance of flows, S_l = sum of a_lj pi_j over the
right and Z_l = sum of a_lj over the wrong answers. With F_ij = pi_i Y_ij,

    J = diag(F 1) - F^T,    Omega = sum_l g_l g_l^T,    Cov(beta) = J^+ Omega J^+T.

A prior of precision alpha adds alpha to the diagonals of both (times the scale of the item's flow, and its square). Its
pull sets outflow and inflow of an item apart; where flows are in units of information, J between items with a prior is
even: diag(F 1 + F^T 1) / 2 - (F + F^T) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import ItemChain, Part
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.numerics import centered_inverse, csr, gram


@dataclass(frozen=True, eq=False)
class Balance:
    """A solved chain, ready for its sandwich.

    `data` gives the persons' contributions; `chain` is what was solved without its prior: `data`, or the same with the
    paper's nu added. `precision` and `meat` are what the prior adds to the diagonals of J and Omega. `in_information`:
    flows are in units of information (ability weights), where Omega and J agree under the model.
    """

    data: ItemChain
    chain: Any
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

    def inverse(self) -> Floats:
        """The pseudo-inverse of J."""
        m, alpha = len(self.pi), self.precision
        flows = self.pi[:, None] * self.chain.matrix()
        jacobian = -flows.T
        if self.even.any():
            jacobian = np.where(np.outer(self.even, self.even), -(flows + flows.T) / 2, jacobian)
        jacobian[np.diag_indices(m)] = self.diagonal
        if alpha.any():
            jacobian -= np.outer(alpha, alpha) / alpha.sum()
        return centered_inverse(jacobian)

    def prior_meat(self, omega: Floats) -> Floats:
        """What is added to the diagonal `omega` of Omega under a prior: its own part; and where an item's people all
        answered alike, far too regular to judge by, as much as makes Omega as large as J, its expectation."""
        return self.meat + np.where(self.even, np.maximum(self.through - omega, 0), 0.0)


def covariance(balance: Balance) -> Floats:
    """The whole covariance matrix J^-1 Omega J^-T; m x m, for moderate m."""
    inverse, data = balance.inverse(), balance.data
    omega = data.parts.sum(products_of_persons, balance.pi, data.thresholds)
    omega[np.diag_indices(len(omega))] += balance.prior_meat(np.diag(omega))
    cov = inverse @ omega @ inverse.T
    return (cov + cov.T) / 2


def one_pass(balance: Balance) -> tuple[Floats, Floats]:
    """Standard errors of the thresholds and of the items' locations, whose mean is zero, without the whole matrix.

    J is taken for its diagonal, so that Var_i = sum_l (g_li / J_ii + u_l)^2 with u_l = -mean of g_l / J_ii; the prior
    adds its own term alike. A location adds the products of neighbors, since one answer has at most two entries.
    """
    thresholds, diagonal = balance.data.thresholds, balance.diagonal
    scale = np.divide(1.0, diagonal, out=np.zeros(len(diagonal)), where=diagonal > 0)
    shift = -scale * thresholds.averaging()
    omega, cross, common, beside = balance.data.parts.sum(spread_of_persons, balance.pi, shift, thresholds)
    meat = balance.prior_meat(omega)
    omega, cross, common = omega + meat, cross + meat * shift, common + meat @ shift**2
    variance = omega * scale**2 + 2 * scale * cross + common
    within = omega * scale**2
    within[1:] += 2 * beside[1:] * scale[1:] * scale[:-1]  # `beside` is 0 for the first threshold of an item
    location = thresholds.mean(within) / thresholds.max_score + 2 * thresholds.mean(scale * cross) + common
    return np.sqrt(np.maximum(variance, 0)), np.sqrt(np.maximum(location, 0))


def contributions(part: Part, pi: Floats, thresholds: Thresholds) -> tuple[sparse.csr_array, sparse.csr_array]:
    """g_l on the thresholds failed next, and on those passed last, people x thresholds.

    w_l S_l a_li and -w_l Z_l a_li pi_i, without the item's own threshold in S_l and Z_l.
    """
    m = len(pi)
    won, lost = part.weight * (part.right @ pi), part.weight * (part.wrong @ np.ones(m))
    halves = []
    for half, total, side in ((part.wrong, won, -1), (part.right, lost, 1)):
        here, counts = half.indices, np.diff(half.indptr)
        value = np.repeat(total, counts)
        if not thresholds.binary:
            own = part.beside(half, side, thresholds) * np.repeat(part.weight, counts)
            value -= own * pi[here - 1] if side < 0 else own
        value *= half.data
        if side > 0:
            value *= -pi.take(here)
        halves.append(csr(half.indptr, here, value, m))
    return halves[0], halves[1]


def products_of_persons(part: Part, pi: Floats, thresholds: Thresholds) -> Floats:
    failed, passed = contributions(part, pi, thresholds)
    return gram(sparse.csr_array(failed + passed))


def spread_of_persons(
    part: Part, pi: Floats, shift: Floats, thresholds: Thresholds
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums over people of g_li^2, of g_li u_l and of u_l^2, u_l = sum of shift_i g_li; and of g_l,c-1 g_lc."""
    halves = contributions(part, pi, thresholds)
    common = halves[0] @ shift + halves[1] @ shift
    squares, cross, beside = np.zeros((3, len(pi)))
    for half in halves:
        squares += np.bincount(half.indices, weights=half.data**2, minlength=len(pi))
        cross += half.T @ common
    if not thresholds.binary:
        wrong, counts = part.wrong, np.diff(part.wrong.indptr)  # who failed c next has passed c - 1 last
        others = np.repeat(wrong @ np.ones(len(pi)), counts) - wrong.data
        one = -part.beside(wrong, -1, thresholds) * pi[wrong.indices - 1] * np.repeat(part.weight, counts) * others
        beside += np.bincount(wrong.indices, weights=halves[0].data * one, minlength=len(pi))
    return squares, cross, np.array(common @ common), beside
