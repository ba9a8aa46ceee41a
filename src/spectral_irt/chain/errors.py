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
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import ItemChain, MatrixChain, Part
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.numerics import centered_inverse, csr, gram, safe_divide


@dataclass(frozen=True, eq=False)
class Balance:
    """A solved chain, ready for its sandwich.

    `data` gives the persons' contributions; `chain` is what was solved without its prior: `data`, or the same with the
    paper's nu added. `precision` and `meat` are what the prior adds to the diagonals of J and Omega. `in_information`:
    flows are in units of information (ability weights), where Omega and J agree under the model.
    """

    data: ItemChain
    chain: MatrixChain
    pi: Floats
    precision: Floats
    meat: Floats
    in_information: bool = False

    @cached_property
    def is_mean_of_flows(self) -> Mask:
        """Items between which J is the mean of the two that outflow and inflow give."""
        return self.in_information & (self.meat > 0)

    @cached_property
    def through(self) -> Floats:
        """What flows through each item; under ability weights, the information that its answers carry."""
        outflow = self.pi * self.chain.rates
        if not self.is_mean_of_flows.any():
            return outflow
        inflow = self.chain.inflow(self.pi)
        return np.where(self.is_mean_of_flows, (outflow + inflow) / 2, outflow)

    @property
    def diagonal(self) -> Floats:
        """J_ii."""
        return self.through + self.precision

    def inverse(self) -> Floats:
        """The pseudo-inverse of J."""
        alpha = self.precision
        flows = self.pi[:, None] * self.chain.matrix()
        jacobian = -flows.T
        if self.is_mean_of_flows.any():
            jacobian = np.where(
                np.outer(self.is_mean_of_flows, self.is_mean_of_flows), -(flows + flows.T) / 2, jacobian
            )
        jacobian[np.diag_indices(len(jacobian))] = self.diagonal
        if alpha.any():
            jacobian -= np.outer(alpha, alpha) / alpha.sum()
        return centered_inverse(jacobian)

    def prior_meat(self, omega: Floats) -> Floats:
        """What is added to the diagonal `omega` of Omega under a prior: its own part; and where an item's people all
        answered alike, far too regular to judge by, as much as makes Omega as large as J, its expectation."""
        return self.meat + np.where(self.is_mean_of_flows, np.maximum(self.through - omega, 0), 0.0)


def covariance(balance: Balance) -> Floats:
    """The whole covariance matrix J^-1 Omega J^-T; m x m, for moderate m."""
    inverse = balance.inverse()
    data = balance.data
    omega = data.parts.sum(products_of_persons, balance.pi, data.thresholds)
    omega[np.diag_indices(len(omega))] += balance.prior_meat(np.diag(omega))
    cov = inverse @ omega @ inverse.T
    return (cov + cov.T) / 2


def one_pass(balance: Balance) -> tuple[Floats, Floats]:
    """Standard errors of the thresholds and of the items' locations, whose mean is zero, without the whole matrix.

    J is taken for its diagonal, so that Var_i = sum_l (g_li / J_ii + u_l)^2 with u_l = -mean of g_l / J_ii; the prior
    adds its own term alike. A location adds the products of neighbors, since one answer has at most two entries.
    """
    thresholds = balance.data.thresholds
    diagonal = balance.diagonal
    scale = safe_divide(1.0, diagonal)
    shift = -scale * thresholds.mean_weights()
    sums = PersonSums(*balance.data.parts.sum(spread_of_persons, balance.pi, shift, thresholds))
    meat = balance.prior_meat(sums.squares)
    omega = sums.squares + meat
    cross = sums.cross + meat * shift
    common = sums.common + meat @ shift**2
    variance = omega * scale**2 + 2 * scale * cross + common
    within = omega * scale**2
    within[1:] += 2 * sums.beside[1:] * scale[1:] * scale[:-1]  # `beside` is 0 for the first threshold of an item
    location = thresholds.mean(within) / thresholds.max_score + 2 * thresholds.mean(scale * cross) + common
    return np.sqrt(np.maximum(variance, 0)), np.sqrt(np.maximum(location, 0))


def contributions(part: Part, pi: Floats, thresholds: Thresholds) -> tuple[sparse.csr_array, sparse.csr_array]:
    """g_l on the thresholds failed next, and on those passed last, people x thresholds.

    w_l S_l a_li and -w_l Z_l a_li pi_i, without the item's own threshold in S_l and Z_l.
    """
    m = len(pi)
    won = part.weight * (part.right @ pi)
    lost = part.weight * (part.wrong @ np.ones(m))

    def without_neighbor(half: sparse.csr_array, person_sum: Floats, side: int) -> Floats:
        """Each person's sum at each of their entries, without the neighboring threshold of the same item."""
        counts = np.diff(half.indptr)
        value = np.repeat(person_sum, counts)
        if not thresholds.binary:
            neighbor = part.beside(half, side, thresholds) * np.repeat(part.weight, counts)
            if side < 0:
                neighbor = neighbor * pi[half.indices - 1]
            value -= neighbor
        return value

    wrong = part.wrong
    right = part.right
    failed = without_neighbor(wrong, won, side=-1) * wrong.data
    passed = without_neighbor(right, lost, side=1) * right.data
    passed *= -pi.take(right.indices)
    return csr(wrong.indptr, wrong.indices, failed, m), csr(right.indptr, right.indices, passed, m)


def products_of_persons(part: Part, pi: Floats, thresholds: Thresholds) -> Floats:
    failed, passed = contributions(part, pi, thresholds)
    return gram(sparse.csr_array(failed + passed))


class PersonSums(NamedTuple):
    """Sums over persons, u_l = sum of shift_i g_li."""

    squares: Floats
    """g_li^2."""
    cross: Floats
    """g_li u_l."""
    common: Floats
    """u_l^2, one number."""
    beside: Floats
    """g_l,c-1 g_lc of neighboring thresholds of one item."""


def spread_of_persons(part: Part, pi: Floats, shift: Floats, thresholds: Thresholds) -> tuple[Floats, ...]:
    """The fields of `PersonSums` for the persons of a part."""
    failed, passed = contributions(part, pi, thresholds)
    m = len(pi)
    u = failed @ shift + passed @ shift
    squares = np.zeros(m)
    cross = np.zeros(m)
    for half in (failed, passed):
        squares += np.bincount(half.indices, weights=half.data**2, minlength=m)
        cross += half.T @ u
    beside = np.zeros(m)
    if not thresholds.binary:
        wrong = part.wrong  # who failed c next has passed c - 1 last
        counts = np.diff(wrong.indptr)
        others = np.repeat(wrong @ np.ones(m), counts) - wrong.data
        weight = np.repeat(part.weight, counts)
        passed_before = -part.beside(wrong, -1, thresholds) * pi[wrong.indices - 1] * weight * others
        beside += np.bincount(wrong.indices, weights=failed.data * passed_before, minlength=m)
    return tuple(PersonSums(squares=squares, cross=cross, common=np.array(u @ u), beside=beside))
