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
    items : tuple
        Labels of the items it is about; all of them.
    number : int
        How many answers it is about, where these were left out or counted as wrong.

    Examples
    --------
    >>> from spectral_irt import Responses, SpectralRasch
    >>> fit = SpectralRasch().fit([[1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 1]])
    >>> [finding.code for finding in fit.findings_][:1]
    ['extreme_items']
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
