"""Tables given as text or as frames, written to a file and read; and what is said when they cannot be."""

import gzip
import io
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from spectral_irt.data import Finding, Responses
from spectral_irt.errors import SpectralIrtError
from spectral_irt.reading import read

PACKED = {".gz": gzip.compress, ".zst": lambda data: zstandard.ZstdCompressor().compress(data)}


def read_text(tmp_path: Path, text: str, name: str = "answers.csv", **options: Any) -> Responses:
    (tmp_path / name).write_text(text)
    return read(tmp_path / name, **options)


def save(frame: pl.DataFrame, path: Path) -> Path:
    """The frame as a file in the format of its name, packed where the name says so."""
    ending = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
    data = io.BytesIO()
    write = {".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson, ".csv": frame.write_csv}
    write.get(ending, frame.write_ipc)(data)
    path.write_bytes(PACKED.get(path.suffix, bytes)(data.getvalue()))
    return path


def in_sqlite(frame: pl.DataFrame, file: Path) -> dict[str, str]:
    """The frame as a table in a database, and the query that asks for it."""
    with sqlite3.connect(file) as opened:
        opened.execute(f"CREATE TABLE a ({', '.join(frame.columns)})")
        opened.executemany(f"INSERT INTO a VALUES ({', '.join('?' * frame.width)})", frame.rows())
    return {"sql": "SELECT * FROM a", "database": f"sqlite:{file}"}


def complaint(*source: Any, **options: Any) -> str:
    """The sentence with which `read` refuses."""
    with pytest.raises(SpectralIrtError) as error:
        read(*source, **options)
    return str(error.value)


def notes(responses: Responses) -> dict[str, Finding]:
    return {note.code: note for note in responses.notes}
