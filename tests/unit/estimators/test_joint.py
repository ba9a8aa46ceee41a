"""Joint likelihood against loops, a general optimizer and its known bias; variational Bayes against dense ascent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from dense import AWKWARD, dense_pairs, probabilities
from spectral_irt.data import Responses
from spectral_irt.errors import SpectralIrtError
from spectral_irt.estimators import joint
from spectral_irt.estimators.joint import Items, JointPart, JointRasch, VariationalPart, VariationalRasch
from spectral_irt.simulate import rasch


@pytest.fixture
def small():
    return rasch(60, 7, design="sampled", p=0.7, seed=2)


def informative_rows(X):
    n, s = (~np.isnan(X)).sum(axis=1), np.nansum(X, axis=1)
    return X[(s > 0) & (s < n)]


def test_abilities_slope_information_and_loglik_equal_loops(small):
    beta = small.difficulty
    part, (slope, own, loglik) = joint.solve_abilities(JointPart.of(small.responses.blocks[0], beta), beta)
    X = informative_rows(small.responses.to_dense())
    P = probabilities(part.theta, beta)
    seen = ~np.isnan(X)
    np.testing.assert_allclose((P * seen).sum(axis=1), np.nansum(X, axis=1), atol=1e-9)
    np.testing.assert_allclose(slope, np.where(seen, P - X, 0).sum(axis=0), atol=1e-9)
    V = np.where(seen, P * (1 - P), 0)
    np.testing.assert_allclose(own, (V - V**2 / V.sum(axis=1, keepdims=True)).sum(axis=0), rtol=1e-9)
    assert float(loglik) == pytest.approx(np.where(seen, np.log(np.where(X == 1, P, 1 - P)), 0).sum())
    H = np.diag(V.sum(axis=0)) - sum(np.outer(v, v) / v.sum() for v in V)
    np.testing.assert_allclose(joint.dense_information(part, 7), H, atol=1e-10)
    x = np.arange(7.0) ** 2
    np.testing.assert_allclose(joint.profile_information(part, x), H @ x, atol=1e-10)


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
    part = joint.solve_abilities(JointPart.of(data.blocks[0], fit.difficulty_), fit.difficulty_)[0]
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


def dense_bound(X, mean, var, b, c, mu, tau_b, tau):
    """The evidence bound by definition, xi at its best: sums over answers, people, items, hyperparameters."""
    total = 0.0
    for person in range(X.shape[0]):
        for i in range(X.shape[1]):
            if not np.isnan(X[person, i]):
                xi = np.sqrt((mean[person] - b[i]) ** 2 + var[person] + c[i])
                total += (X[person, i] - 0.5) * (mean[person] - b[i]) - np.log(2 * np.cosh(xi / 2))
    present = ~np.isnan(X).all(axis=1)
    # -KL of a normal q to its normal prior
    total += 0.5 * np.sum(np.log(tau * var[present]) - tau * (mean[present] ** 2 + var[present]) + 1)
    total += 0.5 * np.sum(np.log(tau_b * c) - tau_b * ((b - mu) ** 2 + c) + 1)
    return total + 0.5 * (np.log(tau_b) - tau_b) + 0.5 * (np.log(tau) - tau)


def dense_ascent(X, rounds=3000):
    """Plain coordinate ascent with a stored xi for every answer."""
    n, m = X.shape
    seen, half = ~np.isnan(X), np.where(np.isnan(X), 0, X - 0.5)
    mean, var, b, c = np.zeros(n), np.ones(n), np.zeros(m), np.ones(m)
    mu, tau_b, tau = 0.0, 1.0, 1.0
    present = seen.any(axis=1)
    for _ in range(rounds):
        xi = np.sqrt((mean[:, None] - b) ** 2 + var[:, None] + c)
        w = np.where(seen, np.tanh(xi / 2) / (2 * xi), 0)
        var = 1 / (tau + w.sum(axis=1))
        mean = var * (half.sum(axis=1) + w @ b)
        xi = np.sqrt((mean[:, None] - b) ** 2 + var[:, None] + c)
        w = np.where(seen, np.tanh(xi / 2) / (2 * xi), 0)
        c = 1 / (tau_b + w.sum(axis=0))
        b = c * (tau_b * mu - half.sum(axis=0) + w.T @ mean)
        mu = b.mean()
        tau_b = (m + 1) / (np.sum((b - mu) ** 2 + c) + 1)
        tau = (present.sum() + 1) / (np.sum(mean[present] ** 2 + var[present]) + 1)
    return mean, var, b, c, mu, tau_b, tau


def test_pass_gives_the_bound_and_the_update_of_abilities_by_definition():
    rng = np.random.default_rng(1)
    items = Items(rng.normal(size=7), rng.uniform(0.1, 0.5, 7), 0.2, 1.3, 0.8)
    block = Responses.from_wide(AWKWARD).blocks[0]
    part, sums = joint.bound_pass(VariationalPart.of(block), items, 0.1)
    present = ~np.isnan(AWKWARD).all(axis=1)
    X = AWKWARD[present]
    bound = dense_bound(X, part.mean, part.var, items.mean, items.var, items.mu, items.tau_b, items.tau)
    assert sums[3][0] + joint.item_bound(items) == pytest.approx(bound, abs=1e-10)
    xi = np.sqrt((part.mean[:, None] - items.mean) ** 2 + part.var[:, None] + items.var)
    w = np.where(np.isnan(X), 0, np.tanh(xi / 2) / (2 * xi))
    np.testing.assert_allclose(sums[0], w.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(sums[1], w.T @ part.mean, atol=1e-12)
    np.testing.assert_allclose(sums[2], np.nansum(X - 0.5, axis=0), atol=1e-12)
    np.testing.assert_allclose(sums[3][1:], [part.mean.sum(), (part.mean**2 + part.var).sum(), 7])


def test_items_and_hyperparameters_are_updated_where_the_bound_is_highest():
    """After abilities were moved to the mean zero; `PRIOR_WEIGHT` is what the hyperparameters start from."""
    rng = np.random.default_rng(8)
    items = joint.Items.at(np.concatenate([rng.normal(size=4), rng.normal(size=4), [0.3, 0.2, -0.4]]))
    w, w_theta, half = rng.uniform(1, 3, 4), rng.normal(size=4), rng.normal(size=4)
    theta = rng.normal(0.7, 1, 50)
    theta_var = rng.uniform(0.1, 0.3, 50)
    totals = joint.BoundTotals(0.0, theta.sum(), np.sum(theta**2 + theta_var), 50)
    x, shift = joint.update_items(items, joint.BoundSums(w, w_theta, half, np.array(totals)))
    center = theta.mean()
    assert shift == pytest.approx(-center)
    var = 1 / (items.tau_b + w)
    mean = var * (items.tau_b * items.mu - half + w_theta) - center
    np.testing.assert_allclose(x[:4], mean)
    np.testing.assert_allclose(x[4:8], np.log(var))
    weight = joint.PRIOR_WEIGHT
    tau_b = (4 + weight) / (np.sum((mean - mean.mean()) ** 2 + var) + weight)
    tau = (50 + weight) / (np.sum((theta - center) ** 2 + theta_var) + weight)
    np.testing.assert_allclose(x[8:], [mean.mean(), np.log(tau_b), np.log(tau)])


def test_curvature_is_smooth_at_zero():
    xi = np.array([0.0, 1e-6, 9e-5, 1.1e-4, 1e-2, 3.0, 800.0])
    np.testing.assert_allclose(joint.curvature(xi)[:4], 0.125, atol=1e-9)
    np.testing.assert_allclose(joint.curvature(xi)[4:], np.tanh(xi[4:] / 2) / (4 * xi[4:]))


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 0.6])
def test_equals_plain_dense_coordinate_ascent(p):
    X = rasch(120, 8, design="sampled", p=p, ability_sd=1.5, ability_mean=0.7, seed=3).responses.to_dense()
    mean, var, b, c, mu, tau_b, tau = dense_ascent(X)
    fit = VariationalRasch(tol=1e-8, max_iter=2000).fit(X)
    np.testing.assert_allclose(fit.difficulty_, b - b.mean(), atol=1e-5)
    np.testing.assert_allclose(fit.se_, np.sqrt(c), rtol=1e-5)
    assert fit.sigma_ == pytest.approx(tau**-0.5, rel=1e-5)
    assert fit.sigma_b_ == pytest.approx(tau_b**-0.5, rel=1e-5)
    bound = dense_bound(X, mean, var, b, c, mu, tau_b, tau)
    assert fit.elbo_[-1] == pytest.approx(bound, abs=1e-6)


tables = arrays(float, st.tuples(st.integers(2, 12), st.integers(2, 6)), elements=st.sampled_from([0.0, 1.0, np.nan]))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(tables, st.integers(0, 2**16))
def test_plain_updates_never_lower_the_bound(table, seed):
    """Without acceleration or any guard, from a random start: each round of updates is an ascent, to rounding."""
    table = table[:, (~np.isnan(table)).any(axis=0)]
    if not table.size:
        return
    rng = np.random.default_rng(seed)
    m = table.shape[1]
    items = Items(2 * rng.normal(size=m), rng.uniform(0.01, 3, m), rng.normal(), *rng.uniform(0.1, 5, 2))
    part, shift, bounds = VariationalPart.of(Responses.from_wide(table).blocks[0]), 0.0, []
    for _ in range(40):
        part, sums = joint.bound_pass(part, items, shift)
        bounds.append(float(sums[3][0]) + joint.item_bound(items))
        x, shift = joint.update_items(items, sums)
        items = Items.at(x)
    assert np.diff(bounds).min() >= -1e-9


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(tables)
def test_bound_never_decreases(table):
    try:
        fit = VariationalRasch(threads=1).fit(table)
    except SpectralIrtError:
        return  # data from which nothing can be learned
    assert np.all(np.diff(fit.elbo_) >= 0)
    answered = (~np.isnan(table)).any(axis=0)
    assert np.isfinite(fit.difficulty_[answered]).all()
    assert np.isnan(fit.difficulty_[~answered]).all()
    assert (fit.se_[answered] > 0).all()


def test_bound_never_decreases_on_larger_data_and_ends_at_a_maximum():
    for seed, options in enumerate([{}, {"design": "sampled", "p": 0.2}, {"ability_sd": 3.0}]):
        fit = VariationalRasch().fit(rasch(300, 25, seed=seed, **options).responses)
        assert np.all(np.diff(fit.elbo_) >= 0)
        assert fit.residual_ <= 1e-5


def test_extreme_items_get_an_estimate_from_the_prior():
    X = rasch(100, 6, seed=4).responses.to_dense()
    X = np.column_stack([X, np.ones(100), np.zeros(100), np.full(100, np.nan)])
    fit = VariationalRasch().fit(X)
    assert fit.status_[6:].tolist() == ["all right", "all wrong", "no responses"]
    assert np.argmin(fit.difficulty_[:8]) == 6
    assert np.argmax(fit.difficulty_[:8]) == 7
    assert np.isnan(fit.difficulty_[8])
    assert np.nanmean(fit.difficulty_) == pytest.approx(0, abs=1e-12)


def test_long_tests_recover_the_truth():
    """Posterior sd a tenth small at most with 60 items; the shrinkage is 3%."""
    data = rasch(600, 60, seed=5)
    fit = VariationalRasch().fit(data.responses)
    slope = fit.difficulty_ @ data.difficulty / (data.difficulty @ data.difficulty)
    assert 0.92 < slope < 1.0
    assert np.mean(((fit.difficulty_ - data.difficulty) / fit.se_) ** 2) < 2


@pytest.mark.slow
def test_intervals_are_as_narrow_as_said():
    """The page says 65% for 5 answers, sd 1.5 and 1,000 people, and differences 13% too small; and so does a fit.

    Twelve replicates of five items, whose errors go together: the standard error of the coverage is about .07.
    """
    covered, slopes = [], []
    for seed in range(12):
        data = rasch(1000, 5, ability_sd=1.5, seed=seed)
        truth = data.difficulty - data.difficulty.mean()
        fit = VariationalRasch().fit(data.responses)
        covered.append(np.mean(np.abs(fit.difficulty_ - truth) < 1.96 * fit.se_))
        slopes.append(fit.difficulty_ @ truth / (truth @ truth))
        assert "approximate_intervals" in [finding.code for finding in fit.findings_]
    assert 0.45 < np.mean(covered) < 0.85
    assert 0.82 < np.mean(slopes) < 0.92
