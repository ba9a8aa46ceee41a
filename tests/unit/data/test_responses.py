"""Responses: totals, parts, labels and fingerprint of a table, whatever its blocks."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dense import AWKWARD
from spectral_irt.data import Responses, as_responses, builder
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError

NAMES = ["add", "mul", "div", "pow", "log", "exp", "sin"]


@pytest.fixture(params=[1, 10, 500_000], ids=["a block a person", "several blocks", "one block"])
def responses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Responses:
    """The awkward table, in blocks of every size."""
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", request.param)
    return Responses.from_wide(AWKWARD, items=NAMES)


def test_totals(responses: Responses) -> None:
    answered = ~np.isnan(AWKWARD)
    assert (responses.n_persons, responses.n_items) == AWKWARD.shape
    assert responses.n_responses == answered.sum()
    np.testing.assert_array_equal(responses.counts, answered.sum(axis=1))
    np.testing.assert_array_equal(responses.scores, np.nansum(AWKWARD, axis=1))
    np.testing.assert_array_equal(responses.item_counts, answered.sum(axis=0))
    np.testing.assert_array_equal(responses.item_scores, np.nansum(AWKWARD, axis=0))
    np.testing.assert_array_equal(responses.to_dense(), AWKWARD)


def test_no_data_at_all() -> None:
    empty = Responses.from_wide(np.zeros((0, 0)))
    assert (empty.n_persons, empty.n_items, empty.n_responses) == (0, 0, 0)
    assert empty.counts.tolist() == empty.item_counts.tolist() == []
    assert "0 persons" in repr(empty)


@pytest.mark.parametrize("chosen", [[0, 3, 6], [5], [1, 2], range(7), [-1], np.arange(7) % 2 == 0, []])
def test_parts(responses: Responses, chosen: Any) -> None:
    """Positions, also from the end, or a mask; nobody and nothing, too."""
    before, at = responses.digest(), np.arange(7)[np.asarray(chosen, dtype=None if len(chosen) else int)]
    items, people = responses.take_items(chosen), responses.take_persons(at)
    np.testing.assert_array_equal(items.to_dense(), AWKWARD[:, at])
    assert (items.items.tolist(), items.n_persons) == ([NAMES[i] for i in at], 8)
    np.testing.assert_array_equal(people.to_dense().reshape(len(at), 7), AWKWARD[at])
    assert (people.persons.tolist(), people.items.tolist()) == (at.tolist(), NAMES)
    assert responses.digest() == before


def test_people_stay_in_the_order_of_the_data_and_items_need_not(responses: Responses) -> None:
    assert responses.take_persons([6, 0]).persons.tolist() == [0, 6]
    np.testing.assert_array_equal(responses.take_persons(np.arange(8) > 5).to_dense(), AWKWARD[6:])
    np.testing.assert_array_equal(responses.take_items([3, 0]).to_dense(), AWKWARD[:, [3, 0]])


def test_positions_that_do_not_exist(responses: Responses) -> None:
    for wrong in ([8], [-9], [True, False]):
        with pytest.raises(IndexError):
            responses.take_persons(wrong)
        with pytest.raises(IndexError):
            responses.take_items(wrong)
    with pytest.raises(OptionError, match="more than once"):
        responses.take_items([1, 1])


def test_digest_does_not_depend_on_blocks(responses: Responses) -> None:
    person, item = np.nonzero(~np.isnan(AWKWARD))
    rebuilt = Responses.from_codes(
        person, item, AWKWARD[person, item] == 1, persons=responses.persons, items=responses.items
    )
    assert responses.digest() == rebuilt.digest()
    assert len(responses.digest()) == 32


def test_digest_sees_every_difference() -> None:
    base = Responses.from_wide(AWKWARD, items=NAMES)
    flipped, dropped = AWKWARD.copy(), AWKWARD.copy()
    flipped[0, 1], dropped[0, 1] = 1, np.nan
    others = [
        Responses.from_wide(flipped, items=NAMES),
        Responses.from_wide(dropped, items=NAMES),
        Responses.from_wide(AWKWARD[::-1], items=NAMES),
        Responses.from_wide(AWKWARD[:, ::-1], items=NAMES),
        Responses.from_wide(AWKWARD, items=[*NAMES[:-1], "cos"]),
        Responses.from_wide(AWKWARD),
        dataclasses.replace(base, persons=np.arange(1, 9)),
        Responses.from_wide(AWKWARD[:-1], items=NAMES),
    ]
    digests = {base.digest(), *(other.digest() for other in others)}
    assert len(digests) == len(others) + 1


def test_pickle(responses: Responses) -> None:
    again = pickle.loads(pickle.dumps(responses))
    assert again.digest() == responses.digest()
    np.testing.assert_array_equal(again.to_dense(), AWKWARD)


# ------------------------------------------------------------------ from_long


def test_from_long_sorts_labels_and_keeps_who_answered_nothing() -> None:
    responses = Responses.from_long(["zoe", "ann", "zoe", "ann", "bob"], [10, 9, 9, 10, 11], [1, 0, None, 1, np.nan])  # type: ignore[arg-type]
    assert responses.persons.tolist() == ["ann", "bob", "zoe"]  # as the same rows of a file or a dataframe give them
    assert responses.items.tolist() == [9, 10, 11]
    nan = np.nan
    np.testing.assert_array_equal(responses.to_dense(), [[0, 1, nan], [nan, nan, nan], [nan, 1, nan]])


def test_from_long_is_from_wide_melted() -> None:
    person, item = np.nonzero(~np.isnan(AWKWARD))
    order = np.random.default_rng(1).permutation(len(person))
    melted = Responses.from_long(person[order], item[order], AWKWARD[person, item][order])
    # The empty person and the item nobody answered have no row, so they cannot come back.
    seen = AWKWARD[np.ix_(np.unique(person), np.unique(item))]
    np.testing.assert_array_equal(melted.to_dense(), seen)
    assert melted.persons.tolist() == np.unique(person).tolist()


def test_from_long_repeats() -> None:
    columns = (["u", "u", "v"], ["i", "i", "i"], [1, 0, 1])
    with pytest.raises(DuplicateResponseError, match=r"\('u', 'i'\)"):
        Responses.from_long(*columns)
    assert Responses.from_long(*columns, duplicates="first").to_dense().tolist() == [[1], [1]]
    assert Responses.from_long(*columns, duplicates="last").to_dense().tolist() == [[0], [1]]
    with pytest.raises(OptionError, match=r"'error', 'first', 'last'"):
        Responses.from_long(*columns, duplicates="mean")  # type: ignore[arg-type]


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
def test_labels_come_out_as_they_went_in(labels: list[Any]) -> None:
    wide_table = Responses.from_wide([[1, 0, 1]], items=labels)
    assert wide_table.items.tolist() == labels
    long_table = Responses.from_long(labels, labels, [1, 0, 1])
    assert sorted(map(str, long_table.items.tolist())) == sorted(map(str, labels))
    assert sorted(map(str, long_table.persons.tolist())) == sorted(map(str, labels))


def test_from_long_takes_columns_of_any_library() -> None:
    expected = Responses.from_long(["a", "a", "b"], [1, 2, 1], [1, 0, np.nan])
    frame = pd.DataFrame({"person": ["a", "a", "b"], "item": [1, 2, 1], "right": pd.array([1, 0, None], dtype="Int64")})
    for table in (frame, pl.DataFrame(frame.astype({"right": float}).to_dict("list")), frame.convert_dtypes()):
        responses = Responses.from_long(table["person"], table["item"], table["right"])
        assert responses.digest() == expected.digest()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_from_long_an_answer_of_nobody_is_an_error(missing: object) -> None:
    with pytest.raises(ReadError, match="'person' names the people, and row 2 has no name"):
        Responses.from_long(np.array(["a", missing], dtype=object), ["q", "q"], [1, 0])


# --------------------------------------------------------------- as_responses


def test_as_responses() -> None:
    responses = Responses.from_wide(AWKWARD)
    assert as_responses(responses) is responses
    assert as_responses(AWKWARD).digest() == responses.digest()
    assert as_responses([[1.5, 2.5]], threshold=2).to_dense().tolist() == [[0, 1]]
    with pytest.raises(ReadError, match=r"spectral_irt\.read"):
        as_responses("answers.csv")
