"""P(X = 1 | score) and the links of people of little information, by the exact recursion.

People of like length and order share a tile, a table that fits the cache of one core.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.estimators.esf import conditional_moments
from spectral_irt.estimators.information import links
from spectral_irt.estimators.recursion import given_score
from spectral_irt.model import sigmoid
from spectral_irt.responses.block import Block, Floats, Ints

TILE_CELLS = 32_768  # numbers of a recursion's table that fit the cache of one core
MANY = 64  # people in a tile where there are so many of their kind
ALIKE = 1.3  # lengths within this factor share a tile
SHORT_ORDER = 16  # right or wrong answers up to which the recursion is cheaper than the contour sum ...
FEW_PEOPLE = 0.25  # ... unless people are fewer than this many per item: its steps are as many as there are items


@dataclass(frozen=True, eq=False)
class Exact:
    """People of one block, of like order and then length; and where their answers stand among all of the block."""

    block: Block
    theta: Floats
    where: slice | Ints

    def fill(self, beta: Floats, probability: Floats, link: Floats) -> None:
        """Write P and c of their answers where these stand."""
        if not self.block.n_users:
            return
        if isinstance(self.where, slice):
            _fill(self.block, self.theta, beta, probability[self.where], link[self.where])
            return
        p, c = np.empty((2, self.block.n_responses))
        _fill(self.block, self.theta, beta, p, c)
        probability[self.where], link[self.where] = p, c


def by_order(block: Block, people: Ints) -> Ints:
    """These people in the order in which they share tiles."""
    n, s = block.counts[people], block.scores[people]
    return people[np.lexsort((n, np.minimum(s, n - s)))]


def _fill(block: Block, theta: Floats, beta: Floats, probability: Floats, link: Floats) -> None:
    """P and c of all these people, tile by tile."""
    padded, counts, scores = np.append(beta, np.inf), block.counts, block.scores
    orders = np.minimum(scores, counts - scores)
    start = 0
    while start < block.n_users:
        stop = _end_of_tile(counts, orders, start)
        span = slice(int(block.indptr[start]), int(block.indptr[stop]))
        n, s, order = counts[start:stop], scores[start:stop], orders[start:stop]
        inside = np.arange(n.max()) < n[:, None]
        items = np.full(inside.shape, len(beta))
        items[inside] = block.items[span]
        b = np.ascontiguousarray(padded[items].T)
        if order.max() > SHORT_ORDER or len(n) < FEW_PEOPLE * n.max():
            p = conditional_moments(b, n, s)[1]
        else:
            p = sigmoid(theta[start:stop] - b)
            p = np.where(b < np.inf, _by_fewer(p, s, n), 0.0)
        probability[span] = p.T[inside]
        link[span] = links(p, n).T[inside]
        start = stop


def _by_fewer(p: Floats, scores: Ints, counts: Ints) -> Floats:
    """P(X = 1 | s), by way of P(X = 0 | n - s) for people with fewer wrong than right answers."""
    flip = 2 * scores > counts
    if not flip.any():
        return given_score(p, scores)
    wrong = np.where(p > 0, 1 - p, 0.0)  # padding stays 0
    given = given_score(np.where(flip, wrong, p), np.where(flip, counts - scores, scores))
    return np.where(flip, 1 - given, given)


def _end_of_tile(counts: Ints, orders: Ints, start: int) -> int:
    """As many people as fit the cache, of lengths and orders near those of the first."""
    size = int(counts[start]) * min(int(orders[start]) + 1, SHORT_ORDER)
    ahead = slice(start, start + max(MANY, TILE_CELLS // size))
    n, order = counts[ahead], orders[ahead]
    short = order <= SHORT_ORDER
    unlike = (n > ALIKE * n[0]) | (n < n[0] / ALIKE) | (order > order[0] + 2) | (short != short[0])
    return start + (int(np.argmax(unlike)) if unlike.any() else len(n))
