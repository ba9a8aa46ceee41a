"""Table: columns that can be read in pieces, from a file or from a dataframe of any library.

A label of a person or item is an integer or a text. Text that came without a type (CSV) becomes integers only when
every label of its kind is a whole number written the plain way: "7" does, "007" keeps all of them text.

The reader of every format makes a `Table`; layouts are found in it, and builders read its pieces.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from spectral_irt.data.labels import NOT_ANSWERED, SUSPECTS, Labels, is_missing, label_array, nobody, one_spelling
from spectral_irt.data.values import plain_values, series_of, without_mask
from spectral_irt.errors import Finding, OptionError, ReadError, retold
from spectral_irt.text import did_you_mean, in_short, listed, printable

PIECE_CELLS = 500_000  # values in a piece: a few MB as text, which caches hold, and enough to cost little by itself
PIECE_ROWS = 1_000_000
LEAST_ROWS = 32  # a piece of a very wide table: every column has a cost of its own
HEAD_ROWS = 200  # rows and columns looked at to tell what a table is
HEAD_COLUMNS = 20
ENOUGH_ROWS = 3  # below a second header, to tell it from answers

WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)  # types of integer labels
DAMAGED = "It is probably damaged or cut short; write or fetch it again."
NOT_PLAIN = (
    "It may be sound, with columns of a kind that is not read here, or several of one name; write it with plain "
    "columns of numbers and texts, each with a name of its own."
)
_NOT_READ = re.compile("not.{0,9} (implemented|supported)|unsupported|more than one occurrence", re.I)
_OF_RUST = re.compile(r"unwrap\(\)|JoinError|assertion|panicked")

Pieces = Iterator[tuple[pl.DataFrame, float]]
RowNumbers = Sequence[int] | NDArray[Any]


@dataclass(frozen=True)
class Table:
    """A table to be read in pieces, as often as needed. Inside, columns go by position ("0", "1", ...): a label may be
    any text, and polars reads some texts as patterns."""

    name: str  # for messages: the file's name, or "the dataframe"
    columns: list[Any]  # labels as they are
    dtypes: list[Any]
    head: Callable[[int], pl.Series]  # the first rows of the column at a position
    pieces: Callable[[Sequence[int]], Pieces]  # of columns at positions, with the share of the table read by now
    untyped: Sequence[int] = ()  # columns of text without a type (all of CSV): labels may become integers
    cells: Callable[[], Iterator[tuple[pl.Series, float]]] | None = None  # whole rows in one column, where cheaper
    row_labels: pl.Series | None = None  # labels of the rows that are no column (the index of a pandas frame)
    rows_above: int = 0  # rows above the first one here that people count too: the header of a sheet, titles
    rows_left_out: tuple[int, ...] = ()  # numbers, from 0 and increasing, of rows that are no persons: answer keys
    notes: tuple[Finding, ...] = ()  # on how the file was read
    n_added: int = 0  # of the columns, the last ones, stand in the names of folders; they are never items
    # Columns of which each value is an object of answers (JSON). Such a column gives a row for each answer, and the
    # last two columns the number of the person and the item.
    nested: Sequence[int] = ()
    value_labels: Mapping[int, dict[str, str]] = field(default_factory=dict)  # by column, labels of codes (SPSS, Stata)
    variable_labels: Mapping[int, str] = field(default_factory=dict)  # by column, what it is in words (SPSS, Stata)

    def is_loose(self, column: int) -> bool:
        """Whether labels in this column that are all whole numbers (1.0, or text of CSV) become integers."""
        dtype = self.dtypes[column]
        return column in self.untyped or (bool(dtype.is_numeric()) and dtype not in WHOLE)

    def row_numbers(self, start: int, height: int) -> NDArray[Any]:
        """The numbers, as people count them, of so many rows."""
        numbers = self.rows_above + np.arange(start + 1, start + height + 1)
        for row in self.rows_left_out:
            numbers[numbers > self.rows_above + row] += 1
        return numbers

    def where(self, column: int) -> str:
        return f"{self.name}: column {str(self.columns[column])!r}"

    def whole(self) -> pl.DataFrame:
        """All of it in memory, columns by position."""
        return pl.concat([frame for frame, _ in self.pieces(range(len(self.columns)))])

    def position(self, role: str, name: Any) -> int:
        """The position of a column that was named; an error with the nearest names when there is none."""
        if name in self.columns:
            return self.columns.index(name)
        names = [str(column) for column in self.columns]
        if str(name) in names:
            return names.index(str(name))
        what = f"{self.name} has no column {str(name)!r} for `{role}`;"
        if role == "people":
            what = f"{self.name} has no column {str(name)!r};"
        parts = [part.strip() for part in str(name).split(",")]
        if len(parts) > 1 and set(parts) <= set(names):
            several = "two columns" if len(parts) == 2 else f"{len(parts)} columns"
            each = ", ".join(f"`{role}={part!r}`" for part in parts)
            raise OptionError(f"{what} {listed(parts)} are {several}. Name each by itself: {each}.")
        advice = did_you_mean(name, names)
        numbered = re.compile(rf"{re.escape(str(name))}[ _.-]?\d+")
        if role == "facet" and sum(numbered.fullmatch(each) is not None for each in names) > 1:
            advice = (
                f" Each {name} has a column of its own here: leave out `facet=`, and these columns are the items; "
                "larger difficulty = more severe."
            )
        raise OptionError(f"{what} its columns are {listed(self.columns)}.{advice}")

    def without_second_header(self) -> Table:
        """The table without a first row that names the columns again, or holds the questions: words above numbers."""
        # words above numbers, and columns of numbers
        above = list[str]()
        n_numbers = 0
        for k, dtype in enumerate(self.dtypes[:HEAD_COLUMNS]):
            if dtype != pl.String or len(texts := one_spelling(self.head(k))) <= ENOUGH_ROWS:
                continue
            numbers = texts.cast(pl.Float64, strict=False)
            if numbers[1:].count() > 0.8 * texts[1:].count():
                n_numbers += 1
                if numbers[0] is None and texts[0] not in (None, *SUSPECTS):
                    above.append(texts[0])
        if len(above) < max(3, 0.8 * n_numbers) or len(set(above)) < 2:
            return self

        def rows(chosen: Sequence[int]) -> Pieces:
            skip = 1
            for frame, done in self.pieces(chosen):
                yield frame.slice(skip), done
                skip = max(skip - frame.height, 0)

        what = f"{self.name}: the row below the header ({listed(above)}) holds texts above numbers and was left out."
        questions = self._questions_below_header()
        if questions:
            what = f"{what[:-1]}; its questions are texts of the items."
        note = Finding("second_header", "note", what, "If it is a person, remove the texts.")
        table = replace(
            self,
            head=lambda k: self.head(k)[1:],
            pieces=rows,
            cells=None,
            rows_above=self.rows_above + 1,
            notes=(*self.notes, note),
            variable_labels={**questions, **self.variable_labels},
        )
        return table.without_second_header()  # Qualtrics has two: the questions, and numbers of its own

    def _questions_below_header(self) -> dict[int, str]:
        """The first row where it holds words, and no name or code: what each column is, such as the question asked."""
        texts: dict[int, str] = {}
        for k, dtype in enumerate(self.dtypes[:HEAD_COLUMNS]):
            first = self.head(k).head(1).to_list() if dtype == pl.String else []
            words = " ".join((first[0] or "").split()) if first else ""
            is_code = words.startswith("{")  # Qualtrics: {"ImportId":"QID1"}
            if " " in words and not is_code and words.casefold() != str(self.columns[k]).casefold():
                texts[k] = words
        return texts


def polars_errors_named(name: str, remedy: str = DAMAGED) -> AbstractContextManager[None]:
    """No polars exception reaches the person: it becomes a sentence about the file."""

    def sentence(error: BaseException) -> str:
        panic = isinstance(error, pl.exceptions.PanicException)
        how = NOT_PLAIN if remedy == DAMAGED and (panic or _NOT_READ.search(str(error))) else remedy
        reason = in_short(error).split(": Error {")[0]
        if panic and _OF_RUST.search(reason):  # about a line of polars, and not about the file
            reason = "the library that reads it (polars) stopped"
        return f"{name} cannot be read: {printable(reason)}. {how}"

    return retold((pl.exceptions.PolarsError, OSError, UnicodeError), sentence)


_STDERR = threading.Lock()  # the number of a stream belongs to the whole process


@contextmanager
def without_panic_messages() -> Iterator[None]:
    """A panic of polars is an exception, and also pages about its source on stderr, which are not for people. What else
    comes to stderr meanwhile is shown afterwards."""
    with _STDERR, tempfile.TemporaryFile() as kept:
        try:
            sys.stderr.flush()
            stderr = os.dup(2)
        except (AttributeError, OSError, ValueError):  # there is none
            yield
            return
        try:
            os.dup2(kept.fileno(), 2)
            yield
        except pl.exceptions.PanicException:
            kept.seek(0)
            kept.truncate()
            raise
        finally:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os.dup2(stderr, 2)
            kept.seek(0)
            if said := kept.read():
                os.write(stderr, said)
            os.close(stderr)


def check_header(source: str, names: Sequence[str], where: str) -> None:
    """Refuse a first line that holds answers, and columns of the same name."""
    if any(names) and set(map(str.strip, names)) <= {"0", "1", "NA", ""}:
        what = f"{source} has no header: {where} already holds answers."
        raise ReadError(f"{what} Put a line with the names of the items above it.")
    if len(set(names)) < len(names):
        raise repeated_names(source, names)


def repeated_names(source: str, names: Sequence[str]) -> ReadError:
    twice = [name for name, times in Counter(names).items() if times > 1]
    return ReadError(f"{source}: column names must differ; repeated: {listed(twice)}. Rename or remove them.")


def by_position(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its columns named "0", "1", ..."""
    if frame.width:
        frame = frame.clone()
        frame.columns = [str(k) for k in range(frame.width)]
    return frame


def rows_in_a_piece(n_columns: int) -> int:
    return max(min(LEAST_ROWS, PIECE_ROWS), min(PIECE_ROWS, PIECE_CELLS // n_columns))


def table_of_frame(
    frame: pl.DataFrame, columns: list[Any], row_labels: pl.Series | None = None, name: str = "the dataframe"
) -> Table:
    """A dataframe in memory as a table."""

    def pieces(chosen: Sequence[int]) -> Pieces:
        size = rows_in_a_piece(len(chosen))
        n = max(frame.height, 1)
        part = by_position(frame[:, list(chosen)])
        for start in range(0, n, size):
            yield part.slice(start, size), min((start + size) / n, 1.0)

    head = lambda k: frame.to_series(k).head(HEAD_ROWS)  # noqa: E731
    return Table(name, columns, list(frame.dtypes), head, pieces, row_labels=row_labels)


def table_of_any_frame(native: Any) -> tuple[Table, str]:
    """The frame as a table, and the name of its library."""
    import narwhals.stable.v1 as nw

    if type(native).__name__ == "RecordBatch" and hasattr(native, "to_pandas"):  # of pyarrow: a table of one piece
        import pyarrow

        native = pyarrow.Table.from_batches([native])
    try:
        frame: Any = nw.from_native(native)
    except TypeError:
        raise ReadError(f"expected a dataframe, a 2-D table, not {type(native).__name__}.") from None
    except Exception as error:
        if "unique column names" in str(error):
            repeated = " ".join(str(error).split())
            raise ReadError(f"the dataframe's column names must differ ({repeated}); rename or remove them.") from None
        raise
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    kind: str = frame.implementation.value
    if not frame.columns:
        raise ReadError("the dataframe has no columns.")
    columns = list(frame.columns)
    levels = [name for name in columns if isinstance(name, tuple)]
    if levels:  # of pandas
        what = f"the dataframe's column labels have several levels, as in {levels[0]!r}, and an item has one label."
        raise ReadError(f"{what} Join them: df.columns = ['_'.join(map(str, c)) for c in df.columns].")
    series = [_series(frame.get_column(name)).alias(str(k)) for k, name in enumerate(columns)]
    index = nw.maybe_get_index(frame)
    labels = None
    if index is not None and len(set(index)) == len(frame):  # labels of rows that differ from each other
        plain = [label.item() if hasattr(label, "item") else label for label in index]
        labels = series_of(plain)
        check_names(labels, "the index of the dataframe", range(len(plain)))
        if labels.dtype not in (pl.Int64, pl.String):
            labels = labels.cast(pl.String)
    names = [str(name) if is_missing(name) else name for name in columns]  # pandas may have None or NaN for a name
    return table_of_frame(by_position(pl.DataFrame(series)), names, labels), kind


def _series(column: Any) -> pl.Series:
    """A narwhals series as a polars one, through numpy or plain Python, so that pyarrow is not needed."""
    import narwhals.stable.v1 as nw

    native = nw.to_native(column)
    if isinstance(native, pl.Series):
        return native
    missing = column.is_null().to_numpy().astype(bool)
    if column.dtype.is_numeric() and not missing.any():
        values = column.to_numpy()
        if values.dtype.kind in "iuf":
            return pl.Series(values)
    return series_of([None if absent else v for v, absent in zip(column.to_list(), missing, strict=True)])


def is_plain(dtype: Any) -> bool:
    """Whether values of this type may be answers or labels: numbers, texts, times."""
    return not (dtype.is_nested() or dtype in (pl.Object, pl.Binary))


def plain_labels(column: pl.Series, *, text: bool, name: str) -> pl.Series:
    """The labels as Int64, or as text when `text` says so or the type demands it."""
    dtype = column.dtype
    if dtype in WHOLE:
        kind = pl.String if text else pl.Int64
        return column.cast(kind)
    if dtype == pl.String:
        return column
    if dtype.is_float():
        integers = column.cast(pl.Int64, strict=False)
        if (integers.cast(dtype) == column).all() and not column.is_nan().any():
            return integers.cast(pl.String)
    if not is_plain(dtype):
        raise ReadError(f"{name} is of type {dtype}; labels are text or numbers.")
    return column.cast(pl.String)


def check_names(labels: pl.Series, where: str, rows: RowNumbers) -> None:
    """Refuse people without a name; `rows` are the numbers of the rows, for the message."""
    absent = labels.is_null()
    if labels.dtype == pl.String:
        absent = absent | labels.str.strip_chars().is_in(NOT_ANSWERED).fill_null(True)
    if absent.any():
        raise nobody(where, [int(rows[k]) for k in absent.arg_true().to_list()])


def final_labels(labels: pl.Series, *, loose: bool) -> pl.Series:
    """Labels as they stay: loose texts become integers when all are whole numbers, written the plain way."""
    if not loose or labels.dtype != pl.String or not len(labels):
        return labels
    numbers = labels.cast(pl.Int64, strict=False)
    written_plainly = (numbers.cast(pl.String) == labels).fill_null(False).all()
    return numbers if written_plainly else labels


def labels_of(labels: pl.Series) -> Labels:
    """Labels as `Responses` holds them."""
    if labels.dtype == pl.Int64:
        return label_array(labels.to_numpy())
    return label_array(labels.to_list())


def long_frame(*columns: ArrayLike) -> pl.DataFrame:
    arrays = [_column(column) for column in columns]
    if len({len(array) for array in arrays}) > 1:
        raise OptionError(f"persons, items and responses differ in length: {[len(array) for array in arrays]}.")
    names = ("person", "item", "response")
    return pl.DataFrame({name: plain_values(array) for name, array in zip(names, arrays, strict=True)})


def _column(values: ArrayLike) -> NDArray[Any]:
    """A column as an array; text as Python strings, since numpy's own would drop a label's trailing NULs."""
    array = without_mask(values)
    if array.dtype.kind in "US":
        array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise OptionError(f"persons, items and responses are columns, 1-D; one of them is {array.ndim}-D.")
    return array
