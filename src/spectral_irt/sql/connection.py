"""A connection to DuckDB that everything is asked over, in one transaction that is never committed.

Nothing but temporary tables is created, and the end of the transaction takes them away, whatever happened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import DatabaseError, OptionError
from spectral_irt.reading.sql import first_line, frame_of_batch, kind_of, opened, without_password


class Connection:
    """A file of DuckDB, opened for reading only, or a cursor of a connection that somebody else opened; between
    `begin`, which starts the transaction, and `close`."""

    def __init__(self, database: Any, threads: int | None = None) -> None:
        self.doing = "connect"
        self.spill: tempfile.TemporaryDirectory[str] | None = None
        if not isinstance(database, str | Path):
            if type(database).__module__.partition(".")[0].lstrip("_") != "duckdb":
                raise OptionError(
                    f"expected the address of a database, duckdb:FILE, or a DuckDB connection, not "
                    f"{type(database).__name__}."
                )
            self.where = "the DuckDB connection"
            self.cursor = database.cursor()  # a transaction and temporary tables of its own
            return
        kind, path = kind_of(str(database))
        self.where = f"DuckDB {path!r}"
        if kind != "duckdb":
            shown = without_password(str(database))
            raise OptionError(
                f"{shown!r} is not the address of a database that can calibrate; that is duckdb:FILE. Read others with "
                "`sql=`."
            )
        self.spill = tempfile.TemporaryDirectory(prefix="spectral-irt-")  # beside a file that we only read is no room
        settings: dict[str, Any] = {"temp_directory": self.spill.name} | ({"threads": threads} if threads else {})
        self.cursor = opened(f"duckdb:{quote(path)}", **settings)

    def begin(self) -> None:
        self.execute("BEGIN TRANSACTION")

    def close(self) -> None:
        with suppress(Exception):  # what is closed already has nothing left
            if self._alive():
                self.cursor.execute("ROLLBACK")
            self.cursor.close()
        if self.spill is not None:
            self.spill.cleanup()

    def execute(self, sql: str) -> None:
        with self._explained():
            self.cursor.execute(sql)

    def fetch(self, sql: str) -> pl.DataFrame:
        with self._explained():
            return frame_of_batch(self.cursor.sql(sql).to_arrow_table())

    def load(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """A temporary table of these columns, in the place of one of the same name."""
        import pyarrow as pa

        with self._explained():
            self.cursor.register("spectral_irt_loading", pa.table(dict(columns)))
            self.cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} AS SELECT * FROM spectral_irt_loading")
            self.cursor.unregister("spectral_irt_loading")

    def _alive(self) -> bool:
        try:
            self.cursor.execute("SELECT 1").fetchall()
        except Exception as error:
            return "transaction" in str(error).lower()  # one that failed waits for its end
        return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the database in our words: what was being done, and what it answered."""
        try:
            yield
        except Exception as error:
            answer = first_line(error)
            failed = (
                f"{self.where}: it could not {self.doing}: {answer}. Nothing was written, and nothing is left in it."
            )
            if not self._alive():
                failed = f"{self.where}: the connection was lost while it was asked to {self.doing} ({answer})."
                failed += " Temporary tables vanished with it, and nothing was written; run again."
            raise DatabaseError(failed) from error
