"""Options that name a place, and places that are refused before the work because nothing can be put there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spectral_irt.cli.progress import Progress
from spectral_irt.errors import OptionError, OutputError, listed
from spectral_irt.files import reason_of

if TYPE_CHECKING:
    from spectral_irt.bank import Bank


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


def refuse_bank_place(folder: Path) -> None:
    """An error before the work when no bank can be saved in this place."""
    from spectral_irt.bank.storage import MANIFEST

    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{str(folder)!r} is a file, not a folder; choose another place. Nothing was written.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        present = listed(sorted(path.name for path in folder.iterdir()))
        raise OutputError(
            f"{str(folder)!r} is a folder with other files ({present}), not a bank; choose another place. Nothing was "
            "written."
        )


def refuse_salt_place(salt: Path | None, *banks: Path | None) -> None:
    """An error when the salt would be in a bank: who gets the bank must not get the salt."""
    for bank in banks:
        if salt is not None and bank is not None and salt.resolve().is_relative_to(bank.resolve()):
            raise OptionError(
                f"the salt file {str(salt)!r} lies in the bank {str(bank)!r}, and would be given away with it; keep it "
                "elsewhere."
            )


def save_bank(bank: Bank, folder: Path) -> None:
    """Write the bank there; who has to wait for another writer is told so."""
    with Progress() as progress:
        bank.save(folder, tell=progress.say)
