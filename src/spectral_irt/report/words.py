"""Numbers in words and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NONE = "–"  # where there is no number


def number(value: Any, digits: int = 2, *, p: bool = False) -> str:
    """A number with so many digits after the point; of a p-value, at least the least that they can say.

    >>> number(1234.5, 1), number(None), number(float("inf")), number(-0.001), number(1e-9, 3, p=True)
    ('1,234.5', '–', '∞', '0.00', '<0.001')
    """
    if value is None or isinstance(value, str):
        return value or NONE
    value = float(value)
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"<{10**-digits:g}" if p and value < 10**-digits else f"{value:z,.{digits}f}"


def chance(p: Any) -> str:
    """A p-value.

    >>> chance(0.0432), chance(1e-9), chance(None)
    ('p = 0.04', 'p < 0.001', 'p –')
    """
    if p is None:
        return f"p {NONE}"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def count(n: Any, one: str, many: str = "") -> str:
    """
    >>> count(1, "item"), count(1200, "person", "people")
    ('1 item', '1,200 people')
    """
    n = int(n)
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def within(record: Mapping[str, Any] | None, *path: str) -> Any:
    """What a record has at this place; None where it has nothing.

    >>> within({"a": {"b": 1}}, "a", "b"), within({"a": None}, "a", "b")
    (1, None)
    """
    found: Any = record
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found
