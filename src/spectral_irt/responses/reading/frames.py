"""Dataframes of any library as tables, through narwhals; the caller's frame is never changed."""

from __future__ import annotations

from typing import Any

import polars as pl

from spectral_irt.errors import ReadError
from spectral_irt.responses.arrays import check_one_level
from spectral_irt.responses.labels import check_people
from spectral_irt.responses.reading.tabular import Table, by_position, table_of_frame


def table_of_any_frame(native: Any) -> tuple[Table, str]:
    """The frame as a table, and the name of its library."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(native)
    except TypeError:
        raise ReadError(
            f"expected a dataframe, not {type(native).__name__}; arrays go to Responses.from_wide, files to "
            "read_responses."
        ) from None
    except Exception as error:
        if "unique column names" in str(error):
            raise ReadError("the dataframe has columns of the same name; rename or remove them.") from None
        raise
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    kind: str = frame.implementation.value
    if not frame.columns:
        raise ReadError("the dataframe has no columns.")
    columns = list(frame.columns)
    check_one_level(columns)
    series = [_series(frame.get_column(name)).alias(str(k)) for k, name in enumerate(columns)]
    return table_of_frame(by_position(pl.DataFrame(series)), columns, _index(frame)), kind


def _series(column: Any) -> pl.Series:
    """A narwhals series as a polars one, through numpy or plain Python, so that pyarrow is not needed."""
    import narwhals as nw

    native = nw.to_native(column)
    if isinstance(native, pl.Series):
        return native
    missing = column.is_null().to_numpy().astype(bool)
    if column.dtype.is_numeric() and not missing.any():
        values = column.to_numpy()
        if values.dtype.kind in "iuf":
            return pl.Series(values)
    return _of_values([None if absent else v for v, absent in zip(column.to_list(), missing, strict=True)])


def _of_values(values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pl.Series(values, dtype=pl.Null)
    if kinds <= {int}:
        if all(v is None or abs(v) < 2**63 for v in values):
            return pl.Series(values, dtype=pl.Int64)
        return pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)
    if all(issubclass(kind, bool | int | float) or hasattr(kind, "dtype") for kind in kinds):
        try:
            return pl.Series([None if v is None else float(v) for v in values], dtype=pl.Float64)
        except OverflowError:
            pass  # a whole number of more than 308 digits: as text
    return pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)


def _index(frame: Any) -> pl.Series | None:
    """The row labels of a pandas-like frame, if they differ from each other."""
    import narwhals as nw

    index = nw.maybe_get_index(frame)
    if index is None or len(set(index)) < len(frame):
        return None
    plain = [label.item() if hasattr(label, "item") else label for label in index]
    check_people(plain, "the index of the dataframe")
    labels = _of_values(plain)
    return labels if labels.dtype in (pl.Int64, pl.String) else labels.cast(pl.String)
