"""Plain Python values as a polars Series: whole numbers, numbers, or text when some are neither."""

from __future__ import annotations

from typing import Any

import polars as pl

from spectral_irt.responses.missing import is_missing


def series_of(values: list[Any]) -> pl.Series:
    """Values of any kinds; null where one is missing.

    >>> series_of([1, None, True]).to_list(), series_of([1, "A", True]).to_list()
    ([1.0, None, 1.0], ['1', 'A', '1'])
    """
    known = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in known} - {type(None)}
    if not kinds:
        return pl.Series(known, dtype=pl.Null)
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in known):
        return pl.Series(known, dtype=pl.Int64)
    if kinds != {int} and all(issubclass(kind, bool | int | float) or hasattr(kind, "dtype") for kind in kinds):
        try:
            return pl.Series([None if value is None else float(value) for value in known], dtype=pl.Float64)
        except (OverflowError, ValueError):
            pass  # text of numpy's, or a whole number of more than 308 digits
    return pl.Series([None if value is None else _text(value) for value in known], dtype=pl.String)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
