"""The Markov chain on items, matrix-free: what flows into every item and what flows out, one pass over the responses.

With c_li = sqrt(w_l) a_li the rates are Y_ij = sum_l c_li X_li c_lj (1 - X_lj), that is Y = R^T W where R holds c on
the right answers and W on the wrong ones. A pass is two sparse products; Y, which has m x m cells, is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from spectral_irt.chain.weights import ability_factors, count_weights
from spectral_irt.engines import LocalEngine
from spectral_irt.responses.block import Block, Floats, csr


class Chain(Protocol):
    """Anything with outflow rates and an inflow is a chain to the solver."""

    @property
    def rates(self) -> Floats:
        """d_i = sum_j Y_ij."""

    def inflow(self, flow: Floats) -> Floats:
        """(Y^T v)_i = sum_j v_j Y_ji, for one vector or for the columns of a matrix."""


@dataclass(frozen=True, eq=False)
class Part:
    """One block made ready: the weight of each user, and the factors a on right and wrong answers."""

    weight: Floats
    right: sparse.csr_array
    wrong: sparse.csr_array
    right_t: sparse.csc_array
    wrong_t: sparse.csc_array

    @classmethod
    def counting(cls, block: Block, n_items: int, weighting: str) -> Part:
        """A block under "pairs" or "users" weights: every factor is 1."""
        right, wrong = block.halves(n_items)
        return cls(count_weights(block, weighting), right, wrong, right.T, wrong.T)

    @classmethod
    def able(cls, block: Block, beta: Floats, old: Part | None) -> Part:
        """A block under ability weights at these difficulties, in the memory of an old part, which is used up."""
        halves = block.halves(len(beta))
        if old is None:
            halves = tuple(csr(half.indptr, half.indices, np.empty(half.nnz), len(beta)) for half in halves)
        else:
            halves = (old.right, old.wrong)
        weight = ability_factors(block, beta, halves[0].data, halves[1].data)
        return cls(weight, *halves, halves[0].T, halves[1].T)


def _inflow(part: Part, flow: Floats) -> Floats:
    won = part.right @ flow
    return part.wrong_t @ (won * (part.weight if won.ndim == 1 else part.weight[:, None]))


def _outflow(part: Part, to: Floats) -> Floats:
    lost = part.wrong @ to
    return part.right_t @ (lost * (part.weight if lost.ndim == 1 else part.weight[:, None]))


def _rates(part: Part) -> Floats:
    return _outflow(part, np.ones(part.wrong.shape[1]))


class ItemChain:
    """The chain on items under one weighting; make it with `counting` or `able`."""

    def __init__(self, parts: Sequence[Part], engine: LocalEngine) -> None:
        self.parts = parts
        self.engine = engine
        self.rates: Floats = engine.sum(_rates, parts)

    @classmethod
    def counting(cls, blocks: Sequence[Block], n_items: int, weighting: str, engine: LocalEngine) -> ItemChain:
        """The chain under "pairs" or "users" weights."""
        return cls(list(engine.map(Part.counting, blocks, n_items, weighting)), engine)

    @classmethod
    def able(
        cls, blocks: Sequence[Block], beta: Floats, engine: LocalEngine, old: ItemChain | None = None
    ) -> ItemChain:
        """The chain under ability weights taken at these difficulties; an old one gives its memory and is used up."""
        olds = [None] * len(blocks) if old is None else old.parts
        pairs = list(zip(blocks, olds, strict=True))
        return cls(list(engine.map(lambda pair: Part.able(pair[0], beta, pair[1]), pairs)), engine)

    def inflow(self, flow: Floats) -> Floats:
        return self.engine.sum(_inflow, self.parts, flow)

    def outflow(self, to: Floats) -> Floats:
        """(Y x)_i = sum_j Y_ij x_j, for one vector or for the columns of a matrix."""
        return self.engine.sum(_outflow, self.parts, to)


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
