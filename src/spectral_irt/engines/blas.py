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

_lock = Lock()
_inside = 0  # how many are within `one_blas_thread`, in all threads of this process
_before: list[tuple[Any, int]] = []  # each library, and the threads it had before the first of them


@lru_cache(maxsize=2)
def _libraries(with_scipy: bool) -> list[Any]:
    """The matrix libraries of this process; looked up anew once scipy has brought its own."""
    from threadpoolctl import ThreadpoolController  # here, so that importing the package does not pay for it

    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it matrix libraries use one thread. It may be entered again inside, and from several threads at once."""
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [(one, one.get_num_threads()) for one in _libraries("scipy.linalg" in sys.modules)]
            for library, _ in _before:
                library.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for library, threads in _before:
                    library.set_num_threads(threads)
