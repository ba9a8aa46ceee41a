"""The Rasch model in two functions: how likely a right answer is, and the ability that a score stands for.

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
