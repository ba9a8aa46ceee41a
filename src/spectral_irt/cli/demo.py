"""`spectral-irt demo`: the main job on bundled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectral_irt.cli.fit import Job, show
from spectral_irt.cli.places import place


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=place, metavar="DIR", help="Where to write the results.")
    ] = Path("demo-results"),
) -> None:
    """Calibrate bundled data: section 6 of the Law School Admission Test.

    \b
    Example
      spectral-irt demo -o demo-results
    """
    from spectral_irt import datasets

    job = Job(read=lambda progress: datasets.load_lsat(), output=output)
    show(*job.run(), job)
    typer.echo("With your own answers: spectral-irt fit answers.csv -o results")
