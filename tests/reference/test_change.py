"""Change between waves: exact conditional likelihood by code of its own, and eRm's LLRA."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import spectral_irt as si

HERE = Path(__file__).parent
GOLD = json.loads((HERE / "change_gold.json").read_text())
# Of 20 effects one of eRm is 1.1e-4 from the maximum, which enumeration finds below: there it stopped.
ERM_STOPS = 2e-4
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


def answers_of_item(item):
    """Answers in waves 1, 2, 3, NaN where there is none; whether treated; and how many persons have them."""
    table = pl.read_csv(HERE / "change.csv")
    waves = (
        table.pivot("wave", index=["person", "arm"], values=item).group_by("arm", "1", "2", "3").len().sort(pl.all())
    )
    answers = waves.select("1", "2", "3").to_numpy().astype(float)
    return answers, (waves["arm"] == "treated").to_numpy(), waves["len"].to_numpy()


def negative_log_likelihood(effects, answers, treated, persons):
    """Of one item given each person's total over the waves, by enumeration; its gradient. Effects: trend in waves 2 and
    3, treated in waves 2 and 3."""
    total = 0.0
    gradient = np.zeros(4)
    for x, is_treated, n in zip(answers, treated, persons, strict=True):
        met = np.isfinite(x)
        design = np.array([[0, 0, 0, 0], [1, 0, is_treated, 0], [0, 1, 0, is_treated]], dtype=float)[met]
        ways = np.array([way for way in product((0, 1), repeat=int(met.sum())) if sum(way) == x[met].sum()])
        logits = ways @ design @ effects
        p = np.exp(logits - logsumexp(logits))
        total += n * (x[met] @ design @ effects - logsumexp(logits))
        gradient += n * (x[met] - p @ ways) @ design
    return -total, -gradient


def test_effects_for_each_item_are_at_the_maximum(found):
    fit = found.item_effects
    erm = dict(zip(ERM["item_specific"]["names"], ERM["item_specific"]["eta"], strict=True))
    loglik = 0.0
    farthest = 0.0
    for item in range(5):
        answers = answers_of_item(f"i{item + 1}")
        options = {"gtol": 1e-9}
        maximum = minimize(negative_log_likelihood, np.zeros(4), args=answers, jac=True, method="BFGS", options=options)
        assert np.abs(maximum.jac).max() < 1e-6  # the least information is 2.4: within 4e-7
        loglik -= maximum.fun
        wanted = [(0, 1, -1), (0, 2, -1), (1, 1, 0), (1, 2, 0)]
        keys = [(each.arm, each.wave, each.against) if each.item == item else None for each in fit.contrasts]
        ours = [fit.value[keys.index(key)] for key in wanted]
        assert ours == pytest.approx(maximum.x.tolist(), abs=1e-6)
        names = [f"{what}.I{item + 1}.t{wave}" for what in ("trend", "treated") for wave in (2, 3)]
        farthest = max(farthest, np.abs(maximum.x - [erm[name] for name in names]).max())
    assert fit.loglik == pytest.approx(loglik, abs=1e-8)
    assert 1e-4 < farthest < ERM_STOPS  # eRm's own distance from the maximum


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
