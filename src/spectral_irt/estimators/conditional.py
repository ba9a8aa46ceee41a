"""ConditionalRasch: conditional maximum likelihood, exact for any pattern of missing answers and any length."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import sparse

from spectral_irt.conditional.given_score import conditional_probabilities, pattern_sums
from spectral_irt.conditional.information import (
    DENSE_ITEMS,
    EXACT_WORK,
    Information,
    exact_information,
    exact_work,
    multiplier_variance,
    solve,
)
from spectral_irt.conditional.patterns import padded, pattern_parts, threshold_codes
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Block, Floats
from spectral_irt.data.same_items import distinct_rows
from spectral_irt.engine import Prepared
from spectral_irt.errors import ConvergenceWarning, OptionError, check_option, stopped
from spectral_irt.estimators.base import KEEP_COVARIANCE, RaschEstimator, Tell
from spectral_irt.estimators.estimate import Estimate, convergence, keep_estimable
from spectral_irt.estimators.spectral_fit import start_thresholds
from spectral_irt.numerics import centered_inverse, gram

ConditionalSe = Literal["information", "sandwich", "none"]
STANDARD_ERRORS = get_args(ConditionalSe)
ON_THE_EDGE = "Raise `max_iter`, or look for items on the edge of having no finite estimate."
LONGEST_STEP = 2.0  # logits at once for one item: an item with few answers may point much too far
SHORTEST_STEP = 2.0**-30  # of a halved step


@dataclass(frozen=True, eq=False)
class ConditionalFit:
    """What `conditional_difficulty` found, one number an item.

    Attributes
    ----------
    difficulty, se : float arrays
    covariance : float array or None
        Of the mean-centered difficulties; kept for up to 2,000 items.
    loglik : float
        Conditional log-likelihood.
    gradient : float array
        Its derivative by each difficulty.
    n_iter : int
        Passes over the answers.
    n_patterns : int
        Distinct pairs (items answered, score) among the people.
    se_method : str
        "exact information", "matched information", "multiplier", each perhaps with ", sandwich"; or "none".
    """

    difficulty: Floats
    se: Floats
    covariance: Floats | None
    loglik: float
    gradient: Floats
    n_iter: int
    n_patterns: int
    se_method: str
    converged: bool


def conditional_difficulty(
    responses: Responses,
    *,
    start: Floats | None = None,
    se: str = "information",
    tol: float = 1e-9,
    max_iter: int = 100,
    progress: Callable[[str], None] | None = None,
) -> ConditionalFit:
    """Item difficulties by conditional maximum likelihood; the function behind `ConditionalRasch`.

    log L(beta) = sum_l ( -sum_i x_li beta_i - log gamma_{s_l}(exp(-beta_i), i answered by l) ),   mean(beta) = 0.

    Each person's symmetric function runs over the items that person answered. Newton steps use the matched information
    (see `information`), which is within a few per cent of the exact one, so that every pass gains one to two digits.

    Parameters
    ----------
    responses : Responses
        All items must have a finite estimate: see `spectral_irt.data.design.estimable`, which the class calls.
    start : float array, optional
        Difficulties to begin with; any will do.

    The other parameters are those of `ConditionalRasch`.
    """
    check_option("se", se, STANDARD_ERRORS)
    _check_numbers(tol, max_iter)
    tell = progress or (lambda text: None)
    m = responses.n_items
    tell("finding people who saw the same items")
    patterns = distinct_rows(responses)
    parts = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, responses.thresholds))
    right = responses.sum(_right, m)
    beta = start_thresholds(responses) if start is None else np.asarray(start, dtype=np.float64)

    likelihood = _Likelihood(parts, right)
    here, n_iter = _climb(likelihood, beta - beta.mean(), tol, max_iter, tell)
    size = float(np.max(np.abs(here.gradient)))
    converged = size <= max(tol, likelihood.rounding)
    if not converged:
        warnings.warn(
            stopped("the conditional likelihood", n_iter, "passes", "a gradient of", size, tol) + " " + ON_THE_EDGE,
            ConvergenceWarning,
            stacklevel=2,
        )
    if se != "none":
        tell("standard errors")
    errors, covariance, method = _standard_errors(se, here, parts, responses)
    return ConditionalFit(
        here.beta,
        errors,
        covariance if m <= KEEP_COVARIANCE else None,
        here.loglik,
        here.gradient,
        n_iter,
        int(patterns.rows.informative.sum()),
        method,
        converged,
    )


def _check_numbers(tol: float, max_iter: int) -> None:
    if not tol > 0:
        raise OptionError(f"`tol` is {tol}; it must be above zero.")
    if max_iter < 1:
        raise OptionError(f"`max_iter` is {max_iter}; it must be at least 1.")


def _right(block: Block, n_items: int) -> Floats:
    """Right answers to each item by people who are neither all right nor all wrong."""
    rows = np.zeros(2 * block.n_persons)
    rows[0::2] = block.informative
    return block.pattern(n_items).T @ rows


# ------------------------------------------------------------------------- the likelihood, climbed


@dataclass(frozen=True, eq=False)
class _Point:
    """The likelihood at some difficulties."""

    beta: Floats
    loglik: float
    gradient: Floats
    information: Information


class _Likelihood:
    def __init__(self, parts: Prepared, right: Floats) -> None:
        self.parts, self.right = parts, right
        # Sums of P over an item's people carry about this much rounding.
        self.rounding = float(16 * np.finfo(float).eps * right.max(initial=1.0))

    def at(self, beta: Floats) -> _Point:
        pieces, (log_gamma, expected) = self.parts.map_and_sum(pattern_sums, beta)
        loglik, gradient = -float(self.right @ beta) - log_gamma, expected - self.right
        return _Point(beta, loglik, gradient - gradient.mean(), Information(pieces, len(beta)))


def _climb(
    likelihood: _Likelihood, beta: Floats, tol: float, max_iter: int, tell: Callable[[str], None]
) -> tuple[_Point, int]:
    """Newton steps with conjugate gradients, halved while they lead down."""
    here, passes = likelihood.at(beta), 1
    goal = max(tol, likelihood.rounding)
    while (size := np.max(np.abs(here.gradient))) > goal and passes < max_iter:
        tell(f"pass {passes + 1}: log-likelihood {here.loglik:,.2f}, gradient {size:.1e}")
        step = np.clip(solve(here.information, here.gradient, tol=1e-4)[0], -LONGEST_STEP, LONGEST_STEP)
        length = 1.0
        slack = 1e-12 * abs(here.loglik)  # rounding of the log-likelihood, which near the top is all that moves
        while passes < max_iter:
            beta = here.beta + length * step
            there = likelihood.at(beta - beta.mean())
            passes += 1
            if there.loglik >= here.loglik - slack:
                here = there
                break
            length /= 2
            if length < SHORTEST_STEP:
                return here, passes
    return here, passes


# -------------------------------------------------------------------------------- standard errors


def _standard_errors(
    kind: str, here: _Point, parts: Prepared, responses: Responses
) -> tuple[Floats, Floats | None, str]:
    m = len(here.beta)
    if kind == "none":
        return np.full(m, np.nan), None, "none"
    residuals = responses.prepare(_residuals, here.beta) if kind == "sandwich" else None
    suffix = ", sandwich" if kind == "sandwich" else ""
    if m > DENSE_ITEMS:
        return np.sqrt(_large_variance(here.information, residuals)), None, "multiplier" + suffix
    if parts.sum(exact_work) <= EXACT_WORK:
        steps = responses.thresholds
        exact = parts.sum(exact_information, padded(steps, here.beta), threshold_codes(steps), m)
        inverse, method = centered_inverse(exact), "exact information"
    else:
        inverse, method = centered_inverse(here.information.dense()), "matched information"
    if residuals is not None:
        inverse = inverse @ residuals.sum(gram) @ inverse
    return np.sqrt(np.diag(inverse)), inverse, method + suffix


def _large_variance(information: Information, residuals: Prepared | None) -> Floats:
    if residuals is None:
        return multiplier_variance(
            information, diagonal=information.diagonal, apply=information.__matmul__, draw=information.draw
        )

    def draw(noise: np.random.Generator, columns: int) -> Floats:
        return residuals.sum(_signed, columns, each=[residuals.seeds(int(noise.integers(2**63)))])

    return multiplier_variance(
        information, diagonal=residuals.sum(_squares), apply=lambda y: residuals.sum(_twice, y), draw=draw
    )


def _signed(matrix: sparse.csr_array, seed: np.random.SeedSequence, columns: int) -> Floats:
    return matrix.T @ np.random.default_rng(seed).choice([-1.0, 1.0], (matrix.shape[0], columns))


def _squares(matrix: sparse.csr_array) -> Floats:
    return np.bincount(matrix.indices, matrix.data**2, matrix.shape[1]).astype(np.float64)


def _twice(matrix: sparse.csr_array, y: Floats) -> Floats:
    return matrix.T @ (matrix @ y)


def _residuals(block: Block, beta: Floats) -> sparse.csr_array:
    """X - P(X = 1 | s), people x items."""
    values = block.right() - conditional_probabilities(block, beta)
    return sparse.csr_array((values, block.items, block.indptr.astype(np.int32)), shape=(block.n_persons, len(beta)))


# ----------------------------------------------------------------------------------------- the class


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalRasch(RaschEstimator):
    """Rasch difficulties with standard errors by conditional maximum likelihood (CML).

    P(x_l | s_l) = exp(-sum_i x_li beta_i) / gamma_{s_l}: given the score, abilities drop out.

    The most accurate estimator of the Rasch model, consistent for any number of items and any distribution of
    abilities. Each person's symmetric function gamma runs over the items that person answered, so missing answers are
    exact, and a contour sum keeps it exact at any length at a cost linear in the number of answers.

    Parameters
    ----------
    se : "information", "sandwich" or "none"
        Standard errors from the information matrix (default); from the sandwich, which stays honest when the model
        does not quite hold; or none. `se_method_` says how they were computed.
    tol : float
        Largest derivative of the log-likelihood at which to stop. 1e-9: difficulties to ten digits.
    max_iter : int
        Most passes over the answers; five to ten are usual.
    threads : int, optional
        Default: all this process may use. Results do not depend on it.
    threshold : float, optional
        Values above it count as right, instead of 1 and 0.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        Larger = harder; mean zero over the items that have an estimate. NaN for items without a finite one: those
        that everyone or no one answered right. A design without a common scale is an error.
    status_ : array of str
    loglik_ : float
        Conditional log-likelihood at the estimate.
    n_iter_, residual_ : int, float
        Passes over the answers, and the largest derivative of the log-likelihood.
    n_patterns_ : int
        Distinct pairs (items answered, score): the work of a pass.

    References
    ----------
    Andersen (1972), JRSS B 34; Fischer & Molenaar (1995), Rasch Models, ch. 3 and 8.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> fit = ConditionalRasch().fit(datasets.load_lsat())
    >>> fit.difficulty_.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """

    se: str = "information"
    tol: float = 1e-9
    max_iter: int = 100
    threads: int | None = None
    threshold: float | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        kept = keep_estimable(responses)
        fit = conditional_difficulty(
            kept.responses,
            se=self.se,
            tol=self.tol,
            max_iter=self.max_iter,
            progress=tell,
        )
        findings: list[Finding] = []
        size = float(np.max(np.abs(fit.gradient)))
        if not fit.converged:
            what = "the conditional likelihood"
            findings += convergence(
                what, fit.n_iter, "passes", "a gradient of", size, self.tol, remedy=ON_THE_EDGE, warn=False
            )
        return kept.estimate(
            fit.difficulty,
            fit.se,
            fit.n_iter,
            size,
            loglik=fit.loglik,
            findings=findings,
            covariance=fit.covariance,
            se_method=fit.se_method,
            extra={"n_patterns": fit.n_patterns},
        )
