"""ConditionalPartialCredit and ConditionalRatingScale: conditional maximum likelihood for ordered answers, exact."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spectral_irt.conditional.likelihood import ExactLikelihood, ExactPoint
from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Responses
from spectral_irt.errors import ConvergenceWarning, OptionError, check_option, stopped
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.conditional import LONGEST_STEP, ON_THE_EDGE, SHORTEST_STEP
from spectral_irt.estimators.estimate import Estimate, Kept, centered, convergence, keep_estimable
from spectral_irt.estimators.spectral_fit import start_thresholds

STANDARD_ERRORS = ("information", "none")
MOST_STEPS = 3000  # thresholds: the information is a matrix


@dataclass(frozen=True, eq=False)
class OrderedFit:
    """What `conditional_thresholds` found; `eta` are the parameters of the design, thresholds = A eta."""

    thresholds: Floats
    covariance: Floats | None
    eta: Floats
    loglik: float
    gradient: Floats
    n_iter: int
    n_patterns: int
    se_method: str
    converged: bool


def conditional_thresholds(
    responses: Responses,
    design: Floats | None = None,
    *,
    start: Floats | None = None,
    se: str = "information",
    tol: float = 1e-9,
    max_iter: int = 100,
    progress: Callable[[str], None] | None = None,
) -> OrderedFit:
    """Thresholds by conditional maximum likelihood, beta = A eta with a known matrix A (the identity by default).

    Newton steps on the exact information where that is affordable, else on that of independent answers. All thresholds
    must have a finite estimate.
    """
    check_option("se", se, STANDARD_ERRORS)
    if not tol > 0:
        raise OptionError(f"`tol` is {tol}; it must be above zero.")
    if max_iter < 1:
        raise OptionError(f"`max_iter` is {max_iter}; it must be at least 1.")
    n = responses.thresholds.n_entries
    if n > MOST_STEPS:
        raise OptionError(
            f"conditional maximum likelihood is for up to {MOST_STEPS:,} thresholds; there are {n:,}. "
            "SpectralPartialCredit takes any number."
        )
    tell = progress or (lambda text: None)
    a = np.eye(n) if design is None else design
    likelihood = ExactLikelihood(responses)
    exact = likelihood.exact_is_affordable()
    beta = start_thresholds(responses) if start is None else np.asarray(start, dtype=float)
    eta = beta if design is None else np.linalg.lstsq(a, beta, rcond=None)[0]
    shift = np.linalg.lstsq(a, np.ones(n), rcond=None)[0]  # moves every threshold alike: not identified

    def inverse(beta: Floats) -> Floats:
        h = a.T @ likelihood.information(beta, exact=exact) @ a
        c = np.trace(h) / len(h) or 1.0
        return np.linalg.inv(h + c * np.outer(shift, shift) / (shift @ shift))

    here, passes = likelihood.at(a @ eta), 1
    goal = max(tol, likelihood.rounding * np.abs(a).sum(axis=0).max())
    while (size := float(np.max(np.abs(a.T @ here.gradient)))) > goal and passes < max_iter:
        tell(f"pass {passes + 1}: log-likelihood {here.loglik:,.2f}, gradient {size:.1e}")
        step = np.clip(inverse(here.beta) @ (a.T @ here.gradient), -LONGEST_STEP, LONGEST_STEP)
        there, eta_there, passes = _uphill(likelihood, a, eta, step, here, passes, max_iter)
        if there is None:
            break
        here, eta = there, eta_there
    converged = size <= goal
    if not converged:
        warnings.warn(
            stopped("the conditional likelihood", passes, "passes", "a gradient of", size, tol) + " " + ON_THE_EDGE,
            ConvergenceWarning,
            stacklevel=2,
        )
    matrix = None
    if se != "none":
        tell("standard errors")
        matrix = a @ inverse(here.beta) @ a.T
    thresholds, matrix = centered(responses.thresholds, here.beta, matrix)
    method = "none" if se == "none" else ("exact information" if exact else "matched information")
    return OrderedFit(
        thresholds, matrix, eta, here.loglik, a.T @ here.gradient, passes, likelihood.n_patterns, method, converged
    )


def _uphill(
    likelihood: ExactLikelihood, a: Floats, eta: Floats, step: Floats, here: ExactPoint, passes: int, most: int
) -> tuple[ExactPoint | None, Floats, int]:
    """The step, halved while it leads down."""
    length, slack = 1.0, 1e-12 * abs(here.loglik)
    while passes < most and length >= SHORTEST_STEP:
        there = likelihood.at(a @ (eta + length * step))
        passes += 1
        if there.loglik >= here.loglik - slack:
            return there, eta + length * step, passes
        length /= 2
    return None, eta, passes


# ------------------------------------------------------------------------------------ partial credit


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalPartialCredit(RaschEstimator):
    """Thresholds of the partial credit model with standard errors by conditional maximum likelihood (CML).

    P(x_l | s_l) = exp(-sum_i sum_{v <= x_li} beta_iv) / gamma_{s_l}: given the total score, abilities drop out. Exact
    for any pattern of missing answers. The most accurate estimator, and the reference for the others.

    Parameters
    ----------
    se : "information" or "none"
    unused : "collapse", "error" or "keep"
        As for `SpectralPartialCredit`.
    tol : float
        Largest derivative of the log-likelihood at which to stop.
    max_iter : int
        Most passes over the answers; five to ten are usual.
    threads : int, optional

    Attributes
    ----------
    thresholds_, threshold_se_, difficulty_, se_, loglik_, n_patterns_

    References
    ----------
    Andersen (1995) in Fischer & Molenaar, Rasch Models, ch. 15; Masters (1982), Psychometrika 47.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = ConditionalPartialCredit().fit(simulate.partial_credit(300, 4, categories=3, seed=1).responses)
    >>> fit.thresholds_.shape
    (8,)
    """

    several: ClassVar[bool] = True

    se: str = "information"
    unused: str = "collapse"
    tol: float = 1e-9
    max_iter: int = 100
    threads: int | None = None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        kept = keep_estimable(responses)
        fit = conditional_thresholds(kept.responses, se=self.se, tol=self.tol, max_iter=self.max_iter, progress=tell)
        return conditional_estimate(fit, kept, self.tol)


def conditional_estimate(fit: OrderedFit, kept: Kept, tol: float, **extra: Any) -> Estimate:
    """What a conditional fit of some of the items says about all."""
    size, findings = float(np.max(np.abs(fit.gradient))), []
    if not fit.converged:
        what = "the conditional likelihood"
        findings = convergence(what, fit.n_iter, "passes", "a gradient of", size, tol, remedy=ON_THE_EDGE, warn=False)
    return kept.estimate(
        fit.thresholds,
        None,
        fit.n_iter,
        size,
        covariance=fit.covariance,
        loglik=fit.loglik,
        findings=findings,
        se_method=fit.se_method,
        extra={"n_patterns": fit.n_patterns, **extra},
    )
