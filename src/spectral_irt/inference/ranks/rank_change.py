"""Does an item have the same rank among the items in two groups of people, or in two calibrations?

Rank intervals from each group, both at the critical difference c, are apart where an item is surely beyond more items
in one group than it can be in the other. The larger the c at which they are still apart, the surer: that c is the
statistic of the item. With t_ij the difference of two items over its standard error in a group, the intervals of item i
are apart at c if and only if

    #{j: t_ji > c in the first} + #{j: t_ij > c in the second} >= m   (or the same with the groups exchanged),

so that the statistic is the m-th largest of these 2 (m - 1) numbers. If the ranks are equal, at least one of these
pairs was put in the wrong order, which happens to a given pair with the normal tail probability of c.

References
----------
Fan, Lou, Wang & Yu (2023), Ranking inferences based on the top choice of multiway comparisons, section 3 (two-sample
test of ranks).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.data.responses import Labels
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.calibrations import calibrate_groups, estimator_like
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.probability import two_sided
from spectral_irt.inference.ranks.intervals import (
    LEVEL,
    largest_errors,
    se_of_difference,
    some_rows,
    surely_ranked,
)
from spectral_irt.inference.results import Result
from spectral_irt.numerics import generator


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankTest(Result):
    """What `rank_change` found.

    `statistic` is the largest of any item, `df` the number of items, and `p` the chance of so large a one if no item
    changes its rank. `table()` has a row for each item:

    - `difficulty_first, difficulty_second, rank_first, rank_second`: in the two groups;
    - `low_first, high_first, low_second, high_second`: rank intervals that hold for all items in both groups at once;
    - `statistic`: the critical difference up to which the item's two intervals are apart; 0 where they always overlap;
    - `p`: of this item, if it was chosen beforehand; `p_all`: adjusted for looking at all items.
    """

    name: ClassVar[str] = "Test of equal ranks"
    symbol: ClassVar[str] = "c"

    @property
    def sentence(self) -> str:
        return super().sentence.replace(f"df = {self.df}", f"{self.df:,} items", 1)


def rank_change(
    calibration: Calibration, responses: Responses, groups: Any, *, level: float = LEVEL, seed: int = 0
) -> RankTest:
    """Which items have another rank in one group of people than in the other?

    Unlike a difference in difficulty (`differential`), a rank depends on the other items too: all may keep their
    ranks while differences stretch, and a small shift changes a rank where items crowd.

    Parameters
    ----------
    groups : labels
        Two groups: a label for each person, or a mapping from person to label. See `divide`.
    level : float
        Of the intervals.
    seed : int
        Of the draws.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> fit = SpectralRasch().fit(lsat)
    >>> rank_change(fit.calibration_, lsat, ["a", "b"] * 500)
    <Test of equal ranks: c = 0.000, 5 items, p = 1; a (500 people) | b (500 people)>
    """
    split = divide(responses, groups, difficulty=calibration.difficulty)
    if split.n_groups != 2:
        raise DesignError(
            f"{responses.source}: ranks are compared between two groups of people, and there are {split.n_groups:,}; "
            "compare them two at a time."
        )
    found = calibrate_groups(responses, split, estimator_like(calibration))
    covariances = found.covariances or (None, None)
    test = compare_ranks(found.items, found.difficulty, found.se, covariances, level=level, seed=seed)
    kind = found.everyone.frame_kind
    return replace(test, compared=str(found), frame_kind=kind, findings=found.findings)


def rank_change_between(first: Calibration, second: Calibration, *, level: float = LEVEL, seed: int = 0) -> RankTest:
    """Which of the items that two calibrations of different people share have another rank in one than in the other?

    Ranks are those among the shared items with standard errors in both.
    """
    shared = positions(first.labels, second.labels)
    kept = np.flatnonzero((shared >= 0) & np.isfinite(first.se))
    kept = kept[np.isfinite(second.se[shared[kept]])]
    if len(kept) < 2:
        raise DesignError("the two calibrations share fewer than two items that have standard errors in both.")
    places = (kept, shared[kept])
    both = (first, second)
    covariances = tuple(
        None if made.covariance is None else made.covariance[np.ix_(at, at)]
        for made, at in zip(both, places, strict=True)
    )
    test = compare_ranks(
        first.labels[kept],
        np.array([made.difficulty[at] for made, at in zip(both, places, strict=True)]),
        np.array([made.se[at] for made, at in zip(both, places, strict=True)]),
        covariances,
        level=level,
        seed=seed,
    )
    return replace(test, compared="the first calibration | the second", frame_kind=first.frame_kind)


def compare_ranks(
    items: Labels,
    difficulty: Floats,
    se: Floats,
    covariances: tuple[Floats | None, ...] = (None, None),
    *,
    level: float = LEVEL,
    seed: int = 0,
) -> RankTest:
    """The test from difficulties and standard errors, 2 x items, and covariances of independent groups."""
    m = len(items)
    rng = generator(seed)
    largest = np.maximum(*[largest_errors(s, covariance=v, rng=rng) for s, v in zip(se, covariances, strict=True)])
    critical = float(np.quantile(largest, 1 - 2 * (1 - level), method="higher"))
    statistic = apart_until(difficulty, se, covariances)
    # A pair can be wrong in one direction only: half of the two-sided probabilities.
    beyond = len(largest) - np.searchsorted(np.sort(largest), statistic)
    p_all = np.where(statistic > 0, (beyond + 1) / (len(largest) + 1) / 2, 1.0)
    columns: dict[str, Any] = {"item": items}
    for name, b, s, v in zip(("first", "second"), difficulty, se, covariances, strict=True):
        low, high = surely_ranked(b, s, critical, v)
        columns |= {
            f"difficulty_{name}": b,
            f"rank_{name}": _ranks(b),
            f"low_{name}": low,
            f"high_{name}": high,
        }
    p = np.minimum(1.0, (m - 1) * two_sided(statistic))  # of m - 1 pairs in either group, each in one direction
    columns |= {"statistic": statistic, "p": np.where(statistic > 0, p, 1.0), "p_all": p_all}
    return RankTest(statistic=float(statistic.max()), df=m, p=float(p_all.min()), columns=columns)


def apart_until(difficulty: Floats, se: Floats, covariances: tuple[Floats | None, ...] = (None, None)) -> Floats:
    """For each item the largest critical difference at which its rank intervals in the two groups are apart, or 0."""
    m = difficulty.shape[1]
    out = np.zeros(m)
    for rows in some_rows(m):
        first, second = (
            (b[rows, None] - b) / se_of_difference(s, v, rows)
            for b, s, v in zip(difficulty, se, covariances, strict=True)
        )
        # An item and itself adds a zero on either side, which changes no statistic above zero.
        for pairs in (np.hstack([-first, second]), np.hstack([first, -second])):
            out[rows] = np.maximum(out[rows], np.partition(pairs, m, axis=1)[:, m])
    return out


def _ranks(values: Floats) -> Ints:
    """1 = largest."""
    out = np.empty(len(values), dtype=np.int64)
    out[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return out
