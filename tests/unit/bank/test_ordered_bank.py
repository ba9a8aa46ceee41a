"""Banks of ordered answers: kept, scored with, updated, linked, anchored to; with items that are right or wrong."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from spectral_irt import Bank, ConditionalPartialCredit, SpectralPartialCredit, simulate
from spectral_irt.bank import link, to_bank
from spectral_irt.bank.adaptive import next_item
from spectral_irt.bank.anchors import anchored_to, as_anchors
from spectral_irt.bank.covariance import errors_of_bank, threshold_labels
from spectral_irt.bank.export import ifile, pfile, sfile_text
from spectral_irt.bank.score import score
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError, ReadError, ResponseValueError

THRESHOLDS = [[-0.5, 0.7], [0.2], [-1.0, 0.3, 1.1], [0.0, 0.4], [-0.3], [-0.8, 0.9]]
LABELS = [f"q{k + 1}" for k in range(6)]


def drawn(n, seed, thresholds=THRESHOLDS, labels=LABELS, **options):
    found = simulate.partial_credit(n, thresholds=thresholds, seed=seed, **options).responses
    return replace(found, items=np.array(labels, dtype=object), persons=np.array([f"p{seed}-{k}" for k in range(n)]))


@pytest.fixture(scope="module")
def answers():
    return drawn(500, 1)


@pytest.fixture(scope="module")
def bank(answers):
    return to_bank(ConditionalPartialCredit().fit(answers), answers)


def test_a_bank_comes_back_with_a_threshold_that_has_no_estimate(tmp_path, answers):
    table = answers.to_dense()
    table[:, 2] = 1
    ordered = Responses.from_wide(table, ordered=True)
    bank = to_bank(ConditionalPartialCredit().fit(ordered), ordered)
    again = Bank.load(bank.save(tmp_path / "bank"))
    assert np.isnan(again.calibration.thresholds).sum() == 1
    assert again.status[2] != "ok"
    assert again.table().equals(bank.table())
    for name in ("thresholds", "threshold_se", "se", "codes", "category_n"):
        np.testing.assert_array_equal(getattr(again.calibration, name), getattr(bank.calibration, name))
    for name in ("prior_mean", "prior_gradient", "information", "link_group"):
        np.testing.assert_array_equal(getattr(again.evidence, name), getattr(bank.evidence, name))
    np.testing.assert_allclose(again.evidence.matrix, bank.evidence.matrix, rtol=1e-12, atol=1e-12)  # of one triangle


def test_people_are_scored_as_in_the_analysis(bank, answers):
    study = ConditionalPartialCredit().fit(answers).analyse(answers)
    assert bank.score(answers).equals(study.persons())
    eap = bank.score(answers.take_persons(np.arange(3)), "eap")
    assert eap["ability"].is_finite().all()
    shuffled = answers.take_items([3, 0, 1, 2, 5, 4])
    np.testing.assert_allclose(bank.score(shuffled)["ability"], bank.score(answers)["ability"])


def test_right_and_wrong_items_are_scored_with_the_rest(bank, answers):
    binary = simulate.rasch(40, 2, seed=1).responses
    named = replace(binary, items=np.array(["q2", "q5"], dtype=object))
    found = bank.score(named)
    theirs = (bank.score(answers.take_items([1, 4])), found)
    ours, other = (dict(each.select("score", "ability").iter_rows()) for each in theirs)
    assert {0, 1, 2} <= set(ours)
    assert all(ours[score] == pytest.approx(ability, abs=1e-12) for score, ability in other.items())


def test_a_category_that_the_bank_does_not_know_is_named(bank):
    table = pl.DataFrame({"q1": [0, 4], "q2": [1, 0]})
    with pytest.raises(ResponseValueError, match=r"'q1' .*answered 'q1' with 4; it has 0, 1, 2"):
        bank.score(Responses.from_wide(table, ordered=True))


def test_new_items_come_in(bank):
    new = drawn(400, 3, [*THRESHOLDS[:4], [-0.5, 1.0, 1.5]], ["q1", "q2", "q3", "q4", "new"])
    updated = bank.update(new)
    assert updated.items.tolist() == [*LABELS, "new"]
    assert updated.status[-1] == "ok"
    true = np.array([-0.5, 1.0, 1.5]) - np.mean([np.mean(each) for each in THRESHOLDS])
    assert np.abs((updated.calibration.thresholds[-3:] - true) / updated.calibration.threshold_se[-3:]).max() < 4
    assert updated.calibration.codes.shape == (7, 4)
    assert updated.n[4:6].tolist() == bank.n[4:].tolist()  # untouched
    assert [one.code for one in updated.findings].count("new_items") == 1


def test_a_calibration_alone_is_a_bank_too(answers, tmp_path):
    place = ConditionalPartialCredit().fit(answers).calibration_.save(tmp_path / "bank")
    alone = Bank.load(place)
    assert alone.evidence.matrix is None
    updated = alone.update(drawn(300, 5))
    assert updated.n.tolist() == [800] * 6
    assert np.all(updated.calibration.threshold_se < alone.calibration.threshold_se)
    ratio = updated.se / alone.se
    assert ratio == pytest.approx(np.sqrt(500 / 800), rel=0.1)  # of the locations, too


def test_items_that_drift_as_a_whole_are_found(answers):
    """By 0.8 logits, with 300 people: too little for any single threshold of theirs."""
    moved = [np.array(each) + (0.8 if k in (2, 4) else 0.0) for k, each in enumerate(THRESHOLDS)]
    a, b = (SpectralPartialCredit().fit(each) for each in (drawn(300, 8), drawn(300, 7, moved)))
    found = link(a, b)
    assert set(found.drifted) == {"q3", "q5"}
    assert abs(found.shift - (np.mean([np.mean(each) for each in moved]) - np.mean([*map(np.mean, THRESHOLDS)]))) < 0.15
    assert "2 of them have drifted (+: harder in B): 'q" in found.finding.sentence


def test_two_calibrations_are_linked_over_their_thresholds(answers):
    """B is of abler people and other items besides; one threshold has drifted by 1.5 logits."""
    moved = [list(each) for each in THRESHOLDS]
    moved[2][1] += 1.5
    other = drawn(1500, 7, [*moved, [2.0, 3.0]], [*LABELS, "hard"], ability_mean=0.5)
    a, b = (ConditionalPartialCredit().fit(each) for each in (drawn(1500, 8), other))
    found = link(to_bank(a, drawn(1500, 8)), to_bank(b, other))
    true = (2.5 + sum(np.mean(each) for each in moved)) / 7 - np.mean([np.mean(each) for each in THRESHOLDS])
    assert abs(found.shift - true) < 4 * found.shift_se
    assert found.item[found.drift].tolist() == ["q3 [2]"]
    assert "'q3 [2]' +1." in found.finding.sentence
    assert found.finding.sentence.startswith("Linked over 11 thresholds of 6 common items (robust)")
    assert found.basis == ("information", "information")
    fits = link(a, b)
    assert fits.shift == pytest.approx(found.shift, abs=0.01)
    assert fits.shift_se == pytest.approx(found.shift_se, rel=0.1)
    linked = found.apply(to_bank(b, other))
    np.testing.assert_allclose(linked.calibration.thresholds, to_bank(b, other).calibration.thresholds + found.shift)
    v = errors_of_bank(to_bank(b, other))[0].full()
    move = np.eye(len(v)) - np.isin(threshold_labels(linked.calibration), found.item[found.used]) / found.used.sum()
    mean = linked.calibration.layout.mean
    own = np.array([mean(row) for row in (move @ v @ move.T)])
    wanted = np.diag(np.array([mean(column) for column in own.T]))
    from_a = found.errors_a.of(found.used / found.used.sum()) + found.excess**2 / found.used.sum() + found.choice
    np.testing.assert_allclose(linked.se, np.sqrt(wanted + from_a), rtol=0.03)


def test_items_with_other_categories_are_left_out_of_a_link(answers, bank):
    table = answers.to_dense()
    table[:, 0] = np.minimum(table[:, 0], 1)
    fewer = Responses.from_wide(table, items=LABELS, ordered=True)
    found = link(bank, ConditionalPartialCredit().fit(fewer))
    assert found.left_out.tolist() == ["q1"]
    assert "q1" not in [str(each).split(" ")[0] for each in found.item]
    assert "other categories" in found.finding.sentence


def test_anchors_of_a_bank_and_of_a_table(bank, tmp_path):
    new = drawn(800, 11, [*THRESHOLDS[:4], [1.0, 2.0]], ["q1", "q2", "q3", "q4", "new"])
    folder = bank.save(tmp_path / "bank")
    bank.calibration.threshold_table().write_csv(tmp_path / "t.csv")
    for place in (folder, tmp_path / "t.csv"):
        same, anchors = anchored_to(new, place)
        fit = SpectralPartialCredit().fit(same, anchors=anchors)
        np.testing.assert_allclose(fit.thresholds_[:8], bank.calibration.thresholds[:8], atol=1e-12)
        true = np.array([1.0, 2.0]) - np.mean([np.mean(each) for each in THRESHOLDS])
        # Anchors have errors of their own.
        assert np.abs((fit.thresholds_[-2:] - true) / np.hypot(fit.threshold_se_[-2:], bank.se.mean())).max() < 4
    for row, error, words in (("1,x", ReadError, "row 1: .* 'q1' is 'x'"), ("2,0.5", OptionError, "without gaps")):
        (tmp_path / "bad.csv").write_text(f"item,category,threshold\nq1,{row}\n")
        with pytest.raises(error, match=words):
            as_anchors(tmp_path / "bad.csv")


def test_a_category_that_nobody_used_in_new_data_does_not_move_the_anchors(bank, tmp_path):
    table = drawn(600, 12).to_dense()
    table[table[:, 2] == 3, 2] = 2
    new = Responses.from_wide(table, items=LABELS, ordered=True)
    same, anchors = anchored_to(new, bank.save(tmp_path / "bank"))
    assert same.thresholds.max_score.tolist() == [2, 1, 3, 2, 1, 2]
    fit = SpectralPartialCredit().fit(same, anchors=anchors)
    np.testing.assert_allclose(fit.thresholds_, bank.calibration.thresholds, atol=1e-12)


def test_files_of_winsteps(bank, answers):
    lines = sfile_text(bank.calibration).splitlines()
    assert lines[2] == "     1  0     0.00"
    assert lines[3] == f"     1  1{bank.calibration.thresholds[0] - bank.difficulty[0]:>9.2f}"
    assert len(lines) == 2 + 11 + 6
    assert sfile_text(bank.calibration, "csv").splitlines()[0] == '"ITEM","CATEGORY","MEASURE"'
    items = ifile(bank)
    assert items["SCORE"].tolist() == bank.calibration.score.tolist()
    persons = pfile(score(bank, answers).persons)
    extreme = bank.score(answers)["extreme"].to_numpy()
    assert np.array_equal(persons["STATUS"] != 1, extreme)


def two_groups(n, seed):
    """People who took q1 to q3, and others who took q4 to q6."""
    table = drawn(n, seed).to_dense()
    table[: n // 2, 3:], table[n // 2 :, :3] = np.nan, np.nan
    return Responses.from_wide(table, items=LABELS, ordered=True)


def test_groups_that_nothing_links_stay_apart(tmp_path):
    answers = two_groups(600, 21)
    bank = to_bank(SpectralPartialCredit().fit(answers), answers)
    assert sorted(bank.evidence.link_group.tolist()) == [0, 0, 0, 1, 1, 1]
    assert bank.population is None
    found = score(bank, answers)
    assert set(found.persons["scale"].tolist()) == {"1", "2"}
    assert "several_scales" in [finding.code for finding in found.findings]
    home = set(bank.items[bank.evidence.link_group == 0].tolist())
    assert next_item(bank, {}).item in home
    assert next_item(bank, {}).findings
    still = bank.update(two_groups(400, 22))
    assert np.isinf(still.se).sum() == 3
    assert still.evidence.link_group.tolist() == bank.evidence.link_group.tolist()
    linked = still.update(drawn(600, 23))
    assert set(linked.status) == {"ok"}
    assert np.isfinite(linked.se).all()
    table = np.concatenate([each.to_dense() for each in (answers, two_groups(400, 22), drawn(600, 23))])
    whole = SpectralPartialCredit().fit(Responses.from_wide(table, items=LABELS, ordered=True))
    off = linked.calibration.thresholds - whole.thresholds_
    assert np.abs((off - off.mean()) / whole.threshold_se_).max() < 0.3
