"""Explicit pair counts, only where a method is defined by them.

Y_ij = sum_l w_l X_li (1 - X_lj): who answered i right and j wrong. B_ij: who answered both. Both have a cell for every
pair of items ever seen together, which is what the matrix-free chain avoids.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from spectral_irt.chain.weights import COUNTED, count_weights, weighting_named
from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats
from spectral_irt.errors import OptionError, check_option

DENSE_ITEMS = 4000  # up to here a dense matrix (128 MB) is faster and hardly larger than a sparse one
MOST_DENSE_ITEMS = 30_000  # a matrix of 7 GB
SLICE = 1000  # rows of a large matrix that are worked on at a time
NuRule = Literal["differed", "together"]
NU_RULES = get_args(NuRule)

Pairs: TypeAlias = Any  # a dense array, or a scipy csr_array
LEAST, MOST = 1e-6, 1e9  # of alpha and nu, other than 0


def check_strength(name: str, value: float, other: str = "") -> None:
    """Refuse a strength of regularization that is no number, or beyond what arithmetic can weigh against data."""
    if value != 0 and not LEAST <= value <= MOST:  # false for NaN too
        raise OptionError(f"`{name}` is {value:g}; it can be {other}0, or a number from {LEAST:g} to {MOST:g}.")


def pair_counts(responses: Responses, *, weighting: str = "pairs", dense: bool | None = None) -> Pairs:
    """Y: for every pair, the (weighted) number of people who answered the first right and the second wrong.

    Parameters
    ----------
    weighting : "pairs" or "persons"
        Each person counts 1, or 1 / n_l.
    dense : bool, optional
        A dense array, or a sparse matrix. Default: dense up to 4,000 items.
    """
    weighting_named(weighting, COUNTED)
    return _added(responses, _differed, dense, weighting)


def seen_together(responses: Responses, *, dense: bool | None = None) -> Pairs:
    """B: for every pair of items, how many people answered both; 0 on the diagonal."""
    return _added(responses, _together, dense)


def smaller_dense(responses: Responses) -> bool:
    """Whether the dense matrix is the smaller one: most pairs have met, or there are few items."""
    met = float((responses.scores * (responses.counts - responses.scores)).sum())
    return responses.n_items <= (MOST_DENSE_ITEMS if met > responses.n_items**2 else DENSE_ITEMS)


def regularize(
    y: Pairs, nu: float, *, rule: str = "differed", b: Pairs | None = None, overwrite: bool = False
) -> Pairs:
    """The paper's regularization: `nu` imaginary disagreements each way for pairs that have met.

    Parameters
    ----------
    rule : "differed" or "together"
        Which pairs: those that some person answered differently, Y_ij + Y_ji > 0 (the paper's printed program), or all
        that some person answered both of, B_ij > 0 (the paper's text; needs `b`).
    overwrite : bool
        Use up the memory of a dense `y`.
    """
    check_option("nu_rule", rule, NU_RULES)
    check_strength("nu", nu)
    if rule == "together" and b is None:
        raise OptionError("the rule 'together' needs the counts b of seen_together(responses).")
    if isinstance(y, np.ndarray):
        out: Any = y if overwrite else y.copy()
        seen: Any = b
        for start in range(0, len(y), SLICE):  # in slices, as the matrix may be all that fits
            rows = slice(start, start + SLICE)
            # Where nu was added before, the pair has met, so that it may be looked up in the same matrix.
            out[rows] += nu * ((out[rows] + out.T[rows] > 0) if rule == "differed" else _dense(seen[rows]) > 0)
        return out
    pattern = (y + y.T) if rule == "differed" else sparse.csr_array(b)
    met = sparse.csr_array((np.full(pattern.nnz, float(nu)), pattern.indices, pattern.indptr), shape=y.shape)
    return sparse.csr_array(y + met)


class PairChain:
    """The chain with an explicit matrix of rates."""

    def __init__(self, y: Pairs) -> None:
        self.y = y
        self.rates: Floats = np.asarray(y.sum(axis=1)).ravel()
        self._back = y.T if isinstance(y, np.ndarray) else sparse.csr_array(y.T)

    def inflow(self, flow: Floats) -> Floats:
        return self._back @ flow

    def matrix(self) -> Floats:
        """Y itself, dense."""
        return _dense(self.y)


def _differed(block: Block, n_items: int, weighting: str) -> sparse.csr_array:
    right, wrong = block.halves(n_items)
    weights = sparse.diags_array(count_weights(block, weighting))
    return sparse.csr_array(right.T @ (weights @ wrong))


def _together(block: Block, n_items: int) -> sparse.csr_array:
    right, wrong = block.halves(n_items)
    seen = right + wrong
    both = sparse.csr_array(seen.T @ seen)
    both.setdiag(0)
    both.eliminate_zeros()
    return both


def _added(responses: Responses, kernel: Any, dense: bool | None, *args: Any) -> Pairs:
    m = responses.n_items
    if dense is None:
        dense = m <= DENSE_ITEMS
    total: Any = np.zeros((m, m)) if dense else sparse.csr_array((m, m))
    for part in responses.map(kernel, m, *args):
        if dense:
            for start in range(0, m, SLICE):
                piece = part[start : start + SLICE]
                rows = np.repeat(np.arange(start, start + piece.shape[0]), np.diff(piece.indptr))
                total[rows, piece.indices] += piece.data  # no cell twice: products of sparse matrices have unique cells
        else:
            total = total + part
    return total


def _dense(pairs: Any) -> Floats:
    return pairs.toarray() if sparse.issparse(pairs) else pairs
