"""JSON lines: one object a person, `{"subject_id": "ann", "responses": {"q1": 1, "q2": 0}}`, which gives a row for each
answer, with the other fields beside it; one flat object a person (`{"id": "ann", "q1": 1}`), a wide table; or one
object an answer (`{"person": "ann", "item": "q1", "response": 1}`), a long one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from spectral_irt.data.labels import EXACT, is_missing
from spectral_irt.errors import ReadError
from spectral_irt.reading.columns import ID_NAMES, ITEM_NAMES, PERSON_NAMES, RESPONSE_NAMES, plain
from spectral_irt.reading.formats import File
from spectral_irt.reading.frame import HEAD_ROWS, Pieces, Table
from spectral_irt.reading.text_pieces import HEAD_BYTES, end_of_last_line, notes_on_encoding, raw_pieces
from spectral_irt.text import listed

_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character that JSON writes as a pair
# columns that are no fields, whose names are texts
NUMBER = 0
ITEM = 1
_KINDS = {list: "a list", str: "a text", bool: "true or false", type(None): "null", dict: "an object"}

Numbered = list[tuple[int, dict[Any, Any]]]  # objects, each with the number of its line


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; an error where a name comes twice, and which value is meant cannot be known."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = listed(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ReadError(f"has the field {twice} more than once. Keep one of each.")
    return fields


def numbered_objects(
    file: File, size: int | None = None, hook: Callable[..., Any] | None = _unlike
) -> Iterator[tuple[Numbered, float]]:
    """The objects in pieces, each with the number of its line, and the share of the file read by now."""
    for piece in raw_pieces(file, end_of_last_line, size):
        texts = piece.data.decode().split("\n") if piece.data.strip() else []  # there may be very many blank lines
        lines = [(k, text) for k, text in enumerate(texts, start=piece.line) if text.strip()]
        yield [(k, _parse_object(f"{file.name}: line {k:,}", text, hook)) for k, text in lines], piece.done


def _parse_object(where: str, text: str, hook: Callable[..., Any] | None) -> dict[str, Any]:
    hint = "Put each object on a line of its own"
    try:
        value = json.loads(text, object_pairs_hook=hook)
    except ReadError as twice:
        raise ReadError(f"{where} {twice}") from None
    except (ValueError, RecursionError) as error:
        what = f"{where} is not a JSON object ({getattr(error, 'msg', error)})."
        remedy = f"{hint}, without commas or brackets; if the file was cut off, copy it again."
        raise ReadError(f"{what} {remedy}") from None
    if not isinstance(value, dict):
        example = '{"subject_id": "ann", "responses": {"q1": 1, "q2": 0}}'
        raise ReadError(f"{where} is not a JSON object but {_kind(value)}. {hint}, as in {example}.")
    if _HALF.search(text):  # json makes it half a character, which no file can hold
        try:
            (whole := json.dumps(value, ensure_ascii=False)).encode()
        except UnicodeEncodeError as error:
            half = ascii(whole[error.start])[1:-1]
            raise ReadError(f"{where} holds {half}, half of a pair that only together is a character.") from None
    return value


def _text(value: Any) -> str | None:
    """A value as text, by itself: 1, 1.0 and "1" are one label, whatever stands on the lines around it.

    >>> [_text(value) for value in (1, 2.0, 2.5, True, "a", None)]
    ['1', '2', '2.5', '1', 'a', None]
    """
    if is_missing(value):
        return None
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer() and abs(value) < EXACT):
        value = int(value)
    return str(value)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")


def _rows_of_answers(
    file: File, field: str, objects: Numbered, number: int, start: Numbered
) -> Iterator[tuple[int, Any]]:
    """A row for each answer, with the other fields of its person; people are numbered from `number`."""
    answers_of_persons = [one.get(field) for _, one in (*objects, *start)]
    some = next((item for answers in answers_of_persons if isinstance(answers, dict) for item in answers), None)
    nothing = {} if some is None else {some: None}  # for people who answered nothing, so that they are counted
    for k, (line, one) in enumerate(objects, start=number):
        answers = one.get(field)
        if not isinstance(answers, dict):
            raise ReadError(
                f"{file.name}: line {line:,} has no object of answers in the field {field!r}, as in "
                f'{{"{field}": {{"q1": 1, "q2": 0}}}}.'
            )
        for item, value in (answers or nothing).items():
            yield line, {**one, field: value, NUMBER: k, ITEM: item}


def open_table(file: File) -> Table:
    """Fields as columns; two more where answers are in an object: the number of the person, and the item."""
    start = next((found for found, _ in numbered_objects(file, HEAD_BYTES) if found), None)
    if start is None:
        raise ReadError(f"{file.name} holds nothing but blank lines.")
    first = start[0][1]
    nested = [name for name, value in first.items() if isinstance(value, dict)]
    names = {plain(name) for name in first}
    fields: list[Any] = list(first)
    if nested:
        fields += [NUMBER, ITEM]
    elif not all(names & known for known in (PERSON_NAMES | ID_NAMES, ITEM_NAMES, RESPONSE_NAMES)):
        # A row for each person, and a later one may have answered more items than the first.
        every = (one for objects, _ in numbered_objects(file) for _, one in objects)
        fields = list(dict.fromkeys(name for one in every for name in one))

    def rows(objects: Numbered, chosen: Sequence[int], number: int = 1) -> pl.DataFrame:
        answers = next((fields[k] for k in chosen if fields[k] in nested), None)
        if answers is not None:
            objects = list(_rows_of_answers(file, answers, objects, number, start))
        return pl.DataFrame({str(n): column(objects, fields[k]) for n, k in enumerate(chosen)})

    def column(objects: Numbered, name: Any) -> pl.Series:
        values = [one.get(name) for _, one in objects]
        for (line, one), value in zip(objects, values, strict=True):
            if isinstance(value, list | dict):
                which = one[ITEM] if name in nested else name
                what = f"{file.name}: line {line:,} has {_kind(value)} in the field {which!r}"
                raise ReadError(f"{what}; an answer or a label is a number or a text.")
        # Types may change from line to line; as text they agree, and labels that were numbers become numbers again.
        return pl.Series(list(map(_text, values)), dtype=pl.String)

    def pieces(chosen: Sequence[int]) -> Pieces:
        number = 1
        for objects, done in numbered_objects(file):
            yield rows(objects, chosen, number), done
            number += len(objects)

    columns = [{NUMBER: "number", ITEM: "item"}.get(name, name) for name in fields]
    head = lambda k: rows(start[:HEAD_ROWS], [k]).to_series()  # noqa: E731
    untyped = [k for k, name in enumerate(fields) if name is NUMBER or type(first.get(name)) is int]
    more: dict[str, Any] = {"notes": notes_on_encoding(file), "nested": [fields.index(name) for name in nested]}
    return Table(file.name, columns, [pl.String] * len(fields), head, pieces, untyped, **more)
