"""Answers given the score, exactly: a sum over points of the unit circle, a recursion, a tree.

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
...; +inf where an item has fewer, and for padding.

References
----------
Fischer & Molenaar (1995), Rasch Models, ch. 3 and 8; Hong (2013), CSDA 59 (the Fourier form).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.information import matched_factors
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import SharedSet
from spectral_irt.model import prox

NEGLIGIBLE = 37.0  # what is left out is below exp(-37) = 1e-16 of what is kept
CLOSE = 0.05  # of a standard deviation, to which the mean of the tilted score meets the score
FARTHEST = 700.0  # logits: exp of more overflows
LEAST_FACTOR = 1e-30  # of a factor that vanishes
LEAST = 1e-290  # a chance below this has lost digits; the contour sum, with an ability for each score, has them


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


def score_moments(p: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the score of each column."""
    if len(p) == 2:
        return p[1].sum(axis=0), (p[0] * p[1]).sum(axis=0)
    c = np.arange(len(p), dtype=float)
    mean = np.tensordot(c, p, 1)
    return mean.sum(axis=0), (np.tensordot(c**2, p, 1) - mean**2).sum(axis=0)


def rough_tilt(cumulated: Floats, scores: Ints, most: Ints) -> tuple[Floats, Floats, Floats]:
    """An ability near the one where the score has the mean s, and bounds of that one by binomial answers."""
    with np.errstate(invalid="ignore"):
        beta = np.diff(cumulated, axis=0, prepend=0.0) if len(cumulated) > 1 else cumulated
    inside = beta < np.inf
    logit = np.log(scores / (most - scores))
    wide = np.log(len(cumulated))
    low = np.where(inside, beta, np.inf).min(axis=(0, 1)) + logit - wide
    high = np.where(inside, beta, -np.inf).max(axis=(0, 1)) + logit + wide
    mean = np.where(inside, beta, 0.0).sum(axis=(0, 1)) / most
    spread = (np.where(inside, beta - mean, 0.0) ** 2).sum(axis=(0, 1)) / most
    return np.clip(prox(mean, spread, logit), low, high), low, high


def tilt(cumulated: Floats, scores: Ints, most: Ints) -> tuple[Floats, Floats, Floats]:
    """An ability for each column at which its score has about the mean s; the chances and the score's variance there.

    Any ability is right for the contour sum; a rough one only spends some of its safety margin.
    """
    theta, low, high = rough_tilt(cumulated, scores, most)
    for _ in range(100):
        p = chances(theta, cumulated)
        mean, variance = score_moments(p)
        missing = scores - mean
        if np.all(np.abs(missing) <= CLOSE * np.sqrt(np.maximum(variance, 0.04))):
            break
        low, high = np.where(missing > 0, theta, low), np.where(missing > 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = theta + missing / variance
        theta = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
    return theta, p, variance


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
    """What the score says about the answers of some columns: `p` is P(X_i = c | s) for c = 1, 2, ...

    `probability` is P(S = s) at the abilities `theta`, `lowest` P(X_i = 0) there, items x people.
    """

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

    def take(self, which: Ints) -> Given:
        """These columns."""
        columns = (self.p[:, :, which], self.probability[which], self.lowest[:, which], self.scores[which])
        return Given(*columns, self.theta[which])


@dataclass(frozen=True, eq=False)
class Contour:
    """The contour sum of some columns: chances `p` and P(S = s) at the tilting ability `theta`.

    `angle` and `weight` are u_k, and the weight of the point in a mean given the score, points x people.
    """

    p: Floats
    angle: Floats
    weight: NDArray[np.complex128]
    probability: Floats
    theta: Floats
    scores: Ints

    @classmethod
    def of(cls, cumulated: Floats, scores: Ints, most: Ints) -> Contour:
        theta, p, variance = tilt(cumulated, scores, most)
        period, used = n_points(variance, len(cumulated), scores, most)
        k = np.arange(int(used.max()))[:, None]
        angle = np.pi * (2 * k + 1) / period
        factors = np.empty(p.shape[1:], dtype=np.complex128)
        weight = np.empty(angle.shape, dtype=np.complex128)
        for row, u in zip(weight, angle, strict=True):
            factor_at(p, u, factors.real, factors.imag)
            np.multiply.reduce(factors, axis=0, out=row)
        # z^-s by whole numbers: an angle of thousands of turns would lose digits.
        back = np.pi * np.mod((2 * k + 1) * scores, 2 * period) / period
        weight *= np.exp(-1j * back) * ((2 * k + 1 < period) * 2.0 / period)
        probability = weight.real.sum(axis=0)
        return cls(p, angle, weight / probability, probability, theta, scores)

    @cached_property
    def given(self) -> Given:
        p = self._right_given()[None] if len(self.p) == 2 else self._categories_given()
        return Given(p, self.probability, self.p[0], self.scores, self.theta)

    def _categories_given(self) -> Floats:
        """P(X_i = c | s) for c = 1, 2, ..."""
        total = np.zeros_like(self.p)
        real, imaginary, size = np.empty((3, *self.p.shape[1:]))
        categories = np.arange(len(self.p))
        for u, w in zip(self.angle, self.weight, strict=True):
            factor_at(self.p, u, real, imaginary)
            np.multiply(real, real, out=size)
            size += imaginary * imaginary
            real /= size
            imaginary /= size
            for c in categories:
                turned = w * np.exp(1j * c * u)
                total[c] += turned.real * real
                total[c] += turned.imag * imaginary
        total *= self.p
        np.maximum(total, 0.0, out=total)
        total /= total.sum(axis=0)
        return total[1:]

    def _right_given(self) -> Floats:
        """The same for right and wrong answers, where |g(z)|^2 = 1 + 2 p q (cos u - 1)."""
        wrong, right = self.p
        v, square = wrong * right, right * right
        twice = 2 * v
        along = (self.weight * np.exp(1j * self.angle)).real
        total = np.zeros_like(v)
        one, other, size = (np.empty_like(total) for _ in range(3))
        for cos, a, w in zip(np.cos(self.angle), along, np.ascontiguousarray(self.weight.real), strict=True):
            np.multiply(twice, cos - 1, out=size)
            size += 1
            np.multiply(square, w, out=one)
            np.multiply(v, a, out=other)
            one += other
            one /= size
            total += one
        return np.clip(total, 0.0, 1.0, out=total)

    def pair_factors(self) -> tuple[Floats, Floats]:
        """B and C with P(X_i >= c, X_j >= c' | s) = sum_k B_ick B_jc'k - C_ick C_jc'k; people x items x c x points."""
        categories, items, people = self.p.shape
        factors = np.empty((len(self.angle), categories - 1, items, people), dtype=np.complex128)
        real, imaginary = np.empty((2, items, people))
        for k, (u, root) in enumerate(zip(self.angle, np.sqrt(self.weight), strict=True)):
            factor_at(self.p, u, real, imaginary)
            over = root / (real + 1j * imaginary)
            tail = np.zeros((items, people), dtype=np.complex128)
            for c in range(categories - 1, 0, -1):
                tail += self.p[c] * np.exp(1j * c * u)
                np.multiply(tail, over, out=factors[k, c - 1])
        real, imaginary = (np.ascontiguousarray(part.transpose(3, 2, 1, 0)) for part in (factors.real, factors.imag))
        return real, imaginary


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
    total = forward[n][place]
    back = np.zeros((top + 1, people))
    back[place] = 1 / np.maximum(total, np.finfo(float).tiny)
    given, rest = np.zeros((categories - 1, n, people)), np.empty_like(back)
    for k in range(n - 1, -1, -1):
        np.multiply(back, p[0, k], out=rest)
        for c in range(1, min(categories, top + 1)):
            more = back[c:] * p[c, k]
            np.einsum("jl,jl->l", forward[k, :-c], more, out=given[c - 1, k])
            rest[:-c] += more
        back, rest = rest, back
    return given, total


def by_fewer_steps(p: Floats, cumulated: Floats, scores: Ints, most: Ints) -> tuple[Floats, Floats]:
    """`by_recursion`, by way of the steps down from the highest score for people who have fewer of these."""
    fewer = np.where(2 * scores > most, most - scores, scores)
    flip = np.flatnonzero(fewer < scores)
    if not len(flip):
        return by_recursion(p, scores)
    if len(p) == 2:
        swap = (fewer < scores) & (cumulated[0] < np.inf)
        given, total = by_recursion(np.where(swap, p[::-1], p), fewer)
        return np.where(swap, 1 - given, given), total
    category = np.arange(len(p))[:, None, None]
    down = (cumulated[:, :, flip] < np.inf).sum(axis=0) - category  # steps to the item's highest category
    turned = p.copy()
    turned[:, :, flip] = _turned(p[:, :, flip], down)
    given, total = by_recursion(turned, fewer)
    full = np.concatenate([1 - given[:, :, flip].sum(axis=0, keepdims=True), given[:, :, flip]])
    given[:, :, flip] = _turned(full, down)[1:]
    return given, total


def _turned(values: Floats, down: Ints) -> Floats:
    """Values of every category at the one as far from the top as it is from the bottom."""
    return np.where(down >= 0, np.take_along_axis(values, np.maximum(down, 0), 0), 0.0)


def given_every_score(cumulated: Floats) -> Given:
    """What each score from 1 to the highest but one says about the answers, a column each; of categories x items."""
    tops = (cumulated < np.inf).sum(axis=0)
    most = int(tops.sum())
    theta = np.full(most - 1, cumulated[tops - 1, np.arange(len(tops))].sum() / most)  # the mean of all thresholds
    scores = np.arange(1, most)
    p = chances(theta[:1], cumulated[:, :, None])[:, :, 0]
    one_threshold = len(cumulated) == 1
    tree = _tree(list(p.T) if one_threshold else [p[: top + 1, i] for i, top in enumerate(tops)])
    total = tree[0][1:most]
    if not total.min(initial=1.0) > LEAST:
        return Contour.of(np.repeat(cumulated[:, :, None], most - 1, axis=2), scores, np.full(most - 1, most)).given
    outside: list[Floats] = []
    _descend(tree, np.ones(1), outside)
    if one_threshold:  # the others' highest score is the same for all
        given = p[1, None, :, None] * np.array(outside)[None, :, : most - 1]
    else:
        given = np.zeros((*cumulated.shape, most - 1))
        for i, (top, others) in enumerate(zip(tops, outside, strict=True)):
            for c in range(1, top + 1):  # scores from c to c + the highest of the others
                stop = min(c + len(others), most)
                np.multiply(others[: stop - c], p[c, i], out=given[c - 1, i, c - 1 : stop - 1])
    given /= total
    return Given(given, total, np.broadcast_to(p[0][:, None], given.shape[1:]), scores, theta)


def _tree(single: list[Floats]) -> tuple[Any, ...]:
    """The distribution of the score on these items, and the trees of their two halves."""
    if len(single) == 1:
        return (single[0],)
    half = len(single) // 2
    left, right = _tree(single[:half]), _tree(single[half:])
    return np.convolve(left[0], right[0]), left, right


def _descend(tree: tuple[Any, ...], outside: Floats, others: list[Floats]) -> None:
    """Append the distribution of all answers but each; `outside` is that of those not in this tree."""
    if len(tree) == 1:
        others.append(outside)
        return
    _, left, right = tree
    _descend(left, np.convolve(outside, right[0]), others)
    _descend(right, np.convolve(outside, left[0]), others)


@dataclass(frozen=True, eq=False)
class SharedRows:
    """People who share their set of items, right and wrong answers: what a `Point` asks of its rows, set by set.

    `p` and `c` hold P(X = 1 | s) and the c of the matched information, items x scores from 1 to k - 1. With R the right
    answers of the N people of a score, sum_l (X_l - P) (X_l - P)' = X' X - R P' - P R' + N P P'.
    """

    sets: tuple[SharedSet, ...]
    n_items: int
    p: tuple[Floats, ...] = ()
    c: tuple[Floats, ...] = ()

    def evaluated(self, beta: Floats) -> tuple[SharedRows, tuple[Floats, Floats, Floats]]:
        """The rows at these difficulties, and sums of P - X, c C 1 and c^2 by item."""
        made, (score, degree, square) = [], np.zeros((3, self.n_items))
        for one in self.sets:
            p, people = given_every_score(beta[None, one.items]).p[0], one.people[1:-1]
            c = matched_factors(p * (1 - p), np.full(len(people), len(one.items)))
            score[one.items] += p @ people - one.right[1:-1].sum(axis=0)
            degree[one.items] += (c * c.sum(axis=0)) @ people
            square[one.items] += c**2 @ people
            made.append((p, c))
        p_of, c_of = zip(*made, strict=True)
        return replace(self, p=p_of, c=c_of), (score, degree, square)

    def factor_gram(self, tables: Any, single: bool, design: Any) -> Floats:
        assert design is None  # linear designs look at people one by one
        total = np.zeros((self.n_items, self.n_items))
        for one, c in zip(self.sets, self.c, strict=True):
            total[np.ix_(one.items, one.items)] += (c * one.people[1:-1]) @ c.T
        return total

    def factors_twice(self, tables: Any, v: Floats) -> Floats:
        total = np.zeros(v.shape)
        for one, c in zip(self.sets, self.c, strict=True):
            total[one.items] += (c * one.people[1:-1]) @ (c.T @ v[one.items])
        return total

    def score_gram(self, tables: Any, single: bool, design: Any) -> Floats:
        total = np.zeros((self.n_items, self.n_items))
        for one, p in zip(self.sets, self.p, strict=True):
            across = (one.right[1:-1].T - one.people[1:-1] * p / 2) @ p.T
            total[np.ix_(one.items, one.items)] += one.together - across - across.T
        return total

    def score_sums(self, tables: Any, v: Floats) -> tuple[Floats, Floats]:
        whole = self.score_gram(tables, False, None)
        return np.diag(whole)[:, None, None].copy(), whole @ v
