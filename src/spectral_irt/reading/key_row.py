"""A row of a wide table that holds the answer key.

Many teachers write the right answers into the sheet, below the names of the questions or at its end, and call that row
"Key". It is the key, and no person. `tables.py` takes it out before people are read, and looks at the last row again
when all were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.data.answer_key import checked_key, option_key
from spectral_irt.data.labels import NOT_ANSWERED, one_spelling, positions
from spectral_irt.data.responses import Responses
from spectral_irt.errors import Finding, OptionError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading.columns import Wide, find_layout, plain
from spectral_irt.reading.frame import HEAD_ROWS, Pieces, Table
from spectral_irt.text import count, listed, one_or_many

# fmt: off
# What a row of right answers is called, without spaces and capitals.
KEY_LABELS = frozenset({
    "key", "thekey", "keyrow", "answerkey", "answerskey", "keyanswers", "keyanswer", "scoringkey", "testkey",
    "correct", "correctanswer", "correctanswers", "correctkey", "rightanswer", "rightanswers", "solution", "solutions",
    "schlüssel", "schluessel", "lösung", "loesung", "lösungen", "loesungen", "lösungsschlüssel", "antwortschlüssel",
    "musterlösung", "richtig", "richtigeantwort", "clave", "claves", "claverespuestas", "clavederespuestas",
    "respuestacorrecta", "respuestascorrectas", "soluciones", "solución", "corrigé", "corrige", "clé", "corrección",
    "solutionkey", "gabarito", "chave", "soluzione", "soluzioni", "chiave", "sleutel", "antwoordsleutel", "facit",
    "fasit", "nøgle", "klucz", "klíč", "ключ", "答案", "正解", "정답",
})
# fmt: on
LABEL_COLUMNS = 6  # the first columns, in one of which the row says what it is: a number, a name, a class
FEWEST_ITEMS = 5  # at which a person who agrees with the key everywhere is worth a word
FIRST_ROWS = 5  # in which the key may leave a question out; a row among the pupils must answer every question
MOST_KEY_ROWS = 2  # one above the pupils and one below; a word that more rows have is no name of a key
MOST = 0.5  # of the questions have a right answer, and most of these are options that somebody chose


class DifferentKeys(OptionError):
    """Two keys for the same answers."""


@dataclass(frozen=True)
class KeyRow:
    """A row that holds the key: its number, counted from 0 below the header, what it is called, and what it says."""

    row: int
    label: str
    key: Mapping[Any, str]
    of_zeros_and_ones: bool = False  # the answers are scored: a person may be called Key


def without_key_rows(
    tables: Sequence[Table], options: ReadOptions, *, to_the_end: bool = False
) -> tuple[list[Table], ReadOptions]:
    """The tables without their rows of right answers, and the options with the key that these hold. Where a key was
    given already, the row must say the same. A long table is looked at beyond its first rows only `to_the_end`: to do
    so is another pass over the file."""
    scoring = options.scoring
    another_way = any(way is not None for way in (scoring.correct, scoring.threshold, scoring.recode))
    graded = scoring.ordered and not scoring.undecided
    if options.orient != "persons" or options.format == "long" or options.facets or another_way or graded:
        return list(tables), options
    people_only: list[Table] = []
    key: dict[Any, str] = {}
    for table in tables:
        key_rows = _find_key_rows(_with_every_row(table) if to_the_end else table, options)
        if not key_rows or all(key_row.of_zeros_and_ones for key_row in key_rows):
            people_only.append(_with_warnings(table, key_rows))
            continue
        first, *others = key_rows
        for other in others:
            _compare(first, checked_key(other.key), f"row {_row_number(table, other.row):,} ({other.label!r})", table)
        _compare(first, checked_key(key), "the row of another file", table)
        if scoring.key is not None:
            _compare(first, scoring.key, "`key=`", table)
        for key_row in key_rows:
            key |= key_row.key
        people_only.append(_without_rows(table, key_rows, given=scoring.key is not None))
    if key and scoring.key is None:
        scored = replace(scoring, key=key, ordered=False, undecided=False)
        options = replace(options, scoring=scored)
    return people_only, options


def ends_with_key(table: Table) -> bool:
    """Whether a table with more rows than one looks at has a last row that calls itself a key; a pass over the columns
    that may say so."""
    n_columns = min(LABEL_COLUMNS, len(table.columns))
    if n_columns == 0 or table.rows_left_out or len(table.head(0)) < HEAD_ROWS:
        return False
    last: tuple[Any, ...] = ()
    for frame, _ in table.pieces(range(n_columns)):
        texts = frame.cast(pl.String)
        filled = texts.filter(pl.any_horizontal(pl.all().str.strip_chars().str.len_chars() > 0))
        last = filled.row(-1) if filled.height else last
    return any(text is not None and is_key_label(text) for text in last)


def is_key_label(text: Any) -> bool:
    return plain(text) in KEY_LABELS


def _with_every_row(table: Table) -> Table:
    """The same table, which shows all of its rows at once."""
    frame = table.whole()
    return replace(table, head=frame.to_series)


def _find_key_rows(table: Table, options: ReadOptions) -> list[KeyRow]:
    """The row that holds the key, or two of them; more are an ordinary word."""
    candidates = _rows_called_key(table)
    if not 1 <= len(candidates) <= MOST_KEY_ROWS:
        return []
    layout = find_layout(_drop_rows(table, list(candidates)), options)
    if not isinstance(layout, Wide) or any(column in layout.columns for column, _ in candidates.values()):
        return []
    n_rows = _n_rows(table)
    key_rows = []
    for row, (_, label) in candidates.items():
        at_an_end = row < FIRST_ROWS or row >= n_rows - len(candidates)
        key_row = _key_in_row(table, layout, row, label, at_an_end=at_an_end)
        if key_row is not None:
            key_rows.append(key_row)
    return key_rows


def _key_in_row(table: Table, layout: Wide, row: int, label: str, *, at_an_end: bool) -> KeyRow | None:
    """The right answers in a row that calls itself a key, if most are there and are options that people chose."""
    right: dict[Any, str] = {}
    chosen: set[str] = set()
    n_chosen = 0
    for k in layout.columns:
        answer, others = _cell_and_others(table, k, row)
        if answer is None or answer in NOT_ANSWERED:
            continue
        right[table.columns[k]] = answer
        options_of_item = {option_key(text) for text in others if text is not None}
        chosen |= options_of_item
        n_chosen += any(option_key(part.strip()) in options_of_item for part in answer.split("|"))
    is_complete = len(right) == len(layout.columns) == n_chosen
    is_mostly_there = len(right) > MOST * len(layout.columns) and n_chosen > MOST * len(right)
    if len(right) < 2 or not (is_complete or (at_an_end and is_mostly_there)):
        return None
    return KeyRow(row, label, right, of_zeros_and_ones=chosen <= {"0", "1", *NOT_ANSWERED})


def _rows_called_key(table: Table) -> dict[int, tuple[int | None, str]]:
    """By the number of each row that calls itself a key, the column that says so (None: the index), and its words."""
    texts: dict[int | None, list[Any]] = {}
    for k in range(min(LABEL_COLUMNS, len(table.columns))):
        if table.dtypes[k] in (pl.String, pl.Categorical, pl.Enum):
            texts[k] = table.head(k).cast(pl.String).to_list()
    if table.row_labels is not None and table.row_labels.dtype == pl.String:
        texts[None] = table.row_labels.to_list()
    called: dict[int, tuple[int | None, str]] = {}
    for place, column in texts.items():
        for row, text in enumerate(column):
            if text is not None and is_key_label(text):
                called.setdefault(row, (place, str(text).strip()))
    return dict(sorted(called.items()))


def _n_rows(table: Table) -> int:
    """How many rows there are, as far as they are looked at to tell what a table is; rows of nothing at the end do not
    count."""
    heads = [table.head(k).cast(pl.String).str.strip_chars() for k in range(min(LABEL_COLUMNS, len(table.columns)))]
    filled = [np.flatnonzero((head != "").fill_null(False).to_numpy()) for head in heads]
    return max((int(places[-1]) + 1 for places in filled if len(places)), default=0)


def _cell_and_others(table: Table, column: int, row: int) -> tuple[str | None, list[str | None]]:
    """What a column holds in this row, and, as far as one looks, in the others."""
    head = one_spelling(table.head(column)).to_list()
    if row >= len(head):  # the label is in the index of a dataframe, which is whole
        return None, head
    return head[row], head[:row] + head[row + 1 :]


def _compare(key_row: KeyRow, other: Mapping[Any, Mapping[str, int]], name: str, table: Table) -> None:
    """An error where another key has other right answers than the row."""
    rights = checked_key(key_row.key)
    place = positions(list(rights), list(other))
    other_answers = list(other.values())
    different: list[str] = []
    for (item, right), k in zip(rights.items(), place.tolist(), strict=True):
        if k < 0:
            continue
        best = max(other_answers[k].values())
        right_there = [text for text, score in other_answers[k].items() if score == best]
        if {option_key(text) for text in right} != {option_key(text) for text in right_there}:
            different.append(f"{item}: {'|'.join(right)!r} in the row, {'|'.join(right_there)!r} in {name}")
    if different:
        row = _row_number(table, key_row.row)
        and_more = f"; and {len(different) - 5:,} more" if len(different) > 5 else ""
        raise DifferentKeys(
            f"{table.name}: row {row:,}, {key_row.label!r}, is an answer key, and {name} has other right answers for "
            f"{count(len(different), 'item')} ({'; '.join(different[:5])}{and_more}). "
            "Correct one of them, or remove the row."
        )


def _row_number(table: Table, row: int) -> int:
    return table.rows_above + row + 1


def _drop_rows(table: Table, rows: Sequence[int]) -> Table:
    """The table without these rows; rows below them keep their numbers."""

    def stays(start: int, height: int) -> pl.Series:
        return pl.Series(~np.isin(np.arange(start, start + height), rows))

    def head(k: int) -> pl.Series:
        values = table.head(k)
        return values.filter(stays(0, len(values)))

    def pieces(chosen: Sequence[int]) -> Pieces:
        start = 0
        for frame, done in table.pieces(chosen):
            yield frame.filter(stays(start, frame.height)), done
            start += frame.height

    labels = table.row_labels
    if labels is not None:
        labels = labels.filter(stays(0, len(labels)))
    return replace(table, head=head, pieces=pieces, cells=None, row_labels=labels, rows_left_out=tuple(sorted(rows)))


def _without_rows(table: Table, key_rows: Sequence[KeyRow], *, given: bool) -> Table:
    rows = [f"row {_row_number(table, key_row.row):,}, {key_row.label!r}" for key_row in key_rows]
    first = key_rows[0]
    where = f"{table.name}: {rows[0]}, holds the answer key"
    if len(rows) > 1:
        where = f"{table.name}: {' and '.join(rows)}, hold the same answer key"
    sentence = f"{where} and {one_or_many(len(rows), 'was', 'were')} used as such ({count(len(first.key), 'item')}): "
    sentence += f"{_first_answers(first.key)}."
    if given:
        sentence = f"{where}, which is the one that was given; it is no person and was left out."
    note = Finding("key_row", "note", sentence, "If it is a person, give the row another label.")
    people_only = _drop_rows(table, [key_row.row for key_row in key_rows])
    return replace(people_only, notes=(*table.notes, note))


def _with_warnings(table: Table, key_rows: Sequence[KeyRow]) -> Table:
    """A warning for each row that is called like a key among answers that are 0 and 1: it stays a person."""
    notes = list(table.notes)
    for key_row in key_rows:
        row = f"{table.name}: row {_row_number(table, key_row.row):,}, {key_row.label!r}"
        sentence = (
            f"{row}, counts as a person, though it is called like an answer key: the answers are 0 and 1 already."
        )
        remedy = (
            "If it is no person, remove the row; if it is the key of questions answered 0 or 1, give it with `key=`."
        )
        notes.append(Finding("row_called_key", "warning", sentence, remedy))
    return replace(table, notes=tuple(notes))


def first_row_like_key(responses: Responses) -> tuple[Finding, ...]:
    """A note where the first person, and nobody else in the first block, has every answer of the key."""
    if responses.n_items < FEWEST_ITEMS or not responses.thresholds.binary or not responses.n_persons:
        return ()
    everything_right = np.flatnonzero(responses.first_block().scores == responses.n_items)
    if everything_right.tolist() != [0]:
        return ()
    sentence = f"The first person, {listed(responses.persons[:1])}, has the answer of the key at every item."
    return (Finding("first_row_like_key", "note", sentence, "If it is the key, remove the row, or label it Key."),)


def _first_answers(key: Mapping[Any, str]) -> str:
    shown = [f"{item} {answer}" for item, answer in list(key.items())[:5]]
    return ", ".join(shown) + (f" and {len(key) - 5:,} more" if len(key) > 5 else "")
