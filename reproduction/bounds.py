"""What the paper's bounds depend on, and its lower bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.data.block import Mask
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.simulate import Simulated


def kappa(difficulty: ArrayLike) -> float:
    """max beta - min beta."""
    return float(np.ptp(np.asarray(difficulty, dtype=float)))


def least_difference(difficulty: ArrayLike, ability: ArrayLike) -> float:
    """gamma = min over people l and items i != j of E[X_li (1 - X_lj)]: the hardest item right, the easiest wrong.

    >>> least_difference([0.0, 0.0], [0.0])
    0.25
    """
    beta, theta = np.asarray(difficulty, dtype=float), np.asarray(ability, dtype=float)
    return float(np.min(sigmoid(theta - beta.max()) * sigmoid(beta.min() - theta)))


def lower_bound(n_persons: int, n_items: int, p: float = 1.0) -> float:
    """The paper's floor under the mean squared error of any unbiased estimate: E ||T - beta*||^2 >= 4 m / (n p).

    It treats the m difficulties as free. Where their mean is known to be zero, as in the paper's own scale and in ours,
    a centered estimate can be better by the factor (m - 1) / m; `floor` has that bound.

    References
    ----------
    Nguyen & Zhang (2022), Theorem 3 and appendix B.
    """
    return 4 * n_items / (n_persons * p)


def floor(information: ArrayLike, *, centered: bool = False) -> float:
    """The floor under the mean squared error with known abilities (Cramér, Rao): sum_i 1 / I_i, I_i = sum_l p_li q_li.

    No estimate has the abilities, so none reaches it; regularized estimates are not unbiased, and may do better.

    Parameters
    ----------
    information : array
        I_i of each item, as `simulate.Simulated.information` gives it. Items without any are left out; NaN where none
        has any.
    centered : bool
        The floor for differences from the mean, sum 1/I - sum 1/I^2 / sum 1/I: what mean-centered estimates compare to.

    Examples
    --------
    >>> floor([4.0, 4.0]), floor([4.0, 4.0], centered=True)
    (0.5, 0.25)
    """
    every = np.asarray(information, dtype=float)
    variance = 1 / every[every > 0]
    if not len(variance):
        return float("nan")
    total = float(variance.sum())
    return total - float((variance**2).sum()) / total if centered else total


def floor_of_thresholds(data: Simulated, chosen: Mask) -> float:
    """The floor under the l2 error of these thresholds, centered, abilities known.

    The information of an item about its thresholds is the sum over persons of the covariances of having passed them,
    P(X >= max(k, k')) - P(X >= k) P(X >= k'). Items tell nothing about each other, so that the covariance V has a block
    for each item; of centered thresholds it is V - V 1 1' V / (1' V 1).
    """
    layout = data.responses.thresholds
    person, item, _ = data.responses.answers()
    covariance = np.zeros((layout.n_entries, layout.n_entries))
    cumulated = layout.cumulated(data.thresholds)
    for i in range(layout.n_items):
        place = np.flatnonzero((layout.item == i) & chosen)
        category = category_probabilities(data.ability[person[item == i]], cumulated[i])
        at_least = category[:, ::-1].cumsum(axis=1)[:, ::-1]
        level = layout.level[place]
        passed = at_least[:, level]
        both = at_least.sum(axis=0)[np.maximum.outer(level, level)]
        covariance[np.ix_(place, place)] = np.linalg.inv(both - passed.T @ passed)
    of_sum = covariance.sum(axis=1)
    return float(np.sqrt(np.trace(covariance) - of_sum @ of_sum / of_sum.sum()))
