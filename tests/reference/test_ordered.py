"""Ordered answers against eRm and psychotools (see README.md beside the data).

psychotools stops within 2e-7 of the maximum, eRm within some 1e-5.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt.estimators.conditional import ConditionalPartialCredit, ConditionalRatingScale

HERE = Path(__file__).parent
PSYCHOTOOLS, ERM, LOGLIK = 1e-6, 1e-4, 1e-6
CASES = {
    "credit6_pcm": ("credit6", ConditionalPartialCredit(), "eRm_PCM"),
    "scale8_pcm": ("scale8", ConditionalPartialCredit(), "eRm_PCM"),
    "scale8_rsm": ("scale8", ConditionalRatingScale(), "eRm_RSM"),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    file, estimator, name = CASES[request.param]
    fit = estimator.fit(pl.read_csv(HERE / f"{file}.csv"))
    return fit, json.loads((HERE / f"{request.param}.json").read_text()), name


def test_psychotools(case):
    fit, others, _ = case
    theirs = others["psychotools"]
    thresholds = np.concatenate([theirs["threshpar_mode"][item] for item in fit.item_labels_])
    np.testing.assert_allclose(fit.thresholds_, thresholds, rtol=0, atol=PSYCHOTOOLS)
    np.testing.assert_allclose(fit.threshold_se_, theirs["se_threshpar"], rtol=0, atol=PSYCHOTOOLS)
    locations = [theirs["itempar_sum0"][item] for item in fit.item_labels_]
    np.testing.assert_allclose(fit.difficulty_, locations, rtol=0, atol=PSYCHOTOOLS)
    np.testing.assert_allclose(fit.se_, theirs["se_itempar"], rtol=0, atol=PSYCHOTOOLS)
    assert abs(fit.loglik_ - theirs["loglik_conditional"]) < LOGLIK


@pytest.mark.parametrize("zero", ["sum0", "first0"])
def test_erm(case, zero):
    fit, others, name = case
    theirs = others.get(f"{name}_{zero}")
    if theirs is None:
        pytest.skip("not in the file")
    values = np.array(theirs["thresholds"]["values"])[:, 1:].ravel()
    np.testing.assert_allclose(fit.thresholds_, values - values.mean(), rtol=0, atol=ERM)
    assert abs(fit.loglik_ - theirs["loglik_conditional"]) < ERM


def erm_shift(fit, others, name):
    """eRm's zero is that of its own parameters."""
    values = np.array(others[f"{name}_sum0"]["thresholds"]["values"])[:, 1:]
    return values.mean()


def test_score_table(case):
    """Maximum likelihood abilities of every total score but the ends, where eRm extrapolates."""
    fit, others, name = case
    table = fit.calibration_.score_table()
    theirs = others["eRm_score_theta"]
    ours = np.array(table["ability_ml"])[1:-1]
    away = ours - np.array(theirs["theta"])[1:-1]
    np.testing.assert_allclose(away - away.mean(), 0, atol=ERM)
    assert abs(away.mean() + erm_shift(fit, others, name)) < ERM


def test_item_fit(case):
    fit, others, _ = case
    theirs = others["eRm_itemfit"]
    study = fit.analyse(fit_table(case))
    ours = study._item_statistics()
    for name, column in (
        ("outfit", "outfit_msq"),
        ("infit", "infit_msq"),
        ("outfit_z", "outfit_t"),
        ("infit_z", "infit_t"),
    ):
        np.testing.assert_allclose(ours[name], theirs[column], rtol=0, atol=ERM)
    assert ours["n"].tolist() == theirs["df"]
    assert abs(study.reliability("ml").sep_rel - others["eRm_SepRel"]) < ERM


def fit_table(case):
    return pl.read_csv(HERE / f"{case[1]['dataset']}.csv")
