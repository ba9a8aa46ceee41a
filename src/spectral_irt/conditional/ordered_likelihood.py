"""The conditional likelihood of ordered answers, its derivatives and its information, summed over patterns of people.

log L = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ). Its derivative by beta_ik is the expected number of
people at or above k given the scores, less the observed number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.conditional.contour import n_points, tilt
from spectral_irt.conditional.given_score import part_given
from spectral_irt.conditional.information import exact_information
from spectral_irt.conditional.patterns import PatternPart, columns_of, padded, pattern_parts, step_codes
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import distinct_rows
from spectral_irt.data.thresholds import Thresholds, rows_of
from spectral_irt.engine import Prepared
from spectral_irt.model import above
from spectral_irt.numerics import gram
from spectral_irt.sparse_kernels import csr

EXACT_WORK = 2e10  # multiplications that the exact information may cost


def _sums(part: PatternPart, cumulated: Floats, codes: Ints, n_steps: int) -> tuple[float, Floats]:
    """sum of log gamma, and the expected number of people who passed each threshold."""
    found = part_given(part, cumulated)
    passed = (found.passed * part.people).transpose(2, 1, 0)
    expected = np.bincount(codes[part.items].ravel(), weights=passed.ravel(), minlength=n_steps + 1)[:n_steps]
    return float(part.people @ found.log_gamma), expected.astype(np.float64)


def _exact_work(part: PatternPart, cumulated: Floats) -> float:
    width = cumulated.shape[1] - 1
    points = n_points(part.most * width / 4.0, width, part.scores, part.most)[1].max()
    return float(np.sum((part.counts * width) ** 2.0) * points)


def _matched_information(part: PatternPart, cumulated: Floats, codes: Ints, n_steps: int) -> Floats:
    """The same from independent answers at the tilting ability: sum of D - v v^T / V."""
    p = tilt(columns_of(part, cumulated), part.scores, part.most)[1].transpose(2, 1, 0)
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

    def __init__(self, responses: Responses) -> None:
        self.responses, self.steps = responses, responses.thresholds
        patterns = distinct_rows(responses)
        self.parts: Prepared = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, self.steps))
        self.codes = step_codes(self.steps)
        self.n_patterns = int(patterns.rows.informative.sum())
        self.passed: Floats = responses.entries.sum(_passed, self.steps)
        self.rounding = float(16 * np.finfo(float).eps * self.passed.max(initial=1.0))

    def at(self, beta: Floats) -> OrderedPoint:
        log_gamma, expected = self.parts.sum(_sums, padded(self.steps, beta), self.codes, self.steps.n_entries)
        return OrderedPoint(beta, -float(self.passed @ beta) - log_gamma, expected - self.passed)

    def exact_is_affordable(self) -> bool:
        return bool(self.parts.sum(_exact_work, padded(self.steps, np.zeros(self.steps.n_entries))) <= EXACT_WORK)

    def information(self, beta: Floats, *, exact: bool) -> Floats:
        kernel = exact_information if exact else _matched_information
        return self.parts.sum(kernel, padded(self.steps, beta), self.codes, self.steps.n_entries)


def _passed(block: Block, steps: Thresholds) -> Floats:
    """How many informative people passed each threshold: those at or above its category."""
    rows = rows_of(block, steps)
    right, _ = block.halves(steps.n_entries)
    at = right.T @ rows.informative.astype(float)  # passed this one last
    total = np.cumsum(at[::-1])[::-1]
    after = np.append(total, 0.0)[steps.first + steps.max_score]  # what belongs to later items
    return total - after[steps.item]
