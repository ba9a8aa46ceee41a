"""A connection that everything is asked over, in one transaction that is never committed: nothing but temporary tables
is created, and the end of the transaction takes them away, whatever happened."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import DatabaseError, OptionError
from spectral_irt.reading.sql import first_line, frame_of_batch, kind_of, opened, without_password

WORK_MEMORY = "256MB"  # of each sort or hash table in Postgres, whose 4 MB by default send every sum to the disk
SCHEMES = "duckdb:FILE, or postgresql://USER@HOST/DATABASE"


class Connection:
    """A database to ask, between `begin`, which starts the transaction, and `close`, which ends what was created;
    `recover` makes ready for the next question after one that failed, `alive` tells whether the database answers."""

    dialect: ClassVar[str]
    cursor: Any
    begin: Any
    close: Any
    alive: Any
    _execute: Any
    _arrow: Any
    _load: Any

    def __init__(self, where: str) -> None:
        self.where = where
        self.doing = "connect"

    def recover(self) -> None: ...

    def execute(self, sql: str) -> None:
        with self._explained():
            self._execute(sql)

    def fetch(self, sql: str) -> pl.DataFrame:
        """What the query gives."""
        with self._explained():
            return frame_of_batch(self._arrow(sql))

    def load(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """A temporary table of these columns, in the place of one of the same name."""
        import pyarrow as pa

        with self._explained():
            self._load(name, pa.table(dict(columns)))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the database in our words: what was being done, and what it answered."""
        try:
            yield
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


class DuckDB(Connection):
    """A file of DuckDB, opened for reading only; or a cursor of a connection that somebody else opened."""

    dialect = "duckdb"

    def __init__(self, database: Any, where: str, threads: int | None = None) -> None:
        super().__init__(where)
        self.spill: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(database, str):
            # Beside a file that we may only read is no room.
            self.spill = tempfile.TemporaryDirectory(prefix="spectral-irt-")
            settings: dict[str, Any] = {"temp_directory": self.spill.name} | ({"threads": threads} if threads else {})
            self.cursor = opened(f"duckdb:{quote(database)}", **settings)
        else:
            self.cursor = database.cursor()  # a transaction and temporary tables of its own
        self._execute = self.cursor.execute

    def begin(self) -> None:
        self.execute("BEGIN TRANSACTION")

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

    def _arrow(self, sql: str) -> Any:
        return self.cursor.sql(sql).to_arrow_table()

    def _load(self, name: str, table: Any) -> None:
        self.cursor.register("spectral_irt_loading", table)  # for this cursor alone
        self.cursor.execute(f'CREATE OR REPLACE TEMPORARY TABLE "{name}" AS SELECT * FROM spectral_irt_loading')


class Postgres(Connection):
    """A Postgres server, over ADBC."""

    dialect = "postgres"

    def __init__(self, uri: str) -> None:
        super().__init__(without_password(uri))
        self.connection = opened(uri)
        self.cursor = self.connection.cursor()
        self.recover = self.connection.rollback  # type: ignore[method-assign]

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

    def _arrow(self, sql: str) -> Any:
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()

    def _execute(self, sql: str) -> None:
        self.cursor.execute(sql)
        if created := re.match(r'CREATE TEMPORARY TABLE ("[^"]+")', sql):  # the planner is to know how large it is
            self.cursor.execute(f"ANALYZE {created[1]}")

    def _load(self, name: str, table: Any) -> None:
        self.cursor.execute(f'DROP TABLE IF EXISTS pg_temp."{name}"')
        self.cursor.adbc_ingest(name, table, mode="create", temporary=True)
        self.cursor.execute(f'ANALYZE "{name}"')


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
    named = without_password(uri)
    raise OptionError(f"{named!r} is not the address of a database that can calibrate; that is {SCHEMES}.")
