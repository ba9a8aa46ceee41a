"""Tables -> Responses: which layout each has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectral_irt.data.responses import Responses
from spectral_irt.errors import ReadError
from spectral_irt.reading.attributes import check_named
from spectral_irt.reading.columns import Long, Wide, find_layout, position_of, words_of
from spectral_irt.reading.frame import Table
from spectral_irt.reading.long_builder import LongTables, long_responses
from spectral_irt.reading.people import Attributes
from spectral_irt.reading.request import Request, of_either_kind
from spectral_irt.reading.wide_builder import WideRows, responses_of_rows

# ------------------------------------------------------------------ tables


def from_tables(tables: Sequence[Table], request: Request) -> Responses:
    """Responses from tables, which may be read as often as needed."""

    for table in tables:
        for name in request.asked.people:
            position_of(table, "people", name)
    return of_either_kind(lambda how: _scored_tables(tables, replace(request, scoring=how)), request.scoring)


def _scored_tables(tables: Sequence[Table], request: Request) -> Responses:
    asked = request.asked
    if not asked.people:
        responses = _read_tables(tables, request)
    else:
        about = Attributes(asked.people, request.source, 0 if request.frame_kind else 1)
        request = replace(request, asked=replace(asked, ignore=(*asked.ignore, *asked.people)))
        responses = _read_tables(tables, request, about)
        responses = replace(responses, people=about.people(responses.persons))
    notes = [note for table in tables for note in table.notes]
    return replace(responses, notes=(*notes, *responses.notes)) if notes else responses


def _read_tables(tables: Sequence[Table], request: Request, about: Attributes | None = None) -> Responses:

    asked, key = request.asked, request.scoring.key or ()
    people = [table.people(asked, key) if table.people else None for table in tables]
    layouts = [found or find_layout(table, asked, key) for table, found in zip(tables, people, strict=True)]
    if about is not None:
        tables = [about.beside(table, layout) for table, layout in zip(tables, layouts, strict=True)]
    long = [layout for layout in layouts if isinstance(layout, Long)]
    wide = [
        WideRows(table, layout, orient=asked.orient) if isinstance(layout, Wide) else layout
        for table, layout in zip(tables, layouts, strict=True)
        if not isinstance(layout, Long)
    ]
    kinds = {isinstance(layout, Long): table.name for table, layout in zip(tables, layouts, strict=True)}
    if long and wide:
        raise ReadError(
            f"{kinds[True]} is long (one row per answer) and {kinds[False]} is wide (one row per person); read them "
            "separately, or say `format=` if one of them was mistaken."
        )
    if long:
        first = tables[0].columns
        words = words_of(first[long[0].person], first[long[0].item])
        return replace(long_responses(LongTables(tables, long), request), words=words)
    names = [name for table in tables for name in table.columns]
    if not any(table.people for table in tables):
        check_named(asked.items, names, request.source)
    responses = responses_of_rows(wide, request)
    if not responses.n_items:  # of people with items of their own, all are known only now
        check_named(asked.items, names, request.source)
    return responses
