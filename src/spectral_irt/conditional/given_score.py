"""Answers given the score: who takes which method, and what people and patterns need of it.

People whose answers carry much information take a series (`series_binary`, `series_tables`); the others are `exact`:
few steps up or down take the recursion, all scores of one set of items the tree, everything else the contour sum.
People who agree in items and score have one pattern and share one computation. Patterns of like length and score are
laid out in tiles that fit the cache of a core, by the patterns alone: results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.exact import (
    LEAST,
    Contour,
    Given,
    by_fewer_steps,
    chances,
    given_every_score,
    rough_tilt,
    tilt,
)
from spectral_irt.conditional.information import matched_factors
from spectral_irt.conditional.series_binary import DOUBLE, Precision, fill_given_score
from spectral_irt.conditional.series_tables import passed_by_series
from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, rows_of, spans
from spectral_irt.data.same_items import row_keys, same_rows

SERIES_FROM = 4.0  # information of a person at which the series is good to 7e-5 at worst, 5e-7 on average
FEW_PEOPLE = 0.25  # people per item below which the contour sum is cheaper: the recursion's steps are the items
TILE_CELLS = 131_072  # numbers of a table: a megabyte, which the second cache of a core holds
MANY = 64  # people in a tile where there are so many of their kind
ALIKE = 1.3  # lengths within this factor share a tile
SHORT_ORDER = 16  # steps up or down, per threshold of the widest item, up to which the recursion is cheapest
MOST_SCORES = 0.25  # of all scores of a set, from which on the tree is cheapest: it gives them all
SEVERAL = 8  # patterns of a set that are a tile of their own, with so many of its scores
TREE_CELLS = 2_000_000  # thresholds x scores of such a set, at most


def tiles(counts: Ints, orders: Ints, width: int = 1) -> Iterator[tuple[int, int]]:
    """Where each begins and ends: as many people as fit the cache, of lengths and orders (fewest steps up or down) near
    those of the first."""
    start = 0
    while start < len(counts):
        first, short = int(orders[start]), int(orders[start]) <= SHORT_ORDER * width
        size = int(counts[start]) * (first + 1 if short else 4 * (width + 1))
        ahead = slice(start, start + max(MANY, TILE_CELLS // size))
        n, order = counts[ahead], orders[ahead]
        unlike = (n > ALIKE * n[0]) | (n < n[0] / ALIKE) | ((order <= SHORT_ORDER * width) != short)
        unlike |= order > (first + 2 * width if short else ALIKE * first)
        stop = start + (int(np.argmax(unlike)) if unlike.any() else len(n))
        yield start, stop
        start = stop


def by_order(counts: Ints, scores: Ints, most: Ints) -> Ints:
    """People in the order in which they share tiles."""
    return np.lexsort((counts, np.minimum(scores, most - scores)))


@dataclass(frozen=True, eq=False)
class PatternPart:
    """Patterns of like length and score, or many scores of one set: `which` of all patterns they are.

    Items are padded with one that has no thresholds.
    """

    which: Ints
    items: NDArray[np.int32]
    counts: Ints
    scores: Ints
    max_scores: Ints
    people: Floats
    one_set: bool

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Patterns x items: where there is no padding."""
        return np.arange(self.items.shape[1]) < self.counts[:, None]


def by_item(rows: Rows) -> tuple[Rows, Ints]:
    """The same rows with the items of each in increasing order, and where these answers stood."""
    order = np.argsort((np.repeat(np.arange(rows.n_persons), rows.counts) << 32) + rows.items)
    category = None if rows.category is None else rows.category[order]
    return replace(rows, items=rows.items[order], category=category), order


def pattern_parts(rows: Rows, people: Ints, layout: Thresholds) -> list[PatternPart]:
    """The patterns of people whose total score is neither the lowest nor the highest, in tiles."""
    who = np.flatnonzero(rows.informative)
    counts, most = rows.counts[who], rows.max_scores[who]
    keys = row_keys(rows, layout, np.zeros_like(rows.scores))[who]
    _, of_set, size = np.unique(keys, return_inverse=True, return_counts=True)
    size = size[of_set]
    shared = (size >= np.maximum(MOST_SCORES * (most - 1), SEVERAL)) & (counts * layout.widest * most <= TREE_CELLS)
    sets = np.flatnonzero(shared)[np.argsort(of_set[shared], kind="stable")]
    ends = np.flatnonzero(np.diff(of_set[sets])) + 1
    parts = [_part(rows, who[one], people, layout, True) for one in np.split(sets, ends) if len(one)]
    who = who[~shared]
    who = who[by_order(rows.counts[who], rows.scores[who], rows.max_scores[who])]
    counts, orders = rows.counts[who], np.minimum(rows.scores, rows.max_scores - rows.scores)[who]
    alike = tiles(counts, orders, layout.widest)
    return parts + [_part(rows, who[start:stop], people, layout, False) for start, stop in alike]


def _part(rows: Rows, which: Ints, people: Ints, layout: Thresholds, one_set: bool) -> PatternPart:
    mine = rows.take(which)
    items = np.full((len(which), int(mine.counts.max())), layout.n_items, dtype=np.int32)
    if one_set:  # the same items, in any order
        items[:] = mine.items[: mine.counts[0]]
    else:
        place = np.arange(len(mine.items)) - np.repeat(mine.indptr[:-1], mine.counts)
        items[np.repeat(np.arange(len(which)), mine.counts), place] = mine.items
    return PatternPart(which, items, mine.counts, mine.scores, mine.max_scores, people[which].astype(float), one_set)


def padded(layout: Thresholds, thresholds: Floats) -> Floats:
    """Cumulated thresholds, with a last row for the padding."""
    cumulated = layout.cumulated(thresholds)
    nothing = np.full((1, cumulated.shape[1]), np.inf)
    nothing[0, 0] = 0.0
    return np.concatenate([cumulated, nothing])


def threshold_codes(layout: Thresholds) -> Ints:
    """Items (and padding) x thresholds: the code of each threshold, or one past the last where there is none."""
    codes = np.full((layout.n_items + 1, layout.widest), layout.n_entries)
    codes[layout.item, layout.level - 1] = np.arange(layout.n_entries)
    return codes


def columns_of(part: PatternPart, cumulated: Floats, some: slice = slice(None)) -> Floats:
    """Sums of thresholds as the methods of this room take them: categories x items x patterns."""
    return cumulated.T[1:, part.items[some].T]


def given_score(
    cumulated: Floats, scores: Ints, most: Ints, theta: Floats | None = None, *, one_set: bool = False
) -> Given:
    """Answers of one tile of people (or patterns) given the score, exactly; `most` is the highest possible one.

    `theta` are abilities of which the scores are not too unlikely; `one_set`: all have the same items, without padding.
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


def part_passed(part: PatternPart, cumulated: Floats, series_from: float = np.inf) -> tuple[Floats, Floats]:
    """P(X_i >= k | s), levels x items x patterns, and log gamma; by the series, without it, where all have so many
    equal answers."""
    columns = columns_of(part, cumulated)
    if series_from < np.inf and not part.one_set:
        _, p, variance = tilt(columns, part.scores, part.max_scores)
        k = np.arange(len(p), dtype=float)
        each = np.tensordot(k**2, p, 1) - np.tensordot(k, p, 1) ** 2
        size = np.minimum(variance, variance**2 / np.maximum((each**2).sum(axis=0), 1e-300))
        if size.min() >= series_from:
            return passed_by_series(p, part.scores), np.full(len(part.scores), np.nan)
    found = given_score(columns, part.scores, part.max_scores, one_set=part.one_set)
    return found.passed, found.log_gamma


@dataclass(frozen=True, eq=False)
class Exact:
    """People of one block, of like order and then length; and where their answers stand among all of the block."""

    block: Block
    theta: Floats
    where: NDArray[np.int32]

    def fill(self, beta: Floats, probability: Floats, factor: Floats) -> None:
        """Write P and c of their answers where these stand."""
        block = self.block
        padded, counts, scores = np.append(beta, np.inf), block.counts, block.scores
        for start, stop in tiles(counts, np.minimum(scores, counts - scores)):
            span = slice(int(block.indptr[start]), int(block.indptr[stop]))
            n, there = counts[start:stop], self.where[span]
            inside = np.arange(n.max()) < n[:, None]
            items = np.full(inside.shape, len(beta))
            items[inside] = block.items[span]
            b = np.ascontiguousarray(padded[items].T)
            p = given_score(b[None], scores[start:stop], n, self.theta[start:stop]).p[0]
            probability[there] = p.T[inside]
            factor[there] = matched_factors(p * (1 - p), n).T[inside]


def answers_above(limits: Floats, values: Floats, counts: Ints) -> Floats:
    """Answers of people whose value lies above each of the limits, and below the next."""
    place = np.searchsorted(limits, values, side="right") - 1
    counts = np.where(place < 0, 0, counts)
    return np.bincount(np.maximum(place, 0), weights=counts, minlength=len(limits)).astype(np.float64)


def series_limit(
    answers: Floats, limits: Floats, error: Floats, item_counts: Ints, allowed: float
) -> tuple[float, float]:
    """The limit from which on a series moves no item by more than `allowed` standard errors; the share below it.

    An `error` of an answer, on average with sign, moves an item of n answers of information .18 each by sqrt(n / .18)
    times as many standard errors; the item with most answers is looked at.
    """
    total = max(answers.sum(), 1)
    off = answers * error * np.sqrt(item_counts.max(initial=0) / 0.18) / total
    limit = limits[np.argmax(np.cumsum(off[::-1])[::-1] <= allowed)]
    return float(limit), float(answers[limits < limit].sum() / total)


def conditional_probabilities(
    block: Block, difficulty: Floats, *, series_from: float = np.inf, precision: Precision = DOUBLE
) -> Floats:
    """P(X_li = 1 | s_l) of every response, in the order of `block.items`; its conditional variance is P (1 - P).

    People with all answers right have 1, with all wrong 0. An item whose difficulty is not finite counts as not
    answered: the score leaves it out, and its P is NaN. People with information of `series_from` take the series.

    >>> from spectral_irt.data import Responses
    >>> block = Responses.from_wide([[1, 0, 0], [1, 1, 1]]).blocks[0]
    >>> conditional_probabilities(block, np.zeros(3)).round(3).tolist()
    [0.333, 0.333, 0.333, 1.0, 1.0, 1.0]
    """
    finite = np.isfinite(difficulty)
    known = finite[block.items]
    if not known.all():
        out = np.full(block.n_responses, np.nan)
        rest = block.keep_items(np.where(finite, np.cumsum(finite) - 1, -1).astype(np.int32))
        out[known] = conditional_probabilities(rest, difficulty[finite], series_from=series_from, precision=precision)
        return out
    out = np.repeat((block.scores > 0).astype(np.float64), block.counts)
    people = np.flatnonzero(block.informative)
    theta, information = (each[people] for each in prox_ability(block, difficulty))
    long = information >= series_from
    if long.any():
        some = block.take(people[long])
        p, indptr = np.empty(some.n_responses), some.indptr.astype(np.int32)
        fill_given_score(indptr, np.asarray(some.items), some.scores, theta[long], difficulty, p, None, precision)
        out[spans(block.indptr[:-1][people[long]], some.counts)] = p
    if not long.all():
        _fill_by_patterns(block, people[~long], difficulty, out)
    return out


def _fill_by_patterns(block: Block, people: Ints, difficulty: Floats, out: Floats) -> None:
    """Exact values, once for all who share a pattern."""
    layout = Thresholds.ones(len(difficulty))
    rows, order = by_item(rows_of(block, layout).take(people))
    patterns = same_rows(rows, layout)
    start, shared = patterns.rows.indptr[:-1], np.empty(len(patterns.rows.items))
    for part in pattern_parts(patterns.rows, patterns.count, layout):
        p = part_given(part, padded(layout, difficulty)).p[0].T
        shared[spans(start[part.which], part.counts)] = p[part.inside]
    place = spans(block.indptr[:-1][people], rows.counts)
    out[place[order]] = shared[spans(start[patterns.of_person], rows.counts)]
