"""Labels of people and items: as they were, and as codes.

A label is an integer or a text. Text that came without a type (CSV) becomes integers only when every label of its kind
is a whole number written the plain way: "7" does, "007" keeps all of them text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError
from spectral_irt.responses.labels import Labels, label_array, nobody
from spectral_irt.responses.missing import NOT_ANSWERED

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
    absent = labels.is_null()
    if labels.dtype == pl.String:
        absent = absent | labels.str.strip_chars().is_in(NOT_ANSWERED).fill_null(True)
    if absent.any():
        raise nobody(where, [int(rows[k]) for k in absent.arg_true().to_list()])


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


class Coder(Protocol):
    """Gives every label a number, the same in every piece; not all numbers need be in use."""

    def codes(self, labels: pl.Series) -> NDArray[Any]: ...

    def labels(self, codes: NDArray[Any]) -> pl.Series: ...

    @property
    def size(self) -> int: ...


class TextCoder:
    """Texts are numbered as they first appear, by a polars dictionary that lives as long as this object."""

    def __init__(self) -> None:
        self._type = pl.Categorical(pl.Categories.random())
        # polars forgets the dictionary when no series uses it any more; this one keeps it.
        self._keeper = pl.Series([], dtype=pl.String).cast(self._type)
        self._codes: list[NDArray[np.uint32]] = []
        self._labels: list[pl.Series] = []
        self.size = 0

    def codes(self, labels: pl.Series) -> NDArray[np.uint32]:
        labels = labels.cast(pl.String)
        codes = labels.cast(self._type).to_physical().to_numpy()
        if len(codes) and (largest := int(codes.max())) >= self.size:
            fresh = np.flatnonzero(codes >= self.size)
            new, where = np.unique(codes[fresh], return_index=True)
            self._codes.append(new)
            self._labels.append(labels.gather(fresh[where]))
            self.size = largest + 1
        return codes

    def labels(self, codes: NDArray[Any]) -> pl.Series:
        place = np.empty(self.size, dtype=np.int64)
        known = np.concatenate(self._codes)
        place[known] = np.arange(len(known))
        return pl.concat(self._labels).gather(place[codes])


class WholeCoder:
    """Integers in a small range are numbered by their distance from the smallest."""

    def __init__(self, low: int, high: int, name: str) -> None:
        self._low, self._high, self._name = low, high, name
        self.size = high - low + 1

    def codes(self, labels: pl.Series) -> NDArray[np.int64]:
        values = labels.to_numpy()
        if len(values) and (values.min() < self._low or values.max() > self._high):
            raise changed(self._name)
        return np.asarray(values - self._low)

    def labels(self, codes: NDArray[Any]) -> pl.Series:
        return pl.Series(codes.astype(np.int64) + self._low)


def changed(name: str) -> ReadError:
    return ReadError(f"{name} changed while it was being read; read it again when it is complete.")


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
