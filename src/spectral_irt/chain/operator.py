"""The Markov chain on items, matrix-free: what flows into every item and what flows out, one pass over the responses.

With c_li = sqrt(w_l) a_li the rates are Y_ij = sum_l c_li X_li c_lj (1 - X_lj), that is Y = R^T W where R holds c on
the right answers and W on the wrong ones. A pass is two sparse products; Y, which has m x m cells, is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from spectral_irt.chain.weights import PERSONS, Weighting
from spectral_irt.engines import Prepared
from spectral_irt.numerics import gram
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats, Ints, onto_items
from spectral_irt.responses.shared_sets import SharedSets


class Chain(Protocol):
    """Anything with outflow rates and an inflow is a chain to the solver."""

    @property
    def rates(self) -> Floats:
        """d_i = sum_j Y_ij."""

    def inflow(self, flow: Floats) -> Floats:
        """(Y^T v)_i = sum_j v_j Y_ji, for one vector or for the columns of a matrix."""


@runtime_checkable
class GuessedChain(Chain, Protocol):
    """A chain that may be one whose engine cannot add by pairs, and learns Y from its passes."""

    @property
    def by_pairs(self) -> bool: ...

    def guess(self) -> Floats:
        """Y as far as the passes so far tell."""


@dataclass(frozen=True, eq=False)
class Part:
    """One block made ready: the weight of each person, and the factors a on right and wrong answers."""

    block: Block
    weight: Floats
    right: sparse.csr_array
    wrong: sparse.csr_array

    @classmethod
    def under(cls, block: Block, weighting: Weighting, beta: Floats) -> Part:
        """A block under this weighting, at these difficulties if it moves with them."""
        right, wrong = weighting.halves(block, len(beta))
        return cls(block, weighting.fill(block, beta, (right, wrong)), right, wrong)

    def again(self, weighting: Weighting, beta: Floats) -> Part:
        """The same block at other difficulties, in the memory of this part, which is used up."""
        return replace(self, weight=weighting.fill(self.block, beta, (self.right, self.wrong)))

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


def guessed_rates(part: AnyPart) -> Floats:
    """Y as far as it is known; an engine that cannot add by pairs says what its passes tell."""
    return part.pair_rates()


class ItemChain:
    """The chain on items under one weighting; make it with `under`."""

    def __init__(self, parts: Prepared) -> None:
        self.parts = parts
        self.by_pairs = parts.engine.by_pairs
        self.rates: Floats = parts.sum(total_rates)

    @classmethod
    def under(
        cls, responses: Responses, weighting: Weighting, beta: Floats | None = None, old: ItemChain | None = None
    ) -> ItemChain:
        """The chain under a weighting, taken at the difficulties `beta` if it moves with them.

        An old one of the same weighting gives its memory and is used up.
        """
        beta = np.zeros(responses.n_items) if beta is None else beta
        if old is None:
            return cls(responses.prepare(Part.under, weighting, beta))
        return cls(old.parts.prepare(Part.again, weighting, beta))

    @classmethod
    def by_persons(cls, responses: Responses, shared: SharedSets) -> ItemChain:
        """The chain under the weighting "persons" where most people share their sets of items."""
        sets = responses.engine.hold([SetsPart.by_persons(shared)])
        beta = np.zeros(responses.n_items)
        return cls(sets if shared.rest is None else sets.with_more(shared.rest.prepare(Part.under, PERSONS, beta)))

    def inflow(self, flow: Floats) -> Floats:
        return self.parts.sum(flow_in, flow)

    def outflow(self, to: Floats) -> Floats:
        """(Y x)_i = sum_j Y_ij x_j, for one vector or for the columns of a matrix."""
        return self.parts.sum(flow_out, to)

    def matrix(self) -> Floats:
        """Y itself, m x m."""
        return self.parts.sum(pair_rates)

    def guess(self) -> Floats:
        return self.parts.sum(guessed_rates)


class TiedChain:
    """A chain whose items are also tied to one more state, the virtual item of average difficulty.

    Item i and the virtual item exchange at the rate `tie[i]` each way, so whatever the data, every state reaches every
    other. The virtual item is the last state.
    """

    def __init__(self, chain: Chain, tie: Floats) -> None:
        self.chain = chain
        self.by_pairs = getattr(chain, "by_pairs", True)
        self.tie = tie
        self.rates: Floats = np.append(chain.rates + tie, tie.sum())

    def inflow(self, flow: Floats) -> Floats:
        items, virtual = flow[:-1], flow[-1:]
        tie = self.tie if items.ndim == 1 else self.tie[:, None]
        # Sums, not dot products: on short vectors the threads of a matrix library cost more than the work.
        return np.concatenate([self.chain.inflow(items) + tie * virtual, np.sum(tie * items, axis=0, keepdims=True)])

    def guess(self) -> Floats:
        items: Any = self.chain  # one that guesses; who cannot add by pairs does
        return np.block([[items.guess(), self.tie[:, None]], [self.tie[None, :], np.zeros((1, 1))]])
