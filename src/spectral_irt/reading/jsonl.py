"""JSON lines: one object a person, `{"subject_id": "ann", "responses": {"q1": 1, "q2": 0}}`.

Also read: one flat object a person (`{"id": "ann", "q1": 1, "q2": 0}`) and one object an answer (`{"person": "ann",
"item": "q1", "response": 1}`), which is a long table.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.data.builder import Piece
from spectral_irt.data.labels import as_text, positions
from spectral_irt.data.value_check import Place
from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.reading import LayoutOptions
from spectral_irt.reading.attributes import ItemColumns, attributes_among, named, parts_of
from spectral_irt.reading.columns import ID_NAMES, ITEM_NAMES, PERSON_NAMES, RESPONSE_NAMES, plain
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import HEAD_ROWS, Pieces, Table, series_of
from spectral_irt.reading.label_codes import ItemIndex, check_names
from spectral_irt.reading.text_pieces import notes_on_encoding, numbered_lines
from spectral_irt.reading.wide_builder import RowBatch, RowSource

HEAD_BYTES = 1 << 16
PIECE_BYTES = 1 << 21  # objects take many times the memory of their text
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character that JSON writes as a pair


class Object(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a name that comes twice is seen; a dict would keep the last."""


def _objects(file: File, size: int | None = None) -> Iterator[tuple[list[tuple[int, Object]], float]]:
    """The objects in pieces, each with the number of its line, and the share of the file read by now."""
    for lines, done in numbered_lines(file, size or PIECE_BYTES):
        yield [(number, _parsed(file, number, text)) for number, text in lines], done


def _parsed(file: File, number: int, text: str) -> Object:
    try:
        value = json.loads(text, object_pairs_hook=Object)
    except (ValueError, RecursionError) as error:
        hint = "Put each person's object on a line of its own, without commas or brackets around."
        reason = getattr(error, "msg", str(error))
        raise ReadError(f"{file.name}: line {number:,} is not a JSON object ({reason}). {hint}") from None
    if not isinstance(value, Object):
        raise ReadError(
            f"{file.name}: line {number:,} is not a JSON object but {_kind(value)}. Put each person's object on a line "
            'of its own, as in {"subject_id": "ann", "responses": {"q1": 1, "q2": 0}}.'
        )
    _check_names_differ(file, number, value)
    if _HALF.search(text):  # json makes it half a character, which no file can hold
        try:
            (whole := json.dumps(value, ensure_ascii=False)).encode()
        except UnicodeEncodeError as error:
            half = ascii(whole[error.start])[1:-1]
            raise ReadError(
                f"{file.name}: line {number:,} holds {half}, half of a pair that only together is a character. Write "
                "the text anew, or remove the half."
            ) from None
    return value


def _check_names_differ(file: File, number: int, one: Object) -> None:
    """Refuse a name that comes twice in an object: which value is meant cannot be known."""
    names = [name for name, _ in one]
    if len(set(names)) < len(names):
        twice = listed(name for name, times in Counter(names).items() if times > 1)
        raise ReadError(f"{file.name}: line {number:,} has the field {twice} more than once. Keep one of each.")
    for _, value in one:
        if isinstance(value, Object):
            _check_names_differ(file, number, value)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null", Object: "an object"}
    return names.get(type(value), "a number")


# ------------------------------------------------------------------ which field is what


@dataclass(frozen=True)
class Fields:
    """The field with the person's label (None: numbered), the one with the answers (None: all but the others)."""

    person: str | None
    answers: str | None
    ignore: tuple[Any, ...] = ()
    items: tuple[Any, ...] = ()  # names and patterns of the items, if they were said
    key: tuple[Any, ...] = ()
    chosen: ItemColumns = dataclasses.field(default_factory=ItemColumns)

    def items_of(self, pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Those of the fields that are items."""
        names = [name for name, _ in pairs]
        if self.items:
            keep: Iterable[Any] = named(self.items, names)
        elif self.chosen.not_in_key:
            keep = positions(names, self.key) >= 0
        elif self.chosen.attributes:
            left_out = set(self.chosen.attributes)
            keep = [name not in left_out for name in names]
        else:
            return pairs
        return [pair for pair, kept in zip(pairs, keep, strict=True) if kept]


def is_long(first: Object, options: LayoutOptions) -> bool:
    """Whether each line is one answer."""
    if options.format == "wide":
        return False
    if options.format == "long" or options.item is not None:
        return True
    scalars = {plain(name) for name, value in first if not isinstance(value, Object)}
    return all(scalars & names for names in (PERSON_NAMES | ID_NAMES, ITEM_NAMES, RESPONSE_NAMES))


def find_fields(file: File, first: Object, options: LayoutOptions, key: Iterable[Any] = ()) -> Fields:
    names = [name for name, _ in first]
    ignore = tuple(part for name in options.ignore for part in parts_of(name, names))
    said = [("person", options.person), ("response", options.response), *(("ignore", name) for name in ignore)]
    for role, name in said:
        if name is not None and name not in names:
            raise OptionError(f"{file.name} has no field {name!r} for `{role}`; its fields are {listed(names)}.")
    answers = options.response or _only(file, [name for name, value in first if isinstance(value, Object)])
    scalars = [name for name, value in first if not isinstance(value, Object) and name not in ignore]
    likely = [name for known in (PERSON_NAMES, ID_NAMES) for name in scalars if plain(name) in known]
    person = options.person if options.person is not None or not likely else likely[0]
    if answers is not None:
        return Fields(person, answers, ignore, options.items)
    rest = [(name, value) for name, value in first if name != person and name not in ignore]
    chosen = _chosen(rest, options, tuple(key))
    label = None if person is None else f"field {person!r}"
    return Fields(person, answers, ignore, options.items, tuple(key), replace(chosen, label=label))


def _chosen(fields: list[tuple[str, Any]], options: LayoutOptions, key: tuple[Any, ...]) -> ItemColumns:
    """Which fields of the first object are items, and which are not."""
    names = [name for name, _ in fields]
    if options.items or options.orient == "items":
        return ItemColumns()
    if key and (found := positions(names, key) >= 0).any():
        return ItemColumns(not_in_key=tuple(name for name, known in zip(names, found, strict=True) if not known))
    out, suspects = attributes_among(names, [value in (0, 1, None) for _, value in fields])
    return ItemColumns(attributes=tuple(names[k] for k in out), suspects=tuple(names[k] for k in suspects))


def _only(file: File, nested: list[str]) -> str | None:
    if len(nested) > 1:
        nested = [name for name in nested if plain(name) in RESPONSE_NAMES] or nested
    if len(nested) > 1:
        raise ReadError(
            f"{file.name}: {listed(nested)} could each hold the answers. Say which with `response={nested[0]!r}`."
        )
    return nested[0] if nested else None


# ------------------------------------------------------------------ a person a line


class JsonRows:
    """The persons of a JSON-lines file as batches of rows. See `RowSource`."""

    loose_rows = loose_columns = in_order = False

    def __init__(self, file: File, first: Object, options: LayoutOptions, key: Iterable[Any]) -> None:
        self.file, self.name = file, file.name
        self.field = find_fields(file, first, options, key)
        self.labeled = self.field.person is not None
        no_choice = options.orient == "items" or self.field.answers is not None
        self.chosen = None if no_choice else self.field.chosen
        self.about: Any = None  # `Attributes`, where columns about people were options for

    def batches(self, columns: ItemIndex, number: int) -> Iterator[tuple[RowBatch, float]]:
        for objects, done in _objects(self.file):
            yield self._batch(objects, columns, number), done
            number += len(objects)

    def _batch(self, objects: list[tuple[int, Object]], columns: ItemIndex, number: int) -> RowBatch:
        file, field = self.file, self.field
        people = [_person(file, line, one, field) for line, one in objects]
        pairs = [pair for _, answers in people for pair in answers]
        row = np.repeat(np.arange(len(people)), [len(answers) for _, answers in people])

        def place(k: int) -> Place:
            return Place(file.name, pairs[k][0], objects[row[k]][0])

        for k, pair in enumerate(pairs):
            if isinstance(pair[1], list):
                raise _not_a_value(file, place(k).row, pair)
        labels = _labels(file, [label for label, _ in people], objects, number, field)
        if field.person is not None:
            check_names(labels, f"{file.name}: field {field.person!r}", [line for line, _ in objects])
        if self.about is not None and objects:
            found = [dict(one) for _, one in objects]
            told = [[one.get(name) for one in found] for name in self.about.names]
            self.about.add(labels, [as_text(series_of(each)) for each in told])
        values = series_of([value for _, value in pairs])
        return RowBatch(labels, Piece(row, columns.codes([name for name, _ in pairs]), values, place))


def _person(file: File, line: int, one: Object, field: Fields) -> tuple[Any, list[tuple[str, Any]]]:
    found = dict(one)
    label = None if field.person is None else found.get(field.person)
    if field.person is not None and field.person not in found:
        raise ReadError(f"{file.name}: line {line:,} has no field {field.person!r}, which names the person.")
    if field.answers is None:
        others = {field.person, *field.ignore}
        return label, field.items_of([pair for pair in one if pair[0] not in others])
    answers = found.get(field.answers)
    if not isinstance(answers, Object):
        raise ReadError(
            f"{file.name}: line {line:,} has no object of answers in the field {field.answers!r}, as in "
            f'{{"{field.answers}": {{"q1": 1, "q2": 0}}}}.'
        )
    return label, field.items_of(answers)


def _labels(file: File, labels: list[Any], objects: list[tuple[int, Object]], number: int, field: Fields) -> pl.Series:
    if field.person is None:
        return pl.Series(np.arange(number, number + len(labels), dtype=np.int64))
    if all(type(label) is int and abs(label) < 2**63 for label in labels) and labels:
        return pl.Series(labels, dtype=pl.Int64)
    for (line, _), label in zip(objects, labels, strict=True):
        if isinstance(label, list):
            raise ReadError(f"{file.name}: line {line:,} names the person with {_kind(label)}, not a text or number.")
    return pl.Series([None if label is None else str(label) for label in labels], dtype=pl.String)


def _not_a_value(file: File, line: int, pair: tuple[str, Any]) -> ReadError:
    return ReadError(
        f"{file.name}: line {line:,} answers {pair[0]!r} with {_kind(pair[1])}; an answer is a number or a text."
    )


# ------------------------------------------------------------------ an answer a line


def open_table(file: File) -> Table:
    """A JSON-lines file as a table, whose columns are the fields of the first line."""
    start = next((found for found, _ in _objects(file, HEAD_BYTES) if found), None)
    if start is None:
        raise ReadError(f"{file.name} holds nothing but blank lines.")
    first = start[0][1]
    columns = [name for name, _ in first]

    def column(objects: list[tuple[int, Object]], name: str) -> pl.Series:
        values = [dict(one).get(name) for _, one in objects]
        for (line, _), value in zip(objects, values, strict=True):
            if isinstance(value, list):
                raise _not_a_value(file, line, (name, value))
        # Types may change from line to line; as text they agree, and labels that were numbers become numbers again.
        return as_text(series_of(values))

    def head(position: int) -> pl.Series:
        return column(start[:HEAD_ROWS], columns[position])

    def pieces(chosen: Sequence[int]) -> Pieces:
        for objects, done in _objects(file):
            yield pl.DataFrame({str(k): column(objects, columns[c]) for k, c in enumerate(chosen)}), done

    def rows(options: LayoutOptions, key: Iterable[Any]) -> RowSource | None:
        return None if is_long(first, options) else JsonRows(file, first, options, key)

    types, whole = [pl.String] * len(columns), [k for k, (_, value) in enumerate(first) if type(value) is int]
    return Table(file.name, columns, types, head, pieces, whole, row_source=rows, notes=notes_on_encoding(file))
