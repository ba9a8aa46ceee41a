"""Anchors: items with given difficulties, from a bank, a mapping or a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.components import on_scale
from spectral_irt.bank.covariance import errors_of
from spectral_irt.calibration import Calibration
from spectral_irt.data.labels import label_array
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.estimators.anchored import Anchors
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import JointErrors, known_errors
from spectral_irt.tables import unguarded
from spectral_irt.xlsx import WORKBOOK

FAR = 20.0  # logits; nobody's anchors are there unless they are on another scale


def as_anchors(anchors: Any) -> Anchors:
    """Anchors from a bank, a fitted estimator, a mapping label -> difficulty, or a file.

    A folder is a bank; any other path is a CSV file, or a workbook (its sheet "items", or its only one), with columns
    `item` and `difficulty` (and `se`, if it has one), in logits: `items.csv` of a fit will do.
    Where a status is known (bank, fit, or a column `status`), only items with the status "ok" or "anchored" are
    anchors: the others rest on the prior, or are on another scale.
    """
    if isinstance(anchors, Anchors):
        return anchors
    if isinstance(anchors, str | Path):
        path = Path(anchors).expanduser()
        return as_anchors(Bank.load(path)) if os.path.isdir(path) or not os.path.lexists(path) else _read(path)
    if isinstance(anchors, Bank | Calibration | RaschEstimator):
        source = "the bank" if isinstance(anchors, Bank) else "the anchors"
        made = calibration_of(anchors)
        placed = on_scale(made.status)
        good, out = made.known & placed, made.labels[made.known & ~placed]
        chosen = good[made.layout.item]
        errors: JointErrors | None = errors_of(anchors)[0].take(chosen)
        errors = errors if errors is not None and errors.variance.any() else None
        layout = Thresholds(made.layout.max_score[good])
        beta, se = made.thresholds[chosen], made.threshold_se[chosen]
        return Anchors(made.labels[good], beta, se, made.scale, source, out, errors, layout)
    if isinstance(anchors, Mapping):
        wrong = [label for label, value in anchors.items() if not all(map(_is_number, _several(value)))]
        if wrong:
            raise OptionError(f"the anchors {listed(wrong)} have no number as difficulty, but {anchors[wrong[0]]!r}.")
        return _checked(Anchors.of({label: _several(value) for label, value in anchors.items()}))
    raise OptionError(
        f"anchors are a bank, a mapping from item to difficulty, or a file, not a {type(anchors).__name__}."
    )


def _several(value: Any) -> list[Any]:
    """The thresholds of an item: one, where a single number is given."""
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _read(path: Path) -> Anchors:
    """Anchors from a CSV file with a heading, or a sheet like that."""
    try:
        if path.suffix.lower() == WORKBOOK:
            rows = _rows_of_workbook(path)
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                rows = [{**row, "item": unguarded(row.get("item") or "")} for row in csv.DictReader(file)]
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReadError(f"{str(path)!r} is not a CSV file in UTF-8: {error}.") from error
    if not rows or not {"item", "difficulty"} <= set(rows[0]):
        has = f"it has {listed(rows[0])}" if rows else "it is empty"
        raise ReadError(f"{str(path)!r} needs a heading with the columns item and difficulty; {has}.")
    values: dict[str, tuple[float, float]] = {}
    clash: list[str] = []
    left_out: dict[str, None] = {}
    for number, row in enumerate(rows, start=2):
        label, text = row["item"] or "", (row["difficulty"] or "").strip()
        if not text:
            continue  # an item without an estimate anchors nothing
        if not _is_number(text):
            raise ReadError(f"{str(path)!r}, line {number}: the difficulty of item {label!r} is {text!r}, no number.")
        if row.get("status") and not on_scale(np.array([row["status"]]))[0]:
            left_out[label] = None
            continue
        se = row.get("se") or ""
        one = (float(text), float(se) if _is_number(se) else np.nan)
        if values.setdefault(label, one)[0] != one[0]:
            clash.append(label)
    if clash:
        raise OptionError(
            f"{str(path)!r} gives {listed(dict.fromkeys(clash))} more than once, with different difficulties. Keep one "
            "line for each item."
        )
    numbers = np.array(list(values.values())).reshape(-1, 2)
    errors = known_errors(numbers[:, 0], numbers[:, 1], None)[0] if np.nansum(numbers[:, 1]) > 0 else None
    found = Anchors(label_array(list(values)), numbers[:, 0], numbers[:, 1], source=str(path), errors=errors)
    return _checked(replace(found, left_out=label_array(list(left_out))))


def _rows_of_workbook(path: Path) -> list[dict[str, Any]]:
    """The rows of the sheet "items", as a fit writes it, or of the only sheet."""
    from spectral_irt.reading.excel import sheet_names
    from spectral_irt.reading.formats import find_files, open_table

    [file] = find_files(path)
    table = open_table(replace(file, sheet="items" if "items" in sheet_names(file) else None))
    frames = [frame for frame, _ in table.pieces(range(len(table.columns)))]
    return [dict(zip(table.columns, row, strict=True)) for frame in frames for row in frame.iter_rows()]


def _checked(anchors: Anchors) -> Anchors:
    far = np.abs(anchors.thresholds) > FAR
    if far.any():
        names = listed(anchors.items[np.unique(anchors.places.item[far])])
        raise OptionError(
            f"{anchors.source}: the difficulties of {names} lie beyond {FAR:g} logits "
            f"({anchors.thresholds[far][0]:g}). Anchors are in logits; take them back from a scale like 500, 100 first."
        )
    return anchors
