"""A row of the battery: one number from outside, ours, how close they have to be and why; and the one runner of all.

A case stands for the rows of one table: the same quantity for every item, threshold, score or group. What fails, or
ends in an error, is a row like the others, so that it stays in view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from validation.lab import Lab

Values = Mapping[str, float]  # by the label of an item, a threshold, a score; "" of a single number
Compute = Callable[["Lab", str], Values]  # of a data set by its name

AGREES = "agrees"
FAILS = "FAILS"
ERROR = "ERROR"


class Case(NamedTuple):
    """Numbers of one kind, of one data set, from one source.

    `relative` is added to the tolerance, times the number from outside. `converged` is an independent number where the
    published one is not the maximum of its own likelihood: then ours is compared with that, and the published stands
    beside it.
    """

    part: str
    quantity: str
    data: str
    source: str  # the program with its version, the book, or the formula
    outside: Compute
    ours: Compute
    tolerance: float | Callable[[Lab], float]  # of a study it goes by the number of data sets
    reason: str  # of the tolerance
    file: str = ""  # where the numbers from outside are kept; its hash is a part of the row
    relative: float = 0.0
    converged: Compute | None = None
    slow: bool = False  # left out by --quick

    @property
    def name(self) -> str:
        return f"{self.quantity}, {self.data}"


class Row(NamedTuple):
    """One number."""

    part: str
    quantity: str
    data: str
    label: str
    outside: float
    ours: float
    converged: float
    difference: float
    tolerance: float
    verdict: str
    source: str
    file: str
    sha256: str
    reason: str


def run(cases: Iterable[Case], lab: Lab) -> Iterator[Row]:
    """The rows of all cases."""
    for case in cases:
        sha256 = lab.sha256(case.file)
        if callable(case.tolerance):
            case = case._replace(tolerance=case.tolerance(lab))
        try:
            outside = case.outside(lab, case.data)
            converged = {} if case.converged is None else case.converged(lab, case.data)
            ours = case.ours(lab, case.data)
        except Exception as error:  # the other rows are still to be seen
            what = f"{type(error).__name__}: {error}"
            yield _row(case, "", math.nan, math.nan, math.nan, sha256)._replace(verdict=ERROR, reason=what)
            continue
        for label, value in outside.items():
            yield _row(case, label, value, ours.get(label, math.nan), converged.get(label, math.nan), sha256)


def _row(case: Case, label: str, outside: float, ours: float, converged: float, sha256: str) -> Row:
    target = outside if math.isnan(converged) else converged
    difference = ours - target
    assert not callable(case.tolerance)
    tolerance = case.tolerance + case.relative * abs(target)
    verdict = FAILS
    if abs(difference) <= tolerance or (ours == target):  # two infinite numbers have no difference
        verdict = AGREES
    return Row(
        part=case.part,
        quantity=case.quantity,
        data=case.data,
        label=label,
        outside=outside,
        ours=ours,
        converged=converged,
        difference=difference,
        tolerance=tolerance,
        verdict=verdict,
        source=case.source,
        file=case.file,
        sha256=sha256,
        reason=case.reason,
    )
