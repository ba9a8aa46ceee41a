"""Slow, obvious dense versions of what the package computes from packed responses.

A response table here is people x items with 1 = right, 0 = wrong, NaN = not answered. Every function is written as
loops over its definition, so that it can be checked by reading; nothing here is used outside the tests.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What data look like when they are not kind: an empty person, one answer, all right, all wrong, an item with one
# person, an item with none, an item everyone got right.
_ = np.nan
AWKWARD = np.array(
    [
        [1, 0, 1, 0, _, _, 1],
        [_, _, _, _, _, _, _],
        [0, 1, _, 1, _, _, 1],
        [1, 1, 1, 1, 1, _, 1],
        [0, 0, 0, 0, _, _, _],
        [_, _, 0, _, _, _, _],
        [1, 0, 0, 1, _, _, 1],
        [_, 1, 0, 0, _, _, 1],
    ],
    dtype=float,
)


def dense_pairs(X: Floats, h: Callable[[int, int, int], float] | None = None) -> tuple[Floats, Floats]:
    """Y and B by definition: Y_ij sums h over people right on i and wrong on j, B_ij over people who answered both.

    `h(l, i, j)` is the weight of the pair (i, j) for person l; 1 by default, the paper's counts. Diagonals are zero.

    >>> Y, B = dense_pairs(np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]))
    >>> Y.tolist(), B.tolist()
    ([[0.0, 2.0], [1.0, 0.0]], [[0.0, 4.0], [4.0, 0.0]])
    """
    n_persons, n_items = X.shape
    Y, B = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
    for person in range(n_persons):
        for i in range(n_items):
            for j in range(n_items):
                if i == j or np.isnan(X[person, i]) or np.isnan(X[person, j]):
                    continue
                weight = 1.0 if h is None else h(person, i, j)
                B[i, j] += weight
                if X[person, i] == 1 and X[person, j] == 0:
                    Y[i, j] += weight
    return Y, B


def pair_weight(X: Floats, weighting: str, beta: Floats) -> Callable[[int, int, int], float]:
    """h(l, i, j) straight from the definitions in chain/operator.py, abilities by PROX over the items of one person."""

    def h(person: int, i: int, j: int) -> float:
        row = X[person]
        seen = ~np.isnan(row)
        share, mine = row[seen].mean(), beta[seen]
        if share in (0, 1):
            return 0.0
        if weighting == "pairs":
            return 1.0
        if weighting == "persons":
            return 1 / seen.sum()
        t, pi = np.exp(mine.mean() + np.sqrt(1 + mine.var() / 2.89) * np.log(share / (1 - share))), np.exp(beta)
        p = t / (t + pi[seen])
        return t / np.sum(p * (1 - p)) / ((t + pi[i]) * (t + pi[j]))

    return h


def gth(Y: Floats) -> Floats:
    """Stationary distribution of the chain that moves from i to j at rate Y_ij, by state elimination.

    Grassmann, Taksar and Heyman's form of Gaussian elimination: no subtraction, so every digit counts however slowly
    the chain mixes. The diagonal of Y is not used. The chain must be irreducible.

    >>> gth(np.array([[0.0, 1.0], [3.0, 0.0]])).tolist()
    [0.75, 0.25]
    """
    rates = np.array(Y, dtype=float)
    n = len(rates)
    for k in range(n - 1, 0, -1):
        rates[:k, k] /= rates[k, :k].sum()
        for i in range(k):
            for j in range(k):
                if i != j:
                    rates[i, j] += rates[i, k] * rates[k, j]
    pi = np.zeros(n)
    pi[0] = 1.0
    for k in range(1, n):
        pi[k] = pi[:k] @ rates[:k, k]
    return pi / pi.sum()


def probabilities(ability: Floats, difficulty: Floats, slopes: Floats | None = None) -> Floats:
    """P(X_li = 1) of the Rasch model (with slopes: of the two-parameter model), people x items."""
    P = np.empty((len(ability), len(difficulty)))
    for person, theta in enumerate(ability):
        for item, beta in enumerate(difficulty):
            slope = 1.0 if slopes is None else slopes[item]
            P[person, item] = 1 / (1 + np.exp(slope * (beta - theta)))
    return P


def wilson_hilferty(square: float, q: float) -> float:
    """A mean square of standard deviation q on the scale of a normal; beyond q = 2 the scale is that of q = 2.

    >>> [round(float(wilson_hilferty(8.0, q)), 4) for q in (1.5, 2.0, 8.0)]
    [2.5, 2.1667, 1.6667]
    """
    if q <= 2:
        return (np.cbrt(square) - 1) * 3 / q + q / 3
    return (np.cbrt(square) - 1) * 3 / 2 + 4 / q / 3


def mean_squares(x: Floats, p: Floats) -> tuple[float, float, float, float]:
    """Infit, outfit and both on the scale of a normal, of answers x that are right with probability p."""
    v, n = p * (1 - p), len(x)
    infit, outfit = np.sum((x - p) ** 2) / v.sum(), np.mean((x - p) ** 2 / v)
    c = v * (p**3 + (1 - p) ** 3)
    q_in, q_out = np.sqrt(np.sum(c - v**2)) / v.sum(), np.sqrt(np.sum(c / v**2) / n**2 - 1 / n)
    return infit, outfit, wilson_hilferty(infit, q_in), wilson_hilferty(outfit, q_out)


def posterior(row: Floats, beta: Floats, mean: float, sd: float, points: int) -> tuple[Floats, Floats]:
    """A fine grid of abilities, and one person's posterior weights on it; the ability is normal(mean, sd)."""
    grid = np.linspace(mean - 12 * sd, mean + 12 * sd, points)
    log = -(((grid - mean) / sd) ** 2) / 2
    for x, b in zip(row, beta, strict=True):
        if not np.isnan(x) and np.isfinite(b):
            log -= np.logaddexp(0, b - grid if x == 1 else grid - b)
    weight = np.exp(log - log.max())
    return grid, weight / weight.sum()


def table_of(rows: Iterable[tuple[int, int, bool]], shape: tuple[int, int]) -> Floats:
    """A table from rows (person, item, right); a later row overwrites an earlier one."""
    X = np.full(shape, np.nan)
    for person, item, right in rows:
        X[person, item] = right
    return X
