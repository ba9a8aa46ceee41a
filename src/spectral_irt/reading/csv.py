"""CSV text as a table: every column as text, every record checked before polars parses it, which fills short rows with
nulls and renames repeated columns without a word. So the header is read here and the values of every record are
counted: one pass over the bytes, cheap beside the parsing."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from spectral_irt.data.block import Ints
from spectral_irt.errors import Finding, ReadError
from spectral_irt.reading import text_pieces
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import HEAD_ROWS, Pieces, Table, by_position, check_header, polars_errors_named
from spectral_irt.reading.text_pieces import HEAD_BYTES, RawPiece, end_of_last_record, outside_quotes, raw_pieces
from spectral_irt.tables import GUARDED, cell_text
from spectral_irt.text import count, listed

SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 1_000_000
WIDE_ENOUGH = 3  # values of a record, below which a single value above is no title
FIRST_RECORDS = 8  # looked at for titles and the separator
BLANK = b" \r\n"
MARK = '"'  # around values
NUMBER_OR_NA = r"-?\d+(\.\d*)?|NA"  # an answer as R writes it


def records_of(data: bytes, separator: str) -> tuple[Ints, Ints]:
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
        """The records after the header, in pieces, without blank lines; each has as many values as the header."""
        above = self.above
        for data, line, done in raw_pieces(self.file, end_of_last_record, size):
            cut = min(above, len(data))
            above = max(above - len(data), 0)
            line += data.count(b"\n", 0, cut)
            data = data[cut:]
            # A blank line is no record, except in a table of one column, where it is a missing answer.
            if len(self.columns) > 1:
                last = len(data.rstrip(BLANK))  # there may be millions of blank lines
                data = data[: data.find(b"\n", last) + 1] if last else b""
            ends, n_values = records_of(data, self.separator)
            if (n_values != len(self.columns)).any():
                data = self._without_blank_lines(data, line, ends, n_values)
            yield RawPiece(data, line, done)

    def _without_blank_lines(self, data: bytes, first: int, ends: Ints, n_values: Ints) -> bytes:
        """The records from line `first` on; an error when one that is not blank has more or fewer values."""
        starts = np.concatenate([[0], ends[:-1]])
        array = np.frombuffer(data, dtype=np.uint8)
        filled = np.add.reduceat(~np.isin(array, list(BLANK)), starts, dtype=np.int64)
        blank = (n_values == 1) & (filled == 0)
        for k in np.flatnonzero((n_values != len(self.columns)) & ~blank)[:1]:
            line = first + data.count(b"\n", 0, int(starts[k]))
            quotes = " Check the quotation marks on it." if b'"' in data[starts[k] : ends[k]] else ""
            values = count(n_values[k], "value")
            raise ReadError(
                f"{self.file.name}: line {line:,} has {values}; the header has {len(self.columns):,} columns. Give "
                f"every line the same number of values, empty where there is no answer.{quotes}"
            )
        return array[np.repeat(~blank, ends - starts)].tobytes()

    def pieces(self, columns: Sequence[int]) -> Pieces:
        """Records as text columns, named by position."""
        places = np.searchsorted(sorted(columns), columns).tolist()
        for piece in self.bodies():
            yield by_position(self._parse(piece, piece.data, sorted(columns), 1)[:, places]), piece.done

    def cells(self, size: int | None = None) -> Iterator[tuple[pl.Series, float]]:
        """Records as one column of text, value after value: a table may have 100,000 columns, each at a price."""
        for piece in self.bodies(size):
            if b'"' in piece.data:
                array = np.frombuffer(piece.data, dtype=np.uint8).copy()
                array[outside_quotes(array, np.flatnonzero(array == ord(self.separator)))] = ord("\n")
                data = array.tobytes()
            else:
                data = piece.data.replace(self.separator.encode(), b"\n")
            yield self._parse(piece, data, [0], len(self.columns)).to_series(), piece.done

    def _parse(self, piece: RawPiece, data: bytes, columns: list[int], lines_each: int) -> pl.DataFrame:
        if not data:
            return pl.DataFrame({str(k): pl.Series([], dtype=pl.String) for k in columns})
        try:
            with polars_errors_named(self.file.name):
                parsed = pl.read_csv(
                    io.BytesIO(data),
                    separator=self.separator,
                    columns=columns,
                    has_header=False,
                    infer_schema=False,
                    quote_char='"',
                )
        except ReadError:
            if b'"' not in data:
                raise
            raise self._unmatched_quotes(piece) from None
        # polars and `records_of` can differ only about quotation marks in the middle of a value.
        if b'"' in data and parsed.height != lines_each * len(records_of(piece.data, self.separator)[0]):
            raise self._unmatched_quotes(piece)
        if b"'" in data:
            parsed = parsed.with_columns(pl.all().str.replace(GUARDED, "$1"))
        return parsed

    def _unmatched_quotes(self, piece: RawPiece) -> ReadError:
        ends = (piece.data.find(b'"'), piece.data.rfind(b'"'))
        first, last = (piece.line + piece.data.count(b"\n", 0, end) for end in ends)
        return ReadError(
            f"{self.file.name}: the quotation marks between lines {first:,} and {last:,} do not match up. Put a value "
            'that holds one in quotation marks, and double the marks inside ("").'
        )


def open_table(file: File) -> Table:
    records, ends = _first_records(file)
    titles, separator = _find_header(file, records)
    _refuse_blanks_between(file, records)
    header = records[titles]
    try:
        columns = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator))
    except csv.Error as error:
        raise ReadError(f"{file.name}: the header cannot be read ({error}).") from None
    if "'" in header:
        columns = list(map(cell_text, columns))
    check_header(file.name, columns, "the line below the title" if titles else "its first line")
    text = CsvText(file, separator, columns, ends[titles])
    n = len(columns)
    start = next((cells for cells, _ in text.cells(HEAD_BYTES) if len(cells)), pl.Series([], dtype=pl.String))
    notes = text_pieces.notes_on_encoding(file)
    if titles:
        shown = listed([record.strip(separator + ' \r\n"') for record in records[:titles]])
        notes += (Finding("title_rows", "note", f"{file.name}: {shown} above the header was treated as a title."),)
    head = partial(start.head(HEAD_ROWS * n).gather_every, n)
    return Table(file.name, columns, [pl.String] * n, head, text.pieces, range(n), text.cells, notes=notes)


def _find_header(file: File, records: Sequence[str]) -> tuple[int, str]:
    """How many of the first records are titles above the header, and what separates the values."""
    tabbed = {".tsv", ".tab"}.intersection(map(str.lower, file.path.suffixes))
    separators = ("\t",) if tabbed else SEPARATORS
    outside_marks = ["".join(record.split('"')[::2]) for record in records]
    n_values = 1 + np.array([list(map(text.count, separators)) for text in outside_marks])
    last = n_values[-1]
    alike = (n_values == n_values[-1]).sum(axis=0)
    # 1,00;0,50 has more commas than semicolons, but the header has not.
    ranks = list(zip((last > 1).tolist(), alike.tolist(), last.tolist(), strict=True))
    widest = ranks.index(max(ranks))
    titles = 0
    width = last[widest]
    while titles + 2 < len(records) and width >= WIDE_ENOUGH:
        values = records[titles].replace('"', "").split(separators[widest])
        # A title stands above the header alone, or has few values beside it.
        if sum(map(bool, map(str.strip, values))) != 1 and 2 * n_values[titles, widest] >= width:
            break
        titles += 1
    of_header = n_values[titles]
    # The separator that cuts header and first record into equally many values, more than one.
    fits = (of_header == n_values[titles + 1 : titles + 2]).any(axis=0) & (of_header > 1)
    chosen = int(fits.argmax()) if fits.any() else int(of_header.argmax())
    if of_header[chosen] > MOST_COLUMNS:
        what = f"{file.name}: the header has {of_header[chosen]:,} columns, and at most {MOST_COLUMNS:,} are read."
        raise ReadError(f"{what} Write a long table: person, item and response.")
    return titles, separators[chosen]


def _refuse_blanks_between(file: File, records: Sequence[str]) -> None:
    """An error where blanks separate the values, as write.table() of R writes them: names that differ in number from
    the values by the names of the rows at most, and values that are numbers for the greater part."""
    if any(separator in record for record in records for separator in SEPARATORS) or len(records) < 2:
        return
    names, *rows = [re.findall(r'"[^"]*"|\S+', record) for record in records]
    widths = {len(row) for row in rows}
    if len(names) < 2 or len(widths) > 1 or not widths <= {len(names), len(names) + 1}:
        return
    numbers = [bool(re.fullmatch(NUMBER_OR_NA, value)) for row in rows for value in row]
    if 2 * sum(numbers) < len(numbers):
        return
    raise ReadError(
        f"{file.name}: blanks seem to separate the columns ({listed([name.strip(MARK) for name in names])}), as in a "
        "file of write.table() of R. Save it with commas; in R: write.csv(data, 'answers.csv', row.names = FALSE)."
    )


def _first_records(file: File) -> tuple[list[str], list[int]]:
    """The first records that are not blank, and how many bytes of the text end with each."""
    before = 0
    records = list[str]()
    ends = list[int]()
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
