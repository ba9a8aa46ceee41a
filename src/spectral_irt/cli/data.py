"""`spectral-irt data list`: the datasets that can be opened by name, and which of them are here."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectral_irt.cli.help import Command, Group
from spectral_irt.cli.places import place

if TYPE_CHECKING:
    from rich.text import Text

    from spectral_irt.datasets import Source

INDENT = 13

data = typer.Typer(
    name="data",
    cls=Group,
    help="The datasets of the paper, and others: what to fetch, and what is found.",
    add_completion=False,
)


@data.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@data.command("list", cls=Command)
def list_datasets(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--data",
            parser=place,
            metavar="DIR",
            show_default=False,
            help="Where your datasets are, zipped or not; else the directory in the variable SPECTRAL_IRT_DATA.",
        ),
    ] = None,
) -> None:
    """Every dataset by name: what to download, from which page, under which license, and whether it was found.

    Nothing is downloaded, and nothing but LSAT comes with this package.

    \b
    Example
      spectral-irt data list --data ~/data
    """
    from rich.text import Text

    from spectral_irt.datasets import available
    from spectral_irt.datasets.locating import VARIABLE, data_path
    from spectral_irt.display import console, say
    from spectral_irt.errors import printable

    sources = available(directory)
    out = console()
    for source in sources:
        out.print(_entry(source, out.width), Text(), sep="\n", soft_wrap=True)
    place = data_path(directory)
    found = sum(source.found is not None for source in sources)
    where = f"in {place}" if place else f"without a directory to look in: say --data DIR, or set {VARIABLE}"
    say(out, Text(printable(f"{found} of {len(sources)} found {where}.")))


def _entry(source: Source, width: int) -> Text:
    """What there is to know of one dataset, on a few lines. Addresses and paths stay on one line, to be copied."""
    from rich.text import Text

    from spectral_irt.errors import printable

    entry = Text(source.name, style="bold cyan")
    entry.append(f"  {source.title}", style="not bold default")
    if source.paper:
        entry.append(f" (row {source.paper} of the paper's tables)", style="not bold dim default")
    sizes = [(source.rows, source.kind), (source.users, "people"), (source.items, "items")]
    lines = [
        ("published", ", ".join(f"{size:,} {what}" for size, what in sizes if size)),
        ("download", source.download),
        ("from", source.page),
        ("license", source.license),
    ]
    for label, text in lines:
        entry.append(f"\n{label:>{INDENT - 2}}  {text}", style="not bold default")
    for remark in source.remarks:
        folded = textwrap.wrap(remark, max(width - INDENT, 40))
        note = ("\n" + " " * INDENT).join(folded)
        entry.append(f"\n{'note':>{INDENT - 2}}  {note}", style="not bold dim default")
    entry.append(f"\n{'found':>{INDENT - 2}}  ", style="not bold default")
    if source.found is None:
        entry.append("no", style="not bold yellow")
    else:
        entry.append(printable(source.found), style="not bold green")
    return entry
