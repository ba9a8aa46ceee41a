"""A wide table with the columns of each wave beside each other (q1_t1, q1_t2, ...), as a row for each person and wave.

`by_waves` takes a pattern of columns for each wave, from the first to the last; what their names have in common is the
item. With "auto" the ends of the names say which waves there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import polars as pl

from spectral_irt.errors import DesignError, OptionError
from spectral_irt.reading.families import NUMBERED_OCCASION, OCCASIONS
from spectral_irt.reading.formats import find_files, open_table
from spectral_irt.text import listed

AUTO = "auto"
WAVE = "wave"
ROW = "person"  # of a table that names nobody
FIRST = ("pre", "before", "baseline", "pretest")
ENDS = re.compile(r"(?P<item>.+?)(?P<end>[_. -](?P<word>[A-Za-z]+\d*))")
MOST_ENDS = 0.5  # share of the items of a wave that the others have too


class WaveTable(NamedTuple):
    """A row for each person and wave, the column `wave` among them; and the labels of the waves in order."""

    frame: pl.DataFrame
    waves: list[str]


def by_waves(files: Sequence[str], patterns: Sequence[str], *, sheet: str | None, encoding: str | None) -> WaveTable:
    """The tables in these files, with the columns of each wave below each other."""
    frames = []
    for file in find_files(list(files), sheet=sheet, encoding=encoding):
        table = open_table(file)
        of_file = table.whole()
        of_file.columns = [str(name) for name in table.columns]
        frames.append(of_file)
    frame = pl.concat(frames, how="vertical_relaxed")
    if [*patterns] == [AUTO]:
        patterns = patterns_by_ends(frame.columns)
    items = [_items(frame.columns, pattern, patterns) for pattern in patterns]
    if len(patterns) < 2:
        raise DesignError(f"`waves` names a single wave, {listed(patterns)}; change needs two or more.")
    for pattern, of_wave in zip(patterns, items, strict=True):
        if not of_wave:
            raise OptionError(f"no column is called like {pattern!r}; there are {listed(frame.columns)}.")
    used = {column for of_wave in items for column in of_wave}
    beside = [column for column in frame.columns if column not in used]
    if WAVE in beside:
        raise OptionError(f"the table has a column {WAVE!r} already; rename it.")
    if not beside or not frame[beside[0]].is_unique().all():
        frame = frame.with_row_index(ROW if ROW not in frame.columns else f"{ROW}_number", offset=1)
        beside = [frame.columns[0], *beside]
    labels = _labels(patterns)
    every = list(dict.fromkeys(name for of_wave in items for name in of_wave.values()))
    parts = []
    for label, of_wave in zip(labels, items, strict=True):
        columns = {name: column for column, name in of_wave.items()}
        answers = [
            (pl.col(columns[name]) if name in columns else pl.lit(None)).cast(pl.String).alias(name) for name in every
        ]
        parts.append(frame.select(*beside, pl.lit(label).alias(WAVE), *answers))
    return WaveTable(pl.concat(parts), labels)


def patterns_by_ends(names: Sequence[str]) -> list[str]:
    """A pattern for each wave, where names of columns end alike: q1_t1, q2_t1, q1_t2, q2_t2.

    >>> patterns_by_ends(["id", "q1_post", "q1_pre", "q2_post", "q2_pre"])
    ['*_pre', '*_post']
    """
    stems: dict[str, set[str]] = defaultdict(set)
    for name in names:
        match = ENDS.fullmatch(name)
        if match and (match["word"].lower() in OCCASIONS or NUMBERED_OCCASION.fullmatch(match["word"].lower())):
            stems[match["end"]].add(match["item"])
    common = [
        end for end, of_end in stems.items()
        if any(len(of_end & other) > MOST_ENDS * len(of_end) for each, other in stems.items() if each != end)
    ]  # fmt: skip
    if len(common) < 2:
        raise OptionError("no names of columns end alike for several waves, as in q1_t1, q1_t2; say `waves='*_a,*_b'`.")
    return [f"*{end}" for end in sorted(common, key=_place_of_end)]


def _place_of_end(end: str) -> tuple[bool, int, str]:
    digits = re.search(r"\d+", end)
    return end[1:].lower() not in FIRST, int(digits[0]) if digits else 0, end


def _items(names: Sequence[str], pattern: str, patterns: Sequence[str]) -> dict[str, str]:
    """The columns of a wave, with the name of the item that each is: what the patterns have in common, and the rest."""
    if pattern.count("*") != 1:
        raise OptionError(f"{pattern!r} of `waves` needs one * in the place of the item, as in 'q*_t1,q*_t2'.")
    before, after = pattern.split("*")
    starts, ends = ({each.split("*")[k] for each in patterns if each.count("*") == 1} for k in (0, 1))
    start = before if len(starts) == 1 else ""
    end = after if len(ends) == 1 else ""
    new_names = {}
    for name in names:
        if fnmatchcase(name, pattern):
            new_names[name] = f"{start}{name[len(before) : len(name) - len(after)]}{end}"
    return new_names


def _labels(patterns: Sequence[str]) -> list[str]:
    """What tells the patterns apart, without the signs around it."""
    starts, ends = (len({each.split("*")[k] for each in patterns}) > 1 for k in (0, 1))
    labels = []
    for pattern in patterns:
        before, after = pattern.split("*")
        labels.append(f"{before if starts else ''}{after if ends else ''}".strip("_. -") or pattern)
    return labels
