"""`spectral-irt pack`; tables that are calibrated inside their database; columns about people; where banks are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from spectral_irt.analysis.record import counts_of
from spectral_irt.cli.help import with_options
from spectral_irt.cli.options import Call, Categories, Files, Reading, changed, output_at, own
from spectral_irt.cli.terminal import Mode, Progress
from spectral_irt.errors import DesignError, OptionError, check_option
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.terminal import console, say, show_findings, show_source
from spectral_irt.text import listed, printable, size_text

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.cli.fit_job import FitJob
    from spectral_irt.data import Responses

ENDING = ".packed"
MOST_LEVELS = 100  # beyond, the column is more likely an age or a name than a group

# What goes with a table inside a database: its columns, and settings of the chain.
IN_DATABASE = {
    "reading": {"person", "item", "response"},
    "categories": set(),
    "method": {"chain_weights", "set"},
    "results": {"output", "skip", "parquet"},
}
IN_DATABASE_SETTINGS = ("regularization", "refine", "se", "max_iter")


@with_options(Reading, Categories, Mode)
def pack(
    reading: Reading,
    categories: Categories,
    mode: Mode,
    call: Call,
    files: Files,
    output: Path = output_at("FILE.packed", "The packed file.", required=True),
    group: list[str] = own("COLUMN", "A column about people to keep, for groups, clusters or weights.", default=[]),
) -> None:
    """Read and score answers once, and keep them in a file that every command opens at once, whatever its size.

    The file holds the answers, four bytes each, labels, columns about people that --group names, and what reading had
    to say; it is mapped, not loaded. How answers are read and scored is said here, and not again.

    \b
    Examples
      spectral-irt pack log/*.parquet -o answers.packed
      spectral-irt fit answers.packed -o results
      spectral-irt pack answers.csv --group sex -o answers.packed
    """
    from spectral_irt.data.packed_file import write_packed

    if output.suffix.lower() != ENDING:
        raise OptionError(f"-o names {str(output)!r}; a packed file ends in {ENDING}, so that commands know it.")
    with all_or_nothing([output], inputs=reading.inputs(files)) as (draft,), Progress() as progress:
        found = reading.read(files, progress, call.machine, people=group, **categories.how())
        with naming(output):
            write_packed(found, draft, progress.reading)

    def show() -> None:
        out = console()
        show_source(out, found)
        if found.notes:
            show_findings(out, found.notes)
            say(out)
        bytes = size_text(output.stat().st_size)
        say(out, Text.assemble("Packed: ", (printable(output), "bold"), f", {bytes}. Every command reads it."))

    def record() -> dict[str, Any]:
        about = {"source": found.source, "counts": counts_of(found), "data_digest": found.digest()}
        return {**about, "file": str(output), "bytes": output.stat().st_size}

    mode.end(show, record, found.notes)


@contextmanager
def in_database(job: FitJob, address: str) -> Iterator[FitJob]:
    """The calibration of a table that stays in its database, as in duckdb:school.duckdb#answers, while it is open."""
    uri, _, table = address.partition("#")
    if len(job.files) > 1:
        raise OptionError(f"{address!r} is calibrated inside its database, and no file is read with it; name it alone.")
    settings, results = job.method.settings(), job.results
    foreign = [name for group, fit in IN_DATABASE.items() for name in changed(getattr(job, group)) if name not in fit]
    foreign = [f"--{name.replace('_', '-')}" for name in foreign]
    foreign += [f"--set {name}" for name in settings if name not in IN_DATABASE_SETTINGS or settings[name] is True]
    foreign += ["--skip none"] if results.part("persons") or results.part("fit") else []
    if foreign:
        raise OptionError(
            f"{', '.join(foreign)}: the database gives difficulties and errors of the chain, and nothing else; "
            "leave it out, or read the answers from a file."
        )
    from spectral_irt.sql import SE, responses_in_database

    check_option("se", settings.get("se", "auto"), SE)
    reading, threads = job.reading, job.call.machine.threads
    columns = {"person": reading.person, "item": reading.item, "response": reading.response}
    with ExitStack() as open_until_written:

        def read(progress: Progress) -> Responses:
            found = responses_in_database(uri, table, **columns, threads=threads, progress=progress.say)
            return open_until_written.enter_context(found)

        chain = [*(text for text in job.method.set if not text.startswith("refine")), "refine=false"]
        yield replace(
            job,
            files=(),
            source=read,
            method=replace(job.method, set=chain),
            results=replace(results, skip=["persons,fit"]),
            call=replace(job.call, machine=replace(job.call.machine, threads=None)),
            said={"table": table, **{name: column for name, column in columns.items() if column is not None}},
        )


def groups_of(responses: Responses, many: Sequence[str | None], beside: bool) -> dict[str, list[Any]]:
    """The group of every person by each column about people, None for those who have none; they were read with the
    answers, or stand in a table `beside`. A column among `many` may have any number of values."""
    people = responses.people
    if people is None:
        return {}
    found: Mapping[str, Any] = people
    if beside and all(value is None for values in found.values() for value in values.tolist()):
        raise OptionError(
            f"none of the people in {people.source} is in {responses.source} ({listed(responses.persons)}). Check that "
            "both name people alike."
        )
    source = people.source if beside else responses.source
    for column, values in found.items():
        levels = sorted({str(value) for value in values.tolist() if value is not None})
        if len(levels) < 2:
            what = f"a single value, {levels[0]!r}" if levels else "no value at all"
            raise DesignError(f"{source}: the column {column!r} has {what}; groups are two or more. Check the column.")
        if len(levels) > MOST_LEVELS and column not in many:
            raise OptionError(
                f"{source}: the column {column!r} has {len(levels):,} different values ({listed(levels)}); at most "
                f"{MOST_LEVELS} groups are compared. Merge them into a few, each of some hundred people."
            )
    return {column: values.tolist() for column, values in found.items()}


def save_bank(bank: Bank, folder: Path) -> None:
    """Write the bank there; who has to wait for another writer is told so."""
    with Progress() as progress:
        bank.save(folder, tell=progress.say)
