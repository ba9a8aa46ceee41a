"""Ranks that hold for all items at once: how far apart two items must be before their order is taken as known.

The largest error of any difference, over its own standard error,

    T = max_ij |(b_i - beta_i) - (b_j - beta_j)| / se_ij,

is distributed as in Gaussian draws with the covariance of the difficulties. If no difference errs by more than c
standard errors, every pair with |b_i - b_j| > c se_ij is in its true order; then the number of items surely harder than
item i, and the number of those surely easier, bound its rank, for all items together.

A pair can be put in the wrong order in one direction only, and errors are as likely in either. So the chance of any
wrong order is half that of T > c, and half that of two pairs being beyond c in opposite directions, which is small
(0.05^2 if these were independent). c is the 90% point of T for intervals of 95%.

Where items are few, as on a leaderboard, `order_p` tests the pairs by steps, so that those whose order is known no
longer count among the errors that could have been made.

References
----------
Mogstad, Romano, Shaikh & Wilhelm (2024), Inference for ranks, Review of Economic Studies 91, 476-518.
Klein, Wright & Wieczorek (2020), A joint confidence region for an overall ranking of populations, JRSS C 69, 589-606.
Fan, Lou, Wang & Yu (2023), Ranking inferences based on the top choice of multiway comparisons, section 3.
Fan, Hou & Yu (2022), Uncertainty quantification of MLE for entity ranking with covariates, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints

LEVEL = 0.95
DRAWS, LEAST_DRAWS = 2000, 500  # c then has a standard error of about 0.015, or 0.03
PAIRS = 2_000_000_000  # pairs of items in all draws together where there is a covariance: seconds at worst
DRAWN = 20_000_000  # random numbers in all where errors are independent: a few seconds
CELLS = 500_000  # numbers held at a time; few enough for a processor's cache
FARTHEST = 64  # items that are compared with each other, at first, to find the largest difference of a draw
MOST_COMPARED = 4_096  # items compared with each other; where these do not settle it, all are
LEVELS = 100  # of standard errors, to which they are rounded up where items are many and their errors independent
RIDGE = 1e-10  # of the variances, added to them so that rounding makes none negative
STEP_DOWN = 400  # items up to which pairs are tested by steps, draws x pairs of them
NO_SPREAD = 1e-12  # a variance of a difference below this part of the variances themselves is rounding


def simultaneous_ranks(
    beta: Floats, se: Floats, *, covariance: Floats | None = None, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Intervals of the ranks (1 = largest) that hold all true ranks at once in 95% of samples, or more."""
    m = len(beta)
    if m < 2:
        return np.ones(m, dtype=np.int64), np.ones(m, dtype=np.int64)
    critical = np.quantile(largest_errors(se, covariance=covariance, rng=rng), 1 - 2 * (1 - LEVEL), method="higher")
    return surely_ranked(beta, se, float(critical), covariance)


def surely_ranked(beta: Floats, se: Floats, critical: float, covariance: Floats | None = None) -> tuple[Ints, Ints]:
    """One more than the number of items surely harder than each, and the number of those not surely easier."""
    m = len(beta)
    low, high = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    if covariance is None and m > LEVELS**2:
        return _ranked_by_levels(beta, se, critical)
    for rows in some_rows(m):
        apart, enough = beta[rows, None] - beta, critical * se_of_difference(se, covariance, rows)
        low[rows] = 1 + np.count_nonzero(apart < -enough, axis=1)
        high[rows] = m - np.count_nonzero(apart > enough, axis=1)
    return low, high


def _ranked_by_levels(beta: Floats, se: Floats, critical: float) -> tuple[Ints, Ints]:
    """The same in less than items x items steps: items with nearly the same error are sorted, and counted at once.

    Errors are rounded up, so that intervals are a little wider, never narrower.
    """
    m = len(beta)
    levels = np.unique(np.quantile(se, np.linspace(0, 1, LEVELS + 1)[1:], method="higher"))
    level = np.searchsorted(levels, se)
    order = np.lexsort((beta, level))
    groups = np.split(order, np.searchsorted(level[order], np.arange(1, len(levels))))
    harder, easier = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    for own, mine in zip(levels, groups, strict=True):
        for other, theirs in zip(levels, groups, strict=True):
            enough = critical * np.hypot(own, other)
            harder[mine] += len(theirs) - np.searchsorted(beta[theirs], beta[mine] + enough, side="right")
            easier[mine] += np.searchsorted(beta[theirs], beta[mine] - enough, side="left")
    return 1 + harder, m - easier


def some_rows(m: int) -> Iterator[slice]:
    """The items, as many at a time as may be compared with all others at once."""
    step = max(1, CELLS // m)
    for start in range(0, m, step):
        yield slice(start, min(m, start + step))


def se_of_difference(se: Floats, covariance: Floats | None, rows: slice) -> Floats:
    """se_ij; infinite where a difference does not vary (an item and itself), so that it shows nothing."""
    sums = se[rows, None] ** 2 + se**2
    if covariance is None:
        return np.sqrt(sums)
    variance = sums - 2 * covariance[rows]
    return np.sqrt(np.where(variance > NO_SPREAD * sums, variance, np.inf))


# ------------------------------------------------------------------------------------------- every pair


def order_p(
    beta: Floats, se: Floats, *, covariance: Floats | None = None, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Of every pair the standard error of its difference, z, and p adjusted for all pairs (matrices, items x items).

    By steps: pairs whose order is taken as known are no longer among those that could be put in the wrong order, so
    that only the largest error of the others counts (the step-down of Romano & Wolf). The chance that any pair is
    wrongly said to differ is at most the level, whatever the difficulties are. Beyond 400 items in one step.
    """
    m = len(beta)
    width = se_of_difference(se, covariance, slice(None))
    z = (beta[:, None] - beta) / width
    p = np.ones((m, m))
    if m < 2:
        return width, z, p
    if m > STEP_DOWN:
        largest = np.sort(largest_errors(se, covariance=covariance, rng=rng))
        p = 1 - np.searchsorted(largest, np.abs(z), side="left") / (len(largest) + 1)
        np.fill_diagonal(p, 1)
        return width, z, p
    errors = rng.standard_normal((DRAWS, m))
    errors = errors * se if covariance is None else errors @ square_root(covariance).T
    first, second = np.triu_indices(m, 1)
    order = np.argsort(-np.abs(z[first, second]), kind="stable")
    first, second = first[order], second[order]
    size = np.abs(errors[:, first] - errors[:, second]) / width[first, second]
    # T over the pairs from the k-th on, by how far apart they seem: pairs that are known are always the first ones.
    np.maximum.accumulate(size[:, ::-1], axis=1, out=size[:, ::-1])
    beyond = (1 + np.sum(size >= np.abs(z[first, second]), axis=0)) / (DRAWS + 1)
    p[first, second] = p[second, first] = np.maximum.accumulate(beyond)
    return width, z, p


def sure_ranks(sure: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Intervals of the ranks (1 = largest) that hold at once where every pair said to differ (row above column) does.

    No interval is wholly below that of an item from which it is not told apart: if `a` is surely above `k` and `k`
    surely above `b`, then `a` is surely above `b`, since standard errors of differences obey the triangle inequality.
    """
    return 1 + sure.sum(axis=0), len(sure) - sure.sum(axis=1)


# ------------------------------------------------------------------------------- the distribution of T


def largest_errors(se: Floats, *, covariance: Floats | None = None, rng: np.random.Generator) -> Floats:
    """Draws of T, with the covariance of all items where it is given, else with independent errors.

    Exactly, and as a rule without looking at all pairs. With z_i = error_i / se_i and correlation r_ij,

        (error_i - error_j)^2 / se_ij^2 <= (z_i^2 + z_j^2) / (1 - |r_ij|),

    so that for two items of which one is not among the k farthest out this is at most (z_1^2 + z_k^2) / (1 - max |r|),
    z_1 that of the first and z_k that of the last of these k. So the k are compared with each other, for k = 64, 256,
    ..., until the largest difference found is beyond that; errors that are strongly correlated need all pairs. No
    matrix of items x items is made without a covariance.
    """
    m = len(se)
    if covariance is None:
        draws = int(np.clip(DRAWN // m, LEAST_DRAWS, DRAWS))
        return np.array([_largest_error(se * (z := rng.standard_normal(m)), z, se, None, 1.0) for _ in range(draws)])
    draws = int(np.clip(PAIRS // m**2, LEAST_DRAWS, DRAWS))
    root = square_root(covariance)
    errors = rng.standard_normal((draws, m)) @ root.T
    weights = se_of_difference(se, covariance, slice(None)) ** -2
    correlation = np.abs(covariance / np.outer(se, se))
    np.fill_diagonal(correlation, 0)
    room = max(1 - float(correlation.max()), 0.0)
    return np.array([_largest_error(error, error / se, se, weights, room) for error in errors])


def _largest_error(error: Floats, z: Floats, se: Floats, weights: Floats | None, room: float) -> float:
    """T of one draw; `weights` are 1 / se_ij^2, `room` is 1 - max |r|."""
    m, k, size = len(error), FARTHEST, z**2
    while k < m / 4 and k <= MOST_COMPARED:
        far = np.argpartition(size, m - k)[m - k :]
        squares = (error[far, None] - error[far]) ** 2
        if weights is None:
            squares /= se[far, None] ** 2 + se[far] ** 2
        else:
            squares *= weights[np.ix_(far, far)]
        largest = float(squares.max())
        if largest * room >= size[far].max() + size[far].min():
            return float(np.sqrt(largest))
        k *= 4
    largest = 0.0
    for rows in some_rows(m):
        squares = (error[rows, None] - error[rows.start :]) ** 2
        if weights is None:
            squares /= se[rows, None] ** 2 + se[rows.start :] ** 2
        else:
            squares *= weights[rows, rows.start :]
        largest = max(largest, float(squares.max()))
    return float(np.sqrt(largest))


def square_root(covariance: Floats) -> Floats:
    """R with R R^T = covariance, which may be singular: mean-centered difficulties add to zero."""
    spread = float(np.mean(np.diag(covariance)))
    try:
        return np.asarray(np.linalg.cholesky(covariance + RIDGE * spread * np.eye(len(covariance))), dtype=float)
    except np.linalg.LinAlgError:  # not quite positive; this takes ten times as long
        values, vectors = np.linalg.eigh(covariance)
        root: Floats = vectors * np.sqrt(np.maximum(values, 0))
        return root
