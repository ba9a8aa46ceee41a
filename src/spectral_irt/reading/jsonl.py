"""JSON lines: one object a person, `{"subject_id": "ann", "responses": {"q1": 1, "q2": 0}}`.

Also read: one flat object a person (`{"id": "ann", "q1": 1, "q2": 0}`) and one object an answer (`{"person": "ann",
"item": "q1", "response": 1}`), which is a long table.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.data.builder import Piece
from spectral_irt.data.labels import as_text, positions
from spectral_irt.data.value_check import Place
from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.reading import LayoutOptions
from spectral_irt.reading.attributes import ItemColumns, PersonColumns, attributes_among, named, parts_of
from spectral_irt.reading.columns import ID_NAMES, ITEM_NAMES, PERSON_NAMES, RESPONSE_NAMES, plain
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import HEAD_ROWS, Pieces, Table, check_names, series_of
from spectral_irt.reading.text_pieces import notes_on_encoding, numbered_lines
from spectral_irt.reading.wide_builder import ItemIndex, RowBatch, RowSource

HEAD_BYTES = 1 << 16
PIECE_BYTES = 1 << 21  # objects take many times the memory of their text
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character that JSON writes as a pair
_KINDS = {list: "a list", str: "a text", bool: "true or false", type(None): "null", dict: "an object"}

Numbered = list[tuple[int, dict[str, Any]]]  # objects, each with the number of its line


class _RepeatedField(Exception):
    """A name comes twice in an object: which value is meant cannot be known."""


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedField(listed(name for name, times in Counter(name for name, _ in pairs).items() if times > 1))
    return found


def _objects(file: File, size: int | None = None) -> Iterator[tuple[Numbered, float]]:
    """The objects in pieces, and the share of the file read by now."""
    for lines, done in numbered_lines(file, size or PIECE_BYTES):
        yield [(number, _parsed(f"{file.name}: line {number:,}", text)) for number, text in lines], done


def _parsed(where: str, text: str) -> dict[str, Any]:
    hint = "Put each person's object on a line of its own"
    try:
        value = json.loads(text, object_pairs_hook=_unlike)
    except _RepeatedField as twice:
        raise ReadError(f"{where} has the field {twice} more than once. Keep one of each.") from None
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", str(error))
        raise ReadError(
            f"{where} is not a JSON object ({reason}). {hint}, without commas or brackets around."
        ) from None
    if not isinstance(value, dict):
        example = '{"subject_id": "ann", "responses": {"q1": 1, "q2": 0}}'
        raise ReadError(f"{where} is not a JSON object but {_kind(value)}. {hint}, as in {example}.")
    if _HALF.search(text):  # json makes it half a character, which no file can hold
        try:
            (whole := json.dumps(value, ensure_ascii=False)).encode()
        except UnicodeEncodeError as error:
            half = ascii(whole[error.start])[1:-1]
            raise ReadError(
                f"{where} holds {half}, half of a pair that only together is a character. Write the text anew, or "
                "remove the half."
            ) from None
    return value


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")


def _check_plain(where: str, name: str, value: Any) -> None:
    if isinstance(value, list | dict):
        raise ReadError(f"{where} answers {name!r} with {_kind(value)}; an answer is a number or a text.")


# ------------------------------------------------------------------ a person a line


class JsonRows:
    """The people of a JSON-lines file as batches of rows. See `RowSource`.

    Their labels are in the field `person` (None: they are numbered), the answers in the object `answers` (None: in all
    fields but the others).
    """

    loose_rows = loose_columns = in_order = False

    def __init__(self, file: File, first: Mapping[str, Any], options: LayoutOptions, key: Iterable[Any]) -> None:
        self.file, self.name, self.said, self.key = file, file.name, options.items, tuple(key)
        self.about: PersonColumns | None = None
        ignore = [part for name in options.ignore for part in parts_of(name, first)]
        said = [("person", options.person), ("response", options.response), *(("ignore", name) for name in ignore)]
        for role, name in said:
            if name is not None and name not in first:
                raise OptionError(f"{file.name} has no field {name!r} for `{role}`; its fields are {listed(first)}.")
        nested = [name for name, value in first.items() if isinstance(value, dict)]
        scalars = [name for name in first if name not in nested and name not in ignore]
        likely = [name for known in (PERSON_NAMES, ID_NAMES) for name in scalars if plain(name) in known]
        self.person = next(iter(likely), None) if options.person is None else options.person
        self.labeled = self.person is not None
        self.answers = options.response or self._only(nested)
        self.others = {self.person, *ignore}
        self.chosen = None
        if self.answers is None and options.orient == "persons":
            self.chosen = self._choice({name: value for name, value in first.items() if name not in self.others})

    def _only(self, nested: list[str]) -> str | None:
        if len(nested) > 1:
            nested = [name for name in nested if plain(name) in RESPONSE_NAMES] or nested
        if len(nested) > 1:
            raise ReadError(
                f"{self.name}: {listed(nested)} could each hold the answers. Say which with `response={nested[0]!r}`."
            )
        return nested[0] if nested else None

    def _choice(self, fields: Mapping[str, Any]) -> ItemColumns:
        """Which fields of the first object are items, and which are not."""
        names, label = list(fields), None if self.person is None else f"field {self.person!r}"
        if self.said:
            return ItemColumns(label=label)
        if self.key and (found := positions(names, self.key) >= 0).any():
            unknown = tuple(name for name, known in zip(names, found, strict=True) if not known)
            return ItemColumns(not_in_key=unknown, label=label)
        out, suspects = attributes_among(names, [value in (0, 1, None) for value in fields.values()])
        left_out, doubtful = (tuple(names[k] for k in where) for where in (out, suspects))
        return ItemColumns(attributes=left_out, suspects=doubtful, label=label)

    def _items_of(self, fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Those of the fields that are items, and what they hold."""
        keep: Iterable[Any] = itertools.repeat(True)
        if self.said:
            keep = named(self.said, list(fields))
        elif self.chosen is not None and self.chosen.not_in_key:
            keep = positions(fields, self.key) >= 0
        elif self.chosen is not None:
            keep = [name not in self.chosen.attributes for name in fields]
        return list(itertools.compress(fields.items(), keep))

    def batches(self, columns: ItemIndex, number: int) -> Iterator[tuple[RowBatch, float]]:
        for objects, done in _objects(self.file):
            yield self._batch(objects, columns, number), done
            number += len(objects)

    def _batch(self, objects: Numbered, columns: ItemIndex, number: int) -> RowBatch:
        answers = [self._answers(line, one) for line, one in objects]
        pairs = [pair for own in answers for pair in own]
        row = np.repeat(np.arange(len(objects)), [len(own) for own in answers])

        def place(k: int) -> Place:
            return Place(self.name, pairs[k][0], objects[row[k]][0])

        for k, pair in enumerate(pairs):
            _check_plain(f"{self.name}: line {place(k).row:,}", *pair)
        labels = self._labels(objects, number)
        if self.about is not None and objects:
            about = [series_of([one.get(name) for _, one in objects]) for name in self.about.names]
            self.about.add(labels, [as_text(each) for each in about])
        values = series_of([value for _, value in pairs])
        return RowBatch(labels, Piece(row, columns.codes([name for name, _ in pairs]), values, place))

    def _answers(self, line: int, one: dict[str, Any]) -> list[tuple[str, Any]]:
        if self.person is not None and self.person not in one:
            raise ReadError(f"{self.name}: line {line:,} has no field {self.person!r}, which names the person.")
        if self.answers is None:
            return self._items_of({name: value for name, value in one.items() if name not in self.others})
        answers = one.get(self.answers)
        if not isinstance(answers, dict):
            raise ReadError(
                f"{self.name}: line {line:,} has no object of answers in the field {self.answers!r}, as in "
                f'{{"{self.answers}": {{"q1": 1, "q2": 0}}}}.'
            )
        return self._items_of(answers)

    def _labels(self, objects: Numbered, number: int) -> pl.Series:
        if self.person is None:
            return pl.Series(np.arange(number, number + len(objects), dtype=np.int64))
        labels = [one[self.person] for _, one in objects]
        for (line, _), label in zip(objects, labels, strict=True):
            if isinstance(label, list | dict):
                kind = _kind(label)
                raise ReadError(f"{self.name}: line {line:,} names the person with {kind}, not a text or number.")
        if labels and all(type(label) is int and abs(label) < 2**63 for label in labels):
            return pl.Series(labels, dtype=pl.Int64)
        found = pl.Series([None if label is None else str(label) for label in labels], dtype=pl.String)
        check_names(found, f"{self.name}: field {self.person!r}", [line for line, _ in objects])
        return found


# ------------------------------------------------------------------ an answer a line


def is_long(first: Mapping[str, Any], options: LayoutOptions) -> bool:
    """Whether each line is one answer."""
    if options.format == "wide":
        return False
    if options.format == "long" or options.item is not None:
        return True
    scalars = {plain(name) for name, value in first.items() if not isinstance(value, dict)}
    return all(scalars & names for names in (PERSON_NAMES | ID_NAMES, ITEM_NAMES, RESPONSE_NAMES))


def open_table(file: File) -> Table:
    """A JSON-lines file as a table, whose columns are the fields of the first line."""
    start = next((found for found, _ in _objects(file, HEAD_BYTES) if found), None)
    if start is None:
        raise ReadError(f"{file.name} holds nothing but blank lines.")
    first = start[0][1]
    columns = list(first)

    def column(objects: Numbered, name: str) -> pl.Series:
        for line, one in objects:
            _check_plain(f"{file.name}: line {line:,}", name, one.get(name))
        # Types may change from line to line; as text they agree, and labels that were numbers become numbers again.
        return as_text(series_of([one.get(name) for _, one in objects]))

    def head(position: int) -> pl.Series:
        return column(start[:HEAD_ROWS], columns[position])

    def pieces(chosen: Sequence[int]) -> Pieces:
        for objects, done in _objects(file):
            yield pl.DataFrame({str(k): column(objects, columns[c]) for k, c in enumerate(chosen)}), done

    def rows(options: LayoutOptions, key: Iterable[Any]) -> RowSource | None:
        return None if is_long(first, options) else JsonRows(file, first, options, key)

    whole = [k for k, value in enumerate(first.values()) if type(value) is int]
    types = [pl.String] * len(columns)
    return Table(file.name, columns, types, head, pieces, whole, row_source=rows, notes=notes_on_encoding(file))
