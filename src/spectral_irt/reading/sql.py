"""The result of a database query as a table, taken in batches: SQLite, DuckDB and Postgres, through ADBC and polars."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import polars as pl

from spectral_irt.errors import DatabaseError, OptionError, ReadError, SpectralIrtError
from spectral_irt.installation import install_extra
from spectral_irt.reading.frame import HEAD_ROWS, PIECE_ROWS, Pieces, Table, by_position, repeated_names
from spectral_irt.text import printable, without_secrets

NAME = "the query"
SCHEMES = "sqlite:FILE, duckdb:FILE, or postgresql://USER@HOST/DATABASE"
_ENDINGS = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb", ".ddb": "duckdb"}
_EVERY_COLUMN = 4  # about as many as a query of answers has

# A query may come from somebody else, so it can only read, and only the database that was named. DuckDB would read and
# write any file (COPY, EXPORT, ATTACH) and take variables of Python for tables; what is locked, no query unlocks.
_NOTHING_ELSE = {"enable_external_access": "false", "python_enable_replacements": "false", "lock_configuration": "true"}
# SQLite has no such switch in its driver, and runs one statement: ATTACH and VACUUM INTO would make files.
_QUERY = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/|[;(])*(?:select|with|values)\b", re.DOTALL | re.IGNORECASE)


def open_query(sql: str, database: str) -> Table:
    """What a query gives, as a table."""
    if not isinstance(sql, str) or not sql.strip():
        raise OptionError("`sql` is empty; it is a query such as SELECT person, item, response FROM answers.")
    batches: Iterator[pl.DataFrame] | None = _batches(sql, database)
    first = next(batches, None)  # type: ignore[arg-type]
    if first is None:
        raise ReadError(f"{NAME} gives no rows; check what it asks for, and that the table has rows.")
    columns = list(first.columns)

    def pieces(chosen: Sequence[int]) -> Pieces:
        nonlocal batches
        # Once what is there already, and then the rest; later the query is asked anew.
        coming = _batches(sql, database) if batches is None else itertools.chain([first], batches)
        batches = None
        for batch in coming:
            if batch.columns != columns:
                raise ReadError(f"{NAME} changed its columns while it was being read; ask again.")
            yield by_position(batch[:, list(chosen)]), 0.5  # how many there will be is not known

    return Table(NAME, columns, list(first.dtypes), lambda k: first.to_series(k).head(HEAD_ROWS), pieces)


def _batches(sql: str, database: str) -> Iterator[pl.DataFrame]:
    """The rows of the result in batches; the connection is closed at the end."""
    where = without_secrets(database)
    kind = kind_of(database)[0]
    if kind not in ("sqlite", "duckdb", "postgresql"):
        raise OptionError(f"`database` is {where!r}; the address of a database is {SCHEMES}.")
    connection = _opened_for_queries(sql, database)
    rows = PIECE_ROWS // _EVERY_COLUMN
    try:
        if kind == "duckdb":
            reader = connection.sql(sql).to_arrow_reader(rows)
        else:
            cursor = connection.cursor()
            cursor.execute(sql)
            reader = cursor.fetch_record_batch()
        if len(set(reader.schema.names)) < len(reader.schema.names):
            raise repeated_names(NAME, reader.schema.names)
        types: Any = {}  # of the first rows; those of later batches follow them
        waiting: list[pl.DataFrame] = []
        for batch in itertools.chain(reader, [None]):  # of any size: Postgres gives some thousands of rows at a time
            waiting += [] if batch is None else [frame_of_batch(batch)]
            if sum(each.height for each in waiting) >= (rows if batch is not None else 1):
                frame = pl.concat(waiting, how="vertical_relaxed").cast(types)
                types = dict(frame.schema)
                waiting = []
                yield frame
    except (SpectralIrtError, GeneratorExit, KeyboardInterrupt):
        raise
    except ImportError as error:
        raise missing_driver(error) from None
    except Exception as error:
        reason = first_line(error)
        remedy = "Check it in the database"
        if "disabled by configuration" in reason or "read-only" in reason:
            remedy = "A query reads the tables of this database, writes nothing, and reads no other file"
        raise DatabaseError(f"{where}: the query failed: {reason}. {remedy}.") from None
    finally:
        with contextlib.suppress(Exception):  # a connection that was lost has nothing left
            connection.close()


def _opened_for_queries(sql: str, database: str) -> Any:
    """A connection over which somebody's query can read the tables of the database, and do nothing else."""
    kind = kind_of(database)[0]
    if kind == "duckdb":
        return open_database(database, **_NOTHING_ELSE)
    if kind == "sqlite" and not _QUERY.match(sql):
        raise OptionError("`sql` is no query; it begins with SELECT, WITH or VALUES.")
    connection = open_database(database)
    if kind == "postgresql":
        connection.cursor().execute("SET TRANSACTION READ ONLY")  # of the transaction that the query is in, too
    return connection


def frame_of_batch(batch: Any) -> pl.DataFrame:
    """A batch of Arrow as polars has it; what a database calls a type of its own (NUMERIC) as it is stored, as text."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        stored = getattr(column.type, "storage_type", None)
        columns.append(pl.Series(name, column if stored is None else column.cast(stored)))
    return pl.DataFrame(columns)


def kind_of(database: str) -> tuple[str, str]:
    """Which kind of database an address means ("sqlite", "duckdb", "postgresql", or what it says), and its file.

    >>> kind_of("sqlite:a%20b.db"), kind_of("answers.duckdb"), kind_of("postgres://ann@host/tests")[0]
    (('sqlite', 'a b.db'), ('duckdb', 'answers.duckdb'), 'postgresql')
    """
    try:
        scheme = urlsplit(database).scheme.lower() if ":" in database else ""
    except ValueError:  # brackets that do not match: an address of no kind
        scheme = ""
    path = unquote(database.split(":", 1)[-1]).removeprefix("//")
    scheme = scheme or _ENDINGS.get(Path(path).suffix.lower(), "")
    return "postgresql" if scheme == "postgres" else scheme, path


def open_database(database: str, **config: Any) -> Any:
    """A connection to a database that is read, of its own driver; `config` is for DuckDB."""
    kind, path = kind_of(database)
    if kind != "postgresql" and not Path(path).is_file():  # drivers would make an empty database of a misspelled name
        raise DatabaseError(f"there is no database {without_secrets(path)!r}; check the name and the directory.")
    try:
        if kind == "sqlite":
            import adbc_driver_sqlite.dbapi as sqlite

            return sqlite.connect(f"file:{quote(path)}?mode=ro")  # a name may hold "?" or "#"
        if kind == "duckdb":
            import duckdb
            import pyarrow  # noqa: F401  # by which batches come

            return duckdb.connect(path, read_only=True, config=config)
        import adbc_driver_postgresql.dbapi as postgres

        return postgres.connect(database)
    except ImportError as error:
        raise missing_driver(error) from None
    except Exception as error:
        remedy = "Check that it is such a database, and that no other program has it open for writing"
        if kind == "postgresql":
            remedy = "Check host, port, database and user, and that the server runs"
        where = without_secrets(database)
        raise DatabaseError(f"{where}: cannot connect: {first_line(error)}. {remedy}.") from None


def first_line(error: Exception) -> str:
    """What a database said, without its own prefixes and details."""
    text = str(error).strip()
    match = re.search(r"ERROR:\s*(.+)", text) or re.search(r"FATAL:\s*(.+)", text)
    text = match.group(1) if match else text
    for prefix in ("IO: [libpq] ", "Failed to connect: "):
        text = text.removeprefix(prefix)
    return printable(text.splitlines()[0] if text else type(error).__name__)[:300].rstrip(".! ")


def missing_driver(import_error: ImportError) -> DatabaseError:
    how = install_extra("database")
    return DatabaseError(f"this needs a package that is not there ({import_error.name}); install it with {how}.")
