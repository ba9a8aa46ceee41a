"""A sum over users, done by threads of this process over blocks in memory or memory-mapped from disk."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from spectral_irt.errors import OptionError, option
from spectral_irt.responses.block import add_parts

Kernel = Callable[..., Any]


class LocalEngine:
    """Adds a kernel over blocks.

    A kernel is a pure function `kernel(block, *args)` that returns an array or a tuple of arrays of the same shape for
    every block. The blocks are added in their order whatever the number of threads, so results have the same bits.

    Parameters
    ----------
    threads : int, optional
        Default: as many as this process may use. numpy and scipy let go of Python's lock in their loops.
    """

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise OptionError(option("threads"), f" is {threads}; it must be at least 1.")
        self.threads = threads or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0])
        self._pool: ThreadPoolExecutor | None = None

    def map(self, kernel: Kernel, blocks: Sequence[Any], *args: Any) -> Iterator[Any]:
        """`kernel(block, *args)` of every block, in order; no more results wait to be taken than there are threads."""
        if self.threads == 1 or len(blocks) < 2:
            yield from (kernel(block, *args) for block in blocks)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        waiting: deque[Future[Any]] = deque()
        for block in blocks:
            if len(waiting) > self.threads:
                yield waiting.popleft().result()
            waiting.append(self._pool.submit(kernel, block, *args))
        while waiting:
            yield waiting.popleft().result()

    def sum(self, kernel: Kernel, blocks: Sequence[Any], *args: Any) -> Any:
        """The sum of `kernel(block, *args)` over the blocks: an array, or a tuple of arrays."""
        return add_parts(self.map(kernel, blocks, *args))
