"""Which of several answers came first: a column of times or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError, listed


class Clock:
    """Reads a column, piece by piece, as numbers that order its rows; all pieces hold the same kind of thing."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def read(self, column: pl.Series, where: str, rows: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        found, kind = self._numbers(column)
        absent = found.is_null()
        if absent.any():
            k = int(absent.arg_max())  # type: ignore[arg-type]
            value = column[k]
            empty = value is None or value == ""
            holds = "is empty" if empty else f"holds {listed([value])}, which is neither a number nor a time"
            raise ReadError(
                f"{where}, row {rows[k]:,} {holds}, so it is not known when the answer was given. Fill it in, or write "
                "times as in 2024-05-17 10:30:00."
            )
        if self._kind not in (None, kind):
            raise ReadError(f"{where} holds {kind} where it held {self._kind} before; write all of them alike.")
        self._kind = kind if len(column) else self._kind
        return found.to_numpy()

    def _numbers(self, column: pl.Series) -> tuple[pl.Series, str]:
        dtype = column.dtype
        if dtype.is_integer():
            return column.cast(pl.Int64, strict=False), "numbers"
        if dtype.is_numeric() or dtype == pl.Boolean:
            return column.cast(pl.Float64).fill_nan(None), "numbers"
        if dtype == pl.Date:
            return column.cast(pl.Datetime("us")).to_physical(), "times"
        if isinstance(dtype, pl.Datetime):
            return column.dt.cast_time_unit("us").to_physical(), "times"
        if dtype in (pl.Time, pl.Duration):
            return column.to_physical(), "times"
        text = column.cast(pl.String, strict=False).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        if self._kind != "times" and (self._kind == "numbers" or numbers.count() or not text.count()):
            return numbers.fill_nan(None), "numbers"
        return _times(text), "times"


def _times(text: pl.Series) -> pl.Series:
    """ISO dates and times, with or without a zone, as microseconds."""
    plain = text.str.replace(r"^(\S+) ", "${1}T")
    frame = pl.DataFrame({"text": plain})
    zoned = pl.col("text").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%#z", strict=False, time_unit="us")
    ways = [zoned.dt.replace_time_zone(None)]
    ways += [
        pl.col("text").str.to_datetime(form, strict=False, time_unit="us")
        for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
    ]
    ways.append(pl.col("text").str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")))
    return frame.select(pl.coalesce(ways)).to_series().to_physical()
