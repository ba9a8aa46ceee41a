"""Which harness wrote a file, and the file as a table of models, samples and metrics."""

from __future__ import annotations

import fnmatch
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import polars as pl

from spectral_irt.responses.reading.files import File
from spectral_irt.responses.reading.harness.log import Log
from spectral_irt.responses.reading.tabular import Table, table_of_frame

HARNESSES = ("lm_eval", "every_eval_ever", "inspect_ai", "helm", "lighteval")  # modules of this package
PATTERNS = (  # how logs are named, to find them in a folder
    "samples_*.jsonl",
    "*_samples.jsonl",
    "*.eval",
    "per_instance_stats.json",
    "details_*.parquet",
    "????-??-??T*_*.json",
)
HEAD = 1 << 16


def written_by(file: File) -> ModuleType | None:
    """The reader of the harness that wrote the file, or None."""
    if file.family not in ("json", "parquet", "eval") or file.uri is not None:
        return None
    head = _head(file)
    for name in HARNESSES:
        module = importlib.import_module(f"{__package__}.{name}")
        if module.is_ours(file.path, head):
            return module
    return None


def _head(file: File) -> bytes:
    if file.compression is not None:
        from spectral_irt.responses.reading.raw import end_of_last_line, raw_pieces

        return next((piece.data[:HEAD] for piece in raw_pieces(file, end_of_last_line, HEAD)), b"")
    with open(file.path, "rb") as opened:
        return opened.read(HEAD)


def logs_in(folder: Path) -> list[Path]:
    """Files in a folder, and in those below it, that are named like logs."""
    named = [
        Path(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in PATTERNS)
    ]
    return sorted(path for path in named if path.is_file())


def table_of_logs(file: File, logs: Sequence[Log]) -> Table:
    """Logs as a long table: model, item, and a column for each metric; `response` where it is clear which counts."""
    frames = []
    for log in logs:
        columns = {"model": pl.repeat(log.model, len(log.sample), eager=True), "item": log.items(), **log.scores}
        usual = next(iter(log.scores)) if len(log.scores) == 1 else log.usual
        if usual is not None:
            columns["response"] = log.scores[usual]
        frames.append(pl.DataFrame(columns))
    frame = pl.concat(frames, how="diagonal")
    table = table_of_frame(frame, list(frame.columns))
    return Table(file.name, table.columns, table.dtypes, table.loose, table.head, table.pieces)
