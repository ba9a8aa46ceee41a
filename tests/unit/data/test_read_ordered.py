"""Files of ordered answers, read by the same readers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from spectral_irt import simulate
from spectral_irt.data.categories import looks_ordered
from spectral_irt.errors import DuplicateResponseError, OptionError, ResponseValueError
from spectral_irt.reading import read

NAMES = ["a", "b", "c", "d"]
LABELS = ["never", "sometimes", "often"]


@pytest.fixture(scope="module")
def table():
    table = simulate.partial_credit(80, 4, categories=3, seed=1).responses.to_dense()
    table[np.random.default_rng(0).random(table.shape) < 0.1] = np.nan
    return table


def wide(table):
    frame = pl.DataFrame(table, schema=NAMES).cast(pl.Int64, strict=False)
    return frame.with_columns(pl.Series("person", [f"p{k:03}" for k in range(len(frame))])).select("person", *NAMES)


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


def nan_free(table):
    return pl.DataFrame(np.where(np.isnan(table), -9, table), schema=NAMES).cast(pl.Int64)


def test_missing_codes_and_the_largest_files(table, tmp_path):
    path = tmp_path / "coded.csv"
    nan_free(table).write_csv(path)
    assert same(read(path, missing=-9, ordered=True).to_dense(), table)
    with pytest.raises(ResponseValueError, match=r"row 1 holds -9, which is not a category.*missing='-9'"):
        read(path, ordered=True)


def test_labels(table, tmp_path):
    path = tmp_path / "labels.csv"
    texts = [["" if np.isnan(x) else LABELS[int(x)] for x in row] for row in table]
    pl.DataFrame(texts, schema=NAMES, orient="row").write_csv(path)
    assert same(read(path, recode="never,sometimes,often").to_dense(), table)
    assert same(read(path, recode=LABELS).to_dense(), table)
    assert same(read(path, recode={"never": 0, "sometimes": 1, "often": 2}).to_dense(), table)
    joined = read(path, recode="never,sometimes=often").to_dense()
    assert same(joined, np.minimum(table, 1))
    turned = read(path, recode="never,sometimes,often", reverse=["b", "d"]).to_dense()
    assert same(turned[:, [0, 2]], table[:, [0, 2]])
    assert same(turned[:, [1, 3]], 2 - table[:, [1, 3]])
    with pytest.raises(ResponseValueError, match=r"'often'.*recode"):
        read(path, recode="never,sometimes")
    with pytest.raises(OptionError, match="twice"):
        read(path, recode="never,never")
    with pytest.raises(OptionError, match="two labels or more"):
        read(path, recode="never")
    with pytest.raises(OptionError, match="'q9'"):
        read(path, recode="never,sometimes,often", reverse="q9")


def test_repeated_answers(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("person,item,response\nann,a,0\nann,b,1\nbob,a,1\nbob,b,2\nann,a,2\ncy,a,1\ncy,b,0\n")
    with pytest.raises(DuplicateResponseError, match=r"1 .person, item. pair"):
        read(path, ordered=True)
    assert read(path, duplicates="first", ordered=True).to_dense()[0, 0] == 0
    assert read(path, duplicates="last", unused="keep").to_dense()[0, 0] == 2


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": [0, 1, 2], "b": [2, 1, 0], "c": [0, 1, 0]}, True),
        ({"a": [1, 2, 3], "b": [3, 1, 2], "c": [1, 3, 2]}, True),
        ({"a": [0, 1, 9], "b": [1, 0, 9], "c": [0, 1, 1]}, False),  # 9: not answered
        ({"a": [0, 1, 0], "b": [1, 0, 1], "age": [0, 1, 2]}, False),  # one column
        ({"a": list(range(12)), "b": list(range(12))}, False),  # many categories
        ({"a": [2, 3, 4], "b": [4, 3, 2]}, False),  # where are 0 and 1?
    ],
)
def test_what_looks_ordered(columns, expected):
    answers = read(pl.DataFrame({**columns}), items=list(columns), ordered=True)
    assert looks_ordered(answers) is expected
