"""The score of the conditional likelihood of right and wrong answers, person by person: the fast path.

For every answer, P(X = 1 | score) - X, and the c of the matched information. People with much information take the
series of `series_binary`, at a fixed cost an answer; the others are `exact`. People who share their set of items are
the `SharedRows` of `exact`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.given_score import Exact, answers_above, by_order, series_limit
from spectral_irt.conditional.information import Levels, PeopleRows
from spectral_irt.conditional.series_binary import DOUBLE, ROUGH, SINGLE, Precision, fill_given_score
from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, person_chunks, spans
from spectral_irt.engine import Prepared
from spectral_irt.numerics import add_columns, row_sums

SERIES_ERROR = 6e-4  # times V^-4: the error of the series for a person of information V (benchmarks/newton.py)
IN_PLACE = 0.05  # share of answers without the series up to which computing it for nothing is cheaper than a copy
PIECE = 131_072  # answers at a time in a sum over what is kept: their doubles fit the cache of a core
LIMITS = np.concatenate([np.arange(1.0, 8.0, 0.25), [np.inf]])  # information below which people may be exact


@dataclass(frozen=True, eq=False)
class People:
    """The people of one block, with rough abilities and the information of their answers; 0 for extreme scores."""

    block: Block
    theta: Floats
    information: Floats
    weight: Floats | None = None

    @classmethod
    def of(cls, block: Block, weight: Floats | None, beta: Floats) -> People:
        return cls(block, *prox_ability(block, beta), weight)


@dataclass(frozen=True, eq=False)
class Rows(PeopleRows):
    """The people of one block, to be evaluated at difficulties.

    `score` and `factor` hold P - X and c of every answer at the last evaluation, times the person's weight and its
    root. The first `n_long` people take the series, except those whose `theta` is NaN: they are `exact`, or have an
    extreme score and `silent` answers. So, where nearly all take it, people stay where they are and no answer is
    copied; elsewhere the exact ones come last.
    """

    block: Block
    n_long: int
    theta: Floats
    exact: Exact
    n_items: int
    precision: Precision
    score: Floats
    factor: Floats
    weight: Floats | None = None
    silent: Ints | None = None

    @classmethod
    def of(cls, people: People, exact_below: float, n_items: int, precision: Precision) -> Rows:
        """People with information below `exact_below` are to be exact."""
        block, theta, weight, few = people.block, people.theta, people.weight, people.information < exact_below
        long, short = np.flatnonzero(block.informative & ~few), np.flatnonzero(block.informative & few)
        n = block.counts[short]
        short = short[by_order(n, block.scores[short], n)]
        score, factor = np.empty(0, dtype=precision), np.empty(0, dtype=precision)
        end = int(block.counts[long].sum())
        if end < (1 - IN_PLACE) * block.n_responses or not block.counts.all():
            order = np.concatenate([long, short])
            ours, theta = block.take(order), theta[order]
            weight = None if weight is None else weight[order]
            where = np.arange(end, ours.n_responses, dtype=np.int32)
            exact = Exact(block.take(short), theta[len(long) :], where)
            return cls(ours, len(long), theta, exact, n_items, precision, score, factor, weight)
        where = spans(block.indptr[:-1][short], block.counts[short]).astype(np.int32)
        exact = Exact(block.take(short), theta[short], where)
        mute = np.flatnonzero(~block.informative)
        silent, theta = spans(block.indptr[:-1][mute], block.counts[mute]), np.where(few, np.nan, theta)
        return cls(block, block.n_persons, theta, exact, n_items, precision, score, factor, weight, silent)

    @property
    def indptr(self) -> Any:
        return self.block.indptr.astype(np.int32)

    def pieces(self, *values: Floats) -> Iterator[tuple[Any, ...]]:
        """Some people at a time: (how many, where their answers begin, their items), and their values in double."""
        indptr, items = self.indptr, np.asarray(self.block.items)
        for start, stop in person_chunks(self.block.indptr, PIECE):
            low, high = indptr[start], indptr[stop]
            doubles = (each[low:high].astype(np.float64, copy=False) for each in values)
            yield (stop - start, indptr[start : stop + 1] - low, items[low:high]), *doubles

    def filled(self, beta: Floats) -> Rows:
        """With P in the place of `score`, and c in `factor`, at these difficulties."""
        block, indptr, end = self.block, self.indptr, int(self.block.indptr[self.n_long])
        score, factor, theta = self.score, self.factor, self.theta.copy()
        if not len(score):
            score, factor = (np.empty(block.n_responses, dtype=self.precision) for _ in range(2))
        if self.n_long:
            people = slice(self.n_long)
            cells = (indptr[: self.n_long + 1], np.asarray(block.items[:end]), block.scores[people], theta[people])
            theta[people] = fill_given_score(*cells, beta, score[:end], factor[:end], self.precision)
        self.exact.fill(beta, score, factor)
        if self.silent is not None:
            score[self.silent], factor[self.silent] = block.right()[self.silent], 0.0
        return replace(self, theta=theta, score=score, factor=factor)

    def evaluated(self, beta: Floats) -> tuple[Rows, tuple[Floats, Floats, Floats]]:
        """The rows at other difficulties (their memory is used again), and sums of P - X, c C 1 and c^2 by item."""
        rows, right = self.filled(beta), self.block.right()
        probability, factor = rows.score, rows.factor
        if self.weight is not None:
            weight = np.repeat(self.weight, self.block.counts)
            probability *= weight
            factor *= np.sqrt(weight)
            probability -= right * weight
        else:
            probability -= right
        score, degree, square = np.zeros((3, self.n_items))
        for cells, x, c in rows.pieces(rows.score, factor):
            each = np.ones(cells[0])
            add_columns(cells, x, each, score)
            add_columns(cells, c, row_sums(cells, c, np.ones(self.n_items)), degree)
            add_columns(cells, c * c, each, square)
        return rows, (score, degree, square)

    def scores(self, tables: Any = None) -> Levels:
        return self._levels(self.score)

    def factors(self, tables: Any = None) -> Levels:
        return self._levels(self.factor)

    def _levels(self, values: Floats) -> Levels:
        own = values.astype(np.float64, copy=False)[None]
        return Levels(self.indptr, np.asarray(self.block.items), own, Thresholds.ones(self.n_items))

    def factors_twice(self, tables: Any, v: Floats) -> Floats:
        if v.ndim > 1:
            return self.factors().twice(v)
        total = np.zeros(self.n_items)
        for cells, factor in self.pieces(self.factor):
            add_columns(cells, factor, row_sums(cells, factor, v), total)
        return total

    def score_sums(self, tables: Any, v: Floats) -> tuple[Floats, Floats]:
        squares, twice = np.zeros((2, self.n_items))
        for cells, score in self.pieces(self.score):
            add_columns(cells, score * score, np.ones(cells[0]), squares)
            add_columns(cells, score, row_sums(cells, score, v), twice)
        return squares[:, None, None], twice


def prepare_people(responses: Responses, beta: Floats, allowed: float, weights: Floats | None = None) -> Prepared:
    """All people, ready to be evaluated; exact where the series would move an item by more than `allowed`."""
    people = responses.prepare(People.of, beta, persons=(weights,))
    answers = people.sum(_by_information)
    exact_below, _ = series_limit(answers, LIMITS, SERIES_ERROR / LIMITS**4, responses.item_counts, allowed)
    return people.prepare(Rows.of, exact_below, len(beta), SINGLE if allowed >= ROUGH else DOUBLE)


def _by_information(people: People) -> Floats:
    return answers_above(LIMITS, people.information, people.block.counts)
