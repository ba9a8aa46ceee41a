"""Conditional against marginal likelihood: the pieces by differences, the level and power by simulation."""

from itertools import product

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn
from spectral_irt.errors import DesignError, OptionError, for_shell
from spectral_irt.estimators.population import marginal_scores, normal_population, posteriors
from spectral_irt.inference.groups import hausman as module
from spectral_irt.inference.groups.hausman import MOST_THRESHOLDS, forms_follow_ability, hausman
from spectral_irt.inference.groups.sampling import Sampling


@pytest.mark.parametrize("categories", [2, 4])
def test_marginal_scores_are_derivatives_of_each_persons_likelihood(categories):
    data = si.simulate.partial_credit(30, 6, categories=categories, design="sampled", p=0.7, seed=2)
    block, beta, layout = data.responses.blocks[0], data.thresholds, data.responses.thresholds
    mu, sigma = 0.3, 1.2

    def loglik(x):
        ((_, _, _, found, _),) = posteriors(
            block, None, x[:-2], normal_population(np.exp(x[-1]), 121, mu=x[-2]), layout
        )
        return found

    x, h = np.concatenate([beta, [mu, np.log(sigma)]]), 1e-5
    slopes = np.array([(loglik(x + h * e) - loglik(x - h * e)) / (2 * h) for e in np.eye(len(x))]).T
    scores = marginal_scores(block, beta, normal_population(sigma, 121, mu=mu), layout, np.eye(2)).toarray()
    np.testing.assert_allclose(scores[:, :-2], slopes[:, :-2], atol=1e-8)
    np.testing.assert_allclose(scores[:, -2:], slopes[:, -2:], atol=1e-6)  # nodes end at six standard deviations


def test_the_information_of_the_conditional_likelihood_is_exact():
    """With an approximation LSAT had T = 0.46: what is left of two terms that nearly cancel was mostly its error."""
    lsat = si.datasets.load_lsat()
    assert si.SpectralRasch().fit(lsat).analyse(lsat).hausman().statistic == pytest.approx(0.842, abs=0.002)


@pytest.mark.parametrize(("items", "spread", "rel"), [(9, (0.0,), 0.1), (7, (-0.4, 0.4), 0.2)])
def test_the_step_is_the_difference_of_the_two_estimates(items, spread, rel):
    """Two kinds of people, far apart: marginal likelihood errs, and the test says by how much without fitting CML."""
    rng = np.random.default_rng(1)
    ability = np.where(rng.random(3000) < 0.3, 2.5, -1.0) + 0.3 * rng.normal(size=3000)
    thresholds = list(np.linspace(-2, 2, items)[:, None] + np.array(spread))
    answers = si.simulate.partial_credit(3000, thresholds=thresholds, ability=ability, seed=4).responses
    fit = si.ConditionalPartialCredit().fit(answers)
    test = fit.analyse(answers).hausman()
    apart = fit.difficulty_ - si.MarginalPartialCredit().fit(answers).difficulty_
    # Thresholds of an item move together in all directions but one, so that some of the difference is in none.
    assert test.size == pytest.approx(np.sqrt(np.mean(apart**2)), rel=rel)
    assert test.p < 1e-6


@pytest.mark.parametrize("categories", [2, 3])
def test_groups_explain_a_vertical_scale(categories):
    rng = np.random.default_rng(3)
    beta = np.concatenate([rng.normal(-1, 0.6, 8), rng.normal(0, 0.6, 4), rng.normal(1, 0.6, 8)])
    grade = np.repeat([0, 1], 500)
    theta = np.where(grade == 0, -1.0, 1.0) + rng.normal(size=1000)
    thresholds = beta[:, None] + np.linspace(-0.4, 0.4, categories - 1) * (categories > 2)
    X = si.simulate.partial_credit(1000, thresholds=list(thresholds), ability=theta, seed=3).responses.to_dense()
    X[grade == 0, 12:], X[grade == 1, :8] = np.nan, np.nan
    study = (si.SpectralRasch if categories == 2 else si.SpectralPartialCredit)().fit(X).analyse(X)
    alone, grouped = study.hausman(), study.hausman(grade)
    assert alone.p < 1e-6
    assert [finding.code for finding in alone.findings] == ["conditional_against_marginal"]
    assert categories > 2 or "groups=" in alone.findings[0].remedy
    assert categories > 2 or "--population-by" in for_shell(alone.findings[0].remedy)
    assert grouped.p > 0.01
    assert not grouped.findings


def test_what_nobody_links_is_no_direction():
    """Nothing tells where two halves without people in common lie to one another."""
    X = si.simulate.rasch(300, 16, seed=10).responses.to_dense()
    X[::2, 8:], X[1::2, :8] = np.nan, np.nan
    found = si.AnchoredRasch({0: -0.3, 15: 0.4}).fit(X).analyse(X).hausman()
    assert found.df == 3
    assert "items met with it" not in found.columns["direction"]


@pytest.mark.slow
def test_of_very_much_a_sample_is_compared():
    answers = si.simulate.rasch(3000, MOST_THRESHOLDS + 50, design="sampled", p=0.15, seed=6).responses
    test, again = (hausman(answers, np.zeros(answers.n_items)) for _ in range(2))
    assert test.n_items == MOST_THRESHOLDS
    assert test.n_people < 2500
    assert test.p == again.p > 0.001


@pytest.mark.parametrize("categories", [2, 3])
def test_too_little_to_tell(categories):
    few = si.simulate.partial_credit(30, 10, categories=categories, seed=1).responses
    start = np.zeros(few.thresholds.n_entries)
    with pytest.raises(DesignError, match="needs 50 and 3 items"):
        hausman(few, start)
    assert si.ConditionalPartialCredit().fit(few).analyse(few)._quick_hausman(None) is None
    with pytest.raises(OptionError, match="`design` is 'random'"):
        si.MarginalPartialCredit().fit(few, design="random")
    with pytest.raises(OptionError, match="fixed design"):
        si.SpectralPartialCredit().fit(few, design="adaptive", anchors={0: [0.0, 1.0]})


@pytest.mark.slow
def test_level():
    """80 data sets that hide nothing: 5% rejections have a standard error of 2.4%, and three of these are allowed."""
    designs = [
        {"n_persons": 500, "n_items": 20},
        {"n_persons": 600, "n_items": 40, "design": "sampled", "p": 0.3},
        {"n_persons": 600, "n_items": 40, "design": "booklets", "booklets": 5},
        {"n_persons": 300, "n_items": 12, "categories": 4, "design": "sampled", "p": 0.6},
    ]
    tests = []
    for options, seed in product(designs, range(20)):
        draw = si.simulate.partial_credit if "categories" in options else si.simulate.rasch
        answers = draw(**options, seed=seed).responses
        tests.append(hausman(answers, np.zeros(answers.thresholds.n_entries)))
    p = np.array([test.p for test in tests])
    assert np.mean(p < 0.05) < 0.124
    assert 0.33 < np.mean(p < 0.5) < 0.67
    assert sum(len(test.findings) for test in tests) <= 3


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
    """Coverage over 4 replicates of 30 items or more: three standard errors of 2% if errors were independent."""
    inside, plain, found = [], [], 0
    for seed in range(4):
        data = si.simulate.rasch(**options, seed=seed)
        fit = si.MarginalRasch(tol=1e-4).fit(data.responses, design="adaptive")
        error = fit.difficulty_ - data.difficulty
        known = np.isfinite(error)
        inside.append(np.mean(np.abs(error - error[known].mean())[known] < 1.96 * fit.se_[known]))
        study = si.SpectralRasch().fit(data.responses).analyse(data.responses)
        wrong = np.abs(study.calibration.difficulty - data.difficulty) / study.calibration.se
        plain.append(np.mean(wrong < 1.96))
        found += len(study.hausman().findings)
    assert 0.89 < np.mean(inside) < 0.995
    assert np.mean(plain) < 0.7
    assert found == 4


@pytest.mark.slow
def test_marginal_likelihood_is_the_remedy():
    data = si.simulate.partial_credit(1000, 30, categories=3, design="adaptive", length=10, seed=4)
    plain = si.SpectralPartialCredit().fit(data.responses)
    study = plain.analyse(data.responses)
    assert "conditional_against_marginal" in [finding.code for finding in study.findings()]
    told = si.SpectralPartialCredit().fit(data.responses, design="adaptive")
    assert told.calibration_.provenance.estimator == "MarginalPartialCredit"
    assert "adaptive_design" in [finding.code for finding in told.calibration_.findings]
    after = told.analyse(data.responses)
    assert after._quick_hausman(None) is None
    assert not after.parts().fit
    assert after.record()["design"] == "adaptive"
    known = np.isfinite(plain.thresholds_) & np.isfinite(told.thresholds_)
    slopes = [np.polyfit(data.thresholds[known], fit.thresholds_[known], 1)[0] for fit in (plain, told)]
    assert slopes[0] > 1.2
    assert slopes[1] == pytest.approx(1, abs=0.1)


def test_forms_for_grades_are_a_note_and_forms_chosen_by_answers_a_warning():
    """Four grades a logit apart; each answers the items of its own level and of the next."""
    rng = np.random.default_rng(1)
    grade, level = np.repeat(np.arange(4), 300), np.repeat(np.arange(5), 8)
    beta = level - 2 + rng.normal(0, 0.7, 40)
    table = drawn(rng, (rng.normal(size=1200) + grade - 1.5)[:, None] - beta)
    table[(level != grade[:, None]) & (level != grade[:, None] + 1)] = np.nan
    sound = si.Responses.from_wide(table)
    assert forms_follow_ability(sound)
    fit = si.SpectralRasch().fit(sound)
    test = fit.analyse(sound).hausman()
    assert [one.severity for one in test.findings] == ["note"]
    assert "CML holds" in test.findings[0].sentence
    assert {one.severity for one in fit.findings_ if one.code == "weak_links"} <= {"note"}
    for options in ({"design": "two-stage"}, {"design": "stopping"}, {"design": "adaptive", "length": 15}):
        assert not forms_follow_ability(si.simulate.rasch(1000, 60, seed=2, **options).responses)
    assert not forms_follow_ability(si.simulate.rasch(400, 20, seed=3).responses)


def test_of_very_much_a_sample_of_items_and_of_people_is_taken(monkeypatch):
    """Thresholds and responses up to a limit each; people stay in their groups and clusters."""
    rng = np.random.default_rng(3)
    answers = si.simulate.rasch(400, 12, seed=2).responses
    group, cluster = np.arange(400) % 2, np.arange(400) // 10
    start = np.linspace(-1, 1, 12)
    start[5] = np.nan
    weights = rng.uniform(0.5, 2, 400)
    monkeypatch.setattr(module, "MOST_THRESHOLDS", 6)
    monkeypatch.setattr(module, "MOST_RESPONSES", 1200)
    sample = module._sample(answers, start, group.tolist(), 0, Sampling(weights, cluster))
    everyone = sample.everyone.responses
    assert everyone.n_items == 6
    place = [answers.items.tolist().index(label) for label in everyone.items.tolist()]
    np.testing.assert_array_equal(sample.start, start[place])
    assert 5 not in place
    assert sample.share == pytest.approx(1200 / (6 * 400))
    assert 160 < everyone.n_persons < 240
    who = np.searchsorted(answers.persons.astype(int), everyone.persons.astype(int))
    np.testing.assert_array_equal(sample.everyone.weight, weights[who])
    for g, people in enumerate(sample.populations):
        theirs = who[group[who] == g]
        np.testing.assert_array_equal(people.responses.persons, answers.persons[theirs])
        np.testing.assert_array_equal(people.cluster, cluster[theirs])
        np.testing.assert_array_equal(people.weight, weights[theirs])
    monkeypatch.setattr(module, "MOST_RESPONSES", 10**6)
    whole = module._sample(answers, start, None, 0, Sampling(weights, cluster))
    assert (whole.share, len(whole.populations)) == (1.0, 1)
    assert whole.everyone.responses.n_persons == 400


def test_items_without_somebody_in_every_category_are_not_compared():
    x = si.simulate.partial_credit(200, 4, categories=3, seed=1).responses.to_dense()
    x[:, 1] = np.minimum(x[:, 1], 1)  # nobody in the highest
    x[:, 2] = np.where(x[:, 2] == 0, 1, x[:, 2])  # nobody in the lowest
    answers = si.Responses.from_wide(x, ordered=True, unused="keep")
    sample = module._sample(answers, np.zeros(answers.thresholds.n_entries), None, 0, Sampling())
    assert sample.everyone.responses.items.tolist() == [0, 3]
