"""Tables to calibrate: the same answers in DuckDB, in Postgres and at hand."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from spectral_irt import Responses


@dataclass(frozen=True)
class Answers:
    """A long table of answers, null where there is none."""

    frame: pl.DataFrame

    @property
    def responses(self):
        columns = (self.frame[name].to_list() for name in ("person", "item", "response"))
        return Responses.from_long(*columns)


def drawn(n, m, share, seed, *, sd=1.0):
    """Answers under the Rasch model, each asked with probability `share`."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=n), rng.normal(0, sd, m)
    right = rng.random((n, m)) < 1 / (1 + np.exp(difficulty - ability[:, None]))
    person, item = np.nonzero(rng.random((n, m)) < share)
    order = rng.permutation(len(person))
    person, item = person[order], item[order]
    return Answers(
        pl.DataFrame(
            {
                "person": [f"p{k}" for k in person],
                "item": [f"q{k:03d}" for k in item],
                "response": right[person, item].astype(int),
            }
        )
    )


def with_missing(answers):
    """Every tenth answer missing, all answers of the last item, and all of one person."""
    row = pl.int_range(pl.len())
    gone = (row % 10 == 3) | (pl.col("item") == pl.col("item").max()) | (pl.col("person") == "p0")
    return Answers(answers.frame.with_columns(pl.when(~gone).then(pl.col("response")).alias("response")))


def one_way(n=80):
    """Two tests that nobody links, an item that all got right, and one that all got wrong."""
    first, second = (drawn(n, 8, 0.8, seed).frame for seed in (1, 2))
    second = second.with_columns(("s" + pl.col("person")).alias("person"), ("z" + pl.col("item")).alias("item"))
    people = first["person"].unique(maintain_order=True)
    easy, hard = (
        pl.DataFrame({"person": people, "item": name, "response": value}, schema=first.schema)
        for name, value in (("easy", 1), ("hard", 0))
    )
    return Answers(pl.concat([first, second, easy, hard]))


DESIGNS = {
    "a short test": lambda: drawn(300, 12, 0.7, 1),
    "a long test": lambda: drawn(800, 50, 0.4, 2),
    "thin": lambda: drawn(100, 34, 0.25, 3, sd=1.5),
    "missing answers": lambda: with_missing(drawn(300, 36, 0.5, 4)),
    "no link": one_way,
}


def in_duckdb(answers, table="answers", connection=None):
    import duckdb

    connection = connection or duckdb.connect()
    connection.register("given", answers.frame.to_arrow())
    connection.execute(f'CREATE TABLE "{table.replace(chr(34), chr(34) * 2)}" AS SELECT * FROM given')
    connection.unregister("given")
    return connection


@pytest.fixture(scope="session")
def postgres():
    """The address of a Postgres server that runs for these tests; skipped, with the reason, where none can be had."""
    folder = tempfile.mkdtemp(prefix="pg-")  # short: the path of a socket may have a hundred characters
    try:
        import pgserver

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder)
    except Exception as error:
        pytest.skip(f"NO POSTGRES SERVER, SO NOTHING OF POSTGRES WAS TESTED: {error}")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def in_postgres(uri, answers, table="answers"):
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(uri) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(table, answers.frame.to_arrow(), mode="replace")
        connection.commit()


def ask_postgres(uri, sql):
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if sql.lstrip().upper().startswith("SELECT") else []
