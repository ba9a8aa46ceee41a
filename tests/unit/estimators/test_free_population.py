"""Populations of free shape: adaptive designs must not depend on abilities being normal, for both kinds of answers."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import ConditionalPartialCredit, MarginalPartialCredit, MarginalRasch, SpectralRasch, simulate
from spectral_irt.estimators.marginal_information import information
from spectral_irt.estimators.population import Members, Population, normalized, passing

CODE = "adaptive_design"


def said(fit):
    (found,) = [one for one in fit.calibration_.findings if one.code == CODE]
    return found.sentence


def two_groups(n, seed):
    rng = np.random.default_rng(seed)
    return rng.choice([-1.2, 1.2], n) + 0.5 * rng.normal(size=n)


def test_two_groups_in_a_two_stage_test():
    data = simulate.rasch(1500, 40, design="two-stage", routing=10, ability=two_groups(1500, 1), seed=31)
    normal = MarginalRasch(prior="normal").fit(data.responses, design="adaptive")
    fit = SpectralRasch().fit(data.responses, design="adaptive")  # the same as MarginalRasch().fit(...)
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    assert np.mean(z**2) < 1.7  # 39 degrees of freedom: beyond 1.7 in one of 1,000
    assert np.mean(((normal.difficulty_ - data.difficulty) / normal.se_) ** 2) > 3
    assert "free shape (AIC" in said(fit)
    assert "takes abilities as normal and" not in said(fit)


def test_normal_abilities_stay_normal_and_it_is_said():
    data = simulate.rasch(600, 30, design="two-stage", routing=10, seed=32).responses
    fit, normal = MarginalRasch().fit(data, design="adaptive"), MarginalRasch(prior="normal").fit(data)
    assert "takes abilities as normal (a distribution of free shape fits no better" in said(fit)
    np.testing.assert_allclose(fit.difficulty_, normal.difficulty_, atol=1e-10)
    np.testing.assert_allclose(MarginalRasch().fit(data).difficulty_, normal.difficulty_, atol=1e-10)
    grouped = MarginalRasch().fit(data, groups=np.arange(600) % 2, design="adaptive")
    assert "takes abilities as normal in each group" in said(grouped)


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


def test_both_kinds_of_answers_have_one_likelihood():
    """Louis' information for ordered answers: on right and wrong ones the numbers of `MarginalRasch`."""
    data = simulate.rasch(500, 12, design="two-stage", routing=4, ability=two_groups(500, 4), seed=34).responses
    group, weight = np.arange(500) % 2, np.random.default_rng(1).uniform(0.5, 2, 500)
    close = 1e-9
    for how in ({}, {"design": "adaptive"}, {"groups": group}, {"weights": weight}):
        ours, theirs = MarginalPartialCredit().fit(data, **how), MarginalRasch().fit(data, **how)
        for name, column in theirs.population_.items():
            np.testing.assert_array_equal(ours.population_[name], column)
        np.testing.assert_array_equal(ours.ability_, theirs.ability_)
        np.testing.assert_allclose(ours.difficulty_, theirs.difficulty_, atol=close)
        np.testing.assert_allclose(ours.se_, theirs.se_, rtol=10 * close)
        assert ours.loglik_ == pytest.approx(theirs.loglik_, abs=close)


def test_errors_of_thresholds_are_those_of_conditional_likelihood_or_less():
    """Few people and many thresholds: products of gradients are singular there, and gave errors of millions."""
    data = simulate.partial_credit(60, 20, categories=4, seed=35).responses
    ours, theirs = MarginalPartialCredit().fit(data), ConditionalPartialCredit().fit(data)
    ratio = ours.threshold_se_ / theirs.threshold_se_
    assert 0.8 < np.nanmin(ratio) <= np.nanmedian(ratio) <= np.nanmax(ratio) < 1.2


def test_information_equals_second_differences():
    """Thresholds and a population of free shape, against differences of the gradient, and that of the likelihood."""
    data = simulate.partial_credit(150, 4, categories=[2, 3, 4, 3], design="sampled", p=0.7, seed=3).responses
    layout = data.thresholds
    size, nodes = layout.n_entries, np.linspace(-7, 7, 61)
    basis = np.stack([nodes, nodes**2, nodes**3 / 10, nodes**4 / 50], axis=1)

    def at(x):
        return Population(nodes, normalized(-(nodes**2) / 2 + basis @ x[size:]), basis)

    def gradient(x):
        population = at(x)
        counts, persons, loglik = Members(data).counts(x[:size], population)
        of_beta = (counts[layout.item] * passing(x[:size], population, layout)).sum(axis=1) - Members(data).passed()
        return np.append(of_beta, basis.T @ (persons - persons.sum() * np.exp(population.log_weights))), float(loglik)

    x = np.append(0.5 * np.random.default_rng(1).normal(size=size), [0.1, -0.1, 0.05, -0.1])
    h, e = 1e-4, 1e-4 * np.eye(size + 4)
    slow = np.array([(gradient(x + one)[1] - gradient(x - one)[1]) / (2 * h) for one in e])
    np.testing.assert_allclose(gradient(x)[0], slow, atol=1e-5)
    hessian = np.array([(gradient(x - one)[0] - gradient(x + one)[0]) / (2 * h) for one in e])
    items, cross, own = Members(data).sum(information, x[:size], at(x), 8, True, layout)
    found = np.block([[items, cross], [cross.T, own]])
    np.testing.assert_allclose(found, hessian, atol=1e-5 * np.abs(hessian).max())
