"""from_wide: every way of handing over the same table gives the same responses, and bad values are named."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from dense import AWKWARD
from spectral_irt.data import Responses, builder
from spectral_irt.data.labels import label_array
from spectral_irt.errors import OptionError, ReadError, ResponseValueError

N_USERS, N_ITEMS = AWKWARD.shape
NAMES = [f"q{i}" for i in range(N_ITEMS)]


def stored(table: np.ndarray, kind: Any = sparse.csr_array) -> Any:
    """Sparse with the zeros stored."""
    person, item = np.nonzero(~np.isnan(table))
    return kind(sparse.coo_array((table[person, item], (person, item)), shape=table.shape))


def with_none(table: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(x) else x for x in row] for row in table]


WAYS = {
    "float array": AWKWARD,
    "float32 array": AWKWARD.astype(np.float32),
    "Fortran order": np.asfortranarray(AWKWARD),
    "list with None": with_none(AWKWARD),
    "object array with None": np.array(with_none(AWKWARD), dtype=object),
    "object array with NaN": AWKWARD.astype(object),
    "object array with NA": pd.DataFrame(AWKWARD).astype("Int64").to_numpy(dtype=object),
    "masked floats": np.ma.masked_invalid(AWKWARD),
    "masked integers": np.ma.array(np.nan_to_num(AWKWARD, nan=7).astype(int), mask=np.isnan(AWKWARD)),
    "csr": stored(AWKWARD),
    "csc": stored(AWKWARD, sparse.csc_array),
    "coo": stored(AWKWARD, sparse.coo_array),
    "csr_matrix": stored(AWKWARD, sparse.csr_matrix),
    "integer csr": stored(AWKWARD).astype(np.int8),
    "pandas": pd.DataFrame(AWKWARD),
    "pandas Int64": pd.DataFrame(AWKWARD).astype("Int64"),
    "pandas object": pd.DataFrame(with_none(AWKWARD), dtype=object),
    "polars": pl.DataFrame(AWKWARD, schema=NAMES),
    "polars nulls": pl.DataFrame(with_none(AWKWARD), schema=NAMES, orient="row"),
    "pyarrow": pa.table(dict(zip(NAMES, [list(c) for c in zip(*with_none(AWKWARD), strict=True)], strict=True))),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_same_responses(way: str) -> None:
    responses = Responses.from_wide(WAYS[way])
    np.testing.assert_array_equal(responses.to_dense(), AWKWARD)
    assert responses.n_persons == N_USERS
    assert [int(str(label).lstrip("q")) for label in responses.items] == list(range(N_ITEMS))


@pytest.mark.parametrize("size", [1, 20, 10**6])
def test_blocks_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", size)
    for table in (AWKWARD, WAYS["csr"], WAYS["polars"]):
        np.testing.assert_array_equal(Responses.from_wide(table).to_dense(), AWKWARD)


def test_integers_and_booleans() -> None:
    table = np.array([[1, 0, 1], [0, 0, 1]])
    for dtype in (np.int8, np.uint16, np.int64, bool):
        np.testing.assert_array_equal(Responses.from_wide(table.astype(dtype)).to_dense(), table)
    frame = pd.DataFrame(table.astype(bool))
    np.testing.assert_array_equal(Responses.from_wide(frame).to_dense(), table)
    np.testing.assert_array_equal(Responses.from_wide(pl.DataFrame(table.astype(bool))).to_dense(), table)


def test_input_is_left_alone() -> None:
    table, matrix, frame = AWKWARD.copy(), stored(AWKWARD), pd.DataFrame(AWKWARD, columns=NAMES)
    before = matrix.copy()
    for data in (table, matrix, frame):
        Responses.from_wide(data)
        Responses.from_wide(data, threshold=0.5)
    np.testing.assert_array_equal(table, AWKWARD)
    np.testing.assert_array_equal(matrix.data, before.data)
    np.testing.assert_array_equal(matrix.indices, before.indices)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(AWKWARD, columns=NAMES))


def test_orient_items() -> None:
    np.testing.assert_array_equal(Responses.from_wide(AWKWARD.T, orient="items").to_dense(), AWKWARD)
    np.testing.assert_array_equal(Responses.from_wide(stored(AWKWARD).T, orient="items").to_dense(), AWKWARD)
    np.testing.assert_array_equal(Responses.from_wide(pd.DataFrame(AWKWARD.T), orient="items").to_dense(), AWKWARD)
    with pytest.raises(OptionError, match="'persons', 'items'"):
        Responses.from_wide(AWKWARD, orient="rows")


# ------------------------------------------------------------------ dataframes


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (pd.DataFrame({"who": ["ann", "bob"], "a": [1, 0], "b": [None, 1]}), "pandas"),
        (pl.DataFrame({"who": ["ann", "bob"], "a": [1, 0], "b": [None, 1]}), "polars"),
        (pa.table({"who": ["ann", "bob"], "a": [1, 0], "b": [None, 1]}), "pyarrow"),
    ],
)
def test_frames_keep_labels_and_kind(frame: Any, kind: str) -> None:
    responses = Responses.from_wide(frame, person="who")
    assert responses.persons.tolist() == ["ann", "bob"]
    assert responses.items.tolist() == ["a", "b"]
    assert responses.frame_kind == kind
    np.testing.assert_array_equal(responses.to_dense(), [[1, np.nan], [0, 1]])
    chosen = Responses.from_wide(frame, items=["b"])
    assert chosen.items.tolist() == ["b"]
    np.testing.assert_array_equal(chosen.to_dense(), [[np.nan], [1]])
    assert Responses.from_wide(frame).persons.tolist() == ["ann", "bob"]  # as `read` takes it
    with pytest.raises(OptionError, match=r"no column 'name'.*'who', 'a', 'b'"):
        Responses.from_wide(frame, person="name")
    with pytest.raises(OptionError, match="no column 'c'"):
        Responses.from_wide(frame, items=["a", "c"])


def test_pandas_index_labels_users() -> None:
    frame = pd.DataFrame({"a": [1, 0]}, index=["ann", "bob"])
    assert Responses.from_wide(frame).persons.tolist() == ["ann", "bob"]
    frame = pd.DataFrame({"a": [1, 0]}, index=["ann", "ann"])
    assert Responses.from_wide(frame).persons.tolist() == [0, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame([[1, 0]], columns=["a", "a"]), pa.table([[1], [0]], names=["a", "a"])])
def test_a_column_name_twice(frame: Any) -> None:
    with pytest.raises(ReadError, match=r"must differ.*'a'"):
        Responses.from_wide(frame)


def test_a_lazy_frame_is_collected() -> None:
    frame = pl.LazyFrame(AWKWARD, schema=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(Responses.from_wide(frame).to_dense(), AWKWARD)


def test_user_is_for_frames() -> None:
    for table in (AWKWARD, stored(AWKWARD)):
        with pytest.raises(OptionError, match="this table is an array"):
            Responses.from_wide(table, person="who")


def test_pandas_columns_of_integers() -> None:
    frame = pd.DataFrame({101: [1, 0], 7: [0, 1]})
    assert Responses.from_wide(frame).items.tolist() == [101, 7]


# ---------------------------------------------------------------------- labels


def test_item_labels() -> None:
    assert Responses.from_wide(AWKWARD, items=NAMES).items.tolist() == NAMES
    assert Responses.from_wide(stored(AWKWARD), items=NAMES).items.tolist() == NAMES
    assert Responses.from_wide(AWKWARD, items=np.array(NAMES)).items.tolist() == NAMES  # type: ignore[arg-type]
    assert Responses.from_wide(AWKWARD).items.dtype == np.int64
    for table in (AWKWARD, stored(AWKWARD)):
        with pytest.raises(OptionError, match=r"2 labels.*7 columns"):
            Responses.from_wide(table, items=["a", "b"])
        with pytest.raises(ReadError, match=r"must differ.*'q0'"):
            Responses.from_wide(table, items=[*NAMES[:-1], "q0"])


def test_label_array_never_cuts_or_pads() -> None:
    assert label_array(["a", "long label"]).dtype == object
    assert label_array([1, 2]).dtype == np.int64
    assert label_array(np.array([3, 4], dtype=np.int8)).dtype == np.int64
    assert label_array([1, "1"]).tolist() == [1, "1"]
    assert label_array([True, False]).dtype == object
    assert label_array([]).tolist() == []


# -------------------------------------------------------------------- bad input


def test_the_place_of_a_bad_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", 4)
    table = np.ones((6, 2))
    table[4, 1] = 0.5
    with pytest.raises(ResponseValueError, match=r"column 'b', row 4 holds 0.5"):
        Responses.from_wide(table, items=["a", "b"])
    with pytest.raises(ResponseValueError, match=r"column 1, row 4 holds 0.5"):
        Responses.from_wide(table)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 2, -99, 0.5])
def test_other_values_are_errors(value: float) -> None:
    with pytest.raises(ResponseValueError):
        Responses.from_wide([[0, 1], [1, value]])
    with pytest.raises(ResponseValueError):
        Responses.from_long([0, 0, 1], [0, 1, 0], [1, 0, value])


def test_text_is_scored_as_in_a_file() -> None:
    table = [["A", "B"], ["C", "NA"]]
    with pytest.raises(ResponseValueError, match=r"column 0, row 0 holds 'A'.*`key`, `correct`"):
        Responses.from_wide(table)
    expected = [[1, 0], [0, np.nan]]
    for data in (table, np.array(table)):
        np.testing.assert_array_equal(Responses.from_wide(data, correct="A").to_dense(), expected)
    for data in (pd.DataFrame(table), pl.DataFrame(table, orient="row")):
        found = Responses.from_wide(data, items=list(data.columns), correct="A")
        np.testing.assert_array_equal(found.to_dense(), expected)
    assert Responses.from_long([1, 1, 2], [1, 2, 1], ["A", "B", "A"], correct="A").scores.tolist() == [1, 1]


@pytest.mark.parametrize("table", [[1, 0, 1], [[[1, 0]]], 1, [[1, 0], [1]], pd.Series([1, 0])])
def test_other_shapes_are_errors(table: Any) -> None:
    with pytest.raises(ReadError, match="2-D"):
        Responses.from_wide(table)


def test_complex_numbers_are_an_error() -> None:
    with pytest.raises(ReadError, match="Complex"):
        Responses.from_wide(np.array([[1 + 0j, 0]]))


# ---------------------------------------------------------------- sparse traps


def test_sparse_without_a_stored_zero_is_an_error() -> None:
    matrix = stored(AWKWARD)
    matrix.eliminate_zeros()
    with pytest.raises(ResponseValueError, match="every stored response of the sparse matrix is 1"):
        Responses.from_wide(matrix)


def test_stored_nan_is_absent() -> None:
    matrix = sparse.csr_array(([1.0, 0.0, np.nan], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    np.testing.assert_array_equal(Responses.from_wide(matrix).to_dense(), [[1, 0], [np.nan, np.nan]])


def test_sparse_with_nothing_stored() -> None:
    assert Responses.from_wide(sparse.csr_array((3, 2))).counts.tolist() == [0, 0, 0]


def test_a_pair_stored_twice_in_a_sparse_matrix_is_not_added_up() -> None:
    matrix = sparse.coo_array(([1.0, 0.0], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(ValueError, match="more than once"):
        Responses.from_wide(matrix)
