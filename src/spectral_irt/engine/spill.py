"""Arrays on disk instead of in memory: temporary files without a name, mapped.

A file without a name goes when the last array in it is gone, or the process, by whatever signal: nothing is ever left
to remove. Arrays are written, not stored through the mapping: a full disk is then an error, where a mapping would end
the process.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, OutputError
from spectral_irt.files import reason_of

Array = NDArray[Any]

SEGMENT = 1 << 27  # bytes in a file: as many arrays as keep the number of open files small, and few enough to let go
ALIGNED = 64


def is_mapped(array: Array) -> bool:
    """Whether these numbers stand in a file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "obj", base), mmap.mmap)


def spill_folder(folder: str | Path | None = None) -> Path:
    """Where temporary files go: as said, or TMPDIR, or /var/tmp, or wherever Python puts them."""
    if folder is not None:
        if not Path(folder).is_dir():
            raise OptionError(f"`spill` is {str(folder)!r}, which is not a folder; name one that there is.")
        return Path(folder)
    usual = "/var/tmp"
    if not os.environ.get("TMPDIR") and os.path.isdir(usual) and os.access(usual, os.W_OK):
        return Path(usual)
    return Path(tempfile.gettempdir())


class Spill:
    """Arrays moved to temporary files in a folder; nothing is there before the first of them."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = spill_folder(folder)
        self.written = 0
        self._lock = Lock()
        self._file: int | None = None
        self._segment: mmap.mmap | None = None
        self._end = 0

    def put(self, array: Array) -> Array:
        """The same numbers, writable, mapped from a file."""
        whole = np.ascontiguousarray(array)
        size = -(-max(whole.nbytes, 1) // ALIGNED) * ALIGNED
        try:
            with self._lock:
                if self._segment is None or self._end + size > len(self._segment):
                    self._open(max(size, SEGMENT))
                segment, start = self._segment, self._end
                assert segment is not None
                assert self._file is not None
                _write(self._file, whole, start)
                self._end += size
                self.written += size
        except OSError as error:
            self.close()
            raise cannot_spill(self.folder, error) from error
        return np.frombuffer(segment, whole.dtype, whole.size, start).reshape(whole.shape)

    def close(self) -> None:
        """Let go of the file that is being filled; arrays in it keep it for themselves."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._segment, self._end = None, None, 0

    def _open(self, size: int) -> None:
        self.close()
        with tempfile.TemporaryFile(dir=self.folder) as file:
            os.ftruncate(file.fileno(), size)  # room for the mapping; what is written takes space as it comes
            self._segment = mmap.mmap(file.fileno(), size)
            self._file = os.dup(file.fileno())


def _write(file: int, array: Array, start: int) -> None:
    left = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    os.lseek(file, start, os.SEEK_SET)
    while len(left):
        left = left[os.write(file, left) :]


def cannot_spill(folder: Path, error: OSError) -> OutputError:
    """The complaint about a folder that takes no more."""
    return OutputError(
        "the data are larger than the memory that may be used, and what goes beyond it cannot be written to "
        f"{str(folder)!r}: {reason_of(error)}. Allow more `memory`, or name a folder with more room, `spill=`. "
        "Nothing was written."
    )
