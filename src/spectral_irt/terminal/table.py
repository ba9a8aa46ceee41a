"""A table in the width there is: numbers make way for labels, and labels keep what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from spectral_irt.terminal.shortening import LEAST, in_its_place, room_for, shortened, widest

LEGIBLE, COMFORTABLE = 16, 24  # columns that labels get, as far as they need them, before other numbers have a place
BETWEEN = 2  # blanks between columns

# How much room labels must have before a column makes way for them.
APART, READ, COMFORT, WHOLE = "told apart", "legible", "comfortable", "whole"


@dataclass(frozen=True, eq=False)
class Column:
    """A head (of one line or two) and its cells; `spare` says when the column goes: see APART, READ, COMFORT, WHOLE."""

    head: str
    cells: Sequence[str]
    left: bool = False
    style: str | None = None
    spare: str = ""

    @property
    def width(self) -> int:
        return max(map(cell_len, [*self.head.split("\n"), *self.cells]))


def labelled(
    head: str,
    labels: Sequence[Any],
    columns: Sequence[Column],
    width: int,
    *,
    groups: Sequence[tuple[str, int]] = (),
    spared: Sequence[str] = (),
    whole: bool = False,
    said: Sequence[tuple[str, str] | None] = (),
) -> Table:
    """Labels to the left, columns to the right of them in this width.

    Parameters
    ----------
    groups : (name, rows)
        Headings over so many rows each.
    spared : heads
        The columns that can be done without, those that go first before the others.
    whole : bool
        Never cut a label, but let the table be wider.
    said : (short, long), or None
        What stands in place of the label of a row that stands for several, in little room and in enough.
    """
    told = list(said) or [None] * len(labels)
    named = [label for label, text in zip(labels, told, strict=True) if text is None]
    heads = [cell_len(head), *(len(name) for name, _ in groups)]
    whole_width = max([widest(named), *heads, *(len(text[1]) for text in told if text)])
    least = max([room_for(named), min(LEAST, whole_width), *heads, *(len(text[0]) for text in told if text)])
    enough = {READ: LEGIBLE, COMFORT: COMFORTABLE, WHOLE: whole_width}
    needs = {APART: least, **{level: max(least, min(whole_width, most)) for level, most in enough.items()}}
    kept = _kept(columns, spared, needs, width)
    room = whole_width if whole else max(_room(kept, width), LEAST)
    texts = _labels(labels, told, room)

    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False)
    if whole:
        table.width = whole_width + sum(column.width + BETWEEN for column in kept)
    high = max(column.head.count("\n") for column in [Column(head, ()), *kept])
    for column in [Column(head, (), left=True), *kept]:
        above = "\n" * (high - column.head.count("\n"))
        justify: Any = "left" if column.left else "right"
        table.add_column(above + column.head, justify=justify, no_wrap=True, style=column.style)
    starts = _starts(groups)
    for k, cells in enumerate(zip(texts, *(column.cells for column in kept), strict=True)):
        if k in starts:
            if k:
                table.add_row()
            table.add_row(Text(starts[k], style="cyan"))
        table.add_row(*map(Text, cells))
    return table


def plain_table(heads: Sequence[str], columns: Sequence[Sequence[Any]], width: int, *, whole: bool = False) -> Table:
    """A table of texts: labels to the left in the room that the others leave, the others to the right."""
    others = [
        Column(head, cells, left=not head, style=None if head else "yellow")
        for head, cells in zip(heads[1:], columns[1:], strict=True)
    ]
    return labelled(heads[0], list(columns[0]), others, width, whole=whole)


def _kept(columns: Sequence[Column], spared: Sequence[str], needs: dict[str, int], width: int) -> list[Column]:
    """The columns that leave the labels the room they need; a small one is back where a large one had to go."""
    gone: list[Column] = []
    for one in (column for head in spared for column in columns if column.head == head):
        if _room([column for column in columns if column not in gone], width) < needs[one.spare]:
            gone.append(one)
    for one in reversed(gone):
        others = [other for other in gone if other is not one]
        if _room([column for column in columns if column not in others], width) >= needs[one.spare]:
            gone = others
    return [column for column in columns if column not in gone]


def _room(columns: Sequence[Column], width: int) -> int:
    """Columns of the terminal that are left for the labels."""
    return width - sum(column.width + BETWEEN for column in columns)


def _labels(labels: Sequence[Any], told: Sequence[tuple[str, str] | None], room: int) -> list[str]:
    short = iter(shortened([label for label, text in zip(labels, told, strict=True) if text is None], room))
    return [in_its_place(next(short)) if text is None else text[len(text[1]) <= room] for text in told]


def _starts(groups: Sequence[tuple[str, int]]) -> dict[int, str]:
    """The rows over which a heading stands."""
    starts, row = {}, 0
    for name, size in groups:
        if name:
            starts[row] = name
        row += size
    return starts
