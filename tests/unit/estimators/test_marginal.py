"""Marginal likelihood: kernels against loops over people and nodes, then what the estimator promises."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from dense import AWKWARD
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.marginal import MarginalRasch, marginal_difficulty
from spectral_irt.estimators.marginal_information import information
from spectral_irt.estimators.population import (
    Members,
    Population,
    abilities,
    enough_nodes,
    expected_counts,
    normal_population,
)
from spectral_irt.simulate import rasch

pytestmark = pytest.mark.slow  # many short ones: seconds together

BETA = np.array([-0.7, 0.2, 0.9, -0.4, 0.1, 0.3, -0.4])


def loops(X, beta, population):
    """Expected answers at nodes, people at nodes, log-likelihood, posterior: by definition."""
    m, k = len(beta), len(population.nodes)
    counts, persons, loglik, posteriors = np.zeros((m, k)), np.zeros(k), 0.0, []
    for row in X:
        joint = np.exp(population.log_weights)
        for node in range(k):
            for i in range(m):
                if not np.isnan(row[i]):
                    p = 1 / (1 + np.exp(beta[i] - population.nodes[node]))
                    joint[node] *= p if row[i] == 1 else 1 - p
        post = joint / joint.sum()
        posteriors.append(post)
        if np.isnan(row).all():
            continue
        loglik += np.log(joint.sum())
        persons += post
        for i in range(m):
            if not np.isnan(row[i]):
                counts[i] += post
    return counts, persons, loglik, np.array(posteriors)


def test_expected_counts_equal_loops():
    population = normal_population(1.3, 15, mu=0.2)
    answers = Responses.from_wide(AWKWARD)
    counts, persons, loglik = expected_counts(answers.blocks[0], None, BETA, population, answers.thresholds)
    by_loops = loops(AWKWARD, BETA, population)
    np.testing.assert_allclose(counts, by_loops[0], atol=1e-12)
    np.testing.assert_allclose(persons, by_loops[1], atol=1e-12)
    assert float(loglik) == pytest.approx(by_loops[2], abs=1e-11)


def test_abilities_equal_loops():
    population = normal_population(1.3, 15, mu=0.2)
    answers = Responses.from_wide(AWKWARD)
    mean, sd = abilities(answers.blocks[0], BETA, population, answers.thresholds)
    post = loops(AWKWARD, BETA, population)[3]
    np.testing.assert_allclose(mean, post @ population.nodes, atol=1e-12)
    np.testing.assert_allclose(sd, np.sqrt(post @ population.nodes**2 - mean**2), atol=1e-9)


@pytest.mark.parametrize(("order", "rel"), [(3, 2e-3), (8, 1e-5)])
def test_information_equals_second_differences(order, rel):
    """Louis' formula against differences of the gradient of the marginal likelihood; more polynomials, more digits."""
    data = rasch(200, 6, design="sampled", p=0.8, seed=3)
    block, layout = data.responses.blocks[0], data.responses.thresholds
    score = data.responses.item_scores
    mu, sigma, nodes = 0.3, 1.4, 81

    def gradient(x):
        population = normal_population(np.exp(x[-1]), nodes, mu=x[-2])
        counts, persons, _ = expected_counts(block, None, x[:-2], population, layout)
        p = 1 / (1 + np.exp(x[:-2, None] - population.nodes))
        z = (population.nodes - x[-2]) / np.exp(x[-1])
        return np.concatenate([(counts * p).sum(axis=1) - score, [persons @ z / np.exp(x[-1]), persons @ (z**2 - 1)]])

    x = np.concatenate([data.difficulty, [mu, np.log(sigma)]])
    h = 1e-4
    hessian = np.array([(gradient(x - h * e) - gradient(x + h * e)) / (2 * h) for e in np.eye(8)])
    population = normal_population(sigma, nodes, mu=mu)
    items, cross, own = information(block, None, data.difficulty, population, order, True, layout)
    found = np.block([[items, cross], [cross.T, own]])
    np.testing.assert_allclose(found, hessian, atol=rel * np.abs(hessian).max())
    diagonal = information(block, None, data.difficulty, population, order, False, layout)[0]
    np.testing.assert_allclose(diagonal, np.diag(items), rtol=1e-12)


def test_slices_of_people_add_up(monkeypatch):
    data = rasch(300, 7, design="sampled", p=0.7, seed=5)
    population, beta = normal_population(1.0, 21), data.difficulty
    block, layout = data.responses.blocks[0], data.responses.thresholds

    def sums():
        counts = expected_counts(block, None, beta, population, layout)
        return counts, information(block, None, beta, population, 2, True, layout)

    whole = sums()
    monkeypatch.setattr(import_module("spectral_irt.estimators.population"), "CELLS", 21 * 40)
    parts = sums()
    for a, b in zip(whole, parts, strict=True):
        for one, many in zip(a, b, strict=True):
            np.testing.assert_allclose(one, many, rtol=1e-11, atol=1e-12)


def test_nodes_are_a_normal_distribution():
    population = normal_population(1.7, 41, mu=0.3)
    assert np.exp(population.log_weights).sum() == pytest.approx(1)
    assert population.mean == pytest.approx(0.3)
    assert population.sd == pytest.approx(1.7, rel=1e-6)


def test_nodes_resolve_long_users():
    """600 answers a person, posteriors 0.08 wide: twice as many nodes as by default change nothing."""
    data = rasch(150, 600, seed=2)
    fit = MarginalRasch().fit(data.responses)
    finer = MarginalRasch(nodes=2 * len(fit.nodes_) + 1).fit(data.responses)
    assert len(fit.nodes_) == pytest.approx(enough_nodes(fit.sigma_, 600), rel=0.05)  # chosen a step before the end
    assert fit.loglik_ == pytest.approx(finer.loglik_, abs=1e-3)
    np.testing.assert_allclose(fit.difficulty_, finer.difficulty_, atol=1e-5)
    assert fit.sigma_ == pytest.approx(finer.sigma_, abs=1e-5)


def test_gradient_is_zero_at_the_estimate():
    data = rasch(400, 12, design="sampled", p=0.6, ability_sd=1.5, seed=8)
    fit = marginal_difficulty(data.responses, start=np.zeros(12), tol=1e-8)
    counts, persons, _ = Members(data.responses).counts(fit.difficulty, fit.population)
    p = 1 / (1 + np.exp(fit.difficulty[:, None] - fit.population.nodes))
    np.testing.assert_allclose((counts * p).sum(axis=1), data.responses.item_scores, atol=1e-4)
    share = persons / persons.sum()
    mean = share @ fit.population.nodes
    assert mean == pytest.approx(fit.population.mean, abs=1e-6)
    assert np.sqrt(share @ (fit.population.nodes - mean) ** 2) == pytest.approx(fit.population.sd, abs=1e-6)


def test_wide_abilities_are_found():
    """The trap: ability sd is 2. Estimated, all is well; fixed at 1, differences come out too small."""
    data = rasch(2000, 20, ability_sd=2.0, ability_mean=0.5, seed=11)
    fit = MarginalRasch().fit(data.responses)
    assert abs(fit.sigma_ - 2) < 4 * fit.sigma_se_
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert np.abs(z).max() < 4.5  # 20 items: P(beyond) about 1e-4
    assert 0.3 < np.mean(z**2) < 2.0  # chi square with 19 degrees of freedom over 20
    fixed = MarginalRasch(sigma=1.0).fit(data.responses)
    slope = fixed.difficulty_ @ fit.difficulty_ / (fit.difficulty_ @ fit.difficulty_)
    assert 0.7 < slope < 0.95
    assert fixed.sigma_ == 1.0
    assert fixed.loglik_ < fit.loglik_
    assert np.isnan(fixed.sigma_se_)


def test_difficulties_average_zero_and_mu_says_where_users_are():
    data = rasch(3000, 15, ability_mean=1.0, seed=4)
    fit = MarginalRasch().fit(data.responses)
    assert fit.difficulty_.mean() == pytest.approx(0, abs=1e-12)
    assert fit.mu_ == pytest.approx(1.0, abs=0.15)
    assert np.mean(fit.ability_) == pytest.approx(fit.mu_, abs=1e-4)
    assert np.corrcoef(fit.ability_, data.ability)[0, 1] > 0.8


def test_information_criteria_count_parameters():
    data = rasch(300, 8, seed=1)
    fit = MarginalRasch().fit(data.responses)
    assert fit.n_parameters_ == 8 - 1 + 2
    assert fit.aic_ == pytest.approx(2 * 9 - 2 * fit.loglik_)
    assert fit.bic_ == pytest.approx(9 * np.log(300) - 2 * fit.loglik_)
    assert MarginalRasch(sigma=1.0).fit(data.responses).n_parameters_ == 8


def test_free_distribution_fits_at_least_as_well_and_finds_two_groups():
    rng = np.random.default_rng(6)
    ability = np.where(rng.random(2000) < 0.5, -2.0, 2.0)
    data = rasch(2000, 25, ability=ability, seed=6)
    normal = MarginalRasch().fit(data.responses)
    free = MarginalRasch(prior="free").fit(data.responses)
    assert free.loglik_ > normal.loglik_ + 50
    assert free.weights_.sum() == pytest.approx(1)
    near = np.abs(np.abs(free.nodes_ - free.mu_) - 2) < 0.7
    assert free.weights_[near].sum() > 0.95
    z = (free.difficulty_ - data.difficulty) / free.se_
    assert 0.3 < np.mean(z**2) < 2.0


def test_extreme_and_unanswered_items_are_left_out_by_name():
    data = rasch(200, 5, seed=12).responses.to_dense()
    data = np.column_stack([data, np.ones(200), np.zeros(200), np.full(200, np.nan)])
    fit = MarginalRasch().fit(data)
    assert fit.status_.tolist() == ["ok"] * 5 + ["all right", "all wrong", "no responses"]
    assert np.isnan(fit.difficulty_[5:]).all()
    assert np.isfinite(fit.difficulty_[:5]).all()
    left = [f for f in fit.findings_ if f.code == "items_left_out"]
    assert left[0].items == (5, 6)
    without = MarginalRasch().fit(data[:, :5])
    np.testing.assert_allclose(fit.difficulty_[:5], without.difficulty_, atol=1e-9)


def test_groups_without_common_users_are_tied_by_the_population_and_that_is_said():
    a, b = rasch(300, 5, seed=1).responses.to_dense(), rasch(300, 5, seed=2).responses.to_dense()
    table = np.full((600, 10), np.nan)
    table[:300, :5], table[300:, 5:] = a, b
    fit = MarginalRasch().fit(table)
    assert np.isfinite(fit.difficulty_).all()
    assert "disconnected" in [f.code for f in fit.findings_]


def test_awkward_data():
    fit = MarginalRasch().fit(AWKWARD)
    assert np.isnan(fit.difficulty_[[4, 5, 6]]).all()
    assert np.isfinite(fit.difficulty_[:4]).all()
    assert np.isfinite(fit.ability_).all()


def test_no_spread_of_ability_is_reported():
    table = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)  # everybody has one right: less spread than chance
    fit = MarginalRasch().fit(table)
    assert "no_ability_spread" in [f.code for f in fit.findings_]
    np.testing.assert_allclose(fit.difficulty_, 0, atol=1e-6)


def test_many_items_take_their_own_information(monkeypatch):
    data = rasch(500, 40, seed=3).responses
    dense = MarginalRasch().fit(data)
    for module in ("marginal", "marginal_information"):
        monkeypatch.setattr(import_module(f"spectral_irt.estimators.{module}"), "DENSE_ITEMS", 10)
    quick = MarginalRasch().fit(data)
    np.testing.assert_allclose(quick.se_, dense.se_, rtol=0.1)
    assert "approximate_se" in [f.code for f in quick.findings_]


def test_too_few_passes_warn():
    with pytest.warns(UserWarning, match="stopped after"):
        fit = MarginalRasch(max_iter=2, nodes=41).fit(rasch(100, 6, seed=1).responses)
    assert "not_converged" in [f.code for f in fit.findings_]


@pytest.mark.parametrize(
    "options", [{"prior": "uniform"}, {"sigma": -1.0}, {"sigma": 1.0, "prior": "free"}, {"nodes": 1}]
)
def test_bad_options_are_refused(options):
    with pytest.raises(OptionError):
        MarginalRasch(**options).fit(AWKWARD)


def test_no_item_with_both_answers_is_refused():
    with pytest.raises(DesignError, match="fewer than two items"):
        MarginalRasch().fit([[1, 0, 1], [1, 0, 0]])


def test_population_moments():
    population = Population(np.array([-1.0, 0.0, 3.0]), np.log([0.25, 0.5, 0.25]))
    assert population.mean == pytest.approx(0.5)
    assert population.sd == pytest.approx(1.5)
