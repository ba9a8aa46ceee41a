"""Labels of people and items: as they were, and as codes.

A label is an integer or a text. Text that came without a type (CSV) becomes integers only when every label of its kind
is a whole number written the plain way: "7" does, "007" keeps all of them text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.labels import NOT_ANSWERED, Labels, label_array, nobody
from spectral_irt.errors import ReadError

_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


def is_whole(dtype: Any) -> bool:
    """Whether a column of this type holds integer labels; any other type gives text."""
    return dtype in _WHOLE


def is_loose(dtype: Any) -> bool:
    """Whole numbers in a type of their own (1.0, or too large for 64 bits): written as text first, as in CSV."""
    return bool(dtype.is_numeric()) and not is_whole(dtype)


def plain_labels(column: pl.Series, *, text: bool, name: str) -> pl.Series:
    """The labels as Int64, or as text when `text` says so or the type demands it."""
    dtype = column.dtype
    if is_whole(dtype):
        return column.cast(pl.String if text else pl.Int64)
    if dtype == pl.String:
        return column
    if dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if (whole.cast(dtype) == column).all() and not column.is_nan().any():
            return whole.cast(pl.String)
    if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
        raise ReadError(f"{name} is of type {dtype}; labels are text or numbers.")
    return column.cast(pl.String)


def check_names(labels: pl.Series, where: str, rows: Sequence[int] | NDArray[Any]) -> None:
    """Refuse people without a name; `rows` are the numbers of the rows, for the message."""
    absent = unnamed(labels)
    if absent.any():
        raise nobody(where, [int(rows[k]) for k in absent.arg_true().to_list()])


def unnamed(labels: pl.Series) -> pl.Series:
    """Which labels name nobody."""
    absent = labels.is_null()
    if labels.dtype == pl.String:
        absent = absent | labels.str.strip_chars().is_in(NOT_ANSWERED).fill_null(True)
    return absent


def all_whole(labels: pl.Series) -> bool:
    """Whether every text is a whole number written the plain way, so that nothing is lost by making it one."""
    if labels.dtype != pl.String or not len(labels):
        return False
    return bool((labels.cast(pl.Int64, strict=False).cast(pl.String) == labels).fill_null(False).all())


def settled(labels: pl.Series, *, loose: bool) -> pl.Series:
    """Labels as they stay: loose ones become integers when all are whole numbers."""
    return labels.cast(pl.Int64) if loose and all_whole(labels) else labels


def labels_of(labels: pl.Series, *, loose: bool) -> Labels:
    """Labels as `Responses` holds them."""
    labels = settled(labels, loose=loose)
    return label_array(labels.to_numpy() if labels.dtype == pl.Int64 else labels.to_list())


class ItemIndex:
    """Item labels in order of appearance, and the code of each."""

    def __init__(self) -> None:
        self._code: dict[Any, int] = {}

    def codes(self, labels: Iterable[Any]) -> NDArray[np.int32]:
        """Codes of these labels; new ones are appended."""
        labels = list(labels)
        known = self._code
        try:
            return np.array([known[label] for label in labels], dtype=np.int32)
        except KeyError:
            for label in labels:
                known.setdefault(label, len(known))
            return np.array([known[label] for label in labels], dtype=np.int32)

    @property
    def labels(self) -> list[Any]:
        return list(self._code)
