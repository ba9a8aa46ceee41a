"""The spectral estimators: their parameters, and what `fit` takes; `spectral_steps` has the fit itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from spectral_irt.calibration import PARTIAL_CREDIT
from spectral_irt.data import Responses
from spectral_irt.data.scoring import several
from spectral_irt.errors import OptionError, unknown_option
from spectral_irt.estimators import spectral_errors
from spectral_irt.estimators.base import ADAPTIVE, DESIGNS, FIXED, Estimate, RaschEstimator, Tell
from spectral_irt.estimators.estimable import person_weights
from spectral_irt.estimators.likelihood_of_fit import LikelihoodOfFit
from spectral_irt.estimators.spectral_steps import spectral_fit

if TYPE_CHECKING:
    from spectral_irt.estimators import LinearDesign

NOT_OF_A_FIT = ("anchors", "free", "threads", "threshold", "unused")  # parameters that `spectral_fit` does not have


def options_of(estimator: RaschEstimator, tell: Tell, weights: ArrayLike | None = None) -> dict[str, Any]:
    """The parameters of an estimator as `spectral_fit` has them."""
    options = {name: value for name, value in estimator.get_params().items() if name not in NOT_OF_A_FIT}
    options["max_passes"] = options.pop("max_iter")
    options["seed"] = options.pop("random_state")
    return {**options, "progress": tell, "weights": weights}


class Spectral(LikelihoodOfFit):
    """The spectral estimators: a fixed design is theirs, an adaptive one that of marginal likelihood."""

    se: str
    takes_facets: ClassVar[bool] = True
    scaled: ClassVar[bool] = False  # whether items share offsets: a rating scale
    marginal: ClassVar[str] = "MarginalRasch"  # the estimator of adaptive designs

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        anchors: Any = None,
        free: Any = (),
        design: str | LinearDesign = FIXED,
        groups: Any = None,
        weights: ArrayLike | None = None,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as for every estimator.

        Parameters
        ----------
        anchors : Bank, Calibration, mapping from item to difficulty (or its thresholds), or path, optional
            Items that stay where they are known to be; the others are put on their scale. See `AnchoredRasch`.
        free : labels of items, optional
            Anchors that are dropped: these items stay in the test, and are estimated.
        design : "fixed", "adaptive" or LinearDesign
            "adaptive" where the answers decided what a person was asked next, or when to stop: difficulties then come
            from marginal maximum likelihood (`MarginalRasch`), and the findings say so. A `LinearDesign` says of what
            thresholds are the sum: by default of items and every facet.
        groups : labels, optional
            With an adaptive design, the population that each person is from.
        weights : numbers, optional
            How much each person counts, in the order of the people, as survey weights say. Standard errors allow for
            them, and so do mean, standard deviation and reliability of the people.
        """
        if anchors is None and several(free):
            raise OptionError("`free` names anchors that are to be estimated, and there are no `anchors`.")
        if not isinstance(design, str):
            return self._fit_design(data, progress, anchors=anchors, weights=weights, design=design)
        if design not in DESIGNS:
            raise unknown_option("design", design, DESIGNS)
        if design == ADAPTIVE:
            if anchors is not None:
                raise OptionError("anchors are for a fixed design, and `design` is 'adaptive'; leave one of them out.")
            from spectral_irt.estimators import marginal

            model = getattr(marginal, self.marginal)
            return marginal.fit_adaptive(self, model, data, groups=groups, weights=weights, progress=progress)
        if groups is not None:
            raise OptionError("groups are for `design='adaptive'`; here nothing depends on them.")
        return self._fit_design(data, progress, anchors=anchors, free=several(free), weights=weights)

    def _surely_forms_matrices(
        self, responses: Responses, anchors: Any = None, design: LinearDesign | None = None, **others: Any
    ) -> bool:
        """Not for right and wrong answers to many items, where "auto" may take one pass or multipliers. A design,
        facets, a rating scale, anchors and the chain alone are solved with matrices."""
        if self._has_design(responses, design) or anchors is not None:
            return True
        parameters = self.get_params()
        if parameters["weighting"] != "ability" or parameters.get("nu") or not parameters["refine"]:
            return True
        if not responses.thresholds.binary:
            return True
        return self.se in ("dense", "information") or responses.thresholds.n_entries <= spectral_errors.QUICK_ITEMS

    def _has_design(self, responses: Responses, design: LinearDesign | None) -> bool:
        """Whether thresholds are sums: of a design, of items and facets, or of a rating scale."""
        return design is not None or responses.facets is not None or self.scaled

    def _estimate(
        self,
        responses: Responses,
        tell: Tell,
        anchors: Any = None,
        free: Sequence[Any] = (),
        weights: ArrayLike | None = None,
        design: LinearDesign | None = None,
    ) -> Estimate:
        weight_of_person = None if weights is None else person_weights(responses, weights)
        if self._has_design(responses, design):
            from spectral_irt.estimators.linear_fit import fit_of_design

            estimate = fit_of_design(self, responses, tell, design, anchors, weight_of_person)
        elif anchors is not None:
            from spectral_irt.estimators.anchored import fit_beside, given_anchors

            options = options_of(self, tell, weight_of_person)
            estimate = fit_beside(responses, given_anchors(anchors), free=free, **options)
        else:
            estimate = spectral_fit(responses, **options_of(self, tell, weight_of_person))
        if weight_of_person is None:
            return estimate
        # People, and how much each counts: for means and reliability of these people.
        return replace(estimate, extra={**estimate.extra, "weighted": (responses.persons, weight_of_person)})


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRasch(Spectral):
    """Rasch difficulties with standard errors by the spectral method.

    P(X_li = 1) = 1 / (1 + exp(beta_i - theta_l)); exp(beta) is the stationary distribution of a Markov chain on items.
    From there a few Newton steps lead onto the conditional likelihood: on data that do not quite follow the model the
    chain alone drifts from it (docs/explanation/newton.md).

    Parameters
    ----------
    weighting : "ability", "persons" or "pairs"
        How much each person counts. "ability" (default): 97 to 99.8% as efficient as conditional maximum likelihood.
        "persons": every person counts once. "pairs": the paper's; long records count for much more than they tell.
        The last two are ways to study the chain, and are not followed by Newton steps.
    regularization : "auto" or float
        "auto" (default): nothing when all items are connected and well known; else a normal prior on how far an item
        lies from the other items that its own people met, its precision alpha by empirical Bayes, which fades as the
        information on an item grows (docs/explanation/prior.md). A number (1e-6 to 1e9) is that alpha, in full for all;
        0 forbids it, and then items without a finite estimate are left out and a design without a common scale is an
        error. The chain alone has a prior around the mean of all items.
    nu, nu_rule : float, "differed" or "together"
        The paper's regularization, for reproduction: `nu` imaginary disagreements each way for every pair that
        differed in some person's answers (its program), or was seen together (its text). Needs other weights.
    refine : "auto", True or False
        Whether the chain is followed by Newton steps: "auto" (default) under ability weights without nu; False leaves
        the chain's own estimate.
    assume_equal_means : bool
        Whether groups of items that share no people are taken to be equally hard on average. By default nothing is
        assumed, and items outside the largest group have an infinite standard error.
    se : "auto", "dense", "one-pass", "multiplier", "information" or "none"
        How standard errors are computed; `se_method_` says which was used. "dense", "one-pass" and "multiplier" are
        three ways to the sandwich (the chain alone has the first two); "information" is from the model alone.
    tol : float
        Relative l1 residual of the chain alone at which to stop; Newton steps end when no item would move by a
        twenty-fifth of its standard error, and on small data much later.
    max_iter : int
        Most passes of one chain solve.
    threads : int, optional
        Default: all this process may use. Results do not depend on it.
    threshold : float, optional
        Values above it count as right, instead of 1 and 0.
    random_state : int
        Seed of the multiplier standard errors.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        Larger = harder; mean zero over the items that have an estimate. NaN without one; what rests on `nu` alone has
        no standard error, since nu is no distribution.
    n_iter_, residual_, contraction_ : int, float, float
        Passes over the data; how far another step would move an item, in standard errors (chain alone: the final
        residual); and how much one pass of the chain shrinks the slowest error (near 1: weak links).
    information_ : float array
        Information that the answers carry on each item.
    loglik_, n_parameters_, aic_, bic_ : float, int, float, float
        Of the conditional likelihood, computed when first asked for, from the data that the fit was made of as long as
        these are there; `analyse(responses).likelihood()` has them of any responses.
    status_, regularization_, findings_

    References
    ----------
    Nguyen & Zhang, "A Spectral Approach to Item Response Theory", NeurIPS 2022. The weights and the chain's standard
    errors are derived in docs/explanation/estimator.md, Newton steps and prior in docs/explanation/newton.md.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = SpectralRasch().fit(datasets.load_lsat())
    >>> fit.difficulty_.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """

    weighting: str = "ability"
    regularization: str | float = "auto"
    nu: float = 0.0
    nu_rule: str = "differed"
    refine: str | bool = "auto"
    assume_equal_means: bool = False
    se: str = "auto"
    tol: float = 1e-10
    max_iter: int = 10_000
    threads: int | None = None
    threshold: float | None = None
    random_state: int = 0

    @classmethod
    def paper(cls, *, nu: float = 1.0, nu_rule: str = "differed", **options: Any) -> SpectralRasch:
        """The estimator of the paper's experiments: every pair counts once, nu = 1 on pairs that differed.

        It solves the chain of `spectral_irt.paper`, which has Algorithms 1 and 2 as printed, by other means.
        """
        return cls(weighting="pairs", regularization=0, nu=nu, nu_rule=nu_rule, refine=False, **options)


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralPartialCredit(Spectral):
    """Thresholds of the partial credit model with standard errors by the spectral method.

    P(X_li = k) ~ exp(k theta_l - sum_{v <= k} beta_iv); exp(beta) is the stationary distribution of a Markov chain
    whose states are the thresholds of all items, without moves between thresholds of one item. From there a few Newton
    steps lead onto the conditional likelihood (docs/explanation/ordered.md). Items may have different numbers of
    categories; where all are right or wrong the numbers are those of `SpectralRasch`.

    Parameters
    ----------
    regularization : "auto" or float
        As for `SpectralRasch`; one prior is on the location of an item, another on how far its offsets are from the
        mean offsets. 0 forbids both, and then items with a threshold that has no finite estimate are left out.
    weighting, refine, assume_equal_means, se, tol, max_iter, threads, random_state
        As for `SpectralRasch`. Alone, the chain of ability weights is 83 to 95% as efficient as conditional maximum
        likelihood.
    unused : "collapse", "error" or "keep"
        What becomes of categories that nobody used, where `fit` is given a table; see `read`.

    Attributes
    ----------
    thresholds_, threshold_se_ : float arrays
        Item after item (`n_thresholds_` of each); larger = harder. NaN without an estimate.
    difficulty_, se_ : float arrays
        The location of each item, the mean of its thresholds; the mean of all locations is zero.
    loglik_, n_parameters_, aic_, bic_ : float, int, float, float
        As for `SpectralRasch`.
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
    model: ClassVar[str] = PARTIAL_CREDIT
    marginal: ClassVar[str] = "MarginalPartialCredit"

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
