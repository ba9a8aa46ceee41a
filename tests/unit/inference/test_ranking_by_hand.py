"""How difficulties are spread, what is likely of each, and which pairs are told apart: by integrals and loops."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from spectral_irt import SpectralRasch, simulate
from spectral_irt.chain.prior import share_of_prior
from spectral_irt.inference.ranks import items as module
from spectral_irt.inference.ranks.intervals import order_p, standard_draws, sure_ranks
from spectral_irt.inference.ranks.items import _best_normal, _spread, covariance_among, likely, likely_places

RNG = np.random.default_rng(5)
ESTIMATE = np.concatenate([RNG.normal(-1, 0.4, 25), RNG.normal(1.5, 0.3, 15)])
PRECISION = RNG.uniform(4, 40, 40)


def test_the_normal_spread_is_the_likeliest():
    """Estimates are normal around the mean with the variance of the spread and of their errors."""
    mean, variance = _best_normal(PRECISION, PRECISION * ESTIMATE)

    def loglik(x):
        return -stats.norm.logpdf(ESTIMATE, x[0], np.sqrt(np.exp(x[1]) + 1 / PRECISION)).sum()

    best = minimize(loglik, [0.0, 0.0], method="BFGS").x
    assert mean == pytest.approx(best[0], abs=1e-3)
    assert variance == pytest.approx(np.exp(best[1]), rel=1e-2)


def test_the_spread_is_ten_steps_of_em_on_narrow_normals():
    mean, variance = _best_normal(PRECISION, PRECISION * ESTIMATE)
    grid, log_density = _spread(PRECISION, PRECISION * ESTIMATE, mean, variance)
    sd = np.sqrt(variance)
    width = 0.5 * sd * 40**-0.2
    assert np.diff(grid).max() <= 0.5 * width
    center = (PRECISION * ESTIMATE + mean / variance) / (PRECISION + 1 / variance)
    assert grid[0] == pytest.approx(min(center.min(), mean - 4 * sd) - sd)
    assert grid[-1] == pytest.approx(max(center.max(), mean + 4 * sd) + sd)
    share = stats.norm.pdf(grid, mean, np.sqrt(variance - width**2))
    share /= share.sum()
    fit = np.array(
        [stats.norm.pdf(x, grid, np.sqrt(1 / w + width**2)) for x, w in zip(ESTIMATE, PRECISION, strict=True)]
    )
    for _ in range(10):
        after = share * fit
        share = (after / after.sum(axis=1, keepdims=True)).mean(axis=0)
    expected = np.log([np.sum(share * stats.norm.pdf(at, grid, width)) for at in grid])
    apart = log_density - expected
    near = expected > expected.max() - 20
    np.testing.assert_allclose(apart[near] - apart[near][0], 0, atol=1e-6)


def test_likely_places_are_quantiles_of_the_posterior():
    found = likely_places(PRECISION, PRECISION * ESTIMATE)
    grid, log_density = _spread(PRECISION, PRECISION * ESTIMATE, *_best_normal(PRECISION, PRECISION * ESTIMATE))
    b = np.linspace(grid[0], grid[-1], 40_001)
    density = np.exp(np.interp(b, grid, log_density))
    places = np.arange(-8, 8.05, 0.1)
    for item in (0, 7, 30):
        posterior = density * np.exp(-PRECISION[item] * (b - ESTIMATE[item]) ** 2 / 2)
        below = np.cumsum(posterior) / posterior.sum()
        at = found.center[item] + found.sd[item] * places
        cdf = np.interp(at, b, below)
        inside = (cdf > 0.005) & (cdf < 0.995)
        assert inside.sum() > 20
        # a step of a tenth of a standard deviation, by the rule of the middle
        np.testing.assert_allclose(stats.norm.cdf(found.quantile[item][inside]), cdf[inside], atol=2e-3)


@pytest.mark.parametrize("kind", ["none", "virtual item", "neighbors", "neighbors, given"])
def test_what_a_prior_told_is_taken_off(kind, monkeypatch):
    """1 / se^2 less the precision of the prior is what the answers told, a thousandth of it at least."""
    fit = SpectralRasch(regularization=0).fit(simulate.rasch(60, 12, design="sampled", p=0.3, seed=2).responses)
    made = fit.calibration_
    prior = None
    if kind != "none":
        name = kind.split(",")[0]
        prior = SimpleNamespace(kind=name, alpha=0.8, mean=0.4, estimated="given" not in kind)
    names = ("difficulty", "se", "item_information", "known")
    made = SimpleNamespace(prior=prior, **{name: getattr(made, name) for name in names})
    seen = []
    monkeypatch.setattr(module, "likely_places", lambda *each: seen.append(each))
    likely(made)
    ((precision, pull),) = seen
    total = made.se**-2
    alpha = np.full(12, 0.0 if prior is None else 0.8)
    if kind == "neighbors":
        alpha = 0.8 * share_of_prior(made.item_information, made.known, 0.8)
        assert ((alpha > 0) & (alpha < 0.8)).any() or (alpha == 0).any()
    known = np.isfinite(made.difficulty - made.se)
    expected = np.maximum(total - alpha, 1e-3 * total)
    np.testing.assert_allclose(precision, expected[known])
    # exp(pull b - precision b^2 / 2) times the prior is the normal of the estimate
    told = made.difficulty * total - (total - expected) * (0.0 if prior is None else 0.4)
    np.testing.assert_allclose(pull, told[known])


@pytest.mark.parametrize("correlated", [False, True])
def test_pairs_are_tested_by_steps_from_the_farthest(correlated):
    """p of the k-th farthest pair: how often any pair from it on is as far apart by chance; never below one before."""
    beta, se = np.array([0.0, 0.3, 1.0, 2.5]), np.array([0.2, 0.4, 0.3, 0.3])
    covariance = None
    if correlated:
        covariance = np.outer(se, se) * (0.5 + 0.5 * np.eye(4))
    width, z, p = order_p(beta, se, covariance=covariance, df=9.0, rng=np.random.default_rng(3))
    errors = standard_draws(np.random.default_rng(3), (2000, 4), 9.0)
    errors = errors * se if covariance is None else errors @ np.linalg.cholesky(covariance).T
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    sd = {}
    for i, j in pairs:
        shared = 0 if covariance is None else covariance[i, j]
        sd[i, j] = np.sqrt(se[i] ** 2 + se[j] ** 2 - 2 * shared)
        assert width[i, j] == width[j, i] == pytest.approx(sd[i, j])
        assert z[i, j] == pytest.approx((beta[i] - beta[j]) / sd[i, j])
    pairs.sort(key=lambda pair: -abs(z[pair]))
    last = 0.0
    for k, pair in enumerate(pairs):
        largest = np.max([np.abs(errors[:, i] - errors[:, j]) / sd[i, j] for i, j in pairs[k:]], axis=0)
        last = max(last, (1 + np.sum(largest >= abs(z[pair]))) / 2001)
        assert p[pair] == p[pair[::-1]] == pytest.approx(last, abs=1e-3)
    assert (np.diag(p) == 1).all()
    assert np.isinf(np.diag(width)).all()


def test_draws_of_multivariate_t_share_a_divisor():
    z = standard_draws(np.random.default_rng(1), (20_000, 2), 5.0)
    for column in z.T:
        assert stats.kstest(column, stats.t(5).cdf).pvalue > 1e-3
    assert np.corrcoef(z.T**2)[0, 1] > 0.1
    np.testing.assert_array_equal(
        standard_draws(np.random.default_rng(1), (3, 2), np.inf), np.random.default_rng(1).standard_normal((3, 2))
    )


def test_ranks_that_are_sure():
    above = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
    low, high = sure_ranks(above)
    assert [*zip(low.tolist(), high.tolist(), strict=True)] == [(1, 1), (2, 3), (2, 3), (4, 4)]


def test_the_covariance_of_some_items():
    covariance = np.diag([1.0, 0.0, 4.0, np.nan])
    some = np.array([True, True, True, False])
    np.testing.assert_allclose(covariance_among(covariance, some), np.diag([1.0, 1e-12, 4.0]))
    assert covariance_among(covariance, np.ones(4, dtype=bool)) is None
    assert covariance_among(None, some) is None
