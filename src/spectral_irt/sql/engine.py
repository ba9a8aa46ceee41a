"""An engine whose parts are tables: for every kernel of the chain it knows the query that adds up the same.

A kernel is a sum over people of something that depends on one person's answers and on numbers per item. The numbers are
loaded into a table of items, the database adds up, and what comes back are numbers per item again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from spectral_irt.chain.errors import products_of_persons, spread_of_persons
from spectral_irt.chain.operator import Part, flow_in, flow_out, pair_rates, total_rates
from spectral_irt.chain.weights import Weighting
from spectral_irt.data.block import Block, Floats, Ints, item_counts, n_persons, n_responses
from spectral_irt.data.design import across, evidence, spread_marks
from spectral_irt.data.same_items import sampled_sets
from spectral_irt.data.thresholds import Thresholds, kinds_of_people, pair_work
from spectral_irt.engine.base import Each, Engine, Kernel
from spectral_irt.errors import AnswersStayError
from spectral_irt.sql import queries
from spectral_irt.sql.connection import Connection

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


TRANSLATIONS: dict[Kernel, Callable[..., Any]] = {}  # what is done instead of a kernel


def instead_of(kernel: Kernel) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates what is done instead of this kernel: a function of the engine, the part, and the kernel's arguments."""

    def known(translation: Callable[..., Any]) -> Callable[..., Any]:
        TRANSLATIONS[kernel] = translation
        return translation

    return known


class DatabaseEngine(Engine):
    """Sums over people, done by a database: it knows some kernels, and refuses others."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.dialect = connection.dialect
        self._numbers = count(1)

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        translation = TRANSLATIONS.get(kernel)
        if translation is None or each:
            raise AnswersStayError(
                f"{self.connection.where}: this needs the answers themselves ({kernel.__name__}), and they stay in the "
                "database. Read them into this process to have it."
            )
        for part in parts:
            yield translation(self, part, *args)

    # ---------------------------------------------------------------------------- asking

    def do(self, doing: str, query: str, **names: Any) -> None:
        self.connection.doing = doing
        self.connection.execute(self._written(query, names))

    def ask(self, doing: str, query: str, **names: Any) -> dict[str, NDArray[Any]]:
        self.connection.doing = doing
        return self.connection.fetch(self._written(query, names))

    def one(self, doing: str, query: str, **names: Any) -> int:
        return int(self.ask(doing, query, **names)["n"][0])

    def create(self, what: str, query: str, **names: Any) -> str:
        """A temporary table made by the query, whose own name in it is `:what`."""
        name = f"{PREFIX}{next(self._numbers)}_{what}"
        self.do(f"make a temporary table of {what}", query, **{what: name}, **names)
        return name

    def drop(self, name: str) -> None:
        self.do("drop a temporary table", queries.DROP, dropped=name)

    def load(self, **columns: NDArray[Any]) -> None:
        """Numbers per item, for the next query, as columns beside `item`; with `item` among them, of some items."""
        length = len(next(iter(columns.values())))
        self.connection.doing = "take numbers per item"
        self.connection.load(ITEMS, {"item": np.arange(length, dtype=np.int32), **columns})

    def _written(self, query: str, names: Mapping[str, Any]) -> str:
        put = {name: exp.to_identifier(x, quoted=True) if isinstance(x, str) else x for name, x in names.items()}
        return queries.written(query, self.dialect, **{"items": exp.to_identifier(ITEMS, quoted=True), **put})


def _per_item(found: Mapping[str, NDArray[Any]], name: str, m: int, kind: type = float) -> NDArray[Any]:
    """A column as an array with a number for every item, 0 for those that the query did not meet."""
    out: NDArray[Any] = np.zeros(m, dtype=kind)
    out[found["item"].astype(np.int64)] = found[name].astype(kind)
    return out


def _by_pairs(found: Mapping[str, NDArray[Any]], m: int) -> Floats:
    out = np.zeros((m, m))
    out[found["item"].astype(np.int64), found["other"].astype(np.int64)] = found["total"]
    return out


# ------------------------------------------------------------------------------------------- the design


@instead_of(n_persons)
def _n_persons(engine: DatabaseEngine, part: Answers) -> int:
    return part.n_persons


@instead_of(n_responses)
def _n_responses(engine: DatabaseEngine, part: Answers) -> int:
    return engine.one("count the answers", queries.HOW_MANY, codes=part.answers)


@instead_of(pair_work)
def _pair_work(engine: DatabaseEngine, part: Answers, thresholds: Thresholds) -> float:
    return np.inf  # each pair would be a row of a join


@instead_of(sampled_sets)
def _sampled_sets(engine: DatabaseEngine, part: Answers, table: NDArray[np.uint64]) -> tuple[int, int]:
    return 1, 0  # more sets than people: none is looked for


@instead_of(item_counts)
def _item_counts(engine: DatabaseEngine, part: Answers, n_items: int) -> tuple[Ints, Ints]:
    found = engine.ask("count the answers to each item", queries.COUNTS, answers=part.answers)
    return _per_item(found, "n", n_items, int), _per_item(found, "s", n_items, int)


@instead_of(kinds_of_people)
def _kinds(engine: DatabaseEngine, part: Answers, thresholds: Thresholds) -> Ints:
    found = engine.ask("count people", queries.KINDS, people=part.people)
    several = [int(found[name][0]) for name in ("one", "all_right", "all_wrong", "mixed")]
    return np.array([part.n_persons - int(found["some"][0]), *several])


@instead_of(evidence)
def _evidence(engine: DatabaseEngine, part: Answers, thresholds: Thresholds) -> tuple[Floats, Floats]:
    found = engine.ask("add up what is known of each item", queries.EVIDENCE, answers=part.answers, people=part.people)
    return _per_item(found, "right_side", thresholds.n_items), _per_item(found, "wrong_side", thresholds.n_items)


@instead_of(spread_marks)
def _marked(engine: DatabaseEngine, part: Answers, thresholds: Thresholds, marks: Floats, against: bool) -> Floats:
    engine.load(item=np.flatnonzero(marks).astype(np.int32))
    found = engine.ask("follow links between items", queries.MARKED, answers=part.answers, start=0 if against else 1)
    return _per_item(found, "n", thresholds.n_items)


@instead_of(across)
def _across(engine: DatabaseEngine, part: Answers, labels: Ints, informative: bool, thresholds: Thresholds) -> int:
    engine.load(label=np.asarray(labels, dtype=np.int64))
    names = {"answers": part.answers, "people": part.people, "all_people": 0 if informative else 1}
    return engine.one("count people who link groups of items", queries.ACROSS, **names)


@instead_of(Block.keep_items)
def _some_items(engine: DatabaseEngine, part: Answers, new_code: NDArray[np.int32]) -> Answers:
    kept = np.flatnonzero(new_code >= 0).astype(np.int32)
    engine.load(item=kept, new=new_code[kept])
    answers = engine.create("answers", queries.SOME_ITEMS, old=part.answers)
    people = engine.create("people", queries.PEOPLE, answers=answers)
    return Answers(answers, people, part.n_persons, len(kept))


# --------------------------------------------------------------------------------------------- weights

FIXED_WEIGHTS = {"persons": queries.PERSON_WEIGHTS, "pairs": queries.PAIR_WEIGHTS}


@instead_of(Part.under)
def _under(engine: DatabaseEngine, part: Answers, weighting: Weighting, beta: Floats, *categories: Any) -> Weighed:
    if weighting.name in FIXED_WEIGHTS:
        weights = engine.create("weights", FIXED_WEIGHTS[weighting.name], people=part.people)
        return Weighed(part, weights, part.answers, queries.ONE)
    engine.load(beta=beta, pi=np.exp(beta))
    abilities = engine.create("abilities", queries.ABILITIES, answers=part.answers, people=part.people)
    rows = engine.create("rows", queries.FACTORS, answers=part.answers, abilities=abilities)
    weights = engine.create("weights", queries.ABILITY_WEIGHTS, rows=rows, abilities=abilities)
    engine.drop(abilities)
    return Weighed(part, weights, rows, queries.A)


@instead_of(Part.again)
def _again(engine: DatabaseEngine, part: Weighed, weighting: Weighting, beta: Floats, *categories: Any) -> Weighed:
    engine.drop(part.weights)
    if part.rows != part.of.answers:
        engine.drop(part.rows)
    return _under(engine, part.of, weighting, beta)


# ----------------------------------------------------------------------------------------------- flows


@instead_of(total_rates)
def _rates(engine: DatabaseEngine, part: Weighed) -> Floats:
    found = engine.ask("add up what leaves each item", queries.RATES, **part.names)
    return _per_item(found, "total", part.of.n_items)


def _flow(engine: DatabaseEngine, part: Weighed, values: Floats, start: int) -> Floats:
    """What flows through each person from answers that are `start` to those that are not."""
    engine.load(v=values)
    return _per_item(engine.ask("add up a pass", queries.FLOW, **part.names, start=start), "total", part.of.n_items)


@instead_of(flow_in)
def _flow_in(engine: DatabaseEngine, part: Weighed, flow: Floats) -> Floats:
    # Many columns are asked for by small chains only.
    return _flow(engine, part, flow, 1) if flow.ndim == 1 else _pair_rates(engine, part).T @ flow


@instead_of(flow_out)
def _flow_out(engine: DatabaseEngine, part: Weighed, to: Floats) -> Floats:
    return _flow(engine, part, to, 0) if to.ndim == 1 else _pair_rates(engine, part) @ to


@instead_of(pair_rates)
def _pair_rates(engine: DatabaseEngine, part: Weighed) -> Floats:
    return _by_pairs(engine.ask("add up pairs of items", queries.PAIR_RATES, **part.names), part.of.n_items)


# ------------------------------------------------------------------------------------- standard errors


@instead_of(spread_of_persons)
def _spread(engine: DatabaseEngine, part: Weighed, pi: Floats, shift: Floats) -> tuple[Floats, Floats, Floats]:
    engine.load(pi=pi, shift=shift)
    mine = engine.create("contributions", queries.CONTRIBUTIONS, **part.names)
    found = engine.ask("add up squares for the standard errors", queries.SPREAD, contributions=mine, **part.names)
    total = engine.ask("add up squares for the standard errors", queries.SHARED, contributions=mine)["total"][0]
    engine.drop(mine)
    m = part.of.n_items
    return _per_item(found, "squares", m), _per_item(found, "crossed", m), np.array(float(total))


@instead_of(products_of_persons)
def _products(engine: DatabaseEngine, part: Weighed, pi: Floats) -> Floats:
    engine.load(pi=pi, shift=np.zeros(len(pi)))
    mine = engine.create("contributions", queries.CONTRIBUTIONS, **part.names)
    found = engine.ask("add up products for the standard errors", queries.PRODUCTS, contributions=mine, **part.names)
    engine.drop(mine)
    return _by_pairs(found, part.of.n_items)
