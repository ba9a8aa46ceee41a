"""A finding: something in the data or the fit that its reader should know, said in one sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["note", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """What is odd, and what to do.

    Attributes
    ----------
    code : str
        A stable short name ("extreme_items"), for programs.
    severity : "note", "warning" or "error"
        A note needs no action; a warning changes how results may be read; an error forbids an estimate.
    sentence, remedy : str
        For people.
    items, number : tuple, int
        Labels of all items it is about; how many answers, where these were left out or counted as wrong.

    >>> print(Finding("extreme_items", "warning", "Everybody answered q1 right.", "Leave it out."))
    Everybody answered q1 right. Leave it out.
    """

    code: str
    severity: Severity
    sentence: str
    remedy: str = ""
    items: tuple[Any, ...] = field(default=(), repr=False)
    number: int = field(default=0, repr=False)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".strip()
