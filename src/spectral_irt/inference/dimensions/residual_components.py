"""Principal components of standardized residuals: is there a second dimension in what the model leaves?

Eigenvalues of the correlation matrix of standardized residuals, in units of items: one of 3 says that about three items
share something beyond the ability, and the loadings say which. Pure noise has eigenvalues too, up to about
(1 + sqrt(m v))^2 with v the mean variance of a correlation, 1 / n on complete data (Marchenko & Pastur 1967).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.data.block import Floats
from spectral_irt.engine import Prepared
from spectral_irt.inference.dimensions.residual_pairs import ALL_PAIRS, pair_correlations


@dataclass(frozen=True, eq=False)
class Components:
    """The first components.

    Attributes
    ----------
    eigenvalues : float array
        Falling, in units of items; they would add to the number of items if all were listed.
    loadings : items x components
        Correlation of each item's residuals with the component; NaN for items without residuals. Signs are such that
        the larger loading of each component is positive.
    noise : float
        About the largest eigenvalue of noise; rough for few items.
    """

    eigenvalues: Floats
    loadings: Floats
    noise: float


def residual_components(matrices: Prepared, m: int, n_components: int = 5, *, min_people: int = 30) -> Components:
    """The first principal components of residuals, people x items.

    Up to 1,000 items: of the matrix of pairwise correlations, 0 for pairs that too few people answered. Beyond: without
    forming it, with missing answers as residuals of 0; the same on complete data, smaller eigenvalues on sparse.
    """
    squares = matrices.sum(_squares)
    known = np.flatnonzero(squares > 0)
    k = min(n_components, len(known))
    if m <= ALL_PAIRS:
        r, n = pair_correlations(matrices, slice(0, m), min_people=min_people)
        variance = np.divide(1.0, n, out=np.zeros(n.shape), where=np.isfinite(r) & ~np.eye(m, dtype=bool))
        edge = variance.sum() / max(len(known), 1)
        r = np.where(np.isfinite(r), r, 0.0)[np.ix_(known, known)]
        np.fill_diagonal(r, 1.0)
        values, vectors = (each[..., ::-1][..., :k] for each in np.linalg.eigh(r))
    else:
        values, vectors = _largest(matrices, squares, known, k)
        edge = len(known) / matrices.sum(_n_rows)
    loadings = np.full((m, k), np.nan)
    loadings[known] = vectors * np.sqrt(np.maximum(values, 0))
    largest = loadings[known][np.abs(loadings[known]).argmax(axis=0), np.arange(k)] if k else np.zeros(0)
    return Components(values, loadings * np.where(largest < 0, -1.0, 1.0), float((1 + np.sqrt(edge)) ** 2))


def _squares(matrix: sparse.csr_array) -> Floats:
    return np.bincount(matrix.indices, weights=matrix.data**2, minlength=matrix.shape[1]).astype(np.float64)


def _n_rows(matrix: sparse.csr_array) -> int:
    return matrix.shape[0]


def _largest(matrices: Prepared, squares: Floats, known: Any, k: int) -> tuple[Floats, Floats]:
    """Eigenvalues of S Z' Z S, S = 1 / sqrt(diag Z' Z), by Lanczos: a pass over the residuals for each step."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    scale = 1 / np.sqrt(squares[known])

    def apply(x: Floats) -> Floats:
        full = np.zeros(len(squares))
        full[known] = scale * x.ravel()
        return scale * matrices.sum(_apply, full)[known]

    operator = LinearOperator((len(known), len(known)), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(len(known))
    values, vectors = eigsh(operator, k=min(k, len(known) - 1), which="LA", v0=start, tol=1e-6)
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def _apply(matrix: sparse.csr_array, x: Floats) -> Floats:
    return matrix.T @ (matrix @ x)
