"""`spectral-irt update`: a bank after new answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.categories import Recoding, read_for_bank
from spectral_irt.cli.options import Files, Reading, offered
from spectral_irt.cli.paths import output_at, place
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.spread import with_options
from spectral_irt.errors import StaleBankError, check_option
from spectral_irt.text import number

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.data import Finding, Responses

SHOW = 10  # items that moved most


@with_options(Reading, Recoding, Saying)
def update(
    bank: Annotated[Path, typer.Argument(parser=place, metavar="DIR", show_default=False, help="The bank.")],
    reading: Reading,
    recoding: Recoding,
    saying: Saying,
    files: Files = [],  # noqa: B006  # or a query
    repeats: Annotated[
        str,
        typer.Option(
            metavar="error|skip|keep",
            autocompletion=offered("error|skip|keep"),
            show_default=False,
            help="People who are in the bank with the very same answers: refuse (default), leave out, or count again. "
            "They are recognized with --salt-file only. With skip, a bank to which nothing is new stays as it is.",
        ),
    ] = "error",
    salt_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Your secret by which people who come again are recognized; made if it does not exist.",
        ),
    ] = None,
    output: Annotated[Path | None, output_at("DIR", "Write the new bank there and keep the old one.")] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, show_default=False, help="All by default.")
    ] = None,
) -> None:
    """Update a bank with new answers, of new people, to its items and to new ones. The old answers are not needed.

    The scale stays. The bank is replaced when the new one is complete, and not
    otherwise. Updates at the same time follow one another.

    \b
    Examples
      spectral-irt update mybank june.csv
      spectral-irt update mybank log/*.parquet -o mybank-new
    """
    from spectral_irt.bank import Bank
    from spectral_irt.cli.paths import refuse_bank_place, refuse_salt_place
    from spectral_irt.files import refuse_inputs

    saying.begin()
    check_option("repeats", repeats, ("error", "skip", "keep"))
    place = bank if output is None else output
    if output is not None:
        refuse_bank_place(output)
    refuse_inputs([place], reading.inputs(files))
    refuse_salt_place(salt_file, bank, place)
    before = Bank.load(bank)
    with Progress() as progress:
        responses = read_for_bank(before, files, reading, recoding, progress)
        while True:
            progress.say("updating the bank")
            after = before.update(responses, repeats=repeats, salt=salt_file, threads=threads)
            if after is before and output is None:
                break
            try:
                after.save(place, tell=progress.say)
                break
            except StaleBankError:  # another update was quicker: ours comes after it
                progress.say("the bank has changed meanwhile; reading it again")
                before = Bank.load(bank)
    saying.end(
        lambda: show(before, after, responses, place),
        lambda: update_record(before, after, responses, files, reading, place),
        new_findings(before, after, responses),
    )


def update_record(
    before: Bank, after: Bank, responses: Responses, files: list[str], reading: Reading, place: Path
) -> dict[str, Any]:
    """What the update read, and what it made of the bank."""
    from spectral_irt.analysis.record import counts_of, file_digests, finding_record, record_head

    sizes = {
        name: {"items": bank.n_items, "persons": bank.n_persons, "responses": int(bank.n.sum())}
        for name, bank in (("before", before), ("after", after))
    }
    source = {"source": responses.source, "files": list(files), "digests": file_digests(files)}
    return {
        **record_head(),
        "bank": {"folder": str(place), "changed": after is not before, **sizes},
        "input": {**source, "reading": reading.said()},
        "counts": counts_of(responses),
        "data_digest": responses.digest(),
        "findings": [finding_record(finding) for finding in new_findings(before, after, responses)],
    }


def new_findings(before: Bank, after: Bank, responses: Responses) -> list[Finding]:
    """What this update has to say."""
    always = ("no_recognition",)
    fresh = [finding for finding in after.findings if finding not in before.findings or finding.code in always]
    return [*responses.notes, *fresh]


def show(before: Bank, after: Bank, responses: Responses, place: Path) -> None:
    import numpy as np
    from rich.text import Text

    from spectral_irt.errors import printable
    from spectral_irt.terminal import console, plain_table, say, show_findings, show_lines, show_source

    out = console()
    show_source(out, responses)
    if after is before:
        say(
            out,
            Text.assemble("Nothing is new: the bank in ", (printable(place), "bold"), " has these answers already."),
        )
        return
    n = before.n_items
    old, old_se = before.difficulty, before.se
    new, new_se = after.difficulty[:n], after.se[:n]
    moved = np.abs(new - old)
    order = np.argsort(-np.nan_to_num(moved), kind="stable")[:SHOW]
    order = order[np.nan_to_num(moved[order]) > 0]
    numbers = (old, old_se, new, new_se, new - old)
    columns = [before.items[order].tolist(), *([number(x, 3, none="") for x in values[order]] for values in numbers)]
    if len(order):
        heads = ["moved most", "before", "se", "after", "se", "moved"]
        say(out, plain_table(heads, columns, out.width, whole=out.whole))
        say(out)
    answers = f"{int(before.n.sum()):,} answers of {before.n_persons:,} people to {before.n_items:,} items"
    now = f"{int(after.n.sum()):,} answers of {after.n_persons:,} people to {after.n_items:,} items"
    known = np.isfinite(old_se) & np.isfinite(new_se) & ~before.calibration.anchored
    lines = [("before", answers), ("after", now)]
    if known.any():
        lines.append(("median se", f"{np.median(old_se[known]):.3f} before, {np.median(new_se[known]):.3f} after"))
    show_lines(out, lines)
    fresh = new_findings(before, after, responses)
    if fresh:
        say(out)
        show_findings(out, fresh)
    say(out)
    say(out, Text.assemble("The bank is in ", (printable(place), "bold"), "."))
