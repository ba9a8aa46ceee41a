"""Long tables -> Responses, in one pass over the table and without ever holding it.

Every row becomes a few numbers: the codes of its person and item, as they came up (`LabelCodes`), and the category of
the answer. When all rows were seen the labels are put in order, the codes follow, and the rows are dealt out to blocks.

`tables.py` calls `long_responses`, when it is known which column is what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.builder import ResponsesBuilder
from spectral_irt.data.facets import Facets
from spectral_irt.data.labels import NOT_ANSWERED, Labels
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Place, refuse_blanks
from spectral_irt.errors import ReadError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading.columns import Long, plural_words
from spectral_irt.reading.frame import WHOLE, RowNumbers, Table, check_names, final_labels, labels_of, plain_labels
from spectral_irt.reading.side_tables import PersonColumns
from spectral_irt.text import listed

LabelKeys = tuple[NDArray[np.uint64], ...]
Codes = NDArray[np.int32]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbors go far apart, evenly
_SEEDS = (0, 0x5EED)
JOINED = "\x1f"  # between an item and its rater in one text: the unit separator, which no file has in a name
FEW = 4  # rows per run from which on the runs are looked up, not the rows


class LabelCodes:
    """Codes 0, 1, ... of labels, the same in every piece. All labels are text, or all are Int64; none is null. The hash
    table is looked up for whole columns at once: several times as fast as a dictionary, or the categoricals of polars.
    An integer is its own key; a text has two hashes of 64 bits: a billion share one with a chance of one in 10^20."""

    def __init__(self) -> None:
        self.size = 0
        self._labels: list[pl.Series] = []
        self._keys: LabelKeys = ()  # by code, with room for more
        self._table = np.full(1 << 16, -1, dtype=np.int32)  # codes, each at the place of its key or soon after

    def codes(self, labels: pl.Series) -> tuple[Codes, pl.Series]:
        """The code of every label, and the labels that are new. Rows of a person often stand together."""
        keys = _keys_of(labels)
        changes = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
        if FEW * np.count_nonzero(changes) >= len(changes):
            return self._codes(keys, labels)
        runs = np.concatenate([[0], np.flatnonzero(changes) + 1])
        codes, new = self._codes(tuple(key[runs] for key in keys), labels.gather(runs))
        return np.repeat(codes, np.diff(runs, append=len(labels))), new

    def labels(self) -> pl.Series:
        """All labels, by code."""
        return pl.concat(self._labels) if self._labels else pl.Series([], dtype=pl.Int64)

    def _codes(self, keys: LabelKeys, labels: pl.Series) -> tuple[Codes, pl.Series]:
        codes = self._find(keys)
        absent = np.flatnonzero(codes < 0)
        new = labels.gather(absent).unique(maintain_order=True)
        if len(new):
            self._labels.append(new)
            self._enter(_keys_of(new))
            codes[absent] = self._find(tuple(key[absent] for key in keys))
        return codes, new

    def _places(self, key: NDArray[np.uint64]) -> NDArray[np.int64]:
        bits = len(self._table).bit_length() - 1
        return ((key * _SPREAD) >> np.uint64(64 - bits)).view(np.int64)

    def _find(self, keys: LabelKeys) -> Codes:
        """The codes of these keys; -1 where there is none."""
        places = self._places(keys[0])
        codes = self._table.take(places)
        left = self._others(codes, keys)
        while len(left):
            places[left] = (places[left] + 1) & (len(self._table) - 1)
            codes[left] = self._table[places[left]]
            left = left[self._others(codes[left], tuple(key[left] for key in keys))]
        return codes

    def _others(self, codes: Codes, keys: LabelKeys) -> NDArray[np.int64]:
        """Where the code that was found is that of another key."""
        if not self.size:
            return np.zeros(0, dtype=np.int64)
        unlike = [known.take(codes) != key for known, key in zip(self._keys, keys, strict=True)]
        return np.flatnonzero(np.logical_or.reduce(unlike) & (codes >= 0))

    def _enter(self, keys: LabelKeys) -> None:
        """Give codes to keys that differ from each other and are not there yet."""
        first = self.size
        self.size += len(keys[0])
        if not self._keys or self.size > len(self._keys[0]):
            room = np.zeros(2 * self.size - first, dtype=np.uint64)
            self._keys = tuple(np.concatenate([old[:first], room]) for old in self._keys or keys)
        for stored, key in zip(self._keys, keys, strict=True):
            stored[first : self.size] = key
        if 2 * self.size > len(self._table):
            self._table = np.full(1 << (4 * self.size - 1).bit_length(), -1, dtype=np.int32)
            first = 0
        codes = np.arange(first, self.size, dtype=np.int32)
        places = self._places(self._keys[0][first : self.size])
        while len(codes):
            free = self._table[places] < 0
            self._table[places[free]] = codes[free]
            left = self._table[places] != codes  # one of those who want a place has it
            codes = codes[left]
            places = (places[left] + 1) & (len(self._table) - 1)


def _keys_of(labels: pl.Series) -> LabelKeys:
    if labels.dtype == pl.Int64:
        return (labels.to_numpy().view(np.uint64),)
    return tuple(labels.hash(seed=seed).to_numpy() for seed in _SEEDS)


class OrderColumn:
    """Reads a column, piece by piece, as numbers that order its rows; all pieces hold the same kind of thing."""

    _kind: str | None = None

    def read(self, column: pl.Series, where: str, rows: RowNumbers) -> NDArray[Any]:
        numbers, kind = self._numbers(column)
        absent = numbers.is_null()
        if absent.any():
            k = int(absent.arg_max())  # type: ignore[arg-type]
            empty = column[k] is None or column[k] == ""
            holds = "is empty" if empty else f"holds {listed([column[k]])}, which is neither a number nor a time"
            what = f"{where}, row {rows[k]:,} {holds}, so it is not known when the answer was given."
            raise ReadError(f"{what} Fill it in, or write times as in 2024-05-17 10:30:00.")
        if self._kind not in (None, kind):
            raise ReadError(f"{where} holds {kind} where it held {self._kind} before; write all of them alike.")
        if len(column):
            self._kind = kind
        return numbers.to_numpy()

    def _numbers(self, column: pl.Series) -> tuple[pl.Series, str]:
        """The column as numbers, null where it holds none; and what they are, "numbers" or "times"."""
        if column.dtype.is_temporal():
            if column.dtype in (pl.Date, pl.Datetime):
                return column.dt.timestamp("us"), "times"
            return column.to_physical(), "times"
        if column.dtype.is_integer():
            return column.cast(pl.Int64, strict=False), "numbers"
        text = column.cast(pl.String, strict=False).str.strip_chars().alias("text")
        numbers = text.cast(pl.Float64, strict=False).fill_nan(None)
        if self._kind != "times" and (self._kind == "numbers" or numbers.count() or not text.count()):
            return numbers, "numbers"
        iso = pl.col("text").str.replace(r"^(\S+) ", "${1}T")  # dates and times, with or without a zone
        forms = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
        ways = [iso.str.to_datetime(form, strict=False, time_unit="us").dt.replace_time_zone(None) for form in forms]
        ways.append(iso.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")))
        return text.to_frame().select(pl.coalesce(ways)).to_series().to_physical(), "times"


class LongPiece(NamedTuple):
    """Rows of a long table as `ResponsesBuilder.add` takes them, and the share of all that is read by now."""

    person: NDArray[np.int32]
    item: NDArray[np.int32]
    values: pl.Series
    place: Callable[[int], Place]
    time: NDArray[Any] | None
    done: float


@dataclass(frozen=True)
class LongTables:
    """Long tables, one after the other, as one; what labels they have is known when all pieces were read."""

    tables: Sequence[tuple[Table, Long]]
    about: PersonColumns | None
    persons: LabelCodes = field(default_factory=LabelCodes)
    items: LabelCodes = field(default_factory=LabelCodes)

    def _is_text(self, role: str) -> bool:
        """Whether labels are text in some table, and then in all."""
        return not all(table.dtypes[getattr(layout, role)] in WHOLE for table, layout in self.tables)

    def _is_loose(self, role: str) -> bool:
        """Whether labels that are whole numbers become integers."""
        return not self._is_text(role) or all(table.is_loose(getattr(layout, role)) for table, layout in self.tables)

    def pieces(self) -> Iterator[LongPiece]:
        """The rows in order of arrival, without those that are empty altogether."""
        order = OrderColumn()
        for number, (table, layout) in enumerate(self.tables):
            about = [] if self.about is None else self.about.positions(table)
            others = [k for k in (layout.order, layout.row, *layout.facets) if k is not None]
            columns = list(dict.fromkeys([layout.person, layout.item, layout.response, *about, *others]))
            start = table.rows_above + 1
            for frame, done in table.pieces(columns):
                rows: RowNumbers = range(start, start + frame.height)
                start += frame.height
                if layout.row is not None:
                    rows = frame.to_series(columns.index(layout.row)).cast(pl.Int64).to_numpy()
                if all(frame.to_series(k).null_count() for k in range(3)):
                    empty = frame.select(pl.all_horizontal(pl.nth(0, 1, 2).is_null())).to_series()
                    rows = np.asarray(rows)[~empty.to_numpy()]
                    frame = frame.filter(~empty)
                column_at = dict(zip(columns, frame.get_columns(), strict=True))
                time = None
                if layout.order is not None:
                    time = order.read(column_at[layout.order], table.where(layout.order), rows)
                if self.about is not None:
                    self.about.add(column_at[layout.person], [column_at[k] for k in about], table)
                person = self._codes("person", table, layout, column_at[layout.person], rows)
                item = self._codes("item", table, layout, self._item(table, layout, column_at, rows), rows)
                named = table.columns[layout.response] if layout.row is None else column_at[layout.item]
                yield LongPiece(
                    person=person,
                    item=item,
                    values=column_at[layout.response],
                    place=partial(_place, table.name, named, rows),
                    time=time,
                    done=(number + done) / len(self.tables),
                )

    def _item(self, table: Table, layout: Long, column_at: Mapping[int, pl.Series], rows: RowNumbers) -> pl.Series:
        """The column of items; with facets, what was rated and by whom in one text."""
        if not layout.facets:
            return column_at[layout.item]
        parts = []
        for k in (layout.item, *layout.facets):
            labels = plain_labels(column_at[k], text=True, name=table.where(k))
            _check_filled(labels, table.where(k), rows, "what was rated, or by whom")
            parts.append(labels.alias(str(k)))
        return pl.select(pl.concat_str(parts, separator=JOINED)).to_series()

    def facets(self, items: Labels) -> Facets | None:
        """Of which levels the items are combinations, where facets were asked for."""
        table, layout = self.tables[0]
        if not layout.facets:
            return None
        parts = pl.Series(items.astype(str)).str.split_exact(JOINED, len(layout.facets)).struct.unnest()
        levels = []
        codes = []
        for column in parts:
            different, code = np.unique(column.to_numpy(), return_inverse=True)
            labels = final_labels(pl.Series(different), loose=True)
            order = labels.arg_sort().to_numpy()
            levels.append(labels_of(labels.gather(order)))
            codes.append(np.argsort(order)[code.ravel()])
        names = ("item", *(str(table.columns[k]) for k in layout.facets))
        return Facets(names, tuple(levels), np.stack(codes, axis=1))

    def _codes(self, role: str, table: Table, layout: Long, column: pl.Series, rows: RowNumbers) -> NDArray[np.int32]:
        where = table.where(getattr(layout, role))
        is_text = self._is_text(role) or column.dtype == pl.String
        labels = plain_labels(column, text=is_text, name=where)
        if role == "item":
            _check_filled(labels, where, rows, "which item the response belongs to")
            codes, new = self.items.codes(labels)
            if new.dtype == pl.String and (new.str.strip_chars() == "").any():
                filled = labels.set(labels.str.strip_chars() == "", None)
                _check_filled(filled, where, rows, "which item the response belongs to")
            return codes
        if labels.null_count():
            check_names(labels, where, rows)
        codes, new = self.persons.codes(labels)
        if new.dtype == pl.String and new.str.strip_chars().is_in(NOT_ANSWERED).any():
            check_names(labels, where, rows)
        return codes

    def labels(self, role: str) -> pl.Series:
        """Those that came up, by code."""
        codes = self.persons if role == "person" else self.items
        return final_labels(codes.labels(), loose=self._is_loose(role))

    def numbered_labels(self, role: str) -> tuple[Labels, NDArray[np.int32]]:
        """The labels in order, numbers by size and text by its characters; and the position of each by its code."""
        labels = self.labels(role)
        order = labels.arg_sort().to_numpy()
        position = np.empty(len(order), dtype=np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        return labels_of(labels.gather(order)), position


def _check_filled(labels: pl.Series, where: str, rows: RowNumbers, what: str) -> None:
    if labels.null_count():
        row = rows[labels.is_null().arg_max()]  # type: ignore[index]
        raise ReadError(f"{where}, row {row:,} is empty, so it is not known {what}. Fill it in, or remove the row.")


def _place(name: str, column: Any, rows: RowNumbers, k: int) -> Place:
    """Where the k-th value of a piece stands; `column` is that of the values, or what each is called."""
    if isinstance(column, pl.Series):
        column = column[k]
    return name, column, int(rows[k])


def one_ahead(things: Iterable[Any]) -> Iterator[Any]:
    """The same things; while one is used, a thread makes the next."""
    source = iter(things)
    end = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, end)
        while (thing := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield thing


READ = 0.8  # the share of the work that is reading; the rest is packing


def long_responses(data: LongTables, options: ReadOptions) -> Responses:
    """Responses from long tables; people and items in sorted order."""
    refuse_blanks(options.scoring, "here there is a row for each answer")
    labels = lambda: data.labels("item").to_list()  # noqa: E731
    builder = ResponsesBuilder(options.scoring, options.source, labels, duplicates=options.duplicates)
    for piece in one_ahead(data.pieces()):
        builder.add(piece.person, piece.item, piece.values, piece.place, when=piece.time)
        options.report(READ * piece.done)
    if not data.persons.size:
        raise ReadError(f"{options.source} has a header but no rows; check that whatever wrote it had finished.")
    items, item_at = data.numbered_labels("item")
    facets = data.facets(items)
    rated_things = None
    if facets is not None:
        items = facets.labels()
        rated_things = (facets.items, facets.item)
    persons, person_at = data.numbered_labels("person")
    report = lambda share: options.report(READ + (1 - READ) * share)  # noqa: E731
    responses = builder.responses(persons, items, person_at, item_at, rated_things, report)
    table, layout = data.tables[0]
    if facets is not None:
        facets.check_distinct(table.name)
    words = plural_words(table.columns[layout.person], table.columns[layout.item])
    return replace(responses, facets=facets, words=words)
