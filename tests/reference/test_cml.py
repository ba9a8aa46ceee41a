"""Conditional maximum likelihood against programs we did not write (see README.md beside the data).

Tolerances: `cml_gold.json` is a Newton solver with gradient below 1e-12; psychotools stops within 1.3e-8 of it, eRm
within 3.3e-5.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt.estimators.conditional import ConditionalRasch

HERE = Path(__file__).parent
SETS = ["lsat6", "test15", "missing12", "booklets24"]
GOLD = {"difficulty": 1e-8, "loglik": 1e-8, "se": 1e-6}
PSYCHOTOOLS, ERM = 1e-7, 1e-4
VCOV = 1e-6  # psychotools inverts the Hessian of its own solution


@pytest.fixture(scope="module", params=SETS)
def case(request):
    answers = pl.read_csv(HERE / f"{request.param}.csv")
    gold = json.loads((HERE / "cml_gold.json").read_text())[request.param]
    others = json.loads((HERE / f"{request.param}.json").read_text())
    return ConditionalRasch().fit(answers), gold, others


def ordered(values, items):
    return np.array([values[item] for item in items])


def test_gold(case):
    fit, gold, _ = case
    assert fit.item_labels_.tolist() == gold["items"]
    np.testing.assert_allclose(fit.difficulty_, gold["difficulty_sum0"], rtol=0, atol=GOLD["difficulty"])
    np.testing.assert_allclose(fit.se_, gold["se_sum0"], rtol=0, atol=GOLD["se"])
    assert abs(fit.loglik_ - gold["loglik_conditional"]) < GOLD["loglik"]


def test_psychotools(case):
    fit, _, others = case
    theirs = others["psychotools_raschmodel"]
    np.testing.assert_allclose(
        fit.difficulty_, ordered(theirs["difficulty_sum0"], fit.item_labels_), rtol=0, atol=PSYCHOTOOLS
    )
    assert abs(fit.loglik_ - theirs["loglik_conditional"]) < PSYCHOTOOLS
    np.testing.assert_allclose(fit.covariance(), theirs["vcov_sum0"], rtol=0, atol=VCOV)


def test_erm(case):
    fit, _, others = case
    theirs = others["eRm_RM"]
    np.testing.assert_allclose(fit.difficulty_, ordered(theirs["difficulty_sum0"], fit.item_labels_), rtol=0, atol=ERM)
    np.testing.assert_allclose(fit.se_, ordered(theirs["se_beta"], fit.item_labels_), rtol=0, atol=ERM)
    assert abs(fit.loglik_ - theirs["loglik_conditional"]) < ERM
