"""Separation, reliability, KR-20, information: formulas on small numbers, then simulated truth."""

from __future__ import annotations

import numpy as np
import pytest

from dense import AWKWARD, probabilities
from spectral_irt import Responses, SpectralRasch, simulate
from spectral_irt.calibration import test_information as information
from spectral_irt.errors import OptionError
from spectral_irt.inference.reliability import Reliability, kr20, separation


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


def test_kr20():
    table = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=float)
    cov = np.cov(table.T)
    alpha = 3 / 2 * (1 - np.trace(cov) / cov.sum())
    assert abs(kr20(Responses.from_wide(table)) - alpha) < 1e-12
    with_empty = np.vstack([table, np.full(3, np.nan)])
    assert abs(kr20(Responses.from_wide(with_empty)) - alpha) < 1e-12
    assert kr20(Responses.from_wide(AWKWARD)) is None
    assert kr20(Responses.from_wide(np.array([[1.0, 0], [0, 1]]))) is None


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
    value = found.eap_reliability if method == "eap" else found.persons.reliability
    assert abs(value - truth) < 0.03
    assert found.persons_real.reliability < found.persons.reliability
    assert abs(found.targeting - 0.5) < 0.1 or method == "eap"
    assert abs(found.kr20 - truth) < 0.05
    assert found.items.n == 40
    assert found.items.reliability > 0.98
    assert found.n_persons == 2000
    assert (found.eap_reliability is None) == (method != "eap")


def test_how_it_reads(calibrated):
    fit, data = calibrated
    found = fit.analyse(data.responses).reliability()
    text = repr(found)
    assert "persons, real" in text
    assert "KR-20" in text
    assert max(map(len, text.splitlines())) <= 120
    plain = found.to_dict()
    assert plain["persons"]["n"] == found.persons.n
    assert plain["kr20"] == found.kr20


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
