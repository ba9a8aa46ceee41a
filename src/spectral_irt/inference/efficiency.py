"""The estimated error of difficulties beside the least that is possible with known abilities (Cramér and Rao)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.calibration import Calibration
from spectral_irt.chain.prior import fading
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.packing import CACHED, person_chunks
from spectral_irt.persons.residuals import probabilities


def floor(information: ArrayLike, *, centered: bool = False) -> float:
    """The floor under the mean squared error for these very people: sum_i 1 / I_i, I_i = sum_l p_li q_li.

    No estimate has the abilities, so none reaches it; regularized estimates are not unbiased, and may do better.

    Parameters
    ----------
    information : array
        I_i of each item, as `item_information` or `simulate.Simulated.information` give it. Items without any are left
        out; NaN where none has any.
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


def item_information(responses: Responses, difficulty: ArrayLike, ability: ArrayLike) -> Floats:
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
    the prior counts for the item). The floor is taken at the estimated difficulties and these abilities; with Warm's
    the ratio is right to about 5% (measured on simulated data). NaN without standard errors.
    """
    se = calibration.se
    told = item_information(responses, calibration.difficulty, ability)
    if calibration.prior is not None:
        fades = calibration.prior.kind == "neighbors" and calibration.prior.estimated
        told += calibration.prior.alpha * (fading(told, calibration.known, calibration.prior.alpha) if fades else 1.0)
    known = np.isfinite(se) & (told > 0)
    if not known.any():
        return float("nan")
    return float(np.sqrt((se[known] ** 2).sum() / floor(told[known], centered=True)))
