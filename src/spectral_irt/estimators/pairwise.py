"""PairwiseRasch: pairwise (composite) maximum likelihood, a comparison for every right and wrong answer of a person."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from spectral_irt.chain.paper import PairChain, pair_counts
from spectral_irt.chain.stationary import stationary
from spectral_irt.chain.weights import COUNTED, count_weights, weighting_named
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.estimate import DENSE_ITEMS, Estimate, by_item, convergence, keep_estimable
from spectral_irt.estimators.spectral_fit import start_thresholds
from spectral_irt.model import sigmoid
from spectral_irt.numerics import centered_inverse, gram
from spectral_irt.sparse_kernels import csr

PAIRS = 2_000_000  # pairs of answers laid out at a time


# ------------------------------------------------------------------------- from pair counts


@dataclass(frozen=True, eq=False)
class PairwiseFit:
    """What `pairwise_difficulty` found."""

    difficulty: Floats
    loglik: float
    n_iter: int
    residual: float


def pairwise_difficulty(
    counts: Floats | sparse.csr_array, *, start: Floats | None = None, tol: float = 1e-9, max_iter: int = 10_000
) -> PairwiseFit:
    """Difficulties that maximize the pairwise likelihood of counts Y_ij (i right and j wrong).

    loglik = sum_ij Y_ij log(pi_j / (pi_i + pi_j)),  pi = exp(beta)

    By Markov chains with rates Y_ij / (pi_i + pi_j), each at the pi of the last; at the fixed point, balance is the
    score equation (Luce spectral ranking). The counts must be strongly connected. Stops when no difficulty moves by
    more than `tol`.
    """
    y = sparse.csr_array(counts)
    m = y.shape[0]
    beta = np.zeros(m) if start is None else start - start.mean()
    pairs = _Pairs(y)
    move, n_iter = np.inf, 0
    while move > tol and n_iter < max_iter:
        new = pairs.chain_step(beta)
        new -= new.mean()
        move = float(np.abs(new - beta).max())
        beta = new
        n_iter += 1
    return PairwiseFit(beta, pairs.loglik(beta), n_iter, move)


class _Pairs:
    """Y as its nonzero cells, laid out once."""

    def __init__(self, y: sparse.csr_array) -> None:
        self.y = y
        self.right = np.repeat(np.arange(y.shape[0], dtype=np.int32), np.diff(y.indptr))
        self.wrong = y.indices

    def rates(self, beta: Floats) -> sparse.csr_array:
        """Y_ij / (pi_i + pi_j)."""
        pi = np.exp(beta)
        return sparse.csr_array((self.y.data / (pi[self.right] + pi[self.wrong]), self.wrong, self.y.indptr))

    def chain_step(self, beta: Floats) -> Floats:
        """log of the stationary distribution of the chain with these rates."""
        start = np.exp(beta - beta.max())
        return np.log(stationary(PairChain(self.rates(beta)), start=start / start.sum(), tol=1e-12).pi)

    def loglik(self, beta: Floats) -> float:
        return float(-(self.y.data @ np.logaddexp(0, beta[self.right] - beta[self.wrong])))

    def information(self, beta: Floats) -> sparse.csr_array:
        """Minus the second derivatives, m x m: a Laplacian with weights (Y_ij + Y_ji) pi_i pi_j / (pi_i + pi_j)^2."""
        p = sigmoid(beta[self.wrong] - beta[self.right])
        weights = sparse.csr_array((self.y.data * p * (1 - p), self.wrong, self.y.indptr), shape=self.y.shape)
        weights = weights + weights.T
        return sparse.csr_array(sparse.diags_array(weights.sum(axis=1)) - weights)


# ------------------------------------------------------------------------ sandwich, by person


def person_scores(block: Block, beta: Floats, weighting: str) -> sparse.csr_array:
    """g_li, people x items: what each person adds to the derivative of the pairwise likelihood.

    g_li = w_l sum over right j of pi_j / (pi_i + pi_j) on a wrong answer, minus w_l sum over wrong j of pi_i /
    (pi_i + pi_j) on a right one. Every right answer is laid beside every wrong one of the same person, some people at a
    time.
    """
    block = block.take(np.flatnonzero(block.informative))
    m = len(beta)
    out = np.zeros(block.n_responses)
    right, wrong = block.scores, block.counts - block.scores
    ones = np.flatnonzero(block.right())
    before = np.concatenate([[0], np.cumsum(right)])
    weight = count_weights(block, weighting)
    ends = np.cumsum(right * wrong)
    start = 0
    while start < block.n_persons:
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + PAIRS, side="right")))
        persons = np.arange(start, stop)
        # Rows of right answers, each repeated for every wrong answer of its person.
        row = np.repeat(persons, right[persons])
        i = np.repeat(ones[before[start] : before[stop]], wrong[row])
        offset = np.arange(len(i)) - np.repeat(np.cumsum(wrong[row]) - wrong[row], wrong[row])
        j = np.repeat(block.split[row], wrong[row]) + offset
        share = sigmoid(beta[block.items[i]] - beta[block.items[j]])  # pi_i / (pi_i + pi_j)
        share *= np.repeat(weight[row], wrong[row])
        low, high = block.indptr[start], block.indptr[stop]
        out[low:high] += np.bincount(j - low, weights=share, minlength=high - low)
        out[low:high] -= np.bincount(i - low, weights=share, minlength=high - low)
        start = stop
    return csr(block.indptr.astype(np.int32), np.asarray(block.items), out, m)


def score_squares(block: Block, beta: Floats, weighting: str, dense: bool) -> Floats:
    """The sum over people of g g', or its diagonal."""
    g = person_scores(block, beta, weighting)
    return gram(g) if dense else by_item(g.indices, g.data**2, len(beta))


def pairwise_errors(responses: Responses, counts: Floats | sparse.csr_array, beta: Floats, weighting: str) -> Floats:
    """Standard errors J^+ Omega J^+ with Omega the sum over people of g_l g_l^T; one person's pairs are dependent.

    Beyond 5,000 items J is taken for its diagonal.
    """
    dense = len(beta) <= DENSE_ITEMS
    information = _Pairs(sparse.csr_array(counts)).information(beta)
    omega = responses.sum(score_squares, beta, weighting, dense)
    if not dense:
        return np.sqrt(omega) / information.diagonal()
    inverse = centered_inverse(information.toarray())
    return np.sqrt(np.maximum(np.einsum("ij,ij->i", inverse @ omega, inverse), 0))


# ------------------------------------------------------------------------------- estimator


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseRasch(RaschEstimator):
    """Difficulties by pairwise maximum likelihood (PML): every right and wrong answer of a person is one comparison.

    loglik = sum_ij Y_ij log(pi_j / (pi_i + pi_j)),  Y_ij = sum_l w_l X_li (1 - X_lj),  pi = exp(beta)

    Consistent without any assumption on abilities. It needs the counts of all pairs of items seen together, m x m at
    worst, which the spectral method does not.

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

    Notes
    -----
    Standard errors are a sandwich over people. Beyond 5,000 items they use the diagonal of the information.

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

    weighting: str = "pairs"
    tol: float = 1e-9
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        weighting_named(self.weighting, COUNTED)
        kept = keep_estimable(responses)
        rest = kept.responses
        counts = pair_counts(rest, weighting=self.weighting)
        fit = pairwise_difficulty(counts, start=start_thresholds(rest), tol=self.tol, max_iter=self.max_iter)
        what = "the pairwise likelihood"
        findings = convergence(what, fit.n_iter, "iterations", "a last step of", fit.residual, self.tol)
        if rest.n_items > DENSE_ITEMS:
            sentence = f"With more than {DENSE_ITEMS:,} items standard errors use the diagonal of the information."
            remedy = "They are too small where groups of items are weakly linked."
            findings.append(Finding("approximate_se", "note", sentence, remedy))
        se = pairwise_errors(rest, counts, fit.difficulty, self.weighting)
        return kept.estimate(fit.difficulty, se, fit.n_iter, fit.residual, loglik=fit.loglik, findings=findings)
