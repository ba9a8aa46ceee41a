"""The publishers' files as long tables: `person, item, value`, one row per rating or answer.

polars is imported here at the top; `reproduction.datasets.opening` imports this module only when something is read.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from reproduction.datasets.catalog import Source
from spectral_irt.errors import ReadError
from spectral_irt.text import listed

Long = pl.DataFrame
Reader = Callable[[Path, Source], Long]


def read_long(path: Path, source: Source) -> Long:
    """The dataset in this file as `person, item, value`."""
    if _is_parquet(path):
        return neutral(path, source)
    if source.layout not in LAYOUTS:
        raise ReadError(f"{path.name} is not Parquet; {source.title} is read as {source.download}.")
    return LAYOUTS[source.layout](path, source)


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() == ".parquet":
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def neutral(path: Path, source: Source) -> Long:
    """Parquet with columns person (or user), item, and rating or response."""
    value = "rating" if source.kind == "ratings" else "response"
    lazy = pl.scan_parquet(path, glob=False)
    names = lazy.collect_schema().names()
    person = "user" if "user" in names and "person" not in names else "person"
    _check_columns(path, source, names, (person, "item", value))
    number = pl.col(value)
    if lazy.collect_schema()[value] == pl.Float32:
        # 0.35 in four bytes is not 0.35 in eight: rounded back, a rating equal to the person's mean stays equal to it.
        number = number.cast(pl.Float64).round(6).fill_nan(None)
    return lazy.select(pl.col(person).alias("person"), "item", number.alias("value")).collect(engine="streaming")


def _check_columns(path: Path, source: Source, found: list[str], needed: tuple[str, ...]) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise ReadError(
            f"{path.name} has no column {listed(missing)}, which {source.title} has (it has {listed(found)}); check "
            f"that it is the file from {source.page}."
        )


# -------------------------------------------------------------------------- text, one line per rating


@dataclass(frozen=True)
class Text:
    """A text file with one rating per line.

    Attributes
    ----------
    separator : str
        One of its characters is between the fields: the first of them that the first line has.
    columns : three names of the header, or three positions where there is no header
        Of person, item and value.
    looks_like : str
        A line, for messages.
    """

    separator: str
    columns: tuple[str, str, str] | tuple[int, int, int]
    looks_like: str
    keep: tuple[str, int] | None = None  # only rows with this value in the named column

    @property
    def header(self) -> bool:
        return isinstance(self.columns[0], str)

    def __call__(self, path: Path, source: Source) -> Long:
        fields, separator = self._first_line(path, source)
        if self.header:
            _check_columns(path, source, fields, self.columns)  # type: ignore[arg-type]
            if self.keep:
                _check_columns(path, source, fields, (self.keep[0],))
            positions = [fields.index(name) for name in self.columns]  # type: ignore[arg-type]
        else:
            positions = list(self.columns)  # type: ignore[arg-type]
            if len(fields) <= max(positions):
                raise ReadError(
                    f"{path.name}: the first line does not look like {source.title} ({self.looks_like}); check that it "
                    f"is the file from {source.page}."
                )
        text = pl.scan_csv(
            path,
            has_header=self.header,
            separator=separator,
            new_columns=[str(k) for k in range(len(fields))],
            infer_schema=False,
            encoding="utf8-lossy",
            quote_char='"' if separator in ",;" else None,
            glob=False,
        )
        if self.keep:
            column, value = self.keep
            text = text.filter(pl.col(str(fields.index(column))) == str(value))
        return self._numbers(path, source, text.select([str(k) for k in positions]))

    def _first_line(self, path: Path, source: Source) -> tuple[list[str], str]:
        with path.open("rb") as file:
            line = file.readline(100_000).decode("utf-8-sig", errors="replace").rstrip("\r\n")
        if not line:
            raise ReadError(f"{path.name} is empty; download it again from {source.page}.")
        separator = next((one for one in self.separator if one in line), self.separator[0])
        return [field.strip().strip('"') for field in line.split(separator)], separator

    def _numbers(self, path: Path, source: Source, text: pl.LazyFrame) -> Long:
        kinds = [pl.Int32, pl.Int32, pl.Float64 if source.kind == "ratings" else pl.Int8]
        names = text.collect_schema().names()
        numbers = [
            pl.col(name).str.strip_chars().cast(kind, strict=False).alias(role)
            for name, kind, role in zip(names, kinds, ("person", "item", "value"), strict=True)
        ]
        text = text.filter(~pl.all_horizontal(pl.all().is_null()))
        frame = text.select(numbers).collect(engine="streaming")
        if sum(frame.null_count().row(0)):
            bad = pl.any_horizontal(number.is_null() for number in numbers)
            row = text.with_row_index("row").filter(bad).head(1).collect(engine="streaming").row(0)
            line = row[0] + 1 + self.header
            raise ReadError(
                f"{path.name}: line {line:,} (or one after it) has {', '.join(repr(cell or '') for cell in row[1:])} "
                f"where {source.title} has person, item and {source.kind[:-1]} ({self.looks_like}); it is damaged or "
                f"cut short. Download it again from {source.page}."
            )
        return frame


def book_crossing(path: Path, source: Source) -> Long:
    """`"276725";"034545104X";"0"`: quoted, with stray quotes and bytes of Latin-1 inside some ISBNs."""
    with path.open("rb") as file:
        head = file.readline(1000).decode("latin-1")
    _check_columns(path, source, [name.strip().strip('"') for name in head.split(";")], _BOOK_COLUMNS)
    lines = pl.scan_csv(
        path,
        has_header=False,
        skip_rows=1,
        separator="\x1f",  # in no line: a line is one field
        quote_char=None,
        new_columns=["line"],
        infer_schema=False,
        encoding="utf8-lossy",
        glob=False,
    ).filter(pl.col("line").str.strip_chars() != "")
    parts = pl.col("line").str.extract_groups(r'^"?(?P<person>\d+)"?;"?(?P<item>.*?)"?;"?(?P<value>\d+)"?\s*$')
    frame = lines.select(parts.alias("parts")).unnest("parts")
    table = frame.with_columns(pl.col("person").cast(pl.Int64), pl.col("value").cast(pl.Float64)).collect()
    if table["person"].null_count():
        row = int(table["person"].is_null().arg_max() or 0)
        raise ReadError(
            f'{path.name}: line {row + 2:,} does not look like Book-Crossing ("276725";"034545104X";"0"); it is '
            "damaged or cut short. Unpack BX-CSV-Dump.zip again."
        )
    return table


_BOOK_COLUMNS = ("User-ID", "ISBN", "Book-Rating")


def book_genome(path: Path, source: Source) -> Long:
    """JSON lines: {"item_id": 41335427, "user_id": 0, "rating": 5}."""
    wanted = {"item_id": pl.Int64, "user_id": pl.Int64, "rating": pl.Float64}
    with path.open("rb") as file:
        first = file.readline(10_000).decode("utf-8", errors="replace")
    missing = [name for name in wanted if f'"{name}"' not in first]
    if missing:
        raise ReadError(
            f"{path.name}: the first line has no {listed(missing)}; a line of Book-Genome is "
            '{"item_id": 41335427, "user_id": 0, "rating": 5}. Check that it is raw/ratings.json of book_dataset.zip.'
        )
    lazy = pl.scan_ndjson(path, schema=wanted)
    frame = lazy.select(pl.col("user_id").alias("person"), pl.col("item_id").alias("item"), value=pl.col("rating"))
    return frame.collect(engine="streaming")


# ----------------------------------------------------------------------- two small tables of students

MARKS = ("tnp", "twp", "iap", "esp")
GOOD = ("best", "vg")
LEVELS = ("fail", "pass", "good", "vg", "best")
GRADES = ("G1", "G2", "G3")


def student_arff(path: Path, source: Source) -> Long:
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
                    f"{path.name}: line {number:,} has {len(cells)} values for {len(names)} attributes; it is "
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
        raise ReadError(f"{path.name} has marks {listed(odd)}; they must be Best, Vg, Good, Pass or Fail.")
    return _long({name: [int(cell in GOOD) for cell in cells] for name, cells in marks.items()})


def student_grades(path: Path, source: Source) -> Long:
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
                f"{path.name}: column {name!r} has a value that is not a grade from 0 to 20; it is damaged or cut "
                f"short. Download it again from {source.page}."
            ) from None
        columns[name] = (grades > grades.median()).cast(pl.Int8).to_list()
    return _long(columns)


def _long(columns: dict[str, list[int]]) -> Long:
    """People numbered from 1, one row per answer."""
    n_persons = len(next(iter(columns.values())))
    return pl.concat(
        [
            pl.DataFrame({"person": range(1, n_persons + 1), "item": [name] * n_persons, "value": values})
            for name, values in columns.items()
        ]
    )


# -------------------------------------------------------------- Jester: a row per person, a column per joke

NOT_RATED = 99
JOKES = 100
CONVERT = (
    "open it in a spreadsheet program and save it as jester-data-1.csv, or in Python: "
    "pandas.read_excel('jester-data-1.xls', header=None).to_csv('jester-data-1.csv', header=False, index=False)"
)


def jester(path: Path, source: Source) -> Long:
    """101 numbers per line, separated by commas, semicolons or blanks: how many jokes were rated, then the ratings."""
    with path.open("rb") as file:
        start = file.read(4096)
    if path.suffix.lower() in (".xls", ".xlsx") or b"\0" in start:
        raise ReadError(f"{path.name} is an Excel file, which cannot be read; {CONVERT}.")
    separator = next((mark for mark in (",", ";") if mark.encode() in start), None)
    try:
        table = np.loadtxt(path, delimiter=separator, ndmin=2, encoding="latin-1")
    except ValueError as error:
        raise ReadError(
            f"{path.name} is not the Jester table ({error}); a line has {JOKES + 1} numbers. Save it again."
        ) from None
    if table.shape[1] != JOKES + 1:
        raise ReadError(
            f"{path.name} has {table.shape[1]} columns; Jester has {JOKES + 1}: the number of ratings and {JOKES} "
            f"ratings, {NOT_RATED} where there is none. Save the whole table."
        )
    said, ratings = table[:, 0], table[:, 1:]
    person, joke = np.nonzero(ratings != NOT_RATED)
    wrong = np.flatnonzero(np.bincount(person, minlength=len(said)) != said)
    if len(wrong):
        raise ReadError(
            f"{path.name}: line {wrong[0] + 1:,} says {said[wrong[0]]:g} ratings but has a different number of them; "
            f"check that {NOT_RATED} stands where there is no rating."
        )
    return pl.DataFrame({"person": person + 1, "item": joke + 1, "value": ratings[person, joke]})


# ------------------------------------------------------------------------------------------ all of them

LAYOUTS: dict[str, Reader] = {
    "student_arff": student_arff,
    "student_grades": student_grades,
    "riiid": Text(
        ",", ("user_id", "content_id", "answered_correctly"), "a row of train.csv", keep=("content_type_id", 0)
    ),
    "hetrec": Text("\t", ("userID", "movieID", "rating"), "75\t3\t1\t29\t10\t2006 ..."),
    "ml_100k": Text("\t", (0, 1, 2), "196\\t242\\t3\\t881250949"),
    "ml_dat": Text(":", (0, 2, 4), "1::1193::5::978300760"),
    "ml_csv": Text(",", ("userId", "movieId", "rating"), "1,31,2.5,1260759144"),
    "eachmovie": Text("\t,;", (0, 1, 2), "1\\t25\\t0.8\\t1\\t..."),
    "book_crossing": book_crossing,
    "book_genome": book_genome,
    "jester": jester,
}
