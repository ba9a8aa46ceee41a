"""The conditional likelihood of answers given the scores.

log L = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ). Its derivative by beta_ik is the expected number of
people at or above k given their scores, less the observed number. `Likelihood` has it to a hundredth of a standard
error or better, by series where people have much information; `ExactLikelihood` to the last digits, by patterns. The
estimators, banks and tests ask it for a `Point`: gradient and information at some thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from operator import methodcaller
from typing import Any

import numpy as np

from spectral_irt.conditional.exact import padded_sums
from spectral_irt.conditional.information import BinarySums, OrderedSums, PatternRows, Point, SharedRows, balance_rows
from spectral_irt.data.block import Block, Floats, Thresholds, rows_of
from spectral_irt.data.responses import Responses
from spectral_irt.data.shared_sets import SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.numerics import csr, onto_items, safe_divide, shared_ones

FEW_PEOPLE = 30  # to an item, on average: tables for every ability and item are larger than the responses
QUICK_ANSWERS = 100_000  # up to so many responses accuracy costs nothing to speak of
SERIES_SHIFT = 0.01  # standard errors by which series may move a threshold ...
FINE_SERIES_SHIFT = 1e-4  # ... where there are few responses


class Likelihood:
    """The conditional likelihood of these responses, for thresholds near `beta`. `weights` say how much each person
    counts; `shared` is `responses.shared`, to be used in the place of the answers of people on shared sets of items;
    `fine`: as accurate as where answers are few, whatever their number."""

    tables: Any = None
    shared: SharedSets | None = None
    people: Callable[[Floats], Prepared] | None = None  # where all is exact: people's own scores
    point: Point | None = None  # the last one
    passed: Floats  # where not all are right or wrong: how many people without an extreme score passed each threshold

    def __init__(
        self,
        responses: Responses,
        beta: Floats,
        *,
        weights: Floats | None = None,
        shared: SharedSets | None = None,
        fine: bool = False,
    ) -> None:
        self.responses = responses
        self.layout = responses.thresholds
        self.weights = weights
        self.shared = shared
        not_shared = responses if shared is None else shared.rest
        few = not_shared is None or not_shared.n_responses <= QUICK_ANSWERS
        self.fine = few or fine
        allowed_shift = FINE_SERIES_SHIFT if self.fine else SERIES_SHIFT
        if shared is not None:
            self.rows = responses.engine.hold([SharedRows(shared.sets, shared.n_items)])
        if not_shared is not None and self.layout.binary:
            from spectral_irt.conditional.series_binary import prepare_people  # people on shared sets do without

            rows = prepare_people(not_shared, beta, allowed_shift, weights)
            self.rows = rows if shared is None else self.rows.with_more(rows)
        elif not_shared is not None:
            self._prepare_ordered(beta, allowed_shift, few)

    def _prepare_ordered(self, beta: Floats, allowed_shift: float, few: bool) -> None:
        """People with much information share tables of the items; where few meet an item they have their own series."""
        from spectral_irt.conditional import series_tables  # right and wrong answers do without

        responses = self.responses
        facets = responses.facets
        n_items = self.layout.n_items
        self.passed = passed_counts(responses, self.weights)
        tables_fit = facets is None or facets.tables_fit
        if few or (tables_fit and responses.n_responses > FEW_PEOPLE * n_items):
            self.rows, self.tables = series_tables.prepare_people(responses, beta, allowed_shift, self.weights)
        else:
            if facets is not None:
                n_items = len(facets.items)
            people_of_item = responses.n_responses / n_items
            error = series_tables.ERROR_OF_WIDE_ITEMS
            least = float((np.sqrt(people_of_item / 0.18) * error / allowed_shift) ** (1 / 3))
            self.rows = responses.entries.prepare(PatternRows.of_block, self.layout, least, persons=(self.weights,))

    def at(self, beta: Floats) -> Point:
        """The likelihood there; the memory of the last point is used again."""
        if self.point is not None and np.array_equal(self.point.beta, beta):
            return self.point
        self.point = None  # its memory is free before the next is made
        layout = self.layout
        if layout.binary and not self.people:
            rows, totals = self.rows.map_and_sum(methodcaller("evaluate", beta))
            binary = BinarySums(*totals)
            variance = (binary.degree - binary.square)[:, None, None]
            point = Point(beta, layout, rows, binary.score, variance, binary.degree[:, None, None])
        elif self.tables is None:
            rows, totals = self.rows.map_and_sum(PatternRows.evaluate, padded_sums(layout, beta))
            sums = OrderedSums(*totals)
            blocks, inner = balance_rows(layout, sums.covariance, sums.outer, sums.around)
            point = Point(beta, layout, rows, sums.expected - self.passed, blocks, inner)
            if self.people:
                loglik = -float(self.passed @ beta) - sums.log_gamma
                point = replace(point, loglik=loglik, people=partial(self.people, beta))
        else:
            from spectral_irt.conditional.series_tables import point_at

            point = point_at(self.tables, self.rows, beta, self.passed)
        self.rows = point.rows
        self.point = point
        return point

    @cached_property
    def _of_items(self) -> tuple[Floats, ...]:
        """Sums over the people without an extreme score who answered each item: of their weights, of the squares of
        these, and of the weights of those who passed it."""
        return self.responses.entries.sum(_weights_of_items, self.layout, persons=(self.weights,))

    def share(self, point: Point) -> Floats:
        """The share of an item's people who are expected to pass it; nothing where items have several thresholds."""
        if not self.layout.binary:
            return np.empty(0)
        people, _, passed = self._of_items
        return (passed + point.gradient) / np.maximum(people, 1)

    @cached_property
    def noise(self) -> Floats | float:
        """What squared scores of each threshold are to its information if the model holds: 1 without weights."""
        if self.weights is None:
            return 1.0
        sums, squares, _ = self._of_items
        return safe_divide(squares, sums, otherwise=1.0)[self.layout.item]


def passed_counts(responses: Responses, weights: Floats | None = None) -> Floats:
    """How many people without an extreme score passed each threshold: those at or above its category."""
    layout = responses.thresholds
    last = responses.entries.sum(_passed_last, layout, persons=(weights,))
    if weights is None:
        last = responses.category_counts[layout.item, layout.level] - last
    return layout.at_or_above(last)


def _passed_last(block: Block, weight: Floats | None, layout: Thresholds) -> Floats:
    """Sums of weights for each threshold that is the last one passed; without weights, of the few extreme scores."""
    informative = rows_of(block, layout).informative
    if weight is not None:
        return onto_items(block.halves(layout.n_entries)[0], informative * weight)
    extreme = block.take(np.flatnonzero(~informative))
    return np.bincount(extreme.items[extreme.right()], minlength=layout.n_entries).astype(np.float64)


def _weights_of_items(block: Block, weight: Floats | None, layout: Thresholds) -> tuple[Floats, ...]:
    rows = rows_of(block, layout)
    passed = block.halves(layout.n_entries)[0]
    if weight is None:
        weight = np.ones(rows.n_persons)
    weight = np.where(rows.informative, weight, 0.0)
    answered = csr(rows.indptr.astype(np.int32), np.asarray(rows.items), shared_ones(len(rows.items)), layout.n_items)
    return onto_items(answered, weight), onto_items(answered, weight**2), onto_items(passed, weight)
