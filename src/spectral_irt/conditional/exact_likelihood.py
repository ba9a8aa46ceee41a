"""The exact conditional likelihood, its information from the probabilities of pairs, and exact answers of a block.

What depends on the items answered and the score alone is computed once for a pattern of these, for any number of
categories."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import prox_ability
from spectral_irt.conditional.exact import (
    DOUBLE,
    Contour,
    PatternPart,
    Precision,
    factor_at,
    n_points,
    padded,
    part_given,
    pattern_parts,
    threshold_codes,
)
from spectral_irt.conditional.information import PatternRows, by_item
from spectral_irt.conditional.newton import Likelihood, passed_counts
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of, spans
from spectral_irt.data.design import distinct_rows, same_rows
from spectral_irt.data.responses import Responses
from spectral_irt.numerics import csr

SERIES_FROM = 4.0  # information of a person at which the series is good to 7e-5 at worst, 5e-7 on average
CELLS = 300_000  # patterns x thresholds x points of the pairs at a time: some ten megabytes
SHORT = 24  # thresholds; below, the pairs of many patterns are added at once, above, pattern by pattern
EXACT_WORK = 2e10  # multiplications that the exact information may cost
EXACT_PAIRS = 5e7  # pairs of items, summed over patterns, that it may have: a few seconds


class ExactLikelihood(Likelihood):
    """The conditional likelihood of these responses, exact, once for all who share their items and their score."""

    def __init__(self, responses: Responses) -> None:
        self.responses, self.layout, self.weights, self.fine = responses, responses.thresholds, None, True
        patterns, engine = distinct_rows(responses), responses.engine
        parts = pattern_parts(patterns.rows, patterns.count, self.layout)
        self.parts = engine.hold(parts)
        self.rows = engine.hold(PatternRows.of_patterns([part], self.layout) for part in parts)
        self.people = partial(responses.entries.prepare, people_given, self.layout)
        self.n_patterns, self.passed = int(patterns.rows.informative.sum()), passed_counts(responses)
        self.rounding = float(16 * np.finfo(float).eps * self.passed.max(initial=1.0))  # that sums of P carry

    def exact_is_affordable(self, work: float | None = None) -> bool:
        """Whether the exact information costs no more than so many multiplications."""
        pairs, multiplications = self.parts.sum(exact_work, self.layout.widest)
        if self.layout.binary and work is None:
            return bool(pairs <= EXACT_PAIRS)
        return bool(multiplications <= (EXACT_WORK if work is None else work))

    def information(self, beta: Floats) -> Floats:
        """The information, thresholds x thresholds, from the probabilities of pairs; `at(beta).dense()` is cheaper."""
        return self.parts.sum(exact_information, padded(self.layout, beta), threshold_codes(self.layout))


def exact_work(part: PatternPart, width: int) -> tuple[float, float]:
    """Pairs of items that the exact information adds up, and multiplications."""
    _, points = n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)
    products = np.sum((part.counts * width) ** 2.0) * points.max()
    return float(part.items.size * part.items.shape[1]), float(products)


def contours(part: PatternPart, cumulated: Floats) -> Iterator[tuple[slice, Contour]]:
    """Some patterns at a time, with the contour sums that pairs of items need; `cumulated` is `padded`."""
    width = cumulated.shape[1] - 1
    _, points = n_points(part.max_scores * width / 4.0, width, part.scores, part.max_scores)
    size = max(1, CELLS // (part.items.shape[1] * int(points.max()) * width))
    for start in range(0, len(part.scores), size):
        some = slice(start, start + size)
        yield some, Contour.of(cumulated.T[1:, part.items[some].T], part.scores[some], part.max_scores[some])


def pair_factors(sums: Contour) -> tuple[Floats, Floats]:
    """B and C with P(X_i >= c, X_j >= c' | s) = sum_k B_ick B_jc'k - C_ick C_jc'k; people x items x c x points."""
    categories, items, people = sums.p.shape
    factors = np.empty((len(sums.angle), categories - 1, items, people), dtype=np.complex128)
    real, imaginary = np.empty((2, items, people))
    for k, (u, root) in enumerate(zip(sums.angle, np.sqrt(sums.weight), strict=True)):
        factor_at(sums.p, u, real, imaginary)
        over = root / (real + 1j * imaginary)
        tail = np.zeros((items, people), dtype=np.complex128)
        for c in range(categories - 1, 0, -1):
            tail += sums.p[c] * np.exp(1j * c * u)
            np.multiply(tail, over, out=factors[k, c - 1])
    factors = factors.transpose(3, 2, 1, 0)
    return np.ascontiguousarray(factors.real), np.ascontiguousarray(factors.imag)


def exact_information(part: PatternPart, cumulated: Floats, codes: Ints) -> Floats:
    """sum of Cov(1{X_i >= k}, 1{X_j >= k'} | s), thresholds x thresholds."""
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
        flat, (real, imaginary) = passed.reshape(len(passed), items * width, 1), pair_factors(sums)
        real, imaginary = real.reshape(*flat.shape[:2], -1), imaginary.reshape(*flat.shape[:2], -1)
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


def people_given(block: Block, layout: Thresholds, beta: Floats) -> PatternRows:
    """The people of a block without extreme scores, at these thresholds."""
    return PatternRows.of_block(block, None, layout).evaluated(padded(layout, beta))[0]


def residuals(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), people x thresholds, in the order of the block; nothing for extreme scores."""
    who = np.flatnonzero(rows_of(block, layout).informative)
    scores = people_given(block, layout, beta).scores().matrix
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
    known = finite[block.items]
    if not known.all():
        out = np.full(block.n_responses, np.nan)
        rest = block.keep_items(np.where(finite, np.cumsum(finite) - 1, -1).astype(np.int32))
        out[known] = conditional_probabilities(rest, difficulty[finite], series_from=series_from, precision=precision)
        return out
    out, starts = np.repeat((block.scores > 0).astype(np.float64), block.counts), block.indptr[:-1]
    theta, information = prox_ability(block, difficulty)
    long = np.flatnonzero(block.informative & (information >= series_from))
    if len(long):
        from spectral_irt.conditional.series_binary import fill_given_score  # few answers do without

        some = block.take(long)
        p, indptr = np.empty(some.n_responses, dtype=precision), some.indptr.astype(np.int32)
        fill_given_score(indptr, np.asarray(some.items), some.scores, theta[long], difficulty, p, None)
        out[spans(starts[long], some.counts)] = p
    short = np.flatnonzero(block.informative & (information < series_from))
    if len(short):  # exact values, once for all who share a pattern
        layout = Thresholds.ones(len(difficulty))
        rows, order = by_item(rows_of(block, layout).take(short))
        patterns = same_rows(rows, layout)
        first, shared = patterns.rows.indptr[:-1], np.empty(len(patterns.rows.items))
        for part in pattern_parts(patterns.rows, patterns.count, layout):
            p = part_given(part, padded(layout, difficulty)).p[0].T
            shared[spans(first[part.which], part.counts)] = p[part.inside]
        out[spans(starts[short], rows.counts)[order]] = shared[spans(first[patterns.of_person], rows.counts)]
    return out
