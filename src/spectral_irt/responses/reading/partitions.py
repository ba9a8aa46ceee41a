"""Columns that stand in no file: what the folders of a partitioned table say about all rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from spectral_irt.errors import ReadError
from spectral_irt.responses.reading.tabular import Pieces, Table, by_position


def with_partitions(table: Table, partitions: Sequence[tuple[str, str | None]]) -> Table:
    """The table with a column for each (name, value); one that it has already must not contradict its folder."""
    added = [(name, value) for name, value in partitions if name not in table.columns]
    if not added:
        return table
    own = len(table.columns)
    names = [name for name, _ in added]
    if len(set(names)) < len(names):
        raise ReadError(f"{table.name}: the folders say {names[0]!r} more than once. Rename them.")

    def constant(k: int, height: int) -> pl.Series:
        return pl.Series([added[k - own][1]], dtype=pl.String).new_from_index(0, height)

    def head(column: int) -> pl.Series:
        return table.head(column) if column < own else constant(column, len(table.head(0)))

    def pieces(columns: Sequence[int]) -> Pieces:
        inside = [k for k in columns if k < own]
        for frame, done in table.pieces(inside or [0]):
            there = dict(zip(inside, frame.iter_columns(), strict=False))
            chosen = [there[k] if k < own else constant(k, frame.height) for k in columns]
            yield by_position(pl.DataFrame([each.alias(str(n)) for n, each in enumerate(chosen)])), done

    return replace(
        table,
        columns=[*table.columns, *names],
        dtypes=[*table.dtypes, *[pl.String] * len(added)],
        loose=[*table.loose, *[True] * len(added)],
        head=head,
        pieces=pieces,
        grid=None,
        n_added=len(added),
    )
