"""Which items are the hardest (or, of ratings, the best liked), and how sure that order is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.calibration import Z95, Calibration
from spectral_irt.errors import OptionError, check_option
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.tables import Columns

ORDERS = ("lower", "difficulty")
LEVEL = 0.95
DENSE_ITEMS = 1000  # items up to which the covariance of all is formed
DRAWS = 4000  # probabilities are then right to 0.008 (one standard deviation) or better
LEAST_DRAWS = 200  # where items are very many: each end of an interval still has five draws beyond it
RANKED = 10_000_000  # random numbers drawn, and sorted, in all: a second or two
CELLS = 4_000_000  # random numbers held at a time
NO_CHANCE = 6.0  # standard errors below which an item is not even drawn: it reaches the top in one of a billion draws


@dataclass(frozen=True, eq=False)
class Ranking:
    """What `rank_items` found: one number an item, in the order of the fit's items.

    Attributes
    ----------
    order : int array
        Items from the first to the last.
    lower : float array
        Lower end of the 95% interval of the difficulty.
    rank_low, rank_high : int arrays
        95% interval of the item's rank by difficulty, 1 = hardest.
    p_top : float array
        Probability of belonging to the `top` hardest; NaN without an estimate or standard error.
    top : int
    correlated : bool
        Whether intervals and probabilities use the covariance of the items, or take their errors as independent.
    """

    order: Ints
    lower: Floats
    rank_low: Ints
    rank_high: Ints
    p_top: Floats
    top: int
    correlated: bool


def ranking_columns(
    calibration: Calibration, covariance: Floats | None, by: str = "lower", top: int = 10, *, seed: int = 0
) -> Columns:
    """The items from the hardest (best liked, for ratings coded liked = 0) down, and how sure that order is.

    Parameters
    ----------
    covariance : float array, optional
        Of all items; without it errors of different items are taken as independent.
    by : "lower" or "difficulty"
        "lower" (default): by the lower end of the 95% interval, difficulty - 1.96 se. An item that few answered must
        be better by more than chance to come first; measured on four sets of ratings, this finds more of the items
        that are best by their mean rating than the order of the estimates does.
    top : int
        K in `p_top`.
    seed : int
        Of the draws; the same seed gives the same table.

    Returns
    -------
    table
        `rank, item, difficulty, se, lower, rank_low, rank_high, p_top, n, status`. `rank` counts rows. `rank_low` to
        `rank_high` is a 95% interval of the rank that the item has by its true difficulty (1 = hardest), and `p_top`
        the probability that it is among the K hardest; neither depends on `by`. Items without an estimate (nobody
        answered them; or, without regularization, everybody right or wrong: `status` says which) come last, with no
        probability and the interval that says nothing. The estimates of extreme items rest on the prior alone.

    Notes
    -----
    Both come from draws of N(difficulty, covariance): the middle 95% of an item's ranks, and the share of draws in
    which it is among the K largest. In simulations the intervals hold the true rank of 95 to 98% of the items. (They
    cannot where items are exactly equally hard: these have no true order.) The covariance matrix is used up to 1,000
    items, or where the fit's standard errors needed it; beyond, errors of different items are taken as independent,
    which they nearly are where items are many and well mixed. `rank_items(...).correlated` says which.
    """
    found = rank_items(calibration, covariance, by, top, seed=seed)
    order = found.order
    return {
        "rank": np.arange(1, len(order) + 1),
        "item": calibration.labels[order],
        "difficulty": calibration.difficulty[order],
        "se": calibration.se[order],
        "lower": found.lower[order],
        "rank_low": found.rank_low[order],
        "rank_high": found.rank_high[order],
        "p_top": found.p_top[order],
        "n": calibration.n[order],
        "status": calibration.status[order],
    }


def rank_items(
    calibration: Calibration, covariance: Floats | None, by: str = "lower", top: int = 10, *, seed: int = 0
) -> Ranking:
    """The order of the items with rank intervals and probabilities; the parameters are those of `ranking_columns`."""
    check_option("by", by, ORDERS)
    if isinstance(top, bool) or top != int(top) or top < 1:
        raise OptionError(f"top is {top!r}; it must be a whole number, 1 or more.")
    beta, se, m = calibration.difficulty, calibration.se, calibration.n_items
    lower = beta - Z95 * se
    known = np.isfinite(lower)
    if by == "lower" and not known.any():
        raise OptionError(
            "there are no standard errors, so no lower ends; rank by='difficulty', or fit with standard errors."
        )
    # NaN goes last: items with an estimate and no standard error, those with answers and no estimate, the unanswered.
    value = lower if by == "lower" else beta
    order = np.lexsort((np.arange(m), calibration.n == 0, -_or_least(beta), -_or_least(value)))

    rank_low, rank_high, p_top = np.ones(m, dtype=np.int64), np.full(m, m, dtype=np.int64), np.full(m, np.nan)
    among = None if covariance is None else covariance[np.ix_(known, known)]
    if among is not None and not np.all(np.isfinite(among)):
        among = None
    if known.any():
        b, s = beta[known], se[known]
        rng = np.random.default_rng(seed)
        p_top[known] = top_probabilities(b, s, int(top), covariance=among, rng=rng)
        rank_low[known], rank_high[known] = rank_intervals(b, s, covariance=among, rng=rng)
    return Ranking(order, lower, rank_low, rank_high, p_top, int(top), among is not None)


def _or_least(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, -np.inf)


# ------------------------------------------------------------------------------- among the top K


def top_probabilities(
    beta: Floats,
    se: Floats,
    top: int,
    *,
    covariance: Floats | None = None,
    rng: np.random.Generator,
) -> Floats:
    """P(item among the `top` largest) for beta ~ N(beta, covariance), or independent with these standard errors."""
    m = len(beta)
    if top >= m:
        return np.ones(m)
    # The top-th largest value is hardly ever below the top-th largest of the lower ends.
    line = np.partition(beta - NO_CHANCE * se, m - top)[m - top]
    rivals = np.flatnonzero(beta + NO_CHANCE * se >= line)
    b, n = beta[rivals], len(rivals)
    draws = int(np.clip(RANKED // n, LEAST_DRAWS, DRAWS))
    root = None if covariance is None else square_root(covariance[np.ix_(rivals, rivals)])
    hits = np.zeros(n, dtype=np.int64)
    done = 0
    while done < draws:
        size = min(draws - done, max(1, CELLS // n))
        noise = rng.standard_normal((size, n))
        x = b + (noise * se[rivals] if root is None else noise @ root.T)
        hits += np.bincount(np.argpartition(x, n - top, axis=1)[:, n - top :].ravel(), minlength=n)
        done += size
    p = np.zeros(m)
    p[rivals] = hits / draws
    return p


def square_root(covariance: Floats) -> Floats:
    """R with R R^T = covariance, which may be singular (mean-centered difficulties add to zero)."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))


# -------------------------------------------------------------------------------- rank intervals


def rank_intervals(
    beta: Floats, se: Floats, *, covariance: Floats | None = None, rng: np.random.Generator, level: float = LEVEL
) -> tuple[Ints, Ints]:
    """The middle `level` of the ranks (1 = largest) that each item has in draws from N(beta, covariance)."""
    m = len(beta)
    draws = int(np.clip(RANKED // m, LEAST_DRAWS, DRAWS))
    root = None if covariance is None else square_root(covariance)
    ranks = np.empty((draws, m), dtype=np.int32)
    for start in range(0, draws, max(1, CELLS // m)):
        rows = slice(start, min(start + max(1, CELLS // m), draws))
        noise = rng.standard_normal((rows.stop - rows.start, m))
        x = beta + (noise * se if root is None else noise @ root.T)
        np.put_along_axis(ranks[rows], np.argsort(-x, axis=1), np.arange(1, m + 1, dtype=np.int32), axis=1)
    tail = (1 - level) / 2
    low = np.quantile(ranks, tail, axis=0, method="lower")
    return low.astype(np.int64), np.quantile(ranks, 1 - tail, axis=0, method="higher").astype(np.int64)
