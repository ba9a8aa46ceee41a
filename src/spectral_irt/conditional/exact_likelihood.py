"""The exact conditional likelihood, its information from the probabilities of pairs, and exact answers of a block.

What depends on the items answered and the score alone is computed once for a pattern of these, for any number of
categories. `information_at` is the one place that decides whether an information matrix is exact or matched."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.exact import (
    DOUBLE,
    Contour,
    PatternPart,
    Precision,
    n_points,
    padded_sums,
    part_given,
    pattern_parts,
    threshold_codes,
)
from spectral_irt.conditional.information import PatternRows, Point, by_item
from spectral_irt.conditional.likelihood import Likelihood, passed_counts
from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, rows_of, spans
from spectral_irt.data.patterns import Patterns, distinct_rows, row_keys, same_rows
from spectral_irt.data.responses import Responses
from spectral_irt.data.shared_sets import SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.numerics import chosen_or_none, csr

SERIES_FROM = 4.0  # information of a person at which the series is good to 7e-5 at worst, 5e-7 on average
CELLS = 300_000  # patterns x thresholds x points of the pairs at a time: some ten megabytes
SHORT = 24  # thresholds; below, the pairs of many patterns are added at once, above, pattern by pattern
EXACT_CELLS = 4e6  # patterns x thresholds x points that the exact information may have: at 60 ns each, 0.25 seconds
LONG_TEST = 12  # items: of people who answered so many, the matched information gives standard errors within 0.5%
DENSE_THRESHOLDS = 2_000  # up to so many a matrix of all thresholds is formed also where a design asks for less
PATTERN_SAMPLE = 5_000  # people, by whom the number of patterns is judged before they are looked for


class Information(NamedTuple):
    """The information of thresholds, or of the parameters of a design. `exact`: from the probabilities of pairs, for
    everybody or for all who answered fewer than `LONG_TEST` items; else matched."""

    matrix: Floats
    exact: bool


def information_at(
    likelihood: Likelihood, beta: Floats, design: sparse.csr_array | None = None, *, single: bool = False
) -> Information:
    """The information of these responses at the thresholds beta: H, thresholds x thresholds, or A'HA with a design A.

    Exact where `EXACT_CELLS` allow, else matched, in `single` precision if asked. An `ExactLikelihood` knows its
    patterns of items and score, and is exact for everybody. Elsewhere people who answered `LONG_TEST` items or more
    stay matched, which differs too little to look for their patterns; but not where a design adds up over items what
    is left, as in the offsets of a rating scale.
    """
    if isinstance(likelihood, ExactLikelihood):
        if likelihood.exact_is_affordable():
            return Information(likelihood.information(beta, design), exact=True)
        return Information(matched_information(likelihood.at(beta), design, single=single), exact=False)
    responses = likelihood.responses
    weights = likelihood.weights
    short = responses.counts < (LONG_TEST if design is None else np.inf)
    everyone = bool(short.all())
    if not everyone and short.any():
        weights = chosen_or_none(weights, short)
        responses = responses.take_persons(short)
    patterns = None
    if short.any():
        patterns = affordable_patterns(responses, likelihood.shared if everyone else None)
    if patterns is None or not patterns.rows.informative.any():
        return Information(matched_information(likelihood.at(beta), design, single=single), exact=False)
    exact = ExactLikelihood(responses, weights=weights, patterns=patterns)
    if not exact.exact_is_affordable():
        return Information(matched_information(likelihood.at(beta), design, single=single), exact=False)
    information = exact.information(beta, design)
    if not everyone:
        everybody = matched_information(likelihood.at(beta), design)
        those_with_few = matched_information(exact.at(beta), design)
        information = information + everybody - those_with_few
    return Information(information, exact=True)


def matched_information(point: Point, design: sparse.csr_array | None = None, *, single: bool = False) -> Floats:
    """The matched information at a point, H or A'HA."""
    return point.dense(single=single) if design is None else point.of_parameters(design).toarray()


def affordable_patterns(responses: Responses, shared: SharedSets | None = None) -> Patterns | None:
    """The patterns of these people, or none where they are so many that the exact information is out of reach."""
    if shared is not None:
        return shared_patterns(shared)
    keys = responses.entries.gather(row_keys, responses.thresholds)
    sample = keys[:: max(1, len(keys) // PATTERN_SAMPLE)]
    repeated = len(sample) - len(np.unique(sample))
    # Of P patterns that are as frequent, a sample of n people repeats about n^2 / 2P.
    expected = len(keys) if repeated == 0 else min(len(keys), len(sample) ** 2 / (2 * repeated))
    steps = responses.max_scores.mean()
    # A person with a highest score of s takes s thresholds x at most s / 2 points; a guess may be off by a factor of 3.
    if expected * max(steps * steps / 2, 1.0) > 3 * EXACT_CELLS:
        return None
    return distinct_rows(responses, keys)


def shared_patterns(shared: SharedSets) -> Patterns:
    """The patterns of right and wrong answers on shared sets of items, and of the other people; nobody's own."""
    items: list[NDArray[Any]] = []
    counts: list[Ints] = []
    scores: list[Ints] = []
    people: list[NDArray[Any]] = []
    for shared_set in shared.sets:
        score = np.flatnonzero(shared_set.people)
        items.append(np.tile(shared_set.items, len(score)))
        counts.append(np.full(len(score), len(shared_set.items)))
        scores.append(score)
        people.append(shared_set.people[score])
    if shared.rest is not None:
        others = distinct_rows(shared.rest)
        items.append(others.rows.items)
        counts.append(others.rows.counts)
        scores.append(others.rows.scores)
        people.append(others.count)
    count = np.concatenate(counts)
    indptr = np.concatenate([[0], np.cumsum(count)])
    rows = Rows(indptr, np.concatenate(items).astype(np.int32), count, np.concatenate(scores), count)
    return Patterns(rows, np.concatenate(people), np.empty(0, dtype=np.int64))


class ExactLikelihood(Likelihood):
    """The conditional likelihood of these responses, exact, once for all who share their items and their score.
    `weights` say how much each person counts; `patterns` are those of the responses, where they are known."""

    def __init__(
        self, responses: Responses, *, weights: Floats | None = None, patterns: Patterns | None = None
    ) -> None:
        self.responses = responses
        self.layout = responses.thresholds
        self.weights = weights
        self.fine = True
        if patterns is None:
            patterns = distinct_rows(responses)
        people = patterns.count
        if weights is not None:
            people = np.bincount(patterns.of_person, weights=weights)
        parts = list(pattern_parts(patterns.rows, people, self.layout))
        self.parts = responses.engine.hold(parts)
        self.rows = responses.engine.hold(PatternRows.of_patterns([part], self.layout) for part in parts)
        self.n_patterns = int(patterns.rows.informative.sum())

    @cached_property
    def passed(self) -> Floats:  # type: ignore[override]
        return passed_counts(self.responses, self.weights)

    @property
    def rounding(self) -> float:
        """What sums of probabilities carry."""
        return float(16 * np.finfo(float).eps * self.passed.max(initial=1.0))

    def people(self, beta: Floats) -> Prepared:
        """Everybody's own scores at these thresholds."""
        return self.responses.entries.prepare(people_given, self.layout, beta, persons=(self.weights,))

    def exact_is_affordable(self) -> bool:
        """Whether there is any information, and the exact one stays within `EXACT_CELLS`."""
        return self.n_patterns > 0 and bool(self.parts.sum(exact_cells, self.layout.widest) <= EXACT_CELLS)

    def information(self, beta: Floats, design: sparse.csr_array | None = None) -> Floats:
        """The information, thresholds x thresholds, from the probabilities of pairs; A'HA with a design."""
        cumulated = padded_sums(self.layout, beta)
        codes = threshold_codes(self.layout)
        if design is not None and self.layout.n_entries > DENSE_THRESHOLDS:
            return self.parts.sum(exact_information_of_design, cumulated, codes, design)
        information = self.parts.sum(exact_information, cumulated, codes)
        if design is None:
            return information
        return design.T @ (information @ design)


def exact_cells(part: PatternPart, width: int) -> float:
    """Patterns x thresholds x points of the contour sums that the exact information takes."""
    _, points = n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)
    return float(part.items.size * width * points.max())


def contours(part: PatternPart, cumulated: Floats) -> Iterator[tuple[slice, Contour]]:
    """Some patterns at a time, with the contour sums that pairs of items need; `cumulated` is `padded_sums`."""
    width = cumulated.shape[1] - 1
    _, points = n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)
    size = max(1, CELLS // (part.items.shape[1] * int(points.max()) * width))
    for start in range(0, len(part.scores), size):
        some = slice(start, start + size)
        columns = cumulated.T[1:, part.items[some].T]
        yield some, Contour.of(columns, part.scores[some], part.max_scores[some], keep_factors=True)


def factors_at_points(sums: Contour) -> NDArray[np.complex128]:
    """F with P(X_i >= c, X_j >= c' | s) = Re sum_k F_kci F_kc'j; points x c x items x people."""
    categories, items, people = sums.p.shape
    n_points = len(sums.angle)
    factors = np.empty((n_points, categories - 1, items, people), dtype=np.complex128)
    over = np.sqrt(sums.weight)[:, None, :] / sums.every_factor
    tail = np.zeros((n_points, items, people), dtype=np.complex128)
    for c in range(categories - 1, 0, -1):
        tail += sums.p[c] * np.exp(1j * c * sums.angle)[:, None, :]
        np.multiply(tail, over, out=factors[:, c - 1])
    return factors


def by_person(factors: NDArray[np.complex128]) -> tuple[Floats, Floats]:
    """The real and the imaginary part of such factors; people x items x c x points."""
    rows = factors.transpose(3, 2, 1, 0)
    return np.ascontiguousarray(rows.real), np.ascontiguousarray(rows.imag)


def pair_factors(sums: Contour) -> tuple[Floats, Floats]:
    """B and C with P(X_i >= c, X_j >= c' | s) = sum_k B_ick B_jc'k - C_ick C_jc'k; people x items x c x points."""
    return by_person(factors_at_points(sums))


def exact_information(part: PatternPart, cumulated: Floats, codes: Ints) -> Floats:
    """sum of Cov(1{X_i >= k}, 1{X_j >= k'} | s), thresholds x thresholds."""
    n = int(codes.max())
    total = np.zeros((n + 1, n + 1))  # the last row and column take the padding
    flat = total.reshape(-1)
    for pairs in pair_covariances(part, cumulated, codes):
        if pairs.of_one_set:
            total[np.ix_(pairs.codes[0], pairs.codes[0])] += pairs.covariance
        elif pairs.covariance.shape[1] < SHORT:
            np.add.at(flat, pairs.codes[:, :, None] * len(total) + pairs.codes[:, None, :], pairs.covariance)
        else:
            for place, of_pattern in zip(pairs.codes, pairs.covariance, strict=True):
                flat[(place[:, None] * len(total) + place).reshape(-1)] += of_pattern.reshape(-1)
    return total[:n, :n]


def exact_information_of_design(part: PatternPart, cumulated: Floats, codes: Ints, design: sparse.csr_array) -> Floats:
    """A'HA, without the matrix of all thresholds: these may be every combination of item and rater."""
    n = int(codes.max())
    total = np.zeros((design.shape[1], design.shape[1]))
    for pairs in pair_covariances(part, cumulated, codes):
        place = pairs.codes[:1] if pairs.of_one_set else pairs.codes
        shape = (len(place), place.shape[1], place.shape[1])
        row = np.broadcast_to(place[:, :, None], shape).reshape(-1)
        column = np.broadcast_to(place[:, None, :], shape).reshape(-1)
        inside = (row < n) & (column < n)
        values = pairs.covariance.reshape(-1)[inside]
        h = sparse.csr_array((values, (row[inside], column[inside])), shape=(n, n))
        total += (design.T @ (h @ design)).toarray()
    return total


class PairCovariances(NamedTuple):
    """Of some patterns: the codes of their thresholds, and Cov(1{X_i >= k}, 1{X_j >= k'} | s) by how many people have
    the pattern; patterns x thresholds x thresholds, or summed over patterns where all are of one set."""

    codes: Ints
    covariance: Floats

    @property
    def of_one_set(self) -> bool:
        return self.covariance.ndim == 2


def pair_covariances(part: PatternPart, cumulated: Floats, codes: Ints) -> Iterator[PairCovariances]:
    """Some patterns at a time."""
    items = part.items.shape[1]
    width = cumulated.shape[1] - 1
    level = np.arange(width)
    higher = np.maximum(level[:, None], level)
    first = np.arange(items)[:, None, None] * width
    row, column = np.broadcast_arrays(first + level[:, None], first + level)  # thresholds of one item
    for some, sums in contours(part, cumulated):
        people = part.people[some]
        factors = factors_at_points(sums)
        # P(X_i >= c | s): a probability of one item takes the root of the weight where that of two has the other item.
        passed = np.einsum("kcip,kp->pic", factors, np.sqrt(sums.weight)).real
        n_patterns = len(passed)
        within = (passed[:, :, higher] - passed[:, :, :, None] * passed[:, :, None, :]) * people[:, None, None, None]
        mean = passed.reshape(n_patterns, items * width)
        if part.one_set:
            covariance = _summed_over_patterns(factors, mean, people)
            covariance[row, column] = within.sum(axis=0)
        else:
            covariance = _of_each_pattern(factors, mean) * people[:, None, None]
            covariance[:, row, column] = within
        yield PairCovariances(codes[part.items[some]].reshape(n_patterns, -1), covariance)


def _summed_over_patterns(factors: NDArray[np.complex128], mean: Floats, people: Floats) -> Floats:
    """sum of Cov(1{X_i >= c}, 1{X_j >= c'} | s), for pairs of different items of a set that all have in common.

    Products of a matrix with its own transpose take half the time of others.
    """
    root = np.sqrt(people)
    n = mean.shape[1]
    columns = (factors * root).transpose(2, 1, 0, 3)  # items x c x points x people
    real = np.ascontiguousarray(columns.real).reshape(n, -1)
    imaginary = np.ascontiguousarray(columns.imag).reshape(n, -1)
    weighted_mean = mean.T * root
    covariance: Floats = real @ real.T - imaginary @ imaginary.T - weighted_mean @ weighted_mean.T
    return covariance


def _of_each_pattern(factors: NDArray[np.complex128], mean: Floats) -> Floats:
    """Cov(1{X_i >= c}, 1{X_j >= c'} | s), for pairs of different items; patterns x thresholds x thresholds."""
    real, imaginary = (part.reshape(*mean.shape, -1) for part in by_person(factors))
    left = np.concatenate([real, imaginary, mean[:, :, None]], axis=2)
    right = np.concatenate([real, -imaginary, -mean[:, :, None]], axis=2)
    covariance: Floats = left @ right.transpose(0, 2, 1)
    return covariance


def people_given(block: Block, weight: Floats | None, layout: Thresholds, beta: Floats) -> PatternRows:
    """The people of a block without extreme scores, at these thresholds."""
    return PatternRows.of_block(block, weight, layout).evaluate(padded_sums(layout, beta))[0]


def residuals(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), people x thresholds, in the order of the block; nothing for extreme scores."""
    who = np.flatnonzero(rows_of(block, layout).informative)
    scores = people_given(block, None, layout, beta).scores().matrix
    indptr = np.zeros(block.n_persons + 1, dtype=np.int32)
    indptr[who + 1] = np.diff(scores.indptr)
    return csr(np.cumsum(indptr, dtype=np.int32), scores.indices, -scores.data, layout.n_entries)


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
    to_finite = finite[block.items]
    if not to_finite.all():
        p = np.full(block.n_responses, np.nan)
        place = np.where(finite, np.cumsum(finite) - 1, -1).astype(np.int32)
        p[to_finite] = conditional_probabilities(
            block.keep_items(place), difficulty[finite], series_from=series_from, precision=precision
        )
        return p
    p = np.repeat((block.scores > 0).astype(np.float64), block.counts)
    starts = block.indptr[:-1]
    theta, information = prox_ability(block, difficulty)
    by_series = np.flatnonzero(block.informative & (information >= series_from))
    if len(by_series):
        some = block.take(by_series)
        p[spans(starts[by_series], some.counts)] = _by_series(some, difficulty, theta[by_series], precision)
    exactly = np.flatnonzero(block.informative & (information < series_from))
    if len(exactly):
        layout = Thresholds.ones(len(difficulty))
        rows, order = by_item(rows_of(block, layout).take(exactly))
        p[spans(starts[exactly], rows.counts)[order]] = _by_patterns(rows, difficulty, layout)
    return p


def _by_series(block: Block, difficulty: Floats, theta: Floats, precision: Precision) -> Floats:
    """P(X = 1 | s) of every response of these people, by the series."""
    from spectral_irt.conditional.series_binary import fill_given_score  # few answers do without

    p = np.empty(block.n_responses, dtype=precision)
    indptr = block.indptr.astype(np.int32)
    fill_given_score(indptr, np.asarray(block.items), block.scores, theta, difficulty, p, None)
    return p


def _by_patterns(rows: Rows, difficulty: Floats, layout: Thresholds) -> Floats:
    """P(X = 1 | s) of every response, exactly, once for all who share a pattern."""
    patterns = same_rows(rows, layout)
    first = patterns.rows.indptr[:-1]
    of_patterns = np.empty(len(patterns.rows.items))
    for part in pattern_parts(patterns.rows, patterns.count, layout):
        p = part_given(part, padded_sums(layout, difficulty)).p[0].T
        of_patterns[spans(first[part.which], part.counts)] = p[part.inside]
    return of_patterns[spans(first[patterns.of_person], rows.counts)]
