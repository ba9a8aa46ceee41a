"""An answer key from a file: a table of items and their right answers, perhaps with scores, or one row under the items'
names."""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from spectral_irt.data.labels import one_spelling
from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.reading.columns import ID_NAMES, ITEM_NAMES, KEY_NAMES, PERSON_NAMES, plain
from spectral_irt.reading.frame import Table

Path = str | os.PathLike[str]
SCORE_NAMES = frozenset({"score", "scores", "points", "credit", "mark", "marks"})


def read_key(path: Path, sheet: str | int | None, encoding: str | None) -> dict[str, Any]:
    from spectral_irt.reading.formats import read_one

    return read_one(path, "an answer key", key_of_table, sheet=sheet, sheet_option="key_sheet", encoding=encoding)


def key_of_table(table: Table) -> dict[str, Any]:
    """The right answer of every item; or the scores of its answers, where there is a column of them."""
    whole = table.whole()
    names = [plain(name) for name in table.columns]
    item = _find(names, ITEM_NAMES) or _find(names, ID_NAMES)
    answer = _find(names, KEY_NAMES)
    score = _find(names, SCORE_NAMES)
    if len(item) == len(answer) == len(score) == 1:
        return _scores(*(whole.to_series(k[0]) for k in (item, answer, score)), name=table.name)
    if len(item) == 1 and len(answer) == 1:
        return _pairs(table, whole.to_series(item[0]), whole.to_series(answer[0]))
    if whole.height == 1:
        first = 1 if names[0] in PERSON_NAMES | ID_NAMES and len(names) > 1 else 0
        answers = [one_spelling(whole.to_series(k))[0] for k in range(first, whole.width)]
        labels = [str(name) for name in table.columns[first:]]
        return {label: value for label, value in zip(labels, answers, strict=True) if value is not None}
    if len(names) == 2:
        return _pairs(table, whole.to_series(0), whole.to_series(1))
    raise ReadError(
        f"{table.name} is not an answer key: it needs the columns 'item' and 'key', or one row of right answers under "
        f"the names of the items; its columns are {listed(table.columns)}."
    )


def _find(names: list[str], known: frozenset[str]) -> list[int]:
    return [k for k, name in enumerate(names) if name in known]


def _pairs(table: Table, items: pl.Series, answers: pl.Series) -> dict[str, str]:
    key: dict[str, Any] = {}
    for label, answer in zip(items.cast(pl.String).to_list(), one_spelling(answers).to_list(), strict=True):
        if label is None or answer is None:
            continue
        if key.setdefault(label, answer) != answer:
            raise OptionError(
                f"{table.name} gives item {label!r} two right answers, {key[label]!r} and {answer!r}; keep one."
            )
    return key


def _scores(items: pl.Series, answers: pl.Series, scores: pl.Series, *, name: str) -> dict[str, dict[str, Any]]:
    key: dict[str, dict[str, Any]] = {}
    for label, text, score in zip(items.cast(pl.String), one_spelling(answers), one_spelling(scores), strict=True):
        if label is None or text is None:
            continue
        for option in text.split("|"):
            if key.setdefault(label, {}).setdefault(option.strip(), score) != score:
                raise OptionError(f"{name} gives the answer {option!r} to item {label!r} two scores; keep one.")
    return key
