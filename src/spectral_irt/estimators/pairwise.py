"""Difficulties from counts of pairs of items: pairwise likelihood, Choppin's row means, the leading eigenvector.

Y_ij is the number of people who answered i right and j wrong, and D_ij = Y_ji / Y_ij estimates exp(beta_i - beta_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import COUNTED, count_weights, weighting_named
from spectral_irt.chain.paper import PairChain, pair_counts
from spectral_irt.chain.stationary import stationary
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, spans
from spectral_irt.data.design import examine
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell, convergence
from spectral_irt.estimators.chain_alone import start_thresholds
from spectral_irt.estimators.estimable import DENSE_ITEMS, Errors, EstimableItems, by_item, estimable_items
from spectral_irt.model import sigmoid
from spectral_irt.numerics import centered_inverse, csr, gram
from spectral_irt.text import first_of

PAIRS = 2_000_000  # pairs of answers laid out at a time
MOST_ITEMS = 20_000  # a matrix of all pairs beyond this (3.2 GB) is a mistake, not a wish


class PairwiseFit(NamedTuple):
    """Difficulties, their pairwise log-likelihood, iterations, and the last move."""

    difficulty: Floats
    loglik: float
    n_iter: int
    last_move: float


def pairwise_difficulty(
    counts: Floats | sparse.csr_array, *, start: Floats | None = None, tol: float = 1e-9, max_iter: int = 10_000
) -> PairwiseFit:
    """Difficulties that maximize the pairwise likelihood of counts, which must be strongly connected.

    By Markov chains with rates Y_ij / (pi_i + pi_j), each at the pi of the last; at the fixed point, balance is the
    score equation (Luce spectral ranking).
    """
    y = sparse.csr_array(counts)
    right = np.repeat(np.arange(y.shape[0], dtype=np.int32), np.diff(y.indptr))
    wrong = y.indices
    beta = np.zeros(y.shape[0]) if start is None else start - start.mean()
    move = np.inf
    n_iter = 0
    while move > tol and n_iter < max_iter:
        pi = np.exp(beta)
        rates = sparse.csr_array((y.data / (pi[right] + pi[wrong]), wrong, y.indptr))
        pi = np.exp(beta - beta.max())
        new = np.log(stationary(PairChain(rates), start=pi / pi.sum(), tol=1e-12).pi)
        new -= new.mean()
        move = float(np.abs(new - beta).max())
        beta = new
        n_iter += 1
    loglik = float(-(y.data @ np.logaddexp(0, beta[right] - beta[wrong])))
    return PairwiseFit(beta, loglik, n_iter, move)


def person_scores(block: Block, beta: Floats, weighting: str) -> sparse.csr_array:
    """g_li, people x items: what each person adds to the derivative of the pairwise likelihood.

    g_li = w_l sum over right j of pi_j / (pi_i + pi_j) on a wrong answer, minus w_l sum over wrong j of pi_i /
    (pi_i + pi_j) on a right one. Every right answer is laid beside every wrong one of the same person, some people at a
    time.
    """
    block = block.take(np.flatnonzero(block.informative))
    n_right = block.scores
    n_wrong = block.counts - n_right
    weight = count_weights(block, weighting)
    place_of_right = np.flatnonzero(block.right())
    first_right = np.concatenate([[0], np.cumsum(n_right)])
    pairs_up_to = np.cumsum(n_right * n_wrong)
    scores = np.zeros(block.n_responses)
    start = 0
    while start < block.n_persons:
        pairs_before = pairs_up_to[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(pairs_up_to, pairs_before + PAIRS, side="right")))
        persons = np.arange(start, stop)
        # Rows of right answers, each repeated for every wrong answer of its person.
        row = np.repeat(persons, n_right[persons])
        i = np.repeat(place_of_right[first_right[start] : first_right[stop]], n_wrong[row])
        j = spans(block.split[row], n_wrong[row])
        share = sigmoid(beta[block.items[i]] - beta[block.items[j]])  # pi_i / (pi_i + pi_j)
        share *= np.repeat(weight[row], n_wrong[row])
        low = block.indptr[start]
        high = block.indptr[stop]
        scores[low:high] += np.bincount(j - low, weights=share, minlength=high - low)
        scores[low:high] -= np.bincount(i - low, weights=share, minlength=high - low)
        start = stop
    return csr(block.indptr.astype(np.int32), np.asarray(block.items), scores, len(beta))


def _score_squares(block: Block, beta: Floats, weighting: str, dense: bool) -> Floats:
    """The sum over people of g g', or its diagonal."""
    g = person_scores(block, beta, weighting)
    return gram(g) if dense else by_item(g.indices, g.data**2, len(beta))


def pairwise_errors(responses: Responses, counts: Floats | sparse.csr_array, beta: Floats, weighting: str) -> Floats:
    """Standard errors J^+ Omega J^+ with Omega the sum over people of g_l g_l^T; one person's pairs are dependent.

    J is a Laplacian with weights (Y_ij + Y_ji) pi_i pi_j / (pi_i + pi_j)^2; beyond 5,000 items, its diagonal.
    """
    y = sparse.csr_array(counts)
    dense = len(beta) <= DENSE_ITEMS
    right = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    p = sigmoid(beta[y.indices] - beta[right])
    weights = sparse.csr_array((y.data * p * (1 - p), y.indices, y.indptr), shape=y.shape)
    weights = weights + weights.T
    information = sparse.csr_array(sparse.diags_array(weights.sum(axis=1)) - weights)
    omega = responses.sum(_score_squares, beta, weighting, dense)
    if not dense:
        return np.sqrt(omega) / information.diagonal()
    inverse = centered_inverse(information.toarray())
    return np.sqrt(np.maximum(np.einsum("ij,ij->i", inverse @ omega, inverse), 0))


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseRasch(RaschEstimator):
    """Difficulties by pairwise maximum likelihood (PML): every right and wrong answer of a person is one comparison.

    loglik = sum_ij Y_ij log(pi_j / (pi_i + pi_j)),  Y_ij = sum_l w_l X_li (1 - X_lj),  pi = exp(beta)

    Consistent without any assumption on abilities. It needs the counts of all pairs of items seen together, m x m at
    worst, which the spectral method does not. Standard errors are a sandwich over people; beyond 5,000 items they use
    the diagonal of the information.

    Parameters
    ----------
    weighting : "pairs" or "persons"
        Each person counts 1, as in the paper, or 1 / n_l, which is far more accurate when some people answer many more
        items than others.
    tol, max_iter : float, int
        Stop when no difficulty moves by more than `tol`; at most so many iterations.
    threads, threshold
        As in every estimator.

    Attributes
    ----------
    loglik_ : float
        The pairwise log-likelihood: composite, so not for likelihood-ratio tests.

    References
    ----------
    Zwinderman (1995), Applied Psychological Measurement 19, 369. Maystre & Grossglauser (2015), NeurIPS (chains).
    Nguyen & Zhang (2022), appendix.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> PairwiseRasch().fit(load_lsat()).difficulty_.round(3).tolist()
    [-1.27, 0.477, 1.244, 0.17, -0.622]
    """

    likelihood: ClassVar[str] = "pairwise"

    weighting: str = "pairs"
    tol: float = 1e-9
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        weighting_named(self.weighting, COUNTED)
        items = estimable_items(responses)
        usable = items.responses
        counts = pair_counts(usable, weighting=self.weighting)
        fit = pairwise_difficulty(counts, start=start_thresholds(usable), tol=self.tol, max_iter=self.max_iter)
        what = "the pairwise likelihood"
        findings = convergence(what, fit.n_iter, "iterations", "a last step of", fit.last_move, self.tol)
        if usable.n_items > DENSE_ITEMS:
            sentence = f"With more than {DENSE_ITEMS:,} items standard errors use the diagonal of the information."
            remedy = "They are too small where groups of items are weakly linked."
            findings.append(Finding("approximate_se", "note", sentence, remedy))
        errors = Errors(pairwise_errors(usable, counts, fit.difficulty, self.weighting))
        return items.estimate(fit.difficulty, errors, fit.n_iter, fit.last_move, loglik=fit.loglik, findings=findings)


def reciprocal_matrix(counts: Floats) -> Floats:
    """D_ij = Y_ji / Y_ij, with ones on the diagonal."""
    y = np.array(counts, dtype=float)
    np.fill_diagonal(y, 1)
    return y.T / y


def _complete_counts(responses: Responses) -> Floats:
    """Y, after a check that every pair of items was answered differently in both ways."""
    m = responses.n_items
    if m > MOST_ITEMS:
        raise OptionError(
            f"{m:,} items make {m * m:,} pairs; the reciprocal methods are for short tests. Use `SpectralRasch`."
        )
    counts = np.asarray(pair_counts(responses, dense=True))
    missing = np.argwhere(np.triu((counts == 0) | (counts == 0).T, 1))
    if len(missing):
        names = responses.items.tolist()
        shown = first_of(f"({names[i]!r}, {names[j]!r})" for i, j in missing)
        raise DesignError(
            f"{responses.source}: {len(missing):,} of {m * (m - 1) // 2:,} pairs of items lack a person who answered "
            f"the first right and the second wrong, or the other way round: {shown}. The reciprocal matrix is "
            "defined only when none is missing. Use `SpectralRasch` or `PairwiseRasch`, which need no complete pairs, "
            "or drop the items."
        )
    return counts


def choppin_difficulty(matrix: Floats) -> Floats:
    """beta_i = mean_j log D_ij.

    >>> choppin_difficulty(np.array([[1.0, 4.0], [0.25, 1.0]])).round(4).tolist()
    [0.6931, -0.6931]
    """
    return np.log(matrix).mean(axis=1)


class ReciprocalFit(NamedTuple):
    """Difficulties of a reciprocal matrix, iterations, and the last change."""

    difficulty: Floats
    n_iter: int
    last_change: float


def eigenvector_difficulty(matrix: Floats, *, tol: float = 1e-13, max_iter: int = 10_000) -> ReciprocalFit:
    """The log of the leading right eigenvector of D > 0, centered, by power iteration.

    >>> eigenvector_difficulty(np.array([[1.0, 4.0], [0.25, 1.0]])).difficulty.round(4).tolist()
    [0.6931, -0.6931]
    """
    beta = choppin_difficulty(matrix)
    move = np.inf
    n_iter = 0
    while move > tol and n_iter < max_iter:
        new = np.log(matrix @ np.exp(beta))
        new -= new.mean()
        move = float(np.abs(new - beta).max())
        beta = new
        n_iter += 1
    return ReciprocalFit(beta, n_iter, move)


@dataclass(kw_only=True, eq=False, repr=False)
class ChoppinRasch(RaschEstimator):
    """Difficulties by Choppin's row means of the log reciprocal matrix: closed form, complete pairs only.

    beta_i = mean_j log(Y_ji / Y_ij),  Y_ij = number of people who answered i right and j wrong

    Noisy where counts are small: every pair weighs the same. There are no standard errors.

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

    likelihood: ClassVar[str] = "pairwise"

    tol: float = 1e-13
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None

    def _solve(self, matrix: Floats) -> ReciprocalFit:
        return ReciprocalFit(choppin_difficulty(matrix), n_iter=1, last_change=0.0)

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        matrix = reciprocal_matrix(_complete_counts(responses))
        design = examine(responses)
        sentence = "The methods of the reciprocal matrix have no standard errors here."
        remedy = "`PairwiseRasch`, `ConditionalRasch` and `SpectralRasch` have them."
        findings = (*design.findings, Finding("no_standard_errors", "note", sentence, remedy))
        items = EstimableItems(responses, design.answered, design.status, findings, responses.thresholds)
        fit = self._solve(matrix)
        errors = Errors.none(responses.thresholds)
        return items.estimate(fit.difficulty, errors, fit.n_iter, fit.last_change, extra={"reciprocal": matrix})


@dataclass(kw_only=True, eq=False, repr=False)
class EigenvectorRasch(ChoppinRasch):
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

    def _solve(self, matrix: Floats) -> ReciprocalFit:
        return eigenvector_difficulty(matrix, tol=self.tol, max_iter=self.max_iter)
