"""Calibration where the answers are: a database adds up, and only numbers per item travel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import check_option
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.reading.sql import missing_driver

if TYPE_CHECKING:
    from spectral_irt.data import Responses

SE = ("auto", "one-pass", "dense", "none")


@contextmanager
def responses_in_database(
    database: Any, table: str, *, threads: int | None = None, progress: Any = None, **columns: str | None
) -> Iterator[Responses]:
    """Responses that stay in the database: sums over people are done there, for as long as this lasts."""
    try:
        from spectral_irt.sql.connection import connect
        from spectral_irt.sql.engine import DatabaseEngine, code_answers, find_table
    except ImportError as error:
        raise missing_driver(error) from error
    tell = progress or (lambda text: None)
    tell("connecting to the database")
    connection = connect(database, threads)
    try:
        table_found = find_table(connection, table, columns)
        connection.begin()
        yield code_answers(DatabaseEngine(connection), table_found, tell)
    finally:
        connection.close()


def fit_in_database(
    database: Any,
    table: str,
    *,
    person: str | None = None,
    item: str | None = None,
    response: str | None = None,
    se: str = "auto",
    threads: int | None = None,
    progress: Any = None,
    **options: Any,
) -> SpectralRasch:
    """Calibrate the items of a table of answers, with the database doing the sums.

    The estimate is that of `SpectralRasch(refine=False)`, the chain without Newton steps, which needs nothing but sums
    over people: each pass is two queries with a GROUP BY (docs/explanation/in_the_database.md). Only numbers per item
    travel. Everything happens in one transaction that is never committed: besides temporary tables, which end with it,
    nothing is created.

    Parameters
    ----------
    database : str or connection
        `duckdb:FILE` (opened for reading only), `postgresql://USER@HOST/DATABASE`, or a connection of DuckDB.
    table : str
        A table or view with a row for each answer: "answers", or "schema.answers".
    person, item, response : str, optional
        Its columns; by default found by their names. The response is 1 or true, 0 or false, or null (not answered).
    se : "auto", "one-pass", "dense" or "none"
        "auto": dense below 20 items, one pass from there on.
    threads : int, optional
        Of DuckDB; all by default.
    progress : callable, optional
        Told in a few words what is going on.
    **options
        `weighting`, `regularization`, `tol` and `max_iter`, as of `SpectralRasch`.

    Examples
    --------
    >>> import duckdb, polars as pl, spectral_irt as si
    >>> person, item, right = si.datasets.load_lsat().answers()
    >>> connection = duckdb.connect()
    >>> _ = connection.register("frame", pl.DataFrame({"person": person, "item": item, "response": right}).to_arrow())
    >>> _ = connection.execute("CREATE TABLE answers AS SELECT * FROM frame")
    >>> fit = si.fit_in_database(connection, "answers")
    >>> fit.difficulty_.round(2).tolist()
    [-1.27, 0.48, 1.24, 0.17, -0.62]
    """
    check_option("se", se, SE)
    estimator = SpectralRasch(refine=False, se=se, **options)
    columns = {"person": person, "item": item, "response": response}
    with responses_in_database(database, table, **columns, threads=threads, progress=progress) as responses:
        return estimator.fit(responses, progress=progress)
