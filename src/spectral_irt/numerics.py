"""Numerical tools that know nothing of tests: acceleration of an iteration, a Gram product, a centred inverse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

WINDOW = 8  # differences that Anderson's acceleration looks back on
FILLED = 0.2  # share of cells from which a dense product is faster than a sparse one
SLICE = 4_000_000  # cells of a dense slice: 32 MB


class Anderson:
    """Anderson's acceleration of a fixed-point iteration x <- F(x): the next point from the last few points and images.

    The caller decides whether the point is any good, and calls `forget` when it is not.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.forget()

    def forget(self) -> None:
        self._points: list[Floats] = []
        self._errors: list[Floats] = []

    def next(self, x: Floats, image: Floats) -> Floats:
        self._points = [*self._points[-self.window :], x]
        self._errors = [*self._errors[-self.window :], image - x]
        if len(self._points) == 1:
            return image
        steps = np.diff(np.stack(self._points, axis=1), axis=1)
        changes = np.diff(np.stack(self._errors, axis=1), axis=1)
        gamma = np.linalg.lstsq(changes, self._errors[-1], rcond=1e-10)[0]
        return image - (steps + changes) @ gamma


def centred_inverse(matrix: Floats) -> Floats:
    """Pseudo-inverse of a matrix whose rows and columns add to zero: J^+ = (J + c 11^T / m)^-1 - 11^T / (c m).

    The inverse of an information matrix on a scale without an origin is the covariance of mean-centered difficulties.
    Any c gives the same; that of the mean diagonal keeps the matrix well conditioned.
    """
    m = len(matrix)
    c = np.trace(matrix) / m
    return np.linalg.inv(matrix + c / m) - 1 / (c * m)


def gram(matrix: sparse.csr_array) -> Floats:
    """matrix^T matrix as a dense array: by dense slices when most cells are filled, sparse otherwise."""
    rows, m = matrix.shape
    if matrix.nnz < FILLED * rows * m:
        return (matrix.T @ matrix).toarray()
    total = np.zeros((m, m))
    size = max(1, SLICE // m)
    for start in range(0, rows, size):
        part = matrix[start : start + size].toarray()
        total += part.T @ part
    return total
