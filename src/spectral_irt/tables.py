"""Tables: named columns, as a dataframe of any library, as CSV, Parquet or JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.text import storable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Columns = dict[str, NDArray[Any]]
AnyColumns = Mapping[str, NDArray[Any]]

PIECE = 200_000  # rows of a table that are turned into text at a time
# What makes some spreadsheet split a cell though CSV does not.
SEPARATORS = r"[;\t]|^\s|\s$"

# A spreadsheet computes what begins with = + - @, a tab or a carriage return; with data from strangers that can mean
# running their commands. Such a text gets an apostrophe before it, and one that has apostrophes there already gets one
# more, so that taking one away always gives the text that was meant. Plain numbers are left as they are.
RUNS = re.compile(r"'*[=+\-@\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
GUARDED = r"^'('*[=+\-@\t\r])"  # for polars as well as for Python


def guard_cell(text: str) -> str:
    """The text as it goes into a cell.

    >>> [guard_cell(text) for text in ("=1+1", "'=1+1", "-1", "-q", "q-1", "'twas")]
    ["'=1+1", "''=1+1", '-1', "'-q", 'q-1', "'twas"]
    """
    may_run = RUNS.match(text) and not NUMBER.fullmatch(text)
    return f"'{text}" if may_run else text


def cell_text(cell: str) -> str:
    """The text that a cell means: what `guard_cell` was given."""
    return re.sub(GUARDED, r"\1", cell)


if TYPE_CHECKING:
    # To a type checker a table is a dataframe of polars and of pandas, so that `pd.merge(fit.items(), other)` and a
    # function that returns `pl.DataFrame` pass; what both libraries have, each in its way, is not checked.
    class Table(pl.DataFrame, pd.DataFrame):
        columns: Any
        shape: Any
        dtypes: Any
        style: Any
        plot: Any
        clip: Any
        corr: Any
        count: Any
        describe: Any
        drop: Any
        equals: Any
        explode: Any
        filter: Any
        head: Any
        insert: Any
        join: Any
        map_rows: Any
        max: Any
        mean: Any
        median: Any
        melt: Any
        min: Any
        pipe: Any
        pivot: Any
        pop: Any
        product: Any
        quantile: Any
        rename: Any
        sample: Any
        shift: Any
        std: Any
        sum: Any
        tail: Any
        to_dict: Any
        to_numpy: Any
        transpose: Any
        unstack: Any
        update: Any
        var: Any
        interpolate: Any

        def __getitem__(self, key: Any, /) -> Any: ...
        def __setitem__(self, key: Any, value: Any, /) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:

    class Table:
        """A dataframe of the library that the data came in, polars by default, with all that it can do."""


def make_table(columns: AnyColumns, frame_kind: str | None) -> Table:
    import narwhals.stable.v1 as nw

    plain = {name: _of_one_kind(values) for name, values in columns.items()}
    kind: Any = frame_kind or "polars"
    table: Table = nw.from_dict(plain, backend=kind).to_native()
    return table


def as_html(sentence: str, columns: AnyColumns | None = None, *, lines: Iterable[str] = (), rows: int = 10) -> str:
    """A sentence, lines below it, and the first rows of a table, as a notebook shows them.

    >>> as_html("<1 item>", {"item": np.array(["a<b"], dtype=object), "se": np.array([0.12345])}).count("&lt;")
    2
    """
    parts = [f"<div><p>{escape(sentence)}</p>"]
    parts += [f"<p>{escape(line)}</p>" for line in lines]
    if columns:
        n = max(map(len, columns.values()))
        heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
        parts.append(f"<table><thead><tr>{heads}</tr></thead><tbody>")
        for cells in zip(*(values[:rows].tolist() for values in columns.values()), strict=True):
            parts.append(f"<tr>{''.join(f'<td>{escape(_cell_for_reading(cell))}</td>' for cell in cells)}</tr>")
        parts.append("</tbody></table>")
        if n > rows:
            parts.append(f"<p>{rows:,} of {n:,} rows</p>")
    parts.append("</div>")
    return "".join(parts)


def _cell_for_reading(cell: object) -> str:
    """A cell for reading: three digits, and nothing where there is no number."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _cells(values: NDArray[Any], *, text: bool = False) -> list[Any]:
    """The values of a column; labels of mixed kinds become text, and nothing stays nothing."""
    cells: list[Any] = values.tolist()
    if not text and not _has_mixed_kinds(values):
        return cells
    return [None if cell is None else str(cell) for cell in cells]


def _of_one_kind(values: NDArray[Any]) -> Any:
    """A column that a dataframe can hold."""
    return _cells(values) if values.dtype == object else values


def _has_mixed_kinds(values: NDArray[Any]) -> bool:
    return len(set(map(type, values.tolist())) - {type(None)}) > 1


def frame_of(columns: AnyColumns) -> pl.DataFrame:
    """The columns as a polars frame; labels of mixed kinds become text, NaN becomes null."""
    import polars as pl

    return pl.DataFrame([pl.Series(name, _of_one_kind(values), nan_to_null=True) for name, values in columns.items()])


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    """The rows of a table, each by the names of its columns."""
    values = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def write_csv(path: Path, columns: AnyColumns) -> None:
    """A table as CSV: UTF-8, every digit, nothing in a cell without a number, and no text that a spreadsheet runs.
    Long tables are written in pieces, so that no second copy of them is ever in memory."""
    import polars as pl

    texts = {name: values for name, values in columns.items() if values.dtype.kind in "OUT"}
    holds_separator = any(
        text.str.contains(SEPARATORS).any() for frame in pieces(texts) for text in frame.select(pl.col(pl.String))
    )
    quotes: Any = "non_numeric" if holds_separator else "necessary"
    with path.open("wb") as file:
        for k, frame in enumerate(pieces(columns)):
            for text in frame.select(pl.col(pl.String)):
                if text.str.contains(RUNS.pattern).any():
                    frame = frame.with_columns(text.map_elements(guard_cell, return_dtype=pl.String))
            # A column may be called as a stranger's file says.
            frame.columns = [guard_cell(name) for name in frame.columns]
            frame.write_csv(file, quote_style=quotes, include_header=k == 0)


def pieces(columns: AnyColumns) -> Iterator[pl.DataFrame]:
    """The frame of the columns, some rows at a time; what is text in one piece is text in all."""
    n = max(map(len, columns.values()), default=0)
    if n <= PIECE:
        yield frame_of(columns)
        return
    mixed = [name for name, values in columns.items() if values.dtype == object and _has_mixed_kinds(values)]
    for start in range(0, n, PIECE):
        rows = {name: values[start : start + PIECE] for name, values in columns.items()}
        yield frame_of(rows | {name: np.array(_cells(rows[name], text=True), dtype=object) for name in mixed})


def write_parquet(path: Path, columns: AnyColumns) -> None:
    frame_of(columns).write_parquet(path)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """A record as JSON for people and programs: indented, UTF-8, null where there is no number."""
    path.write_text(json_text(record) + "\n", encoding="utf-8", newline="\n")


def json_text(record: Mapping[str, Any]) -> str:
    return json.dumps(plain(record), ensure_ascii=False, indent=2, allow_nan=False)


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {storable(str(name)): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return storable(value)
    if value is None or isinstance(value, int | bool):
        return value
    return storable(str(value))
