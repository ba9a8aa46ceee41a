"""The steps of marginal likelihood: each against its equation, by plain loops and differences."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from spectral_irt import simulate
from spectral_irt.data.block import Thresholds
from spectral_irt.estimators.marginal_fit import (
    _item_step,
    _polynomial_weights,
    _polynomials,
    given_ability,
    marginal_difficulty,
)
from spectral_irt.estimators.population import (
    Members,
    chances_of_passing,
    enough_nodes,
    expected_counts,
    normal_population,
)

LAYOUTS = {"right or wrong": [1, 1, 1, 1], "categories": [2, 1, 3, 2]}


def counts_at_nodes(layout, nodes):
    return np.random.default_rng(1).uniform(1, 9, (layout.n_items, len(nodes)))


def category_chances(beta, theta):
    weight = np.exp([k * theta - beta[:k].sum() for k in range(len(beta) + 1)])
    return weight / weight.sum()


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_information_were_abilities_seen(name):
    """Of each item, the covariance of what is passed, added up over the nodes."""
    layout = Thresholds(np.array(LAYOUTS[name]))
    beta, nodes = np.linspace(-1, 1, layout.n_entries), np.linspace(-2, 2, 5)
    counts = counts_at_nodes(layout, nodes)
    found = given_ability(counts, chances_of_passing(beta, nodes, layout), layout)
    for item, most in enumerate(layout.max_score):
        total = np.zeros((most, most))
        for n, theta in zip(counts[item], nodes, strict=True):
            p = category_chances(beta[layout.item == item], theta)
            passed = np.arange(most + 1)[:, None] > np.arange(most)
            mean = p @ passed
            total += n * ((passed.T * p) @ passed - np.outer(mean, mean))
        np.testing.assert_allclose(found[item, :most, :most], total)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("designed", [False, True])
def test_the_m_step_solves_its_equations(name, designed):
    """sum over nodes of counts times P(X >= k) is how many passed; with a design, of its columns."""
    layout = Thresholds(np.array(LAYOUTS[name]))
    nodes = np.linspace(-2, 2, 7)
    counts = counts_at_nodes(layout, nodes)
    wanted = np.linspace(-1.2, 0.8, layout.n_entries)
    design = None
    if designed:  # two items have a difficulty in common
        columns = sparse.csr_array(np.eye(layout.n_items)[:, [0, 1, 2]] + np.eye(layout.n_items)[:, [3, 1, 2]])
        columns.data[:] = 1.0
        design = sparse.csr_array(columns[layout.item])
        wanted = design @ np.array([-0.5, 0.3, 0.9])
    passed = (counts[layout.item] * chances_of_passing(wanted, nodes, layout)).sum(axis=1)
    found = _item_step(np.zeros(layout.n_entries), counts, passed, nodes, layout, design)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_polynomials_are_orthonormal_under_each_posterior():
    rng = np.random.default_rng(2)
    post = rng.uniform(0.1, 1, (3, 9))
    post /= post.sum(axis=1, keepdims=True)
    nodes = np.linspace(-2, 2, 9)
    basis = [np.ones_like(post), *(one / post for one in _polynomials(post, nodes, 4))]
    for row in range(3):
        gram = [[np.sum(post[row] * a[row] * b[row]) for a in basis] for b in basis]
        np.testing.assert_allclose(gram, np.eye(5), atol=1e-9)
    for degree, one in enumerate(basis):
        rest = one[0] - np.polynomial.Polynomial.fit(nodes, one[0], degree)(nodes)
        assert np.abs(rest).max() < 1e-9


@pytest.mark.parametrize("categories", [2, 3])
def test_a_free_shape_is_the_best_polynomial(categories):
    """No other thresholds and no other polynomial of the same degree have a higher likelihood."""
    rng = np.random.default_rng(3)
    ability = np.where(rng.random(300) < 0.3, 1.8, -0.8) + 0.3 * rng.normal(size=300)
    thresholds = list(np.linspace(-1, 1, 4)[:, None] + np.linspace(0, 0.8, categories - 1))
    responses = simulate.partial_credit(300, thresholds=thresholds, ability=ability, seed=2).responses
    layout, degree = responses.thresholds, 4
    people = Members(responses, None)
    start = normal_population(1.2, 31)
    fit = _polynomial_weights(people, np.concatenate(thresholds), start, degree, None, 500)
    (shape,) = fit.populations
    assert layout.mean_weights() @ fit.difficulty == pytest.approx(0, abs=1e-9)
    shift = start.nodes[0] - shape.nodes[0]
    np.testing.assert_allclose(shape.nodes + shift, start.nodes, atol=1e-12)
    # The logarithm of the density is the normal one and a polynomial of this degree.
    inside = start.log_weights > -60
    bent = shape.log_weights[inside] - start.log_weights[inside]
    rest = bent - np.polynomial.Polynomial.fit(start.nodes[inside], bent, degree)(start.nodes[inside])
    assert np.abs(rest).max() < 1e-6

    def loglik(x):
        log = start.log_weights + np.vander(start.nodes / 2, degree + 1)[:, :-1] @ x[layout.n_entries :]
        log -= np.log(np.sum(np.exp(log - log.max()))) + log.max()
        there = SimpleNamespace(nodes=start.nodes, log_weights=log)
        return -float(people.sum(expected_counts, x[: layout.n_entries], there, layout)[2])

    coefficients = np.polynomial.Polynomial.fit(start.nodes[inside] / 2, bent, degree).convert().coef[:0:-1]
    begin = np.concatenate([fit.difficulty + shift, coefficients])
    assert loglik(begin) == pytest.approx(-fit.loglik, abs=1e-4)
    best = minimize(loglik, begin, method="BFGS", options={"gtol": 0.5})
    assert best.fun > -fit.loglik - 2e-3


def test_nodes_that_resolve_the_narrowest_posterior():
    """Steps of 1.25 standard deviations of a person with n answers, 1 / sqrt(1 / sigma^2 + n / 4), over 12 sigma."""
    for sigma, longest in ((1.0, 400), (2.0, 150), (0.5, 2000)):
        narrowest = (sigma**-2 + longest / 4) ** -0.5
        n = enough_nodes(sigma, longest)
        assert n % 2 == 1
        assert 12 * sigma / (n - 1) <= 1.25 * narrowest
        assert 12 * sigma / (n - 3) > 1.25 * narrowest
    assert enough_nodes(1.0, 10) == 41
    assert enough_nodes(5.0, 10**6) == 401


@pytest.mark.parametrize("n_groups", [1, 2])
def test_the_marginal_maximum_of_groups_is_that_of_brute_force(n_groups):
    data = simulate.rasch(240, 4, seed=5)
    group = np.arange(240) % n_groups
    parts = [Members(data.responses.take_persons(group == g), None) for g in range(n_groups)]
    fit = marginal_difficulty(parts, start=np.zeros(4))
    layout = data.responses.thresholds

    def loglik(x):
        total = 0.0
        for g, part in enumerate(parts):
            mean, sd = x[4 + 2 * g], np.exp(x[5 + 2 * g])
            total += float(part.sum(expected_counts, x[:4] - x[:4].mean(), normal_population(sd, 61, mean), layout)[2])
        return -total

    best = minimize(loglik, np.zeros(4 + 2 * n_groups), method="BFGS", options={"gtol": 1e-3})
    assert fit.loglik == pytest.approx(-best.fun, abs=1e-3)
    np.testing.assert_allclose(fit.difficulty, best.x[:4] - best.x[:4].mean(), atol=1e-3)
    for g, population in enumerate(fit.populations):
        assert population.mean == pytest.approx(best.x[4 + 2 * g], abs=1e-3)
        assert population.sd == pytest.approx(np.exp(best.x[5 + 2 * g]), abs=2e-3)
