"""Answers of people, and the distribution of the total score on them at an ability.

Kernels have two branches: of right and wrong answers they walk over the answers in place; of several categories they
write out all probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.packing import CACHED, person_chunks
from spectral_irt.data.thresholds import Rows, Thresholds
from spectral_irt.sparse_kernels import fill_scaled, row_sums, shared_ones


@dataclass(frozen=True, eq=False)
class Answers:
    """The items that some people answered, and their total scores; every person answered something.

    Attributes
    ----------
    indptr : int32 array, people + 1
    items : int32 array, responses
        Items of person `l`: `items[indptr[l]:indptr[l + 1]]`, in any order.
    scores : int array, people
    steps : Thresholds, optional
        Of the items; without them answers are right or wrong. Functions that take `beta` beside the answers want a
        number for each threshold.
    """

    indptr: NDArray[np.int32]
    items: NDArray[np.int32]
    scores: Ints
    steps: Thresholds | None = None

    def take(self, persons: Ints) -> Answers:
        """The answers of these people, who may repeat."""
        counts = self.counts[persons]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        place = np.repeat(self.indptr[persons] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Answers(indptr.astype(np.int32), self.items[place], self.scores[persons], self.steps)

    @property
    def counts(self) -> Ints:
        return np.diff(self.indptr).astype(np.int64)

    @property
    def ordered(self) -> Thresholds | None:
        """The thresholds, where items have more than one."""
        return None if self.steps is None or self.steps.binary else self.steps

    @property
    def max_scores(self) -> Ints:
        """The highest score that each person could have."""
        if self.ordered is None:
            return self.counts
        return np.add.reduceat(self.ordered.max_score[self.items], self.indptr[:-1])

    def sums(self, values: Floats) -> Floats:
        """Sum over the answers of each person."""
        return np.add.reduceat(values, self.indptr[:-1])

    def totals(self, values: Floats) -> Floats:
        """Sum over the answers of each person of a number of the item."""
        return row_sums((len(self.scores), self.indptr, self.items), shared_ones(len(self.items)), values)

    def fill(self, rows: Floats, columns: Floats, out: Floats) -> None:
        """Write rows[person] * columns[item] for every answer."""
        fill_scaled(self.indptr, self.items, rows, columns, out)


def cached_runs(rows: Rows, steps: Thresholds) -> list[tuple[Ints, Answers]]:
    """People with answers, in runs whose numbers fit a core's cache: positions, and their answers."""
    runs, indptr = [], rows.indptr
    for start, stop in person_chunks(indptr, CACHED // numbers_each(steps)):
        limits = indptr[start : stop + 1]
        persons = start + np.flatnonzero(np.diff(limits))
        if len(persons):
            bounds = (np.append(indptr[persons], limits[-1]) - limits[0]).astype(np.int32)
            runs.append((persons, Answers(bounds, rows.items[limits[0] : limits[-1]], rows.scores[persons], steps)))
    return runs


def numbers_each(steps: Thresholds) -> int:
    """Numbers for each answer."""
    return 1 if steps.binary else steps.widest + 1


Cumulants = tuple[Floats, Floats, Floats, Floats]


def score_cumulants(answers: Answers, beta: Floats, all_four: bool = True) -> Callable[[Floats], Cumulants]:
    """Cumulants of each person's total score as a function of abilities: mean, variance, third and fourth.

    Without `all_four`, mean and variance stand for the others, which are not computed.
    """
    if answers.ordered is not None:
        return _cumulants_of_categories(answers, answers.ordered.cumulated(beta), all_four)
    pi, p, v = np.exp(beta), np.empty(len(answers.items)), np.empty(len(answers.items))

    def at(theta: Floats) -> Cumulants:
        with np.errstate(over="ignore"):
            answers.fill(np.exp(-theta), pi, p)
        np.add(p, 1, out=p)
        np.reciprocal(p, out=p)
        np.subtract(1, p, out=v)
        np.multiply(v, p, out=v)
        expected, variance = answers.sums(p), answers.sums(v)
        if not all_four:
            return expected, variance, expected, variance
        np.multiply(p, -2, out=p)
        np.add(p, 1, out=p)
        np.multiply(p, v, out=p)
        third = answers.sums(p)
        np.multiply(v, v, out=p)
        np.multiply(p, -6, out=p)
        np.add(p, v, out=p)
        return expected, variance, third, answers.sums(p)

    return at


def _cumulants_of_categories(answers: Answers, cumulated: Floats, all_four: bool) -> Callable[[Floats], Cumulants]:
    counts, passed = answers.counts, np.ascontiguousarray(cumulated[answers.items].T)

    def at(theta: Floats) -> Cumulants:
        mean, variance, third, fourth = central_moments(_chances(np.repeat(theta, counts), passed), all_four)
        expected, information = answers.sums(mean), answers.sums(variance)
        if not all_four:
            return expected, information, expected, information
        return expected, information, answers.sums(third), answers.sums(fourth - 3 * variance**2)

    return at


def _chances(theta: Floats, passed: Floats) -> Floats:
    """Probability of each category, categories x answers; `passed` has sums of each answer's item's thresholds."""
    p = np.arange(len(passed), dtype=float)[:, None] * theta - passed
    p -= p.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p


def central_moments(p: Floats, all_four: bool = True) -> Cumulants:
    """Mean, variance, third and fourth central moment from probabilities with categories first, which are overwritten.

    Without `all_four`, mean and variance stand for the others.
    """
    k = np.arange(len(p), dtype=float)
    mean = np.tensordot(k, p, 1)
    away = k.reshape(-1, *(1,) * (p.ndim - 1)) - mean
    p *= away
    p *= away
    variance = p.sum(axis=0)
    if not all_four:
        return mean, variance, mean, variance
    p *= away
    third = p.sum(axis=0)
    p *= away
    return mean, variance, third, p.sum(axis=0)


def answer_moments(theta: Floats, items: NDArray[np.generic], cumulated: Floats) -> tuple[Floats, ...]:
    """Of each answer at an ability: mean, variance, third and fourth central moment, and how likely the category
    nearest to the mean is."""
    p = _chances(theta, np.ascontiguousarray(cumulated[items].T))
    nearest = np.rint(np.arange(len(p), dtype=float) @ p).astype(np.int64)
    likely = p[nearest, np.arange(len(theta))]
    return *central_moments(p), likely


def log_likelihood(answers: Answers, beta: Floats) -> Callable[[Floats], Floats]:
    """Logarithm of the likelihood of each person, but for a constant, as a function of abilities."""
    if answers.ordered is not None:
        counts = answers.counts
        passed = np.ascontiguousarray(answers.ordered.cumulated(beta)[answers.items].T)
        k = np.arange(len(passed), dtype=float)

        def of_categories(theta: Floats) -> Floats:
            x = k[:, None] * np.repeat(theta, counts) - passed
            top = x.max(axis=0)
            x -= top
            np.exp(x, out=x)
            return answers.scores * theta - answers.sums(top + np.log(x.sum(axis=0)))

        return of_categories
    ease, odds = np.exp(-beta), np.empty(len(answers.items))

    def of_two(theta: Floats) -> Floats:
        with np.errstate(over="ignore"):
            answers.fill(np.exp(theta), ease, odds)
        np.add(odds, 1, out=odds)
        np.log(odds, out=odds)
        return answers.scores * theta - answers.sums(odds)

    return of_two
