"""P(X_i = 1 | score) of right and wrong answers, person by person: by a series, at a fixed cost an answer, for people
with much information; exactly for the others. (People who share their items are the `SharedRows` of `information`.)

Given the score s, an answer competes with all the others of its person. With p_i the probability at any ability theta,
q = 1 - p and f the distribution of how many of the *other* answers are right,

    P_i = p_i f(s - 1) / ( p_i f(s - 1) + q_i f(s) ).

The number of other right answers is a sum of independent zeros and ones. Its distribution is the Edgeworth series with
the cumulants 2 to 6 of the row less those of cell i, to fourth order. It depends on the item through p_i alone, so it
is computed for six values of p per person (Chebyshev's points), and (P - p) / (p q) in between is the polynomial of
degree five through them: no logarithm, no exponential and no division per answer. theta need not be exact, because the
distance d = s - sum p stands in the density.

Error of P by the person's information V = sum p q, the largest and the mean with sign (benchmarks/newton.py): 2e-2 and
1.5e-4 at V of 1 to 2, 2e-3 and 2e-5 at 2 to 4, 7e-5 and 5e-7 at 4 to 10, and 2e-6 and 3e-8 beyond.

Kolassa (2006), Series Approximation Methods in Statistics, ch. 3 (the series and its Hermite polynomials)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.exact import answers_above, dtype_for, given_score, matched_factors, series_limit, tiles
from spectral_irt.conditional.information import BinarySums, PeopleRows, ThresholdRows
from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, person_chunks, spans
from spectral_irt.engine import Prepared
from spectral_irt.numerics import Places, add_columns, chosen_or_none, fill_scaled, row_sums

SPAN = 2**19  # bytes that one number per answer takes, for the answers of one go: they stay in a core's cache
NODES = 6  # Chebyshev's points at which the ratio is computed
NEAR = 0.3  # standard deviations of the score within which the ability is left as it is
TRIES = 30  # of bringing an ability there
SERIES_ERROR = 6e-4  # times V^-4: the error of the series for a person of information V (benchmarks/newton.py)
LIMITS = np.concatenate([np.arange(1.0, 8.0, 0.25), [np.inf]])  # information below which people may be exact
IN_PLACE = 0.05  # share of answers without the series up to which computing it for nothing is cheaper than a copy
PIECE = 131_072  # answers at a time in a sum over what is kept: their doubles fit the cache of a core

_points = np.cos(np.pi * (2 * np.arange(NODES) + 1) / (2 * NODES))  # of 2p - 1
_TO_POLYNOMIAL = np.linalg.inv(np.vander(_points, increasing=True))  # values at the points -> coefficients


def fill_given_score(
    indptr: Places, items: Places, scores: Ints, theta: Floats, beta: Floats, probability: Floats, factor: Floats | None
) -> Floats:
    """Write P(X = 1 | s) and the c of the matched information (unless `factor` is None) for every answer. Returns the
    abilities that were used. Those of `theta` may be rough; NaN for people whom the series is not for: then what is
    written for them is. As precise as `probability`; single precision adds about 1e-7 to the error."""
    precision = probability.dtype
    pi = np.exp(beta).astype(precision)
    theta = theta.astype(precision)
    span = SPAN // precision.itemsize
    space = np.empty((2, span), dtype=precision)
    for start, stop in person_chunks(indptr.astype(np.int64), span):
        low = indptr[start]
        high = indptr[stop]
        rows = indptr[start : stop + 1] - low
        counts = np.diff(rows)
        some = slice(start, stop)
        p, v = space[:, : high - low] if high - low <= span else np.empty((2, high - low), dtype=precision)
        distance, information = _settle(rows, items[low:high], pi, scores[some], theta[some], p, v)
        center = p * 2
        center -= 1
        polynomial = _series(rows, distance, information, v, center)
        ratio = np.repeat(polynomial[-1], counts)
        for coefficient in polynomial[-2::-1]:
            ratio *= center
            ratio += np.repeat(coefficient, counts)
        ratio *= v
        p += ratio
        np.clip(p, 0.0, 1.0, out=p)
        probability[low:high] = p
        if factor is not None:
            _fill_factors(rows, counts, p, v)
            factor[low:high] = v
    return theta.astype(np.float64)


def _fill_factors(rows: Places, counts: Ints, p: Floats, c: Floats) -> None:
    """Write c with c_i sum_{j != i} c_j = p_i (1 - p_i): as `matched_factors`, but two rounds do for long rows."""
    np.subtract(1, p, out=c)
    c *= p
    variance = np.add.reduceat(c, rows[:-1])
    others = (counts / np.maximum(counts - 1, 1)).astype(c.dtype)
    first = c / np.repeat(np.sqrt(variance / others), counts)
    total = np.sqrt(variance + np.add.reduceat(first * first, rows[:-1]))
    np.subtract(np.repeat(total, counts), first, out=first)
    c /= first


def _settle(
    rows: Places, items: Places, pi: Floats, scores: Ints, theta: Floats, p: Floats, v: Floats
) -> tuple[Floats, Floats]:
    """Write p and p q of every answer, at abilities that put the expected score near the true one (mended in place);
    return what is missing to each score, and V = sum of p q."""
    for _ in range(TRIES):
        fill_scaled(rows, items, np.exp(-theta), pi, v)
        np.add(v, 1, out=p)
        np.reciprocal(p, out=p)
        v *= p
        v *= p
        information = np.add.reduceat(v, rows[:-1])
        distance = (scores - np.add.reduceat(p, rows[:-1])).astype(p.dtype)
        far = np.abs(distance) > NEAR * np.sqrt(information)
        if not far.any():
            break
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            theta += np.where(far, np.clip(distance / information, -2, 2), 0.0)
    return distance, information


def _series(rows: Places, distance: Floats, total: Floats, v: Floats, center: Floats) -> Floats:
    """Coefficients of (P - p) / (p q) as a polynomial in 2p - 1, for every person."""
    skew = v * center
    square = v * v
    s3, s4, s5, s6 = (np.add.reduceat(power, rows[:-1]) for power in (skew, square, skew * v, square * v))
    c = _points[:, None].astype(v.dtype)
    w = (1 - c * c) / 4
    # Cumulants of the other answers: those of a zero or one are v, -v c, v (1 - 6 v), -v c (1 - 12 v), ...
    k2 = total - w
    k3 = c * w - s3
    k4 = (total - 6 * s4) - w * (1 - 6 * w)
    k5 = c * w * (1 - 12 * w) - (s3 - 12 * s5)
    k6 = (total - 30 * s4 + 120 * s6) - w * (1 - 30 * w + 120 * w * w)
    inverse = 1 / k2
    unit = np.sqrt(inverse)
    series = _log_series(k3 * inverse * unit, k4 * inverse**2, k5 * inverse**2 * unit, k6 * inverse**3)
    if_right = (distance - (1 - c) / 2) * unit
    if_wrong = (distance + (1 + c) / 2) * unit
    # p f(s-1) / (p f(s-1) + q f(s)) - p = p q (r - 1) / (p r + q) with r = f(s-1) / f(s)
    r = np.exp((distance + c / 2) * inverse + _horner(series, if_right) - _horner(series, if_wrong))
    return _TO_POLYNOMIAL.astype(v.dtype) @ ((r - 1) / ((1 + c) / 2 * r + (1 - c) / 2))


def _log_series(l3: Floats, l4: Floats, l5: Floats, l6: Floats) -> tuple[Floats, ...]:
    """Coefficients of z, ..., z^6 in the logarithm of 1 + l3 He3 / 6 + (l4 He4 / 24 + l3^2 He6 / 72) + ... To fourth
    order a polynomial of degree 6 remains. It cannot turn negative, as the Edgeworth series itself can."""
    l33 = l3 * l3
    l34 = l3 * l4
    l35 = l3 * l5
    l44 = l4 * l4
    l333 = l33 * l3
    l334 = l33 * l4
    l3333 = l33 * l33
    return (
        -l3 / 2 + 5 / 8 * l333 - 2 / 3 * l34 + l5 / 8,
        l33 / 2 - l4 / 4 - 25 / 16 * l3333 + 109 / 48 * l334 - 25 / 48 * l35 - l44 / 3 + l6 / 16,
        l3 / 6 - 2 / 3 * l333 + 7 / 12 * l34 - l5 / 12,
        l4 / 24 - l33 / 8 + l3333 - 59 / 48 * l334 + 11 / 48 * l35 + 7 / 48 * l44 - l6 / 48,
        l333 / 8 - l34 / 12 + l5 / 120,
        7 / 48 * (l334 - l3333) - l35 / 48 - l44 / 72 + l6 / 720,
    )


def _horner(coefficients: tuple[Floats, ...], z: Floats) -> Floats:
    """sum_k coefficient_k z^k, k = 1, 2, ..."""
    total = coefficients[-1] * z
    for coefficient in coefficients[-2::-1]:
        total += coefficient
        total *= z
    return total


@dataclass(frozen=True, eq=False)
class RoughPeople:
    """The people of a block with rough abilities and the information of their answers (0 for extreme scores), and how
    much each counts."""

    block: Block
    theta: Floats
    information: Floats
    weight: Floats | None


@dataclass(frozen=True, eq=False)
class SeriesRows(PeopleRows):
    """The people of one block, to be evaluated at difficulties. `score` and `factor` hold P - X and c of every answer
    at the last evaluation, times the person's weight and its root. The first `n_long` people take the series, except
    those whose `theta` is NaN: they have an extreme score and `silent` answers, or are exact: the `short` block (of
    like order and then length), whose answers stand `where`. So, where nearly all take it, people stay where they are
    and no answer is copied; elsewhere the exact ones come last."""

    block: Block
    n_long: int
    theta: Floats
    short: Block
    short_theta: Floats
    where: Places
    silent: Ints
    weight: Floats | None
    n_items: int
    score: Floats  # as precise as is asked for; of no answers before the first evaluation
    factor: Floats

    @classmethod
    def of(cls, people: RoughPeople, exact_below: float, n_items: int, precision: Any) -> SeriesRows:
        """People with information below `exact_below` are to be exact."""
        block = people.block
        theta = people.theta
        weight = people.weight
        is_exact = people.information < exact_below
        informative = block.informative
        long = np.flatnonzero(informative & ~is_exact)
        short = np.flatnonzero(informative & is_exact)
        counts = block.counts[short]
        order_of_score = np.minimum(block.scores[short], counts - block.scores[short])
        short = short[np.lexsort((counts, order_of_score))]
        nothing = np.empty(0, dtype=precision)
        n_answers_of_long = int(block.counts[long].sum())
        if n_answers_of_long < (1 - IN_PLACE) * block.n_responses or not block.counts.all():
            order = np.concatenate([long, short])
            n_answers = n_answers_of_long + int(counts.sum())
            return cls(
                block=block.take(order),
                n_long=len(long),
                theta=theta[order],
                short=block.take(short),
                short_theta=theta[short],
                where=np.arange(n_answers_of_long, n_answers).astype(np.int32),
                silent=np.empty(0, dtype=np.int64),
                weight=chosen_or_none(weight, order),
                n_items=n_items,
                score=nothing,
                factor=nothing,
            )
        extreme = np.flatnonzero(~informative)
        starts = block.indptr[:-1]
        return cls(
            block=block,
            n_long=block.n_persons,
            theta=np.where(is_exact, np.nan, theta),
            short=block.take(short),
            short_theta=theta[short],
            where=spans(starts[short], block.counts[short]).astype(np.int32),
            silent=spans(starts[extreme], block.counts[extreme]),
            weight=weight,
            n_items=n_items,
            score=nothing,
            factor=nothing,
        )

    @property
    def indptr(self) -> Any:
        return self.block.indptr.astype(np.int32)

    def pieces(self, *values: Floats) -> Iterator[tuple[Any, ...]]:
        """Some people at a time: (how many, where their answers begin, their items), and their values in double."""
        indptr = self.indptr
        items = np.asarray(self.block.items)
        for start, stop in person_chunks(self.block.indptr, PIECE):
            low = indptr[start]
            high = indptr[stop]
            doubles = (value[low:high].astype(np.float64, copy=False) for value in values)
            yield (stop - start, indptr[start : stop + 1] - low, items[low:high]), *doubles

    def evaluate(self, beta: Floats) -> tuple[SeriesRows, BinarySums]:
        """The rows at other difficulties (their memory is used again), and their sums."""
        block = self.block
        x = self.score
        c = self.factor
        if not len(x):
            x, c = np.empty((2, block.n_responses), dtype=x.dtype)
        theta = self.theta.copy()
        n = self.n_long
        if n:
            end = int(block.indptr[n])
            items = np.asarray(block.items[:end])
            theta[:n] = fill_given_score(
                self.indptr[: n + 1], items, block.scores[:n], theta[:n], beta, x[:end], c[:end]
            )
        self._fill_exact(beta, x, c)
        right = block.right()
        x[self.silent] = right[self.silent]
        c[self.silent] = 0.0
        if self.weight is not None:
            weight = np.repeat(self.weight, block.counts)
            x *= weight
            c *= np.sqrt(weight)
            x -= right * weight
        else:
            x -= right
        rows = replace(self, theta=theta, score=x, factor=c)
        return rows, rows._sums()

    def _sums(self) -> BinarySums:
        sums = BinarySums(*np.zeros((3, self.n_items)))
        for cells, score, factor in self.pieces(self.score, self.factor):
            ones = np.ones(cells[0])
            add_columns(cells, score, ones, sums.score)
            add_columns(cells, factor, row_sums(cells, factor, np.ones(self.n_items)), sums.degree)
            add_columns(cells, factor * factor, ones, sums.square)
        return sums

    def _fill_exact(self, beta: Floats, probability: Floats, factor: Floats) -> None:
        """Write P and c of the answers of people who are exact."""
        block = self.short
        padded = np.append(beta, np.inf)
        for start, stop in tiles(block.counts, np.minimum(block.scores, block.counts - block.scores)):
            answers = slice(int(block.indptr[start]), int(block.indptr[stop]))
            counts = block.counts[start:stop]
            inside = np.arange(counts.max()) < counts[:, None]
            items = np.full(inside.shape, len(beta))
            items[inside] = block.items[answers]
            b = np.ascontiguousarray(padded[items].T)
            p = given_score(b[None], block.scores[start:stop], counts, self.short_theta[start:stop]).p[0]
            place = self.where[answers]
            probability[place] = p.T[inside]
            factor[place] = matched_factors(p * (1 - p), counts).T[inside]

    def scores(self, tables: Any = None) -> ThresholdRows:
        return self._threshold_rows(self.score)

    def factors(self, tables: Any = None) -> ThresholdRows:
        return self._threshold_rows(self.factor)

    def _threshold_rows(self, values: Floats) -> ThresholdRows:
        doubles = values.astype(np.float64, copy=False)[None]
        return ThresholdRows(self.indptr, np.asarray(self.block.items), doubles, Thresholds.ones(self.n_items))

    def factors_twice(self, tables: Any, v: Floats) -> Floats:
        if v.ndim > 1:
            return super().factors_twice(tables, v)
        total = np.zeros(self.n_items)
        for cells, factor in self.pieces(self.factor):
            add_columns(cells, factor, row_sums(cells, factor, v), total)
        return total

    def score_sums(self, tables: Any, v: Floats) -> tuple[Floats, Floats]:
        squares = np.zeros(self.n_items)
        twice = np.zeros(self.n_items)
        for cells, score in self.pieces(self.score):
            add_columns(cells, score * score, np.ones(cells[0]), squares)
            add_columns(cells, score, row_sums(cells, score, v), twice)
        return squares[:, None, None], twice


def prepare_people(responses: Responses, beta: Floats, allowed: float, weights: Floats | None = None) -> Prepared:
    """All people, ready to be evaluated; exact where the series would move an item by more than `allowed`."""
    people = responses.prepare(with_abilities, beta, persons=(weights,))
    answers = people.sum(_by_information)
    exact_below, _ = series_limit(answers, LIMITS, SERIES_ERROR / LIMITS**4, responses.item_counts, allowed)
    return people.prepare(SeriesRows.of, exact_below, len(beta), dtype_for(allowed))


def with_abilities(block: Block, weight: Floats | None, beta: Floats) -> RoughPeople:
    """The people of a block at these difficulties."""
    theta, information = prox_ability(block, beta)
    return RoughPeople(block, theta, information, weight)


def _by_information(people: RoughPeople) -> Floats:
    """How many answers people of more information than each of the limits gave, and of less than the next."""
    return answers_above(LIMITS, people.information, people.block.counts)
