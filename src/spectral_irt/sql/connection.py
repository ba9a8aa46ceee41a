"""A connection that everything is asked over, in one transaction that is never committed: nothing but temporary tables
is created, and the end of the transaction takes them away, whatever happened."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from spectral_irt.errors import DatabaseError, OptionError
from spectral_irt.reading.sql import first_line, frame_of_batch, kind_of, open_database
from spectral_irt.text import without_secrets

WORK_MEMORY = "256MB"  # of each sort or hash table in Postgres, whose 4 MB by default send every sum to the disk
SCHEMES = "duckdb:FILE, or postgresql://USER@HOST/DATABASE"
Result = TypeVar("Result")


def _with_our_errors(ask: Callable[..., Result]) -> Callable[..., Result]:
    """A question to a database, whose errors come in our words: what was being done, and what it answered."""

    @wraps(ask)
    def ask_or_explain(self: Connection, *args: Any) -> Result:
        try:
            return ask(self, *args)
        except Exception as error:
            answer = first_line(error)
            failed = f"{self.where}: it could not {self.doing}: {answer}."
            if "temporary" in answer and "permission" in answer:
                failed += " The calibration keeps its sums in temporary tables: ask for the right to create them"
                failed += " (TEMPORARY)."
            elif "permission" in answer.lower():
                failed += " Ask for the right to read the table (SELECT)."
            elif self.alive():
                failed += " Nothing was written, and nothing is left in the database."
            else:
                failed = f"{self.where}: the connection was lost while it was asked to {self.doing} ({answer})."
                failed += " Temporary tables vanished with it, and nothing was written; run again."
            raise DatabaseError(failed) from error

    return ask_or_explain


class DuckDB:
    """A file of DuckDB, opened for reading only; or a cursor of a connection that somebody else opened.

    As in `Postgres`, `begin` starts the transaction, and `close` ends what was created; `recover` makes ready for the
    next question after one that failed, `alive` tells whether the database answers."""

    dialect = "duckdb"
    doing = "connect"

    def __init__(self, database: Any, where: str, threads: int | None = None) -> None:
        self.where = where
        self.spill: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(database, str):
            # Beside a file that we may only read is no room.
            self.spill = tempfile.TemporaryDirectory(prefix="spectral-irt-")
            settings: dict[str, Any] = {"temp_directory": self.spill.name} | ({"threads": threads} if threads else {})
            self.cursor = open_database(f"duckdb:{quote(database)}", **settings)
        else:
            self.cursor = database.cursor()  # a transaction and temporary tables of its own

    def begin(self) -> None:
        self.execute("BEGIN TRANSACTION")

    def recover(self) -> None: ...

    def close(self) -> None:
        with suppress(Exception):  # what is closed already has nothing left
            if self.alive():
                self.cursor.execute("ROLLBACK")
            self.cursor.close()
        if self.spill is not None:
            self.spill.cleanup()

    def alive(self) -> bool:
        try:
            self.cursor.execute("SELECT 1").fetchall()
        except Exception as error:
            return "transaction" in str(error).lower()  # one that failed waits for its end
        return True

    @_with_our_errors
    def execute(self, sql: str) -> None:
        self.cursor.execute(sql)

    @_with_our_errors
    def fetch(self, sql: str) -> pl.DataFrame:
        """What the query gives."""
        return frame_of_batch(self.cursor.sql(sql).to_arrow_table())

    def numeric_columns(self, sql: str) -> set[str]:
        """Columns whose numbers would come as text: none, DECIMAL comes as numbers."""
        return set()

    @_with_our_errors
    def load(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """A temporary table of these columns, in the place of one of the same name."""
        self.cursor.register("spectral_irt_loading", pa.table(dict(columns)))  # for this cursor alone
        self.cursor.execute(f'CREATE OR REPLACE TEMPORARY TABLE "{name}" AS SELECT * FROM spectral_irt_loading')


class Postgres:
    """A Postgres server, over ADBC."""

    dialect = "postgres"
    doing = "connect"

    def __init__(self, uri: str) -> None:
        self.where = without_secrets(uri)
        self.connection = open_database(uri)
        self.cursor = self.connection.cursor()
        self.recover = self.connection.rollback

    def begin(self) -> None:
        self.recover()
        # The next transaction starts by itself; all of it sees the table as it was at its start.
        self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.execute(f"SET LOCAL work_mem = '{WORK_MEMORY}'")

    def close(self) -> None:
        with suppress(Exception):  # a connection that was lost has nothing left
            self.cursor.close()
            self.connection.rollback()
            self.connection.close()

    def alive(self) -> bool:
        try:
            self.recover()
            self.cursor.execute("SELECT 1")
            self.cursor.fetchall()
        except Exception:
            return False
        return True

    @_with_our_errors
    def fetch(self, sql: str) -> pl.DataFrame:
        self.cursor.execute(sql)
        return frame_of_batch(self.cursor.fetch_arrow_table())

    @_with_our_errors
    def numeric_columns(self, sql: str) -> set[str]:
        """The columns of a query that are NUMERIC: numbers, which come as text so that they keep all their digits."""
        self.cursor.execute(sql)
        schema = self.cursor.fetch_arrow_table().schema
        return {column.name for column in schema if getattr(column.type, "type_name", None) == "numeric"}

    @_with_our_errors
    def execute(self, sql: str) -> None:
        self.cursor.execute(sql)
        if created := re.match(r'CREATE TEMPORARY TABLE ("[^"]+")', sql):  # the planner is to know how large it is
            self.cursor.execute(f"ANALYZE {created[1]}")

    @_with_our_errors
    def load(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        self.cursor.execute(f'DROP TABLE IF EXISTS pg_temp."{name}"')
        self.cursor.adbc_ingest(name, pa.table(dict(columns)), mode="create", temporary=True)
        self.cursor.execute(f'ANALYZE "{name}"')


Connection = DuckDB | Postgres


def connect(database: Any, threads: int | None = None) -> Connection:
    """The database behind an address such as `duckdb:FILE` or `postgresql://...`, or behind a connection of DuckDB."""
    if not isinstance(database, str | Path):
        if type(database).__module__.partition(".")[0].lstrip("_") == "duckdb":
            return DuckDB(database, "the DuckDB connection")
        raise OptionError(
            f"expected the address of a database ({SCHEMES}) or a DuckDB connection, not {type(database).__name__}."
        )
    uri = str(database)
    kind, path = kind_of(uri)
    if kind == "duckdb":
        return DuckDB(path, f"DuckDB {path!r}", threads)
    if kind == "postgresql":
        return Postgres(uri)
    named = without_secrets(uri)
    raise OptionError(f"{named!r} is not the address of a database that can calibrate; that is {SCHEMES}.")
