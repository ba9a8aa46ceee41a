"""A table of answers in a database: found, checked, and put into whole numbers there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from sqlglot import exp

from spectral_irt.data import Finding, Responses
from spectral_irt.data.labels import label_array
from spectral_irt.data.packing import repeated
from spectral_irt.errors import DatabaseError, OptionError, ReadError, ResponseValueError, listed
from spectral_irt.reading import LayoutOptions
from spectral_irt.reading.columns import Long, find_layout, plural_words
from spectral_irt.reading.frame import table_of_frame
from spectral_irt.sql import queries
from spectral_irt.sql.connection import Connection
from spectral_irt.sql.engine import Answers, DatabaseEngine

Tell = Callable[[str], None]

ROWS_STAY = Finding(
    *("people_left_out", "note"),
    "People and fit were not computed: they need the answers themselves, which stay where they are.",
    "Where a copy may be made, read the answers into this process and fit them here.",
)

FEW_BYTES = 1e9  # of bits that find repeated answers


@dataclass(frozen=True)
class Given:
    """The table of answers, and its three columns."""

    source: str
    table: exp.Expression
    names: dict[str, str]
    response: exp.Expression

    def put(self, **more: Any) -> dict[str, Any]:
        person, item = (queries.column_called(self.names[role]) for role in ("person", "item"))
        return {"table": self.table, "person": person, "item": item, "response": self.response, **more}


def find_table(connection: Connection, table: str, asked: dict[str, Any]) -> Given:
    """The table of this name, "table" or "schema.table", and which of its columns are which."""
    named, types = _first_that_exists(connection, table)
    source = f"table {table!r} of {connection.where}"
    frame = replace(table_of_frame(pl.DataFrame(schema=dict.fromkeys(types, pl.String)), list(types)), name=source)
    layout = find_layout(frame, LayoutOptions(format="long", **asked))
    assert isinstance(layout, Long)
    names = {role: list(types)[getattr(layout, role)] for role in ("person", "item", "response")}
    column, kind, of_item = queries.column_called(names["response"]), types[names["response"]], types[names["item"]]
    if not (kind.is_numeric() or kind == pl.Boolean):
        raise ReadError(
            f"{source}: column {names['response']!r} is of type {str(kind).lower()}, not numbers (1 and 0) or true and "
            "false. Make a view: SELECT ..., CASE WHEN ... THEN 1 ELSE 0 END AS response."
        )
    if not (of_item.is_integer() or of_item == pl.String):
        item, its = names["item"], str(of_item).lower()
        raise ReadError(f"{source}: column {item!r} is of type {its}; items are text or whole numbers.")
    one_or_zero = exp.Cast(this=column, to=exp.DataType.build("INT"))
    return Given(source, named, names, one_or_zero if kind == pl.Boolean else column)


def _first_that_exists(connection: Connection, table: str) -> tuple[exp.Expression, pl.Schema]:
    """The table of exactly this name; else what is before a dot is the schema."""
    if not table.strip():
        raise OptionError("no table is named; name a table or a view.")
    connection.doing = f"read table {table!r}"
    for parts in ((table,), *((tuple(table.split(".")),) if 1 <= table.count(".") <= 2 else ())):
        named = queries.table_called(*parts)
        try:
            return named, connection.fetch(queries.written(queries.HEAD, connection.dialect, table=named)).schema
        except DatabaseError as error:
            if "exist" not in str(error):
                raise
            connection.recover()
            missing = error
    there = connection.fetch(queries.written(queries.TABLES, connection.dialect))["table_name"].to_list()
    has = f"it has {listed(dict.fromkeys(there))}" if there else "it has none at all"
    raise DatabaseError(f"{connection.where}: there is no table or view {table!r} that we may see; {has}.") from missing


def coded(engine: DatabaseEngine, given: Given, tell: Tell) -> Responses:
    """The answers in whole numbers, in temporary tables, once the table has been found to be in order."""
    tell("checking the table")
    skipped = _check(engine, given)
    tell("numbering people and items")
    persons, items = (
        engine.create("codes", queries.LABELS, table=given.table, column=queries.column_called(given.names[role]))
        for role in ("person", "item")
    )
    labels = label_array(engine.ask(queries.LABELS_IN_ORDER, codes=items).to_series().to_list())
    n_persons = engine.one(queries.HOW_MANY, codes=persons)
    answers = engine.create("answers", queries.ANSWERS, **given.put(persons=persons, items=items))
    tell("looking for answers given twice")
    # In DuckDB a bit for every person and item finds repeated answers in a tenth of the time.
    by_bits = engine.dialect == "duckdb" and n_persons * len(labels) / 8 <= FEW_BYTES
    if not by_bits or engine.one(queries.REPEATED, answers=answers, m=len(labels)):
        tables = {"answers": answers, "persons": persons, "items": items}
        first = engine.ask(queries.TWICE, "look for answers given twice", **tables)
        if not first.is_empty():
            pairs = ((person, item) for person, item, _ in first.iter_rows())
            remedy = "Keep one answer of each in a view (SELECT ... GROUP BY, or ROW_NUMBER)."
            raise repeated(given.source, int(first["n"][0]), pairs, remedy)
    engine.drop(persons)
    engine.drop(items)
    people = engine.create("people", queries.PEOPLE, answers=answers)
    return Responses(
        blocks=(Answers(answers, people, n_persons, len(labels)),),  # type: ignore[arg-type]  # parts of this engine
        items=labels,
        persons=np.broadcast_to(np.int64(0), n_persons),  # their labels stay; only how many they are is known
        source=given.source,
        notes=(*skipped, ROWS_STAY),
        words=plural_words(given.names["person"], given.names["item"]),
        engine=engine,
    )


def _check(engine: DatabaseEngine, given: Given) -> tuple[Finding, ...]:
    found = engine.ask(queries.CHECK, "check the table", **given.put()).row(0, named=True)
    n = found["n_rows"]
    if n == 0:
        raise ReadError(f"{given.source}: it has no rows.")
    for role, counted in (("person", "n_person"), ("item", "n_item")):
        if found[counted] < n:
            raise ReadError(
                f"{given.source}: column {given.names[role]!r} is null in {n - found[counted]:,} of {n:,} rows, so it "
                "is not known whose answer, or to what, these are. Leave them out in a view (WHERE ... IS NOT NULL)."
            )
    if found["n_odd"]:
        odd = engine.ask(queries.ODD_VALUES, "look at values", **given.put())
        values = [f"{value} ({count:,} rows)" for value, count in odd.iter_rows()]
        raise ResponseValueError(
            f"{given.source}: column {given.names['response']!r} holds {', '.join(values)} among others; a Rasch fit "
            "needs 0 (wrong), 1 (right) and null (not answered). Make a view that says which is which."
        )
    missing = n - found["n_response"]
    sentence = f"{missing:,} of {n:,} rows have no answer (null) and were left out."
    return (Finding("no_answer", "note", sentence, "They count neither as right nor as wrong."),) if missing else ()
