"""Databases: their addresses, opening them for reading, and what they say when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from spectral_irt.errors import DatabaseError, printable

_ENDINGS = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb", ".ddb": "duckdb"}


def kind_of(database: str) -> tuple[str, str]:
    """Which kind of database an address means ("sqlite", "duckdb", "postgresql", or what it says), and its file.

    >>> kind_of("sqlite:a%20b.db"), kind_of("answers.duckdb"), kind_of("postgres://ann@host/tests")[0]
    (('sqlite', 'a b.db'), ('duckdb', 'answers.duckdb'), 'postgresql')
    """
    scheme = urlsplit(database).scheme.lower() if ":" in database else ""
    path = unquote(database.split(":", 1)[-1]).removeprefix("//")
    scheme = scheme or _ENDINGS.get(Path(path).suffix.lower(), "")
    return "postgresql" if scheme == "postgres" else scheme, path


def opened(database: str, **config: Any) -> Any:
    """A connection to a database that is read, of its own driver; `config` is for DuckDB."""
    kind, path = kind_of(database)
    if kind != "postgresql" and not Path(path).is_file():  # drivers would make an empty database of a misspelled name
        raise DatabaseError(f"there is no database {path!r}; check the name and the directory.")
    try:
        if kind == "sqlite":
            import adbc_driver_sqlite.dbapi as sqlite

            return sqlite.connect(f"file:{path}?mode=ro")
        if kind == "duckdb":
            import duckdb
            import pyarrow  # noqa: F401  # by which batches come

            return duckdb.connect(path, read_only=True, config=config)
        import adbc_driver_postgresql.dbapi as postgres

        return postgres.connect(database)
    except ImportError as error:
        raise needed(error) from None
    except Exception as error:
        where = without_password(database)
        if kind == "postgresql":
            remedy = "Check host, port, database and person, and that the server runs"
        else:
            remedy = "Check that it is such a database, and that no other program has it open for writing"
        raise DatabaseError(f"{where}: cannot connect: {first_line(error)}. {remedy}.") from None


def first_line(error: Exception) -> str:
    """What a database said, without its own prefixes and details."""
    text = str(error).strip()
    found = re.search(r"ERROR:\s*(.+)", text) or re.search(r"FATAL:\s*(.+)", text)
    text = found.group(1) if found else text
    for prefix in ("IO: [libpq] ", "Failed to connect: "):
        text = text.removeprefix(prefix)
    return printable(text.splitlines()[0] if text else type(error).__name__)[:300].rstrip(".! ")


def without_password(uri: str) -> str:
    """The address as it may be shown.

    >>> without_password("postgresql://ann:secret@host:5432/tests?password=secret&sslmode=require")
    'postgresql://ann@host:5432/tests'
    """
    parts = urlsplit(uri)
    person, at, host = parts.netloc.rpartition("@")
    return (
        f"{parts.scheme}://{person.partition(':')[0]}{at}{host}{parts.path}"
        if parts.netloc or at
        else uri.split("?")[0]
    )


def needed(import_error: ImportError) -> DatabaseError:
    """What to install."""
    return DatabaseError(
        f"this needs a package that is not there ({import_error.name}); install it with "
        'pip install "spectral-irt[database]".'
    )
