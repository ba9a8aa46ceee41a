"""What the commands write: which files a directory of results holds, and how each kind of file looks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.cli.progress import Progress
from spectral_irt.errors import OptionError, OutputError, listed
from spectral_irt.responses.reading.spreadsheet import guarded

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.bank import Bank

Columns = Mapping[str, NDArray[Any]]

PROGRAM = "spectral-irt"
RECORD = "fit.json"
TABLES = ("items", "persons", "item_fit", "dif", "ranking")
RESULTS = (*(f"{table}.{kind}" for table in TABLES for kind in ("csv", "parquet")), RECORD)  # what a fit may write
FIRST_RESULTS = ("items.csv", "items.parquet", RECORD)  # of records that do not say what was written with them

CSV_ROWS = 100_000  # rows turned into text at a time: some hundred bytes each


# -------------------------------------------------------------------------------- a directory of results


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
    ours = _written_with(directory / record)
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


def _written_with(record: Path) -> set[str]:
    """Names of the files that a run wrote with this record; none if it is not one of ours."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(found, dict) or found.get("program") != PROGRAM:
        return set()
    names = found.get("outputs", FIRST_RESULTS)
    return {record.name, *(str(name) for name in names if isinstance(names, list | tuple))}


def refuse_bank_place(folder: Path) -> None:
    """An error before the work when no bank can be saved in this place."""
    from spectral_irt.bank.store import MANIFEST

    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{str(folder)!r} is a file, not a folder; choose another place. Nothing was written.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        present = listed(sorted(path.name for path in folder.iterdir()))
        raise OutputError(
            f"{str(folder)!r} is a folder with other files ({present}), not a bank; choose another place. Nothing was "
            "written."
        )


def save_bank(bank: Bank, folder: Path) -> None:
    """Write the bank there; who has to wait for another writer is told so."""
    with Progress() as progress:
        bank.save(folder, tell=progress.say)


def refuse_salt_place(salt: Path | None, *banks: Path | None) -> None:
    """An error when the salt would be in a bank: who gets the bank must not get the salt."""
    for bank in banks:
        if salt is not None and bank is not None and salt.resolve().is_relative_to(bank.resolve()):
            raise OptionError(
                f"the salt file {str(salt)!r} lies in the bank {str(bank)!r}, and would be given away with it; keep it "
                "elsewhere."
            )


# --------------------------------------------------------------------------------------- kinds of files


def write_csv(path: Path, columns: Columns) -> None:
    """A table as CSV: UTF-8, every digit, nothing in a cell without a number."""
    n_rows = len(next(iter(columns.values())))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(columns) + "\n")
        for start in range(0, n_rows, CSV_ROWS):
            cells = [_cells(values[start : start + CSV_ROWS]) for values in columns.values()]
            file.writelines(",".join(row) + "\n" for row in zip(*cells, strict=True))


def _cells(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind == "f":
        return ["" if math.isnan(x) else repr(x) for x in values.tolist()]
    if values.dtype.kind == "b":
        return ["true" if x else "false" for x in values.tolist()]
    if values.dtype.kind in "iu":
        return [str(x) for x in values.tolist()]
    return [_quoted(guarded(str(x))) for x in values.tolist()]


def _quoted(text: str) -> str:
    """Text as a CSV cell. An empty text is quoted, so that it is not taken for a missing one."""
    if not text or text != text.strip() or any(c in text for c in ',;\t"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def write_parquet(path: Path, columns: Columns) -> None:
    """A table as Parquet; NaN becomes null."""
    frame_of(columns).write_parquet(path)


def frame_of(columns: Columns) -> pl.DataFrame:
    """A table as a polars frame; labels of mixed kinds become text, NaN becomes null."""
    import polars as pl

    series = []
    for name, values in columns.items():
        if values.dtype == object:
            cells = values.tolist()
            kinds = {type(cell) for cell in cells}
            series.append(pl.Series(name, cells if len(kinds) < 2 else [str(cell) for cell in cells]))
        else:
            series.append(pl.Series(name, values, nan_to_null=True))
    return pl.DataFrame(series)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """A record as JSON for people and programs: indented, UTF-8, null where there is no number."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        json.dump(plain(record), file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")


def plain(value: Any) -> Any:
    """A value in JSON's own types."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)
