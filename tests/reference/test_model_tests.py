"""Tests of the model against eRm and sirt (see README.md beside the data).

Tolerances: eRm stops within 8e-5 of the maximum in the groups' difficulties, which moves the log-likelihood by 1e-7 and
a Wald z by up to 3e-4 (a difficulty over its standard error); given eRm's own difficulties z agrees to the accuracy of
its numerical Hessian, 7e-5 (the exact information at those difficulties is no closer).
sirt's Q3 is reproduced to rounding.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt import ConditionalRasch, datasets
from spectral_irt.data import Responses, as_responses
from spectral_irt.errors import DesignError
from spectral_irt.inference.dimensions.q3 import correlations, residual_matrices
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.groups.martin_loef import martin_loef
from spectral_irt.inference.groups.model_tests import andersen, compare_groups
from spectral_irt.persons import abilities

HERE = Path(__file__).parent
SETS = ["lsat6", "test15", "missing12", "booklets24"]
LR, DIFFICULTY, Z, Z_GIVEN, Q3 = 1e-6, 1e-4, 4e-4, 1e-4, 1e-9
LR_ORDERED = 1e-4  # eRm maximizes that of ordered answers to about 1e-6
SPLITS = {"median": "median", "mean": "mean", "scores": "all.r"}
COMPARED = [
    ("lsat6", "mean"),
    ("lsat6", "scores"),
    ("test15", "median"),
    ("test15", "mean"),
    ("missing12", "median"),
    ("missing12", "mean"),
    ("booklets24", "median"),
    ("booklets24", "mean"),
]


def answers(name):
    return pl.read_csv(HERE / f"{name}.csv")


def reference(name):
    return json.loads((HERE / f"{name}.json").read_text())


def difficulties(block, items):
    """eRm's difficulties, groups x items."""
    return np.array([[group[item] for item in items] for group in block["difficulty_by_group"].values()])


@pytest.mark.parametrize("name", ["credit6_pcm", "scale8_pcm"])
def test_andersen_of_partial_credit(name):
    theirs = reference(name)
    ours = andersen(Responses.from_wide(answers(theirs["dataset"])))
    assert ours.statistic == pytest.approx(theirs["eRm_LRtest_median"]["LR"], abs=LR_ORDERED)
    assert ours.df == theirs["eRm_LRtest_median"]["df"]
    assert ours.p == pytest.approx(theirs["eRm_LRtest_median"]["p"], abs=LR_ORDERED)
    assert ours.findings[0].code == "items_not_compared"


def test_andersen_of_a_rating_scale_on_the_items_that_erm_keeps():
    data, theirs = Responses.from_wide(answers("scale8")), reference("scale8_rsm")["eRm_LRtest_median"]
    half = divide(data, "median").group
    kept = np.isin(data.items, andersen(data).groups.items)
    ours = andersen(data.take_items(kept), half, model="rsm")
    assert ours.statistic == pytest.approx(theirs["LR"], abs=LR_ORDERED)
    assert ours.df == theirs["df"]
    assert andersen(data, model="rsm").df == 10  # all eight items, since none needs all categories in each half


@pytest.mark.parametrize(("name", "split"), COMPARED)
def test_andersen(name, split):
    theirs = reference(name)[f"eRm_LRtest_{SPLITS[split]}"]
    ours = andersen(answers(name), split)
    assert ours.df == theirs["df"]
    assert ours.statistic == pytest.approx(theirs["LR"], abs=LR)
    assert ours.p == pytest.approx(theirs["p"], abs=LR)
    np.testing.assert_allclose(ours.groups.loglik, theirs["loglik_by_group"], atol=LR)
    np.testing.assert_allclose(ours.groups.difficulty, difficulties(theirs, ours.groups.items), rtol=0, atol=DIFFICULTY)


def test_andersen_compares_every_split_that_erm_could():
    found = {(name, ours) for name in SETS for ours, erm in SPLITS.items() if f"eRm_LRtest_{erm}" in reference(name)}
    assert found == set(COMPARED)


def test_andersen_says_why_where_erm_gave_up():
    with pytest.raises(DesignError, match=r"in the group 'raw score > median' \(298 people\) no two items"):
        andersen(datasets.load_lsat(), "median")


@pytest.mark.parametrize("name", ["test15", "missing12", "booklets24"])
def test_wald(name):
    theirs = reference(name)["eRm_Waldtest_median"]
    data = answers(name)
    ours = ConditionalRasch().fit(data).analyse(data).model_test("median")
    assert ours.groups.items.tolist() == theirs["item"]
    np.testing.assert_allclose(ours.z, theirs["z"], rtol=0, atol=Z)
    np.testing.assert_allclose(ours.columns["p"], theirs["p"], rtol=0, atol=Z)
    given = difficulties(reference(name)["eRm_LRtest_median"], ours.groups.items)
    same = compare_groups(replace(ours.groups, difficulty=given))
    np.testing.assert_allclose(same.z, theirs["z"], rtol=0, atol=Z_GIVEN)


@pytest.mark.parametrize("name", ["lsat6", "test15"])
def test_martin_loef(name):
    theirs = reference(name)["eRm_MLoef_median"]
    ours = martin_loef(answers(name))
    assert ours.df == theirs["df"]
    assert ours.statistic == pytest.approx(theirs["LR"], abs=LR)
    assert ours.p == pytest.approx(theirs["p"], abs=LR)


@pytest.mark.parametrize("name", SETS)
def test_q3(name):
    """Given psychotools' difficulties, at our own Warm abilities."""
    others = reference(name)
    data = as_responses(answers(name))
    beta = np.array([others["psychotools_raschmodel"]["difficulty_sum0"][item] for item in data.items])
    matrices = residual_matrices(data, beta, abilities(data, beta).ability, standardized=False)
    ours = correlations(matrices, min_people=4)[0]
    np.fill_diagonal(ours, 1)
    theirs = others["sirt_Q3_wle"]
    np.testing.assert_allclose(ours, np.array(theirs["Q3_matrix"], dtype=float), rtol=0, atol=Q3)
    assert np.nanmean(ours[np.triu_indices(len(ours), 1)]) == pytest.approx(theirs["Q3_mean"], abs=Q3)
