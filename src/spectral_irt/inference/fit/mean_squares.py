"""Infit and outfit of every item: sums over people.

The **conventional** ones compare answers with what is expected at the estimated ability, as Winsteps and eRm do; the
ability has already adapted to the answers, so their mean is below 1, the more so the shorter the test. The
**conditional** ones compare answers with what is expected given the score: their mean is 1 in tests of any length, and
their standardized form keeps its level (Müller 2020). Decide by these; the others are for comparison.

Estimated thresholds have used up the directions sum d_k = 0, d_k = 1{x >= k} - P(X >= k | score). With f = (x - E)^2 -
V, or that over V, r = sum Cov(f, d) and S = sum Cov(d, d'), what is left is the sum of f - r' S^-1 d, of variance sum
Var f - r' S^-1 r. (Right or wrong: d = x - P, r = sum V (1 - 2 P), or sum (1 - 2 P), and S = sum V.) Without this the
standard deviation of the standardized conditional forms is 0.8 instead of 1 (measured, 10 to 60 items).

On a rating scale the thresholds of an item are not free: it has a location, 1'd = x - E, and shares its offsets with
the other items of the scale. Taking off the location first leaves t = r - S 1 (1'r) / (1'S 1), about offsets alone, and
as much of every item's S: T_i = S_i - S_i 1 1' S_i / (1'S_i 1). The offsets are estimated from all items of the scale,
with the information T = sum_j T_j. So what is left is the sum of f - (1'r) / (1'S 1) 1'd - t' T^+ sum_j (d_j less its
location), of variance sum Var f - (1'r)^2 / (1'S 1) - t' T^+ t: with many items, next to nothing but the location is
taken off, and distances of thresholds other than those of the scale show. (Given the score, answers to two items are
correlated through x alone to first order, so that what is left of them after the locations is not.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.exact import DOUBLE, SINGLE, Precision, given_every_score
from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities
from spectral_irt.conditional.likelihood import QUICK_ANSWERS
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, person_chunks
from spectral_irt.data.shared_sets import SharedSet
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.model import above
from spectral_irt.persons.abilities import answers_with_difficulty, thresholds_of
from spectral_irt.persons.residuals import (
    CERTAIN,
    FARTHEST,
    LEAST,
    answers_at,
    mean_squares,
    probabilities,
    z_of_mean_square,
)
from spectral_irt.tables import Columns

CACHED = 32_768  # answers whose dozen numbers each stay in a core's second-level cache
SINGULAR = 1e-10  # of the largest eigenvalue: a direction that nothing is known about
ROUNDING = 1e-6  # a standard error below this is one of rounding


def item_statistics(
    responses: Responses, thresholds: Floats, ability: Floats, level: Ints | None = None, n_levels: int = 0
) -> Columns:
    """Conventional fit statistics of every item (Wright & Masters 1982, ch. 5); NaN for items that nobody with a mixed
    score answered, whose people alone count, as in eRm and Winsteps.

    `n, infit, infit_z, outfit, outfit_z`; `point_measure, point_measure_expected`: correlation of the answers with the
    abilities, and what the model expects of it; `exact_match, exact_match_expected`: percentage of answers within half
    a category of what is expected (right or wrong: the likelier ones), and what the model expects of it;
    `discrimination`: the slope of the item, one Newton step from the model's 1, as in Winsteps,

        1 + sum (x - E) (theta - b) / sum V (theta - b)^2,

    with its standard error `discrimination_se`. In a short test slopes are somewhat above 1 (1.09 on average with 8
    items, 1.02 with 40), for abilities have adapted to the answers.

    Of ratings, where each of these items is a combination, the same of every `level` that they are combined of.
    """
    layout = responses.thresholds
    beta = thresholds_of(responses, thresholds)
    finite = ability[np.isfinite(ability)]
    center = float(finite.mean()) if len(finite) else 0.0  # keeps digits in the correlations
    kernel = _sums_of_right_and_wrong if layout.binary else _sums_of_categories
    sums = ItemSums(*responses.entries.sum(kernel, beta, layout, center, persons=(ability,)))
    b = layout.mean(beta) - center  # the slope of an item turns on its own location
    sums = sums._replace(
        slope_score=sums.x_theta - sums.e_theta - b * (sums.x - sums.e),
        slope_information=sums.v_theta2 - 2 * b * sums.v_theta + b**2 * sums.v,
    )
    if level is not None:
        sums = ItemSums(*(np.bincount(level, weights=row, minlength=n_levels).astype(np.float64) for row in sums))
    n = sums.n
    theta = sums.theta
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(n * sums.theta2 - theta**2)
        point = (n * sums.x_theta - sums.x * theta) / (np.sqrt(n * sums.x2 - sums.x**2) * spread)
        expected = (n * sums.e_theta - sums.e * theta) / (np.sqrt(n * (sums.e2 + sums.v) - sums.e**2) * spread)
        squares = mean_squares(n, sums.z2, sums.square, sums.v, sums.outfit_variance, sums.infit_variance)
        return vars(squares) | {
            "point_measure": np.where(np.isfinite(point), point, np.nan),
            "point_measure_expected": np.where(np.isfinite(expected), expected, np.nan),
            "exact_match": 100 * sums.match / n,
            "exact_match_expected": 100 * sums.likely / n,
            "discrimination": 1 + sums.slope_score / sums.slope_information,
            "discrimination_se": 1 / np.sqrt(sums.slope_information),
        }


class ItemSums(NamedTuple):
    """Sums over the answers to each item of people with a mixed score, at their abilities theta.

    x is the answer, E its mean and V its variance, z^2 = (x - E)^2 / V, C its fourth central moment.
    """

    n: Floats
    z2: Floats
    square: Floats  # (x - E)^2
    v: Floats
    outfit_variance: Floats  # C / V^2 - 1
    infit_variance: Floats  # C - V^2
    x: Floats
    x2: Floats
    e: Floats
    e2: Floats
    theta: Floats
    theta2: Floats
    x_theta: Floats
    e_theta: Floats
    match: Floats  # whether x is within half a category of E
    likely: Floats  # how likely that is
    v_theta: Floats
    v_theta2: Floats
    slope_score: Floats  # (x - E) (theta - b), which the kernels leave at zero
    slope_information: Floats  # V (theta - b)^2, likewise

    @classmethod
    def zeros(cls, n_items: int) -> ItemSums:
        return cls(*np.zeros((len(cls._fields), n_items)))


def _sums_of_categories(block: Block, ability: Floats, beta: Floats, layout: Thresholds, center: float) -> ItemSums:
    total = ItemSums.zeros(layout.n_items)
    for answers in answers_at(block, ability, beta, layout):
        x = answers.x
        e = answers.mean
        theta = answers.theta - center
        n, z2, square, v, outfit_variance, infit_variance = answers.terms()
        v_theta = answers.variance * theta
        values = {
            "n": n,
            "z2": z2,
            "square": square,
            "v": v,
            "outfit_variance": outfit_variance,
            "infit_variance": infit_variance,
            "x": x,
            "x2": x * x,
            "e": e,
            "e2": e * e,
            "theta": theta,
            "theta2": theta**2,
            "x_theta": x * theta,
            "e_theta": e * theta,
            "match": np.abs(x - e) < 0.5,
            "likely": answers.likely,
            "v_theta": v_theta,
            "v_theta2": v_theta * theta,
        }
        _add_by_item(total, answers.item, values)
    return total


def _add_by_item(total: NamedTuple, item: NDArray[np.int32], values: Mapping[str, NDArray[Any] | None]) -> None:
    """Add to each sum that is named its values, one for each answer; None counts the answers."""
    for name, value in values.items():
        row = getattr(total, name)
        row += np.bincount(item, weights=value, minlength=len(row))


def _sums_of_right_and_wrong(
    block: Block, ability: Floats, difficulty: Floats, layout: Thresholds, center: float
) -> ItemSums:
    """The same: what is a number of the person times one of the item is added up by two sparse products: counts, sums
    of abilities, and with z^2 = exp(b - theta) for a right and exp(theta - b) for a wrong answer the outfits."""
    block = answers_with_difficulty(block, difficulty)
    if not block.informative.all():
        persons = np.flatnonzero(block.informative)
        block = block.take(persons)
        ability = ability[persons]
    if not block.n_persons:
        return ItemSums.zeros(layout.n_items)
    theta = ability - center
    exp_minus_b = np.exp(np.clip(np.where(np.isfinite(difficulty), center - difficulty, 0.0), -FARTHEST, FARTHEST))
    exp_theta = np.exp(np.clip(theta, -FARTHEST, FARTHEST))
    of_person = np.stack([np.ones(len(theta)), theta, theta**2, 1 / exp_theta, exp_theta], axis=1)
    passed, failed = block.halves(layout.n_items)
    right = passed.T @ of_person
    wrong = failed.T @ of_person
    n, sum_theta, sum_theta2, sum_inverse, sum_exp_theta = (right + wrong).T
    one_over_v = 2 * n + sum_inverse / exp_minus_b + sum_exp_theta * exp_minus_b
    sums = _sums_of_probabilities(block, ability, difficulty, theta)
    return sums._replace(
        n=n,
        z2=right[:, 3] / exp_minus_b + wrong[:, 4] * exp_minus_b,
        outfit_variance=one_over_v - 4 * n,
        infit_variance=sums.v - 4 * sums.infit_variance,
        x=right[:, 0],
        x2=right[:, 0],
        e2=sums.e - sums.v,
        theta=sum_theta,
        theta2=sum_theta2,
        x_theta=right[:, 1],
    )


def _sums_of_probabilities(block: Block, ability: Floats, difficulty: Floats, theta: Floats) -> ItemSums:
    """The sums that need the probability of each answer; `infit_variance` has the sum of V^2."""
    total = ItemSums.zeros(len(difficulty))
    every_right = block.right()
    for start, stop in person_chunks(block.indptr, CACHED):
        span = slice(int(block.indptr[start]), int(block.indptr[stop]))
        right = every_right[span]
        p = probabilities(block, difficulty, ability, start, stop)
        theta_of_answer = np.repeat(theta[start:stop], np.diff(block.indptr[start : stop + 1]))
        off = np.abs(right - p)
        v = p * (1 - p)
        v_theta = v * theta_of_answer
        values = {
            "e": p,
            "v": v,
            "square": off * off,
            "infit_variance": v * v,
            "e_theta": p * theta_of_answer,
            "match": (off < 0.5) + 0.5 * (off == 0.5),  # an even chance is half a match
            "likely": np.maximum(p, 1 - p),
            "v_theta": v_theta,
            "v_theta2": v_theta * theta_of_answer,
        }
        _add_by_item(total, block.items[span], values)
    return total


def conditional_statistics(
    responses: Responses,
    thresholds: Floats,
    *,
    scale_of_item: Ints | None = None,
    given: GivenScore | None = None,
    series_from: float | None = None,
) -> Columns:
    """Conditional infit and outfit of every item; NaN for items that nobody with a mixed score answered.

    `n, infit, infit_z, outfit, outfit_z`; `infit_se`: the standard error of the infit under the model. Answers to
    items without finite thresholds are left out, of the score too. `scale_of_item` is that of a rating scale model,
    `Calibration.scale_of_item`. `given` has the moments of ordered answers, where they are known already. People whose
    right and wrong answers carry the information `series_from` or more have their probabilities from a series (by
    default nobody up to 100,000 answers in all, and beyond that people with 4 or more).

    References
    ----------
    Müller (2020), J. Stat. Distrib. Appl. 7:5; Christensen, Kreiner & Mesbah (2013), Rasch Models in Health, ch. 5.
    """
    sums = sums_given_score(responses, thresholds, given=given, series_from=series_from)
    used = used_by_parameters(sums, None if responses.thresholds.binary else scale_of_item)
    n = sums.n
    v = sums.v
    with np.errstate(divide="ignore", invalid="ignore"):
        infit = sums.square / v
        outfit = sums.z2 / n
        infit_se = np.sqrt(np.maximum(sums.infit_variance - used.infit_variance, 0)) / v
        outfit_se = np.sqrt(np.maximum(sums.outfit_variance - used.outfit_variance, 0)) / n
        infit_se = np.where(infit_se > ROUNDING, infit_se, 0.0)  # of two items, say, where the infit cannot vary
        return {
            "n": n,
            "infit": infit,
            "infit_z": z_of_mean_square(np.maximum(infit - used.infit / v, 0), infit_se),
            "outfit": outfit,
            "outfit_z": z_of_mean_square(np.maximum(outfit - used.outfit / n, 0), outfit_se),
            "infit_se": np.where(infit_se > 0, infit_se, np.nan),
        }


class SumsGivenScore(NamedTuple):
    """Sums over the answers to each item of people with a mixed score, given the score; names are those of `ItemSums`,
    and d, r and S those of the module's text (r_infit and r_outfit: items x thresholds of one)."""

    n: Floats
    z2: Floats
    square: Floats
    v: Floats
    outfit_variance: Floats
    infit_variance: Floats
    off: Floats  # d, items x thresholds of one
    r_infit: Floats
    r_outfit: Floats
    between: Floats  # S, items x thresholds of one x thresholds of one


class UsedUp(NamedTuple):
    """What estimated parameters take off the sums of f of each item, and off their variances."""

    infit: Floats
    outfit: Floats
    infit_variance: Floats
    outfit_variance: Floats


def sums_given_score(
    responses: Responses, thresholds: Floats, *, given: GivenScore | None = None, series_from: float | None = None
) -> SumsGivenScore:
    """The sums that conditional fit statistics are made of; the parameters are those of `conditional_statistics`."""
    if responses.thresholds.binary:
        return _right_and_wrong_given_score(responses, thresholds_of(responses, thresholds), series_from)
    return _categories_given_score(responses, given or GivenScore.of(responses, thresholds))


def used_by_parameters(sums: SumsGivenScore, scale_of_item: Ints | None) -> UsedUp:
    """What the estimated parameters of the model take off; where `off` has an axis of data sets before the items, that
    of each of them."""
    if scale_of_item is None:
        return _used_by_thresholds(sums)
    return _used_by_rating_scales(sums, scale_of_item)


def _used_by_thresholds(sums: SumsGivenScore) -> UsedUp:
    """r' S^-1 d and r' S^-1 r: every threshold of an item is free."""
    if sums.between.shape[1] == 1:  # right or wrong
        with np.errstate(divide="ignore"):
            inverse = np.where(sums.between > 0, 1 / sums.between, np.nan)
    else:
        inverse = np.linalg.pinv(sums.between, rcond=SINGULAR, hermitian=True).astype(np.float64)
    infit = np.einsum("ikl,il->ik", inverse, sums.r_infit)
    outfit = np.einsum("ikl,il->ik", inverse, sums.r_outfit)
    return UsedUp(
        infit=(infit * sums.off).sum(axis=-1),
        outfit=(outfit * sums.off).sum(axis=-1),
        infit_variance=(infit * sums.r_infit).sum(axis=1),
        outfit_variance=(outfit * sums.r_outfit).sum(axis=1),
    )


def _used_by_rating_scales(sums: SumsGivenScore, scale_of_item: Ints) -> UsedUp:
    """What the locations take off, and the offsets of each scale."""
    s1 = sums.between.sum(axis=2)  # S 1
    information = s1.sum(axis=1)  # on the locations, 1'S 1
    answered = information > 0

    def per_information(values: Floats) -> Floats:
        return np.divide(values, information, out=np.zeros(values.shape), where=answered)

    def of_offsets(values: Floats) -> Floats:
        """What is left of r or d after the location."""
        return values - s1 * per_information(values.sum(axis=-1))[..., None]

    within = sums.between - np.einsum("ik,il,i->ikl", s1, s1, per_information(np.ones(len(s1))))  # T_i
    n_scales = int(scale_of_item.max(initial=0)) + 1
    information_on_offsets = np.zeros((n_scales, *within.shape[1:]))
    np.add.at(information_on_offsets, scale_of_item, within)
    member = np.arange(n_scales)[:, None] == scale_of_item
    off_offsets = member.astype(np.float64) @ of_offsets(sums.off)
    inverse = np.linalg.pinv(information_on_offsets, rcond=SINGULAR, hermitian=True)[scale_of_item]

    def loss_and_variance(r: Floats) -> tuple[Floats, Floats]:
        """What f with this r loses, and its variance."""
        location = r.sum(axis=1)
        offsets = np.einsum("ikl,il->ik", inverse, of_offsets(r))
        of_scale = (offsets * off_offsets[..., scale_of_item, :]).sum(axis=-1)
        value = per_information(location) * sums.off.sum(axis=-1) + of_scale
        variance = per_information(location) * location + (offsets * of_offsets(r)).sum(axis=1)
        return value, variance

    infit, infit_variance = loss_and_variance(sums.r_infit)
    outfit, outfit_variance = loss_and_variance(sums.r_outfit)
    return UsedUp(infit, outfit, infit_variance, outfit_variance)


def _categories_given_score(responses: Responses, given: GivenScore) -> SumsGivenScore:
    layout = given.layout
    thresholds = given.threshold_sums
    assert thresholds is not None
    sums, counts = responses.entries.sum(_sums_by_item, given, persons=(given.pattern,))
    n, z2, square, v, outfit_variance, infit_variance = sums
    return SumsGivenScore(
        n=n,
        z2=z2,
        square=square,
        v=v,
        outfit_variance=outfit_variance,
        infit_variance=infit_variance,
        off=above(counts) - layout.table(thresholds.passed, 0.0),
        r_infit=layout.table(thresholds.r_infit, 0.0),
        r_outfit=layout.table(thresholds.r_outfit, 0.0),
        between=thresholds.between,
    )


def _sums_by_item(block: Block, pattern: Ints, given: GivenScore) -> tuple[Floats, Floats]:
    """n, z2, square, v, outfit_variance and infit_variance of each item, a row each; and items x categories, how many
    gave each answer."""
    answers = answers_with_moments(block, pattern, given)
    m = given.layout.n_items
    v = np.maximum(answers.variance, LEAST)
    square = (answers.x - answers.mean) ** 2
    values = (None, square / v, square, v, answers.fourth / v**2 - 1, answers.fourth - v**2)
    sums = np.array([np.bincount(answers.item, weights=each, minlength=m) for each in values], dtype=np.float64)
    return sums, answers.counts(given.layout)


class RightAndWrongSums(NamedTuple):
    """Sums over right and wrong answers of people with a mixed score, by item; V = P (1 - P)."""

    n: Floats
    z2: Floats
    square: Floats
    v: Floats
    v2: Floats
    one_over_v: Floats
    p: Floats
    off: Floats  # x - P
    third: Floats  # V (1 - 2 P)

    @classmethod
    def zeros(cls, n_items: int) -> RightAndWrongSums:
        return cls(*np.zeros((len(cls._fields), n_items)))


def _right_and_wrong_given_score(responses: Responses, difficulty: Floats, series_from: float | None) -> SumsGivenScore:
    few_answers = responses.n_responses <= QUICK_ANSWERS
    if series_from is None:
        series_from = np.inf if few_answers else SERIES_FROM
    precision = DOUBLE if few_answers else SINGLE
    sums = RightAndWrongSums.zeros(len(difficulty))
    # People who share a set of items are counted by score; the others are taken one by one.
    others: Responses | None = responses
    shared_sets: Sequence[SharedSet] = ()
    if np.isfinite(difficulty).all() and responses.shared is not None:
        others = responses.shared.rest
        shared_sets = responses.shared.sets
    if others is not None:
        sums = RightAndWrongSums(*others.sum(_conditional_sums, difficulty, series_from, precision))
    for shared in shared_sets:
        for total, of_set in zip(sums, _sums_of_set(shared, difficulty[shared.items]), strict=True):
            total[shared.items] += of_set
    return SumsGivenScore(
        n=sums.n,
        z2=sums.z2,
        square=sums.square,
        v=sums.v,
        outfit_variance=sums.one_over_v - 4 * sums.n,
        infit_variance=sums.v - 4 * sums.v2,
        off=sums.off[:, None],
        r_infit=sums.third[:, None],
        r_outfit=(sums.n - 2 * sums.p)[:, None],
        between=sums.v[:, None, None],
    )


def _sums_of_set(shared: SharedSet, difficulty: Floats) -> RightAndWrongSums:
    """What `_conditional_sums` gives for people who share a set of items, from how many of each score were right."""
    right = shared.right[1:-1]
    people = shared.people[1:-1][:, None]
    p = np.clip(given_every_score(difficulty[None]).p[0].T, CERTAIN, 1 - CERTAIN)
    v = p * (1 - p)
    square = right * (1 - p) ** 2 + (people - right) * p**2
    return RightAndWrongSums(
        n=np.broadcast_to(people, p.shape).sum(axis=0),
        z2=(square / v).sum(axis=0),
        square=square.sum(axis=0),
        v=(people * v).sum(axis=0),
        v2=(people * v * v).sum(axis=0),
        one_over_v=(people / v).sum(axis=0),
        p=(people * p).sum(axis=0),
        off=(right - people * p).sum(axis=0),
        third=(people * v * (1 - 2 * p)).sum(axis=0),
    )


def _conditional_sums(block: Block, difficulty: Floats, series_from: float, precision: Precision) -> RightAndWrongSums:
    block = answers_with_difficulty(block, difficulty)
    persons = np.flatnonzero(block.informative)
    total = RightAndWrongSums.zeros(len(difficulty))
    if not len(persons):
        return total
    if len(persons) < block.n_persons:
        block = block.take(persons)
    every_p = conditional_probabilities(block, difficulty, series_from=series_from, precision=precision)
    every_right = block.right()
    for start in range(0, block.n_responses, CACHED):
        span = slice(start, start + CACHED)
        right = every_right[span]
        p = np.clip(every_p[span], CERTAIN, 1 - CERTAIN)
        v = p * (1 - p)
        off = right - p
        one_over_v = 1 / v
        square = off * off
        values = {
            "n": None,
            "z2": square * one_over_v,
            "square": square,
            "v": v,
            "v2": v * v,
            "one_over_v": one_over_v,
            "p": p,
            "off": off,
            "third": v * (1 - 2 * p),
        }
        _add_by_item(total, block.items[span], values)
    return total
