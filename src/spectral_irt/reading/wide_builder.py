"""Tables -> Responses, in one pass; those with all the answers of a person together are built here.

A *batch* is a run of whole rows of a wide table. When a row is a person and nobody may come twice, batches are packed
as they arrive; otherwise the answers are gathered first, because a later row may change or belong to an earlier person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

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
from spectral_irt.reading.attributes import PersonColumns, check_named, together
from spectral_irt.reading.columns import Long, Wide, find_layout, plural_words
from spectral_irt.reading.facets import refuse_with_facets, with_facets
from spectral_irt.reading.frame import LEAST_ROWS, Table, check_names, is_whole, labels_of, plain_labels
from spectral_irt.reading.long_builder import LongTables, long_responses

Batch = tuple[list[pl.Series], Any, float]  # columns beside the answers, all answers row after row, share read by now


def from_tables(tables: Sequence[Table], options: ReadOptions) -> Responses:
    """Responses from tables, long or wide, which may be read as often as needed."""
    if options.layout.facets:  # ratings are categories, whatever they look like; right and wrong where all are 0 and 1
        return _scored_tables(tables, options)
    return of_either_kind(lambda how: _scored_tables(tables, replace(options, scoring=how)), options.scoring)


def _scored_tables(tables: Sequence[Table], options: ReadOptions) -> Responses:
    said, about = options.layout, None
    if said.people:
        about = PersonColumns(said.people, options.source)
        for table in tables:
            about.positions(table)
        said = replace(said, ignore=(*said.ignore, *said.people))
    if said.facets:
        refuse_with_facets(tables, options)
        said = replace(said, ignore=(*said.ignore, *said.facets))
    long: list[tuple[Table, Long]] = []
    wide: list[tuple[Table, Wide]] = []
    for table in tables:
        layout = find_layout(table, said, options.scoring.key or ())
        if said.facets:
            table, layout = with_facets(table, layout, said)
        if isinstance(layout, Long):
            long.append((table, layout))
        else:
            wide.append((table, layout))
    if long and wide:
        raise ReadError(
            f"{long[-1][0].name} is long (one row per answer) and {wide[-1][0].name} is wide (one row per person); "
            "read them separately, or say `format=` if one of them was mistaken."
        )
    if long:
        table, layout = long[0]
        words = plural_words(table.columns[layout.person], table.columns[layout.item])
        responses = replace(long_responses(LongTables(long, about), options), words=words)
    else:
        check_named(said.items, [name for table in tables for name in table.columns], options.source)
        responses = WideBuilder(wide, options, about).responses()
    if about is not None:
        responses = replace(responses, people=about.people(responses.persons))
    notes = [note for table in tables for note in table.notes]
    return replace(responses, notes=(*notes, *responses.notes)) if notes else responses


class WideBuilder:
    """Wide tables on their way to Responses, stacked; people and items in the order they come."""

    def __init__(self, tables: Sequence[tuple[Table, Wide]], options: ReadOptions, about: PersonColumns | None) -> None:
        bare = [table.name for table, layout in tables if layout.label is None and table.row_labels is None]
        if bare and len(bare) < len(tables):
            raise ReadError(
                f"{bare[0]} has no column of people's labels, but other files have. Name it with `person=`."
            )
        self._tables, self._options, self._about = tables, options, about
        self._people_down = options.layout.orient == "persons"
        self._at_once = self._people_down and options.duplicates == "error"
        if not self._at_once:
            refuse_blanks(options.scoring, "here people may have several rows, or a row is an item")
        columns = [item_label(table.columns[k]) for table, layout in tables for k in layout.columns]
        self._code = {name: code for code, name in enumerate(dict.fromkeys(columns))}
        self._labels: list[pl.Series] = []
        self._builder = ResponsesBuilder(
            options.scoring, options.source, self._item_labels, wide=True, duplicates=options.duplicates
        )
        self._n_packed = 0  # batches
        self._n_rows = 0

    def _item_labels(self) -> list[Any]:
        return list(self._code) if self._people_down else _joined(self._labels).to_list()

    def responses(self) -> Responses:
        options, check = self._options, self._builder.check
        number = 0 if options.frame_kind else 1  # rows of a file are counted from 1, those of a frame from 0
        for index, (table, layout) in enumerate(self._tables):
            number = self._read(table, layout, number, index)
        if not any(map(len, self._labels)):
            raise ReadError(f"{options.source} has a header but no rows; check that whatever wrote it had finished.")
        check.n_columns = len(self._code)
        check.check(options.source)
        labels = _joined(self._labels)
        rows = labels.unique(maintain_order=True)
        if options.duplicates == "error" and len(rows) < len(labels):
            raise self._repeated(labels.filter(labels.is_duplicated()).unique(maintain_order=True))
        loose = all(layout.label is not None and table.is_loose(layout.label) for table, layout in self._tables)
        persons, items, of_row = labels_of(rows, loose=loose), self._column_labels(), None
        if self._at_once:
            self._pack()
        else:
            of_row = positions(labels.to_list(), rows.to_list()).astype(np.int32)
        if self._people_down:
            packed = self._builder.responses(persons, items, of_row)
        else:
            packed = self._builder.responses(items, persons, None, of_row)
        chosen = [layout.chosen for _, layout in self._tables if layout.chosen is not None]
        about_columns = together(chosen).findings() if chosen else ()
        return replace(packed, frame_kind=options.frame_kind, notes=(*about_columns, *packed.notes))

    def _read(self, table: Table, layout: Wide, number: int, index: int) -> int:
        """Add the rows of a table; those without labels are numbered from `number`, and the next number is returned."""
        about = self._about.positions(table) if self._about else []
        columns = [item_label(table.columns[k]) for k in layout.columns]
        codes = np.array([self._code[name] for name in columns], dtype=np.int32)
        beside, n, start = [*([] if layout.label is None else [layout.label]), *about], len(codes), 0
        for others, values, done in _batches(table, beside, layout.columns, max(LEAST_ROWS, BLOCK_RESPONSES // n)):
            height = len(values) // n
            rows = table.rows_above + np.arange(start + 1, start + height + 1)
            if layout.label is not None:
                where = f"{table.name}: column {str(table.columns[layout.label])!r}"
                others, values, rows = _without_empty_rows(others, values, rows, where)
                labels = plain_labels(others[0], text=not is_whole(table.dtypes[layout.label]), name=where)
                if self._people_down:
                    check_names(labels, where, rows)
            elif table.row_labels is not None:
                labels = table.row_labels.slice(start, height)
            else:
                labels = pl.Series(np.arange(number, number + height, dtype=np.int64))
            if self._about is not None:
                self._about.add(labels, others[len(others) - len(about) :])

            def place(k: int, rows: NDArray[Any] = rows) -> Place:
                return Place(table.name, columns[k % n], int(rows[k // n]))

            row = np.repeat(np.arange(self._n_rows, self._n_rows + len(labels), dtype=np.int32), n)
            column = np.tile(codes, len(labels))
            self._labels.append(labels)
            self._n_rows += len(labels)
            if self._people_down:
                self._builder.add(Piece(row, column, values, place, n))
            else:
                self._builder.add(Piece(column, row, values, place))
            if self._at_once and self._builder.n_waiting >= BLOCK_RESPONSES:
                self._pack()
            start, number = start + height, number + len(labels)
            self._options.report((index + done) / len(self._tables))
        return number

    def _pack(self) -> None:
        """Pack the rows so far: they are people, and each comes once."""
        if len(self._labels) > self._n_packed:
            persons = _joined(self._labels[self._n_packed :]).to_numpy()
            self._builder.whole_people(self._n_rows, persons, label_array(self._code))
            self._n_packed = len(self._labels)

    def _column_labels(self) -> Labels:
        names = list(self._code)
        if all(len(table.untyped) == len(table.columns) for table, _ in self._tables):
            return labels_of(pl.Series(names, dtype=pl.String), loose=True)
        return label_array(names)

    def _repeated(self, twice: pl.Series) -> DuplicateResponseError:
        said, kind = "say `duplicates='first' or 'last'` to keep one answer", ("item", "items")
        remedy = f"Rename them, or {said} of each person."
        if self._people_down:
            kind = ("person", "people")
            remedy = (
                f"{said.capitalize()} to each item; or `facet=`, the column that says who rated, if these are ratings."
            )
        who = f"1 {kind[0]} has" if len(twice) == 1 else f"{len(twice):,} {kind[1]} have"
        return DuplicateResponseError(
            f"{self._options.source}: {who} more than one row: {listed(twice.to_list())}. {remedy}"
        )


def _joined(labels: list[pl.Series]) -> pl.Series:
    if len({part.dtype for part in labels}) > 1:
        labels = [part.cast(pl.String) for part in labels]
    return pl.concat(labels)


# ------------------------------------------------------------------ rows of cells


def _batches(table: Table, beside: Sequence[int], columns: Sequence[int], size: int) -> Iterator[Batch]:
    """Some rows at a time; values that are numbers as an array."""
    numeric = _are_numbers(table, columns)
    if table.cells is not None:
        yield from _from_cells(table, beside, columns, size)
        return
    n = len(beside)
    for frame, done in table.pieces([*beside, *columns]):
        for part in frame.iter_slices(size):
            answers = part[:, n:]
            if numeric:
                yield part.get_columns()[:n], answers.cast(pl.Float64).to_numpy(order="c").ravel(), done
                continue
            by_column = answers.cast(pl.String).unpivot().get_column("value")
            row_after_row = np.arange(len(by_column)).reshape(answers.width, answers.height).T.ravel()
            yield part.get_columns()[:n], by_column.gather(row_after_row), done


def _from_cells(table: Table, beside: Sequence[int], columns: Sequence[int], size: int) -> Iterator[Batch]:
    """The same of a table that comes as cells."""
    assert table.cells is not None
    width = len(table.columns)
    answers = np.zeros(width, dtype=bool)
    answers[list(columns)] = True
    for cells, done in table.cells():
        for start in range(0, len(cells), size * width):
            part = cells.slice(start, size * width)
            others = [part.gather_every(width, k) for k in beside]
            if not answers.all():
                part = part.filter(pl.Series(np.tile(answers, len(part) // width)))
            yield others, part, done


def _without_empty_rows(
    others: list[pl.Series], values: Any, rows: NDArray[Any], where: str
) -> tuple[list[pl.Series], Any, NDArray[Any]]:
    """Spreadsheets leave rows of nothing at the end; a row of answers without a label is an error."""
    bare = others[0].is_null().to_numpy()
    if not bare.any():
        return others, values, rows
    empty = np.isnan(values) if isinstance(values, np.ndarray) else values.is_null().to_numpy()
    answered = bare & ~empty.reshape(len(bare), -1).all(axis=1)
    if answered.any():
        raise nobody(where, rows[answered].tolist())
    kept = np.repeat(~bare, len(values) // len(bare))
    values = values[kept] if isinstance(values, np.ndarray) else values.filter(pl.Series(kept))
    return [each.filter(pl.Series(~bare)) for each in others], values, rows[~bare]


def _are_numbers(table: Table, columns: Sequence[int]) -> bool:
    """Whether every column holds numbers; otherwise all are read as text, to be judged in one go."""
    for k in columns:
        if table.dtypes[k].is_nested() or table.dtypes[k] in (pl.Object, pl.Binary):
            raise ReadError(
                f"{table.name}: column {str(table.columns[k])!r} is of type {table.dtypes[k]}, not answers. Leave it "
                "out of the table."
            )
    return all(table.dtypes[k].is_numeric() or table.dtypes[k] in (pl.Boolean, pl.Null) for k in columns)
