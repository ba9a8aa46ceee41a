"""Raw values as they come: Python's own, of arrays, masked or missing, as columns that can be scored.

Arrays (`builder.from_array`) and dataframes (`reading/frame.py`) go through these before they are scored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.labels import is_missing

if TYPE_CHECKING:
    import polars as pl


def series_of(values: list[Any]) -> pl.Series:
    """Values of any kinds; null where one is missing.

    >>> series_of([1, None, True]).to_list(), series_of([1, "A", True]).to_list()
    ([1.0, None, 1.0], ['1', 'A', '1'])
    """
    import polars as pl

    values = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pl.Series(values, dtype=pl.Null)
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
        return pl.Series(values, dtype=pl.Int64)
    are_numbers = all(issubclass(kind, bool | int | float) or hasattr(kind, "dtype") for kind in kinds)
    if kinds != {int} and are_numbers:
        numbers = (None if value is None else float(value) for value in values)
        try:
            return pl.Series(list(numbers), dtype=pl.Float64)
        except (OverflowError, ValueError):
            pass  # text of numpy's, or a whole number of more than 308 digits
    texts: list[str | None] = []
    for value in values:
        if isinstance(value, bool):
            value = int(value)
        texts.append(None if value is None else str(value))
    return pl.Series(texts, dtype=pl.String)


def plain_values(values: NDArray[Any]) -> Any:
    """Numbers as an array, and anything else as a polars Series."""
    if values.dtype.kind in "biuf":
        return values
    return series_of(values.tolist())


def without_mask(values: Any) -> NDArray[Any]:
    """Values as an array, None where they are masked."""
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.array(None), values.data)
    return np.asarray(values)
