"""What every engine offers, a kernel applied to parts of the data and the sum of what it gives; and the engine of this
process: threads over parts in memory, or mapped from files where memory does not suffice.

A part is whatever the engine was given or made: a block of people, or what a kernel prepared from one. Parts stay where
the engine keeps them; only arguments go there, and only sums or per-person results come back. What is kept between two
passes counts towards the `Budget` of memory. While there is room it stays in memory; what comes after that is moved to
a temporary file and mapped from there. Parts that came first stay: passes go round, and to drop the oldest would drop
what is needed next.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock, RLock
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from spectral_irt.engine.spill import Array, Spill, give_back_at_once
from spectral_irt.errors import OptionError
from spectral_irt.text import count, in_bytes, size_text

Kernel = Callable[..., Any]
Each = Sequence[Sequence[Any]]  # sequences with one entry for every part
Moved = dict[tuple[int, int, str], Array]  # arrays of a part on disk: by address, size and kind of those in memory

# Bytes that a fit and its analysis take at their peak, as benchmarks/memory.py has measured them: it prints the limit
# that follows from these numbers beside the peak, which is meant to be between two thirds of it and the whole.
PROGRAM = 125 * 10**6  # Python and the libraries, before there are any data and after
# The tables of persons and items, and what is made of them when they are written.
PERSON = 600
RATED_PERSON = 850  # the same of ratings
ITEM = 500
BLOCK = 500_000  # answers of a block
KEPT = 64  # for each answer of one block: what small data are prepared to stays in memory under any limit
# A thread's temporary arrays, for each answer of a block. Of answers in categories they grow with the length of
# records, up to where sums over scores give way to series.
WORK, WORK_OF_ANSWER, LONG_RECORD = 45, 2.8, 120
WORK_IN_CATEGORIES = 70  # at least, of answers in categories, however short the records
RATING = 140  # the same for ratings, whose fit is judged level by level
SQUARE = 70  # for each pair of items: a fit holds up to nine matrices at a time
DENSE_ITEMS = 5_000  # above which it holds none
DRAWS = 8_000  # for each item then, for the standard errors
# For each threshold of a combination of an item and a rater: its derivatives at some fifty abilities, of two points of
# a fit at a time, and sums over the people of each thread.
COMBINATION = 6_000
SMALL = 1 << 16  # bytes of an array that is not worth counting
FREE = 0.5  # share of the free memory that is used by default


class Engine(ABC):
    """Applies kernels to parts.

    A kernel is a pure function `kernel(part, *each, *args)`: `args` are the same for all parts, `each` holds sequences
    with one entry for every part. An engine may know some kernels only, and refuse others with `AnswersStayError`.
    """

    remote: ClassVar[bool] = False  # whether parts lie on other machines, so that few bytes should travel

    @abstractmethod
    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        """What the kernel gives for every part, in order."""

    def sum(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Any:
        """The sum of what the kernel gives over the parts, added in their order: arrays, numbers, or tuples of them."""
        return add_up(self.map(kernel, parts, *args, each=each))

    def prepare(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Prepared:
        """What the kernel gives for every part, kept where the parts are."""
        return self.hold(self.map(kernel, parts, *args, each=each))

    def hold(self, parts: Iterable[Any]) -> Prepared:
        """Parts that were made here, kept where the engine keeps parts; they are taken one by one."""
        return Prepared(tuple(map(budget().keep, parts)), self)

    def reserve(self, **size: Any) -> None:  # noqa: B027 -- most engines need not know
        """Told how large the work is, before it begins; an error if there is not enough memory for it."""

    def map_and_sum(self, kernel: Kernel, parts: Sequence[Any], *args: Any) -> tuple[Prepared, Any]:
        """New parts and a sum in one go: the kernel gives a pair, the new part and what is to be added."""
        new = []

        def sums() -> Iterator[Any]:
            for part, summand in self.map(kernel, parts, *args):
                new.append(budget().keep(part))
                yield summand

        total = add_up(sums())
        return Prepared(tuple(new), self), total


@dataclass(frozen=True, eq=False)
class Prepared:
    """Parts that an engine keeps: the same `sum` and `map` as those of the data they were prepared from."""

    parts: tuple[Any, ...]
    engine: Engine

    def map(self, kernel: Kernel, *args: Any, each: Each = ()) -> Iterator[Any]:
        return self.engine.map(kernel, self.parts, *args, each=each)

    def sum(self, kernel: Kernel, *args: Any, each: Each = ()) -> Any:
        return self.engine.sum(kernel, self.parts, *args, each=each)

    def prepare(self, kernel: Kernel, *args: Any) -> Prepared:
        """Further parts, made from these; the kernel may use up the memory of the old ones."""
        return self.engine.prepare(kernel, self.parts, *args)

    def map_and_sum(self, kernel: Kernel, *args: Any) -> tuple[Prepared, Any]:
        return self.engine.map_and_sum(kernel, self.parts, *args)

    def with_more(self, others: Prepared) -> Prepared:
        """These parts and then the others, which the same engine keeps."""
        return Prepared((*self.parts, *others.parts), self.engine)


def identity(part: Any) -> Any:
    return part


def add_up(results: Iterable[Any]) -> Any:
    """The sum in order of arrays, numbers, or tuples of them; None when there is nothing to add."""
    total: Any = None
    for k, result in enumerate(results):
        if k == 0:
            total = result
        elif isinstance(result, tuple):
            total = tuple(_plus(a, b, ours=k > 1) for a, b in zip(total, result, strict=True))
        else:
            total = _plus(total, result, ours=k > 1)
    return total


def _plus(total: Any, more: Any, *, ours: bool) -> Any:
    """The sum of two results, in the memory of the first where that is no kernel's own any more."""
    if ours and isinstance(total, np.ndarray) and total.dtype == getattr(more, "dtype", None) and total.ndim:
        total += more
        return total
    return total + more


def concatenate(results: Iterable[Any]) -> Any:
    """Arrays one after the other, or tuples of arrays, column by column."""
    results = list(results)
    if isinstance(results[0], tuple):
        return tuple(map(np.concatenate, zip(*results, strict=True)))
    return np.concatenate(results)


# numpy's matrix library starts a thread on every processor for every product. Inside an engine, which keeps all
# processors busy itself, and for small matrices, these threads mostly wait for each other.
_held = Lock()  # by whoever has set the limit, until it is undone


@lru_cache(maxsize=2)
def _libraries(with_scipy: bool) -> Any:
    """The matrix libraries of this process; looked up anew once scipy has brought its own."""
    from threadpoolctl import ThreadpoolController  # here, so that importing the package does not pay for it

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread(*, with_scipy: bool = False) -> Iterator[None]:
    """Within it matrix libraries use one thread. The limit is the whole process's: whoever finds it set leaves it
    alone, and whoever set it undoes it, so that it cannot be left behind. `with_scipy`: scipy's library is loaded
    before, where it will be used; what is loaded later has all its threads."""
    if with_scipy:
        import scipy.linalg  # noqa: F401 -- slow: only for those who ask
    if not _held.acquire(blocking=False):
        yield
        return
    try:
        with _libraries("scipy.linalg" in sys.modules).limit(limits=1):
            yield
    finally:
        _held.release()


def free_memory() -> int:
    """Bytes that are free for a program now: of the machine, or of the container if that has less."""
    import psutil

    free = int(psutil.virtual_memory().available)
    # On Linux a container may have less than its machine; elsewhere these files do not exist.
    limit = _lines("/sys/fs/cgroup/memory.max")
    used = _lines("/sys/fs/cgroup/memory.current")
    if limit and used and limit[0].isdigit():
        lines = _lines("/sys/fs/cgroup/memory.stat")
        files = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        free = min(free, int(limit[0]) - int(used[0]) + files)
    return max(free, 0)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []


@dataclass(frozen=True, kw_only=True)
class WorkSize:
    """How large a fit or an analysis is.

    `items` may be thresholds or combinations with raters (`noun`: what users call them), `parameters` are those of a
    design. `kind` is "binary", "ordered" or "ratings", of which `combinations_have_tables` where these are not
    too many. `fit`: whether difficulties are estimated.
    """

    persons: int
    items: int
    threads: int
    answers: int
    kind: str = "binary"
    parameters: int | None = None
    combinations_have_tables: bool = True
    fit: bool = True
    noun: str = "items"

    @property
    def in_a_block(self) -> int:
        return min(self.answers, BLOCK)

    @property
    def work(self) -> int:
        """Bytes of temporary arrays: of as many blocks as are worked on at a time."""
        if self.kind == "ratings":
            of_answer = float(RATING)
        elif self.kind == "ordered":
            length = min(self.answers / max(self.persons, 1), LONG_RECORD)
            of_answer = max(WORK_OF_ANSWER * length, WORK_IN_CATEGORIES)
        else:
            of_answer = float(WORK)
        at_a_time = min(self.threads, -(-self.answers // BLOCK))
        return int(at_a_time * of_answer * self.in_a_block)

    def bytes_needed(self, *, matrices: bool) -> int:
        """Bytes without which nothing can be done: program, tables, what is kept of a block, and the larger of work on
        blocks and on `matrices` of items by items, which there are up to `DENSE_ITEMS`. Ratings have both at a time,
        and the tables of people after that."""
        size = self.items if self.parameters is None else self.parameters
        of_persons = (RATED_PERSON if self.kind == "ratings" else PERSON) * self.persons
        of_items = DRAWS * size if self.fit else 0
        if self.fit and matrices and size <= DENSE_ITEMS:
            of_items = SQUARE * size**2
        in_turn = of_persons + max(self.work, of_items)
        if self.kind == "ratings":
            of_combinations = COMBINATION * self.items if self.fit and self.combinations_have_tables else 0
            in_turn = self.work + max(of_persons, of_items + of_combinations)
        return PROGRAM + ITEM * self.items + KEPT * self.in_a_block + in_turn


class Budget:
    """So many bytes in all, and a folder for what goes beyond them; see `set_memory`."""

    def __init__(self, memory: str | int | None = None, spill: str | Path | None = None) -> None:
        self.explicit = memory is not None
        self.total = in_bytes(memory, "memory") if memory is not None else int(FREE * free_memory())
        self.spill = Spill(spill)
        self.used = 0
        self.room = max(self.total - PROGRAM - 2 * WORK * BLOCK, 0)  # that is not reserved
        self._lock = RLock()  # a finalizer may run while it is held
        self._kept: set[int] = set()  # the arrays whose memory is counted, by their id

    def reserve(self, *, matrices_certain: bool = True, **size: Any) -> None:
        """Set aside the bytes without which work of this size (`WorkSize`) cannot be done; an error if that is more
        than there is. `matrices_certain`: False where only the work itself shows whether matrices of items by items
        are needed. They are then set aside if they fit; if not, whoever comes to need them reserves again."""
        work = WorkSize(**size)
        needed = work.bytes_needed(matrices=True)
        if not matrices_certain and needed > self.total:
            needed = work.bytes_needed(matrices=False)
        if self.explicit and needed > self.total:
            fewer = ", or take fewer `threads`" if work.threads > 1 else ""
            raise OptionError(
                f"`memory` is {size_text(self.total)}, and {work.persons:,} people and {work.items:,} {work.noun} with "
                f"{count(work.threads, 'thread')} need at least {size_text(needed)}, whatever is kept "
                f"on disk. Allow that much{fewer}."
            )
        self.room = max(self.total - needed + KEPT * work.in_a_block, 0)

    def keep(self, part: Any, share: float = 1.0, moved: Moved | None = None) -> Any:
        """The same part, whose arrays are counted, or have moved to a file where this share of the room is spent.
        Objects are changed in place; read-only arrays belong to another part, and stay."""
        moved = {} if moved is None else moved
        if isinstance(part, np.ndarray):
            return self._array(part, moved, share)
        if part is None or isinstance(part, int | float | str):  # most things; to ask for a dataclass takes longer
            return part
        if isinstance(part, tuple) and not hasattr(part, "_fields"):
            return tuple(map(partial(self.keep, share=share, moved=moved), part))
        if isinstance(part, dict) or sparse.issparse(part) or (is_dataclass(part) and not isinstance(part, type)):
            held = part if isinstance(part, dict) else vars(part)  # frozen or not: the numbers stay the same
            for name, value in list(held.items()):
                held[name] = self.keep(value, share, moved)
        return part

    def _array(self, array: Array, moved: Moved, share: float) -> Array:
        """The array, whose memory is counted until nothing shows it any more; or a copy of it on disk."""
        if array.nbytes < SMALL or array.dtype.hasobject or not array.flags.writeable:
            return array
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if isinstance(getattr(owner.base, "obj", owner.base), mmap.mmap):
            return array
        with self._lock:
            if id(owner) in self._kept:
                return array
            if self.used + owner.nbytes <= share * self.room:
                self._kept.add(id(owner))
                self.used += owner.nbytes
                weakref.finalize(owner, self._gone, id(owner), owner.nbytes).atexit = False
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
    if memory is not None:
        give_back_at_once()
    _in_force = Budget(memory, spill)
    return _in_force


def _apply(kernel: Kernel, *args: Any) -> Any:
    result = kernel(*args)
    if budget().spill.written:
        budget().spill.release()
    return result


class LocalEngine(Engine):
    """Threads of this process, by default as many as it may use; numpy and scipy release Python's lock in their loops.
    Results are added in the order of the parts, so they have the same bits for any number of threads."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError(f"`threads` is {threads}; it must be at least 1.")
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.threads = threads or available or 1
        self._pool: ThreadPoolExecutor | None = None

    def reserve(self, **size: Any) -> None:
        budget().reserve(threads=self.threads, **size)

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        """What the kernel gives for every part, in order; no more results wait to be taken than there are threads."""
        with one_blas_thread():  # the engine's threads are all there are
            if self.threads == 1 or len(parts) < 2:
                for part_and_own in zip(parts, *each, strict=True):
                    yield _apply(kernel, *part_and_own, *args)
                return
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads)
            waiting: deque[Future[Any]] = deque()
            for part_and_own in zip(parts, *each, strict=True):
                if len(waiting) > self.threads:
                    yield waiting.popleft().result()
                # In the context of the caller, which says how much a file may unpack to.
                waiting.append(self._pool.submit(copy_context().run, _apply, kernel, *part_and_own, *args))
            while waiting:
                yield waiting.popleft().result()

    def __getstate__(self) -> dict[str, Any]:
        return {"threads": self.threads, "_pool": None}  # the pool belongs to the process
