"""Anchors: items with given thresholds, from a bank, a calibration, a mapping or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.folder import RECORD
from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.covariance import errors_of
from spectral_irt.bank.results_folder import calibration_in, is_results, scale_of_results
from spectral_irt.bank.winsteps import AnchorRow, winsteps_anchors
from spectral_irt.calibration import MEASURED, Calibration, Scale
from spectral_irt.data.block import Thresholds
from spectral_irt.data.labels import label_array, positions
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.estimators.anchored import Anchors
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import JointErrors, known_errors
from spectral_irt.persons.align import in_categories_of
from spectral_irt.text import listed

if TYPE_CHECKING:
    from spectral_irt.reading.frame import Table

FAR = 20.0  # logits; nobody's anchors are there unless they are on another scale


def anchored_to(responses: Responses, place: str | Path) -> tuple[Responses, Anchors]:
    """The responses in the categories of the anchors in this place, and these."""
    path = Path(place).expanduser()
    bank = None if os.path.isfile(path) or is_results(path) else Bank.load(path)
    anchors = as_anchors(path if bank is None else bank).in_data(responses)
    counts = anchors.places.max_score
    if not len(counts):
        raise OptionError("the anchors have no item with thresholds of its own on the scale.")
    if (
        bank is None
    ):  # which knows no codes: those of the data, where an item has as many categories there, or 0, 1, ...
        number = np.arange(int(counts.max()) + 1, dtype=float)
        codes = np.where(number <= counts[:, None], number, np.nan)
        place_in_data = positions(anchors.items, responses.items)
        own = responses.category_codes()
        for item in np.flatnonzero(place_in_data >= 0).tolist():
            in_data = own[place_in_data[item]]
            used = in_data[np.isfinite(in_data)]
            if len(used) == counts[item] + 1:
                codes[item, : len(used)] = used
    else:
        codes = bank.calibration.codes[positions(anchors.items, bank.items)]
    return in_categories_of(anchors.items, counts, codes, responses), anchors


def as_anchors(anchors: Any) -> Anchors:
    """Anchors from a bank, a fitted estimator, a mapping label -> difficulty, or a file.

    A folder is a bank, or holds the results of a fit (as does their fit.json), whose scale is kept. A file is one of
    Winsteps (`winsteps.py`) or a table, in any format that is read (of a workbook the sheet "items", or the only one),
    with columns `item` and `difficulty`, or `item`, `category` and `threshold` (and `se`, if it has one), in
    logits: `items.csv` and `thresholds.csv` of a fit will do. Where a status is known (bank, fit, or a column
    `status`), only items with the status "ok" or "anchored" are anchors: the others rest on the prior, or are on
    another scale.
    """
    if isinstance(anchors, Anchors):
        return anchors
    if isinstance(anchors, str | Path):
        path = Path(anchors).expanduser()
        folder = path.parent if path.name == RECORD else path
        if is_results(folder):
            return replace(_of_calibration(calibration_in(folder, "anchors")[0]), source=str(folder))
        return as_anchors(Bank.load(path)) if os.path.isdir(path) or not os.path.lexists(path) else _read(path)
    if isinstance(anchors, Bank | Calibration | RaschEstimator):
        return _of_calibration(anchors)
    if isinstance(anchors, Mapping):
        wrong = [label for label, value in anchors.items() if not all(map(_is_number, _several(value)))]
        if wrong:
            raise OptionError(f"the anchors {listed(wrong)} have no number as difficulty, but {anchors[wrong[0]]!r}.")
        return _checked(Anchors.of({label: _several(value) for label, value in anchors.items()}))
    raise OptionError(
        f"anchors are a bank, a mapping from item to difficulty, or a file, not a {type(anchors).__name__}."
    )


def _of_calibration(given: Bank | Calibration | RaschEstimator) -> Anchors:
    made = calibration_of(given)
    good, out = made.measured, made.labels[made.known & ~made.measured]
    chosen = good[made.layout.item]
    errors: JointErrors | None = errors_of(given)[0].take(chosen)
    errors = errors if errors is not None and errors.variance.any() else None
    source = "the bank" if isinstance(given, Bank) else "the anchors"
    layout = Thresholds(made.layout.max_score[good])
    found = made.thresholds[chosen], made.threshold_se[chosen]
    return Anchors(made.labels[good], *found, made.scale, source, out, errors, layout)


def _several(value: Any) -> list[Any]:
    """The thresholds of an item: one, where a single number is given."""
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _read(path: Path) -> Anchors:
    """Anchors from a file of Winsteps, or from a table: any kind of file that is read."""
    from spectral_irt.reading.formats import read_one

    winsteps = winsteps_anchors(path)
    if winsteps is None:
        column, rows = read_one(str(path), "a table of anchors", _rows, sheet_option="anchors", sheet=_sheet(path))
        unit, by_entry = 1.0, False
        scale = scale_of_results(path)
    else:
        column, rows = "measure", winsteps.rows
        unit, by_entry = winsteps.unit, winsteps.by_entry
        scale = Scale(0.0, unit)
    values: dict[str, dict[int, tuple[float, float]]] = {}
    clash: list[str] = []
    left_out: dict[str, None] = {}
    for row in rows:
        if not row.value:
            continue  # an item without an estimate anchors nothing
        where = f"{str(path)!r}, row {row.number}"
        if not _is_number(row.value):
            raise ReadError(f"{where}: the {column} of item {row.item!r} is {row.value!r}, no number.")
        if not (_is_number(row.category) and float(row.category) == int(float(row.category)) >= 1):
            raise ReadError(f"{where}: the category of item {row.item!r} is {row.category!r}.")
        if row.status and row.status not in MEASURED:
            left_out[row.item] = None
            continue
        threshold = float(row.value) / unit, float(row.se) / unit if _is_number(row.se) else np.nan
        of_item = values.setdefault(row.item, {})
        if of_item.setdefault(int(float(row.category)), threshold)[0] != threshold[0]:
            clash.append(row.item)
    if clash:
        raise OptionError(
            f"{str(path)!r} gives {listed(dict.fromkeys(clash))} more than once, with different difficulties. Keep one "
            "line for each item."
        )
    odd = [label for label, each in values.items() if sorted(each) != list(range(1, len(each) + 1))]
    if odd:
        raise OptionError(f"{str(path)!r}: the categories of {listed(odd)} are not 1, 2, ... without gaps.")
    numbers = np.array([each[k] for each in values.values() for k in sorted(each)]).reshape(-1, 2)
    errors = known_errors(numbers[:, 0], numbers[:, 1], None)[0] if np.nansum(numbers[:, 1]) > 0 else None
    layout = Thresholds(np.array([len(each) for each in values.values()], dtype=np.int64))
    return _checked(
        Anchors(
            items=label_array(list(values)),
            thresholds=numbers[:, 0],
            se=numbers[:, 1],
            scale=scale,
            source=str(path),
            left_out=label_array(list(left_out)),
            errors=errors,
            layout=layout,
            by_entry=by_entry,
        )
    )


def _sheet(path: Path) -> str | None:
    """The sheet "items" of a workbook, as a fit writes it; None for the only one, and for other files."""
    from spectral_irt.reading.excel import sheet_names
    from spectral_irt.reading.formats import find_files

    [file, *_] = find_files(str(path))
    return "items" if file.family == "workbook" and "items" in sheet_names(file) else None


def _rows(table: Table) -> tuple[str, list[AnchorRow]]:
    """Whether a table has a column of thresholds or of difficulties, by name, in capitals or not; and its rows."""
    from spectral_irt.reading.columns import plain
    from spectral_irt.reading.frame import plain_labels

    names = list(map(plain, table.columns))
    several = {"item", "category", "threshold"} <= set(names)
    if not several and not {"item", "difficulty"} <= set(names):
        raise ReadError(
            f"{table.name} needs a heading with the columns item and difficulty, or item, category and threshold; it "
            f"has {listed(table.columns)}."
        )
    column = "threshold" if several else "difficulty"
    frame = table.whole()

    def texts(name: str) -> list[str]:
        if name not in names:
            return [""] * frame.height
        k = names.index(name)
        labels = plain_labels(frame.to_series(k), text=True, name=table.where(k))
        return labels.fill_null("").to_list()

    numbers = range(table.rows_above + 1, table.rows_above + 1 + frame.height)
    value, se = (list(map(_with_point, texts(name))) for name in (column, "se"))
    columns = (texts("item"), value, texts("category") if several else ["1"] * frame.height, se, texts("status"))
    return column, [AnchorRow(*row) for row in zip(numbers, *columns, strict=True)]


def _with_point(text: str) -> str:
    """A number with a decimal point: logits have no thousands that a comma could part."""
    return text.strip().replace(",", ".")


def _checked(anchors: Anchors) -> Anchors:
    far = np.abs(anchors.thresholds) > FAR
    if far.any():
        names = listed(anchors.items[np.unique(anchors.places.item[far])])
        raise OptionError(
            f"{anchors.source}: the difficulties of {names} lie beyond {FAR:g} logits "
            f"({anchors.thresholds[far][0]:g}). Anchors are in logits: give the bank or the results that they come "
            "from, which know their scale, or take them back from a scale like 500, 100 first."
        )
    return anchors
