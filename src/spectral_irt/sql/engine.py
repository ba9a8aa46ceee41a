"""An engine whose parts are tables: for every kernel of the chain it knows the query that adds up the same over people.

Numbers per item are loaded into a table, the database adds up, and what comes back are numbers per item again. A table
of answers is found, checked, and put into whole numbers there first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sqlglot import exp

from spectral_irt.chain.errors import products_of_persons, spread_of_persons
from spectral_irt.chain.operator import Part, Weighting, flow_in, pair_rates, total_rates
from spectral_irt.data import Finding, Responses, block
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, duplicate_error
from spectral_irt.data.design import evidence, spread_marks
from spectral_irt.data.labels import label_array
from spectral_irt.data.shared_sets import sampled_sets
from spectral_irt.data.unlinked import across
from spectral_irt.engine.base import Each, Engine, Kernel
from spectral_irt.errors import AnswersStayError, DatabaseError, OptionError, ReadError, ResponseValueError
from spectral_irt.reading import ReadOptions
from spectral_irt.reading.columns import Long, find_layout, plural_words
from spectral_irt.reading.frame import table_of_frame
from spectral_irt.sql import queries
from spectral_irt.sql.connection import Connection
from spectral_irt.text import listed

PREFIX = "spectral_irt_"
ITEMS = PREFIX + "items"  # numbers per item that a query asks for


@dataclass(frozen=True)
class Answers:
    """Answers in whole numbers: two tables, and how many people and items there are."""

    answers: str
    people: str
    n_persons: int
    n_items: int


@dataclass(frozen=True)
class Weighed:
    """Answers under a weighting: what each person counts, and the factor of each answer if there is one."""

    of: Answers
    weights: str
    rows: str
    factor: exp.Expression

    @property
    def names(self) -> dict[str, Any]:
        return {"rows": self.rows, "weights": self.weights, "a": self.factor}


class DatabaseEngine(Engine):
    """Sums over people, done by a database: it knows some kernels, and refuses others."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.dialect = connection.dialect
        self._numbers = count(1)

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        translation = INSTEAD_OF.get(kernel)
        if translation is None or each:
            where = self.connection.where
            raise AnswersStayError(f"{where}: this needs the answers themselves ({kernel.__name__}); read them here.")
        yield from (translation(self, part, *args) for part in parts)

    def ask(self, query: str, doing: str = "add up answers", **names: Any) -> pl.DataFrame:
        self.connection.doing = doing
        return self.connection.fetch(self._sql(query, names))

    def one(self, query: str, **names: Any) -> int:
        return int(self.ask(query, **names).item())

    def per_item(self, query: str, n_items: int, **names: Any) -> tuple[NDArray[Any], ...]:
        """The columns after `item`, each with a number for every item, 0 for those that the query did not meet."""
        item, *columns = self.ask(query, **names)
        out = tuple(np.zeros(n_items, dtype=column.to_numpy().dtype) for column in columns)
        for array, column in zip(out, columns, strict=True):
            array[item.to_numpy()] = column.to_numpy()
        return out

    def per_pair(self, query: str, n_items: int, **names: Any) -> Floats:
        item, other, total = self.ask(query, **names)
        out = np.zeros((n_items, n_items))
        out[item.to_numpy(), other.to_numpy()] = total.to_numpy()
        return out

    def create(self, what: str, query: str, **names: Any) -> str:
        """The name of a new temporary table with the rows of the query; `what` is a part of the name."""
        name = f"{PREFIX}{next(self._numbers)}_{what}"
        self.connection.doing = f"make a temporary table of {what}"
        self.connection.execute(self._sql(queries.CREATE.format(what) + query, {what: name, **names}))
        return name

    def drop(self, name: str) -> None:
        self.connection.execute(self._sql(queries.DROP, {"dropped": name}))

    def load(self, **columns: NDArray[Any]) -> None:
        """Numbers per item, for the next query, as columns beside `item`; with `item` among them, of some items."""
        length = len(next(iter(columns.values())))
        self.connection.doing = "take numbers per item"
        self.connection.load(ITEMS, {"item": np.arange(length, dtype=np.int32), **columns})

    def _sql(self, query: str, names: Mapping[str, Any]) -> str:
        put = {name: exp.to_identifier(x, quoted=True) if isinstance(x, str) else x for name, x in names.items()}
        return queries.query_text(query, self.dialect, **{"items": exp.to_identifier(ITEMS, quoted=True), **put})

    def _kinds(self, part: Answers, thresholds: Thresholds) -> Ints:
        some, *kinds = self.ask(queries.KINDS, people=part.people).row(0)
        return np.array([part.n_persons - some, *kinds])

    def _marked_per_item(self, part: Answers, thresholds: Thresholds, marks: Floats, against: bool) -> Floats:
        self.load(item=np.flatnonzero(marks).astype(np.int32))
        return self.per_item(queries.MARKED, thresholds.n_items, answers=part.answers, start=int(not against))[0]

    def _across(self, part: Answers, labels: Ints, informative: bool, thresholds: Thresholds) -> int:
        self.load(label=np.asarray(labels, dtype=np.int64))
        return self.one(queries.ACROSS, answers=part.answers, people=part.people, all_people=int(not informative))

    def _some_items(self, part: Answers, new_code: NDArray[np.int32]) -> Answers:
        stays = np.flatnonzero(new_code >= 0).astype(np.int32)
        self.load(item=stays, new=new_code[stays])
        answers = self.create("answers", queries.SOME_ITEMS, old=part.answers)
        people = self.create("people", queries.PEOPLE, answers=answers)
        return Answers(answers, people, part.n_persons, len(stays))

    def _under(self, part: Answers | Weighed, weighting: Weighting, beta: Floats, *categories: Any) -> Weighed:
        if isinstance(part, Weighed):  # at other difficulties
            self.drop(part.weights)
            if part.rows != part.of.answers:
                self.drop(part.rows)
            part = part.of
        if not weighting.moving:
            # Each weighting that does not move has its query; one without is a KeyError, not other weights in silence.
            weights = self.create("weights", queries.FIXED_WEIGHTS[weighting.name], people=part.people)
            return Weighed(part, weights, part.answers, queries.ONE)
        self.load(beta=beta, pi=np.exp(beta))
        abilities = self.create("abilities", queries.ABILITIES, answers=part.answers, people=part.people)
        rows = self.create("rows", queries.FACTORS, answers=part.answers, abilities=abilities)
        weights = self.create("weights", queries.ABILITY_WEIGHTS, rows=rows, abilities=abilities)
        self.drop(abilities)
        return Weighed(part, weights, rows, queries.A)

    def _flow_in(self, part: Weighed, values: Floats) -> Floats:
        """What flows through each person from right answers to wrong ones."""
        if values.ndim > 1:  # many columns are asked for by small chains only
            return self.per_pair(queries.PAIR_RATES, part.of.n_items, **part.names).T @ values
        self.load(v=values)
        return self.per_item(queries.FLOW, part.of.n_items, **part.names)[0]

    def _spread(self, part: Weighed, pi: Floats, shift: Floats, thresholds: Thresholds) -> tuple[Floats, ...]:
        self.load(pi=pi, shift=shift)
        mine = self.create("contributions", queries.CONTRIBUTIONS, **part.names)
        squares, crossed = self.per_item(queries.SPREAD, part.of.n_items, contributions=mine, **part.names)
        total = self.ask(queries.SHARED, contributions=mine).item()
        self.drop(mine)
        return squares, crossed, np.array(float(total)), np.zeros(len(pi))

    def _products(self, part: Weighed, pi: Floats, thresholds: Thresholds) -> Floats:
        self.load(pi=pi, shift=np.zeros(len(pi)))
        mine = self.create("contributions", queries.CONTRIBUTIONS, **part.names)
        products = self.per_pair(queries.PRODUCTS, part.of.n_items, contributions=mine, **part.names)
        self.drop(mine)
        return products


# What is done instead of a kernel: a function of the engine, the part, and the kernel's arguments.
INSTEAD_OF: dict[Kernel, Callable[..., Any]] = {
    block.n_persons: lambda engine, part: part.n_persons,
    block.n_responses: lambda engine, part: engine.one(queries.HOW_MANY, codes=part.answers),
    block.pair_work: lambda engine, part, thresholds: np.inf,  # each pair would be a row of a join
    sampled_sets: lambda engine, part, table: (1, 0),  # more sets than people: none is looked for
    block.item_counts: lambda engine, part, n_items: engine.per_item(queries.COUNTS, n_items, answers=part.answers),
    block.kinds_of_people: DatabaseEngine._kinds,
    evidence: lambda engine, part, thresholds: engine.per_item(
        queries.EVIDENCE, thresholds.n_items, answers=part.answers, people=part.people
    ),
    spread_marks: DatabaseEngine._marked_per_item,
    across: DatabaseEngine._across,
    Block.keep_items: DatabaseEngine._some_items,
    Part.under: DatabaseEngine._under,
    total_rates: lambda engine, part: engine.per_item(queries.RATES, part.of.n_items, **part.names)[0],
    flow_in: DatabaseEngine._flow_in,
    pair_rates: lambda engine, part: engine.per_pair(queries.PAIR_RATES, part.of.n_items, **part.names),
    spread_of_persons: DatabaseEngine._spread,
    products_of_persons: DatabaseEngine._products,
}


Tell = Callable[[str], None]

ROWS_STAY = Finding(
    *("people_left_out", "note"),
    "People and fit were not computed: they need the answers themselves, which stay where they are.",
    "Where a copy may be made, read the answers into this process and fit them here.",
)

FEW_BYTES = 1e9  # of bits that find repeated answers


@dataclass(frozen=True)
class Given:
    """The table of answers: what it is called, its three columns by name, and what queries call all of these."""

    source: str
    names: dict[str, str]
    put: dict[str, exp.Expression]


def find_table(connection: Connection, table: str, asked: dict[str, Any]) -> Given:
    """The table of this name, "table" or "schema.table", and which of its columns are which."""
    named, types = _first_that_exists(connection, table)
    source = f"table {table!r} of {connection.where}"
    empty = pl.DataFrame(schema=dict.fromkeys(types, pl.String))
    layout = find_layout(table_of_frame(empty, list(types), name=source), ReadOptions(format="long", **asked))
    assert isinstance(layout, Long)
    names = {role: list(types)[getattr(layout, role)] for role in ("person", "item", "response")}
    put = {"table": named} | {role: queries.column_called(name) for role, name in names.items()}
    kind = types[names["response"]]
    of_item = types[names["item"]]
    head = queries.query_text(queries.HEAD, connection.dialect, table=named)
    is_exact = kind == pl.String and names["response"] in connection.numeric_columns(head)
    if not (kind.is_numeric() or kind == pl.Boolean or is_exact):
        raise ReadError(
            f"{source}: column {names['response']!r} is of type {str(kind).lower()}, not numbers (1 and 0) or true and "
            "false. Make a view: SELECT ..., CASE WHEN ... THEN 1 ELSE 0 END AS response."
        )
    if not (of_item.is_integer() or of_item == pl.String):
        item = names["item"]
        its = str(of_item).lower()
        raise ReadError(f"{source}: column {item!r} is of type {its}; items are text or whole numbers.")
    if kind == pl.Boolean:
        put["response"] = exp.Cast(this=put["response"], to=exp.DataType.build("INT"))
    elif is_exact:
        put["response"] = exp.Cast(this=put["response"], to=exp.DataType.build("DOUBLE"))
    return Given(source, names, put)


def _first_that_exists(connection: Connection, table: str) -> tuple[exp.Expression, pl.Schema]:
    """The table of exactly this name; else what is before a dot is the schema."""
    if not table.strip():
        raise OptionError("no table is named; name a table or a view.")
    connection.doing = f"read table {table!r}"
    for parts in ((table,), *((tuple(table.split(".")),) if 1 <= table.count(".") <= 2 else ())):
        named = queries.table_called(*parts)
        try:
            return named, connection.fetch(queries.query_text(queries.HEAD, connection.dialect, table=named)).schema
        except DatabaseError as error:
            if "exist" not in str(error):
                raise
            connection.recover()
            missing = error
    tables = connection.fetch(queries.query_text(queries.TABLES, connection.dialect))["table_name"].to_list()
    has = f"it has {listed(dict.fromkeys(tables))}" if tables else "it has none at all"
    raise DatabaseError(f"{connection.where}: there is no table or view {table!r} that we may see; {has}.") from missing


def code_answers(engine: DatabaseEngine, given: Given, tell: Tell) -> Responses:
    """The answers in whole numbers, in temporary tables, once the table has been found to be in order."""
    tell("checking the table")
    skipped = _check(engine, given)
    tell("numbering people and items")
    persons, items = (
        engine.create("codes", queries.LABELS, table=given.put["table"], column=given.put[role])
        for role in ("person", "item")
    )
    labels = label_array(engine.ask(queries.LABELS_IN_ORDER, codes=items).to_series().to_list())
    n_persons = engine.one(queries.HOW_MANY, codes=persons)
    answers = engine.create("answers", queries.ANSWERS, **given.put, persons=persons, items=items)
    tell("looking for answers given twice")
    # In DuckDB a bit for every person and item finds repeated answers in a tenth of the time.
    by_bits = engine.dialect == "duckdb" and n_persons * len(labels) / 8 <= FEW_BYTES
    if not by_bits or engine.one(queries.REPEATED, answers=answers, m=len(labels)):
        tables = {"answers": answers, "persons": persons, "items": items}
        first = engine.ask(queries.TWICE, "look for answers given twice", **tables)
        if not first.is_empty():
            pairs = ((person, item) for person, item, _ in first.iter_rows())
            remedy = "Keep one answer of each in a view (SELECT ... GROUP BY, or ROW_NUMBER)."
            raise duplicate_error(given.source, int(first["n"][0]), pairs, remedy)
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
    counts = engine.ask(queries.CHECK, "check the table", **given.put).row(0, named=True)
    n = counts["n_rows"]
    if n == 0:
        raise ReadError(f"{given.source}: it has no rows.")
    for role, counted in (("person", "n_person"), ("item", "n_item")):
        if counts[counted] < n:
            raise ReadError(
                f"{given.source}: column {given.names[role]!r} is null in {n - counts[counted]:,} of {n:,} rows, so it "
                "is not known whose answer, or to what, these are. Leave them out in a view (WHERE ... IS NOT NULL)."
            )
    if counts["n_odd"]:
        odd = engine.ask(queries.ODD_VALUES, "look at values", **given.put)
        values = [f"{value} ({count:,} rows)" for value, count in odd.iter_rows()]
        raise ResponseValueError(
            f"{given.source}: column {given.names['response']!r} holds {', '.join(values)} among others; a Rasch fit "
            "needs 0 (wrong), 1 (right) and null (not answered). Make a view that says which is which."
        )
    missing = n - counts["n_response"]
    sentence = f"{missing:,} of {n:,} rows have no answer (null) and were left out."
    if not missing:
        return ()
    return (Finding("no_answer", "note", sentence, "They count neither as right nor as wrong."),)
