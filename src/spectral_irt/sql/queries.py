"""The queries of the chain, each one step of the algorithm, written once and put into the dialect of a database by
sqlglot.

`:names` stand for tables and columns, put in as quoted identifiers, never as text. No value is part of a query:
difficulties and flows are loaded into a table, `:items`, with the columns that the query asks for. The other tables:
- `:answers`  person, item, answer: the table itself in whole numbers, answer 1 or 0
- `:people`   person, n, s: how many items each person answered, and how many right
- `:rows`     person, item, answer, a: the same with the factor a of each answer, under ability weights
- `:weights`  person, w, z: how much a person with a mixed score counts, and Z = the sum of a over the wrong answers

`:a` is the factor: the column, or 1 where a weighting has none, and then `:rows` are the answers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlglot import exp, parse_one

from spectral_irt.model import LOGISTIC_VARIANCE

CREATE = "CREATE TEMPORARY TABLE :{} AS "  # before the queries below that make a table: the engine puts it there
GIVEN = "WITH given AS (SELECT :person AS person, :item AS item, :response AS response FROM :table) "

CHECK = f"""{GIVEN}
SELECT COUNT(*) AS n_rows, COUNT(person) AS n_person, COUNT(item) AS n_item, COUNT(response) AS n_response,
  COUNT(CASE WHEN NOT response IN (0, 1) THEN 1 END) AS n_odd
FROM given
"""
ODD_VALUES = f"""{GIVEN}
SELECT response, COUNT(*) AS n FROM given WHERE NOT response IN (0, 1)
GROUP BY response ORDER BY COUNT(*) DESC, response LIMIT 5
"""
LABELS = """
SELECT CAST(ROW_NUMBER() OVER (ORDER BY label) - 1 AS INTEGER) AS code, label
FROM (SELECT DISTINCT :column AS label FROM :table) AS met
"""
LABELS_IN_ORDER = "SELECT label FROM :codes ORDER BY code"
HOW_MANY = "SELECT COUNT(*) AS n FROM :codes"
ANSWERS = f"""{GIVEN}
SELECT who.code AS person, what.code AS item, CAST(response AS SMALLINT) AS answer
FROM given JOIN :persons AS who ON who.label = given.person JOIN :items AS what ON what.label = given.item
WHERE NOT response IS NULL
"""
REPEATED = """
SELECT CAST(SUM(n - n_items) AS BIGINT) AS n
FROM (
  SELECT COUNT(*) AS n, BIT_COUNT(BITSTRING_AGG(item, 0, :m)) AS n_items FROM :answers GROUP BY person
) AS each_person
"""
TWICE = """
SELECT who.label AS person, what.label AS item, COUNT(*) OVER () AS n
FROM (SELECT person, item FROM :answers GROUP BY person, item HAVING COUNT(*) > 1) AS t
JOIN :persons AS who ON who.code = t.person JOIN :items AS what ON what.code = t.item
ORDER BY person, item LIMIT 5
"""
PEOPLE = "SELECT person, COUNT(*) AS n, CAST(SUM(answer) AS BIGINT) AS s FROM :answers GROUP BY person"
SOME_ITEMS = "SELECT person, new AS item, answer FROM :old JOIN :items USING (item)"

COUNTS = "SELECT item, COUNT(*) AS n, CAST(SUM(answer) AS BIGINT) AS s FROM :answers GROUP BY item"
KINDS = """
SELECT COUNT(*) AS some, COUNT(CASE WHEN n = 1 THEN 1 END) AS one,
  COUNT(CASE WHEN n > 1 AND s = n THEN 1 END) AS all_right, COUNT(CASE WHEN n > 1 AND s = 0 THEN 1 END) AS all_wrong,
  COUNT(CASE WHEN s > 0 AND s < n THEN 1 END) AS mixed
FROM :people
"""
EVIDENCE = """
SELECT item, SUM(CASE WHEN answer = 1 THEN 1 - s / n ELSE 0 END) AS right_side,
  SUM(CASE WHEN answer = 0 THEN s / n ELSE 0 END) AS wrong_side
FROM :answers JOIN :people USING (person) GROUP BY item
"""
MARKED = """
SELECT item, COUNT(*) AS n
FROM :answers
JOIN (SELECT DISTINCT person FROM :answers JOIN :items USING (item) WHERE answer = :start) AS reached USING (person)
WHERE answer = 1 - :start GROUP BY item
"""
ACROSS = """
SELECT COUNT(*) AS n FROM (
  SELECT person FROM :answers JOIN :items USING (item) JOIN :people USING (person)
  WHERE :all_people = 1 OR (s > 0 AND s < n)
  GROUP BY person HAVING MIN(label) < MAX(label)
) AS both_sides
"""

_WEIGHTS = "SELECT person, {} AS w, CAST(n - s AS DOUBLE) AS z FROM :people WHERE s > 0 AND s < n"
FIXED_WEIGHTS = {"persons": _WEIGHTS.format("1 / n"), "pairs": _WEIGHTS.format("CAST(1 AS DOUBLE)")}
ABILITIES = f"""
SELECT person, EXP(mean + SQRT(1 + GREATEST(square - mean * mean, 0) / {LOGISTIC_VARIANCE}) * LN(s / (n - s))) AS t
FROM (
  SELECT person, AVG(beta) AS mean, AVG(beta * beta) AS square
  FROM :answers JOIN :items USING (item) GROUP BY person
) AS met
JOIN :people USING (person) WHERE s > 0 AND s < n
"""
FACTORS = """
SELECT person, item, answer, 1 / (1 + pi / t) AS a
FROM :answers JOIN :items USING (item) JOIN :abilities USING (person)
"""
ABILITY_WEIGHTS = """
SELECT person, 1 / (t * variance) AS w, z
FROM (
  SELECT person, SUM(a * (1 - a)) AS variance, SUM(CASE WHEN answer = 0 THEN a ELSE 0 END) AS z
  FROM :rows GROUP BY person
) AS sums
JOIN :abilities USING (person)
"""

RATES = "SELECT item, SUM(:a * w * z) AS total FROM :rows JOIN :weights USING (person) WHERE answer = 1 GROUP BY item"
FLOW = """
WITH moved AS (
  SELECT person, w * s AS moved
  FROM (
    SELECT person, SUM(:a * v) AS s FROM :rows JOIN :items USING (item) WHERE answer = 1 GROUP BY person
  ) AS sums
  JOIN :weights USING (person)
)
SELECT item, SUM(:a * moved) AS total FROM :rows JOIN moved USING (person) WHERE answer = 0 GROUP BY item
"""
PAIR_RATES = """
WITH weighed AS (SELECT person, item, answer, :a AS f, w FROM :rows JOIN :weights USING (person))
SELECT i.item AS item, j.item AS other, SUM(i.f * i.w * j.f) AS total
FROM weighed AS i JOIN weighed AS j ON i.person = j.person AND i.answer = 1 AND j.answer = 0
GROUP BY i.item, j.item
"""

CONTRIBUTIONS = """
SELECT person, w * s AS won, w * z AS lost, w * s * from_wrong - w * z * from_right AS shared
FROM (
  SELECT person, SUM(CASE WHEN answer = 1 THEN :a * pi ELSE 0 END) AS s,
    SUM(CASE WHEN answer = 0 THEN :a * shift ELSE 0 END) AS from_wrong,
    SUM(CASE WHEN answer = 1 THEN :a * pi * shift ELSE 0 END) AS from_right
  FROM :rows JOIN :items USING (item) GROUP BY person
) AS sums
JOIN :weights USING (person)
"""
SHARED = "SELECT SUM(shared * shared) AS total FROM :contributions"
SPREAD = """
SELECT item, SUM(g * g) AS squares, SUM(g * shared) AS crossed
FROM (
  SELECT item, CASE WHEN answer = 0 THEN :a * won ELSE -(:a * pi * lost) END AS g, shared
  FROM :rows JOIN :items USING (item) JOIN :contributions USING (person)
) AS each_answer
GROUP BY item
"""
PRODUCTS = """
WITH each_answer AS (
  SELECT person, item, CASE WHEN answer = 0 THEN :a * won ELSE -(:a * pi * lost) END AS g
  FROM :rows JOIN :items USING (item) JOIN :contributions USING (person)
)
SELECT i.item AS item, j.item AS other, SUM(i.g * j.g) AS total
FROM each_answer AS i JOIN each_answer AS j USING (person) GROUP BY i.item, j.item
"""

DROP = "DROP TABLE :dropped"
HEAD = "SELECT * FROM :table LIMIT 0"
TABLES = """
SELECT table_name FROM information_schema.tables
WHERE NOT table_schema IN ('information_schema', 'pg_catalog') ORDER BY table_name
"""


def query_text(query: str, dialect: str, **names: exp.Expression | int) -> str:
    """A query in the words of a database, with these tables, columns and whole numbers in it.

    >>> query_text(HEAD, "postgres", table=table_called('a "table"; with', "odd parts"))
    'SELECT * FROM "a ""table""; with"."odd parts" LIMIT 0'
    """
    return exp.replace_placeholders(_parsed(query), **names).sql(dialect=dialect, identify=True)


# In the dialect of sqlglot itself, `/` divides real numbers; it minds that some databases divide whole ones.
_parsed: Any = lru_cache(parse_one)


def table_called(*parts: str) -> exp.Expression:
    """A table by the parts of its name: (catalog,) (schema,) table."""
    places = zip(("this", "db", "catalog"), reversed(parts), strict=False)
    return exp.Table(**{place: exp.to_identifier(part, quoted=True) for place, part in places})


def column_called(name: str) -> exp.Expression:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


A = column_called("a")
ONE = exp.Literal.number(1)
