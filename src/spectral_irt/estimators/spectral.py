"""The spectral estimators: thresholds as the log of the stationary distribution of a Markov chain.

`spectral_fit` takes eight steps (`spectral_steps`): 1. `examine` the design; 2. plan whether there is a prior; 3. keep
the items that can be estimated; 4. solve the chain, where Newton's steps start (the chain alone, `refine=False`, stops
here); 5. make the prior; 6. Newton steps on the conditional likelihood; 7. standard errors; 8. the estimate, with
findings. Anchored thresholds are fixed throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt import estimators
from spectral_irt.chain.operator import weighting_named
from spectral_irt.chain.prior import ENOUGH_INFORMATION, Regularization, check_regularization, plan_prior
from spectral_irt.chain.stationary import Rounds
from spectral_irt.conditional.errors import centered
from spectral_irt.conditional.newton import Likelihood, newton
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import Design, examine
from spectral_irt.errors import OptionError, check_option, unknown_option
from spectral_irt.estimators.base import (
    ADAPTIVE,
    DESIGNS,
    FIXED,
    WEAK_LINKS,
    Estimate,
    RaschEstimator,
    Tell,
    convergence,
)
from spectral_irt.estimators.estimable import Kept, person_weights, weights_finding
from spectral_irt.estimators.spectral_steps import (
    QUICK_ITEMS,
    SE_METHODS,
    Known,
    chosen_method,
    describe_prior,
    estimate,
    kept_items,
    make_prior,
    noun_of,
    slow_mixing,
    solve_chain,
    taking_part,
)

if TYPE_CHECKING:
    from spectral_irt.estimators import LinearDesign

# Parameters that estimators and `spectral_fit` have by the same name.
SHARED = ("weighting", "regularization", "nu", "nu_rule", "refine", "assume_equal_means", "se", "tol")
CHAIN_ERRORS = ("auto", "dense", "one-pass", "none")  # ways to standard errors of the chain alone


def spectral_fit(
    responses: Responses,
    *,
    weighting: str = "ability",
    regularization: str | float = "auto",
    nu: float = 0.0,
    nu_rule: str = "differed",
    refine: str | bool = "auto",
    assume_equal_means: bool = False,
    weights: ArrayLike | None = None,
    known: Known | None = None,
    se: str = "auto",
    tol: float = 1e-10,
    max_passes: int = 10_000,
    seed: int = 0,
    progress: Tell | None = None,
) -> Estimate:
    """Thresholds with standard errors by the spectral method, for any number of thresholds.

    sum_l sum_j h_ij^l ( pi_i X_li (1 - X_lj) - pi_j X_lj (1 - X_li) ) = 0,   beta_i = log pi_i - mean.

    The parameters are those of `SpectralRasch`; `known` are anchors.

    >>> from spectral_irt import datasets
    >>> spectral_fit(datasets.load_lsat()).thresholds.round(2).tolist()
    [-1.26, 0.47, 1.24, 0.17, -0.62]
    """
    if se not in SE_METHODS:
        raise unknown_option("se", se, SE_METHODS)
    if not 0 < tol < 1:
        raise OptionError(f"`tol` is {tol}; it must lie between 0 and 1.")
    tell = progress or (lambda text: None)
    tell("looking at the design")
    design = examine(responses)
    check_regularization(regularization, nu, nu_rule, weighting)
    each = None if weights is None else person_weights(responses, weights)
    solving: dict[str, Any] = {"tol": tol, "max_passes": max_passes, "tell": tell}
    if not refined(refine, weighting, nu):
        if each is not None or known is not None:
            what = "people have weights" if known is None else "items are anchored"
            raise OptionError(f"{what} in the Newton steps only; leave out `refine=False`, and weight by ability.")
        plan = Regularization("pairs", "as asked", nu=float(nu), rule=nu_rule)
        if nu == 0:
            simple: dict[str, Any] = {"kind": "virtual item", "enough": ENOUGH_INFORMATION}
            plan = plan_prior(design, regularization, noun_of(responses.thresholds), **simple)
        return _chain_alone(design, plan, weighting, se, **solving)

    fit = taking_part(design, regularization, known)
    plan, rest, mask = fit.plan, fit.rest, fit.mask
    shared = None  # what people on shared sets told, where it is all that a fit needs
    if each is None and known is None and plan.kind == "none" and rest.n_items <= QUICK_ITEMS:
        shared = rest.shared if se in ("auto", "dense", "information", "none") else None
    start = solve_chain(fit, shared, **solving)
    prior, parts, plan = make_prior(fit, start)
    likelihood = Likelihood(rest, start.beta, weights=each, shared=shared)
    fixed = None if known is None else known.fixed[mask]
    found = newton(likelihood, start.beta, prior=prior, fixed=fixed, parts=parts[rest.thresholds.item], tell=tell)
    plan = describe_prior(plan, found, rest, fit.tied) if found.prior else plan
    return estimate(fit, plan, start, found, parts, shared, each, assume_equal_means, se, seed, tell)


def options_of(estimator: Any, tell: Tell, weights: ArrayLike | None = None) -> dict[str, Any]:
    """The parameters of an estimator as `spectral_fit` has them."""
    given = estimator.get_params()
    options = {name: given[name] for name in SHARED if name in given}
    how = {"max_passes": estimator.max_iter, "seed": estimator.random_state, "progress": tell, "weights": weights}
    return options | how


def refined(refine: str | bool, weighting: str, nu: float) -> bool:
    """Whether the chain is followed by Newton steps: by default under ability weights without nu."""
    moving = weighting_named(weighting).moving
    if refine == "auto":
        return moving and nu == 0
    if refine not in (True, False):
        raise OptionError(f"`refine` is {refine!r}; it is 'auto', True or False.")
    if refine and (nu > 0 or not moving):
        raise OptionError("`refine=True` goes with `weighting='ability'` and without `nu`.")
    return bool(refine)


def start_thresholds(responses: Responses) -> Floats:
    """Where other iterations start: what the chain alone gives; 0 for an unanswered item."""
    weighting = "ability" if responses.thresholds.binary else "persons"
    beta = spectral_fit(responses, weighting=weighting, refine=False, se="none", tol=1e-6).thresholds
    return np.where(np.isfinite(beta), beta, 0.0)


def _chain_alone(design: Design, plan: Regularization, weighting: str, se: str, **solving: Any) -> Estimate:
    """Thresholds as the chain itself has them."""
    from spectral_irt.chain.errors import covariance, one_pass

    check_option("se", se, CHAIN_ERRORS)
    responses, tol, tell = design.answers, solving["tol"], solving["tell"]
    if plan.kind == "pairs":
        from spectral_irt.chain.paper import met_items

        kept, findings = met_items(design, plan.rule), list(design.findings)
        rest = responses if kept.all() else responses.take_items(kept)
    else:
        rest, kept, findings = kept_items(design, plan)
    thresholds, mask = rest.thresholds, kept[responses.thresholds.item]
    tell("solving the chain")
    rounds = Rounds(rest, weighting, plan, design.information[mask], **solving)
    found = rounds.solve()
    plan, balance = rounds.plan, rounds.balance()

    method = chosen_method(se, rest, found.contraction, tell, multipliers=False)
    matrix = covariance(balance) if method == "dense" else None
    beta = rounds.beta
    if not thresholds.binary:
        beta, matrix = centered(thresholds, beta, matrix)
    errors, location = np.full(len(beta), np.nan), np.full(rest.n_items, np.nan)
    if method == "one-pass":
        errors, location = one_pass(balance)
    status = design.status
    alone = np.zeros(len(beta), dtype=bool)
    if not balance.in_information and method != "none":
        # The sandwich takes what flows out of an item for information, which it is under ability weights only. What
        # rests on the prior alone has the prior's error; nu is no distribution, and what rests on it has none.
        if plan.kind == "pairs":
            alone, prior_se = status[kept] != "ok", np.nan
        else:
            alone, prior_se = design.information[mask] == 0, plan.alpha**-0.5 if plan.alpha else np.nan
        errors[alone] = prior_se
        if matrix is not None:
            matrix[alone] = matrix[:, alone] = prior_se * 0
            matrix[alone, alone] = prior_se**2
    if matrix is None and alone.any():  # an item with such a threshold: as if each were known by itself
        own = np.sqrt(thresholds.mean(errors**2) / thresholds.max_score)
        location = np.where(thresholds.mean(alone.astype(float)) > 0, own, location)

    findings.append(Finding("regularization", "note", plan.sentence))
    counted = ("the chain", found.passes, "passes", "residual", found.residual, tol)
    findings += convergence(*counted, remedy=WEAK_LINKS, warn=False)  # the solver has warned
    findings += slow_mixing(design, rest, kept, found.contraction, method)
    told = balance.through if balance.in_information else rounds.information()
    more: dict[str, Any] = {"location": location, "covariance": matrix, "information": thresholds.sum(told)}
    more |= {"regularization": plan, "se_method": method, "solver": found.method, "contraction": found.contraction}
    of_all = Kept(rest, kept, status, tuple(findings), responses.thresholds)
    return of_all.estimate(beta, errors, rounds.passes, found.residual, **more)


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
        if not isinstance(design, str):
            return self._fitted(data, progress, anchors=anchors, weights=weights, design=design)
        if design not in DESIGNS:
            raise unknown_option("design", design, DESIGNS)
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
        elif anchors is not None:
            raise OptionError("anchors of a linear design go with it: `design=LinearDesign(anchors={...})`.")
        else:
            found = self._of_design(responses, tell, design or estimators.LinearDesign(), each)
        if each is None:
            return found
        # People, and how much each counts: for means and reliability of these people.
        return replace(found, extra={**found.extra, "weighted": (responses.persons, each)})

    def _of_design(self, responses: Responses, tell: Tell, design: LinearDesign, weights: Floats | None) -> Estimate:
        """Thresholds that are sums of what belongs to items, raters, occasions."""
        from spectral_irt.estimators.linear_fit import design_fit

        given = self.get_params()
        usual = {"weighting": "ability", "nu": 0, "assume_equal_means": False}
        unfit = [name for name, value in usual.items() if given.get(name, value) != value]
        unfit += ["refine"] if given.get("refine") is False else []
        if unfit:
            names = ", ".join(f"`{name}`" for name in unfit)
            raise OptionError(f"a linear design, as of raters, is fitted by conditional likelihood; leave out {names}.")
        made = design.of(responses, scale="groups" in given, groups=given.get("groups"))
        options = {name: given[name] for name in ("regularization", "se") if name in given}
        found = design_fit(responses, made, weights=weights, tell=tell, **options).estimate(responses)
        return found if weights is None else replace(found, findings=(*found.findings, weights_finding(weights)))

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
