"""Packing: answers in any order become blocks; repeats are settled as asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dense import table_of
from spectral_irt.data import Responses, packing
from spectral_irt.data.block import person_chunks
from spectral_irt.data.builder import Piece, ResponsesBuilder
from spectral_irt.data.packing import Repeats
from spectral_irt.data.scoring import Scoring
from spectral_irt.data.value_check import Place
from spectral_irt.errors import DuplicateResponseError, ReadError


def slots_of(answers: list[list[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
    """indptr and slots from the (item, right) pairs of every person."""
    indptr = np.cumsum([0] + [len(person) for person in answers])
    slots = np.array([2 * item + right for person in answers for item, right in person], dtype=np.int32)
    return indptr, slots


def pack(indptr: Any, slots: Any, duplicates: str, repeats: Repeats) -> tuple[Any, ...]:
    counts = np.diff(indptr)
    rows = packing.AnswerRows(np.repeat(np.arange(len(counts), dtype=np.int32), counts), slots)
    return tuple(packing.pack_rows([rows], counts, duplicates=duplicates, repeats=repeats))  # type: ignore[arg-type]


def packed(answers: list[list[tuple[int, int]]], n_items: int, duplicates: str = "error") -> Responses:
    indptr, slots = slots_of(answers)
    repeats = Repeats()
    made = Responses(pack(indptr, slots, duplicates, repeats), np.arange(n_items), np.arange(len(answers)))
    if duplicates == "error":
        repeats.complain(made.persons, made.items, made.source)
    return made


@pytest.mark.parametrize("size", [1, 3, 4, 10, 1000])
def test_user_chunks_are_whole_users_in_order(size: int) -> None:
    counts = np.array([0, 3, 1, 0, 5, 0, 2, 2, 0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    chunks = list(person_chunks(indptr, size))
    assert [stop for _, stop in chunks[:-1]] == [start for start, _ in chunks[1:]]
    assert chunks[0][0] == 0
    assert chunks[-1][1] == len(counts)
    for start, stop in chunks:
        assert stop > start
        assert counts[start:stop].sum() <= size or stop == start + 1


def test_any_order_of_answers() -> None:
    answers = [[(3, 0), (0, 1), (2, 1), (1, 0)], [], [(1, 1)], [(2, 0), (0, 0)]]
    expected = [[1, 0, 1, 0], [np.nan] * 4, [np.nan, 1, np.nan, np.nan], [0, np.nan, 0, np.nan]]
    responses = packed(answers, 4)
    np.testing.assert_array_equal(responses.to_dense(), expected)
    assert responses.blocks[0].items.tolist() == [0, 2, 1, 3, 1, 0, 2]


@pytest.mark.parametrize("size", [1, 5, 50])
def test_one_block_and_many_are_the_same_data(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X = np.where(rng.random((40, 12)) < 0.4, rng.integers(0, 2, (40, 12)), np.nan)
    person, item = np.nonzero(~np.isnan(X))
    shuffled = rng.permutation(len(person))
    person, item = person[shuffled], item[shuffled]
    labels: dict[str, Any] = {"persons": np.arange(40), "items": np.arange(12)}
    whole = Responses.from_codes(person, item, X[person, item] == 1, **labels)
    monkeypatch.setattr(person_chunks, "__defaults__", (size,))
    parts = Responses.from_codes(person, item, X[person, item] == 1, **labels)
    assert len(parts.blocks) > len(whole.blocks) == 1
    np.testing.assert_array_equal(whole.to_dense(), X)
    np.testing.assert_array_equal(parts.to_dense(), X)
    assert parts.digest() == whole.digest()


REPEATED = [[(0, 1), (1, 0), (0, 0), (0, 0)], [(2, 1)], [(1, 0), (1, 1)]]


@pytest.mark.parametrize(
    ("duplicates", "expected"),
    [
        ("first", [[1, 0, np.nan], [np.nan, np.nan, 1], [np.nan, 0, np.nan]]),
        ("last", [[0, 0, np.nan], [np.nan, np.nan, 1], [np.nan, 1, np.nan]]),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_repeats_keep_the_answer_asked_for(
    duplicates: str, expected: list[list[float]], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_chunks, "__defaults__", (size,))
    np.testing.assert_array_equal(packed(REPEATED, 3, duplicates).to_dense(), expected)


def test_repeats_are_an_error_that_counts_and_names_pairs() -> None:
    with pytest.raises(DuplicateResponseError, match=r"2 \(person, item\) pairs.*\(0, 0\), \(2, 1\).*duplicates="):
        packed(REPEATED, 3)


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_random_repeats_against_a_loop(duplicates: str) -> None:
    rng = np.random.default_rng(5)
    person, item = rng.integers(0, 15, 300), rng.integers(0, 8, 300)
    right = rng.random(300) < 0.5
    responses = Responses.from_codes(
        person,
        item,
        right,
        persons=np.arange(15),
        items=np.arange(8),
        duplicates=duplicates,  # type: ignore[arg-type]
    )
    rows = list(zip(person, item, right, strict=True))
    if duplicates == "first":
        rows.reverse()
    expected = table_of(rows, shape=(15, 8))
    np.testing.assert_array_equal(responses.to_dense(), expected)


def test_large_item_codes_survive() -> None:
    n_items = 2**30
    codes = np.array([n_items - 1, 0, n_items // 2])
    right = np.array([False, True, True])
    block = Responses.from_codes(
        np.zeros(3, dtype=np.int64), codes, right, persons=np.arange(1), items=np.broadcast_to(np.int64(0), n_items)
    ).blocks[0]
    assert block.items.tolist() == [0, n_items // 2, n_items - 1]
    assert block.right().tolist() == [True, True, False]


@pytest.mark.parametrize("bits", [1, 7])
def test_an_item_that_no_slot_can_hold_is_refused(bits: int) -> None:
    last = (1 << (31 - bits)) - 1
    held = packing.slots_of(np.array([0, last]), np.array([1, 1], dtype=np.uint8), bits)
    assert (held >> bits).tolist() == [0, last]
    with pytest.raises(ReadError, match=f"more than {last + 1:,} items"):
        packing.slots_of(np.array([0, last + 1]), np.array([1, 1], dtype=np.uint8), bits)


def test_more_items_than_ordered_answers_can_have() -> None:
    scoring = Scoring(ordered=True)
    builder = ResponsesBuilder(scoring, "the data", list)
    item = np.array([0, 1 << (31 - scoring.bits)])
    with pytest.raises(ReadError, match="items, the most that answers in up to 128 categories can have"):
        builder.add(Piece(np.array([0, 0]), item, np.array([2.0, 1.0]), lambda k: Place("the data", "q", k)))
