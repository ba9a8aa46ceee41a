"""Marginal likelihood: kernels against loops over people and nodes, then what the estimator promises."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize

from dense import AWKWARD
from spectral_irt import ConditionalPartialCredit, SpectralRasch, SpectralRatingScale, simulate
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError, DisconnectedDesignError, OptionError
from spectral_irt.estimators import marginal_fit
from spectral_irt.estimators.marginal import MarginalPartialCredit, MarginalRasch, MarginalRatingScale
from spectral_irt.estimators.marginal_fit import information, marginal_difficulty
from spectral_irt.estimators.population import (
    Members,
    chances_of_passing,
    distribution,
    expected_counts,
    normal_population,
)
from spectral_irt.simulate import rasch

BETA = np.array([-0.7, 0.2, 0.9, -0.4, 0.1, 0.3, -0.4])


def loops(X, beta, population):
    """Expected answers at nodes, people at nodes, log-likelihood: by definition."""
    m, k = len(beta), len(population.nodes)
    counts, persons, loglik = np.zeros((m, k)), np.zeros(k), 0.0
    for row in X:
        joint = np.exp(population.log_weights)
        for node in range(k):
            for i in range(m):
                if not np.isnan(row[i]):
                    p = 1 / (1 + np.exp(beta[i] - population.nodes[node]))
                    joint[node] *= p if row[i] == 1 else 1 - p
        post = joint / joint.sum()
        if np.isnan(row).all():
            continue
        loglik += np.log(joint.sum())
        persons += post
        for i in range(m):
            if not np.isnan(row[i]):
                counts[i] += post
    return counts, persons, loglik


def test_expected_counts_equal_loops():
    population = normal_population(1.3, 15, mu=0.2)
    answers = Responses.from_wide(AWKWARD)
    counts, persons, loglik = expected_counts(answers.blocks[0], None, BETA, population, answers.thresholds)
    by_loops = loops(AWKWARD, BETA, population)
    np.testing.assert_allclose(counts, by_loops[0], atol=1e-12)
    np.testing.assert_allclose(persons, by_loops[1], atol=1e-12)
    assert float(loglik) == pytest.approx(by_loops[2], abs=1e-11)


@pytest.mark.parametrize(("order", "rel"), [(3, 2e-3), (8, 1e-5)])
def test_information_equals_second_differences(order, rel):
    """Louis' formula at the maximum against differences of the gradient; more polynomials, more digits."""
    data = rasch(200, 6, design="sampled", p=0.8, seed=3).responses
    block, layout = data.blocks[0], data.thresholds
    fit = marginal_difficulty([Members(data)], start=np.zeros(6), tol=1e-9)
    (population,) = fit.populations
    nodes = len(population.nodes)

    def gradient(x):
        population = normal_population(np.exp(x[-1]), nodes, mu=x[-2])
        counts, persons, _ = expected_counts(block, None, x[:-2], population, layout)
        p = 1 / (1 + np.exp(x[:-2, None] - population.nodes))
        z = (population.nodes - x[-2]) / np.exp(x[-1])
        of_population = [persons @ z / np.exp(x[-1]), persons @ (z**2 - 1)]
        return np.concatenate([(counts * p).sum(axis=1) - data.item_scores, of_population])

    x = np.concatenate([fit.difficulty, [population.mean, np.log(population.sd)]])
    h = 1e-4
    hessian = np.array([(gradient(x - h * e) - gradient(x + h * e)) / (2 * h) for e in np.eye(8)])
    items, cross, own = information(block, None, fit.difficulty, population, order, True, layout)
    found = np.block([[items, cross], [cross.T, own]])
    np.testing.assert_allclose(found, hessian, atol=rel * np.abs(hessian).max())
    diagonal = information(block, None, fit.difficulty, population, order, False, layout)[0]
    np.testing.assert_allclose(diagonal, np.diag(items), rtol=1e-12)


def test_slices_of_people_add_up(monkeypatch):
    data = rasch(300, 7, design="sampled", p=0.7, seed=5)
    population, beta = normal_population(1.0, 21), data.difficulty
    block, layout = data.responses.blocks[0], data.responses.thresholds

    def sums():
        counts = expected_counts(block, None, beta, population, layout)
        return counts, information(block, None, beta, population, 2, True, layout)

    whole = sums()
    monkeypatch.setattr("spectral_irt.estimators.population.CELLS", 21 * 40)
    parts = sums()
    for a, b in zip(whole, parts, strict=True):
        for one, many in zip(a, b, strict=True):
            np.testing.assert_allclose(one, many, rtol=1e-11, atol=1e-12)


def test_nodes_are_a_normal_distribution():
    population = normal_population(1.7, 41, mu=0.3)
    assert np.exp(population.log_weights).sum() == pytest.approx(1)
    assert population.mean == pytest.approx(0.3)
    assert population.sd == pytest.approx(1.7, rel=1e-6)
    three = distribution(np.array([-1.0, 0.0, 3.0]), np.log([0.25, 0.5, 0.25]))
    assert (three.mean, three.sd) == pytest.approx((0.5, 1.5))


@pytest.mark.parametrize(("people", "items", "categories"), [(150, 600, 2), (100, 120, 5)])
def test_the_likelihood_of_long_records_is_that_of_a_fine_grid(people, items, categories):
    """Posteriors a tenth of a logit wide: for five categories 61 nodes over 6 standard deviations were 2 off."""
    data = simulate.partial_credit(people, items, categories=categories, ability_sd=2.0, seed=2).responses
    fit, x = MarginalPartialCredit().fit(data), data.to_dense().astype(int)
    up_to = data.thresholds.cumulated(fit.thresholds_)
    z = np.linspace(-7, 7, 2001)
    theta, log = fit.mu_ + fit.sigma_ * z, -(z**2) / 2 - np.logaddexp.reduce(-(z**2) / 2)
    log = log - sum(np.logaddexp.reduce(np.outer(theta, range(categories)) - row, axis=1) for row in up_to)
    log = np.logaddexp.reduce(log + np.outer(x.sum(axis=1), theta), axis=1)
    assert fit.loglik_ == pytest.approx(log.sum() - up_to[range(items), x].sum(), abs=1e-3)


def test_memory_goes_with_the_answers_and_not_with_people_times_thresholds(monkeypatch):
    monkeypatch.setattr("spectral_irt.estimators.population.CELLS", 41 * 500)
    data = simulate.partial_credit(6000, 300, categories=4, design="sampled", p=0.02, seed=1).responses
    layout, population = data.thresholds, normal_population(1.0, 41)
    tracemalloc.start()
    information(data.blocks[0], None, np.zeros(900), population, 3, False, layout)  # and counts, as the E step has them
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 6000 * 900 * 8 / 2


def test_wide_abilities_are_found():
    """The trap: ability sd is 2. Estimated, all is well; fixed at 1, differences come out too small."""
    data = rasch(2000, 20, ability_sd=2.0, ability_mean=0.5, seed=11)
    fit = MarginalRasch().fit(data.responses)
    assert abs(fit.sigma_ - 2) < 4 * fit.sigma_se_
    assert fit.mu_ == pytest.approx(0.5, abs=0.2)
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert np.abs(z).max() < 4.5  # 20 items: P(beyond) about 1e-4
    assert 0.3 < np.mean(z**2) < 2.0  # chi square with 19 degrees of freedom over 20
    fixed = MarginalRasch(sigma=1.0).fit(data.responses)
    slope = fixed.difficulty_ @ fit.difficulty_ / (fit.difficulty_ @ fit.difficulty_)
    assert 0.7 < slope < 0.95
    assert fixed.sigma_ == 1.0
    assert fixed.loglik_ < fit.loglik_
    assert np.isnan(fixed.sigma_se_)


def test_information_criteria_count_parameters():
    data = rasch(300, 8, seed=1)
    fit = MarginalRasch().fit(data.responses)
    assert fit.n_parameters_ == 8 - 1 + 2
    assert fit.aic_ == pytest.approx(2 * 9 - 2 * fit.loglik_)
    assert fit.bic_ == pytest.approx(9 * np.log(300) - 2 * fit.loglik_)
    assert MarginalRasch(sigma=1.0).fit(data.responses).n_parameters_ == 8


def test_groups_without_common_users_are_tied_by_the_population_and_that_is_said():
    a, b = rasch(300, 5, seed=1).responses.to_dense(), rasch(300, 5, seed=2).responses.to_dense()
    table = np.full((600, 10), np.nan)
    table[:300, :5], table[300:, 5:] = a, b
    fit = MarginalRasch().fit(table)
    assert np.isfinite(fit.difficulty_).all()
    assert "disconnected" in [f.code for f in fit.findings_]


def test_no_spread_of_ability_is_reported():
    table = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)  # everybody has one right: less spread than chance
    fit = MarginalRasch().fit(table)
    assert "no_ability_spread" in [f.code for f in fit.findings_]
    np.testing.assert_allclose(fit.difficulty_, 0, atol=1e-6)


def test_what_is_refused():
    with pytest.raises(OptionError, match="sigma"):
        MarginalRasch(sigma=-1.0).fit(AWKWARD)
    for groups, message in ((["a"], "1 labels"), (range(101), "groups")):
        with pytest.raises(OptionError, match=message):
            MarginalRasch().fit(simulate.rasch(101, 5, seed=1).responses, groups=groups)
    with pytest.raises(DesignError, match="fewer than two items"):
        MarginalRasch().fit([[1, 0, 1], [1, 0, 0]])


def said(fit):
    (found,) = [one for one in fit.calibration_.findings if one.code == "adaptive_design"]
    return found.sentence


def two_groups(n, seed):
    rng = np.random.default_rng(seed)
    return rng.choice([-1.2, 1.2], n) + 0.5 * rng.normal(size=n)


def test_the_search_for_a_density_with_an_edge_ends_at_a_maximum(monkeypatch):
    """Of degree 6, by more than one above degree 4 in log-likelihood (the top is flat: 1.34 on one processor, 1.44 on
    another): polynomials that are huge beyond the edge stop it at once, at a gradient of 0.3 standard errors."""
    ends = {}
    search = marginal_fit._polynomial_weights

    def watched(people, beta, start, degree, design, max_iter):
        fit = search(people, beta, start, degree, design, max_iter)
        ends[degree] = fit
        return fit

    monkeypatch.setattr(marginal_fit, "_polynomial_weights", watched)
    ability = np.random.default_rng([1, 1]).exponential(size=600) - 1
    data = simulate.rasch(600, 16, seed=1, ability=ability, design="adaptive", length=8)
    SpectralRasch().fit(data.responses, design="adaptive")
    assert [*ends] == [4, 6]
    assert max(fit.residual for fit in ends.values()) <= marginal_fit.FREE_STEP
    assert 1.0 < ends[6].loglik - ends[4].loglik < 2.0


@pytest.mark.slow
def test_two_groups_in_a_two_stage_test():
    data = simulate.rasch(1500, 40, design="two-stage", routing=10, ability=two_groups(1500, 1), seed=31)
    normal = MarginalRasch().fit(data.responses)
    fit = SpectralRasch().fit(data.responses, design="adaptive")  # the same as MarginalRasch().fit(...)
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert np.mean(z**2) < 1.7  # 39 degrees of freedom: beyond 1.7 in one of 1,000
    assert np.mean(((normal.difficulty_ - data.difficulty) / normal.se_) ** 2) > 3
    assert "free shape (AIC" in said(fit)
    assert "takes the population as normal and" not in said(fit)


def test_normal_abilities_stay_normal_and_it_is_said():
    data = simulate.rasch(600, 30, design="two-stage", routing=10, seed=32).responses
    fit, normal = MarginalRasch().fit(data, design="adaptive"), MarginalRasch().fit(data)
    assert "takes the population as normal (a distribution of free shape fits no better" in said(fit)
    np.testing.assert_allclose(fit.difficulty_, normal.difficulty_, atol=1e-10)
    grouped = MarginalRasch().fit(data, groups=np.arange(600) % 2, design="adaptive")
    assert "takes the population of each group as normal" in said(grouped)


@pytest.mark.slow
def test_skewed_abilities_of_ordered_answers():
    ability = np.random.default_rng(3).exponential(size=1500) - 1
    data = simulate.partial_credit(1500, 40, categories=3, design="adaptive", length=10, ability=ability, seed=33)
    fit = MarginalPartialCredit().fit(data.responses, design="adaptive")
    assert "free shape (AIC" in said(fit)
    ok = np.isfinite(fit.threshold_se_)
    error = fit.thresholds_ - data.thresholds
    z = (error - error[ok].mean())[ok] / fit.threshold_se_[ok]
    assert np.mean(np.abs(z) < 1.96) > 0.90


def test_errors_of_thresholds_are_those_of_conditional_likelihood_or_less():
    """Few people and many thresholds: products of gradients are singular there, and gave errors of millions."""
    data = simulate.partial_credit(60, 20, categories=4, seed=35).responses
    ours, theirs = MarginalPartialCredit().fit(data), ConditionalPartialCredit().fit(data)
    ratio = ours.threshold_se_ / theirs.threshold_se_
    assert 0.8 < np.nanmin(ratio) <= np.nanmedian(ratio) <= np.nanmax(ratio) < 1.2


def test_information_of_a_free_shape_equals_second_differences():
    """Thresholds and a population of free shape, against differences of the gradient, and that of the likelihood."""
    data = simulate.partial_credit(150, 4, categories=[2, 3, 4, 3], design="sampled", p=0.7, seed=3).responses
    layout = data.thresholds
    size, nodes = layout.n_entries, np.linspace(-7, 7, 61)
    passed = layout.at_or_above(data.entries.item_scores.astype(float))
    basis = np.stack([nodes, nodes**2, nodes**3 / 10, nodes**4 / 50], axis=1)

    def at(x):
        return distribution(nodes, basis @ x[size:] - nodes**2 / 2, basis)

    def gradient(x):
        population = at(x)
        counts, persons, loglik = Members(data).sum(expected_counts, x[:size], population, layout)
        of_beta = (counts[layout.item] * chances_of_passing(x[:size], nodes, layout)).sum(axis=1) - passed
        return np.append(of_beta, basis.T @ (persons - persons.sum() * np.exp(population.log_weights))), float(loglik)

    x = np.append(0.5 * np.random.default_rng(1).normal(size=size), [0.1, -0.1, 0.05, -0.1])
    h, e = 1e-4, 1e-4 * np.eye(size + 4)
    slow = np.array([(gradient(x + one)[1] - gradient(x - one)[1]) / (2 * h) for one in e])
    np.testing.assert_allclose(gradient(x)[0], slow, atol=1e-5)
    hessian = np.array([(gradient(x - one)[0] - gradient(x + one)[0]) / (2 * h) for one in e])
    items, cross, own = Members(data).sum(information, x[:size], at(x), 8, True, layout)
    found = np.block([[items, cross], [cross.T, own]])
    np.testing.assert_allclose(found, hessian, atol=1e-5 * np.abs(hessian).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "design", "weights", "groups"])
def test_rating_scale_is_the_partial_credit_model_with_a_design(name):
    """The offsets are common to all items, and the likelihood is at most that of free thresholds."""
    data = simulate.rating_scale(400, 6, categories=4, seed=5)
    rng = np.random.default_rng(1)
    options = {"design": "adaptive", "weights": rng.uniform(0.5, 2, 400), "groups": np.arange(400) % 2}
    how = {name: options[name]} if name else {}
    fit, free = MarginalRatingScale().fit(data.responses, **how), MarginalPartialCredit().fit(data.responses, **how)
    assert free.loglik_ - 30 < fit.loglik_ < free.loglik_
    assert fit.n_parameters_ == free.n_parameters_ - 10  # 18 thresholds, or 6 locations and 2 offsets
    assert np.all(fit.se_ < 1.2 * free.se_)
    away = fit.thresholds_.reshape(6, 3) - fit.difficulty_[:, None]
    np.testing.assert_allclose(away, np.tile(fit.offsets_["offset"], (6, 1)), atol=1e-9)
    assert np.abs((fit.thresholds_ - data.thresholds) / fit.threshold_se_).max() < 4.5
    if "groups" not in how:
        spectral = SpectralRatingScale().fit(data.responses, **how)
        np.testing.assert_allclose(spectral.thresholds_, fit.thresholds_, atol=0.0 if "design" in how else 0.1)


@pytest.mark.slow
def test_rating_scale_of_two_categories_is_the_rasch_model():
    data = rasch(300, 8, seed=2).responses
    for how in ({}, {"design": "adaptive"}, {"weights": np.random.default_rng(1).uniform(0.5, 2, 300)}):
        ours, theirs = MarginalRatingScale().fit(data, **how), MarginalRasch().fit(data, **how)
        # The search for a free shape ends at a gradient of 0.01 standard errors, here of 0.13 logits.
        tolerance = 1e-4 if "design" in how else 1e-6
        np.testing.assert_allclose(ours.difficulty_, theirs.difficulty_, atol=tolerance)
        np.testing.assert_allclose(ours.se_, theirs.se_, rtol=10 * tolerance)


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
    np.testing.assert_allclose(np.sqrt(np.diag(one.covariance())), one.se_, rtol=1e-10)
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


def test_groups_that_share_no_item_are_refused():
    X, grade, _ = vertical(60)
    X[:, 6:10] = np.nan
    X[grade == "fourth", 6:8] = 1
    X[0, 8:10] = 0
    with pytest.raises(DisconnectedDesignError, match="no item in common"):
        MarginalRasch().fit(X, groups=grade)


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


def test_a_spread_without_a_finite_estimate_is_named_and_no_other():
    """Nearly everybody has all answers right or all wrong, or the persons are ordinary ones."""
    extreme = np.repeat([[0.0] * 4, [1.0] * 4], 200, axis=0)
    extreme[0, 0] = extreme[1, 1] = extreme[2, 2] = extreme[3, 3] = 1.0
    ordinary = simulate.rasch(300, 6, seed=2).responses
    names = [[f.code for f in MarginalRasch().fit(x).calibration_.findings] for x in (extreme, ordinary)]
    assert "unbounded_ability_spread" in names[0]
    assert "unbounded_ability_spread" not in names[1]
