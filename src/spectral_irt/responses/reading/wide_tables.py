"""Wide tables as sheets: one row per person (or item), one column per item (or person)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError
from spectral_irt.responses.block import BLOCK_RESPONSES
from spectral_irt.responses.gatherer import Piece
from spectral_irt.responses.labels import item_label, nobody
from spectral_irt.responses.reading.layout import Wide
from spectral_irt.responses.reading.numbering import ItemIndex, check_names, is_whole, plain_labels
from spectral_irt.responses.reading.sheets import Sheet
from spectral_irt.responses.reading.tabular import LEAST_ROWS, Table
from spectral_irt.responses.survey import Place


class Slab(NamedTuple):
    """Some rows of a wide table: their labels, if it has any, and all values, row after row."""

    labels: pl.Series | None
    values: Any  # a Series, or an array of numbers
    height: int


class WideRows:
    """One wide table, cut into sheets of about a block's worth of values. See `Rows`."""

    in_order = True

    def __init__(self, table: Table, layout: Wide, *, orient: str) -> None:
        self.table, self.name, self.chosen = table, table.name, layout.chosen
        self.label, self.columns = layout.label, layout.columns
        self.labeled = layout.label is not None or table.row_labels is not None
        self.loose_rows = layout.label is not None and table.loose[layout.label]
        self.loose_columns = table.loose_header
        self.orient = orient
        self.items = [item_label(table.columns[k]) for k in layout.columns]
        self.numeric = _are_numbers(table, layout.columns)

    def sheets(self, columns: ItemIndex, number: int) -> Iterator[tuple[Sheet, float]]:
        codes = columns.codes(self.items)
        rows = max(LEAST_ROWS, BLOCK_RESPONSES // len(codes))
        start = 0
        for slab, done in self._slabs_of_cells(rows) if self.table.grid else self._slabs_of_columns(rows):
            yield self._sheet(slab, codes, start, number + start), done
            start += slab.height

    def _slabs_of_columns(self, rows: int) -> Iterator[tuple[Slab, float]]:
        label = [] if self.label is None else [self.label]
        for frame, done in self.table.pieces([*label, *self.columns]):
            for part in frame.iter_slices(rows):
                labels = part.to_series(0) if label else None
                yield Slab(labels, self._row_after_row(part[:, len(label) :]), part.height), done

    def _row_after_row(self, part: pl.DataFrame) -> Any:
        if self.numeric:
            return part.cast(pl.Float64).to_numpy(order="c").ravel()
        by_column = part.cast(pl.String).unpivot().get_column("value")
        return by_column.gather(np.arange(len(by_column)).reshape(part.width, part.height).T.ravel())

    def _slabs_of_cells(self, rows: int) -> Iterator[tuple[Slab, float]]:
        assert self.table.grid is not None
        width = len(self.table.columns)
        answers = np.zeros(width, dtype=bool)
        answers[list(self.columns)] = True
        for cells, done in self.table.grid():
            for start in range(0, len(cells), rows * width):
                part = cells.slice(start, rows * width)
                height = len(part) // width
                labels = None if self.label is None else part.gather_every(width, self.label)
                if not answers.all():
                    part = part.filter(pl.Series(np.tile(answers, height)))
                yield Slab(labels, part, height), done

    def _sheet(self, slab: Slab, codes: NDArray[np.int32], start: int, number: int) -> Sheet:
        n = len(codes)
        rows = self.table.rows_above + np.arange(start + 1, start + slab.height + 1)
        if slab.labels is None:
            labels = self._row_labels(slab.height, start, number)
        else:
            slab, rows = self._without_empty_rows(slab, rows)
            labels = plain_labels(slab.labels, text=not is_whole(self.table.dtypes[self.label]), name=self._where())  # type: ignore[arg-type, index]
            if self.orient == "users":
                check_names(labels, self._where(), rows)

        def place(k: int) -> Place:
            return Place(self.name, self.items[k % n], int(rows[k // n]))

        row = np.repeat(np.arange(slab.height, dtype=np.int32), n)
        width = n if self.orient == "users" else None  # else the cells of a row are those of an item
        return Sheet(labels, Piece(row, np.tile(codes, slab.height), slab.values, place, width))

    def _where(self) -> str:
        assert self.label is not None
        return f"{self.name}: column {str(self.table.columns[self.label])!r}"

    def _row_labels(self, height: int, start: int, number: int) -> pl.Series:
        if self.table.row_labels is not None:
            return self.table.row_labels.slice(start, height)
        return pl.Series(np.arange(number, number + height, dtype=np.int64))

    def _without_empty_rows(self, slab: Slab, rows: NDArray[Any]) -> tuple[Slab, NDArray[Any]]:
        """Spreadsheets leave rows of nothing at the end; a row of answers without a label is an error."""
        assert slab.labels is not None
        bare = slab.labels.is_null().to_numpy()
        if not bare.any():
            return slab, rows
        values = slab.values
        empty = np.isnan(values) if isinstance(values, np.ndarray) else values.is_null().to_numpy()
        answered = bare & ~empty.reshape(len(bare), -1).all(axis=1)
        if answered.any():
            raise nobody(self._where(), rows[answered].tolist())
        kept = np.repeat(~bare, len(values) // len(bare))
        values = values[kept] if isinstance(values, np.ndarray) else values.filter(pl.Series(kept))
        return Slab(slab.labels.filter(pl.Series(~bare)), values, int((~bare).sum())), rows[~bare]


def _are_numbers(table: Table, columns: Sequence[int]) -> bool:
    """Whether every column holds numbers; otherwise all are read as text, to be judged in one go."""
    for k in columns:
        if table.dtypes[k].is_nested() or table.dtypes[k] in (pl.Object, pl.Binary):
            raise ReadError(
                f"{table.name}: column {str(table.columns[k])!r} is of type {table.dtypes[k]}, not answers. Leave it "
                "out of the table."
            )
    return all(table.dtypes[k].is_numeric() or table.dtypes[k] in (pl.Boolean, pl.Null) for k in columns)
