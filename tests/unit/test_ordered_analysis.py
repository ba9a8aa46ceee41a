"""People, score tables, fit and files of ordered answers: definitions, the binary case, simulation."""

import numpy as np
import polars as pl
import pytest
from scipy import optimize

import spectral_irt as si
from dense_ordered import categories, conditional
from spectral_irt import Responses, simulate
from spectral_irt.bank import to_bank
from spectral_irt.errors import BankError, OptionError, ResponseValueError
from spectral_irt.persons.abilities import abilities

THRESHOLDS = [[-0.5, 0.7], [0.2], [-1.0, -0.2, 1.1], [0.0, 0.4], [-0.3, 0.6, 0.2]]


@pytest.fixture(scope="module")
def study():
    data = simulate.partial_credit(300, thresholds=THRESHOLDS, design="sampled", p=0.8, seed=2)
    return si.SpectralPartialCredit().fit(data.responses).analyse(data.responses)


def moments(theta, seen, beta):
    mean = var = third = 0.0
    for i in seen:
        p = categories(theta, beta[i])
        k = np.arange(len(p))
        e = p @ k
        mean, var, third = mean + e, var + p @ (k - e) ** 2, third + p @ (k - e) ** 3
    return mean, var, third


def test_abilities_solve_their_equations(study):
    beta = np.split(study.calibration.thresholds, np.cumsum(study.calibration.layout.max_score)[:-1])
    table = study.responses.to_dense()
    wle, ml = study.abilities("wle"), study.abilities("ml")
    eap = abilities(study.responses, study.calibration.thresholds, "eap", prior_mean=0.3, prior_sd=1.2)
    for person in (0, 5, 17, 100, 250):
        seen = np.flatnonzero(~np.isnan(table[person]))
        score = table[person, seen].sum()
        mean, var, third = moments(wle.ability[person], seen, beta)
        assert abs(score - mean + third / (2 * var)) < 1e-6
        assert abs(wle.se[person] - var**-0.5) < 1e-6
        if np.isfinite(ml.ability[person]):
            assert abs(score - moments(ml.ability[person], seen, beta)[0]) < 1e-6
        grid = np.linspace(-8, 8, 401)
        answers = [(beta[i], int(table[person, i])) for i in seen]
        prior = np.exp(-(((grid - 0.3) / 1.2) ** 2) / 2)
        like = prior * [np.prod([categories(t, own)[x] for own, x in answers]) for t in grid]
        assert abs(eap.ability[person] - np.average(grid, weights=like)) < 1e-6
    lowest = np.flatnonzero((table == 0).sum(axis=1) == (~np.isnan(table)).sum(axis=1))
    assert np.all(np.isneginf(ml.ability[lowest]))
    assert np.isfinite(wle.ability[lowest]).all()
    assert np.all(wle.extreme[lowest])


def test_conditional_fit_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    data = simulate.partial_credit(60, thresholds=THRESHOLDS[:4], ability=rng.normal(size=60), seed=3)
    study = si.ConditionalPartialCredit().fit(data.responses).analyse(data.responses)
    beta = np.split(study.calibration.thresholds, np.cumsum(study.calibration.layout.max_score)[:-1])
    square, variance, z = np.zeros(4), np.zeros(4), np.zeros(4)
    n = 0
    for row in data.responses.to_dense():
        score = int(row.sum())
        if score in (0, 8):
            continue
        x, p = conditional(beta, score)
        mean = p @ x
        v = p @ (x - mean) ** 2
        square, variance, z, n = square + (row - mean) ** 2, variance + v, z + (row - mean) ** 2 / v, n + 1
    found = study._conditional()
    np.testing.assert_allclose(found["infit"], square / variance, rtol=1e-10)
    np.testing.assert_allclose(found["outfit"], z / n, rtol=1e-10)


@pytest.mark.slow
def test_conditional_infit_under_the_model():
    """Mean 1.00, standardized form standard normal."""
    data = [simulate.partial_credit(400, 7, categories=[3, 4, 2, 5, 4, 3, 4], seed=k).responses for k in range(25)]
    found = [si.ConditionalPartialCredit().fit(each).analyse(each)._conditional() for each in data]
    z, n = np.array([each["infit_z"] for each in found]), 25 * 7
    assert abs(np.nanmean([each["infit"] for each in found]) - 1) < 0.01
    assert abs(np.nanmean(z)) < 4 / np.sqrt(n)
    assert abs(np.nanstd(z) - 1) < 4 / np.sqrt(2 * n)


def test_score_table_and_model(study):
    made = study.calibration
    table = made.score_table()
    assert table["score"].to_list() == list(range(12))
    assert np.all(np.diff(table["ability"].to_numpy()) > 0)
    p = made.category_probability([0.4], 2)[0]
    np.testing.assert_allclose(p, categories(0.4, made.thresholds[3:6]), atol=1e-12)
    assert abs(made.expected_score([0.4])[0, 2] - p @ np.arange(4)) < 1e-12
    here = made.information([0.4])["information"][0]
    slope = optimize.approx_fprime([0.4], lambda t: made.expected_score(t).sum(), 1e-6)[0]
    assert abs(here - slope) < 1e-4
    columns = made.threshold_columns()
    assert columns["item"].tolist() == [0, 0, 1, 2, 2, 2, 3, 3, 4, 4, 4]
    assert columns["n"].sum() + made.category_n[:, 0].sum() == study.responses.n_responses
    assert made.items().columns[:3] == ["item", "difficulty", "se"]


def test_others_are_scored_by_labels_and_codes():
    table = simulate.partial_credit(400, 4, categories=[4, 3, 3, 2], seed=3).responses.to_dense()
    coded = pl.DataFrame(table + 1, schema=["a", "b", "c", "d"])  # 1 to 4, 1 to 3, ...
    fit = si.ConditionalPartialCredit().fit(coded)
    everyone = fit.analyse(coded)
    some = np.random.default_rng(0).permutation(400)[:7]
    few = coded[some].select("c", "a", "d", "b")
    again = fit.analyse(few)  # hardly any category is used by all of them, and the items stand in another order
    np.testing.assert_allclose(again.abilities().ability, everyone.abilities().ability[some], atol=1e-9)
    with pytest.raises(ResponseValueError, match="nobody used at calibration"):
        fit.analyse(pl.DataFrame({"a": [1, 6], "b": [1, 2], "c": [1, 2], "d": [1, 2]}))
    with pytest.raises(OptionError, match="not in the calibration"):
        fit.analyse(pl.DataFrame({"a": [1, 2], "z": [1, 2]}))
    assert fit.analyse(pl.DataFrame({"a": [1, 2], "z": [1, 2]}), ignore_unknown=True).responses.n_responses == 2


def test_two_categories_that_are_called_1_and_2_are_matched_by_their_codes():
    """Alone, somebody with every answer in one category has the lowest or the highest score by the code of it."""
    x = simulate.rasch(300, 6, seed=2).responses.to_dense()
    fit, plain = si.SpectralPartialCredit().fit(x + 1), si.SpectralRasch().fit(x)
    assert fit.calibration_.codes.tolist() == [[1, 2]] * 6
    np.testing.assert_array_equal(si.Analysis(fit.calibration_, x + 1).abilities().score, x.sum(axis=1))
    bank = fit.analyse(x + 1).to_bank()
    for code, score in ((1, 0), (2, 6)):
        row = np.full((1, 6), float(code))
        for given in (row, Responses.from_wide(row, ordered=True)):
            assert si.Analysis(fit.calibration_, given).abilities().score.tolist() == [score]
            assert bank.score(given)["score"].to_list() == [score]
    ones = Responses.from_wide(np.ones((1, 6)), ordered=True)
    assert plain.analyse(ones).abilities().score.tolist() == [6]
    assert plain.analyse(x).to_bank().score(ones)["score"].to_list() == [6]
    for calibration, other in ((fit.calibration_, x), (plain.calibration_, Responses.from_wide(x + 1, ordered=True))):
        with pytest.raises(ResponseValueError, match="in a category that nobody used at calibration"):
            si.Analysis(calibration, other)


def test_others_keep_what_is_known_about_them():
    table = pl.DataFrame(simulate.partial_credit(200, 3, categories=3, seed=1).responses.to_dense(), schema=list("abc"))
    others = table.select(pl.Series("sex", ["f", "m"] * 100), "c", "b", "a")
    study = si.SpectralPartialCredit().fit(table).analyse(si.read(others, people=["sex"], ordered=True))
    assert study.group_means("sex")["group"].to_list() == ["f", "m"]


def test_what_is_for_right_and_wrong_answers_refuses_ordered_ones(study):
    with pytest.raises(OptionError, match="distractors is for right and wrong answers"):
        study.distractors()
    assert not hasattr(study, "nothing_of_the_kind")
    with pytest.raises(OptionError, match="category_probability"):
        study.calibration.probability([0.0])
    answers = simulate.rasch(300, 4, seed=1).responses
    bank = to_bank(si.ConditionalRasch().fit(answers), answers)
    ordered = simulate.partial_credit(50, 4, categories=3, seed=1).responses
    with pytest.raises(BankError, match="more than two categories"):
        bank.score(ordered)
    with pytest.raises(ResponseValueError, match="a category that nobody used at calibration"):
        si.ConditionalRasch().fit(answers).analyse(ordered).persons()
