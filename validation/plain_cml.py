"""Conditional maximum likelihood in the plainest way, to check the fast one: one polynomial, and an optimizer of scipy.

Everybody answered everything, so that the sum of the weights of all patterns with a total score is one coefficient of
the product over the items of sum_x exp(-beta_i1 - ... - beta_ix) z^x. Nothing of the package is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]


def log_coefficients(thresholds: Sequence[Floats]) -> Floats:
    """log of the coefficient of each total score."""
    product = np.ones(1)
    scale = 0.0
    for own in thresholds:
        weights = np.exp(-np.concatenate([[0.0], np.cumsum(own)]))
        product = np.convolve(product, weights)
        largest = product.max()
        product /= largest
        scale += np.log(largest)
    result: Floats = np.log(product) + scale
    return result


def loglik(thresholds: Sequence[Floats], answers: NDArray[np.int64]) -> float:
    """The conditional log-likelihood of a complete table of categories."""
    totals = answers.sum(axis=1)
    passed = 0.0
    for own, column in zip(thresholds, answers.T, strict=True):
        counts = np.array([(column >= level + 1).sum() for level in range(len(own))])
        passed -= float(counts @ own)
    return passed - float(log_coefficients(thresholds)[totals].sum())


def maximum(design: Sequence[NDArray[np.float64]], answers: NDArray[np.int64]) -> tuple[Floats, float]:
    """The parameters where the likelihood is largest, and its logarithm; item i has the thresholds design[i] @ them."""

    def loss(parameters: Floats) -> float:
        return -loglik([rows @ parameters for rows in design], answers)

    def gradient(parameters: Floats) -> Floats:
        """By the derivative of each threshold: P(passed | score), summed over persons, less how many passed."""
        thresholds = [rows @ parameters for rows in design]
        totals = answers.sum(axis=1)
        whole = log_coefficients(thresholds)
        result = np.zeros(len(parameters))
        for k, (rows, column) in enumerate(zip(design, answers.T, strict=True)):
            rest = np.exp(log_coefficients(thresholds[:k] + thresholds[k + 1 :]) - whole.mean())
            weights = np.exp(-np.concatenate([[0.0], np.cumsum(thresholds[k])]))
            for level in range(len(rows)):
                above = weights.copy()
                above[: level + 1] = 0.0
                expected = np.convolve(rest, above)[totals] / np.exp(whole[totals] - whole.mean())
                result += rows[level] * (float((column > level).sum()) - float(expected.sum()))
        return result

    found = minimize(loss, np.zeros(design[0].shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-7})
    return found.x, -float(found.fun)
