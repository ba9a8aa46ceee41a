"""The same table, whatever it comes in, is scored by the same rules and complained about in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from spectral_irt.data import Responses
from spectral_irt.errors import ResponseValueError
from spectral_irt.reading import read

TABLE = np.array([[1, 0, 9, 1], [0, 1, 1, 0], [1, 9, 0, 0]])
NAMES = ["q1", "q2", "q3", "q4"]
FRAME = pl.DataFrame(TABLE, schema=NAMES)


def long(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_row_index("person").unpivot(index="person", variable_name="item", value_name="response")


def by_file(name: str, write: Callable[[Path], Any]) -> Callable[..., Responses]:
    def reader(folder: Path, **options: Any) -> Responses:
        write(folder / name)
        return read(folder / name, **options)

    return reader


LINES = "".join(json.dumps(row) + "\n" for row in FRAME.to_dicts())
WAYS: dict[str, Callable[..., Responses]] = {
    "array": lambda folder, **how: Responses.from_wide(TABLE, items=NAMES, **how),
    "array of text": lambda folder, **how: Responses.from_wide(TABLE.astype(str), items=NAMES, **how),
    "sparse": lambda folder, **how: Responses.from_wide(
        sparse.coo_array((TABLE.ravel(), np.divmod(np.arange(12), 4)), shape=(3, 4)), items=NAMES, **how
    ),
    "columns": lambda folder, **how: Responses.from_long(*(long(FRAME)[:, k].to_list() for k in range(3)), **how),
    "polars": lambda folder, **how: read(FRAME, **how),
    "pandas": lambda folder, **how: read(pd.DataFrame(TABLE, columns=NAMES), **how),
    "long frame": lambda folder, **how: read(long(FRAME), **how),
    "csv": by_file("a.csv", FRAME.write_csv),
    "long csv": by_file("a.csv", long(FRAME).write_csv),
    "parquet": by_file("a.parquet", FRAME.write_parquet),
    "arrow": by_file("a.arrow", FRAME.write_ipc),
    "json lines": by_file("a.jsonl", lambda path: path.write_text(LINES)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_rules(way: str, tmp_path: Path) -> None:
    expected = np.where(TABLE == 9, np.nan, TABLE)
    np.testing.assert_array_equal(WAYS[way](tmp_path, missing=9).to_dense(), expected)
    np.testing.assert_array_equal(WAYS[way](tmp_path, threshold=1).to_dense(), TABLE > 1)
    np.testing.assert_array_equal(WAYS[way](tmp_path, correct=[1, "9"]).to_dense(), TABLE > 0)
    assert WAYS[way](tmp_path, missing=9).items.tolist() == NAMES


@pytest.mark.parametrize("way", WAYS)
def test_the_same_complaint(way: str, tmp_path: Path) -> None:
    said = r"holds 9, which is neither 0/1 nor missing \(2 such values: 9\).* means 'not answered', say `missing='9'`\."
    with pytest.raises(ResponseValueError, match=said):
        WAYS[way](tmp_path)
