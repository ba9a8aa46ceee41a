"""The Markov chain on thresholds, matrix-free: what flows into each and what flows out, one pass over the responses.

With c_li = sqrt(w_l) a_li the rates are Y_ij = sum_l c_li X_li c_lj (1 - X_lj), that is Y = R^T W with c on the right
answers in R and on the wrong ones in W. A pass is two sparse products; Y, which has m x m cells, is never formed.

Answers in categories: for items i != j the odds of (X_i = k, X_j = k' - 1) against (X_i = k - 1, X_j = k') are
pi_jk' / pi_ik whatever the ability, so the rates are the same, with the threshold passed last for a right answer and
the next one for a wrong answer. The only move within an item is from a threshold to the next, and is taken out:

    same_c = sum of w_l a_lc a_l,c-1 over the people who passed c - 1 and failed c, thresholds of the same item.

Standard errors of log pi by the sandwich: person l adds g_li = w_l a_li [(1 - X_li) S_l - X_li pi_i Z_l] to the balance
of flows, S_l = sum of a_lj pi_j over the right and Z_l = sum of a_lj over the wrong answers. With F_ij = pi_i Y_ij,

    J = diag(F 1) - F^T,    Omega = sum_l g_l g_l^T,    Cov(beta) = J^+ Omega J^+T.

A prior of precision alpha adds alpha to the diagonals of both (times the scale of the item's flow, and its square). Its
pull sets outflow and inflow of an item apart; where flows are in units of information, J between items with a prior is
even: diag(F 1 + F^T 1) / 2 - (F + F^T) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.weights import PERSONS, Weighting
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import EMPTY, Floats, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.data.same_items import SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.numerics import centered_inverse, csr, gram, onto_items

NOTHING = 1e-12  # of a rate: what rounding leaves where a threshold meets only its own item


class Chain(Protocol):
    """Anything with outflow rates and an inflow is a chain to the solver."""

    @property
    def rates(self) -> Floats:
        """d_i = sum_j Y_ij."""

    def inflow(self, flow: Floats) -> Floats:
        """(Y^T v)_i = sum_j v_j Y_ji, for one vector or for the columns of a matrix."""


@dataclass(frozen=True, eq=False)
class Part:
    """One block made ready: people's weights, the factors a on right and wrong answers, and 1 / t_l and pi (`at`) that
    these were taken at; without `inverse_t` they are 1."""

    block: Block
    weight: Floats
    right: sparse.csr_array
    wrong: sparse.csr_array
    inverse_t: Floats | None
    at: Floats

    @classmethod
    def under(cls, block: Block, weighting: Weighting, beta: Floats, thresholds: Thresholds) -> Part:
        """A block under this weighting, at these difficulties if it moves with them."""
        right, wrong = halves = weighting.halves(block, len(beta))
        weight, inverse_t = weighting.fill(block, beta, halves, thresholds)
        return cls(block, weight, right, wrong, inverse_t, np.exp(beta))

    def again(self, weighting: Weighting, beta: Floats, thresholds: Thresholds) -> Part:
        """The same block at other difficulties, in the memory of this part, which is used up."""
        weight, inverse_t = weighting.fill(self.block, beta, (self.right, self.wrong), thresholds)
        return replace(self, weight=weight, inverse_t=inverse_t, at=np.exp(beta))

    def factor(self, person: Any, threshold: Any) -> Floats:
        """a of a threshold for a person, as those of the entries are."""
        if self.inverse_t is None:
            return np.ones(len(threshold))
        odds = self.at.take(threshold)
        odds *= self.inverse_t.take(person)
        odds += 1
        return np.reciprocal(odds, out=odds)

    def inside(self, thresholds: Thresholds) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Entries failed next whose item also has one passed last: where, whose, which threshold. Made once."""
        key = ("inside", thresholds.n_entries)
        found: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = self.block._cache.get(key)
        if found is None:
            wrong = self.wrong
            where = np.flatnonzero(thresholds.below[wrong.indices])
            person = np.repeat(np.arange(wrong.shape[0], dtype=np.int32), np.diff(wrong.indptr))[where]
            found = self.block.remember(key, (where, person, wrong.indices[where]))
        return found

    @classmethod
    def of_sets(cls, shared: SharedSets) -> Part:
        """People on shared sets of items under the weighting "persons", 1 / n_l: their rates Y in the place of W."""
        m, ones, every = shared.n_items, np.ones(shared.n_items), np.arange(shared.n_items + 1, dtype=np.int32)
        rates = np.zeros((m, m))
        for one in shared.sets:
            rates[np.ix_(one.items, one.items)] += one.won / len(one.items)
        row, item = np.nonzero(rates)  # by hand: of a small matrix, scipy's checks cost more than its products
        wrong = csr(np.searchsorted(row, every).astype(np.int32), item.astype(np.int32), rates[row, item], m)
        return cls(EMPTY, ones, csr(every, every[:-1], ones, m), wrong, None, ones)


def flow_in(part: Part, flow: Floats) -> Floats:
    won = part.right @ flow
    return onto_items(part.wrong, won * (part.weight if won.ndim == 1 else part.weight[:, None]))


def flow_out(part: Part, to: Floats) -> Floats:
    lost = part.wrong @ to
    return onto_items(part.right, lost * (part.weight if lost.ndim == 1 else part.weight[:, None]))


def total_rates(part: Part) -> Floats:
    return flow_out(part, np.ones(part.wrong.shape[1]))


def pair_rates(part: Part) -> Floats:
    return gram(part.right, sparse.csr_array(sparse.diags_array(part.weight) @ part.wrong))


def same_item(part: Part, thresholds: Thresholds) -> Floats:
    """Rates from each threshold's lower neighbor of the same item."""
    where, person, threshold = part.inside(thresholds)
    values = part.weight.take(person)
    if part.inverse_t is not None:
        values *= part.wrong.data.take(where)
        values *= part.factor(person, threshold - 1)
    return np.bincount(threshold, weights=values, minlength=thresholds.n_entries).astype(np.float64)


class ItemChain:
    """The chain on items, or on their thresholds, under one weighting; make it with `under`."""

    def __init__(self, parts: Prepared, thresholds: Thresholds) -> None:
        self.parts, self.thresholds = parts, thresholds
        self.rates: Floats = parts.sum(total_rates)
        if not thresholds.binary:
            self.same: Floats = parts.sum(same_item, thresholds)
            rates = self.rates - self._ahead(self.same)
            self.rates = np.where(rates > NOTHING * self.rates, rates, 0.0)

    @classmethod
    def under(
        cls, responses: Responses, weighting: Weighting, beta: Floats | None = None, old: ItemChain | None = None
    ) -> ItemChain:
        """The chain under a weighting, at the difficulties `beta` if it moves with them; `old` gives its memory."""
        thresholds = responses.thresholds
        beta = np.zeros(thresholds.n_entries) if beta is None else beta
        if old is None:
            return cls(responses.entries.prepare(Part.under, weighting, beta, thresholds), thresholds)
        return cls(old.parts.prepare(Part.again, weighting, beta, thresholds), thresholds)

    @classmethod
    def by_persons(cls, responses: Responses, shared: SharedSets) -> ItemChain:
        """The chain under the weighting "persons" where most people share their sets of items."""
        sets = responses.engine.hold([Part.of_sets(shared)])
        beta, thresholds = np.zeros(responses.n_items), responses.thresholds
        if shared.rest is not None:
            sets = sets.with_more(shared.rest.prepare(Part.under, PERSONS, beta, thresholds))
        return cls(sets, thresholds)

    def inflow(self, flow: Floats) -> Floats:
        total: Floats = self.parts.sum(flow_in, flow)
        if not self.thresholds.binary:  # `same` is 0 where the threshold before is another item's
            total[1:] -= (self.same if flow.ndim == 1 else self.same[:, None])[1:] * flow[:-1]
        return total

    def outflow(self, to: Floats) -> Floats:
        """(Y x)_i = sum_j Y_ij x_j, for one vector or for the columns of a matrix."""
        total: Floats = self.parts.sum(flow_out, to)
        if not self.thresholds.binary:
            total -= self._ahead((self.same if to.ndim == 1 else self.same[:, None]) * to)
        return total

    def matrix(self) -> Floats:
        """Y itself, m x m."""
        y: Floats = self.parts.sum(pair_rates)
        if not self.thresholds.binary:
            upper = np.flatnonzero(self.thresholds.below)
            y[upper - 1, upper] = 0.0
        return y

    def _ahead(self, values: Floats) -> Floats:
        """The value of the next threshold, 0 for the last one."""
        return np.concatenate([values[1:], np.zeros_like(values[:1])])


class TiedChain:
    """A chain with one more state, the last: the virtual item of average difficulty.

    Item i and it exchange at the rate `tie[i]` each way, so whatever the data, every state reaches every other.
    """

    def __init__(self, chain: Chain, tie: Floats) -> None:
        self.chain = chain
        self.tie = tie
        self.rates: Floats = np.append(chain.rates + tie, tie.sum())

    def inflow(self, flow: Floats) -> Floats:
        items, virtual = flow[:-1], flow[-1:]
        tie = self.tie if items.ndim == 1 else self.tie[:, None]
        # Sums, not dot products: on short vectors the threads of a matrix library cost more than the work.
        return np.concatenate([self.chain.inflow(items) + tie * virtual, np.sum(tie * items, axis=0, keepdims=True)])


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
    n, m = part.right.shape
    won, lost = part.weight * (part.right @ pi), part.weight * (part.wrong @ np.ones(m))
    halves = []
    for half, total, side in ((part.wrong, won, -1), (part.right, lost, 1)):
        here, value = half.indices, np.repeat(total, np.diff(half.indptr))
        if not thresholds.binary:
            person = np.repeat(np.arange(n, dtype=np.int32), np.diff(half.indptr))
            below = thresholds.below[here] if side < 0 else np.append(thresholds.below, False)[1:][here]
            beside = np.flatnonzero(below)
            who, which = person[beside], here[beside] + side
            own = part.factor(who, which) * part.weight[who]
            value[beside] -= own * pi[which] if side < 0 else own
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
        inside, person, here = part.inside(thresholds)  # who failed c next has passed c - 1 last
        lost = part.weight * (part.wrong @ np.ones(len(pi)))
        others = lost[person] - part.weight[person] * part.wrong.data[inside]
        one = -part.factor(person, here - 1) * pi[here - 1] * others
        beside += np.bincount(here, weights=halves[0].data[inside] * one, minlength=len(pi))
    return squares, cross, np.array(common @ common), beside
