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
    def of(cls, block: Block, n_items: int, weighting: str, beta: Floats | None) -> Part:
        right, wrong = block.halves(n_items)
        if weighting == "ability":
            assert beta is not None
            weight, a_right, a_wrong = ability_factors(block, beta)
            right = csr(right.indptr, right.indices, a_right, n_items)
            wrong = csr(wrong.indptr, wrong.indices, a_wrong, n_items)
        else:
            weight = count_weights(block, weighting)
        return cls(weight, right, wrong, right.T, wrong.T)


def _inflow(part: Part, flow: Floats) -> Floats:
    won = part.right @ flow
    return part.wrong_t @ (won * (part.weight if won.ndim == 1 else part.weight[:, None]))


def _rates(part: Part) -> Floats:
    return part.right_t @ (part.weight * (part.wrong @ np.ones(part.wrong.shape[1])))


class ItemChain:
    """The chain on items under one weighting.

    Parameters
    ----------
    blocks : blocks of the responses
    n_items : int
    weighting : "pairs", "users" or "ability"
    engine : who adds over blocks
    beta : float array, needed by "ability"
        The difficulties at which abilities and factors are taken.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        n_items: int,
        weighting: str,
        engine: LocalEngine,
        beta: Floats | None = None,
    ) -> None:
        self.engine = engine
        self.n_items = n_items
        self.parts = list(engine.map(Part.of, blocks, n_items, weighting, beta))
        self.rates: Floats = engine.sum(_rates, self.parts)

    def inflow(self, flow: Floats) -> Floats:
        return self.engine.sum(_inflow, self.parts, flow)


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
        items, virtual = flow[:-1], flow[-1]
        into = self.chain.inflow(items) + (self.tie * virtual if items.ndim == 1 else np.outer(self.tie, virtual))
        return np.concatenate([into, np.atleast_1d(self.tie @ items)[None, ...].reshape((1, *items.shape[1:]))])
