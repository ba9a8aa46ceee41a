"""The conditional likelihood of answers given the scores, at any thresholds.

log L = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ). Its derivative by beta_ik is the expected number of
people at or above k given their scores, less the observed number. `Likelihood` has it to a hundredth of a standard
error or better, by series where people have much information; `ExactLikelihood` to the last digits, by patterns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spectral_irt.conditional.binary_rows import SharedRows, evaluate
from spectral_irt.conditional.binary_rows import prepare_people as binary_people
from spectral_irt.conditional.exact import n_points
from spectral_irt.conditional.given_score import PatternPart, padded, pattern_parts, threshold_codes
from spectral_irt.conditional.information import Point, balanced
from spectral_irt.conditional.pattern_rows import PatternRows, exact_information, exact_work, people_given, people_of
from spectral_irt.conditional.series_tables import Tables
from spectral_irt.conditional.table_rows import SERIES_ERROR, TablePoint
from spectral_irt.conditional.table_rows import prepare_people as table_people
from spectral_irt.data.block import Block, Floats, Thresholds, rows_of
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import SharedSets, distinct_rows
from spectral_irt.engine import Prepared

FEW_PEOPLE = 30  # to an item, on average: tables for every ability and item are larger than the answers
FEW_ANSWERS = 100_000  # up to so many accuracy costs nothing to speak of
ALLOWED, FINER = 0.01, 1e-4  # standard errors by which series may move a threshold; where there are few answers
EXACT_WORK = 2e10  # multiplications that the exact information may cost
EXACT_PAIRS = 5e7  # pairs of items, summed over patterns, that it may have: a few seconds


class Likelihood:
    """The conditional likelihood of these responses, for thresholds near `beta`.

    `weights` say how much each person counts; `shared` is `responses.shared`, to be used in the place of the answers of
    people on shared sets of items; `fine`: as accurate as where answers are few, whatever their number.
    """

    def __init__(
        self,
        responses: Responses,
        beta: Floats,
        *,
        weights: Floats | None = None,
        shared: SharedSets | None = None,
        fine: bool = False,
    ) -> None:
        self.responses, self.layout, self.weights, self.shared = responses, responses.thresholds, weights, shared
        single = responses if shared is None else shared.rest
        self.few = single is None or single.n_responses <= FEW_ANSWERS
        self.fine = self.few or fine
        allowed = FINER if self.fine else ALLOWED
        self.tables: Tables | None = None
        sets = None if shared is None else responses.engine.hold([SharedRows.of_sets(shared)])
        if single is None:
            assert sets is not None
            self.rows = sets
        elif self.layout.binary:
            rows = binary_people(single, beta, allowed, weights)
            self.rows = rows if sets is None else sets.with_more(rows)
        elif self.few or single.n_responses > FEW_PEOPLE * self.layout.n_items:
            self.rows, self.tables = table_people(responses, beta, allowed, weights)
        else:
            facets = responses.facets
            n = responses.n_responses / (self.layout.n_items if facets is None else len(facets.items))
            least = float((np.sqrt(n / 0.18) * SERIES_ERROR / allowed) ** (1 / 3))
            self.rows = responses.entries.prepare(people_of, self.layout, least, persons=(weights,))

    def at(self, beta: Floats) -> Point:
        """The likelihood there; the memory of the last point is used again."""
        if self.layout.binary:
            rows, (gradient, degree, square) = self.rows.map_and_sum(evaluate, beta)
            point = Point(beta, self.layout, rows, gradient, (degree - square)[:, None, None], degree[:, None, None])
        elif self.tables is None:
            rows, (_, expected, *blocks) = self.rows.map_and_sum(PatternRows.evaluated, padded(self.layout, beta))
            own, inner = balanced(self.layout, *blocks)
            point = Point(beta, self.layout, rows, expected - self.passed, own, inner)
        else:
            point = TablePoint.at(self.tables, self.rows, beta, self.passed)
        self.rows = point.rows
        return point

    @cached_property
    def passed(self) -> Floats:
        """How many people without an extreme score passed each threshold, by their weights."""
        return passed_counts(self.responses, self.weights)

    @cached_property
    def _of_items(self) -> tuple[Floats, Floats]:
        """Sums of the weights, and of their squares, of the people without an extreme score who answered each item."""
        sums, squares = self.responses.entries.sum(_weights_of_items, self.layout, persons=(self.weights,))
        return sums, squares

    def share(self, point: Point) -> Floats:
        """The share of an item's people who are expected to pass it; nothing where items have several thresholds."""
        if not self.layout.binary:
            return np.empty(0)
        return (self.passed + point.gradient) / np.maximum(self._of_items[0], 1)

    @cached_property
    def noise(self) -> Floats | float:
        """What squared scores of each threshold are to its information if the model holds: 1 without weights."""
        if self.weights is None:
            return 1.0
        sums, squares = self._of_items
        return np.divide(squares, sums, out=np.ones(len(sums)), where=sums > 0)[self.layout.item]


def passed_counts(responses: Responses, weights: Floats | None = None) -> Floats:
    """How many people without an extreme score passed each threshold: those at or above its category."""
    return responses.entries.sum(_passed, responses.thresholds, persons=(weights,))


def _passed(block: Block, weight: Floats | None, layout: Thresholds) -> Floats:
    rows = rows_of(block, layout)
    right, _ = block.halves(layout.n_entries)
    at = right.T @ (rows.informative * (1.0 if weight is None else weight))  # passed this one last
    if layout.binary:
        return at
    total = np.cumsum(at[::-1])[::-1]
    after = np.append(total, 0.0)[layout.first + layout.max_score]  # what belongs to later items
    return total - after[layout.item]


def _weights_of_items(block: Block, weight: Floats | None, layout: Thresholds) -> tuple[Floats, Floats]:
    rows = rows_of(block, layout)
    each = np.repeat(rows.informative * (1.0 if weight is None else weight), rows.counts)
    sums = np.bincount(rows.items, weights=each, minlength=layout.n_items).astype(np.float64)
    squares = sums if weight is None else np.bincount(rows.items, weights=each**2, minlength=layout.n_items)
    return sums, squares.astype(np.float64)


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
