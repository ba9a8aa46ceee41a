"""Which of two are surely in the order of their estimates, and the ranks that follow, for all of them at once.

The largest error of any difference over its own standard error, T = max_ij |(b_i - beta_i) - (b_j - beta_j)| / se_ij,
is distributed as in Gaussian draws with the covariance of the estimates. Pairs are tested by steps, from the one that
is farthest apart, T being taken over those whose order is not known yet (Romano & Wolf); the chance that any pair is
wrongly said to differ is at most the level. The numbers of those surely above and surely below bound every rank.

`study.person_ranking` calls `person_ranks`, and the leaderboard `order_p` and `sure_ranks`.

References
----------
Mogstad, Romano, Shaikh & Wilhelm (2024), Inference for ranks, Review of Economic Studies 91, 476-518.
Klein, Wright & Wieczorek (2020), A joint confidence region for an overall ranking of populations, JRSS C 69, 589-606.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.calibration import Z95
from spectral_irt.data.block import Floats, Ints
from spectral_irt.model import ALIKE
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns

LEVEL = 0.05  # chance of any wrong order
DRAWS = 2000  # limits of T then have a standard error of about 0.015
STEP_DOWN = 400  # up to so many are tested by steps; of more, in one step
CELLS = 1_000_000  # draws x pairs at a time
MOST_PERSONS = 1_000  # compared pair by pair: some matrices of all pairs
LEAST_SE = 1e-6  # logits; what is anchored does not err at all, and this keeps the arithmetic finite
FARTHEST = 64  # that are compared with each other, at first, to find the largest difference of a draw
RIDGE = 1e-10  # of the variances, added to them so that rounding makes none negative
NO_SPREAD = 1e-12  # a variance of a difference below this part of the variances themselves is rounding


class OrderTests(NamedTuple):
    """Of every pair the standard error of its difference, infinite where that does not vary, z, and p adjusted for all
    pairs (matrices, items x items)."""

    se: Floats
    z: Floats
    p: Floats


def person_ranks(ability: Floats, se: Floats, *, seed: int = 0) -> Columns:
    """`ci_low, ci_high, rank, rank_low, rank_high` of every person; 1 = the highest ability.

    `ci_low` to `ci_high` is a 95% interval of the ability, ability ± 1.96 se, of each person on their own. `rank` is
    the place by the estimate; those who share it are equally able. `rank_low` to `rank_high` hold the true ranks of all
    people at once in 95% of samples: one more than the number of people who are surely of higher ability, up to the
    number of those who are not surely less able. Errors of different people are independent given the difficulties,
    which are taken as known. Somebody without an ability or its error has the rank 0. Of more than 1,000 people those
    are surely of higher ability whose interval lies wholly above, each interval at the level (0.95)^(1/n), so that all
    n hold at once (Klein et al. 2020): somewhat wider intervals, for the cost of sorting.
    """
    half_width = Z95 * np.where(np.isfinite(ability), se, np.nan)
    has_error = np.isfinite(ability) & np.isfinite(se)
    rank = np.zeros(len(ability), dtype=np.int64)
    rank_low = np.zeros(len(ability), dtype=np.int64)
    rank_high = np.zeros(len(ability), dtype=np.int64)
    if has_error.any():
        estimate = ability[has_error]
        error = np.maximum(se[has_error], LEAST_SE)
        falling = -np.round(estimate, ALIKE)
        rank[has_error] = 1 + np.searchsorted(np.sort(falling), falling, side="left")
        if len(estimate) > MOST_PERSONS:
            rank_low[has_error], rank_high[has_error] = _ranks_by_intervals(estimate, error)
        else:
            tests = order_p(estimate, error, rng=generator(seed))
            rank_low[has_error], rank_high[has_error] = sure_ranks((tests.p < LEVEL) & (tests.z > 0))
    return {
        "ci_low": ability - half_width,
        "ci_high": ability + half_width,
        "rank": rank,
        "rank_low": rank_low,
        "rank_high": rank_high,
    }


def _ranks_by_intervals(estimate: Floats, se: Floats) -> tuple[Ints, Ints]:
    """Lowest and highest rank by intervals that all hold at once."""
    n = len(estimate)
    half_width = float(scipy.special.ndtri((1 + (1 - LEVEL) ** (1 / n)) / 2)) * se
    n_not_above = np.searchsorted(np.sort(estimate - half_width), estimate + half_width, side="right")
    n_below = np.searchsorted(np.sort(estimate + half_width), estimate - half_width, side="left")
    return 1 + n - n_not_above, n - n_below


def order_p(
    beta: Floats, se: Floats, *, covariance: Floats | None = None, df: float = np.inf, rng: np.random.Generator
) -> OrderTests:
    """Is the order of every two estimates sure? `df` are the degrees of freedom of the standard errors."""
    m = len(beta)
    sums = se[:, None] ** 2 + se**2
    variance = sums if covariance is None else sums - 2 * covariance
    # Infinite where a difference does not vary (an item and itself), so that it shows nothing.
    varies = (variance > NO_SPREAD * sums) & ~np.eye(m, dtype=bool)
    width = np.sqrt(np.where(varies, variance, np.inf))
    z = (beta[:, None] - beta) / width
    if m < 2:
        return OrderTests(width, z, np.ones((m, m)))
    draws = standard_draws(rng, (DRAWS, m), df)
    if covariance is None:
        errors = draws * se
    else:
        errors = draws @ square_root(covariance).T
    if m > STEP_DOWN:
        return OrderTests(width, z, _p_in_one_step(z, errors, se, width, covariance))
    return OrderTests(width, z, _p_by_steps(z, errors, width))


def _p_in_one_step(z: Floats, errors: Floats, se: Floats, width: Floats, covariance: Floats | None) -> Floats:
    """p of every pair by T over all pairs."""
    correlation = np.zeros_like(z)
    if covariance is not None:
        correlation = np.abs(covariance / np.outer(se, se))
    np.fill_diagonal(correlation, 0)
    room = 1 - float(correlation.max())
    largest = np.sort([_largest_error(error, se, width, room) for error in errors])
    p = 1 - np.searchsorted(largest, np.abs(z), side="left") / (DRAWS + 1)
    np.fill_diagonal(p, 1)
    return np.asarray(p)


def _p_by_steps(z: Floats, errors: Floats, width: Floats) -> Floats:
    """p of every pair by T over the pairs that are not farther apart."""
    first, second = np.triu_indices(len(z), 1)
    order = np.argsort(-np.abs(z[first, second]), kind="stable")
    first = first[order]
    second = second[order]
    seen = np.abs(z[first, second])
    n_beyond = np.ones(len(first))
    for some_errors in np.array_split(errors, max(1, DRAWS * len(first) // CELLS)):
        size = np.abs(some_errors[:, first] - some_errors[:, second]) / width[first, second]
        # T over the pairs from the k-th on, by how far apart they seem: pairs that are known are always the first ones.
        np.maximum.accumulate(size[:, ::-1], axis=1, out=size[:, ::-1])
        n_beyond += np.sum(size >= seen, axis=0)
    p = np.ones_like(z)
    p[first, second] = np.maximum.accumulate(n_beyond / (DRAWS + 1))
    p[second, first] = p[first, second]
    return p


def standard_draws(rng: np.random.Generator, shape: tuple[int, int], df: float) -> Floats:
    """Rows of standard normal draws; of multivariate t, where errors have so many degrees of freedom."""
    z = rng.standard_normal(shape)
    if np.isinf(df):
        return z
    return z * np.sqrt(df / rng.chisquare(df, (shape[0], 1)))


def _largest_error(error: Floats, se: Floats, width: Floats, room: float) -> float:
    """T of one draw; `room` is 1 - max |r|.

    Exactly, and as a rule without looking at all pairs. With z_i = error_i / se_i and correlation r_ij,

        (error_i - error_j)^2 / se_ij^2 <= (z_i^2 + z_j^2) / (1 - |r_ij|),

    so that a pair outside the farthest k has at most (z_1^2 + z_k^2) / (1 - max |r|), z_1 that of the first and z_k
    that of the last of these k.
    """
    z_squared = (error / se) ** 2
    for k in (FARTHEST, 16 * FARTHEST):
        if k < len(z_squared):
            far = np.argpartition(z_squared, -k)[-k:]
            largest = float(((error[far, None] - error[far]) / width[np.ix_(far, far)]).max())
            if largest**2 * room >= z_squared[far].max() + z_squared[far].min():
                return largest
    return float(((error[:, None] - error) / width).max())


def sure_ranks(sure: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Intervals of the ranks (1 = largest) that hold at once where every pair said to differ (row above column) does.

    No interval is wholly below that of an item from which it is not told apart: if `a` is surely above `k` and `k`
    surely above `b`, then `a` is surely above `b`, since standard errors of differences obey the triangle inequality.
    """
    return 1 + sure.sum(axis=0), len(sure) - sure.sum(axis=1)


def square_root(covariance: Floats) -> Floats:
    """R with R R^T = covariance, which may be singular: mean-centered difficulties add to zero."""
    mean_variance = float(np.mean(np.diag(covariance)))
    try:
        ridge = RIDGE * mean_variance * np.eye(len(covariance))
        return np.asarray(np.linalg.cholesky(covariance + ridge), dtype=float)
    except np.linalg.LinAlgError:  # not quite positive; this takes ten times as long
        values, vectors = np.linalg.eigh(covariance)
        root: Floats = vectors * np.sqrt(np.maximum(values, 0))
        return root
