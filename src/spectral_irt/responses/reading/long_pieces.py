"""Long tables in pieces: labels as codes, raw values, and where each row stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError
from spectral_irt.responses.labels import Labels
from spectral_irt.responses.reading.label_codes import LabelCodes
from spectral_irt.responses.reading.layout import Long
from spectral_irt.responses.reading.numbering import check_names, is_whole, labels_of, plain_labels, settled, unnamed
from spectral_irt.responses.reading.ordering import Clock
from spectral_irt.responses.reading.tabular import Table
from spectral_irt.responses.survey import Place


@dataclass(frozen=True)
class LongPiece:
    """Some rows of a long table: codes of people and items, raw values, and where they stand."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: pl.Series
    place: Callable[[int], Place]
    done: float  # the share of all rows read with this piece
    when: NDArray[Any] | None = None  # what orders the rows


@dataclass(frozen=True)
class LongTables:
    """Long tables, one after the other, as one; what labels they have is known when all pieces were read."""

    tables: Sequence[Table]
    layouts: Sequence[Long]
    users: LabelCodes = field(default_factory=LabelCodes)
    items: LabelCodes = field(default_factory=LabelCodes)

    def _columns(self, role: str) -> list[tuple[Table, int]]:
        return [(table, getattr(layout, role)) for table, layout in zip(self.tables, self.layouts, strict=True)]

    def is_text(self, role: str) -> bool:
        """Whether the labels are text in some table; then they are in all."""
        return not all(is_whole(table.dtypes[k]) for table, k in self._columns(role))

    def is_loose(self, role: str) -> bool:
        """Whether labels handled as text become integers again when all are whole numbers."""
        return not self.is_text(role) or all(table.loose[k] for table, k in self._columns(role))

    def pieces(self) -> Iterator[LongPiece]:
        """The rows in order of arrival, without those that are empty altogether."""
        text = {role: self.is_text(role) for role in ("user", "item")}
        clock = Clock()
        for number, (table, layout) in enumerate(zip(self.tables, self.layouts, strict=True)):
            start = table.rows_above + 1
            columns = [layout.user, layout.item, layout.response]
            for frame, done in table.pieces(columns if layout.order is None else [*columns, layout.order]):
                rows: Sequence[int] | NDArray[Any] = range(start, start + frame.height)
                start += frame.height
                if all(frame.to_series(k).null_count() for k in range(3)):
                    empty = frame.select(pl.all_horizontal(pl.nth(0, 1, 2).is_null())).to_series()
                    rows, frame = np.asarray(rows)[~empty.to_numpy()], frame.filter(~empty)
                piece = self._piece(table, layout, frame, rows, text, (number + done) / len(self.tables))
                if layout.order is not None:
                    where = f"{table.name}: column {str(table.columns[layout.order])!r}"
                    piece = replace(piece, when=clock.read(frame.to_series(3), where, rows))
                yield piece

    def _piece(
        self,
        table: Table,
        layout: Long,
        frame: pl.DataFrame,
        rows: Sequence[int] | NDArray[Any],
        text: dict[str, bool],
        done: float,
    ) -> LongPiece:
        codes = {}
        for position, (role, coder) in enumerate((("user", self.users), ("item", self.items))):
            column = str(table.columns[getattr(layout, role)])
            where = f"{table.name}: column {column!r}"
            labels = plain_labels(frame.to_series(position), text=text[role], name=where)
            if labels.null_count():
                if role == "user":
                    check_names(labels, where, rows)
                row = rows[labels.is_null().arg_max()]  # type: ignore[index]
                raise ReadError(
                    f"{table.name}: column {column!r}, row {row:,} is empty, so it is not known which {role} the "
                    "response belongs to. Fill it in, or remove the row."
                )
            codes[role], new = coder.codes(labels)
            if role == "user" and unnamed(new).any():
                check_names(labels, where, rows)
        response = table.columns[layout.response]

        def place(k: int) -> Place:
            return Place(table.name, response, int(rows[k]))

        return LongPiece(codes["user"], codes["item"], frame.to_series(2), place, done)

    def numbering(self, role: str) -> tuple[Labels, NDArray[np.int32]]:
        """The labels in order, numbers by size and text by its characters; and the position of each by its code."""
        labels, loose = (self.users if role == "user" else self.items).labels(), self.is_loose(role)
        order = settled(labels, loose=loose).arg_sort().to_numpy()
        position = np.empty(len(order), dtype=np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        return labels_of(labels.gather(order), loose=loose), position


T = TypeVar("T")


def one_ahead(things: Iterable[T]) -> Iterator[T]:
    """The same things; while one is used, a thread makes the next. polars and numpy leave the other threads alone."""
    source, end = iter(things), object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, source, end)
        while (thing := coming.result()) is not end:
            coming = thread.submit(next, source, end)
            yield thing  # type: ignore[misc]
