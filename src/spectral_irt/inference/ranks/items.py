"""Which items are the hardest (or, of ratings, the best liked), and how sure that order is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Z95, Calibration
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.inference.ranks.difficulty_distribution import LEAST_SE, Likely, likely
from spectral_irt.inference.ranks.intervals import square_root
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns

ORDERS = ("difficulty", "lower")
TAIL = 0.025  # of the ranks, on either side of an interval
DENSE_ITEMS = KEEP_COVARIANCE  # items up to which the covariance of all is used
DRAWS = 4000  # probabilities are then right to 0.008 (one standard deviation) or better
LEAST_DRAWS = 200  # where items are very many: each end of an interval still has five draws beyond it
RANKED = 20_000_000  # random numbers drawn, and sorted, in all: a few seconds
CELLS = 20_000_000  # random numbers held at a time


def ranking_columns(
    calibration: Calibration, covariance: Floats | None, by: str = "difficulty", top: int = 10, *, seed: int = 0
) -> Columns:
    """The items from the hardest (best liked, for ratings coded liked = 0) down, and how sure that order is.

    Parameters
    ----------
    covariance : float array, optional
        Of all items; without it errors of different items are taken as independent.
    by : "difficulty" or "lower"
        "difficulty" (default): by the estimate. This finds more of the items that are truly the hardest.
        "lower": by the lower end of the 95% interval, difficulty - 1.96 se, for recommending. An item that few
        answered must be better by more than chance to come first; fewer of the first ones are bad.
    top : int
        K in `p_top`.
    seed : int
        Of the draws; the same seed gives the same table.

    Returns
    -------
    table
        `rank, item, difficulty, se, lower, rank_low, rank_high, p_top, n, status`. `rank` counts rows. `rank_low` to
        `rank_high` is a 95% interval of the rank that the item has by its true difficulty (1 = hardest): right for 95%
        of the items. `p_top` is the probability that the item is among the K hardest. None of them depends on `by`.
        Items without an estimate (nobody answered them; or, without regularization, everybody right or wrong: `status`
        says which) come last, with no probability and the interval that says nothing. The estimates of extreme items
        rest on the prior alone.

    Notes
    -----
    `rank_low`, `rank_high` and `p_top` come from draws of the difficulties given the estimates: the middle 95% of an
    item's ranks, and the share of draws in which it is among the K largest. How difficulties are spread over the items
    is learned from the items (`difficulty_distribution.py`), so that of the items with `p_top` near 0.8 about 80% are
    in the top K, be the difficulties normal or not.

    The covariance matrix is used up to 2,000 items where the fit kept it (`se="dense"` makes it). Otherwise errors of
    different items are taken as independent, which they nearly are where items are many and well mixed, and are not
    where groups of items are linked by few people.
    """
    check_option("by", by, ORDERS)
    if isinstance(top, bool) or top != int(top) or top < 1:
        raise OptionError(f"`top` is {top!r}; it must be a whole number, 1 or more.")
    beta, m = calibration.difficulty, calibration.n_items
    lower = beta - Z95 * calibration.se
    if by == "lower" and not np.isfinite(lower).any():
        raise OptionError(
            "there are no standard errors, so no lower ends; rank by difficulty, or fit with standard errors."
        )
    # NaN goes last: items with an estimate and no standard error, those with answers and no estimate, the unanswered.
    value = lower if by == "lower" else beta
    order = np.lexsort((np.arange(m), calibration.n == 0, -_or_least(beta), -_or_least(value)))
    columns: Columns = {"item": calibration.labels, "difficulty": beta, "se": calibration.se, "lower": lower}
    columns |= item_ranks(calibration, covariance, top, seed=seed) | {"n": calibration.n, "status": calibration.status}
    return {"rank": np.arange(1, m + 1)} | {name: each[order] for name, each in columns.items()}


def item_ranks(calibration: Calibration, covariance: Floats | None, top: int = 10, *, seed: int = 0) -> Columns:
    """`rank_low, rank_high, p_top` of `ranking_columns`, in the order of the calibration's items."""
    m = calibration.n_items
    low, high, p_top = np.ones(m, dtype=np.int64), np.full(m, m, dtype=np.int64), np.full(m, np.nan)
    known = np.isfinite(calibration.difficulty - calibration.se)
    if known.any():
        among = covariance_among(covariance, known)
        ranks = drawn_ranks(likely(calibration), covariance=among, rng=generator(seed))
        p_top[known] = np.mean(ranks <= top, axis=0)
        low[known], high[known] = middle(ranks)
    return {"rank_low": low, "rank_high": high, "p_top": p_top}


def covariance_among(covariance: Floats | None, items: NDArray[np.bool_]) -> Floats | None:
    """The covariance of some items; None where it is not known of all of them."""
    among = None if covariance is None else covariance[np.ix_(items, items)]
    if among is None or not np.all(np.isfinite(among)):
        return None
    return among + np.diag(np.where(np.diag(among) < LEAST_SE**2, LEAST_SE**2, 0.0))


def _or_least(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, -np.inf)


def drawn_ranks(items: Likely, *, covariance: Floats | None = None, rng: np.random.Generator) -> NDArray[np.int32]:
    """Ranks (1 = largest; draws x items) in draws of the difficulties; those of items that err together go together."""
    m = len(items.center)
    draws, step = int(np.clip(RANKED // m, LEAST_DRAWS, DRAWS)), max(1, CELLS // m)
    root = None
    if covariance is not None:
        se = np.sqrt(np.diag(covariance))
        root = square_root(covariance / np.outer(se, se))
    ranks, places = np.empty((draws, m), dtype=np.int32), np.arange(1, m + 1, dtype=np.int32)
    for start in range(0, draws, step):
        rows = slice(start, min(start + step, draws))
        z = rng.standard_normal((rows.stop - rows.start, m))
        x = items.draws(z if root is None else z @ root.T)
        for row, one in enumerate(np.negative(x, out=x), start=start):
            ranks[row, np.argsort(one)] = places
    return ranks


def middle(ranks: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """The middle 95% of the ranks that each item has."""
    last = len(ranks) - 1
    ends = [int(np.floor(last * TAIL)), int(np.ceil(last * (1 - TAIL)))]
    low, high = np.partition(ranks, ends, axis=0)[ends].astype(np.int64)
    return low, high
