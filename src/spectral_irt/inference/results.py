"""What a test found, the same for every test: a statistic, its degrees of freedom, p, a table and a sentence; and how
often the checks of fit may alarm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spectral_irt.data import Finding
from spectral_irt.errors import NAMED
from spectral_irt.tables import Columns, make_table

# How often the five checks of fit may alarm when the model holds: all of them together, hence each. Other warnings
# (Hausman's test, reversed items, wrong keys) come besides, and are rarer than 1% because of their bars of size.
TOGETHER = 0.05  # chance of any alarm of these when the model holds
# Misfitting items; items harder for the less able than for the more able; dependent items; a second dimension; people.
CHECKS = 5
EACH = TOGETHER / CHECKS  # Bonferroni: the checks are not independent, and this holds whatever ties them


def first_few(parts: Sequence[str], what: str = "") -> str:
    """The first five of many clauses of a sentence, and how many more there are.

    >>> first_few(["a", "b"]), first_few(list("abcdefg"), " items")
    ('a; b', 'a; b; c; d; e; and 2 more items')
    """
    more = len(parts) - NAMED
    return "; ".join(parts[:NAMED]) + (f"; and {more:,} more{what}" if more > 0 else "")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """What a test of the model found.

    Attributes
    ----------
    statistic, df, p : float, int, float
        Of all items together, and the chance of so large a statistic under the model.
    df2 : float
        Degrees of freedom of the denominator where the statistic is judged by an F distribution; else infinite.
    compared : str
        What was compared with what.
    columns : columns of `table()`
    findings : tuple of Finding
    """

    name: ClassVar[str] = "Test"
    symbol: ClassVar[str] = "T"

    statistic: float
    df: int
    p: float
    df2: float = float("inf")
    compared: str = ""
    columns: Columns = field(default_factory=dict)
    frame_kind: str | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in one line."""
        return f"{self.name}: {self.symbol} = {self.statistic:z.3f}, df = {self.df}, p = {self.p:.3g}; {self.compared}"

    def __repr__(self) -> str:
        return f"<{self.sentence}>"

    def table(self) -> Any:
        """The details, item by item."""
        return make_table(self.columns, self.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        return {"test": self.name, "statistic": self.statistic, "df": self.df, "df2": self.df2, "p": self.p}
