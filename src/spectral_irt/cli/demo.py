"""`spectral-irt demo`: the main job on bundled data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from spectral_irt.cli.fit import show
from spectral_irt.cli.fit_job import FitJob
from spectral_irt.cli.options import Reading, offered
from spectral_irt.cli.paths import place
from spectral_irt.cli.wanted import Wanted
from spectral_irt.errors import OptionError

DATA = ("quiz", "lsat", "logs")
ABOUT = "A quiz of 30 multiple-choice items in two booklets, simulated: one wrong key, one item easier on the coast."
NEXT = {
    "quiz": "spectral-irt fit quiz.csv --key quiz_key.csv --missing 9 --group region -o results",
    "lsat": "spectral-irt fit lsat.csv -o results",
    "logs": "spectral-irt leaderboard runs -o board",
}


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=place, metavar="DIR", help="Where to write the results.")
    ] = Path("demo-results"),
    data: Annotated[
        str,
        typer.Option(
            metavar="|".join(DATA),
            autocompletion=offered("|".join(DATA)),
            help="A simulated quiz; section 6 of the Law School Admission Test; logs of nine models, simulated.",
        ),
    ] = DATA[0],
    files: Annotated[
        Path | None,
        typer.Option(
            "--files",
            parser=place,
            metavar="DIR",
            show_default=False,
            help="Do nothing but copy the data there, to try things out.",
        ),
    ] = None,
) -> None:
    """Calibrate bundled data: a simulated quiz of multiple choice, or section 6 of the Law School Admission Test.

    The quiz has two faults to find: a wrong key, and an item that is harder for
    some people than for others as able. The command that finds them is shown
    first; the files that it reads come with the program.

    \b
    Examples
      spectral-irt demo -o demo-results
      spectral-irt demo --data lsat
      spectral-irt demo --files here
      spectral-irt demo --data logs --files here
    """
    from spectral_irt import datasets
    from spectral_irt.errors import check_option

    check_option("data", data, DATA)
    if files is not None:
        _copy(data, files)
        return
    if data == "logs":
        raise OptionError("--data logs goes with --files DIR, which writes the logs there, for leaderboard to rank.")
    if data == "lsat":
        job = FitJob(source=lambda progress: datasets.load_lsat(), said={}, output=output)
    else:
        from spectral_irt.datasets.bundled import OMITTED

        answers, key = map(_near, datasets.quiz_files())
        said = {"--key": key, "--missing": OMITTED, "--group": "region", "-o": str(output)}
        _show_command(
            ["spectral-irt fit " + shlex.quote(answers), *(f"{name} {shlex.quote(x)}" for name, x in said.items())]
        )
        reading, wanted = Reading(key=key, missing=[OMITTED]), Wanted(group=["region"])
        job = FitJob([answers], reading, wanted=wanted, output=output)
    show(*job.run(), job)
    typer.echo("With your own answers: spectral-irt fit answers.csv -o results")


def _copy(data: str, place: Path) -> None:
    """The files of a dataset, in a folder, and what to do with them."""
    from spectral_irt import datasets
    from spectral_irt.datasets.bundled import log_texts
    from spectral_irt.errors import printable
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.terminal import console, say

    if data == "logs":
        texts = {place / "runs" / path: text for path, text in log_texts()}
    elif data == "quiz":
        texts = {place / path.name: path.read_text(encoding="utf-8") for path in datasets.quiz_files()}
    else:
        texts = {place / "lsat.csv": datasets.lsat_text()}
    with all_or_nothing(list(texts)) as drafts:
        for draft, (target, text) in zip(drafts, texts.items(), strict=True):
            with naming(target):
                draft.write_text(text, encoding="utf-8", newline="")
    names = [path.name for path in texts] if data != "logs" else [f"runs, with {len(texts)} logs"]
    say(console(), f"In {printable(place)}: {' and '.join(names)}. There, try:")
    typer.echo(f"  {NEXT[data]}")


def _near(path: Path) -> str:
    """The path from here where it is below, else the whole of it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _show_command(parts: list[str]) -> None:
    """What is run, in lines that a shell takes as one."""
    from rich.cells import cell_len
    from rich.text import Text

    from spectral_irt.terminal import console, say

    out = console()
    lines = [f"  {parts[0]}"]
    for part in parts[1:]:
        if cell_len(f"{lines[-1]} {part} \\") <= out.width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"      {part}")
    say(out, Text(ABOUT, style="dim"))
    say(out)
    for line in lines:
        say(out, Text(line, style="bold", no_wrap=True, overflow="ignore"))
    say(out)
