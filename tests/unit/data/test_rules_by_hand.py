"""Rules about raw values, groups and repeats, on either side of each limit."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt import read
from spectral_irt.data import booklets, code_sums, groupings, item_changes, scoring, value_check
from spectral_irt.data.block import AnswerRows, Repeats, _sorted_keys
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, ResponseValueError


@pytest.mark.parametrize("bits", [0, 2, 3])
@pytest.mark.parametrize("counts", ["error", "first", "last"])
def test_repeated_answers_are_found_with_person_and_item(bits, counts):
    """Rows in any order; persons count from the first of their range; of each pair one answer stays."""
    rng = np.random.default_rng(bits)
    person, item, category = rng.integers(0, 9, 40), rng.integers(0, 6, 40), rng.integers(0, 2**bits, 40)
    rows = AnswerRows(person.astype(np.int32), ((item << bits) | category).astype(np.int32))
    repeats = Repeats(counts)
    found = _sorted_keys(rows, bits, range(100, 109), repeats)
    pairs = list(zip((person + 100).tolist(), item.tolist(), strict=True))
    several = sorted({pair for pair in pairs if pairs.count(pair) > 1})
    assert repeats.extra == len(pairs) - len(set(pairs))
    assert repeats.pairs == len(several)
    assert repeats.first == several[: len(repeats.first)]
    if counts == "error":
        return
    chosen = {}
    for pair, value in zip(pairs, category.tolist(), strict=True):
        if counts == "last" or pair not in chosen:
            chosen[pair] = value
    slot_mask = (1 << found.slot_bits) - 1
    keys = [(int(key >> found.slot_bits) + 100, int(key & slot_mask)) for key in found.key]
    assert keys == sorted((u, (i << bits) | value) for (u, i), value in chosen.items())


def test_very_large_tables_are_not_compared_person_by_person(monkeypatch):
    rng = np.random.default_rng(1)
    table = np.where(rng.random((60, 12)) < 0.4, 1.0, np.nan)
    asked = []
    monkeypatch.setattr(booklets, "_by_nearness", lambda responses, outside: asked.append(len(outside)) or [])
    responses = Responses.from_wide(table)
    booklets.booklets_of(responses)
    assert len(asked) == 1
    monkeypatch.setattr(booklets, "CELLS", asked[0] * responses.n_items)
    booklets.booklets_of(responses)
    assert len(asked) == 2
    monkeypatch.setattr(booklets, "CELLS", asked[0] * responses.n_items - 1)
    booklets.booklets_of(responses)
    assert len(asked) == 2


def test_numbers_that_measure_and_numbers_that_name_groups():
    few = np.repeat(np.arange(groupings.MOST_VALUES), 30).astype(float)
    assert not groupings._is_quantity("age", few)
    many = np.repeat(np.arange(groupings.MOST_VALUES + 1), groupings.ENOUGH).astype(float)
    assert not groupings._is_quantity("school", many)
    assert groupings._is_quantity("Age_now", many)
    assert groupings._is_quantity("years", many)
    assert groupings._is_quantity("score", many + 0.5)
    single = np.arange(len(many) + 1) + 1000.0  # one more than there are in groups
    assert groupings._is_quantity("score", np.append(many, single))
    assert not groupings._is_quantity("score", np.append(many, single[1:]))


@pytest.mark.parametrize("seed", range(4))
def test_the_cut_that_halves(seed):
    known = np.random.default_rng(seed).integers(0, 8, 51).astype(float)
    cut = groupings._halving_cut(known)
    away = {value: abs(np.mean(known < value) - 0.5) for value in np.unique(known)[1:]}
    assert away[cut] == min(away.values())


@pytest.mark.parametrize("span", [(1, 5), (0, 1), (2.0, 4), (0, scoring.HIGHEST)])
def test_spans_of_categories(span):
    assert scoring._checked_span(span) == span


@pytest.mark.parametrize("span", [(1.5, 4), (1, 4.5), (-1, 3), (3, 3), (4, 2), (0, scoring.HIGHEST + 1), 7])
def test_what_is_no_span_of_categories(span):
    with pytest.raises(OptionError, match="the lowest and the highest category"):
        scoring._checked_span(span)


@pytest.mark.parametrize(
    ("code", "labels", "step", "end"),
    [
        (2.0, (1, 2, 3, 4, 8), 1.0, 4.0),
        (3.0, (1, 2, 3, 4, 8), -1.0, 1.0),
        (5.0, (1, 2, 3), 1.0, 5.0),
        (3.0, (1, 7), 1.0, 7.0),  # labels of the two ends alone
        (3.0, (1, 7), -1.0, 1.0),
        (9.5, (1, 7), 1.0, 9.5),  # beyond the ends
        (1.0, (1, 7), 1.0, 1.0),
    ],
)
def test_how_far_labels_go_on(code, labels, step, end):
    assert code_sums._end_of_labels(code, {float(k): "text" for k in labels}, step) == end


def test_what_to_do_about_many_whole_numbers():
    kinds = [str(k) for k in range(0, 53, 4)]  # up to 52: five categories of eleven
    advice = value_check._of_many_numbers(kinds)
    assert f"{len(kinds)} different whole numbers" in advice
    assert "such as 0 to 10, 11 to 21 and so on" in advice
    assert not value_check._of_many_numbers(kinds[:10])
    assert not value_check._of_many_numbers([*kinds, "1.5"])


def test_numbers_with_gaps_may_be_ordered_categories():
    """A line of 0 to 98 marked at every 14: the model for ordered categories is named, and one odd column is not."""
    marks = {f"e{k}": [14 * ((k + n) % 8) for n in range(30)] for k in range(4)}
    with pytest.raises(
        ResponseValueError, match="If these are ordered categories or points, fit `SpectralPartialCredit`"
    ):
        si.read(pl.DataFrame(marks))
    one_odd = {f"q{k}": [(k + n) % 2 for n in range(30)] for k in range(4)} | {"e": marks["e0"]}
    with pytest.raises(ResponseValueError) as error:
        si.read(pl.DataFrame(one_odd))
    assert "ordered categories or points" not in str(error.value)


def test_words_in_the_order_of_a_usual_scale():
    advice = value_check._of_words(["Often", "never", "Sometimes"], "")
    assert "`recode='never,Sometimes,Often'`" in advice
    assert "check the order" in advice
    assert "put in order" in value_check._of_words(["blue", "green"], "")
    assert "`missing='refused'`" in value_check._of_words(["never", "often", "refused"], "")
    assert value_check._of_words(["blue", "1", "2"], "as it is") == "as it is"
    assert "options of multiple choice" in value_check._of_words(["A", "B"], "")


def test_merged_categories_mean_all_that_they_meant():
    codes = np.array([[1.0, 2.0, 3.0, 5.0]])
    meanings = {1.0: "never", 2.0: "seldom", 5.0: "often"}
    responses = SimpleNamespace(items=["a"], answer_labels={"a": meanings}, category_codes=lambda: codes)
    found = item_changes._merged_labels(responses, 0, np.array([0, 0, 1, 2]))
    assert found == {1.0: "never / seldom", 5.0: "often"}
    assert item_changes._merged_labels(responses, 0, np.array([0, 1, 1, 1])) == {1.0: "never", 2.0: "seldom / often"}


def test_how_many_ordered_categories_were_seen():
    answers = {"a": [0, 1, 2, 3, 4] * 6, "b": [2, 1, 0, 2, 1] * 6, "c": [4, 3, 0, 1, 2] * 6}
    responses = read(pl.DataFrame(answers))
    (finding,) = [note for note in responses.notes if note.code == "ordered_categories"]
    assert "in up to 5 ordered categories" in finding.sentence
