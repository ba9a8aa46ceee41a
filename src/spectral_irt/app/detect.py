"""What a file seems to hold: its columns, and what each was taken for. Run in a process of its own.

    echo '{"file": "answers.csv"}' | python -m spectral_irt.app.detect

The recognition is that of `read`; nothing is decided here but which attributes are offered as groups, and who rated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import ReadError, SpectralIrtError, for_shell
from spectral_irt.text import printable

if TYPE_CHECKING:
    from spectral_irt.reading.columns import Long, Wide
    from spectral_irt.reading.formats import File
    from spectral_irt.reading.frame import Table

# Roles of columns.
ITEM = "item"
PERSON = "person"
GROUP = "group"
RATER = "rater"
RESPONSE = "response"
UNUSED = "unused"
SHOWN_VALUES = 4  # of a column
LONGEST_VALUE = 40  # characters of it
LONGEST_TEXT = 120  # characters of what a column is in words
MOST_SHOWN = 300  # columns with their values; of the others only the role is told
MOST_GROUPS = 6  # an attribute with more values is not offered as groups
FEWEST_PEOPLE = 30  # in each group, below which no comparison is made
BOOKLETS = {"form", "booklet"}  # attributes of the test: people of different forms met different items


def detect(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a file and their roles; where these are not clear, an error beside the columns."""
    from spectral_irt.reading.excel import sheet_names
    from spectral_irt.reading.formats import find_files
    from spectral_irt.reading.frame import polars_errors_named
    from spectral_irt.reading.text_pieces import read_as_written

    path = Path(asked["file"])
    files = find_files(path, encoding=asked.get("encoding") or None)
    if files[0].family == "json":
        raise ReadError(f"{path.name} is JSON, which this page does not take; 'spectral-irt fit' in a terminal does.")
    sheets = [str(name) for name in sheet_names(files[0])] if files[0].family == "workbook" else []
    if asked.get("sheet") in sheets:
        files = find_files(path, sheet=asked["sheet"])
    with polars_errors_named(path.name):
        try:
            seen: dict[str, Any] = read_as_written(files, lambda files: _columns_of(files[0], asked))
        except SpectralIrtError as error:
            if len(sheets) < 2:
                raise
            seen = {"error": for_shell(str(error)), "columns": [], "format": ""}
    return {**seen, "sheets": sheets}


def _columns_of(file: File, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one table with their roles and first values, and its layout."""
    from spectral_irt.reading import ReadOptions, scoring_of
    from spectral_irt.reading.columns import Long, find_layout
    from spectral_irt.reading.formats import open_table
    from spectral_irt.reading.key_row import without_key_rows

    table = open_table(file).without_second_header()
    how = ReadOptions(format=asked.get("format") or "auto", orient=asked.get("orient") or "persons")
    roles = [UNUSED] * len(table.columns)
    error = ""
    layout = None
    try:
        key, _, sheet = (asked.get("key") or "").rpartition("#")  # of the workbook itself
        scoring = scoring_of(key=key, key_sheet=sheet) if key else scoring_of(key=sheet or None)
        (table,), how = without_key_rows([table], replace(how, scoring=scoring))
        layout = find_layout(table, how, every_row=True)
        roles = _roles(table, layout)
    except SpectralIrtError as problem:
        error = for_shell(str(problem))
    columns = [
        {
            "name": str(name),
            "text": printable(table.variable_labels.get(k, "")[:LONGEST_TEXT]),
            "values": _values(table, k) if k < MOST_SHOWN else [],
            "role": role,
        }
        for k, (name, role) in enumerate(zip(table.columns, roles, strict=True))
    ]
    kind = how.format
    if layout is not None:
        kind = "long" if isinstance(layout, Long) else "wide"
    return {"format": kind, "columns": columns, "error": error}


def _roles(table: Table, layout: Long | Wide) -> list[str]:
    """What each column was taken for."""
    import polars as pl

    from spectral_irt.data.labels import one_spelling
    from spectral_irt.reading.columns import Long
    from spectral_irt.reading.item_columns import CATEGORIES, RATERS, says_attribute, words_of

    roles = [UNUSED] * len(table.columns)
    if isinstance(layout, Long):
        people: int | None = layout.person
        roles[layout.item] = ITEM
        roles[layout.response] = RESPONSE
    else:
        people = layout.label
        for k in layout.columns:
            roles[k] = ITEM
    repeated = False  # a row for each person and rater
    if people is not None:
        roles[people] = PERSON
        repeated = not isinstance(layout, Long) and bool(table.head(people).drop_nulls().is_duplicated().any())
    for k, name in enumerate(table.columns):
        words = set(words_of(name))
        if words & RATERS and roles[k] in (UNUSED, ITEM):
            # Ratings 0 to 3 by a rater may be an item of this name; names of raters are none.
            has_names = one_spelling(table.head(k)).cast(pl.Float64, strict=False).count() == 0
            if roles[k] == UNUSED or repeated or has_names:
                roles[k] = RATER
        category = says_attribute(name) and words & CATEGORIES
        if roles[k] == UNUSED and not words & BOOKLETS:
            text = one_spelling(table.head(k)).cast(pl.Float64, strict=False).count() == 0
            of_person = people if isinstance(layout, Long) else None
            if (category or text) and _makes_groups(table, k, of_person):
                roles[k] = GROUP
    return roles


def _makes_groups(table: Table, column: int, people: int | None) -> bool:
    """Whether the people fall into a few groups by this column, all large enough to be compared. Where a row is an
    answer, each person counts once: `people` is their column."""
    import polars as pl

    from spectral_irt.data.labels import one_spelling

    positions = [column] if people is None else [column, people]
    parts = [piece.with_columns(one_spelling(piece.to_series(0)).alias("0")) for piece, _ in table.pieces(positions)]
    if people is not None:  # a person has many rows: each counts once
        parts = [part.unique() for part in parts]
    rows = pl.concat(parts).filter(pl.col("0").is_not_null())
    if people is not None:
        rows = rows.unique()
    sizes = rows["0"].value_counts()["count"].to_list()
    return 2 <= len(sizes) <= MOST_GROUPS and min(sizes) >= FEWEST_PEOPLE


def _values(table: Table, column: int) -> list[str]:
    """The first values that differ, with their labels where the file has some; 1.0 of a column of numbers is 1."""
    from spectral_irt.data.labels import one_spelling

    values = table.head(column).drop_nulls()
    if values.dtype.is_numeric():
        values = one_spelling(values)
    labels = table.value_labels.get(column, {})
    texts = list(dict.fromkeys(str(value) for value in values.to_list()))[:SHOWN_VALUES]
    texts = [f"{text} = {labels[text]}" if text in labels else text for text in texts]
    return [printable(text[:LONGEST_VALUE]) for text in texts]


def main() -> int:
    """The answer goes to stdout; an error to stderr, in one line."""
    asked = json.load(sys.stdin)
    try:
        answer = detect(asked)
    except SpectralIrtError as error:
        print(f"error: {printable(for_shell(str(error)))}", file=sys.stderr)
        return 2
    except Exception as error:
        first, *_ = str(error).strip().splitlines() or [""]
        print(f"internal error: {type(error).__name__}: {printable(first)}", file=sys.stderr)
        return 1
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
