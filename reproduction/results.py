"""Tidy tables: rows as dictionaries, on disk as CSV and Parquet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.trials import Row

if TYPE_CHECKING:
    import polars as pl


TABLES = ("csv", "parquet")


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    """The rows as a polars frame; NaN becomes null."""
    import polars as pl

    columns = {name: [_or_none(row[name]) for row in rows] for name in rows[0]}
    # A column with no number at all is a column of numbers all the same.
    types = {name: pl.Float64 for name, values in columns.items() if all(value is None for value in values)}
    return pl.DataFrame(columns, schema_overrides=types)


def write_table(path: Path, rows: Sequence[Row], kind: str) -> None:
    """The rows in a file of this kind."""
    table = frame(rows)
    if kind == "csv":
        table.write_csv(path)
    else:
        table.write_parquet(path)


def read_table(folder: Path, name: str) -> list[Row] | None:
    """The rows of a table that was written before, NaN where a number is missing; None if it is not there."""
    import polars as pl

    path = folder / f"{name}.parquet"
    if not path.is_file():
        return None
    table = pl.read_parquet(path)
    numbers = [name for name, kind in table.schema.items() if kind.is_float()]
    return table.with_columns(pl.col(numbers).fill_null(float("nan"))).to_dicts() if numbers else table.to_dicts()


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


# -------------------------------------------------------------------------------------- averages


def grouped(rows: Iterable[Row], by: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows with the same values in these columns; groups in the order of their first row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return groups


def summarize(rows: Iterable[Row], by: Sequence[str], measures: Sequence[str]) -> list[Row]:
    """Number of rows, and mean and standard error of the measures, within each group.

    >>> rows = [{"n": 5, "error": 1.0}, {"n": 5, "error": 3.0}]
    >>> summarize(rows, ["n"], ["error"])
    [{'n': 5, 'trials': 2, 'error': 2.0, 'error_se': 1.0}]
    """
    out = []
    for key, members in grouped(rows, by).items():
        line: Row = {**dict(zip(by, key, strict=True)), "trials": len(members)}
        for name in measures:
            line[name], line[f"{name}_se"] = mean_and_error([row[name] for row in members])
        out.append(line)
    return out


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error over the values that are not NaN; NaN where there are too few of them."""
    known = [value for value in values if not math.isnan(value)]
    k = len(known)
    if not k:
        return math.nan, math.nan
    mean = math.fsum(known) / k
    if k == 1:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (k - 1) / k)
