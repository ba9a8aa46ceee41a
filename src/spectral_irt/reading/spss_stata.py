"""Files of SPSS and Stata as tables, by pyreadstat, which is not installed unless asked for. Answers are the codes that
are stored; their value labels are kept beside them, and name the groups of people. Columns go by the names of the
variables, and the labels of variables are texts of the items. Values that the file declares missing, the system's own
or the author's, are missing, and so are codes whose label says that there is no answer ("No answer", "Refused", "Does
not apply")."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from spectral_irt.data.labels import no_answers, spellings
from spectral_irt.data.scoring import numbers_among
from spectral_irt.errors import Finding, ReadError, retold
from spectral_irt.installation import install_extra
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import DAMAGED, Table, table_of_frame
from spectral_irt.text import count_are, in_short, listed

PROGRAMS = {"spss": "SPSS", "stata": "Stata"}


def open_table(file: File) -> Table:
    try:
        pyreadstat: Any = importlib.import_module("pyreadstat")
    except ImportError:
        what = f"{file.name}: what reads files of {PROGRAMS[file.family]} is not installed:"
        raise ReadError(f"{what} {install_extra('formats')}. Or save it as CSV or .xlsx.") from None
    read = pyreadstat.read_sav if file.family == "spss" else pyreadstat.read_dta
    error_of_wrapper = getattr(
        pyreadstat, "PyreadstatError", pyreadstat.ReadstatError
    )  # of the wrapper; public since 1.3.2

    def sentence(error: BaseException) -> str:
        encoded = re.search("convert|encod", reason := in_short(error), re.I)
        remedy = "Say how its text is written, as in `encoding='cp1252'`." if encoded else DAMAGED
        return f"{file.name} cannot be read as a file of {PROGRAMS[file.family]}: {reason}. {remedy}"

    # Codes that an SPSS file declares missing are counted below; Stata's own (.a) are no numbers.
    declared = file.family == "spss"
    with retold((pyreadstat.ReadstatError, error_of_wrapper, OSError, TypeError, ValueError, OverflowError), sentence):
        frame, about = read(file.path, encoding=file.encoding, output_format="polars", user_missing=declared)
    if not frame.width:
        raise ReadError(f"{file.name} has no variables.")
    columns = list(about.column_names)
    frame = pl.DataFrame([_plain(frame.to_series(k)).alias(str(k)) for k in range(frame.width)])
    labels = {k: about.variable_value_labels.get(name) for k, name in enumerate(columns)}
    labels_of_values = {
        k: dict(zip(spellings(own), map(str, own.values()), strict=True)) for k, own in labels.items() if own
    }
    ranges = {k: about.missing_ranges[name] for k, name in enumerate(columns) if name in about.missing_ranges}
    frame, notes_on_declared = _without_declared(frame, ranges if declared else {}, labels_of_values)
    frame, notes_on_labels = _without_missing_codes(frame, labels_of_values)
    notes = (*notes_on_declared, *notes_on_labels)
    categories = {}
    for k, texts in labels_of_values.items():
        missing = [*missing_codes(texts), *(code for code in texts if _is_declared(code, ranges.get(k, ())))]
        answers = _without(texts, missing)
        if answers:
            categories[k] = answers
    return replace(
        table_of_frame(frame, columns, name=file.name),
        value_labels=categories,
        variable_labels=_texts_of_variables(columns, about.column_names_to_labels),
        notes=notes,
    )


def _texts_of_variables(columns: list[str], labels: Mapping[str, str | None]) -> dict[int, str]:
    """The label of each variable that has one, on one line; a label that repeats the name says nothing."""
    texts = {}
    for k, name in enumerate(columns):
        text = " ".join((labels.get(name) or "").split())
        if text and text.casefold() != name.casefold():
            texts[k] = text
    return texts


def missing_codes(labels: dict[str, str]) -> list[str]:
    """The codes whose label says that there is no answer. A code between others ("Don't know" in the middle of a scale)
    is a category.

    >>> missing_codes({"1": "Never", "2": "Don't know", "3": "Often", "9": "Refused"})
    ['9']
    >>> missing_codes({"0": "Does not apply", "1": "Applies in part", "2": "Applies"})
    []
    """
    texts = no_answers(list(labels.values()))
    says_missing = [code for code, text in labels.items() if text in texts]
    answers = numbers_among(code for code in labels if code not in says_missing)
    if not answers:
        return says_missing
    low = min(answers)
    high = max(answers)
    return [code for code in says_missing if not any(low < number < high for number in numbers_among([code]))]


def _without(labels: dict[str, str], codes: list[str]) -> dict[str, str]:
    return {code: text for code, text in labels.items() if code not in codes}


def _is_declared(code: Any, ranges: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a value is in one of the ranges that the file declares missing: numbers, or single texts."""
    for each in ranges:
        low = each["lo"]
        high = each["hi"]
        if isinstance(low, str) or isinstance(high, str):
            if code == low:
                return True
        elif any(low <= number <= high for number in numbers_among([str(code)])):
            return True
    return False


def _without_declared(
    frame: pl.DataFrame, ranges: Mapping[int, list[dict[str, Any]]], labels: Mapping[int, Mapping[str, str]]
) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """The table with nothing where the file declares a value missing; and a note with the number of such values."""
    n_values = 0
    n_columns = 0
    meanings: dict[str, None] = {}
    for k, own in ranges.items():
        column = frame.to_series(k)
        different = column.drop_nulls().unique(maintain_order=True).to_list()
        codes = sorted(code for code in different if _is_declared(code, own))
        if not codes:
            continue
        is_declared = column.is_in(codes).fill_null(False)
        n_values += int(is_declared.sum())
        n_columns += 1
        for text in spellings(codes):
            meanings[f"{text} {labels.get(k, {}).get(text, '')}".strip()] = None
        frame = frame.with_columns(pl.when(is_declared).then(None).otherwise(column).alias(column.name))
    if not n_values:
        return frame, ()
    where = "1 column" if n_columns == 1 else f"{n_columns:,} columns"
    sentence = f"{count_are(n_values, 'value')} missing as the file declares, in {where}: {listed(meanings)}."
    return frame, (Finding("declared_missing", "note", sentence, number=n_values),)


def _without_missing_codes(
    frame: pl.DataFrame, labels: dict[int, dict[str, str]]
) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """The table with nothing where a code is labeled as no answer; and a note with the number of such values."""
    n_values = 0
    n_columns = 0
    meanings: dict[str, None] = {}
    for k, texts in labels.items():
        codes = missing_codes(texts)
        column = frame.to_series(k)
        is_code = pl.repeat(False, frame.height, eager=True)
        for code in codes:
            value = code if column.dtype == pl.String else next(iter(numbers_among([code])), None)
            this_code = (column == value).fill_null(False)
            if this_code.any():
                meanings[f"{code} {texts[code]}"] = None
            is_code = is_code | this_code
        if is_code.any():
            n_values += int(is_code.sum())
            n_columns += 1
            frame = frame.with_columns(pl.when(is_code).then(None).otherwise(column).alias(column.name))
    if not n_values:
        return frame, ()
    where = "1 column" if n_columns == 1 else f"{n_columns:,} columns"
    sentence = (
        f"{count_are(n_values, 'value')} missing because of the label in the file, in {where} of it: "
        f"{listed(meanings)}."
    )
    remedy = "If such a code is an answer, give it another label in the file."
    return frame, (Finding("labeled_missing", "note", sentence, remedy, number=n_values),)


def _plain(column: pl.Series) -> pl.Series:
    """Text without the blanks that fill it up, and nothing where it is blank; no NaN."""
    if column.dtype == pl.String:
        return column.str.strip_chars_end().replace("", None)
    return column.fill_nan(None) if column.dtype.is_float() else column
