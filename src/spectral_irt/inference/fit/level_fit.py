"""The fit of raters, of the levels of any facet, or of items that several raters rated, given every person's total.

Let f(x) be a function of a rating x with mean zero given the person's total, and F the sum of f over the ratings of one
level: of (x - E)^2 - V for infit, of that over V for outfit, of theta (x - E) for the slope, E and V the mean and the
variance of x given the total. The ability theta is itself a function of the total, so that all three are compared with
what the model says without any estimated ability.

At estimated parameters their scores g, the derivatives of the conditional likelihood, are zero, and F has adapted to
that: what is left is F - R I^-1 g, of variance Var F - R I^-1 R', with R = Cov(F, g) and I = Cov(g, g).

A rater has several ratings of one person, which depend on each other given the total: all of these are sums over pairs
of ratings. The contour sum of `conditional.exact` has them without going through pairs. At a point z of the unit circle
ratings are independent, with the complex probabilities q_ic = p_ic z^c / g_i(z), so that for i != j

    Cov(f(X_i), h(X_j) | total) = Re sum_z w_z E_z f(X_i) E_z h(X_j),    E_z f(X_i) = sum_c f(c) q_ic,

and a sum over pairs is the product of two sums at every point, less the products of each rating with itself.

Where parameters or ratings are too many for that, each level has its severity taken off alone. Of the sum S of a
person's ratings by one level, on which the slope rests, the variance given the total is taken from

    Cov(X_i, X_j | total) = w_i [i = j] - w_i w_j / W,    W = sum w,

with w such that the variances of single ratings are right; in (x - E)^2 ratings of one person count as independent.

The table of raters (`inference/facets.py`) and halo (`halo.py`) rest on these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.exact import (
    LEAST_FACTOR,
    Contour,
    PatternPart,
    padded_sums,
    pattern_parts,
    threshold_codes,
)
from spectral_irt.conditional.penalized import DENSE_PARAMETERS
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.patterns import distinct_sets
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.model import above
from spectral_irt.persons.residuals import LEAST, z_of_mean_square
from spectral_irt.tables import Columns

Complex = NDArray[np.complex128]
# Rows of arrays with one for each function of a rating.
INFIT = 0
OUTFIT = 1
SLOPE = 2
FUNCTIONS = 3
POINT_CELLS = 200_000  # numbers at a time at the points of the circle: 3 MB, and thirty times that in sparse matrices
PAIR_WORK = 400_000  # thresholds met, over all patterns of people: up to here pairs take a few seconds
WEIGHT_STEPS = 8  # to the weights of which ratings given the total have their variances
LEAST_REST = 0.1  # of a person's weight, what a rating leaves to the others: fewer than that have no steady weights
SINGULAR = 1e-10  # of the largest eigenvalue: a direction that nothing is known about
ROUNDING = 1e-9  # of a variance, to the one before parameters are taken off, or of ratings alone: less is rounding


class LevelSums(NamedTuple):
    """Sums over the ratings of each level, given the totals.

    `n` ratings of people without an extreme total; sums of (x - E)^2, of that over V, and of V; and of each of the
    three functions (rows) what is left at estimated parameters, `value`, with its `variance`.
    """

    n: Floats
    square: Floats
    square_over_v: Floats
    v: Floats
    value: Floats
    variance: Floats


class RatingSums(NamedTuple):
    """Sums over the ratings x of each level, by the moments of x given the total: E, V, the third C and the fourth D;
    theta is the ability. S is the sum of a person's ratings by the level."""

    n: Floats
    square_over_v: Floats  # (x - E)^2 / V
    square: Floats  # (x - E)^2
    v: Floats
    slope: Floats  # theta (x - E)
    off: Floats  # x - E
    infit_variance: Floats  # D - V^2
    outfit_variance: Floats  # D / V^2 - 1
    slope_variance: Floats  # theta^2 Var S
    slope_alone: Floats  # theta^2 V: as if a person's ratings were independent
    r_infit: Floats  # Cov of (x - E)^2 and x: C
    r_outfit: Floats  # C / V
    r_slope: Floats  # theta Var S
    variance_of_sum: Floats  # Var S


class Adaptation(NamedTuple):
    """What estimated parameters take up: the variance of each F, functions x levels; R, functions x levels x
    parameters; I; and P(X >= k | total) summed over people, for every threshold."""

    variance: Floats
    cross: Floats
    information: Floats
    expected: Floats

    def plus(self, other: Adaptation) -> Adaptation:
        return Adaptation(*(a + b for a, b in zip(self, other, strict=True)))


def level_fit(
    responses: Responses, given: GivenScore, ability: Floats, level: Ints, n_levels: int, design: sparse.csr_array
) -> Columns:
    """Infit, outfit and slope of every level given the totals.

    `infit, infit_z, outfit, outfit_z`: mean squares, 1 expected whatever the number of ratings a person has;
    `discrimination, discrimination_se`: one step from the model's 1 towards the slope of the level's ratings on
    ability. NaN for a level without ratings of people whose total is not extreme, or where nothing is left to vary.

    `given` has the moments of ratings given the totals, `level` is that of every (virtual) item, and thresholds are
    `design` times the parameters that were estimated.
    """
    sums = level_sums(responses, given, ability, level, n_levels, design)
    deviation = np.sqrt(sums.variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_se = np.where(deviation[SLOPE] > 0, 1 / deviation[SLOPE], np.nan)
        return {
            "infit": sums.square / sums.v,
            "infit_z": z_of_mean_square(np.maximum(1 + sums.value[INFIT] / sums.v, 0), deviation[INFIT] / sums.v),
            "outfit": sums.square_over_v / sums.n,
            "outfit_z": z_of_mean_square(np.maximum(1 + sums.value[OUTFIT] / sums.n, 0), deviation[OUTFIT] / sums.n),
            "discrimination": 1 + sums.value[SLOPE] * slope_se**2,
            "discrimination_se": slope_se,
        }


def level_sums(
    responses: Responses, given: GivenScore, ability: Floats, level: Ints, n_levels: int, design: sparse.csr_array
) -> LevelSums:
    """Sums by level with what estimated parameters take up; ratings of the level -1 belong to none."""
    layout = responses.thresholds
    ability = np.where(np.isfinite(ability), ability, 0.0)
    kernel_arguments = (given, level, n_levels)
    rows, counts = responses.entries.sum(_rating_sums, *kernel_arguments, persons=(given.pattern, ability))
    sums = RatingSums(*rows)
    observed = np.array([sums.square - sums.v, sums.square_over_v - sums.n, sums.slope])
    adaptation = _adaptation(responses, given.beta, ability, level, n_levels, design)
    if adaptation is None:
        variance = np.array([sums.infit_variance, sums.outfit_variance, sums.slope_variance])
        cross = np.array([sums.r_infit, sums.r_outfit, sums.r_slope])
        severity_information = np.array([sums.v, sums.v, sums.variance_of_sum])
        with np.errstate(divide="ignore", invalid="ignore"):
            per_off = np.where(severity_information > 0, cross / severity_information, 0.0)
        value = observed - per_off * sums.off
        left = variance - per_off * cross
    else:
        variance = adaptation.variance
        passed = above(counts)[layout.item, layout.level - 1]
        score = design.T @ (passed - adaptation.expected)
        inverse = np.linalg.pinv(adaptation.information, rcond=SINGULAR, hermitian=True)
        per_score = adaptation.cross @ inverse
        value = observed - per_score @ score
        left = variance - np.einsum("flp,flp->fl", per_score, adaptation.cross)
    largest = np.array([variance[INFIT], variance[OUTFIT], np.maximum(variance[SLOPE], sums.slope_alone)])
    left = np.where(left > ROUNDING * largest, left, 0.0)
    return LevelSums(
        n=sums.n, square=sums.square, square_over_v=sums.square_over_v, v=sums.v, value=value, variance=left
    )


def _rating_sums(
    block: Block, pattern: Ints, ability: Floats, given: GivenScore, level: Ints, n_levels: int
) -> tuple[Floats, Floats]:
    """The fields of `RatingSums`; and items x categories, how many people without an extreme total gave each rating."""
    answers = answers_with_moments(block, pattern, given)
    theta = ability[answers.person]
    v = np.maximum(answers.variance, LEAST)
    off = answers.x - answers.mean
    square = off**2
    level_of_rating = level[answers.item]
    # In the place of the first of a person's ratings by one level.
    of_sum = variance_of_sums(answers.person, level_of_rating, v)
    values = RatingSums(
        n=np.ones(len(off)),
        square_over_v=square / v,
        square=square,
        v=v,
        slope=theta * off,
        off=off,
        infit_variance=answers.fourth - v**2,
        outfit_variance=answers.fourth / v**2 - 1,
        slope_variance=theta**2 * of_sum,
        slope_alone=theta**2 * v,
        r_infit=answers.third,
        r_outfit=answers.third / v,
        r_slope=theta * of_sum,
        variance_of_sum=of_sum,
    )
    counted = level_of_rating >= 0
    sums = [np.bincount(level_of_rating[counted], weights=value[counted], minlength=n_levels) for value in values]
    return np.array(sums), answers.counts(given.layout)


def variance_of_sums(person: Ints, level: Ints, variance: Floats) -> Floats:
    """The variance given the total of the sum of each person's ratings by one level, from those of single ratings; at
    the first of these ratings, 0 at the others.

    Of two ratings by each of two raters, all of the variance 3 / 4, w is 1, and that of a sum 2 - 2^2 / 4 = 1.

    >>> variance_of_sums(np.zeros(4, dtype=int), np.array([0, 0, 1, 1]), np.full(4, 0.75)).round(6).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    w = variance
    for _ in range(WEIGHT_STEPS):
        share = w / np.bincount(person, w)[person]
        w = variance / np.maximum(1 - share, LEAST_REST)
    person_and_level = person.astype(np.int64) * (level.max(initial=0) + 2) + level + 1
    _, first, cell = np.unique(person_and_level, return_index=True, return_inverse=True)
    w_of_sum = np.bincount(cell.ravel(), w)
    w_of_person = np.bincount(person, w)[person[first]]
    of_sum = np.zeros(len(variance))
    of_sum[first] = w_of_sum * (1 - w_of_sum / w_of_person)
    return of_sum


def _adaptation(
    responses: Responses, thresholds: Floats, ability: Floats, level: Ints, n_levels: int, design: sparse.csr_array
) -> Adaptation | None:
    """What estimated parameters take up, by pairs of ratings; None where that would take long."""
    layout = responses.thresholds
    if design.shape[1] > DENSE_PARAMETERS:
        return None
    patterns = distinct_sets(responses)
    rows = patterns.rows
    if len(rows.items) * layout.widest > PAIR_WORK:
        return None
    theta = np.zeros(len(patterns.count))
    theta[patterns.of_person] = ability  # the same for all people of a pattern
    padding = sparse.csr_array((1, design.shape[1]))
    padded_design = sparse.csr_array(sparse.vstack([design, padding]))
    padded_level = np.append(np.where(level < 0, n_levels, level), n_levels)
    parts = responses.engine.hold(pattern_parts(rows, patterns.count, layout))
    kernel_arguments = (theta, padded_sums(layout, thresholds), layout, padded_level, n_levels, padded_design)
    total: Adaptation | None = None
    for part in parts.map(_part_adaptation, *kernel_arguments):
        total = part if total is None else total.plus(part)
    if total is None:  # nobody without an extreme total
        return None
    return Adaptation(
        variance=total.variance[:, :-1],
        cross=total.cross[:, :-1],
        information=total.information,
        expected=total.expected[:-1],
    )


class Products(NamedTuple):
    """Products of each rating with itself, for each rating of each pattern, times the people: of the functions, of
    functions and scores, and of scores."""

    variance: Floats
    cross: Floats
    information: Floats

    @classmethod
    def of(cls, p: Floats, functions: Floats, passed: Floats, people: Floats) -> Products:
        """What they are given the total."""
        return cls(
            variance=(p * functions**2).sum(axis=1) * people,
            cross=above(p * functions, axis=1) * people,
            information=(np.minimum(passed[:, None], passed) - passed[:, None] * passed) * people,
        )

    def take_off(self, weight: Complex, means: Complex, scores: Complex) -> None:
        """Take off those that products of sums have at these points."""
        variance, cross, information = self
        for w, mean, score in zip(weight, means, scores, strict=True):
            variance -= (w * mean**2).real
            cross -= (w * mean[:, None] * score).real
            information -= (w * score[:, None] * score).real


def _part_adaptation(
    part: PatternPart,
    theta: Floats,
    cumulated: Floats,
    layout: Thresholds,
    level: Ints,
    n_levels: int,
    design: sparse.csr_array,
) -> Adaptation:
    """What the patterns of one tile add; arrays are categories (or thresholds) x ratings x people."""
    contour = Contour.of(cumulated.T[1:, part.items.T], part.scores, part.max_scores)
    above_lowest = contour.given.p
    p = np.concatenate([np.maximum(1 - above_lowest.sum(axis=0, keepdims=True), 0.0), above_lowest])
    functions = _functions_of_ratings(p, theta[part.which])
    functions *= part.inside.T
    passed = above(p, axis=0)
    # Each rating with itself, exactly; less what the products of sums at the points of the circle have of it.
    with_itself = Products.of(p, functions, passed, part.people)
    codes = threshold_codes(layout)[part.items].transpose(2, 1, 0)  # thresholds x ratings x people
    level_of_rating = level[part.items.T]
    n_entries = layout.n_entries + 1
    variance = np.zeros((FUNCTIONS, n_levels + 1))
    cross = np.zeros((FUNCTIONS, n_levels + 1, design.shape[1]))
    information = np.zeros((design.shape[1], design.shape[1]))
    points_at_a_time = max(POINT_CELLS // (functions[:, 0].size + passed.size), 1)
    for start in range(0, len(contour.angle), points_at_a_time):
        points = slice(start, start + points_at_a_time)
        some_points = replace(contour, angle=contour.angle[points], weight=contour.weight[points])
        means, scores = _means_at_points(some_points, functions, passed)
        weight = some_points.weight * part.people  # points x people
        with_itself.take_off(weight, means, scores)
        # Sums over the ratings of a person, a row for each point and person: by level, and by parameter.
        row = np.arange(weight.size).reshape(weight.shape)
        by_parameter = _sums_by_cell(scores, row[:, None, None], codes, n_entries) @ design
        weighted = sparse.csr_array(by_parameter.multiply(weight.ravel()[:, None]))
        information += (by_parameter.T @ weighted).real.toarray()
        for k in range(FUNCTIONS):
            by_level = _sums_by_cell(means[:, k], row[:, None], level_of_rating, n_levels + 1)
            variance[k] += (by_level.multiply(by_level).T @ weight.ravel()).real
            cross[k] += (by_level.T @ weighted).real.toarray()
    for k in range(FUNCTIONS):
        variance[k] += np.bincount(level_of_rating.ravel(), with_itself.variance[k].ravel(), minlength=n_levels + 1)
        cross[k] += (
            _sums_by_cell(with_itself.cross[k], level_of_rating, codes, n_entries, n_levels + 1) @ design
        ).toarray()
    of_thresholds = _sums_by_cell(with_itself.information, codes[:, None], codes, n_entries, n_entries)
    information += (design.T @ of_thresholds @ design).toarray()
    expected = np.bincount(codes.ravel(), (passed * part.people).ravel(), minlength=n_entries).astype(np.float64)
    return Adaptation(variance=variance, cross=cross, information=information, expected=expected)


def _functions_of_ratings(p: Floats, theta: Floats) -> Floats:
    """f of every category, for infit, outfit and slope: functions x categories x ratings x people."""
    category = np.arange(len(p), dtype=float)[:, None, None]
    mean = (category * p).sum(axis=0)
    v = np.maximum(((category - mean) ** 2 * p).sum(axis=0), LEAST)
    square = (category - mean) ** 2 - v
    return np.stack([square, square / v, (category - mean) * theta])


def _means_at_points(contour: Contour, functions: Floats, passed: Floats) -> tuple[Complex, Complex]:
    """E_z of each function, points x functions x ratings x people, and of 1{X >= k} - P(X >= k | total), points x
    thresholds x ratings x people."""
    means = np.empty((len(contour.angle), len(functions), *passed.shape[1:]), dtype=np.complex128)
    scores = np.empty((len(contour.angle), *passed.shape), dtype=np.complex128)
    for k, q in enumerate(at_points(contour)):
        means[k] = (functions * q).sum(axis=1)
        scores[k] = above(q, axis=0) - passed
    return means, scores


def at_points(contour: Contour) -> Iterator[Complex]:
    """q at each point: categories x ratings x people."""
    category = np.arange(len(contour.p), dtype=float)[:, None, None]
    for angle in contour.angle:
        q = contour.p * np.exp(1j * category * angle)
        generating = q.sum(axis=0)  # g_i(z)
        q /= np.where(np.abs(generating) < LEAST_FACTOR, LEAST_FACTOR, generating)
        yield q


def _sums_by_cell(
    values: NDArray[Any], row: Ints, column: Ints, n_columns: int, n_rows: int | None = None
) -> sparse.csr_array:
    """Values added up in the cells of a sparse matrix; rows and columns are broadcast to the values."""
    rows = np.broadcast_to(row, values.shape).ravel()
    columns = np.broadcast_to(column, values.shape).ravel()
    n_rows = int(row.max()) + 1 if n_rows is None else n_rows
    return sparse.csr_array((values.ravel(), (rows, columns)), shape=(n_rows, n_columns))
