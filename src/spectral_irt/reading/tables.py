"""The front door of `read`: files, a query or a dataframe -> tables -> layout -> responses.

    source                  files, a query, a dataframe
    -> tables               a `Table` each, which may be read as often as needed (`formats.py`, `sql.py`, `frame.py`)
    -> layout               long or wide, and which column is what (`columns.py`)
    -> responses            by `long_builder.py` or `wide_builder.py`, piece by piece

A packed file is none of this: its blocks are mapped as they are.

A table may be read up to four times. What a column of a wide table holds is decided by its first rows; where a column
is unlike the others only further down, the layout is decided again by every row. And with either layout answers of
which nobody said what they are may be read as right and wrong when they were read as categories (`of_either_kind`).

`spectral_irt.read` (this room's `__init__`) checks the options and calls `read_files`, `read_query` or `read_frame`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from spectral_irt.data.facets import check_facet_names
from spectral_irt.data.labels import NOT_ANSWERED, Labels, positions
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Scoring, of_either_kind
from spectral_irt.errors import Finding, OptionError, ReadError, ResponseValueError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading import frame as tabular
from spectral_irt.reading.columns import Long, Wide, find_layout, plain
from spectral_irt.reading.formats import ENCODED, File, find_files, open_table, state_of
from spectral_irt.reading.frame import HEAD_ROWS, Table
from spectral_irt.reading.item_columns import check_named, refuse_two_occasions
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
from spectral_irt.reading.unpivot import with_facets
from spectral_irt.reading.wide_builder import WideBuilder
from spectral_irt.text import count, listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.engine.dask import DaskEngine

log = logging.getLogger("spectral_irt")


def read_query(source: Any, sql: str | None, database: str | None, of_files: Any, options: ReadOptions) -> Responses:
    """Responses from what a query returns; `source` and `of_files`, options of files, must be empty beside it."""
    if sql is None or database is None:
        given, absent = ("sql", "database") if database is None else ("database", "sql")
        raise OptionError(f"`{given}=` needs `{absent}=` beside it.")
    if source is not None and source != [] and source != ():
        raise OptionError("`sql=` is read instead of a file; leave out one of them, or read them separately.")
    if of_files is not None:
        raise OptionError("`sheet` and `encoding` are for files; leave them out.")
    with tabular.polars_errors_named("the query"):
        table = open_query(sql, database)
        return from_tables([table], replace(options, source=table.name))


def read_frame(native: Any, options: ReadOptions) -> Responses:
    """Responses from a dataframe of any library."""
    with tabular.polars_errors_named("the dataframe"):
        table, kind = tabular.table_of_any_frame(native)
        return from_tables([table], replace(options, frame_kind=kind))


def read_files(path: Any, options: ReadOptions, sheet: Any, encoding: str | None, engine: Any) -> Responses:
    """Responses from files; with the engine of a cluster, on its workers."""
    files = find_files(path, sheet=sheet, encoding=encoding)
    if files[0].encoding is not None and files[0].family not in ENCODED:
        raise OptionError(f"`encoding=` is for text files, SPSS and Stata; leave it out for {files[0].name}.")
    name = files[0].name if len(files) == 1 else f"{len(files)} files"
    options = replace(options, source=name)
    if files[0].family == "packed":
        return _read_packed(files, options, engine)

    def read(files: list[File], options: ReadOptions = options) -> Responses:
        return from_tables(list(map(open_table, files)), options)

    state_before = list(map(state_of, files))
    responses = None
    try:
        with tabular.polars_errors_named(options.source):
            if files[0].family == "workbook":
                responses = _by_key_sheet(files, options, read)
            if responses is None:
                responses = read_as_written(files, read)
            responses = responses.with_engine(engine)
    finally:
        for file, state in zip(files, state_before, strict=True):
            if state_of(file) != state:
                raise ReadError(f"{file.name} changed while it was being read; read it again when it is complete.")
    if log.isEnabledFor(logging.INFO):  # to count the answers is a pass over them
        sizes = (responses.n_persons, responses.n_items, responses.n_responses)
        log.info("%s: %d people, %d items, %d responses", options.source, *sizes)
    return responses


def _by_key_sheet(files: list[File], options: ReadOptions, read: Callable[..., Responses]) -> Responses | None:
    """The answers in a workbook, scored by the sheet in it that is called key; None where there is none, or another
    scoring was asked for, or the key is not that of these answers."""
    if len(files) > 1 or files[0].sheet is not None or not options.scoring.undecided:
        return None
    from spectral_irt.reading.excel import KEY_SHEETS, sheet_names

    sheets = [name for name in sheet_names(files[0]) if plain(name) in KEY_SHEETS]
    if len(sheets) != 1:
        return None
    try:
        key = read_key(files[0].path, sheets[0], None)
        scoring = replace(options.scoring, key=key, ordered=False, undecided=False)
        responses = read(files, replace(options, scoring=scoring))
    except DifferentKeys:
        raise
    except (ReadError, OptionError, ResponseValueError):
        return None
    note = Finding("key_sheet", "note", f"The answers were scored by the key in the sheet {sheets[0]!r}.")
    return replace(responses, notes=(note, *responses.notes))


def _read_packed(files: list[File], options: ReadOptions, engine: DaskEngine | None) -> Responses:
    """The responses of a packed file; an error if it is one of several, or if an option is about its layout."""
    name = files[0].name
    if len(files) > 1:
        raise ReadError(f"a packed file is read alone, and here are {len(files)}; pack their sources together.")
    asked = options.not_as_by_default("people", "ordered", "undecided", "unused", "groups", "span")
    if asked:
        raise OptionError(
            f"{name} is a packed file, whose answers were read and scored when it was packed; leave out {asked}, or "
            "say it when packing."
        )
    from spectral_irt.data.packed_file import open_responses

    responses = open_responses(files[0].path)
    for column in options.people:
        if responses.people is None or column not in responses.people:
            raise OptionError(
                f"{name} is a packed file without a column {column!r} about people. Name it when packing, `group=`, or "
                "give a table of people, `group_file=`."
            )
    if not (responses.thresholds.binary or options.scoring.ordered):
        raise ResponseValueError(f"{name} holds answers in ordered categories; fit `SpectralPartialCredit`.")
    if engine is None:
        return responses
    return _mapped_by_workers(responses, files[0].path.absolute(), engine)


def _mapped_by_workers(responses: Responses, path: Path, engine: DaskEngine) -> Responses:
    """The same responses, whose blocks the workers map from the file themselves, where all of them see it."""
    from spectral_irt.data.packed_file import mapped_blocks
    from spectral_irt.engine.dask import TASKS_PER_THREAD

    if not responses.n_responses or not engine.sees(path):
        return responses.with_engine(engine)
    n_blocks = len(responses.blocks)
    n_shards = min(n_blocks, TASKS_PER_THREAD * engine.threads)
    cuts = np.linspace(0, n_blocks, n_shards + 1).astype(int).tolist()
    paths = [str(path)] * n_shards
    times = [path.stat().st_mtime_ns] * n_shards
    shards = engine.submit_all(mapped_blocks, paths, times, cuts[:-1], cuts[1:])
    blocks = engine.shards_of(shards, np.diff(cuts).tolist())
    return replace(responses, blocks=blocks, engine=engine)  # type: ignore[arg-type]


def from_tables(tables: Sequence[Table], options: ReadOptions) -> Responses:
    """Responses from tables, long or wide, which may be read as often as needed."""
    check_facet_names(options.facets)
    for table in tables:
        for name in options.people:
            table.position("people", name)
        for name in options.facets:
            table.position("facet", name)
    if options.facets and options.scoring.key is not None:
        raise OptionError("`facets=` is for ratings, and `key=` for answers. Leave out one of them.")
    options = replace(options, ignore=(*options.ignore, *options.people, *options.facets))
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


class LaidTable(NamedTuple):
    """A table, and which of its columns is what."""

    table: Table
    layout: Long | Wide


def _by_layout(tables: Sequence[Table], options: ReadOptions) -> Responses:
    """Responses from tables of people, or of answers: by the layout that their first rows show, or if need be by the
    layout that every row shows."""
    laid = [LaidTable(table, find_layout(table, options)) for table in tables]
    if options.facets:  # ratings are categories, whatever they look like; right and wrong where all are 0 and 1
        ratings = [LaidTable(*with_facets(table, layout, options.facets)) for table, layout in laid]
        return _scored_tables(ratings, options, options.scoring)

    def by_every_row() -> list[LaidTable]:
        return [LaidTable(table, find_layout(table, options, every_row=True)) for table in tables]

    try:
        responses = of_either_kind(partial(_scored_tables, laid, options), options.scoring)
    except ResponseValueError:
        closer = by_every_row()
        if _same_layouts(closer, laid):
            raise
    else:
        if _have_the_same_codes(responses):
            return responses
        closer = by_every_row()
        if _same_layouts(closer, laid):
            return responses
    return of_either_kind(partial(_scored_tables, closer, options), options.scoring)


def _same_layouts(first: Sequence[LaidTable], second: Sequence[LaidTable]) -> bool:
    return [laid.layout for laid in first] == [laid.layout for laid in second]


def _have_the_same_codes(responses: Responses) -> bool:
    """Whether all items have the same categories: then no column can be unlike the others."""
    return responses.codes is None or len({codes.tobytes() for codes in responses.codes}) == 1


def _scored_tables(laid: Sequence[LaidTable], options: ReadOptions, scoring: Scoring) -> Responses:
    """Responses from tables of which it is known what their columns are, and how to score."""
    options = replace(options, scoring=scoring)
    long = [(table, layout) for table, layout in laid if isinstance(layout, Long)]
    wide = [(table, layout) for table, layout in laid if isinstance(layout, Wide)]
    if long and wide:
        what = f"{long[-1][0].name} is long (one row per answer) and {wide[-1][0].name} is wide (one row per person);"
        raise ReadError(f"{what} read them separately, or say `format=` if one of them was mistaken.")
    about = None
    if options.people:
        about = PersonColumns(options.people, options.source)
    if long:
        from spectral_irt.reading.long_builder import LongTables, long_responses

        responses = _with_texts_of_columns(long_responses(LongTables(long, about), options), long)
    else:
        if options.items:
            check_named(options.items, [name for table, _ in laid for name in table.columns], options.source)
        for table, layout in wide:
            refuse_two_occasions(table, layout)
        responses = WideBuilder(wide, options, about).responses()
    people = None
    if about is not None:
        people = about.people(responses.persons)
    notes = (
        *(note for table, _ in laid for note in table.notes),
        *_alike(responses.persons, "person"),
        *_alike(responses.items, "item"),
        *_called_missing(responses),
        *responses.notes,
    )
    return replace(responses, people=people, frame_kind=options.frame_kind, notes=notes)


def _with_texts_of_columns(responses: Responses, tables: Sequence[tuple[Table, Long]]) -> Responses:
    """Of ratings in wide tables: items are columns, and these may have texts."""
    if responses.facets is None:
        return responses
    labels = responses.facets.items.tolist()
    texts: dict[Any, str] = {}
    for table, _ in tables:
        named = {str(table.columns[k]): text for k, text in table.variable_labels.items()}
        place = positions(named, labels).tolist()
        texts |= {labels[k]: text for k, text in zip(place, named.values(), strict=True) if k >= 0}
    return replace(responses, item_texts=texts)


def _alike(labels: Labels, kind: str) -> list[Finding]:
    """A warning where labels of people differ in spaces only, or those of items in spaces and capitals only."""
    texts = pl.Series([label for label in labels.tolist() if isinstance(label, str)], dtype=pl.String)
    spelling = texts.str.strip_chars()
    differ = "spaces"
    if kind == "item":
        spelling = spelling.str.to_lowercase()
        differ = "spaces or capitals"
    repeated = spelling.is_duplicated()
    if not repeated.any():
        return []
    alike = texts.filter(repeated).gather(spelling.filter(repeated).arg_sort()).to_list()
    sentence = f"The labels of {count(len(alike), kind)} differ from each other in {differ} only: {listed(alike)}."
    remedy = "They count as different ones; if they are the same, correct the labels."
    items = tuple(alike) if kind == "item" else ()
    return [Finding(f"alike_{kind}s", "warning", sentence, remedy, items)]


def _called_missing(responses: Responses) -> list[Finding]:
    """A warning where an item is called as R and pandas write a value that is missing."""
    labels = [label for label in responses.items.tolist() if isinstance(label, str) and label.strip() in NOT_ANSWERED]
    if not labels:
        return []
    answered = int(responses.item_counts[np.isin(responses.items, labels)].sum())
    belong = one_or_many(answered, "belongs", "belong")
    sentence = (
        f"{count(answered, 'response')} {belong} to {listed(labels)}, which is what R and pandas write where the name "
        "of an item is missing."
    )
    remedy = "If it is no item, remove these responses; else give it another name."
    return [Finding("item_called_missing", "warning", sentence, remedy, tuple(labels))]
