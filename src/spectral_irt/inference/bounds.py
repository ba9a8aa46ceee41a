"""What theory promises: the paper's error bounds with their printed constants and conditions, and the Cramér-Rao floor.

n people, m items, each item shown to each person with probability p; kappa = max beta - min beta; gamma = the least
E[X_li (1 - X_lj)] of any person and two items. The upper bounds hold for the paper's estimator. Their constants are
very large: with kappa = 4 and gamma = 0.05 the factor e^(4 kappa) / gamma alone is 1.8e8, so what they tell is the
rate. The floors are met within a factor of 1 to 1.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.calibration import Calibration
from spectral_irt.chain.prior import fading
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.packing import CACHED, person_chunks
from spectral_irt.errors import OptionError
from spectral_irt.model import sigmoid
from spectral_irt.persons.residuals import probabilities

# "Sufficiently large" in the appendix.
C1 = 101  # of log m, and of log n in the regime of many items
C2 = 30  # of 12^2 e^(4 kappa) / gamma^2 log m


@dataclass(frozen=True)
class Condition:
    """`what` has to be at least `need` (or just that, with `exactly`); it is `have`."""

    what: str
    have: float
    need: float
    exactly: bool = False

    @property
    def holds(self) -> bool:
        return bool(self.have == self.need if self.exactly else self.have >= self.need)


@dataclass(frozen=True)
class Bound:
    """What a theorem says.

    Attributes
    ----------
    value : float
        The bound: on the l2 error for upper bounds, on the mean squared l2 error for lower ones.
    holds : bool
        Whether all conditions of the theorem are met. Without them the number is a formula, not a promise.
    conditions : tuple of Condition
    probability : float or None
        At least this often; None for bounds on an expectation.
    """

    value: float
    holds: bool
    conditions: tuple[Condition, ...]
    probability: float | None = None


def _bound(value: float, conditions: tuple[Condition, ...], probability: float | None = None) -> Bound:
    return Bound(float(value), all(condition.holds for condition in conditions), conditions, probability)


# -------------------------------------------------------------------------------- what the bounds depend on


def spread(difficulty: ArrayLike) -> float:
    """kappa = max beta - min beta."""
    return float(np.ptp(np.asarray(difficulty, dtype=float)))


def least_difference(difficulty: ArrayLike, ability: ArrayLike) -> float:
    """gamma = min over people l and items i != j of E[X_li (1 - X_lj)]: the hardest item right, the easiest wrong.

    >>> least_difference([0.0, 0.0], [0.0])
    0.25
    """
    beta, theta = np.asarray(difficulty, dtype=float), np.asarray(ability, dtype=float)
    return float(np.min(sigmoid(theta - beta.max()) * sigmoid(beta.min() - theta)))


# ------------------------------------------------------------------------------------------- upper bounds


def upper_bound(n_persons: int, n_items: int, p: float = 1.0, *, kappa: float, gamma: float) -> Bound:
    """The paper's bound on the l2 error for a fixed number of items.

    ||beta - beta*||_2 <= 96 / sqrt(3) e^(4 kappa) / gamma sqrt(max(m, log n p^2)) / sqrt(n p^2)

    References
    ----------
    Nguyen & Zhang (2022), Theorem 1; constants in appendix A, "Putting it all together".

    Examples
    --------
    >>> bound = upper_bound(10_000, 5, kappa=0.0, gamma=0.25)
    >>> round(bound.value, 2), bound.holds
    (6.73, False)
    """
    _check(n_persons, n_items, p, kappa, gamma)
    pairs = n_persons * p**2
    value = 96 / np.sqrt(3) * _factor(kappa, gamma) * np.sqrt(max(n_items, np.log(pairs)) / pairs)
    rare = min(np.exp(-12 * n_items), pairs**-12) + np.exp(-pairs / 20) + _rare_gap(pairs, kappa, gamma)
    return _bound(value, _enough_pairs(pairs, n_items, kappa, gamma), _at_least(rare))


def upper_bound_many_items(n_persons: int, n_items: int, p: float, *, kappa: float, gamma: float) -> Bound:
    """The paper's bound on the l2 error where every person sees many items; sharper by sqrt(p).

    ||beta - beta*||_2 <= 96 / sqrt(2) e^(4 kappa) / gamma sqrt(m) / sqrt(n p)

    The appendix states the condition on the items a person sees as m p >= C log m; the main text, and the lemma behind
    it, need m p >= C log n, which is what is checked. Its probability leaves out exp(-n p^2 / 20), which its proof
    has; here it is in.

    References
    ----------
    Nguyen & Zhang (2022), Theorem 2; constants at the end of appendix A.
    """
    _check(n_persons, n_items, p, kappa, gamma)
    pairs = n_persons * p**2
    value = 96 / np.sqrt(2) * _factor(kappa, gamma) * np.sqrt(n_items / (n_persons * p))
    seen = Condition("m p: items that a person sees", n_items * p, C1 * np.log(n_persons))
    rare = np.exp(-12 * n_items) + np.exp(-pairs / 20) + _rare_gap(pairs, kappa, gamma) + float(n_persons) ** -9
    return _bound(value, (*_enough_pairs(pairs, n_items, kappa, gamma), seen), _at_least(rare))


def _factor(kappa: float, gamma: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(4 * kappa) / gamma)


def _enough_pairs(pairs: float, m: int, kappa: float, gamma: float) -> tuple[Condition, Condition]:
    """n p^2, people who see a given pair of items, against what concentration and the spectral gap ask for."""
    gap = C2 * 12**2 * _factor(kappa, gamma) / gamma * np.log(m)
    return (
        Condition("n p^2: people who see a pair of items", pairs, float(C1 * np.log(m))),
        Condition("n p^2, for the spectral gap", pairs, float(gap)),
    )


def _rare_gap(pairs: float, kappa: float, gamma: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(-(gamma**2) * pairs / (10 * 12**2 * np.exp(4 * kappa))))


def _at_least(rare: float) -> float:
    return float(max(0.0, 1 - rare))


# ------------------------------------------------------------------------------------------- lower bounds


def lower_bound(n_persons: int, n_items: int, p: float = 1.0) -> Bound:
    """The paper's floor under the mean squared error of any unbiased estimate: E ||T - beta*||^2 >= 4 m / (n p).

    It treats the m difficulties as free. Where their mean is known to be zero, as in the paper's own scale and in ours,
    a centered estimate can be better by the factor (m - 1) / m; `floor(..., centered=True)` is that bound.

    References
    ----------
    Nguyen & Zhang (2022), Theorem 3 and appendix B.

    Examples
    --------
    >>> lower_bound(1000, 5).value
    0.02
    """
    _check(n_persons, n_items, p)
    return _bound(4 * n_items / (n_persons * p), ())


def lower_bound_two_items(n_persons: int, p: float = 1.0, n_items: int = 2) -> Bound:
    """The paper's floor for two items and estimates that use only people who answered the two differently: 1 / (n p^2).

    References
    ----------
    Nguyen & Zhang (2022), Theorem 4 and appendix B.
    """
    _check(n_persons, n_items, p)
    only = Condition("m: items", n_items, 2, exactly=True)
    return _bound(1 / (n_persons * p**2), (only,))


def floor(information: ArrayLike, *, centered: bool = False) -> Bound:
    """The Cramér-Rao floor under the mean squared error for these very people: sum_i 1 / I_i, I_i = sum_l p_li q_li.

    Sharper than `lower_bound`, which takes p q = 1/4 and the expected number of answers. No estimate has the abilities,
    so none reaches it; regularized estimates are not unbiased, and may do better.

    Parameters
    ----------
    information : array
        I_i of each item, as `information` or `simulate.Simulated.information` give it. Items without any are left out.
    centered : bool
        The floor for differences from the mean, sum 1/I - sum 1/I^2 / sum 1/I: what mean-centered estimates compare to.

    Examples
    --------
    >>> floor([4.0, 4.0]).value, floor([4.0, 4.0], centered=True).value
    (0.5, 0.25)
    """
    every = np.asarray(information, dtype=float)
    variance = 1 / every[every > 0]
    told = Condition("share of items with information", len(variance) / max(len(every), 1), 1.0)
    total = variance.sum()
    value = total - (variance**2).sum() / total if centered and len(variance) else total
    return _bound(value if len(variance) else np.nan, (told,))


def information(responses: Responses, difficulty: ArrayLike, ability: ArrayLike) -> Floats:
    """I_i = sum_l p_li (1 - p_li) over the people who answered item i; NaN difficulties and abilities add nothing."""
    beta, theta = np.asarray(difficulty, dtype=float), np.asarray(ability, dtype=float)
    return responses.sum(_information, beta, persons=(theta,))


def _information(block: Block, theta: Floats, beta: Floats) -> Floats:
    total = np.zeros(len(beta))
    for start, stop in person_chunks(block.indptr, CACHED):
        p = probabilities(block, beta, theta, start, stop)
        p *= 1 - p
        np.nan_to_num(p, copy=False)
        items = block.items[block.indptr[start] : block.indptr[stop]]
        total += np.bincount(items, weights=p, minlength=len(beta))
    return total


def error_over_floor(calibration: Calibration, responses: Responses, ability: Floats) -> float:
    """The estimated l2 error over the least possible: sqrt(sum_i se_i^2) / sqrt(floor), both mean-centered.

    1 would be as good as with known abilities; 1.05 to 1.2 is usual, more where people answer few items. Where the
    calibration has a prior of precision alpha, so has the floor: 1 / (I_i + alpha), the bound of van Trees (as far as
    the prior counts for the item). The floor
    is taken at the estimated difficulties and these abilities; with Warm's the ratio is right to about 5% (measured on
    simulated data). NaN without standard errors.
    """
    se = calibration.se
    told = information(responses, calibration.difficulty, ability)
    if calibration.prior is not None:
        fades = calibration.prior.kind == "neighbors" and calibration.prior.estimated
        told += calibration.prior.alpha * (fading(told, calibration.known, calibration.prior.alpha) if fades else 1.0)
    known = np.isfinite(se) & (told > 0)
    if not known.any():
        return float("nan")
    return float(np.sqrt((se[known] ** 2).sum() / floor(told[known], centered=True).value))


def _check(n_persons: int, n_items: int, p: float, kappa: float = 0.0, gamma: float = 0.25) -> None:
    if n_persons < 1 or n_items < 2:
        raise OptionError(f"n_persons is {n_persons} and n_items is {n_items}; a bound needs a person and two items.")
    if not 0 < p <= 1:
        raise OptionError(f"`p` is {p}; it must lie above 0 and be at most 1.")
    if not kappa >= 0:
        raise OptionError(f"kappa is {kappa}; the spread of the difficulties is zero or more.")
    if not 0 < gamma <= 0.25:
        raise OptionError(f"gamma is {gamma}; it must lie above 0, and cannot exceed 1/4.")
