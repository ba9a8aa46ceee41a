"""Models that are right equally often on the same prompts are equally able: to the last bit, not up to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block
from spectral_irt.data.block import Floats, Ints

Marks = NDArray[np.uint64]


def answer_marks(block: Block, n_prompts: int) -> tuple[Marks, Marks]:
    """Of each model a number that tells which prompts it answered, and one that tells which it has right.

    The sum of a random number for each prompt: equal for equal sets, and for others only with a chance of 2^-64.
    """
    of_prompt = np.random.default_rng(0).integers(0, 2**64, n_prompts, dtype=np.uint64)[np.asarray(block.items)]

    def sums(values: Marks) -> Marks:
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
        return total[block.indptr[1:]] - total[block.indptr[:-1]]

    return sums(of_prompt), sums(of_prompt * block.right().astype(np.uint64))


def numbered(*keys: NDArray[np.generic]) -> Ints:
    """The same number for those whose keys are all equal."""
    rows = np.stack([key.astype(np.uint64) for key in keys], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def made_equal(calibration: Calibration, same_score: Ints, same_answers: Ints) -> Calibration:
    """The difficulties of the same score replaced by their mean; so the errors of those with the same answers."""
    return replace(
        calibration,
        thresholds=_means(calibration.thresholds, same_score),
        threshold_se=_means(calibration.threshold_se, same_answers),
    )


def _means(values: Floats, group: Ints) -> Floats:
    counts = np.bincount(group)
    with np.errstate(invalid="ignore"):
        means = np.bincount(group, values) / counts
    return np.where(counts[group] > 1, means[group], values)
