"""Two methods that are defined by the matrix of all pairs of items, without that matrix.

With 80,000 items it would have seven billion cells. For complete data the paper's regularized chain needs only
to know which items have the same answers from everybody; for any data the pairwise likelihood becomes a sum of
products, because 1 / (pi_i + pi_j) is a short sum of exponentials exp(-t pi_i) exp(-t pi_j).
"""

from __future__ import annotations

import hashlib

import numpy as np

from spectral_irt.chain.stationary import stationary
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints

STEP = 0.5  # of the trapezoidal rule for 1 / x: relative error 2e-8
TINY = 1e-9  # what is left out at its ends
COLUMNS = 16  # exponentials worked on at a time


# ------------------------------------------------------------- the paper's chain, complete data


class CompleteChain:
    """Rates Y_ij + nu for every two items that some person answered differently; everybody answered everything."""

    def __init__(self, responses: Responses, nu: float) -> None:
        self.responses, self.nu = responses, nu
        self.group = same_answers(responses)
        m = responses.n_items
        self.rates: Floats = nu * (m - np.bincount(self.group)[self.group]).astype(float)
        self.rates += responses.sum(_outflow, m)

    def inflow(self, flow: Floats) -> Floats:
        """sum_i flow_i (Y_ij + nu), the sum over items with other answers."""
        total = self.nu * (flow.sum() - np.bincount(self.group, weights=flow)[self.group])
        return total + self.responses.sum(_inflow, flow)


def _outflow(block: Block, n_items: int) -> Floats:
    return block.halves(n_items)[0].T @ (block.counts - block.scores).astype(float)


def _inflow(block: Block, flow: Floats) -> Floats:
    right, wrong = block.halves(len(flow))
    return wrong.T @ (right @ flow)


def same_answers(responses: Responses) -> Ints:
    """A number for every item, the same for items that have the same answers from everybody; for complete data."""
    m = responses.n_items
    column = np.zeros((m, (responses.n_persons + 7) // 8), dtype=np.uint8)
    for person, item, right in responses.answers_by_block():
        np.bitwise_or.at(column, (item[right], person[right] // 8), np.uint8(1) << (person[right] % 8).astype(np.uint8))
    prints = [hashlib.blake2b(line.tobytes(), digest_size=16).digest() for line in column]
    return np.unique(prints, return_inverse=True)[1]


def complete_paper_difficulty(responses: Responses, nu: float = 1.0) -> Floats:
    """The paper's estimate, nu on pairs that differed, for complete data with any number of items."""
    present = responses.take_persons(responses.counts > 0)
    beta = np.log(stationary(CompleteChain(present, nu)).pi)
    return beta - beta.mean()


# --------------------------------------------------------------------------- pairwise likelihood


def exponentials(least: float, most: float) -> tuple[Floats, Floats]:
    """Weights w and exponents t with 1 / x = sum_k w_k exp(-t_k x) for least <= x <= most, to 2e-8 of its value.

    1 / x = integral of exp(u - x exp(u)) du, by the trapezoidal rule, which is very good at such integrals.

    >>> w, t = exponentials(0.01, 100.0)
    >>> bool(abs(w @ np.exp(-3.7 * t) * 3.7 - 1) < 1e-7)
    True
    """
    low, high = np.log(TINY / most), np.log(-np.log(TINY) / least)
    u = np.arange(low, high + STEP, STEP)
    return STEP * np.exp(u), np.exp(u)


class PairwiseChain:
    """Rates Y_ij / (pi_i + pi_j) at given pi: the chain whose fixed point is the maximum of the pairwise likelihood."""

    def __init__(self, responses: Responses, pi: Floats) -> None:
        self.responses = responses
        weights, exponents = exponentials(2 * pi.min(), 2 * pi.max())
        # sqrt of the weight on either side: the factors of sum_k (sqrt(w_k) e^{-t_k pi_i}) (sqrt(w_k) e^{-t_k pi_j}).
        self.factors = [
            np.sqrt(weights[k : k + COLUMNS]) * np.exp(-np.outer(pi, exponents[k : k + COLUMNS]))
            for k in range(0, len(weights), COLUMNS)
        ]
        self.rates: Floats = self._sums(np.ones(len(pi)), against=True)

    def inflow(self, flow: Floats) -> Floats:
        return self._sums(flow, against=False)

    def _sums(self, flow: Floats, *, against: bool) -> Floats:
        """sum_i flow_i Y_ij / (pi_i + pi_j), or with `against` sum_j Y_ij flow_j / (pi_i + pi_j)."""
        total = np.zeros(len(flow))
        for factor in self.factors:
            part = flow[:, None] * factor
            total += self.responses.sum(_products, part, factor, against)
        return total


def _products(block: Block, part: Floats, factor: Floats, against: bool) -> Floats:
    right, wrong = block.halves(len(part))
    if against:
        right, wrong = wrong, right
    return np.einsum("ik,ik->i", factor, wrong.T @ (right @ part))


def pairwise_without_pairs(responses: Responses, *, start: Floats, tol: float = 1e-4, max_iter: int = 50) -> Floats:
    """Difficulties of largest pairwise likelihood, by chains, each at the pi of the last one.

    Every item must have a finite estimate, and all must be connected. For more than a few dozen items: the solver
    takes shorter chains apart by their matrix, which is not there.
    """
    beta, move = start - start.mean(), np.inf
    for _ in range(max_iter):
        pi = np.exp(beta)
        chain = PairwiseChain(responses, pi)
        new = np.log(stationary(chain, start=pi / pi.sum(), tol=1e-7).pi)
        new -= new.mean()
        move = float(np.abs(new - beta).max())
        beta = new
        if move <= tol:
            break
    return beta
