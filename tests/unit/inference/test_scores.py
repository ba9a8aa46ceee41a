"""Cut scores and reliability: against enumeration, integration and simulated truth."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dense import probabilities
from drawn import drawn
from spectral_irt import Analysis, ConditionalRasch, Responses, SpectralPartialCredit, SpectralRasch, datasets, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.errors import OptionError
from spectral_irt.inference.groups.sampling import Sampling
from spectral_irt.inference.scores import reliability as marginal
from spectral_irt.inference.scores.cut_scores import class_of, cut_columns, decisions
from spectral_irt.inference.scores.reliability import marginal_reliability, separation
from spectral_irt.model import sigmoid
from spectral_irt.persons import abilities, score_abilities
from spectral_irt.persons.test_form import Form, Forms, find_forms


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
    answers = Responses.from_wide(drawn(rng, rng.normal(*prior, (100_000, 1)) - beta))
    found, forms = abilities(answers, beta), find_forms(answers, beta)
    table, cuts = score_abilities(beta)[0], np.array([-0.4, 0.9])
    accuracy, consistency, too_high, too_low = decisions(Form.of(beta), answers, [cuts], found, forms, prior)[0]

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
    beta, prior = np.linspace(-2, 2, 25), (0.0, 1.0)
    rng = np.random.default_rng(4)
    answers = Responses.from_wide(drawn(rng, rng.normal(*prior, (3000, 1)) - beta))
    cuts, nobody = np.array([-0.5, 0.8]), Forms((), np.full(3000, -1), 3000, 0, 3000)
    for method in ("wle", "ml", "eap"):
        given = {"prior_mean": 0.0, "prior_sd": 1.0} if method == "eap" else {}
        found = abilities(answers, beta, method, **given)
        exact = decisions(Form.of(beta), answers, [cuts], found, find_forms(answers, beta), prior)[0]
        approximate = decisions(Form.of(beta), answers, [cuts], found, nobody, prior)[0]
        assert exact == pytest.approx(approximate, abs=0.012), method


def test_classes_and_errors_at_the_cuts():
    beta = np.linspace(-1, 1, 10)
    rng = np.random.default_rng(2)
    answers = Responses.from_wide(drawn(rng, rng.normal(size=(300, 1)) - beta))
    found = abilities(answers, beta)
    cuts = np.array([-0.5, 0.5])
    columns = cut_columns(Form.of(beta), answers, cuts, found, find_forms(answers, beta), (0.0, 1.0))
    a = found.ability
    assert columns["n"].tolist() == [np.sum(a < -0.5), np.sum((a >= -0.5) & (a < 0.5)), np.sum(a >= 0.5), 300]
    p = sigmoid(cuts[:, None] - beta)
    np.testing.assert_allclose(columns["se"][1:3], 1 / np.sqrt((p * (1 - p)).sum(axis=1)))
    assert columns["class"].tolist() == ["1", "2", "3", "all"]
    assert (columns["accuracy"][1:3] > columns["accuracy"][3]).all()  # two classes are easier than three
    without = cut_columns(Form.of(beta), answers, cuts, found, find_forms(answers, beta), None)
    assert np.isnan(without["accuracy"]).all()
    assert without["n"].tolist() == columns["n"].tolist()


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(6)
    answers = Responses.from_wide(drawn(rng, rng.normal(size=(400, 1)) - np.linspace(-1.5, 1.5, 20)))
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
    ml = SpectralRasch().fit(table).analyse(table, ability="ml")
    with pytest.raises(OptionError, match="no finite ability"):
        ml.cuts([12], raw=True)
    assert ml.cuts([6], raw=True)["n"][-1] == 60
    table[:30, 8:], table[30:, :4] = np.nan, np.nan
    with pytest.raises(OptionError, match="2 forms"):
        SpectralRasch().fit(table).analyse(table).cuts([4], raw=True)


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
        tables = [drawn(rng, theta[:, None] - beta) for _ in range(2)]
        absent = rng.random(tables[0].shape) < missing
        first, second = (np.where(absent, np.nan, table) for table in tables)
        fit = SpectralRasch(se="none").fit(first)
        found = fit.analyse(first).cuts(cuts).row(-1, named=True)
        mine, again = (class_of(fit.analyse(each).abilities().ability, cuts) for each in (first, second))
        true = class_of(theta, cuts)
        off.append([found["accuracy"] - np.mean(mine == true), found["consistency"] - np.mean(mine == again)])
    assert np.abs(np.mean(off, axis=0)).max() < 0.01


def test_separation():
    found = separation(np.array([-2.0, 0.0, 2.0, np.inf, np.nan]), np.array([1.0, 0.5, 1.0, 1.0, 1.0]))
    assert (found.n, found.mean, found.sd) == (3, 0, 2)
    assert (found.rmse**2, found.reliability) == pytest.approx((0.75, (4 - 0.75) / 4))
    assert found.separation == pytest.approx(np.sqrt(3.25 / 0.75))
    assert found.strata == pytest.approx((4 * found.separation + 1) / 3)
    noisy = separation(np.array([-0.1, 0.1]), np.array([1.0, 1.0]))
    assert noisy.reliability < 0
    assert noisy.unseen
    assert noisy.separation == 0
    assert np.isnan(separation(np.array([1.0]), np.array([1.0])).reliability)


@pytest.fixture(scope="module")
def calibrated():
    data = simulate.rasch(2000, 40, ability_mean=0.5, ability_sd=1.2, seed=3)
    return SpectralRasch().fit(data.responses), data


@pytest.mark.slow
@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_reliability_is_the_squared_correlation_with_the_truth(calibrated, method):
    fit, data = calibrated
    found = fit.analyse(data.responses).reliability(method=method)
    truth = np.corrcoef(data.ability, fit.analyse(data.responses).persons(method="eap")["ability"])[0, 1] ** 2
    assert abs(found.eap_reliability - truth) < 0.02
    assert method == "eap" or abs(found.persons.reliability - truth) < 0.03
    assert found.persons_real.reliability < found.persons.reliability
    assert abs(found.targeting - 0.5) < 0.1 or method == "eap"
    assert abs(found.kr20 - truth) < 0.05
    assert found.items.reliability > 0.98
    assert (found.items.n, found.n_persons, found.eap_people) == (40, 2000, 2000)
    assert abs(found.population_sd - 1.2) < 0.1
    assert found.form_correlation is None  # everybody met the same items


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "mean", "sd", "design"),
    [
        (5, 0.0, 1.0, {}),
        (5, 1.5, 1.0, {}),
        (10, 0.0, 2.0, {}),
        (20, 0.0, 1.0, {}),
        (60, 0.0, 1.0, {"design": "sampled", "p": 0.2}),
    ],
)
def test_eap_reliability_is_right_on_short_tests(items, mean, sd, design):
    """Mean of four replicates of 1,500 people: the Monte-Carlo error of the difference is about .005."""
    off = []
    for seed in range(4):
        data = simulate.rasch(1500, items, ability_mean=mean, ability_sd=sd, seed=seed, **design)
        study = SpectralRasch(se="none").fit(data.responses).analyse(data.responses)
        found = study.abilities("eap")
        seen = found.n > 0
        truth = np.corrcoef(data.ability[seen], found.ability[seen])[0, 1] ** 2
        off.append(study.reliability().eap_reliability - truth)
    assert abs(np.mean(off)) < 0.02


def test_every_reliability_is_named():
    lsat = datasets.load_lsat()
    study = ConditionalRasch().fit(lsat).analyse(lsat)
    found = study.reliability()
    assert found.text() == (
        "EAP reliability 0.29, KR-20 0.29; WLE separation reliability not defined: the measures differ no more than "
        "their errors"
    )
    assert "; ML separation reliability not defined: the measures differ" in study.reliability("ml").text()
    assert study.reliability("eap").text() == "EAP reliability 0.29, KR-20 0.29"
    assert {study.reliability(method).eap_reliability for method in ("wle", "ml", "eap")} == {found.eap_reliability}


@pytest.mark.slow
def test_a_sample_of_many_people_says_the_same(monkeypatch):
    data = simulate.rasch(4000, 10, seed=5)
    whole = marginal_reliability(data.responses, data.difficulty)
    monkeypatch.setattr(marginal, "ENOUGH_RESPONSES", 20_000)
    some = marginal_reliability(data.responses, data.difficulty)
    assert (whole.n, some.n) == (4000, 2000)
    assert some.reliability != whole.reliability
    assert abs(some.reliability - whole.reliability) < 0.03  # (1 - .63) sqrt(2 / 2000), doubled


def test_no_population_no_eap_reliability():
    beta, pair = np.zeros(4), [[1.0, 0, 1, 0], [0, 1, 0, 1]]
    assert marginal_reliability(Responses.from_wide(pair[:1]), beta) is None
    assert marginal_reliability(Responses.from_wide(np.tile(pair, (5, 1))), beta) is None
    many = marginal_reliability(Responses.from_wide(np.tile(pair, (50, 1))), beta)
    assert many.reliability < 0.001  # they do not differ, and there are enough of them to say so
    alone = SpectralRasch().fit(simulate.rasch(200, 4, seed=1).responses).analyse([[1.0, 0, 1, 0]]).reliability()
    assert alone.eap_reliability is None
    assert "EAP" not in alone.text()


def test_people_on_forms_of_different_levels_are_warned():
    rng = np.random.default_rng(0)
    ability = np.repeat([-1.5, 1.5], 150) + rng.normal(size=300)
    difficulty = np.linspace(-2, 2, 10)
    answers = drawn(rng, ability[:, None] - difficulty)
    answers[:150, 6:], answers[150:, :4] = np.nan, np.nan
    responses = Responses.from_wide(answers)
    fit = SpectralRasch().fit(responses)
    study = fit.analyse(responses)
    found = study.reliability()
    met = np.nanmean(np.where(np.isnan(answers), np.nan, fit.difficulty_), axis=1)
    assert abs(found.form_correlation - np.corrcoef(met, study.abilities("wle").ability)[0, 1]) < 1e-12
    assert "high scorers met harder items (r = 0." in found.text()
    one = fit.analyse(responses.take_persons(np.arange(150))).reliability()
    assert one.form_correlation is None
    assert one.eap_reliability < found.eap_reliability
    assert "harder items" not in one.text()
    assert found.same_items == 1
    assert "among people with the same items" in found.text()


@pytest.mark.parametrize("design", ["fixed", "adaptive"])
def test_nothing_is_said_about_people_with_the_same_items_where_hardly_two_have_them(design):
    """Items that follow the ability, of a list so long that each person met others."""
    if design == "adaptive":
        responses = simulate.rasch(300, 40, design="adaptive", length=12, seed=2).responses
    else:
        rng = np.random.default_rng(3)
        ability, difficulty = rng.normal(0, 1.5, 300), np.linspace(-2, 2, 40)
        answers = drawn(rng, ability[:, None] - difficulty)
        near = np.abs(ability[:, None] - difficulty) + rng.normal(0, 0.5, (300, 40))
        answers[near > np.sort(near, axis=1)[:, [11]]] = np.nan
        responses = Responses.from_wide(answers)
    found = SpectralRasch().fit(responses, design=design).analyse(responses).reliability()
    assert found.form_correlation > 0.5
    assert found.within_forms is None
    assert "harder items" in found.text()
    assert "same items" not in found.text()


def test_information_table(calibrated):
    fit, _ = calibrated
    table = fit.calibration_.information([0.0, 1.0])
    assert table.columns == ["ability", "information", "se"]
    np.testing.assert_allclose(table["se"], 1 / np.sqrt(table["information"]))
    whole = fit.calibration_.information()
    assert len(whole) == 121
    part = fit.calibration_.information([-3.0, 0.0, 40.0], items=[0, 1])
    P = probabilities(np.array([-3.0, 0.0, 40.0]), fit.difficulty_[:2])
    np.testing.assert_allclose(part["information"], np.sum(P * (1 - P), axis=1), atol=1e-12)
    with pytest.raises(OptionError, match=r"abilities, one number per person, not a table of shape \(2, 2\)"):
        fit.calibration_.information(np.zeros((2, 2)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("categories", [2, 4])
def test_cut_scores_form_by_form(categories, weighted):
    """Classes on each of three booklets: counted by hand, and as in an analysis of the people of the form alone."""
    rng = np.random.default_rng(6)
    make = simulate.rasch if categories == 2 else partial(simulate.partial_credit, categories=categories)
    table = make(450, 15, seed=5).responses.to_dense()
    label = np.array(list("ABC"))[np.arange(450) % 3]
    sets = {"A": range(10), "B": range(5, 15), "C": [*range(5), *range(10, 15)]}
    for name, items in sets.items():
        table[np.ix_(label == name, np.setdiff1d(np.arange(15), items))] = np.nan
    table[rng.random(table.shape) < 0.02] = np.nan  # people who skip items are on their form, too
    responses = Responses.from_wide(table, ordered=categories > 2)
    weights = rng.choice([0.5, 1.5], 450) if weighted else None
    estimator = SpectralRasch() if categories == 2 else SpectralPartialCredit()
    fit = estimator.fit(responses, weights=weights)
    study = fit.analyse(responses, form=label).rescale(500, 100)
    found = columns_of(study.cuts, [450, 560])
    scale = study.calibration.scale
    at = (np.array([450.0, 560.0]) - scale.mean) / scale.unit
    ability = study.abilities().ability
    assert found["form"].tolist() == [*[""] * 4, *np.repeat(list("ABC"), 4)]
    for name in "ABC":
        rows = found["form"] == name
        people = label == name
        classes = np.searchsorted(at, ability[people])
        np.testing.assert_array_equal(found["n"][rows], [*np.bincount(classes, minlength=3), people.sum()])
        scores = columns_of(study.scores)
        on_form = scores["form"] == name
        lowest = [0.0, *(scores["score"][on_form][scores["ability"][on_form] >= cut].min() for cut in at), np.nan]
        np.testing.assert_array_equal(found["score"][rows], lowest)
        alone = Analysis(study.calibration, responses.take_persons(people), population=study._population())
        if weighted:
            alone.sampling = Sampling(weights[people])
        expected = columns_of(alone.cuts, [450, 560])
        for column in ("share", "accuracy", "consistency", "too_high", "too_low"):
            np.testing.assert_allclose(found[column][rows], expected[column], atol=1e-9, err_msg=column)
