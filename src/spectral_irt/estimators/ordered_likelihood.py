"""The conditional likelihood of ordered answers, its derivatives and its information, summed over patterns of people.

log L = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ). Its derivative by beta_ik is the expected number of
people at or above k given the scores, less the observed number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.engines import Prepared
from spectral_irt.estimators.ordered_esf import Given, above, given_score, n_points
from spectral_irt.numerics import gram
from spectral_irt.responses.block import Block, Floats, Ints, csr
from spectral_irt.responses.ordered import OrderedResponses, Rows, Steps, rows_of
from spectral_irt.responses.ordered_patterns import distinct_rows

CELLS = 300_000  # rows x items x points at a time: some ten megabytes
EXACT_WORK = 2e10  # multiplications that the exact information may cost


@dataclass(frozen=True, eq=False)
class PatternPart:
    """Patterns with about the same number of items: items padded with one that has no thresholds."""

    items: NDArray[np.int64]
    counts: Ints
    scores: Ints
    most: Ints
    people: Floats


def pattern_parts(rows: Rows, people: Ints, steps: Steps) -> list[PatternPart]:
    """The patterns of people whose total score is neither the lowest nor the highest, in parts of a fair size."""
    who = np.flatnonzero(rows.informative)
    who = who[np.argsort(rows.counts[who], kind="stable")]
    parts = []
    start = 0
    while start < len(who):
        longest = 1
        stop = start
        while stop < len(who):
            longest = int(rows.counts[who[stop]])
            points = min(longest * steps.widest, 60 * steps.widest)
            if stop > start and (stop + 1 - start) * longest * (points + steps.widest) > CELLS:
                break
            stop += 1
        mine = rows.take(who[start:stop])
        items = np.full((stop - start, int(mine.counts.max())), steps.n_items)
        place = np.arange(len(mine.items)) - np.repeat(mine.indptr[:-1], mine.counts)
        items[np.repeat(np.arange(stop - start), mine.counts), place] = mine.items
        parts.append(PatternPart(items, mine.counts, mine.scores, mine.most, people[who[start:stop]].astype(float)))
        start = stop
    return parts


def padded(steps: Steps, thresholds: Floats) -> Floats:
    """Cumulated thresholds, with a last row for the padding."""
    cumulated = steps.cumulated(thresholds)
    nothing = np.full((1, cumulated.shape[1]), np.inf)
    nothing[0, 0] = 0.0
    return np.concatenate([cumulated, nothing])


def step_codes(steps: Steps) -> Ints:
    """Items (and padding) x thresholds: the code of each threshold, or one past the last where there is none."""
    codes = np.full((steps.n_items + 1, steps.widest), steps.n_steps)
    codes[steps.item, steps.level - 1] = np.arange(steps.n_steps)
    return codes


def part_given(part: PatternPart, cumulated: Floats) -> Given:
    return given_score(cumulated[part.items], part.scores, part.most)


def _sums(part: PatternPart, cumulated: Floats, codes: Ints, n_steps: int) -> tuple[float, Floats]:
    """sum of log gamma, and the expected number of people who passed each threshold."""
    found = part_given(part, cumulated)
    passed = found.passed() * part.people[:, None, None]
    expected = np.bincount(codes[part.items].ravel(), weights=passed.ravel(), minlength=n_steps + 1)[:n_steps]
    return float(part.people @ found.log_gamma), expected.astype(np.float64)


def _exact_work(part: PatternPart, cumulated: Floats) -> float:
    width = cumulated.shape[1] - 1
    points = n_points(part.most * width / 4.0, width, part.scores, part.most) / 2
    return float(np.sum((part.counts * width) ** 2.0) * points)


def _exact_information(part: PatternPart, cumulated: Floats, codes: Ints, n_steps: int) -> Floats:
    """sum of Cov(1{X_i >= k}, 1{X_j >= k'} | s), exactly."""
    found = part_given(part, cumulated)
    passed = found.passed()
    rows, items, width = passed.shape
    total = np.zeros((n_steps + 1, n_steps + 1))
    factors = found.pair_factors()
    flat = passed.reshape(rows, items * width)
    level = np.arange(width)
    higher = np.maximum(level[:, None], level)
    own = np.arange(items)[:, None, None] * width
    inside = (own + level[:, None] + 0 * level, own + level[None, :] + 0 * level[:, None])
    for row in range(rows):
        real, imaginary = np.ascontiguousarray(factors[row].real), np.ascontiguousarray(factors[row].imag)
        pairs = real @ real.T - imaginary @ imaginary.T
        pairs[inside] = passed[row][:, higher]
        pairs -= np.outer(flat[row], flat[row])
        where = codes[part.items[row]].ravel()
        total[np.ix_(where, where)] += part.people[row] * pairs
    # Padding falls on the last row and column. Repeated codes there are overwritten rather than added, and left out.
    return total[:n_steps, :n_steps]


def _matched_information(part: PatternPart, cumulated: Floats, codes: Ints, n_steps: int) -> Floats:
    """The same from independent answers at the tilting ability: sum of D - v v^T / V."""
    p = part_given(part, cumulated).tilted
    passed = above(p)
    rows, items, width = passed.shape
    k = np.arange(p.shape[2], dtype=float)
    mean = p @ k
    tail = above(p * k)
    v = tail - passed * mean[:, :, None]
    variance = (p @ k**2 - mean**2).sum(axis=1)
    where = codes[part.items]
    total = np.zeros((n_steps + 1, n_steps + 1))
    for a in range(width):
        for b in range(width):
            d = (passed[:, :, max(a, b)] - passed[:, :, a] * passed[:, :, b]) * part.people[:, None]
            np.add.at(total, (where[:, :, a].ravel(), where[:, :, b].ravel()), d.ravel())
    scaled = v * np.sqrt(part.people / np.maximum(variance, 1e-300))[:, None, None]
    indptr = (np.arange(rows + 1) * items * width).astype(np.int32)
    matrix = csr(indptr, where.reshape(-1).astype(np.int32), scaled.ravel(), n_steps + 1)
    matrix.sum_duplicates()
    return (total - gram(matrix))[:n_steps, :n_steps]


# ------------------------------------------------------------------------------- the likelihood itself


@dataclass(frozen=True, eq=False)
class OrderedPoint:
    """The likelihood at some thresholds."""

    beta: Floats
    loglik: float
    gradient: Floats


class OrderedLikelihood:
    """The conditional likelihood of these responses."""

    def __init__(self, responses: OrderedResponses) -> None:
        self.responses, self.steps = responses, responses.steps
        patterns = distinct_rows(responses)
        self.parts: Prepared = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, self.steps))
        self.codes = step_codes(self.steps)
        self.n_patterns = int(patterns.rows.informative.sum())
        self.passed: Floats = responses.thresholds.sum(_passed, self.steps)
        self.rounding = float(16 * np.finfo(float).eps * self.passed.max(initial=1.0))

    def at(self, beta: Floats) -> OrderedPoint:
        log_gamma, expected = self.parts.sum(_sums, padded(self.steps, beta), self.codes, self.steps.n_steps)
        return OrderedPoint(beta, -float(self.passed @ beta) - log_gamma, expected - self.passed)

    def exact_is_affordable(self) -> bool:
        return bool(self.parts.sum(_exact_work, padded(self.steps, np.zeros(self.steps.n_steps))) <= EXACT_WORK)

    def information(self, beta: Floats, *, exact: bool) -> Floats:
        kernel = _exact_information if exact else _matched_information
        return self.parts.sum(kernel, padded(self.steps, beta), self.codes, self.steps.n_steps)


def _passed(block: Block, steps: Steps) -> Floats:
    """How many informative people passed each threshold: those at or above its category."""
    rows = rows_of(block, steps)
    right, _ = block.halves(steps.n_steps)
    at = right.T @ rows.informative.astype(float)  # passed this one last
    total = np.cumsum(at[::-1])[::-1]
    after = np.append(total, 0.0)[steps.first + steps.counts]  # what belongs to later items
    return total - after[steps.item]
