"""What an analysis computed is kept, under what was really asked; and methods that give tables."""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from spectral_irt.tables import Columns, Table, make_table

T = TypeVar("T")
P = ParamSpec("P")


class Cache:
    """Results by what was asked: a name, and the content of every argument. Several threads may ask."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self._known: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def once(self, asked: tuple[Any, ...], compute: Callable[[], T], say: str = "") -> T:
        """What was computed for this question, or is now; `say` goes to the progress before it is computed."""
        key = content(asked)
        with self._lock:
            if key not in self._known:
                if say:
                    self.tell(say)
                self._known[key] = compute()
            found: T = self._known[key]
            return found


def content(value: Any) -> Hashable:
    """Something that is equal for arguments of equal content, and only for these.

    >>> content(np.array([1, 2])) == content(np.array([1, 2])), content(["a", "b"]) == content(["a", "c"])
    (True, False)
    >>> content({"g": [1, 2]}) == content({"g": [2, 1]}), content(1) == content(True)
    (False, False)
    """
    if isinstance(value, Mapping):
        return ("mapping", content(list(value)), content(list(value.values())))
    if isinstance(value, tuple):
        return ("tuple", *(content(one) for one in value))
    if not isinstance(value, np.ndarray) and hasattr(value, "to_list"):
        value = value.to_list()  # a column of a dataframe
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
        return ("array", value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest())
    if isinstance(value, list | range | np.ndarray):
        value = tuple(value.tolist() if isinstance(value, np.ndarray) else value)
        return ("list", tuple(sorted({type(one).__name__ for one in value})), _hashable(value))
    return (type(value).__name__, _hashable(value))


def _hashable(value: Any) -> Hashable:
    """The value itself; what has no hash is of unknown content, and never found again."""
    with suppress(TypeError):
        hash(value)
        return value
    return object()


def once(say: str = "") -> Callable[[Callable[Concatenate[Any, P], T]], Callable[Concatenate[Any, P], T]]:
    """For a method: what it gives is kept under its name and the content of its arguments; see `Cache.once`."""

    def of(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
        signature = inspect.signature(method)

        @wraps(method)
        def found(self: Any, *args: P.args, **given: P.kwargs) -> T:
            asked = signature.bind(self, *args, **given)
            asked.apply_defaults()
            key = (method.__name__, *list(asked.arguments.values())[1:])
            result: T = self._cache.once(key, lambda: method(self, *args, **given), say)
            return result

        return found

    return of


def tabled(method: Callable[Concatenate[Any, P], Columns]) -> Callable[Concatenate[Any, P], Table]:
    """A method that makes columns, as one that gives a table; `columns_of(study.persons, "ml")` has the columns."""

    @wraps(method)
    def table(self: Any, *args: P.args, **given: P.kwargs) -> Table:
        return make_table(method(self, *args, **given), self.responses.frame_kind)

    table.columns = method  # type: ignore[attr-defined]
    table.__signature__ = inspect.signature(method).replace(return_annotation="Table")  # type: ignore[attr-defined]
    return table


def columns_of(table: Callable[P, Any], *args: P.args, **given: P.kwargs) -> Columns:
    """The columns of a table that a method of an analysis gives."""
    bound: Any = table
    found: Columns = bound.__func__.columns(bound.__self__, *args, **given)
    return found
