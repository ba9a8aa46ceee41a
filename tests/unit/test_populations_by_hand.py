"""Populations of abilities and draws from posteriors: against direct maximization and fine integration."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from drawn import drawn
from spectral_irt import Responses, simulate
from spectral_irt.persons import abilities
from spectral_irt.persons.abilities import items_met, population, settle
from spectral_irt.persons.plausible import background, latent_regression, quantiles

NODES = np.linspace(-7, 7, 281)


def likelihoods(responses, thresholds):
    """P(answers | theta) on the nodes, persons x nodes, category by category."""
    layout = responses.thresholds
    table = responses.to_dense()
    out = np.ones((len(table), len(NODES)))
    for item in range(layout.n_items):
        own = thresholds[layout.item == item]
        weight = np.array([np.exp(k * NODES - own[:k].sum()) for k in range(len(own) + 1)])
        p = weight / weight.sum(axis=0)
        seen = ~np.isnan(table[:, item])
        out[seen] *= p[table[seen, item].astype(int)]
    return out


def best_population(given_answers, x, counts, sd=None):
    """Slopes and log sd that maximize the weighted marginal likelihood."""

    def loglik(parameters):
        spread = np.exp(parameters[-1]) if sd is None else sd
        mean = x @ parameters[: x.shape[1]]
        density = stats.norm.pdf(NODES, mean[:, None], spread)
        return -np.sum(counts * np.log((given_answers * density).sum(axis=1)))

    size = x.shape[1] + (sd is None)
    return minimize(loglik, np.zeros(size), method="BFGS", options={"gtol": 1e-4}).x


@pytest.fixture(scope="module")
def data():
    made = simulate.partial_credit(90, 6, categories=3, design="sampled", p=0.8, seed=3)
    table = made.responses.to_dense()
    table[5] = np.nan  # answered nothing
    return Responses.from_wide(table, ordered=True), made.thresholds, np.random.default_rng(1).uniform(0.5, 2, 90)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_population_is_the_likeliest(data, weighted):
    responses, thresholds, weights = data
    answered = np.asarray(responses.counts) > 0
    counts = np.where(answered, weights if weighted else 1.0, 0.0)
    mean, log_sd = best_population(likelihoods(responses, thresholds), np.ones((90, 1)), counts)
    found = population(responses, thresholds, None, None, weights if weighted else None)
    assert found == pytest.approx((mean, np.exp(log_sd)), abs=2e-3)
    (alone,) = best_population(likelihoods(responses, thresholds), np.ones((90, 1)), counts, sd=0.7)
    given = population(responses, thresholds, None, 0.7, weights if weighted else None)
    assert given == pytest.approx((alone, 0.7), abs=2e-3)
    assert population(responses, thresholds, 0.3, 0.9) == (0.3, 0.9)


@pytest.mark.parametrize("weighted", [False, True])
def test_latent_regression_is_the_likeliest(data, weighted):
    responses, thresholds, weights = data
    rng = np.random.default_rng(4)
    x = background({"age": rng.normal(40, 9, 90), "group": np.array(["a", "b", "c"])[rng.integers(0, 3, 90)]}, 90)
    answered = np.asarray(responses.counts) > 0
    counts = np.where(answered, weights if weighted else 1.0, 0.0)
    *slopes, log_sd = best_population(likelihoods(responses, thresholds), x, counts)
    means, sd = latent_regression(responses, thresholds, x, weights if weighted else None)
    np.testing.assert_allclose(means, x @ slopes, atol=5e-3)
    assert sd == pytest.approx(np.exp(log_sd), abs=5e-3)


def test_what_is_known_of_people_as_columns():
    age = np.array([20.0, 30.0, 40.0, 50.0])
    found = background({"age": age, "same": np.ones(4), "group": ["b", "a", "c", "a"]}, 4)
    expected = [np.ones(4), (age - 35) / age.std(), np.zeros(4), [1, 0, 0, 0], [0, 0, 1, 0]]
    np.testing.assert_allclose(found.T, expected)


@pytest.mark.parametrize("name", ["normal", "gumbel_r"])
def test_quantiles_between_nodes(name):
    """Cells of cubics through the logarithms of a density at even steps; the second node is at `first`."""
    law = {"normal": stats.norm(0.7, 1.9), "gumbel_r": stats.gumbel_r(1.0, 2.0)}[name]
    at = np.arange(-14, 31)
    log = law.logpdf(at)
    chance = np.array([[1e-4, 0.01, 0.3, 0.5, 0.8, 0.999]])
    found = quantiles((log - log.max())[None], chance, first=-13)
    np.testing.assert_allclose(law.cdf(found), chance, atol=4e-3)
    np.testing.assert_allclose(found[0, 1:-1], law.ppf(chance[0, 1:-1]), atol=0.03)


def test_a_fixed_point_of_em_is_found_and_its_spread_has_an_end():
    target = np.array([0.8, -1.0])
    found = settle(lambda x: target + np.array([[0.6, 0.1], [0.0, 0.7]]) @ (x - target), np.array([0.0, 0.0]))
    np.testing.assert_allclose(found, target, atol=1e-4)
    assert settle(lambda x: None, np.array([0.3, 0.1])).tolist() == [0.3, 0.1]
    narrow = settle(lambda x: x - np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    again = settle(lambda x: np.array([0.0, -50.0]), np.array([0.0, 0.0]))
    assert narrow[1] == again[1] > -20


def test_posterior_moments_are_integrals(data):
    responses, thresholds, _ = data
    found = abilities(responses, thresholds, "eap", prior_mean=0.4, prior_sd=1.3)
    posterior = likelihoods(responses, thresholds) * stats.norm.pdf(NODES, 0.4, 1.3)
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean = posterior @ NODES
    np.testing.assert_allclose(found.ability, mean, atol=1e-4)
    np.testing.assert_allclose(found.se, np.sqrt(posterior @ NODES**2 - mean**2), atol=1e-4)


def test_the_mean_location_of_the_items_met(data):
    responses, thresholds, _ = data
    layout = responses.thresholds
    unknown = thresholds.copy()
    unknown[layout.item == 2] = np.nan
    location = np.array([unknown[layout.item == item].mean() for item in range(6)])
    expected = []
    for row in responses.to_dense():
        own = location[~np.isnan(row) & ~np.isnan(location)]
        expected.append(own.mean() if len(own) else np.nan)
    np.testing.assert_allclose(items_met(responses, unknown), expected)


def test_right_and_wrong_answers_have_the_population_of_categories():
    rng = np.random.default_rng(8)
    beta = np.linspace(-1, 1, 7)
    table = drawn(rng, rng.normal(0.3, 1.2, (80, 1)) - beta)
    one, other = (population(Responses.from_wide(table, ordered=how), beta, None, None) for how in (False, True))
    assert one == pytest.approx(other, abs=1e-6)
