"""Two small tables of students' grades."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl

from spectral_irt.datasets.catalogue import Source
from spectral_irt.errors import ReadError, listed

MARKS = ("tnp", "twp", "iap", "esp")
GOOD = ("best", "vg")
LEVELS = ("fail", "pass", "good", "vg", "best")
GRADES = ("G1", "G2", "G3")


def student_arff(path: Path, source: Source) -> pl.DataFrame:
    """Sapfile1.arff: nominal marks Best, Vg, Good, Pass and Fail; 1 if Best or Vg."""
    names: list[str] = []
    rows: list[list[str]] = []
    in_data = False
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            cells = [cell.strip().strip("'\"").lower() for cell in text.split(",")]
            if len(cells) != len(names):
                raise ReadError(
                    f"{path.name}: line {number:,} has {len(cells)} values, there are {len(names)} attributes; it is "
                    f"damaged or cut short. Download it again from {source.page}."
                )
            rows.append(cells)
        elif text.lower().startswith("@attribute"):
            names.append(text.split(None, 2)[1].strip("'\"").lower())
        elif text.lower().startswith("@data"):
            in_data = True
    missing = [name for name in MARKS if name not in names]
    if missing or not rows:
        what = f"no attribute {listed(missing)}" if missing else "no data after @data"
        raise ReadError(f"{path.name} has {what}; check that it is Sapfile1.arff from {source.page}.")
    marks = {name: [row[names.index(name)] for row in rows] for name in MARKS}
    odd = [cell for cells in marks.values() for cell in cells if cell not in LEVELS]
    if odd:
        raise ReadError(f"{path.name} has marks {listed(odd)}; they are Best, Vg, Good, Pass or Fail.")
    return _long({name: [int(cell in GOOD) for cell in cells] for name, cells in marks.items()})


def student_grades(path: Path, source: Source) -> pl.DataFrame:
    """student-por.csv: grades G1, G2, G3 from 0 to 20; 1 if strictly above the median of that grade."""
    with path.open(encoding="latin-1", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=";") if row]
    header = [name.strip() for name in rows[0]] if rows else []
    missing = [name for name in GRADES if name not in header]
    if missing or len(rows) < 2:
        what = f"no column {listed(missing)}" if missing else "no students"
        raise ReadError(f"{path.name} has {what}; check that it is student-por.csv from {source.page}.")
    columns = {}
    for name in GRADES:
        try:
            grades = pl.Series([int(row[header.index(name)].strip('" ')) for row in rows[1:]])
        except (ValueError, IndexError):
            raise ReadError(
                f"{path.name}: column {name!r} holds what is no grade from 0 to 20; it is damaged or cut short. "
                f"Download it again from {source.page}."
            ) from None
        columns[name] = (grades > grades.median()).cast(pl.Int8).to_list()
    return _long(columns)


def _long(columns: dict[str, list[int]]) -> pl.DataFrame:
    """Users numbered from 1, one row an answer."""
    n_users = len(next(iter(columns.values())))
    return pl.concat(
        [
            pl.DataFrame({"user": range(1, n_users + 1), "item": [name] * n_users, "value": values})
            for name, values in columns.items()
        ]
    )
