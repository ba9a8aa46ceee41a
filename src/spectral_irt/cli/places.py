"""Options that name a place: a file or a folder, to be read or to be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from spectral_irt.files import reason_of


def place(text: str | Path) -> Path:
    """The path, with `~` for the home directory; refused if it can be no name at all."""
    if not str(text):
        raise typer.BadParameter("it is empty; name a place, or . for the current directory.")
    path = Path(text).expanduser()
    try:
        path.exists()
    except OSError as error:  # the system cannot even tell
        raise typer.BadParameter(f"{reason_of(error)}.") from error
    return path


def output_at(metavar: str, help: str) -> Any:
    """The option -o: where results go."""
    return typer.Option("--output", "-o", parser=place, metavar=metavar, show_default=False, help=help)
