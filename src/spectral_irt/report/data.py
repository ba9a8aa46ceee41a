"""What a report is written from: a record and tables, of an analysis or of a folder that a fit wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.folder import PROGRAM, RECORD, TABLES, read_parts
from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import ReadError, listed
from spectral_irt.files import reason_of
from spectral_irt.inference.fit.strata import curved
from spectral_irt.tables import Columns, plain, unguarded

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.plan import Parts

MANY = 1_000  # items beyond which a curve has fewer marks
STRATA, FEW_STRATA = 8, 6
NO_FIT = "The curves come with the fit of the items, which was left out."
FROM_FOLDER = "Curves need the answers, which the folder does not have: spectral-irt fit ... --report report.html."


@dataclass(frozen=True, eq=False)
class Material:
    """All that sections look at.

    Attributes
    ----------
    record : mapping
        What `fit.json` holds.
    tables : mapping of names to columns
        Those of the files: "items", and where there are such "persons", "item_fit", "dif", and so on.
    curves : columns, optional
        Strata of ability of right and wrong answers: `item` (its row), `n, observed, ci_low, ci_high, expected`; see
        `inference.fit.strata`. Of ordered answers they are among the tables.
    missing : mapping of names to sentences
        Why a table, or the curves, is not there.
    list_persons : bool
        Whether single people may be named.
    """

    record: Mapping[str, Any]
    tables: Mapping[str, Columns]
    curves: Columns | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    list_persons: bool = False

    @property
    def scale(self) -> Scale:
        """How measures are reported."""
        scale = self.record.get("scale")
        return LOGITS if not scale else Scale(float(scale["mean"]), float(scale["unit"]))

    @property
    def binary(self) -> bool:
        """Whether every answer is right or wrong."""
        return "thresholds" not in self.tables

    @cached_property
    def layout(self) -> Thresholds:
        """How many thresholds every item has."""
        items = self.tables["items"]["item"]
        if self.binary:
            return Thresholds.ones(len(items))
        place = positions(self.tables["thresholds"]["item"].tolist(), items)
        return Thresholds(np.bincount(place, minlength=len(items)).astype(np.int64))

    @cached_property
    def on_scale(self) -> Ints:
        """Positions of the items that have a place on the common scale."""
        items = self.tables["items"]
        return np.flatnonzero(np.isfinite(items["difficulty"]) & (items["status"] != "unlinked"))

    def thresholds_of(self, items: Ints) -> tuple[Thresholds, Floats]:
        """The thresholds of these items (positions), and which belong to which; difficulties where each has one."""
        every = self.tables["items"]["difficulty"] if self.binary else self.tables["thresholds"]["threshold"]
        return Thresholds(self.layout.max_score[items]), every[self.layout.of_items(items)]

    @cached_property
    def strata(self) -> Columns | None:
        """Mean answers by stratum of ability and those expected, of items by position; None where not known."""
        if self.curves is not None or "curves" not in self.tables:
            return self.curves
        table = self.tables["curves"]
        return {**table, "item": positions(table["item"].tolist(), self.tables["items"]["item"])}


def of_study(
    study: Analysis, parts: Parts, *, record: Mapping[str, Any] | None = None, list_persons: bool = False
) -> Material:
    """What an analysis has to say; `record` is its record where more is known about the files."""
    curves, missing = None, {}
    if not study.responses.thresholds.binary:
        pass  # they are among the tables
    elif not study.responses.n_responses:
        missing["curves"] = "Curves need answers, and the analysis has none."
    elif not parts.fit:
        missing["curves"] = NO_FIT
    else:
        study._tell("curves of the items")
        items = curved(study.calibration, columns_of(study.item_fit, bootstrap=parts.bootstrap, sample=parts.sample))
        if len(items):
            curves = study._strata(items, STRATA if len(items) <= MANY else FEW_STRATA)
    return Material(
        record=plain(record or study.record(parts)),
        tables=study.tables(parts),
        curves=curves,
        missing=missing,
        list_persons=list_persons,
    )


# ------------------------------------------------------------------------------------- a folder, read back

# Columns that hold words even where these look like numbers, and columns of true and false.
WORDS = ("item", "person", "status", "misfit", "grouping", "group", "reference", "class", "option", "form")
FLAGS = ("extreme", "anchored", "flagged", "nonuniform", "key")
# What a report cannot do without.
NEEDED = {
    "items": ("item", "difficulty", "se", "n", "score", "status"),
    "persons": ("person", "n", "score", "ability", "se"),
    "item_fit": ("item", "n", "infit", "outfit", "infit_z"),
    "dif": ("item", "group", "reference", "contrast", "se"),
}
OF_ORDERED = {
    **NEEDED,
    "items": (*NEEDED["items"], "max_score", "mean_score"),
    "thresholds": ("item", "category", "threshold", "se", "ci_low", "ci_high", "n", "n_below"),
    "persons": (*NEEDED["persons"], "max_score"),
    "item_fit": ("item", "n", "infit_conditional", "outfit_conditional", "infit_conditional_z"),
    "curves": ("item", "stratum", "n", "ability", "observed", "ci_low", "ci_high", "expected"),
}
AGAIN = "Fit again with -o DIR, and make the report of that folder."
FIELDS = ("estimator", "counts", "findings", "versions", "outputs")


def of_folder(folder: Path, *, list_persons: bool = False) -> Material:
    """The record and the tables of a folder; an error where they are not those of one fit of a version we know."""
    record = read_record(folder)
    tables: dict[str, Columns] = {}
    ordered = "thresholds.csv" in record["outputs"]
    needed, missing = (OF_ORDERED, {}) if ordered else (NEEDED, {"curves": FROM_FOLDER})
    for name in TABLES:
        file = f"{name}.csv"
        if file not in record["outputs"]:
            file = f"{name}.parquet"  # people whom the workers of a cluster wrote
            if file not in record["outputs"]:
                continue
        path = folder / file
        if path.is_dir() if path.suffix == ".parquet" else path.is_file():
            tables[name] = read_table(path, needed.get(name, ()))
        elif name in ("items", "thresholds"):
            raise ReadError(
                f"{str(folder)!r} has no {file}, which {RECORD} says was written with it. Fit again with -o, or put "
                "the file back."
            )
        else:
            missing[name] = f"{file} is not in the folder, though {RECORD} says that it was written."
    if "items" not in tables:
        raise ReadError(f"{str(folder / RECORD)!r} says of no items.csv that it was written; {AGAIN}")
    rows = len(tables["items"]["item"])
    if rows != record["counts"].get("items"):
        raise ReadError(
            f"items.csv in {str(folder)!r} has {rows:,} rows, and {RECORD} tells of {record['counts'].get('items')} "
            f"items: they are not of the same fit. {AGAIN}"
        )
    for name in ("item_fit", "thresholds"):
        if name in tables and list(dict.fromkeys(tables[name]["item"].tolist())) != tables["items"]["item"].tolist():
            raise ReadError(f"{name}.csv and items.csv in {str(folder)!r} have not the same items. {AGAIN}")
    return Material(record=record, tables=tables, missing=missing, list_persons=list_persons)


def read_record(folder: Path) -> dict[str, Any]:
    """`fit.json` of a folder, if it is one of ours and of a version that says what we need."""
    path = folder / RECORD
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ReadError(f"{str(folder)!r} {what}; a report is made of a folder that 'spectral-irt fit -o DIR' wrote.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReadError(
            f"{str(folder)!r} has no {RECORD}; a report is made of a folder that 'spectral-irt fit -o DIR' wrote."
        ) from None
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be read: {reason_of(error)}.") from error
    except ValueError as error:
        raise ReadError(f"{str(path)!r} is not JSON ({error}). {AGAIN}") from None
    if not isinstance(found, dict) or found.get("program") != PROGRAM:
        raise ReadError(f"{str(path)!r} was not written by {PROGRAM}. {AGAIN}")
    lacks = [name for name in FIELDS if name not in found]
    odd = [name for name, kind in (("counts", dict), ("findings", list), ("outputs", list), ("versions", dict))
           if name in found and not isinstance(found[name], kind)]  # fmt: skip
    if lacks or odd:
        version = found.get("versions")
        version = version.get("spectral_irt") if isinstance(version, dict) else None
        by = f"version {version}" if version and str(version) != __version__ else "another version, or was changed"
        raise ReadError(
            f"{str(path)!r} lacks {listed([*lacks, *odd])}, which a report needs: it was written by {by}; this is "
            f"version {__version__}. {AGAIN}"
        )
    return found


def read_table(path: Path, needed: tuple[str, ...]) -> Columns:
    """A table as `tables.write_csv` writes it, or a folder of parts."""
    import polars as pl

    try:
        frame = read_parts(path) if path.is_dir() else pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = reason_of(error) or str(error).split("\n")[0]
        raise ReadError(f"{str(path)!r} cannot be read: {reason}. {AGAIN}") from error
    lacks = [name for name in needed if name not in frame.columns]
    if lacks:
        raise ReadError(
            f"{str(path)!r} has no column {listed(lacks)}: it was written by another version, or was changed. {AGAIN}"
        )
    if path.is_dir():
        return {name: _typed(frame[name], name) for name in frame.columns}
    return {name: _column(path, name, frame[name].to_list(), name in needed) for name in frame.columns}


def _typed(column: Any, name: str) -> np.ndarray:
    """A column of Parquet as one of CSV is read."""
    if name in FLAGS:
        return np.asarray(column.to_list(), dtype=bool)
    if name not in WORDS and column.dtype.is_numeric():
        return np.asarray(column.cast(float).to_numpy(), dtype=float)
    words = np.empty(len(column), dtype=object)
    words[:] = ["" if cell is None else str(cell) for cell in column.to_list()]
    return words


def _column(path: Path, name: str, cells: list[str | None], needed: bool) -> np.ndarray:
    """Words, flags or numbers; a needed column of numbers must hold nothing else."""
    if name in FLAGS:
        return np.array([cell == "true" for cell in cells], dtype=bool)
    if name not in WORDS:
        try:
            return np.array([float(cell) if cell else np.nan for cell in cells], dtype=float)
        except ValueError as error:
            if needed:
                odd = str(error).rpartition(": ")[2]
                raise ReadError(f"column {name!r} of {str(path)!r} holds {odd}, which is no number. {AGAIN}") from None
    words = np.empty(len(cells), dtype=object)
    words[:] = [unguarded(cell or "") for cell in cells]
    return words
