"""Plausible values, forms, cut scores and equating of ordered answers, against enumeration and binary answers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import spectral_irt as si
from spectral_irt.analysis import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores.equating import equated
from spectral_irt.persons.test_form import Form

COUNTS, OTHERS = np.array([2, 3, 1]), np.array([1, 2, 4])
RNG = np.random.default_rng(1)
BETA, GAMMA = RNG.normal(size=6), RNG.normal(size=7)


def category_chances(counts: Any, beta: Any, theta: float) -> list[Any]:
    """P(X = k) of every item, written out."""
    found, first = [], 0
    for n in counts.tolist():
        weight = np.exp(np.append(0.0, np.cumsum(theta - beta[first : first + n])))
        found.append(weight / weight.sum())
        first += n
    return found


def expected(counts: Any, beta: Any, theta: float) -> float:
    return sum(float(p @ np.arange(len(p))) for p in category_chances(counts, beta, theta))


@pytest.fixture(scope="module")
def study() -> Analysis:
    answers = si.simulate.partial_credit(400, 6, categories=[2, 3, 4, 3, 2, 5], seed=3, ability_sd=1.3).responses
    return si.SpectralPartialCredit().fit(answers).analyse(answers, population=(0.2, 1.3))


@pytest.fixture(scope="module", params=["complete", "sampled"])
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Right and wrong answers, and the same as ordered ones."""
    design = {"design": "sampled", "p": 0.6} if request.param == "sampled" else {}
    answers = si.simulate.rasch(300, 20, seed=1, **design).responses
    return si.SpectralRasch().fit(answers).analyse(answers), si.SpectralPartialCredit().fit(answers).analyse(answers)


def test_chances_of_scores_are_sums_over_all_answers() -> None:
    theta = np.array([-1.0, 0.3, 2.0])
    slow = np.zeros((3, 7))
    for q, at in enumerate(theta.tolist()):
        p = category_chances(COUNTS, BETA, at)
        for answers in itertools.product(*(range(n + 1) for n in COUNTS.tolist())):
            slow[q, sum(answers)] += np.prod([p[i][x] for i, x in enumerate(answers)])
    assert np.allclose(Form.of(BETA, COUNTS).chances(theta), slow, atol=1e-12)


def test_plausible_values_are_draws_from_the_posterior(study: Analysis) -> None:
    draws = 1000
    found = study.plausible_values(draws, seed=1)
    eap = study.abilities("eap")
    z = (found.values.mean(axis=1) - eap.ability) / (eap.se / np.sqrt(draws))
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert z.std() == pytest.approx(1, abs=4 / np.sqrt(2 * len(z)))
    assert np.mean(found.values.std(axis=1) / eap.se) == pytest.approx(1, abs=0.01)
    table = study.persons("pv", draws=2)
    assert table.columns[-2:] == ["pv1", "pv2"]
    assert np.array_equal(table["pv1"].to_numpy(), study.plausible_values(2).values[:, 0])
    with pytest.raises(OptionError, match="not both"):
        study.plausible_values(given=["a", "b"] * 200)


def test_given_groups_plausible_values_keep_their_difference() -> None:
    data = si.simulate.partial_credit(1500, 5, categories=3, seed=5)
    group = np.where(data.ability + np.random.default_rng(0).normal(size=1500) > 0, "a", "b")
    study = si.SpectralPartialCredit().fit(data.responses).analyse(data.responses)

    def apart(values: Any) -> float:
        return float(values[group == "a"].mean() - values[group == "b"].mean())

    truth = apart(data.ability)
    assert apart(study.plausible_values(20, given=group).values) == pytest.approx(truth, abs=0.2)
    assert apart(study.plausible_values(20).values) < 0.85 * truth  # drawn towards zero


def test_right_and_wrong_answers_have_the_same_values_forms_and_classes(both: tuple[Any, Any]) -> None:
    binary, ordered = both
    one, other = (s.plausible_values(3, seed=4).values for s in both)
    assert np.allclose(one, other, atol=0.01)  # cells of 0.1 standard deviations, around another center
    assert binary.forms().form.tolist() == ordered.forms().form.tolist()
    cuts = [([-0.5, 0.7], False)] + ([([5, 8], True)] if len(binary.forms()) else [])
    for at, raw in cuts:
        mine, theirs = columns_of(ordered.cuts, at, raw=raw), columns_of(binary.cuts, at, raw=raw)
        assert mine["class"].tolist() == theirs["class"].tolist()
        for name in [name for name in mine if name != "class"]:
            assert np.allclose(mine[name], theirs[name], atol=1e-6, equal_nan=True), name
    for name in ("score", "ability", "se", "n", "percentile"):
        assert np.allclose(columns_of(ordered.scores)[name], columns_of(binary.scores)[name], atol=1e-7), name


def test_scores_have_the_abilities_of_people(study: Analysis) -> None:
    table, people = columns_of(study.scores), columns_of(study.persons)
    assert table["score"].tolist() == list(range(14))
    assert np.allclose(table["ability"][people["score"]], people["ability"])
    assert table["n"].sum() == 400
    with pytest.raises(OptionError, match="from 1 to 13"):
        study.cuts([14], raw=True)
    with pytest.raises(OptionError, match="the lowest score"):
        study.cuts([40])


@pytest.mark.slow
def test_accuracy_and_consistency_are_those_of_people_tested_twice() -> None:
    seen, said = [], []
    for seed in range(12):
        data = si.simulate.partial_credit(1000, 10, categories=4, seed=seed)
        study = si.SpectralPartialCredit().fit(data.responses).analyse(data.responses)
        columns = columns_of(study.cuts, [0.3])
        said.append((columns["accuracy"][-1], columns["consistency"][-1]))
        again = si.simulate.partial_credit(
            1000, thresholds=list(data.thresholds.reshape(10, 3)), ability=data.ability, seed=100 + seed
        )
        passed = [s.abilities().ability >= 0.3 for s in (study, Analysis(study.calibration, again.responses))]
        seen.append((np.mean(passed[0] == (data.ability >= 0.3)), np.mean(passed[0] == passed[1])))
    away = np.array(seen) - np.array(said)
    assert np.all(np.abs(away.mean(axis=0)) < 4 * away.std(axis=0) / np.sqrt(12))


def test_equated_scores_and_their_derivatives_against_a_search() -> None:
    found = equated(Form.of(BETA, COUNTS), Form.of(GAMMA, OTHERS), 0.2, 1.1)

    def slow(beta: Any, gamma: Any, score: int) -> float:
        theta = brentq(lambda at: expected(COUNTS, beta, at) - score, -30, 30, xtol=1e-13)
        return expected(OTHERS, gamma, 0.2 + 1.1 * theta)

    inner, h = range(1, 6), 1e-5
    assert np.allclose(found.equated[1:-1], [slow(BETA, GAMMA, s) for s in inner], atol=1e-9)
    assert found.equated[[0, -1]].tolist() == [0, 7]
    for k, move in enumerate(h * np.eye(6)):
        both = [(slow(BETA + move, GAMMA, s) - slow(BETA - move, GAMMA, s)) / (2 * h) for s in inner]
        assert np.allclose(found.by_first[1:-1, k], both, atol=1e-5)
    for k, move in enumerate(h * np.eye(7)):
        both = [(slow(BETA, GAMMA + move, s) - slow(BETA, GAMMA - move, s)) / (2 * h) for s in inner]
        assert np.allclose(found.by_second[1:-1, k], both, atol=1e-5)


def test_forms_of_one_analysis_are_equated(study: Analysis) -> None:
    found = study.equate([0, 1, 2], [3, 4, 5])
    assert [len(scores) for scores in found.scores] == [7, 8]
    there = np.interp(found.equated[0], found.scores[1], found.equated[1])  # and back, between whole scores
    assert np.allclose(there[1:-1], found.scores[0][1:-1], atol=0.1)
    assert np.all(found.se[0][1:-1] > 0)


@pytest.mark.slow
def test_standard_errors_of_equated_scores_cover() -> None:
    """Two samples of people take two forms with three items in common; equated scores against those of the truth."""
    rng = np.random.default_rng(7)
    thresholds = [rng.normal() + np.array([-0.5, 0.5]) for _ in range(13)]
    a, b = list(range(8)), list(range(5, 13))
    one, other = (np.concatenate([thresholds[k] for k in form]) for form in (a, b))
    counts = np.full(8, 2)
    truth = equated(Form.of(one, counts), Form.of(other, counts)).equated[1:-1]
    inside = []
    for seed in range(40):
        fits = []
        for form, start in ((a, 0), (b, 1000)):
            drawn = si.simulate.partial_credit(400, thresholds=[thresholds[k] for k in form], seed=seed + start)
            dense = drawn.responses.to_dense()
            labeled = si.Responses.from_wide(dense, items=[f"q{k}" for k in form], ordered=True)
            fits.append(si.SpectralPartialCredit(regularization=0).fit(labeled))
        found = si.equate(*fits)
        inside.append(np.abs(found.equated[0][1:-1] - truth) < 1.96 * found.se[0][1:-1])
    assert 0.88 < np.mean(inside) <= 1
