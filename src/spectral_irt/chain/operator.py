"""The Markov chain on thresholds, matrix-free: what flows into each and what flows out, one pass over the responses.

Where answers are right or wrong an item has one threshold, and the chain is on items. With c_li = sqrt(w_l) a_li the
rates are Y_ij = sum_l c_li X_li c_lj (1 - X_lj), that is Y = R^T W where R holds c on the right answers and W on the
wrong ones. A pass is two sparse products; Y, which has m x m cells, is never formed.

Answers in categories: for items i != j the odds of (X_i = k, X_j = k' - 1) against (X_i = k - 1, X_j = k') are
pi_jk' / pi_ik whatever the ability, so the rates are the same, with the threshold passed last for a right answer and
the next one for a wrong answer. Two thresholds of one item say nothing about each other in one answer; the only such
move is from a threshold to the next, so one number for each threshold takes it out:

    same_c = sum of w_l a_lc a_l,c-1 over the people who passed c - 1 and failed c, thresholds of the same item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.weights import PERSONS, Moments, Weighting
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import SharedSets
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import Prepared
from spectral_irt.numerics import gram
from spectral_irt.sparse_kernels import onto_items

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
    """One block made ready: the weight of each person, and the factors a on right and wrong answers.

    `inverse_t` (1 / t_l of each person) and `at` (pi) are what the factors were taken at; no `inverse_t`: they are 1.
    """

    block: Block
    weight: Floats
    right: sparse.csr_array
    wrong: sparse.csr_array
    inverse_t: Floats | None
    at: Floats

    @classmethod
    def under(
        cls, block: Block, weighting: Weighting, beta: Floats, thresholds: Thresholds, moments: Moments | None = None
    ) -> Part:
        """A block under this weighting, at these difficulties if it moves with them."""
        right, wrong = halves = weighting.halves(block, len(beta))
        weight, inverse_t = weighting.fill(block, beta, halves, thresholds, moments)
        return cls(block, weight, right, wrong, inverse_t, np.exp(beta))

    def again(self, weighting: Weighting, beta: Floats, thresholds: Thresholds, moments: Moments | None = None) -> Part:
        """The same block at other difficulties, in the memory of this part, which is used up."""
        weight, inverse_t = weighting.fill(self.block, beta, (self.right, self.wrong), thresholds, moments)
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

    def inflow(self, flow: Floats) -> Floats:
        won = self.right @ flow
        return onto_items(self.wrong, won * (self.weight if won.ndim == 1 else self.weight[:, None]))

    def outflow(self, to: Floats) -> Floats:
        lost = self.wrong @ to
        return onto_items(self.right, lost * (self.weight if lost.ndim == 1 else self.weight[:, None]))

    @property
    def n_items(self) -> int:
        return self.wrong.shape[1]

    def pair_rates(self) -> Floats:
        return gram(self.right, sparse.csr_array(sparse.diags_array(self.weight) @ self.wrong))


@dataclass(frozen=True, eq=False)
class SetsPart:
    """People on shared sets of items, made ready: the rates Y between the items of each set."""

    items: tuple[Ints, ...]
    rates: tuple[Floats, ...]
    n_items: int

    @classmethod
    def by_persons(cls, shared: SharedSets) -> SetsPart:
        """Under the weighting "persons", 1 / n_l: on a set all have the same n."""
        rates = tuple(one.won / len(one.items) for one in shared.sets)
        return cls(tuple(one.items for one in shared.sets), rates, shared.n_items)

    def inflow(self, flow: Floats) -> Floats:
        total = np.zeros((self.n_items, *flow.shape[1:]))
        for items, rates in zip(self.items, self.rates, strict=True):
            total[items] += rates.T @ flow[items]
        return total

    def outflow(self, to: Floats) -> Floats:
        total = np.zeros((self.n_items, *to.shape[1:]))
        for items, rates in zip(self.items, self.rates, strict=True):
            total[items] += rates @ to[items]
        return total

    def pair_rates(self) -> Floats:
        total = np.zeros((self.n_items, self.n_items))
        for items, rates in zip(self.items, self.rates, strict=True):
            total[np.ix_(items, items)] += rates
        return total


AnyPart = Part | SetsPart


def flow_in(part: AnyPart, flow: Floats) -> Floats:
    return part.inflow(flow)


def flow_out(part: AnyPart, to: Floats) -> Floats:
    return part.outflow(to)


def total_rates(part: AnyPart) -> Floats:
    return part.outflow(np.ones(part.n_items))


def pair_rates(part: AnyPart) -> Floats:
    return part.pair_rates()


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
        """The chain under a weighting, taken at the difficulties `beta` if it moves with them.

        An old one of the same weighting gives its memory and is used up.
        """
        thresholds = responses.thresholds
        beta = np.zeros(thresholds.n_entries) if beta is None else beta
        moments = Moments.at(thresholds, beta) if weighting.moving else None
        if old is None:
            return cls(responses.entries.prepare(Part.under, weighting, beta, thresholds, moments), thresholds)
        return cls(old.parts.prepare(Part.again, weighting, beta, thresholds, moments), thresholds)

    @classmethod
    def by_persons(cls, responses: Responses, shared: SharedSets) -> ItemChain:
        """The chain under the weighting "persons" where most people share their sets of items."""
        sets = responses.engine.hold([SetsPart.by_persons(shared)])
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
    """A chain whose items are also tied to one more state, the virtual item of average difficulty.

    Item i and the virtual item exchange at the rate `tie[i]` each way, so whatever the data, every state reaches every
    other. The virtual item is the last state.
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
