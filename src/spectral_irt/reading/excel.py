"""A sheet of a workbook (Excel, OpenDocument) as a table of text, like CSV: what a cell shows is what counts. What a
person sees at a glance and a program does not is looked for: titles above the header, columns without a name, codes
that became dates; and, in the XML of the sheet, what would be read as an answer that was not given: cells with an error
(#N/A), formulas that were never computed, the covered part of merged cells."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
from numpy.typing import NDArray
from xlsxwriter.utility import xl_col_to_name

from spectral_irt.errors import Finding, OptionError, ReadError, retold
from spectral_irt.reading.columns import plain
from spectral_irt.reading.formats import COMPOUND, FORMATS, ZIP, File
from spectral_irt.reading.frame import Pieces, Table, check_header, table_of_frame
from spectral_irt.reading.text_pieces import check_unpacked
from spectral_irt.text import did_you_mean, first_of, in_short, listed, one_or_many

DATE = r"^\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)$"  # as the reader writes the date of a cell
ISO_DATE = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?)?$"  # in .ods
# What people call a sheet of right answers; "Answers" is as often what was answered.
KEY_SHEETS = frozenset({"key", "keys", "answerkey", "scoringkey", "correctanswers", "solution", "solutions"})
WIDE_ENOUGH = 3  # columns of a table above which a row with a single filled cell is a title
MOST_CELLS = 200_000_000  # cells between the first and the last; empty ones take room too
MOST_PART = 1 << 26  # bytes of a part that says where the others are
CHUNK = 1 << 22
PASSWORD = "is protected by a password. Save it without one, or save the sheet as CSV."
MANIFEST = "META-INF/manifest.xml"
STRINGS = "xl/sharedStrings.xml"
BOOK = "xl/workbook.xml"
RELATIONS = "xl/_rels/workbook.xml.rels"

# What comes of an archive that is damaged, or made in a way that is not for workbooks.
DAMAGE = (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, OSError, EOFError, ValueError, KeyError, RuntimeError)

# Attributes hold no "<". So each of these looks at a sign once, also where tags are not closed.
_CELL_START = re.compile(rb"<(?:\w+:)?c\s([^<>]*)>")
_CELL_END = re.compile(rb"</(?:\w+:)?c>")
_PLACE = re.compile(rb'\br="([A-Z]+)(\d+)"')
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]+)</|<(?:\w+:)?is>")
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')


@dataclass
class HiddenCells:
    """Places in a sheet that look empty and are not; rows and columns are counted from 0."""

    errors: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # by column, rows and texts
    uncomputed: dict[int, int] = field(default_factory=dict)  # by column, the first row
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)  # first and last row, and column


@dataclass(frozen=True)
class Cells:
    """A sheet as text by position; `columns` are the columns of the sheet that are there, counted from 0."""

    name: str
    frame: pl.DataFrame
    columns: list[int]
    hidden: HiddenCells | None  # None: cannot be seen in this kind of workbook
    date: str


def open_table(file: File) -> Table:
    """The sheet of a workbook that was named, or its only one, as a table of text columns."""
    cells = _load(file)
    header, notes = _header_row(cells)
    cells, on_remarks = _without_remarks(cells, header)
    notes = (*notes, *on_remarks)
    if cells.hidden is None:
        sentence = "in this kind of workbook, cells with an error (#N/A), formulas without value and merged cells are"
        remedy = "Save it as .xlsx to have them found."
        notes = (*notes, Finding("blind_cells", "note", f"{cells.name}: {sentence} empty.", remedy))
    names = cells.frame.row(header)
    body = cells.frame.slice(header + 1)
    holds = body.select(pl.all().is_not_null().any()).row(0) if body.height else [False] * len(names)
    filled = [k for k, name in enumerate(names) if name or holds[k]]
    # Only the first column may be without a name, as row labels are in tables from R.
    if bare := [xl_col_to_name(cells.columns[k]) for k in filled[1:] if not names[k]]:
        raise ReadError(
            f"{cells.name}: the header is row {header + 1:,}, and {one_or_many(len(bare), 'column', 'columns')} "
            f"{first_of(bare)} hold values without a name there. Give every column a name in one row, without merged "
            "cells, and remove what is above it."
        )
    columns = [names[k] or "" for k in filled]
    check_header(cells.name, columns, f"row {header + 1:,}")
    if dates := [name.removesuffix(" 00:00:00") for name in columns if re.search(cells.date, name)]:
        raise ReadError(
            f"{cells.name}: row {header + 1:,} has dates for names of columns ({listed(dates)}); the spreadsheet "
            "program has probably made them out of codes such as 1-2. Format the row as text and enter them again."
        )
    table = table_of_frame(body.select(pl.nth(filled)), list(columns), name=cells.name)

    def pieces(chosen: Sequence[int]) -> Pieces:
        _check_columns(cells, {filled[k]: columns[k] for k in chosen}, header)
        yield from table.pieces(chosen)

    return replace(table, pieces=pieces, untyped=range(len(columns)), rows_above=header + 1, notes=notes)


def _reader_errors_named(file: File) -> AbstractContextManager[None]:
    import fastexcel

    def sentence(error: BaseException) -> str:
        if "assword" in str(error):
            return f"{file.name} {PASSWORD}"
        remedy = "It is probably damaged or cut short; fetch it again, or open it and save it anew."
        return f"{file.name} cannot be read as a workbook: {in_short(error)}. {remedy}"

    return retold((fastexcel.FastExcelError, *DAMAGE), sentence)


def sheet_names(file: File) -> list[str]:
    with _reader_errors_named(file):
        return list(_open_workbook(file)[0].sheet_names)


def _load(file: File) -> Cells:
    with _reader_errors_named(file):
        reader, parts = _open_workbook(file)
        names: list[str] = list(reader.sheet_names)
        opened: dict[str, tuple[Any, HiddenCells | None]] = {}
        wanted = names if file.sheet is None else [_named_sheet(file, names)]
        for sheet in wanted:
            hidden = _hidden_cells(file, parts[sheet], sheet) if sheet in parts else None  # first: it may reach too far
            how = {"header_row": None, "skip_rows": 0, "dtypes": "string", "whitespace_as_null": True}
            opened[sheet] = reader.load_sheet(sheet, **how), hidden
        sheet = next(iter(opened)) if len(opened) == 1 else _only_filled(file, opened)
        loaded, hidden = opened[sheet]
        columns = [info.absolute_index for info in loaded.available_columns()]
        frame = loaded.to_polars()
    name = f"{file.name}, sheet {sheet!r}"
    for k, column in enumerate(columns):
        if hidden and column in hidden.errors:
            places, texts = zip(*hidden.errors[column], strict=True)
            frame = frame.with_columns(frame.to_series(k).scatter(list(places), list(texts)))
    rows = np.flatnonzero(_cells_per_row(frame)) if frame.width else np.arange(0)
    if not len(rows):
        raise ReadError(f"{name} is empty.")
    date = ISO_DATE if file.path.suffix.lower() == ".ods" else DATE
    return Cells(name, frame.head(int(rows[-1]) + 1), columns, hidden, date)


def _only_filled(file: File, opened: dict[str, tuple[Any, HiddenCells | None]]) -> str:
    """The only visible sheet that holds anything; the one called key is for keys, and not for answers."""
    filled = [name for name, (sheet, _) in opened.items() if sheet.visible == "visible" and sheet.total_height]
    if len(filled) > 1:  # a sheet that holds a header alone waits for its rows
        filled = [name for name in filled if opened[name][0].total_height > 1] or filled
    if len(filled) > 1:  # a single column is a remark
        filled = [name for name in filled if opened[name][0].width > 1] or filled
    if len(filled) > 1:
        wanted = file.sheet_option == "key_sheet"
        filled = [name for name in filled if (plain(name) in KEY_SHEETS) == wanted] or filled
    if not filled:
        raise ReadError(f"{file.name}: none of its {len(opened)} sheets that are visible holds anything.")
    if len(filled) > 1:
        say = f"Say which one with `{file.sheet_option}={filled[0]!r}`."
        raise ReadError(f"{file.name}: {len(filled)} sheets may be meant, {listed(filled)}. {say}")
    return filled[0]


def _named_sheet(file: File, names: list[str]) -> str:
    asked = str(file.sheet)
    if asked in names:
        return asked
    if asked.isdecimal() and 1 <= int(asked) <= len(names):
        return names[int(asked) - 1]
    alike = [name for name in names if name.strip().lower() == asked.strip().lower()]
    if len(alike) == 1:
        return alike[0]
    what = f"{file.name} has no sheet {asked!r} for `{file.sheet_option}`;"
    raise OptionError(f"{what} its sheets are {listed(names)}.{did_you_mean(asked, names)}")


def _cells_per_row(frame: pl.DataFrame) -> NDArray[np.int64]:
    """How many cells of each row hold something."""
    return frame.select(pl.sum_horizontal(pl.all().is_not_null().cast(pl.Int64))).to_series().to_numpy()


def _header_row(cells: Cells) -> tuple[int, tuple[Finding, ...]]:
    """The first row that holds something, except for titles above a table; and a note on those."""
    filled = _cells_per_row(cells.frame)
    rows = np.flatnonzero(filled)
    titles = 0
    while titles + 1 < len(rows):
        widest_below = filled[rows[titles + 1 :]].max()
        # A title stands alone, or has little beside it, such as the teacher's name: fewer cells than half of a row.
        is_title = filled[rows[titles]] == 1 or 2 * filled[rows[titles]] < widest_below
        if not is_title or widest_below < WIDE_ENOUGH:
            break
        titles += 1
    header = int(rows[titles])
    if not titles:
        return header, ()
    shown = [next(value for value in cells.frame.row(int(row)) if value) for row in rows[:titles]]
    if any(value in ("0", "1") for value in cells.frame.row(header)):
        raise ReadError(
            f"{cells.name}: row {rows[titles - 1] + 1:,} ({shown[-1]!r}) names too few columns for a header, and the "
            "row below already holds answers. Put a row with the names of the items above the answers."
        )
    above = f"row {rows[0] + 1:,}" if titles == 1 else f"rows {rows[0] + 1:,} to {rows[titles - 1] + 1:,}"
    were_titles = one_or_many(titles, "was treated as a title", "were treated as titles")
    sentence = f"{cells.name}: {above} ({listed(shown)}) {were_titles}; the header is row {header + 1:,}."
    return header, (Finding("title_rows", "note", sentence),)


def _without_remarks(cells: Cells, header: int) -> tuple[Cells, tuple[Finding, ...]]:
    """The cells without what is written below the table: after an empty row, rows with a single cell; and a note."""
    filled = _cells_per_row(cells.frame)[header + 1 :]
    answered = np.flatnonzero(filled > 1)
    if not len(answered) or filled.max() < WIDE_ENOUGH:
        return cells, ()
    below = answered[-1] + 1 + np.flatnonzero(filled[answered[-1] + 1 :])
    if not len(below) or below[0] == answered[-1] + 1:  # in the next row: a person without an answer
        return cells, ()
    rows = header + 1 + below
    shown = [next(value for value in cells.frame.row(int(row)) if value) for row in rows]
    where = f"row {rows[0] + 1:,}" if len(rows) == 1 else f"rows {rows[0] + 1:,} to {rows[-1] + 1:,}"
    was = "was taken for a remark and" if len(rows) == 1 else "were taken for remarks and"
    sentence = f"{cells.name}: {where} ({listed(shown)}), below an empty row, {was} left out."
    table = replace(cells, frame=cells.frame.head(header + 2 + int(answered[-1])))
    return table, (Finding("remark_rows", "note", sentence, "If it is a person, remove the empty row."),)


def _check_columns(cells: Cells, names: dict[int, str], header: int) -> None:
    """Refuse what would pass for an answer, a label or nothing though it is none; attributes may be as they like."""
    hidden = cells.hidden or HiddenCells()
    for k, name in names.items():
        row = hidden.uncomputed.get(cells.columns[k])
        if row is not None and row > header:
            what = f"{cells.name}: column {name!r}, row {row + 1:,} holds a formula without a value."
            raise ReadError(f"{what} Open the workbook in a spreadsheet program and save it.")
    for first, last, left, right in hidden.merged:
        covered = [name for k, name in names.items() if left <= cells.columns[k] <= right]
        if last > header and covered:
            ends = f"{xl_col_to_name(left)}{first + 1}:{xl_col_to_name(right)}{last + 1}"
            what = f"{cells.name}: column {covered[0]!r} has merged cells, {ends},"
            raise ReadError(f"{what} of which only the first holds a value. Split them, and fill in every cell.")
    body = cells.frame.slice(header + 1).select(pl.nth(list(names)))
    dates = body.select(pl.all().str.contains(cells.date).any()).row(0) if body.height else ()
    for name, values, holds_date in zip(names.values(), body.iter_columns(), dates, strict=False):
        if holds_date:
            at = int(values.str.contains(cells.date).fill_null(False).arg_max() or 0)
            date = str(values[at]).removesuffix(" 00:00:00")
            what = f"{cells.name}: column {name!r}, row {header + 2 + at:,} holds the date {date};"
            remedy = f"Format the column as text and enter it again, or leave it out with `ignore={name!r}`."
            raise ReadError(f"{what} the spreadsheet program has probably made it out of a code such as 1-2. {remedy}")


def _open_workbook(file: File) -> tuple[Any, dict[str, str]]:
    """The reader of a workbook, and the part of an .xlsx archive that holds each sheet; an error when it is none, has a
    password, or would unpack to more than any workbook."""
    import fastexcel

    with open(file.path, "rb") as opened:
        start = opened.read(64)
    parts: dict[str, str] = {}
    if start[:4] == COMPOUND:
        if "EncryptedPackage".encode("utf-16-le") in file.path.read_bytes():
            raise ReadError(f"{file.name} {PASSWORD}")
    elif start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
        raise ReadError(f"{file.name} is a web page or XML, not a workbook. Open it and save it as .xlsx.")
    elif start[:4] != ZIP:
        raise ReadError(f"{file.name} is not a workbook. If it is text, rename it to .csv; otherwise fetch it again.")
    else:
        with zipfile.ZipFile(file.path) as archive:
            check_unpacked(sum(part.file_size for part in archive.infolist()), file.name)
            if MANIFEST in archive.namelist() and b"encryption-data" in _part(archive, MANIFEST):
                raise ReadError(f"{file.name} {PASSWORD}")
            parts = _sheet_parts(archive)
    suffix = file.path.suffix.lower()
    # A file under a wrong name is told by what is in it, for which the reader wants its bytes.
    renamed = suffix not in FORMATS["workbook"].endings or bool(parts) != (suffix in (".xlsx", ".xlsm"))
    source = file.path.read_bytes() if renamed else file.path
    return fastexcel.read_excel(source), parts


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MOST_PART:
        raise zipfile.BadZipFile(f"{name} is too large")
    return archive.read(name)


def _sheet_parts(archive: zipfile.ZipFile) -> dict[str, str]:
    """The part of an .xlsx archive that holds each sheet, by the sheet's name; nothing for other workbooks."""
    names_of_parts = set(archive.namelist())
    if not {BOOK, RELATIONS} <= names_of_parts:
        return {}
    relations = ElementTree.fromstring(_part(archive, RELATIONS))
    target = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    parts = {}
    for element in ElementTree.fromstring(_part(archive, BOOK)).iter():
        if element.tag.endswith("}sheet"):
            relation_id = next((value for name, value in element.attrib.items() if name.endswith("}id")), None)
            part = posixpath.normpath(posixpath.join("/xl", target.get(relation_id, ""))).lstrip("/")
            if part in names_of_parts:
                parts[element.get("name", "")] = part
    return parts


def _hidden_cells(file: File, part: str, sheet: str) -> HiddenCells:
    """What looks empty in this sheet and is not; an error when the sheet is cut short, which readers pass over, or has
    a stray cell too far away, with empty ones before it that would not fit (its stated extent need not be true)."""
    hidden = HiddenCells()
    columns = {b"A"}
    last_row = 1
    with zipfile.ZipFile(file.path) as archive:
        for data in _pieces(archive, part, b"row>", b"worksheet>"):
            places = _PLACE.findall(data)
            columns.update(column for column, _ in places)
            last_row = max(last_row, max((int(row) for _, row in places), default=1))
            if b't="e"' in data or b"<f" in data or b":f" in data:  # in the usual sheet: nothing but values
                _look(data, hidden)
        for left, first, right, last in _MERGED.findall(data):  # after the rows
            hidden.merged.append((int(first) - 1, int(last) - 1, _column(left), _column(right)))
        if STRINGS in archive.namelist():
            for _ in _pieces(archive, STRINGS, b"si>", b"sst>", b"/>"):  # to its end, by which its checksum is compared
                pass
    last_column = max(columns, key=_column)
    if (_column(last_column) + 1) * last_row > MOST_CELLS:
        raise ReadError(
            f"{file.name}, sheet {sheet!r} reaches to column {last_column.decode()[:9]} and to row {last_row:,}, more "
            "cells than can be read. Delete the stray cells far from the data, or save the sheet as CSV."
        )
    return hidden


def _pieces(archive: zipfile.ZipFile, part: str, tag: bytes, *last: bytes) -> Iterator[bytes]:
    """A part of the archive in pieces that end with a tag; the last is what comes after, and ends like `last`."""
    with archive.open(part) as opened:
        buffer = b""
        wanted = CHUNK
        while data := opened.read(wanted):
            buffer += data
            if tag in buffer:
                end = buffer.rfind(tag) + len(tag)
                yield buffer[:end]
                buffer = buffer[end:]
            wanted = max(CHUNK, len(buffer))  # what is without end is put together in steps that grow
    if not buffer.rstrip().endswith(last):
        raise zipfile.BadZipFile(f"{part} is not complete")
    yield buffer


def _look(data: bytes, hidden: HiddenCells) -> None:
    """Note the cells with an error, and those with a formula and no value."""
    for attributes, inner in _cells_in(data):
        is_error = b't="e"' in attributes
        place = _PLACE.search(attributes)
        if place is None or not (is_error or b"<f" in inner or b":f" in inner):
            continue
        column = _column(place[1])
        row = int(place[2]) - 1
        value = _VALUE.search(inner)
        if is_error and value is not None and value[1]:
            hidden.errors.setdefault(column, []).append((row, value[1].decode("utf-8", "replace")))
        elif value is None and b't="str"' not in attributes:  # of which a text may be empty
            hidden.uncomputed.setdefault(column, row)


def _cells_in(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The attributes of every cell, and what is in it."""
    starts = list(_CELL_START.finditer(data))
    ends = [start.start() for start in starts[1:]] + [len(data)]
    for start, end in zip(starts, ends, strict=True):
        if start[1].endswith(b"/"):
            yield start[1], b""
        elif closed := _CELL_END.search(data, start.end(), end):
            yield start[1], data[start.end() : closed.start()]


def _column(letters: bytes) -> int:
    """The column from 0: A is 0, AA is 26. Nine letters are beyond any sheet already, however many follow."""
    return reduce(lambda number, letter: 26 * number + letter - 64, letters[:9], 0) - 1
