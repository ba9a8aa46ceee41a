"""Matrix libraries (BLAS) held to one thread, where the threads of an engine or the size of a matrix make more a waste.

numpy's matrix library starts a thread on every processor for every product. Inside an engine, which keeps all
processors busy itself, and for small matrices, these threads mostly wait for each other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

_held = Lock()  # by whoever has set the limit, until it is undone


@lru_cache(maxsize=2)
def _libraries(with_scipy: bool) -> list[Any]:
    """The matrix libraries of this process; looked up anew once scipy has brought its own."""
    from threadpoolctl import ThreadpoolController  # here, so that importing the package does not pay for it

    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it matrix libraries use one thread.

    The limit is the whole process's. Whoever finds it set, further inside or in another thread, leaves it alone, and
    whoever set it undoes it: so it cannot be left behind, though another thread may lose it before its end.
    """
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
