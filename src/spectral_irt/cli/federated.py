"""`spectral-irt site` and `spectral-irt federate`: one calibration of several sites that may not pool their answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectral_irt.cli.fitting import Fitting, number_or_auto
from spectral_irt.cli.options import Files, Output, Parquet, Reading
from spectral_irt.cli.places import output_at, place
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.spread import with_options
from spectral_irt.errors import OptionError, SitesMissing

WAITING = 4  # what `federate` returns where sites have not answered yet


@with_options(Reading)
def site(
    files: Files,
    reading: Reading,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", show_default=False, help="What this site is called in every round.")
    ],
    round: Annotated[
        Path,
        typer.Option(
            "--round", parser=place, metavar="FILE|DIR", show_default=False, help="The round, or the shared folder."
        ),
    ],
    output: Annotated[
        Path | None,
        output_at("FILE", "Where the answer goes; beside the round by default, as round003.NAME.json."),
    ] = None,
    least: Annotated[
        int,
        typer.Option(
            "--least", metavar="NUMBER", min=1, help="Items that fewer people answered are left out of every sum."
        ),
    ] = 10,
) -> None:
    """Answer a round of a federated calibration: sums over the people of this site, and never a row.

    The answer is a small JSON file with one or two numbers per item, and totals.
    Given the shared folder, every round that this site has not answered is.

    \b
    Examples
    The third round, from a folder that is synchronized:
      spectral-irt site answers.parquet --name north --round shared/round003.json
    Whatever is open:
      spectral-irt site answers.parquet --name north --round shared
    """
    from rich.text import Text

    from spectral_irt.cli.progress import Progress
    from spectral_irt.display import console, say
    from spectral_irt.federated.folder import answer_file, answer_question, check_name, open_rounds
    from spectral_irt.federated.protocol import Round

    check_name(name)
    questions = open_rounds(round, name)
    if output is not None and round.is_dir():
        raise OptionError("-o names one answer, and --round a folder; leave -o out, or name one round.")
    asked = [Round.read(question) for question in questions]  # before the answers are read, which may take long
    places = [output or answer_file(question, name) for question in questions]
    if places:
        with Progress() as progress:
            responses = reading.read_any(files, progress)
            said = [
                answer_question(question, one, responses, name=name, least=least)
                for question, one in zip(questions, asked, strict=True)
            ]
        for answer, target in zip(said, places, strict=True):
            answer.write(target, [*reading.inputs(files), *map(str, questions)])
    out = console()
    if not places:
        say(out, Text(f"No round of {round} is open for site {name}."))
    for answer, target in zip(said if places else [], places, strict=True):
        left = f"; {len(answer.left_out):,} left out, answered by fewer than {least:,}" if len(answer.left_out) else ""
        say(out, Text(f"Round {answer.number} ({answer.kind}): {len(answer.items):,} items{left}. Written: {target}."))


@with_options(Saying)
def federate(
    folder: Annotated[
        Path, typer.Argument(parser=place, metavar="DIR", show_default=False, help="The folder that all sites share.")
    ],
    saying: Saying,
    sites: Annotated[
        str,
        typer.Option("--sites", metavar="NAME,...", show_default=False, help="The sites that take part."),
    ],
    weighting: Annotated[
        str, typer.Option("--weighting", metavar="ability|persons|pairs", help="How much each person counts.")
    ] = "ability",
    regularization: Annotated[
        str, typer.Option("--regularization", metavar="auto|NUMBER", help="Precision of the prior; 0 for none.")
    ] = "auto",
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for the answers to a round.")
    ] = 0.0,
    output: Output = None,
    parquet: Parquet = False,
) -> None:
    """Calibrate items from sums of several sites: ask the next round, or give the result when all are answered.

    Rounds and answers are files of the shared folder, and there is no other state:
    run it again whenever answers have come, and it goes on where it was. The
    result is that of all answers together (the chain, with one-pass standard
    errors). While sites are missing, the exit code is 4.

    \b
    Examples
    The first round; then again after every round:
      spectral-irt federate shared --sites north,south,west -o results
    Stay until all is done, an hour for each round:
      spectral-irt federate shared --sites north,south,west --wait 3600 -o results
    """
    from spectral_irt.cli.fit import calibrate
    from spectral_irt.cli.job import Job
    from spectral_irt.cli.reporting import complain
    from spectral_irt.cli.wanted import Wanted
    from spectral_irt.federated.folder import SharedFolder, federated_responses

    saying.begin()
    names = [one.strip() for one in sites.split(",") if one.strip()]
    SharedFolder(folder, names)
    job = Job(
        read=lambda progress: federated_responses(folder, names, wait=wait, progress=progress.say),
        fitting=Fitting(
            weighting=weighting, regularization=str(number_or_auto(regularization)), refine=False, se="one-pass"
        ),
        wanted=Wanted(persons=False, fit=False),
        output=output,
        parquet=parquet,
        reading={"folder": str(folder), "sites": names},
    )
    try:
        calibrate(job, saying)
    except SitesMissing as missing:
        complain("waiting", str(missing), 33)
        raise typer.Exit(WAITING) from None
