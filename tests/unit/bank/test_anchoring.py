"""Anchored calibration: values kept, scale kept, unbiased, displacement, and what is wrong with anchors."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from changed_bank import bank_of
from drawn import drawn
from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import AnchoredRasch, Bank, anchored_fit
from spectral_irt.bank.anchors import Anchors, as_anchors
from spectral_irt.data import Responses
from spectral_irt.data.design import examine
from spectral_irt.errors import BankError, DesignError, OptionError, ReadError
from spectral_irt.estimators.anchored import match_anchors
from spectral_irt.joint_errors import JointErrors


def test_anchored_items_keep_their_values_to_the_bit():
    data = simulate.rasch(500, 10, seed=1)
    anchors = {0: 0.1 + 0.2, 3: -1 / 3, 7: 1.23456789012345}
    fit = anchored_fit(data.responses, {**anchors, "gone": 1.0})
    assert [finding.items for finding in fit.findings_ if finding.code == "unused_anchors"] == [("gone",)]
    assert [fit.difficulty_[k] for k in anchors] == list(anchors.values())
    assert fit.anchored_.tolist() == [k in anchors for k in range(10)]
    assert [fit.status_[k] for k in anchors] == ["anchored"] * 3
    assert np.all(fit.se_[list(anchors)] == 0)
    assert np.all(fit.se_[~fit.anchored_] > 0)


@pytest.mark.parametrize("free", [1, 3, 50])
def test_a_full_fit_is_reproduced(free):
    data = simulate.rasch(2000, 60, design="sampled", p=0.5, seed=2)
    full = SpectralRasch().fit(data.responses)
    anchors = {k: full.difficulty_[k] + 10 for k in range(free, 60)}
    fit = anchored_fit(data.responses, anchors)
    assert np.max(np.abs(fit.difficulty_ - 10 - full.difficulty_) / full.se_) < 0.05
    assert np.nanmax(np.abs(fit.displacement_ / fit.displacement_se_)) < 0.1


@pytest.mark.slow
def test_anchored_at_the_truth_the_others_are_unbiased_and_the_errors_honest():
    """24 replicates x 30 free items: the mean z is within 4 of its own standard errors, the spread within 10%.

    The spread of 240 displacements has a standard error of 4.6%, and three are allowed.
    """
    z, shown = [], []
    for seed in range(24):
        data = simulate.rasch(600, 40, design="sampled", p=0.5, seed=seed, ability_mean=0.7)
        fit = anchored_fit(data.responses, dict(enumerate(data.difficulty[:10])), threads=1)
        z.append((fit.difficulty_ - data.difficulty)[10:] / fit.se_[10:])
        shown.append(fit.displacement_[:10] / fit.displacement_se_[:10])
    mean_over_items = np.mean(z, axis=1)  # items of one data set share the scale, so data sets are the sample
    assert abs(mean_over_items.mean()) < 4 * mean_over_items.std(ddof=1) / np.sqrt(24)
    assert 0.9 < np.std(z) < 1.1
    assert 0.86 < np.std(shown) < 1.14  # displacements are noise here, of the size they say


def test_displacement_finds_the_anchor_that_has_changed():
    """One anchor is off by 0.8. Set free alone it would go back, whether two or thirty items hold the scale."""
    data = simulate.rasch(4000, 40, seed=3)
    for n_anchors in (3, 30):
        anchors = dict(enumerate(data.difficulty[:n_anchors]))
        anchors[1] += 0.8
        fit = anchored_fit(data.responses, anchors)
        assert fit.displacement_[1] == pytest.approx(-0.8, abs=4 * fit.displacement_se_[1])
        assert np.argmax(np.abs(fit.displacement_ / fit.displacement_se_)[:n_anchors]) == 1
        (found,) = [finding for finding in fit.findings_ if finding.code == "displaced_anchors"]
        assert 1 in found.items
    table = fit.displacements()
    assert table.columns == ["item", "anchor", "free", "displacement", "se", "z"]
    assert {"anchored", "displacement", "displacement_se"} <= set(fit.items().columns)


def test_thin_items_and_a_form_without_any_anchor_get_a_prior_and_say_so():
    rng = np.random.default_rng(5)
    table = np.full((400, 6), np.nan)
    table[:, :4] = rng.random((400, 4)) < 0.5
    table[:30, 4] = 1  # everybody right
    table[50:90, 5] = rng.random(40) < 0.5
    fit = anchored_fit(table, {0: 1.0, 1: 1.0, 2: 1.2})
    assert fit.regularization_.kind == "neighbors"
    assert np.all(np.isfinite(fit.difficulty_))
    assert fit.difficulty_[4] < fit.difficulty_[5]
    assert fit.status_[4] == "all right"
    strict = anchored_fit(table, {0: 1.0, 1: 1.0, 2: 1.2}, regularization=0)
    assert np.isnan(strict.difficulty_[4])
    assert [f.items for f in strict.findings_ if f.code == "items_left_out"] == [(4,)]
    assert anchored_fit(table, {0: 1.0, 1: 1.0, 2: 1.2}, regularization=2.0).regularization_.alpha == 2.0
    table = (np.random.default_rng(5).random((400, 8)) < 0.5).astype(float)
    table[200:, :4], table[:200, 4:] = np.nan, np.nan
    fit = anchored_fit(table, {0: 1.0, 1: 1.0})
    assert fit.status_.tolist() == ["anchored"] * 2 + ["ok"] * 2 + ["unlinked"] * 4
    assert [f.items for f in fit.findings_ if f.code == "untied_items"] == [(4, 5, 6, 7)]
    assert np.isnan(anchored_fit(table, {0: 1.0, 1: 1.0}, regularization=0).difficulty_[4:]).all()


def test_anchors_from_a_bank_its_folder_and_a_file(tmp_path):
    data = simulate.rasch(800, 12, seed=6).responses
    bank, second = bank_of(data.take_persons(np.arange(400))), data.take_persons(np.arange(400, 800))
    bank = bank.rescale(mean=500, sd=100)
    folder = bank.save(tmp_path / "bank")
    for source in (folder, str(folder), bank.calibration, bank):
        fit = anchored_fit(second, source)
        assert np.array_equal(fit.difficulty_, bank.difficulty)
        assert np.array_equal(fit.anchor_se_, bank.se)
        assert fit.calibration_.scale == bank.scale
    again = Bank.from_fit(fit, second)
    assert again.calibration.anchored.all()
    assert np.array_equal(again.se, bank.se)  # where the anchors come from, not the 0 they have here
    path = tmp_path / "anchors.csv"
    path.write_text("item,difficulty,se\n0,0.5,0.1\n5,,\n3,-1e0,\n0,0.5,0.1\n", encoding="utf-8")
    fit = anchored_fit(second, path)
    assert fit.anchored_.nonzero()[0].tolist() == [0, 3]
    assert fit.anchor_se_[0] == 0.1


def test_anchors_are_read_like_any_table(tmp_path):
    expected = as_anchors({"q1": -0.125, "q2": 1.5, "007": 0.25})
    table = pl.DataFrame({"item": expected.items.tolist(), "difficulty": expected.thresholds})
    table.write_parquet(tmp_path / "a.parquet")
    table.write_ndjson(tmp_path / "a.jsonl")
    table.write_csv(tmp_path / "a.tsv", separator="\t")
    table.write_excel(tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_text("Item;Difficulty\nq1;-0,125\nq2;1,5\n007;0,25\n", encoding="utf-16")
    for name in ("a.parquet", "a.jsonl", "a.tsv", "a.xlsx", "a.csv"):
        found = as_anchors(tmp_path / name)
        assert found.items.tolist() == expected.items.tolist(), name
        np.testing.assert_array_equal(found.thresholds, expected.thresholds)


@pytest.mark.parametrize(
    ("anchors", "error", "words"),
    [
        ("item,difficulty\n1,0.5\n1,0.6\n2,0\n", OptionError, "'1' more than once, with different difficulties"),
        ("item,difficulty\n1,hard\n", ReadError, "row 1.*'hard', no number"),
        ("item,b\n1,0.5\n", ReadError, "needs a heading with the columns item and difficulty, .* it has 'item', 'b'"),
        ("", ReadError, "is empty"),
        ("item,difficulty\n1,500\n", OptionError, "logits"),
        ("item,difficulty\n1,49\n2,-49\n", OptionError, "beyond 20 logits"),
        ("item,difficulty\nq1,1\nq2,2\n", OptionError, "none of its items .*is among the anchors.*'q1', 'q2'"),
        ({0: "x"}, OptionError, "no number as difficulty, but 'x'"),
        ({9: 1.0}, DesignError, "anchored item"),  # which nobody answered
        (5, OptionError, "not a int"),
        (None, OptionError, "anchors is missing"),
        (Path("nowhere"), BankError, "there is no bank"),
    ],
)
def test_anchors_that_will_not_do(tmp_path, anchors, error, words):
    if isinstance(anchors, str):
        (tmp_path / "anchors.csv").write_text(anchors, encoding="utf-8")
        anchors = tmp_path / "anchors.csv"
    table = np.column_stack([simulate.rasch(100, 5, seed=8).responses.to_dense(), np.full(100, np.nan)])
    with pytest.raises(error, match=words):
        AnchoredRasch(anchors).fit(Responses.from_wide(table, items=[0, 1, 2, 3, 4, 9]))
    with pytest.raises(OptionError, match="`regularization` is -1"):
        anchored_fit(table, {0: 1.0}, regularization=-1)


@pytest.mark.slow
@pytest.mark.parametrize("se", ["dense", "one-pass"])
@pytest.mark.parametrize("moved", [3.0, -3.0])
def test_displacement_of_a_far_anchor_has_the_error_it_says(moved, se):
    """Over R trials the spread has a standard error of 1 / sqrt(2 (R - 1)) of itself; 4 of these, and a tenth for the
    error's own bias with 50 people."""
    trials, beta, item = 40, np.linspace(-1.5, 1.5, 16), 6
    truth = beta.copy()
    truth[item] = 0.0
    anchors = {k: float(beta[k]) for k in range(0, 16, 2)} | {item: -moved}
    rng = np.random.default_rng(11)
    found, errors, flagged = [], [], 0
    for _ in range(trials):
        fit = anchored_fit(drawn(rng, rng.normal(size=(50, 1)) - truth), anchors, se=se, threads=1)
        found.append(fit.displacement_[item])
        errors.append(fit.displacement_se_[item])
        flagged += any(item in one.items for one in fit.findings_ if one.code == "displaced_anchors")
    assert flagged == trials
    spread = float(np.std(found, ddof=1))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(spread, rel=4 / np.sqrt(2 * (trials - 1)) + 0.1)
    if se == "dense":  # "one-pass" holds the free items where they are, and so sees a little less
        assert np.mean(found) == pytest.approx(moved, abs=4 * spread / np.sqrt(trials) + 0.1)
    else:
        assert np.mean(found) == pytest.approx(moved, rel=0.15)


def test_only_items_with_a_measured_difficulty_are_anchors(tmp_path):
    rng = np.random.default_rng(5)
    first = np.full((400, 10), np.nan)
    first[:300, :7] = rng.random((300, 7)) < 0.6
    first[:300, 6] = 1  # everybody's
    first[300:, 7:] = rng.random((100, 3)) < 0.5  # a group of its own
    old = SpectralRasch().fit(first)
    bank = Bank.from_fit(old, first)
    assert bank.status.tolist() == ["ok"] * 6 + ["all right"] + ["unlinked"] * 3
    second = (rng.random((300, 10)) < 0.6).astype(float)
    items = tmp_path / "items.csv"
    rows = zip(old.item_labels_, old.difficulty_, old.status_, strict=True)
    items.write_text("item,difficulty,status\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    for anchors in (bank, old, str(items)):
        fit = anchored_fit(second, anchors)
        assert fit.anchored_.tolist() == [True] * 6 + [False] * 4
        assert np.abs(fit.difficulty_[6]) < 2  # and not at -5 or so
        (finding,) = [one for one in fit.findings_ if one.code == "anchors_left_out"]
        assert finding.items == (6, 7, 8, 9)
    with pytest.raises(OptionError, match="had no difficulty of their own on that scale"):
        anchored_fit(Responses.from_wide(second[:, 6:9], items=[6, 7, 8]), bank)


@pytest.mark.parametrize("se", ["dense", "multiplier"])
def test_errors_of_the_anchors_are_passed_on_as_free_items_follow_them(se):
    """Var = sandwich + D errors D', D by moving each anchor a little and fitting again."""
    data = simulate.rasch(700, 9, design="sampled", p=0.8, seed=41).responses
    anchors = {0: -0.5, 1: 0.2, 2: 0.6}
    errors = np.array([0.2, 0.3, 0.1])
    table = Anchors(np.arange(3), np.array([-0.5, 0.2, 0.6]), errors, errors=JointErrors.independent(errors))
    plain, told = (anchored_fit(data, given, se=se, regularization=0) for given in (anchors, table))
    follow = np.empty((9, 3))
    for k in range(3):
        moved = [{**anchors, k: anchors[k] + h} for h in (0.05, -0.05)]
        up, down = (anchored_fit(data, each, se="none", regularization=0).difficulty_ for each in moved)
        follow[:, k] = (up - down) / 0.1
    expected = np.sqrt(plain.se_**2 + follow**2 @ errors**2)[3:]
    np.testing.assert_allclose(told.se_[3:], expected, rtol=0.01 if se == "dense" else 0.25)
    assert np.all(told.se_[3:] > plain.se_[3:])
    assert (told.se_[:3] == 0).all()
    for fit, words in (
        (plain, "without standard errors and count as exact"),
        (told, "are passed on to the other items"),
    ):
        assert words in next(one.sentence for one in fit.findings_ if one.code == "anchored")


@pytest.mark.parametrize(("n_loose", "reason"), [(1, "1 item is not tied"), (2, "2 items are not tied")])
def test_a_prior_for_items_that_nothing_ties_to_the_anchors_says_how_many_these_are(n_loose, reason):
    """Everybody who met these items has them all right, so that they come below the others by any distance."""
    rng = np.random.default_rng(1)
    x = (rng.random((120, 4 + n_loose)) < 0.5).astype(float)
    x[:, 4:] = 1
    anchored, _ = match_anchors(Anchors.of({0: 0.0, 1: 0.3}), Responses.from_wide(x))
    plan = anchored.plan(examine(Responses.from_wide(x)), "auto").regularization
    assert plan.reason.startswith(reason)
