"""Slopes of items on given abilities: how steeply answers rise, where the Rasch model has one slope for all.

One regression for each item,

    P(x = 1 | theta) = sigmoid(slope theta - intercept),

with a weak normal prior on the slope around 1; and score tests, which need no fit, of "one slope is enough" and of "the
slope is zero or more". Abilities are taken as known: right where each rests on many items, and otherwise slopes are too
flat (`slope_model.py` has abilities of its own). The prompts of a leaderboard are judged so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
import scipy

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.inference.items.slope_model import CurveModel
from spectral_irt.inference.results import adjust_p, chi2_tail
from spectral_irt.model import sigmoid
from spectral_irt.tables import Columns
from spectral_irt.text import p_value

MOST_GROUPS = 64  # of people of nearly the same ability; up to so many people each is one of their own
FEWEST_GROUPS = 4  # people of different abilities that an item needs for a slope
PRIOR_SD = 2.0  # of a slope around 1: data on a dozen people at different abilities already outweigh it
STEPS = 50  # of Newton's method
ENOUGH = 1e-8  # a step below which it ends
COMMON_SLOPE_STEPS = 4  # of finding the slope that all items have in common
LEVEL = 0.05
EXACT_PEOPLE = 60  # of an item up to which moments are exact; beyond, chi-square keeps its level
NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Slopes:
    """Slopes of all items, here the prompts of a leaderboard.

    `slope, se, intercept` are NaN where too few people answered, or all alike. `z` says how much steeper or flatter
    than the slope that all items have in common: the score test, which needs no fit. `negative` slopes are below zero,
    at most 5% of them by chance (Benjamini & Hochberg), by a score test of a slope of zero or more, which an item that
    separates perfectly passes too. `chi2, df, p` are of "one slope is enough", and `spread` is the standard deviation
    of the true slopes, the errors of the estimates taken off.
    """

    slope: Floats
    se: Floats
    intercept: Floats
    z: Floats
    negative: Mask
    chi2: float
    df: int
    p: float
    spread: float

    def columns(self) -> Columns:
        return {"slope": self.slope, "slope_se": self.se, "slope_z": self.z, "negative_slope": self.negative}

    @property
    def sentence(self) -> str:
        """What follows, in words."""
        slope = self.slope[np.isfinite(self.slope)]
        if not len(slope):
            return "None of the prompts has enough answers for a slope of its own."
        text = (
            f"Slopes differ by a standard deviation of {self.spread:.2f} around {np.median(slope):.2f} "
            f"(is one slope enough: chi2 = {self.chi2:,.0f}, df = {self.df:,}, {p_value(self.p)}); "
            f"{np.mean(slope < 0):.1%} are estimated below zero, {int(self.negative.sum()):,} of {len(slope):,} "
            "prompts significantly so."
        )
        if self.p > LEVEL:
            return text + " One slope for all is enough: the Rasch model's scores are all that the answers tell."
        return text + (
            " One slope for all is not enough: some prompts measure better than others, and a score that counts all "
            "alike is not the most precise one. Abilities and ranks stay right for prompts like these; steep ones "
            "measure best, and those with a slope below zero measure something else or have a wrong key."
        )


class GroupedAnswers(NamedTuple):
    """Answers and right answers, items x groups of people of like ability, and the ability of each group."""

    n: Floats
    right: Floats
    theta: Floats

    def take(self, items: Mask) -> GroupedAnswers:
        return GroupedAnswers(self.n[items], self.right[items], self.theta)


class Score(NamedTuple):
    """The score of each item's slope with its variance, and the variance of z^2, 2 where z is normal."""

    score: Floats
    variance: Floats
    z2_variance: Floats

    @property
    def z(self) -> Floats:
        z = np.full(len(self.score), np.nan)
        return np.divide(self.score, np.sqrt(self.variance), out=z, where=self.variance > NO_VARIANCE)

    @property
    def variance_of_sum(self) -> float:
        """The variance of the sum of z^2 over m items, at the slope in common, where scores add up to zero.

        With w_i = v_i / sum v of the variances v, the z are (I - u u') times independent ones, u_i^2 = w_i, so that the
        sum of their squares has the mean m - 1 and the variance 2 (m - 1) + sum (1 - w_i)^2 k_i, k_i the fourth
        cumulant of an independent z, 0 where it is normal.
        """
        varies = self.variance > NO_VARIANCE
        variance = self.variance[varies]
        free = 1 - variance / max(float(variance.sum()), NO_VARIANCE)
        return float(2 * free.sum() + free**2 @ (self.z2_variance[varies] - 2))


class Regression(NamedTuple):
    """Of each item."""

    slope: Floats
    se: Floats
    intercept: Floats


def slopes(responses: Responses, ability: Floats) -> Slopes:
    """The slope of every item on these abilities, one for each person; people without one are left out."""
    answers = by_ability(responses, ability)
    n = answers.n.sum(axis=1)
    n_right = answers.right.sum(axis=1)
    usable = ((answers.n > 0).sum(axis=1) >= FEWEST_GROUPS) & (n_right > 0) & (n_right < n)
    slope, se, intercept, z = np.full((4, responses.n_items), np.nan)
    negative = np.zeros(responses.n_items, dtype=bool)
    variance_of_sum = 0.0
    if usable.any():
        of_usable = answers.take(usable)
        score = score_at_common_slope(of_usable)
        z[usable] = score.z
        variance_of_sum = score.variance_of_sum
        slope[usable], se[usable], intercept[usable] = _regressions(of_usable)
        p_negative = scipy.special.ndtr(_z_of_zero_slope(of_usable))
        negative[usable] = (adjust_p(p_negative, "bh") < LEVEL) & (slope[usable] < 0)
    chi2 = float(np.nansum(z**2))
    df = max(int(np.isfinite(z).sum()) - 1, 0)
    spread = np.nan
    if df > 1:
        spread = float(np.sqrt(max(np.var(slope[usable], ddof=1) - np.mean(se[usable] ** 2), 0.0)))
    p = np.nan
    if df and variance_of_sum > 0:  # a multiple of chi-square with the mean df, and the variance of this sum
        shape = 2 * df / variance_of_sum
        p = float(chi2_tail(chi2 * shape, df * shape))
    return Slopes(slope=slope, se=se, intercept=intercept, z=z, negative=negative, chi2=chi2, df=df, p=p, spread=spread)


def by_ability(responses: Responses, ability: Floats) -> GroupedAnswers:
    """People of the same ability are a group, or, of many abilities, of about the same."""
    finite = np.isfinite(ability)
    abilities = ability[finite]
    values, group = np.unique(abilities, return_inverse=True)
    if len(values) > MOST_GROUPS:
        rank = np.argsort(np.argsort(abilities, kind="stable"), kind="stable")
        group = rank * MOST_GROUPS // len(rank)
    n_groups = int(group.max()) + 1 if len(group) else 1
    group_of_person = np.full(len(ability), -1, dtype=np.int64)
    group_of_person[finite] = group
    size = np.bincount(group, minlength=n_groups)
    theta = np.bincount(group, abilities, minlength=n_groups) / np.maximum(size, 1)
    n, right = responses.sum(_counts, responses.n_items, n_groups, persons=(group_of_person,))
    return GroupedAnswers(n.reshape(-1, n_groups), right.reshape(-1, n_groups), theta)


def _counts(block: Block, group_of_person: Ints, n_items: int, n_groups: int) -> tuple[Floats, Floats]:
    """Answers, and right ones, of each item in each group."""
    group = np.repeat(group_of_person, block.counts)
    in_a_group = group >= 0
    cell = np.asarray(block.items, dtype=np.int64)[in_a_group] * n_groups + group[in_a_group]
    right = block.right()[in_a_group]
    size = n_items * n_groups
    return np.bincount(cell, minlength=size).astype(float), np.bincount(cell[right], minlength=size).astype(float)


def _difficulties(answers: GroupedAnswers) -> Floats:
    """At slope 1: the Rasch model's, given abilities, by Newton's method."""
    n, right, theta = answers
    n_right = right.sum(axis=1)
    total = n.sum(axis=1)
    difficulty = (n @ theta) / total - np.log(n_right / (total - n_right))
    for _ in range(STEPS):
        p = sigmoid(theta - difficulty[:, None])
        information = (n * p * (1 - p)).sum(axis=1)
        step = np.clip(((n * p).sum(axis=1) - n_right) / np.maximum(information, 1e-10), -1, 1)
        difficulty = difficulty + step
        if np.max(np.abs(step)) < ENOUGH:
            break
    return difficulty


def score_at_common_slope(answers: GroupedAnswers) -> Score:
    """The score of each item at the slope that all have in common: abilities of short tests are stretched a little."""
    few = answers.n.sum(axis=1) <= EXACT_PEOPLE

    def score_at(slope: float) -> Score:
        stretched = answers._replace(theta=slope * answers.theta)
        score = _score(stretched)
        if few.any():
            for of_all, exact in zip(score, score_given_number_right(stretched.take(few)), strict=True):
                of_all[few] = exact
        return score

    slope = 1.0
    for _ in range(COMMON_SLOPE_STEPS):
        score = score_at(slope)
        slope *= 1 + float(score.score.sum() / max(score.variance.sum(), NO_VARIANCE))
    return score_at(slope)


def score_given_number_right(answers: GroupedAnswers) -> Score:
    """Exactly, by moments of T = sum x theta given how many are right, which the difficulty does not enter.

    A recursion over people carries sums of T^k prod e^(x theta) over all answers with the same number right; with nine
    people the normal approximation rejects three true models of four.
    """
    n, right, theta = answers
    deviation = theta - (n.sum(axis=0) @ theta) / n.sum()  # which keeps e^(x theta) within the range of numbers
    size = int(n.sum(axis=1).max()) + 1
    sums = np.zeros((5, len(n), size))  # powers 0 to 4 of T, items, number right
    sums[0, :, 0] = 1.0
    for people, shift in zip(n.T, deviation, strict=True):
        for j in range(int(people.max())):
            with_person = people > j
            before = sums[:, with_person, :-1]
            # (T + shift)^k by the binomial theorem
            powers = [sum(comb(k, i) * shift ** (k - i) * before[i] for i in range(k + 1)) for k in range(5)]
            sums[:, with_person, 1:] += np.exp(shift) * np.stack(powers)
    at_observed = sums[:, np.arange(len(n)), right.sum(axis=1).astype(np.int64)]
    first, second, third, fourth = at_observed[1:] / at_observed[0]
    variance = second - first**2
    central_fourth = fourth - 4 * third * first + 6 * second * first**2 - 3 * first**4
    kurtosis = np.divide(central_fourth, variance**2, out=np.ones(len(n)), where=variance > NO_VARIANCE)
    return Score(right @ deviation - first, variance, kurtosis - 1)


def _score(answers: GroupedAnswers) -> Score:
    """Of each item's slope at 1, with the difficulty estimated; z as normal."""
    n, right, theta = answers
    p = sigmoid(theta - _difficulties(answers)[:, None])
    information = n * p * (1 - p)
    mean = (information @ theta) / information.sum(axis=1)
    deviation = theta - mean[:, None]
    return Score(
        score=((right - n * p) * deviation).sum(axis=1),
        variance=(information * deviation**2).sum(axis=1),
        z2_variance=np.full(len(n), 2.0),
    )


def _z_of_zero_slope(answers: GroupedAnswers) -> Floats:
    """The score test of a slope of zero: how right answers go with ability."""
    n, right, theta = answers
    total = n.sum(axis=1)
    share = right.sum(axis=1) / total
    deviation = theta - ((n @ theta) / total)[:, None]
    variance = share * (1 - share) * (n * deviation**2).sum(axis=1)
    score = (right * deviation).sum(axis=1)
    return np.divide(score, np.sqrt(variance), out=np.zeros(len(score)), where=variance > 0)


def _regressions(answers: GroupedAnswers) -> Regression:
    n, right, theta = answers
    counts = np.stack([n - right, right], axis=1)
    everything = np.ones((len(n), 2), dtype=bool)
    features = np.zeros((2, 2, len(theta)))
    features[1] = [theta, np.ones(len(theta))]
    curves = CurveModel(features, has_category=everything, is_free=everything)
    value = np.stack([np.ones(len(n)), -_difficulties(answers)], axis=1)
    for _ in range(STEPS):
        newton = curves.newton(value, counts, center=np.ones(len(n)), precision=PRIOR_SD**-2)
        value = value + newton.step
        if np.abs(newton.step).max() < ENOUGH:
            break
    return Regression(value[:, 0], np.sqrt(np.linalg.inv(newton.information)[:, 0, 0]), -value[:, 1])
