"""Tables -> Responses, in one pass; those with all the answers of a person together are built here. A *batch* is a run
of whole rows of a wide table. When a row is a person and nobody may come twice, batches are packed as they arrive;
otherwise the answers are gathered first, because a later row may change or belong to an earlier person."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.block import BLOCK_RESPONSES
from spectral_irt.data.builder import ResponsesBuilder
from spectral_irt.data.facets import check_facet_names
from spectral_irt.data.labels import NOT_ANSWERED, Labels, label_array, nobody, positions
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Place, Scoring, of_either_kind, refuse_blanks
from spectral_irt.errors import DuplicateResponseError, Finding, OptionError, ReadError, ResponseValueError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading import frame as tabular
from spectral_irt.reading.columns import Long, Wide, find_layout, plain
from spectral_irt.reading.formats import ENCODED, File, find_files, open_table, responses_of_packed, state_of
from spectral_irt.reading.frame import HEAD_ROWS, WHOLE, Pieces, Table, labels_of, plain_labels, settled
from spectral_irt.reading.item_columns import check_named, family_advice, findings, refuse_two_occasions
from spectral_irt.reading.key_row import (
    DifferentKeys,
    ends_with_key,
    first_row_like_key,
    is_key_label,
    without_key_rows,
)
from spectral_irt.reading.side_tables import PersonColumns, read_key
from spectral_irt.reading.sql import open_query
from spectral_irt.reading.text_pieces import read_as_written
from spectral_irt.text import count, listed

log = logging.getLogger("spectral_irt")
Batch = tuple[list[pl.Series], Any, float]  # columns beside the answers, all answers row after row, share read by now
TOTALS = ("total", "totals", "grand total", "sum", "mean", "average", "overall average")  # last rows: no people
NOBODY = rf"(?i)^\s*({'|'.join((*TOTALS, *NOT_ANSWERED))})\s*$"  # labels of rows that may be no people
MADE_LONG = ("item", "answer", "row")  # the columns of a wide table with facets, made long


def read_query(path: Any, sql: str | None, database: str | None, of_files: Any, options: ReadOptions) -> Responses:
    if sql is None or database is None:
        given, absent = ("sql", "database") if database is None else ("database", "sql")
        raise OptionError(f"`{given}=` needs `{absent}=` beside it.")
    if path is not None and path != [] and path != ():
        raise OptionError("`sql=` is read instead of a file; leave out one of them, or read them separately.")
    if of_files is not None:
        raise OptionError("`sheet` and `encoding` are for files; leave them out.")
    with tabular.polars_errors_named("the query"):
        table = open_query(sql, database)
        return from_tables([table], replace(options, source=table.name))


def read_frame(native: Any, options: ReadOptions) -> Responses:
    with tabular.polars_errors_named("the dataframe"):
        table, kind = tabular.table_of_any_frame(native)
        return from_tables([table], replace(options, frame_kind=kind))


def read_files(path: Any, options: ReadOptions, sheet: Any, encoding: str | None, engine: Any) -> Responses:
    """Responses from files; with the engine of a cluster, on its workers."""
    files = find_files(path, sheet=sheet, encoding=encoding)
    if files[0].encoding is not None and files[0].family not in ENCODED:
        raise OptionError(f"`encoding=` is for text files, SPSS and Stata; leave it out for {files[0].name}.")
    options = replace(options, source=files[0].name if len(files) == 1 else f"{len(files)} files")
    if files[0].family == "packed":
        return responses_of_packed(files, options, engine)

    def read(files: list[File], options: ReadOptions = options) -> Responses:
        return from_tables(list(map(open_table, files)), options)

    before = list(map(state_of, files))
    try:
        with tabular.polars_errors_named(options.source):
            found = _by_own_key(files, options, read) if files[0].family == "workbook" else None
            found = (found or read_as_written(files, read)).using(engine)
    finally:
        for file, old in zip(files, before, strict=True):
            if state_of(file) != old:
                raise ReadError(f"{file.name} changed while it was being read; read it again when it is complete.")
    if log.isEnabledFor(logging.INFO):  # to count the answers is a pass over them
        sizes = (found.n_persons, found.n_items, found.n_responses)
        log.info("%s: %d people, %d items, %d responses", options.source, *sizes)
    return found


def _by_own_key(files: list[File], options: ReadOptions, read: Callable[..., Responses]) -> Responses | None:
    """The answers in a workbook, scored by the sheet in it that is called key; None where there is none, or another
    scoring was asked for, or the key is not that of these answers."""
    if len(files) > 1 or files[0].sheet is not None or not options.scoring.undecided:
        return None
    from spectral_irt.reading.excel import KEY_SHEETS, sheet_names

    sheets = [name for name in sheet_names(files[0]) if plain(name) in KEY_SHEETS]
    if len(sheets) != 1:
        return None
    try:
        scoring = replace(options.scoring, key=read_key(files[0].path, sheets[0], None), ordered=False, undecided=False)
        found = read(files, replace(options, scoring=scoring))
    except DifferentKeys:
        raise
    except (ReadError, OptionError, ResponseValueError):
        return None
    note = Finding("key_sheet", "note", f"The answers were scored by the key in the sheet {sheets[0]!r}.")
    return replace(found, notes=(note, *found.notes))


def from_tables(tables: Sequence[Table], options: ReadOptions) -> Responses:
    """Responses from tables, long or wide, which may be read as often as needed."""
    people, facets = options.people, options.facets
    check_facet_names(facets)
    for table in tables:
        for role, names in (("people", people), ("facet", facets)):
            for name in names:
                table.position(role, name)
    if facets and options.scoring.key is not None:
        raise OptionError("`facets=` is for ratings, and `key=` for answers. Leave out one of them.")
    options = replace(options, ignore=(*options.ignore, *people, *facets))
    tables = list(map(Table.without_second_header, tables))
    people_only, scored = without_key_rows(tables, options)
    try:
        responses = _by_layout(people_only, scored)
        last_is_key = responses.n_persons > HEAD_ROWS and is_key_label(responses.persons[-1])
    except ResponseValueError:
        # Letters without a key: it may be the last row, which is looked for now.
        if not any(map(ends_with_key, people_only)):
            raise
        last_is_key = True
    if last_is_key:
        responses = _by_layout(*without_key_rows(tables, options, to_the_end=True))
    has_rows_of_people = options.orient == "persons" and isinstance(find_layout(people_only[0], scored), Wide)
    if options.scoring.key is not None and has_rows_of_people:
        responses = replace(responses, notes=(*responses.notes, *first_row_like_key(responses)))
    return responses


def _by_layout(tables: Sequence[Table], options: ReadOptions) -> Responses:
    """Responses from tables of people, or of answers."""
    facets = options.facets
    found = [(table, find_layout(table, options)) for table in tables]
    if facets:  # ratings are categories, whatever they look like; right and wrong where all are 0 and 1
        return _scored_tables([_with_facets(*one, facets) for one in found], options, options.scoring)

    def by_every_row() -> Laid:  # a column of a wide table may be unlike the others further down
        return [(table, find_layout(table, options, every_row=True)) for table in tables]

    try:
        made = of_either_kind(partial(_scored_tables, found, options), options.scoring)
        alike = made.codes is None or len({row.tobytes() for row in made.codes}) == 1
        if alike or (closer := by_every_row()) == found:
            return made
    except ResponseValueError:
        if (closer := by_every_row()) == found:
            raise
    return of_either_kind(partial(_scored_tables, closer, options), options.scoring)


Laid = Sequence[tuple[Table, Long | Wide]]


def _scored_tables(found: Laid, options: ReadOptions, scoring: Scoring) -> Responses:
    options = replace(options, scoring=scoring)
    about = PersonColumns(options.people, options.source) if options.people else None
    tables, notes = dict[type, Any](), list[Finding]()
    for table, layout in found:
        tables.setdefault(type(layout), []).append((table, layout))
        notes += table.notes
    if len(tables) > 1:
        long, wide = tables[Long][-1][0].name, tables[Wide][-1][0].name
        what = f"{long} is long (one row per answer) and {wide} is wide (one row per person);"
        raise ReadError(f"{what} read them separately, or say `format=` if one of them was mistaken.")
    if Long in tables:
        from spectral_irt.reading.long_builder import LongTables, long_responses

        responses = long_responses(LongTables(tables[Long], about), options)
    else:
        if options.items:
            check_named(options.items, [name for table, _ in found for name in table.columns], options.source)
        for table, layout in tables[Wide]:
            refuse_two_occasions(table, layout)
        responses = WideBuilder(tables[Wide], options, about).responses()
    people = None if about is None else about.people(responses.persons)
    notes += [*_alike(responses.persons, "person"), *_alike(responses.items, "item")]
    notes += [*_called_missing(responses), *responses.notes]
    return replace(responses, people=people, frame_kind=options.frame_kind, notes=tuple(notes))


def _alike(labels: Labels, kind: str) -> list[Finding]:
    """A warning where labels of people differ in spaces only, or those of items in spaces and capitals only."""
    known = [] if labels.dtype != object else [label for label in labels.tolist() if isinstance(label, str)]
    texts = pl.Series(known, dtype=pl.String)
    plain = texts.str.strip_chars() if kind == "person" else texts.str.strip_chars().str.to_lowercase()
    twice = plain.is_duplicated()
    if not twice.any():
        return []
    alike = texts.filter(twice).gather(plain.filter(twice).arg_sort()).to_list()
    differ = "spaces" if kind == "person" else "spaces or capitals"
    sentence = f"The labels of {count(len(alike), kind)} differ from each other in {differ} only: {listed(alike)}."
    remedy = "They count as different ones; if they are the same, correct the labels."
    return [Finding(f"alike_{kind}s", "warning", sentence, remedy, tuple(alike) if kind == "item" else ())]


def _called_missing(responses: Responses) -> list[Finding]:
    """A warning where an item is called as R and pandas write a value that is missing."""
    called = [label for label in responses.items.tolist() if isinstance(label, str) and label.strip() in NOT_ANSWERED]
    if not called:
        return []
    answered = int(responses.item_counts[np.isin(responses.items, called)].sum())
    sentence = (
        f"{count(answered, 'response')} {'belongs' if answered == 1 else 'belong'} to {listed(called)}, which is what "
        "R and pandas write where the name of an item is missing."
    )
    remedy = "If it is no item, remove these responses; else give it another name."
    return [Finding("item_called_missing", "warning", sentence, remedy, tuple(called))]


def _with_facets(table: Table, layout: Long | Wide, names: Sequence[str]) -> tuple[Table, Long]:
    """The layout with the facets; a wide table is made long: the columns that are no items, item, answer and row."""
    facets = tuple(table.position("facet", name) for name in names)
    if isinstance(layout, Long):
        return table, replace(layout, facets=facets)
    if layout.label is None:
        raise OptionError(f"{table.name}: no column seems to name the person who was rated. Say which with `person=`.")
    n = len(table.columns)
    items = list(layout.columns)
    labels = [str(table.columns[k]) for k in items]
    kind = table.dtypes[items[0]] if len({table.dtypes[k] for k in items}) == 1 else pl.String

    def pieces(positions: Sequence[int]) -> Pieces:
        beside = [k for k in positions if k < n]
        start = table.rows_above + 1
        for frame, done in table.pieces([*beside, *items]):
            yield _unpivoted(frame, positions, beside, labels, kind, n, start), done
            start += frame.height

    made = replace(
        table,
        columns=[*table.columns, *MADE_LONG],
        dtypes=[*table.dtypes, pl.String, kind, pl.UInt32],
        pieces=pieces,
        head=lambda k: table.head(k) if k < n else table.head(items[0]),
        untyped=[*table.untyped, n],
        cells=None,
        n_added=0,
    )
    return made, Long(layout.label, n, n + 1, row=n + 2, facets=facets)


def _unpivoted(
    frame: pl.DataFrame,
    positions: Sequence[int],
    beside: Sequence[int],
    labels: Sequence[str],
    kind: Any,
    n: int,
    start: int,
) -> pl.DataFrame:
    """Rows of a wide table as long ones, of which the columns at these positions: those below `n` are the table's own,
    `beside` the items; from there on, `MADE_LONG`. By position, since an item may be called "row" or "answer"."""
    n_rows = frame.height
    columns = dict(zip(beside, frame.get_columns()[: len(beside)], strict=True))
    answers = [column.cast(kind, strict=False).alias("answer") for column in frame.get_columns()[len(beside) :]]
    long: list[pl.Series] = []
    for k in positions:
        if k < n:
            long.append(pl.concat([columns[k]] * len(labels)))
        elif MADE_LONG[k - n] == "item":
            long.append(pl.Series(labels, dtype=pl.String).gather(np.repeat(np.arange(len(labels)), n_rows)))
        elif MADE_LONG[k - n] == "answer":
            long.append(pl.concat(answers))
        else:
            long.append(pl.Series(np.tile(np.arange(start, start + n_rows, dtype=np.uint32), len(labels))))
    return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(long)])


class WideBuilder:
    """Wide tables on their way to Responses, stacked; people and items in the order they come."""

    def __init__(self, tables: Sequence[tuple[Table, Wide]], options: ReadOptions, about: PersonColumns | None) -> None:
        bare = [table.name for table, layout in tables if layout.label is None and table.row_labels is None]
        if bare and len(bare) < len(tables):
            raise ReadError(f"{bare[0]} has no column of people's labels, but other files have. Say `person=`.")
        self._tables, self._options, self._about = tables, options, about
        self._people_down = options.orient == "persons"
        self._at_once = self._people_down and options.duplicates == "error"
        if not self._at_once:
            refuse_blanks(options.scoring, "here people may have several rows, or a row is an item")
        columns = [table.columns[k] for table, layout in tables for k in layout.columns]
        self._code = dict(zip(dict.fromkeys(columns), range(len(columns)), strict=False))
        self._labels: list[pl.DataFrame] = []
        labels = lambda: list(self._code) if self._people_down else _joined(self._labels).to_list()  # noqa: E731
        source, twice = options.source, options.duplicates
        self._builder = ResponsesBuilder(options.scoring, source, labels, duplicates=twice)
        self._n_packed = 0  # batches
        self._n_rows = 0
        self._totals: list[str] = []  # labels of the last rows that are no people
        self._unnamed: list[str] = []  # what people are called whose rows have no label
        self._like_totals: list[str] = []  # such labels of rows among the people, which are kept

    def responses(self) -> Responses:
        options, builder = self._options, self._builder
        loose, untyped, labeled = True, True, False  # loose: labels become integers where all are whole numbers
        for index, (table, layout) in enumerate(self._tables):
            self._read(table, layout, index)
            loose &= layout.label is not None and table.is_loose(layout.label)
            untyped &= len(table.untyped) == len(table.columns)
            labeled |= bool(table.value_labels)
        if not any(map(len, self._labels)):
            raise ReadError(f"{options.source} has a header but no rows; check that whatever wrote it had finished.")
        if builder.check is not None:
            families = family_advice(*self._tables[0]) if self._people_down and not options.items else None
            builder.check.complain(options.source, len(self._code), families)
        labels = _joined(self._labels)
        rows = labels.unique(maintain_order=True)
        if options.duplicates == "error" and len(rows) < len(labels):
            raise self._repeated(labels.filter(labels.is_duplicated()).unique(maintain_order=True))
        persons, items, of_row = labels_of(settled(rows, loose=loose)), label_array(self._code), None
        if untyped:
            items = labels_of(settled(pl.Series(list(self._code), dtype=pl.String), loose=True))
        if self._at_once:
            self._pack()
        else:
            of_row = positions(labels.to_list(), rows.to_list()).astype(np.int32)
        by_row = (persons, items, of_row) if self._people_down else (items, persons, None, of_row)
        packed = builder.responses(*by_row)
        by_name = dict(zip(self._code, items, strict=True)) if self._people_down else {}
        meaning, said = self._category_labels(by_name) if labeled else ({}, [])
        notes = [*(findings(self._tables, tuple(self._code)) if self._people_down else ()), *said]
        if self._totals:
            sentence = f"Left out: the row labeled {listed(self._totals)}, which is no person."
            notes.append(Finding("total_rows", "warning", sentence, "If it is one, give it another label."))
        if self._like_totals:
            sentence = f"Taken for people: rows labeled {listed(self._like_totals)}, among those of others."
            notes.append(Finding("total_rows", "warning", sentence, "If these are sums, remove the rows."))
        if self._unnamed:
            n = len(self._unnamed)
            rows_have = "1 row has" if n == 1 else f"{n:,} rows have"
            sentence = f"{rows_have} answers and no label; the people are called {listed(self._unnamed)}."
            notes.append(Finding("unnamed_people", "note", sentence, "If these are no people, remove the rows."))
        meaning = meaning if packed.codes is not None else {}
        return replace(packed, answer_labels=meaning, notes=(*notes, *packed.notes))

    def _category_labels(self, items: Mapping[Any, Any]) -> tuple[dict[Any, dict[float, str]], list[Finding]]:
        """What the codes of each item mean, by its label; and a note where the file labels those of most alike."""
        tables = [(table, k) for table, layout in self._tables for k in layout.columns]
        missing = self._builder.scoring.missing  # a label on a code for no answer is no category
        every = []
        for table, k in tables:
            texts = table.value_labels.get(k, {})
            every.append((table.columns[k], {code: text for code, text in texts.items() if code not in missing}))
        labels, n = Counter(tuple(one.items()) for _, one in every).most_common(1)[0]
        shown = ", ".join(f"{code} {text}" for code, text in labels)
        sentence = f"The file labels the categories: {shown}."
        notes = [Finding("category_labels", "note", sentence)] if labels and 2 * n > len(every) else []
        known, scoring = {}, self._builder.scoring
        for name, own in every if scoring.recode is None else ():
            if name in items and own:
                codes = {float(code): text for code, text in own.items() if code.isdecimal()}
                if items[name] in scoring.reverse:
                    codes = {self._builder.turned - code: text for code, text in codes.items()}
                known[items[name]] = codes
        return known, notes

    def _read(self, table: Table, layout: Wide, index: int) -> None:
        """Add the rows of a table; those without labels are numbered on."""
        about = [] if self._about is None else self._about.positions(table)
        codes = np.array([self._code[table.columns[k]] for k in layout.columns], dtype=np.int32)
        beside, n, start = [*([] if layout.label is None else [layout.label]), *about], len(codes), 0
        for (others, values, done), is_last in with_last(_batches(table, beside, layout.columns)):
            height = len(values) // n
            rows = table.row_numbers(start, height)
            if layout.label is not None:
                labels, *others = others
                if labels.dtype != pl.String:
                    kind = table.dtypes[layout.label]
                    labels = plain_labels(labels, text=kind not in WHOLE, name=table.where(layout.label))
                text = labels.dtype == pl.String
                if labels.null_count() or (text and labels.str.contains(NOBODY).any()):
                    rest = (others, values, rows, table.where(layout.label), is_last)
                    labels, others, values, rows = self._without_empty_rows(labels, *rest)
            elif table.row_labels is not None:
                labels = table.row_labels.slice(start, height)
            else:
                number = self._n_rows + (0 if self._options.frame_kind else 1)  # a file's from 1, a frame's from 0
                labels = pl.Series(np.arange(number, number + height, dtype=np.int64))
            if self._about is not None:
                self._about.add(labels, others, table)

            def place(k: int, rows: NDArray[Any] = rows) -> Place:
                return table.name, table.columns[layout.columns[k % n]], int(rows[k // n])

            row = np.repeat(np.arange(self._n_rows, self._n_rows + len(labels), dtype=np.int32), n)
            column = np.tile(codes, len(labels))
            self._labels.append(labels.to_frame("label"))
            self._n_rows += len(labels)
            if self._people_down:
                self._builder.add(row, column, values, place, n)
            else:
                self._builder.add(column, row, values, place)
            if self._at_once and self._builder.n_waiting >= BLOCK_RESPONSES:
                self._pack()
            start += height
            self._options.report((index + done) / len(self._tables))

    def _without_empty_rows(
        self, labels: pl.Series, others: list[pl.Series], values: Any, rows: NDArray[Any], where: str, is_last: bool
    ) -> tuple[pl.Series, list[pl.Series], Any, NDArray[Any]]:
        """Spreadsheets leave rows of nothing or of sums at the end. A person may be called Sum: among the others such a
        row is kept. A person without a label is called by the number of the row; an item without one is an error."""
        bare = gone = labels.is_null().to_numpy()
        if self._people_down and labels.dtype == pl.String:  # an item may be called NA
            nameless = labels.str.strip_chars().is_in(NOT_ANSWERED).fill_null(True)
            bare = gone = nameless.to_numpy()
        if self._people_down and labels.dtype == pl.String:
            sums = labels.str.strip_chars().str.to_lowercase().is_in(TOTALS).fill_null(False).to_numpy()
            named = np.flatnonzero(~(bare | sums))
            last_person = named[-1] if len(named) else -1
            at_the_end = sums & is_last & (np.arange(len(labels)) > last_person)
            self._totals += labels.filter(pl.Series(at_the_end)).to_list()
            self._like_totals += labels.filter(pl.Series(sums & ~at_the_end)).to_list()
            gone = bare | at_the_end
        empty = np.isnan(values) if isinstance(values, np.ndarray) else values.is_null().to_numpy()
        answered = bare & ~empty.reshape(len(bare), -1).all(axis=1)
        if answered.any() and not self._people_down:
            raise nobody(where, rows[answered].tolist())
        if answered.any():
            numbered = pl.Series([f"row {row}" for row in rows.tolist()], dtype=pl.String)
            labels = labels.cast(pl.String).zip_with(pl.Series(~answered), numbered)
            gone = gone & ~answered
            self._unnamed += numbered.filter(pl.Series(answered)).to_list()
        kept, cells = pl.Series(~gone), np.repeat(~gone, len(values) // len(bare))
        labels, rows, others = labels.filter(kept), rows[~gone], [each.filter(kept) for each in others]
        return labels, others, values[cells] if isinstance(values, np.ndarray) else values.filter(cells), rows

    def _pack(self) -> None:
        """Pack the rows so far: they are people, and each comes once."""
        if len(self._labels) > self._n_packed:
            persons = _joined(self._labels[self._n_packed :]).to_numpy()
            self._builder.whole_people(self._n_rows, persons, label_array(self._code))
            self._n_packed = len(self._labels)

    def _repeated(self, twice: pl.Series) -> DuplicateResponseError:
        how = "say `duplicates='first' or 'last'` to keep one answer"
        kind, remedy = "item", f"Rename them, or {how} of each person."
        if self._people_down:
            ratings = "`facet=`, the column that says who rated, if these are ratings"
            kind, remedy = "person", f"{how.capitalize()} to each item; or {ratings}."
        who = f"{self._options.source}: {count(len(twice), kind)} {'has' if len(twice) == 1 else 'have'}"
        return DuplicateResponseError(f"{who} more than one row: {listed(twice.to_list())}.", remedy)


def with_last(batches: Iterator[Batch]) -> Iterator[tuple[Batch, bool]]:
    """The batches, each with whether it is the last."""
    waiting = next(batches, None)
    while waiting is not None:
        following = next(batches, None)
        yield waiting, following is None
        waiting = following


def _joined(labels: list[pl.DataFrame]) -> pl.Series:
    return pl.concat(labels, how="vertical_relaxed").to_series()


def _batches(table: Table, beside: Sequence[int], columns: Sequence[int]) -> Iterator[Batch]:
    """Some rows at a time; values as an array where every column holds numbers, else all as text."""
    n, width, size = len(beside), len(table.columns), max(tabular.LEAST_ROWS, BLOCK_RESPONSES // len(columns))
    if table.cells is not None:
        kept = np.isin(np.arange(width), columns)
        for cells, done in table.cells():
            for start in range(0, len(cells), size * width):
                part = cells.slice(start, size * width)
                others = list(map(partial(part.gather_every, width), beside))
                yield others, part if kept.all() else part.filter(pl.Series(np.tile(kept, len(part) // width))), done
        return
    for k in columns:
        if not tabular.is_plain(table.dtypes[k]):
            raise ReadError(f"{table.where(k)} is of type {table.dtypes[k]}, not answers. Leave it out.")
    numeric = all(table.dtypes[k].is_numeric() or table.dtypes[k] in (pl.Boolean, pl.Null) for k in columns)
    for frame, done in table.pieces([*beside, *columns]):
        for some in frame.iter_slices(size):
            answers = some[:, n:]
            if numeric:
                yield some.get_columns()[:n], answers.cast(pl.Float64).to_numpy(order="c").ravel(), done
                continue
            by_column = answers.cast(pl.String).unpivot().get_column("value")
            row_after_row = np.arange(len(by_column)).reshape(answers.width, answers.height).T.ravel()
            yield some.get_columns()[:n], by_column.gather(row_after_row), done
