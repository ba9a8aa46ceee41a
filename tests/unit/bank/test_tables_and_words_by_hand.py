"""Banks: populations, anchors whose categories were merged, files for others, and numbers in messages, by hand."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from changed_bank import bank_of
from spectral_irt.bank import anchors as anchors_module
from spectral_irt.bank import bank as bank_module
from spectral_irt.bank import equating, linking, results_folder, score, storage
from spectral_irt.bank.bank import Bank, Population
from spectral_irt.bank.export import adaptive_text, sfile_text
from spectral_irt.errors import BankError, OptionError, OutputError

NAN = np.nan


def test_the_population_is_the_normal_one_under_which_the_answers_are_most_likely(monkeypatch):
    reliability = SimpleNamespace(n=bank_module.FEWEST_PEOPLE, sd=1.2, mean=0.4)
    monkeypatch.setattr(bank_module, "marginal_reliability", lambda *given: reliability)

    def of(n_persons):
        table = np.ones((n_persons + 1, 2))
        table[0] = NAN  # somebody without a response
        return Population.of(si.Responses.from_wide(table), np.zeros(2))

    least = bank_module.FEWEST_PEOPLE
    assert of(least) == Population(0.4, 1.2, least)
    assert of(least - 1) is None
    reliability.n = least - 1
    assert of(least) is None
    reliability.n = least
    reliability.sd = bank_module.COLLAPSED
    assert of(least) is None


def test_ordered_answers_do_not_come_to_right_and_wrong():
    table = np.array([[2.0, 1, 2], [1, 0, 0], [0, 1, 1]])
    people = si.Responses.from_wide(table, items=["a", "b", "c"], ordered=True)

    def named(items):
        bank = SimpleNamespace(items=np.array(items, dtype=object))
        with pytest.raises(BankError) as error:
            Bank._refuse_ordered(bank, people)
        return str(error.value).split("answers to ")[1].split(" are in")[0]

    assert named(["b", "c"]) == "'c'"
    assert named(["b"]) == "'a', 'c'"  # of the bank none, so that all are named


def test_anchors_whose_categories_were_merged_are_no_anchors():
    taken = {}
    items = np.array(["a", "b", "c", "gone"], dtype=object)

    def without(labels, responses):
        taken["out"] = labels
        return ("the others", None)

    anchors = SimpleNamespace(items=items, without=without)
    codes = np.array([[0, 1, 2], [0, 1, NAN], [0, 1, 2]], dtype=float)
    responses = SimpleNamespace(
        items=np.array(["a", "b", "c"], dtype=object), codes_high=codes.copy(), category_codes=lambda: codes
    )
    assert anchors_module._without_merged(anchors, responses) == "the others"
    assert taken["out"] == []
    responses.codes_high[2, 1] = 2  # categories 1 and 2 of c are one
    anchors_module._without_merged(anchors, responses)
    assert taken["out"] == ["c"]
    responses.codes_high[:2, 1] = 5
    with pytest.raises(OptionError, match="all anchors that are in the data have other categories"):
        anchors_module._without_merged(anchors, responses)
    responses.codes_high = None
    assert anchors_module._without_merged(anchors, responses) is anchors


@pytest.fixture(scope="module")
def unlike():
    """Items of two, three and four categories, with codes of their own."""
    data = si.simulate.partial_credit(300, thresholds=[[0.0], [-1, 1], [-1, 0, 1]], seed=2).responses
    return si.ConditionalPartialCredit().fit(data).calibration_


def test_an_sfile_has_thresholds_less_the_measure(unlike):
    scale = si.Scale(50, 10)
    head, *lines = sfile_text(unlike, "csv", scale=scale).splitlines()
    rows = [line.replace('"', "").split(",") for line in lines]
    expected = []
    parts = np.split(unlike.thresholds, unlike.layout.first[1:])
    for item, thresholds in enumerate(parts):
        values = [0.0, *(10 * (thresholds - thresholds.mean()))]
        expected += [(item + 1, unlike.codes[item, k], value) for k, value in enumerate(values)]
    assert head.replace('"', "") == "ITEM,CATEGORY,MEASURE"
    np.testing.assert_allclose(np.array(rows, dtype=float), expected, atol=5.1e-5)
    fixed = sfile_text(unlike, "fixed", scale=scale)
    assert fixed.endswith("\n")
    in_columns = [(line[:6], line[6:9], line[9:]) for line in fixed.splitlines()[2:]]
    np.testing.assert_allclose(np.array(in_columns, dtype=float), expected, atol=5.1e-3)
    assert sfile_text(unlike, "csv") == sfile_text(unlike, "csv", scale=unlike.scale)


def test_partial_credit_for_mirt_has_no_number_beyond_the_highest_category(unlike):
    text = adaptive_text(unlike, "mirtcat")
    assert text.endswith("\n")
    head, *lines = text.splitlines()
    assert head == "item,itemtype,a1,ak0,ak1,ak2,ak3,d0,d1,d2,d3"
    for line, thresholds in zip(lines, np.split(unlike.thresholds, unlike.layout.first[1:]), strict=True):
        cells = line.split(",")
        k = len(thresholds)
        assert cells[3:7] == [*map(str, range(k + 1)), *["NA"] * (3 - k)]
        np.testing.assert_allclose([float(d) for d in cells[7 : 8 + k]], -np.append(0, np.cumsum(thresholds)))
        assert cells[8 + k :] == ["NA"] * (3 - k)


def test_several_scales_are_counted():
    assert not list(score._several_scales({1: 5}))
    most = score.NAMED_SCALES
    sizes = {k: 1000 + k for k in range(1, most + 1)}
    (finding,) = score._several_scales(sizes)
    assert f"on {most} scales" in finding.sentence
    assert " more" not in finding.sentence
    (finding,) = score._several_scales(sizes | {most + 1: 7, most + 2: 8})
    assert " and 2 more" in finding.sentence
    assert f"1,00{most} on scale {most}" in finding.sentence


def test_what_the_errors_of_a_link_rest_on():
    first, second, *_ = linking.KINDS
    assert linking.errors_in_words((first, first)) == f"the {linking.KINDS[first]} of each"
    both = linking.errors_in_words((first, second))
    assert both == f"A's {linking.KINDS[first]} and B's {linking.KINDS[second]}"


def test_pairs_of_forms():
    def bank(*names):
        return SimpleNamespace(forms=[SimpleNamespace(name=name) for name in names])

    one, several = bank("only"), bank("x", "y, z")
    assert equating.pairs_of_forms(one, several) == [(None, "x"), (None, "y, z")]
    assert equating.pairs_of_forms(several, several, "y, z, x") == [("y, z", "x")]
    assert equating.pairs_of_forms(several, one, f"x,{equating.ALL}") == [("x", equating.ALL)]
    assert equating.pairs_of_forms(one, several, f"{equating.ALL_ITEMS},x") == [(equating.ALL_ITEMS, "x")]
    for asked in ("x,w", "w,x", "x"):
        with pytest.raises(OptionError, match="it is a form of A and a form of B"):
            equating.pairs_of_forms(several, several, asked)


def test_the_cell_that_holds_no_number_is_named():
    column = pl.Series("se", ["0.5", "", None, "much", "more"])
    with pytest.raises(results_folder._EditedError, match=r"items.csv, column 'se', row 5 holds 'much', no number"):
        results_folder._numbers(column, "items.csv")
    np.testing.assert_array_equal(results_folder._numbers(column[:3], "items.csv"), [0.5, NAN, NAN])


@pytest.mark.parametrize("known", [True, False])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, monkeypatch, known):
    def unreadable(*given, **options):
        raise OSError(5, "a broken disk") if known else OSError("no reason")

    monkeypatch.setattr(storage.Path, "read_text", unreadable)
    monkeypatch.setattr(storage.Path, "read_bytes", unreadable)
    reason = "a broken disk" if known else "no reason"
    with pytest.raises(BankError, match=f"bank.json' cannot be read: {reason}"):
        storage._checked_record(tmp_path, tmp_path / "bank.json")
    with pytest.raises(BankError, match=f"t.parquet' cannot be read: {reason}"):
        storage._table(tmp_path, {"file": "t.parquet", "sha256": ""})


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_bank_that_cannot_be_written_says_why(tmp_path, monkeypatch, known, is_new):
    data = si.simulate.rasch(60, 4, seed=1).responses
    bank = bank_of(data)
    target = tmp_path / "bank"
    if not is_new:
        bank.save(target)

    def full(*given, **options):
        raise OSError(28, "the disk is full") if known else OSError("no reason")

    monkeypatch.setattr(storage, "_replace", full)
    with pytest.raises(OutputError) as error:
        bank.save(target)
    reason = "the disk is full" if known else "no reason"
    state = "Nothing was written." if is_new else "The bank that was there is unchanged."
    assert f"cannot be written: {reason}. {state}" in str(error.value)
    assert target.exists() is not is_new


def test_an_undo_that_cannot_be_written_says_why(tmp_path, monkeypatch):
    bank = bank_of(si.simulate.rasch(60, 4, seed=1).responses)
    bank.save(tmp_path / "bank")
    loaded = Bank.load(tmp_path / "bank")
    later = loaded.update(si.simulate.rasch(50, 4, seed=2).responses)
    later = getattr(later, "bank", later)
    later.save(tmp_path / "bank")

    def full(*given, **options):
        raise OSError(28, "the disk is full")

    monkeypatch.setattr(storage, "_put", full)
    with pytest.raises(OutputError, match=r"cannot be written: the disk is full\. It is unchanged\."):
        storage.undo(tmp_path / "bank")
