"""A calibration records its model, its likelihood and its rating scales, and every analysis goes by that record."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import simulate
from spectral_irt.bank.storage import bank_of, record_of, tables_of
from spectral_irt.data.block import Floats
from spectral_irt.inference.groups.cluster_errors import cluster_covariance

SCALES = ("short", "short", "short", "short", "long", "long", "long", "long")
OFFSETS = {"short": [-0.8, 0.8], "long": [-1.5, -0.4, 0.4, 1.5]}


def two_scales(n_persons: int, seed: int) -> Floats:
    """Answers to eight items on two rating scales, of three and of five categories."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1, n_persons)
    answers = np.empty((n_persons, len(SCALES)))
    for item, (location, scale) in enumerate(zip(np.linspace(-1, 1, len(SCALES)), SCALES, strict=True)):
        thresholds = location + np.array(OFFSETS[scale])
        categories = np.arange(len(thresholds) + 1)
        p = np.exp(categories * ability[:, None] - np.concatenate([[0], np.cumsum(thresholds)]))
        p /= p.sum(axis=1, keepdims=True)
        answers[:, item] = (rng.random(n_persons)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return answers


@pytest.mark.parametrize(
    ("estimator", "model", "likelihood"),
    [
        (si.SpectralRasch(), "rasch", "conditional"),
        (si.MarginalRasch(), "rasch", "marginal"),
        (si.JointRasch(), "rasch", "joint"),
        (si.PairwiseRasch(), "rasch", "pairwise"),
        (si.SpectralPartialCredit(), "pcm", "conditional"),
        (si.MarginalPartialCredit(), "pcm", "marginal"),
        (si.SpectralRatingScale(), "rsm", "conditional"),
        (si.ConditionalRatingScale(), "rsm", "conditional"),
        (si.MarginalRatingScale(), "rsm", "marginal"),
    ],
)
def test_what_was_fitted_is_recorded(estimator: si.SpectralRasch, model: str, likelihood: str) -> None:
    ordered = model != "rasch"
    data = simulate.rating_scale(300, 5, categories=3, seed=1) if ordered else simulate.rasch(300, 5, seed=1)
    calibration = estimator.fit(data.responses).calibration_
    assert (calibration.model, calibration.likelihood) == (model, likelihood)
    assert (calibration.scale_of_item is not None) == (model == "rsm")


def test_an_adaptive_fit_records_the_marginal_likelihood() -> None:
    fit = si.SpectralRatingScale().fit(simulate.rating_scale(300, 5, categories=3, seed=1).responses, design="adaptive")
    assert (fit.calibration_.model, fit.calibration_.likelihood) == ("rsm", "marginal")


def test_anchored_ordered_answers_are_a_partial_credit_model() -> None:
    responses = simulate.rating_scale(400, 5, categories=3, seed=1).responses
    bank = si.SpectralRatingScale().fit(responses).analyse(responses).to_bank()
    assert si.anchored_fit(responses, bank).calibration_.model == "pcm"


@pytest.mark.parametrize("given", [list(SCALES), np.array(SCALES), dict(enumerate(SCALES))])
def test_rating_scales_are_recorded_however_they_are_given(given: object) -> None:
    calibration = si.SpectralRatingScale(groups=given).fit(two_scales(300, 1)).calibration_
    assert calibration.scale_of_item is not None
    assert calibration.scale_of_item.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    json.dumps(dict(calibration.provenance.settings))  # a record can hold them


def test_groups_of_people_are_compared_on_each_rating_scale() -> None:
    answers = two_scales(600, 2)
    half = np.array(["a", "b"] * 300)
    study = si.SpectralRatingScale(groups=list(SCALES)).fit(answers).analyse(answers)
    contrast = study.model_test(half).columns["contrast"]
    parts = [si.ConditionalRatingScale(groups=list(SCALES)).fit(answers[half == name]) for name in ("a", "b")]
    np.testing.assert_allclose(contrast, parts[1].difficulty_ - parts[0].difficulty_, atol=1e-6)
    np.testing.assert_allclose(study.model_test(half).columns["se"], np.hypot(parts[0].se_, parts[1].se_), rtol=1e-4)
    locations, offsets = 8 - 1, (2 - 1) + (4 - 1)
    assert study.model_test(half).groups.n_parameters == locations + offsets


def test_people_who_are_clusters_of_their_own_give_the_sandwich_of_each_rating_scale() -> None:
    answers = two_scales(500, 3)
    fit = si.ConditionalRatingScale(groups=list(SCALES), se="sandwich").fit(answers)
    study = fit.analyse(answers)
    clustered = cluster_covariance(study.calibration, study.responses, np.arange(500))
    np.testing.assert_allclose(clustered.se, np.sqrt(500 / 499) * fit.se_, rtol=1e-6)


def test_every_question_is_answered_about_several_rating_scales(tmp_path) -> None:
    answers = two_scales(400, 4)
    group = np.array(["a", "b"] * 200)
    study = si.SpectralRatingScale(groups=dict(enumerate(SCALES))).fit(answers).analyse(answers)
    assert "Rating scale model" in study.summary()
    assert study.quick_model_test() is not None
    assert len(study.item_fit()) == len(SCALES)
    assert len(study.clustered(np.arange(400) // 10).calibration.items()) == len(SCALES)
    assert len(study.dif(group).table()) > 0
    assert len(study.ranking()) == len(SCALES)
    assert np.isfinite(study.equate([0, 1, 4], [2, 3, 5]).se[0][1:-1]).all()
    assert "groups=" in study.report(tmp_path / "report.html").read_text(encoding="utf-8")
    study.to_bank().save(tmp_path / "bank")
    bank = si.Bank.load(tmp_path / "bank")
    assert bank.calibration.model == "rsm"
    assert bank.calibration.rating_scales == study.calibration.rating_scales
    again = si.Analysis(bank.calibration, answers)
    np.testing.assert_allclose(again.item_fit()["infit_conditional_z"], study.item_fit()["infit_conditional_z"])


def test_an_updated_rating_scale_is_a_partial_credit_model() -> None:
    answers = two_scales(600, 5)
    study = si.SpectralRatingScale(groups=list(SCALES)).fit(answers[:300]).analyse(answers[:300])
    bank = study.to_bank().update(answers[300:])
    assert (bank.calibration.model, bank.calibration.scale_of_item) == ("pcm", None)


@pytest.mark.parametrize(
    ("estimator", "groups", "model", "likelihood"),
    [
        ("SpectralRatingScale", None, "rsm", "conditional"),
        ("SpectralRatingScale", "['a', 'a', 'b', 'b']", "pcm", "conditional"),  # of which nobody knows the items
        ("MarginalPartialCredit", None, "pcm", "marginal"),
    ],
)
def test_a_bank_without_a_model_goes_by_its_estimator(
    estimator: str, groups: str | None, model: str, likelihood: str
) -> None:
    responses = simulate.rating_scale(300, 4, categories=3, seed=1).responses
    bank = si.SpectralRatingScale().fit(responses).analyse(responses).to_bank()
    record = {name: value for name, value in record_of(bank).items() if name != "model"}
    record |= {"estimator": estimator, "settings": {"groups": groups}}
    calibration = bank_of(record, tables_of(bank), ("", "")).calibration
    assert (calibration.model, calibration.likelihood) == (model, likelihood)
    assert (calibration.scale_of_item is not None) == (model == "rsm")


def test_rating_scales_of_other_items_are_refused() -> None:
    responses = simulate.rating_scale(300, 4, categories=3, seed=1).responses
    bank = si.SpectralRatingScale().fit(responses).analyse(responses).to_bank()
    record = record_of(bank)
    record["model"] = {**record["model"], "scale_of_item": [0, 0]}
    with pytest.raises(ValueError, match="rating scales"):
        bank_of(record, tables_of(bank), ("", ""))
    assert replace(bank).calibration.model == "rsm"
