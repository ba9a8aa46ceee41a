"""Pieces of Markdown made from tables of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reproduction.trials import Row


class Full(str):
    """A table, with its caption if any, that goes to the page of full tables."""

    @classmethod
    def of(cls, *parts: str) -> Full:
        return cls("\n\n".join(parts))


def number(value: float, digits: int = 3) -> str:
    """A number with so many decimals, a dash for none.

    >>> number(0.70651), number(float("nan")), number(-0.5, 1)
    ('0.707', '–', '−0.5')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def figures(value: float, digits: int = 2) -> str:
    """A positive number to so many significant figures, thousands in words: seconds, ratios.

    >>> figures(0.0123), figures(19.23), figures(156_000), figures(1.0003, 3)
    ('0.012', '19', '156k', '1.00')
    """
    if math.isnan(value):
        return "–"
    if value >= 1000:
        return f"{figures(value / 1000, 3)}k"
    shown = f"{value:#.{digits}g}"
    return f"{float(shown):g}" if "e" in shown else shown.rstrip(".")


def between(values: Iterable[float], show: Callable[[float], str] = figures) -> str:
    """`0.97 to 1.01`, or the one number if all show the same."""
    texts = [show(value) for value in (min(known), max(known))] if (known := [v for v in values if v == v]) else ["–"]
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; columns after the first `left` are flush right."""
    lines = [
        "| " + " | ".join(head) + " |",
        "|" + "|".join("---" if k < left else "---:" for k in range(len(head))) + "|",
    ]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def pick(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def one(rows: Iterable[Row], **wanted: object) -> Row | None:
    """The first such row, or None."""
    found = pick(rows, **wanted)
    return found[0] if found else None


def values(rows: Iterable[Row], name: str) -> list[Any]:
    """The different values of a column, in order."""
    return list(dict.fromkeys(row[name] for row in rows))


def grid(rows: Sequence[Row], along: str, measure: str, head: str, show: Callable[[float], str]) -> Full:
    """Methods down, a column for every value of `along`; mean and, in brackets, its standard error."""
    points = sorted(set(values(rows, along)))
    lines = []
    for method in values(rows, "method"):
        line = [method]
        for point in points:
            row = one(rows, method=method, **{along: point})
            line.append("–" if row is None else with_error(row, measure, show))
        lines.append(line)
    return Full(table([head, *(f"{along} = {point:,}" for point in points)], lines))


def with_error(row: Mapping[str, float], measure: str, show: Callable[[float], str]) -> str:
    error = row[f"{measure}_se"]
    return show(row[measure]) if math.isnan(error) else f"{show(row[measure])} ({figures(error, 1)})"


def ratios(rows: Sequence[Row], method: str, to: str, measure: str, along: str) -> list[float]:
    """measure of one method over that of another, at every point of `along`."""
    out = []
    for point in sorted(set(values(rows, along))):
        a, b = (one(rows, method=name, **{along: point}) for name in (method, to))
        if a and b:
            out.append(a[measure] / b[measure])
    return out
