"""Change between waves: exact conditional likelihood by code of its own, and eRm's LLRA."""

import json
from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si

HERE = Path(__file__).parent
GOLD = json.loads((HERE / "change_gold.json").read_text())
ERM_STOPS = 2e-4  # of 20 effects one is 1.1e-4 off, where eRm's log-likelihood is 1e-7 below the maximum
ERM = json.loads((HERE / "change.json").read_text())


@pytest.fixture(scope="module")
def responses():
    return si.read(HERE / "change.csv", facets=["wave"], people=["arm"])


@pytest.fixture(scope="module")
def found(responses):
    return si.change(responses, "wave", arm="arm", each_item=True).change


@pytest.mark.parametrize("model", ["one_ability", "each_item"])
def test_estimates_and_both_errors(found, model):
    fit = getattr(found, model)
    gold = GOLD[model]
    names = {"trend.t2": (0, 1, -1), "trend.t3": (0, 2, -1), "treated.t2": (1, 1, 0), "treated.t3": (1, 2, 0)}
    for name, key in names.items():
        k = [(each.arm, each.wave, each.against) for each in fit.contrasts].index(key)
        n = gold["names"].index(name)
        assert fit.value[k] == pytest.approx(gold["eta"][n], abs=1e-6)
        assert fit.se_model[k] == pytest.approx(gold["se_model"][n], abs=1e-6)
        assert fit.se[k] == pytest.approx(gold["se_sandwich"][n], abs=1e-6)
    assert fit.loglik == pytest.approx(gold["loglik"], abs=1e-6)


def test_difficulties(found):
    gold = GOLD["one_ability"]
    np.testing.assert_allclose(found.calibration.difficulty[:4], gold["eta"][:4], atol=1e-6)
    np.testing.assert_allclose(found.calibration.se[:4], gold["se_sandwich"][:4], atol=1e-6)


def test_effects_for_each_item_are_those_of_erm(found):
    erm = ERM["item_specific"]
    of_name = dict(zip(erm["names"], erm["eta"], strict=True))
    error_of_name = dict(zip(erm["names"], erm["se"], strict=True))
    fit = found.item_effects
    seen = 0
    for k, each in enumerate(fit.contrasts):
        what = {(0, -1): "trend", (1, 0): "treated"}.get((each.arm, each.against))
        if what is None:
            continue
        name = f"{what}.I{each.item + 1}.t{each.wave + 1}"
        assert fit.value[k] == pytest.approx(of_name[name], abs=ERM_STOPS)
        assert fit.se_model[k] == pytest.approx(error_of_name[name], abs=1e-4)
        seen += 1
    assert seen == 20
    assert erm["loglik"] <= fit.loglik <= erm["loglik"] + 1e-6


def test_likelihood_ratio_of_erm(found):
    statistic, df, p = found.likelihood_ratio
    assert statistic == pytest.approx(ERM["lr"], abs=1e-4)
    assert df == ERM["lr_df"]
    assert p == pytest.approx(0.592205, abs=1e-5)


def test_a_formula_has_the_same_numbers(responses, found):
    """`items + wave + wave:arm`: a column about persons meets a facet within persons."""
    fit = si.SpectralRasch(regularization=0).fit(responses, design=si.LinearDesign("items + wave + wave:arm"))
    effect = dict(zip(map(str, fit.effects_["level"]), fit.effects_["effect"], strict=True))
    change = -(effect["3"] + effect["3 × control"] - effect["1"] - effect["1 × control"])
    assert change == pytest.approx(GOLD["one_ability"]["eta"][5], abs=1e-6)
    difference = effect["3 × control"] - effect["1 × control"] - effect["3 × treated"] + effect["1 × treated"]
    assert difference == pytest.approx(GOLD["one_ability"]["eta"][7], abs=1e-6)
    assert fit.analyse(responses).facets == ("wave",)
