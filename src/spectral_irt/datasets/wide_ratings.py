"""Jester: a row a user, a column a joke."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from spectral_irt.datasets.catalogue import Source
from spectral_irt.errors import ReadError

NOT_RATED = 99
JOKES = 100
CONVERT = (
    "open it in a spreadsheet program and save it as jester-data-1.csv, or in Python: "
    "pandas.read_excel('jester-data-1.xls', header=None).to_csv('jester-data-1.csv', header=False, index=False)"
)


def jester(path: Path, source: Source) -> pl.DataFrame:
    """101 numbers a line, divided by commas, semicolons or blanks: how many jokes were rated, then the ratings."""
    with path.open("rb") as file:
        start = file.read(4096)
    if path.suffix.lower() in (".xls", ".xlsx") or b"\0" in start:
        raise ReadError(f"{path.name} is an Excel table, which is not read here; {CONVERT}.")
    separator = next((mark for mark in (",", ";") if mark.encode() in start), None)
    try:
        table = np.loadtxt(path, delimiter=separator, ndmin=2, encoding="latin-1")
    except ValueError as error:
        raise ReadError(
            f"{path.name} is not the table of Jester ({error}); a line has {JOKES + 1} numbers. Save it again."
        ) from None
    if table.shape[1] != JOKES + 1:
        raise ReadError(
            f"{path.name} has {table.shape[1]} columns; Jester has {JOKES + 1}: the number of ratings and {JOKES} "
            f"ratings, {NOT_RATED} where there is none. Save the whole table."
        )
    said, ratings = table[:, 0], table[:, 1:]
    user, joke = np.nonzero(ratings != NOT_RATED)
    wrong = np.flatnonzero(np.bincount(user, minlength=len(said)) != said)
    if len(wrong):
        raise ReadError(
            f"{path.name}: line {wrong[0] + 1:,} says {said[wrong[0]]:g} ratings and has another number of them; "
            f"check that {NOT_RATED} stands where there is no rating."
        )
    return pl.DataFrame({"user": user + 1, "item": joke + 1, "value": ratings[user, joke]})
