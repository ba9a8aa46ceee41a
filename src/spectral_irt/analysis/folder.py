"""A folder of results: which files it holds, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spectral_irt.analysis.parted import PEOPLE, write_result
from spectral_irt.errors import OptionError, OutputError, listed
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.tables import write_json
from spectral_irt.xlsx import is_workbook, refuse_foreign, write_workbook

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.analysis.parts import Parts

PROGRAM = "spectral-irt"
RECORD = "fit.json"
OF_PEOPLE = ("scores", "forms", "unexpected")  # written with persons
TABLES = (
    "items",
    "persons",
    *OF_PEOPLE,
    "groups",
    "cuts",
    "item_fit",
    "item_analysis",
    "distractors",
    "dif",
    "ranking",
)
ORDERED = ("thresholds", "dif_thresholds", "curves")  # of ordered answers
# What a fit may write.
RESULTS = (*(f"{table}.{kind}" for table in (*TABLES, *ORDERED) for kind in ("csv", "parquet")), RECORD)
FIRST_RESULTS = ("items.csv", "items.parquet", RECORD)  # of records that do not say what was written with them


def write_results(study: Analysis, folder: Path, parts: Parts, *, parquet: bool = False) -> list[Path]:
    """The tables of an analysis and its record, complete or not at all; their paths.

    A folder that is called "results.xlsx" is a workbook.
    """
    tables = study.tables(parts)
    if is_workbook(folder):
        if parquet:
            raise OptionError("`parquet=True` writes files to a folder, and this is a workbook; name a folder instead.")
        refuse_foreign(folder)
        with all_or_nothing([folder]) as (draft,), naming(folder):
            write_workbook(draft, tables, {**study.record(parts), "outputs": [folder.name]})
        return [folder]
    targets, stale = result_paths(folder, list(tables), parquet=parquet)
    with all_or_nothing(targets, stale=stale, parted=may_be_parted(folder)) as drafts:
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                if target.name == RECORD:
                    done = [path for path, place in zip(targets, drafts, strict=True) if place.exists()]
                    write_json(draft, {**study.record(parts), "outputs": [path.name for path in done]})
                else:
                    write_result(draft, target, tables[target.stem], study.responses.engine, parquet=parquet)
    return done


def may_be_parted(folder: Path) -> list[Path]:
    """Results that may be folders of parts."""
    return [folder / f"{PEOPLE}.parquet"]


def result_paths(
    directory: Path,
    tables: Sequence[str],
    *,
    parquet: bool,
    record: str = RECORD,
) -> tuple[list[Path], list[Path]]:
    """Where these results go, the record last, and which files of an earlier run they make stale.

    Results of an earlier run are replaced. A file of the same name that we did not write is somebody's data: an error.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{str(directory)!r} is a file, not a directory; choose another place. Nothing was written.")
    ours = written_with(directory / record)
    possible = (*(name for name in RESULTS if name != RECORD), record)
    present = [directory / name for name in possible if (directory / name).exists()]
    foreign = [path.name for path in present if path.name not in ours]
    if foreign:
        raise OutputError(
            f"{str(directory)!r} holds {listed(foreign)}, which no run of {PROGRAM} wrote there with {record}; choose "
            "another directory, or move it away. Nothing was written."
        )
    kinds = ("csv", "parquet") if parquet else ("csv",)
    targets = [directory / f"{table}.{kind}" for table in tables for kind in kinds] + [directory / record]
    return targets, [path for path in present if path not in targets]


def written_with(record: Path) -> set[str]:
    """Names of the files that a run wrote with this record; none if it is not one of ours."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(found, dict) or found.get("program") != PROGRAM:
        return set()
    names = found.get("outputs", FIRST_RESULTS)
    return {record.name, *(str(name) for name in names if isinstance(names, list | tuple))}
