"""The result of a database query as a table, taken in batches: SQLite, DuckDB and Postgres, through ADBC and polars."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from spectral_irt.errors import DatabaseError, OptionError, ReadError, SpectralIrtError
from spectral_irt.reading.databases import first_line, kind_of, needed, opened, without_password
from spectral_irt.reading.frame import HEAD_ROWS, PIECE_ROWS, Pieces, Table, by_position, check_names_differ
from spectral_irt.reading.numbering import is_loose

NAME = "the query"
SCHEMES = "sqlite:FILE, duckdb:FILE, or postgresql://USER@HOST/DATABASE"
_EVERY_COLUMN = 4  # about as many as a query of answers has


def open_query(sql: str, database: str) -> Table:
    """What a query gives, as a table."""
    if not isinstance(sql, str) or not sql.strip():
        raise OptionError("`sql` is empty; it is a query such as SELECT person, item, response FROM answers.")
    batches: Iterator[pl.DataFrame] | None = _batches(sql, database)
    first = next(batches, None)  # type: ignore[arg-type]
    if first is None:
        raise ReadError(f"{NAME} gives no rows; check what it asks for, and that the table has rows.")
    columns = list(first.columns)
    check_names_differ(NAME, columns)

    def pieces(chosen: Sequence[int]) -> Pieces:
        nonlocal batches
        # Once what is there already, and then the rest; later the query is asked anew.
        coming = _batches(sql, database) if batches is None else itertools.chain([first], batches)
        batches = None
        for batch in coming:
            if batch.columns != columns:
                raise ReadError(f"{NAME} changed its columns while it was being read; ask again.")
            yield by_position(batch[:, list(chosen)]), 0.5  # how many there will be is not known

    loose = [is_loose(dtype) for dtype in first.dtypes]
    return Table(NAME, columns, list(first.dtypes), loose, lambda k: first.to_series(k).head(HEAD_ROWS), pieces)


def _batches(sql: str, database: str) -> Iterator[pl.DataFrame]:
    """The rows of the result in batches; the connection is closed at the end."""
    where = without_password(database)
    if kind_of(database)[0] not in ("sqlite", "duckdb", "postgresql"):
        raise OptionError(
            f"`database` is {where!r}, which is not the address of a database that is read; that is {SCHEMES}."
        )
    connection = opened(database)
    types: list[Any] | None = None
    try:
        for batch in _asked(connection, sql):
            if batch.height or types is None:
                frame = batch if types is None else _cast(batch, types)
                types = list(frame.dtypes)
                if frame.height:
                    yield frame
    except (SpectralIrtError, GeneratorExit, KeyboardInterrupt):
        raise
    except ImportError as error:
        raise needed(error) from None
    except Exception as error:
        raise DatabaseError(
            f"{where}: the query failed: {first_line(error)}. Check it in the database's own program."
        ) from None
    finally:
        with contextlib.suppress(Exception):  # a connection that was lost has nothing left
            connection.close()


def _asked(connection: Any, sql: str) -> Iterator[pl.DataFrame]:
    rows = PIECE_ROWS // _EVERY_COLUMN
    if type(connection).__module__.partition(".")[0].lstrip("_") == "duckdb":
        reader = connection.sql(sql).to_arrow_reader(rows)
    else:
        cursor = connection.cursor()
        cursor.execute(sql)
        reader = cursor.fetch_record_batch()
    names = list(reader.schema.names)
    check_names_differ(NAME, names)
    yield _frame(reader.schema.empty_table())
    waiting: list[pl.DataFrame] = []
    for batch in reader:  # of any size: Postgres gives some thousands of rows at a time
        waiting.append(_frame(batch))
        if sum(each.height for each in waiting) >= rows:
            yield pl.concat(waiting, how="vertical_relaxed")
            waiting = []
    if waiting:
        yield pl.concat(waiting, how="vertical_relaxed")


def _frame(batch: Any) -> pl.DataFrame:
    """A batch of Arrow as polars has it; what a database calls a type of its own (NUMERIC) as it is stored, as text."""
    columns = [batch.column(k) for k in range(batch.num_columns)]
    plain = [column.cast(_stored(column.type)) if _stored(column.type) is not None else column for column in columns]
    series = [pl.Series(name, column) for name, column in zip(batch.schema.names, plain, strict=True)]
    return pl.DataFrame(series)


def _stored(dtype: Any) -> Any:
    return getattr(dtype, "storage_type", None)


def _cast(batch: pl.DataFrame, types: list[Any]) -> pl.DataFrame:
    """Types of later batches are those of the first."""
    if batch.dtypes == types:
        return batch
    return batch.cast(dict(zip(batch.columns, types, strict=True)))
