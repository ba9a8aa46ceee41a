"""How much memory may be used, and what is done when that is spent.

What is kept between two passes (packed answers, and what kernels prepare from them) is counted here. While there is
room it stays in memory; what comes after that is moved to a temporary file and mapped from there, bit for bit the same.
Parts that came first stay, whatever is read later: passes go round, and to drop the oldest would drop what is needed
next.
"""

from __future__ import annotations

import weakref
from dataclasses import is_dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.engine.spill import Spill, is_mapped
from spectral_irt.errors import OptionError
from spectral_irt.text import count, in_bytes, size_text

Array = NDArray[Any]

PROGRAM = 150 * 10**6  # bytes that Python and the libraries take before there are any data
WORK = 250  # bytes for each answer of a block that a thread's temporary arrays take
BLOCK = 500_000  # answers of a block
SQUARE = 70  # bytes for each pair of items: a fit holds up to nine matrices at a time
DENSE_ITEMS = 5_000  # above which it holds none
DRAWS = 8_000  # bytes for each item then, for the standard errors
SMALL = 1 << 16  # bytes of an array that is not worth counting
PLAIN = (int, float, str, np.dtype)  # what most attributes are, and nothing is kept of
FREE = 0.5  # share of the free memory that is used by default
UNKNOWN = 4 * 10**9  # taken for free where the system does not say


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
    """So many bytes in all, and a folder for what goes beyond them.

    Parameters
    ----------
    memory : str or int, optional
        "4GB"; by default half of what is free when it is first asked for.
    spill : path, optional
        Folder of temporary files. By default that of TMPDIR, or /var/tmp, which is on a disk where /tmp may not be.
        The files have no name, so nothing of them is left whatever ends the process.
    """

    def __init__(self, memory: str | int | None = None, spill: str | Path | None = None) -> None:
        self.explicit = memory is not None
        self.total = in_bytes(memory, "memory") if memory is not None else int(FREE * free_memory())
        self.spill = Spill(spill)
        self.used = 0
        self.reserved = PROGRAM + WORK * BLOCK
        self._lock = RLock()  # a finalizer may run while it is held
        self._kept: set[int] = set()  # the arrays whose memory is counted, by their id
        self._remembering: weakref.WeakSet[Any] = weakref.WeakSet()

    # ------------------------------------------------------------------------------ what is set aside

    def needed(self, *, persons: int, items: int, threads: int, answers: int, fit: bool = True) -> int:
        """Bytes without which nothing can be done: the program, tables of people and items, and what comes to more,
        the work of its threads on blocks or the matrices of a fit.
        """
        work = threads * WORK * min(answers, BLOCK)
        matrices = 0 if not fit else SQUARE * items**2 if items <= DENSE_ITEMS else DRAWS * items
        return PROGRAM + max(work, matrices) + 250 * persons + 500 * items

    def reserve(self, *, persons: int, items: int, threads: int, answers: int, fit: bool = True) -> None:
        """Set aside what work on so many people and items takes; an error if that is more than there is."""
        needed = self.needed(persons=persons, items=items, threads=threads, answers=answers, fit=fit)
        if self.explicit and needed > self.total:
            fewer = "" if threads == 1 else ", or take fewer `threads`"
            raise OptionError(
                f"`memory` is {size_text(self.total)}, and {persons:,} people and {items:,} items with "
                f"{count(threads, 'thread')} need at least {size_text(needed)}, whatever is kept "
                f"on disk. Allow that much{fewer}."
            )
        self.reserved = needed

    @property
    def room(self) -> int:
        """Bytes for what is kept between passes."""
        return max(self.total - self.reserved, 0)

    # ------------------------------------------------------------------------------------ what is kept

    def keep(self, part: Any, share: float = 1.0) -> Any:
        """The same part, whose arrays are counted, or have moved to a file where this share of the room is spent.

        Objects are changed in place: whoever else holds them has the same numbers, and no second copy. What is
        read-only belongs to somebody else, and stays.
        """
        return self._moved(part, {}, share)

    def remembers(self, thing: Any) -> None:
        """Something has put by what it can make again, and lets it go when `forget` is called."""
        with self._lock:
            self._remembering.add(thing)

    def make_room(self, size: int) -> None:
        """Have things forget what they put by, where so many bytes more would not fit beside it."""
        with self._lock:
            if self.used + size <= self.room:
                return
            things = list(self._remembering)
        for thing in things:
            thing.forget()

    def _moved(self, thing: Any, seen: dict[tuple[int, int, str], Array], share: float) -> Any:
        if isinstance(thing, np.ndarray):
            return thing if thing.nbytes < SMALL else self._kept_array(thing, seen, share)
        if thing is None or isinstance(thing, PLAIN):
            return thing
        if isinstance(thing, tuple) and not hasattr(thing, "_fields"):
            return tuple(self._moved(each, seen, share) for each in thing)
        if isinstance(thing, dict):
            for key, value in list(thing.items()):
                thing[key] = self._moved(value, seen, share)
            return thing
        if sparse.issparse(thing) or (is_dataclass(thing) and not isinstance(thing, type)):
            held = vars(thing)  # frozen or not: the numbers stay the same
            for name, value in list(held.items()):
                held[name] = self._moved(value, seen, share)
        return thing

    def _kept_array(self, array: Array, seen: dict[tuple[int, int, str], Array], share: float) -> Array:
        if array.dtype.hasobject or not array.flags.writeable or is_mapped(array):
            return array
        # Two matrices of a part may share their numbers.
        key = (array.__array_interface__["data"][0], array.nbytes, array.dtype.str)
        if key in seen:
            return seen[key].reshape(array.shape)
        if not self._count(array, share):
            array = self.spill.put(array)
        seen[key] = array
        return array

    def _count(self, array: Array, share: float) -> bool:
        """Whether there is room for the memory that this array shows; it is counted until nothing shows it any more."""
        while isinstance(array.base, np.ndarray):
            array = array.base
        with self._lock:
            if id(array) not in self._kept:
                if self.used + array.nbytes > share * self.room:
                    return False
                self._kept.add(id(array))
                self.used += array.nbytes
                weakref.finalize(array, self._gone, id(array), array.nbytes).atexit = False
            return True

    def _gone(self, array: int, size: int) -> None:
        with self._lock:
            self._kept.discard(array)
            self.used -= size


_in_force: Budget | None = None


def budget() -> Budget:
    """The budget of this process."""
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
