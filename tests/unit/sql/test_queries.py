"""The queries as text: names are quoted, and what other databases would be told."""

import pytest
from sqlglot import exp, parse_one

from spectral_irt.sql import queries

DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark")
QUERIES = {
    name: text for name, text in vars(queries).items() if name.isupper() and isinstance(text, str) and " " in text
}
NAMES = ["answers", "people", "rows", "weights", "items", "persons", "codes", "abilities", "contributions", "old"]
NAMES += ["dropped", "made", "table", "person", "item", "response"]
HOSTILE = 'a"b`c; DROP TABLE x; --'


def names(**more):
    quoted = {name: exp.to_identifier(name, quoted=True) for name in NAMES}
    given = {"column": queries.column_called("who"), "a": queries.A, "m": 7, "start": 1, "all_people": 0}
    return {**quoted, **given, **more}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_a_sentence_of_every_dialect(dialect):
    assert len(QUERIES) > 25
    for name, text in QUERIES.items():
        if name in ("GIVEN", "CREATE"):
            continue
        for query in (text,) if name == "DROP" else (text, queries.CREATE.format("made") + text):
            said = queries.query_text(query, dialect, **names())
            assert ":" not in said, f"{name}: a name is missing in {said}"
            assert parse_one(said, dialect=dialect).sql(dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_name_stays_a_name(dialect):
    said = queries.query_text(
        queries.CHECK, dialect, **names(table=queries.table_called(HOSTILE), person=queries.column_called(HOSTILE))
    )
    again = parse_one(said, dialect=dialect)  # one statement, in which the name is still the same
    assert [table.name for table in again.find_all(exp.Table)].count(HOSTILE) == 1
    assert HOSTILE in [column.name for column in again.find_all(exp.Column)]


# Not run against such a server: what each of them would be told in a pass.
PASS = {
    "bigquery": "WITH `moved` AS (SELECT `person`, `w` * `s` AS `moved` FROM (SELECT `person`, SUM(`a` * `v`) AS `s` "
    "FROM `rows` JOIN `items` USING (`item`) WHERE `answer` = 1 GROUP BY `person`) AS `sums` JOIN `weights` USING "
    "(`person`)) SELECT `item`, SUM(`a` * `moved`) AS `total` FROM `rows` JOIN `moved` USING (`person`) WHERE `answer` "
    "= 0 GROUP BY `item`",
    "snowflake": 'CREATE TEMPORARY TABLE "weights" AS SELECT "person", 1 / "n" AS "w", CAST("n" - "s" AS DOUBLE) AS "z"'
    ' FROM "people" WHERE "s" > 0 AND "s" < "n"',
    "spark": "CREATE TEMPORARY VIEW `weights` AS SELECT `person`, 1 / `n` AS `w`, CAST(`n` - `s` AS DOUBLE) AS `z` "
    "FROM `people` WHERE `s` > 0 AND `s` < `n`",
    "postgres": 'CREATE TEMPORARY TABLE "weights" AS SELECT "person", CAST(1 AS DOUBLE PRECISION) / "n" AS "w", '
    'CAST("n" - "s" AS DOUBLE PRECISION) AS "z" FROM "people" WHERE "s" > 0 AND "s" < "n"',
}


@pytest.mark.parametrize("dialect", PASS)
def test_what_is_said(dialect):
    weights = queries.CREATE.format("weights") + queries.FIXED_WEIGHTS["persons"]
    query = queries.FLOW if dialect == "bigquery" else weights
    assert queries.query_text(query, dialect, **names()) == PASS[dialect]


def test_a_weighting_without_factors_has_none():
    said = queries.query_text(
        queries.RATES, "duckdb", **names(a=queries.ONE, rows=exp.to_identifier("answers", quoted=True))
    )
    assert said.startswith('SELECT "item", SUM(1 * "w" * "z") AS "total" FROM "answers"')
