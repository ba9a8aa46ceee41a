"""Linking: known shifts are found, drifted items are flagged, results go to the other scale."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from changed_bank import changed
from spectral_irt import SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.bank import Bank, link
from spectral_irt.bank.build import without_data
from spectral_irt.bank.covariance import _model_covariance, errors_of_bank
from spectral_irt.calibration import Calibration
from spectral_irt.errors import BankError, OptionError
from spectral_irt.inference.robust_center import choice_variance, robust_center
from spectral_irt.joint_errors import JointErrors


def bank_of(difficulty, se=0.1, first=0):
    m = len(difficulty)
    return without_data(
        Calibration(
            labels=np.arange(first, first + m),
            thresholds=np.asarray(difficulty, dtype=float),
            threshold_se=np.full(m, se),
            status=np.full(m, "ok", dtype=object),
            n=np.full(m, 400),
            score=np.full(m, 200),
            item_information=np.full(m, 1 / se**2),
        )
    )


def test_mean_by_hand():
    found = link(bank_of(np.array([0.0, 1.0, 2.0])), bank_of(np.array([1.0, 1.5, 2.5])), "mean")
    assert found.shift == pytest.approx(-2 / 3)
    assert found.shift_se == pytest.approx(np.sqrt(6 * 0.01) / 3)
    # Q = sum (d - mean)^2 / 0.02 on 2 df; the excess by moments: E Q = df (1 + excess / 0.02)
    statistic = np.sum((np.array([1.0, 0.5, 0.5]) - 2 / 3) ** 2) / 0.02
    assert (found.statistic, found.df, found.p) == pytest.approx((statistic, 2, np.exp(-statistic / 2)))
    excess = 0.02 * (statistic / 2 - 1)
    assert found.excess == pytest.approx(np.sqrt(excess))
    assert found.link_error == pytest.approx(np.sqrt(6 * 0.01 / 9 + excess / 3))
    assert found.difference == pytest.approx([1 / 3, -1 / 6, -1 / 6])
    assert found.se == pytest.approx(np.full(3, np.sqrt(0.02 * (1 - 1 / 3))))
    assert found.z == pytest.approx(found.difference / found.se)


def test_drift_is_found_and_the_robust_shift_ignores_it():
    """Two banks of the same 40 items; b is a - 0.5 with noise, and two items have drifted by 1: the mean is off."""
    rng = np.random.default_rng(0)
    truth, drift = rng.normal(size=40), np.isin(np.arange(40), (3, 17)) * 1.0
    a = bank_of(truth + rng.normal(0, 0.1, 40)).rescale(mean=500, sd=100)
    b = bank_of(truth - 0.5 + drift + rng.normal(0, 0.1, 40))
    robust, mean = a.link(b), link(a, b, "mean")
    for found in (robust, mean):
        assert found.drift.nonzero()[0].tolist() == [3, 17]
        assert not found.doubtful
        assert "(+: harder in B)" in found.finding.sentence
    assert abs(robust.shift - 0.5) < 3 * robust.shift_se
    assert mean.shift - robust.shift == pytest.approx(-2 * 1.0 / 40, abs=0.02)
    assert robust.difference[3] == pytest.approx(1.0, abs=0.4)
    assert robust.finding.severity == "warning"
    assert sorted(robust.finding.items) == [3, 17]
    assert robust.table().columns == list(robust.columns())
    linked = robust.apply(b)
    assert linked.scale == a.scale
    assert linked.findings[-1].code == "linked"
    assert linked.difficulty - b.difficulty == pytest.approx(robust.shift)


def test_beyond_two_fifths_the_link_is_called_doubtful():
    truth = np.linspace(-2, 2, 16)
    found = link(bank_of(truth), bank_of(truth + np.where(np.arange(16) < 7, 1.5, 0.0)))
    assert found.drift.sum() == 7
    assert "cannot tell which ones moved" in found.finding.sentence
    assert "before using the link" in found.finding.remedy


def test_items_that_scatter_everywhere_are_said_to_and_not_called_drift():
    rng = np.random.default_rng(8)
    truth = rng.normal(size=60)
    found = link(bank_of(truth, 0.05), bank_of(truth + rng.normal(0, 0.3, 60), 0.05))
    assert found.p < 1e-6
    assert found.excess == pytest.approx(0.3, rel=0.3)  # a standard deviation of 60: 9% each way
    assert found.drift.sum() <= 3
    assert "differ by more than their errors explain" in found.finding.sentence
    assert found.finding.severity == "warning"
    assert found.link_error == pytest.approx(np.hypot(found.shift_se, found.excess / np.sqrt(found.used.sum())))
    assert found.apply(bank_of(truth, 0.05)).se.min() > found.excess / np.sqrt(60)


@pytest.fixture(scope="module")
def forms():
    """Two forms of 9 items with 5 in common, each fitted, and the bank of the second."""
    beta = np.random.default_rng(7).normal(size=13)
    first = simulate.rasch(500, difficulty=beta[:9], seed=1).responses
    second = replace(simulate.rasch(400, difficulty=beta[4:], seed=2).responses, items=np.arange(4, 13))
    a, b = SpectralRasch().fit(first), SpectralRasch().fit(second)
    return a, b, Bank.from_fit(b, second)


def test_the_variance_of_the_shift_is_that_of_a_sum(forms):
    a, b, _ = forms
    found = link(a, b, "mean")
    assert found.basis == ("covariance", "covariance")
    in_a, in_b = np.r_[np.zeros(4), np.full(5, 0.2)], np.r_[np.full(5, 0.2), np.zeros(4)]
    variance = in_a @ a.covariance() @ in_a + in_b @ b.covariance() @ in_b
    assert found.shift_se == pytest.approx(np.sqrt(variance))
    # Each difference: e_i of b - e_i of a - mean of the five.
    both = a.covariance()[4:, 4:] + b.covariance()[:5, :5]
    off = np.eye(5) - 0.2
    assert found.se == pytest.approx(np.sqrt(np.diag(off @ both @ off)))
    assert found.statistic == pytest.approx(found.difference @ np.linalg.pinv(off @ both @ off) @ found.difference)
    itself = link(a, a, "mean")  # both have mean zero over the same items
    assert (itself.shift, itself.shift_se) == pytest.approx((0, 0), abs=1e-7)


def test_what_stands_in_for_a_covariance_is_close_to_it(forms):
    a, b, bank = forms
    exact, by_bank = link(a, b), link(a, bank)
    alone = link(a.calibration_.replace(threshold_covariance=None), b.calibration_.replace(threshold_covariance=None))
    assert by_bank.basis == ("covariance", "information")
    assert alone.basis == ("independent", "independent")
    assert by_bank.shift_se == pytest.approx(exact.shift_se, rel=0.05)
    assert alone.shift_se == pytest.approx(exact.shift_se, rel=0.1)
    without = link(changed(bank_of(a.difficulty_), threshold_se=np.full(9, np.nan)), bank)
    assert without.basis == ("none", "information")


def test_the_error_of_the_link_is_in_the_linked_items(forms):
    a, _, bank = forms
    found, v = link(a, bank, "mean"), errors_of_bank(bank)[0].matrix
    move = np.eye(9) - np.r_[np.full(5, 0.2), np.zeros(4)]  # b_i - mean of the common ones
    from_a = np.full(5, 0.2) @ a.covariance()[4:, 4:] @ np.full(5, 0.2) + found.excess**2 / 5
    assert found.apply(bank).se == pytest.approx(np.sqrt(np.diag(move @ v @ move.T) + from_a))


def test_links_of_links_add_up_their_errors():
    """A linked bank gives its covariance back: (I - 1 w') V (I - w 1') + s^2."""
    rng = np.random.default_rng(3)
    information = sum(np.diag(v) - np.outer(v, v) / v.sum() for v in rng.random((40, 6)))
    v = _model_covariance(information, np.zeros(6), np.ones(6), np.zeros(6, dtype=np.int64))
    difficulty = rng.normal(size=6)
    b = changed(bank_of(difficulty - difficulty.mean()), threshold_se=np.sqrt(np.diag(v)), matrix=information)
    a = bank_of(difficulty[:4], 0.2)
    found = link(a, b, "mean")
    assert found.excess == 0
    errors, kind = errors_of_bank(found.apply(b))
    whole = errors.matrix + errors.common[:, None] + errors.common
    move = np.eye(6) - np.r_[np.full(4, 0.25), 0, 0]
    assert kind == "information"
    np.testing.assert_allclose(whole, move @ v @ move.T + 0.2**2 / 4, atol=1e-12)


def test_errors_of_anchors_are_passed_on():
    """Items are at -P_FF^-1 P_FA times the anchors' errors, besides their own."""
    information = sum(np.diag(v) - np.outer(v, v) / v.sum() for v in np.random.default_rng(5).random((60, 5)))
    se, further = np.array([0.2, 0.1, 0.3, 0.3, 0.3]), {"anchored": np.arange(5) < 2}
    bank = changed(bank_of(np.arange(5.0)), matrix=information, further=further, threshold_se=se)
    own = np.linalg.inv(information[2:, 2:])
    follow = -own @ information[2:, :2]
    lever = np.vstack([np.eye(2), follow])
    expected = lever @ np.diag([0.04, 0.01]) @ lever.T
    expected[2:, 2:] += own
    np.testing.assert_allclose(errors_of_bank(bank)[0].matrix, expected, atol=1e-12)
    assert follow.sum(axis=1) == pytest.approx(1)  # a common error of all anchors moves everything alike


@pytest.mark.slow
def test_new_answers_do_not_lessen_the_error_of_a_link(forms):
    _, _, bank = forms
    linked = link(bank_of(np.full(13, 0.5), 2.0), bank, "mean").apply(bank)  # a link that is hardly one
    assert linked.se.min() > 2 / np.sqrt(9) - 0.01
    more = replace(simulate.rasch(3000, difficulty=bank.difficulty, seed=4).responses, items=bank.items)
    after = linked.update(more)
    assert after.se.min() > 2 / np.sqrt(9) - 0.05
    assert after.se.max() < linked.se.max()
    assert bank.update(more).se.max() < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("design", ["4 common items", "15 common items", "5 of 15 drifted by 1.2"])
def test_the_shift_is_as_sure_as_it_says(design, monkeypatch):
    """benchmarks/linking.py with fewer replicates: of 30 runs 95% +- 4% are covered, and a ratio is off by 13%."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    asked = SimpleNamespace(seeds=range(30), categories=2, keep="bank")
    found = importlib.import_module("linking").study(design, 400, asked)
    assert found["covered"] >= 0.83
    assert 0.65 < found["ratio"] < 1.5
    assert 0.92 < found["items"] < 0.98
    assert found["false"] < 0.02
    assert not found["found"] < 0.95  # 4 of 5 drifted items; NaN without


def test_too_few_common_items():
    a = bank_of(np.arange(5.0))
    with pytest.raises(BankError, match="share 0 items; `method='robust'` needs at least 3"):
        link(a, bank_of(np.arange(5.0), first=5))
    with pytest.raises(BankError, match=r"share 1 items: 4; `method='mean'` needs at least 2"):
        link(a, bank_of(np.arange(5.0), first=4), "mean")
    with pytest.raises(OptionError, match="'mean', 'robust'"):
        link(a, a, "median")
    with pytest.raises(BankError, match=r"make one with Bank\.from_fit\(fit, responses\)"):
        link(a, a).apply(SpectralRasch())


@pytest.mark.slow
@pytest.mark.parametrize(("off", "by"), [(0, 0.0), (2, 0.8), (6, 0.8)])
def test_the_choice_of_items_is_in_the_error_of_the_center(off, by):
    """Six of 15 differences off by five standard errors: some are missed, and the center scatters more."""
    rng = np.random.default_rng(51)
    centers, plain, told = [], [], []
    for seed in range(60):
        errors = JointErrors.independent(0.16 * np.exp(0.2 * rng.normal(size=15)))
        difference = np.sqrt(errors.diagonal) * rng.normal(size=15) + by * (np.arange(15) < off)
        found = robust_center(difference, errors)
        centers.append(found.center)
        plain.append(errors.of(found.agrees / found.agrees.sum()))
        told.append(plain[-1] + choice_variance(difference, errors, found, seed))
    covered = np.mean(np.abs(centers) < 1.96 * np.sqrt(told))
    assert covered > 0.87  # 60 runs of .95: 2.8 standard errors
    ratio = np.sqrt(np.mean(told) / np.mean(plain))
    assert ratio > 1.3 if off == 6 else ratio < 1.2


@pytest.mark.parametrize(
    ("item", "of", "words"),
    [
        (["a"], ["a"], "1 common item"),
        (["a", "b"], ["a", "b"], "2 common items"),
        (["a 1", "a 2"], ["a", "a"], "2 thresholds of 1 common item"),
        (["a 1", "a 2", "b 1"], ["a", "a", "b"], "3 thresholds of 2 common items"),
    ],
)
def test_what_a_link_compared_has_its_number(item, of, words):
    found = link(bank_of(np.zeros(3)), bank_of(np.ones(3)), "mean")
    compared = replace(found, item=np.array(item, dtype=object), item_of=np.array(of, dtype=object))
    assert compared.common == words
    assert f"{found.n_items} common items" == found.common == "3 common items"


def anchored(bank, which):
    return changed(bank, further={"anchored": np.isin(np.arange(len(bank.items)), which)})


def test_items_anchored_at_the_other_banks_difficulties_show_no_drift():
    last_year = bank_of(np.linspace(-2, 2, 6))
    this_year = anchored(bank_of(np.linspace(-2, 2, 6)), range(6))
    found = link(this_year, last_year)
    assert found.given.all()
    assert found.by_design.startswith("6 common items were anchored at the difficulty in the other calibration")
    assert "agree within their errors" not in found.finding.sentence
    assert "by design" in found.finding.sentence


def test_a_freed_item_among_anchors_is_still_compared():
    difficulty = np.linspace(-2, 2, 6)
    difficulty[2] += 1.5
    found = link(anchored(bank_of(difficulty), [0, 1, 3, 4, 5]), bank_of(np.linspace(-2, 2, 6)))
    assert found.given.tolist() == [True, True, False, True, True, True]
    assert found.by_design.startswith("5 of 6 common items were anchored")
    assert list(found.drifted) == [2]
    assert not found.tells_agreement  # all that are left were anchored
    assert "agree within their errors" not in found.finding.sentence
    mean = link(anchored(bank_of(difficulty), [0, 1, 3, 4, 5]), bank_of(np.linspace(-2, 2, 6)), "mean")
    assert mean.tells_agreement


def test_anchors_at_other_difficulties_are_compared():
    """Anchored elsewhere: the anchors are not those of the other bank."""
    found = link(anchored(bank_of([-2.0, -1.2, 0.1, 1.0, 1.8]), range(5)), bank_of([-2.0, -1.0, 0.0, 1.0, 2.0]))
    assert found.given.sum() <= 2
    assert "agree within their errors" in found.finding.sentence


def test_common_items_with_other_categories_are_not_an_empty_list():
    ordered = simulate.partial_credit(200, 4, categories=3, seed=1).responses
    right_or_wrong = simulate.rasch(200, 4, seed=2).responses
    of_thresholds = SpectralPartialCredit().fit(ordered).analyse(ordered).to_bank()
    of_answers = SpectralRasch().fit(right_or_wrong).analyse(right_or_wrong).to_bank()
    with pytest.raises(BankError, match=r"0, 1, 2, 3 have other categories .* Besides, the first has no item, the"):
        link(of_answers, of_thresholds)
