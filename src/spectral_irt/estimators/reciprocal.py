"""ChoppinRasch and EigenvectorRasch: difficulties from the positive reciprocal matrix of all pairs of items.

With Y_ij the number of people who answered i right and j wrong, D_ij = Y_ji / Y_ij estimates exp(beta_i - beta_j).
Choppin (1968) averages log D over rows; Garner (2002), after Saaty, takes the log of its leading eigenvector. Both need
every pair of items to have been answered differently by somebody in both ways, so they are for short complete tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.chain.paper import pair_counts
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import examine
from spectral_irt.errors import NAMED, DesignError, OptionError
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.estimate import Estimate, Kept

MOST_ITEMS = 20_000  # a matrix of all pairs beyond this (3.2 GB) is a mistake, not a wish
NO_ERRORS = "The methods of the reciprocal matrix have no standard errors here."
THEY_HAVE = "`PairwiseRasch`, `ConditionalRasch` and `SpectralRasch` have them."


def reciprocal_matrix(counts: Floats) -> Floats:
    """D_ij = Y_ji / Y_ij, with ones on the diagonal.

    >>> reciprocal_matrix(np.array([[0.0, 2.0], [6.0, 0.0]])).tolist()
    [[1.0, 3.0], [0.3333333333333333, 1.0]]
    """
    y = np.array(counts, dtype=float)
    np.fill_diagonal(y, 1)
    return y.T / y


def choppin_difficulty(matrix: Floats) -> Floats:
    """beta_i = mean_j log D_ij.

    >>> choppin_difficulty(np.array([[1.0, 4.0], [0.25, 1.0]])).round(4).tolist()
    [0.6931, -0.6931]
    """
    return np.log(matrix).mean(axis=1)


def eigenvector_difficulty(matrix: Floats, *, tol: float = 1e-13, max_iter: int = 10_000) -> tuple[Floats, int, float]:
    """The log of the leading right eigenvector of D, centered; with the iterations and the last change.

    D > 0, so power iteration converges; in an exactly reciprocal matrix, D = pi (1/pi)^T, at once.

    >>> eigenvector_difficulty(np.array([[1.0, 4.0], [0.25, 1.0]]))[0].round(4).tolist()
    [0.6931, -0.6931]
    """
    beta = choppin_difficulty(matrix)
    move, n_iter = np.inf, 0
    while move > tol and n_iter < max_iter:
        new = np.log(matrix @ np.exp(beta))
        new -= new.mean()
        move = float(np.abs(new - beta).max())
        beta = new
        n_iter += 1
    return beta, n_iter, move


# ------------------------------------------------------------------------------- estimators


@dataclass(kw_only=True, eq=False, repr=False)
class _ReciprocalRasch(RaschEstimator):
    """What the two methods share: the counts, and the check that all pairs are there."""

    tol: float = 1e-13
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None

    def _solve(self, matrix: Floats) -> tuple[Floats, int, float]:
        raise NotImplementedError

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        matrix = reciprocal_matrix(complete_counts(responses))
        difficulty, n_iter, residual = self._solve(matrix)
        design = examine(responses)
        findings = (*design.findings, Finding("no_standard_errors", "note", NO_ERRORS, THEY_HAVE))
        kept = Kept(responses, design.answered, design.status(), findings, responses.thresholds)
        extra = {"reciprocal": matrix}
        return kept.estimate(difficulty, None, n_iter, residual, se_method="none", extra=extra)


def complete_counts(responses: Responses) -> Floats:
    """Y, after a check that every pair of items was answered differently in both ways."""
    m = responses.n_items
    if m > MOST_ITEMS:
        raise OptionError(
            f"{m:,} items make {m * m:,} pairs; the reciprocal methods are for short tests. Use `SpectralRasch`."
        )
    counts = np.asarray(pair_counts(responses, dense=True))
    empty = (counts == 0) & ~np.eye(m, dtype=bool)
    missing = np.argwhere(np.triu(empty | empty.T))
    if len(missing):
        names = responses.items.tolist()
        shown = ", ".join(f"({names[i]!r}, {names[j]!r})" for i, j in missing[:NAMED])
        more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
        raise DesignError(
            f"{responses.source}: {len(missing):,} of {m * (m - 1) // 2:,} pairs of items lack a person who answered "
            f"the first right and the second wrong, or the other way round: {shown}{more}. The reciprocal matrix is "
            "defined only when none is missing. Use `SpectralRasch` or `PairwiseRasch`, which need no complete pairs, "
            "or drop the items."
        )
    return counts


@dataclass(kw_only=True, eq=False, repr=False)
class ChoppinRasch(_ReciprocalRasch):
    """Difficulties by Choppin's row means of the log reciprocal matrix: closed form, complete pairs only.

    beta_i = mean_j log(Y_ji / Y_ij),  Y_ij = number of people who answered i right and j wrong

    A pair that only a few people answered differently weighs as much as any other, so the estimate is noisy where
    counts are small. There are no standard errors.

    Parameters
    ----------
    tol, max_iter, threads, threshold
        As in every estimator; the first two are not used, since the estimate is a formula.

    Attributes
    ----------
    reciprocal_ : array, items x items
        D_ij = Y_ji / Y_ij.

    References
    ----------
    Choppin (1968), Nature 219, 870; (1982). Nguyen & Zhang (2022), appendix.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> ChoppinRasch().fit(load_lsat()).difficulty_.round(3).tolist()
    [-1.277, 0.479, 1.254, 0.167, -0.622]
    """

    def _solve(self, matrix: Floats) -> tuple[Floats, int, float]:
        return choppin_difficulty(matrix), 1, 0.0


@dataclass(kw_only=True, eq=False, repr=False)
class EigenvectorRasch(_ReciprocalRasch):
    """Difficulties as the log of the leading eigenvector of the reciprocal matrix; complete pairs only.

    D exp(beta) = lambda exp(beta),  D_ij = Y_ji / Y_ij,  Y_ij = number of people who answered i right and j wrong

    Parameters
    ----------
    tol, max_iter, threads, threshold
        As in every estimator; power iteration stops when no difficulty moves by more than `tol`.

    Attributes
    ----------
    reciprocal_ : array, items x items
        D_ij = Y_ji / Y_ij.

    References
    ----------
    Garner & Engelhard (2002), Journal of Applied Measurement 3, 107. Saaty (1987). Nguyen & Zhang (2022), appendix.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> EigenvectorRasch().fit(load_lsat()).difficulty_.round(3).tolist()
    [-1.277, 0.478, 1.255, 0.166, -0.622]
    """

    def _solve(self, matrix: Floats) -> tuple[Floats, int, float]:
        return eigenvector_difficulty(matrix, tol=self.tol, max_iter=self.max_iter)
