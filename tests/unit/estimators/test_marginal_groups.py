"""Marginal likelihood with a population for each group: against brute force, then what is promised."""

import numpy as np
import pytest
from scipy.optimize import minimize

from spectral_irt import Responses, simulate
from spectral_irt.errors import DisconnectedDesignError, OptionError
from spectral_irt.estimators.marginal import MarginalPartialCredit, MarginalRasch


def vertical(n=400, seed=0, gap=1.5):
    """Two grades a gap apart; ten items each, four of them common, and harder in the upper grade."""
    rng = np.random.default_rng(seed)
    beta = np.concatenate([rng.normal(-gap / 2, 0.7, 6), rng.normal(0, 0.7, 4), rng.normal(gap / 2, 0.7, 6)])
    beta -= beta.mean()
    grade = np.repeat([0, 1], n)
    theta = np.where(grade == 0, -gap / 2, gap / 2) + np.where(grade == 0, 0.8, 1.2) * rng.normal(size=2 * n)
    X = (rng.random((2 * n, 16)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    X[grade == 0, 10:] = np.nan
    X[grade == 1, :6] = np.nan
    return X, np.where(grade == 0, "third", "fourth"), beta


def brute_force(X, group, n_groups):
    """Marginal likelihood summed over 61 Gauss-Hermite nodes, person after person; the last item balances the rest."""
    z, w = np.polynomial.hermite_e.hermegauss(61)
    w = w / w.sum()
    answered = ~np.isnan(X)

    def minus_loglik(x):
        beta = np.append(x[: X.shape[1] - 1], -x[: X.shape[1] - 1].sum())
        mu, sigma = x[X.shape[1] - 1 :][:n_groups], np.exp(x[X.shape[1] - 1 :][n_groups:])
        theta = mu[group][:, None] + sigma[group][:, None] * z
        p = 1 / (1 + np.exp(beta - theta[:, :, None]))
        likely = np.where(answered[:, None, :], np.where(X[:, None, :] == 1, p, 1 - p), 1.0).prod(axis=2)
        return -np.log(likely @ w).sum()

    start = np.zeros(X.shape[1] - 1 + 2 * n_groups)
    found = minimize(minus_loglik, start, method="BFGS", options={"gtol": 1e-5})
    m = X.shape[1] - 1
    beta = np.append(found.x[:m], -found.x[:m].sum())
    return beta, found.x[m:][:n_groups], np.exp(found.x[m + n_groups :]), -found.fun


@pytest.mark.slow
def test_the_maximum_is_that_of_brute_force():
    X, _, _ = vertical(60, seed=3)
    X = X[:, 4:12]  # two of their own, four in common, two of their own
    group = np.repeat([0, 1], 60)
    beta, mu, sigma, loglik = brute_force(X, group, 2)
    fit = MarginalRasch(tol=1e-9).fit(X, groups=group)
    assert fit.loglik_ == pytest.approx(loglik, abs=1e-6)
    np.testing.assert_allclose(fit.difficulty_, beta, atol=2e-4)
    np.testing.assert_allclose(fit.population_["mean"], mu, atol=2e-4)
    np.testing.assert_allclose(fit.population_["sd"], sigma, atol=4e-4)


def test_one_group_is_no_group():
    data = simulate.rasch(300, 12, design="sampled", p=0.6, seed=4).responses
    alone, named = MarginalRasch().fit(data), MarginalRasch().fit(data, groups=["x"] * 300)
    for name in ("difficulty_", "se_", "mu_", "sigma_", "sigma_se_", "loglik_", "bic_"):
        np.testing.assert_allclose(getattr(named, name), getattr(alone, name), rtol=0, atol=1e-10)


def test_the_order_of_groups_and_people_does_not_matter():
    X, grade, _ = vertical(150)
    one = MarginalRasch(tol=1e-9).fit(X, groups=grade)
    swapped = MarginalRasch(tol=1e-9).fit(X[::-1], groups=np.where(grade == "third", "z", "fourth")[::-1])
    np.testing.assert_allclose(swapped.difficulty_, one.difficulty_, atol=1e-6)
    np.testing.assert_allclose(swapped.se_, one.se_, rtol=1e-5)
    np.testing.assert_allclose(swapped.population_["mean_se"], one.population_["mean_se"], rtol=1e-5)


def test_what_is_said_about_the_groups():
    X, grade, _ = vertical(100)
    labels = grade.astype(object)
    labels[:5] = None
    fit = MarginalRasch().fit(X, groups=labels)
    assert fit.population_["group"].tolist() == ["fourth", "third", "no group"]
    assert fit.population_["n"].tolist() == [100, 95, 5]
    codes = {finding.code for finding in fit.findings_}
    assert {"people_without_group", "populations", "small_groups"} <= codes
    by_name = MarginalRasch().fit(Responses.from_wide(X), groups=dict(enumerate(grade)))
    assert by_name.population_["n"].tolist() == [100, 100]


def test_covariance_goes_with_the_standard_errors():
    X, grade, _ = vertical(100)
    fit = MarginalRasch().fit(X, groups=grade)
    covariance = fit.covariance()
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), fit.se_, rtol=1e-10)
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-10)


def test_groups_that_share_no_item_are_refused():
    X, grade, _ = vertical(60)
    X[:, 6:10] = np.nan
    X[grade == "fourth", 6:8] = 1
    X[0, 8:10] = 0
    with pytest.raises(DisconnectedDesignError, match="no item in common"):
        MarginalRasch().fit(X, groups=grade)


@pytest.mark.parametrize(("groups", "match"), [(["a"], "1 labels"), (range(101), "groups")])
def test_labels_that_are_no_groups(groups, match):
    with pytest.raises(OptionError, match=match):
        MarginalRasch().fit(simulate.rasch(101, 5, seed=1).responses, groups=groups)


@pytest.mark.slow
def test_intervals_on_a_vertical_scale():
    """Two grades a logit and a half apart: one population misses the difficulties, one for each covers them.

    Thirty replicates of sixteen items: a coverage of .95 has a standard error of about .015 when the items of a
    replicate move together as they do here; the limits are three of these.
    """
    inside, alone, means = [], [], []
    for seed in range(30):
        X, grade, beta = vertical(300, seed=seed)
        fit, one = MarginalRasch(tol=1e-4).fit(X, groups=grade), MarginalRasch(tol=1e-4).fit(X)
        inside.append(np.mean(np.abs(fit.difficulty_ - beta) < 1.96 * fit.se_))
        alone.append(np.mean(np.abs(one.difficulty_ - beta) < 1.96 * one.se_))
        table = fit.population_
        means.append(((table["mean"] - [0.75, -0.75]) / table["mean_se"]).tolist())
    assert 0.905 < np.mean(inside) < 0.995
    assert np.mean(alone) < 0.8
    assert np.std(means) == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("categories", [2, 3])
def test_weights_count_people(categories):
    """Whole weights are people who come twice; errors are of the people there are, not of the weights."""
    data = simulate.partial_credit(150, 6, categories=categories, seed=8).responses
    table, weight = data.to_dense(), np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    weighted = MarginalPartialCredit(tol=1e-9).fit(data, weights=weight)
    twice = MarginalPartialCredit(tol=1e-9).fit(np.repeat(table, weight.astype(int), axis=0))
    np.testing.assert_allclose(weighted.thresholds_, twice.thresholds_, atol=1e-6)
    assert weighted.sigma_ == pytest.approx(twice.sigma_, abs=1e-6)
    assert "weights" in [one.code for one in weighted.findings_]
    assert np.all(weighted.threshold_se_ > twice.threshold_se_)
    alike = MarginalPartialCredit().fit(data, weights=np.full(150, 3.0))
    plain = MarginalPartialCredit().fit(data)
    np.testing.assert_allclose(alike.thresholds_, plain.thresholds_, atol=1e-9)
    np.testing.assert_allclose(alike.threshold_se_, plain.threshold_se_, rtol=0.35)  # a sandwich of 150 people
