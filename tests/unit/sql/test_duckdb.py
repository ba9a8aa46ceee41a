"""Calibration in DuckDB: the same numbers as at hand, nothing left behind, and errors that say what to do."""

import os

import numpy as np
import polars as pl
import pytest

from spectral_irt import SpectralRasch, fit_in_database
from spectral_irt.errors import (
    DatabaseError,
    DesignError,
    DuplicateResponseError,
    OptionError,
    ReadError,
    ResponseValueError,
)

from .conftest import DESIGNS, Answers, drawn, in_duckdb

pytestmark = pytest.mark.slow  # many short runs of whole jobs

duckdb = pytest.importorskip("duckdb")

SAME, SAME_SE = 1e-9, 1e-6  # what is promised; rounding alone leaves 1e-14


def at_hand(answers, **options):
    responses = answers.responses
    se = options.pop("se", "dense" if responses.n_items < 20 else "one-pass")
    return SpectralRasch(refine=False, se=se, **options).fit(responses)


def assert_same(there, here):
    assert there.item_labels_.tolist() == here.item_labels_.tolist()
    np.testing.assert_allclose(there.difficulty_, here.difficulty_, atol=SAME)
    np.testing.assert_allclose(there.se_, here.se_, atol=SAME_SE)
    for name in ("status_", "item_counts_", "item_scores_"):
        assert getattr(there, name).tolist() == getattr(here, name).tolist()
    assert str(there.regularization_) == str(here.regularization_)
    own = ("no_answer", "people_left_out")  # what a database says besides
    codes = [[finding.code for finding in fit.findings_ if finding.code not in own] for fit in (there, here)]
    assert codes[0] == codes[1]


@pytest.mark.parametrize(
    ("design", "weighting"),
    [*((design, "ability") for design in DESIGNS), ("a long test", "persons"), ("no link", "persons")],
)
def test_the_same_as_at_hand(design, weighting):
    answers = DESIGNS[design]()
    there = fit_in_database(in_duckdb(answers), "answers", weighting=weighting)
    assert_same(there, at_hand(answers, weighting=weighting))


def test_the_papers_weights_and_no_prior():
    answers = drawn(120, 15, 0.5, 5, sd=2.5)
    connection = in_duckdb(answers)
    assert_same(
        fit_in_database(connection, "answers", weighting="pairs", regularization=0.5),
        at_hand(answers, weighting="pairs", regularization=0.5),
    )
    assert_same(fit_in_database(connection, "answers", regularization=0), at_hand(answers, regularization=0))


def test_nothing_is_left_and_a_given_connection_lives_on():
    connection = in_duckdb(drawn(60, 5, 1, 1))
    connection.execute("CREATE TEMPORARY TABLE mine AS SELECT 1 AS x")
    fit_in_database(connection, "answers")
    tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
    assert tables == [("answers",), ("mine",)]


def test_a_file_that_may_only_be_read(tmp_path):
    answers = drawn(60, 5, 1, 1)
    file = tmp_path / "my answers.duckdb"
    connection = in_duckdb(answers, connection=duckdb.connect(str(file)))
    connection.close()
    before = file.read_bytes()
    os.chmod(file, 0o444)
    os.chmod(tmp_path, 0o555)
    try:
        fit = fit_in_database(f"duckdb:{file}", "main.answers")
    finally:
        os.chmod(tmp_path, 0o755)
    assert_same(fit, at_hand(answers))
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("table", ['we"ird; DROP TABLE answers; --', "main.answers", "two words", "a.b.c.d"])
def test_tables_of_any_name(table):
    connection = in_duckdb(drawn(60, 5, 1, 1), table)
    assert len(fit_in_database(connection, table).difficulty_) == 5


def test_columns_of_any_name_and_true_and_false():
    answers = drawn(60, 5, 1, 1)
    named = {"person": "label", "item": 'co"de;', "response": "person"}
    odd = answers.frame.with_columns(pl.col("response").cast(pl.Boolean)).rename(named)
    fit = fit_in_database(in_duckdb(Answers(odd)), "answers", person="label", item='co"de;', response="person")
    assert_same(fit, at_hand(answers))


def answers_with(**columns):
    frame = drawn(60, 5, 1, 1).frame
    return in_duckdb(Answers(frame.with_columns(**columns)))


row = pl.int_range(pl.len())


@pytest.mark.parametrize(
    ("connection", "error", "said"),
    [
        (
            lambda: answers_with(
                response=pl.when(row < 3).then(9).when(row == 7).then(-1).otherwise(pl.col("response"))
            ),
            ResponseValueError,
            r"column 'response' holds 9 \(3 rows\), -1 \(1 rows\) among others",
        ),
        (
            lambda: answers_with(item=pl.when(row > 3).then(pl.col("item"))),
            ReadError,
            "column 'item' is null in 4 of 300 rows",
        ),
        (
            lambda: answers_with(response=pl.col("response").cast(pl.String)),
            ReadError,
            "column 'response' is of type string, not numbers",
        ),
        (lambda: answers_with(item=row / 7), ReadError, "column 'item' is of type float64; items are text"),
        (
            lambda: in_duckdb(Answers(pl.concat([drawn(60, 5, 1, 1).frame] * 2))),
            DuplicateResponseError,
            r"300 \(person, item\) pairs are answered more than once: \('p0', 'q000'\), .* and 295 more",
        ),
        (lambda: in_duckdb(Answers(drawn(60, 5, 1, 1).frame.head(0))), ReadError, "it has no rows"),
        (lambda: answers_with(item=pl.lit("q1"), person=row), DesignError, "a single item"),
        (lambda: answers_with(response=1), DesignError, "all 300 responses are right"),
    ],
)
def test_tables_that_cannot_be_calibrated(connection, error, said):
    there = connection()
    with pytest.raises(error, match=said):
        fit_in_database(there, "answers")
    assert there.execute("SELECT COUNT(*) FROM duckdb_tables()").fetchall() == [(1,)]


def test_what_is_not_there(tmp_path):
    connection = in_duckdb(drawn(60, 5, 1, 1))
    with pytest.raises(DatabaseError, match="there is no table or view 'other' that we may see; it has 'answers'"):
        fit_in_database(connection, "other")
    with pytest.raises(OptionError, match="no column 'who' for `person`"):
        fit_in_database(connection, "answers", person="who")
    with pytest.raises(OptionError, match="no table is named"):
        fit_in_database(connection, " ")
    with pytest.raises(DatabaseError, match="there is no database"):
        fit_in_database(f"duckdb:{tmp_path}/none.duckdb", "answers")
    (tmp_path / "text.duckdb").write_text("not a database, but long enough to be read as one" * 100)
    with pytest.raises(DatabaseError, match=r"cannot connect: .* Check that it is such a database"):
        fit_in_database(f"duckdb:{tmp_path}/text.duckdb", "answers")
    with pytest.raises(OptionError, match="'mysql://host/tests' is not the address of a database"):
        fit_in_database("mysql://ann:secret@host/tests".replace("ann:secret@", ""), "answers")
    with pytest.raises(OptionError, match=r"expected the address of a database .* not int"):
        fit_in_database(3, "answers")
    with pytest.raises(OptionError, match="`se` is 'multiplier'"):
        fit_in_database(connection, "answers", se="multiplier")


def test_a_connection_that_is_lost_in_the_middle(monkeypatch):
    from spectral_irt.sql.connection import DuckDB

    opened = []
    monkeypatch.setattr(DuckDB, "begin", lambda self: opened.append(self))

    def lose(text):
        if "weights" in text:
            opened[0].cursor.close()

    with pytest.raises(DatabaseError, match=r"the connection was lost while it was asked to .* nothing was written"):
        fit_in_database(in_duckdb(drawn(60, 5, 1, 1)), "answers", progress=lose)
