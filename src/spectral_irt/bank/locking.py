"""One writer at a time: a lock file in the bank's folder, held while the bank is replaced, and gone afterwards.

A process that dies gives its lock back with its files, so that a lock file left behind locks nobody out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spectral_irt.errors import OutputError
from spectral_irt.files import BUSY, lock_file, stop_if_asked

LOCK = ".lock"
PATIENCE = 30.0  # seconds; replacing a bank takes a fraction of one
PAUSE = 0.02


@contextmanager
def locked(folder: Path, patience: float = PATIENCE, tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of this folder; another writer is waited for, up to `patience` seconds, unless a signal comes.

    `tell` is told once that there is another writer.
    """
    path = folder / LOCK
    deadline = time.monotonic() + patience
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lock_file(file)
            if _is(file, path):
                break
        except OSError as error:
            if error.errno not in BUSY:
                break  # a file system without locks: the comparison before replacing must do
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if time.monotonic() > deadline:
            raise OutputError(
                f"another program is writing the bank {str(folder)!r}, and has been for {patience:g} seconds; try "
                "again when it is done. The bank that was there is unchanged."
            )
        if tell is not None:
            tell(f"waiting for another program that is writing the bank {str(folder)!r}")
            tell = None
        time.sleep(PAUSE)
        stop_if_asked()
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is locked: whoever waits sees that this is no longer the file of that name
        os.close(file)
        with suppress(OSError):
            if os.name == "nt":  # an open file cannot be removed there
                path.unlink()


def _is(file: int, path: Path) -> bool:
    """Whether this open file is still the one of that name: the writer before may have removed it."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
