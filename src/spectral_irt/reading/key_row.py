"""A row of a wide table that holds the answer key. Many teachers write the right answers into the sheet, below the
names of the questions or at its end, and call that row "Key". It is the key, and no person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.data.categories import checked_key, folded
from spectral_irt.data.labels import NOT_ANSWERED, one_spelling, positions
from spectral_irt.errors import Finding, OptionError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading.columns import Wide, find_layout, plain
from spectral_irt.reading.frame import Pieces, Table
from spectral_irt.text import count

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
FIRST_ROWS = 5  # in which the key may leave a question out; a row among the pupils must answer every question
MOST = 0.5  # of the questions have a right answer, and most of these are options that somebody chose


class DifferentKeys(OptionError):
    """Two keys for the same answers."""


@dataclass(frozen=True)
class KeyRow:
    """A row that holds the key: its number, counted from 0 below the header, what it is called, and what it says."""

    row: int
    label: str
    key: Mapping[Any, str]


def without_key_rows(tables: Sequence[Table], options: ReadOptions) -> tuple[list[Table], ReadOptions]:
    """The tables without their rows of right answers, and the options with the key that these hold. Where a key was
    given already, the row must say the same."""
    scoring = options.scoring
    another_way = any(way is not None for way in (scoring.correct, scoring.threshold, scoring.recode))
    graded = scoring.ordered and not scoring.undecided
    if options.orient != "persons" or options.format == "long" or options.facets or another_way or graded:
        return list(tables), options
    people_only: list[Table] = []
    key: dict[Any, str] = {}
    for table in tables:
        key_row = _find_key_row(table, options)
        if key_row is None:
            people_only.append(table)
            continue
        _compare(key_row, checked_key(key), "the row of another file", table)
        if scoring.key is not None:
            _compare(key_row, scoring.key, "`key=`", table)
        key |= key_row.key
        people_only.append(_without_row(table, key_row, given=scoring.key is not None))
    if key and scoring.key is None:
        scored = replace(scoring, key=key, ordered=False, undecided=False)
        options = replace(options, scoring=scored)
    return people_only, options


def _find_key_row(table: Table, options: ReadOptions) -> KeyRow | None:
    candidates = _rows_called_key(table)
    if len(candidates) != 1:  # two forms with a key each, or an ordinary word
        return None
    (row, column, label), *_ = candidates
    layout = find_layout(_drop_row(table, row), options)
    if not isinstance(layout, Wide) or column in layout.columns:
        return None
    right: dict[Any, str] = {}
    n_chosen = 0
    for k in layout.columns:
        answer, others = _cell_and_others(table, k, row)
        if answer is None or answer in NOT_ANSWERED:
            continue
        right[table.columns[k]] = answer
        options_of_item = {folded(text) for text in others if text is not None}
        n_chosen += any(folded(part.strip()) in options_of_item for part in answer.split("|"))
    is_complete = len(right) == len(layout.columns) == n_chosen
    is_mostly_there = len(right) > MOST * len(layout.columns) and n_chosen > MOST * len(right)
    at_an_end = row < FIRST_ROWS or row == _n_rows(table) - 1
    if len(right) >= 2 and (is_complete or (at_an_end and is_mostly_there)):
        return KeyRow(row, label, right)
    return None


def _rows_called_key(table: Table) -> list[tuple[int, int | None, str]]:
    """The number of each row that calls itself a key, the column that says so (None: the index), and its words; of a
    long table, among the first rows: to look further would be another pass over the file."""
    texts: dict[int | None, list[Any]] = {}
    for k in range(min(LABEL_COLUMNS, len(table.columns))):
        if table.dtypes[k] in (pl.String, pl.Categorical, pl.Enum):
            texts[k] = table.head(k).cast(pl.String).to_list()
    if table.row_labels is not None and table.row_labels.dtype == pl.String:
        texts[None] = table.row_labels.to_list()
    called = [
        (row, k, str(text).strip())
        for k, column in texts.items()
        for row, text in enumerate(column)
        if text is not None and plain(text) in KEY_LABELS
    ]
    return called


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
    known = list(other.values())
    different: list[str] = []
    for (item, right), k in zip(rights.items(), place.tolist(), strict=True):
        if k < 0:
            continue
        best = max(known[k].values())
        right_there = [text for text, score in known[k].items() if score == best]
        if {folded(text) for text in right} != {folded(text) for text in right_there}:
            different.append(f"{item}: {'|'.join(right)!r} in the row, {'|'.join(right_there)!r} in {name}")
    if different:
        row = _row_number(table, key_row.row)
        more = f"; and {len(different) - 5:,} more" if len(different) > 5 else ""
        raise DifferentKeys(
            f"{table.name}: row {row:,}, {key_row.label!r}, is an answer key, and {name} has other right answers for "
            f"{count(len(different), 'item')} ({'; '.join(different[:5])}{more}). "
            "Correct one of them, or remove the row."
        )


def _row_number(table: Table, row: int) -> int:
    return table.rows_above + row + 1


def _drop_row(table: Table, row: int) -> Table:
    """The table without this row; rows below it keep their numbers."""

    def head(k: int) -> pl.Series:
        values = table.head(k)
        return values if row >= len(values) else pl.concat([values[:row], values[row + 1 :]])

    def pieces(chosen: Sequence[int]) -> Pieces:
        start = 0
        for frame, done in table.pieces(chosen):
            place = row - start
            start += frame.height
            if 0 <= place < frame.height:
                frame = pl.concat([frame[:place], frame[place + 1 :]])
            yield frame, done

    labels = table.row_labels
    if labels is not None:
        labels = pl.concat([labels[:row], labels[row + 1 :]])
    return replace(table, head=head, pieces=pieces, cells=None, row_labels=labels, row_left_out=row)


def _without_row(table: Table, key_row: KeyRow, *, given: bool) -> Table:
    where = f"{table.name}: row {_row_number(table, key_row.row):,}, {key_row.label!r}, holds the answer key"
    sentence = f"{where} and was used as such ({count(len(key_row.key), 'item')}): {_shown(key_row.key)}."
    if given:
        sentence = f"{where}, which is the one that was given; the row is no person and was left out."
    note = Finding("key_row", "note", sentence, "If it is a person, give the row another label.")
    return replace(_drop_row(table, key_row.row), notes=(*table.notes, note))


def _shown(key: Mapping[Any, str]) -> str:
    shown = [f"{item} {answer}" for item, answer in list(key.items())[:5]]
    return ", ".join(shown) + (f" and {len(key) - 5:,} more" if len(key) > 5 else "")
