"""Tables beside the answers: columns about people, in the table of answers or in one of their own, answer keys, and
texts of items.

A key is a table of items and their right answers, perhaps with scores, or one row under the names of the items.

`read` calls `read_key` and `read_item_texts` and gives builders `PersonColumns` to fill; `Responses.with_people` calls
`read_people`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.builder import is_frame
from spectral_irt.data.labels import DECIMAL_COMMA, DECIMAL_POINT, NOT_ANSWERED, Labels, People, one_spelling
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.reading.columns import ID_NAMES, ITEM_NAMES, KEY_NAMES, PERSON_NAMES, SCORE_NAMES, plain
from spectral_irt.reading.formats import read_one
from spectral_irt.reading.frame import Table, final_labels, plain_labels, polars_errors_named, table_of_any_frame
from spectral_irt.text import count, listed, one_or_many

LABEL = "label"
DECIMAL = r"^-?(0|[1-9]\d*)(\.\d+)?$"  # a number; a code such as 007 is none
# Columns that hold the texts of items, as plain names.
TEXT_NAMES = frozenset({
    "text", "texts", "itemtext", "itemtexts", "questiontext", "wording", "stem", "statement", "variablelabel",
    "varlabel", "label",
})  # fmt: skip
VARIABLE_NAMES = frozenset({"variable", "var", "column", "field", "name"})  # of items, in a list of variables
KEPT = 1_000_000  # rows that may wait before those of the same person are made one


class PersonColumns:
    """What columns say about people, piece by piece; a long table says it with every answer."""

    def __init__(self, names: Sequence[str], source: str, of: str = "person") -> None:
        self.names = tuple(dict.fromkeys(map(str, names)))
        self.source = source
        self.of = of
        self._parts: list[pl.DataFrame] = []
        self._waiting = self._settled = 0

    def positions(self, table: Table) -> list[int]:
        """Where the columns are in a table."""
        return [table.position("people", name) for name in self.names]

    def add(self, labels: pl.Series, columns: Sequence[pl.Series], table: Table) -> None:
        """Some rows: labels of people, and their values in each column; codes with value labels become these."""
        texts = partial(plain_labels, text=True, name=self.source)
        part = pl.DataFrame([texts(one).alias(f"c{k}") for k, one in enumerate(columns)])
        values = pl.all().str.strip_chars()
        part = part.with_columns(pl.when(~values.is_in(NOT_ANSWERED)).then(values))
        labeled = [(k, table.value_labels.get(place)) for k, place in enumerate(self.positions(table))]
        part = part.with_columns([pl.col(f"c{k}").replace(known) for k, known in labeled if known])
        part = part.with_columns(texts(labels).alias(LABEL)).filter(pl.col(LABEL).is_not_null())
        self._parts.append(part.unique(maintain_order=True))
        self._waiting += self._parts[-1].height
        if self._waiting > 2 * self._settled + KEPT:
            self._together()

    def _together(self) -> pl.DataFrame:
        self._parts = [pl.concat(self._parts).unique(maintain_order=True)]
        self._waiting = self._settled = self._parts[0].height
        return self._parts[0]

    def people(self, persons: Labels) -> People:
        """What is known about these people; an error where a person has two values."""
        seen = self._together() if self._parts else pl.DataFrame(schema={LABEL: pl.String})
        columns = {}
        for k, name in enumerate(self.names):
            distinct = seen.select(LABEL, pl.col(f"c{k}").alias("value")).drop_nulls().unique(maintain_order=True)
            twice = distinct.filter(pl.col(LABEL).is_duplicated())[LABEL].unique(maintain_order=True)
            if len(twice):
                who = f"{count(len(twice), self.of)} {one_or_many(len(twice), 'has', 'have')}"
                what = f"{self.source}: {who} more than one value in the column {name!r}: {listed(twice.to_list())}."
                raise OptionError(f"{what} Give each {self.of} one.")
            value = final_labels(distinct["value"], loose=True)
            if distinct.height and value.dtype == pl.String and value.str.contains(DECIMAL).all():
                value = value.cast(pl.Float64)
            values = np.empty(distinct.height, dtype=object)
            values[:] = value.to_list()
            columns[name] = People(distinct[LABEL].to_numpy(), {name: values}).of(persons)[name]
        return People(persons, columns, self.source)


def read_people(source: Any, columns: Sequence[str] = (), *, person: str | None = None, **how: Any) -> People:
    """Columns of a file or dataframe with a row for each person; its only one where none is named. `how`: sheet and
    encoding of a file."""

    def read(table: Table) -> People:
        label = _label_column(table, columns, person)
        names = list(columns) or [str(name) for k, name in enumerate(table.columns) if k != label]
        if len(table.columns) == 1:
            raise OptionError(
                f"{table.name} has one column, {str(table.columns[0])!r}; it needs one that "
                "names the people, and one about them."
            )
        if not columns and len(names) != 1:
            raise OptionError(f"say which column of {table.name} is meant; it has {listed(table.columns)}.")
        about = PersonColumns(names, table.name)
        if label in about.positions(table):
            raise OptionError(f"{table.where(label)} names the people; a group is another one.")
        return _rows_about(table, label, about)

    if is_frame(source):
        with polars_errors_named("the dataframe"):
            return read(table_of_any_frame(source)[0])
    if not isinstance(source, str | os.PathLike):
        raise OptionError(
            f"a table of people is a file or a dataframe with a row for each person, not {type(source).__name__}."
        )
    return read_one(os.fspath(source), "a table of people", read, sheet_option="group_sheet", **how)


def read_item_properties(path: str) -> People:
    """All columns of a table with a row for each item, which its column `item` names, or else the first. Numbers may
    have decimal commas."""

    def read(table: Table) -> People:
        names = [str(name) for name in table.columns]
        label = names.pop(names.index("item") if "item" in names else 0)
        if not names:
            raise OptionError(f"{table.name} has no column beside {label!r}; each property of items is a column.")
        about = PersonColumns(names, table.name, "item")
        columns = _rows_about(table, table.columns.index(label), about)
        for name, values in columns.items():
            columns[name] = _with_decimal_points(values)
            _refuse_words_among_numbers(table.name, name, columns[name])
        return columns

    return read_one(path, "a table of items", read, sheet_option="item_covariates")


def _with_decimal_points(values: NDArray[Any]) -> NDArray[Any]:
    """The same values, those with a decimal comma as numbers where all are numbers then."""
    texts = pl.Series([None if value is None else str(value) for value in values.tolist()], dtype=pl.String)
    numbers = texts.str.replace(DECIMAL_COMMA, DECIMAL_POINT).cast(pl.Float64, strict=False)
    if numbers.null_count() > texts.null_count() or not texts.str.contains(DECIMAL_COMMA).any():
        return values
    return np.array(numbers.to_list(), dtype=object)


def _refuse_words_among_numbers(source: str, name: str, values: NDArray[Any]) -> None:
    """An error where most values of a property are numbers and some are not: as words, each would have an effect of its
    own, and none would say how the property matters."""
    texts = pl.Series(
        [None if value is None else str(value) for value in values.tolist()], dtype=pl.String
    ).drop_nulls()
    words = texts.filter(texts.cast(pl.Float64, strict=False).is_null())
    if len(words) and 2 * len(words) < len(texts):
        raise OptionError(
            f"{source}: column {name!r} holds numbers, and also {listed(words.unique(maintain_order=True))}. Correct "
            "these; if the numbers are codes, write them as words."
        )


def _rows_about(table: Table, label: int, about: PersonColumns) -> People:
    labels: dict[str, None] = {}
    for piece, _ in table.pieces([label, *about.positions(table)]):
        labels_of_rows, *values = piece.get_columns()
        about.add(labels_of_rows, values, table)
        labels |= dict.fromkeys(labels_of_rows.cast(pl.String).drop_nulls())
    return about.people(np.array(list(labels), dtype=object))


def _label_column(table: Table, columns: Sequence[str], person: str | None) -> int:
    """The column that names the people: that of the answers, one with a usual name, or the first."""
    names = [str(name) for name in table.columns]
    if person is not None and str(person) in names:
        return names.index(str(person))
    others = [k for k, name in enumerate(names) if name not in columns]
    usual = [k for known in (PERSON_NAMES, ID_NAMES) for k in others if plain(names[k]) in known]
    return next(iter(usual or others), 0)


def read_key(path: str | os.PathLike[str], sheet: str | int | None, encoding: str | None) -> dict[str, Any]:
    return read_one(path, "an answer key", key_of_table, sheet=sheet, sheet_option="key_sheet", encoding=encoding)


def key_of_table(table: Table) -> dict[str, Any]:
    """The right answer of every item; or the scores of its answers, where there is a column of them."""
    frame = table.whole()
    names = [plain(name) for name in table.columns]

    def find(known: frozenset[str]) -> list[pl.Series]:
        return [frame.to_series(k) for k, name in enumerate(names) if name in known]

    item = find(ITEM_NAMES) or find(ID_NAMES)
    answer = find(KEY_NAMES)
    score = find(SCORE_NAMES)
    if len(item) == len(answer) == len(score) == 1:
        return _scores(item[0], answer[0], score[0], name=table.name)
    if len(item) == 1 and len(answer) == 1:
        return _pairs(table, item[0], answer[0])
    if frame.height == 1:
        first = 1 if names[0] in PERSON_NAMES | ID_NAMES and len(names) > 1 else 0
        answers = [one_spelling(frame.to_series(k))[0] for k in range(first, frame.width)]
        labels = [str(name) for name in table.columns[first:]]
        return {label: value for label, value in zip(labels, answers, strict=True) if value is not None}
    if len(names) == 2:
        return _pairs(table, frame.to_series(0), frame.to_series(1))
    raise ReadError(
        f"{table.name} is not an answer key: it needs the columns 'item' and 'key', or one row of right answers under "
        f"the names of the items; its columns are {listed(table.columns)}."
    )


def _pairs(table: Table, items: pl.Series, answers: pl.Series) -> dict[str, str]:
    key: dict[str, Any] = {}
    for label, answer in zip(items.cast(pl.String).to_list(), one_spelling(answers).to_list(), strict=True):
        if label is not None and answer is not None and key.setdefault(label, answer) != answer:
            what = f"{table.name} gives item {label!r} two right answers, {key[label]!r} and {answer!r};"
            raise OptionError(f"{what} keep one.")
    return key


def _scores(items: pl.Series, answers: pl.Series, scores: pl.Series, *, name: str) -> dict[str, dict[str, Any]]:
    key: dict[str, dict[str, Any]] = {}
    for label, text, score in zip(items.cast(pl.String), one_spelling(answers), one_spelling(scores), strict=True):
        for option in text.split("|") if label is not None and text is not None else ():
            if key.setdefault(label, {}).setdefault(option.strip(), score) != score:
                raise OptionError(f"{name} gives the answer {option!r} to item {label!r} two scores; keep one.")
    return key


class ItemTexts(NamedTuple):
    """The text of each item by its label, and what they are from; `header` is a first row that may be the header."""

    texts: dict[Any, str]
    source: str
    header: tuple[str, str] | None = None


def read_item_texts(source: Any, sheet: str | int | None = None) -> ItemTexts:
    """Texts of items from a file or dataframe with the columns item and text, or from a mapping."""
    if isinstance(source, ItemTexts):
        return source
    if isinstance(source, Mapping):
        return ItemTexts({label: on_one_line(text) for label, text in source.items() if text is not None}, "the texts")
    if is_frame(source):
        with polars_errors_named("the dataframe"):
            return _texts_of_table(table_of_any_frame(source)[0])
    if not isinstance(source, str | os.PathLike):
        raise OptionError(
            f"texts of items are a file, a dataframe with the columns item and text, or a mapping, not "
            f"{type(source).__name__}."
        )
    path = os.fspath(source)
    return read_one(path, "a table of texts", _texts_of_table, sheet=sheet, sheet_option="item_texts_sheet")


def on_one_line(text: Any) -> str:
    return " ".join(str(text).split())


def _texts_of_table(table: Table) -> ItemTexts:
    """The texts in a table: by the names of two columns, or the only two."""
    names = [plain(name) for name in table.columns]
    names_of_items = ({"item"}, ITEM_NAMES, VARIABLE_NAMES, ID_NAMES - TEXT_NAMES)
    by_name = [k for known in names_of_items for k, name in enumerate(names) if name in known]
    item = next(iter(by_name), 0)
    others = [k for k in range(len(names)) if k != item]
    of_texts = [k for k in others if names[k] in TEXT_NAMES]
    if len(of_texts) != 1 and len(others) != 1:
        raise OptionError(
            f"{table.name} is no table of texts: it needs the columns item and text; its columns are "
            f"{listed(table.columns)}."
        )
    text = (of_texts or others)[0]
    texts: dict[Any, str] = {}
    for piece, _ in table.pieces([item, text]):
        labels, values = piece.get_columns()
        for label, value in zip(one_spelling(labels).to_list(), values.cast(pl.String).to_list(), strict=True):
            words = on_one_line(value or "")
            if label is None or not words:
                continue
            if texts.setdefault(label, words) != words:
                both = f"{texts[label]!r} and {words!r}"
                raise OptionError(f"{table.name} gives item {label!r} two texts, {both}; keep one.")
    header = None if by_name else (str(table.columns[item]), on_one_line(table.columns[text]))
    return ItemTexts(texts, table.name, header)
