"""How much memory may be used, and what is done when that is spent.

What is kept between two passes is counted here. While there is room it stays in memory; what comes after that is moved
to a temporary file and mapped from there. Parts that came first stay: passes go round, and to drop the oldest would
drop what is needed next.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.errors import OptionError, OutputError
from spectral_irt.files import reason_of
from spectral_irt.text import count, in_bytes, size_text

Array = NDArray[Any]
Moved = dict[tuple[int, int, str], Array]  # arrays of a part on disk: by address, size and kind of those in memory

PROGRAM = 150 * 10**6  # bytes that Python and the libraries take before there are any data
WORK = 250  # bytes for each answer of a block that a thread's temporary arrays take
BLOCK = 500_000  # answers of a block
SQUARE = 70  # bytes for each pair of items: a fit holds up to nine matrices at a time
DENSE_ITEMS = 5_000  # above which it holds none
DRAWS = 8_000  # bytes for each item then, for the standard errors
COMBINATION = 2_000  # bytes for each combination of an item and a rater, for sums of their thresholds in pairs
SMALL = 1 << 16  # bytes of an array that is not worth counting
FREE = 0.5  # share of the free memory that is used by default
UNKNOWN = 4 * 10**9  # taken for free where the system does not say
SEGMENT = 1 << 27  # bytes of a temporary file: few enough to let go, and few files
ALIGNED = 64


def free_memory() -> int:
    """Bytes that are free for a program now: of the machine, or of the container if that has less."""
    free = UNKNOWN
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _lines("/sys/fs/cgroup/memory.max"), _lines("/sys/fs/cgroup/memory.current")
    if limit and used and limit[0].isdigit():
        files = [line.split()[1] for line in _lines("/sys/fs/cgroup/memory.stat") if line.startswith("inactive_file ")]
        free = min(free, int(limit[0]) - int(used[0]) + int(files[0] if files else 0))
    return max(free, 0)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []


class Budget:
    """So many bytes in all, and a folder for what goes beyond them; see `set_memory`."""

    def __init__(self, memory: str | int | None = None, spill: str | Path | None = None) -> None:
        self.explicit = memory is not None
        self.total = in_bytes(memory, "memory") if memory is not None else int(FREE * free_memory())
        self.spill = Spill(spill)
        self.used = 0
        self.reserved = PROGRAM + WORK * BLOCK
        self._lock = RLock()  # a finalizer may run while it is held
        self._kept: set[int] = set()  # the arrays whose memory is counted, by their id

    def reserve(
        self,
        *,
        persons: int,
        items: int,
        threads: int,
        answers: int,
        parameters: int | None = None,
        combinations: int = 0,
        fit: bool = True,
        noun: str = "items",
    ) -> None:
        """Set aside the bytes without which nothing can be done: program, tables, and the larger of work on blocks and
        matrices; an error if that is more than there is. `noun`: what users call the items, which may be thresholds or
        combinations with raters."""
        work, size = threads * WORK * min(answers, BLOCK), items if parameters is None else parameters
        matrices = 0 if not fit else SQUARE * size**2 if size <= DENSE_ITEMS else DRAWS * size
        needed = PROGRAM + max(work, matrices) + 250 * persons + 500 * items + COMBINATION * combinations
        if self.explicit and needed > self.total:
            fewer = "" if threads == 1 else ", or take fewer `threads`"
            raise OptionError(
                f"`memory` is {size_text(self.total)}, and {persons:,} people and {items:,} {noun} with "
                f"{count(threads, 'thread')} need at least {size_text(needed)}, whatever is kept "
                f"on disk. Allow that much{fewer}."
            )
        self.reserved = needed

    @property
    def room(self) -> int:
        return max(self.total - self.reserved, 0)

    def keep(self, part: Any, share: float = 1.0, moved: Moved | None = None) -> Any:
        """The same part, whose arrays are counted, or have moved to a file where this share of the room is spent.
        Objects are changed in place; read-only arrays belong to another part, and stay."""
        moved = {} if moved is None else moved
        if isinstance(part, np.ndarray):
            return self._array(part, moved, share)
        if part is None or isinstance(part, int | float | str):  # most things; to ask for a dataclass takes longer
            return part
        if isinstance(part, tuple) and not hasattr(part, "_fields"):
            return tuple(self.keep(each, share, moved) for each in part)
        if isinstance(part, dict) or sparse.issparse(part) or (is_dataclass(part) and not isinstance(part, type)):
            held = part if isinstance(part, dict) else vars(part)  # frozen or not: the numbers stay the same
            for name, value in list(held.items()):
                held[name] = self.keep(value, share, moved)
        return part

    def _array(self, array: Array, moved: Moved, share: float) -> Array:
        """The array, whose memory is counted until nothing shows it any more; or a copy of it on disk."""
        if array.nbytes < SMALL or array.dtype.hasobject or not array.flags.writeable or is_mapped(array):
            return array
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        with self._lock:
            if id(whole) in self._kept:
                return array
            if self.used + whole.nbytes <= share * self.room:
                self._kept.add(id(whole))
                self.used += whole.nbytes
                weakref.finalize(whole, self._gone, id(whole), whole.nbytes).atexit = False
                return array
        key = (array.__array_interface__["data"][0], array.nbytes, array.dtype.str)
        if key not in moved:  # two matrices of a part may share their numbers
            moved[key] = self.spill.put(array)
        return moved[key].reshape(array.shape)

    def _gone(self, array: int, size: int) -> None:
        with self._lock:
            self._kept.discard(array)
            self.used -= size


_in_force: Budget | None = None


def budget() -> Budget:
    global _in_force
    if _in_force is None:
        _in_force = Budget()
    return _in_force


def set_memory(memory: str | int | None = None, spill: str | Path | None = None) -> Budget:
    """How much memory this process may use from now on, and where temporary files go beyond that.

    Parameters
    ----------
    memory : str or int, optional
        "4GB", or bytes; by default half of what is free now. Results do not depend on it.
    spill : path, optional
        A folder on a disk with room; by default that of TMPDIR, or /var/tmp.

    Examples
    --------
    >>> set_memory("4GB").total
    4000000000
    """
    global _in_force
    _in_force = Budget(memory, spill)
    return _in_force


def is_mapped(array: Array) -> bool:
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
    """Arrays moved to temporary files in a folder, one each. A file without a name goes when its array is gone, or the
    process, by whatever signal. Arrays are written, not stored through the mapping: a full disk is then an error."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = spill_folder(folder)
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
            for one in segments:
                one.madvise(mmap.MADV_DONTNEED)

    def put(self, array: Array) -> Array:
        whole = np.ascontiguousarray(array)
        size = -(-whole.nbytes // ALIGNED) * ALIGNED
        if not size:
            return whole
        with self._lock:
            try:
                if self._file is None or self._mapped is None or self._end + size > len(self._mapped):
                    self._file, self._end = tempfile.TemporaryFile(dir=self.folder, buffering=0), 0  # noqa: SIM115
                    self._file.truncate(max(size, SEGMENT))  # room for the mapping; what is written takes space
                    self._mapped = mmap.mmap(self._file.fileno(), max(size, SEGMENT))
                    self._segments.add(self._mapped)
                self._file.seek(start := self._end)
                left = memoryview(whole.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
                while len(left):
                    left = left[os.write(self._file.fileno(), left) :]
            except OSError as error:
                self._file = None
                raise cannot_spill(self.folder, error) from error
            self._end += size
            self.written += size
            return np.frombuffer(self._mapped, whole.dtype, whole.size, start).reshape(whole.shape)


def give_back_freed() -> None:
    """Return freed memory to the system: glibc keeps what lies between arrays that stay."""
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def cannot_spill(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        "the data are larger than the memory that may be used, and what goes beyond it cannot be written to "
        f"{str(folder)!r}: {reason_of(error)}. Allow more `memory`, or name a folder with more room, `spill=`. "
        "Nothing was written."
    )
