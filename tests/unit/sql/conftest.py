"""Tables to calibrate: the same answers in DuckDB, in Postgres and at hand."""

import shutil
import tempfile
import warnings

import polars as pl
import pytest

from spectral_irt import Responses, simulate


def responses_of(frame):
    return Responses.from_long(*(frame[name].to_list() for name in ("person", "item", "response")))


def drawn(n, m, share, seed, *, sd=1.0):
    """Rows of answers under the Rasch model, each asked with probability `share`, in no order."""
    data = simulate.rasch(n, m, design="sampled", p=share, difficulty_sd=sd, seed=seed).responses
    person, item, right = data.answers()
    columns = {"person": [f"p{k}" for k in person], "item": [f"q{k:03d}" for k in item], "response": right.astype(int)}
    return pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=seed)


def with_missing(frame):
    """Every tenth answer missing, all answers of the last item, and all of one person."""
    gone = (pl.int_range(pl.len()) % 10 == 3) | (pl.col("item") == pl.col("item").max()) | (pl.col("person") == "p0")
    return frame.with_columns(response=pl.when(~gone).then(pl.col("response")))


def one_way(n=80):
    """Two tests that nobody links, an item that all got right, and one that all got wrong."""
    first, second = (drawn(n, 8, 0.8, seed) for seed in (1, 2))
    second = second.with_columns(person="s" + pl.col("person"), item="z" + pl.col("item"))
    people = first.select(pl.col("person").unique(maintain_order=True))
    extreme = [people.with_columns(item=pl.lit(name), response=pl.lit(x)) for name, x in (("easy", 1), ("hard", 0))]
    return pl.concat([first, second, *extreme], how="vertical_relaxed")


DESIGNS = {
    "a short test": lambda: drawn(300, 12, 0.7, 1),
    "a long test": lambda: drawn(800, 50, 0.4, 2),
    "thin": lambda: drawn(100, 34, 0.25, 3, sd=1.5),
    "missing answers": lambda: with_missing(drawn(300, 36, 0.5, 4)),
    "no link": one_way,
}


def in_duckdb(frame, table="answers", connection=None):
    import duckdb

    connection = connection or duckdb.connect()
    connection.register("given", frame.to_arrow())
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


def in_postgres(uri, frame, table="answers"):
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(uri) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(table, frame.to_arrow(), mode="replace")
        connection.commit()


def ask_postgres(uri, sql):
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if sql.lstrip().upper().startswith("SELECT") else []
