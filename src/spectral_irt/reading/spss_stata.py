"""Files of SPSS and Stata as tables, by pyreadstat, which is not installed unless asked for. Answers are the codes that
are stored; their value labels are kept beside them, and name the groups of people. Columns go by the names of the
variables. Values that the file declares missing, the system's own or the author's, are missing."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from typing import Any

import polars as pl

from spectral_irt.data.labels import spellings
from spectral_irt.errors import ReadError, retold
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import DAMAGED, Table, table_of_frame
from spectral_irt.text import in_short

PROGRAMS = {"spss": "SPSS", "stata": "Stata"}


def open_table(file: File) -> Table:
    try:
        pyreadstat: Any = importlib.import_module("pyreadstat")
    except ImportError:
        install = 'pip install "spectral-irt[formats]". Or save it as CSV or .xlsx.'
        what = f"{file.name}: what reads files of {PROGRAMS[file.family]} is not installed:"
        raise ReadError(f"{what} {install}") from None
    read = pyreadstat.read_sav if file.family == "spss" else pyreadstat.read_dta
    own = getattr(pyreadstat, "PyreadstatError", pyreadstat.ReadstatError)  # of the wrapper; public since 1.3.2

    def sentence(error: BaseException) -> str:
        encoded = re.search("convert|encod", reason := in_short(error), re.I)
        remedy = "Say how its text is written, as in `encoding='cp1252'`." if encoded else DAMAGED
        return f"{file.name} cannot be read as a file of {PROGRAMS[file.family]}: {reason}. {remedy}"

    with retold((pyreadstat.ReadstatError, own, OSError, TypeError, ValueError, OverflowError), sentence):
        frame, about = read(file.path, encoding=file.encoding, output_format="polars", user_missing=False)
    if not frame.width:
        raise ReadError(f"{file.name} has no variables.")
    columns = list(about.column_names)
    frame = pl.DataFrame([_plain(frame.to_series(k)).alias(str(k)) for k in range(frame.width)])
    labels = {k: about.variable_value_labels.get(name) for k, name in enumerate(columns)}
    known = {k: dict(zip(spellings(own), map(str, own.values()), strict=True)) for k, own in labels.items() if own}
    return replace(table_of_frame(frame, columns, name=file.name), value_labels=known)


def _plain(column: pl.Series) -> pl.Series:
    """Text without the blanks that fill it up, and nothing where it is blank; no NaN."""
    if column.dtype == pl.String:
        return column.str.strip_chars_end().replace("", None)
    return column.fill_nan(None) if column.dtype.is_float() else column
