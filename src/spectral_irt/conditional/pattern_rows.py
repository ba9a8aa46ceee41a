"""Answers given the score, exactly: people with little information, patterns that repeat, and the exact likelihood.

What depends on the items answered and the score alone is computed once for a pattern of these, for any number of
categories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.exact import Contour, n_points
from spectral_irt.conditional.given_score import (
    PatternPart,
    by_item,
    columns_of,
    padded,
    part_passed,
    pattern_parts,
    threshold_codes,
)
from spectral_irt.conditional.information import Levels, PeopleRows, Point, balanced, matched_factors, passed_counts
from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, rows_of, spans
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import distinct_rows, same_rows
from spectral_irt.engine import Prepared
from spectral_irt.numerics import csr, onto_items

CELLS = 300_000  # patterns x thresholds x points of the pairs at a time: some ten megabytes
SHORT = 24  # thresholds; below, the pairs of many patterns are added at once, above, pattern by pattern
NOBODY: Any = np.empty(0, dtype=np.int64)
EXACT_WORK = 2e10  # multiplications that the exact information may cost
EXACT_PAIRS = 5e7  # pairs of items, summed over patterns, that it may have: a few seconds


@dataclass(frozen=True, eq=False)
class PatternRows(PeopleRows):
    """Patterns of items and score, and the people who have them, who count by their weights.

    `expected` is P(X >= k | s), `factor` c, times the root of how many people have the pattern; `of_person` is the
    pattern of each person, `category` that of each answer, by person and item. People whose answers count as
    `series_from` equal ones have a series; nobody by default.
    """

    layout: Thresholds
    patterns: list[PatternPart]
    indptr: NDArray[np.int32]
    items: NDArray[np.int32]
    expected: Levels | None = None
    factor: Levels | None = None
    of_person: Ints | None = None
    category: NDArray[np.int16] | None = None
    weight: Floats | None = None
    series_from: float = np.inf

    @classmethod
    def of_patterns(cls, patterns: list[PatternPart], layout: Thresholds) -> PatternRows:
        """The patterns alone, by whose numbers of people sums are."""
        items = np.concatenate([NOBODY, *(part.items[part.inside] for part in patterns)])
        counts = np.concatenate([NOBODY, *(part.counts for part in patterns)])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return cls(layout, patterns, indptr.astype(np.int32), items.astype(np.int32))

    @classmethod
    def of(cls, rows: Rows, weight: Floats | None, layout: Thresholds) -> PatternRows:
        """People without extreme scores."""
        rows, _ = by_item(rows)
        found = same_rows(rows, layout)
        count = found.count if weight is None else np.bincount(found.of_person, weights=weight)
        parts = pattern_parts(found.rows, count, layout)
        which = np.concatenate([NOBODY, *(part.which for part in parts)])
        rank = np.empty(len(which), dtype=np.int64)
        rank[which] = np.arange(len(which))
        made = cls.of_patterns(parts, layout)
        return replace(made, of_person=rank[found.of_person], category=rows.category, weight=weight)

    def evaluated(self, cumulated: Floats) -> tuple[PatternRows, tuple[Any, ...]]:
        """At other thresholds; and sums of log gamma, P(X >= k | s), D and c c' of every item, and C' C 1."""
        layout = self.layout
        nothing = np.empty((layout.widest, 0))
        pieces = [_given(part, cumulated, self.series_from) for part in self.patterns]
        passed, c = (np.concatenate([nothing, *(piece[k] for piece in pieces)], axis=1) for k in (0, 1))
        people = np.concatenate([np.empty(0), *(part.people for part in self.patterns)])
        each = np.repeat(people, np.diff(self.indptr))
        c *= np.sqrt(each)
        expected, factor = (Levels(self.indptr, self.items, values, layout) for values in (passed, c))
        matrix = factor.once()
        sums = (
            float(sum(piece[2] for piece in pieces)),
            onto_items(expected.once(), people),
            expected.squares(each * (1 - passed)),
            factor.squares(),
            onto_items(matrix, matrix @ np.ones(layout.n_entries)),
        )
        return replace(self, expected=expected, factor=factor), sums

    def scores(self, tables: Any = None) -> Levels:
        assert self.expected is not None
        starts, counts = self.indptr[:-1].astype(np.int64)[self.of_person], np.diff(self.indptr)[self.of_person]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        where = spans(starts, counts)
        own = Levels(indptr, self.items[where], self.expected.values[:, where], self.layout)
        return own.less_passed(self.category, self.weight)

    def factors(self, tables: Any = None) -> Levels:
        assert self.factor is not None
        return self.factor


def people_of(block: Block, weight: Floats | None, layout: Thresholds, series_from: float = np.inf) -> PatternRows:
    """The people of a block without extreme scores."""
    rows = rows_of(block, layout)
    if layout.binary:
        rows = replace(rows, category=block.right().astype(np.int16))
    who = np.flatnonzero(rows.informative)
    made = PatternRows.of(rows.take(who), None if weight is None else weight[who], layout)
    return replace(made, series_from=series_from)


def people_given(block: Block, layout: Thresholds, beta: Floats) -> PatternRows:
    """The people of a block without extreme scores, at these thresholds."""
    return people_of(block, None, layout).evaluated(padded(layout, beta))[0]


def residuals(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), people x thresholds, in the order of the block; nothing for extreme scores."""
    who = np.flatnonzero(rows_of(block, layout).informative)
    scores = people_given(block, layout, beta).scores().matrix
    indptr = np.zeros(block.n_persons + 1, dtype=np.int32)
    indptr[who + 1] = np.diff(scores.indptr)
    return csr(np.cumsum(indptr, dtype=np.int32), scores.indices, -scores.data, layout.n_entries)


def _given(part: PatternPart, cumulated: Floats, series_from: float) -> tuple[Floats, Floats, float]:
    """P(X >= k | s) and c of the answers of every pattern, levels x answers; and the sum of log gamma."""
    passed, log_gamma = part_passed(part, cumulated, series_from)  # levels x items x patterns
    n = np.arange(1.0, len(passed) + 1)[:, None, None]
    # sum over k' of P(X >= max(k, k')) = (k) P(X >= k) + sum over k' > k of P(X >= k')
    higher = passed.sum(axis=0) - np.cumsum(passed, axis=0)
    w = n * passed + higher - passed * passed.sum(axis=0)
    variance = w.sum(axis=0)
    s = matched_factors(variance, part.counts)
    rest = s.sum(axis=0) - s
    c = w * np.divide(1.0, rest, out=np.zeros_like(rest), where=(rest > 0) & (variance > 0))
    inside = part.inside
    return passed.swapaxes(1, 2)[:, inside], c.swapaxes(1, 2)[:, inside], float(part.people @ log_gamma)


def contours(part: PatternPart, cumulated: Floats) -> Iterator[tuple[slice, Contour]]:
    """Some patterns at a time, with the contour sums that pairs of items need."""
    width = cumulated.shape[1] - 1
    points = int(n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)[1].max())
    size = max(1, CELLS // (part.items.shape[1] * points * width))
    for start in range(0, len(part.scores), size):
        some = slice(start, start + size)
        yield some, Contour.of(columns_of(part, cumulated, some), part.scores[some], part.max_scores[some])


def exact_information(part: PatternPart, cumulated: Floats, codes: Ints) -> Floats:
    """sum of Cov(1{X_i >= k}, 1{X_j >= k'} | s), thresholds x thresholds; `cumulated` is `padded`."""
    n = int(codes.max())
    total = np.zeros((n + 1, n + 1))  # the last row and column take the padding
    items, width = part.items.shape[1], cumulated.shape[1] - 1
    level = np.arange(width)
    higher = np.maximum(level[:, None], level)
    own = np.arange(items)[:, None, None] * width
    block = (own + level[:, None] + 0 * level, own + level + 0 * level[:, None])  # thresholds of one item
    for some, sums in contours(part, cumulated):
        people = part.people[some, None, None]
        passed = sums.given.passed.transpose(2, 1, 0)
        within = (passed[:, :, higher] - passed[:, :, :, None] * passed[:, :, None, :]) * people[..., None]
        flat = passed.reshape(len(passed), items * width, 1)
        real, imaginary = (factor.reshape(len(passed), items * width, -1) for factor in sums.pair_factors())
        left = np.concatenate([real, imaginary, flat], axis=2)
        right = np.concatenate([real, -imaginary, -flat], axis=2) * people
        where = codes[part.items[some]].reshape(len(passed), -1)
        if part.one_set:
            pairs = np.tensordot(left, right, axes=([0, 2], [0, 2]))
            pairs[block] = within.sum(axis=0)
            total[np.ix_(where[0], where[0])] += pairs
        elif items * width < SHORT:
            pairs = left @ right.transpose(0, 2, 1)
            pairs[(slice(None), *block)] = within
            np.add.at(total.reshape(-1), where[:, :, None] * len(total) + where[:, None, :], pairs)
        else:
            for row, here in enumerate(where):
                pairs = left[row] @ right[row].T
                pairs[block] = within[row]
                total.reshape(-1)[(here[:, None] * len(total) + here).reshape(-1)] += pairs.reshape(-1)
    return total[:n, :n]


def exact_work(part: PatternPart) -> float:
    """Pairs of items that the exact information adds up."""
    return float(part.items.size * part.items.shape[1])


@dataclass(frozen=True, eq=False)
class ExactPoint(Point):
    """The likelihood at some thresholds, all sums exact; people's own scores are made of the responses."""

    responses: Responses = field(kw_only=True)

    @cached_property
    def scored(self) -> Prepared:
        return self.responses.entries.prepare(people_given, self.layout, self.beta)


class ExactLikelihood:
    """The conditional likelihood of these responses, exact, once for all who share their items and their score."""

    def __init__(self, responses: Responses) -> None:
        self.responses, self.layout = responses, responses.thresholds
        patterns = distinct_rows(responses)
        self.parts: Prepared = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, self.layout))
        self.rows = self.parts.prepare(_alone, self.layout)
        self.n_patterns = int(patterns.rows.informative.sum())
        self.passed = passed_counts(responses)
        self.rounding = float(16 * np.finfo(float).eps * self.passed.max(initial=1.0))  # that sums of P carry
        self.fine, self.noise = True, 1.0

    def at(self, beta: Floats) -> ExactPoint:
        rows, (log_gamma, expected, *blocks) = self.rows.map_and_sum(PatternRows.evaluated, padded(self.layout, beta))
        own, inner = balanced(self.layout, *blocks)
        loglik = -float(self.passed @ beta) - log_gamma
        gradient = expected - self.passed
        return ExactPoint(beta, self.layout, rows, gradient, own, inner, loglik=loglik, responses=self.responses)

    def share(self, point: Point) -> Floats:
        raise NotImplementedError  # there is no prior on exact likelihood

    def exact_is_affordable(self, work: float | None = None) -> bool:
        """Whether the exact information costs no more than so many multiplications."""
        if self.layout.binary and work is None:
            return bool(self.parts.sum(exact_work) <= EXACT_PAIRS)
        needed = self.parts.sum(_multiplications, self.layout.widest)
        return bool(needed <= (EXACT_WORK if work is None else work))

    def information(self, beta: Floats, *, exact: bool) -> Floats:
        """The information, thresholds x thresholds: from the probabilities of pairs, or matched."""
        if not exact:
            return self.at(beta).dense()
        return self.parts.sum(exact_information, padded(self.layout, beta), threshold_codes(self.layout))


def _alone(part: PatternPart, layout: Thresholds) -> PatternRows:
    return PatternRows.of_patterns([part], layout)


def _multiplications(part: PatternPart, width: int) -> float:
    points = n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)[1].max()
    return float(np.sum((part.counts * width) ** 2.0) * points)
