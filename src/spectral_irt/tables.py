"""Tables: named columns, as a dataframe of any library, as CSV, Parquet or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.spreadsheet import RUNS, guarded

if TYPE_CHECKING:
    import polars as pl

Columns = dict[str, NDArray[Any]]
AnyColumns = Mapping[str, NDArray[Any]]

# What makes some spreadsheet split a cell though CSV does not.
SEPARATORS = r"[;\t]|^\s|\s$"


def make_table(columns: AnyColumns, frame_kind: str | None) -> Any:
    """A dataframe of the named library (polars by default)."""
    import narwhals.stable.v1 as nw

    plain = {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
    kind: Any = frame_kind or "polars"
    return nw.from_dict(plain, backend=kind).to_native()


def frame_of(columns: AnyColumns) -> pl.DataFrame:
    """The columns as a polars frame; labels of mixed kinds become text, NaN becomes null."""
    import polars as pl

    series = []
    for name, values in columns.items():
        if values.dtype == object:
            cells = values.tolist()
            kinds = {type(cell) for cell in cells}
            series.append(pl.Series(name, cells if len(kinds) < 2 else [str(cell) for cell in cells]))
        else:
            series.append(pl.Series(name, values, nan_to_null=True))
    return pl.DataFrame(series)


def write_csv(path: Path, columns: AnyColumns) -> None:
    """A table as CSV: UTF-8, every digit, nothing in a cell without a number, and no text that a spreadsheet runs."""
    import polars as pl

    frame = frame_of(columns)
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    risky = [name for name in texts if frame[name].str.contains(RUNS.pattern).any()]
    if risky:
        frame = frame.with_columns(pl.col(risky).map_elements(guarded, return_dtype=pl.String))
    split = any(frame[name].str.contains(SEPARATORS).any() for name in texts)
    frame.write_csv(path, quote_style="non_numeric" if split else "necessary")


def write_parquet(path: Path, columns: AnyColumns) -> None:
    """A table as Parquet; NaN becomes null."""
    frame_of(columns).write_parquet(path)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """A record as JSON for people and programs: indented, UTF-8, null where there is no number."""
    path.write_text(json_text(record) + "\n", encoding="utf-8", newline="\n")


def json_text(record: Mapping[str, Any]) -> str:
    return json.dumps(plain(record), ensure_ascii=False, indent=2, allow_nan=False)


def plain(value: Any) -> Any:
    """A value in JSON's own types."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)
