"""Responses: totals, parts, labels and fingerprint of a table, whatever its blocks, of two categories or more."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dense import AWKWARD
from spectral_irt import SpectralRasch, simulate
from spectral_irt.data import Responses, as_responses, builder
from spectral_irt.data.block import person_chunks
from spectral_irt.data.patterns import distinct_rows
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, ResponseValueError

_ = np.nan
ORDERED = np.array([[0, 1, 2, _], [2, 0, 3, 1], [_, _, _, _], [1, 1, 0, 0], [2, 1, 1, 1], [0, _, 3, _]], dtype=float)
TABLES = {"right and wrong": AWKWARD, "ordered": ORDERED}
NAMES = np.array(["add", "mul", "div", "pow", "log", "exp", "sin"], dtype=object)


def made(table):
    return Responses.from_wide(table, items=NAMES[: table.shape[1]].tolist(), ordered=table is ORDERED)


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


@pytest.fixture(params=[1, 10, 500_000], ids=["a block a person", "several blocks", "one block"])
def responses(request, table, monkeypatch):
    """The table, in blocks of every size."""
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", request.param)
    monkeypatch.setattr(person_chunks, "__defaults__", (request.param,))
    return made(table)


def test_totals(responses, table):
    answered = ~np.isnan(table)
    assert (responses.n_persons, responses.n_items) == table.shape
    assert responses.n_responses == answered.sum()
    np.testing.assert_array_equal(responses.counts, answered.sum(axis=1))
    np.testing.assert_array_equal(responses.scores, np.nansum(table, axis=1))
    np.testing.assert_array_equal(responses.item_counts, answered.sum(axis=0))
    np.testing.assert_array_equal(responses.item_scores, np.nansum(table, axis=0))
    np.testing.assert_array_equal(responses.to_dense(), table)
    np.testing.assert_array_equal(responses.in_one_block().to_dense(), table)
    dense = np.full(table.shape, np.nan)
    person, item, category = responses.answers()
    dense[person, item] = category
    np.testing.assert_array_equal(dense, table)


def test_counts_of_answers_and_entries_differ():
    answers = made(ORDERED)
    assert answers.thresholds.max_score.tolist() == [2, 1, 3, 1]
    assert answers.max_scores.tolist() == [6, 7, 0, 7, 7, 5]
    middle = np.sum((ORDERED == 1)[:, [0, 2]]) + np.sum(ORDERED[:, 2] == 2)  # two entries each
    assert answers.entries.n_responses == answers.n_responses + middle
    assert answers.category_counts[2].tolist() == [1, 1, 1, 2]


def test_no_data_at_all():
    empty = Responses.from_wide(np.zeros((0, 0)))
    assert (empty.n_persons, empty.n_items, empty.n_responses) == (0, 0, 0)
    assert empty.counts.tolist() == empty.item_counts.tolist() == []
    assert "0 persons" in repr(empty)


def positions(chosen, size):
    given = np.arange(size) % 2 == 0 if chosen == "mask" else np.array(chosen, dtype=int)
    return given, np.arange(size)[given]


@pytest.mark.parametrize("chosen", [[0, 3], [2], [3, 1, 0], [-1], "mask", []])
def test_parts(responses, table, chosen):
    """Positions, also from the end, or a mask; nobody and nothing, too."""
    before = responses.digest()
    given, at = positions(chosen, responses.n_items)
    part = responses.take_items(given)
    assert (part.items.tolist(), part.n_persons) == (NAMES[at].tolist(), len(table))
    np.testing.assert_array_equal(part.to_dense(), table[:, at])
    given, at = positions(chosen, responses.n_persons)
    part = responses.take_persons(given)
    at.sort()  # people stay in the order of the data
    assert (part.persons.tolist(), part.items.tolist()) == (at.tolist(), responses.items.tolist())
    np.testing.assert_array_equal(part.to_dense().reshape(table[at].shape), table[at])
    assert responses.digest() == before


@pytest.mark.parametrize("wrong", [[8], [-9], [True, False]])
def test_positions_that_do_not_exist(responses, wrong):
    for take in (responses.take_persons, responses.take_items):
        with pytest.raises(IndexError):
            take(wrong)
    with pytest.raises(OptionError, match="more than once"):
        responses.take_items([1, 1])


def test_digest_does_not_depend_on_blocks(responses, table):
    person, item = np.nonzero(~np.isnan(table))
    labels = {"persons": responses.persons, "items": responses.items, "thresholds": responses.thresholds}
    rebuilt = Responses.from_codes(person, item, table[person, item].astype(int), **labels)
    again = pickle.loads(pickle.dumps(responses))
    assert responses.digest() == rebuilt.digest() == again.digest()
    np.testing.assert_array_equal(again.to_dense(), table)
    assert len(responses.digest()) == 32


def test_digest_sees_every_difference(table):
    base = made(table)
    flipped, dropped = table.copy(), table.copy()
    flipped[0, 1], dropped[0, 1] = 1 - table[0, 1], np.nan
    others = [Responses.from_wide(one, ordered=table is ORDERED) for one in (table, flipped, dropped, table[:-1])]
    others += [base.take_items(np.arange(base.n_items)[::-1]), dataclasses.replace(base, items=base.items + "x")]
    others.append(dataclasses.replace(base, persons=base.persons + 1))
    assert len({base.digest(), *(other.digest() for other in others)}) == len(others) + 1


def test_categories_nobody_used():
    table = np.array([[0, 1], [3, 2], [5, 1], [3, 3]], dtype=float)
    answers = Responses.from_wide(table, items=["a", "b"], ordered=True)
    assert answers.to_dense().tolist() == [[0, 0], [1, 1], [2, 0], [1, 2]]
    (note,) = answers.notes
    assert note.code == "categories_collapsed"
    assert note.items == ("a", "b")
    with pytest.raises(ResponseValueError, match=r"'a', 'b'.*unused='collapse'"):
        Responses.from_wide(table, items=["a", "b"], unused="error", ordered=True)
    kept = Responses.from_wide(table, unused="keep", ordered=True)  # 4 is nobody's in either
    assert kept.thresholds.max_score.tolist() == [4, 4]
    assert kept.to_dense().tolist() == [[0, 1], [3, 2], [4, 1], [3, 3]]
    by_group = Responses.from_wide(table, unused="keep", groups=["x", "y"], ordered=True)
    assert by_group.thresholds.max_score.tolist() == [2, 2]
    with pytest.raises(OptionError, match="unused"):
        Responses.from_wide(table, unused="drop", ordered=True)


def test_an_item_answered_alike_by_all():
    answers = Responses.from_wide([[0, 1, 3], [2, 1, 3], [1, 1, 3]], ordered=True)
    assert answers.thresholds.max_score.tolist() == [2, 1, 1]
    np.testing.assert_array_equal(answers.to_dense(), [[0, 1, 1], [2, 1, 1], [1, 1, 1]])
    answers = Responses.from_wide([[1, 1, 3], [3, 1, 3], [2, 1, 3]], ordered=True)  # the lowest of the table is 1
    np.testing.assert_array_equal(answers.to_dense(), [[0, 0, 1], [2, 0, 1], [1, 0, 1]])
    (note,) = Responses.from_wide([[1, 2], [2, 1], [3, 3]], ordered=True).notes
    assert (note.code, "The lowest category is 1;" in note.sentence) == ("categories_shifted", True)


def test_a_category_of_dropped_answers_only_is_not_there():
    columns = [["a", "a", "b", "b", "a", "c", "c"], ["x", "y", "x", "y", "x", "x", "y"], [3, 1, 1, 0, 0, 2, 1]]
    kept = Responses.from_long(*columns, duplicates="last", ordered=True)
    assert kept.thresholds.max_score.tolist() == [2, 1]  # nobody has 3 now
    assert kept.to_dense().tolist() == [[0, 1], [1, 0], [2, 1]]
    first = Responses.from_long(*columns, duplicates="first", ordered=True)
    assert first.category_codes()[0].tolist() == [1, 2, 3]
    with pytest.raises(DuplicateResponseError, match=r"1 \(person, item\) pair"):
        Responses.from_long(*columns, ordered=True)


def test_distinct_rows():
    table = simulate.partial_credit(500, 4, categories=3, seed=3).responses.to_dense()
    table[np.random.default_rng(1).random(table.shape) < 0.3] = np.nan
    answers = Responses.from_wide(table, ordered=True)
    found = distinct_rows(answers)
    keys = [(tuple(np.flatnonzero(~np.isnan(row))), np.nansum(row)) for row in table]
    assert len(set(keys)) == len(found.count)
    assert found.count.sum() == 500
    for person, key in enumerate(keys):
        k = found.of_person[person]
        items = found.rows.items[found.rows.indptr[k] : found.rows.indptr[k + 1]]
        assert (tuple(sorted(items)), found.rows.scores[k]) == key


def test_from_long_sorts_labels_and_keeps_who_answered_nothing():
    responses = Responses.from_long(["zoe", "ann", "zoe", "ann", "bob"], [10, 9, 9, 10, 11], [1, 0, None, 1, np.nan])
    assert responses.persons.tolist() == ["ann", "bob", "zoe"]  # as the same rows of a file or a dataframe give them
    assert responses.items.tolist() == [9, 10, 11]
    nan = np.nan
    np.testing.assert_array_equal(responses.to_dense(), [[0, 1, nan], [nan, nan, nan], [nan, 1, nan]])


def test_from_long_is_from_wide_melted():
    person, item = np.nonzero(~np.isnan(AWKWARD))
    order = np.random.default_rng(1).permutation(len(person))
    melted = Responses.from_long(person[order], item[order], AWKWARD[person, item][order])
    # The empty person and the item nobody answered have no row, so they cannot come back.
    np.testing.assert_array_equal(melted.to_dense(), AWKWARD[np.ix_(np.unique(person), np.unique(item))])
    assert melted.persons.tolist() == np.unique(person).tolist()


def test_from_long_repeats():
    columns = (["u", "u", "v"], ["i", "i", "i"], [1, 0, 1])
    with pytest.raises(DuplicateResponseError, match=r"\('u', 'i'\)"):
        Responses.from_long(*columns)
    assert Responses.from_long(*columns, duplicates="first").to_dense().tolist() == [[1], [1]]
    assert Responses.from_long(*columns, duplicates="last").to_dense().tolist() == [[0], [1]]
    with pytest.raises(OptionError, match=r"'error', 'first', 'last'"):
        Responses.from_long(*columns, duplicates="mean")


@pytest.mark.parametrize(
    "labels",
    [
        ["a,b", 'say "x"', "new\nline"],
        ["<b>bold</b>", "&amp;", "naïve"],
        ["題一", "🙂", " padded "],
        ["1", "01", "001"],
        ["a", "a\x00", "a\x00\x00"],
        [-5, 0, 2**40],
    ],
)
def test_labels_come_out_as_they_went_in(labels):
    wide_table = Responses.from_wide([[1, 0, 1]], items=labels)
    assert wide_table.items.tolist() == labels
    long_table = Responses.from_long(labels, labels, [1, 0, 1])
    assert sorted(map(str, long_table.items.tolist())) == sorted(map(str, labels))
    assert sorted(map(str, long_table.persons.tolist())) == sorted(map(str, labels))


def test_from_long_takes_columns_of_any_library():
    expected = Responses.from_long(["a", "a", "b"], [1, 2, 1], [1, 0, np.nan])
    frame = pd.DataFrame({"person": ["a", "a", "b"], "item": [1, 2, 1], "right": pd.array([1, 0, None], dtype="Int64")})
    for table in (frame, pl.DataFrame(frame.astype({"right": float}).to_dict("list")), frame.convert_dtypes()):
        responses = Responses.from_long(table["person"], table["item"], table["right"])
        assert responses.digest() == expected.digest()


def test_as_responses():
    responses = Responses.from_wide(AWKWARD)
    assert as_responses(responses) is responses
    assert as_responses(AWKWARD).digest() == responses.digest()
    assert as_responses([[1.5, 2.5]], threshold=2).to_dense().tolist() == [[0, 1]]
    with pytest.raises(ReadError, match=r"spectral_irt\.read"):
        as_responses("answers.csv")


def test_what_was_learned_cannot_be_changed():
    responses = Responses.from_wide([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]])
    fit = SpectralRasch().fit(responses)
    names = [name for name in dir(fit) if name.endswith("_") and not name.startswith("_") and hasattr(fit, name)]
    learned = {name: getattr(fit, name) for name in names if isinstance(getattr(fit, name), np.ndarray)}
    assert {"item_counts_", "item_scores_", "item_labels_", "difficulty_", "se_", "status_"} <= set(learned)
    for array in (*learned.values(), responses.counts, responses.item_counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


def test_probabilities_of_a_table_of_answers():
    answers = [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]]
    fit = SpectralRasch().fit(answers)
    assert fit.predict_proba([0.0, 1.0]).shape == (2, 3)
    assert fit.predict_proba(0.5).shape == (1, 3)
    for table in (answers, np.array(answers), pd.DataFrame(answers), Responses.from_wide(answers)):
        wanted = r"takes abilities, one number per person.* fit\.analyse\(answers\)\.persons\(\)"
        with pytest.raises(OptionError, match=wanted):
            fit.predict_proba(table)
