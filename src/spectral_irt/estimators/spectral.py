"""The spectral estimators: `spectral_steps` has their fit; here are their parameters, and the chain by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spectral_irt.calibration import PARTIAL_CREDIT
from spectral_irt.chain.prior import ENOUGH_INFORMATION, Regularization, plan_prior
from spectral_irt.chain.stationary import Rounds
from spectral_irt.conditional.errors import centered
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import Design
from spectral_irt.errors import check_option
from spectral_irt.estimators.base import WEAK_LINKS, Estimate, convergence
from spectral_irt.estimators.estimable import Kept, slow_mixing
from spectral_irt.estimators.spectral_steps import SLOW, Spectral, chosen_method, kept_items, spectral_fit

CHAIN_ERRORS = ("auto", "dense", "one-pass", "none")  # ways to standard errors of the chain alone


def start_thresholds(responses: Responses) -> Floats:
    """Where other iterations start: what the chain alone gives; 0 for an unanswered item."""
    weighting = "ability" if responses.thresholds.binary else "persons"
    beta = spectral_fit(responses, weighting=weighting, refine=False, se="none", tol=1e-6).thresholds
    return np.where(np.isfinite(beta), beta, 0.0)


def chain_alone(
    design: Design, prior: tuple[str | float, float, str], weighting: str, se: str, **solving: Any
) -> Estimate:
    """Thresholds as the chain itself has them; the prior is `regularization`, `nu` and its rule."""
    from spectral_irt.chain.errors import covariance, one_pass

    check_option("se", se, CHAIN_ERRORS)
    responses, tol, tell = design.answers, solving["tol"], solving["tell"]
    regularization, nu, rule = prior
    if nu > 0:
        from spectral_irt.chain.paper import met_items

        plan = Regularization("pairs", "as asked", nu=float(nu), rule=rule)
        kept, findings = met_items(design, plan.rule), list(design.findings)
        rest = responses if kept.all() else responses.take_items(kept)
    else:
        noun = "item" if design.answers.thresholds.binary else "threshold"
        plan = plan_prior(design, regularization, noun, kind="virtual item", enough=ENOUGH_INFORMATION)
        rest, kept, findings = kept_items(design, plan)
    thresholds, mask, status = rest.thresholds, kept[responses.thresholds.item], design.status
    tell("solving the chain")
    rounds = Rounds(rest, weighting, plan, design.information[mask], **solving)
    found = rounds.solve()
    plan, balance = rounds.plan, rounds.balance()
    method = chosen_method(rest, found.contraction, multipliers=False) if se == "auto" else se
    if method != "none":
        tell(f"standard errors ({method})")
    matrix = covariance(balance) if method == "dense" else None
    beta = rounds.beta
    if not thresholds.binary:
        beta, matrix = centered(thresholds, beta, matrix)
    errors, location, alone = np.full(len(beta), np.nan), np.full(rest.n_items, np.nan), np.zeros(len(beta), dtype=bool)
    if method == "one-pass":
        errors, location = one_pass(balance)
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

    findings.append(Finding("regularization", "note", str(plan)))
    counted = ("the chain", found.passes, "passes", "residual", found.residual, tol)
    findings += convergence(*counted, remedy=WEAK_LINKS, warn=False)  # the solver has warned
    findings += slow_mixing(design, rest, kept, method) if found.contraction > SLOW else []
    told = balance.through if balance.in_information else rounds.information()
    more: dict[str, Any] = {"location": location, "covariance": matrix, "information": thresholds.sum(told)}
    more |= {"regularization": plan, "se_method": method, "solver": found.method, "contraction": found.contraction}
    of_all = Kept(rest, kept, status, tuple(findings), responses.thresholds)
    return of_all.estimate(beta, errors, rounds.passes, found.residual, **more)


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
