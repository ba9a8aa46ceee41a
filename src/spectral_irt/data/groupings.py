"""Groups of people by a column about them: its values, or intervals of numbers such as age.

`fit --group` asks for them, and a second fit that splits an item by groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.data.block import Floats
from spectral_irt.data.labels import DECIMAL_COMMA, names_nothing
from spectral_irt.errors import Finding, OptionError

MOST_VALUES = 10  # of numbers that stand for groups (grade, site); more are likely a quantity such as age
ENOUGH = 30  # persons with the same number, who may be a group that is compared


class Interval(str):
    """The label of the group of numbers from `low` on. Intervals sort by that, not by their text."""

    low: float

    def __new__(cls, text: str, low: float) -> Interval:
        label = super().__new__(cls, text)
        label.low = low
        return label

    def __getnewargs__(self) -> tuple[str, float]:  # type: ignore[override]
        return str(self), self.low

    def __lt__(self, other: str) -> bool:
        return self.low < other.low if isinstance(other, Interval) else str.__lt__(self, other)


class Grouping(NamedTuple):
    """The group of every person by a column, None without one; and what was done to numbers."""

    labels: list[Any]
    findings: tuple[Finding, ...] = ()


def grouping_of(column: str, values: Sequence[Any], cuts: Sequence[float] = ()) -> Grouping:
    """The groups of a column about people: its values, or intervals of numbers between `cuts`.

    Without cuts a quantity, such as age in years, is cut at its median: numbers with fractions, or more than ten
    different ones of which those shared by 30 persons or more have less than half of all persons, or more than ten in a
    column that is called age.

    >>> grouping_of("age", [19, 70, 65, None], [65]).labels
    ['under 65', '65 and over', '65 and over', None]
    """
    numbers = numbers_of(values)
    if numbers is None:
        if cuts:
            text = next(value for value in values if numbers_of([value]) is None)
            at = ", ".join(f"{cut:g}" for cut in cuts)
            raise OptionError(f"the column {column!r} is to be cut at {at}, and holds {text!r}, which is no number.")
        return Grouping(list(values))
    finite = numbers[np.isfinite(numbers)]
    if cuts:
        return Grouping(_intervals(numbers, cuts))
    if not _is_quantity(column, finite):
        return Grouping(list(values))
    cut = _halving_cut(finite)
    sentence = (
        f"The column {column!r} holds numbers; it was cut at its median into under {cut:g}, and {cut:g} and over."
    )
    thirds = dict.fromkeys(np.quantile(finite, [1 / 3, 2 / 3], method="nearest").tolist())
    example = ",".join(f"{value:g}" for value in thirds)
    remedy = f"Say where to cut it, as in `group='{column}:{example}'`, for other groups."
    return Grouping(_intervals(numbers, [cut]), (Finding("cut_at_median", "note", sentence, remedy),))


def numbers_of(values: Sequence[Any]) -> Floats | None:
    """The values as numbers, NaN where there is none; None if one of them is something else."""
    try:
        numbers = np.array([np.nan if names_nothing(value) else _number(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return None if np.isinf(numbers).any() else numbers


def _number(value: Any) -> float:
    """A number, of which the decimal sign may be a comma."""
    with_comma = re.match(DECIMAL_COMMA, value) if isinstance(value, str) else None
    return float(value if with_comma is None else ".".join(with_comma.groups()))


def _is_quantity(column: str, known: Floats) -> bool:
    """Whether numbers measure something, and do not name groups."""
    levels, sizes = np.unique(known, return_counts=True)
    if len(levels) <= MOST_VALUES:
        return False
    fractions = bool((levels != np.floor(levels)).any())
    named_age = column.strip().lower().split("_")[0] in ("age", "years")
    in_groups = int(sizes[sizes >= ENOUGH].sum())
    return fractions or named_age or 2 * in_groups < len(known)


def _halving_cut(known: Floats) -> float:
    """The value that divides people into those below it and the others most equally."""
    levels = np.unique(known)[1:]
    share_below = np.searchsorted(np.sort(known), levels) / len(known)
    return float(levels[np.argmin(np.abs(share_below - 0.5))])


def _intervals(numbers: Floats, cuts: Sequence[float]) -> list[Interval | None]:
    """The interval of each number, which begins with the cut."""
    labels = [Interval(f"under {cuts[0]:g}", -np.inf)]
    for low, high in pairwise(cuts):
        labels.append(Interval(f"{low:g} to under {high:g}", low))
    labels.append(Interval(f"{cuts[-1]:g} and over", cuts[-1]))
    place = np.searchsorted(np.asarray(cuts), numbers, side="right")
    return [None if np.isnan(x) else labels[k] for x, k in zip(numbers.tolist(), place.tolist(), strict=True)]
