"""Marginal likelihood against TAM and mirt (R), variance of ability free.

Tolerance 1e-3 by the issue; the programs' own convergence leaves them 1e-5 apart, so 1e-4 is asked in difficulty.
Their difficulties have mean ability zero instead of mean difficulty zero.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from spectral_irt.estimators.marginal import MarginalRasch

HERE = Path(__file__).parent
DIFFICULTY = 1e-4
VARIANCE = 1e-4
LOGLIK = 1e-4


def load(name: str):
    rows = list(csv.reader((HERE / f"{name}.csv").open()))
    table = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows[1:]])
    return table, json.loads((HERE / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["lsat6", "test15", "missing12", "booklets24"])
def test_equals_tam_and_mirt(name):
    table, reference = load(name)
    fit = MarginalRasch().fit(table)
    for program in ("TAM_mml", "mirt_Rasch"):
        values = np.array(list(reference[program]["difficulty"].values()))
        np.testing.assert_allclose(fit.difficulty_ - fit.mu_, values, atol=DIFFICULTY)
        assert fit.sigma_**2 == pytest.approx(reference[program]["variance"], abs=VARIANCE)
    assert fit.loglik_ == pytest.approx(reference["mirt_Rasch"]["loglik"], abs=LOGLIK)
    assert fit.loglik_ == pytest.approx(-reference["TAM_mml"]["deviance"] / 2, abs=LOGLIK)


@pytest.mark.parametrize("name", ["lsat6", "test15", "missing12", "booklets24"])
def test_standard_errors_are_close_to_conditional_ones(name):
    """The two methods are asymptotically alike; marginal ones may be a little smaller, never much larger."""
    table, reference = load(name)
    conditional = np.array(list(reference["psychotools_raschmodel"]["se_sum0"].values()))
    ratio = MarginalRasch().fit(table).se_ / conditional
    assert ratio.min() > 0.94
    assert ratio.max() < 1.02


def test_lsat():
    fit = MarginalRasch().fit(load("lsat6")[0])
    assert fit.loglik_ == pytest.approx(-2466.9376, abs=1e-3)
    assert fit.sigma_**2 == pytest.approx(0.57024, abs=5e-5)
