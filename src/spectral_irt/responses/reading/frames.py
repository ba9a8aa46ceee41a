"""Dataframes of any library as tables, through narwhals; the caller's frame is never changed."""

from __future__ import annotations

from typing import Any

import polars as pl

from spectral_irt.errors import ReadError
from spectral_irt.responses.labels import check_people
from spectral_irt.responses.reading.tabular import Table, by_position, table_of_frame
from spectral_irt.responses.reading.values import series_of


def table_of_any_frame(native: Any) -> tuple[Table, str]:
    """The frame as a table, and the name of its library."""
    import narwhals.stable.v1 as nw

    try:
        frame: Any = nw.from_native(native)
    except TypeError:
        raise ReadError(
            f"expected a dataframe, a 2-D table, not {type(native).__name__}; arrays go to Responses.from_wide, files "
            "to read_responses."
        ) from None
    except Exception as error:
        if "unique column names" in str(error):
            repeated = " ".join(str(error).split())
            raise ReadError(f"the dataframe's column names must differ ({repeated}); rename or remove them.") from None
        raise
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    kind: str = frame.implementation.value
    if not frame.columns:
        raise ReadError("the dataframe has no columns.")
    columns = list(frame.columns)
    _check_one_level(columns)
    series = [_series(frame.get_column(name)).alias(str(k)) for k, name in enumerate(columns)]
    return table_of_frame(by_position(pl.DataFrame(series)), columns, _index(frame)), kind


def _series(column: Any) -> pl.Series:
    """A narwhals series as a polars one, through numpy or plain Python, so that pyarrow is not needed."""
    import narwhals.stable.v1 as nw

    native = nw.to_native(column)
    if isinstance(native, pl.Series):
        return native
    missing = column.is_null().to_numpy().astype(bool)
    if column.dtype.is_numeric() and not missing.any():
        values = column.to_numpy()
        if values.dtype.kind in "iuf":
            return pl.Series(values)
    return series_of([None if absent else v for v, absent in zip(column.to_list(), missing, strict=True)])


def _check_one_level(columns: list[Any]) -> None:
    """Refuse pandas columns of several levels: an item has one label."""
    levels = [name for name in columns if isinstance(name, tuple)]
    if levels:
        raise ReadError(
            f"the dataframe's column labels have several levels, as in {levels[0]!r} (MultiIndex), and an item has one "
            "label. Join them first: df.columns = ['_'.join(map(str, c)) for c in df.columns]."
        )


def _index(frame: Any) -> pl.Series | None:
    """The row labels of a pandas-like frame, if they differ from each other."""
    import narwhals.stable.v1 as nw

    index = nw.maybe_get_index(frame)
    if index is None or len(set(index)) < len(frame):
        return None
    plain = [label.item() if hasattr(label, "item") else label for label in index]
    check_people(plain, "the index of the dataframe")
    labels = series_of(plain)
    return labels if labels.dtype in (pl.Int64, pl.String) else labels.cast(pl.String)
