"""Table: columns that can be read in pieces, from a file or from a dataframe in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from spectral_irt.errors import ReadError, SpectralIrtError, listed, printable
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.reading.numbering import is_loose

if TYPE_CHECKING:
    from spectral_irt.responses.reading.request import Asked
    from spectral_irt.responses.reading.sheets import Rows

PIECE_CELLS = 2_000_000  # values in a piece: some tens of MB as text, and enough that a piece costs little by itself
PIECE_ROWS = 1_000_000
LEAST_ROWS = 32  # a piece of a very wide table: every column has a cost of its own
HEAD_ROWS = 200  # rows and columns looked at to tell what a table is
HEAD_COLUMNS = 20

Pieces = Iterator[tuple[pl.DataFrame, float]]


@dataclass(frozen=True)
class Table:
    """A table to be read in pieces, as often as needed.

    Attributes
    ----------
    name : str
        For messages: the file's name, or "the dataframe".
    columns : list
        Column labels as they are. Inside, columns go by position ("0", "1", ...): a label may be any text, and polars
        reads some texts as patterns.
    dtypes : list of polars types
    loose : list of bool
        Columns whose text has no type (CSV), so that labels which are all whole numbers become integers.
    head : function
        The first rows of the column at a position.
    pieces : function
        Given positions, yields (the next rows of these columns, the share of the table read by now).
    loose_header : bool
        The same for the column labels.
    grid : function, optional
        Yields (the next whole rows as one column of values, row after row; share), where this is cheaper than columns.
    row_labels : polars Series, optional
        Labels of the rows that are no column (the index of a pandas frame).
    people : function, optional
        Given what was asked and the items of the key, `Rows` when each record is a person with answers of their own
        (JSON), or None when it is a row like those of other tables.
    rows_above : int
        Rows of the sheet above the first row here, the header among them, where people count those too (workbooks).
    notes : tuple of findings
        What there is to say about how the file was read.
    n_added : int
        How many of the columns, the last ones, stand in no file but in the names of folders; they are never items.
    """

    name: str
    columns: list[Any]
    dtypes: list[Any]
    loose: list[bool]
    head: Callable[[int], pl.Series]
    pieces: Callable[[Sequence[int]], Pieces]
    loose_header: bool = False
    grid: Callable[[], Iterator[tuple[pl.Series, float]]] | None = None
    row_labels: pl.Series | None = None
    people: Callable[[Asked, Iterable[Any]], Rows | None] | None = None
    rows_above: int = 0
    notes: tuple[Finding, ...] = ()
    n_added: int = 0


DAMAGED = "It is probably damaged or cut short; write or fetch it again."


@contextmanager
def polars_errors_named(name: str, remedy: str = DAMAGED) -> Iterator[None]:
    """No polars exception reaches the user: it becomes a sentence about the file."""
    try:
        yield
    except SpectralIrtError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, UnicodeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].split(": Error {")[0].rstrip(".")
        raise ReadError(f"{name} cannot be read: {printable(reason)}. {remedy}") from None


def check_names_differ(source: str, names: Sequence[str]) -> None:
    """Refuse columns of the same name."""
    if len(set(names)) < len(names):
        twice = [name for name, times in Counter(names).items() if times > 1]
        raise ReadError(f"{source}: column names must differ; repeated: {listed(twice)}. Rename or remove them.")


def by_position(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its columns named "0", "1", ..."""
    if frame.width:
        frame = frame.clone()
        frame.columns = [str(k) for k in range(frame.width)]
    return frame


def rows_in_a_piece(n_columns: int) -> int:
    return max(min(LEAST_ROWS, PIECE_ROWS), min(PIECE_ROWS, PIECE_CELLS // n_columns))


def table_of_frame(frame: pl.DataFrame, columns: list[Any], row_labels: pl.Series | None = None) -> Table:
    """A dataframe in memory as a table."""

    def pieces(chosen: Sequence[int]) -> Pieces:
        size = rows_in_a_piece(len(chosen))
        part = by_position(frame[:, list(chosen)])
        for start in range(0, max(part.height, 1), size):
            piece = part.slice(start, size)
            yield piece, min((start + size) / max(part.height, 1), 1.0)

    def head(column: int) -> pl.Series:
        return frame.to_series(column).head(HEAD_ROWS)

    dtypes = list(frame.dtypes)
    loose = [is_loose(dtype) for dtype in dtypes]
    return Table("the dataframe", columns, dtypes, loose, head, pieces, row_labels=row_labels)
