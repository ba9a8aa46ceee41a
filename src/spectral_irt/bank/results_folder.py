"""The calibration in a folder of results, for `export` and anchors; results that were changed since are refused.

`fit -o DIR` writes a record, `fit.json`, and tables as CSV. They are read back as text and checked column by column: a
spreadsheet may have saved them with other numbers, dates for labels, or fewer rows.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.analysis.folder import PROGRAM, RECORD
from spectral_irt.bank.bank import Bank
from spectral_irt.bank.export import FORMATS
from spectral_irt.calibration import LOGITS, Calibration, Floats, Scale
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.tables import cell_text
from spectral_irt.text import in_short, printable, short, within

# The columns that an export cannot do without, of each table that a fit may have written.
NEEDED = {
    "items": ("item", "difficulty", "se", "n", "status"),
    "thresholds": ("item", "threshold", "se"),
    "item_fit": ("item",),
    "persons": ("person", "n", "score", "ability", "se", "extreme"),
}
LABELS = ("item", "person", "status")
ERRORS = {"se"}
TRUTHS = ("extreme",)
WHOLE = {"n", "n_correct", "max_score"}
SCALE_FIELDS = tuple(field.name for field in fields(Scale))  # beside them the record says how the scale was asked for
LARGEST = 2.0**53  # beyond, not every whole number is a float
NUMBERS = {"difficulty", "ability", "threshold", "se", "score", "displacement", *WHOLE}
NUMBERS |= {column.statistic for column in FORMATS.values()}


def calibration_in(folder: Path, to: str) -> tuple[Calibration, dict[str, Any]]:
    """The calibration in a folder, and what else of it an export needs."""
    if not (folder / RECORD).is_file():
        if to == "pfile":
            raise OptionError(f"{str(folder)!r} is not the results of a fit, and only these have people; fit with -o.")
        return Bank.load(folder).calibration, {}
    if to == "sfile":
        raise OptionError(
            f"{str(folder)!r} does not say what categories are called in the data; keep a bank (fit --bank DIR), and "
            "export that."
        )
    try:
        record = _record_in(folder)
        tables = {name: _table(folder / f"{name}.csv", name) for name in NEEDED if f"{name}.csv" in record["outputs"]}
        calibration = _of_tables(record, tables)
    except (OSError, RecursionError, _EditedError, pl.exceptions.PolarsError) as error:
        reason = in_short(error)
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise ReadError(
            f"{str(folder)!r} does not hold the results of a fit as it wrote them ({printable(reason)}); fit "
            "again with -o."
        ) from None
    if to == "pfile" and "persons" not in tables:
        raise OptionError(f"{str(folder)!r} has no persons.csv; fit with -o, and without --skip persons.")
    ability = within(record, "persons", "ability")
    about = {"fit": tables.get("item_fit", tables["items"]), "persons": tables.get("persons"), "wle": ability == "wle"}
    return calibration, about


def results_in(folder: Path) -> tuple[Calibration, dict[str, dict[str, Any]], dict[str, Any]]:
    """The calibration in a folder of results, its tables by name, and its record."""
    calibration, about = calibration_in(folder, "compare")
    tables = {"items": about["fit"]}
    if about["persons"] is not None:
        tables["persons"] = about["persons"]
    return calibration, tables, _record_in(folder)


def is_results(folder: Path) -> bool:
    """Whether a folder holds the results of a fit."""
    return os.path.isdir(folder) and os.path.isfile(folder / RECORD)  # False also of names that no file can have


def scale_of_results(table: Path) -> Scale:
    """The scale of the fit that wrote this table beside its record; logits where none did."""
    if not is_results(table.parent):
        return LOGITS
    try:
        record = _record_in(table.parent)
    except (OSError, RecursionError, _EditedError):
        return LOGITS
    if table.name not in record["outputs"]:
        return LOGITS
    return _scale_in(record)


class _EditedError(Exception):
    """A file of results is not as it was written: cut, or saved anew by another program."""


def _record_in(folder: Path) -> dict[str, Any]:
    """The record of a fit, whose parts are of the kinds that they were written in."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except ValueError:
        raise _EditedError(f"{RECORD} is not JSON") from None
    if not isinstance(record, dict) or record.get("program") != PROGRAM:
        raise _EditedError(f"{RECORD} is not by {PROGRAM}")
    outputs = record.get("outputs")
    if not isinstance(outputs, list) or "items.csv" not in outputs:
        raise _EditedError("without items.csv")
    scale = record.get("scale") or {}
    if not isinstance(scale, dict) or not all(_is_number(scale.get(name)) for name in SCALE_FIELDS):
        raise _EditedError(f"the scale in {RECORD} is not numbers")
    if (scale.get("unit") or 1) <= 0:
        raise _EditedError(f"the scale in {RECORD} has {scale['unit']:g} units per logit")
    return record


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def _table(path: Path, name: str) -> dict[str, Any]:
    """The columns of a table that exports use: labels as text, all others as numbers."""
    frame = pl.read_csv(path, infer_schema=False)  # as text: a single odd cell must not change a column's kind
    absent = [column for column in NEEDED[name] if column not in frame.columns]
    if absent:
        raise _EditedError(f"{path.name} has no column {absent[0]!r}")
    columns: dict[str, Any] = {}
    for column in frame.columns:
        if column in LABELS:
            texts = [cell_text(text or "") for text in frame[column]]
            columns[column] = np.array(texts, dtype=object)
        elif column in TRUTHS:
            columns[column] = (frame[column] == "true").fill_null(False).to_numpy()
        elif column in NUMBERS:
            columns[column] = _numbers(frame[column], path.name)
    if name == "items":
        label, times = Counter(columns["item"].tolist()).most_common(1)[0] if frame.height else ("", 0)
        if times > 1:
            raise _EditedError(f"{path.name} has the item {short(label)!r} {times:,} times")
    for column in ERRORS & columns.keys():
        if (columns[column] < 0).any():
            raise _EditedError(f"{path.name}, column {column!r} has a standard error below zero")
    for column in WHOLE & columns.keys():
        if not (np.abs(columns[column]) <= LARGEST).all():
            raise _EditedError(f"{path.name}, column {column!r} has a cell that is no whole number")
        columns[column] = columns[column].astype(np.int64)
    return columns


def _numbers(column: pl.Series, file: str) -> Floats:
    """The numbers in a column, NaN in an empty cell; an error that shows the first cell that is none."""
    numbers = column.cast(pl.Float64, strict=False)
    is_odd = numbers.is_null() & column.is_not_null() & (column != "")
    if is_odd.any():
        row = int(is_odd.arg_max() or 0)
        raise _EditedError(f"{file}, column {column.name!r}, row {row + 2:,} holds {short(column[row])!r}, no number")
    return numbers.fill_null(float("nan")).to_numpy()


def _of_tables(record: dict[str, Any], tables: dict[str, dict[str, Any]]) -> Calibration:
    """The calibration that results tell of; an error where its tables do not go together."""
    items = tables["items"]
    thresholds = tables.get("thresholds")
    fit = tables.get("item_fit", items)
    if fit["item"].tolist() != items["item"].tolist():
        raise _EditedError("items.csv and item_fit.csv have other items")
    score = "n_correct" if thresholds is None else "score"
    for column in (score, *(() if thresholds is None else ("max_score",))):
        if column not in items:
            raise _EditedError(f"items.csv has no column {column!r}")
    estimates: dict[str, Any] = {"thresholds": items["difficulty"], "threshold_se": items["se"]}
    if thresholds is not None:
        of_item = np.repeat(items["item"], np.maximum(items["max_score"], 0))
        if items["max_score"].min(initial=1) < 1 or of_item.tolist() != thresholds["item"].tolist():
            raise _EditedError(
                "thresholds.csv has other items than items.csv, or not a row for each of their thresholds"
            )
        estimates = {"thresholds": thresholds["threshold"], "threshold_se": thresholds["se"]}
        estimates |= {"layout": Thresholds(items["max_score"]), "location_se": items["se"]}
    return Calibration(
        labels=items["item"],
        status=items["status"],
        n=items["n"],
        score=items[score],
        item_information=np.zeros(len(items["item"])),
        scale=_scale_in(record),
        further={"anchored": items["status"] == "anchored"},
        **estimates,
    )


def _scale_in(record: dict[str, Any]) -> Scale:
    """The scale of report of a fit."""
    scale = record.get("scale") or {}
    return Scale(**{name: scale[name] for name in SCALE_FIELDS if scale.get(name) is not None})
