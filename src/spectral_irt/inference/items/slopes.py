"""Discrimination as a diagnosis: how steeply the chance of a right answer rises with ability, item by item.

The Rasch model gives every item the same slope. Given abilities, each item's own is that of a logistic regression,

    P(x = 1 | theta) = sigmoid(slope theta - intercept),

with a weak normal prior on the slope around 1, without which an item that separates people perfectly has none. People
of nearly the same ability are put together, so that one pass over the answers is enough for all items. Abilities are
taken as known: right where each rests on many items, and otherwise slopes are too flat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.probability import benjamini_hochberg
from spectral_irt.model import sigmoid
from spectral_irt.tables import Columns

BINS = 64  # groups of people of nearly the same ability; up to so many people each is one of their own
PRIOR_SD = 2.0  # of a slope around 1: data on a dozen people at different abilities already outweigh it
STEPS, ENOUGH = 50, 1e-8  # of Newton's method
LEAST = 4  # people of different abilities that an item needs for a slope
LEVEL = 0.05
FEW = 60  # people of an item up to which moments are exact; beyond, chi-square keeps its level


@dataclass(frozen=True, eq=False)
class Slopes:
    """Slopes of all items.

    Attributes
    ----------
    slope, se, intercept : float arrays
        NaN where too few people answered, or all alike.
    z : float array
        How much steeper (positive) or flatter (negative) than the slope that all items have in common: the score test,
        which needs no fit.
    p_negative : float array
        Of a slope of zero or more, one-sided: the score test again, which an item that separates perfectly passes too.
    negative : bool array
        Slopes below zero, at most 5% of them by chance (Benjamini & Hochberg).
    chi2, df, p : float, int, float
        Of "one slope is enough".
    spread : float
        Standard deviation of the true slopes, the errors of the estimates taken off.
    """

    slope: Floats
    se: Floats
    intercept: Floats
    z: Floats
    p_negative: Floats
    negative: Floats
    chi2: float
    df: int
    p: float
    spread: float
    word: str = "items"

    def columns(self) -> Columns:
        return {
            "slope": self.slope,
            "slope_se": self.se,
            "slope_z": self.z,
            "negative_slope": self.negative.astype(bool),
        }

    @property
    def sentence(self) -> str:
        """What follows, in words."""
        known = np.isfinite(self.slope)
        if not known.any():
            return f"None of the {self.word} has enough answers for a slope of its own."
        share = float(np.mean(self.slope[known] < 0))
        chance = "p < 0.0001" if self.p < 1e-4 else f"p = {self.p:.4f}"
        said = (
            f"Slopes differ by a standard deviation of {self.spread:.2f} around {np.median(self.slope[known]):.2f} "
            f"(is one slope enough: chi2 = {self.chi2:,.0f}, df = {self.df:,}, {chance}); {share:.1%} are "
            "estimated "
            f"below zero, {int(self.negative.sum()):,} of {int(known.sum()):,} {self.word} surely so."
        )
        if self.p > LEVEL:
            return said + " One slope for all is enough: the Rasch model's scores are all that the answers tell."
        return said + (
            f" One slope for all is not enough: some {self.word} measure better than others, and a score that counts "
            "all "
            f"alike is not the most precise one. What is said here stays right for {self.word} like these; steep ones "
            "measure best, and those with a slope below zero measure something else or have a wrong key."
        )


def slopes(responses: Responses, ability: Floats, word: str = "items") -> Slopes:
    """The slope of every item on these abilities, one for each person; people without one are left out.

    `word` is what items are called in sentences.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> data = simulate.rasch(400, 60, seed=1)
    >>> found = slopes(data.responses, data.ability)
    >>> bool(abs(found.slope.mean() - 1) < 0.05), bool(found.p > 0.001)
    (True, True)
    """
    n, r, theta = by_ability(responses, ability)
    total, right = n.sum(axis=1), r.sum(axis=1)
    usable = ((n > 0).sum(axis=1) >= LEAST) & (right > 0) & (right < total)
    m = responses.n_items
    slope, se, intercept, z, varies = (np.full(m, np.nan) for _ in range(5))
    if usable.any():
        z[usable], varies[usable] = _score_test(n[usable], r[usable], theta)
        slope[usable], se[usable], intercept[usable] = _regressions(n[usable], r[usable], theta)
    from scipy.special import chdtrc, ndtr

    p_negative = np.full(m, np.nan)
    p_negative[usable] = ndtr(_against_zero(n[usable], r[usable], theta))
    negative = np.zeros(m, dtype=bool)
    negative[usable] = (benjamini_hochberg(p_negative[usable]) < LEVEL) & (slope[usable] < 0)
    chi2, df = float(np.nansum(z**2)), max(int(np.isfinite(z).sum()) - 1, 0)
    spread = np.nan
    if df > 1:
        spread = float(np.sqrt(max(np.var(slope[usable], ddof=1) - np.mean(se[usable] ** 2), 0.0)))
    p = np.nan
    if df:  # a multiple of chi-square with the mean df, and the variance of this sum
        shape = 2 * df / float(np.sum(varies[np.isfinite(z)]))
        p = float(chdtrc(df * shape, chi2 * shape))
    return Slopes(slope, se, intercept, z, p_negative, negative, chi2, df, p, spread, word)


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
        step = ((n * p).sum(axis=1) - target) / np.maximum(w.sum(axis=1), 1e-10)
        step = np.clip(step, -1, 1)
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
    """Score, variance, and the variance of z squared, exactly.

    They are moments of T = sum x theta given how many are right, which the difficulty does not enter.

    A recursion over people carries sums of T^k prod e^(x theta) over all answers with the same number right; with nine
    people the normal approximation rejects three true models of four.
    """
    apart = theta - (n.sum(axis=0) @ theta) / n.sum()
    size = int(n.sum(axis=1).max()) + 1
    sums = np.zeros((5, len(n), size))
    sums[0, :, 0] = 1.0
    for k, step in enumerate(apart):
        weight = np.exp(step)
        for j in range(int(n[:, k].max())):
            at = n[:, k] > j
            before = sums[:, at, :-1]
            one, two = before[1] + step * before[0], before[2] + step * (2 * before[1] + step * before[0])
            three = before[3] + step * (3 * before[2] + step * (3 * before[1] + step * before[0]))
            four = before[4] + step * (
                4 * before[3] + step * (6 * before[2] + step * (4 * before[1] + step * before[0]))
            )
            sums[:, at, 1:] += weight * np.stack([before[0], one, two, three, four])
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
    """Slopes, their errors, and intercepts, by Newton's method with halved steps."""
    c = _intercepts(n, r, theta)
    a = np.ones(len(c))
    precision = PRIOR_SD**-2

    def value(a: Floats, c: Floats) -> Floats:
        eta = a[:, None] * theta - c[:, None]
        out: Floats = (r * eta - n * np.logaddexp(0, eta)).sum(axis=1) - precision * (a - 1) ** 2 / 2
        return out

    best = value(a, c)
    for _ in range(STEPS):
        p = sigmoid(a[:, None] * theta - c[:, None])
        w, left = n * p * (1 - p), r - n * p
        g_a, g_c = left @ theta - precision * (a - 1), -left.sum(axis=1)
        h_aa, h_ac, h_cc = w @ theta**2 + precision, -(w @ theta), w.sum(axis=1) + 1e-9
        determinant = h_aa * h_cc - h_ac**2
        step_a = (h_cc * g_a - h_ac * g_c) / determinant
        step_c = (h_aa * g_c - h_ac * g_a) / determinant
        size = np.ones(len(a))
        for _ in range(20):
            new = value(a + size * step_a, c + size * step_c)
            worse = new < best - 1e-12 * np.abs(best)
            if not worse.any():
                break
            size[worse] /= 2
        a, c = a + size * step_a, c + size * step_c
        done = float(np.max(np.abs(size * step_a)))
        best = value(a, c)
        if done < 1e-6:
            break
    p = sigmoid(a[:, None] * theta - c[:, None])
    w = n * p * (1 - p)
    h_aa, h_ac, h_cc = w @ theta**2 + precision, w @ theta, w.sum(axis=1) + 1e-9
    return a, np.sqrt(h_cc / (h_aa * h_cc - h_ac**2)), c
