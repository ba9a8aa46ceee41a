"""Item fit against eRm (see README.md beside the data).

Tolerances: given eRm's difficulties and abilities its item fit is reproduced to the twelve digits of the files. With
our own conditional estimates the difference is eRm's distance from the exact solution: below 2e-5 in the mean squares,
and in the standardized forms, which magnify it tenfold, 1e-4 (of the number itself where it is above 1).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import Responses
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.fit.mean_squares import item_statistics

HERE = Path(__file__).parent
SETS = ["lsat6", "test15", "missing12", "booklets24"]
GIVEN, OWN = 1e-6, 1e-4


def erm(name, what):
    return pl.read_csv(HERE / f"{name}_erm_{what}.csv", null_values=["NA", "NaN"])


COLUMNS = {"outfit": "outfit_msq", "infit": "infit_msq", "outfit_z": "outfit_t", "infit_z": "infit_t"}


@pytest.fixture(params=SETS)
def case(request):
    return request.param, Responses.from_wide(pl.read_csv(HERE / f"{request.param}.csv"))


def test_given_their_estimates(case):
    name, answers = case
    others = json.loads((HERE / f"{name}.json").read_text())
    beta = np.array([others["eRm_RM"]["difficulty_sum0"][item] for item in answers.items])
    found = item_statistics(answers, beta, erm(name, "persons")["theta"].to_numpy())
    theirs = erm(name, "itemfit")
    assert theirs["item"].to_list() == answers.items.tolist()
    np.testing.assert_array_equal(found["n"], theirs["df"])
    for mine, column in COLUMNS.items():
        np.testing.assert_allclose(found[mine], theirs[column], rtol=0, atol=GIVEN)


def test_with_our_own_estimates(case):
    name, answers = case
    table = ConditionalRasch().fit(answers).analyse(answers).item_fit()
    theirs = erm(name, "itemfit")
    for mine, column in COLUMNS.items():
        np.testing.assert_allclose(table[mine], theirs[column], rtol=OWN, atol=OWN)
