"""What a test found, the same for every test: a statistic, its degrees of freedom, p, a table and a sentence; how often
the checks of fit may alarm; tail probabilities, and p-values adjusted for asking many questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy  # whose parts are loaded when they are first asked
from numpy.typing import ArrayLike

from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.tables import Columns, Table, as_html, make_table
from spectral_irt.text import NAMED

# How often the five checks of fit may alarm when the model holds: all of them together, hence each. Other warnings
# (Hausman's test, reversed items, wrong keys) come besides, and are rarer than 1% because of their bars of size.
TOGETHER = 0.05  # chance of any alarm of these when the model holds
# Misfitting items; items harder for the less able than for the more able; dependent items; a second dimension; people.
CHECKS = 5
EACH = TOGETHER / CHECKS  # Bonferroni: the checks are not independent, and this holds whatever ties them
MIN_PEOPLE = 30  # informative people of a group: with fewer, standard errors of half a logit and more say nothing
MIN_PAIRED = 30  # who answered both items of a pair: with fewer, a correlation of 0.35 is chance
LEAST_DRAWS = 199  # of data sets: one or none of them is beyond a p-value of 1%
TOO_FEW_DRAWS = f"{{}}; a p-value of 1% takes {LEAST_DRAWS} draws or more, as in 1000."
EXCESS = 0.2  # Q3 above the average that is usually taken for dependence (Christensen et al. 2017)


def first_few(parts: Sequence[str], what: str = "") -> str:
    """The first five of many clauses of a sentence, and how many more there are.

    >>> first_few(["a", "b"]), first_few(list("abcdefg"), " items")
    ('a; b', 'a; b; c; d; e; and 2 more items')
    """
    text = "; ".join(parts[:NAMED])
    if len(parts) > NAMED:
        text += f"; and {len(parts) - NAMED:,} more{what}"
    return text


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """What a test of the model found: the statistic of all items together, its degrees of freedom (`df2`: of the
    denominator, where it is judged by an F distribution) and p; what was compared with what; the columns of `table()`;
    and findings."""

    name: ClassVar[str] = "Test"
    symbol: ClassVar[str] = "T"

    statistic: float
    df: float
    p: float
    df2: float = float("inf")
    compared: str = ""
    columns: Columns = field(default_factory=dict)
    frame_kind: str | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in one line."""
        df = f"{self.df:.1f}" if self.df % 1 else f"{int(self.df)}"
        return f"{self.name}: {self.symbol} = {self.statistic:z.3f}, df = {df}, p = {self.p:.3g}; {self.compared}"

    def __repr__(self) -> str:
        return f"<{self.sentence}>"

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, and the first rows of the table."""
        return as_html(self.sentence, self.columns)

    def table(self) -> Table:
        """The details, item by item."""
        return make_table(self.columns, self.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        return {"test": self.name, "statistic": self.statistic, "df": self.df, "df2": self.df2, "p": self.p}


def chi2_tail(statistic: ArrayLike, df: ArrayLike) -> Any:
    """P(chi-square with `df` degrees of freedom > statistic); NaN stays NaN."""
    return scipy.special.chdtrc(df, statistic)


def two_sided(z: ArrayLike, df: ArrayLike = np.inf) -> Any:
    """P(|normal| > |z|), or P(|t| > |z|) with so many degrees of freedom."""
    size = -np.abs(z)
    normal = np.isinf(df)
    if np.all(normal):
        return 2 * scipy.special.ndtr(size)
    student = scipy.special.stdtr(np.where(normal, 1.0, df), size)
    return 2 * np.where(normal, scipy.special.ndtr(size), student)


def wald_tail(statistic: ArrayLike, df: ArrayLike, df2: ArrayLike = np.inf) -> Any:
    """P of a Wald statistic this large where its covariance has `df2` degrees of freedom: Hotelling's distribution.

    T (df2 - df + 1) / (df2 df) is F with df and df2 - df + 1 degrees of freedom, and T chi-square for infinite `df2`;
    NaN where `df2` is not larger than `df` - 1.
    """
    statistic, df, df2 = np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in (statistic, df, df2)))
    chi2 = chi2_tail(statistic, df)
    if np.all(np.isinf(df2)):
        return chi2
    finite = np.where(np.isinf(df2), df + 1, df2)
    df_of_f = finite - df + 1
    enough = df_of_f > 0
    df_of_f = np.where(enough, df_of_f, 1.0)
    tail = scipy.special.fdtrc(df, df_of_f, np.maximum(statistic, 0) * df_of_f / (finite * df))
    return np.where(np.isinf(df2), chi2, np.where(enough, tail, np.nan))


def mcnemar(first_only: Floats, second_only: Floats) -> Floats:
    """Two-sided p of "both are right equally often", from the numbers of cases that only one of the two has right.

    Given that the two differ, either is as likely to be the right one: min(b, c) of b + c tosses of a coin, twice.
    """
    b = np.asarray(first_only, dtype=float)
    c = np.asarray(second_only, dtype=float)
    p: Floats = np.minimum(1.0, 2 * scipy.special.bdtr(np.minimum(b, c), (b + c).astype(np.int64), 0.5))
    return p


def p_columns(p: Floats) -> Columns:
    """`p, p_holm, p_bh` of many tests: as they are, adjusted by Holm, and by Benjamini and Hochberg."""
    return {"p": p, "p_holm": adjust_p(p, "holm"), "p_bh": adjust_p(p, "bh")}


def adjust_p(p_values: ArrayLike, method: str) -> Floats:
    """p-values adjusted for asking many questions at once; NaN are left out.

    "holm": rejecting those below 5% makes any false rejection at all a 5% event. The k-th smallest of n is multiplied
    by n - k + 1, and none may fall below a smaller one's. "bh" (Benjamini and Hochberg): of those below 5%, about 5%
    are expected to be false. The k-th smallest is multiplied by n / k, and none may exceed a larger one's.

    >>> adjust_p([0.01, 0.04, 0.03], "holm").round(6).tolist(), adjust_p([0.01, 0.04, 0.03], "bh").round(6).tolist()
    ([0.03, 0.06, 0.06], [0.03, 0.04, 0.04])
    """
    p = np.asarray(p_values, dtype=float)
    places = np.flatnonzero(~np.isnan(p))
    order = places[np.argsort(p[places], kind="stable")]
    rising = p[order]
    n = len(order)
    if method == "holm":
        of_rising = np.maximum.accumulate(rising * np.arange(n, 0, -1))
    else:
        of_rising = np.minimum.accumulate((rising * n / np.arange(1, n + 1))[::-1])[::-1]
    p_adjusted = np.full(len(p), np.nan)
    p_adjusted[order] = np.minimum(of_rising, 1.0)
    return p_adjusted
