"""Packing: answers in any order become blocks of whole people; repeats are settled; rows may wait in a file."""

import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from dense import AWKWARD, table_of
from reading import save
from spectral_irt import numerics, read, set_memory
from spectral_irt.data import Responses, builder
from spectral_irt.data.block import person_chunks
from spectral_irt.data.builder import ResponsesBuilder
from spectral_irt.data.scoring import Scoring
from spectral_irt.engine.base import budget
from spectral_irt.errors import DuplicateResponseError, OutputError, ReadError
from spectral_irt.reading import frame as tabular
from spectral_irt.reading import long_builder

N_ITEMS = AWKWARD.shape[1]


@pytest.mark.parametrize("size", [1, 3, 4, 10, 1000])
def test_chunks_are_whole_people_in_order(size):
    counts = np.array([0, 3, 1, 0, 5, 0, 2, 2, 0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    chunks = list(person_chunks(indptr, size))
    assert [0, *(stop for _, stop in chunks)] == [*(start for start, _ in chunks), len(counts)]
    for start, stop in chunks:
        assert stop > start
        assert counts[start:stop].sum() <= size or stop == start + 1


def test_any_order_of_answers():
    person, item, right = [0, 0, 0, 0, 2, 3, 3], [3, 0, 2, 1, 1, 2, 0], [0, 1, 1, 0, 1, 0, 0]
    found = Responses.from_codes(
        np.array(person), np.array(item), np.array(right) == 1, persons=np.arange(4), items=np.arange(4)
    )
    expected = [[1, 0, 1, 0], [np.nan] * 4, [np.nan, 1, np.nan, np.nan], [0, np.nan, 0, np.nan]]
    np.testing.assert_array_equal(found.to_dense(), expected)
    assert found.blocks[0].items.tolist() == [0, 2, 1, 3, 1, 0, 2]  # right answers first, by item


@pytest.mark.parametrize("size", [1, 5, 50])
@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_blocks_of_any_size_and_repeats_against_a_loop(duplicates, size, monkeypatch):
    rng = np.random.default_rng(5)
    person, item, right = rng.integers(0, 15, 300), rng.integers(0, 8, 300), rng.random(300) < 0.5
    how = {"persons": np.arange(15), "items": np.arange(8)}
    with pytest.raises(DuplicateResponseError, match=r"\(person, item\) pairs .*duplicates="):
        Responses.from_codes(person, item, right, **how)
    whole = Responses.from_codes(person, item, right, **how, duplicates=duplicates)
    monkeypatch.setattr(person_chunks, "__defaults__", (size,))
    parts = Responses.from_codes(person, item, right, **how, duplicates=duplicates)
    assert len(parts.blocks) > len(whole.blocks) == 1
    rows = list(zip(person, item, right, strict=True))
    expected = table_of(rows if duplicates == "last" else rows[::-1], shape=(15, 8))
    for found in (whole, parts):
        np.testing.assert_array_equal(found.to_dense(), expected)
    assert parts.digest() == whole.digest()


def test_large_item_codes_survive():
    n_items = 2**30
    codes = np.array([n_items - 1, 0, n_items // 2])
    right = np.array([False, True, True])
    block = Responses.from_codes(
        np.zeros(3, dtype=np.int64), codes, right, persons=np.arange(1), items=np.broadcast_to(np.int64(0), n_items)
    ).blocks[0]
    assert block.items.tolist() == [0, n_items // 2, n_items - 1]
    assert block.right().tolist() == [True, True, False]


@pytest.mark.parametrize("bits", [1, 7])
def test_an_item_that_no_slot_can_hold_is_refused(bits):
    last = (1 << (31 - bits)) - 1
    held = builder.slots_of(np.array([0, last]), np.array([1, 1], dtype=np.uint8), bits)
    assert (held >> bits).tolist() == [0, last]
    with pytest.raises(ReadError, match=f"more than {last + 1:,} items"):
        builder.slots_of(np.array([0, last + 1]), np.array([1, 1], dtype=np.uint8), bits)


def test_more_items_than_ordered_answers_can_have():
    scoring = Scoring(ordered=True)
    builder = ResponsesBuilder(scoring, "the data", list)
    item = np.array([0, 1 << (31 - scoring.bits)])
    with pytest.raises(ReadError, match="items, the most that answers in up to 128 categories can have"):
        builder.add(np.array([0, 0]), item, np.array([2.0, 1.0]), lambda k: ("the data", "q", k))


@pytest.fixture
def block():
    return Responses.from_wide(AWKWARD).blocks[0]


def dense(block, n_items=N_ITEMS):
    """The table a block stands for, read straight from its definition."""
    X = np.full((block.n_persons, n_items), np.nan)
    for person in range(block.n_persons):
        for k in range(block.indptr[person], block.indptr[person + 1]):
            X[person, block.items[k]] = 1 if k < block.split[person] else 0
    return X


def test_packs_ones_first_then_zeros_in_item_order(block):
    np.testing.assert_array_equal(dense(block), AWKWARD)
    assert block.items.dtype == np.int32
    assert block.items[:5].tolist() == [0, 2, 6, 1, 3]  # person 0: right on 0, 2, 6, wrong on 1, 3
    assert block.split[0] == 3
    # Not the empty person (1), the perfect one (3), the one with nothing right (4), nor the one with one answer (5).
    assert np.flatnonzero(block.informative).tolist() == [0, 2, 6, 7]


@pytest.mark.parametrize("n_items", [N_ITEMS, N_ITEMS + 4])
def test_matrices_have_a_row_of_right_and_a_row_of_wrong_answers_a_person(block, n_items):
    rows = block.pattern(n_items).toarray()
    right, wrong = block.halves(n_items)
    assert rows.shape == (2 * block.n_persons, n_items)
    assert right.shape == wrong.shape == (block.n_persons, n_items)
    for both, half, answer in ((rows[0::2], right, 1), (rows[1::2], wrong, 0)):
        np.testing.assert_array_equal(both[:, :N_ITEMS], answer == AWKWARD)
        np.testing.assert_array_equal(half.toarray(), both)
    assert block.pattern(n_items) is block.pattern(n_items)
    assert block.halves(n_items)[0] is right


def test_threads_that_make_patterns_at_once_each_get_all_their_values(monkeypatch):
    """The shared values are grown by whoever needs more; too short an array would be read beyond its end."""

    class Overtaken(np.ndarray):
        """Another thread, which needs one value only, puts its array in place as soon as this one is there."""

        def setflags(self, **flags):
            numerics._ones[np.float64] = np.ones(1)

    monkeypatch.setattr(numerics, "_ones", {})
    monkeypatch.setattr(numerics, "np", SimpleNamespace(ones=lambda size, dtype: np.ones(size).view(Overtaken)))
    assert len(numerics.shared_ones(5)) == 5


def test_parts_of_a_block(block):
    for persons in ([0, 2, 7], [1], [3, 3, 1], [], range(8)):
        np.testing.assert_array_equal(dense(block.take(np.array(persons, dtype=np.int64))), AWKWARD[list(persons)])
    kept = block.keep_items(np.array([-1, 1, -1, 2, 0, -1, -1], dtype=np.int32))
    np.testing.assert_array_equal(dense(kept, 3), AWKWARD[:, [4, 1, 3]])


def test_pickle_carries_the_answers_and_not_the_matrices(block):
    bare = len(pickle.dumps(block))
    block.pattern(N_ITEMS)
    assert len(pickle.dumps(block)) == bare
    np.testing.assert_array_equal(dense(pickle.loads(pickle.dumps(block))), AWKWARD)


@pytest.fixture
def no_room(tmp_path, monkeypatch):
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tabular, "PIECE_ROWS", 70)
    set_memory("1B", folder)
    yield folder
    assert list(folder.iterdir()) == []
    set_memory()


def answers(twice=False):
    rng = np.random.default_rng(4)
    person, item = np.divmod(rng.permutation(60 * 25)[:900], 25)
    frame = pl.DataFrame({"person": person, "item": item, "response": rng.integers(0, 5, 900)})
    again = frame.sample(50, seed=1).with_columns(response=4 - pl.col("response"))
    return pl.concat([frame, again]) if twice else frame


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 2},
        {"key": {k: str(k % 5) for k in range(25)}},
        {"threshold": 2, "duplicates": "first"},
        {"ordered": True},
        {"ordered": True, "duplicates": "last"},
    ],
)
def test_a_file_between_gives_the_same_responses(tmp_path, no_room, options, monkeypatch):
    file = save(answers(twice="duplicates" in options), tmp_path / "a.parquet")
    monkeypatch.setattr(builder, "DEALT", 200)
    spilled = read(file, **options)
    assert budget().spill.written
    set_memory("4GB")
    held = read(file, **options)
    assert not budget().spill.written
    assert spilled.digest() == held.digest()
    for one, other in zip(spilled.blocks, held.blocks, strict=True):
        np.testing.assert_array_equal(one.items, other.items)
        np.testing.assert_array_equal(one.options, other.options)


def test_a_disk_that_fills_is_an_error(tmp_path, no_room, monkeypatch):
    def full(*args):
        raise OSError(28, os.strerror(28))

    file = save(answers(), tmp_path / "a.parquet")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match=r"cannot be written to '.*spill': the disk is full"):
        read(file, threshold=2)


@pytest.mark.parametrize("one_hash", [False, True])
def test_labels_that_look_alike_are_different(one_hash, monkeypatch):
    """In pieces of a few rows; also where texts have one hash, and are told apart by the other."""
    labels = [".", " .", "a", "a ", "A", "a\0", "\0a", "\u00e4", "a\u0308", "1", "01", "1.0", "x" * 300, "x" * 301]
    labels += [f"label {k}" for k in range(100)]
    monkeypatch.setattr(tabular, "PIECE_ROWS", 9)
    if one_hash:
        honest = long_builder._keys_of

        def alike(labels):
            first, *second = honest(labels)
            return (first % np.uint64(3) if second else first, *second)

        monkeypatch.setattr(long_builder, "_keys_of", alike)
    columns = {"person": [0] * len(labels) + [1] * len(labels), "item": labels + labels[::-1]}
    found = read(pl.DataFrame({**columns, "response": [k % 2 for k in range(len(labels))] * 2}))
    assert found.items.tolist() == sorted(labels)
    order = np.argsort(np.array(labels, dtype=object))
    expected = np.arange(len(labels)) % 2
    np.testing.assert_array_equal(found.to_dense(), [expected[order], expected[::-1][order]])


def test_threads_share_a_block():
    answers = (np.random.default_rng(5).random((400, 6)) < 0.5).astype(float)
    barrier = threading.Barrier(8)

    def nnz(block):
        barrier.wait()
        return sum(half.nnz for half in block.halves(6))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(30):
                assert set(pool.map(nnz, [Responses.from_wide(answers).blocks[0]] * 8)) == {answers.size}
    finally:
        sys.setswitchinterval(interval)
