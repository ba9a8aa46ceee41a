"""Every way of handing over the same table gives the same responses, by the same rules, and the same complaints."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from dense import AWKWARD
from reading import save
from spectral_irt.data import Responses, builder
from spectral_irt.errors import OptionError, ReadError, ResponseValueError
from spectral_irt.reading import read

_ = np.nan
ORDERED = np.array(
    [[_] * 7, [0, 1, 2, _, 0, 1, 0], [2, 0, 3, 1, 1, 0, 2], [1, 1, 0, 0, 2, 2, 1], [0, _, 1, _, _, 0, 1]]
)
NAMES = [f"q{i}" for i in range(AWKWARD.shape[1])]


def stored(table, kind=sparse.csr_array):
    """Sparse with the zeros stored."""
    person, item = np.nonzero(~np.isnan(table))
    return kind(sparse.coo_array((table[person, item], (person, item)), shape=table.shape))


def with_none(table):
    return [[None if np.isnan(x) else x for x in row] for row in table]


WAYS = {
    "float array": np.copy,
    "float32 array": lambda table: table.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "list with None": with_none,
    "object array with None": lambda table: np.array(with_none(table), dtype=object),
    "object array with NaN": lambda table: table.astype(object),
    "object array with NA": lambda table: pd.DataFrame(table).astype("Int64").to_numpy(dtype=object),
    "masked floats": np.ma.masked_invalid,
    "masked integers": lambda table: np.ma.array(np.nan_to_num(table, nan=7).astype(int), mask=np.isnan(table)),
    "csr": stored,
    "csc": lambda table: stored(table, sparse.csc_array),
    "coo": lambda table: stored(table, sparse.coo_array),
    "csr_matrix": lambda table: stored(table, sparse.csr_matrix),
    "integer csr": lambda table: stored(table).astype(np.int8),
    "pandas": pd.DataFrame,
    "pandas Int64": lambda table: pd.DataFrame(table).astype("Int64"),
    "pandas object": lambda table: pd.DataFrame(with_none(table), dtype=object),
    "polars": lambda table: pl.DataFrame(table, schema=NAMES),
    "polars nulls": lambda table: pl.DataFrame(with_none(table), schema=NAMES, orient="row"),
    "lazy": lambda table: pl.LazyFrame(table, schema=NAMES),
    "pyarrow": lambda table: pa.table(dict(zip(NAMES, map(list, zip(*with_none(table), strict=True)), strict=True))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", [AWKWARD, ORDERED], ids=["right and wrong", "ordered"])
def test_every_way_in_gives_the_same_responses(way, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        responses = Responses.from_wide(WAYS[way](table), ordered=table is ORDERED)
    np.testing.assert_array_equal(responses.to_dense(), table)
    assert [int(str(label).lstrip("q")) for label in responses.items] == list(range(7))


def test_integers_and_booleans():
    table = np.array([[1, 0, 1], [0, 0, 1]])
    typed = [table.astype(dtype) for dtype in (np.int8, np.uint16, np.int64, bool)]
    for given in (*typed, pd.DataFrame(typed[-1]), pl.DataFrame(typed[-1])):
        np.testing.assert_array_equal(Responses.from_wide(given).to_dense(), table)


def test_input_is_left_alone():
    table, matrix, frame = AWKWARD.copy(), stored(AWKWARD), pd.DataFrame(AWKWARD, columns=NAMES)
    before = matrix.copy()
    for data in (table, matrix, frame):
        Responses.from_wide(data)
        Responses.from_wide(data, threshold=0.5)
    np.testing.assert_array_equal(table, AWKWARD)
    np.testing.assert_array_equal(matrix.data, before.data)
    np.testing.assert_array_equal(matrix.indices, before.indices)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(AWKWARD, columns=NAMES))


def test_orient_items():
    np.testing.assert_array_equal(Responses.from_wide(AWKWARD.T, orient="items").to_dense(), AWKWARD)
    np.testing.assert_array_equal(Responses.from_wide(stored(AWKWARD).T, orient="items").to_dense(), AWKWARD)
    np.testing.assert_array_equal(Responses.from_wide(pd.DataFrame(AWKWARD.T), orient="items").to_dense(), AWKWARD)
    with pytest.raises(OptionError, match="'persons', 'items'"):
        Responses.from_wide(AWKWARD, orient="rows")


CODED = np.array([[1, 0, 9, 1], [0, 1, 1, 0], [1, 9, 0, 0]])
FRAME = pl.DataFrame(CODED, schema=NAMES[:4])
LONG = FRAME.with_row_index("person").unpivot(index="person", variable_name="item", value_name="response")
CELLS = sparse.coo_array((CODED.ravel(), np.divmod(np.arange(12), 4)), shape=(3, 4))
DOORS = {
    "array": lambda at, **how: Responses.from_wide(CODED, items=NAMES[:4], **how),
    "array of text": lambda at, **how: Responses.from_wide(CODED.astype(str), items=NAMES[:4], **how),
    "sparse": lambda at, **how: Responses.from_wide(CELLS, items=NAMES[:4], **how),
    "columns": lambda at, **how: Responses.from_long(*(LONG[:, k].to_list() for k in range(3)), **how),
    "polars": lambda at, **how: read(FRAME, **how),
    "pandas": lambda at, **how: read(FRAME.to_pandas(), **how),
    "long frame": lambda at, **how: read(LONG, **how),
    **{
        f"{shape} {ending}": lambda at, frame=frame, ending=ending, **how: read(save(frame, at / f"a.{ending}"), **how)
        for shape, frame in (("wide", FRAME), ("long", LONG))
        for ending in ("csv", "parquet", "arrow", "jsonl")
    },
}


@pytest.mark.parametrize("door", DOORS)
def test_the_same_rules_and_complaint(door, tmp_path):
    expected = np.where(CODED == 9, np.nan, CODED)
    np.testing.assert_array_equal(DOORS[door](tmp_path, missing=9).to_dense(), expected)
    np.testing.assert_array_equal(DOORS[door](tmp_path, threshold=1).to_dense(), CODED > 1)
    np.testing.assert_array_equal(DOORS[door](tmp_path, correct=[1, "9"]).to_dense(), CODED > 0)
    assert DOORS[door](tmp_path, missing=9).items.tolist() == NAMES[:4]
    said = r"holds 9, which is neither 0/1 nor missing \(2 such values: 9\).* means 'not answered', say `missing='9'`\."
    with pytest.raises(ResponseValueError, match=said):
        DOORS[door](tmp_path)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_keep_labels_and_kind(kind):
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind]
    frame = library({"who": ["ann", "bob"], "a": [1, 0], "b": [None, 1]})
    responses = Responses.from_wide(frame, person="who")
    assert responses.persons.tolist() == ["ann", "bob"]
    assert responses.items.tolist() == ["a", "b"]
    assert responses.frame_kind == kind
    np.testing.assert_array_equal(responses.to_dense(), [[1, np.nan], [0, 1]])
    chosen = Responses.from_wide(frame, items=["b"])
    assert chosen.items.tolist() == ["b"]
    np.testing.assert_array_equal(chosen.to_dense(), [[np.nan], [1]])
    assert Responses.from_wide(frame).persons.tolist() == ["ann", "bob"]  # as `read` takes it
    for how, said in (
        ({"person": "name"}, r"no column 'name'.*'who', 'a', 'b'"),
        ({"items": ["a", "c"]}, "no column 'c'"),
    ):
        with pytest.raises(OptionError, match=said):
            Responses.from_wide(frame, **how)


def test_pandas_index_labels_people_and_columns_of_integers_items():
    frame = pd.DataFrame({101: [1, 0], 7: [0, 1]}, index=["ann", "bob"])
    assert Responses.from_wide(frame).persons.tolist() == ["ann", "bob"]
    assert Responses.from_wide(frame).items.tolist() == [101, 7]
    assert Responses.from_wide(frame.set_axis(["ann", "ann"])).persons.tolist() == [0, 1]


def test_item_labels():
    for table in (AWKWARD, stored(AWKWARD)):
        for names in (NAMES, np.array(NAMES)):
            assert Responses.from_wide(table, items=names).items.tolist() == NAMES
        with pytest.raises(OptionError, match=r"2 labels.*7 columns"):
            Responses.from_wide(table, items=["a", "b"])
        with pytest.raises(ReadError, match=r"must differ.*'q0'"):
            Responses.from_wide(table, items=[*NAMES[:-1], "q0"])
        with pytest.raises(OptionError, match="this table is an array"):
            Responses.from_wide(table, person="who")
    assert Responses.from_wide(AWKWARD).items.dtype == np.int64


TWICE = sparse.coo_array(([1.0, 0.0], ([0, 0], [1, 1])), shape=(1, 2))
ONES = sparse.csr_array(np.array([[1, 0], [0, 1]]))


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        *((table, ReadError, "2-D") for table in ([1, 0, 1], [[[1, 0]]], 1, [[1, 0], [1]], pd.Series([1, 0]))),
        (pd.DataFrame([[1, 0]], columns=["a", "a"]), ReadError, r"must differ.*'a'"),
        (pa.table([[1], [0]], names=["a", "a"]), ReadError, r"must differ.*'a'"),
        (np.array([[1 + 0j, 0]]), ReadError, "Complex"),
        *((table, ReadError, "no items") for table in (np.zeros((3, 0)), sparse.csr_array((3, 0)))),
        *(([[0, 1], [1, value]], ResponseValueError, "holds") for value in (np.inf, -np.inf, 2.5, -99, 0.5)),
        ([["A", "B"], ["C", "NA"]], ResponseValueError, r"column 0, row 0 holds 'A'.*`key=`.*`correct=`"),
        (ONES, ResponseValueError, "every stored response of the sparse matrix is 1"),
        (TWICE, ValueError, "more than once"),  # not added up
    ],
)
def test_tables_that_are_none(table, error, said):
    with pytest.raises(error, match=said):
        Responses.from_wide(table)


def test_the_place_of_a_bad_value(monkeypatch):
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", 4)
    table = np.ones((6, 2))
    table[4, 1] = 0.5
    with pytest.raises(ResponseValueError, match=r"column 'b', row 4 holds 0.5"):
        Responses.from_wide(table, items=["a", "b"])
    with pytest.raises(ResponseValueError, match=r"column 1, row 4 holds 0.5"):
        Responses.from_wide(table)


def test_text_that_means_missing():
    assert Responses.from_wide([["A", "B"], ["C", "NA"]], correct="A").counts.tolist() == [2, 1]


def test_sparse_matrices_with_nan_or_nothing_stored():
    matrix = sparse.csr_array(([1.0, 0.0, np.nan], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    np.testing.assert_array_equal(Responses.from_wide(matrix).to_dense(), [[1, 0], [np.nan, np.nan]])
    assert Responses.from_wide(sparse.csr_array((3, 2))).counts.tolist() == [0, 0, 0]
