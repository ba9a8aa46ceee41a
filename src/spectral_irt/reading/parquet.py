"""Parquet and Arrow files as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from spectral_irt.errors import ReadError
from spectral_irt.reading import frame
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import (
    DAMAGED,
    HEAD_COLUMNS,
    HEAD_ROWS,
    Pieces,
    Table,
    by_position,
    polars_errors_named,
    without_panic_messages,
)

ELSEWHERE = (
    "Check the address, and the credentials, which polars takes from the environment (AWS_ACCESS_KEY_ID and the like) "
    "or from the configuration of the store's own program."
)


# polars decodes far ahead of what is used, and no further than the end of a window. To begin one takes time, so that
# there are few, and none in a long file, where what is decoded ahead is small beside the rest; as is a piece.
WINDOWS = 16
WINDOW_ROWS = 1 << 18
LONG = 1 << 22
PIECES = 32
LEAST_ROWS = 75_000


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(6)


def open_table(file: File) -> Table:
    remedy = DAMAGED if file.uri is None else ELSEWHERE
    with polars_errors_named(file.name, remedy), without_panic_messages():
        n_own = None
        if file.uri is not None:
            lazy = pl.scan_parquet(file.uri) if file.family == "parquet" else pl.scan_ipc(file.uri)
        elif file.family == "parquet":
            path = file.path.absolute()
            n_own = len(pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema())
            # Folders above the file, such as year=2024, are columns of text.
            folders = {part.split("=")[0]: pl.String for part in path.parent.parts if "=" in part}
            lazy = pl.scan_parquet(path, glob=False, hive_partitioning=bool(folders), hive_schema=folders or None)
        elif _first_bytes(file.path).startswith(b"ARROW1"):
            lazy = pl.scan_ipc(file.path, glob=False)
        else:  # the stream format, which has no directory and must be read in one go
            lazy = pl.read_ipc_stream(file.path).lazy()
        schema = lazy.collect_schema()
        n_own = len(schema) if n_own is None else n_own
        if not len(schema):
            raise ReadError(f"{file.name} has no columns.")
        first = by_position(lazy.select(pl.nth(range(min(len(schema), HEAD_COLUMNS)))).head(HEAD_ROWS).collect())
        n_rows = max(int(lazy.select(pl.len()).collect().item()), 1)

    def head(column: int) -> pl.Series:
        if column < first.width:
            return first.to_series(column)
        with polars_errors_named(file.name, remedy):
            return lazy.select(pl.nth(column)).head(HEAD_ROWS).collect().to_series()

    def pieces(columns: Sequence[int]) -> Pieces:
        size = min(frame.rows_in_a_piece(len(columns)), max(LEAST_ROWS, n_rows // PIECES))
        seen = 0
        with polars_errors_named(file.name, remedy):
            chosen = lazy.select(pl.nth(list(columns)))
            in_one_piece = file.uri is not None or n_rows > LONG
            window = n_rows if in_one_piece else max(WINDOW_ROWS, -(-n_rows // WINDOWS))
            for start in range(0, n_rows, window):
                for batch in chosen.slice(start, window).collect_batches(chunk_size=size, maintain_order=True):
                    seen += batch.height
                    yield by_position(batch), min(seen / n_rows, 1.0)

    added = range(n_own, len(schema))
    names = list(schema.names())
    types = list(schema.dtypes())
    return Table(file.name, names, types, head, pieces, untyped=added, n_added=len(added))
