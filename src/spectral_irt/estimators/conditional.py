"""Conditional maximum likelihood (CML), exact for any missing answers, any length and any number of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy import sparse

from spectral_irt.calibration import PARTIAL_CREDIT
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.errors import centered, free_inverse, standard_errors
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.newton import Newton
from spectral_irt.conditional.penalized import PenalizedPoint, parameters
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.unlinked import refuse_parts
from spectral_irt.errors import check_option
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell, convergence
from spectral_irt.estimators.estimable import DENSE_ITEMS, Kept, keep_estimable
from spectral_irt.estimators.linear_design import RatingScale
from spectral_irt.estimators.spectral import start_thresholds

ConditionalSe = Literal["information", "sandwich", "none"]
STANDARD_ERRORS = get_args(ConditionalSe)
ON_THE_EDGE = "Raise `max_iter`, or look for items on the edge of having no finite estimate."


def conditional_thresholds(
    responses: Responses,
    design: Any = None,
    *,
    start: Floats | None = None,
    se: str = "information",
    tol: float = 1e-9,
    max_iter: int = 100,
    progress: Tell | None = None,
    kept: Kept | None = None,
) -> Estimate:
    """Thresholds by conditional maximum likelihood, beta = A eta with a known matrix A (the identity by default).

    log L(beta) = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ),   mean location 0.

    Each person's symmetric function gamma runs over the items that person answered. Newton steps use the matched
    information, within a few per cent of the exact one, so that every pass gains one to two digits. All thresholds must
    have a finite estimate (`data.unlinked.estimable`); the items may be those `kept` of more.
    """
    check_option("se", se, STANDARD_ERRORS)
    tell, n = progress or (lambda text: None), responses.n_items
    kept = kept or Kept(responses, np.full(n, True), np.full(n, "ok", dtype=object), (), responses.thresholds)
    tell("finding people who saw the same items")
    likelihood = ExactLikelihood(responses)
    a = None if design is None else sparse.csr_array(design)
    beta = start_thresholds(responses) if start is None else np.asarray(start, dtype=np.float64)
    eta = beta if a is None else parameters(a, beta)
    goal = max(tol, likelihood.rounding * (1.0 if a is None else float(np.abs(a).sum(axis=0).max())))
    found = Newton(likelihood, design=a).solve_to_gradient(eta, goal, max_evaluations=max_iter, tell=tell)
    size, findings = float(np.max(np.abs(found.leveled(found.pull())))), list[Finding]()
    if size > goal:
        counted = ("the conditional likelihood", found.evaluations, "passes", "a gradient of", size, tol)
        findings = convergence(*counted, remedy=ON_THE_EDGE)
    if se != "none":
        tell("standard errors")
    errors, matrix, method = _standard_errors(se, found, likelihood)
    thresholds, matrix = centered(responses.thresholds, found.point.beta, matrix)
    record: dict[str, Any] = {"covariance": matrix, "loglik": found.point.loglik, "se_method": method}
    record |= {"findings": findings, "extra": {"n_patterns": likelihood.n_patterns}}
    record["threshold_information"] = found.point.own
    return kept.estimate(thresholds, errors, found.evaluations, size, **record)


def _standard_errors(
    kind: str, found: PenalizedPoint, likelihood: ExactLikelihood
) -> tuple[Floats, Floats | None, str]:
    n = likelihood.layout.n_entries
    if kind == "none":
        return np.full(n, np.nan), None, "none"
    if n > DENSE_ITEMS and found.design is None:
        return standard_errors(found, "multiplier")[0], None, "multiplier, sandwich"
    information = information_at(likelihood, found.point.beta)
    method = "exact information" if information.exact else "matched information"
    inverse = free_inverse(found, information.matrix)
    if kind == "sandwich":
        inverse, method = inverse @ found.point.score_gram() @ inverse, method + ", sandwich"
    return np.empty(0), (inverse + inverse.T) / 2, method


@dataclass(kw_only=True, eq=False, repr=False)
class Conditional(RaschEstimator):
    """Conditional maximum likelihood for any number of thresholds."""

    se: str = "information"
    tol: float = 1e-9
    max_iter: int = 100
    threads: int | None = None

    def _kept(self, responses: Responses) -> tuple[Kept, Any]:
        """The items that can be placed, and the design where thresholds are A eta."""
        return keep_estimable(responses), None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        kept, design = self._kept(responses)
        if design is not None:  # shared offsets do not tie items together that no person links
            refuse_parts(kept.responses, linked_items(kept.responses, mixed=True)[0][kept.responses.thresholds.item])
        how: dict[str, Any] = {"se": self.se, "tol": self.tol, "max_iter": self.max_iter, "progress": tell}
        return conditional_thresholds(kept.responses, design and design.matrix, kept=kept, **how)


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalRasch(Conditional):
    """Rasch difficulties with standard errors by conditional maximum likelihood (CML).

    P(x_l | s_l) = exp(-sum_i x_li beta_i) / gamma_{s_l}: given the score, abilities drop out.

    The most accurate estimator of the Rasch model, consistent for any number of items and any distribution of
    abilities; exact for any missing answers and any length, at a cost linear in the number of answers.

    Parameters
    ----------
    se : "information", "sandwich" or "none"
        Standard errors from the information matrix (default); from the sandwich, which stays honest when the model
        does not quite hold (and is used beyond 5,000 thresholds); or none. `se_method_` says how they were computed.
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
    >>> ConditionalRasch().fit(datasets.load_lsat()).difficulty_.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """

    threshold: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalPartialCredit(Conditional):
    """Thresholds of the partial credit model with standard errors by conditional maximum likelihood (CML).

    P(x_l | s_l) = exp(-sum_i sum_{v <= x_li} beta_iv) / gamma_{s_l}: given the total score, abilities drop out.

    Parameters
    ----------
    se, tol, max_iter, threads, unused
        As for `ConditionalRasch`, and for `SpectralPartialCredit`.

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
    model: ClassVar[str] = PARTIAL_CREDIT

    unused: str = "collapse"


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalRatingScale(RatingScale, Conditional):
    """The rating scale model by conditional maximum likelihood, exact; the accuracy reference.

    Parameters
    ----------
    groups, unused
        As for `SpectralRatingScale`.
    se, tol, max_iter, threads
        As for `ConditionalRasch`.

    Attributes
    ----------
    difficulty_, se_, thresholds_, threshold_se_, offsets_, loglik_, n_patterns_

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> answers = simulate.rating_scale(300, 5, categories=3, seed=1).responses
    >>> ConditionalRatingScale().fit(answers).thresholds_.shape
    (10,)
    """
