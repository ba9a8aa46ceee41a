"""An engine in this process: threads over parts in memory, or mapped from files where memory does not suffice."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from spectral_irt.engines.blas import one_blas_thread
from spectral_irt.engines.engine import Each, Engine, Kernel
from spectral_irt.engines.memory import Budget, budget
from spectral_irt.errors import OptionError, option


class LocalEngine(Engine):
    """Threads of this process. Results are added in the order of the parts, so they have the same bits for any number.

    Parameters
    ----------
    threads : int, optional
        Default: as many as this process may use. numpy and scipy release Python's lock in their loops.
    memory : Budget, optional
        How much memory prepared parts may take before they are moved to temporary files; by default the process's
        (`set_memory`).
    """

    def __init__(self, threads: int | None = None, memory: Budget | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError(option("threads"), f" is {threads}; it must be at least 1.")
        self.threads = threads or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0])
        self.memory = memory
        self._pool: ThreadPoolExecutor | None = None

    def keep(self, part: Any) -> Any:
        """The part in memory while the budget has room, else mapped from a temporary file."""
        return (self.memory or budget()).keep(part)

    def reserve(self, persons: int, items: int) -> None:
        """See that the budget has room for tables of so many people and items, and for the work of the threads."""
        (self.memory or budget()).reserve(persons=persons, items=items, threads=self.threads)

    def make_room(self, size: int) -> None:
        """Have blocks forget what was made of them, where so many bytes would not fit beside it."""
        budget().make_room(size)

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
                waiting.append(self._pool.submit(kernel, *own, *args))
            while waiting:
                yield waiting.popleft().result()

    def __getstate__(self) -> dict[str, Any]:
        return {"threads": self.threads, "memory": None, "_pool": None}  # both belong to the process
