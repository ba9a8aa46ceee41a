"""What the summary says of fit: the power where there is none, and never that all is well when a check alarms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses
from spectral_irt.inference.fit.item_fit import detectable, verdict

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def study_of(responses: Responses) -> si.Analysis:
    return si.SpectralRasch().fit(responses).analyse(responses)


def test_with_a_dozen_answers_an_item_misfit_cannot_be_seen() -> None:
    study = study_of(si.simulate.rasch(24, 30, design="sampled", p=0.5, seed=1).responses)
    text = " ".join(study.summary().split())
    assert "with 12 answers per item, misfit could not be seen" in text
    assert "too few people or items to see a second dimension or dependent items" in text
    assert "no misfit of" not in text
    note = next(finding for finding in study.findings() if finding.code == "misfit_not_visible")
    assert note.severity == "note"
    assert "About" in note.remedy


@pytest.mark.slow
def test_detectable_misfit_is_detected_four_times_in_five() -> None:
    """The error of the infit under the model is that of simulation, so that the limit means what it says."""
    infit, errors = [], []
    beta = np.linspace(-1.5, 1.5, 15)
    for seed in range(60):
        data = si.simulate.rasch(300, 15, difficulty=beta, seed=seed).responses
        found = study_of(data)._conditional()
        infit.append(found["infit"])
        errors.append(found["infit_se"])
    ratio = np.std(infit, axis=0) / np.mean(errors, axis=0)
    assert 0.85 < np.median(ratio) < 1.15
    assert detectable(np.array([0.1, np.nan])).tolist()[0] == pytest.approx(0.1 * (2.5758 + 0.8416), abs=1e-4)


def test_nothing_is_well_when_a_check_alarms() -> None:
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(2000, 2))
    x = rng.random((2000, 20)) < 1 / (1 + np.exp(rng.normal(size=20) - theta[:, np.arange(20) % 2]))
    study = study_of(Responses.from_wide(x.astype(float)))
    text = " ".join(study.summary().split())
    assert "more than one dimension (p < 0.001)" in text
    assert "no misfit of items" not in text
    assert "no second dimension" not in text
    assert "More than one dimension: a residual contrast" in text
    record = study.record()
    assert record["fit_checks"]["shared"]["contrast_p"] < 0.001
    assert record["fit_checks"]["level_each"] == 0.01
    assert {"dependent_items", "second_dimension"} <= {finding["code"] for finding in record["findings"]}


def test_two_items_cannot_misfit_and_items_of_the_prior_make_nobody_erratic() -> None:
    rng = np.random.default_rng(0)
    x = (rng.random((300, 12)) < 1 / (1 + np.exp(rng.normal(size=12) - rng.normal(size=(300, 1))))).astype(float)
    assert study_of(Responses.from_wide(x[:, :2])).checks().sentence().startswith("no item has answers that could")
    without = study_of(Responses.from_wide(x)).checks().people
    x = np.column_stack([x, np.ones((300, 4))])  # right for everyone: difficulties from the prior
    found = study_of(Responses.from_wide(x)).checks()
    assert found.people is not None
    assert without is not None
    assert not found.findings
    assert found.people.share == pytest.approx(without.share, abs=0.01)


def test_good_data_have_every_answer_and_no_warning() -> None:
    study = study_of(si.simulate.rasch(1500, 20, seed=1).responses)
    text = " ".join(study.summary().split())
    for said in (
        "no misfit of items seen (conditional",
        "low and high scorers seen (p = ",
        "no second dimension seen (p = ",
    ):
        assert said in text
    assert "no local dependence seen" in text
    assert "person misfit" in text
    assert not study.checks().findings


def test_slight_misfit_is_said() -> None:
    study = study_of(si.simulate.rasch(20_000, 8, slopes=[1.15, 0.87, 1, 1, 1, 1, 1, 1], seed=1).responses)
    columns = columns_of(study.item_fit)
    assert not (columns["misfit"] != "").any()
    assert "off by less than 0.1 beyond chance" in study.checks().sentence()


@pytest.mark.slow
def test_bootstrap_counts_what_chance_puts_outside() -> None:
    study = study_of(si.simulate.rasch(400, 40, seed=3).responses)
    text = study.checks(study.parts(fit=True, bootstrap=60)).sentence()
    assert "outside their own 95% limits, where chance puts 2.0" in text
    columns = columns_of(study.item_fit, bootstrap=60)
    outside = (columns["infit_conditional"] < columns["infit_conditional_low"]) | (
        columns["infit_conditional"] > columns["infit_conditional_high"]
    )
    assert f", {outside.sum()} outside their own" in text
    assert np.all(columns["misfit_p"][columns["misfit"] == ""] >= 0.01)


@pytest.mark.slow
def test_the_benchmark_on_fewer_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trouble is named in every one of 8 data sets, and 60 good ones have 5% alarms, at most 5% + 3 errors."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import what_fits

    for name in ("two abilities, r = 0.5", "5 testlets of 4, sd 1", "3 pairs, copied by 50%"):
        make, wanted = what_fits.BAD[name]
        found, _, _ = what_fits.measure(make, 8, seed=1)
        assert all(codes.keys() & set(wanted) for codes in found), name
    alarms = []
    for name in ("5 items, 500 people", "20 items, 2,000 people", "vertical, 4 grades, 2,000 people"):
        found, fitting, checking = what_fits.measure(what_fits.GOOD[name], 20, seed=1)
        assert checking < fitting + 1
        alarms += [bool(codes.keys() & set(what_fits.WARNINGS)) for codes in found]
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_a_misfit_that_does_not_matter_is_none() -> None:
    """With very many people every infit is beyond chance; off by less than a tenth, none matters."""
    infit = np.array([1.05, 1.15])
    assert verdict(np.full(2, 1e-9), infit - 1, infit)["misfit"].tolist() == ["", "underfit"]
