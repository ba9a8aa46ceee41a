"""People without a name are refused, in every kind of file and table; numbers too large for 64 bits stay themselves."""

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from spectral_irt.data import Responses
from spectral_irt.errors import ReadError
from spectral_irt.reading import read

NOBODY = ["NA", "NaN", "nan", "null", " NA ", ""]
LARGE = 2**63 + 5


def long_table(label):
    persons = pl.Series(["ann", label, "bob", label], dtype=pl.String)
    return pl.DataFrame({"person": persons, "item": ["a", "b", "a", "a"], "response": [1, 0, 1, 1]})


def wide_table(label):
    persons = pl.Series(["ann", label, "bob", label], dtype=pl.String)
    return pl.DataFrame({"student": persons, "a": [1, 0, 1, 1], "b": [0, 1, 1, 0]})


def save(table, path):
    if path.suffix == ".parquet":
        table.write_parquet(path)
    elif path.suffix == ".arrow":
        table.write_ipc(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dicts()))
    else:
        table.write_csv(path, quote_style="always")
    return path


@pytest.mark.parametrize(
    ("kind", "label"),
    [*(("csv", label) for label in [*NOBODY, None]), *itertools.product(["parquet", "arrow", "jsonl"], [" NA ", None])],
)
@pytest.mark.parametrize("table", [long_table, wide_table], ids=["long", "wide"])
def test_files(kind, table, label, tmp_path):
    file = save(table(label), tmp_path / f"answers.{kind}")
    for duplicates in ("error", "last"):
        with pytest.raises(ReadError, match=r"(person|student)' names the people, and rows 2, 4 have no name there"):
            read(file, duplicates=duplicates)


@pytest.mark.parametrize("label", [*NOBODY, None])
@pytest.mark.parametrize("table", [long_table, wide_table], ids=["long", "wide"])
def test_frames(table, label):
    for frame in (table(label), table(label).to_pandas()):
        with pytest.raises(ReadError, match="rows 2, 4 have no name"):
            read(frame)


def test_nan_as_a_number():
    persons = [1.0, np.nan, np.nan]
    long = pl.DataFrame({"person": persons, "item": ["a", "b", "a"], "response": [1, 0, 1]})
    with pytest.raises(ReadError, match="rows 2, 3 have no name"):
        read(long)
    wide = pd.DataFrame({"who": persons, "a": [1, 0, 1], "b": [0, 1, 1]})
    with pytest.raises(ReadError, match="column 'who' names the people, and rows 2, 3 have no name"):
        Responses.from_wide(wide, person="who")
    indexed = pd.DataFrame({"a": [1, 0], "b": [0, 1]}, index=[1.0, np.nan])
    for way in (Responses.from_wide, read):
        with pytest.raises(ReadError, match=r"the index.* names the people, and row 1 has no name"):
            way(indexed)


def test_columns_in_memory():
    with pytest.raises(ReadError, match="rows 2, 3 have no name"):
        Responses.from_long(["ann", "NA", "NA"], ["a", "b", "c"], [1, 0, 1])


def test_items_may_be_called_so(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("person,item,response\nann,NA,1\nann,null,0\nbob,NA,0\n")
    assert read(file).items.tolist() == ["NA", "null"]


def test_rows_of_items_keep_their_names(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("item,ann,bob\nNA,1,0\nq2,0,1\n")
    assert read(file, orient="items").items.tolist() == ["NA", "q2"]


# --------------------------------------------------------------------------------------- large numbers


def test_numbers_beyond_64_bits():
    persons = np.array([LARGE, 3], dtype=np.uint64)
    assert Responses.from_long(persons, ["a", "b"], [1, 0]).persons.tolist() == ["3", str(LARGE)]
    assert Responses.from_wide([[1, 0]], items=persons.tolist()).items.tolist() == [LARGE, 3]
    frame = pl.DataFrame({"person": pl.Series(persons), "a": [1, 0], "b": [0, 1]})
    assert Responses.from_wide(frame, person="person").persons.tolist() == [str(LARGE), "3"]
    assert read(frame).persons.tolist() == [str(LARGE), "3"]
    indexed = pd.DataFrame({"a": [1, 0], "b": [0, 1]}, index=persons)
    assert Responses.from_wide(indexed).persons.tolist() == [str(LARGE), "3"]
    assert read(indexed).persons.tolist() == [str(LARGE), "3"]
