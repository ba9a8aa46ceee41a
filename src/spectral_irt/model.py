"""The Rasch model, P(right) = sigmoid(ability - difficulty), and the partial credit model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A logistic distribution is close to a normal one with this variance, 1.7^2.
LOGISTIC_VARIANCE = 2.89
ALIKE = 9  # decimals of a logit up to which people are equally able: the same score, added up in another order


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without a warning; for 1 - sigmoid(x) without cancellation: sigmoid(-x)."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def prox(mean: Any, variance: Any, logit: Any) -> Any:
    """The ability that a score stands for, in closed form (Cohen 1979): mean + sqrt(1 + variance / 2.89) logit, from
    mean and variance of the difficulties answered and log(right / wrong)."""
    return mean + np.sqrt(1 + variance / LOGISTIC_VARIANCE) * logit


def category_probabilities(theta: Floats, cumulated: Floats) -> Floats:
    """P(X = k) ~ exp(k theta - sum_{v <= k} beta_v) for k = 0 to K, along the last axis: the partial credit model.

    `cumulated` has the sums of the thresholds up to each category, 0 for the lowest, +inf for a category that the item
    does not have; its axes before the last go with those of `theta`.
    """
    x = np.asarray(theta)[..., None] * np.arange(cumulated.shape[-1]) - cumulated
    x -= x.max(axis=-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


def above(values: NDArray[Any], axis: int = -1) -> NDArray[Any]:
    """Sums over the categories k and above, for k = 1, ..., K."""
    sums: NDArray[Any] = np.flip(np.cumsum(np.flip(values, axis), axis), axis)
    return np.take(sums, np.arange(1, values.shape[axis]), axis=axis)


def thurstone(cumulated: Floats, category: NDArray[np.int64]) -> Floats:
    """The abilities at which half answer in this category or above: a row of `cumulated` for each; by bisection.

    >>> thurstone(np.array([[0.0, -1.0, 0.0]] * 2), np.array([1, 2])).round(4).tolist()  # log((sqrt(e^2 + 4) - e) / 2)
    [-1.114, 1.114]
    """
    with np.errstate(invalid="ignore"):
        size = np.where(np.isfinite(cumulated), np.abs(cumulated), 0.0).max(axis=1) + 2 * cumulated.shape[1]
        low = -size
        high = size.copy()
        for _ in range(60):
            middle = (low + high) / 2
            passed = category_probabilities(middle, cumulated) * (np.arange(cumulated.shape[1]) >= category[:, None])
            below = passed.sum(axis=1) < 0.5
            low = np.where(below, middle, low)
            high = np.where(below, high, middle)
    return np.where(np.isnan(cumulated).any(axis=1), np.nan, (low + high) / 2)
