"""What a report is made from, an analysis with its record and tables, and what it is made of: sections, and in them
texts, small tables, pictures, and large tables to search."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectral_irt.analysis.folder import finding_record
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data.labels import positions
from spectral_irt.errors import for_page
from spectral_irt.plots.base import Display
from spectral_irt.plots.style import load_matplotlib
from spectral_irt.tables import Columns, guard_cell, plain
from spectral_irt.text import Words, number, printable, rounded, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.folder import Parts

FIRST = 50  # rows that are there without JavaScript
MOST = 20_000  # rows of a table; more would make the page slow, and the files have them all
NARROW = 12  # letters of a label that needs no room of its own
LONGEST_BELOW = 160  # of a text below a label: three lines of a column of labels
DOTS_PER_INCH = 200
CHOICES = 12  # values of a column from which one can choose


@dataclass(frozen=True)
class Text:
    """A paragraph; `screen`: of no use on paper."""

    kind: ClassVar[str] = "text"
    text: str
    screen: bool = False


@dataclass(frozen=True)
class Lines:
    """Paragraphs under a heading, or a program to copy."""

    kind: ClassVar[str] = "lines"
    lines: tuple[str, ...]
    title: str = ""
    program: bool = False


@dataclass(frozen=True)
class Table:
    """A small table: every cell is text already. The first column names the row."""

    kind: ClassVar[str] = "table"
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture as a data address, with words for those who do not see it."""

    kind: ClassVar[str] = "picture"
    address: str
    alt: str
    width: int
    height: int
    caption: str = ""
    narrow: Picture | None = None  # for a narrow screen
    figure: Any = field(default=None, compare=False, repr=False)

    def png(self) -> bytes:
        """The same picture in dots, for documents that hold no SVG."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, facecolor="white", metadata={"Software": None})
        return buffer.getvalue()


@dataclass(frozen=True)
class FindingList:
    """What is odd: severity, sentence, remedy, items."""

    kind: ClassVar[str] = "findings"
    findings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Column:
    """A column of a large table."""

    name: str  # in the data, and in the file that is downloaded
    head: str
    digits: int | None = None  # after the point; None for text
    closed: bool = False  # shown only in a row that is opened, and in the file
    p: bool = False  # p-values: one that would be all zeros is said to be below the least that would not
    below: bool = False  # of a closed column of text: shown below the label of the row, too

    def cell(self, value: Any) -> str:
        """A value as it is shown."""
        if self.digits is None:
            return in_words(value)
        return number(value, self.digits, p=self.p)


ITEM_TEXT = Column("text", "Text", closed=True, below=True)


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table to sort, filter, search and download; the first of `columns` labels the row."""

    kind: ClassVar[str] = "data"
    name: str  # in the page, and of the file
    caption: str
    columns: tuple[Column, ...]
    values: Columns
    filters: tuple[str, ...] = ()  # columns whose values can be chosen
    details: Mapping[str, Any] | None = None  # what an opened row shows besides, by row; None where rows do not open
    noun: str = "rows"

    def __post_init__(self) -> None:
        # A list of columns holds all that a table may have; of this one remain those that its values have.
        object.__setattr__(self, "columns", tuple(column for column in self.columns if column.name in self.values))

    @property
    def n_rows(self) -> int:
        return len(self.values[self.columns[0].name])

    @property
    def long(self) -> bool:
        """Whether rows are named by more than a word."""
        return any(column.below for column in self.columns) or any(
            len(str(label)) > NARROW for label in self.values[self.columns[0].name][:MOST].tolist()
        )

    def data(self) -> dict[str, Any]:
        """What the page's program needs, small: numbers rounded to the digits that are shown."""
        columns = []
        for column in self.columns:
            about = {"name": column.name, "head": column.head, "closed": column.closed}
            values = self.values[column.name][:MOST]
            cells = _texts_of_page(column, values) if column.digits is None else _numbers_of_page(column, values)
            columns.append({**about, **cells})
        places = {column.name: k for k, column in enumerate(self.columns)}
        filters = [self._choices(places[name], name) for name in self.filters if name in places]
        return {"noun": self.noun, "columns": columns, "filters": filters, "details": self.details}

    def _choices(self, place: int, name: str) -> dict[str, Any]:
        """The values of a column from which one can choose; of too many, what is typed is searched for."""
        values = [value for value in dict.fromkeys(map(str, self.values[name][:MOST].tolist())) if value]
        if len(values) > CHOICES:
            values = []
        return {"column": place, "values": values}

    def first(self, most: int = FIRST) -> list[list[str]]:
        """The first rows as text, of the columns that are always shown."""
        cells = [
            [column.cell(value) for value in self.values[column.name][:most].tolist()]
            for column in self.columns
            if not column.closed
        ]
        return [list(row) for row in zip(*cells, strict=True)]

    @property
    def below(self) -> list[str]:
        return self.texts_below(FIRST)

    def texts_below(self, most: int) -> list[str]:
        """What stands below the labels of the first rows, such as the texts of items, or nothing."""
        for column in self.columns:
            if column.below:
                return list(map(item_text, self.values[column.name][:most].tolist()))
        return [""] * min(self.n_rows, most)


def _texts_of_page(column: Column, values: Any) -> dict[str, Any]:
    """The cells of a column of text, and where one is shown, or written to a file, in another way than it is."""
    texts = ["" if value is None else str(value) for value in values.tolist()]
    as_shown = item_text if column.below else in_words
    shown = {}
    cells = {}
    for k, text in enumerate(texts):
        on_page = as_shown(values[k])
        if on_page != text:
            shown[k] = on_page
        in_file = guard_cell(text)
        if in_file != text:
            cells[k] = in_file
    full_texts = {k: printable(texts[k]) for k in shown}
    return {"below": column.below, "values": texts, "shown": shown, "whole": full_texts, "cells": cells}


def _numbers_of_page(column: Column, values: Any) -> dict[str, Any]:
    assert column.digits is not None
    numbers = [rounded(value, column.digits) for value in values.tolist()]
    return {"digits": column.digits, "p": column.p, "values": numbers}


def in_words(value: Any) -> str:
    """A cell of text as it is shown.

    >>> in_words(True), in_words("q1")
    ('yes', 'q1')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return short(value)


def item_text(text: str | None) -> str:
    """The text of an item as it is shown below its label: its beginning, in whole words; nothing where there is none.

    >>> item_text("I felt fearful"), item_text(None), len(item_text("word " * 100))
    ('I felt fearful', '', 156)
    """
    words = printable(text or "")
    if len(words) <= LONGEST_BELOW:
        return words
    beginning = words[: LONGEST_BELOW - 1]
    return f"{beginning.rpartition(' ')[0] or beginning} …"


def cut_short(table: DataTable, file: str) -> list[Any]:
    """The table, after a word where it does not hold all rows."""
    if table.n_rows <= MOST:
        return [table]
    return [Text(f"These are the first {MOST:,} {table.noun} of {table.n_rows:,}; {file} has all."), table]


@dataclass(frozen=True)
class Section:
    """A part of the report under a heading; its long tables stand in the appendix."""

    content: Sequence[Any]
    appendix: Sequence[Any] = ()
    title: str = ""
    name: str = ""


@dataclass(frozen=True, eq=False)
class ReportData:
    """All that sections look at: an analysis, which parts of it are in the report, its record (what `fit.json` holds)
    and its tables by the names of their files."""

    study: Analysis
    parts: Parts
    record: Mapping[str, Any]
    tables: Mapping[str, Columns]
    list_persons: bool = False  # whether single people may be named
    checklist: str | None = None  # of a reporting guideline, by name

    @classmethod
    def of(
        cls,
        study: Analysis,
        parts: Parts,
        record: Mapping[str, Any] | None = None,
        *,
        list_persons: bool = False,
        checklist: str | None = None,
    ) -> ReportData:
        """Of an analysis; `record` is its record where more is known about the files."""
        of_page = {**plain(record or study.record(parts))}
        of_page["findings"] = [plain(finding_record(finding, for_page)) for finding in study.findings(parts)]
        tables = study.tables(parts)
        if "occasions" in tables:  # what the sections about people are about
            tables["persons"] = tables["occasions"]
        return cls(study, parts, of_page, tables, list_persons, checklist)

    @property
    def scale(self) -> Scale:
        """How measures are reported."""
        return self.study.calibration.scale

    @property
    def words(self) -> Words:
        """How what is measured is called."""
        return self.study._words

    def heads(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The columns under heads in these words."""
        return tuple(replace(column, head=self.words.fill(column.head)) for column in columns)

    def with_texts(self, columns: Columns) -> Columns:
        """The columns, with the texts of the items where there are any."""
        if not self.study.responses.item_texts:
            return columns
        return {**columns, "text": self.study.responses.texts_of(columns["item"])}

    def label_and_text(self, item: Any) -> str:
        """The label of an item, and its text where it has one."""
        label = short(item, 40)
        text = self.study.responses.item_texts.get(item)
        return f"{label}: {item_text(text)}" if text else label

    @property
    def items(self) -> Calibration:
        return self.study.calibration.own_items

    @property
    def binary(self) -> bool:
        """Whether every answer is right or wrong."""
        return self.items.layout.binary

    @cached_property
    def strata(self) -> Columns | None:
        """Mean answers by stratum of ability and those expected, of items by position; None without their fit."""
        if not self.parts.fit or not (found := self.study._curves()):
            return None
        return {**found, "item": positions(found["item"].tolist(), self.study.calibration.labels)}


def picture(drawn: Display | Figure, alt: str, caption: str = "", narrow: Callable[[], Any] | None = None) -> Picture:
    """A display, or a figure, as a picture of the page: SVG with its words as text, in an address of its own, so that
    nothing in it can run. Its background is the page's: dark pages can show it too. `narrow` draws
    what stands for it on a narrow screen."""
    load_matplotlib()
    import matplotlib

    figure: Any = drawn.plot().figure if isinstance(drawn, Display) else drawn
    if figure.get_layout_engine() is not None:
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine("none")  # or saving would draw it once more, only to lay it out
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "spectral-irt", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = small(buffer.getvalue())
    wide, high = (round(96 * inches) for inches in figure.get_size_inches())
    data = base64.b64encode(svg.encode()).decode("ascii")
    return Picture(
        address=f"data:image/svg+xml;base64,{data}",
        alt=alt,
        width=wide,
        height=high,
        caption=caption,
        figure=figure,
        narrow=None if narrow is None else picture(narrow().figure, alt),
    )


def small(svg: str) -> str:
    """The picture without what no reader needs: prologue, remarks, fonts to fall back on, digits beyond a hundredth of
    a point."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r', \'Bitstream Vera[^;"]*(?=, sans-serif)| transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    return re.sub(r"\n\s*", "\n", svg)
