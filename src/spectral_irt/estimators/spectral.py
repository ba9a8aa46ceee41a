"""The spectral estimators: thresholds as the log of the stationary distribution of a Markov chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.base import ADAPTIVE, DESIGNS, FIXED, RaschEstimator, Tell
from spectral_irt.estimators.estimate import Estimate, centered, person_weights, weights_finding
from spectral_irt.estimators.linear_design import Groups, LinearDesign, RatingScale
from spectral_irt.estimators.spectral_fit import options_of, spectral_fit


class Spectral(RaschEstimator):
    """The spectral estimators: a fixed design is theirs, an adaptive one that of marginal likelihood."""

    se: str
    takes_facets: ClassVar[bool] = True
    marginal: ClassVar[str] = "MarginalRasch"  # the estimator of adaptive designs

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        anchors: Any = None,
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
        if isinstance(design, LinearDesign):
            return self._fitted(data, progress, anchors=anchors, weights=weights, design=design)
        check_option("design", design, DESIGNS)
        if design == ADAPTIVE:
            if anchors is not None:
                raise OptionError("anchors are for a fixed design; leave them out.")
            from spectral_irt.estimators import marginal

            model = getattr(marginal, self.marginal)
            return marginal.fit_adaptive(self, model, data, groups=groups, weights=weights, progress=progress)
        if groups is not None:
            raise OptionError("groups are for `design='adaptive'`; here nothing depends on them.")
        return self._fitted(data, progress, anchors=anchors, weights=weights)

    def _estimate(
        self,
        responses: Responses,
        tell: Tell,
        anchors: Any = None,
        weights: ArrayLike | None = None,
        design: LinearDesign | None = None,
    ) -> Estimate:
        each = None if weights is None else person_weights(responses, weights)
        if design is None and responses.facets is None:
            found = self._of_thresholds(responses, tell, anchors, each)
            # People, and how much each counts: for means and reliability of these people.
            return found if each is None else replace(found, extra={"weighted": (responses.persons, each)})
        if anchors is not None:
            raise OptionError("anchors of a linear design go with it: `design=LinearDesign(anchors={...})`.")
        from spectral_irt.estimators.linear_fit import linear_fit

        given = self.get_params()
        scale = {"scale": True, "groups": given["groups"]} if "groups" in given else {}
        options = {name: given[name] for name in ("regularization", "se") if name in given}
        return linear_fit(responses, design or LinearDesign(), weights=each, tell=tell, **scale, **options)

    def _of_thresholds(self, responses: Responses, tell: Tell, anchors: Any, weights: Floats | None) -> Estimate:
        """Without a linear design: each threshold by itself, perhaps beside anchors."""
        options = options_of(self, tell, weights)
        if anchors is None:
            return spectral_fit(responses, **options)
        from spectral_irt.estimators.anchored import fit_beside, given_anchors

        return fit_beside(responses, given_anchors(anchors), **options)


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


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRatingScale(RatingScale, Spectral):
    """The rating scale model by conditional likelihood: difficulties, and category offsets that all items share.

    beta_ik = delta_i + tau_k = (A eta)_ik: a linear design, by Newton's steps for eta. No threshold needs an estimate
    by itself, so that a category that some items never saw does no harm.

    Parameters
    ----------
    groups : mapping from item to group, or a label for each item, optional
        Items with a rating scale of their own; one scale for all by default.
    unused : "keep", "collapse" or "error"
        What becomes of categories that nobody used, where `fit` is given a table. "keep" (default): an item has the
        categories of its group.
    max_iter : int
        Most Newton steps.
    threads
        As for `SpectralPartialCredit`.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        delta_i; mean zero.
    offsets_ : columns
        tau_k of every group: `group, category, offset, se`.
    thresholds_, threshold_se_ : float arrays

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = SpectralRatingScale().fit(simulate.rating_scale(800, 6, categories=4, seed=1).responses)
    >>> fit.offsets_["offset"].round(0).tolist()
    [-1.0, 0.0, 1.0]
    """

    marginal: ClassVar[str] = "MarginalRatingScale"

    groups: Groups = None
    unused: str = "keep"
    max_iter: int = 30
    threads: int | None = None

    def _of_thresholds(self, responses: Responses, tell: Tell, anchors: Any, weights: Floats | None) -> Estimate:
        from spectral_irt.estimators.linear_fit import design_fit

        if anchors is not None:
            raise OptionError("a rating scale has no anchors; anchor the items of a partial credit model.")
        kept, made = self._scaled(responses)
        how: dict[str, Any] = {"regularization": 0, "se": "dense", "max_iter": self.max_iter, "tell": tell}
        result = design_fit(kept.responses, made, weights=weights, **how)
        matrix = None if result.covariance is None else made.matrix @ (made.matrix @ result.covariance).T
        beta, matrix = centered(kept.responses.thresholds, made.matrix @ result.eta, matrix)
        findings = result.findings() + ([] if weights is None else [weights_finding(weights)])
        found = beta, result.errors_of(made.matrix), result.found.evaluations, result.found.move
        return kept.estimate(*found, covariance=matrix, se_method="dense", findings=findings)
