"""`spectral-irt report`: a page from the folder that a fit wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectral_irt.cli.paths import output_at, place

NAME = "report.html"


def report(
    folder: Annotated[
        Path, typer.Argument(parser=place, metavar="DIR", show_default=False, help="What 'fit -o DIR' wrote.")
    ],
    output: Annotated[
        Path | None, output_at("FILE", f"Where to write the page; {NAME} in the folder by default.")
    ] = None,
    list_persons: Annotated[
        bool, typer.Option("--list-persons", help="A table of single people too; by default nobody is named.")
    ] = False,
) -> None:
    """Everything that a fit wrote to a folder, in one HTML file that needs no network.

    The folder has tables and no answers, so the curves of the items have no
    observations; 'fit --report' has them. Of ordered answers it has mean
    answers, so both are the same. What the folder lacks is said.

    \b
    Examples
      spectral-irt fit answers.csv -o results
      spectral-irt report results
      spectral-irt report results -o committee.html
    """
    from spectral_irt.errors import printable
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.report.data import of_folder
    from spectral_irt.report.page import check_place, page

    target = output or folder / NAME
    check_place(target)
    material = of_folder(folder, list_persons=list_persons)
    with all_or_nothing([target], inputs=_read(folder)) as (draft,):
        text = page(material)
        with naming(target):
            draft.write_text(text, encoding="utf-8", newline="\n")
    typer.echo(f"The report is in {printable(target)}.")


def _read(folder: Path) -> list[Path]:
    """What is read, and may not be replaced: the folder but for an earlier report in it."""
    return [path for path in folder.iterdir() if path.suffix not in (".html", ".htm")]
