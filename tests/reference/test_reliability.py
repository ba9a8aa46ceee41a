"""Separation reliability and test information against eRm (see README.md beside the data).

Tolerances: given eRm's abilities and standard errors SepRel is reproduced to the digits of the files. Its standard
errors come from a numerical Hessian and its difficulties are up to 3.3e-5 from the exact ones; with our own the
difference stays below 1e-4.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import Responses
from spectral_irt.calibration import test_information as information
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.reliability import separation

HERE = Path(__file__).parent
SETS = ["lsat6", "test15", "missing12", "booklets24"]
GIVEN, OWN = 1e-6, 1e-4


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


def test_information(case):
    _, answers, others = case
    beta = np.array([others["psychotools_raschmodel"]["difficulty_sum0"][item] for item in answers.items])
    theirs = others["test_information_at_theta"]
    np.testing.assert_allclose(information(beta, np.array(theirs["theta"])), theirs["info"], rtol=0, atol=1e-12)
