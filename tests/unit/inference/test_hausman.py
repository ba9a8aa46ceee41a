"""Conditional against marginal likelihood: the pieces by differences, the level and power by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import ConditionalRasch, MarginalRasch, Responses, SpectralRasch, simulate
from spectral_irt.errors import DesignError, for_shell
from spectral_irt.estimators.marginal_scores import marginal_scores
from spectral_irt.estimators.population import log_denominators, normal_population, posterior
from spectral_irt.inference.groups.hausman import (
    CODE,
    MOST_ITEMS,
    compare_likelihoods,
    forms_follow_ability,
    hausman,
    quick_hausman,
)


def test_marginal_scores_are_derivatives_of_each_persons_likelihood():
    data = simulate.rasch(30, 6, design="sampled", p=0.7, seed=2)
    block = data.responses.blocks[0]
    mu, sigma = 0.3, 1.2

    def loglik(x):
        population = normal_population(np.exp(x[-1]), 121, mu=x[-2])
        table = log_denominators(x[:-2], population)
        return posterior(block, 0, block.n_persons, x[:-2], population, table)[1]

    x, h = np.concatenate([data.difficulty, [mu, np.log(sigma)]]), 1e-5
    slopes = np.array([(loglik(x + h * e) - loglik(x - h * e)) / (2 * h) for e in np.eye(8)]).T
    of_answers, of_population = marginal_scores(block, data.difficulty, normal_population(sigma, 121, mu=mu))
    by_item = np.zeros((block.n_persons, 6))
    by_item[block.person_of_response(), block.items] = of_answers
    np.testing.assert_allclose(by_item, slopes[:, :6], atol=1e-8)
    np.testing.assert_allclose(of_population, slopes[:, 6:], atol=1e-6)  # nodes end at six standard deviations


def test_the_step_is_the_difference_of_the_two_estimates():
    """Two kinds of people, far apart: marginal likelihood errs, and the test says by how much without fitting CML."""
    rng = np.random.default_rng(1)
    ability = np.where(rng.random(3000) < 0.3, 2.5, -1.0) + 0.3 * rng.normal(size=3000)
    answers = simulate.rasch(3000, ability=ability, difficulty=np.linspace(-2, 2, 9), seed=4).responses
    test = hausman(SpectralRasch().fit(answers).calibration_, answers)
    apart = ConditionalRasch().fit(answers).difficulty_ - MarginalRasch().fit(answers).difficulty_
    assert test.size == pytest.approx(np.sqrt(np.mean(apart**2)), rel=0.1)
    assert test.p < 1e-6


def test_groups_explain_a_vertical_scale():
    rng = np.random.default_rng(3)
    beta = np.concatenate([rng.normal(-1, 0.6, 8), rng.normal(0, 0.6, 4), rng.normal(1, 0.6, 8)])
    grade = np.repeat([0, 1], 500)
    theta = np.where(grade == 0, -1.0, 1.0) + rng.normal(size=1000)
    X = (rng.random((1000, 20)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    X[grade == 0, 12:] = np.nan
    X[grade == 1, :8] = np.nan
    study = SpectralRasch().fit(X).analyse(X)
    alone, grouped = study.hausman(), study.hausman(grade)
    assert alone.p < 1e-6
    assert [finding.code for finding in alone.findings] == [CODE]
    assert "--population-by" in for_shell(alone.findings[0].remedy)
    assert "groups=" in alone.findings[0].remedy
    assert grouped.p > 0.01
    assert not grouped.findings


@pytest.mark.slow
def test_an_adaptive_test_is_told():
    answers = simulate.rasch(600, 60, design="adaptive", length=15, seed=5).responses
    study = SpectralRasch().fit(answers).analyse(answers)
    assert CODE in {finding.code for finding in study.findings()}
    assert study.record()["conditional_against_marginal"]["stretch"] > 1.2
    told = MarginalRasch().fit(answers, design="adaptive").analyse(answers)
    codes = {finding.code for finding in told.findings()}
    assert {"adaptive_design", "fit_left_out"} <= codes
    assert CODE not in codes
    assert told.record()["design"] == "adaptive"


@pytest.mark.slow
def test_of_very_much_a_sample_is_compared():
    answers = simulate.rasch(3000, MOST_ITEMS + 50, design="sampled", p=0.15, seed=6).responses
    test = compare_likelihoods(answers, np.zeros(answers.n_items))
    again = compare_likelihoods(answers, np.zeros(answers.n_items))
    assert test.n_items == MOST_ITEMS
    assert test.n_people < 2500
    assert test.p == again.p > 0.001


def test_too_little_to_tell():
    few = Responses.from_wide(simulate.rasch(30, 10, seed=1).responses.to_dense())
    with pytest.raises(DesignError, match="needs 50"):
        compare_likelihoods(few, np.zeros(10))
    assert quick_hausman(few, np.zeros(10)) is None


NULL = {
    "complete": {"n_persons": 500, "n_items": 20},
    "sampled": {"n_persons": 600, "n_items": 40, "design": "sampled", "p": 0.3},
    "booklets": {"n_persons": 600, "n_items": 40, "design": "booklets", "booklets": 5},
}


@pytest.mark.slow
def test_level():
    """150 data sets that hide nothing: 5% rejections have a standard error of 1.8%, and three of these are allowed."""
    p, found = [], 0
    for options in NULL.values():
        for seed in range(50):
            answers = simulate.rasch(**options, seed=seed).responses
            test = compare_likelihoods(answers, np.zeros(answers.n_items))
            p.append(test.p)
            found += len(test.findings)
    assert np.mean(np.array(p) < 0.05) < 0.104
    assert 0.35 < np.mean(np.array(p) < 0.5) < 0.65
    assert found <= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"n_persons": 1000, "n_items": 200, "design": "adaptive", "length": 20},
        {"n_persons": 1000, "n_items": 40, "design": "two-stage"},
        {"n_persons": 1000, "n_items": 30, "design": "stopping"},
    ],
    ids=lambda options: options["design"],
)
def test_designs_that_look_at_answers(options):
    """Intervals of marginal likelihood hold, and plain calibrations are told that something is wrong.

    Coverage over 8 replicates of 30 items or more: a standard error of 1.4% at most if errors were independent; four.
    """
    inside, plain, found = [], [], 0
    for seed in range(8):
        data = simulate.rasch(**options, seed=seed)
        fit = MarginalRasch(tol=1e-4).fit(data.responses, design="adaptive")
        error = fit.difficulty_ - data.difficulty
        known = np.isfinite(error)
        inside.append(np.mean(np.abs(error - error[known].mean())[known] < 1.96 * fit.se_[known]))
        study = SpectralRasch().fit(data.responses).analyse(data.responses)
        wrong = np.abs(study.calibration.difficulty - data.difficulty) / study.calibration.se
        plain.append(np.mean(wrong < 1.96))
        found += len(study.hausman().findings)
    assert 0.90 < np.mean(inside) < 0.99
    assert np.mean(plain) < 0.7
    assert found == 8


def vertical(n: int, seed: int) -> Responses:
    """Four grades a logit apart; each answers the items of its own level and of the next."""
    rng = np.random.default_rng(seed)
    grade, level = np.repeat(np.arange(4), n), np.repeat(np.arange(5), 8)
    beta = level - 2 + rng.normal(0, 0.7, 40)
    logit = (rng.normal(size=4 * n) + grade - 1.5)[:, None] - beta
    table = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
    table[(level != grade[:, None]) & (level != grade[:, None] + 1)] = np.nan
    return Responses.from_wide(table)


def test_forms_for_grades_are_a_note_and_forms_chosen_by_answers_a_warning():
    sound = vertical(300, 1)
    assert forms_follow_ability(sound)
    fit = SpectralRasch().fit(sound)
    test = fit.analyse(sound).hausman()
    assert [one.severity for one in test.findings] == ["note"]
    assert "CML holds" in test.findings[0].sentence
    assert {one.severity for one in fit.findings_ if one.code == "weak_links"} <= {"note"}
    for options in ({"design": "two-stage"}, {"design": "stopping"}, {"design": "adaptive", "length": 15}):
        assert not forms_follow_ability(simulate.rasch(1000, 60, seed=2, **options).responses)
    assert not forms_follow_ability(simulate.rasch(400, 20, seed=3).responses)
