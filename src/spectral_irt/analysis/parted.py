"""Tables of results as files; that of people on a cluster as a folder of parts, which its workers write."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from spectral_irt.engine.base import Engine
from spectral_irt.errors import ClusterError
from spectral_irt.tables import AnyColumns, pieces, write_csv, write_parquet

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.engine.dask import DaskEngine

PEOPLE = "persons"
AT_ONCE = 2  # parts for every thread of the workers that are on their way together: all of them may be too much


def write_result(draft: Path, target: Path, columns: AnyColumns, engine: Engine, *, parquet: bool) -> None:
    """One table of results.

    Where Parquet is wanted too and the workers of a cluster see the draft, people are parts that the workers write, and
    no CSV: its draft is removed.
    """
    if target.stem == PEOPLE and parquet and engine.remote and cast("DaskEngine", engine).sees(draft):
        draft.unlink()
        if target.suffix != ".csv":
            _write_parts(draft, columns, cast("DaskEngine", engine))
    else:
        (write_csv if target.suffix == ".csv" else write_parquet)(draft, columns)


def _write_parts(folder: Path, columns: AnyColumns, engine: DaskEngine) -> None:
    folder.mkdir()
    parts = pieces(columns)
    paths: list[Path] = []
    while frames := list(itertools.islice(parts, AT_ONCE * engine.threads)):
        new = [folder.absolute() / f"part-{len(paths) + k:05d}.parquet" for k in range(len(frames))]
        engine.gather(engine.submit_all(write_part, frames, list(map(str, new))))
        paths += new
    for path in folder.absolute().iterdir():  # what a worker left that died
        if path not in paths:
            path.unlink()


def write_part(frame: pl.DataFrame, path: str) -> None:
    """One part, by a worker: complete or not at all, and the same when it is written once more."""
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise ClusterError(
            f"a worker on {socket.gethostname()} does not see {os.path.dirname(folder)!r}, where the people are to be "
            "written. Choose a folder on the file system that all machines share."
        )
    draft = os.path.join(folder, f".{name}-{secrets.token_hex(6)}")
    try:
        frame.write_parquet(draft)
        os.replace(draft, path)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def read_parts(folder: Path) -> Any:
    """The frame of a folder of parts, in their order."""
    import polars as pl

    return pl.read_parquet(sorted(folder.glob("part-*.parquet")))
