"""The prior on items and thresholds: every formula of `chain/prior.py` once more, with loops and dense matrices."""

from dataclasses import replace

import numpy as np
import pytest

from spectral_irt import simulate
from spectral_irt.chain.operator import Neighbors
from spectral_irt.chain.prior import (
    LocationPrior,
    Prior,
    RareCategories,
    fading_of_both,
    least_precision,
    precision_of,
    precision_of_some,
    precision_step,
    prior_precision,
    renewed_precision,
    share_of_prior,
)
from spectral_irt.data.block import Thresholds

REACH = np.log(100)  # logits: the farthest that a hundred answers reach beyond what was measured


def least_by_hand(beta, information):
    """1 over the mean square of what was measured, two imaginary items of spread 1 among it, plus that reach^2."""
    numerator, denominator = 2.0, 2.0
    for b, known in zip(beta, information, strict=True):
        share = known / (known + 1)
        numerator += share * min(b**2, REACH**2)
        denominator += share
    return 1 / (numerator / denominator + REACH**2)


def test_a_step_of_empirical_bayes_has_two_imaginary_items():
    assert precision_step(3.0, 10.0, 0.01) == pytest.approx(5 / 12)
    assert precision_step(-3.0, 10.0, 0.01) == pytest.approx(2 / 12)  # no share is below zero
    assert precision_step(3.0, 10.0, 0.9) == 0.9


def test_the_least_precision_that_answers_can_speak_for():
    beta = np.array([-6.0, 0.5, 1.0, 3.0])
    information = np.array([0.5, 3.0, 10.0, 0.0])
    assert least_precision(beta, information) == pytest.approx(least_by_hand(beta, information))


@pytest.mark.parametrize("faded", [False, True])
def test_precision_of_difficulties_by_hand(faded):
    """E(beta^2) to the terms of third and fourth order in what is not known, item by item."""
    beta = np.array([-4.2, -0.4, 0.0, 0.9, 1.5])
    information = np.array([1.0, 4.0, 20.0, 8.0, 0.3])
    fade = np.array([0.1, 0.5, 0.0, 0.2, 1.0]) if faded else np.ones(5)
    alpha = 0.6
    width = 2.89 + 1
    share, squares = 0.0, 0.0
    for b, known, counts in zip(beta, information, fade, strict=True):
        variance = 1 / (known + alpha)
        third = known * min(max(b / width, -1), 1)
        fourth = known * max(1 / width - (b / width) ** 2, -1)
        beyond = b * third * variance**2 + fourth * variance**3 / 2 + 5 / 4 * third**2 * variance**4
        share += counts * (known / (known + alpha) - alpha * beyond)
        squares += counts * b**2
    expected = max((max(share, 0) + 2) / (squares + 2), least_by_hand(beta, information))
    found = prior_precision(beta, information, alpha, fade if faded else 1.0)
    assert found == pytest.approx(expected, rel=1e-3)  # the variance of a logistic variable is 2.89 to two digits


def test_renewed_precision_integrates_what_answers_say():
    """E d^2 under the answers, those of people of one ability, and the prior: by a fine sum."""
    d = np.array([-1.5, 0.2, 0.8, 2.0, 0.1])
    information = np.array([2.0, 5.0, 1.0, 0.5, 30.0])
    share = np.array([0.3, 0.6, 0.8, 0.1, 0.5])
    fade = np.array([1.0, 0.3, 0.7, 1.0, 0.0])
    alpha = 0.8
    total, squares = 0.0, 0.0
    for one in range(5):
        p = share[one]
        n = information[one] / (p * (1 - p))
        u = np.linspace(-30, 30, 200_001)
        log = -n * (p * u + np.log(1 - p + p * np.exp(-u))) - alpha / 2 * u**2
        weight = np.exp(log - log.max())
        beyond = np.sum(weight * ((d[one] + u) ** 2 - d[one] ** 2)) / weight.sum()
        total += fade[one] * (1 - alpha * beyond)
        squares += fade[one] * d[one] ** 2
    expected = max((max(total, 0) + 2) / (squares + 2), least_by_hand(d, information))
    assert renewed_precision(d, information, share, alpha, fade) == pytest.approx(expected, rel=2e-3)


def test_how_far_a_prior_fades():
    tied = np.array([True, True, True, True, False])
    information = np.array([3.0, 4.5, 6.0, 40.0, 40.0])
    # The median is above twice alpha: in full up to 3, gone from 6 on, and in full where nothing else ties.
    np.testing.assert_allclose(share_of_prior(information, tied, 1.0), [1.0, 0.5, 0.0, 0.0, 1.0])
    # The median is below alpha: in full up to 25, gone from 50 on.
    np.testing.assert_allclose(share_of_prior(information, tied, 6.0), [1.0, 1.0, 1.0, 0.4, 1.0])
    # Half-way between: the limit is 14.
    np.testing.assert_allclose(share_of_prior(information, tied, 4.0), [1.0, 1.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(share_of_prior(np.array([20.0, 20.0]), tied[:2], 20 / 1.5), [2 - 20 / 14] * 2)
    np.testing.assert_allclose(share_of_prior(np.zeros(2), np.array([True, False]), 1.0), [1.0, 1.0])


def test_precisions_settle_where_a_step_changes_nothing():
    rng = np.random.default_rng(2)
    information = rng.uniform(1, 30, 40)
    values = rng.normal(1.0, 1.3, 40)
    alpha = precision_of(values, information)
    away = (values - values.mean()) * information / (information + alpha)
    assert prior_precision(away, information, alpha) == pytest.approx(alpha, rel=1e-3)
    fade = np.clip(2 - information / 5, 0, 1)
    some = precision_of_some(away, information, alpha, fade)
    as_if = away * (information + alpha) / (information + some)
    assert prior_precision(as_if, information, some, fade) == pytest.approx(some, rel=1e-3)
    assert abs(some / alpha - 1) > 0.05


LAYOUT = Thresholds(np.array([2, 2, 3, 3, 2, 3]))


def offsets_by_hand(fade, alpha):
    """alpha Q diag(fade) Q: Q takes off the item's mean, then the mean of the level among items with as many, the
    latter times n / (n + 1), one threshold after the other."""
    n = LAYOUT.n_entries
    within = np.eye(n)
    alike = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            if LAYOUT.item[a] == LAYOUT.item[b]:
                within[a, b] -= 1 / LAYOUT.max_score[LAYOUT.item[a]]
        same = []
        for b in range(n):
            as_many = LAYOUT.max_score[LAYOUT.item[a]] == LAYOUT.max_score[LAYOUT.item[b]]
            if as_many and LAYOUT.level[a] == LAYOUT.level[b]:
                same.append(b)
        alike[a, same] = 1 / (len(same) + 1)
    q = within - alike @ within
    return alpha * q.T @ np.diag(fade) @ q, q


@pytest.fixture
def prior():
    data = simulate.partial_credit(60, 6, categories=3, design="sampled", p=0.6, seed=4).responses
    location = LocationPrior(Neighbors(data), 1.7, np.array([1.0, 0.0, 0.3, 1.0, 0.6, 0.0]))
    return Prior(LAYOUT, location, 0.9, np.linspace(0.1, 1, LAYOUT.n_entries), True)


def test_the_matrix_of_a_prior_on_thresholds(prior):
    """Penalty and covariance of its pull: offsets by hand, locations by their own matrix, spread over thresholds."""
    expected, q = offsets_by_hand(prior.fade, prior.alpha)
    of_pull, _ = offsets_by_hand(prior.fade**2, prior.alpha)
    average = np.zeros((6, LAYOUT.n_entries))
    for threshold in range(LAYOUT.n_entries):
        item = LAYOUT.item[threshold]
        average[item, threshold] = 1 / LAYOUT.max_score[item]
    own, its_pull = prior.location.dense()
    penalty, pull = prior.dense()
    np.testing.assert_allclose(penalty, expected + average.T @ own @ average, atol=1e-12)
    np.testing.assert_allclose(pull, of_pull + average.T @ its_pull @ average, atol=1e-12)
    v = np.random.default_rng(1).normal(size=(LAYOUT.n_entries, 2))
    np.testing.assert_allclose(prior.deviation(v), q @ v, atol=1e-12)
    np.testing.assert_allclose(prior @ v, penalty @ v, atol=1e-12)
    np.testing.assert_allclose(prior @ v[:, 0], penalty @ v[:, 0], atol=1e-12)
    np.testing.assert_allclose(prior.spread(v), pull @ v, atol=1e-12)
    drawn = prior.draw(np.random.default_rng(2), 40_000)
    largest = np.diag(pull).max()
    np.testing.assert_allclose(np.cov(drawn), pull, atol=5 * largest * np.sqrt(2 / 40_000))
    np.testing.assert_allclose(prior.precisions, [1.7, 0.9])
    np.testing.assert_allclose(prior.counts, np.maximum(prior.fade, prior.location.fade[LAYOUT.item]))
    alone = Prior(LAYOUT, None, 0.9, prior.fade, True)
    np.testing.assert_allclose(alone.dense()[0], expected, atol=1e-12)
    np.testing.assert_allclose(alone.counts, prior.fade)


@pytest.mark.parametrize("with_locations", [True, False])
def test_precisions_of_locations_and_offsets_by_hand(prior, with_locations):
    """From blocks of the information plus the prior in full: what the answers say of a location, and of offsets."""
    rng = np.random.default_rng(3)
    if not with_locations:
        prior = Prior(LAYOUT, None, 0.9, prior.fade, True)
    alpha = 1.7 if with_locations else 0.0
    beta = rng.normal(0, 1.2, LAYOUT.n_entries)
    own = np.zeros((6, 3, 3))
    around, trace = np.zeros(6), np.zeros(6)
    for item, k in enumerate(LAYOUT.max_score):
        root = rng.normal(size=(k, k))
        own[item, :k, :k] = root @ root.T + 0.5 * np.eye(k)
        center = np.eye(k) - 1 / k
        inverse = np.linalg.inv(own[item, :k, :k] + alpha / k**2 + 0.9 * center)
        mean = np.full(k, 1 / k)
        around[item] = mean @ inverse @ mean
        trace[item] = np.trace(center @ inverse @ center)
    told = np.maximum(1 / around - alpha, 0)
    found = prior.with_new_precision(beta, own, np.full(LAYOUT.n_entries, 0.5))
    if with_locations:
        fade = prior.location.fade
        d = prior.location.deviation(np.array([beta[LAYOUT.item == item].mean() for item in range(6)]))
        share = sum(fade[item] * min(max(1 - alpha * around[item], 0), 1) for item in range(6))
        expected = (share + 2) / (np.sum(fade * d**2) + 2)
        assert found.location.alpha == pytest.approx(max(expected, least_by_hand(d, told)))
    else:
        assert found.location is None
    t = offsets_by_hand(prior.fade, 0.9)[1] @ beta
    degrees = LAYOUT.max_score - 1
    share = sum(min(max(degrees[item] - 0.9 * trace[item], 0), degrees[item]) for item in range(6))
    expected = (share + 2) / (np.sum(t**2) + 2)
    assert found.alpha == pytest.approx(max(expected, least_by_hand(t, told[LAYOUT.item])))


def test_rare_categories_by_their_counts():
    """Items of 3 and 1 thresholds: counts 0 9 3 4 and 2 8."""
    layout = Thresholds(np.array([3, 1]))
    found = RareCategories.of(layout, np.array([0.0, 9, 3, 2]), np.array([9.0, 3, 4, 8]))
    assert sorted(zip(found.item.tolist(), found.category.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 0)]


@pytest.mark.parametrize("lowest", [False, True])
def test_offsets_beside_an_empty_category_are_expected_farther_out_than_of_a_normal_posterior(lowest):
    """An item of two thresholds on a grid: a normal prior, and a category that nobody used where m were expected."""
    layout = Thresholds(np.array([2]))
    expected = 0.4
    # By how much the category's log odds fall, and the direction that moves it alone.
    log_odds, alone = np.array([0.5, -0.5]), np.array([1.0, -1.0])
    if lowest:
        log_odds, alone = np.array([-1.0, 0.0]), np.array([-1.0, 0.0])
    without = np.array([[1.1, -0.4], [-0.4, 0.9]])
    covariance = np.linalg.inv(without + expected * np.outer(log_odds, log_odds))
    deviation = np.array([0.7, -0.7]) * (-1 if lowest else 1)
    axis = np.linspace(-12, 12, 601)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    x = grid @ log_odds
    q = np.exp(-np.einsum("...i,ij,...j->...", grid, without, grid) / 2 - expected * (x + np.exp(-x)))
    q /= q.sum()
    offset = grid - grid.mean(axis=-1, keepdims=True) + deviation
    center = np.eye(2) - 0.5
    of_normal = np.sum(deviation**2) + np.trace(center @ covariance)
    beyond = np.sum(q * (offset**2).sum(axis=-1)) - of_normal
    blocks = np.array([expected * np.outer(alone, alone) / (alone @ alone) ** 2])
    prior = Prior(
        layout, None, 0.5, np.ones(2), True, rare=RareCategories(np.array([0]), np.array([0 if lowest else 1]))
    )
    found = prior._squares_beside_rare(deviation, blocks, np.array([covariance]))
    assert found == pytest.approx(beyond, rel=2e-3)
    assert beyond > 0.04
    nothing_rare = replace(prior, rare=RareCategories(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)))
    assert nothing_rare._squares_beside_rare(deviation, blocks, np.array([covariance])) == 0


def test_offsets_beside_empty_categories_make_the_prior_wider():
    """Every second item has thresholds out of order around a category that nobody used."""
    layout = Thresholds(np.full(6, 3))
    beta = np.tile([3.0, -3.0, 0.0, -3.0, 3.0, 0.0], 3)
    blocks = np.tile(np.diag([0.2, 0.2, 6.0]), (6, 1, 1))
    prior = Prior(layout, None, 0.3, np.ones(18), True)
    plain = prior.with_new_precision(beta, blocks, np.full(18, 0.5))
    rare = RareCategories(np.array([0, 2, 4]), np.array([1, 1, 1]))
    empty = replace(prior, rare=rare).with_new_precision(beta, blocks, np.full(18, 0.5))
    assert empty.alpha < 0.95 * plain.alpha


def test_blocks_of_a_prior_leave_out_other_items(prior):
    diagonal = prior.location.diagonal()
    blocks = prior.within()
    for item, k in enumerate(LAYOUT.max_score):
        center = np.eye(k) - 1 / k
        fade = np.diag(prior.fade[LAYOUT.item == item])
        expected = diagonal[item] / k**2 + 0.9 * center @ fade @ center
        np.testing.assert_allclose(blocks[item, :k, :k], expected, atol=1e-12)
        assert not blocks[item, k:].any()
    # What an item has of its own, at least: alpha times how much the prior counts for it.
    assert (diagonal >= 1.7 * prior.location.fade * (prior.location.fade > 0) - 1e-12).all()


def test_fading_of_locations_and_offsets_goes_by_the_information_on_each():
    rng = np.random.default_rng(5)
    beta = rng.normal(0, 1, LAYOUT.n_entries)
    information = rng.uniform(0.5, 9, LAYOUT.n_entries)
    tied = rng.random(LAYOUT.n_entries) < 0.8
    of_locations, of_offsets = fading_of_both(LAYOUT, information, tied, beta)
    location = np.array([beta[LAYOUT.item == item].mean() for item in range(6)])
    told = np.array([information[LAYOUT.item == item].sum() for item in range(6)])
    ties = np.array([tied[LAYOUT.item == item].any() for item in range(6)])
    np.testing.assert_allclose(of_locations, share_of_prior(told, ties, precision_of(location, told)))
    away = offsets_by_hand(np.ones(LAYOUT.n_entries), 1.0)[1] @ beta
    np.testing.assert_allclose(of_offsets, share_of_prior(information, tied, precision_of(away, information)))
