"""Bank: what it takes from a fit, its scale, and scoring with its own population and only what was measured."""

from dataclasses import replace

import numpy as np
import pytest

from changed_bank import bank_of, changed
from spectral_irt import Analysis, AnchoredRasch, SpectralPartialCredit, SpectralRasch, datasets, simulate
from spectral_irt.bank import Bank
from spectral_irt.bank.bank import Population
from spectral_irt.bank.covariance import _prior_precisions
from spectral_irt.bank.score import score
from spectral_irt.calibration import Scale
from spectral_irt.data import Responses, as_responses
from spectral_irt.errors import BankError, NotFittedError, OptionError


def test_what_a_fit_gives():
    data = simulate.rasch(400, 8, design="sampled", p=0.8, seed=1).responses
    fit = SpectralRasch().fit(data)
    bank = Bank.from_fit(fit, data)
    assert np.array_equal(bank.difficulty, fit.difficulty_)
    assert np.array_equal(bank.se, fit.se_)
    assert np.array_equal(bank.n, data.item_counts)
    assert np.array_equal(bank.calibration.score, data.item_scores)
    source = bank.calibration.provenance
    assert (source.estimator, source.settings["weighting"]) == ("SpectralRasch", "ability")
    (kept,) = bank.data
    assert (kept.digest, kept.persons, kept.responses, kept.how) == (data.digest(), 400, data.n_responses, "fit")
    assert bank.findings == fit.findings_
    assert not bank.calibration.anchored.any()
    assert not bank.difficulty.flags.writeable
    columns = bank.calibration.item_columns()
    assert columns.keys() == fit.item_columns().keys()
    assert all(np.array_equal(columns[name], values) for name, values in fit.item_columns().items())
    assert Analysis(bank.calibration, data).persons().equals(fit.analyse(data).persons())
    assert np.array_equal(bank.calibration.probability([0.0]), fit.predict_proba([0.0]))
    text = Responses.from_wide(data.to_dense(), items=[str(k) for k in range(8)])
    assert bank.score(text)["ability"].equals(bank.score(data)["ability"])
    with pytest.raises(BankError, match="not the responses that the calibration was fitted to"):
        Bank.from_fit(fit, data.take_persons(np.arange(100)))
    with pytest.raises(NotFittedError):
        Bank.from_fit(SpectralRasch(), data)


def test_rescale():
    lsat = bank_of(datasets.load_lsat())
    scaled = lsat.rescale(mean=500, sd=100)
    assert (scaled.measure.mean(), scaled.measure.std()) == pytest.approx((500, 100))
    assert np.array_equal(scaled.difficulty, lsat.difficulty)  # logits stay
    assert lsat.scale == lsat.rescale().scale == Scale()
    columns = scaled.item_columns()
    assert columns["se"] == pytest.approx(lsat.se * scaled.scale.unit)
    assert columns["ci_high"] - columns["ci_low"] == pytest.approx(2 * 1.96 * columns["se"], rel=1e-4)
    assert scaled.table().columns[:3] == ["item", "difficulty", "se"]
    assert lsat.rescale(mean=50, unit=10).measure == pytest.approx(50 + 10 * lsat.difficulty)
    bad = [("sd is 0", {"sd": 0}), ("unit is -1", {"unit": -1}), ("mean is nan", {"mean": np.nan})]
    for words, options in [*bad, ("not both", {"sd": 1, "unit": 1})]:
        with pytest.raises(OptionError, match=words):
            lsat.rescale(**options)


@pytest.mark.parametrize(
    "estimator",
    [SpectralRasch(), SpectralRasch(regularization=1.0), SpectralRasch(weighting="pairs"), AnchoredRasch({0: 0.0})],
    ids=["auto", "prior", "pairs", "anchored"],
)
def test_an_item_that_people_of_one_kind_answered_is_not_measured(estimator):
    """Item 8 has right and wrong answers, all of them from people who have every answer right, or every one wrong."""
    table = np.full((130, 9), np.nan)
    table[:100, :8] = simulate.rasch(100, 8, seed=3).responses.to_dense()
    table[100:115, [0, 1, 2, 8]], table[115:, [0, 1, 2, 8]] = 1, 0
    data = as_responses(table)
    fit = estimator.fit(data)
    assert fit.status_[8] == "no information"
    assert "ok" in fit.status_
    assert fit.se_[8] > 0.5  # the prior's
    bank = Bank.from_fit(fit, data)
    assert not bank.estimated[8]
    assert bank.estimated[:8].all()
    with pytest.raises(BankError, match="none of the items answered has a difficulty"):
        bank.score(Responses.from_wide([[1], [0]], items=[8]))
    later = bank_of(as_responses(table[:80, :8])).update(as_responses(table[80:]))  # the item comes with an update
    assert (later.items[8], later.status[8], later.estimated[8]) == (8, "no information", False)


EIGHT = np.linspace(-1.5, 1.5, 8)
ONE = Responses.from_wide([[1, 1, 1, 1, 1, 1, 0, 0]])  # 6 of 8


@pytest.fixture(scope="module")
def eight():
    return bank_of(simulate.rasch(1000, 8, difficulty=EIGHT, seed=1).responses)


def test_the_verb_gives_a_table_of_people(eight):
    table = eight.score(ONE)
    assert table.columns[:5] == ["person", "n", "score", "ability", "se"]
    assert eight.score(np.array([[1.0, 0, 1, 0, 1, 0, 1, 0]]))["score"].to_list() == [4]
    scaled = eight.rescale(mean=500, unit=100).score(ONE)
    assert scaled["measure"][0] == pytest.approx(500 + 100 * table["ability"][0])
    assert np.array_equal(eight.item_columns()["n_correct"], eight.calibration.score)


@pytest.mark.slow
def test_one_person_is_scored_under_the_population_of_the_bank(eight, tmp_path):
    assert eight.population.mean == pytest.approx(0, abs=0.15)  # 1,000 people: standard error 0.04
    assert eight.population.sd == pytest.approx(1, abs=0.15)
    table = Bank.load(eight.save(tmp_path / "bank")).score(ONE, "eap")
    assert 0.6 < table["se"][0] < 0.8  # sd 1, and eight items
    assert 0.4 < table["ability"][0] < 1.0  # drawn from 1.3 towards the mean
    assert eight.score(ONE, "eap", population=(2.0, 0.5))["ability"][0] > 1.3
    assert abs(eight.score(ONE, "eap", population=(0.0, 0.1))["ability"][0]) < 0.1
    with pytest.raises(OptionError, match="which has no population"):
        eight.score(ONE, population=(0, 1))
    with pytest.raises(OptionError, match="a standard deviation above zero"):
        eight.score(ONE, "eap", population=(0, 0))


@pytest.mark.slow
def test_without_a_population_few_people_are_an_error_and_many_are_enough(eight):
    old = replace(eight, population=None)
    with pytest.raises(OptionError, match="from 1 person it cannot be estimated"):
        old.score(ONE, "eap")
    with pytest.raises(OptionError, match="1 person is too few to estimate the population"):
        Analysis(old.calibration, ONE).persons("eap")
    with pytest.raises(OptionError, match="from 40 people it cannot be estimated"):
        old.score(np.repeat(ONE.to_dense(), 40, axis=0), "eap")  # they do not differ
    found = score(old, simulate.rasch(500, 8, difficulty=EIGHT, seed=2).responses, "eap")
    assert found.population.persons == 500
    assert found.population.sd == pytest.approx(1, abs=0.2)
    assert old.score(ONE, "eap", population=(0, 1))["se"][0] > 0.5
    tiny = Responses.from_wide((np.random.default_rng(0).random((20, 8)) < 0.5).astype(float))
    assert bank_of(tiny).population is None


@pytest.mark.slow
def test_plausible_values_come_from_the_population_of_the_bank(eight):
    people = np.repeat(ONE.to_dense(), 2000, axis=0)
    table = eight.score(people, "pv", draws=2, seed=4)
    assert [name for name in table.columns if name.startswith("pv")] == ["pv1", "pv2"]
    eap = eight.score(ONE, "eap")
    drawn = np.asarray(table["pv1"])
    assert abs(drawn.mean() - eap["ability"][0]) < 4 * eap["se"][0] / np.sqrt(2000)
    assert abs(drawn.std() / eap["se"][0] - 1) < 4 / np.sqrt(4000)
    np.testing.assert_array_equal(drawn, eight.score(people, "pv", seed=4)["pv1"])
    assert abs(eight.score(people, "pv", population=(5.0, 0.01))["pv1"].mean() - 5) < 0.01
    with pytest.raises(OptionError, match="'pv'"):
        eight.score(ONE, "vp")


def test_a_link_takes_the_population_along(eight):
    moved = changed(eight, thresholds=eight.difficulty - 2)
    linked = eight.link(moved).apply(replace(moved, population=Population(-2.0, 1.5, 10)))
    assert (linked.population.mean, linked.population.sd) == (pytest.approx(0), pytest.approx(1.5))


def test_people_on_scales_that_nothing_links_are_told_apart(tmp_path):
    """Items 0 to 5 and 6 to 9 have no person in common; 10 is everybody's of the first."""
    rng = np.random.default_rng(3)
    table = np.full((500, 11), np.nan)
    table[:300, :6], table[300:, 6:10] = rng.random((300, 6)) < 0.6, rng.random((200, 4)) < 0.4
    table[:300, 10] = 1
    two = bank_of(Responses.from_wide(table))
    assert two.evidence.link_group.tolist() == [0] * 6 + [1] * 4 + [0]
    assert two.status.tolist() == ["ok"] * 6 + ["unlinked"] * 4 + ["all right"]
    assert Bank.load(two.save(tmp_path / "bank")).evidence.link_group.tolist() == two.evidence.link_group.tolist()
    new = np.full((5, 11), np.nan)
    new[[0, 3], :6], new[1, 6:10] = [1, 1, 1, 0, 0, 0], [1, 1, 0, 0]
    new[2, [0, 1, 2, 3, 6]] = [1, 0, 1, 0, 1]  # one answer on the other scale, which does not count
    new[3, 10] = 0  # the item that everybody got right, which does not count
    found = score(two, new)
    assert found.persons["scale"].tolist() == ["1", "2", "1", "1", ""]
    assert found.persons["n"].tolist() == [6, 4, 4, 6, 0]
    assert found.persons["ability"][3] == found.persons["ability"][0]
    codes = {finding.code: finding for finding in found.findings}
    assert "3 on scale 1, 1 on scale 2" in codes["several_scales"].sentence
    assert "1 person has answered items on more than one scale: 2" in codes["answers_on_several_scales"].sentence
    assert codes["prior_only_items"].items == (10,)
    assert found.reliability is None
    with pytest.raises(OptionError, match="several scales that no answers link"):
        two.score(new, "eap")
    assert two.population is None
    drawn = two.score(new, "pv", population=(0.0, 1.0))
    assert np.isfinite(drawn["pv5"].to_numpy()).all()
    assert drawn["scale"].to_list() == ["1", "2", "1", "1", ""]


def flat_prior(m):
    """L D^-1 D^-1 L of complete data, where an item's people met all items: L = I - 1/m, D = 1 - 1/m."""
    deviation = np.eye(m) - 1 / m
    return deviation @ deviation / (1 - 1 / m) ** 2


@pytest.mark.parametrize("regularization", ["auto", 2.0])
def test_a_bank_keeps_the_precision_of_its_prior(regularization, tmp_path):
    """Eleven people: every item has information below 3, and the whole prior. Where it is kept rightly, its pull at the
    difficulties is what the answers pull the other way."""
    data = simulate.rasch(11, 8, seed=6).responses
    fit = SpectralRasch(regularization=regularization).fit(data)
    alpha = fit.calibration_.prior.alpha
    if regularization != "auto":
        assert alpha == regularization
    bank = Bank.from_fit(fit, data)
    evidence = Bank.load(bank.save(tmp_path / "bank")).evidence
    assert evidence.prior_precision == pytest.approx(alpha, rel=1e-12)
    assert alpha == pytest.approx(fit.calibration_.prior.sd**-2)
    assert evidence.offset_precision == 0
    assert (evidence.information < 3).all()
    pull = evidence.prior_precision * flat_prior(8) @ fit.difficulty_
    assert np.abs(pull).max() > 0.5
    np.testing.assert_allclose(evidence.prior_gradient, pull, atol=0.04 * np.abs(pull).max())
    np.testing.assert_allclose(_prior_precisions(bank), alpha)  # what it adds to the information on each item
    known = Bank.from_fit(SpectralRasch().fit(many := simulate.rasch(800, 8, seed=6).responses), many)
    assert known.evidence.prior_precision == 0
    np.testing.assert_array_equal(_prior_precisions(known), 0)
    information = np.array([1.0, 2.0, 3.0, 4.5, 6.0, 7.0, 40.0, 90.0])
    some = replace(bank, evidence=replace(bank.evidence, information=information, prior_precision=0.5, matrix=None))
    fades = [0.5, 0.5, 0.5, 0.25, 0, 0, 0, 0] if regularization == "auto" else 0.5  # one that was given does not fade
    np.testing.assert_allclose(_prior_precisions(some), fades)


def test_a_bank_of_ordered_items_keeps_both_precisions():
    data = simulate.partial_credit(25, 6, categories=3, seed=2).responses
    fit = SpectralPartialCredit().fit(data)
    prior = fit.calibration_.prior
    evidence = Bank.from_fit(fit, data).evidence
    assert prior.offsets > 0
    assert (evidence.prior_precision, evidence.offset_precision) == (prior.alpha, prior.offsets)
    assert prior.offset_sd == pytest.approx(evidence.offset_precision**-0.5)
