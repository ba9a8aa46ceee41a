"""Separation, reliability, KR-20, information: formulas on small numbers, then simulated truth."""

from __future__ import annotations

import numpy as np
import pytest

from dense import probabilities
from spectral_irt import ConditionalRasch, Responses, SpectralRasch, datasets, simulate
from spectral_irt.calibration import form_information as information
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores import reliability as marginal
from spectral_irt.inference.scores.reliability import Reliability, marginal_reliability, separation


def test_separation():
    found = separation(np.array([-2.0, 0.0, 2.0, np.inf, np.nan]), np.array([1.0, 0.5, 1.0, 1.0, 1.0]))
    assert found.n == 3
    assert (found.mean, found.sd) == (0, 2)
    np.testing.assert_allclose(found.rmse**2, 0.75)
    np.testing.assert_allclose(found.reliability, (4 - 0.75) / 4)
    np.testing.assert_allclose(found.separation, np.sqrt(3.25 / 0.75))
    np.testing.assert_allclose(found.strata, (4 * found.separation + 1) / 3)
    noisy = separation(np.array([-0.1, 0.1]), np.array([1.0, 1.0]))
    assert noisy.reliability < 0
    assert noisy.separation == 0
    assert np.isnan(separation(np.array([1.0]), np.array([1.0])).reliability)


def test_information():
    beta, theta = np.array([-1.0, 0.0, 2.5]), np.array([-3.0, 0.0, 40.0])
    P = probabilities(theta, beta)
    np.testing.assert_allclose(information(beta, theta), np.sum(P * (1 - P), axis=1), atol=1e-12)


@pytest.fixture(scope="module")
def calibrated():
    data = simulate.rasch(2000, 40, ability_mean=0.5, ability_sd=1.2, seed=3)
    return SpectralRasch().fit(data.responses), data


@pytest.mark.slow
@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_reliability_is_the_squared_correlation_with_the_truth(calibrated, method):
    fit, data = calibrated
    found = fit.analyse(data.responses).reliability(method=method)
    truth = np.corrcoef(data.ability, fit.analyse(data.responses).persons(method="eap")["ability"])[0, 1] ** 2
    assert isinstance(found, Reliability)
    assert abs(found.eap_reliability - truth) < 0.02
    assert method == "eap" or abs(found.persons.reliability - truth) < 0.03
    assert found.persons_real.reliability < found.persons.reliability
    assert abs(found.targeting - 0.5) < 0.1 or method == "eap"
    assert abs(found.kr20 - truth) < 0.05
    assert found.items.n == 40
    assert found.items.reliability > 0.98
    assert found.n_persons == 2000
    assert found.eap_people == 2000
    assert abs(found.population_sd - 1.2) < 0.1
    assert found.form_correlation is None  # everybody met the same items


SHORT = {
    "5 items": (5, 0.0, 1.0, {}),
    "5 items, able": (5, 1.5, 1.0, {}),
    "10 items, wide": (10, 0.0, 2.0, {}),
    "20 items": (20, 0.0, 1.0, {}),
    "a fifth seen": (60, 0.0, 1.0, {"design": "sampled", "p": 0.2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_eap_reliability_is_right_on_short_tests(name):
    """Mean of four replicates of 1,500 people: the Monte-Carlo error of the difference is about .005."""
    items, mean, sd, design = SHORT[name]
    off = []
    for seed in range(4):
        data = simulate.rasch(1500, items, ability_mean=mean, ability_sd=sd, seed=seed, **design)
        study = SpectralRasch(se="none").fit(data.responses).analyse(data.responses)
        found = study.abilities("eap")
        seen = found.n > 0
        truth = np.corrcoef(data.ability[seen], found.ability[seen])[0, 1] ** 2
        off.append(study.reliability().eap_reliability - truth)
    assert abs(np.mean(off)) < 0.02


def test_every_reliability_is_named():
    lsat = datasets.load_lsat()
    study = ConditionalRasch().fit(lsat).analyse(lsat)
    found = study.reliability()
    assert found.text() == (
        "EAP reliability 0.29, KR-20 0.29; WLE separation reliability -1.22 without extreme scores, -0.31 with them"
    )
    assert study.reliability("ml").text().endswith("; ML separation reliability -0.66 without extreme scores")
    assert study.reliability("eap").text() == "EAP reliability 0.29, KR-20 0.29"
    assert {study.reliability(method).eap_reliability for method in ("wle", "ml", "eap")} == {found.eap_reliability}


@pytest.mark.slow
def test_a_sample_of_many_people_says_the_same(monkeypatch):
    data = simulate.rasch(4000, 10, seed=5)
    whole = marginal_reliability(data.responses, data.difficulty)
    monkeypatch.setattr(marginal, "ENOUGH", 20_000)
    some = marginal_reliability(data.responses, data.difficulty)
    assert (whole.n, some.n) == (4000, 2000)
    assert some.reliability != whole.reliability
    assert abs(some.reliability - whole.reliability) < 0.03  # (1 - .63) sqrt(2 / 2000), doubled


def test_no_population_no_eap_reliability():
    beta = np.zeros(4)
    assert marginal_reliability(Responses.from_wide([[1.0, 0, 1, 0]]), beta) is None
    assert marginal_reliability(Responses.from_wide(np.tile([[1.0, 0, 1, 0], [0, 1, 0, 1]], (5, 1))), beta) is None
    many = marginal_reliability(Responses.from_wide(np.tile([[1.0, 0, 1, 0], [0, 1, 0, 1]], (50, 1))), beta)
    assert many.reliability < 0.001  # they do not differ, and there are enough of them to say so
    alone = SpectralRasch().fit(simulate.rasch(200, 4, seed=1).responses).analyse([[1.0, 0, 1, 0]]).reliability()
    assert alone.eap_reliability is None
    assert "EAP" not in alone.text()


def test_people_on_forms_of_different_levels_are_warned():
    """Two grades with forms of their own level and two items in common."""
    rng = np.random.default_rng(0)
    ability = np.repeat([-1.5, 1.5], 150) + rng.normal(size=300)
    difficulty = np.linspace(-2, 2, 10)
    answers = (rng.random((300, 10)) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(float)
    answers[:150, 6:], answers[150:, :4] = np.nan, np.nan
    responses = Responses.from_wide(answers)
    fit = SpectralRasch().fit(responses)
    found = fit.analyse(responses).reliability()
    met = np.array([np.nanmean(np.where(np.isnan(row), np.nan, fit.difficulty_)) for row in answers])
    wle = fit.analyse(responses).abilities("wle").ability
    assert abs(found.form_correlation - np.corrcoef(met, wle)[0, 1]) < 1e-12
    assert "abler people met harder items (r = 0." in found.text()
    one = fit.analyse(responses.take_persons(np.arange(150))).reliability()
    assert one.form_correlation is None
    assert one.eap_reliability < found.eap_reliability
    assert "harder items" not in one.text()


def test_information_table(calibrated):
    fit, _ = calibrated
    table = fit.calibration_.information([0.0, 1.0])
    assert table.columns == ["ability", "information", "se"]
    np.testing.assert_allclose(table["se"], 1 / np.sqrt(table["information"]))
    whole = fit.calibration_.information()
    assert len(whole) == 121
    part = fit.calibration_.information([0.0], items=[0, 1])
    np.testing.assert_allclose(part["information"], information(fit.difficulty_[:2], np.zeros(1)))
    with pytest.raises(OptionError, match=r"abilities, one number per person, not a table of shape \(2, 2\)"):
        fit.calibration_.information(np.zeros((2, 2)))
