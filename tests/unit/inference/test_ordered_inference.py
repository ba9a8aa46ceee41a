"""Tests of the model, groups, dependence and classical statistics of ordered answers: other programs, brute force,
the binary case, and power."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import (
    ConditionalPartialCredit,
    ConditionalRatingScale,
    SpectralPartialCredit,
    SpectralRasch,
    SpectralRatingScale,
    simulate,
)
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.andersen import andersen
from spectral_irt.inference.groups.calibrations import GroupModel, calibrate_groups, locations
from spectral_irt.inference.groups.grouping import by_label, divide
from spectral_irt.inference.groups.mantel_haenszel import mantel_haenszel
from spectral_irt.inference.prediction import compare, marginal_categories

REFERENCE = Path(__file__).parents[2] / "reference"


def reference(name):
    data = json.loads((REFERENCE / f"{name}.json").read_text())
    return Responses.from_wide(pl.read_csv(REFERENCE / f"{data['dataset']}.csv")), data["eRm_LRtest_median"]


@pytest.fixture(scope="module")
def study():
    """Ten items in up to four categories; the first is a logit harder for "b", the second has one threshold moved."""
    rng = np.random.default_rng(8)
    group = np.array(["a", "b"])[np.arange(1600) % 2]
    thresholds = np.sort(rng.normal(0, 0.8, (10, 3)), axis=1) + np.linspace(-0.8, 0.8, 10)[:, None]
    moved = thresholds.copy()
    moved[0] += 1.0
    moved[1] += [-1.0, 0.0, 1.0]
    ability = rng.normal(0, 1.3, 1600)
    halves = [
        simulate.partial_credit(
            800, thresholds=list(beta), ability=ability[group == label], seed=seed
        ).responses.to_dense()
        for seed, (label, beta) in enumerate((("a", thresholds), ("b", moved)))
    ]
    table = np.empty((1600, 10))
    table[group == "a"], table[group == "b"] = halves
    frame = pl.DataFrame({f"q{k + 1}": table[:, k].astype(int) for k in range(10)})
    answers = Responses.from_wide(frame, ordered=True)
    return SpectralPartialCredit().fit(answers).analyse(answers), group


# ------------------------------------------------------------------------------------------ tests of the model


@pytest.mark.parametrize("name", ["credit6_pcm", "scale8_pcm"])
def test_andersen_is_that_of_erm(name):
    answers, theirs = reference(name)
    ours = andersen(answers)
    assert abs(ours.statistic - theirs["LR"]) < 1e-4  # both maximize to about 1e-6
    assert ours.df == theirs["df"]
    assert abs(ours.p - theirs["p"]) < 1e-4
    assert ours.findings[0].code == "items_not_compared"


def test_andersen_of_a_rating_scale_is_that_of_erm_on_the_items_that_it_keeps():
    answers, theirs = reference("scale8_rsm")
    half = divide(answers, "median").group
    kept = np.isin(answers.items, andersen(answers).groups.items)
    ours = andersen(answers.take_items(kept), half, model="rsm")
    assert abs(ours.statistic - theirs["LR"]) < 1e-4
    assert ours.df == theirs["df"]
    assert andersen(answers, model="rsm").df == 10  # all eight items, since none needs all categories in each half


@pytest.mark.slow
def test_reliability_is_that_of_right_and_wrong_answers():
    data = simulate.rasch(500, 12, seed=4).responses
    fit = SpectralRasch().fit(data)
    binary, ordered = fit.analyse(data), SpectralPartialCredit(regularization=0).fit(data).analyse(data)
    assert abs(ordered.reliability().eap_reliability - binary.reliability().eap_reliability) < 2e-3
    assert abs(ordered.reliability().kr20 - binary.reliability().kr20) < 1e-12


@pytest.mark.slow
def test_unequal_slopes_are_found_and_equal_ones_are_not():
    """Power: slopes of 0.4 and 1.8 among 1,000 people."""
    rng = np.random.default_rng(3)
    theta, slope = rng.normal(0, 1.3, 1000), np.tile([0.4, 1.0, 1.8, 1.0], 2)
    beta = np.sort(rng.normal(0, 1, (8, 3)), axis=1)
    table = np.empty((1000, 8))
    for i in range(8):
        x = np.concatenate([np.zeros((1000, 1)), np.cumsum(slope[i] * theta[:, None] - beta[i], axis=1)], axis=1)
        p = np.exp(x - x.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        table[:, i] = (rng.random(1000)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    study = SpectralPartialCredit().fit(table).analyse(table)
    assert study.quick_model_test().p < 1e-6
    assert study.model_test("mean").p < 1e-6
    checks = study.checks()
    assert checks.alarmed
    assert {0, 4} <= set(np.flatnonzero(columns_of(study.item_fit)["misfit"] == "underfit"))
    good = simulate.partial_credit(1000, 8, categories=4, seed=1).responses
    fitting = SpectralPartialCredit().fit(good).analyse(good)
    assert not fitting.checks().alarmed
    assert "no misfit of items seen" in fitting.checks().sentence()


@pytest.mark.slow
def test_wald_by_threshold(study):
    study, _ = study
    test = study.model_test("median")
    rows = test.threshold_table()
    assert rows.columns == ["item", "category", "contrast", "se", "z", "p"]
    assert test.df == rows.height - 1
    item = test.table().row(0, named=True)
    mine = rows.filter(pl.col("item") == item["item"])["contrast"].to_numpy()
    assert abs(mine.mean() - item["contrast"]) < 1e-10  # the location is the mean of the thresholds
    assert item["df"] == 3


# ------------------------------------------------------------------------------------------------- groups


def test_locations_solve_the_conditional_equations():
    data = simulate.partial_credit(400, 5, categories=4, seed=2)
    shape = data.thresholds - np.repeat(np.linspace(-1, 1, 5), 3)  # wrong locations, right distances
    found, covariance = locations(data.responses, shape)
    again, _ = locations(data.responses, data.thresholds)
    np.testing.assert_allclose(found, again, atol=1e-8)
    se = np.sqrt(np.diag(covariance))
    true = data.thresholds.reshape(5, 3).mean(axis=1)
    assert np.abs((found - (true - true.mean())) / se).max() < 4


@pytest.mark.slow
def test_items_that_differ_are_found_with_their_size(study):
    study, group = study
    found = study.dif(group)
    rows = found.table().to_dict(as_series=False)
    assert rows["flagged"][0]
    assert rows["class"][0] == "C"
    assert abs(rows["contrast"][0] - 1.0) < 4 * rows["se"][0]
    assert rows["item"][0] not in found.anchors
    np.testing.assert_allclose(rows["mh_delta"][0], rows["delta"][0], atol=3 * 2.35 * rows["se"][0])
    assert sum(rows["flagged"]) <= 2  # of nine without a difference, at 5% after adjustment
    assert rows["threshold_dif_p_bh"][1] < 1e-4
    assert min(rows["threshold_dif_p_bh"][2:]) > 0.01
    steps = found.thresholds().filter(pl.col("item") == "q2")["contrast"].to_numpy()
    assert np.abs(steps - [-1, 0, 1]).max() < 0.7
    assert {"differential_items", "threshold_dif"} <= {one.code for one in found.findings}


@pytest.mark.slow
def test_a_category_that_a_group_does_not_use_does_no_harm(study):
    study, group = study
    table = study.responses.to_dense()
    table[(group == "b") & (table[:, 4] == 3), 4] = 2
    answers = Responses.from_wide(table, ordered=True)
    found = SpectralPartialCredit().fit(answers).analyse(answers).dif(group)
    assert len(found.items["item"]) == 10
    assert 4 not in found.steps["item"]  # its thresholds have no estimate in b
    assert np.isnan(found.contrasts["threshold_dif_p"][4])


def test_mantel_by_hand():
    table = np.array([[2, 0], [1, 1], [0, 2], [2, 0], [0, 2], [1, 1.0]])
    focal = np.array([False, False, False, True, True, True])
    found = mantel_haenszel(Responses.from_wide(table, ordered=True), focal)
    # One stratum of six with total score 2: F = 3, E = 3 * 6 / 6, V = 3 * 3 * (6 * 10 - 36) / (36 * 5).
    np.testing.assert_allclose(found.log_odds, [0, 0], atol=1e-12)
    np.testing.assert_allclose(found.se, (216 / 180) ** -0.5)
    lower = mantel_haenszel(Responses.from_wide(table, ordered=True), np.array([False, True, True, False, True, False]))
    # F = 1 + 0 + 0 of the first item, E = 3: it is harder for them, and the second one easier.
    np.testing.assert_allclose(lower.log_odds, [2 / (216 / 180), -2 / (216 / 180)])


def test_groups_without_common_items_say_so():
    table = np.array([[0, 1], [1, 0], [2, 1], [1, 2], [0, 0], [2, 2.0]])
    answers = Responses.from_wide(np.concatenate([table, table[:, ::-1]]), ordered=True)
    with pytest.raises(DesignError, match=r"in the group '0'.*categories"):
        calibrate_groups(answers, by_label(answers, [0] * 2 + [1] * 10), GroupModel())


# --------------------------------------------------------------------------------------------- dependence


@pytest.mark.slow
def test_dependent_items_and_a_second_dimension_are_found():
    """Power: an item that copies another for half of the people; two abilities with a correlation of 0.6."""
    rng = np.random.default_rng(2)
    table = simulate.partial_credit(800, 10, categories=4, seed=6).responses.to_dense()
    copied = table.copy()
    copied[:400, 1] = copied[:400, 0]
    study = SpectralPartialCredit().fit(copied).analyse(copied)
    found = study.checks().shared
    assert found.dependent
    assert (found.first[0], found.second[0]) == (0, 1)
    pair = study.local_dependence().table().row(0, named=True)
    assert {pair["item_1"], pair["item_2"]} == {0, 1}
    assert pair["dependent"]
    common, own = rng.normal(size=(2, 800)), np.sqrt(0.4)
    abilities = [1.3 * (np.sqrt(0.6) * common[0] + own * rng.normal(size=800)) for _ in range(2)]
    two = [
        simulate.partial_credit(800, 8, categories=4, ability=each, seed=9).responses.to_dense() for each in abilities
    ]
    both = np.concatenate(two, axis=1)
    assert SpectralPartialCredit().fit(both).analyse(both).checks().shared.two_dimensions


# ---------------------------------------------------------------------------------------- classical statistics


def test_a_turned_item_is_named():
    table = simulate.partial_credit(400, 8, categories=4, seed=3).responses.to_dense()
    table[:, 5] = 3 - table[:, 5]
    study = SpectralPartialCredit().fit(table).analyse(table)
    found = [one for one in study.findings() if one.code == "reversed_items"]
    assert found[0].items == (5,)


@pytest.mark.slow
def test_unexpected_answers_and_ranks(study):
    study, _ = study
    table = study.unexpected_answers(per_person=1)
    row = table.row(0, named=True)
    assert abs(row["response"] - row["expected"]) > 1
    assert study.ranking().columns[0] == "rank"
    assert study.person_ranking().height == 1600
    rasch = study.rescale(500, 100).persons()
    assert abs(rasch["measure"].mean() - 500) < 1e-6


@pytest.mark.slow
def test_bootstrap_limits_of_fit():
    data = simulate.rating_scale(250, 6, categories=3, seed=5).responses
    study = SpectralRatingScale().fit(data).analyse(data)
    fit = study.item_fit(bootstrap=40)
    assert fit["infit_conditional_low"].max() < 1 < fit["infit_conditional_high"].min()


# -------------------------------------------------------------------------------------------------- prediction


@pytest.mark.slow
def test_held_out_answers_are_predicted():
    """By hand for one prior; and the true model predicts better than one that ties its thresholds."""
    data = simulate.partial_credit(900, thresholds=[[-1.5, 1.5], [0.8, -0.8], [-0.2, 0.2], [1.0, -1.0]], seed=4)
    nodes = np.linspace(-6, 6, 2001)
    weight = np.exp(-(nodes**2) / 2)
    x = np.stack([0 * nodes, nodes + 1.5, 2 * nodes], axis=1)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p = (weight[:, None] * p / p.sum(axis=1, keepdims=True)).sum(axis=0) / weight.sum()
    steps = data.responses.thresholds
    np.testing.assert_allclose(marginal_categories(steps, data.thresholds, 0.0, 1.0)[0], p, atol=1e-6)
    methods = {"pcm-cml": ConditionalPartialCredit, "rsm-cml": ConditionalRatingScale}
    rows = compare(data.responses, methods, seed=1)
    assert rows[0].loglik > rows[1].loglik + 0.01
    assert rows[0].distance_to_cml == 0
    assert rows[1].distance_to_cml > 0.3
