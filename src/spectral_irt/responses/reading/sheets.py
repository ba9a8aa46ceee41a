"""Tables with all the answers of a person together -> Responses, in one pass.

A *sheet* is a run of whole rows, each with its answers: a slice of a wide table, or some lines of a JSON-lines file.
When a row is a person and nobody may come twice, sheets are packed as they arrive; otherwise the answers are gathered
first, because a later row may change or belong to an earlier person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import polars as pl

from spectral_irt.errors import DuplicateResponseError, ReadError, listed, option
from spectral_irt.responses.block import BLOCK_RESPONSES, Block
from spectral_irt.responses.gatherer import Gatherer, Piece, refuse_blanks
from spectral_irt.responses.labels import Labels, label_array, positions
from spectral_irt.responses.reading.columns import Chosen, together
from spectral_irt.responses.reading.numbering import ItemIndex, labels_of
from spectral_irt.responses.reading.request import Request
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.stored import BlockStore


@dataclass(frozen=True)
class Sheet:
    """Some whole rows: a label for each, Int64 or text, and their values; a `person` of the piece is a row here."""

    labels: pl.Series
    piece: Piece


class Rows(Protocol):
    """A source of sheets: a wide table, or JSON lines with a person each.

    Attributes
    ----------
    name : str
    labeled : bool
        Whether the rows have labels; otherwise they are numbered.
    loose_rows, loose_columns : bool
        Labels are text without a type: they become integers when all are whole numbers.
    in_order : bool
        Whether the cells of a row are in the order of the test.
    chosen : Chosen or None
        Which columns were taken for items; None when there was nothing to choose.
    """

    name: str
    labeled: bool
    loose_rows: bool
    loose_columns: bool
    in_order: bool
    chosen: Chosen | None

    def sheets(self, columns: ItemIndex, number: int) -> Iterator[tuple[Sheet, float]]:
        """Sheets, each with the share read by now; rows without labels are numbered from `number`."""
        ...


def responses_of_rows(sources: Sequence[Rows], request: Request) -> Responses:
    """Responses from rows of several sources, stacked; people and items in the order they come."""
    _check_all_labeled(sources)
    columns = ItemIndex()
    collector = _Collector(columns, request, sources)
    number = 0 if request.frame_kind else 1  # rows of a file are counted from 1, those of a frame from 0
    for index, source in enumerate(sources):
        for sheet, done in source.sheets(columns, number):
            number += len(sheet.labels)
            collector.add(sheet)
            request.report((index + done) / len(sources))
    responses = collector.responses()
    chosen = [source.chosen for source in sources if source.chosen is not None]
    if not chosen:
        return responses
    said = together(chosen)
    about_columns = replace(said, items=said.items or tuple(responses.items.tolist())).findings()
    return replace(responses, notes=about_columns + responses.notes)


def _check_all_labeled(sources: Sequence[Rows]) -> None:
    bare = [source.name for source in sources if not source.labeled]
    if bare and len(bare) < len(sources):
        raise ReadError(
            f"{bare[0]} has no column of people's labels, but other files have. Name it with ", option("user", ...), "."
        )


class _Collector:
    """Sheets on their way to Responses."""

    def __init__(self, columns: ItemIndex, request: Request, sources: Sequence[Rows]) -> None:
        self._columns, self._request = columns, request
        self._loose_rows = all(source.loose_rows for source in sources)
        self._loose_columns = all(source.loose_columns for source in sources)
        self._gatherer = Gatherer(request.scoring, request.source, wide=True, duplicates=request.duplicates)
        self._labels: list[pl.Series] = []
        self._blocks: list[Block] = []
        self._store = BlockStore()
        self._n_packed = 0  # sheets
        self._n_rows = 0  # since then
        self._at_once = request.asked.orient == "users" and request.duplicates == "error"
        if not self._at_once:
            refuse_blanks(request.scoring, "here people may have several rows, or a row is an item")
        elif not all(source.in_order for source in sources):
            refuse_blanks(request.scoring, "here people have items of their own")

    def add(self, sheet: Sheet) -> None:
        self._gatherer.add(sheet.piece._replace(person=sheet.piece.person + self._n_rows))
        self._labels.append(sheet.labels)
        self._n_rows += len(sheet.labels)
        if self._at_once and self._gatherer.n_waiting >= BLOCK_RESPONSES:
            self._pack()

    def _pack(self) -> None:
        """Pack the rows so far: they are people, and each comes once."""
        users = _joined(self._labels[self._n_packed :]).to_numpy()
        items = label_array(self._columns.labels)
        self._blocks.extend(self._store.add_all(self._gatherer.pack(users, items).blocks))
        self._n_packed, self._n_rows = len(self._labels), 0

    def responses(self) -> Responses:
        request, survey = self._request, self._gatherer.survey
        if not any(map(len, self._labels)):
            raise ReadError(f"{request.source} has a header but no rows; check that whatever wrote it had finished.")
        survey.n_columns = len(self._columns.labels)
        survey.check(request.source)
        labels = _joined(self._labels)
        rows = labels.unique(maintain_order=True)
        if request.duplicates == "error" and len(rows) < len(labels):
            raise self._repeated(labels.filter(labels.is_duplicated()).unique(maintain_order=True))
        packed = self._each_once(rows) if self._at_once else self._together(labels, rows)
        survey.check_scored(packed)
        raw, notes = self._gatherer.raw(packed.items)
        return replace(packed, frame_kind=request.frame_kind, source=request.source, raw=raw, notes=notes)

    def _each_once(self, rows: pl.Series) -> Responses:
        if self._n_rows:
            self._pack()
        return Responses(tuple(self._blocks), self._column_labels(), self._row_labels(rows))

    def _together(self, labels: pl.Series, rows: pl.Series) -> Responses:
        of_row = positions(labels.to_list(), rows.to_list()).astype(np.int32)
        if self._request.asked.orient == "users":
            return self._gatherer.pack(
                self._row_labels(rows), self._column_labels(), lambda row, column: (of_row[row], column)
            )
        return self._gatherer.pack(
            self._column_labels(), self._row_labels(rows), lambda row, column: (column, of_row[row])
        )

    def _row_labels(self, rows: pl.Series) -> Labels:
        return labels_of(rows, loose=self._loose_rows)

    def _column_labels(self) -> Labels:
        labels = self._columns.labels
        if self._loose_columns:
            return labels_of(pl.Series(labels, dtype=pl.String), loose=True)
        return label_array(labels)

    def _repeated(self, twice: pl.Series) -> DuplicateResponseError:
        said = option("duplicates", "first", "last")
        one = len(twice) == 1
        if self._request.asked.orient == "users":
            who, remedy = "person has" if one else "people have", "Say " + said + " to keep one answer to each item."
        else:
            who = "item has" if one else "items have"
            remedy = "Rename them, or say " + said + " to keep one answer of each person."
        return DuplicateResponseError(
            f"{self._request.source}: {len(twice):,} {who} more than one row: {listed(twice.to_list())}. ", remedy
        )


def _joined(labels: list[pl.Series]) -> pl.Series:
    if len({part.dtype for part in labels}) > 1:
        labels = [part.cast(pl.String) for part in labels]
    return pl.concat(labels)
