"""`spectral-irt fit --in-database`: the calibration of a table that stays where it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from spectral_irt.cli.categories import changed
from spectral_irt.cli.fitting import Fitting
from spectral_irt.cli.options import Reading, panel
from spectral_irt.cli.wanted import Wanted
from spectral_irt.errors import OptionError, check_option

if TYPE_CHECKING:
    from spectral_irt.cli.fit_job import FitJob
    from spectral_irt.cli.progress import Progress
    from spectral_irt.data import Responses

_database = panel("In the database")

READ = {"person", "item", "response"}
FITTED = {"weighting", "regularization", "refine", "se", "max_iter", "threads"}
WANTED = {"catsim", "persons", "fit"}


@dataclass(frozen=True)
class Database:
    """A table in a database that calibrates it itself."""

    in_database: Annotated[
        str | None,
        _database(
            metavar="URI",
            help="Instead of files: duckdb:FILE or postgresql://USER@HOST/DATABASE does the sums, and only numbers per "
            "item come here. Difficulties and standard errors of the chain; no people, no fit.",
        ),
    ] = None
    table: Annotated[
        str | None, _database(metavar="NAME", help="Its table or view, as in schema.answers; a row for each answer.")
    ] = None


@contextmanager
def in_database(
    database: Database,
    files: Sequence[str],
    said: Sequence[str],
    reading: Reading,
    fitting: Fitting,
    wanted: Wanted,
    output: Path | None,
    parquet: bool,
) -> Iterator[FitJob]:
    """The calibration to be done, while the connection lasts; `said` are further options that were given."""
    from spectral_irt.cli.fit_job import FitJob
    from spectral_irt.sql import SE, responses_in_database

    uri, table = database.in_database, database.table
    if uri is None or table is None:
        raise OptionError("--table and --in-database go together: the address of a database, and a table in it.")
    if files:
        raise OptionError(f"with --in-database no file is read; leave out {files[0]!r}.")
    foreign = [
        *said,
        *(set(changed(reading)) - READ),
        *(set(changed(fitting)) - FITTED),
        *(set(changed(wanted)) - WANTED),
    ]
    if foreign or wanted.persons or wanted.fit or fitting.refine:
        which = [*sorted(foreign), *(name for name in ("persons", "fit") if getattr(wanted, name))]
        which += ["refine"] if fitting.refine else []
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in which)
        raise OptionError(
            f"{flags}: the database gives difficulties and standard errors of the chain, and nothing else; leave it "
            "out, or read the answers from a file."
        )
    check_option("se", fitting.se or "auto", SE)
    columns = {"person": reading.person, "item": reading.item, "response": reading.response}

    with ExitStack() as open_until_written:

        def read(progress: Progress) -> Responses:
            found = responses_in_database(uri, table, **columns, threads=fitting.threads, progress=progress.say)
            return open_until_written.enter_context(found)

        yield FitJob(
            source=read,
            fitting=replace(fitting, refine=False, threads=None),
            wanted=replace(wanted, persons=False, fit=False),
            output=output,
            parquet=parquet,
            said={"table": table, **{name: column for name, column in columns.items() if column is not None}},
        )
