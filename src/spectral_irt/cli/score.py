"""`spectral-irt score`: abilities of people who were not in the calibration, from a bank."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import Ability, Files, Reading, with_options
from spectral_irt.cli.places import place
from spectral_irt.cli.progress import Progress
from spectral_irt.errors import BankError, check_option, listed

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.cli.analysis import Columns
    from spectral_irt.inference.reliability import Reliability
    from spectral_irt.responses import Finding, Responses

RECORD = "score.json"
KINDS = (".csv", ".parquet")


@with_options(Reading)
def score(
    files: Files,
    reading: Reading,
    bank: Annotated[
        Path,
        typer.Option(
            "--bank", parser=place, metavar="DIR", show_default=False, help="The bank, as fit --bank made it."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=place,
            metavar="FILE|DIR",
            show_default=False,
            help="The table as .csv or .parquet; or a directory for persons.csv and a record, score.json.",
        ),
    ] = None,
    ability: Ability = "wle",
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out answers to items that the bank has not.")
    ] = False,
) -> None:
    """Score people with the items of a bank: how able each is, how sure that is, and how regular the answers are.

    Only items that the bank knows count, matched by their labels. On a bank with a
    scale (fit --scale) the measures on that scale come with the logits.

    \b
    Examples
      spectral-irt fit answers.csv --bank mybank
      spectral-irt score new.csv --bank mybank -o scores.csv
    """
    from spectral_irt.bank import Bank
    from spectral_irt.cli.output import result_paths, write_csv, write_json, write_parquet
    from spectral_irt.writing import all_or_nothing, naming

    check_option("ability", ability, ("wle", "ml", "eap"))
    targets: list[Path] = []
    stale: list[Path] = []
    if output is not None and output.suffix.lower() in KINDS and not output.is_dir():
        targets = [output]
    elif output is not None:
        targets, stale = result_paths(output, ["persons"], parquet=False, record=RECORD)
    known = Bank.load(bank)
    with all_or_nothing(targets, inputs=[*reading.inputs(files), bank], stale=stale) as drafts:
        with Progress() as progress:
            responses = reading.read_any(files, progress)
            progress.say("abilities")
            persons, found, findings = scores(known, responses, ability, ignore_unknown)
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                if target.suffix.lower() == ".json":
                    record = score_record(bank, known, responses, persons, found, findings, ability, files, reading)
                    write_json(draft, record)
                else:
                    (write_csv if target.suffix.lower() == ".csv" else write_parquet)(draft, persons)
    show(known, bank, responses, persons, found, findings, output, targets)


def scores(
    bank: Bank, responses: Responses, ability: str, ignore_unknown: bool
) -> tuple[Columns, Reliability, list[Finding]]:
    """The people as columns, their reliability, and what is odd."""
    from spectral_irt.cli.analysis import with_measures
    from spectral_irt.inference.reliability import reliability
    from spectral_irt.persons.align import align
    from spectral_irt.persons.table import person_columns

    if not responses.n_responses:
        raise BankError(f"{responses.source}: there is no answer in it, so nobody can be scored.")
    fit = bank.to_fit()
    named = bank.in_my_words(responses)
    aligned = align(fit, named, ignore_unknown)
    persons = person_columns(fit, aligned, ability)
    if not persons["n"].any():
        raise BankError(
            f"{responses.source}: none of the items answered has a difficulty in the bank, so nobody can be scored."
        )
    if not bank.scale.is_logits:
        persons = with_measures(persons, "ability", bank.scale)
    return persons, reliability(fit, aligned, ability), [*responses.notes, *_findings(bank, named, persons)]


def _findings(bank: Bank, responses: Responses, persons: Columns) -> list[Finding]:
    from spectral_irt.responses import Finding
    from spectral_irt.responses.labels import positions

    out = []
    place = positions(responses.items, bank.items)
    unknown = responses.items[place < 0]
    if len(unknown):
        noun = "item is" if len(unknown) == 1 else "items are"
        sentence = f"{len(unknown):,} {noun} not in the bank, and the answers to them do not count: {listed(unknown)}."
        out.append(Finding("unknown_items", "warning", sentence, "", tuple(unknown.tolist())))
    bare = responses.items[(place >= 0) & ~bank.known[place] & (responses.item_counts > 0)]
    if len(bare):
        noun = "item has" if len(bare) == 1 else "items have"
        sentence = f"{len(bare):,} {noun} no difficulty in the bank, and the answers do not count: {listed(bare)}."
        out.append(Finding("items_without_difficulty", "warning", sentence, "", tuple(bare.tolist())))
    empty = responses.users[persons["n"] == 0]
    if len(empty):
        noun = "person has" if len(empty) == 1 else "people have"
        sentence = f"{len(empty):,} {noun} no answer that counts: {listed(empty)}."
        out.append(Finding("no_answers", "note", sentence, "They stay in the table, with the prior's ability or none."))
    return out


def score_record(
    folder: Path,
    bank: Bank,
    responses: Responses,
    persons: Columns,
    found: Reliability,
    findings: list[Finding],
    ability: str,
    files: list[str],
    reading: Reading,
) -> dict[str, Any]:
    """score.json: who was scored, and with what."""
    from spectral_irt.cli.output import PROGRAM
    from spectral_irt.cli.record import counts_of, finding_record, persons_record, versions

    return {
        "program": PROGRAM,
        "versions": versions(),
        "outputs": ["persons.csv", RECORD],
        "bank": {"folder": str(folder), "items": bank.n_items, "users": bank.n_users},
        "input": {"source": responses.source, "files": list(files), "reading": reading.said()},
        "counts": counts_of(responses),
        "data_digest": responses.digest(),
        "scale": None if bank.scale.is_logits else asdict(bank.scale),
        "persons": persons_record(persons, ability),
        "reliability": found.to_dict(),
        "findings": [finding_record(finding) for finding in findings],
    }


def show(
    bank: Bank,
    folder: Path,
    responses: Responses,
    persons: Columns,
    found: Reliability,
    findings: list[Finding],
    output: Path | None,
    targets: list[Path],
) -> None:
    from rich.text import Text

    from spectral_irt.cli.display import console, say, show_findings, show_lines, show_source
    from spectral_irt.cli.errors import printable
    from spectral_irt.cli.people_table import person_table
    from spectral_irt.cli.summary import people

    out = console()
    show_source(out, responses)
    say(out, person_table(persons, out.width))
    say(out)
    what = f"{printable(folder)}: {bank.n_items:,} items, calibrated with {bank.n_users:,} people"
    show_lines(out, [("people", people(found)), ("bank", what)])
    if findings:
        say(out)
        show_findings(out, findings)
    say(out)
    if output is None:
        say(out, Text("Nothing was saved; add -o FILE for all people."))
    elif targets == [output]:
        say(out, Text.assemble("All people are in ", (printable(output), "bold"), "."))
    else:
        say(out, Text.assemble("Results are in ", (printable(output), "bold"), f": persons.csv and {RECORD}."))
