"""Columns about people, read in the same pass as their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.data.labels import NOT_ANSWERED, Labels, People
from spectral_irt.errors import OptionError, listed
from spectral_irt.reading.columns import Long, Wide, position_of
from spectral_irt.reading.frame import Pieces, Table, by_position
from spectral_irt.reading.numbering import all_whole, plain_labels

LABEL = "label"
DECIMAL = r"^-?(0|[1-9]\d*)(\.\d+)?$"  # a number; a code such as 007 is none
KEPT = 1_000_000  # rows that may wait before those of the same person are made one


class Attributes:
    """What columns say about people, as it comes by; a long table says it with every answer."""

    def __init__(self, names: Sequence[str], source: str, first: int) -> None:
        self.names, self.source = tuple(dict.fromkeys(map(str, names))), source
        self._next = first  # number of the next row without a label
        self._parts: list[pl.DataFrame] = []
        self._waiting = self._settled = 0

    def add(self, labels: pl.Series | None, columns: Sequence[pl.Series]) -> None:
        """Some rows: labels of people, by default their numbers, and their values in each column."""
        if labels is None:
            labels = pl.Series(np.arange(self._next, self._next + len(columns[0])))
            self._next += len(labels)
        texts = [_texts(values, self.source).alias(f"c{k}") for k, values in enumerate(columns)]
        part = pl.DataFrame([_texts(labels, self.source).alias(LABEL), *texts])
        values = pl.all().exclude(LABEL).str.strip_chars()
        part = part.with_columns(pl.when(~values.is_in(NOT_ANSWERED)).then(values)).filter(pl.col(LABEL).is_not_null())
        self._parts.append(part.unique(maintain_order=True))
        self._waiting += self._parts[-1].height
        if self._waiting > 2 * self._settled + KEPT:
            self._together()

    def _together(self) -> pl.DataFrame:
        self._parts = [pl.concat(self._parts).unique(maintain_order=True)]
        self._waiting = self._settled = self._parts[0].height
        return self._parts[0]

    def beside(self, table: Table, layout: Long | Wide | Any) -> Table:
        """The same table, which tells its columns about people while it is read; `layout` may be lines of JSON, which
        do that themselves."""
        if not isinstance(layout, Long | Wide):
            layout.about = self
            return table
        asked = [position_of(table, "people", name) for name in self.names]
        label = layout.person if isinstance(layout, Long) else layout.label
        extra = [k for k in (label, *asked) if k is not None]
        done_rows = 0

        def tell(columns: list[pl.Series]) -> None:
            nonlocal done_rows
            height = len(columns[0])
            if label is not None:
                self.add(columns[0], columns[1:])
            else:
                index = table.row_labels
                self.add(None if index is None else index.slice(done_rows, height), columns)
            done_rows += height

        def pieces(chosen: Sequence[int]) -> Pieces:
            every = list(dict.fromkeys([*chosen, *extra]))
            for frame, done in table.pieces(every):
                tell([frame.to_series(every.index(k)) for k in extra])
                yield by_position(frame[:, : len(chosen)]), done

        def grid() -> Iterator[tuple[pl.Series, float]]:
            assert table.grid is not None
            for cells, done in table.grid():
                tell([cells.gather_every(len(table.columns), k) for k in extra])
                yield cells, done

        return replace(table, pieces=pieces, grid=grid if table.grid else None)

    def people(self, persons: Labels) -> People:
        """What was said about these people; an error where it contradicts itself."""
        seen = self._together() if self._parts else pl.DataFrame(schema={LABEL: pl.String})
        columns = {}
        for k, name in enumerate(self.names):
            known = seen.select(LABEL, pl.col(f"c{k}").alias("value")).drop_nulls().unique(maintain_order=True)
            known = _settled(known, name, self.source)
            values = np.empty(known.height, dtype=object)
            values[:] = known["value"].to_list()
            columns[name] = People(known[LABEL].to_numpy(), {name: values}).of(persons)[name]
        return People(persons, columns, self.source)


def _settled(known: pl.DataFrame, name: str, source: str) -> pl.DataFrame:
    twice = known.filter(pl.col(LABEL).is_duplicated())[LABEL].unique(maintain_order=True)
    if len(twice):
        raise OptionError(
            f"{source}: {len(twice):,} {'person has' if len(twice) == 1 else 'people have'} more than one value in the "
            f"column {name!r}: {listed(twice.to_list())}. Give each person one."
        )
    if all_whole(known["value"]):
        return known.with_columns(pl.col("value").cast(pl.Int64))
    if known.height and known["value"].str.contains(DECIMAL).all():
        return known.with_columns(pl.col("value").cast(pl.Float64))
    return known


def _texts(values: pl.Series, name: str) -> pl.Series:
    return plain_labels(values, text=True, name=name).cast(pl.String)
