"""Wide tables as sheets: one row a user (or an item), one column an item (or a user)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError, option
from spectral_irt.responses.block import BLOCK_RESPONSES
from spectral_irt.responses.labels import item_label, nobody
from spectral_irt.responses.reading.layout import Wide
from spectral_irt.responses.reading.numbering import ItemIndex, check_names, is_whole, plain_labels
from spectral_irt.responses.reading.sheets import Sheet
from spectral_irt.responses.reading.tabular import LEAST_ROWS, Table
from spectral_irt.responses.survey import Place


def wide_sheets(
    tables: Sequence[Table],
    layouts: Sequence[Wide],
    columns: ItemIndex,
    report: Callable[[float], None],
    *,
    first_number: int,
    orient: str,
) -> Iterator[Sheet]:
    """The rows of wide tables, stacked; columns with the same name are one. Rows without labels are numbered."""
    labelled = [layout.label is not None or table.row_labels is not None for table, layout in _both(tables, layouts)]
    if any(labelled) and not all(labelled):
        bare = tables[labelled.index(False)].name
        raise ReadError(
            f"{bare} has no column of user labels, but other files have. Name it with ", option("user", ...), "."
        )
    text = not all(
        is_whole(table.dtypes[layout.label]) for table, layout in _both(tables, layouts) if layout.label is not None
    )
    number = first_number
    for index, (table, layout) in enumerate(_both(tables, layouts)):
        sheets = _TableSheets(table, layout, columns, text, orient)
        for sheet, done in sheets.read(number):
            number += len(sheet.labels)
            yield sheet
            report((index + done) / len(tables))


def _both(tables: Sequence[Table], layouts: Sequence[Wide]) -> list[tuple[Table, Wide]]:
    return list(zip(tables, layouts, strict=True))


@dataclass(frozen=True)
class Slab:
    """Some rows of a wide table: their labels, if it has any, and all values, row after row or column after column."""

    labels: pl.Series | None
    values: pl.Series
    height: int
    by_row: bool

    def rows_of_values(self, of_row: NDArray[Any]) -> NDArray[Any]:
        """Something of every row, repeated for each of its values."""
        width = len(self.values) // max(self.height, 1)
        return np.repeat(of_row, width) if self.by_row else np.tile(of_row, width)

    def columns_of_values(self, of_column: NDArray[Any]) -> NDArray[Any]:
        """Something of every column, repeated for each of its values."""
        return np.tile(of_column, self.height) if self.by_row else np.repeat(of_column, self.height)

    def keep(self, rows: NDArray[np.bool_]) -> Slab:
        assert self.labels is not None
        values = self.values.filter(pl.Series(self.rows_of_values(rows)))
        return Slab(self.labels.filter(pl.Series(rows)), values, int(rows.sum()), self.by_row)


class _TableSheets:
    """One wide table, cut into sheets of about a block's worth of values."""

    def __init__(self, table: Table, layout: Wide, columns: ItemIndex, text: bool, orient: str) -> None:
        self.table = table
        self.layout = layout
        self.text = text
        self.orient = orient
        self.labels = [item_label(table.columns[k]) for k in layout.columns]
        self.codes = columns.codes(self.labels)
        self.dtype = _common_type(table, layout.columns)

    def read(self, number: int) -> Iterator[tuple[Sheet, float]]:
        start = 0
        rows = max(LEAST_ROWS, BLOCK_RESPONSES // len(self.layout.columns))
        for slab, done in self._slabs_of_cells(rows) if self.table.grid else self._slabs_of_columns(rows):
            yield self._sheet(slab, start, number), done
            start += slab.height
            number += slab.height

    def _slabs_of_columns(self, rows: int) -> Iterator[tuple[Slab, float]]:
        label = self.layout.label
        for frame, done in self.table.pieces([*([] if label is None else [label]), *self.layout.columns]):
            for part in frame.iter_slices(rows):
                labels = None if label is None else part.to_series(0)
                if label is not None:
                    part = part.drop(part.columns[0])
                yield Slab(labels, self._column_after_column(part), part.height, by_row=False), done

    def _column_after_column(self, part: pl.DataFrame) -> pl.Series:
        if self.dtype == pl.String:
            return part.cast(pl.String).unpivot().get_column("value")
        return pl.Series(part.cast(pl.Float64).to_numpy(order="fortran").ravel(order="F"))

    def _slabs_of_cells(self, rows: int) -> Iterator[tuple[Slab, float]]:
        assert self.table.grid is not None
        width, label = len(self.table.columns), self.layout.label
        answers = np.zeros(width, dtype=bool)
        answers[list(self.layout.columns)] = True
        for cells, done in self.table.grid():
            for start in range(0, len(cells), rows * width):
                part = cells.slice(start, rows * width)
                labels, height = None, len(part) // width
                if label is not None:
                    labels = part.gather_every(width, label)
                if not answers.all():
                    part = part.filter(pl.Series(np.tile(answers, height)))
                yield Slab(labels, part, height, by_row=True), done

    def _sheet(self, slab: Slab, start: int, number: int) -> Sheet:
        rows = np.arange(start + 1, start + slab.height + 1)
        if slab.labels is None:
            labels = self._row_labels(slab.height, start, number)
        else:
            slab, rows = self._without_empty_rows(slab, rows)
            assert slab.labels is not None
            labels = plain_labels(slab.labels, text=self.text, name=self._where())
            if self.orient == "users":
                check_names(labels, self._where(), rows)
        row = slab.rows_of_values(np.arange(slab.height))
        column = slab.columns_of_values(np.arange(len(self.labels)))

        def place(k: int) -> Place:
            return Place(self.table.name, self.labels[column[k]], int(rows[row[k]]))

        return Sheet(labels, row, self.codes[column], slab.values, place)

    def _where(self) -> str:
        assert self.layout.label is not None
        return f"{self.table.name}: column {str(self.table.columns[self.layout.label])!r}"

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
        answered = slab.values.is_not_null().to_numpy() & slab.rows_of_values(bare)
        if answered.any():
            raise nobody(self._where(), np.unique(slab.rows_of_values(rows)[answered]).tolist())
        return slab.keep(~bare), rows[~bare]


def _common_type(table: Table, columns: Sequence[int]) -> Any:
    """Numbers when every column holds numbers, else text: all values of a sheet are judged in one go."""
    kinds = [table.dtypes[k] for k in columns]
    for k in columns:
        if table.dtypes[k].is_nested() or table.dtypes[k] in (pl.Object, pl.Binary):
            raise ReadError(
                f"{table.name}: column {str(table.columns[k])!r} is of type {table.dtypes[k]}, not answers. Leave it "
                "out of the table."
            )
    numeric = all(kind.is_numeric() or kind in (pl.Boolean, pl.Null) for kind in kinds)
    return pl.Float64 if numeric else pl.String
