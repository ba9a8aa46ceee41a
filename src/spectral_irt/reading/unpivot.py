"""A wide table of ratings, made long: each row of the source becomes a row for each item.

With facets (`facets=`) a response is given to an item *and* a rater. In a wide table a row is a person as one rater saw
him or her; made long, with the columns `MADE_LONG` after its own, it is read like any long table of ratings. Columns
are known by position, since an item may be called "row" or "answer".

`tables.py` calls this where facets are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from spectral_irt.errors import OptionError
from spectral_irt.reading.columns import Long, Wide
from spectral_irt.reading.frame import Pieces, Table
from spectral_irt.reading.item_columns import findings

LEFT_OUT = ("attribute_columns", "total_columns", "unlike_columns")  # findings that are told of tables of ratings
MADE_LONG = ("item", "answer", "row")  # columns after those of the source; `row` is the number of its row


class LongTable(NamedTuple):
    """A table with a response in each row, and which of its columns is what."""

    table: Table
    layout: Long


def with_facets(table: Table, layout: Long | Wide, names: Sequence[str]) -> LongTable:
    """The table and its layout with these columns as facets; a wide one made long."""
    facets = tuple(table.position("facet", name) for name in names)
    if isinstance(layout, Long):
        return LongTable(table, replace(layout, facets=facets))
    if layout.label is None:
        raise OptionError(f"{table.name}: no column seems to name the person who was rated. Say which with `person=`.")
    n_columns = len(table.columns)
    items = list(layout.columns)
    types = {table.dtypes[k] for k in items}
    answer_type = types.pop() if len(types) == 1 else pl.String
    unpivoting = _Unpivoted(table, items, answer_type)
    about_columns = findings([(table, layout)], tuple(table.columns[k] for k in items))
    left_out = [finding for finding in about_columns if finding.code in LEFT_OUT]
    unpivoted = replace(
        table,
        columns=[*table.columns, *MADE_LONG],
        dtypes=[*table.dtypes, pl.String, answer_type, pl.UInt32],
        pieces=unpivoting.pieces,
        head=lambda k: table.head(k if k < n_columns else items[0]),
        untyped=[*table.untyped, n_columns],
        cells=None,
        n_added=0,
        notes=(*table.notes, *left_out),
    )
    long = Long(layout.label, item=n_columns, response=n_columns + 1, row=n_columns + 2, facets=facets)
    return LongTable(unpivoted, long)


class _Unpivoted(NamedTuple):
    """The pieces of a wide table, made long; `items` are the positions of its items."""

    table: Table
    items: list[int]
    answer_type: pl.DataType | type[pl.DataType]

    def pieces(self, positions: Sequence[int]) -> Pieces:
        """The columns at these positions, piece by piece: first those of the source, then `MADE_LONG`."""
        n_columns = len(self.table.columns)
        beside = [k for k in positions if k < n_columns]
        first_row = self.table.rows_above + 1
        for frame, done in self.table.pieces([*beside, *self.items]):
            columns = dict(zip(beside, frame.get_columns()[: len(beside)], strict=True))
            answers = frame.get_columns()[len(beside) :]
            long = [self._column(k, columns, answers, first_row) for k in positions]
            yield pl.DataFrame([column.alias(str(place)) for place, column in enumerate(long)]), done
            first_row += frame.height

    def _column(
        self, position: int, columns: dict[int, pl.Series], answers: list[pl.Series], first_row: int
    ) -> pl.Series:
        """One column of a piece: item after item, within each the rows of the source."""
        n_columns = len(self.table.columns)
        n_items = len(self.items)
        n_rows = len(answers[0])
        if position < n_columns:
            return pl.concat([columns[position]] * n_items)
        name = MADE_LONG[position - n_columns]
        if name == "item":
            labels = pl.Series([str(self.table.columns[k]) for k in self.items], dtype=pl.String)
            return labels.gather(np.repeat(np.arange(n_items), n_rows))
        if name == "answer":
            return pl.concat([answer.cast(self.answer_type, strict=False).alias("answer") for answer in answers])
        return pl.Series(np.tile(np.arange(first_row, first_row + n_rows, dtype=np.uint32), n_items))
