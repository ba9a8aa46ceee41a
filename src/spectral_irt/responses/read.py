"""Files and dataframes -> Responses."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from spectral_irt.errors import OptionError, ReadError, SpectralIrtError, check_option, option
from spectral_irt.responses.pack import DUPLICATES, Duplicates
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import Blank, Polarity, Scoring, scoring

if TYPE_CHECKING:
    from spectral_irt.engines.dask import DaskEngine
    from spectral_irt.responses.reading.files import File
    from spectral_irt.responses.reading.request import Asked, Request
    from spectral_irt.responses.reading.tabular import Table

Format = Literal["auto", "wide", "long"]
Orient = Literal["users", "items"]
Progress = Callable[[float, str], None]
Path = str | os.PathLike[str]
Key = Path | Mapping[Any, Any]

log = logging.getLogger("spectral_irt")

__all__ = ["read_responses", "responses_from_frame"]


def read_responses(
    path: Path | Iterable[Path] | None = None,
    *,
    sql: str | None = None,
    database: str | None = None,
    format: Format = "auto",
    person: Any = None,
    item: Any = None,
    response: Any = None,
    missing: Any = (),
    key: Key | None = None,
    correct: Any = None,
    threshold: float | None = None,
    above_mean: Polarity | None = None,
    omitted: Blank = "missing",
    not_reached: Blank = "missing",
    not_presented: Any = (),
    duplicates: Duplicates = "error",
    order_by: Any = None,
    orient: Orient = "users",
    ignore: Any = (),
    items: Any = (),
    sheet: str | int | None = None,
    key_sheet: str | int | None = None,
    encoding: str | None = None,
    progress: Progress | None = None,
    client: Any = None,
    user: Any = None,
) -> Responses:
    """Responses from a file of answers: CSV, an Excel or OpenDocument workbook, SPSS, Stata, Parquet, JSON lines.

    Files are read in pieces; a long table of any size needs the packed responses (four bytes each), the labels, and
    one piece.

    Parameters
    ----------
    path : path, glob, folder, address, "-", or several of them
        Several files are one table: long ones are put one after the other, wide ones stacked, columns matched by name.
        Folders such as `year=2024` above a file are columns of it. Parquet is also read from s3://, gs:// and other
        stores that polars reads, any kind of file from https://; "-" is standard input.
    sql, database : str, optional
        Instead of a path: a query, and the database to ask: "sqlite:FILE", "duckdb:FILE" or
        "postgresql://USER@HOST/DATABASE". Rows come in batches. Needs `spectral-irt[database]`.
    format : "auto", "wide" or "long"
        Wide: one row per person, one column per item. Long: one row per answer. By default told by the column names.
    person, item, response : str, optional
        Columns. In a long table all three; by default found by their usual names (user_id, student, model, ...;
        item, question, movie, ...; response, correct, rating, ...). In a wide table `person` is the column of labels:
        by default the first one when its name or values are labels, else people are numbered from 1.
    missing : value or values
        What else means "not answered". The empty cell, null, NaN, "NA", "NaN", "nan" and "null" always do.
    key : path or mapping, optional
        The right answer of every item, for multiple choice: a file with columns item and key, a file with one row of
        right answers under the items' names, or a mapping.
    correct : value or values, optional
        The right answers, whatever the item.
    threshold : float, optional
        Values above it are right, the others wrong.
    above_mean : "right" or "wrong", optional
        For ratings: what counts is whether a rating is strictly above the mean of all the ratings of its person;
        this says what an above-average rating is coded as. "wrong" is the paper's polarity: liked = 0, so that a larger
        difficulty means better liked.
    omitted, not_reached : "missing" or "wrong"
        What a blank cell of a wide table is: before a later answer of the same person it was omitted, after the last
        one not reached. Missing by default: whether a blank is a failure depends on the test.
    not_presented : value or values
        What means that the item was not on this person's form, which is neither; "" is the empty cell.
    duplicates : "error", "first" or "last"
        When a person answered an item twice: complain, or keep the first or last answer.
    order_by : str, optional
        The column of a long table, times or numbers, that says which answer is first and which last; by default, and
        where it is the same, the rows do, as they come.
    orient : "users" or "items"
        What a row of a wide table is.
    ignore : str or several
        Columns of a wide table that are not items, for instance what else is known about the persons; "a,b" are two.
    items : str or several
        Columns of a wide table that are items, by name or pattern: "q*" or "q1,q2"; the others are left out. By default
        the items are those of the key, or else every column but the labels and attributes such as sex, group, school
        and total score; `findings()` tells what was taken for an item and what was left out.
    sheet : str or int, optional
        The sheet of a workbook (.xlsx, .xls, .ods), by its name or its number from 1; not needed where only one holds
        anything.
    key_sheet : str or int, optional
        The same for a key in a workbook; by default its only sheet, or the one that is called "key" or the like.
    encoding : str, optional
        How text files (CSV, JSON lines, SPSS, Stata) are written, such as "cp1252". By default UTF-8, or UTF-16 where
        the first bytes tell; a text file that is neither is read as Windows-1252, and a finding says so.
    progress : callable(fraction, text), optional
        Told after every piece how far reading has come.
    client : distributed.Client, or str, optional
        A Dask cluster: its client, the address of its scheduler, or "local:4" for processes on this machine. Its
        workers read Parquet files with a row for each answer, and keep the answers; others are read here and sent
        there. Every sum over people is then done by the workers. See the page on clusters.
    user : str, optional
        The older name of `person`.

    Returns
    -------
    Responses
        Labels are as in the file: text, or integers where all labels of a kind are whole numbers ("007" stays text).
        People and items of a long table are sorted; those of a wide table keep their order.

    Raises
    ------
    ReadError, ResponseValueError, DuplicateResponseError, OptionError
        In one sentence: what is wrong, where, and what to do.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "answers.csv")
    >>> _ = file.write_text("student,q1,q2\\nann,1,0\\nbob,1,\\n")
    >>> read_responses(file)
    Responses(2 persons x 2 items, 3 responses, 66.7% right)
    """
    check_option("duplicates", duplicates, DUPLICATES)
    scored = {"missing": missing, "correct": correct, "threshold": threshold, "above_mean": above_mean}
    scored |= {"omitted": omitted, "not_reached": not_reached, "not_presented": not_presented}
    how = scoring_of(key=key, key_sheet=key_sheet, encoding=encoding, **scored)
    asked = asked_for(format, user if person is None else person, item, response, orient, ignore, items, order_by)
    check_order_by(order_by, duplicates)
    if sql is not None or database is not None:
        check_query(path, sql, database, sheet, encoding)
        found = read_query(str(sql), str(database), how, asked, duplicates, progress)
        return found if client is None else found.using(_cluster(client))
    if path is None:
        raise ReadError("there is nothing to read: name a file, or a query with ", option("sql", ...), ".")
    return read_files(path, how, asked, duplicates, progress, sheet=sheet, encoding=encoding, client=client)


def check_order_by(order_by: Any, duplicates: str) -> None:
    if order_by is not None and duplicates == "error":
        raise OptionError(
            option("order_by", ...),
            " says which of several answers is first or last; say ",
            option("duplicates", "first", "last"),
            " too.",
        )


def check_query(path: Any, sql: str | None, database: str | None, *others: Any) -> None:
    """Refuse half of a query, or more than one source."""
    if sql is None or database is None:
        said, absent = ("sql", "database") if database is None else ("database", "sql")
        raise OptionError(option(said, ...), " needs ", option(absent, ...), " beside it.")
    if path is not None and path != [] and path != ():
        raise OptionError(
            option("sql", ...), " is read instead of a file; leave out one of them, or read them separately."
        )
    if any(other is not None for other in others):
        raise OptionError(option("sheet"), " and ", option("encoding"), " are for files; leave them out.")


def read_query(
    sql: str, database: str, how: Scoring, asked: Asked, duplicates: Duplicates, progress: Progress | None
) -> Responses:
    """Responses from the result of a query."""
    from spectral_irt.responses.reading.queries import NAME, open_query
    from spectral_irt.responses.reading.request import Request
    from spectral_irt.responses.reading.tabular import polars_errors_named

    with polars_errors_named(NAME):
        return from_tables([open_query(sql, database)], Request(how, asked, duplicates, NAME, None, progress))


def read_files(
    path: Any,
    how: Scoring,
    asked: Asked,
    duplicates: Duplicates,
    progress: Progress | None,
    *,
    sheet: str | int | None = None,
    encoding: str | None = None,
    client: Any = None,
    part: bool = False,
) -> Responses:
    """Responses from files, whose answers are scored in this way; `part` of the data may be odd where all are not."""
    from spectral_irt.responses.reading.files import check_encoded, find_files, open_table, source_name, unchanged
    from spectral_irt.responses.reading.request import Request
    from spectral_irt.responses.reading.tabular import polars_errors_named
    from spectral_irt.responses.reading.text_encodings import read_as_written

    files = find_files(path, sheet=sheet, encoding=encoding)
    check_encoded(files)
    source = source_name(files)
    engine = None if client is None else _cluster(client)
    if files[0].family == "packed":
        from spectral_irt.responses.reading.packed_files import responses_of_packed

        return responses_of_packed(files, how, asked, duplicates).using(engine)

    def read(files: list[File]) -> Responses:
        tables = [open_table(file) for file in files]
        return from_tables(tables, Request(how, asked, duplicates, source, None, progress, part))

    with unchanged(files), polars_errors_named(source):
        found = _read_far(files, how, asked, duplicates, progress, engine) if engine else None
        found = read_as_written(files, read).using(engine) if found is None else found
    log.info("%s: %d people, %d items, %d responses", source, found.n_users, found.n_items, found.n_responses)
    return found


def _cluster(client: Any) -> DaskEngine:
    from spectral_irt.engines.dask import connect

    return connect(client)


def _read_far(files: list[File], how: Scoring, asked: Asked, *rest: Any) -> Responses | None:
    """Responses that the workers of a cluster read; None where that is left to this process."""
    from spectral_irt.responses.reading.on_workers import read_by_workers, readable_by_workers

    return read_by_workers(files, how, asked, *rest) if readable_by_workers(files, how, asked) else None


def responses_from_frame(
    frame: Any,
    *,
    format: Format = "auto",
    person: Any = None,
    item: Any = None,
    response: Any = None,
    missing: Any = (),
    key: Key | None = None,
    correct: Any = None,
    threshold: float | None = None,
    above_mean: Polarity | None = None,
    omitted: Blank = "missing",
    not_reached: Blank = "missing",
    not_presented: Any = (),
    duplicates: Duplicates = "error",
    order_by: Any = None,
    orient: Orient = "users",
    ignore: Any = (),
    items: Any = (),
    progress: Progress | None = None,
    user: Any = None,
) -> Responses:
    """Responses from a dataframe of any library, long or wide, with the options of `read_responses`.

    The frame is not changed. Tables made from the responses come in the same library. Rows of a wide frame without a
    column of person labels take those of its index, if it has one, else are numbered from 0.

    Examples
    --------
    >>> import polars as pl
    >>> ratings = pl.DataFrame({"user": ["ann", "ann", "bob"], "movie": [7, 9, 7], "rating": [5, 3, 2]})
    >>> responses_from_frame(ratings, threshold=3)
    Responses(2 persons x 2 items, 3 responses, 33.3% right)
    """
    from spectral_irt.responses.reading.frames import table_of_any_frame
    from spectral_irt.responses.reading.request import Request
    from spectral_irt.responses.reading.tabular import polars_errors_named

    check_option("duplicates", duplicates, DUPLICATES)
    how = scoring_of(
        missing=missing,
        key=key,
        correct=correct,
        threshold=threshold,
        above_mean=above_mean,
        omitted=omitted,
        not_reached=not_reached,
        not_presented=not_presented,
    )
    asked = asked_for(format, user if person is None else person, item, response, orient, ignore, items, order_by)
    check_order_by(order_by, duplicates)
    with polars_errors_named("the dataframe"):
        table, kind = table_of_any_frame(frame)
        return from_tables([table], Request(how, asked, duplicates, "the data", kind, progress))


def responses_from_wide_frame(
    frame: Any, how: Scoring, *, user: Any, items: Sequence[Any] | None, orient: str
) -> Responses:
    """Responses from a wide dataframe in which every column is an item, but for that of the people's labels."""
    from spectral_irt.responses.reading.frames import table_of_any_frame
    from spectral_irt.responses.reading.layout import all_columns
    from spectral_irt.responses.reading.request import Asked, Request
    from spectral_irt.responses.reading.sheets import responses_of_rows
    from spectral_irt.responses.reading.tabular import polars_errors_named
    from spectral_irt.responses.reading.wide_tables import WideRows

    with polars_errors_named("the dataframe"):
        table, kind = table_of_any_frame(frame)
        rows = WideRows(table, all_columns(table, user, items), orient=orient)
        with options_going_to("spectral_irt.responses_from_frame"):
            return responses_of_rows([rows], Request(how, Asked(orient=orient), frame_kind=kind))


def asked_for(
    format: str, user: Any, item: Any, response: Any, orient: str, ignore: Any, items: Any, order_by: Any = None
) -> Asked:
    from spectral_irt.responses.reading.request import Asked

    check_option("format", format, ("auto", "wide", "long"))
    check_option("orient", orient, ("users", "items"))
    if _several(items) and orient == "items":
        raise OptionError(
            option("items", ...),
            " names columns, and with ",
            option("orient", "items"),
            " a column is a person; leave out one of them.",
        )
    return Asked(format, user, item, response, orient, _several(ignore), _several(items), order_by)


def _several(given: Any) -> tuple[Any, ...]:
    one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return (given,) if one else tuple(given)


def scoring_of(
    *, key: Key | None = None, key_sheet: str | int | None = None, encoding: str | None = None, **options: Any
) -> Scoring:
    """How to score, every option checked; the key may be a file."""
    if key is not None and not isinstance(key, Mapping):
        # Options that exclude each other are an error whether or not the key file can be read.
        scoring(key={}, **options)
        key = _read_key(key, key_sheet, encoding)
    elif key_sheet is not None:
        raise OptionError(option("key_sheet"), " is a sheet of the workbook that ", option("key", ...), " names.")
    return scoring(key=key, **options)


def _read_key(path: Path, sheet: str | int | None, encoding: str | None) -> dict[str, str]:
    from spectral_irt.responses.reading.files import find_files, open_table
    from spectral_irt.responses.reading.key import key_of_table
    from spectral_irt.responses.reading.tabular import polars_errors_named
    from spectral_irt.responses.reading.text_encodings import read_as_written, warn_of

    file, *others = find_files(path, sheet=sheet, sheet_option="key_sheet", encoding=encoding)
    if others:
        raise ReadError(f"key names {1 + len(others)} files; an answer key is one file.")

    def read(files: list[File]) -> dict[str, str]:
        table = open_table(files[0])
        found = key_of_table(table)
        warn_of(table.notes)
        return found

    with polars_errors_named(file.name):
        return read_as_written([file], read)


@contextmanager
def options_going_to(where: str) -> Iterator[None]:
    """Say where the options that an error names are given, when it is not where the error arose."""
    try:
        yield
    except SpectralIrtError as error:
        if error.for_shell() == str(error):  # it names no option
            raise
        raise type(error)(f"{error} Such options go to {where}.") from None


def from_tables(tables: Sequence[Table], request: Request) -> Responses:
    responses = _read_tables(tables, request)
    notes = [note for table in tables for note in table.notes]
    return replace(responses, notes=(*notes, *responses.notes)) if notes else responses


def _read_tables(tables: Sequence[Table], request: Request) -> Responses:
    from spectral_irt.responses.reading.columns import check_named
    from spectral_irt.responses.reading.layout import Long, Wide, find_layout, words_of
    from spectral_irt.responses.reading.long_pieces import LongTables
    from spectral_irt.responses.reading.long_tables import long_responses
    from spectral_irt.responses.reading.sheets import responses_of_rows
    from spectral_irt.responses.reading.wide_tables import WideRows

    asked, key = request.asked, request.scoring.key or ()
    people = [table.people(asked, key) if table.people else None for table in tables]
    layouts = [found or find_layout(table, asked, key) for table, found in zip(tables, people, strict=True)]
    long = [layout for layout in layouts if isinstance(layout, Long)]
    wide = [
        WideRows(table, layout, orient=asked.orient) if isinstance(layout, Wide) else layout
        for table, layout in zip(tables, layouts, strict=True)
        if not isinstance(layout, Long)
    ]
    kinds = {isinstance(layout, Long): table.name for table, layout in zip(tables, layouts, strict=True)}
    if long and wide:
        raise ReadError(
            f"{kinds[True]} is long (one row per answer) and {kinds[False]} is wide (one row per person); read them "
            "separately, or say ",
            option("format", ...),
            " if one of them was mistaken.",
        )
    if long:
        first = tables[0].columns
        words = words_of(first[long[0].user], first[long[0].item])
        return replace(long_responses(LongTables(tables, long), request), words=words)
    names = [name for table in tables for name in table.columns]
    if not any(table.people for table in tables):
        check_named(asked.items, names, request.source)
    responses = responses_of_rows(wide, request)
    if not responses.n_items:  # of people with items of their own, all are known only now
        check_named(asked.items, names, request.source)
    return responses
