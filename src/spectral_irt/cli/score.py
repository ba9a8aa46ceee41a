"""`spectral-irt score`: abilities of people who were not in the calibration, from a bank."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.categories import Recoding, read_for_bank
from spectral_irt.cli.options import Files, Reading
from spectral_irt.cli.paths import output_at, place
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.shortlist import SHORTLIST, score_models
from spectral_irt.cli.spread import with_options
from spectral_irt.cli.wanted import ABILITIES, Ability, Draws, Seed, check_draws
from spectral_irt.errors import OptionError, check_option

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.bank.score import Scores
    from spectral_irt.data import Responses

RECORD = "score.json"
KINDS = (".csv", ".parquet", ".xlsx")


@with_options(Reading, Recoding, Saying)
def score(
    reading: Reading,
    recoding: Recoding,
    saying: Saying,
    bank: Annotated[
        Path,
        typer.Option(
            "--bank",
            parser=place,
            metavar="DIR",
            show_default=False,
            help="The bank, as fit --bank made it; or the folder of a short list.",
        ),
    ],
    files: Files = [],  # noqa: B006  # or a query
    output: Annotated[
        Path | None,
        output_at(
            "FILE|DIR", "The table as .csv, .parquet or .xlsx; or a directory for persons.csv and a record, score.json."
        ),
    ] = None,
    ability: Ability = "wle",
    draws: Draws = None,
    seed: Seed = None,
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            metavar="MEAN,SD",
            show_default=False,
            help="The people that --ability eap or pv takes these for, in logits; by default those of the calibration.",
        ),
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out answers to items that the bank has not.")
    ] = False,
) -> None:
    """Score people with the items of a bank: how able each is, how sure that is, and how regular the answers are.

    Only items that answers have placed in the bank count, matched by their labels.
    On a bank with a scale (fit --scale) the measures on that scale come with the
    logits.

    \b
    Examples
      spectral-irt fit answers.csv --bank mybank
      spectral-irt score new.csv --bank mybank -o scores.csv
    """
    saying.begin()
    if (bank / SHORTLIST).is_file():
        refused = {"--draws": draws, "--population": population, "--ignore-unknown": ignore_unknown or None}
        if unfit := [name for name, value in refused.items() if value is not None]:
            raise OptionError(f"{unfit[0]} is for a bank, and {str(bank)!r} is a short list of prompts; leave it out.")
        score_models(files, reading, bank / SHORTLIST, output)
        return
    from spectral_irt.analysis.folder import result_paths
    from spectral_irt.bank import Bank
    from spectral_irt.bank.score import score as scored
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.tables import write_json
    from spectral_irt.xlsx import is_workbook, refuse_foreign, write_table

    check_option("ability", ability, ABILITIES)
    check_draws(ability, draws, seed)
    people = mean_and_sd(population, ability)
    targets: list[Path] = []
    stale: list[Path] = []
    if output is not None and output.suffix.lower() in KINDS and not output.is_dir():
        targets = [output]
        if is_workbook(output):
            refuse_foreign(output)
    elif output is not None:
        targets, stale = result_paths(output, ["persons"], parquet=False, record=RECORD)
    known = Bank.load(bank)
    with all_or_nothing(targets, inputs=[*reading.inputs(files), bank], stale=stale) as drafts:
        with Progress() as progress:
            responses = read_for_bank(known, files, reading, recoding, progress)
            progress.say("abilities")
            drawn = {"draws": draws or 5, "seed": seed or 0}
            found = scored(known, responses, ability, population=people, ignore_unknown=ignore_unknown, **drawn)

        def record() -> dict[str, Any]:
            told = score_record(bank, known, responses, found, ability, files, reading)
            told["outputs"] = [target.name for target in targets]
            told["persons"] |= {"plausible_values": drawn} if ability == "pv" else {}
            return told

        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                if target.suffix.lower() == ".json":
                    write_json(draft, record())
                else:
                    write_table(draft, target, "persons", found.persons)
    saying.end(lambda: show(known, bank, responses, found, output, targets), record, found.findings)


def mean_and_sd(text: str | None, ability: str) -> tuple[float, float] | None:
    """What `--population` says."""
    if text is None:
        return None
    if ability not in ("eap", "pv"):
        raise OptionError(f"--population is for --ability eap and pv; --ability {ability} needs none. Leave it out.")
    try:
        mean, sd = (float(part) for part in text.split(","))
        if not (abs(mean) < float("inf") and 0 < sd < float("inf")):
            raise ValueError
    except ValueError:
        raise OptionError(
            f"--population is {text!r}; it is a mean and a standard deviation above zero, in logits, as in "
            "--population 0.5,1.2."
        ) from None
    return mean, sd


def score_record(
    folder: Path, bank: Bank, responses: Responses, found: Scores, ability: str, files: list[str], reading: Reading
) -> dict[str, Any]:
    """score.json: who was scored, and with what."""
    from spectral_irt.analysis.record import counts_of, file_digests, finding_record, persons_record, record_head

    source = {"source": responses.source, "files": list(files), "digests": file_digests(files)}
    return {
        **record_head(),
        "outputs": [],
        "bank": {"folder": str(folder), "items": bank.n_items, "persons": bank.n_persons},
        "input": {**source, "reading": reading.said()},
        "counts": counts_of(responses),
        "data_digest": responses.digest(),
        "scale": None if bank.scale.is_logits else asdict(bank.scale),
        "population": None if found.population is None else asdict(found.population),
        "persons": persons_record(found.persons, ability),
        "reliability": None if found.reliability is None else found.reliability.to_dict(),
        "findings": [finding_record(finding) for finding in found.findings],
    }


def show(
    bank: Bank, folder: Path, responses: Responses, found: Scores, output: Path | None, targets: list[Path]
) -> None:
    from rich.text import Text

    from spectral_irt.analysis.summary import people
    from spectral_irt.errors import printable
    from spectral_irt.terminal import console, person_table, say, show_findings, show_lines, show_source

    out = console()
    show_source(out, responses)
    say(out, person_table(found.persons, out.width, whole=out.whole, points=not responses.thresholds.binary))
    say(out)
    what = f"{printable(folder)}: {bank.n_items:,} items, calibrated with {bank.n_persons:,} people"
    lines = [("bank", what)]
    if found.reliability is not None:
        lines.insert(0, ("people", people(found.reliability)))
    if found.population is not None:
        prior = found.population
        whose = f"estimated from {prior.persons:,} people" if prior.persons else "as given"
        lines.append(("prior", f"population with mean {prior.mean:z.2f} and sd {prior.sd:.2f}, {whose}"))
    show_lines(out, lines)
    if found.findings:
        say(out)
        show_findings(out, found.findings)
    say(out)
    if output is None:
        say(out, Text("Nothing was saved; add -o FILE for all people."))
    elif targets == [output]:
        say(out, Text.assemble("All people are in ", (printable(output), "bold"), "."))
    else:
        say(out, Text.assemble("Results are in ", (printable(output), "bold"), f": persons.csv and {RECORD}."))
