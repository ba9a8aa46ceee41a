"""MarginalPartialCredit: marginal maximum likelihood for ordered answers, by the likelihood of `MarginalRasch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.adaptive import ADAPTIVE, DESIGNS, FIXED, adaptive_finding
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.estimate import Estimate, convergence, keep_estimable
from spectral_irt.estimators.marginal_em import FREE_STEP, free_population, marginal_difficulty
from spectral_irt.estimators.marginal_information import marginal_errors, marginal_information
from spectral_irt.estimators.spectral import SpectralPartialCredit

MOST_STEPS = 3000
ERRORS = ("information", "none")


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalPartialCredit(RaschEstimator):
    """Thresholds of the partial credit model with standard errors by marginal maximum likelihood (MML).

    Abilities are drawn from a population that is estimated too: normal, or of free shape for adaptive designs where
    that fits better. The answers may decide what a person is asked next; but where forms go to different populations,
    conditional estimates are right and these are not.

    Parameters
    ----------
    se : "information" or "none"
        Standard errors from the observed information (Louis 1982) of thresholds and population, or none.
    unused : "collapse", "error" or "keep"
    tol : float
        Largest step of a threshold, in logits, at which to stop.
    max_iter : int
    threads : int, optional

    Attributes
    ----------
    thresholds_, threshold_se_, difficulty_, se_, loglik_
    ability_mean_, ability_sd_ : float
        Of the population, on the scale whose mean location is zero.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = MarginalPartialCredit().fit(simulate.partial_credit(500, 5, categories=3, seed=1).responses)
    >>> bool(0.7 < fit.ability_sd_ < 1.3)
    True
    """

    several: ClassVar[bool] = True

    se: str = "information"
    unused: str = "collapse"
    tol: float = 1e-7
    max_iter: int = 2000
    threads: int | None = None

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        design: str = FIXED,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as for every estimator of ordered answers.

        Parameters
        ----------
        design : "fixed" or "adaptive"
            "adaptive" where the answers decided what a person was asked next, or when to stop. Abilities then have a
            distribution of free shape, where that fits better than a normal one; what is computed given the scores is
            left out, and the findings say so.
        """
        check_option("design", design, DESIGNS)
        return self._fitted(data, progress, design=design)

    def _estimate(self, responses: Responses, tell: Tell, design: str = FIXED) -> Estimate:
        if self.se not in ERRORS:
            raise OptionError(f"`se` is {self.se!r}; it can be 'information', 'none'.")
        kept = keep_estimable(responses)
        steps, answers = kept.responses.thresholds, kept.responses.entries
        if steps.n_entries > MOST_STEPS:
            raise OptionError(f"marginal maximum likelihood here is for up to {MOST_STEPS:,} thresholds.")
        start = SpectralPartialCredit(weighting="persons", se="none", tol=1e-6).fit(kept.responses).thresholds_
        start = np.where(np.isfinite(start), start, 0.0)
        fit = marginal_difficulty(answers, start=start, tol=self.tol, max_iter=self.max_iter, steps=steps)
        if design == ADAPTIVE:
            tell("a free distribution of abilities")
            fit = free_population(answers, fit, start, max_iter=self.max_iter, steps=steps)
        asked = self.tol if fit.population.basis is None else FREE_STEP
        found = convergence("the marginal likelihood", fit.n_iter, "passes", "a last step of", fit.residual, asked)
        matrix = None
        if self.se != "none":
            information = marginal_information([answers], fit.difficulty, fit.populations, with_sigma=True, steps=steps)
            matrix = marginal_errors(information, fit.populations).covariance
        if design == ADAPTIVE:
            found.append(adaptive_finding(False, fit.better, "thresholds"))
        return kept.estimate(
            fit.difficulty,
            None,
            fit.n_iter,
            fit.residual,
            covariance=matrix,
            loglik=fit.loglik,
            findings=found,
            se_method=self.se,
            extra={"ability_mean": fit.population.mean, "ability_sd": fit.population.sd},
        )
