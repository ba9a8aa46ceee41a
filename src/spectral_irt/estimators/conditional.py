"""Conditional maximum likelihood (CML), exact for any missing answers, any length and any number of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy import sparse

from spectral_irt.calibration import PARTIAL_CREDIT
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.errors import center_parts, centered_covariance, free_inverse, standard_errors
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.newton import Newton
from spectral_irt.conditional.penalized import PenalizedPoint, parameters
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.unlinked import refuse_parts
from spectral_irt.errors import check_option
from spectral_irt.estimators.base import Estimate, Tell, convergence
from spectral_irt.estimators.chain_alone import start_thresholds
from spectral_irt.estimators.estimable import DENSE_ITEMS, Errors, EstimableItems, estimable_items
from spectral_irt.estimators.likelihood_of_fit import LikelihoodOfFit
from spectral_irt.estimators.linear_design import DesignMatrix, RatingScale

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
    items: EstimableItems | None = None,
) -> Estimate:
    """Thresholds by conditional maximum likelihood, beta = A eta with a known matrix A (the identity by default).

    log L(beta) = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ),   mean location 0.

    Each person's symmetric function gamma runs over the items that person answered. Newton steps use the matched
    information, within a few per cent of the exact one, so that every pass gains one to two digits. All thresholds must
    have a finite estimate (`data.unlinked.estimable`); they may be those of the estimable `items` of more.
    """
    check_option("se", se, STANDARD_ERRORS)
    tell = progress or (lambda text: None)
    items = items or EstimableItems.all_of(responses)
    tell("finding people who saw the same items")
    likelihood = ExactLikelihood(responses)
    beta = start_thresholds(responses) if start is None else np.asarray(start, dtype=np.float64)
    eta = beta
    a = None
    largest_sum = 1.0  # of the derivatives by thresholds that one by a parameter adds up
    if design is not None:
        a = sparse.csr_array(design)
        eta = parameters(a, beta)
        largest_sum = float(np.abs(a).sum(axis=0).max())
    goal = max(tol, likelihood.rounding * largest_sum)
    optimum = Newton(likelihood, design=a).solve_to_gradient(eta, goal, max_evaluations=max_iter, tell=tell)
    derivative = optimum.largest_derivative()
    findings: list[Finding] = []
    if derivative > goal:
        what = "the conditional likelihood"
        passes = optimum.evaluations
        findings = convergence(what, passes, "passes", "a gradient of", derivative, tol, remedy=ON_THE_EDGE)
    if se != "none":
        tell("standard errors")
    return items.estimate(
        center_parts(responses.thresholds, optimum.point.beta, None)[0],
        _standard_errors(se, optimum, likelihood),
        optimum.evaluations,
        derivative,
        threshold_information=optimum.point.own,
        findings=findings,
        loglik=optimum.point.loglik,
        extra={"n_patterns": likelihood.n_patterns},
    )


def _standard_errors(kind: str, optimum: PenalizedPoint, likelihood: ExactLikelihood) -> Errors:
    """From the information, or the sandwich; by random right-hand sides where there are too many thresholds."""
    layout = likelihood.layout
    if kind == "none":
        return Errors.none(layout)
    if layout.n_entries > DENSE_ITEMS and optimum.design is None:
        thresholds, _ = standard_errors(optimum, "multiplier")
        return Errors(thresholds, method="multiplier, sandwich")
    information = information_at(likelihood, optimum.point.beta)
    method = "exact information" if information.exact else "matched information"
    covariance = free_inverse(optimum, information.matrix)
    if kind == "sandwich":
        covariance = covariance @ optimum.point.score_gram() @ covariance
        method += ", sandwich"
    symmetric = (covariance + covariance.T) / 2
    one_scale = np.zeros(layout.n_items, dtype=np.int64)
    return Errors.of(layout, centered_covariance(layout, symmetric, one_scale), method)


@dataclass(kw_only=True, eq=False, repr=False)
class Conditional(LikelihoodOfFit):
    """Conditional maximum likelihood for any number of thresholds."""

    se: str = "information"
    tol: float = 1e-9
    max_iter: int = 100
    threads: int | None = None

    def _estimable(self, responses: Responses) -> tuple[EstimableItems, DesignMatrix | None]:
        """The items that can be placed, and the design where thresholds are A eta."""
        return estimable_items(responses), None

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        items, design = self._estimable(responses)
        usable = items.responses
        if design is not None:  # shared offsets do not tie items together that no person links
            part, _ = linked_items(usable, mixed=True)
            refuse_parts(usable, part[usable.thresholds.item])
        return conditional_thresholds(
            usable,
            None if design is None else design.matrix,
            se=self.se,
            tol=self.tol,
            max_iter=self.max_iter,
            progress=tell,
            items=items,
        )


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
    loglik_, n_parameters_, aic_, bic_ : float, int, float, float
        Conditional log-likelihood at the estimate, how many parameters were free, and what follows from both.
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
