"""What two items share given the score: a test of every pair of items without abilities.

Given the score, answers depend on the thresholds alone. With e = x - E(x | score) and C_ij the covariance of two
answers given the score,

    S_ij = sum over people who answered both of (e_i e_j - C_ij)

has mean 0 under the model, whatever the abilities are, and its variance is a sum over people as well. (For the
variance, where C is a small part, a C of rank one whose rows have the right sums is good enough.) The sum of C_ij:

- right and wrong answers: right on i and wrong on j is to wrong on i and right on j as eps_i = exp(-beta_i) is to
  eps_j, for every person and every score, so that P(X_i = X_j = 1 | score) = (eps_i P_j - eps_j P_i) / (eps_i - eps_j),
  which needs P alone and is linear in it: the sum over people is a matrix product;
- several categories, people with many answers: the series of `conditional.series_tables` for h = m_i m_j, with m_i the
  mean answer to item i at an ability, E(X_i X_j | s) = sum_r u_r (m_i m_j)^(r): again matrix products over people;
- several categories, people with few answers: with g_i(z) the generating function of item i at the tilting ability
  (`exact.py`), a mean over points of the circle of h_i(z) h_j(z), where h_i(z) = sum_k k p_ik z^k / g_i(z).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.exact import PatternPart, padded, pattern_parts
from spectral_irt.conditional.exact_likelihood import contours, pair_factors
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.patterns import distinct_rows
from spectral_irt.engine import Prepared
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.persons.residuals import LEAST

if TYPE_CHECKING:
    from spectral_irt.conditional.series_tables import Tables

GAP = 1e-5  # logits between any two difficulties, so that the quotient above keeps ten digits
LONG = 8.0  # equal answers that a person's count as, from which the series is right to 1e-4 of a probability
REACH = 8.0  # logits around the mean threshold at least: nobody with a mixed score is farther from it
ROUNDS = 3  # of fitting row sums; the variance changes by less than a percent after that


@dataclass(frozen=True, eq=False)
class Residuals:
    """People x items, zero where not answered: e = x - E(x | score), the variance of x given the score, its third
    central moment over the variance (what e^2 gains, on average, with e), E(x | score), and 1 where answered; which
    half each person is in, and the person's position."""

    e: Floats
    v: Floats
    lean: Floats
    p: Floats
    seen: Floats
    half: Ints
    who: Ints


def apart(beta: Floats, gap: float = GAP) -> Floats:
    """The difficulties with equal ones moved a little, so that any two differ by `gap` or more."""
    order = np.argsort(beta, kind="stable")
    steps = np.arange(len(beta)) * gap
    out = np.empty(len(beta))
    out[order] = np.maximum.accumulate(beta[order] - steps) + steps
    return out


def pair_sums(responses: Responses, beta: Floats, half: Ints) -> tuple[list[Prepared], Floats]:
    """Residuals given the score of people between the ends of the scale, dense, in either half of them; and what pairs
    of items share there. Difficulties of right and wrong answers come from `apart`.

    The latter are sums over the people of each half, halves x 4 x items x items, zero on the diagonal: S_ij, above 0
    where the items share more than the ability; its variance, what the model says or what the answers show, whichever
    is larger; sqrt(sum V_i sum V_j), which makes a correlation of S_ij; and the people who answered both.

    An item's residuals are freed of their mean by a Newton step, so that items whose difficulty comes from elsewhere
    (anchors, a prior) share no more with each other for that.
    """
    given = GivenScore.of(responses, beta, series_from=np.inf)
    persons = (given.pattern, half, np.arange(responses.n_persons))
    parts = responses.entries.prepare(_residuals, given, persons=persons)
    off, v = parts.sum(_item_sums)
    shift = np.divide(off, v, out=np.zeros_like(off), where=v > 0)
    halves, found = [], []
    for k in (0, 1):
        people = parts.prepare(_centered, shift, k)
        products, model, shown, v, n, p_both, p_other = people.sum(_pair_products)
        if responses.thresholds.binary:
            eps = np.exp(beta.mean() - beta)
            away = eps[:, None] - eps
            np.fill_diagonal(away, 1.0)
            weighted = eps[:, None] * p_other
            shared = products - ((weighted - weighted.T) / away - p_both)
        else:
            shared = products - _covariances(responses, people, beta)
        variance = np.maximum(model, shown)
        np.fill_diagonal(shared, 0.0)
        np.fill_diagonal(variance, 0.0)
        halves.append(people)
        found.append((shared, variance, np.sqrt(v * v.T), n))
    return halves, np.array(found)


def correlation(shared: Floats, scale: Floats) -> Floats:
    """S_ij as a correlation of residuals, about 0 under the model.

    The scale is what the model expects; far-off items can exceed it without bound, a correlation cannot.
    """
    return np.clip(np.divide(shared, scale, out=np.zeros_like(shared), where=scale > 0), -1, 1)


def _residuals(block: Block, pattern: Ints, half: Ints, who: Ints, given: GivenScore) -> Residuals:
    answers = answers_with_moments(block, pattern, given)
    people, row = np.unique(answers.person, return_inverse=True)
    e, v, lean, p, seen = np.zeros((5, len(people), given.layout.n_items))
    cell = (row, answers.item)
    seen[cell] = 1.0
    p[cell] = answers.mean
    v[cell] = answers.variance
    e[cell] = answers.x - answers.mean
    lean[cell] = answers.third / np.maximum(answers.variance, LEAST)
    return Residuals(e, v, lean, p, seen, half[people], who[people])


def _item_sums(part: Residuals) -> tuple[Floats, Floats]:
    return part.e.sum(axis=0), part.v.sum(axis=0)


def _centered(part: Residuals, shift: Floats, half: int) -> Residuals:
    """The people of a half, their residuals without the mean of each item."""
    mine = part.half == half
    e, v = part.e[mine], part.v[mine]
    return Residuals(e - v * shift, v, part.lean[mine], part.p[mine], part.seen[mine], part.half[mine], part.who[mine])


def _pair_products(part: Residuals) -> Floats:
    """Over people who answered both: e_i e_j, the two variances, V_i, 1, P_i P_j, P_j."""
    e, v, seen, p = part.e, part.v, part.seen, part.p
    c = rank_one(v, seen)
    lean, squares, c2 = part.lean * c, e * e, c * c
    less = c2.T @ c2
    variances = v.T @ v - lean.T @ lean - less, squares.T @ squares - less
    return np.array([e.T @ e, *variances, v.T @ seen, seen.T @ seen, p.T @ p, seen.T @ p])


def rank_one(v: Floats, seen: Floats) -> Floats:
    """c with c_i sum_{j != i} c_j = V_i for each person: -c_i c_j is about the covariance of two answers."""
    n = np.maximum(seen.sum(axis=1, keepdims=True), 2)
    total = np.sqrt(v.sum(axis=1, keepdims=True) * n / (n - 1))
    c = seen * total / n
    for _ in range(ROUNDS):
        c = np.divide(v, total - c, out=np.zeros_like(v), where=total > c)
        total = np.sqrt((v + c * c).sum(axis=1, keepdims=True))
    return c


def _covariances(responses: Responses, people: Prepared, beta: Floats) -> Floats:
    """The sum of C_ij over these people, of answers in several categories."""
    layout, scores = responses.thresholds, responses.scores.astype(np.float64)
    middle = float(layout.mean(beta).mean())
    low, high = min(beta.min(), middle - REACH), max(beta.max(), middle + REACH)
    from spectral_irt.conditional.series_tables import ORDER, Tables, grid_over  # for answers in categories

    tables = Tables.at(layout, beta, grid_over(low, high, layout), ORDER)
    total = np.asarray(people.sum(_by_series, tables, scores))
    few = np.concatenate(list(people.map(_few_answers)))
    if len(few):
        patterns = distinct_rows(responses.take_persons(np.sort(few)))
        held = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, layout))
        total += held.sum(_by_contour, padded(layout, beta), layout.n_items)
    return total


def _long(part: Residuals) -> NDArray[np.bool_]:
    """People whose answers count as many equal ones."""
    return part.v.sum(axis=1) ** 2 >= LONG * (part.v**2).sum(axis=1)


def _few_answers(part: Residuals) -> Ints:
    return part.who[~_long(part)]


def _by_series(part: Residuals, tables: Tables, scores: Floats) -> Floats:
    from spectral_irt.conditional.series_tables import weights

    long = _long(part)
    seen, score = part.seen[long], scores[part.who[long]]
    order, m = tables.order, seen.shape[1]
    moments = tables.moments[: order + 2].reshape(order + 2, -1, m)
    # The ability of the grid at which the mean score is nearest to the score; `weights` knows the rest of the way.
    place = np.abs(seen @ moments[0].T - score[:, None]).argmin(axis=1)
    d = moments[:, place] * seen  # the mean answer and its derivatives by ability, of every person and item
    totals = d.sum(axis=2)
    u = weights(score - totals[0], totals[1:], tables.apart)
    mean = np.einsum("ru,rui->ui", u, d[: order + 1])
    total = -(mean.T @ mean)
    for a in range(order + 1):
        for b in range(a, order + 1 - a):
            product = (d[a] * (comb(a + b, a) * u[a + b])[:, None]).T @ d[b]
            total += product if a == b else product + product.T
    return total


def _by_contour(part: PatternPart, cumulated: Floats, n_items: int) -> Floats:
    total = np.zeros((n_items + 1, n_items + 1))
    for some, sums in contours(part, cumulated):
        real, imaginary = (factor.sum(axis=2) for factor in pair_factors(sums))  # X is how many thresholds it passed
        mean = sums.given.passed.sum(axis=0).T
        together = real @ real.transpose(0, 2, 1) - imaginary @ imaginary.transpose(0, 2, 1)
        together -= mean[:, :, None] * mean[:, None, :]
        together *= part.people[some, None, None]
        items = part.items[some]
        np.add.at(total, (items[:, :, None], items[:, None, :]), together)
    return total[:-1, :-1]


def along(part: Residuals, direction: Floats) -> float:
    """Sum of squares over people of what each adds to direction' S direction."""
    c = rank_one(part.v, part.seen) * direction
    e = part.e * direction
    each = e.sum(axis=1) ** 2 - (e * e).sum(axis=1) + c.sum(axis=1) ** 2 - (c * c).sum(axis=1)
    return float(each @ each)
