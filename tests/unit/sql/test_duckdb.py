"""Calibration in DuckDB: the same numbers as at hand, nothing left behind, and errors that say what to do."""

import os

import numpy as np
import polars as pl
import pytest

from spectral_irt import SpectralRasch, errors, fit_in_database
from spectral_irt.errors import DatabaseError, DesignError, OptionError, ReadError
from spectral_irt.sql.connection import DuckDB

from .conftest import DESIGNS, drawn, in_duckdb, responses_of

pytestmark = pytest.mark.slow  # many short runs of whole jobs

duckdb = pytest.importorskip("duckdb")

SAME, SAME_SE = 1e-9, 1e-6  # what is promised; rounding alone leaves 1e-14
SMALL = drawn(60, 5, 1, 1)
ROW, ANSWER = pl.int_range(pl.len()), pl.col("response")
ODD = {"response": pl.when(ROW < 3).then(9).when(ROW == 7).then(-1).otherwise(ANSWER)}


def assert_same(there, frame, **options):
    """The fit in a database, and that of the same answers at hand."""
    responses = responses_of(frame)
    se = "dense" if responses.n_items < 20 else "one-pass"
    here = SpectralRasch(refine=False, se=se, **options).fit(responses)
    np.testing.assert_allclose(there.difficulty_, here.difficulty_, atol=SAME)
    np.testing.assert_allclose(there.se_, here.se_, atol=SAME_SE)
    for name in ("item_labels_", "status_", "item_counts_", "item_scores_"):
        assert getattr(there, name).tolist() == getattr(here, name).tolist()
    assert str(there.regularization_) == str(here.regularization_)
    own = ("no_answer", "people_left_out")  # what a database says besides
    codes = [[finding.code for finding in fit.findings_ if finding.code not in own] for fit in (there, here)]
    assert codes[0] == codes[1]


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        *((DESIGNS[design], {"weighting": "ability"}) for design in DESIGNS),
        (DESIGNS["a long test"], {"weighting": "persons"}),
        (DESIGNS["no link"], {"weighting": "persons"}),
        (lambda: drawn(120, 15, 0.5, 5, sd=2.5), {"weighting": "pairs", "regularization": 0.5}),  # as in the paper
        (lambda: drawn(120, 15, 0.5, 5, sd=2.5), {"regularization": 0}),
    ],
)
def test_the_same_as_at_hand(frame, options):
    answers = frame()
    assert_same(fit_in_database(in_duckdb(answers), "answers", **options), answers, **options)


def test_nothing_is_left_and_a_given_connection_lives_on():
    connection = in_duckdb(SMALL)
    connection.execute("CREATE TEMPORARY TABLE mine AS SELECT 1 AS x")
    fit_in_database(connection, "answers")
    tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
    assert tables == [("answers",), ("mine",)]


def test_a_file_that_may_only_be_read(tmp_path):
    file = tmp_path / "my answers.duckdb"
    in_duckdb(SMALL, connection=duckdb.connect(str(file))).close()
    before = file.read_bytes()
    os.chmod(file, 0o444)
    os.chmod(tmp_path, 0o555)
    try:
        fit = fit_in_database(f"duckdb:{file}", "main.answers")
    finally:
        os.chmod(tmp_path, 0o755)
    assert_same(fit, SMALL)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("table", ['we"ird; DROP TABLE answers; --', "main.answers", "two words", "a.b.c.d"])
def test_tables_of_any_name(table):
    assert len(fit_in_database(in_duckdb(SMALL, table), table).difficulty_) == 5


def test_columns_of_any_name_and_true_and_false():
    odd = SMALL.with_columns(pl.col("response").cast(pl.Boolean))
    odd = odd.rename({"person": "label", "item": 'co"de;', "response": "person"})
    assert_same(fit_in_database(in_duckdb(odd), "answers", person="label", item='co"de;', response="person"), SMALL)


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        (ODD, errors.ResponseValueError, r"column 'response' holds 9 \(3 rows\), -1 \(1 rows\) among others"),
        ({"item": pl.when(ROW > 3).then(pl.col("item"))}, ReadError, "column 'item' is null in 4 of 300 rows"),
        ({"response": ANSWER.cast(pl.String)}, ReadError, "column 'response' is of type string, not numbers"),
        ({"item": ROW / 7}, ReadError, "column 'item' is of type float64; items are text"),
        ({"item": pl.lit("q1"), "person": ROW}, DesignError, "a single item"),
        ({"response": pl.lit(1)}, DesignError, "all 300 responses are right"),
    ],
)
def test_tables_that_cannot_be_calibrated(columns, error, said):
    there = in_duckdb(SMALL.with_columns(**columns))
    with pytest.raises(error, match=said):
        fit_in_database(there, "answers")
    assert there.execute("SELECT COUNT(*) FROM duckdb_tables()").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("database", "table", "options", "error", "said"),
    [
        (None, "other", {}, DatabaseError, "there is no table or view 'other' that we may see; it has 'answers'"),
        (None, "answers", {"person": "who"}, OptionError, "no column 'who' for `person`"),
        (None, " ", {}, OptionError, "no table is named"),
        (None, "answers", {"se": "multiplier"}, OptionError, "`se` is 'multiplier'"),
        ("duckdb:{}/none.duckdb", "answers", {}, DatabaseError, "there is no database"),
        ("duckdb:{}/text.duckdb", "answers", {}, DatabaseError, r"cannot connect: .* Check that it is such a database"),
        ("mysql://host/tests", "answers", {}, OptionError, "'mysql://host/tests' is not the address of a database"),
        (3, "answers", {}, OptionError, r"expected the address of a database .* not int"),
    ],
)
def test_what_is_not_there(database, table, options, error, said, tmp_path):
    (tmp_path / "text.duckdb").write_text("not a database, but long enough to be read as one" * 100)
    database = database.format(tmp_path) if isinstance(database, str) else database
    with pytest.raises(error, match=said):
        fit_in_database(in_duckdb(SMALL) if database is None else database, table, **options)


def test_no_rows_and_many_repeats():
    with pytest.raises(ReadError, match="it has no rows"):
        fit_in_database(in_duckdb(SMALL.head(0)), "answers")
    said = r"300 \(person, item\) pairs are answered more than once: \('p0', 'q000'\), .* and 295 more"
    with pytest.raises(errors.DuplicateResponseError, match=said):
        fit_in_database(in_duckdb(pl.concat([SMALL, SMALL])), "answers")


def test_a_connection_that_is_lost_in_the_middle(monkeypatch):
    opened = []
    monkeypatch.setattr(DuckDB, "begin", lambda self: opened.append(self))

    def lose(text):
        if "weights" in text:
            opened[0].cursor.close()

    with pytest.raises(DatabaseError, match=r"the connection was lost while it was asked to .* nothing was written"):
        fit_in_database(in_duckdb(SMALL), "answers", progress=lose)
