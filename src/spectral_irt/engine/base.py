"""What every engine offers, a kernel applied to parts of the data and the sum of what it gives; and the engine of this
process: threads over parts in memory, or mapped from files where memory does not suffice.

A part is whatever the engine was given or made: a block of people, or what a kernel prepared from one. Parts stay where
the engine keeps them; only arguments go there, and only sums or per-person results come back.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from spectral_irt.engine.memory import budget
from spectral_irt.errors import OptionError

Kernel = Callable[..., Any]
Each = Sequence[Sequence[Any]]  # sequences with one entry for every part


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
        return added(self.map(kernel, parts, *args, each=each))

    def prepare(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Prepared:
        """What the kernel gives for every part, kept where the parts are."""
        return self.hold(self.map(kernel, parts, *args, each=each))

    def hold(self, parts: Iterable[Any]) -> Prepared:
        """Parts that were made here, kept where the engine keeps parts; they are taken one by one."""
        return Prepared(tuple(self.keep(part) for part in parts), self)

    def keep(self, part: Any) -> Any:
        return part

    def reserve(self, **size: Any) -> None:  # noqa: B027 -- most engines need not know
        """Told how large the work is, before it begins; an error if there is not enough memory for it."""

    def map_and_sum(self, kernel: Kernel, parts: Sequence[Any], *args: Any) -> tuple[Prepared, Any]:
        """New parts and a sum in one go: the kernel gives a pair, the new part and what is to be added."""
        new = []

        def sums() -> Iterator[Any]:
            for part, more in self.map(kernel, parts, *args):
                new.append(self.keep(part))
                yield more

        total = added(sums())
        return Prepared(tuple(new), self), total

    def fetch(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(parts)


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


def added(results: Iterable[Any]) -> Any:
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


def gathered(results: Iterable[Any]) -> Any:
    """Arrays one after the other, or tuples of arrays, column by column."""
    results = list(results)
    if isinstance(results[0], tuple):
        return tuple(np.concatenate(column) for column in zip(*results, strict=True))
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
def one_blas_thread() -> Iterator[None]:
    """Within it matrix libraries use one thread. The limit is the whole process's: whoever finds it set leaves it
    alone, and whoever set it undoes it, so that it cannot be left behind."""
    if not _held.acquire(blocking=False):
        yield
        return
    try:
        with _libraries("scipy.linalg" in sys.modules).limit(limits=1):
            yield
    finally:
        _held.release()


def _applied(kernel: Kernel, *args: Any) -> Any:
    found = kernel(*args)
    budget().spill.release()
    return found


class LocalEngine(Engine):
    """Threads of this process, by default as many as it may use; numpy and scipy release Python's lock in their loops.
    Results are added in the order of the parts, so they have the same bits for any number of threads."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError(f"`threads` is {threads}; it must be at least 1.")
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.threads = threads or available or 1
        self._pool: ThreadPoolExecutor | None = None

    def keep(self, part: Any) -> Any:
        return budget().keep(part)

    def reserve(self, **size: Any) -> None:
        budget().reserve(threads=self.threads, **size)

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        """What the kernel gives for every part, in order; no more results wait to be taken than there are threads."""
        with one_blas_thread():  # the engine's threads are all there are
            if self.threads == 1 or len(parts) < 2:
                yield from (_applied(kernel, *own, *args) for own in zip(parts, *each, strict=True))
                return
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads)
            waiting: deque[Future[Any]] = deque()
            for own in zip(parts, *each, strict=True):
                if len(waiting) > self.threads:
                    yield waiting.popleft().result()
                # In the context of the caller, which says how much a file may unpack to.
                waiting.append(self._pool.submit(copy_context().run, _applied, kernel, *own, *args))
            while waiting:
                yield waiting.popleft().result()

    def __getstate__(self) -> dict[str, Any]:
        return {"threads": self.threads, "_pool": None}  # the pool belongs to the process
