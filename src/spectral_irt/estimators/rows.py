"""The score of the conditional likelihood, person by person and in the order of the blocks.

For every answer, X - P(X = 1 | score), and the c of the matched information (see `information`). People with much
information take the series of `edgeworth`, at a fixed cost an answer; the others the exact `recursion`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.engines import Prepared
from spectral_irt.estimators.edgeworth import DOUBLE, SINGLE, Precision, fill_given_score
from spectral_irt.estimators.esf import conditional_moments
from spectral_irt.estimators.information import links
from spectral_irt.estimators.recursion import given_score
from spectral_irt.model import LOGISTIC_VARIANCE, prox, sigmoid
from spectral_irt.numerics import gram
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Block, Floats, Ints, csr, onto_items, shared_ones

TILE_CELLS = 32_768  # numbers of a recursion's table that fit the cache of one core
MANY = 64  # people in a tile where there are so many of their kind
ALIKE = 1.3  # lengths within this factor share a tile
ROUGH = 1e-3  # standard errors from which on single precision will do for the series
SERIES_ERROR = 6e-4  # times V^-4: the error of the series for an answer of a person of information V
LIMITS = np.concatenate([np.arange(1.0, 8.0, 0.25), [np.inf]])  # information below which people may be exact
SHORT_ORDER = 16  # right or wrong answers up to which the recursion is cheaper than the contour sum ...
FEW_PEOPLE = 0.25  # ... unless people are fewer than this many per item: its steps are as many as there are items


@dataclass(frozen=True, eq=False)
class People:
    """The informative people of one block, with rough abilities and the information of their answers.

    `weight` says how much each counts, where they do not all count the same.
    """

    places: Ints  # in the block
    block: Block  # with everybody
    theta: Floats
    information: Floats
    weight: Floats | None = None

    @classmethod
    def of(cls, block: Block, beta: Floats) -> People:
        places = np.flatnonzero(block.informative)
        return cls(places, block, *rough_ability(block, places, beta))

    @classmethod
    def weighted(cls, block: Block, weight: Floats, beta: Floats) -> People:
        people = cls.of(block, beta)
        return replace(people, weight=weight[people.places])


@dataclass(frozen=True, eq=False)
class Rows:
    """The informative people of one block: first the `n_long` with much information, then the others.

    `theta` are rough abilities; `score` and `link` hold X - P and c of every answer at the difficulties of the last
    evaluation, times the person's weight and its root where people have weights.
    """

    places: Ints
    block: Block
    n_long: int
    theta: Floats
    score: Floats
    link: Floats
    n_items: int
    precision: Precision
    weight: Floats | None = None

    @classmethod
    def of(cls, people: People, exact_below: float, n_items: int, precision: Precision) -> Rows:
        """People with information below `exact_below` are to be exact."""
        places, block, theta, weight = people.places, people.block, people.theta, people.weight
        short = people.information < exact_below
        if short.any():
            n, s = block.counts[places], block.scores[places]
            order = np.lexsort((n, np.minimum(s, n - s), short))
            places, theta = places[order], theta[order]
            weight = None if weight is None else weight[order]
        if short.any() or len(places) < block.n_users:
            block = block.take(places)
        size = block.n_responses
        score, link = np.empty(size), np.empty(size)
        return cls(places, block, int(np.sum(~short)), theta, score, link, n_items, precision, weight)

    @property
    def indptr(self) -> Any:
        return self.block.indptr.astype(np.int32)

    def matrix(self, values: Floats) -> sparse.csr_array:
        """People x items."""
        return csr(self.indptr, np.asarray(self.block.items), values, self.n_items)

    def filled(self, beta: Floats) -> Rows:
        """With P in the place of `score`, and c in `link`, at these difficulties."""
        block, indptr, end = self.block, self.indptr, int(self.block.indptr[self.n_long])
        theta = self.theta.copy()
        if self.n_long:
            theta[: self.n_long] = fill_given_score(
                indptr[: self.n_long + 1],
                np.asarray(block.items[:end]),
                block.scores[: self.n_long],
                theta[: self.n_long],
                beta,
                self.score[:end],
                self.link[:end],
                self.precision,
            )
        _fill_exact(block, self.n_long, theta, beta, self.score, self.link)
        return replace(self, theta=theta)

    def observed(self) -> Any:
        """Every answer, 1 or 0, times the person's weight where people have weights."""
        right = self.block.right()
        return right if self.weight is None else right * np.repeat(self.weight, self.block.counts)

    def answers_to_items(self) -> tuple[Floats, Floats]:
        items, m, right = self.block.items, self.n_items, self.block.right()
        if self.weight is None:
            counts, sums = np.bincount(items, minlength=m), np.bincount(items[right], minlength=m)
        else:
            each = np.repeat(self.weight, self.block.counts)
            counts, sums = (np.bincount(items, weights=one, minlength=m) for one in (each, each * right))
        return counts.astype(np.float64), sums.astype(np.float64)

    def score_squares(self) -> Floats:
        return np.bincount(self.block.items, weights=self.score**2, minlength=self.n_items).astype(np.float64)

    def score_gram(self, single: bool) -> Floats:
        return gram(self.matrix(self.score), single=single)

    def score_twice(self, v: Floats) -> Floats:
        matrix = self.matrix(self.score)
        return onto_items(matrix, matrix @ v)


def prepare_rows(responses: Responses, beta: Floats, allowed: float, weights: Floats | None = None) -> Prepared:
    """All people, ready to be evaluated; exact where the series would move an item by more than `allowed`.

    The series is off by about 6e-4 / V^4 an answer, on average with sign (benchmarks/landing.py). Over n answers of
    information .18 each that is sqrt(n / .18) times as many standard errors; the limit is put where the item with most
    answers stays within `allowed`, in standard errors.
    """
    if weights is None:
        people = responses.prepare(People.of, beta)
    else:
        people = responses.prepare(People.weighted, beta, persons=(weights,))
    answers = people.sum(_by_information)
    off = answers * SERIES_ERROR / LIMITS**4 / max(answers.sum(), 1)
    beyond = np.cumsum(off[::-1])[::-1] * np.sqrt(responses.item_counts.max(initial=0) / 0.18)
    exact_below = float(LIMITS[np.argmax(beyond <= allowed)])
    return people.prepare(Rows.of, exact_below, len(beta), SINGLE if allowed >= ROUGH else DOUBLE)


def _by_information(people: People) -> Floats:
    """Answers of people whose information lies above each of `LIMITS`, and below the next."""
    place = np.searchsorted(LIMITS, people.information, side="right") - 1
    counts = np.where(place < 0, 0, people.block.counts[people.places])
    return np.bincount(np.maximum(place, 0), weights=counts, minlength=len(LIMITS)).astype(np.float64)


def rough_ability(block: Block, places: Ints, beta: Floats) -> tuple[Floats, Floats]:
    """PROX abilities of people who are neither all right nor all wrong, and the information of their answers.

    With theta = mean + k logit(s / n), k = sqrt(1 + var / 2.89), the information ds / dtheta is s (n - s) / (n k).
    """
    rows = csr(block.indptr.astype(np.int32), np.asarray(block.items), shared_ones(block.n_responses), len(beta))
    n, s = block.counts[places], block.scores[places]
    mean = (rows @ beta)[places] / n
    variance = np.maximum((rows @ beta**2)[places] / n - mean**2, 0)
    theta = prox(mean, variance, np.log(s / (n - s)))
    return theta, s * (n - s) / (n * np.sqrt(1 + variance / LOGISTIC_VARIANCE))


def answers_to_items(rows: Rows) -> tuple[Floats, Floats]:
    """How many of these people answered each item, and how many right, each by their weight."""
    return rows.answers_to_items()


def linked(rows: Rows, v: Floats) -> Floats:
    """C' C v."""
    matrix = rows.matrix(rows.link)
    return onto_items(matrix, matrix @ v)


def link_gram(rows: Rows, single: bool = False) -> Floats:
    """C' C; `single` precision is good to about 1e-6 of each entry, for they are sums of positive terms."""
    return gram(rows.matrix(rows.link), single=single)


def score_squares(rows: Rows) -> Floats:
    """Sums over people of their squared scores."""
    return rows.score_squares()


def score_gram(rows: Rows, single: bool = False) -> Floats:
    """Sums over people of the products of their scores."""
    return rows.score_gram(single)


def score_twice(rows: Rows, v: Floats) -> Floats:
    """These sums times v."""
    return rows.score_twice(v)


def evaluate(rows: Rows, beta: Floats) -> tuple[Rows, tuple[Floats, Floats, Floats]]:
    """The rows at other difficulties (their memory is used again), and three sums over people for every item.

    These are P - X, the score of a difficulty; c times the sum of the person's c; and c^2.
    """
    block, link = rows.block, rows.link
    rows = rows.filled(beta)
    probability = rows.score
    if rows.weight is not None:
        probability *= np.repeat(rows.weight, block.counts)
        link *= np.repeat(np.sqrt(rows.weight), block.counts)
    np.subtract(rows.observed(), probability, out=probability)
    total = np.add.reduceat(link, block.indptr[:-1]) if block.n_users else np.zeros(0)
    each = shared_ones(block.n_users)
    score, square = (onto_items(rows.matrix(values), each) for values in (probability, link * link))
    return rows, (-score, onto_items(rows.matrix(link), total), square)


def _fill_exact(block: Block, start: int, theta: Floats, beta: Floats, probability: Floats, link: Floats) -> None:
    """P and c of the people from `start` on, of like order and then length, tile by tile."""
    padded, counts, scores = np.append(beta, np.inf), block.counts, block.scores
    orders = np.minimum(scores, counts - scores)
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
