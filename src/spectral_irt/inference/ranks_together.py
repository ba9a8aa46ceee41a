"""Intervals that hold all ranks at once in a given share of samples, neither more nor much less.

Intervals that count the items surely harder and surely easier (`simultaneous.py`) hold whatever the difficulties are,
and more often than they say, for two reasons. The chance of a wrong order is 5% only where all items are equally hard:
most pairs of a real set are too far apart to be confused. And a wrong pair makes an interval wrong only if the item has
no other to spare: for every item that is wrongly put above it, one that is truly above must be known to be.

What the difficulties are is not known, but how they are spread over the items is learned (`spread.py`). Draws of the
difficulties given the estimates have the ranks that the items may truly have. Each item's interval has the ranks r with
P(rank <= r) and P(rank >= r) both at least t, and t is the largest at which all of a draw's ranks are inside in 95% of
draws. Over leaderboards like this one the intervals then hold in about 95% of them; of one with given difficulties
nothing of the kind can be said, short of widening them to the other sort. Where items are so many that t cannot be told
from the draws, intervals reach beyond the middle 95% of each item's ranks by a common factor instead.

References
----------
Mogstad, Romano, Shaikh & Wilhelm (2024), Inference for ranks, Review of Economic Studies 91, 476-518.
Klein, Wright & Wieczorek (2020), A joint confidence region for an overall ranking of populations, JRSS C 69, 589-606.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.inference.simultaneous import (
    DRAWS,
    LEVEL,
    largest_errors,
    se_of_difference,
    square_root,
)
from spectral_irt.responses.block import Floats, Ints

STRICTER = 0.8  # of the share of draws that may be outside: the spread is learned from the same items, and less sure
SEEN = 4  # draws beyond each end of an interval, at least, for t to be told from them
MARGIN = 0.5  # of a rank: an item whose rank never varies in the draws has still some width
MOST = 400  # items up to which pairs are looked at again and again, draws x pairs of them


def ranks_together(ranks: Ints, level: float = LEVEL) -> tuple[Ints, Ints]:
    """Intervals of the ranks that hold those of all items in `level` of the draws (draws x items).

    >>> rng = np.random.default_rng(0)
    >>> drawn = np.argsort(np.argsort(rng.normal([0, 0.1, 5], 0.3, (1000, 3)), axis=1), axis=1) + 1
    >>> low, high = ranks_together(drawn)
    >>> low.tolist(), high.tolist()
    ([1, 1, 3], [2, 2, 3])
    """
    n, m = ranks.shape
    outside = STRICTER * (1 - level)
    by_tail = n * outside >= 2 * m * SEEN
    return _equal_tails(ranks, outside) if by_tail else _stretched(ranks, outside)


def _equal_tails(ranks: Ints, outside: float) -> tuple[Ints, Ints]:
    n, m = ranks.shape
    count = np.stack([np.bincount(ranks[:, i], minlength=m + 1)[1:] for i in range(m)])
    at_most = np.cumsum(count, axis=1)
    tail = np.minimum(at_most, n - at_most + count)  # draws at least as far out, items x ranks
    least = tail[np.arange(m), ranks - 1].min(axis=1)  # of each draw
    inside = (tail >= np.quantile(least, outside, method="lower")) & (count > 0)
    return 1 + np.argmax(inside, axis=1), m - np.argmax(inside[:, ::-1], axis=1)


def _stretched(ranks: Ints, outside: float) -> tuple[Ints, Ints]:
    m = ranks.shape[1]
    first, middle, last = np.quantile(ranks, [0.025, 0.5, 0.975], axis=0)
    up, down = last - middle + MARGIN, middle - first + MARGIN
    far = np.maximum((ranks - middle) / up, (middle - ranks) / down).max(axis=1)
    reach = float(np.quantile(far, 1 - outside, method="higher"))
    tiny = 1e-9  # a rank at the very end belongs to it
    low = np.ceil(middle - reach * down - tiny).astype(np.int64)
    high = np.floor(middle + reach * up + tiny).astype(np.int64)
    return np.clip(low, 1, m), np.clip(high, 1, m)


def order_p(
    beta: Floats, se: Floats, *, covariance: Floats | None = None, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Of every pair, z of its difference and p adjusted for all pairs (two matrices, items x items).

    By steps: pairs whose order is taken as known are no longer among those that could be put in the wrong order, so
    that only the largest error of the others counts (the step-down of Romano & Wolf). The chance that any pair is
    wrongly said to differ is at most the level, whatever the difficulties are. Beyond 400 items in one step.
    """
    m = len(beta)
    width = se_of_difference(se, covariance, slice(None))
    z = (beta[:, None] - beta) / width
    p = np.ones((m, m))
    if m < 2:
        return z, p
    if m > MOST:
        largest = np.sort(largest_errors(se, covariance=covariance, rng=rng))
        p = 1 - np.searchsorted(largest, np.abs(z), side="left") / (len(largest) + 1)
        np.fill_diagonal(p, 1)
        return z, p
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
    return z, p


def sure_ranks(z: Floats, p: Floats, level: float = LEVEL) -> tuple[Ints, Ints]:
    """Intervals of the ranks (1 = largest) that hold at once whatever the difficulties are, from `order_p`."""
    sure = (p < 1 - level) & (z > 0)  # row above column
    return 1 + sure.sum(axis=0), len(z) - sure.sum(axis=1)
