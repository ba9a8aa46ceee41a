"""A connection that everything is asked over, in one transaction that is never committed.

Nothing but temporary tables is created, and the end of the transaction takes them away, whatever happened.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from numpy.typing import NDArray

from spectral_irt.errors import DatabaseError, OptionError, printable
from spectral_irt.responses.addresses import without_password

WORK_MEMORY = "256MB"  # of each sort or hash table in Postgres, whose 4 MB by default send every sum to the disk

SCHEMES = "duckdb:FILE, or postgresql://USER@HOST/DATABASE"


class Connection(ABC):
    """A database to ask: `execute`, `fetch` and `load`, between `begin` and `close`."""

    dialect: ClassVar[str]

    def __init__(self, where: str) -> None:
        self.where = where
        self.doing = "connect"

    @abstractmethod
    def begin(self) -> None:
        """Start the transaction."""

    @abstractmethod
    def close(self) -> None:
        """End the transaction, with all that was created in it."""

    @abstractmethod
    def _execute(self, sql: str) -> Any: ...

    @abstractmethod
    def _arrow(self, sql: str) -> Any: ...

    @abstractmethod
    def _load(self, name: str, table: Any) -> None: ...

    @abstractmethod
    def _alive(self) -> bool: ...

    def recover(self) -> None:  # noqa: B027  # most databases need nothing
        """Be ready for the next question after one that failed, before the transaction that counts has begun."""

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


def first_line(error: Exception) -> str:
    """What a database said, without its own prefixes and details."""
    text = str(error).strip()
    found = re.search(r"ERROR:\s*(.+)", text) or re.search(r"FATAL:\s*(.+)", text)
    text = found.group(1) if found else text
    return printable(text.splitlines()[0] if text else type(error).__name__).rstrip(".! ")


# ------------------------------------------------------------------------------------------------ DuckDB


def is_duckdb(path: Path) -> bool:
    """Whether a file has DuckDB's mark, or may have one that we are not allowed to see."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return True


class DuckDB(Connection):
    """A file of DuckDB, opened for reading only; or a connection of somebody else's, beside which we work."""

    dialect = "duckdb"

    def __init__(self, database: Any, where: str, threads: int | None = None) -> None:
        super().__init__(where)
        import duckdb

        self.spill: str | None = None
        if not isinstance(database, str):
            self.cursor = database.cursor()  # a transaction and temporary tables of its own
            return
        if not Path(database).is_file():
            raise DatabaseError(f"{where}: there is no such file.")
        if not is_duckdb(Path(database)):
            raise DatabaseError(
                f"{where} is not a file of DuckDB. Name one; files of answers are read by themselves, without "
                "a database."
            )
        self.spill = tempfile.mkdtemp(prefix="spectral-irt-")  # beside a file that we may only read is no room
        settings: dict[str, Any] = {"temp_directory": self.spill} | ({"threads": threads} if threads else {})
        try:
            self.cursor = duckdb.connect(database, read_only=True, config=settings)
        except Exception as error:
            shutil.rmtree(self.spill, ignore_errors=True)
            raise DatabaseError(
                f"{where}: DuckDB cannot open it: {first_line(error)}. Check that it is a DuckDB file, and that no "
                "other program has it open for writing."
            ) from error

    def begin(self) -> None:
        self.execute("BEGIN TRANSACTION")

    def close(self) -> None:
        try:
            if self._alive():
                self.cursor.execute("ROLLBACK")
            self.cursor.close()
        except Exception:  # what is closed already has nothing left
            pass
        finally:
            if self.spill:
                shutil.rmtree(self.spill, ignore_errors=True)

    def _execute(self, sql: str) -> Any:
        return self.cursor.execute(sql).fetchall()

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
        import adbc_driver_postgresql.dbapi as adbc

        try:
            self.connection = adbc.connect(uri)
            self.cursor = self.connection.cursor()
        except Exception as error:
            said = first_line(error).removeprefix("IO: [libpq] ").removeprefix("Failed to connect: ")
            raise DatabaseError(
                f"{where}: cannot connect: {said}. Check host, port, database and user, and that the server runs."
            ) from error

    def begin(self) -> None:
        self.connection.rollback()  # that of the first look at the table
        # The next transaction starts by itself; all of it sees the table as it was at its start.
        self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.execute(f"SET LOCAL work_mem = '{WORK_MEMORY}'")

    def close(self) -> None:
        try:
            self.cursor.close()
            self.connection.rollback()
            self.connection.close()
        except Exception:  # a connection that was lost has nothing left
            pass

    def recover(self) -> None:
        self.connection.rollback()

    def _execute(self, sql: str) -> Any:
        self.cursor.execute(sql)
        created = re.match(r'CREATE TEMPORARY TABLE ("[^"]+")', sql)
        if created:  # so that the planner knows how large it is
            self.cursor.execute(f"ANALYZE {created.group(1)}")

    def _arrow(self, sql: str) -> Any:
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()

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
    scheme = urlsplit(uri).scheme.lower() if ":" in uri else ""
    if scheme == "duckdb":
        path = uri.split(":", 1)[1].removeprefix("//")
        return DuckDB(path, f"DuckDB {path!r}", threads)
    if scheme in ("postgres", "postgresql"):
        return Postgres(uri, without_password(uri))
    if Path(uri).suffix in (".duckdb", ".ddb"):
        return DuckDB(uri, f"DuckDB {uri!r}", threads)
    raise OptionError(
        f"{without_password(uri)!r} is not the address of a database that can calibrate; that is {SCHEMES}."
    )
