"""Slopes of items: how steeply answers rise with ability, where the Rasch model has one slope for all.

`slopes` is a diagnosis with given abilities, one regression for each item, P(x = 1 | theta) = sigmoid(slope theta -
intercept), with a weak normal prior on the slope around 1. Abilities are taken as known: right where each rests on many
items, and otherwise slopes are too flat. `slope_model` has abilities of its own, and any number of categories,

    P(x = k | theta) ~ exp(k a_i theta - t_i1 - ... - t_ik),

the two-parameter or generalized partial credit model, by EM on a grid of abilities with free weights (Bock & Aitkin
1981; Muraki 1992). Answers drawn from it say what unequal slopes alone make of residual correlations and of groups of
unlike ability, before that is called a second dimension, local dependence or differential functioning."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine.base import one_blas_thread
from spectral_irt.inference.fit.redraw import redraw
from spectral_irt.inference.results import adjusted, chi2_tail
from spectral_irt.model import sigmoid
from spectral_irt.tables import Columns
from spectral_irt.text import p_value

BINS = 64  # groups of people of nearly the same ability; up to so many people each is one of their own
PRIOR_SD = 2.0  # of a slope around 1: data on a dozen people at different abilities already outweigh it
STEPS, ENOUGH = 50, 1e-8  # of Newton's method
LEAST = 4  # people of different abilities that an item needs for a slope
LEVEL = 0.05
FEW = 60  # people of an item up to which moments are exact; beyond, chi-square keeps its level
FARTHEST = 1.0  # that a parameter moves in a step

GRID = np.linspace(-4.5, 4.5, 19)  # abilities of the slope model
EM_STEPS = 30  # slopes are then within a fraction of their standard errors
LIKE = 4.0  # precision of a prior on slopes around their mean, sd 0.5: the ability stays that of all items together
FLATTEST = 0.3  # of the mean slope: items flatter than that measure something else
CELLS = 2_000_000  # people x items that the slopes of a group rest on, at most


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
    negative: NDArray[np.bool_]
    chi2: float
    df: int
    p: float
    spread: float

    def columns(self) -> Columns:
        return {"slope": self.slope, "slope_se": self.se, "slope_z": self.z, "negative_slope": self.negative}

    @property
    def sentence(self) -> str:
        """What follows, in words."""
        known = np.isfinite(self.slope)
        if not known.any():
            return "None of the prompts has enough answers for a slope of its own."
        share = float(np.mean(self.slope[known] < 0))
        said = (
            f"Slopes differ by a standard deviation of {self.spread:.2f} around {np.median(self.slope[known]):.2f} "
            f"(is one slope enough: chi2 = {self.chi2:,.0f}, df = {self.df:,}, {p_value(self.p)}); {share:.1%} are "
            f"estimated below zero, {int(self.negative.sum()):,} of {int(known.sum()):,} prompts significantly so."
        )
        if self.p > LEVEL:
            return said + " One slope for all is enough: the Rasch model's scores are all that the answers tell."
        return said + (
            " One slope for all is not enough: some prompts measure better than others, and a score that counts all "
            "alike is not the most precise one. What is said here stays right for prompts like these; steep ones "
            "measure best, and those with a slope below zero measure something else or have a wrong key."
        )


def slopes(responses: Responses, ability: Floats) -> Slopes:
    """The slope of every item on these abilities, one for each person; people without one are left out."""
    n, r, theta = by_ability(responses, ability)
    total, right = n.sum(axis=1), r.sum(axis=1)
    usable = ((n > 0).sum(axis=1) >= LEAST) & (right > 0) & (right < total)
    m = responses.n_items
    slope, se, intercept, z, varies = np.full((5, m), np.nan)
    negative = np.zeros(m, dtype=bool)
    if usable.any():
        some = n[usable], r[usable], theta
        z[usable], varies[usable] = _score_test(*some)
        slope[usable], se[usable], intercept[usable] = _regressions(*some)
        negative[usable] = (adjusted(scipy.special.ndtr(_against_zero(*some)), "bh") < LEVEL) & (slope[usable] < 0)
    chi2, df = float(np.nansum(z**2)), max(int(np.isfinite(z).sum()) - 1, 0)
    spread = p = np.nan
    if df > 1:
        spread = float(np.sqrt(max(np.var(slope[usable], ddof=1) - np.mean(se[usable] ** 2), 0.0)))
    if df:  # a multiple of chi-square with the mean df, and the variance of this sum
        shape = 2 * df / float(np.sum(varies[np.isfinite(z)]))
        p = float(chi2_tail(chi2 * shape, df * shape))
    return Slopes(slope, se, intercept, z, negative, chi2, df, p, spread)


def by_ability(responses: Responses, ability: Floats) -> tuple[Floats, Floats, Floats]:
    """Answers and right answers (items x groups of people of like ability), and the ability of each group."""
    known = np.isfinite(ability)
    values, place = np.unique(ability[known], return_inverse=True)
    if len(values) > BINS:
        order = np.argsort(np.argsort(ability[known], kind="stable"), kind="stable")
        place = order * BINS // len(order)
    groups = int(place.max()) + 1 if len(place) else 1
    code = np.full(len(ability), -1, dtype=np.int64)
    code[known] = place
    size = np.bincount(place, minlength=groups)
    theta = np.bincount(place, ability[known], minlength=groups) / np.maximum(size, 1)
    n, r = responses.sum(_counted, responses.n_items, groups, persons=(code,))
    return n.reshape(-1, groups), r.reshape(-1, groups), theta


def _counted(block: Block, code: Ints, n_items: int, groups: int) -> tuple[Floats, Floats]:
    """Answers, and right ones, of each item in each group."""
    group = np.repeat(code, block.counts)
    there = group >= 0
    cell = np.asarray(block.items, dtype=np.int64)[there] * groups + group[there]
    right = block.right()[there]
    size = n_items * groups
    return np.bincount(cell, minlength=size).astype(float), np.bincount(cell[right], minlength=size).astype(float)


def _intercepts(n: Floats, r: Floats, theta: Floats) -> Floats:
    """Difficulties at slope 1: the Rasch model's, given abilities."""
    target = r.sum(axis=1)
    total = n.sum(axis=1)
    c = (n @ theta) / total - np.log(target / (total - target))
    for _ in range(STEPS):
        p = sigmoid(theta - c[:, None])
        w = n * p * (1 - p)
        step = np.clip(((n * p).sum(axis=1) - target) / np.maximum(w.sum(axis=1), 1e-10), -1, 1)
        c = c + step
        if np.max(np.abs(step)) < ENOUGH:
            break
    return c


def _score_test(n: Floats, r: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """z of each item at the slope that all have in common, and the variance of z squared: 2 where z is normal.

    Abilities of short tests are stretched a little, hence the common slope.
    """
    few = n.sum(axis=1) <= FEW

    def scores(common: float) -> tuple[Floats, Floats, Floats]:
        score, variance = _scores(n, r, common * theta)
        varies = np.full(len(score), 2.0)
        if few.any():
            score[few], variance[few], varies[few] = _given_the_sum(n[few], r[few], common * theta)
        return score, variance, varies

    common = 1.0
    for _ in range(4):
        score, variance, _ = scores(common)
        common *= 1 + float(score.sum() / max(variance.sum(), 1e-12))
    score, variance, varies = scores(common)
    moves = variance > 1e-12
    return np.divide(score, np.sqrt(variance), out=np.full(len(score), np.nan), where=moves), varies


def _given_the_sum(n: Floats, r: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Score, variance, and the variance of z squared, exactly: by moments of T = sum x theta given how many are right,
    which the difficulty does not enter.

    A recursion over people carries sums of T^k prod e^(x theta) over all answers with the same number right; with nine
    people the normal approximation rejects three true models of four.
    """
    apart = theta - (n.sum(axis=0) @ theta) / n.sum()
    size = int(n.sum(axis=1).max()) + 1
    sums = np.zeros((5, len(n), size))
    sums[0, :, 0] = 1.0
    for people, step in zip(n.T, apart, strict=True):
        weight = np.exp(step)
        for j in range(int(people.max())):
            at = people > j
            before = sums[:, at, :-1]
            powers = [  # (T + step)^k by the binomial theorem
                sum(comb(k, i) * step ** (k - i) * before[i] for i in range(k + 1)) for k in range(5)
            ]
            sums[:, at, 1:] += weight * np.stack(powers)
    chosen = sums[:, np.arange(len(n)), r.sum(axis=1).astype(np.int64)]
    one, two, three, four = chosen[1:] / chosen[0]
    variance = two - one**2
    fourth = four - 4 * three * one + 6 * two * one**2 - 3 * one**4
    varies = np.divide(fourth, variance**2, out=np.ones(len(n)), where=variance > 1e-12) - 1
    return r @ apart - one, variance, varies


def _scores(n: Floats, r: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """The score of each item's slope at 1, and its variance, with the difficulty estimated."""
    p = sigmoid(theta - _intercepts(n, r, theta)[:, None])
    w = n * p * (1 - p)
    mean = (w @ theta) / w.sum(axis=1)
    apart = theta - mean[:, None]
    return ((r - n * p) * apart).sum(axis=1), (w * apart**2).sum(axis=1)


def _against_zero(n: Floats, r: Floats, theta: Floats) -> Floats:
    """The score test of a slope of zero: how right answers go with ability."""
    total = n.sum(axis=1)
    share = r.sum(axis=1) / total
    apart = theta - ((n @ theta) / total)[:, None]
    variance = share * (1 - share) * (n * apart**2).sum(axis=1)
    score = (r * apart).sum(axis=1)
    return np.divide(score, np.sqrt(variance), out=np.zeros(len(score)), where=variance > 0)


def _regressions(n: Floats, r: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Slopes, their errors, and intercepts."""
    counts, there = np.stack([n - r, r], axis=1), np.ones((len(n), 2), dtype=bool)
    features = np.zeros((2, 2, len(theta)))
    features[1] = [theta, np.ones(len(theta))]
    value = np.stack([np.ones(len(n)), -_intercepts(n, r, theta)], axis=1)
    for _ in range(STEPS):
        p = _probabilities(value, features, there)
        step, information = _newton(value, counts, p, features, there, np.ones(len(n)), PRIOR_SD**-2)
        value = value + step
        if np.abs(step).max() < ENOUGH:
            break
    return value[:, 0], np.sqrt(np.linalg.inv(information)[:, 0, 0]), -value[:, 1]


@dataclass(frozen=True, eq=False)
class SlopeModel:
    """What `slope_model` found: the slope of each item, their mean being 1, with standard errors; t of every threshold,
    where difficulties or thresholds would stand; mean and standard deviation of each person's ability."""

    slope: Floats
    slope_se: Floats
    intercepts: Floats
    ability: Floats
    ability_sd: Floats

    def redraw(self, responses: Responses, seed: np.random.SeedSequence) -> Responses:
        """The same people shown the same items, with answers drawn from this model."""
        return redraw(responses, self.intercepts, self.ability, self.ability_sd, seed, slope=self.slope)


@one_blas_thread()
def slope_model(responses: Responses) -> SlopeModel:
    """Slopes and thresholds of the items, and abilities of the people, of a table that fits into memory."""
    layout = responses.thresholds
    answers = responses.to_dense()
    k = np.arange(layout.widest + 1)
    there = k <= layout.max_score[:, None]  # items x categories
    chosen = np.array([answers == level for level in k], dtype=float)
    seen = chosen.sum(axis=0)
    number = chosen.sum(axis=1).T
    free = np.concatenate([np.ones((len(there), 1), bool), there[:, 1:]], axis=1)
    value = np.where(there, np.log((number + 0.5) / (number[:, :1] + 0.5)), 0.0)
    value[:, 0] = 1.0  # the slope, before the intercepts of categories 1, 2, ...
    # features of category k at ability q: k theta, and which of the categories it is
    features = np.stack([k[:, None] * GRID, *(np.outer(k == level, np.ones(len(GRID))) for level in k[1:])], axis=1)
    weight = np.exp(-(GRID**2) / 2)
    for _ in range(EM_STEPS):
        p = _probabilities(value, features, there)
        posterior = _posterior(chosen, p, there, weight)
        weight = posterior.sum(axis=0)
        r = np.array([each.T @ posterior for each in chosen]).transpose(1, 0, 2)  # items x categories x abilities
        value = value + _newton(value, r, p, features, free, value[:, 0].mean(), LIKE)[0]
        value[:, 0] = np.maximum(value[:, 0], FLATTEST * value[:, 0].mean())
    p = _probabilities(value, features, there)
    posterior = _posterior(chosen, p, there, weight)
    mean = posterior @ GRID
    # Scores of every person, whose squares add up to the information that the answers themselves have.
    scores = [sum(level * (chosen[level] * mean[:, None] - seen * (posterior @ (GRID * p[:, level]).T)) for level in k)]
    scores += [chosen[level] - seen * (posterior @ p[:, level].T) for level in k[1:]]
    information = np.array([[(a * b).sum(axis=0) for a in scores] for b in scores]).transpose(2, 0, 1)
    information += np.eye(len(k)) * np.where(free, 1e-9, 1.0)[:, None, :]
    common = float(value[:, 0].mean())
    variance = np.linalg.inv(information)[:, 0, 0]
    levels = np.diff(np.concatenate([np.zeros((len(value), 1)), -value[:, 1:]], axis=1), axis=1)
    return SlopeModel(
        value[:, 0] / common,
        np.sqrt(np.maximum(variance, 0.0)) / common,
        levels[layout.item, layout.level - 1],
        common * mean,
        common * np.sqrt(np.maximum(posterior @ GRID**2 - mean**2, 0.0)),
    )


def _probabilities(value: Floats, features: Floats, there: NDArray[np.bool_]) -> Floats:
    """Items x categories x abilities."""
    logit = np.einsum("ij,kjq->ikq", value, features)
    logit = np.where(there[:, :, None], logit - logit.max(axis=1, keepdims=True), -np.inf)
    p = np.exp(logit)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _posterior(chosen: Floats, p: Floats, there: NDArray[np.bool_], weight: Floats) -> Floats:
    """People x abilities."""
    log_p = np.log(np.where(there[:, :, None], np.maximum(p, 1e-300), 1.0))
    log = sum(each @ log_p[:, level] for level, each in enumerate(chosen)) + np.log(np.maximum(weight, 1e-300))
    log = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(log / log.sum(axis=1, keepdims=True))


def _newton(
    value: Floats,
    r: Floats,
    p: Floats,
    features: Floats,
    free: NDArray[np.bool_],
    center: Floats | float,
    precision: float,
) -> tuple[Floats, Floats]:
    """One step of Newton's method of every item on its own, from numbers of people by category and ability; and the
    information. Slopes, the first parameter, have a normal prior around `center`."""
    n = r.sum(axis=1, keepdims=True)
    gradient = np.einsum("ikq,kjq->ij", r - n * p, features)
    mean = np.einsum("ikq,kjq->ijq", p, features)
    information = np.einsum("ikq,kjq,klq->ijl", n * p, features, features, optimize=True)
    information -= np.einsum("iq,ijq,ilq->ijl", n[:, 0], mean, mean, optimize=True)
    gradient[:, 0] -= precision * (value[:, 0] - center)
    information[:, 0, 0] += precision
    information += np.eye(value.shape[1]) * np.where(free, 1e-9, 1.0)[:, None, :]
    step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
    return np.where(free, np.clip(step, -FARTHEST, FARTHEST), 0.0), information
