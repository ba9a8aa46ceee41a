"""An engine in this process: threads over parts in memory, or mapped from files where memory does not suffice."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import lru_cache
from threading import Lock
from typing import Any

from spectral_irt.engine.base import Each, Engine, Kernel
from spectral_irt.engine.memory import budget
from spectral_irt.errors import OptionError

# numpy's matrix library starts a thread on every processor for every product. Inside an engine, which keeps all
# processors busy itself, and for small matrices, these threads mostly wait for each other.
_held = Lock()  # by whoever has set the limit, until it is undone


@lru_cache(maxsize=2)
def _libraries(with_scipy: bool) -> list[Any]:
    """The matrix libraries of this process; looked up anew once scipy has brought its own."""
    from threadpoolctl import ThreadpoolController  # here, so that importing the package does not pay for it

    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it matrix libraries use one thread. The limit is the whole process's: whoever finds it set leaves it
    alone, and whoever set it undoes it, so that it cannot be left behind."""
    if not _held.acquire(blocking=False):
        yield
        return
    before: list[tuple[Any, int]] = []
    try:
        before = [(one, one.get_num_threads()) for one in _libraries("scipy.linalg" in sys.modules)]
        for library, _ in before:
            library.set_num_threads(1)
        yield
    finally:
        for library, threads in before:
            library.set_num_threads(threads)
        _held.release()


def available_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine(Engine):
    """Threads of this process, by default as many as it may use; numpy and scipy release Python's lock in their loops.
    Results are added in the order of the parts, so they have the same bits for any number of threads."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError(f"`threads` is {threads}; it must be at least 1.")
        self.threads = threads or available_processors()
        self._pool: ThreadPoolExecutor | None = None

    def keep(self, part: Any) -> Any:
        return budget().keep(part)

    def reserve(self, persons: int, items: int, answers: int) -> None:
        budget().reserve(persons=persons, items=items, threads=self.threads, answers=answers)

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        """What the kernel gives for every part, in order; no more results wait to be taken than there are threads."""
        with one_blas_thread():  # the engine's threads are all there are
            if self.threads == 1 or len(parts) < 2:
                yield from (kernel(*own, *args) for own in zip(parts, *each, strict=True))
                return
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads)
            waiting: deque[Future[Any]] = deque()
            for own in zip(parts, *each, strict=True):
                if len(waiting) > self.threads:
                    yield waiting.popleft().result()
                # In the context of the caller, which says how much a file may unpack to.
                waiting.append(self._pool.submit(copy_context().run, kernel, *own, *args))
            while waiting:
                yield waiting.popleft().result()

    def __getstate__(self) -> dict[str, Any]:
        return {"threads": self.threads, "_pool": None}  # the pool belongs to the process
