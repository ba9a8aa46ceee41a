"""Ratings: tables in which columns beside the item say who rated, or when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from spectral_irt.errors import OptionError
from spectral_irt.reading import LayoutOptions, ReadOptions
from spectral_irt.reading.columns import Long, Wide
from spectral_irt.reading.frame import Pieces, Table


def refuse_with_facets(tables: Sequence[Table], options: ReadOptions) -> None:
    """What is not meant for ratings, and facets that no column is."""
    scoring = options.scoring
    for table in tables:
        for name in options.layout.facets:
            table.position("facet", name)
    if scoring.key is not None or scoring.above_mean is not None:
        raise OptionError("`facets=` is for ratings; `key=` and `above_mean=` are for answers. Leave out one of them.")


def with_facets(table: Table, layout: Long | Wide, said: LayoutOptions) -> tuple[Table, Long]:
    """The layout with the columns of the facets; a wide table, a row for each person and rater, is made long."""
    places = [table.position("facet", name) for name in said.facets]
    facets = tuple(place for place in places if place is not None)
    if isinstance(layout, Long):
        return table, replace(layout, facets=facets)
    if layout.label is None:
        raise OptionError(
            f"{table.name}: a row is a person as one rater saw them, but no column seems to name the person. Say which "
            "with `person=`."
        )
    return _unpivoted(table, layout, facets)


def _unpivoted(table: Table, layout: Wide, facets: tuple[int, ...]) -> tuple[Table, Long]:
    """A row for each answer: the columns that are no items, then the item and the answer."""
    n, items = len(table.columns), list(layout.columns)
    names = [str(table.columns[k]) for k in items]
    kind = table.dtypes[items[0]] if len({table.dtypes[k] for k in items}) == 1 else pl.String

    def pieces(positions: Sequence[int]) -> Pieces:
        kept = [k for k in positions if k < n]
        for frame, done in table.pieces([*kept, *items]):
            frame.columns = [*(f"index {k}" for k in kept), *names]
            long = frame.with_columns(pl.col(names).cast(kind, strict=False)).unpivot(
                names, index=frame.columns[: len(kept)], variable_name="item", value_name="answer"
            )
            yield long.select([f"index {k}" if k < n else ("item", "answer")[k - n] for k in positions]), done

    made = replace(
        table,
        columns=[*table.columns, "item", "answer"],
        dtypes=[*table.dtypes, pl.String, kind],
        pieces=pieces,
        head=lambda k: table.head(k) if k < n else table.head(items[0]),
        untyped=[*table.untyped, n],
        cells=None,
        n_added=0,
    )
    assert layout.label is not None
    return made, Long(layout.label, n, n + 1, facets=facets)
