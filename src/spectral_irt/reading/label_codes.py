"""Labels as codes, given out as labels first appear: a hash table that is looked up for whole columns at once.

The lookups of a column do not wait for each other, as they would in a dictionary that is asked label by label: with
more labels than a core's cache holds, that is several times as fast. An integer is its own key. A text goes by two
hashes of 64 bits, so that a billion different texts share a key with a chance of one in 10^20.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Keys = tuple[NDArray[np.uint64], ...]
Codes = NDArray[np.int32]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbors go far apart, evenly
_SEEDS = (0, 0x5EED)
_FIRST_BITS = 12
SOME = 1 << 14  # rows that enter an empty table
FEW = 4  # rows per run from which on the runs are looked up, not the rows


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
