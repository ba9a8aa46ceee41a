"""Joint likelihood: kernels against loops, the maximum against a general optimizer, and the bias it is known for."""

from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import minimize

from dense import dense_pairs, probabilities
from spectral_irt.estimators.joint import JointPart, JointRasch, dense_information, profile_information, solve_abilities
from spectral_irt.simulate import rasch


@pytest.fixture
def small():
    return rasch(60, 7, design="sampled", p=0.7, seed=2)


def informative_rows(X):
    n, s = (~np.isnan(X)).sum(axis=1), np.nansum(X, axis=1)
    return X[(s > 0) & (s < n)]


def test_abilities_slope_and_loglik_equal_loops(small):
    beta = small.difficulty
    part, (slope, own, loglik) = solve_abilities(JointPart.of(small.responses.blocks[0], beta), beta)
    X = informative_rows(small.responses.to_dense())
    P = probabilities(part.theta, beta)
    seen = ~np.isnan(X)
    np.testing.assert_allclose((P * seen).sum(axis=1), np.nansum(X, axis=1), atol=1e-9)
    np.testing.assert_allclose(slope, np.where(seen, P - X, 0).sum(axis=0), atol=1e-9)
    V = np.where(seen, P * (1 - P), 0)
    np.testing.assert_allclose(own, (V - V**2 / V.sum(axis=1, keepdims=True)).sum(axis=0), rtol=1e-9)
    assert float(loglik) == pytest.approx(np.where(seen, np.log(np.where(X == 1, P, 1 - P)), 0).sum())


def test_information_equals_loops(small):
    beta = small.difficulty
    part = solve_abilities(JointPart.of(small.responses.blocks[0], beta), beta)[0]
    X = informative_rows(small.responses.to_dense())
    H = np.zeros((7, 7))
    for row, theta in zip(X, part.theta, strict=True):
        p = 1 / (1 + np.exp(beta - theta))
        v = np.where(np.isnan(row), 0, p * (1 - p))
        H += np.diag(v) - np.outer(v, v) / v.sum()
    np.testing.assert_allclose(dense_information(part, 7), H, atol=1e-10)
    x = np.arange(7.0) ** 2
    np.testing.assert_allclose(profile_information(part, x), H @ x, atol=1e-10)


def test_maximum_equals_a_general_optimizer(small):
    X = informative_rows(small.responses.to_dense())
    n, m = X.shape
    seen = ~np.isnan(X)

    def negative(x):
        z = np.append(x[: m - 1], -x[: m - 1].sum())[None, :]
        eta = x[m - 1 :, None] - z
        return -np.where(seen, X * eta - np.logaddexp(0, eta), 0).sum()

    best = minimize(negative, np.zeros(m - 1 + n), method="BFGS", options={"gtol": 1e-7, "maxiter": 3000})
    fit = JointRasch().fit(small.responses)
    np.testing.assert_allclose(fit.difficulty_[:-1], best.x[: m - 1], atol=2e-5)
    assert fit.loglik_ == pytest.approx(-best.fun, abs=1e-7)


def test_two_items_come_out_exactly_twice_as_far_apart():
    """Andersen (1973): with two items the joint estimate is twice the conditional one."""
    data = rasch(300, 2, difficulty=[-0.5, 0.5], seed=1)
    Y, _ = dense_pairs(data.responses.to_dense())
    fit = JointRasch().fit(data.responses)
    assert fit.difficulty_[1] - fit.difficulty_[0] == pytest.approx(2 * np.log(Y[0, 1] / Y[1, 0]), abs=1e-8)
    corrected = JointRasch(correction=True).fit(data.responses)
    assert corrected.difficulty_[1] - corrected.difficulty_[0] == pytest.approx(np.log(Y[0, 1] / Y[1, 0]), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 7, 10])
def test_known_bias_and_its_correction(n):
    """Slope about n / (n - 1) however many people; the noise of a slope here is about 0.005."""
    data = rasch(20_000, difficulty=np.linspace(-1, 1, n), seed=n)
    fit = JointRasch().fit(data.responses)
    truth = data.difficulty
    slope = fit.difficulty_ @ truth / (truth @ truth)
    assert slope == pytest.approx(n / (n - 1), abs=0.05)
    assert "joint_bias" in [f.code for f in fit.findings_]
    corrected = JointRasch(correction=True).fit(data.responses)
    assert corrected.difficulty_ @ truth / (truth @ truth) == pytest.approx(1, abs=0.04)
    np.testing.assert_allclose(corrected.se_, fit.se_ * (n - 1) / n)


def test_correction_averages_over_users_of_different_length():
    data = rasch(500, 30, design="sampled", p=0.3, seed=4).responses
    fit, corrected = (JointRasch(correction=each).fit(data) for each in (False, True))
    part = solve_abilities(JointPart.of(data.blocks[0], fit.difficulty_), fit.difficulty_)[0]
    n = part.block.counts
    weights = part.information / part.information.sum()
    np.testing.assert_allclose(corrected.difficulty_, fit.difficulty_ * (weights @ ((n - 1) / n)), atol=1e-9)


def test_long_tests_have_honest_errors():
    data = rasch(400, 60, seed=5)
    fit = JointRasch(correction=True).fit(data.responses)
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert 0.6 < np.mean(z**2) < 1.5  # chi square with 59 degrees of freedom over 60: sd 0.18


def test_linked_forms_converge():
    """Twelve forms in a row, two common items each: Newton's system is nearly singular, the steps are few."""
    data = rasch(1500, design="linked", forms=12, length=15, anchors=2, seed=3)
    fit = JointRasch().fit(data.responses)
    assert fit.n_iter_ < 15
    assert fit.residual_ < 1e-8


def test_many_items_take_their_own_information(monkeypatch):
    data = rasch(500, 40, seed=3).responses
    dense = JointRasch().fit(data)
    monkeypatch.setattr(import_module("spectral_irt.estimators.joint"), "DENSE_ITEMS", 10)
    np.testing.assert_allclose(JointRasch().fit(data).se_, dense.se_, rtol=0.1)
