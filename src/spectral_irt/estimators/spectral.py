"""SpectralRasch: item difficulties as the log of the stationary distribution of a Markov chain on items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.chain.errors import SE_METHODS
from spectral_irt.chain.regularization import check_regularization, plan_regularization
from spectral_irt.chain.weights import weighting_named
from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import examine
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.adaptive import ADAPTIVE, DESIGNS, fit_adaptive
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.chain_alone import chain_thresholds
from spectral_irt.estimators.estimate import WEIGHTED, Estimate, person_weights
from spectral_irt.estimators.landed import landed_difficulty


def spectral_difficulty(
    responses: Responses,
    *,
    weighting: str = "ability",
    regularization: str | float = "auto",
    nu: float = 0.0,
    nu_rule: str = "differed",
    refine: str | bool = "auto",
    assume_equal_means: bool = False,
    weights: ArrayLike | None = None,
    se: str = "auto",
    tol: float = 1e-10,
    max_passes: int = 10_000,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Estimate:
    """Item difficulties with standard errors by the spectral method; the function behind `SpectralRasch`.

    sum_l sum_j h_ij^l ( pi_i X_li (1 - X_lj) - pi_j X_lj (1 - X_li) ) = 0,   beta_i = log pi_i - mean.

    The parameters are those of `SpectralRasch`.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> spectral_difficulty(datasets.load_lsat()).thresholds.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """
    weighting_named(weighting)
    check_option("se", se, SE_METHODS)
    if not 0 < tol < 1:
        raise OptionError(f"`tol` is {tol}; it must lie between 0 and 1.")
    if max_passes < 1:
        raise OptionError(f"`max_iter` is {max_passes}; it must be at least 1.")
    tell = progress or (lambda text: None)
    tell("looking at the design")
    design = examine(responses)
    check_regularization(regularization, nu, nu_rule, weighting)
    each = None if weights is None else person_weights(responses, weights)
    if lands(refine, weighting, nu):
        return landed_difficulty(
            design,
            regularization,
            equal_means=assume_equal_means,
            weights=each,
            se=se,
            tol=tol,
            max_passes=max_passes,
            seed=seed,
            tell=tell,
        )
    if each is not None:
        raise OptionError("people have weights in the landing only; leave out `refine=False`.")
    plan = plan_regularization(design, regularization, nu, nu_rule, weighting)
    return chain_thresholds(
        design,
        plan,
        weighting=weighting,
        nu_rule=nu_rule,
        se=se,
        tol=tol,
        max_passes=max_passes,
        tell=tell,
    )


def start_difficulty(responses: Responses) -> Floats:
    """Where every iteration starts: what the chain alone gives, regularized as needed; 0 for an unanswered item."""
    beta = spectral_difficulty(responses, refine=False, se="none", tol=1e-6).thresholds
    return np.where(np.isfinite(beta), beta, 0.0)


def lands(refine: str | bool, weighting: str, nu: float) -> bool:
    """Whether the chain is followed by the landing.

    "auto": under ability weights. The other weightings, and nu, are ways to study the chain itself.
    """
    if refine == "auto":
        return weighting_named(weighting).moving and nu == 0
    if refine not in (True, False):
        raise OptionError(f"`refine` is {refine!r}; it is 'auto', True or False.")
    if refine and (nu > 0 or not weighting_named(weighting).moving):
        ability = "`weighting='ability'`"
        raise OptionError(f"`refine=True` goes with {ability} and without `nu`.")
    return bool(refine)


# ----------------------------------------------------------------------------------------- the class


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRasch(RaschEstimator):
    """Rasch difficulties with standard errors by the spectral method.

    P(X_li = 1) = 1 / (1 + exp(beta_i - theta_l)); exp(beta) is the stationary distribution of a Markov chain on items.
    From there a few Newton steps lead onto the conditional likelihood: on data that do not quite follow the model the
    chain alone drifts from it (docs/explanation/landing.md).

    Parameters
    ----------
    weighting : "ability", "persons" or "pairs"
        How much each person counts. "ability" (default): 97 to 99.8% as efficient as conditional maximum likelihood.
        "persons": every person counts once. "pairs": the paper's; long records count for much more than they tell.
        The last two are ways to study the chain, and are not followed by the landing.
    regularization : "auto" or float
        "auto" (default): nothing when all items are connected and well known; else a normal prior on how far an item
        lies from the other items that its own people met, of a precision alpha that is chosen by empirical Bayes. It
        counts in full for items with information up to 3 and not at all from 6 on (25 and 50 where the typical item is
        not told from the others). A number (1e-6 to 1e9) is that alpha, in full for all; 0 forbids it, and then items
        without a finite estimate are left out and a design without a common scale is an error. The chain alone has a
        prior around the mean of all items.
    nu, nu_rule : float, "differed" or "together"
        The paper's regularization, for reproduction: `nu` imaginary disagreements each way for every pair that
        differed in some person's answers (its program), or was seen together (its text). Needs weighting="pairs" or
        "persons", and the explicit item-item matrix.
    refine : "auto", True or False
        Whether the chain is followed by the landing: "auto" (default) under ability weights without nu; False leaves
        the chain's own estimate.
    assume_equal_means : bool
        Whether groups of items that share no people are taken to be equally hard on average. By default nothing is
        assumed, and items outside the largest group have an infinite standard error.
    se : "auto", "dense", "one-pass", "multiplier", "information" or "none"
        How standard errors are computed; `se_method_` says which was used. "dense", "one-pass" and "multiplier" are
        three ways to the sandwich (the chain alone has the first two); "information" is from the model alone.
    tol : float
        Relative l1 residual of the chain alone at which to stop; the landing ends when no item would move by a
        twentieth of its standard error, and on small data much later.
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
        Larger = harder; mean zero over the items that have an estimate. NaN without one.
        Where an estimate rests on the prior alone, so does its error. What rests on `nu` alone (status other than
        "ok") has none, since nu is no distribution: NaN.
    status_ : array of str
    n_iter_, residual_, contraction_ : int, float, float
        Passes over the data; how far another step would move an item, in standard errors (chain alone: the final
        residual); and how much one pass of the chain shrinks the slowest error (near 1: weak links).
    regularization_ : Regularization
    findings_ : tuple of Finding
    information_ : float array
        Information that the answers carry on each item.

    References
    ----------
    Nguyen & Zhang, "A Spectral Approach to Item Response Theory", NeurIPS 2022. The weights and the chain's standard
    errors are derived in docs/explanation/estimator.md, the landing and its prior in docs/explanation/landing.md.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = SpectralRasch().fit(datasets.load_lsat())
    >>> fit.difficulty_.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """

    without_matrix: ClassVar[str] = "give the responses that were fitted, covariance(responses), and it is computed"

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

        It solves the chain of `spectral_irt.paper` by other means. What the paper has, as printed, there:

        ===================================  ====================
        Algorithm 1                          `paper.algorithm_1`
        Algorithm 2, the accelerated one     `paper.algorithm_2`
        Y (pairs that differed), B (met)     `paper.pair_counts`, `paper.seen_together`
        nu, the regularization               `paper.regularize`
        ===================================  ====================
        """
        return cls(weighting="pairs", regularization=0, nu=nu, nu_rule=nu_rule, refine=False, **options)

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        design: str = "fixed",
        groups: Any = None,
        weights: ArrayLike | None = None,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as for every estimator.

        Parameters
        ----------
        design : "fixed" or "adaptive"
            "adaptive" where the answers decided what a person was asked next, or when to stop: difficulties then come
            from marginal maximum likelihood (`MarginalRasch`), and the findings say so.
        groups : labels, optional
            With an adaptive design, the population that each person is from.
        weights : numbers, optional
            How much each person counts, in the order of the people, as survey weights say: difficulties are those of
            the population that was sampled from. Standard errors allow for them, and so do mean, standard
            deviation and reliability of the people.
        """
        check_option("design", design, DESIGNS)
        if design == ADAPTIVE and weights is not None:
            raise OptionError("weights are for a fixed design; marginal likelihood does not take them.")
        if design == ADAPTIVE:
            return fit_adaptive(self, data, groups=groups, progress=progress)
        if groups is not None:
            raise OptionError("groups are for `design='adaptive'`; here nothing depends on them.")
        return self._fitted(data, progress, weights=weights)

    def _solve(
        self, responses: Responses, se: str, tell: Tell | None = None, weights: ArrayLike | None = None
    ) -> Estimate:
        return spectral_difficulty(
            responses,
            weighting=self.weighting,
            regularization=self.regularization,
            nu=self.nu,
            nu_rule=self.nu_rule,
            refine=self.refine,
            assume_equal_means=self.assume_equal_means,
            weights=weights,
            se=se,
            tol=self.tol,
            max_passes=self.max_iter,
            seed=self.random_state,
            progress=tell,
        )

    def _estimate(self, responses: Responses, tell: Tell, weights: ArrayLike | None = None) -> Estimate:
        found = self._solve(responses, self.se, tell, weights)
        if weights is None:
            return found
        # People, and how much each counts: for means and reliability of these people.
        return replace(found, extra={"weighted": (responses.persons, person_weights(responses, weights))})

    def covariance(self, data: Any = None) -> Floats:
        """Covariance matrix of the mean-centered difficulties, items x items; NaN for items without an estimate.

        Dense: meant for up to a few thousand items. A fit keeps its own where the dense sandwich formed it, for up to
        2,000 items (`se_method_` is "dense"). Otherwise give the responses that were fitted, and it is computed anew.
        """
        if data is None:
            return super().covariance()
        m = self._learned.n_items
        if m > 20_000:
            raise OptionError(f"a covariance matrix of {m:,} items needs {8 * m * m / 1e9:.0f} GB; use se_ instead.")
        responses = as_responses(data, threshold=self.threshold)
        if any(finding.code == WEIGHTED for finding in self.findings_):
            raise OptionError("this fit had weights, which it does not keep; fit again with `se='dense'`.")
        if not np.array_equal(responses.item_counts, self.item_counts_):
            raise OptionError("these are not the responses that were fitted: the items' numbers of answers differ.")
        found = self._solve(responses, "dense").covariance
        assert found is not None
        return found
