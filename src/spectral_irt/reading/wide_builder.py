"""Tables -> Responses, in one pass; those with all the answers of a person together are built here.

A *batch* is a run of whole rows, each with its answers: a slice of a wide table, or some lines of a JSON-lines file.
When a row is a person and nobody may come twice, batches are packed as they arrive; otherwise the answers are gathered
first, because a later row may change or belong to an earlier person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.block import BLOCK_RESPONSES
from spectral_irt.data.builder import Piece, ResponsesBuilder, refuse_blanks
from spectral_irt.data.categories import of_either_kind
from spectral_irt.data.labels import Labels, item_label, label_array, nobody, positions
from spectral_irt.data.responses import Responses
from spectral_irt.data.value_check import Place
from spectral_irt.errors import DuplicateResponseError, ReadError, listed
from spectral_irt.reading import ReadOptions
from spectral_irt.reading.attributes import ItemColumns, PersonColumns, check_named, together
from spectral_irt.reading.columns import Long, Wide, find_layout, plural_words
from spectral_irt.reading.frame import LEAST_ROWS, Table, check_names, is_whole, labels_of, plain_labels
from spectral_irt.reading.long_builder import LongTables, long_responses


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


@dataclass(frozen=True)
class RowBatch:
    """Some whole rows: a label for each, Int64 or text, and their values; a `person` of the piece is a row here."""

    labels: pl.Series
    piece: Piece


class RowSource(Protocol):
    """A source of batches: a wide table, or JSON lines with a person each.

    Attributes
    ----------
    name : str
    labeled : bool
        Whether the rows have labels; otherwise they are numbered.
    loose_rows, loose_columns : bool
        Labels are text without a type: they become integers when all are whole numbers.
    in_order : bool
        Whether the cells of a row are in the order of the test.
    chosen : ItemColumns or None
        Which columns were taken for items; None when there was nothing to choose.
    """

    name: str
    labeled: bool
    loose_rows: bool
    loose_columns: bool
    in_order: bool
    chosen: ItemColumns | None
    about: PersonColumns | None

    def batches(self, columns: ItemIndex, number: int) -> Iterator[tuple[RowBatch, float]]:
        """Batches, each with the share read by now; rows without labels are numbered from `number`."""
        ...


def responses_of_rows(sources: Sequence[RowSource], options: ReadOptions) -> Responses:
    """Responses from rows of several sources, stacked; people and items in the order they come."""
    bare = [source.name for source in sources if not source.labeled]
    if bare and len(bare) < len(sources):
        raise ReadError(f"{bare[0]} has no column of people's labels, but other files have. Name it with `person=`.")
    columns = ItemIndex()
    builder = WideBuilder(columns, options, sources)
    number = 0 if options.frame_kind else 1  # rows of a file are counted from 1, those of a frame from 0
    for index, source in enumerate(sources):
        for batch, done in source.batches(columns, number):
            number += len(batch.labels)
            builder.add(batch)
            options.report((index + done) / len(sources))
    responses = builder.responses()
    chosen = [source.chosen for source in sources if source.chosen is not None]
    if not chosen:
        return responses
    said = together(chosen)
    about_columns = replace(said, items=said.items or tuple(responses.items.tolist())).findings()
    return replace(responses, notes=about_columns + responses.notes)


class WideBuilder:
    """Batches on their way to Responses."""

    def __init__(self, columns: ItemIndex, options: ReadOptions, sources: Sequence[RowSource]) -> None:
        self._columns, self._options = columns, options
        self._loose_rows = all(source.loose_rows for source in sources)
        self._loose_columns = all(source.loose_columns for source in sources)
        self._builder = ResponsesBuilder(options.scoring, options.source, wide=True, duplicates=options.duplicates)
        self._labels: list[pl.Series] = []
        self._n_packed = 0  # batches
        self._n_rows = 0  # since then
        self._at_once = options.layout.orient == "persons" and options.duplicates == "error"
        if not self._at_once:
            refuse_blanks(options.scoring, "here people may have several rows, or a row is an item")
        elif not all(source.in_order for source in sources):
            refuse_blanks(options.scoring, "here people have items of their own")

    def add(self, batch: RowBatch) -> None:
        self._builder.add(batch.piece._replace(person=batch.piece.person + self._n_rows))
        self._labels.append(batch.labels)
        self._n_rows += len(batch.labels)
        if self._at_once and self._builder.n_waiting >= BLOCK_RESPONSES:
            self._pack()

    def _pack(self) -> None:
        """Pack the rows so far: they are people, and each comes once."""
        persons = _joined(self._labels[self._n_packed :]).to_numpy()
        self._builder.whole_people(persons, label_array(self._columns.labels))
        self._n_packed, self._n_rows = len(self._labels), 0

    def responses(self) -> Responses:
        options, check = self._options, self._builder.check
        if not any(map(len, self._labels)):
            raise ReadError(f"{options.source} has a header but no rows; check that whatever wrote it had finished.")
        check.n_columns = len(self._columns.labels)
        check.check(options.source)
        labels = _joined(self._labels)
        rows = labels.unique(maintain_order=True)
        if options.duplicates == "error" and len(rows) < len(labels):
            raise self._repeated(labels.filter(labels.is_duplicated()).unique(maintain_order=True))
        persons, items, recode = labels_of(rows, loose=self._loose_rows), self._column_labels(), None
        if self._at_once and self._n_rows:
            self._pack()
        elif not self._at_once:
            of_row = positions(labels.to_list(), rows.to_list()).astype(np.int32)
            if options.layout.orient == "persons":
                recode = lambda row, column: (of_row[row], column)  # noqa: E731
            else:
                persons, items, recode = items, persons, lambda row, column: (column, of_row[row])
        packed = self._builder.responses(persons, items, recode)
        check.check_scored(packed)
        raw, notes = self._builder.raw(packed.items)
        notes = (*packed.notes, *notes)
        return replace(packed, frame_kind=options.frame_kind, source=options.source, raw=raw, notes=notes)

    def _column_labels(self) -> Labels:
        labels = self._columns.labels
        return labels_of(pl.Series(labels, dtype=pl.String), loose=True) if self._loose_columns else label_array(labels)

    def _repeated(self, twice: pl.Series) -> DuplicateResponseError:
        said, kind = "say `duplicates='first' or 'last'` to keep one answer", ("item", "items")
        remedy = f"Rename them, or {said} of each person."
        if self._options.layout.orient == "persons":
            kind, remedy = ("person", "people"), f"{said.capitalize()} to each item."
        who = f"1 {kind[0]} has" if len(twice) == 1 else f"{len(twice):,} {kind[1]} have"
        return DuplicateResponseError(
            f"{self._options.source}: {who} more than one row: {listed(twice.to_list())}. {remedy}"
        )


def _joined(labels: list[pl.Series]) -> pl.Series:
    if len({part.dtype for part in labels}) > 1:
        labels = [part.cast(pl.String) for part in labels]
    return pl.concat(labels)


class WideRows:
    """One wide table, cut into batches of about a block's worth of values. See `RowSource`."""

    in_order = True

    def __init__(self, table: Table, layout: Wide, *, orient: str) -> None:
        self.table, self.name, self.chosen = table, table.name, layout.chosen
        self.label, self.columns = layout.label, layout.columns
        self.about: PersonColumns | None = None  # columns about people come with the table
        self.labeled = layout.label is not None or table.row_labels is not None
        self.loose_rows = layout.label is not None and table.is_loose(layout.label)
        self.loose_columns = len(table.untyped) == len(table.columns)
        self.orient = orient
        self.items = [item_label(table.columns[k]) for k in layout.columns]
        self.numeric = _are_numbers(table, layout.columns)

    def batches(self, columns: ItemIndex, number: int) -> Iterator[tuple[RowBatch, float]]:
        codes = columns.codes(self.items)
        size = max(LEAST_ROWS, BLOCK_RESPONSES // len(codes))
        start = 0
        for labels, values, done in self._from_cells(size) if self.table.cells else self._from_columns(size):
            yield self._batch(labels, values, codes, start, number + start), done
            start += len(values) // len(codes)

    def _from_columns(self, size: int) -> Iterator[tuple[pl.Series | None, Any, float]]:
        """Labels of some rows, if they have any, and all their values, row after row; numbers as an array."""
        label = [] if self.label is None else [self.label]
        for frame, done in self.table.pieces([*label, *self.columns]):
            for part in frame.iter_slices(size):
                yield part.to_series(0) if label else None, self._row_after_row(part[:, len(label) :]), done

    def _row_after_row(self, part: pl.DataFrame) -> Any:
        if self.numeric:
            return part.cast(pl.Float64).to_numpy(order="c").ravel()
        by_column = part.cast(pl.String).unpivot().get_column("value")
        return by_column.gather(np.arange(len(by_column)).reshape(part.width, part.height).T.ravel())

    def _from_cells(self, size: int) -> Iterator[tuple[pl.Series | None, Any, float]]:
        """The same of a table that comes as cells."""
        assert self.table.cells is not None
        width = len(self.table.columns)
        answers = np.zeros(width, dtype=bool)
        answers[list(self.columns)] = True
        for cells, done in self.table.cells():
            for start in range(0, len(cells), size * width):
                part = cells.slice(start, size * width)
                labels = None if self.label is None else part.gather_every(width, self.label)
                if not answers.all():
                    part = part.filter(pl.Series(np.tile(answers, len(part) // width)))
                yield labels, part, done

    def _batch(
        self, labels: pl.Series | None, values: Any, codes: NDArray[np.int32], start: int, number: int
    ) -> RowBatch:
        n = len(codes)
        height = len(values) // n
        rows = self.table.rows_above + np.arange(start + 1, start + height + 1)
        if labels is not None:
            labels, values, rows = self._without_empty_rows(labels, values, rows)
            text = not is_whole(self.table.dtypes[self.label])  # type: ignore[index]
            labels, height = plain_labels(labels, text=text, name=self._where()), len(labels)
            if self.orient == "persons":
                check_names(labels, self._where(), rows)
        elif self.table.row_labels is not None:
            labels = self.table.row_labels.slice(start, height)
        else:
            labels = pl.Series(np.arange(number, number + height, dtype=np.int64))

        def place(k: int) -> Place:
            return Place(self.name, self.items[k % n], int(rows[k // n]))

        row = np.repeat(np.arange(height, dtype=np.int32), n)
        width = n if self.orient == "persons" else None  # else the cells of a row are those of an item
        return RowBatch(labels, Piece(row, np.tile(codes, height), values, place, width))

    def _where(self) -> str:
        return f"{self.name}: column {str(self.table.columns[self.label])!r}"  # type: ignore[index]

    def _without_empty_rows(
        self, labels: pl.Series, values: Any, rows: NDArray[Any]
    ) -> tuple[pl.Series, Any, NDArray[Any]]:
        """Spreadsheets leave rows of nothing at the end; a row of answers without a label is an error."""
        bare = labels.is_null().to_numpy()
        if not bare.any():
            return labels, values, rows
        empty = np.isnan(values) if isinstance(values, np.ndarray) else values.is_null().to_numpy()
        answered = bare & ~empty.reshape(len(bare), -1).all(axis=1)
        if answered.any():
            raise nobody(self._where(), rows[answered].tolist())
        kept = np.repeat(~bare, len(values) // len(bare))
        values = values[kept] if isinstance(values, np.ndarray) else values.filter(pl.Series(kept))
        return labels.filter(pl.Series(~bare)), values, rows[~bare]


def _are_numbers(table: Table, columns: Sequence[int]) -> bool:
    """Whether every column holds numbers; otherwise all are read as text, to be judged in one go."""
    for k in columns:
        if table.dtypes[k].is_nested() or table.dtypes[k] in (pl.Object, pl.Binary):
            raise ReadError(
                f"{table.name}: column {str(table.columns[k])!r} is of type {table.dtypes[k]}, not answers. Leave it "
                "out of the table."
            )
    return all(table.dtypes[k].is_numeric() or table.dtypes[k] in (pl.Boolean, pl.Null) for k in columns)


# ------------------------------------------------------------------ tables, long or wide


def from_tables(tables: Sequence[Table], options: ReadOptions) -> Responses:
    """Responses from tables, which may be read as often as needed."""
    for table in tables:
        for name in options.layout.people:
            table.position("people", name)
    return of_either_kind(lambda how: _scored_tables(tables, replace(options, scoring=how)), options.scoring)


def _scored_tables(tables: Sequence[Table], options: ReadOptions) -> Responses:
    layout, about = options.layout, None
    if layout.people:
        about = PersonColumns(layout.people, options.source, 0 if options.frame_kind else 1)
        options = replace(options, layout=replace(layout, ignore=(*layout.ignore, *layout.people)))
    responses = _read_tables(tables, options, about)
    if about is not None:
        responses = replace(responses, people=about.people(responses.persons))
    notes = [note for table in tables for note in table.notes]
    return replace(responses, notes=(*notes, *responses.notes)) if notes else responses


def _read_tables(tables: Sequence[Table], options: ReadOptions, about: PersonColumns | None) -> Responses:
    said, key = options.layout, options.scoring.key or ()
    long: list[tuple[Table, Long]] = []
    wide: list[RowSource] = []
    for table in tables:
        if table.row_source and (own := table.row_source(said, key)):
            own.about = about
            wide.append(own)
            continue
        layout = find_layout(table, said, key)
        if about is not None:
            table = about.beside(table, layout.person if isinstance(layout, Long) else layout.label)
        if isinstance(layout, Long):
            long.append((table, layout))
        else:
            wide.append(WideRows(table, layout, orient=said.orient))
    if long and wide:
        raise ReadError(
            f"{long[-1][0].name} is long (one row per answer) and {wide[-1].name} is wide (one row per person); read "
            "them separately, or say `format=` if one of them was mistaken."
        )
    if long:
        first = long[0][0].columns
        words = plural_words(first[long[0][1].person], first[long[0][1].item])
        return replace(long_responses(LongTables(long), options), words=words)
    names = [name for table in tables for name in table.columns]
    if not any(table.row_source for table in tables):
        check_named(said.items, names, options.source)
    responses = responses_of_rows(wide, options)
    if not responses.n_items:  # of people with items of their own, all are known only now
        check_named(said.items, names, options.source)
    return responses
