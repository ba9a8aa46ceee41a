"""CSV text as a table: every column as text, every record checked before polars parses it, which fills short rows with
nulls and renames repeated columns without a word. So the header is read here and the values of every record are
counted: one pass over the bytes, cheap beside the parsing."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import Finding, ReadError
from spectral_irt.reading import text_pieces
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import HEAD_ROWS, Pieces, Table, by_position, check_header, polars_errors_named
from spectral_irt.reading.text_pieces import HEAD_BYTES, RawPiece, end_of_last_record, outside_quotes, raw_pieces
from spectral_irt.tables import GUARDED, unguarded
from spectral_irt.text import count, listed

SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 1_000_000
WIDE_ENOUGH = 3  # values of a record, below which a single value above is no title
FIRST_RECORDS = 8  # looked at for titles and the separator
BLANK = b" \r\n"


def records_of(data: bytes, separator: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the records of a buffer end (after the line break), and how many values each has."""
    array = np.frombuffer(data, dtype=np.uint8)
    marks = np.flatnonzero((array == ord(separator)) | (array == ord("\n")))
    marks = outside_quotes(array, marks) if b'"' in data else marks
    breaks = np.flatnonzero(array[marks] == ord("\n"))
    return marks[breaks] + 1, np.diff(breaks, prepend=-1)


@dataclass(frozen=True)
class CsvText:
    """A CSV file whose header has been understood."""

    file: File
    separator: str
    columns: list[str]
    above: int  # bytes up to the end of the header

    def bodies(self, size: int | None = None) -> Iterator[RawPiece]:
        """The records after the header, in pieces, checked."""
        above = self.above
        for piece in raw_pieces(self.file, end_of_last_record, size):
            cut, above = min(above, len(piece.data)), max(above - len(piece.data), 0)
            piece = piece._replace(data=piece.data[cut:], line=piece.line + piece.data.count(b"\n", 0, cut))
            yield piece._replace(data=self._checked(piece))

    def _checked(self, piece: RawPiece) -> bytes:
        """The records without blank lines; an error when one has more or fewer values than the header."""
        data = piece.data
        # A blank line is no record, except in a table of one column, where it is a missing answer.
        if len(self.columns) > 1:
            last = len(data.rstrip(BLANK))  # there may be millions of blank lines
            data = data[: data.find(b"\n", last) + 1] if last else b""
        ends, n_values = records_of(data, self.separator)
        ragged = n_values != len(self.columns)
        if not ragged.any():
            return data
        starts = np.concatenate([[0], ends[:-1]])
        array = np.frombuffer(data, dtype=np.uint8)
        filled = np.add.reduceat(~np.isin(array, list(BLANK)), starts, dtype=np.int64)
        blank = (n_values == 1) & (filled == 0)
        for k in np.flatnonzero(ragged & ~blank)[:1]:
            line = piece.line + data.count(b"\n", 0, int(starts[k]))
            quotes = " Check the quotation marks on it." if b'"' in data[starts[k] : ends[k]] else ""
            found = count(n_values[k], "value")
            raise ReadError(
                f"{self.file.name}: line {line:,} has {found}; the header has {len(self.columns):,} columns. Give "
                f"every line the same number of values, empty where there is no answer.{quotes}"
            )
        return array[np.repeat(~blank, ends - starts)].tobytes()

    def pieces(self, columns: Sequence[int]) -> Pieces:
        """Records as text columns, named by position."""
        places = np.searchsorted(sorted(columns), columns).tolist()
        for piece in self.bodies():
            yield by_position(self._parsed(piece, piece.data, sorted(columns), 1)[:, places]), piece.done

    def cells(self, size: int | None = None) -> Iterator[tuple[pl.Series, float]]:
        """Records as one column of text, value after value: a table may have 100,000 columns, each at a price."""
        for piece in self.bodies(size):
            if b'"' in piece.data:
                array = np.frombuffer(piece.data, dtype=np.uint8).copy()
                array[outside_quotes(array, np.flatnonzero(array == ord(self.separator)))] = ord("\n")
                data = array.tobytes()
            else:
                data = piece.data.replace(self.separator.encode(), b"\n")
            yield self._parsed(piece, data, [0], len(self.columns)).to_series(), piece.done

    def _parsed(self, piece: RawPiece, data: bytes, columns: list[int], lines_each: int) -> pl.DataFrame:
        how: dict[str, Any] = {"has_header": False, "infer_schema": False, "quote_char": '"'}
        if not data:
            return pl.DataFrame({str(k): pl.Series([], dtype=pl.String) for k in columns})
        try:
            with polars_errors_named(self.file.name):
                parsed = pl.read_csv(io.BytesIO(data), separator=self.separator, columns=columns, **how)
        except ReadError:
            if b'"' not in data:
                raise
            raise self._unmatched_quotes(piece) from None
        # polars and `records_of` can differ only about quotation marks in the middle of a value.
        if b'"' in data and parsed.height != lines_each * len(records_of(piece.data, self.separator)[0]):
            raise self._unmatched_quotes(piece)
        return parsed.with_columns(pl.all().str.replace(GUARDED, "$1")) if b"'" in data else parsed

    def _unmatched_quotes(self, piece: RawPiece) -> ReadError:
        ends = (piece.data.find(b'"'), piece.data.rfind(b'"'))
        first, last = (piece.line + piece.data.count(b"\n", 0, end) for end in ends)
        return ReadError(
            f"{self.file.name}: the quotation marks between lines {first:,} and {last:,} do not match up. Put a value "
            'that holds one in quotation marks, and double the marks inside ("").'
        )


def open_table(file: File) -> Table:
    records, ends = _first_records(file)
    tabbed = {".tsv", ".tab"} & {suffix.lower() for suffix in file.path.suffixes}
    separators = ("\t",) if tabbed else SEPARATORS
    counts = [{one: _n_values(record, one) for one in separators} for record in records]
    alike = {one: sum(each[one] == counts[-1][one] for each in counts) for one in separators}
    # 1,00;0,50 has more commas than semicolons, but the header has not.
    widest = max(separators, key=lambda one: (counts[-1][one] > 1, alike[one], counts[-1][one]))
    titles, width = 0, counts[-1][widest]  # a title stands above the header alone, or has few values beside it

    def is_title(k: int) -> bool:
        alone = sum(bool(part.strip(' "\r\n')) for part in records[k].split(widest)) == 1
        return width >= WIDE_ENOUGH and (alone or 2 * counts[k][widest] < width)

    while titles + 2 < len(records) and is_title(titles):
        titles += 1
    header, own, after = records[titles], counts[titles], counts[min(titles + 1, len(records) - 1)]
    # The separator that cuts header and first record into equally many values, more than one.
    fits = (one for one in separators if len(records) > titles + 1 and own[one] == after[one] > 1)
    separator = next(fits, max(separators, key=lambda one: own[one]))
    if own[separator] > MOST_COLUMNS:
        what = f"{file.name}: the header has {own[separator]:,} columns, and at most {MOST_COLUMNS:,} are read."
        raise ReadError(f"{what} Write a long table: person, item and response.")
    try:
        parsed = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator))
    except csv.Error as error:
        raise ReadError(f"{file.name}: the header cannot be read ({error}).") from None
    columns = [unguarded(name) for name in parsed]
    check_header(file.name, columns, "its first line" if not titles else "the line below the title")
    text, n = CsvText(file, separator, columns, ends[titles]), len(columns)
    start = next((cells for cells, _ in text.cells(HEAD_BYTES) if len(cells)), pl.Series([], dtype=pl.String))
    start = start.head(HEAD_ROWS * n)
    notes = text_pieces.notes_on_encoding(file)
    if titles:
        shown = listed([record.strip(separator + ' \r\n"') for record in records[:titles]])
        notes += (Finding("title_rows", "note", f"{file.name}: {shown} above the header was treated as a title."),)
    head = lambda column: start.gather_every(n, column)  # noqa: E731
    return Table(file.name, columns, [pl.String] * n, head, text.pieces, range(n), text.cells, notes=notes)


def _n_values(record: str, separator: str) -> int:
    return record.count(separator) - sum(part.count(separator) for part in record.split('"')[1::2]) + 1


def _first_records(file: File) -> tuple[list[str], list[int]]:
    """The first records that are not blank, and how many bytes of the text end with each."""
    before, records, ends = 0, list[str](), list[int]()
    for piece in raw_pieces(file, end_of_last_record, HEAD_BYTES):
        bounds = records_of(piece.data, "\n")[0].tolist() if piece.data.strip() else []
        for start, end in itertools.pairwise([0, *bounds]):
            if piece.data[start:end].strip() and len(records) < FIRST_RECORDS:
                records.append(piece.data[start:end].decode())
                ends.append(before + end)
        before += len(piece.data)
        if len(records) == FIRST_RECORDS:
            break
    if not records:
        raise ReadError(f"{file.name} holds nothing but blank lines.")
    if "\r" in records[0].rstrip() and '"' not in records[0]:
        raise ReadError(f"{file.name} ends its lines with carriage returns only; save it with ordinary line ends.")
    return records, ends
