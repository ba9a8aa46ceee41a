"""A connection that everything is asked over, in one transaction that is never committed.

Nothing but temporary tables is created, and the end of the transaction takes them away, whatever happened.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from numpy.typing import NDArray

from spectral_irt.errors import DatabaseError, OptionError
from spectral_irt.reading.sql import first_line, kind_of, opened, without_password

WORK_MEMORY = "256MB"  # of each sort or hash table in Postgres, whose 4 MB by default send every sum to the disk

SCHEMES = "duckdb:FILE, or postgresql://USER@HOST/DATABASE"


class Connection:
    """A database to ask: `execute`, `fetch` and `load`, between `begin` and `close`, which ends what was created."""

    dialect: ClassVar[str]
    cursor: Any

    def __init__(self, where: str) -> None:
        self.where = where
        self.doing = "connect"

    def begin(self) -> None:
        """Start the transaction that counts; what was asked before it, a first look at the table, is over."""
        raise NotImplementedError

    def close(self) -> None:
        """End the transaction, with all that was created in it."""
        raise NotImplementedError

    def recover(self) -> None:
        """Be ready for the next question after one that failed, before the transaction that counts has begun."""

    def _execute(self, sql: str) -> None:
        self.cursor.execute(sql)

    def _arrow(self, sql: str) -> Any:
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()

    def _load(self, name: str, table: Any) -> None:
        raise NotImplementedError

    def _alive(self) -> bool:
        raise NotImplementedError

    def execute(self, sql: str) -> None:
        """Do it; nothing comes back."""
        with self._explained():
            self._execute(sql)

    def fetch(self, sql: str) -> dict[str, NDArray[Any]]:
        """What the query gives, by columns."""
        with self._explained():
            table = self._arrow(sql)
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def types(self, sql: str) -> dict[str, Any]:
        """The columns of a query, and their Arrow types."""
        with self._explained():
            schema = self._arrow(sql).schema
        return dict(zip(schema.names, schema.types, strict=True))

    def load(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """A temporary table of these columns, in the place of one of the same name."""
        import pyarrow as pa

        with self._explained():
            self._load(name, pa.table(dict(columns)))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the database in our words: what was being done, and what it said."""
        try:
            yield
        except Exception as error:
            raise self.explanation(error) from error

    def explanation(self, error: Exception) -> DatabaseError:
        said = first_line(error)
        if "temporary" in said and "permission" in said:
            remedy = "The calibration keeps its sums in temporary tables: ask for the right to create them (TEMPORARY)."
        elif "permission" in said.lower():
            remedy = "Ask for the right to read the table (SELECT)."
        elif not self._alive():
            return DatabaseError(
                f"{self.where}: the connection was lost while it was asked to {self.doing} ({said}). Temporary tables "
                "vanished with it, and nothing was written; run again."
            )
        else:
            remedy = "Nothing was written, and nothing is left in the database."
        return DatabaseError(f"{self.where}: it could not {self.doing}: {said}. {remedy}")


# ------------------------------------------------------------------------------------------------ DuckDB


class DuckDB(Connection):
    """A file of DuckDB, opened for reading only; or a connection of somebody else's, beside which we work."""

    dialect = "duckdb"

    def __init__(self, database: Any, where: str, threads: int | None = None) -> None:
        super().__init__(where)
        self.spill: str | None = None
        if not isinstance(database, str):
            self.cursor = database.cursor()  # a transaction and temporary tables of its own
            return
        mark = b"DUCK"  # of a file that may not be read, DuckDB says so
        with suppress(OSError), open(database, "rb") as file:
            mark = file.read(12)[8:]
        if mark != b"DUCK":
            raise DatabaseError(
                f"{where} is not a file of DuckDB. Name one; files of answers are read by themselves, without "
                "a database."
            )
        self.spill = tempfile.mkdtemp(prefix="spectral-irt-")  # beside a file that we may only read is no room
        settings: dict[str, Any] = {"temp_directory": self.spill} | ({"threads": threads} if threads else {})
        try:
            self.cursor = opened(f"duckdb:{quote(database)}", **settings)
        except DatabaseError:
            shutil.rmtree(self.spill, ignore_errors=True)
            raise

    def begin(self) -> None:
        self.execute("BEGIN TRANSACTION")

    def close(self) -> None:
        with suppress(Exception):  # what is closed already has nothing left
            if self._alive():
                self.cursor.execute("ROLLBACK")
            self.cursor.close()
        if self.spill:
            shutil.rmtree(self.spill, ignore_errors=True)

    def _arrow(self, sql: str) -> Any:
        return self.cursor.sql(sql).to_arrow_table()

    def _load(self, name: str, table: Any) -> None:
        self.cursor.register("spectral_irt_loading", table)
        try:
            self.cursor.execute(f'CREATE OR REPLACE TEMPORARY TABLE "{name}" AS SELECT * FROM spectral_irt_loading')
        finally:
            self.cursor.unregister("spectral_irt_loading")

    def _alive(self) -> bool:
        try:
            self.cursor.execute("SELECT 1").fetchall()
        except Exception as error:
            return "transaction" in str(error).lower()  # one that failed waits for its end
        return True


# ---------------------------------------------------------------------------------------------- Postgres


class Postgres(Connection):
    """A Postgres server, over ADBC."""

    dialect = "postgres"

    def __init__(self, uri: str, where: str) -> None:
        super().__init__(where)
        self.connection = opened(uri)
        self.cursor = self.connection.cursor()

    def begin(self) -> None:
        self.connection.rollback()
        # The next transaction starts by itself; all of it sees the table as it was at its start.
        self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.execute(f"SET LOCAL work_mem = '{WORK_MEMORY}'")

    def close(self) -> None:
        with suppress(Exception):  # a connection that was lost has nothing left
            self.cursor.close()
            self.connection.rollback()
            self.connection.close()

    def recover(self) -> None:
        self.connection.rollback()

    def _execute(self, sql: str) -> None:
        self.cursor.execute(sql)
        if created := re.match(r'CREATE TEMPORARY TABLE ("[^"]+")', sql):  # the planner is to know how large it is
            self.cursor.execute(f"ANALYZE {created[1]}")

    def _load(self, name: str, table: Any) -> None:
        self.cursor.execute(f'DROP TABLE IF EXISTS pg_temp."{name}"')
        self.cursor.adbc_ingest(name, table, mode="create", temporary=True)
        self.cursor.execute(f'ANALYZE "{name}"')

    def _alive(self) -> bool:
        try:
            self.connection.rollback()
            self.cursor.execute("SELECT 1")
            self.cursor.fetchall()
        except Exception:
            return False
        return True


# ---------------------------------------------------------------------------------------------- opening


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
        return Postgres(uri, without_password(uri))
    raise OptionError(
        f"{without_password(uri)!r} is not the address of a database that can calibrate; that is {SCHEMES}."
    )
