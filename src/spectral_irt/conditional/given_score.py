"""Answers given the score: who takes which method, and what people and patterns need of it.

People whose answers carry much information take a series (`series_binary`, `series_tables`); the others are exact. Few
steps up or down take the `recursion`, all scores of one set of items its tree, and everything else the `contour` sum.
People of like length and score share a tile, a table that fits the cache of one core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.conditional.contour import Contour, Given, chances, rough_tilt
from spectral_irt.conditional.information import matched_factors
from spectral_irt.conditional.patterns import (
    MOST_SCORES,
    SHORT_ORDER,
    PatternPart,
    columns_of,
    end_of_tile,
    padded,
    pattern_parts,
    spans,
)
from spectral_irt.conditional.recursion import LEAST, by_fewer_steps, given_every_score
from spectral_irt.conditional.series_binary import DOUBLE, Precision, fill_given_score
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.same_items import same_rows
from spectral_irt.data.thresholds import Rows, Thresholds
from spectral_irt.model import LOGISTIC_VARIANCE, prox
from spectral_irt.sparse_kernels import csr, shared_ones

SERIES_FROM = 4.0  # information of a person at which the series is good to 7e-5 at worst, 5e-7 on average
FEW_PEOPLE = 0.25  # people per item below which the contour sum is cheaper: the recursion's steps are the items


# --------------------------------------------------------------------------------------- one tile


def given_score(
    cumulated: Floats, scores: Ints, most: Ints, theta: Floats | None = None, *, one_set: bool = False
) -> Given:
    """Answers of one tile of people (or patterns) given the score, exactly.

    Parameters
    ----------
    cumulated : categories x items x people
        Sums of thresholds up to the categories 1, 2, ...; +inf where an item has fewer, and for padding.
    scores, most : people
        The score, neither 0 nor the highest possible one; and that.
    theta : people, optional
        Abilities of which the scores are not too unlikely.
    one_set : bool
        Whether all have the same items, without padding.

    >>> found = given_score(np.array([[[-1.0], [0.0], [1.0]]]), np.array([1]), np.array([3]))
    >>> weight = np.exp([1.0, 0.0, -1.0])
    >>> bool(np.allclose(found.p[0, :, 0], weight / weight.sum()))
    True
    """
    width, n, people = cumulated.shape
    if one_set and people >= MOST_SCORES * (most[0] - 1):
        return given_every_score(cumulated[:, :, 0]).take(scores - 1)
    order = int(np.minimum(scores, most - scores).max())
    if order <= SHORT_ORDER * width and people >= FEW_PEOPLE * n:
        theta = rough_tilt(cumulated, scores, most)[0] if theta is None else theta
        start = chances(theta, cumulated)
        p, probability = by_fewer_steps(start, cumulated, scores, most)
        if probability.min() > LEAST:
            return Given(p, probability, start[0], scores, theta)
    return Contour.of(cumulated, scores, most).given


def part_given(part: PatternPart, cumulated: Floats) -> Given:
    return given_score(columns_of(part, cumulated), part.scores, part.max_scores, one_set=part.one_set)


def passed_given(part: PatternPart, cumulated: Floats) -> Floats:
    """P(X_i >= k | s) for k = 1, 2, ...: patterns x items x thresholds."""
    return np.ascontiguousarray(part_given(part, cumulated).passed.transpose(2, 1, 0))


# ------------------------------------------------------------------------ people who are to be exact


@dataclass(frozen=True, eq=False)
class Exact:
    """People of one block, of like order and then length; and where their answers stand among all of the block."""

    block: Block
    theta: Floats
    where: slice | Ints

    def fill(self, beta: Floats, probability: Floats, factor: Floats) -> None:
        """Write P and c of their answers where these stand."""
        if not self.block.n_persons:
            return
        if isinstance(self.where, slice):
            self._fill(beta, probability[self.where], factor[self.where])
            return
        p, c = np.empty((2, self.block.n_responses))
        self._fill(beta, p, c)
        probability[self.where], factor[self.where] = p, c

    def _fill(self, beta: Floats, probability: Floats, factor: Floats) -> None:
        block = self.block
        padded, counts, scores = np.append(beta, np.inf), block.counts, block.scores
        orders = np.minimum(scores, counts - scores)
        start = 0
        while start < block.n_persons:
            stop = end_of_tile(counts, orders, start)
            span = slice(int(block.indptr[start]), int(block.indptr[stop]))
            n = counts[start:stop]
            inside = np.arange(n.max()) < n[:, None]
            items = np.full(inside.shape, len(beta))
            items[inside] = block.items[span]
            b = np.ascontiguousarray(padded[items].T)
            p = given_score(b[None], scores[start:stop], n, self.theta[start:stop]).p[0]
            probability[span] = p.T[inside]
            factor[span] = matched_factors(p * (1 - p), n).T[inside]
            start = stop


# --------------------------------------------------------------------------------- blocks of people


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


def conditional_probabilities(
    block: Block, difficulty: Floats, *, series_from: float = np.inf, precision: Precision = DOUBLE
) -> Floats:
    """P(X_li = 1 | s_l) of every response, in the order of `block.items`; its conditional variance is P (1 - P).

    People with all answers right have 1, with all wrong 0. An item whose difficulty is not finite counts as not
    answered: the score leaves it out, and its P is NaN.

    Parameters
    ----------
    difficulty : float array, one an item
    series_from : number
        People whose answers carry so much information take the series of `series_binary`; by default none do.
    precision : float64 or float32
        What the series is computed in.

    >>> from spectral_irt.data import Responses
    >>> block = Responses.from_wide([[1, 0, 0], [1, 1, 1]]).blocks[0]
    >>> conditional_probabilities(block, np.zeros(3)).round(3).tolist()
    [0.333, 0.333, 0.333, 1.0, 1.0, 1.0]
    """
    known = np.isfinite(difficulty)[block.items]
    if not known.all():
        out = np.full(block.n_responses, np.nan)
        finite = np.isfinite(difficulty)
        code = np.where(finite, np.cumsum(finite) - 1, -1).astype(np.int32)
        rest = block.keep_items(code)
        options: Any = {"series_from": series_from, "precision": precision}
        out[known] = conditional_probabilities(rest, difficulty[finite], **options)
        return out
    out = np.repeat((block.scores > 0).astype(np.float64), block.counts)
    people = np.flatnonzero(block.informative)
    theta, information = rough_ability(block, people, difficulty)
    long = information >= series_from
    if long.any():
        _fill_by_series(block, people[long], theta[long], difficulty, out, precision)
    if not long.all():
        _fill_by_patterns(block, people[~long], difficulty, out)
    return out


def _fill_by_series(
    block: Block, people: Ints, theta: Floats, difficulty: Floats, out: Floats, precision: Precision
) -> None:
    every = len(people) == block.n_persons
    chosen = block if every else block.take(people)
    p = out if every else np.empty(chosen.n_responses)
    indptr, items = chosen.indptr.astype(np.int32), np.asarray(chosen.items)
    fill_given_score(indptr, items, chosen.scores, theta, difficulty, p, None, precision)
    if not every:
        out[spans(block.indptr[:-1][people], chosen.counts)] = p


def _fill_by_patterns(block: Block, people: Ints, difficulty: Floats, out: Floats) -> None:
    """Exact values, once for all who share a pattern."""
    chosen, layout = block.take(people), Thresholds.ones(len(difficulty))
    n = chosen.counts
    by_item = np.argsort((chosen.person_of_response() << 32) + chosen.items)
    patterns = same_rows(Rows(chosen.indptr, np.asarray(chosen.items)[by_item], n, chosen.scores, n), layout)
    start, shared = patterns.rows.indptr[:-1], np.empty(len(patterns.rows.items))
    for part in pattern_parts(patterns.rows, patterns.count, layout):
        p = part_given(part, padded(layout, difficulty)).p[0].T
        inside = np.arange(p.shape[1]) < part.counts[:, None]
        shared[spans(start[part.which], part.counts)] = p[inside]
    place = spans(block.indptr[:-1][people], n)
    out[place[by_item]] = shared[spans(start[patterns.of_person], n)]
