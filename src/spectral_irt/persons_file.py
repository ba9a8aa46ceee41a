"""The table of persons as a file of SPSS or Stata, where it is merged with what else is known of them.

Variables have labels; codes stand for the groups of persons, with value labels. pyreadstat writes the file, and is an
extra (`formats`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spectral_irt import __version__
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.installation import install_extra
from spectral_irt.tables import AnyColumns, frame_of
from spectral_irt.xlsx import EXACT

if TYPE_CHECKING:
    import polars as pl

MARK = "Written by spectral-irt"  # the label of a file of ours begins so
MOST_GROUPS = 50  # different texts of a column about the persons; with more they stay texts
YES_NO = {0: "no", 1: "yes"}


class Program(NamedTuple):
    """SPSS or Stata: what its files can hold, names and labels in bytes."""

    name: str
    longest_name: int
    longest_label: int
    reserved: frozenset[str]


# Words that no variable can be called.
OF_SPSS = "all and by eq ge gt le lt ne not or to with"
OF_STATA = "byte double float if in int long strl using with _all _b _n _cons _pi _pred _rc _skip"
PROGRAMS = {
    ".sav": Program("SPSS", longest_name=64, longest_label=255, reserved=frozenset(OF_SPSS.split())),
    ".dta": Program("Stata", longest_name=32, longest_label=80, reserved=frozenset(OF_STATA.split())),
}

LABELS = {
    "n": "Responses to items that have a difficulty",
    "score": "Raw score on these items",
    "max_score": "Highest possible raw score on these items",
    "code_sum": "Sum of the responses as coded in the data",
    "measure_100": "Ability from 0 to 100",
    "ability": "Ability in logits",
    "se": "Standard error of the ability in logits",
    "extreme": "Lowest or highest possible score",
    "infit": "Infit mean square",
    "infit_z": "Infit, standardized",
    "outfit": "Outfit mean square",
    "outfit_z": "Outfit, standardized",
    "infit_p": "Chance of so large an infit under the model",
    "outfit_p": "Chance of so large an outfit under the model",
    "measure": "Ability on the scale of report",
    "measure_se": "Standard error of the ability on the scale of report",
    "percentile": "Percentile among the persons",
}
NUMBERED_LABELS = {"pv": "Plausible value {} in logits", "measure_pv": "Plausible value {} on the scale of report"}


def is_persons_file(path: Path) -> bool:
    return path.suffix.lower() in PROGRAMS and not path.is_dir()


def check_persons_file(path: Path) -> None:
    """Before any work: an error where the file cannot be written, or one of this name is somebody's data."""
    program = PROGRAMS[path.suffix.lower()]
    if find_spec("pyreadstat") is None:
        raise OptionError(
            f"{str(path)!r}: what writes files of {program.name} is not installed: {install_extra('formats')}. Or name "
            "a folder, or a workbook that ends in .xlsx."
        )
    if path.is_file() and not _is_ours(path):
        raise OutputError(
            f"{str(path)!r} is there already, and no run of spectral-irt wrote it; choose another name, or move it "
            "away. Nothing was written."
        )


def _is_ours(path: Path) -> bool:
    pyreadstat: Any = importlib.import_module("pyreadstat")
    read = pyreadstat.read_sav if path.suffix.lower() == ".sav" else pyreadstat.read_dta
    try:
        about = read(path, metadataonly=True, output_format="polars")[1]
    except (pyreadstat.ReadstatError, OSError, ValueError):
        return False
    return (about.file_label or "").startswith(MARK)


def write_persons_file(draft: Path, target: Path, columns: AnyColumns) -> None:
    """The table of persons as what the target's name says, .sav or .dta."""
    pyreadstat: Any = importlib.import_module("pyreadstat")
    kind = target.suffix.lower()
    frame, value_labels = _with_codes(frame_of(columns))
    names = variable_names(frame.columns, PROGRAMS[kind])
    longest = PROGRAMS[kind].longest_label
    labels = {name: _cut(variable_label(column), longest) for column, name in names.items()}
    formats = {names[series.name]: _format(series) for series in frame if series.dtype.is_numeric()}
    about: dict[str, Any] = {
        "file_label": f"{MARK} {__version__}: persons",
        "column_labels": labels,
        "variable_value_labels": {names[column]: texts for column, texts in value_labels.items()},
    }
    frame = frame.rename(names)
    if kind == ".sav":
        pyreadstat.write_sav(frame, str(draft), variable_format=formats, row_compress=True, **about)
    else:
        pyreadstat.write_dta(frame, str(draft), **about)


def _format(series: pl.Series) -> str:
    """How SPSS shows a column of numbers."""
    if series.dtype.is_float():
        return "F10.3"
    return "F8.0"


def variable_label(column: str) -> str:
    """What a column of the table of persons is; one about the persons keeps its name.

    >>> variable_label("se"), variable_label("pv3"), variable_label("Date of birth")
    ('Standard error of the ability in logits', 'Plausible value 3 in logits', 'Date of birth')
    """
    for start, text in NUMBERED_LABELS.items():
        number = column.removeprefix(start)
        if number != column and number.isdigit():
            return text.format(number)
    return LABELS.get(column, column)


def variable_names(columns: Iterable[str], program: Program) -> dict[str, str]:
    """A name that the program allows for each column, and no two alike, whatever their case.

    >>> variable_names(["se", "Date of birth", "SE", "2nd", "by"], PROGRAMS[".sav"])
    {'se': 'se', 'Date of birth': 'Date_of_birth', 'SE': 'SE_2', '2nd': 'v2nd', 'by': 'by_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for column in columns:
        name = re.sub(r"\W+", "_", column).strip("_") or "v"
        if not name[0].isalpha():
            name = f"v{name}"
        name = _cut(name, program.longest_name)
        if name.casefold() in program.reserved:
            name = f"{name}_"
        first = name
        number = 2
        while name.casefold() in taken:
            ending = f"_{number}"
            name = f"{_cut(first, program.longest_name - len(ending))}{ending}"
            number += 1
        taken.add(name.casefold())
        names[column] = name
    return names


def _cut(text: str, longest: int) -> str:
    """The text, or as much of it as takes so many bytes."""
    return text.encode()[:longest].decode(errors="ignore")


def _with_codes(frame: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, Mapping[int, str]]]:
    """The table with numbers and texts only: yes and no are 1 and 0, and the groups of a column about the persons 1, 2,
    ... in the order of their names; and the value labels of these. What is infinite is missing."""
    import polars as pl

    value_labels: dict[str, dict[int, str]] = {}
    for series in frame:
        name = series.name
        if series.dtype == pl.Boolean:
            series = series.cast(pl.Int32)
            value_labels[name] = YES_NO
        elif series.dtype == pl.String and name != "person":
            texts = series.drop_nulls().unique().sort().to_list()
            if 0 < len(texts) <= MOST_GROUPS:
                series = series.cast(pl.Enum(texts)).to_physical().cast(pl.Int32) + 1
                value_labels[name] = dict(enumerate(texts, start=1))
        elif series.dtype.is_float():
            series = series.set(series.is_infinite(), None)
        elif series.dtype.is_integer():
            largest = series.abs().max()
            if isinstance(largest, int) and largest >= EXACT:  # both programs would round it
                series = series.cast(pl.String)
        frame = frame.with_columns(series)
    return frame, value_labels
