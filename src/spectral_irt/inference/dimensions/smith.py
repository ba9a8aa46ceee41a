"""Smith's test of one dimension: do two subsets of items measure each person alike?

Each person is measured twice at the thresholds of the calibration, by either subset alone, and

    t = (measure by the first - measure by the second) / sqrt(se_1^2 + se_2^2).

If the items measure one thing, |t| is beyond 1.96 in about 5% of the persons. The share has an exact binomial interval
(Clopper & Pearson), and its lower end is what is compared with 5%. By default the subsets are the items that load
positively and negatively on the first residual contrast, which is where a second dimension would show; chosen by the
same responses, they differ a little by chance alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.calibration import Z95
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Mask
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.persons.abilities import abilities
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import listed

LEVEL = 0.05  # of each t-test, and of the interval
FEWEST_PERSONS = 20  # with fewer, an interval of the share reaches from nothing to a fifth
FEWEST_ITEMS = 2  # of a subset


@dataclass(frozen=True, eq=False, repr=False)
class SmithTest:
    """What `smith_test` found.

    Attributes
    ----------
    first, second : labels
        The items of the two subsets.
    persons, measures, errors : labels, persons x 2, persons x 2
        Persons with a score between the ends on both subsets; their measures by each, and standard errors.
    n_significant, share, ci_low, ci_high : int, float, float, float
        How many t-tests are significant at 5%, of how large a share, and its exact 95% interval.
    correlation : float
        Of the two measures.
    """

    first: NDArray[Any]
    second: NDArray[Any]
    persons: NDArray[Any]
    measures: Floats
    errors: Floats
    n_significant: int
    share: float
    ci_low: float
    ci_high: float
    correlation: float
    frame_kind: str | None

    @property
    def t(self) -> Floats:
        return np.asarray((self.measures[:, 0] - self.measures[:, 1]) / np.sqrt((self.errors**2).sum(axis=1)))

    def table(self) -> Table:
        """`person, ability_1, se_1, ability_2, se_2, t` of every person who was compared."""
        columns: Columns = {"person": self.persons}
        for k in (0, 1):
            columns |= {f"ability_{k + 1}": self.measures[:, k], f"se_{k + 1}": self.errors[:, k]}
        return make_table({**columns, "t": self.t}, self.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data, but for the persons."""
        return {
            "items_first": len(self.first),
            "items_second": len(self.second),
            "n_people": len(self.persons),
            "significant": self.n_significant,
            "share": self.share,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "correlation": self.correlation,
        }

    def __repr__(self) -> str:
        return (
            f"<Smith's test: {self.n_significant:,} of {len(self.persons):,} t-tests significant, {self.share:.1%} "
            f"(95% interval {self.ci_low:.1%} to {self.ci_high:.1%})>"
        )


def smith_test(responses: Responses, thresholds: Floats, first: Mask, second: Mask) -> SmithTest:
    """The test of two subsets of items, by position.

    References
    ----------
    Smith (2002), J. Appl. Meas. 3, 205-231; Tennant & Pallant (2006), Rasch Meas. Trans. 20, 1048-1051.
    """
    has_difficulty = np.isfinite(responses.thresholds.mean(thresholds))
    subsets = [first & has_difficulty, second & has_difficulty]
    if (first & second).any():
        raise OptionError(f"the two subsets share items: {listed(responses.items[first & second])}.")
    small = min(int(one.sum()) for one in subsets)
    if small < FEWEST_ITEMS:
        raise OptionError(f"a subset for Smith's test has {small} items with an estimate; it takes {FEWEST_ITEMS}.")
    measured = []
    for subset in subsets:
        chosen = responses.take_items(subset)
        entries = responses.thresholds.of_items(np.flatnonzero(subset))
        measured.append(abilities(chosen, thresholds[entries], "wle"))
    compared = np.ones(responses.n_persons, dtype=bool)
    for one in measured:
        compared &= (one.n > 0) & ~one.extreme & np.isfinite(one.ability)
    n = int(compared.sum())
    if n < FEWEST_PERSONS:
        raise DesignError(
            f"{responses.source}: {n} persons have a score between the ends on both subsets of items; Smith's test "
            f"takes {FEWEST_PERSONS} or more."
        )
    measures = np.stack([one.ability[compared] for one in measured], axis=1)
    errors = np.stack([one.se[compared] for one in measured], axis=1)
    t = (measures[:, 0] - measures[:, 1]) / np.sqrt((errors**2).sum(axis=1))
    n_significant = int(np.sum(np.abs(t) > Z95))
    ci_low, ci_high = exact_interval(n_significant, n)
    centered = measures - measures.mean(axis=0)
    spread = np.sqrt((centered**2).sum(axis=0))
    correlation = float("nan")
    if (spread > 0).all():
        correlation = float((centered / spread).prod(axis=1).sum())
    return SmithTest(
        first=responses.items[subsets[0]],
        second=responses.items[subsets[1]],
        persons=responses.persons[compared],
        measures=measures,
        errors=errors,
        n_significant=n_significant,
        share=n_significant / n,
        ci_low=ci_low,
        ci_high=ci_high,
        correlation=correlation,
        frame_kind=responses.frame_kind,
    )


def exact_interval(k: int, n: int) -> tuple[float, float]:
    """The exact 95% interval of a share k / n (Clopper & Pearson 1934).

    >>> [round(end, 2) for end in exact_interval(8, 119)], exact_interval(0, 10)[0]
    ([0.03, 0.13], 0.0)
    """
    low = float(scipy.special.betaincinv(k, n - k + 1, LEVEL / 2)) if k else 0.0
    high = float(scipy.special.betaincinv(k + 1, n - k, 1 - LEVEL / 2)) if k < n else 1.0
    return low, high
