"""Tables as an Excel workbook: a sheet each, with the header in sight, and text that stays text.

The numbers are those of the CSV files, to the sixteen digits that the format holds. A label is written as a string, so
that nothing in it is computed; there is no need for the apostrophe of `guard_cell`."""

from __future__ import annotations

import math
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OutputError
from spectral_irt.tables import AnyColumns, frame_of, plain, write_csv, write_parquet

if TYPE_CHECKING:
    import polars as pl

WORKBOOK = ".xlsx"
MOST_ROWS = 1_048_575  # of a sheet, below the header
LONGEST_TEXT = 32_767  # characters of a cell
LONGEST_SHEET_NAME = 31  # characters, by Excel
EXACT = 10**15  # whole numbers from here on are rounded by spreadsheet programs: they are written as text
SAMPLE = 1000  # rows that decide how wide a column is
# Characters of a column.
NARROWEST = 8
WIDEST = 40
TEXTS = "text"  # the column of texts of items, which may be long: the only one whose cells are folded
MARK = "Written by spectral-irt"
# Sheets for the record.
ABOUT = "about"
FINDINGS = "findings"


def is_workbook(path: Path) -> bool:
    return path.suffix.lower() == WORKBOOK and not path.is_dir()


def refuse_foreign(path: Path) -> None:
    """An error when a file of this name is there and is not a workbook of ours: it is somebody's data."""
    if not path.is_file():
        return
    try:
        with zipfile.ZipFile(path) as archive:
            ours = MARK.encode() in archive.read("docProps/core.xml")
    except (OSError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError):
        ours = False
    if not ours:
        raise OutputError(
            f"{str(path)!r} is there already, and no run of spectral-irt wrote it; choose another name, or move it "
            "away. Nothing was written."
        )


def write_workbook(
    path: Path, tables: Mapping[str, AnyColumns], record: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """A sheet for each table, then the findings and the rest of the record; tables too long for one, with their rows.
    Nothing but the file stays behind, also when it cannot be completed."""
    import xlsxwriter
    from xlsxwriter.exceptions import FileCreateError

    rows = {name: len(next(iter(columns.values()), ())) for name, columns in tables.items()}
    left_out = {name: n for name, n in rows.items() if n > MOST_ROWS}
    with tempfile.TemporaryDirectory() as drafts:
        # Rows go to a file as they come: a million of them as objects would take gigabytes.
        book = xlsxwriter.Workbook(str(path), {"constant_memory": True, "tmpdir": drafts})
        book.set_properties({"comments": MARK})
        for name, columns in tables.items():
            if name not in left_out:
                _write_sheet(book, name, frame_of(columns))
        if record is not None:
            _write_record(book, record, left_out)
        try:
            book.close()
        except FileCreateError as error:
            raise error.args[0] from None  # the operating system's own
    return left_out


def _write_record(book: Any, record: Mapping[str, Any], left_out: Mapping[str, int]) -> None:
    import polars as pl

    findings = [plain(finding) for finding in record.get("findings", []) if isinstance(finding, Mapping)]
    if findings:
        names = ("severity", "sentence", "remedy", "code", "n_items")
        columns = {name: [finding.get(name) for finding in findings] for name in names}
        _write_sheet(book, FINDINGS, pl.DataFrame(columns))
    lines = _leaves(plain({name: value for name, value in record.items() if name != "findings"}))
    lines += [(f"left_out.{name}", f"{rows:,} rows, more than a sheet has") for name, rows in left_out.items()]
    _write_sheet(book, ABOUT, pl.DataFrame(lines, schema={"name": pl.String, "value": pl.Object}, orient="row"))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """The leaves of a record, each with its path: ('counts.items', 5), ('tests.1.p', 0.5)."""
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, (*path, str(key)))]
    if isinstance(value, list):
        if any(isinstance(inner, dict | list) for inner in value):
            return [leaf for k, inner in enumerate(value, start=1) for leaf in _leaves(inner, (*path, str(k)))]
        value = ", ".join(map(str, value))
    return [(".".join(path), value)]


def _write_sheet(book: Any, name: str, frame: pl.DataFrame) -> None:
    sheet = book.add_worksheet(name)
    sheet.freeze_panes(1, 1)
    sheet.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})  # 007 is meant so
    names = frame.columns
    for k, column in enumerate(names):
        look = {"num_format": _format(frame, column), "text_wrap": column == TEXTS}
        sheet.set_column(k, k, _width(frame.to_series(k)), book.add_format(look))
    sheet.set_row(0, None, book.add_format({"bold": True, "bottom": 1}))
    for k, column in enumerate(names):
        sheet.write_string(0, k, column)
    for row, cells in enumerate(frame.iter_rows(), start=1):
        for k, cell in enumerate(cells):
            if cell is not None:
                _write_cell(sheet, row, k, cell, names[k])
    if frame.height:
        sheet.autofilter(0, 0, frame.height, frame.width - 1)


def _write_cell(sheet: Any, row: int, k: int, cell: Any, column: str) -> None:
    if isinstance(cell, bool):
        sheet.write_boolean(row, k, cell)
    elif (isinstance(cell, int) and abs(cell) < EXACT) or (isinstance(cell, float) and math.isfinite(cell)):
        sheet.write_number(row, k, cell)
    else:  # inf as in CSV; no cell is NaN
        text = str(cell)
        if len(text.encode("utf-16-le")) > 2 * LONGEST_TEXT:
            raise OutputError(
                f"the column {column!r} holds a text of {len(text):,} characters, and a cell of a workbook at most "
                f"{LONGEST_TEXT:,}; write a folder of CSV files instead. Nothing was written."
            )
        sheet.write_string(row, k, text)


def _format(frame: pl.DataFrame, column: str) -> str:
    if not frame.schema[column].is_float():
        return "General"
    if column in ("p", "p_holm", "p_bh") or column.endswith(("_p", "_p_bh")):
        return "0.0000"
    return "0.000"


def _width(column: pl.Series) -> float:
    """Characters that a column needs, by its name and first rows."""
    import polars as pl

    longest = 0
    if column.dtype == pl.String and len(column):
        longest = int(column.head(SAMPLE).str.len_chars().max() or 0)  # type: ignore[arg-type]
    elif column.dtype == pl.Object:
        longest = WIDEST
    return min(max(len(column.name) + 3, longest + 1, NARROWEST), WIDEST)  # and the arrow of the filter


def write_table(path: Path, target: Path, name: str, columns: AnyColumns) -> None:
    """One table as what the target's name says: .parquet, .xlsx (a sheet of this name), or else CSV."""
    kind = target.suffix.lower()
    if kind != WORKBOOK:
        write = write_parquet if kind == ".parquet" else write_csv
        write(path, columns)
        return
    for rows in write_workbook(path, {name: columns}).values():
        raise OutputError(
            f"{str(target)!r} would have {rows:,} rows, and a sheet has at most {MOST_ROWS:,} below the header; name a "
            ".csv or .parquet file instead. Nothing was written."
        )
