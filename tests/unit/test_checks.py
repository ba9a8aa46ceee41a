"""What the summary says of fit: its power, likely causes, and never that all is well when a check alarms."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn, drawn_categories
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses
from spectral_irt.inference.fit.item_fit import detectable, verdict

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def study_of(responses):
    return si.SpectralRasch().fit(responses).analyse(responses)


def test_with_a_dozen_answers_an_item_misfit_cannot_be_seen():
    study = study_of(si.simulate.rasch(24, 30, design="sampled", p=0.5, seed=1).responses)
    text = " ".join(study.summary().split())
    assert "with 12 answers per item, misfit could not be seen" in text
    assert "too few people or items to see a second dimension or dependent items" in text
    assert "no misfit of" not in text
    note = next(finding for finding in study.findings() if finding.code == "misfit_not_visible")
    assert note.severity == "note"
    assert "About" in note.remedy


def test_detectable_misfit_is_detected_four_times_in_five():
    """The error of the infit under the model is that of simulation, so that the limit means what it says."""
    beta = np.linspace(-1.5, 1.5, 15)
    data = [si.simulate.rasch(300, 15, difficulty=beta, seed=seed).responses for seed in range(60)]
    found = [study_of(answers)._conditional() for answers in data]
    ratio = np.std([each["infit"] for each in found], axis=0) / np.mean([each["infit_se"] for each in found], axis=0)
    assert 0.85 < np.median(ratio) < 1.15
    assert detectable(np.array([0.1, np.nan])).tolist()[0] == pytest.approx(0.1 * (2.5758 + 0.8416), abs=1e-4)


def test_nothing_is_well_when_a_check_alarms():
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(2000, 2))
    study = study_of(Responses.from_wide(drawn(rng, theta[:, np.arange(20) % 2] - rng.normal(size=20))))
    text = " ".join(study.summary().split())
    assert "more than one dimension (p < 0.001)" in text
    assert "no misfit of items" not in text
    assert "no second dimension" not in text
    assert "More than one dimension: a residual contrast" in text
    record = study.record()
    assert record["fit_checks"]["shared"]["contrast_p"] < 0.001
    assert record["fit_checks"]["level_each"] == 0.01
    assert {"dependent_items", "second_dimension"} <= {finding["code"] for finding in record["findings"]}


def test_two_items_cannot_misfit_and_items_of_the_prior_make_nobody_erratic():
    rng = np.random.default_rng(0)
    x = drawn(rng, rng.normal(size=(300, 1)) - rng.normal(size=12))
    assert study_of(Responses.from_wide(x[:, :2])).checks().sentence().startswith("no item has answers that could")
    without = study_of(Responses.from_wide(x)).checks().people
    x = np.column_stack([x, np.ones((300, 4))])  # right for everyone: difficulties from the prior
    found = study_of(Responses.from_wide(x)).checks()
    assert not found.findings
    assert found.people.share == pytest.approx(without.share, abs=0.01)


def test_good_data_have_every_answer_and_no_warning():
    study = study_of(si.simulate.rasch(1500, 20, seed=1).responses)
    text = " ".join(study.summary().split())
    assert "no misfit of items seen (conditional" in text
    for what in ("difference between low and high scorers", "second dimension", "local dependence"):
        assert f"no {what} significant at 1% (p = " in text
    assert re.search(r"\d+ of 1,\d\d\d persons misfit \(\d+ expected; not significant at 1%, p = ", text)
    assert not study.checks().findings


def test_slight_misfit_is_said_and_does_not_matter():
    study = study_of(si.simulate.rasch(20_000, 8, slopes=[1.15, 0.87, 1, 1, 1, 1, 1, 1], seed=1).responses)
    columns = columns_of(study.item_fit)
    assert not (columns["misfit"] != "").any()
    assert "significantly off 1, by less than 0.1)" in study.checks().sentence()
    infit = np.array([1.05, 1.15])
    assert verdict(np.full(2, 1e-9), infit - 1, infit)["misfit"].tolist() == ["", "underfit"]


def test_draws_count_what_chance_puts_outside():
    study = study_of(si.simulate.rasch(400, 40, seed=3).responses)
    text = study.checks(study.parts(fit=True, critical=199)).sentence()
    assert "outside their own 95% limits, where chance puts 2.0" in text
    columns = columns_of(study.item_fit, critical=199)
    outside = (columns["infit_conditional"] < columns["infit_conditional_low"]) | (
        columns["infit_conditional"] > columns["infit_conditional_high"]
    )
    assert f", {outside.sum()} outside their own" in text
    assert np.all(columns["misfit_p"][columns["misfit"] == ""] >= 0.01)


def test_the_benchmark_on_fewer_data_sets(monkeypatch):
    """The trouble is named, and 14 good data sets have 5% alarms, at most 5% + 3 errors."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import what_fits

    for name in ("two abilities, r = 0.5", "5 testlets of 4, sd 1", "3 pairs, copied by 50%"):
        make, wanted = what_fits.BAD[name]
        found, _, _ = what_fits.measure(make, 1, seed=1)
        assert all(codes.keys() & set(wanted) for codes in found), name
    alarms = []
    for name, n_data_sets in (
        ("5 items, 500 people", 6),
        ("20 items, 500 people", 6),
        ("vertical, 4 grades, 2,000 people", 2),
    ):
        found, _, _ = what_fits.measure(what_fits.GOOD[name], n_data_sets, seed=1)
        alarms += [bool(codes.keys() & set(what_fits.WARNINGS)) for codes in found]
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 14)


def test_unequal_slopes_of_ordered_answers_are_found_and_equal_ones_are_not():
    rng = np.random.default_rng(3)
    theta, slope = rng.normal(0, 1.3, (1000, 1)), np.tile([0.4, 1.0, 1.8, 1.0], 2)
    passed = np.cumsum(np.sort(rng.normal(0, 1, (8, 3)), axis=1), axis=1)
    weights = (slope * theta)[:, :, None] * np.arange(4) - np.pad(passed, ((0, 0), (1, 0)))
    table = drawn_categories(rng, weights)
    study = si.SpectralPartialCredit().fit(table).analyse(table)
    assert study.quick_model_test().p < 1e-6
    assert study.model_test("mean").p < 1e-6
    assert study.checks().alarmed
    assert {0, 4} <= set(np.flatnonzero(columns_of(study.item_fit)["misfit"] == "underfit"))
    good = si.simulate.partial_credit(1000, 8, categories=4, seed=1).responses
    checks = si.SpectralPartialCredit().fit(good).analyse(good).checks()
    assert not checks.alarmed
    assert "no misfit of items seen" in checks.sentence()


def codes(responses):
    return {each.code for each in study_of(responses).checks().findings}


def test_unequal_slopes_are_seen_and_named():
    rng = np.random.default_rng(1)
    named = codes(si.simulate.rasch(2000, 30, slopes=np.exp(rng.normal(0, 0.5, 30)), seed=1).responses)
    assert {"misfitting_items", "unequal_slopes"} <= named
    assert "guessing" not in named


def test_guessing_is_named():
    rng = np.random.default_rng(2)
    p = 0.25 + 0.75 / (1 + np.exp(rng.normal(0.5, 1, 30) - rng.normal(0, 1.2, (2000, 1))))
    found = codes(Responses.from_wide((rng.random(p.shape) < p).astype(float)))
    assert "guessing" in found
    assert "unequal_slopes" not in found


def test_speed_is_named_and_answers_not_reached_as_missing_are_fine():
    rng = np.random.default_rng(4)
    x = drawn(rng, rng.normal(size=(2000, 1)) - rng.normal(size=30))
    stop = np.where(rng.random(2000) < 0.2, rng.integers(20, 30, 2000), 30)
    reached = np.arange(30) < stop[:, None]
    assert {"dependent_items", "last_items"} <= codes(Responses.from_wide(np.where(reached, x, 0.0)))
    assert not codes(Responses.from_wide(np.where(reached, x, np.nan)))


def test_a_displaced_anchor_is_not_judged_before_it_is_set_free():
    """Its mean square is about a location that it no longer has: 2.17 here, of an item that fits."""
    responses = si.simulate.rasch(800, 12, seed=1).responses
    calibration = si.SpectralRasch().fit(responses).calibration_
    anchors = dict(zip(calibration.labels.tolist(), calibration.difficulty.tolist(), strict=True))
    drifted = calibration.labels[3]
    anchors[drifted] += 1.2
    study = si.AnchoredRasch(anchors).fit(responses).analyse(responses)
    columns = columns_of(study.item_fit)
    assert columns["infit_conditional"][3] > 2
    assert np.flatnonzero(np.isnan(columns["misfit_p"])).tolist() == [3]
    assert (columns["misfit"] == "").all()
    assert "(conditional infit 0.96 to 1.09; 1 displaced anchor not judged)" in study.checks().sentence()
