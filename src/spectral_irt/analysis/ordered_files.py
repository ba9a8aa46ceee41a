"""The files of an analysis of ordered answers, each with what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spectral_irt.analysis.folder import RECORD, result_paths
from spectral_irt.analysis.parted import write_result
from spectral_irt.engine.base import Engine
from spectral_irt.tables import Columns, write_json
from spectral_irt.xlsx import is_workbook, refuse_foreign, write_workbook

Writers = dict[Path, Callable[[Path], object]]


def ordered_places(place: Path, names: Sequence[str], *, parquet: bool = False) -> tuple[list[Path], list[Path]]:
    """Where tables of these names and the record go, and what of an earlier run that makes stale.

    An error when a file is in the way that we did not write.
    """
    if is_workbook(place):
        refuse_foreign(place)
        return [place], []
    return result_paths(place, names, parquet=parquet)


def ordered_files(
    place: Path, tables: Mapping[str, Columns], record: Mapping[str, Any], engine: Engine, *, parquet: bool = False
) -> tuple[Writers, list[Path]]:
    """What writes each of the files, and which files of an earlier run they make stale."""
    targets, stale = ordered_places(place, list(tables), parquet=parquet)
    if is_workbook(place):
        return {place: lambda draft: write_workbook(draft, tables, {**record, "outputs": [place.name]})}, stale
    outputs = [path.name for path in targets]
    writers: Writers = {}
    for target in targets:
        if target.name == RECORD:
            writers[target] = lambda draft: write_json(draft, {**record, "outputs": outputs})
        else:
            writers[target] = partial(_write, target, tables[target.stem], engine, parquet, outputs)
    return writers, stale


def _write(target: Path, columns: Columns, engine: Engine, parquet: bool, outputs: list[str], draft: Path) -> None:
    write_result(draft, target, columns, engine, parquet=parquet)
    if not draft.exists():
        outputs.remove(target.name)
