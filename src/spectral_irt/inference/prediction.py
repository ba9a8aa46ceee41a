"""How well difficulties predict people they have never seen, as the paper measures it.

A new person's ability is unknown, so the probability of a right answer to item i is the average over a prior,
p_i = E sigmoid(theta - beta_i) with theta ~ N(mu, sigma^2). The prior is chosen among a few by the log-likelihood of
validation people; area under the ROC curve and mean log-likelihood are taken on test people.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError
from spectral_irt.model import sigmoid
from spectral_irt.numerics import generator

# The paper tries ten normal distributions and does not list them; its authors' program has means -2 to 2 and standard
# deviations 0.5, 1 and 1.5. These ten span the same range.
TEN_PRIORS = tuple((mu, sd) for mu in (-2.0, -1.0, 0.0, 1.0, 2.0) for sd in (0.5, 1.5))

NODES = 41  # of the Gauss-Hermite rule: the averaged probability is right to ten digits


@dataclass(frozen=True)
class Holdout:
    """What the test people say.

    Attributes
    ----------
    auc : float
        Chance that a right answer had the larger predicted probability than a wrong one (ties count half).
    loglik : float
        Mean log-likelihood of a response.
    prior : (mu, sigma)
        The prior that the validation people chose.
    n_responses : int
        Responses that could be predicted; those to items without a difficulty could not.
    """

    auc: float
    loglik: float
    prior: tuple[float, float]
    n_responses: int


def split_persons(responses: Responses, shares: Sequence[float], seed: int) -> tuple[Responses, ...]:
    """Random groups of people with these shares, which add to 1; the same seed gives the same groups."""
    if any(share < 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise OptionError(f"shares {list(shares)} must be positive and add to 1.")
    order = generator(seed).permutation(responses.n_persons)
    limits = np.round(np.cumsum([0.0, *shares]) * len(order)).astype(int)
    return tuple(responses.take_persons(np.sort(order[a:b])) for a, b in itertools.pairwise(limits))


def marginal_probability(difficulty: Floats, mu: float, sigma: float) -> Floats:
    """E sigmoid(theta - beta_i) over theta ~ N(mu, sigma^2)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    theta = mu + sigma * nodes
    p = sigmoid(np.clip(theta[None, :] - difficulty[:, None], -700, 700))
    return p @ (weights / weights.sum())


def evaluate(
    difficulty: Floats,
    validation: Responses,
    test: Responses,
    priors: Sequence[tuple[float, float]] = TEN_PRIORS,
) -> Holdout:
    """Choose the prior on the validation people, and measure on the test people.

    Items with NaN difficulty (nobody answered them in training) get the average difficulty, 0: a prediction is asked
    for all the same, and no better one is known.
    """
    beta = np.where(np.isfinite(difficulty), difficulty, 0.0)
    chosen = max(priors, key=lambda prior: _loglik(marginal_probability(beta, *prior), *_counts(validation)))
    p = marginal_probability(beta, *chosen)
    right, wrong = _counts(test)
    return Holdout(auc(p, right, wrong), _loglik(p, right, wrong), chosen, int(right.sum() + wrong.sum()))


def auc(score: Floats, right: Ints, wrong: Ints) -> float:
    """Area under the ROC curve when every response to item i is predicted by score[i]; ties count half.

    >>> auc(np.array([0.9, 0.2]), np.array([3, 1]), np.array([1, 3]))
    0.75
    """
    levels, level = np.unique(score, return_inverse=True)
    ones = np.bincount(level, right, len(levels))
    zeros = np.bincount(level, wrong, len(levels))
    if not ones.sum() or not zeros.sum():
        return float("nan")
    below = np.cumsum(zeros) - zeros
    return float(ones @ (below + zeros / 2) / (ones.sum() * zeros.sum()))


def _counts(responses: Responses) -> tuple[Ints, Ints]:
    return responses.item_scores, responses.item_counts - responses.item_scores


def _loglik(p: Floats, right: NDArray[np.int64], wrong: NDArray[np.int64]) -> float:
    total = int(right.sum() + wrong.sum())
    if not total:
        return float("nan")
    tiny = np.finfo(float).tiny
    return float((right @ np.log(np.maximum(p, tiny)) + wrong @ np.log(np.maximum(1 - p, tiny))) / total)
