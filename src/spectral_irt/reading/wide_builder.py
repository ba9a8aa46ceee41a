"""Wide tables -> Responses, in one pass: rows with all the answers of a person (or, `orient='items'`, of an item).

A *batch* is a run of whole rows of a table. When a row is a person and nobody may come twice, batches are packed as
they arrive; otherwise the answers are gathered first, because a later row may change or belong to an earlier person.

`tables.py` calls this, when it is known which column is what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.block import BLOCK_RESPONSES
from spectral_irt.data.builder import ResponsesBuilder
from spectral_irt.data.labels import NOT_ANSWERED, label_array, nobody, positions
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Place, refuse_blanks
from spectral_irt.errors import DuplicateResponseError, Finding, ReadError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading import frame as tabular
from spectral_irt.reading.columns import Wide
from spectral_irt.reading.frame import WHOLE, Table, final_labels, labels_of, plain_labels
from spectral_irt.reading.item_columns import family_advice, findings
from spectral_irt.reading.side_tables import PersonColumns
from spectral_irt.text import count, listed, one_or_many

# fmt: off
# Labels of last rows that are no people.
TOTALS = (
    "total", "totals", "grand total", "class total", "sum", "sums", "mean", "means", "class mean", "average",
    "averages", "class average", "overall average", "average score", "durchschnitt", "klassendurchschnitt",
    "mittelwert", "summe", "promedio", "moyenne", "somme", "gemiddelde",
)
# fmt: on
NOBODY = rf"(?i)^\s*({'|'.join((*TOTALS, *NOT_ANSWERED))})\s*$"  # labels of rows that may be no people


class Batch(NamedTuple):
    """Some rows of a table: the columns beside the answers, all answers row after row, and the share of the table that
    was read by now."""

    others: list[pl.Series]
    values: Any
    done: float


class LabeledRows(NamedTuple):
    """Rows of a batch with their labels, the columns about people, the answers row after row, and the numbers of the
    rows as people count them."""

    labels: pl.Series
    about: list[pl.Series]
    values: Any
    numbers: NDArray[Any]

    def take(self, chosen: NDArray[np.bool_]) -> LabeledRows:
        """Some of the rows."""
        rows = pl.Series(chosen)
        cells = np.repeat(chosen, len(self.values) // len(chosen))
        values = self.values[cells] if isinstance(self.values, np.ndarray) else self.values.filter(cells)
        return LabeledRows(
            labels=self.labels.filter(rows),
            about=[column.filter(rows) for column in self.about],
            values=values,
            numbers=self.numbers[chosen],
        )

    def has_answers(self) -> NDArray[np.bool_]:
        """Whether a row has any."""
        empty: NDArray[np.bool_]
        if isinstance(self.values, np.ndarray):
            empty = np.isnan(self.values)
        else:
            empty = self.values.is_null().to_numpy()
        return np.any(~empty.reshape(len(self.labels), -1), axis=1)


class CategoryLabels(NamedTuple):
    """What the codes of each item mean, by its label; and a note where the file labels those of most alike."""

    by_item: dict[Any, dict[float, str]]
    notes: list[Finding]


class WideBuilder:
    """Wide tables on their way to Responses, stacked; people and items in the order they come."""

    def __init__(self, tables: Sequence[tuple[Table, Wide]], options: ReadOptions, about: PersonColumns | None) -> None:
        without_labels = [table.name for table, layout in tables if layout.label is None and table.row_labels is None]
        if without_labels and len(without_labels) < len(tables):
            what = f"{without_labels[0]} has no column of people's labels, but other files have."
            raise ReadError(f"{what} Say `person=`.")
        self._tables = tables
        self._options = options
        self._about = about
        self._rows_are_people = options.orient == "persons"
        self._packs_at_once = self._rows_are_people and options.duplicates == "error"
        if not self._packs_at_once:
            refuse_blanks(options.scoring, "here people may have several rows, or a row is an item")
        columns = dict.fromkeys(table.columns[k] for table, layout in tables for k in layout.columns)
        self._code = {name: code for code, name in enumerate(columns)}  # of the columns, by name
        self._labels: list[pl.DataFrame] = []  # of the rows, batch by batch
        self._n_packed = 0  # batches
        self._n_rows = 0
        self._totals: list[str] = []  # labels of the last rows that are no people
        self._unnamed: list[str] = []  # what people are called whose rows have no label
        self._like_totals: list[str] = []  # such labels of rows among the people, which are kept
        self._builder = ResponsesBuilder(
            options.scoring, options.source, self._item_labels, duplicates=options.duplicates
        )

    def _item_labels(self) -> list[Any]:
        """Of the items that came up, by code."""
        if self._rows_are_people:
            return list(self._code)
        return _one_series(self._labels).to_list()

    def responses(self) -> Responses:
        """All rows of all tables."""
        for index, (table, layout) in enumerate(self._tables):
            self._read(table, layout, index)
        if not any(map(len, self._labels)):
            what = f"{self._options.source} has a header but no rows;"
            raise ReadError(f"{what} check that whatever wrote it had finished.")
        self._check_values()
        labels = _one_series(self._labels)
        different = labels.unique(maintain_order=True)
        if self._options.duplicates == "error" and len(different) < len(labels):
            raise self._duplicate_error(labels.filter(labels.is_duplicated()).unique(maintain_order=True))
        rows = labels_of(final_labels(different, loose=self._row_labels_are_loose))
        columns = self._column_labels()
        row_of_label = None
        if self._packs_at_once:
            self._pack()
        else:
            row_of_label = positions(labels.to_list(), different.to_list()).astype(np.int32)
        if self._rows_are_people:
            responses = self._builder.responses(rows, columns, row_of_label)
            item_of_column = dict(zip(self._code, columns, strict=True))
        else:
            responses = self._builder.responses(columns, rows, None, row_of_label)
            item_of_column = {}
        meaning = CategoryLabels({}, [])
        if any(table.value_labels for table, _ in self._tables):
            meaning = self._category_labels(item_of_column)
        notes = [*self._notes_on_columns(), *meaning.notes, *self._notes_on_rows(), *responses.notes]
        answer_labels = {} if responses.codes is None else meaning.by_item
        texts = self._item_texts(item_of_column)
        return replace(responses, answer_labels=answer_labels, item_texts=texts, notes=tuple(notes))

    @property
    def _row_labels_are_loose(self) -> bool:
        """Whether labels of rows become integers where all of them are whole numbers."""
        return all(layout.label is not None and table.is_loose(layout.label) for table, layout in self._tables)

    def _column_labels(self) -> NDArray[Any]:
        """Labels of the columns with answers: integers where all are whole numbers, of files in which nothing has a
        type."""
        if all(len(table.untyped) == len(table.columns) for table, _ in self._tables):
            return labels_of(final_labels(pl.Series(list(self._code), dtype=pl.String), loose=True))
        return label_array(self._code)

    def _check_values(self) -> None:
        """An error where the values were not answers; with advice, where families of columns were read as one."""
        if self._builder.check is None:
            return
        advice = None
        if self._rows_are_people and not self._options.items:
            advice = family_advice(*self._tables[0])
        self._builder.check.complain(self._options.source, len(self._code), advice)

    def _notes_on_columns(self) -> list[Finding]:
        if not self._rows_are_people:
            return []
        return [*findings(self._tables, tuple(self._code))]

    def _notes_on_rows(self) -> Iterator[Finding]:
        """Rows that may be sums, and rows without labels."""
        if self._totals:
            sentence = f"Left out: the row labeled {listed(self._totals)}, which is no person."
            yield Finding("total_rows", "warning", sentence, "If it is one, give it another label.")
        if self._like_totals:
            sentence = f"Taken for people: rows labeled {listed(self._like_totals)}, among those of others."
            yield Finding("total_rows", "warning", sentence, "If these are sums, remove the rows.")
        if self._unnamed:
            rows_have = count(len(self._unnamed), "row has", "rows have")
            sentence = f"{rows_have} answers and no label; the people are called {listed(self._unnamed)}."
            yield Finding("unnamed_people", "note", sentence, "If these are no people, remove the rows.")

    def _item_texts(self, item_of_column: Mapping[Any, Any]) -> dict[Any, str]:
        """The labels of the columns that are items, where a file has any; of several files the first that has one."""
        texts: dict[Any, str] = {}
        for table, layout in self._tables:
            for k in layout.columns:
                name = table.columns[k]
                if k in table.variable_labels and name in item_of_column:
                    texts.setdefault(item_of_column[name], table.variable_labels[k])
        return texts

    def _category_labels(self, item_of_column: Mapping[Any, Any]) -> CategoryLabels:
        """What the value labels of the files say about the categories."""
        scoring = self._builder.scoring
        labels_of_columns: list[tuple[Any, dict[str, str]]] = []
        for table, layout in self._tables:
            for k in layout.columns:
                labels = table.value_labels.get(k, {})
                # A label on a code for no answer is no category.
                categories = {code: text for code, text in labels.items() if code not in scoring.missing}
                labels_of_columns.append((table.columns[k], categories))
        notes = []
        alike = Counter(tuple(labels.items()) for _, labels in labels_of_columns)
        most_common, n_columns = alike.most_common(1)[0]
        if most_common and 2 * n_columns > len(labels_of_columns):
            shown = ", ".join(f"{code} {text}" for code, text in most_common)
            notes.append(Finding("category_labels", "note", f"The file labels the categories: {shown}."))
        by_item: dict[Any, dict[float, str]] = {}
        if scoring.recode is not None:  # whose labels are those of the categories
            return CategoryLabels(by_item, notes)
        for column, labels in labels_of_columns:
            if column in item_of_column and labels:
                item = item_of_column[column]
                codes = {float(code): text for code, text in labels.items() if code.isdecimal()}
                if item in scoring.reverse:
                    codes = {self._builder.turned - code: text for code, text in codes.items()}
                by_item[item] = codes
        return CategoryLabels(by_item, notes)

    def _read(self, table: Table, layout: Wide, index: int) -> None:
        """Add the rows of a table; those without labels are numbered on."""
        columns_beside = [] if layout.label is None else [layout.label]
        if self._about is not None:
            columns_beside += self._about.positions(table)
        codes = np.array([self._code[table.columns[k]] for k in layout.columns], dtype=np.int32)
        start = 0
        for batch, is_last in with_last(_batches(table, columns_beside, layout.columns)):
            height = len(batch.values) // len(codes)
            rows = self._labeled_rows(table, layout, batch, start, height, is_last)
            if self._about is not None:
                self._about.add(rows.labels, rows.about, table)
            self._add(rows, codes, table, layout)
            if self._packs_at_once and self._builder.n_waiting >= BLOCK_RESPONSES:
                self._pack()
            start += height
            self._options.report((index + batch.done) / len(self._tables))

    def _labeled_rows(
        self, table: Table, layout: Wide, batch: Batch, start: int, height: int, is_last: bool
    ) -> LabeledRows:
        """The rows of a batch with their labels: those of a column, of the index of a frame, or numbers."""
        numbers = table.row_numbers(start, height)
        if layout.label is None:
            if table.row_labels is not None:
                labels = table.row_labels.slice(start, height)
            else:
                first = self._n_rows if self._options.frame_kind else self._n_rows + 1  # a file's count from 1
                labels = pl.Series(np.arange(first, first + height, dtype=np.int64))
            return LabeledRows(labels, batch.others, batch.values, numbers)
        labels, *about = batch.others
        where = table.where(layout.label)
        if labels.dtype != pl.String:
            labels = plain_labels(labels, text=table.dtypes[layout.label] not in WHOLE, name=where)
        rows = LabeledRows(labels, about, batch.values, numbers)
        may_be_nobody = labels.dtype == pl.String and labels.str.contains(NOBODY).any()
        if labels.null_count() or may_be_nobody:
            return self._without_empty_rows(rows, where, is_last)
        return rows

    def _add(self, rows: LabeledRows, codes: NDArray[np.int32], table: Table, layout: Wide) -> None:
        n_columns = len(codes)
        n_rows = len(rows.labels)
        numbers = rows.numbers  # `place` may be kept for a message, and the answers must not be kept with it

        def place(k: int) -> Place:
            return table.name, table.columns[layout.columns[k % n_columns]], int(numbers[k // n_columns])

        row = np.repeat(np.arange(self._n_rows, self._n_rows + n_rows, dtype=np.int32), n_columns)
        column = np.tile(codes, n_rows)
        self._labels.append(rows.labels.to_frame("label"))
        self._n_rows += n_rows
        if self._rows_are_people:
            self._builder.add(row, column, rows.values, place, n_columns)
        else:
            self._builder.add(column, row, rows.values, place)

    def _without_empty_rows(self, rows: LabeledRows, where: str, is_last: bool) -> LabeledRows:
        """Spreadsheets leave rows of nothing or of sums at the end. A person may be called Sum: among the others such a
        row is kept. A person without a label is called by the number of the row; an item without one is an error."""
        labels = rows.labels
        nameless = labels.is_null().to_numpy()
        is_total = np.zeros(len(labels), dtype=bool)
        if self._rows_are_people and labels.dtype == pl.String:  # an item may be called NA, or Sum
            nameless = labels.str.strip_chars().is_in(NOT_ANSWERED).fill_null(True).to_numpy()
            is_total = self._totals_at_the_end(labels, nameless, is_last)
        unnamed = nameless & rows.has_answers()
        if unnamed.any() and not self._rows_are_people:
            raise nobody(where, rows.numbers[unnamed].tolist())
        if unnamed.any():
            numbered = pl.Series([f"row {row}" for row in rows.numbers.tolist()], dtype=pl.String)
            rows = rows._replace(labels=labels.cast(pl.String).zip_with(pl.Series(~unnamed), numbered))
            self._unnamed += numbered.filter(pl.Series(unnamed)).to_list()
        return rows.take(~(nameless & ~unnamed) & ~is_total)

    def _totals_at_the_end(self, labels: pl.Series, nameless: NDArray[np.bool_], is_last: bool) -> NDArray[np.bool_]:
        """Rows labeled as sums after the last person of the table."""
        like_totals = labels.str.strip_chars().str.to_lowercase().is_in(TOTALS).fill_null(False).to_numpy()
        named = np.flatnonzero(~(nameless | like_totals))
        last_person = named[-1] if len(named) else -1
        at_the_end = like_totals & is_last & (np.arange(len(labels)) > last_person)
        self._totals += labels.filter(pl.Series(at_the_end)).to_list()
        self._like_totals += labels.filter(pl.Series(like_totals & ~at_the_end)).to_list()
        return at_the_end

    def _pack(self) -> None:
        """Pack the rows so far: they are people, and each comes once."""
        if len(self._labels) > self._n_packed:
            persons = _one_series(self._labels[self._n_packed :]).to_numpy()
            self._builder.whole_people(self._n_rows, persons, label_array(self._code))
            self._n_packed = len(self._labels)

    def _duplicate_error(self, labels: pl.Series) -> DuplicateResponseError:
        how = "say `duplicates='first' or 'last'` to keep one answer"
        kind = "item"
        remedy = f"Rename them, or {how} of each person."
        if self._rows_are_people:
            ratings = "`facet=`, the column that says who rated, if these are ratings"
            kind = "person"
            remedy = f"{how.capitalize()} to each item; or {ratings}."
            families = family_advice(*self._tables[0])
            if families.says_who_rated:
                remedy = f"{families.advice.strip()} Else {how} to each item."
        have = one_or_many(len(labels), "has", "have")
        who = f"{self._options.source}: {count(len(labels), kind)} {have}"
        return DuplicateResponseError(f"{who} more than one row: {listed(labels.to_list())}.", remedy)


def with_last(batches: Iterator[Batch]) -> Iterator[tuple[Batch, bool]]:
    """The batches, each with whether it is the last."""
    waiting = next(batches, None)
    while waiting is not None:
        following = next(batches, None)
        yield waiting, following is None
        waiting = following


def _one_series(labels: list[pl.DataFrame]) -> pl.Series:
    return pl.concat(labels, how="vertical_relaxed").to_series()


def _batches(table: Table, beside: Sequence[int], columns: Sequence[int]) -> Iterator[Batch]:
    """Some rows at a time; values as an array where every column holds numbers, else all as text."""
    n_rows = max(tabular.LEAST_ROWS, BLOCK_RESPONSES // len(columns))
    if table.cells is not None:
        return _batches_of_cells(table, beside, columns, n_rows)
    for k in columns:
        if not tabular.is_plain(table.dtypes[k]):
            raise ReadError(f"{table.where(k)} is of type {table.dtypes[k]}, not answers. Leave it out.")
    return _batches_of_columns(table, beside, columns, n_rows)


def _batches_of_cells(table: Table, beside: Sequence[int], columns: Sequence[int], n_rows: int) -> Iterator[Batch]:
    """Batches of a table whose cells come row after row."""
    assert table.cells is not None
    width = len(table.columns)
    has_answers = np.isin(np.arange(width), columns)
    for cells, done in table.cells():
        for start in range(0, len(cells), n_rows * width):
            part = cells.slice(start, n_rows * width)
            others = list(map(partial(part.gather_every, width), beside))
            if not has_answers.all():
                part = part.filter(pl.Series(np.tile(has_answers, len(part) // width)))
            yield Batch(others, part, done)


def _batches_of_columns(table: Table, beside: Sequence[int], columns: Sequence[int], n_rows: int) -> Iterator[Batch]:
    """Batches of a table whose columns come one beside the other."""
    n_beside = len(beside)
    are_numbers = all(table.dtypes[k].is_numeric() or table.dtypes[k] in (pl.Boolean, pl.Null) for k in columns)
    for frame, done in table.pieces([*beside, *columns]):
        for part in frame.iter_slices(n_rows):
            others = part.get_columns()[:n_beside]
            answers = part[:, n_beside:]
            if are_numbers:
                yield Batch(others, answers.cast(pl.Float64).to_numpy(order="c").ravel(), done)
                continue
            by_column = answers.cast(pl.String).unpivot().get_column("value")
            row_after_row = np.arange(len(by_column)).reshape(answers.width, answers.height).T.ravel()
            yield Batch(others, by_column.gather(row_after_row), done)
