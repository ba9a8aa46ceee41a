"""Reliability and test information against eRm and TAM (see README.md beside the data).

Tolerances: given eRm's abilities and standard errors SepRel is reproduced to the digits of the files. Its standard
errors come from a numerical Hessian and its difficulties are up to 3.3e-5 from the exact ones; with our own the
difference stays below 1e-4. TAM integrates on 81 nodes and stops at 1e-8: its variance and EAP reliability are
reproduced to 1e-5 at its difficulties, and to 1e-3 at our own.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import Responses
from spectral_irt.calibration import form_information as information
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.marginal import MarginalRasch
from spectral_irt.inference.scores.reliability import marginal_reliability, separation

HERE = Path(__file__).parent
SETS = ["lsat6", "test15", "missing12", "booklets24"]
GIVEN, OWN = 1e-6, 1e-4
MARGINAL, EAP = 1e-5, 1e-3


@pytest.fixture(params=SETS)
def case(request):
    name = request.param
    answers = Responses.from_wide(pl.read_csv(HERE / f"{name}.csv"))
    return name, answers, json.loads((HERE / f"{name}.json").read_text())


def test_sep_rel_given_their_estimates(case):
    name, _, others = case
    people = pl.read_csv(HERE / f"{name}_erm_persons.csv", null_values=["NA", "NaN"])
    found = separation(people["theta"].to_numpy(), people["se"].cast(float).to_numpy())
    theirs = others["eRm_SepRel"]
    assert abs(found.reliability - theirs["sep_rel"]) < GIVEN
    assert abs(found.sd**2 - theirs["ssd"]) < GIVEN
    assert abs(found.rmse**2 - theirs["mse"]) < GIVEN


def test_sep_rel_with_our_own_estimates(case):
    _, answers, others = case
    found = ConditionalRasch().fit(answers).analyse(answers).reliability()
    assert abs(found.sep_rel - others["eRm_SepRel"]["sep_rel"]) < OWN


def test_eap_reliability_given_their_difficulties(case):
    """TAM's difficulties of marginal likelihood: the population is theirs, and so is the reliability."""
    _, answers, others = case
    theirs = others["TAM_mml"]
    beta = np.array([theirs["difficulty"][item] for item in answers.items])
    found = marginal_reliability(answers, beta)
    assert abs(found.reliability - theirs["EAP_reliability"]) < MARGINAL
    assert abs(found.sd**2 - theirs["variance"]) < MARGINAL
    assert abs(found.mean) < MARGINAL


def test_eap_and_wle_reliability_with_our_own_estimates(case):
    _, answers, others = case
    found = MarginalRasch().fit(answers).analyse(answers).reliability()
    assert abs(found.eap_reliability - others["TAM_mml"]["EAP_reliability"]) < EAP
    assert abs(found.persons_with_extremes.reliability - others["TAM_wle_reliability"]["value"]) < EAP


def test_eap_reliability_hardly_depends_on_the_estimator(case):
    """Conditional estimates of booklets differ a little from marginal ones, which learn from who got which booklet."""
    name, answers, others = case
    found = ConditionalRasch().fit(answers).analyse(answers).reliability()
    assert abs(found.eap_reliability - others["TAM_mml"]["EAP_reliability"]) < (
        2 * EAP if name == "booklets24" else EAP
    )


def test_information(case):
    _, answers, others = case
    beta = np.array([others["psychotools_raschmodel"]["difficulty_sum0"][item] for item in answers.items])
    theirs = others["test_information_at_theta"]
    np.testing.assert_allclose(information(beta, np.array(theirs["theta"])), theirs["info"], rtol=0, atol=1e-12)
