"""The Rasch model's two functions against scipy, and against what they approximate."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from spectral_irt.model import above, category_probabilities, prox, sigmoid, thurstone


def test_sigmoid_is_that_of_scipy_to_the_last_digits():
    x = np.concatenate([np.linspace(-700, 700, 2001), np.linspace(-3, 3, 101), [0.0]])
    np.testing.assert_allclose(sigmoid(x), expit(x), rtol=1e-15)
    np.testing.assert_allclose(sigmoid(-x) + sigmoid(x), 1, rtol=1e-15)


def test_sigmoid_at_the_ends(recwarn):
    assert sigmoid(np.array([-np.inf, -1e4, 1e4, np.inf])).tolist() == [0, 0, 1, 1]
    assert np.isnan(sigmoid(np.nan))
    assert sigmoid(0.0) == 0.5
    assert not recwarn.list


def test_prox_is_exact_for_equal_items_and_close_for_normal_ones():
    """The likelihood's ability, within a tenth of a logit."""
    assert prox(0.7, 0.0, np.log(3.0)) == 0.7 + np.log(3.0)
    beta = 0.4 + np.sqrt(2) * np.array([-1.6, -1.1, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.1, 1.6])
    for score in range(2, 9):
        exact = brentq(lambda theta, s=score: sigmoid(theta - beta).sum() - s, -20, 20)
        assert abs(prox(beta.mean(), beta.var(), np.log(score / (10 - score))) - exact) < 0.1


def test_probabilities_of_categories_and_of_those_above():
    beta = [[-0.5, 0.8, 0.1], [0.4]]
    cumulated = np.array([[0.0, -0.5, 0.3, 0.4], [0.0, 0.4, np.inf, np.inf]])
    p = category_probabilities(np.array([0.7, -1.0]), cumulated)
    for row, own, theta in zip(p, beta, (0.7, -1.0), strict=True):
        weight = [np.exp(k * theta - sum(own[:k])) for k in range(len(own) + 1)] + [0.0] * (3 - len(own))
        np.testing.assert_allclose(row, np.array(weight) / sum(weight))
    np.testing.assert_allclose(above(p), [[row[k:].sum() for k in (1, 2, 3)] for row in p])


def test_half_answer_in_the_category_or_above_at_thurstones_threshold():
    cumulated = np.array([[0.0, -3.0, 0.3, 0.4], [0.0, 9.0, np.inf, np.inf], [0.0, 12.0, -5.0, np.inf]] * 2)
    category = np.array([1, 1, 1, 3, 1, 2])
    found = thurstone(cumulated, category)
    passed = category_probabilities(found, cumulated)
    np.testing.assert_allclose([row[k:].sum() for row, k in zip(passed, category, strict=True)], 0.5, atol=1e-9)
    assert found[1] == found[4]
    assert abs(found[1] - 9) < 1e-9
    assert np.isnan(thurstone(np.array([[0.0, np.nan]]), np.array([1]))).all()
