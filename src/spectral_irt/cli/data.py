"""`spectral-irt pack`; tables that are calibrated inside their database; where banks are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.options import Answers, Call, Files, options_in_use, output_at, own
from spectral_irt.cli.terminal import Mode, Progress
from spectral_irt.errors import OptionError, check_option
from spectral_irt.files import all_or_nothing, errors_with_target
from spectral_irt.text import printable, size_text

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.cli.fit_job import FitJob
    from spectral_irt.data import Responses

ENDING = ".packed"

# What goes with a table inside a database: its columns, and settings of the chain.
IN_DATABASE = {
    "reading": {"person", "item", "response"},
    "method": {"chain_weights", "set"},
    "results": {"output", "skip", "parquet"},
}
IN_DATABASE_SETTINGS = ("regularization", "refine", "se", "max_iter")


def pack(
    reading: Answers,
    mode: Mode,
    call: Call,
    files: Files,
    output: Path = output_at("FILE.packed", "The packed file.", required=True),
    group: list[str] = own(
        "COLUMN", "Column about persons to keep, for groups, clusters or weights; repeatable.", default=[]
    ),
) -> None:
    """Read and score responses once, and save them in a file that every command opens at once, whatever its size.

    The file holds the responses (four bytes each), the labels, the columns about persons named by --group, and the
    notes from reading. It is memory-mapped, not loaded. Options on reading and scoring are given here only.

    \b
    Examples
      spectral-irt pack log/*.parquet -o answers.packed
      spectral-irt fit answers.packed -o results
      spectral-irt pack answers.csv --group sex -o answers.packed
    """
    from rich.text import Text

    from spectral_irt.analysis.folder import counts_of
    from spectral_irt.data.packed_file import write_packed
    from spectral_irt.terminal import console, say, show_findings, show_source

    if output.suffix.lower() != ENDING:
        raise OptionError(f"-o names {str(output)!r}; a packed file ends in {ENDING}, so that commands know it.")
    with all_or_nothing([output], inputs=reading.inputs(files)) as (draft,), Progress() as progress:
        responses = reading.read(files, progress, call, people=group, **reading.categories())
        with errors_with_target(output):
            write_packed(responses, draft, progress.reading)

    def show() -> None:
        out = console()
        show_source(out, responses)
        if responses.notes:
            show_findings(out, responses.notes)
            say(out)
        size = size_text(output.stat().st_size)
        say(out, Text.assemble("Packed: ", (printable(output), "bold"), f", {size}. Every command reads it."))

    def record() -> dict[str, Any]:
        about = {"source": responses.source, "counts": counts_of(responses), "data_digest": responses.digest()}
        return {**about, "file": str(output), "bytes": output.stat().st_size}

    mode.end(show, record, responses.notes)


@contextmanager
def in_database(job: FitJob, address: str) -> Iterator[FitJob]:
    """The calibration of a table that stays in its database, as in duckdb:school.duckdb#answers, while it is open."""
    uri, _, table = address.partition("#")
    if "@" in table:  # what is before it would be shown as host and database
        raise OptionError("the address of the database has a # before its host; in a password, write it as %23.")
    if len(job.files) > 1:
        raise OptionError(f"{address!r} is calibrated inside its database, and no file is read with it; name it alone.")
    settings = job.method.set
    unfit = _not_in_database(job)
    if unfit:
        raise OptionError(
            f"{', '.join(unfit)}: the database gives difficulties and errors of the chain, and nothing else; "
            "leave it out, or read the answers from a file."
        )
    from spectral_irt.sql import SE, responses_in_database

    check_option("se", settings.get("se", "auto"), SE)
    asked = {"person": job.reading.person, "item": job.reading.item, "response": job.reading.response}
    columns = {role: column for role, column in asked.items() if column is not None}
    with ExitStack() as open_until_written:

        def read(progress: Progress) -> Responses:
            responses = responses_in_database(uri, table, **asked, threads=job.call.threads, progress=progress.say)
            return open_until_written.enter_context(responses)

        yield replace(
            job,
            files=(),
            source=read,
            method=replace(job.method, set={**settings, "refine": False}),
            results=replace(job.results, skip={"persons": False, "fit": False}),
            call=replace(job.call, threads=None),
            reading_options={"table": table, **columns},
        )


def _not_in_database(job: FitJob) -> list[str]:
    """The options of a job that go beyond what a database can do."""
    unfit = [
        f"--{name.replace('_', '-')}"
        for group, fit in IN_DATABASE.items()
        for name in options_in_use(getattr(job, group))
        if name not in fit
    ]
    unfit += [f"--set {name}" for name in _settings_not_in_database(job.method.set)]
    if any(job.results.skip.values()):
        unfit.append("--skip none")
    return unfit


def _settings_not_in_database(settings: Mapping[str, Any]) -> list[str]:
    """Settings that the chain in a database does not have: others, and Newton steps."""
    return [name for name, value in settings.items() if name not in IN_DATABASE_SETTINGS or value is True]


def save_bank(bank: Bank, folder: Path) -> None:
    """Write the bank there; who has to wait for another writer is told so."""
    with Progress() as progress:
        bank.save(folder, tell=progress.say)
