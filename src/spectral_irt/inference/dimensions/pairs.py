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

`dimensionality.py` judges pairs and contrasts of many people by these sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectral_irt.conditional.exact import PatternPart, padded_sums, pattern_parts
from spectral_irt.conditional.exact_likelihood import contours, pair_factors
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.data.patterns import distinct_rows
from spectral_irt.engine import Prepared
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.numerics import safe_divide
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
    third_over_v: Floats
    mean: Floats
    answered: Floats
    half: Ints
    person: Ints

    def of_half(self, half: int) -> Residuals:
        chosen = self.half == half
        return Residuals(*(values[chosen] for values in vars(self).values()))


class PairSums(NamedTuple):
    """Sums over people, items x items: S_ij, above 0 where the items share more than the ability; its variance, what
    the model says or what the answers show, whichever is larger; sqrt(sum V_i sum V_j), which makes a correlation of
    S_ij; and the people who answered both. The first two are zero on the diagonal."""

    shared: Floats
    variance: Floats
    scale: Floats
    n: Floats

    @property
    def correlation(self) -> Floats:
        """S_ij as a correlation of residuals, about 0 under the model.

        The scale is what the model expects; far-off items can exceed it without bound, a correlation cannot.
        """
        shared = safe_divide(self.shared, self.scale)
        return np.clip(shared, -1, 1)


class HalfOfPeople(NamedTuple):
    """The residuals of half of the people, and what pairs of items share there."""

    residuals: Prepared
    sums: PairSums


class PairProducts(NamedTuple):
    """Sums over people who answered both items: e_i e_j; its variance, as the model says and as the answers show; V_i;
    1; P_i P_j; and P_j."""

    e_e: Floats
    variance_of_model: Floats
    variance_of_answers: Floats
    v: Floats
    n: Floats
    p_p: Floats
    p: Floats


def with_gaps(beta: Floats, gap: float = GAP) -> Floats:
    """The difficulties with equal ones moved a little, so that any two differ by `gap` or more."""
    order = np.argsort(beta, kind="stable")
    steps = np.arange(len(beta)) * gap
    moved = np.empty(len(beta))
    moved[order] = np.maximum.accumulate(beta[order] - steps) + steps
    return moved


def pair_sums(responses: Responses, beta: Floats, half: Ints) -> tuple[HalfOfPeople, HalfOfPeople]:
    """What pairs of items share in either half of the people between the ends of the scale. Difficulties of right and
    wrong answers come from `with_gaps`.

    An item's residuals are freed of their mean by a Newton step, so that items whose difficulty comes from elsewhere
    (anchors, a prior) share no more with each other for that.
    """
    given_score = GivenScore.of(responses, beta, series_from=np.inf)
    persons = (given_score.pattern, half, np.arange(responses.n_persons))
    residuals = responses.entries.prepare(_residuals, given_score, persons=persons)
    off, v = residuals.sum(_item_sums)
    shift = safe_divide(off, v)
    first, second = (residuals.prepare(_centered_residuals, shift, k) for k in (0, 1))
    return (
        HalfOfPeople(first, _sums_of_half(responses, first, beta)),
        HalfOfPeople(second, _sums_of_half(responses, second, beta)),
    )


def _sums_of_half(responses: Responses, residuals: Prepared, beta: Floats) -> PairSums:
    products = PairProducts(*residuals.sum(_pair_products))
    if responses.thresholds.binary:
        covariance = _covariances_of_right_and_wrong(products, beta)
    else:
        covariance = _covariances_of_categories(responses, residuals, beta)
    shared = products.e_e - covariance
    variance = np.maximum(products.variance_of_model, products.variance_of_answers)
    np.fill_diagonal(shared, 0.0)
    np.fill_diagonal(variance, 0.0)
    return PairSums(shared, variance, np.sqrt(products.v * products.v.T), products.n)


def _residuals(block: Block, pattern: Ints, half: Ints, position: Ints, given: GivenScore) -> Residuals:
    answers = answers_with_moments(block, pattern, given)
    people, row = np.unique(answers.person, return_inverse=True)
    e, v, third_over_v, mean, answered = np.zeros((5, len(people), given.layout.n_items))
    cell = (row, answers.item)
    answered[cell] = 1.0
    mean[cell] = answers.mean
    v[cell] = answers.variance
    e[cell] = answers.x - answers.mean
    third_over_v[cell] = answers.third / np.maximum(answers.variance, LEAST)
    return Residuals(
        e=e, v=v, third_over_v=third_over_v, mean=mean, answered=answered, half=half[people], person=position[people]
    )


def _item_sums(part: Residuals) -> tuple[Floats, Floats]:
    return part.e.sum(axis=0), part.v.sum(axis=0)


def _centered_residuals(part: Residuals, shift: Floats, half: int) -> Residuals:
    """The people of a half, their residuals without the mean of each item."""
    people = part.of_half(half)
    return replace(people, e=people.e - people.v * shift)


def _pair_products(part: Residuals) -> PairProducts:
    e = part.e
    v = part.v
    p = part.mean
    answered = part.answered
    c = rank_one(v, answered)
    c2 = c * c
    e2 = e * e
    third = part.third_over_v * c
    square_of_covariance = c2.T @ c2
    return PairProducts(
        e_e=e.T @ e,
        variance_of_model=v.T @ v - third.T @ third - square_of_covariance,
        variance_of_answers=e2.T @ e2 - square_of_covariance,
        v=v.T @ answered,
        n=answered.T @ answered,
        p_p=p.T @ p,
        p=answered.T @ p,
    )


def rank_one(v: Floats, answered: Floats) -> Floats:
    """c with c_i sum_{j != i} c_j = V_i for each person: -c_i c_j is about the covariance of two answers."""
    n = np.maximum(answered.sum(axis=1, keepdims=True), 2)
    total = np.sqrt(v.sum(axis=1, keepdims=True) * n / (n - 1))
    c = answered * total / n
    for _ in range(ROUNDS):
        c = np.divide(v, total - c, out=np.zeros_like(v), where=total > c)
        total = np.sqrt((v + c * c).sum(axis=1, keepdims=True))
    return c


def _covariances_of_right_and_wrong(products: PairProducts, beta: Floats) -> Floats:
    """The sum of C_ij: of (eps_i P_j - eps_j P_i) / (eps_i - eps_j) - P_i P_j."""
    eps = np.exp(beta.mean() - beta)
    difference = eps[:, None] - eps
    np.fill_diagonal(difference, 1.0)
    weighted = eps[:, None] * products.p
    return (weighted - weighted.T) / difference - products.p_p


def _covariances_of_categories(responses: Responses, residuals: Prepared, beta: Floats) -> Floats:
    """The sum of C_ij over these people, of answers in several categories."""
    layout = responses.thresholds
    scores = responses.scores.astype(np.float64)
    middle = float(layout.mean(beta).mean())
    low = min(beta.min(), middle - REACH)
    high = max(beta.max(), middle + REACH)
    from spectral_irt.conditional.series_tables import ORDER, Tables, grid_over  # for answers in categories

    tables = Tables.at(layout, beta, grid_over(low, high, layout), ORDER)
    total = np.asarray(residuals.sum(_covariances_by_series, tables, scores))
    with_few_answers = np.concatenate(list(residuals.map(_people_with_few_answers)))
    if len(with_few_answers):
        patterns = distinct_rows(responses.take_persons(np.sort(with_few_answers)))
        parts = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, layout))
        total += parts.sum(_covariances_by_contour, padded_sums(layout, beta), layout.n_items)
    return total


def _has_many_answers(part: Residuals) -> Mask:
    """People whose answers count as many equal ones."""
    return part.v.sum(axis=1) ** 2 >= LONG * (part.v**2).sum(axis=1)


def _people_with_few_answers(part: Residuals) -> Ints:
    return part.person[~_has_many_answers(part)]


def _covariances_by_series(part: Residuals, tables: Tables, scores: Floats) -> Floats:
    from spectral_irt.conditional.series_tables import weights

    people = _has_many_answers(part)
    answered = part.answered[people]
    score = scores[part.person[people]]
    order = tables.order
    moments = tables.moments[: order + 2].reshape(order + 2, -1, answered.shape[1])
    # The ability of the grid at which the mean score is nearest to the score; `weights` knows the rest of the way.
    place = np.abs(answered @ moments[0].T - score[:, None]).argmin(axis=1)
    derivatives = moments[:, place] * answered  # of the mean answer by ability, of every person and item
    totals = derivatives.sum(axis=2)
    u = weights(score - totals[0], totals[1:], tables.spacing)
    mean = np.einsum("ru,rui->ui", u, derivatives[: order + 1])
    covariance = -(mean.T @ mean)
    for a in range(order + 1):
        for b in range(a, order + 1 - a):
            product = (derivatives[a] * (comb(a + b, a) * u[a + b])[:, None]).T @ derivatives[b]
            covariance += product if a == b else product + product.T
    return covariance


def _covariances_by_contour(part: PatternPart, cumulated: Floats, n_items: int) -> Floats:
    total = np.zeros((n_items + 1, n_items + 1))
    for some, sums in contours(part, cumulated):
        real, imaginary = (factor.sum(axis=2) for factor in pair_factors(sums))  # X is how many thresholds it passed
        mean = sums.given.passed.sum(axis=0).T
        covariance = real @ real.transpose(0, 2, 1) - imaginary @ imaginary.transpose(0, 2, 1)
        covariance -= mean[:, :, None] * mean[:, None, :]
        covariance *= part.people[some, None, None]
        items = part.items[some]
        np.add.at(total, (items[:, :, None], items[:, None, :]), covariance)
    return total[:-1, :-1]


def variance_along(part: Residuals, direction: Floats) -> float:
    """Sum of squares over people of what each adds to direction' S direction."""
    c = rank_one(part.v, part.answered) * direction
    e = part.e * direction
    contribution = e.sum(axis=1) ** 2 - (e * e).sum(axis=1) + c.sum(axis=1) ** 2 - (c * c).sum(axis=1)
    return float(contribution @ contribution)
