"""Anchors: items with given thresholds, from a bank, a calibration, a mapping or a file.

A table of anchors has a row for each item, with columns item and difficulty, or for each threshold, with columns item,
category and threshold; se and status may stand beside these. It is read like any other table (`reading.formats`), in
any format, with any separator, under names in capitals or not. Files of Winsteps have their own reader
(`winsteps.py`), folders of results theirs (`results_folder.py`).

`anchored_fit`, `AnchoredRasch` and `fit --anchors` call `as_anchors`; the command calls `anchored_to` first, which puts
the responses into the categories of the anchors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.analysis.folder import RECORD
from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.covariance import errors_of
from spectral_irt.bank.results_folder import calibration_in, is_results, scale_of_results
from spectral_irt.bank.winsteps import AnchorRow, winsteps_anchors
from spectral_irt.calibration import MEASURED, Calibration, Scale
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.labels import Labels, label_array, positions
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.estimators.anchored import Anchors
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.joint_errors import JointErrors, known_errors
from spectral_irt.persons.align import in_categories_of
from spectral_irt.text import listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.reading.frame import Table

FAR = 20.0  # logits; nobody's anchors are there unless they are on another scale


class AnchoredResponses(NamedTuple):
    """Responses in the categories of anchors, and these."""

    responses: Responses
    anchors: Anchors


def anchored_to(responses: Responses, place: str | Path, free: Sequence[Any] = ()) -> AnchoredResponses:
    """The responses in the categories of the anchors in this place, but for those to be set `free`; and the anchors."""
    path = Path(place).expanduser()
    bank = None
    source: Bank | Path = path
    if not (os.path.isfile(path) or is_results(path)):
        bank = Bank.load(path)
        source = bank
    anchors = _without_merged(as_anchors(source).in_data(responses), responses)
    max_score = anchors.places.max_score
    if not len(max_score):
        raise OptionError("the anchors have no item with thresholds of its own on the scale.")
    if bank is not None:
        codes = bank.calibration.codes[positions(anchors.items, bank.items)]
    else:
        codes = _codes_in_data(anchors.items, max_score, responses)
    is_fixed = np.ones(len(max_score), dtype=bool)
    freed = positions(free, anchors.items)
    is_fixed[freed[freed >= 0]] = False
    items = anchors.items[is_fixed]
    if bank is None:
        _check_locations(items[max_score[is_fixed] == 1], responses)
    return AnchoredResponses(in_categories_of(items, max_score[is_fixed], codes[is_fixed], responses), anchors)


def _check_locations(items: Labels, responses: Responses) -> None:
    """An error where an anchor is one difficulty, as in an IFILE=, of an item that has several thresholds here."""
    place = positions(items, responses.items)
    in_data = place[place >= 0]
    several = responses.items[in_data[responses.thresholds.max_score[in_data] > 1]]
    if len(several):
        have = one_or_many(len(several), "which has", "which have")
        raise OptionError(
            f"the anchors have one difficulty for {listed(several)}, {have} more than two categories in the data. Give "
            f"the thresholds (columns item, category, threshold), or estimate these items: "
            f"`free={','.join(map(str, several.tolist()))!r}`."
        )


def _without_merged(anchors: Anchors, responses: Responses) -> Anchors:
    """The anchors without items whose categories were merged in the data: these are no longer what they were."""
    if responses.codes_high is None:
        return anchors
    codes = responses.category_codes()
    differ = (responses.codes_high != codes) & np.isfinite(codes)
    merged = responses.items[differ.any(axis=1)]
    in_data = positions(responses.items, anchors.items)
    if (positions(anchors.items[in_data[in_data >= 0]], merged) >= 0).all():
        raise OptionError(
            "all anchors that are in the data have other categories there, after merging; fit without `anchors`, or "
            "leave the categories of some items as they are."
        )
    return anchors.without(merged[positions(merged, anchors.items) >= 0].tolist(), responses)[0]


def _codes_in_data(items: Labels, max_score: Ints, responses: Responses) -> Floats:
    """The codes of the categories of anchors that know none: those of the data, where an item has as many categories
    there, or 0, 1, ..."""
    number = np.arange(int(max_score.max()) + 1, dtype=float)
    codes = np.where(number <= max_score[:, None], number, np.nan)
    place = positions(items, responses.items)
    codes_of_responses = responses.category_codes()
    for item in np.flatnonzero(place >= 0).tolist():
        in_data = codes_of_responses[place[item]]
        in_data = in_data[np.isfinite(in_data)]
        if len(in_data) == max_score[item] + 1:
            codes[item, : len(in_data)] = in_data
    return codes


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
        return _anchors_at(Path(anchors).expanduser())
    if isinstance(anchors, Bank | Calibration | RaschEstimator):
        return _of_calibration(anchors)
    if isinstance(anchors, Mapping):
        return _of_mapping(anchors)
    raise OptionError(
        f"anchors are a bank, a mapping from item to difficulty, or a file, not a {type(anchors).__name__}."
    )


def _anchors_at(path: Path) -> Anchors:
    """The anchors in a folder of results, a bank or a file."""
    folder = path.parent if path.name == RECORD else path
    if is_results(folder):
        return replace(_of_calibration(calibration_in(folder, "anchors")[0]), source=str(folder))
    if os.path.lexists(path) and not os.path.isdir(path):
        return _of_file(path)
    return _of_calibration(Bank.load(path))  # whose errors say what is missing


def _of_mapping(anchors: Mapping[Any, Any]) -> Anchors:
    wrong = [label for label, value in anchors.items() if not all(map(_is_number, _thresholds_of(value)))]
    if wrong:
        raise OptionError(f"the anchors {listed(wrong)} have no number as difficulty, but {anchors[wrong[0]]!r}.")
    return _check_range(Anchors.of({label: _thresholds_of(value) for label, value in anchors.items()}))


def _of_calibration(source: Bank | Calibration | RaschEstimator) -> Anchors:
    calibration = calibration_of(source)
    measured = calibration.measured
    chosen = measured[calibration.layout.item]
    errors: JointErrors | None = errors_of(source).errors.take(chosen)
    if errors is not None and not errors.variance.any():
        errors = None
    return Anchors(
        items=calibration.labels[measured],
        thresholds=calibration.thresholds[chosen],
        se=calibration.threshold_se[chosen],
        scale=calibration.scale,
        source="the bank" if isinstance(source, Bank) else "the anchors",
        left_out=calibration.labels[calibration.known & ~measured],
        errors=errors,
        layout=Thresholds(calibration.layout.max_score[measured]),
    )


def _thresholds_of(value: Any) -> list[Any]:
    """The thresholds of an item: one, where a single number is given."""
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


class AnchorTable(NamedTuple):
    """The rows of a file of anchors: the name of the column of values, what a logit is worth in these, and the scale of
    report that the file is on. Where `by_entry`, items are the numbers of their places in the data."""

    column: str
    rows: list[AnchorRow]
    unit: float
    by_entry: bool
    scale: Scale


class AnchorValue(NamedTuple):
    """A threshold in logits, and its standard error, NaN where none is known."""

    threshold: float
    se: float


def _of_file(path: Path) -> Anchors:
    """Anchors from a file of Winsteps, or from a table: any kind of file that is read."""
    table = _table_in(path)
    left_out: dict[str, None] = {}
    repeated: list[str] = []
    values: dict[str, dict[int, AnchorValue]] = {}  # by item and category
    for row in table.rows:
        if not row.value:
            continue  # an item without an estimate anchors nothing
        _check_row(row, table.column, path)
        if row.status and row.status not in MEASURED:
            left_out[row.item] = None
            continue
        value = _value_of(row, table.unit)
        earlier = values.setdefault(row.item, {}).setdefault(int(float(row.category)), value)
        if earlier.threshold != value.threshold:
            repeated.append(row.item)
    if repeated:
        raise OptionError(
            f"{str(path)!r} gives {listed(dict.fromkeys(repeated))} more than once, with different difficulties. Keep "
            "one line for each item."
        )
    gaps = [label for label, by_category in values.items() if not _is_gapless(by_category)]
    if gaps:
        raise OptionError(f"{str(path)!r}: the categories of {listed(gaps)} are not 1, 2, ... without gaps.")
    in_order = [by_category[category] for by_category in values.values() for category in sorted(by_category)]
    thresholds = np.array([value.threshold for value in in_order], dtype=float)
    se = np.array([value.se for value in in_order], dtype=float)
    errors = None
    if np.nansum(se) > 0:
        errors = known_errors(thresholds, se, None).errors
    return _check_range(
        Anchors(
            items=label_array(list(values)),
            thresholds=thresholds,
            se=se,
            scale=table.scale,
            source=str(path),
            left_out=label_array(list(left_out)),
            errors=errors,
            layout=Thresholds(np.array([len(by_category) for by_category in values.values()], dtype=np.int64)),
            by_entry=table.by_entry,
        )
    )


def _value_of(row: AnchorRow, unit: float) -> AnchorValue:
    se = np.nan
    if _is_number(row.se):
        se = float(row.se) / unit
    return AnchorValue(float(row.value) / unit, se)


def _is_gapless(by_category: Mapping[int, AnchorValue]) -> bool:
    """Whether the categories are 1, 2, ..."""
    return sorted(by_category) == list(range(1, len(by_category) + 1))


def _table_in(path: Path) -> AnchorTable:
    from spectral_irt.reading.formats import read_one

    winsteps = winsteps_anchors(path)
    if winsteps is not None:
        return AnchorTable("measure", winsteps.rows, winsteps.unit, winsteps.by_entry, Scale(0.0, winsteps.unit))
    column, rows = read_one(str(path), "a table of anchors", _rows, sheet_option="anchors", sheet=_sheet(path))
    return AnchorTable(column, rows, unit=1.0, by_entry=False, scale=scale_of_results(path))


def _check_row(row: AnchorRow, column: str, path: Path) -> None:
    where = f"{str(path)!r}, row {row.number}"
    if not _is_number(row.value):
        raise ReadError(f"{where}: the {column} of item {row.item!r} is {row.value!r}, no number.")
    if not (_is_number(row.category) and float(row.category) == int(float(row.category)) >= 1):
        raise ReadError(f"{where}: the category of item {row.item!r} is {row.category!r}.")


def _sheet(path: Path) -> str | None:
    """The sheet "items" of a workbook, as a fit writes it; None for the only one, and for other files."""
    from spectral_irt.reading.excel import sheet_names
    from spectral_irt.reading.formats import find_files

    [file, *_] = find_files(str(path))
    return "items" if file.family == "workbook" and "items" in sheet_names(file) else None


class ColumnOfAnchors(NamedTuple):
    """The name of the column of values in a table of anchors, and the rows."""

    column: str
    rows: list[AnchorRow]


def _rows(table: Table) -> ColumnOfAnchors:
    """Whether a table has a column of thresholds or of difficulties, by name, in capitals or not; and its rows."""
    from spectral_irt.reading.columns import plain
    from spectral_irt.reading.frame import plain_labels

    names = list(map(plain, table.columns))
    has_thresholds = {"item", "category", "threshold"} <= set(names)
    if not has_thresholds and not {"item", "difficulty"} <= set(names):
        raise ReadError(
            f"{table.name} needs a heading with the columns item and difficulty, or item, category and threshold; it "
            f"has {listed(table.columns)}."
        )
    frame = table.whole()
    nothing = [""] * frame.height

    def texts(name: str) -> list[str]:
        if name not in names:
            return nothing
        k = names.index(name)
        labels = plain_labels(frame.to_series(k), text=True, name=table.where(k))
        return labels.fill_null("").to_list()

    column = "difficulty"
    categories = ["1"] * frame.height
    if has_thresholds:
        column = "threshold"
        categories = texts("category")
    rows = zip(
        range(table.rows_above + 1, table.rows_above + 1 + frame.height),
        texts("item"),
        map(_with_point, texts(column)),
        categories,
        map(_with_point, texts("se")),
        texts("status"),
        strict=True,
    )
    return ColumnOfAnchors(column, [AnchorRow(*row) for row in rows])


def _with_point(text: str) -> str:
    """A number with a decimal point: logits have no thousands that a comma could part."""
    return text.strip().replace(",", ".")


def _check_range(anchors: Anchors) -> Anchors:
    far = np.abs(anchors.thresholds) > FAR
    if far.any():
        names = listed(anchors.items[np.unique(anchors.places.item[far])])
        raise OptionError(
            f"{anchors.source}: the difficulties of {names} lie beyond {FAR:g} logits "
            f"({anchors.thresholds[far][0]:g}). Anchors are in logits: give the bank or the results that they come "
            "from, which know their scale, or take them back from a scale like 500, 100 first."
        )
    return anchors
