"""Tables with all the answers of a person together -> Responses, in one pass.

A *sheet* is a run of whole rows, each with its answers: a slice of a wide table, or some lines of a JSON-lines file.
When a row is a user and no user may come twice, sheets are packed as they arrive; otherwise the answers are gathered
first, because a later row may change or belong to an earlier user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import DuplicateResponseError, ReadError, listed, option
from spectral_irt.responses.block import BLOCK_RESPONSES, Block
from spectral_irt.responses.labels import positions
from spectral_irt.responses.pack import Duplicates
from spectral_irt.responses.reading.long_tables import in_user_order
from spectral_irt.responses.reading.numbering import ItemIndex, label_array
from spectral_irt.responses.responses import Labels, Responses
from spectral_irt.responses.scorer import Scoring, means_of
from spectral_irt.responses.survey import Place, Survey


@dataclass(frozen=True)
class Sheet:
    """Some whole rows.

    Attributes
    ----------
    labels : polars Series
        One for each row: Int64 or text.
    row, column : int arrays
        For each value: the row of the sheet it stands in, and the code of its column.
    values : polars Series
        Raw.
    place : function
        Where the k-th value stands.
    """

    labels: pl.Series
    row: NDArray[Any]
    column: NDArray[Any]
    values: pl.Series
    place: Callable[[int], Place]


@dataclass(frozen=True)
class Purpose:
    """What the sheets are to become."""

    scoring: Scoring
    duplicates: Duplicates
    orient: str
    source: str
    frame_kind: str | None
    loose_rows: bool
    loose_columns: bool


class _Collector(Protocol):
    def add(self, sheet: Sheet, answers: pl.Series) -> None: ...

    def responses(self) -> Responses: ...


def people_responses(sheets: Iterable[Sheet], columns: ItemIndex, purpose: Purpose) -> Responses:
    """Responses from sheets; users and items in the order they come."""
    survey = Survey(purpose.scoring, wide=True)
    packed_at_once = purpose.orient == "users" and purpose.duplicates == "error"
    collector: _Collector = (_Packed if packed_at_once else _Gathered)(columns, purpose)
    n_rows = 0
    for sheet in sheets:
        n_rows += len(sheet.labels)
        answers, odd = purpose.scoring.clean(sheet.values)
        survey.add(sheet.values, answers, odd, sheet.place)
        collector.add(sheet, answers)
    if not n_rows:
        raise ReadError(f"{purpose.source} has a header but no rows; check that whatever wrote it had finished.")
    survey.n_columns = len(columns.labels)
    survey.check(purpose.source)
    responses = collector.responses()
    survey.check_key(responses.items)
    survey.check_matched(int(responses.scores.sum()), responses.n_responses)
    return responses


def _column_labels(columns: ItemIndex, purpose: Purpose) -> Labels:
    labels = columns.labels
    if all(isinstance(label, str) for label in labels):
        return label_array(pl.Series(labels, dtype=pl.String), loose=purpose.loose_columns)
    from spectral_irt.responses.arrays import as_labels

    return as_labels(labels)


def _joined(labels: list[pl.Series]) -> pl.Series:
    if len({part.dtype for part in labels}) > 1:
        labels = [part.cast(pl.String) for part in labels]
    return pl.concat(labels)


@dataclass
class _Packed:
    """Rows are users, each comes once: pack as soon as a block's worth of answers is there."""

    columns: ItemIndex
    purpose: Purpose
    labels: list[pl.Series] = field(default_factory=list)
    packed: list[Block] = field(default_factory=list)
    _counts: list[NDArray[Any]] = field(default_factory=list)
    _slots: list[NDArray[np.int32]] = field(default_factory=list)
    _first_label: int = 0

    def add(self, sheet: Sheet, answers: pl.Series) -> None:
        scoring = self.purpose.scoring
        answered = answers.is_not_null().to_numpy()
        row, column = sheet.row[answered], sheet.column[answered]
        answers = answers.drop_nulls()
        n_rows = len(sheet.labels)
        means = means_of(row, answers.to_numpy(), n_rows) if scoring.above_mean else None
        keys = scoring.keys_of(self.columns.labels)
        right = scoring.right(answers, items=column, users=row, keys=keys, means=means)
        slots = (2 * column + ~right).astype(np.int32)
        self._slots.append(in_user_order(row, slots)[1])
        self._counts.append(np.bincount(row, minlength=n_rows))
        self.labels.append(sheet.labels)
        if sum(map(len, self._slots)) >= BLOCK_RESPONSES:
            self._pack()

    def _pack(self) -> None:
        if not self._counts:
            return
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self._counts))]).astype(np.int64)
        packed = Responses.from_slots(
            indptr,
            np.concatenate(self._slots),
            users=_joined(self.labels[self._first_label :]).to_numpy(),
            items=np.array(self.columns.labels, dtype=object),
            duplicates=self.purpose.duplicates,
            source=self.purpose.source,
        )
        self.packed.extend(packed.blocks)
        self._counts, self._slots, self._first_label = [], [], len(self.labels)

    def responses(self) -> Responses:
        self._pack()
        labels = _joined(self.labels)
        if labels.n_unique() < len(labels):
            twice = labels.filter(labels.is_duplicated()).unique(maintain_order=True)
            raise DuplicateResponseError(
                f"{self.purpose.source}: {len(twice):,} users have more than one row: {listed(twice.to_list())}. Say ",
                option("duplicates", "first", "last"),
                " to keep one answer to each item.",
            )
        return Responses(
            tuple(self.packed),
            _column_labels(self.columns, self.purpose),
            label_array(labels, loose=self.purpose.loose_rows),
            self.purpose.frame_kind,
            self.purpose.source,
        )


@dataclass
class _Gathered:
    """All answers first: rows are items, or a user may come in several rows."""

    columns: ItemIndex
    purpose: Purpose
    labels: list[pl.Series] = field(default_factory=list)
    _row: list[NDArray[np.int32]] = field(default_factory=list)
    _column: list[NDArray[np.int32]] = field(default_factory=list)
    _answers: list[pl.Series] = field(default_factory=list)
    _n_rows: int = 0

    def add(self, sheet: Sheet, answers: pl.Series) -> None:
        answered = answers.is_not_null().to_numpy()
        order = np.argsort(sheet.row[answered], kind="stable")
        self._row.append((self._n_rows + sheet.row[answered][order]).astype(np.int32))
        self._column.append(sheet.column[answered][order].astype(np.int32))
        self._answers.append(answers.drop_nulls().gather(order))
        self.labels.append(sheet.labels)
        self._n_rows += len(sheet.labels)

    def responses(self) -> Responses:
        purpose, scoring = self.purpose, self.purpose.scoring
        labels = _joined(self.labels)
        distinct = labels.unique(maintain_order=True)
        if purpose.orient == "items" and purpose.duplicates == "error" and len(distinct) < len(labels):
            twice = labels.filter(labels.is_duplicated()).unique(maintain_order=True)
            raise DuplicateResponseError(
                f"{purpose.source}: {len(twice):,} items have more than one row: {listed(twice.to_list())}. Rename "
                "them, or say ",
                option("duplicates", "first", "last"),
                " to keep one answer of each user.",
            )
        of_row = positions(labels.to_list(), distinct.to_list()).astype(np.int32)
        user, item = of_row[np.concatenate(self._row)], np.concatenate(self._column)
        users: Labels = label_array(distinct, loose=purpose.loose_rows)
        items = _column_labels(self.columns, purpose)
        if purpose.orient == "items":
            user, item, users, items = item, user, items, users
        answers = pl.concat(self._answers)
        means = means_of(user, answers.to_numpy(), len(users)) if scoring.above_mean else None
        right = scoring.right(answers, items=item, users=user, keys=scoring.keys_of(items.tolist()), means=means)
        return Responses.from_codes(
            user,
            item,
            right,
            users=users,
            items=items,
            duplicates=purpose.duplicates,
            frame_kind=purpose.frame_kind,
            source=purpose.source,
        )
