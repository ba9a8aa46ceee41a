"""Answers given the score, exactly: a sum over points of the unit circle, a recursion, a tree; and who takes which.

Given the score s, P(x | s) = exp(-sum_i sum_{v <= x_i} beta_iv) / gamma_s does not depend on ability. gamma_s has up to
10^400 terms, so it is tilted: with p_ic = P(X_i = c) at an ability where the score S has about the mean s, gamma_s is
P(S = s) / (exp(s theta) prod p_i0), and P(S = s) is of order one over its standard deviation.

The contour sum: with g_i(z) = sum_c p_ic z^c and points z_k = exp(i u_k), u_k = pi (2k + 1) / N, k < N / 2,

    P(S = s) = (2 / N) Re sum_k z_k^-s prod_i g_i(z_k),    P(X_i = c | s) = Re sum_k w_k p_ic z_k^c / g_i(z_k),

    P(X_i >= c, X_j >= c' | s) = Re sum_k w_k a_ick a_jc'k,   a_ick = sum_{v >= c} p_iv z_k^v / g_i(z_k).

Exact for N beyond the scores on either side of s; where scores spread wider, the aliases s +- N are below rounding at
some nine standard deviations (Bernstein's inequality). For right and wrong answers the product also falls like
exp(-2 V sin^2(u / 2)), V the variance of S: 13 to 28 points do for any number of answers. With an even N no point is
z = -1, where the factor of a right or wrong answer can vanish; one of more categories is kept at 1e-30 at least.

The recursion, for few steps up or down: F_k(j) = sum_c p_kc F_{k-1}(j - c) is the chance of a score of j on the first k
items, B_{k-1}(j) = sum_c p_kc B_k(j + c) that the rest makes up the score. The tree, for all scores of one set:
P(X_i = c | s) = p_ic f_i(s - c) / f(s) with f_i the distribution of the score on the others, from halves of the items.
In both all terms are positive, and nothing cancels.

Arrays are categories x items x people (or patterns). `cumulated` has the sums of thresholds up to the categories 1, 2,
...; +inf where an item has fewer, and for padding. People who agree in items and score have one pattern and share one
computation. Patterns of like length and score are laid out in tiles that fit the cache of a core, by the patterns
alone: results do not depend on the number of threads.

Fischer & Molenaar (1995), Rasch Models, ch. 3 and 8; Hong (2013), CSDA 59 (the Fourier form)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints, Rows, Thresholds
from spectral_irt.data.patterns import row_keys
from spectral_irt.model import prox

Precision = np.dtype[Any]  # of what series keep of every answer
DOUBLE = np.dtype(np.float64)
SINGLE = np.dtype(np.float32)
ROUGH = 1e-3  # standard errors from which on single precision will do for the series
NEGLIGIBLE = 37.0  # what is left out is below exp(-37) = 1e-16 of what is kept
CLOSE = 0.05  # of a standard deviation, to which the mean of the tilted score meets the score
FARTHEST = 700.0  # logits: exp of more overflows
LEAST_FACTOR = 1e-30  # of a factor that vanishes
LEAST = 1e-290  # a chance below this has lost digits; the contour sum, with an ability for each score, has them
FEW_PEOPLE = 0.25  # people per item below which the contour sum is cheaper: the recursion's steps are the items
TILE_CELLS = 131_072  # numbers of a table: a megabyte, which the second cache of a core holds
MANY = 64  # people in a tile where there are so many of their kind
ALIKE = 1.3  # lengths within this factor share a tile
SHORT_ORDER = 16  # steps up or down, per threshold of the widest item, up to which the recursion is cheapest
MOST_SCORES = 0.25  # of all scores of a set, from which on the tree is cheapest: it gives them all
SEVERAL = 8  # patterns of a set that are a tile of their own, with so many of its scores
TREE_CELLS = 2_000_000  # thresholds x scores of such a set, at most


def chances(theta: Floats, cumulated: Floats) -> Floats:
    """P(X = c) at these abilities for c = 0, 1, ...: each to its own last digit, also where it is tiny."""
    p = np.empty((len(cumulated) + 1, *cumulated.shape[1:]))
    if len(cumulated) == 1:
        np.subtract(cumulated[0], theta, out=p[0])
        np.minimum(p[0], FARTHEST, out=p[0])
        np.exp(p[0], out=p[0])
        np.add(p[0], 1, out=p[1])
        np.reciprocal(p[1], out=p[1])
        p[0] *= p[1]
        return p
    p[0] = 0.0
    for c, sums in enumerate(cumulated, 1):
        np.subtract(c * theta, sums, out=p[c])
    p -= p.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p


class RoughTilt(NamedTuple):
    """An ability near the one where the score has the mean s, and bounds of that one by binomial answers."""

    theta: Floats
    low: Floats
    high: Floats


def rough_tilt(cumulated: Floats, scores: Ints, most: Ints) -> RoughTilt:
    """Of each column: as if the thresholds were normally distributed (PROX)."""
    with np.errstate(invalid="ignore"):
        beta = np.diff(cumulated, axis=0, prepend=0.0) if len(cumulated) > 1 else cumulated
    inside = beta < np.inf
    logit = np.log(scores / (most - scores))
    wide = np.log(len(cumulated))
    low = np.where(inside, beta, np.inf).min(axis=(0, 1)) + logit - wide
    high = np.where(inside, beta, -np.inf).max(axis=(0, 1)) + logit + wide
    mean = np.where(inside, beta, 0.0).sum(axis=(0, 1)) / most
    variance = (np.where(inside, beta - mean, 0.0) ** 2).sum(axis=(0, 1)) / most
    return RoughTilt(np.clip(prox(mean, variance, logit), low, high), low, high)


class Tilt(NamedTuple):
    """An ability for each column at which its score has about the mean s; the chances and its variance there."""

    theta: Floats
    p: Floats
    variance: Floats


def tilt(cumulated: Floats, scores: Ints, most: Ints) -> Tilt:
    """Newton's steps within bounds. Any ability is right for the contour sum; a rough one only spends some of its
    safety margin."""
    c = np.arange(len(cumulated) + 1.0)
    theta, low, high = rough_tilt(cumulated, scores, most)
    for _ in range(100):
        p = chances(theta, cumulated)
        mean = np.tensordot(c, p, 1)
        variance = (np.tensordot(c**2, p, 1) - mean**2 if len(p) > 2 else p[0] * p[1]).sum(axis=0)
        missing = scores - mean.sum(axis=0)
        if np.all(np.abs(missing) <= CLOSE * np.sqrt(np.maximum(variance, 0.04))):
            break
        low = np.where(missing > 0, theta, low)
        high = np.where(missing > 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = theta + missing / variance
        theta = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
    return Tilt(theta, p, variance)


def n_points(variance: Floats, widest: int, scores: Ints, most: Ints) -> tuple[Ints, Ints]:
    """N and the number of points used, for each column; `widest` is the largest answer."""
    third = widest * NEGLIGIBLE / 3
    enough = third + np.sqrt(third**2 + 2 * NEGLIGIBLE * variance)
    period = 2 * np.ceil(np.minimum(enough, np.maximum(scores, most - scores) + 1) / 2)
    if widest > 1:
        return period.astype(np.int64), (period / 2).astype(np.int64)
    sine = np.sqrt(np.minimum(NEGLIGIBLE / 2 / np.maximum(variance, 1e-300), 1.0))
    used = np.ceil(np.arcsin(sine) * period / np.pi)
    return period.astype(np.int64), np.clip(used, 1, period / 2).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Given:
    """What the score says about the answers of some columns: `p` is P(X_i = c | s) for c = 1, 2, ... `probability` is
    P(S = s) at the abilities `theta`, `lowest` P(X_i = 0) there, items x people."""

    p: Floats
    probability: Floats
    lowest: Floats
    scores: Ints
    theta: Floats

    @property
    def log_gamma(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.probability) - np.log(self.lowest).sum(axis=0) - self.scores * self.theta

    @property
    def passed(self) -> Floats:
        """P(X_i >= c | s) for c = 1, 2, ..."""
        return self.p if len(self.p) == 1 else np.cumsum(self.p[::-1], axis=0)[::-1]


@dataclass(frozen=True, eq=False)
class Contour:
    """The contour sum of some columns: chances `p` and P(S = s) at the tilting ability `theta`. `angle` and `weight`
    are u_k, and the weight of the point in a mean given the score, points x people; `factors`, where they are kept, the
    items' own at these points, points x items x people."""

    p: Floats
    angle: Floats
    weight: NDArray[np.complex128]
    probability: Floats
    theta: Floats
    scores: Ints
    factors: NDArray[np.complex128] | None = None

    @classmethod
    def of(cls, cumulated: Floats, scores: Ints, most: Ints, *, keep_factors: bool = False) -> Contour:
        theta, p, variance = tilt(cumulated, scores, most)
        period, used = n_points(variance, len(cumulated), scores, most)
        k = np.arange(int(used.max()))[:, None]
        angle = np.pi * (2 * k + 1) / period
        n_kept = len(angle) if keep_factors else 1
        factors = np.empty((n_kept, *p.shape[1:]), dtype=np.complex128)
        weight = np.empty(angle.shape, dtype=np.complex128)
        for point, u in enumerate(angle):
            of_items = factors[point % n_kept]
            factor_at(p, u, of_items.real, of_items.imag)
            np.multiply.reduce(of_items, axis=0, out=weight[point])
        # z^-s by whole numbers: an angle of thousands of turns would lose digits.
        back = np.pi * np.mod((2 * k + 1) * scores, 2 * period) / period
        weight *= np.exp(-1j * back) * ((2 * k + 1 < period) * 2.0 / period)
        probability = weight.real.sum(axis=0)
        kept = factors if keep_factors else None
        return cls(p, angle, weight / probability, probability, theta, scores, kept)

    @property
    def every_factor(self) -> NDArray[np.complex128]:
        """The items' factors at every point, as they were kept, or once more."""
        if self.factors is not None:
            return self.factors
        factors = np.empty((len(self.angle), *self.p.shape[1:]), dtype=np.complex128)
        for of_items, u in zip(factors, self.angle, strict=True):
            factor_at(self.p, u, of_items.real, of_items.imag)
        return factors

    @cached_property
    def given(self) -> Given:
        if len(self.p) == 2:
            return self._given_binary()
        real = np.empty(self.p.shape[1:])
        imaginary = np.empty(self.p.shape[1:])
        size = np.empty(self.p.shape[1:])
        total = np.zeros_like(self.p)
        for u, w in zip(self.angle, self.weight, strict=True):
            factor_at(self.p, u, real, imaginary)
            np.multiply(real, real, out=size)
            size += imaginary * imaginary
            real /= size
            imaginary /= size
            for c, of_category in enumerate(total):
                turned = w * np.exp(1j * c * u)
                of_category += turned.real * real
                of_category += turned.imag * imaginary
        total *= self.p
        np.maximum(total, 0.0, out=total)
        total /= total.sum(axis=0)
        return Given(total[1:], self.probability, self.p[0], self.scores, self.theta)

    def _given_binary(self) -> Given:
        """|g(z)|^2 = 1 + 2 p q (cos u - 1), and P(X_i = 1 | s) takes no complex numbers."""
        v = self.p[0] * self.p[1]
        square = self.p[1] * self.p[1]
        twice = 2 * v
        along = (self.weight * np.exp(1j * self.angle)).real
        size = np.empty(v.shape)
        numerator = np.empty(v.shape)
        term = np.empty(v.shape)
        total = np.zeros((1, *v.shape))
        for cos, a, w in zip(np.cos(self.angle), along, np.ascontiguousarray(self.weight.real), strict=True):
            np.multiply(twice, cos - 1, out=size)
            size += 1
            np.multiply(square, w, out=numerator)
            np.multiply(v, a, out=term)
            numerator += term
            numerator /= size
            total += numerator
        np.clip(total, 0.0, 1.0, out=total)
        return Given(total, self.probability, self.p[0], self.scores, self.theta)


def factor_at(p: Floats, u: Floats, real: Floats, imaginary: Floats) -> None:
    """Write g_i(exp(i u)) of every item and column."""
    np.multiply(p[1], np.cos(u), out=real)
    np.multiply(p[1], np.sin(u), out=imaginary)
    real += p[0]
    for c in range(2, len(p)):
        real += p[c] * np.cos(c * u)
        imaginary += p[c] * np.sin(c * u)
    if len(p) > 2:
        real[(np.abs(real) < LEAST_FACTOR) & (np.abs(imaginary) < LEAST_FACTOR)] = LEAST_FACTOR


def by_recursion(p: Floats, scores: Ints) -> tuple[Floats, Floats]:
    """P(X = c | s) for c = 1, 2, ..., and P(S = s); p at an ability of which the score is not too unlikely."""
    categories, n, people = p.shape
    top = int(scores.max())
    forward = np.zeros((n + 1, top + 1, people))
    forward[0, 0] = 1
    for k in range(n):
        np.multiply(forward[k], p[0, k], out=forward[k + 1])
        for c in range(1, min(categories, top + 1)):
            forward[k + 1, c:] += forward[k, :-c] * p[c, k]
    place = (scores, np.arange(people))
    probability = forward[n][place]
    back = np.zeros((top + 1, people))
    back[place] = 1 / np.maximum(probability, np.finfo(float).tiny)
    next_back = np.empty_like(back)
    p_given = np.zeros((categories - 1, n, people))
    for k in range(n - 1, -1, -1):
        np.multiply(back, p[0, k], out=next_back)
        for c in range(1, min(categories, top + 1)):
            from_above = back[c:] * p[c, k]
            np.einsum("jl,jl->l", forward[k, :-c], from_above, out=p_given[c - 1, k])
            next_back[:-c] += from_above
        back, next_back = next_back, back
    return p_given, probability


def by_fewer_steps(p: Floats, cumulated: Floats, scores: Ints, most: Ints) -> tuple[Floats, Floats]:
    """`by_recursion`, by way of the steps down from the highest score for people who have fewer of these."""
    fewer = np.where(2 * scores > most, most - scores, scores)
    flip = np.flatnonzero(fewer < scores)
    if not len(flip):
        return by_recursion(p, scores)
    if len(p) == 2:
        swap = (fewer < scores) & (cumulated[0] < np.inf)
        p_given, probability = by_recursion(np.where(swap, p[::-1], p), fewer)
        return np.where(swap, 1 - p_given, p_given), probability
    category = np.arange(len(p))[:, None, None]
    down = (cumulated[:, :, flip] < np.inf).sum(axis=0) - category  # steps to the item's highest category
    upside_down = p.copy()
    upside_down[:, :, flip] = _from_the_top(p[:, :, flip], down)
    p_given, probability = by_recursion(upside_down, fewer)
    lowest = 1 - p_given[:, :, flip].sum(axis=0, keepdims=True)
    all_categories = np.concatenate([lowest, p_given[:, :, flip]])
    p_given[:, :, flip] = _from_the_top(all_categories, down)[1:]
    return p_given, probability


def _from_the_top(values: Floats, down: Ints) -> Floats:
    """Values of every category at the one as far from the top as it is from the bottom."""
    return np.where(down >= 0, np.take_along_axis(values, np.maximum(down, 0), 0), 0.0)


def given_every_score(cumulated: Floats, scores: Ints | None = None) -> Given:
    """What each score from 1 to the highest but one (or these) says about the answers; of categories x items."""
    width, n = cumulated.shape
    tops = (cumulated < np.inf).sum(axis=0)
    most = int(tops.sum())
    if scores is None:
        scores = np.arange(1, most)
    theta = np.full(len(scores), cumulated[tops - 1, np.arange(n)].sum() / most)  # the mean of all thresholds
    p = chances(theta[:1], cumulated[:, :, None])[:, :, 0]
    items = list(p.T) if width == 1 else [p[: top + 1, i] for i, top in enumerate(tops)]
    of_all, of_others = _tree(items)
    probability = of_all[scores]
    if not probability.min(initial=1.0) > LEAST:
        columns = np.broadcast_to(cumulated[:, :, None], (width, n, len(scores)))
        return Contour.of(columns, scores, np.full(len(scores), most)).given
    others = np.zeros((n, width + most))  # the chance of a score of j at width + j: nothing below 0
    for row, values in zip(others, of_others, strict=True):
        row[width : width + len(values)] = values
    place = scores + width - np.arange(1, width + 1)[:, None]
    p_given = p[1:, :, None] * others[:, place].swapaxes(0, 1)
    p_given /= probability
    return Given(p_given, probability, np.broadcast_to(p[0][:, None], p_given.shape[1:]), scores, theta)


def _tree(items: list[Floats]) -> tuple[Floats, list[Floats]]:
    """The distribution of the score on these items, from pairs, pairs of pairs ...; and that on all but each."""
    levels = [items]
    while len(levels[-1]) > 1:
        last = levels[-1]
        pairs = list(map(np.convolve, last[::2], last[1::2]))
        levels.append(pairs + last[len(last) & ~1 :])
    others = [np.ones(1)]
    for level in levels[-2::-1]:
        below = []
        for k in range(len(level)):
            beside = k ^ 1  # the other of the pair, unless there is none
            without_pair = others[k // 2]
            below.append(np.convolve(without_pair, level[beside]) if beside < len(level) else without_pair)
        others = below
    return levels[-1][0], others


@dataclass(frozen=True, eq=False)
class PatternPart:
    """Patterns of like length and score, or many scores of one set: `which` of all patterns they are. Items are padded
    with one that has no thresholds; `inside`, patterns x items, says where they are not."""

    which: Ints
    items: NDArray[np.int32]
    inside: NDArray[np.bool_]
    counts: Ints
    scores: Ints
    max_scores: Ints
    people: Floats
    one_set: bool


def tiles(counts: Ints, orders: Ints, width: int = 1) -> Iterator[tuple[int, int]]:
    """Where each begins and ends: as many people as fit the cache, of lengths and orders (fewest steps up or down) near
    those of the first."""
    short_order = SHORT_ORDER * width
    start = 0
    while start < len(counts):
        first_order = int(orders[start])
        is_short = first_order <= short_order
        size = int(counts[start]) * (first_order + 1 if is_short else 4 * (width + 1))
        ahead = slice(start, start + max(MANY, TILE_CELLS // size))
        n = counts[ahead]
        order = orders[ahead]
        unlike = (n > ALIKE * n[0]) | (n < n[0] / ALIKE) | ((order <= short_order) != is_short)
        unlike |= order > (first_order + 2 * width if is_short else ALIKE * first_order)
        stop = start + (int(np.argmax(unlike)) if unlike.any() else len(n))
        yield start, stop
        start = stop


def pattern_parts(rows: Rows, people: Ints, layout: Thresholds) -> Iterator[PatternPart]:
    """The patterns of people whose total score is neither the lowest nor the highest, in tiles: one at a time, since
    all of them are larger than the rows."""
    who = np.flatnonzero(rows.informative)
    orders = np.minimum(rows.scores, rows.max_scores - rows.scores)
    sets = _large_sets(rows, who, layout)
    in_set = np.zeros(rows.n_persons, dtype=bool)
    for which in sets:
        in_set[which] = True
    in_no_set = who[~in_set[who]]
    alike = in_no_set[np.lexsort((rows.counts[in_no_set], orders[in_no_set]))]
    for which in sets:
        yield _part(rows, which, people, layout, one_set=True)
    for start, stop in tiles(rows.counts[alike], orders[alike], layout.widest):
        yield _part(rows, alike[start:stop], people, layout, one_set=False)


def _large_sets(rows: Rows, who: Ints, layout: Thresholds) -> list[Ints]:
    """Of these patterns, those of one set of items with so many of its scores that they are a tile of their own."""
    keys = row_keys(rows, layout, np.zeros_like(rows.scores))[who]
    _, of_set, size = np.unique(keys, return_inverse=True, return_counts=True)
    most = rows.max_scores[who]
    large = size[of_set] >= np.maximum(MOST_SCORES * (most - 1), SEVERAL)
    large &= rows.counts[who] * layout.widest * most <= TREE_CELLS
    in_order = np.flatnonzero(large)[np.argsort(of_set[large], kind="stable")]
    if not len(in_order):
        return []
    ends = np.flatnonzero(np.diff(of_set[in_order])) + 1
    return np.split(who[in_order], ends)


def _part(rows: Rows, which: Ints, people: Ints, layout: Thresholds, *, one_set: bool) -> PatternPart:
    """These patterns laid out side by side."""
    some = rows.take(which)
    inside = np.arange(some.counts.max()) < some.counts[:, None]
    items = np.full(inside.shape, layout.n_items, dtype=np.int32)
    if one_set:  # the same items, in any order
        items[:] = some.items[: some.counts[0]]
    else:
        items[inside] = some.items
    weight = people[which].astype(float)
    return PatternPart(which, items, inside, some.counts, some.scores, some.max_scores, weight, one_set)


def padded_sums(layout: Thresholds, thresholds: Floats) -> Floats:
    """Cumulated thresholds, with a last row for the padding."""
    return np.vstack([layout.cumulated(thresholds), [0.0] + [np.inf] * layout.widest])


def threshold_codes(layout: Thresholds) -> Ints:
    """Items (and padding) x thresholds: the code of each threshold, or one past the last where there is none."""
    codes = np.full((layout.n_items + 1, layout.widest), layout.n_entries)
    codes[layout.item, layout.level - 1] = np.arange(layout.n_entries)
    return codes


def part_given(part: PatternPart, cumulated: Floats) -> Given:
    """These patterns' answers given the score; `cumulated` is `padded_sums`."""
    return given_score(cumulated.T[1:, part.items.T], part.scores, part.max_scores, one_set=part.one_set)


def given_score(
    cumulated: Floats, scores: Ints, most: Ints, theta: Floats | None = None, one_set: bool = False
) -> Given:
    """Answers of one tile of people (or patterns) given the score, by the cheapest method; `most` is the highest score.
    `theta` are abilities of which the scores are not too unlikely; `one_set`: all have the same items, without
    padding."""
    width, n, people = cumulated.shape
    if one_set and people >= MOST_SCORES * (most[0] - 1):
        return given_every_score(cumulated[:, :, 0], scores)
    order = int(np.minimum(scores, most - scores).max())
    if order <= SHORT_ORDER * width and people >= FEW_PEOPLE * n:
        if theta is None:
            theta = rough_tilt(cumulated, scores, most).theta
        start = chances(theta, cumulated)
        p, probability = by_fewer_steps(start, cumulated, scores, most)
        if probability.min() > LEAST:
            return Given(p, probability, start[0], scores, theta)
    return Contour.of(cumulated, scores, most).given


def dtype_for(allowed: float) -> Precision:
    """In which a series keeps what it has of every answer, if it may move an item by so many standard errors."""
    return SINGLE if allowed >= ROUGH else DOUBLE


def answers_above(limits: Floats, values: Floats, counts: Ints) -> Floats:
    """Answers of people whose value lies above each of the limits, and below the next."""
    place = np.searchsorted(limits, values, side="right") - 1
    counts = np.where(place < 0, 0, counts)
    return np.bincount(np.maximum(place, 0), weights=counts, minlength=len(limits)).astype(np.float64)


def series_limit(answers: Floats, limits: Floats, error: Floats, n: Ints, allowed: float) -> tuple[float, float]:
    """The limit from which on a series moves no item by more than `allowed` standard errors; the share below it. An
    `error` of an answer, on average with sign, moves an item of n answers of information .18 each by sqrt(n / .18)
    times as many standard errors; the item with most answers is looked at."""
    total = max(answers.sum(), 1)
    off = answers * error * np.sqrt(n.max(initial=0) / 0.18) / total
    limit = limits[np.argmax(np.cumsum(off[::-1])[::-1] <= allowed)]
    return float(limit), float(answers[limits < limit].sum() / total)


def matched_factors(variance: Floats, counts: Ints) -> Floats:
    """c with c_i sum_{j != i} c_j = the variance of answer i given the score, by column; to a per cent or better."""
    inside = np.arange(len(variance))[:, None] < counts
    total = np.sqrt(variance.sum(axis=0) * counts / (counts - 1))
    c = np.broadcast_to(total / counts, variance.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(5):
            c = np.where(inside & (variance > 0), variance / (total - c), 0.0)
            total = np.sqrt((variance + c * c).sum(axis=0))
    return c
