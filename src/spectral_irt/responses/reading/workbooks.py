"""A sheet of a workbook (Excel, OpenDocument) as a table of text, like CSV: what a cell shows is what counts.

Spreadsheet programs do not know text from numbers as a table does, so every cell becomes text, a whole number without
decimals. What a person sees at a glance and a program does not is looked for: titles above the header, columns without
a name, codes that became dates, errors, formulas without a value, merged cells.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, ReadError, SpectralIrtError, listed, option
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.reading.files import FORMATS, File
from spectral_irt.responses.reading.layout import plain
from spectral_irt.responses.reading.tabular import Pieces, Table, check_names_differ, table_of_frame
from spectral_irt.responses.reading.workbook_parts import (
    DAMAGE,
    Blind,
    blind_spots,
    check_extent,
    check_workbook,
    column_letters,
    damaged,
    has_password,
    sheet_parts,
)

DATE = r"^\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)$"  # as the reader writes the date of a cell
ISO_DATE = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?)?$"  # in .ods
# What people call a sheet of right answers; "Answers" is as often what was answered.
KEY_SHEETS = frozenset({"key", "keys", "answerkey", "scoringkey", "correctanswers", "solution", "solutions"})
_BLIND = "in this kind of workbook, cells with an error (#N/A), formulas without value and merged cells are empty."
WIDE_ENOUGH = 3  # columns of a table above which a row with a single filled cell is a title


@dataclass(frozen=True)
class Cells:
    """A sheet as text by position; `columns` are the columns of the sheet that are there, counted from 0."""

    name: str
    frame: pl.DataFrame
    columns: list[int]
    blind: Blind | None  # None: such things cannot be told in this kind of workbook
    date: str


def open_table(file: File) -> Table:
    """The sheet of a workbook that was said, or its only one, as a table of text columns."""
    cells = _load(file)
    filled = _filled(cells.frame)
    header, notes = _header_row(cells, filled)
    if cells.blind is None:
        notes = (
            *notes,
            Finding("blind_cells", "note", f"{cells.name}: {_BLIND}", "Save it as .xlsx to have them found."),
        )
    names = [_stripped(value) for value in cells.frame.row(header)]
    body = cells.frame.slice(header + 1)
    holds = body.select(pl.all().is_not_null().any()).row(0) if body.height else [False] * len(names)
    kept = [k for k, name in enumerate(names) if name or holds[k]]
    _check_named(cells, header, names, kept)
    columns = [names[k] or "" for k in kept]
    if any(columns) and all(name in ("0", "1", "NA", "") for name in columns):
        raise ReadError(
            f"{cells.name} has no header: row {header + 1:,} already holds answers. Put a row with the names of the "
            "items above it."
        )
    check_names_differ(cells.name, columns)
    _check_no_dates_in_header(cells, header, columns)
    table = table_of_frame(body.select(pl.nth(kept)), list(columns))

    def pieces(chosen: Sequence[int]) -> Pieces:
        _check_columns(cells, {kept[k]: columns[k] for k in chosen}, header)
        yield from table.pieces(chosen)

    return replace(
        table,
        name=cells.name,
        loose=[True] * len(columns),
        loose_header=True,
        pieces=pieces,
        rows_above=header + 1,
        notes=notes,
    )


# ------------------------------------------------------------------------------------------- which sheet


@contextmanager
def _reader_errors_named(file: File) -> Iterator[None]:
    """No exception of the reader reaches the user, nor does a panic, which is no Exception."""
    import fastexcel

    try:
        yield
    except SpectralIrtError:
        raise
    except BaseException as error:
        of_file = isinstance(error, (fastexcel.FastExcelError, *DAMAGE)) or type(error).__name__ == "PanicException"
        if not of_file or isinstance(error, MemoryError):
            raise
        if "assword" in str(error):
            raise has_password(file) from None
        raise damaged(file, error) from None


def sheet_names(file: File) -> list[str]:
    """The names of all sheets."""
    check_workbook(file)
    with _reader_errors_named(file):
        return list(_reader(file, sheet_parts(file)).sheet_names)


def _reader(file: File, parts: dict[str, str]) -> Any:
    import fastexcel

    suffix = file.path.suffix.lower()
    # A file under a wrong name is told by what is in it, for which the reader wants its bytes.
    renamed = suffix not in FORMATS["workbook"].endings or bool(parts) != (suffix in (".xlsx", ".xlsm"))
    return fastexcel.read_excel(file.path.read_bytes() if renamed else file.path)


def _load(file: File) -> Cells:
    check_workbook(file)
    with _reader_errors_named(file):
        parts = sheet_parts(file)
        reader = _reader(file, parts)
        sheet, opened = _chosen_sheet(file, reader, parts)
        name = f"{file.name}, sheet {sheet!r}"
        columns = [info.absolute_index for info in opened.available_columns()]
        frame = opened.to_polars()
        blind = blind_spots(file.path, parts[sheet]) if sheet in parts else None
    if not frame.height or not frame.width:
        raise ReadError(f"{name} is empty.")
    frame = _texts(frame, [blind.errors.get(column, []) if blind else [] for column in columns])
    filled = _filled(frame)
    if not filled.any():
        raise ReadError(f"{name} is empty.")
    date = ISO_DATE if file.path.suffix.lower() == ".ods" else DATE
    return Cells(name, frame.head(int(np.flatnonzero(filled)[-1]) + 1), columns, blind, date)


def _texts(frame: pl.DataFrame, errors: Sequence[Sequence[tuple[int, str]]]) -> pl.DataFrame:
    """The cells with the texts of errors, by column; blanks are nothing."""
    said = [
        frame.to_series(k).scatter([row for row, _ in found], [text for _, text in found])
        for k, found in enumerate(errors)
        if found
    ]
    cell = pl.all()  # one expression for all columns: there may be 16,384, and each step has a price
    return frame.with_columns(said).select(pl.when(cell.str.strip_chars() != "").then(cell).name.keep())


def _open(file: File, reader: Any, parts: dict[str, str], sheet: str) -> Any:
    if sheet in parts:
        check_extent(file, parts[sheet], sheet)
    return reader.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string")


def _chosen_sheet(file: File, reader: Any, parts: dict[str, str]) -> tuple[str, Any]:
    """The name of the sheet, and the sheet."""
    names: list[str] = list(reader.sheet_names)
    if file.sheet is not None:
        sheet = _said_sheet(file, names)
        return sheet, _open(file, reader, parts, sheet)
    if len(names) == 1:
        return names[0], _open(file, reader, parts, names[0])
    opened = {name: _open(file, reader, parts, name) for name in names}
    filled = [name for name, sheet in opened.items() if sheet.visible == "visible" and sheet.total_height]
    if file.sheet_option == "key_sheet" and len(filled) > 1:
        filled = [name for name in filled if plain(name) in KEY_SHEETS] or filled
    if not filled:
        raise ReadError(f"{file.name}: none of its {len(names)} sheets that are visible holds anything.")
    if len(filled) > 1:
        raise ReadError(
            f"{file.name} has {len(filled)} sheets: {listed(filled)}. Say which one with ",
            option(file.sheet_option, filled[0]),
            ".",
        )
    return filled[0], opened[filled[0]]


def _said_sheet(file: File, names: list[str]) -> str:
    said = str(file.sheet)
    if said in names:
        return said
    if said.isdecimal() and 1 <= int(said) <= len(names):
        return names[int(said) - 1]
    alike = [name for name in names if name.strip().lower() == said.strip().lower()]
    if len(alike) == 1:
        return alike[0]
    close = difflib.get_close_matches(said, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise OptionError(
        f"{file.name} has no sheet {said!r} for ", option(file.sheet_option), f"; its sheets are {listed(names)}.{hint}"
    )


# -------------------------------------------------------------------------------------------- the header


def _filled(frame: pl.DataFrame) -> NDArray[np.int64]:
    """How many cells of each row hold something."""
    return frame.select(pl.sum_horizontal(pl.all().is_not_null().cast(pl.Int64))).to_series().to_numpy()


def _stripped(value: str | None) -> str | None:
    return None if value is None or not value.strip() else value


def _header_row(cells: Cells, filled: NDArray[np.int64]) -> tuple[int, tuple[Finding, ...]]:
    """The first row that holds something, but for titles, single cells above a table; and what to say of those."""
    rows = np.flatnonzero(filled)
    titles = 0
    while titles + 1 < len(rows) and filled[rows[titles]] == 1 and filled[rows[titles + 1 :]].max() >= WIDE_ENOUGH:
        titles += 1
    header = int(rows[titles])
    if not titles:
        return header, ()
    shown = [next(value for value in cells.frame.row(int(row)) if value) for row in rows[:titles]]
    if any(value in ("0", "1") for value in cells.frame.row(header)):
        raise ReadError(
            f"{cells.name}: row {rows[titles - 1] + 1:,} has the one cell {shown[-1]!r}, and the row below already "
            "holds answers, so the columns have no names. Put a row with the names of the items above the answers."
        )
    above = f"row {rows[0] + 1:,}" if titles == 1 else f"rows {rows[0] + 1:,} to {rows[titles - 1] + 1:,}"
    sentence = f"{cells.name}: {above} ({listed(shown)}) was taken for a title; the header is row {header + 1:,}."
    return header, (Finding("title_rows", "note", sentence),)


def _check_named(cells: Cells, header: int, names: Sequence[str | None], kept: Sequence[int]) -> None:
    """Refuse columns with values and no name; only the first may be without, as row labels are in tables from R."""
    bare = [column_letters(cells.columns[k]) for k in kept[1:] if not names[k]]
    if bare:
        raise ReadError(
            f"{cells.name}: the header is row {header + 1:,}, and {'column' if len(bare) == 1 else 'columns'} "
            f"{', '.join(bare[:5])}{f' and {len(bare) - 5:,} more' if len(bare) > 5 else ''} hold values without a "
            "name there. Give every column a name in one row, without merged cells, and remove what is above it."
        )


def _check_no_dates_in_header(cells: Cells, header: int, columns: Sequence[str]) -> None:
    dates = pl.Series(columns, dtype=pl.String).str.contains(cells.date)
    if dates.any():
        which = [name.removesuffix(" 00:00:00") for name, is_date in zip(columns, dates, strict=True) if is_date]
        raise ReadError(
            f"{cells.name}: row {header + 1:,} has dates for names of columns ({listed(which)}); the spreadsheet "
            "program has probably made them out of codes such as 1-2. Format the row as text and enter them again."
        )


# ------------------------------------------------------------------------------- columns that are used


def _check_columns(cells: Cells, names: dict[int, str], header: int) -> None:
    """Refuse what would pass for an answer, a label or nothing though it is none; attributes may be as they like."""
    blind = cells.blind or Blind()
    for k, name in names.items():
        row = blind.uncomputed.get(cells.columns[k])
        if row is not None and row > header:
            raise ReadError(
                f"{cells.name}: column {name!r}, row {row + 1:,} holds a formula without a value; the program that "
                "wrote the workbook does not compute. Open it in a spreadsheet program and save it."
            )
    for first, last, left, right in blind.merged:
        covered = [name for k, name in names.items() if left <= cells.columns[k] <= right]
        if last > header and covered:
            ends = f"{column_letters(left)}{first + 1}:{column_letters(right)}{last + 1}"
            raise ReadError(
                f"{cells.name}: column {covered[0]!r} has merged cells, {ends}, of which only the first holds a value. "
                "Split them, and fill in every cell."
            )
    body = cells.frame.slice(header + 1).select(pl.nth(list(names)))
    dates = body.select(pl.all().str.contains(cells.date).any()).row(0) if body.height else ()
    for name, values, found in zip(names.values(), body.iter_columns(), dates, strict=False):
        if found:
            raise _is_date(cells, name, values, header)


def _is_date(cells: Cells, name: str, values: pl.Series, header: int) -> ReadError:
    at = int(values.str.contains(cells.date).fill_null(False).arg_max() or 0)
    return ReadError(
        f"{cells.name}: column {name!r}, row {header + 2 + at:,} holds the date "
        f"{str(values[at]).removesuffix(' 00:00:00')}; the spreadsheet program has probably made it out of a code such "
        "as 1-2. Format the column as text and enter it again, or leave it out with ",
        option("ignore", name),
        ".",
    )
