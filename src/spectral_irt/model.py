"""The Rasch model in two functions: how likely a right answer is, and the ability that a score stands for.

And the partial credit model in one: how likely each of several ordered categories is.

P(right) = sigmoid(ability - difficulty). Kernels that walk over packed answers form 1 / (1 + exp(difficulty) /
exp(ability)) in place instead, which is the same; everything else comes here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A logistic distribution is close to a normal one with this variance, 1.7^2.
LOGISTIC_VARIANCE = 2.89
ALIKE = 9  # decimals of a logit up to which people are equally able: the same score, added up in another order


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)): 0 and 1 at the ends, without a warning. For 1 - sigmoid(x) without cancellation: sigmoid(-x).

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def prox(mean: Any, variance: Any, logit: Any) -> Any:
    """The ability that a score stands for, in closed form: mean + sqrt(1 + variance / 2.89) logit.

    Parameters
    ----------
    mean, variance : floats
        Of the difficulties of the items answered.
    logit : floats
        log(right / wrong), perhaps with half an answer added to each.

    References
    ----------
    Cohen (1979), British Journal of Mathematical and Statistical Psychology 32, 113-120.
    """
    return mean + np.sqrt(1 + variance / LOGISTIC_VARIANCE) * logit


def category_probabilities(theta: Floats, cumulated: Floats) -> Floats:
    """P(X = k) ~ exp(k theta - sum_{v <= k} beta_v) for k = 0 to K, along the last axis: the partial credit model.

    Parameters
    ----------
    theta : float array
    cumulated : float array
        Sums of the thresholds up to each category, 0 for the lowest; +inf for a category that the item does not have.
        Its axes before the last go with those of `theta`.

    >>> category_probabilities(np.zeros(1), np.array([[0.0, 0.0, 0.0, np.inf]])).round(3).tolist()
    [[0.333, 0.333, 0.333, 0.0]]
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
