"""Places for banks and salts: refused before the work when they cannot be; and a bank put in its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spectral_irt.cli.options import Reading
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.wanted import Wanted
from spectral_irt.errors import OptionError, OutputError, listed

if TYPE_CHECKING:
    from spectral_irt.bank import Bank


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


def inputs_of(files: Sequence[str], reading: Reading, wanted: Wanted) -> tuple[str, ...]:
    """What is read, and may not be replaced; a bank that gives the anchors may grow (`--anchors A --bank A`)."""
    inputs = [*reading.inputs(files), wanted.group_file]
    if wanted.bank is None or wanted.anchors is None or Path(wanted.anchors).resolve() != wanted.bank.resolve():
        inputs.append(wanted.anchors)
    return tuple(str(path) for path in inputs if path is not None)
