"""Arrays beyond the memory that may be used: temporary files that are mapped, and go with their arrays.

The budget (`base.py`) puts here what it has no room for; the builder of responses, pieces that wait to be packed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, OutputError
from spectral_irt.files import reason_of

Array = NDArray[Any]

SEGMENT = 1 << 27  # bytes of a temporary file: few enough to let go, and few files
ALIGNED = 64
# Of malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
MAPPED = 1 << 20  # bytes of an array that has a mapping of its own: to map a smaller one costs more than to fill it


class Spill:
    """Arrays moved to temporary files in a folder, one each: as said, or TMPDIR, or /var/tmp, or wherever Python puts
    them. A file without a name goes when its array is gone, or the process, by whatever signal. Arrays are written, not
    stored through the mapping: a full disk is then an error."""

    def __init__(self, folder: str | Path | None = None) -> None:
        usual = "/var/tmp"
        if os.environ.get("TMPDIR") or not os.access(usual, os.W_OK):
            usual = tempfile.gettempdir()
        self.folder = Path(folder or usual)
        if not self.folder.is_dir():
            raise OptionError(f"`spill` is {str(folder)!r}, which is not a folder; name one that there is.")
        self.written = 0
        self._lock = Lock()
        self._file: IO[bytes] | None = None
        self._mapped: mmap.mmap | None = None
        self._segments: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._end = 0

    def release(self) -> None:
        """What was read leaves the memory of this process; the system keeps it for as long as it has room."""
        if self.written and hasattr(mmap, "MADV_DONTNEED"):
            with self._lock:
                segments = list(self._segments)
            for segment in segments:
                segment.madvise(mmap.MADV_DONTNEED)

    def put(self, array: Array) -> Array:
        contiguous = np.ascontiguousarray(array)
        size = -(-contiguous.nbytes // ALIGNED) * ALIGNED
        if not size:
            return contiguous
        with self._lock:
            try:
                if self._file is None or self._mapped is None or self._end + size > len(self._mapped):
                    self._file, self._end = tempfile.TemporaryFile(dir=self.folder, buffering=0), 0  # noqa: SIM115
                    self._file.truncate(max(size, SEGMENT))  # room for the mapping; what is written takes space
                    self._mapped = mmap.mmap(self._file.fileno(), max(size, SEGMENT))
                    self._segments.add(self._mapped)
                self._file.seek(start := self._end)
                left = memoryview(contiguous.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
                while len(left):
                    left = left[os.write(self._file.fileno(), left) :]
            except OSError as error:
                self._file = None
                raise cannot_spill(self.folder, error) from error
            self._end += size
            self.written += size
            return np.frombuffer(self._mapped, contiguous.dtype, contiguous.size, start).reshape(contiguous.shape)


def give_back_freed() -> None:
    """Return freed memory to the system: glibc keeps what lies between arrays that stay."""
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def give_back_at_once() -> None:
    """From now on memory of arrays goes back to the system as soon as they are freed. By default glibc raises the size
    from which it does so to 32 MB, and keeps what is smaller for later: twice as much as is in use at a time."""
    with suppress(AttributeError, OSError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, MAPPED)
        mallopt(M_TRIM_THRESHOLD, MAPPED)


def cannot_spill(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        "the data are larger than the memory that may be used, and what goes beyond it cannot be written to "
        f"{str(folder)!r}: {reason_of(error)}. Allow more `memory`, or name a folder with more room, `spill=`. "
        "Nothing was written."
    )
