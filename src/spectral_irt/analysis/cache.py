"""What an analysis computed is kept, under what was really asked; and methods that give tables."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from spectral_irt.notebook import progress_line
from spectral_irt.tables import Columns, Table, make_table

T = TypeVar("T")
P = ParamSpec("P")


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
        return ("tuple", *map(content, value))
    if not isinstance(value, np.ndarray) and hasattr(value, "to_list"):
        value = value.to_list()  # a column of a dataframe
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
        return ("array", value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest())
    kind: tuple[str, ...] = (type(value).__name__,)
    if isinstance(value, list | range | np.ndarray):
        if isinstance(value, np.ndarray):
            value = value.tolist()
        value = tuple(value)
        kind = ("list", *sorted({type(entry).__name__ for entry in value}))
    try:
        hash(value)
    except TypeError:
        value = object()  # of unknown content, and never found again
    return (*kind, value)


def once(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """For a question to an analysis: the answer is kept under its name, the content of its arguments, and how abilities
    are estimated. Several threads may ask."""
    signature = inspect.signature(method)

    @wraps(method)
    def answer(study: Any, *args: P.args, **options: P.kwargs) -> T:
        question = signature.bind(study, *args, **options)
        question.apply_defaults()
        key = content((method.__name__, study.ability, study.population, *list(question.arguments.values())[1:]))
        with study._lock:
            if key not in study._known:
                with progress_line(study._tell):
                    study._known[key] = method(study, *args, **options)
            result: T = study._known[key]
            return result

    return answer


def as_table(method: Callable[Concatenate[Any, P], Columns]) -> Callable[Concatenate[Any, P], Table]:
    """A method that makes columns, as one that gives a table; `columns_of(study.persons, "ml")` has the columns."""

    @wraps(method)
    def table(self: Any, *args: P.args, **given: P.kwargs) -> Table:
        return make_table(method(self, *args, **given), self.responses.frame_kind)

    table.columns = method  # type: ignore[attr-defined]
    table.__signature__ = inspect.signature(method).replace(return_annotation="Table")  # type: ignore[attr-defined]
    return table


def columns_of(table: Callable[P, Any], *args: P.args, **options: P.kwargs) -> Columns:
    """The columns of a table that a method of an analysis gives."""
    bound: Any = table
    columns: Columns = bound.__func__.columns(bound.__self__, *args, **options)
    return columns
