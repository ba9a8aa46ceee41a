"""Labels of people and items in tables: as they were, and as codes.

A label is an integer or a text. Text that came without a type (CSV) becomes integers only when every label of its kind
is a whole number written the plain way: "7" does, "007" keeps all of them text.

Codes are given out as labels first appear, by a hash table that is looked up for whole columns at once. The lookups of
a column do not wait for each other, as they would in a dictionary that is asked label by label: with more labels than a
core's cache holds, that is several times as fast, and up to eight times as fast as the categoricals of polars. An
integer is its own key. A text goes by two hashes of 64 bits, so that a billion different texts share a key with a
chance of one in 10^20.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.labels import NOT_ANSWERED, Labels, label_array, nobody
from spectral_irt.errors import ReadError

Keys = tuple[NDArray[np.uint64], ...]
Codes = NDArray[np.int32]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbors go far apart, evenly
_SEEDS = (0, 0x5EED)
_FIRST_BITS = 12
SOME = 1 << 14  # rows that enter an empty table
FEW = 4  # rows per run from which on the runs are looked up, not the rows

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


# ------------------------------------------------------------------ codes


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


class LabelCodes:
    """Codes 0, 1, ... of labels, the same in every piece. All labels are text, or all are Int64; none is null."""

    def __init__(self) -> None:
        self.size = 0
        self._labels: list[pl.Series] = []
        self._keys: list[Keys] = []
        self._make_room(_FIRST_BITS)

    def codes(self, labels: pl.Series) -> tuple[Codes, pl.Series]:
        """The code of every label, and the labels that are new."""
        keys = _keys_of(labels)
        runs = _starts_of_runs(keys)
        if runs is None:
            return self._codes(keys, labels)
        codes, new = self._codes(tuple(key[runs] for key in keys), labels.gather(runs))
        return np.repeat(codes, np.diff(runs, append=len(labels))), new

    def labels(self) -> pl.Series:
        """All labels, by code."""
        return pl.concat(self._labels) if self._labels else pl.Series([], dtype=pl.Int64)

    def _codes(self, keys: Keys, labels: pl.Series) -> tuple[Codes, pl.Series]:
        codes = self._found(keys)
        absent = np.flatnonzero(codes < 0)
        known = len(self._labels)
        while len(absent):
            # Some first: most of the others are the same labels, and then need no room of their own.
            some, absent = np.split(absent, [max(SOME, self.size)])
            codes[some], first = self._entered(tuple(key[some] for key in keys))
            self._labels.append(labels.gather(some[first]))
            codes[absent] = self._found(tuple(key[absent] for key in keys))
            absent = absent[codes[absent] < 0]
        new = self._labels[known:]
        return codes, pl.concat(new) if new else labels.clear()

    # ------------------------------------------------------------------ the table

    def _make_room(self, bits: int) -> None:
        self._bits = bits
        self._table = np.full(1 << bits, -1, dtype=np.int32)  # codes
        self._table_keys: list[NDArray[np.uint64]] = []
        known, self._keys = self._keys, []
        if known:
            self.size = 0
            self._entered(tuple(np.concatenate(each) for each in zip(*known, strict=True)))

    def _places(self, keys: Keys) -> NDArray[np.int64]:
        return ((keys[0] * _SPREAD) >> np.uint64(64 - self._bits)).view(np.int64)

    def _found(self, keys: Keys) -> Codes:
        """The codes of these keys; -1 where there is none."""
        if not self._table_keys:
            return np.full(len(keys[0]), -1, dtype=np.int32)
        places = self._places(keys)
        codes = self._table.take(places)
        at_odds = np.flatnonzero(self._differ(places, keys) & (codes >= 0))
        while len(at_odds):
            places[at_odds] = (places[at_odds] + 1) & (len(self._table) - 1)
            there = places[at_odds]
            codes[at_odds] = self._table[there]
            own = tuple(key[at_odds] for key in keys)
            at_odds = at_odds[self._differ(there, own) & (codes[at_odds] >= 0)]
        return codes

    def _differ(self, places: NDArray[np.int64], keys: Keys) -> NDArray[np.bool_]:
        differ = self._table_keys[0].take(places) != keys[0]
        for known, key in zip(self._table_keys[1:], keys[1:], strict=True):
            differ |= known.take(places) != key
        return differ

    def _entered(self, keys: Keys) -> tuple[Codes, NDArray[np.int64]]:
        """Codes of keys that are not there yet, some of them perhaps more than once; and where each new one is."""
        n = len(keys[0])
        if 2 * (self.size + n) > len(self._table):
            self._make_room((4 * (self.size + n) - 1).bit_length())
        if not self._table_keys:
            self._table_keys = [np.zeros(len(self._table), dtype=np.uint64) for _ in keys]
        places = self._places(keys)
        owner = np.empty(n, dtype=np.int64)  # the first with the same key
        place_of = np.empty(n, dtype=np.int64)
        left, own = np.arange(n), keys
        while len(left):
            there = places[left]
            free = np.flatnonzero(self._table[there] < 0)[::-1]  # backwards: the first of those who want a place has it
            self._table[there[free]] = self.size + left[free]
            won = free[self._table[there[free]] == self.size + left[free]]
            for known, key in zip(self._table_keys, own, strict=True):
                known[there[won]] = key[won]
            place_of[left[won]] = there[won]
            settled = ~self._differ(there, own)
            owner[left[settled]] = self._table[there[settled]] - self.size
            left, own = left[~settled], tuple(key[~settled] for key in own)
            places[left] = (places[left] + 1) & (len(self._table) - 1)
        first = np.flatnonzero(owner == np.arange(n))
        codes = np.empty(n, dtype=np.int32)
        codes[first] = np.arange(self.size, self.size + len(first), dtype=np.int32)
        self._table[place_of[first]] = codes[first]
        self._keys.append(tuple(key[first] for key in keys))
        self.size += len(first)
        return codes[owner], first


def _keys_of(labels: pl.Series) -> Keys:
    if labels.dtype == pl.Int64:
        return (labels.to_numpy().view(np.uint64),)
    return tuple(labels.hash(seed=seed).to_numpy() for seed in _SEEDS)


def _starts_of_runs(keys: Keys) -> NDArray[np.int64] | None:
    """Where runs of equal labels begin, if they are long: rows of a person stand together."""
    changes = keys[0][1:] != keys[0][:-1]
    for key in keys[1:]:
        changes |= key[1:] != key[:-1]
    if FEW * np.count_nonzero(changes) >= len(changes):
        return None
    return np.concatenate([[0], np.flatnonzero(changes) + 1])
