"""SpectralPartialCredit: thresholds as the log of the stationary distribution of a Markov chain on thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from spectral_irt.chain.errors import SE_METHODS
from spectral_irt.chain.regularization import check_regularization, plan_regularization
from spectral_irt.chain.weights import weighting_named
from spectral_irt.data.design import examine
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.adaptive import ADAPTIVE, DESIGNS, FIXED, fit_ordered_adaptive
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.chain_alone import chain_thresholds
from spectral_irt.estimators.estimate import Estimate
from spectral_irt.estimators.landed_ordered import landed_thresholds
from spectral_irt.estimators.ordered_anchors import Anchors, anchored_steps
from spectral_irt.estimators.spectral import lands


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralPartialCredit(RaschEstimator):
    """Thresholds of the partial credit model with standard errors by the spectral method.

    P(X_li = k) ~ exp(k theta_l - sum_{v <= k} beta_iv); exp(beta) is the stationary distribution of a Markov chain
    whose states are the thresholds of all items, without moves between thresholds of one item. From there a few Newton
    steps lead onto the conditional likelihood (docs/explanation/ordered.md). Items may have different numbers of
    categories; where all are right or wrong the numbers are those of `SpectralRasch`.

    Parameters
    ----------
    weighting : "ability", "persons" or "pairs"
        How much each person counts in the chain; only "ability" (default) is followed by the landing. Alone, its chain
        is 83 to 95% as efficient as conditional maximum likelihood. "persons": every person counts once. "pairs":
        every pair of answers does.
    regularization : "auto" or float
        "auto" (default): nothing when all thresholds are connected and well known; else a normal prior on how far an
        item's location lies from the other items that its own people met, and on how far its steps are from the mean
        steps, both of a precision that is chosen by empirical Bayes. They count in full for locations and thresholds
        with information up to 3 and not at all from 6 on (25 and 50 where the typical item is not told from the
        others). A number is the precision of both, in full for all; 0 forbids it, and then items with a threshold that
        has no finite estimate are left out. The chain alone has a prior around the mean of all thresholds.
    refine : "auto", True or False
        Whether the chain is followed by the landing: "auto" (default) under ability weights; False leaves the chain's
        own estimate.
    assume_equal_means : bool
        As for `SpectralRasch`.
    se : "auto", "dense", "one-pass", "multiplier", "information" or "none"
        How standard errors are computed; `se_method_` says which was used. "information" is from the model alone, the
        others are ways to the sandwich. The chain alone has "dense" and "one-pass".
    unused : "collapse", "error" or "keep"
        What becomes of categories that nobody used, where `fit` is given a table; see `read`.
    tol, max_iter, threads, random_state
        As for `SpectralRasch`.

    Attributes
    ----------
    thresholds_, threshold_se_ : float arrays
        Item after item (`n_thresholds_` of each); larger = harder. NaN without an estimate.
    difficulty_, se_ : float arrays
        The location of each item, the mean of its thresholds; the mean of all locations is zero.
    findings_ : tuple of Finding
        Thresholds out of order among them.

    References
    ----------
    docs/explanation/ordered.md. Nguyen & Zhang (ICML 2024) have a chain for each level, and shifts between levels.

    Examples
    --------
    >>> import numpy as np
    >>> from spectral_irt import simulate
    >>> data = simulate.partial_credit(500, 6, categories=4, seed=1)
    >>> fit = SpectralPartialCredit().fit(data.responses)
    >>> fit.thresholds_.shape, bool(np.corrcoef(fit.thresholds_, data.thresholds)[0, 1] > 0.9)
    ((18,), True)
    """

    several: ClassVar[bool] = True

    weighting: str = "ability"
    regularization: str | float = "auto"
    refine: str | bool = "auto"
    assume_equal_means: bool = False
    se: str = "auto"
    unused: str = "collapse"
    tol: float = 1e-10
    max_iter: int = 10_000
    threads: int | None = None
    random_state: int = 0

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        anchors: Anchors | None = None,
        design: str = FIXED,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as for every estimator of ordered answers.

        Parameters
        ----------
        anchors : mapping from item to thresholds, or Calibration, optional
            Items that stay where they are known to be; the others are put on their scale.
        design : "fixed" or "adaptive"
            "adaptive" where the answers decided what a person was asked next, or when to stop: thresholds then come
            from marginal maximum likelihood (`MarginalPartialCredit`), and the findings say so.
        """
        check_option("design", design, DESIGNS)
        if design == ADAPTIVE:
            if anchors is not None:
                raise OptionError("anchors are for a fixed design; leave them out.")
            return fit_ordered_adaptive(self, data, progress=progress)
        return self._fitted(data, progress, anchors=anchors)

    def _check(self) -> None:
        weighting_named(self.weighting)
        check_option("se", self.se, SE_METHODS)
        check_regularization(self.regularization, 0.0, "differed", self.weighting)
        if not 0 < self.tol < 1:
            raise OptionError(f"`tol` is {self.tol}; it must lie between 0 and 1.")
        if self.max_iter < 1:
            raise OptionError(f"`max_iter` is {self.max_iter}; it must be at least 1.")

    def _estimate(self, responses: Responses, tell: Tell, anchors: Anchors | None = None) -> Estimate:
        self._check()
        landing = lands(self.refine, self.weighting, 0.0)
        if anchors is not None:
            return anchored_steps(responses, anchors, self.weighting, self.tol, self.max_iter, tell, landing)
        if landing:
            return landed_thresholds(
                responses,
                self.regularization,
                equal_means=self.assume_equal_means,
                se=self.se,
                tol=self.tol,
                max_passes=self.max_iter,
                seed=self.random_state,
                tell=tell,
            )
        tell("looking at the design")
        found, noun = examine(responses), "item" if responses.thresholds.binary else "threshold"
        plan = plan_regularization(found, self.regularization, 0.0, "differed", self.weighting, noun)
        return chain_thresholds(
            found,
            plan,
            weighting=self.weighting,
            se=self.se,
            tol=self.tol,
            max_passes=self.max_iter,
            tell=tell,
        )
