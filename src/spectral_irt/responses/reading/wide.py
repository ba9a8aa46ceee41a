"""Wide tables as sheets: one row a user (or an item), one column an item (or a user)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.errors import ReadError
from spectral_irt.responses.block import BLOCK_RESPONSES
from spectral_irt.responses.reading.labels import ItemIndex, is_whole, plain_labels
from spectral_irt.responses.reading.layout import Wide
from spectral_irt.responses.reading.people import Sheet
from spectral_irt.responses.reading.tables import Table
from spectral_irt.responses.survey import Place


def wide_sheets(
    tables: Sequence[Table],
    layouts: Sequence[Wide],
    columns: ItemIndex,
    report: Callable[[float], None],
    *,
    first_number: int,
) -> Iterator[Sheet]:
    """The rows of wide tables, stacked; columns with the same name are one. Rows without labels are numbered."""
    labelled = [layout.label is not None or table.row_labels is not None for table, layout in _both(tables, layouts)]
    if any(labelled) and not all(labelled):
        bare = tables[labelled.index(False)].name
        raise ReadError(f"{bare} has no column of user labels, but other files have. Name it with user=.")
    text = not all(
        is_whole(table.dtypes[layout.label]) for table, layout in _both(tables, layouts) if layout.label is not None
    )
    number = first_number
    for index, (table, layout) in enumerate(_both(tables, layouts)):
        sheets = _TableSheets(table, layout, columns, text)
        for sheet, done in sheets.read(number):
            number += len(sheet.labels)
            yield sheet
            report((index + done) / len(tables))


def _both(tables: Sequence[Table], layouts: Sequence[Wide]) -> list[tuple[Table, Wide]]:
    return list(zip(tables, layouts, strict=True))


class _TableSheets:
    """One wide table, cut into sheets of about a block's worth of values."""

    def __init__(self, table: Table, layout: Wide, columns: ItemIndex, text: bool) -> None:
        self.table = table
        self.layout = layout
        self.text = text
        self.labels = [table.columns[k] for k in layout.columns]
        self.codes = columns.codes(self.labels)
        self.dtype = _common_type(table, layout.columns)

    def read(self, number: int) -> Iterator[tuple[Sheet, float]]:
        layout = self.layout
        chosen = ([] if layout.label is None else [layout.label]) + list(layout.columns)
        rows = max(1, BLOCK_RESPONSES // len(layout.columns))
        start = 0
        for frame, done in self.table.pieces(chosen):
            for part in frame.iter_slices(rows):
                yield self._sheet(part, start, number), done
                start += part.height
                number += part.height

    def _sheet(self, part: pl.DataFrame, start: int, number: int) -> Sheet:
        rows = np.arange(start + 1, start + part.height + 1)
        if self.layout.label is None:
            labels = self._row_labels(part.height, start, number)
        else:
            part, rows = self._without_empty_rows(part, rows)
            column = f"{self.table.name}: column {str(self.table.columns[self.layout.label])!r}"
            labels = plain_labels(part.to_series(0), text=self.text, name=column)
            part = part[:, 1:]
        height = part.height
        values = part.cast(self.dtype).unpivot().get_column("value")

        def place(k: int) -> Place:
            return Place(self.table.name, self.labels[k // height], int(rows[k % height]))

        width = len(self.codes)
        return Sheet(labels, np.tile(np.arange(height), width), np.repeat(self.codes, height), values, place)

    def _row_labels(self, height: int, start: int, number: int) -> pl.Series:
        if self.table.row_labels is not None:
            return self.table.row_labels.slice(start, height)
        return pl.Series(np.arange(number, number + height, dtype=np.int64))

    def _without_empty_rows(self, part: pl.DataFrame, rows: Any) -> tuple[pl.DataFrame, Any]:
        """Spreadsheets leave rows of nothing at the end; a row of answers without a label is an error."""
        nameless = part.to_series(0).is_null()
        if not nameless.any():
            return part, rows
        empty = part.select(pl.all_horizontal(pl.all().is_null())).to_series()
        lost = nameless & ~empty
        if lost.any():
            assert self.layout.label is not None
            raise ReadError(
                f"{self.table.name}: row {rows[lost.arg_max()]:,} has answers but column "
                f"{str(self.table.columns[self.layout.label])!r}, which labels the rows, is empty there. Fill it in."
            )
        return part.filter(~empty), rows[~empty.to_numpy()]


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
