"""Cut scores: classes, accuracy and consistency against enumeration, integration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from spectral_irt import Responses, SpectralRasch
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores.cut_scores import class_of, cut_columns, decisions
from spectral_irt.persons import abilities, score_abilities
from spectral_irt.persons.test_form import Form, Forms, find_forms

sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731


def taken(answers, beta):
    return Form.of(beta), answers


def drawn(theta, beta, rng):
    return (rng.random((len(theta), len(beta))) < sigmoid(theta[:, None] - beta)).astype(float)


def test_chances_of_scores_at_any_length():
    beta = np.random.default_rng(0).normal(size=1500)
    found = Form.of(beta).chances(np.array([-4.0, 0.0, 4.0]))
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(found @ np.arange(1501), sigmoid(np.array([[-4], [0], [4]]) - beta).sum(axis=1))


def test_accuracy_and_consistency_are_integrals():
    """Few people on the form: its population is the given one before the posteriors are taken; many scores drawn from
    that population leave it as it is, so that the integrals over it must come out."""
    beta, prior = np.linspace(-1.5, 1.5, 12), (0.3, 1.1)
    rng = np.random.default_rng(1)
    answers = Responses.from_wide(drawn(rng.normal(*prior, 100_000), beta, rng))
    found, forms = abilities(answers, beta), find_forms(answers, beta)
    table, cuts = score_abilities(beta)[0], np.array([-0.4, 0.9])
    accuracy, consistency, too_high, too_low = decisions(*taken(answers, beta), [cuts], found, forms, prior)[0]

    def chances(theta):
        each = Form.of(beta).chances(np.array([theta]))[0]
        return np.array([each[class_of(table, cuts) == k].sum() for k in range(3)])

    limits = [-6, *cuts, 6]
    density = lambda theta: norm.pdf(theta, *prior)  # noqa: E731
    right = sum(quad(lambda t, k=k: density(t) * chances(t)[k], limits[k], limits[k + 1])[0] for k in range(3))
    same = quad(lambda t: density(t) * (chances(t) ** 2).sum(), -6, 6, points=cuts)[0]
    assert [accuracy, consistency] == pytest.approx([right, same], abs=0.003)
    assert accuracy + too_high + too_low == pytest.approx(1, abs=1e-6)


def test_people_without_a_form_are_judged_alike():
    """The same people, once by the exact chances of scores, once as if nobody shared a form."""
    beta, prior = np.linspace(-2, 2, 25), (0.0, 1.0)
    rng = np.random.default_rng(4)
    answers = Responses.from_wide(drawn(rng.normal(*prior, 3000), beta, rng))
    cuts, nobody = np.array([-0.5, 0.8]), Forms((), np.full(3000, -1), 3000, 3000)
    for method in ("wle", "ml", "eap"):
        given = {"prior_mean": 0.0, "prior_sd": 1.0} if method == "eap" else {}
        found = abilities(answers, beta, method, **given)
        exact = decisions(*taken(answers, beta), [cuts], found, find_forms(answers, beta), prior)[0]
        approximate = decisions(*taken(answers, beta), [cuts], found, nobody, prior)[0]
        assert exact == pytest.approx(approximate, abs=0.012), method


def test_classes_and_errors_at_the_cuts():
    beta = np.linspace(-1, 1, 10)
    rng = np.random.default_rng(2)
    answers = Responses.from_wide(drawn(rng.normal(size=300), beta, rng))
    found = abilities(answers, beta)
    cuts = np.array([-0.5, 0.5])
    columns = cut_columns(*taken(answers, beta), cuts, found, find_forms(answers, beta), (0.0, 1.0))
    a = found.ability
    assert columns["n"].tolist() == [np.sum(a < -0.5), np.sum((a >= -0.5) & (a < 0.5)), np.sum(a >= 0.5), 300]
    p = sigmoid(cuts[:, None] - beta)
    np.testing.assert_allclose(columns["se"][1:3], 1 / np.sqrt((p * (1 - p)).sum(axis=1)))
    assert columns["class"].tolist() == ["1", "2", "3", "all"]
    assert (columns["accuracy"][1:3] > columns["accuracy"][3]).all()  # two classes are easier than three
    without = cut_columns(*taken(answers, beta), cuts, found, find_forms(answers, beta), None)
    assert np.isnan(without["accuracy"]).all()
    assert without["n"].tolist() == columns["n"].tolist()


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(6)
    answers = Responses.from_wide(drawn(rng.normal(size=400), np.linspace(-1.5, 1.5, 20), rng))
    return SpectralRasch().fit(answers).analyse(answers)


def test_a_raw_cut_is_the_ability_of_its_score(study):
    raw = study.cuts([8, 13], raw=True)
    scores = study.responses.scores
    assert raw["n"].to_list() == [np.sum(scores < 8), np.sum((scores >= 8) & (scores < 13)), np.sum(scores >= 13), 400]
    assert raw["cut"].to_list()[1:3] == [8, 13]
    same = study.cuts(study.scores()["ability"].to_numpy()[[13, 8]])  # in any order
    assert same["n"].to_list() == raw["n"].to_list()
    assert same["accuracy"].to_list()[1:] == pytest.approx(raw["accuracy"].to_list()[1:])


def test_cuts_are_on_the_scale_of_report(study):
    scaled = study.rescale(500, 100)
    scale = scaled.calibration.scale
    found, logits = scaled.cuts([520]), study.cuts([(520 - scale.mean) / scale.unit])
    assert found["n"].to_list() == logits["n"].to_list()
    assert found["cut"][1] == 520
    assert found["ability"][1] == pytest.approx(logits["cut"][1])
    assert found["measure_se"][1] == pytest.approx(scale.unit * found["se"][1])


@pytest.mark.parametrize(
    ("cuts", "raw", "words"),
    [
        ([9], False, "the cut 9 is outside the scale"),
        ([-9, 0], False, "the cut -9 is outside the scale"),
        ([0], True, "not a raw score from 1 to 20"),
        ([21], True, "not a raw score from 1 to 20"),
        ([2.5], True, "not a raw score"),
        ([1, 1], False, "different numbers"),
        ([], False, "one or more"),
        ([float("nan")], False, "one or more"),
    ],
)
def test_cuts_that_divide_nobody_are_refused(study, cuts, raw, words):
    with pytest.raises(OptionError, match=words):
        study.cuts(cuts, raw=raw)


def test_raw_cuts_need_one_form():
    table = np.random.default_rng(0).integers(0, 2, (60, 12)).astype(float)
    table[:30, 8:], table[30:, :4] = np.nan, np.nan
    study = SpectralRasch().fit(table).analyse(table)
    with pytest.raises(OptionError, match="2 forms"):
        study.cuts([4], raw=True)
    everything = np.random.default_rng(0).integers(0, 2, (60, 12)).astype(float)
    ml = SpectralRasch().fit(everything).analyse(everything, ability="ml")
    with pytest.raises(OptionError, match="no finite ability"):
        ml.cuts([12], raw=True)
    assert ml.cuts([6], raw=True)["n"][-1] == 60


@pytest.mark.slow
@pytest.mark.parametrize("items", [15, 40])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_predicted_accuracy_is_the_true_one(items, missing):
    """Mean of four data sets of 3,000 people: the simulated shares have a standard error of 0.004."""
    cuts, off = np.array([-0.5, 0.7]), []
    for seed in range(4):
        rng = np.random.default_rng([items, seed])
        beta = np.linspace(-1.8, 1.8, items)
        theta = rng.normal(0.2, 1.0, 3000)
        tables = [drawn(theta, beta, rng) for _ in range(2)]
        absent = rng.random(tables[0].shape) < missing
        first, second = (np.where(absent, np.nan, table) for table in tables)
        fit = SpectralRasch(se="none").fit(first)
        study = fit.analyse(first)
        found = study.cuts(cuts).row(-1, named=True)
        mine = class_of(study.abilities().ability, cuts)
        again = class_of(fit.analyse(second).abilities().ability, cuts)
        true = class_of(theta, cuts)
        off.append([found["accuracy"] - np.mean(mine == true), found["consistency"] - np.mean(mine == again)])
    assert np.abs(np.mean(off, axis=0)).max() < 0.01
