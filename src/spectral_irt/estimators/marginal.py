"""MarginalRasch and MarginalPartialCredit: marginal maximum likelihood, abilities integrated out over a population.

And designs in which answers decide what comes next. Conditional equations (the chain, conditional and pairwise
likelihood) ask which of the items that a person was given were answered right, given how many. An adaptive test chose
these items by the answers, so that the question has its answer built in. The marginal likelihood of all answers of a
person factors: the choice, which depends on observed answers only, drops out.

References
----------
Eggen & Verhelst (2011), Psicologica 32, 107-132. Zwitser & Maris (2015), Psychometrika 80, 65-84.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import examine
from spectral_irt.errors import DesignError, OptionError, check_option, listed
from spectral_irt.estimators.base import ADAPTIVE, DESIGNS, FIXED, RaschEstimator, Tell
from spectral_irt.estimators.estimate import DENSE_ITEMS, Estimate, Kept, convergence, person_weights, weights_finding
from spectral_irt.estimators.marginal_em import (
    FREE_STEP,
    NO_SPREAD,
    WIDE_SPREAD,
    MarginalFit,
    free_population,
    marginal_difficulty,
)
from spectral_irt.estimators.marginal_information import (
    MarginalErrors,
    marginal_errors,
    marginal_information,
    score_covariance,
)
from spectral_irt.estimators.population import (
    MOST,
    Members,
    People,
    Population,
    abilities,
    enough_nodes,
    people_by_group,
    population_findings,
)
from spectral_irt.estimators.spectral_fit import start_thresholds
from spectral_irt.tables import Columns

E = TypeVar("E", bound=RaschEstimator)
Prior = Literal["auto", "normal", "free"]
PRIORS = get_args(Prior)
CODE = "adaptive_design"
FREE_SHAPE = "takes abilities from a distribution of free shape"


class _Marginal(RaschEstimator):
    """Marginal maximum likelihood for any number of thresholds."""

    prior: str
    sigma: float | None
    nodes: int | None
    tol: float
    max_iter: int

    def _check(self) -> None:
        check_option("prior", self.prior, PRIORS)
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma > 0):
            raise OptionError(f"sigma is {self.sigma!r}; it must be positive, or None to estimate it.")
        if self.sigma is not None and self.prior not in ("auto", "normal"):
            raise OptionError(f"sigma is fixed at {self.sigma!r}, which goes with prior='normal', not {self.prior!r}.")
        if self.nodes is not None and self.nodes < 3:
            raise OptionError(f"nodes is {self.nodes!r}; it must be 3 or more, or None.")

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        groups: Any = None,
        weights: ArrayLike | None = None,
        design: str = FIXED,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as in every estimator.

        Parameters
        ----------
        groups : labels or mapping, optional
            The group of each person, in their order or by their label; abilities have a mean and a standard deviation
            for each. People without a label are a group of their own.
        weights : numbers, optional
            How much each person counts, in the order of the people, as survey weights say. Standard errors allow for
            them (a sandwich over people).
        design : "fixed" or "adaptive"
            Whether items were chosen by earlier answers. The estimate is the same, but for the shape of the population;
            the calibration keeps in mind that nothing given the scores may be asked of such data.
        """
        check_option("design", design, DESIGNS)
        return self._fitted(data, progress, groups=groups, weights=weights, design=design)

    def _estimate(
        self,
        responses: Responses,
        tell: Tell,
        groups: Any = None,
        weights: ArrayLike | None = None,
        design: str = FIXED,
    ) -> Estimate:
        self._check()
        kept = _keep_mixed(responses)
        rest = kept.responses
        people = people_by_group(rest, groups)
        each = None if weights is None else person_weights(responses, weights)
        parts = [
            Members(part, None if each is None else each[people.split.members(g)])
            for g, part in enumerate(people.answers)
        ]
        if groups is not None and self.prior not in ("auto", "normal"):
            raise OptionError(f"groups have normal populations; the prior cannot be {self.prior!r}.")
        start = start_thresholds(rest)
        fit = marginal_difficulty(
            parts, start=start, sigma=self.sigma, nodes=self.nodes, tol=self.tol, max_iter=self.max_iter
        )
        asked = self.prior == "auto" and design == ADAPTIVE and groups is None and self.sigma is None
        if self.prior == "free" or asked:
            tell("a free distribution of abilities")
            fit = free_population(parts[0], fit, start, max_iter=self.max_iter)
        free = fit.populations[0].basis is not None
        with_sigma = self.sigma is None
        found = marginal_information(parts, fit.difficulty, fit.populations, with_sigma=with_sigma)
        middle = None
        if each is not None and found.dense:
            middle = score_covariance(parts, fit.difficulty, fit.populations, found)
        errors = marginal_errors(found, fit.populations, middle)
        n_persons = int(np.sum(rest.counts > 0))
        n_parameters = len(fit.difficulty) + len(found.own) - free  # of a free population one parameter is its origin
        table = _population_columns(people, fit, errors, self.sigma)
        nodes, shares = _mixture(parts, fit.populations)
        alone = len(parts) == 1
        everyone = Population(nodes, np.log(np.maximum(shares, 1e-300)))
        ability, ability_se = np.empty(rest.n_persons), np.empty(rest.n_persons)
        for g, (part, population) in enumerate(zip(parts, fit.populations, strict=True)):
            there = people.split.members(g)
            ability[there], ability_se[there] = part.responses.entries.gather(
                abilities, fit.difficulty, population, part.layout
            )
        findings = [*people.findings, *([] if each is None else [weights_finding(each)])]
        findings += _fit_findings(fit, np.asarray(table["sd"]), with_sigma, rest, self)
        findings += population_findings(table, with_sigma) if groups is not None else []
        findings += [adaptive_finding(groups is not None, fit.better)] if design == ADAPTIVE else []
        return kept.estimate(
            fit.difficulty,
            np.sqrt(np.maximum(errors.variance, 0)),
            fit.n_iter,
            fit.residual,
            loglik=fit.loglik,
            findings=findings,
            covariance=errors.covariance,
            extra={
                "mu": fit.population.mean if alone else everyone.mean,
                "sigma": float(table["sd"][0]) if alone else everyone.sd,
                "sigma_se": float(table["sd_se"][0]) if alone else np.nan,
                "population": table,
                "aic": 2 * n_parameters - 2 * fit.loglik,
                "bic": n_parameters * float(np.log(n_persons)) - 2 * fit.loglik,
                "n_parameters": n_parameters,
                "nodes": nodes,
                "weights": shares,
                "ability": ability,
                "ability_se": ability_se,
                **({} if each is None else {"weighted": (responses.persons, each)}),
            },
        )


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalRasch(_Marginal):
    """Difficulties by marginal maximum likelihood (MML): abilities are draws from a population that is estimated too.

    P(answers of person l) = integral of prod_i P(X_li | theta, beta_i) dF(theta),  F = N(mu, sigma^2) by default.

    More efficient than conditional likelihood when the population is what it is taken for, inconsistent when it is not
    (the paper's Figure 1 with a fixed sd of 1 and a true one of 2); estimating sigma, the default, removes the worst of
    that, and a population for each group (`fit(responses, groups=...)`) the worst where forms are for different people.

    The one method here for tests that choose the next item, or the end, by the answers so far (adaptive tests, routing,
    stopping rules): the likelihood of all answers of a person does not depend on how their items were chosen, a
    likelihood given the score does.

    Parameters
    ----------
    prior : "auto", "normal" or "free"
        "normal": N(mu, sigma^2) with both estimated. "free": a smooth distribution of any shape, its log density a
        polynomial of degree 4 or 6, where Akaike's criterion prefers that to a normal one. "auto" (default): "free" for
        adaptive designs, where a wrong shape does most harm, "normal" for others and for groups.
    sigma : float, optional
        A fixed standard deviation of ability for prior="normal"; `sigma=1` is the paper's MMLE on synthetic data. The
        mean needs no fixing: difficulties average zero, and mu is where people then lie.
    nodes : int, optional
        Quadrature nodes, evenly spaced. Default: as many as the person with most answers needs (whose posterior is
        narrowest), 41 to 401.
    tol, max_iter : float, int
        Stop when an EM step changes no parameter by more than `tol`; at most so many passes. (A free distribution
        stops when the gradient is a hundredth of a standard error.)
    threads, threshold
        As in every estimator.

    Attributes
    ----------
    mu_, sigma_, sigma_se_ : float
        Mean and standard deviation of ability on the scale of the difficulties; of everybody, where there are groups,
        with `sigma_se_` NaN.
    population_ : dict of columns
        `group, n, mean, mean_se, sd, sd_se` of every group; the group of everybody is called "all".
    loglik_, aic_, bic_, n_parameters_ : float
        Marginal log-likelihood; BIC counts people.
    ability_, ability_se_ : arrays, one number per person
        Posterior mean (EAP) and standard deviation.
    nodes_, weights_ : arrays
        The distribution of ability; of all groups together, where there are groups.

    Notes
    -----
    Standard errors invert the observed information (Louis 1982) of difficulties and of everything that describes the
    populations. Beyond 5,000 thresholds each one's own information is used alone.

    References
    ----------
    Bock & Aitkin (1981), Psychometrika 46, 443. Liu, Rubin & Wu (1998), Biometrika 85, 755 (parameter expansion).
    Louis (1982), JRSS B 44, 226. Eggen & Verhelst (2011), Psicologica 32, 107 (adaptive designs). Nguyen & Zhang
    (2022), section 4.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> fit = MarginalRasch().fit(load_lsat())
    >>> fit.difficulty_.round(2).tolist(), round(fit.sigma_, 3), round(fit.loglik_, 2)
    ([-1.26, 0.48, 1.24, 0.17, -0.62], 0.755, -2466.94)
    """

    prior: str = "auto"
    sigma: float | None = None
    nodes: int | None = None
    tol: float = 1e-6
    max_iter: int = 500
    threads: int | None = None
    threshold: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalPartialCredit(_Marginal):
    """Thresholds of the partial credit model by marginal maximum likelihood (MML).

    On right and wrong answers the numbers of `MarginalRasch`, whose page has more about the method.

    Parameters
    ----------
    unused : "collapse", "error" or "keep"
        As for `SpectralPartialCredit`.
    prior, sigma, nodes, tol, max_iter, threads
        As for `MarginalRasch`.

    Attributes
    ----------
    thresholds_, threshold_se_, difficulty_, se_
    mu_, sigma_, population_, loglik_, ability_ and others
        As for `MarginalRasch`.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = MarginalPartialCredit().fit(simulate.partial_credit(500, 5, categories=3, seed=1).responses)
    >>> bool(0.7 < fit.sigma_ < 1.3)
    True
    """

    several: ClassVar[bool] = True

    prior: str = "auto"
    sigma: float | None = None
    nodes: int | None = None
    unused: str = "collapse"
    tol: float = 1e-6
    max_iter: int = 500
    threads: int | None = None


def _population_columns(people: People, fit: MarginalFit, errors: MarginalErrors, sigma: float | None) -> Columns:
    # A given sigma is said as given: the nodes' own standard deviation differs from it in the last digits.
    sd = np.array([one.sd if sigma is None else sigma for one in fit.populations])
    return {
        "group": np.array(people.split.names, dtype=object),
        "n": np.array([int(np.sum(part.counts > 0)) for part in people.answers]),
        "mean": np.array([one.mean for one in fit.populations]),
        "mean_se": np.sqrt(errors.mean_variance),
        "sd": sd,
        "sd_se": sd * np.sqrt(errors.log_sigma_variance),
    }


def _mixture(parts: Sequence[Members], populations: Sequence[Population]) -> tuple[Floats, Floats]:
    """Nodes and weights of everybody."""
    sizes = np.array([part.size for part in parts])
    weights = [np.exp(one.log_weights) * share for one, share in zip(populations, sizes / sizes.sum(), strict=True)]
    return np.concatenate([one.nodes for one in populations]), np.concatenate(weights)


def _keep_mixed(responses: Responses) -> Kept:
    """Items whose categories were all used; the population ties them together even where no person does."""
    design, binary = examine(responses), responses.thresholds.binary
    counts = responses.category_counts
    mixed = (responses.item_counts > 0) & ((counts > 0) | np.isnan(counts)).all(axis=1)
    what = "both right and wrong answers" if binary else "answers in all their categories"
    other = "`SpectralRasch` or `VariationalRasch`" if binary else "`SpectralPartialCredit`"
    if mixed.sum() < 2:
        raise DesignError(
            f"{responses.source}: fewer than two items have {what}; marginal likelihood needs them. Use {other}, whose "
            "prior on difficulties makes up for it."
        )
    shown = {"no_responses", "disconnected", "many_more_items_than_persons"}
    findings = [finding for finding in design.findings if finding.code in shown]
    extreme = ~mixed & (responses.item_counts > 0)
    if extreme.any():
        names = responses.items[extreme]
        why = "answered right by everyone or by no one" if binary else "with a category that nobody used"
        findings.append(
            Finding(
                "items_left_out",
                "warning",
                f"{len(names):,} items {why} have no finite difficulty and are left out: {listed(names)}.",
                f"Use {other} for an estimate from a prior, or drop the items.",
                tuple(names.tolist()),
            )
        )
    rest = responses if mixed.all() else responses.take_items(mixed)
    return Kept(rest, mixed, design.status(), tuple(findings), responses.thresholds)


def _fit_findings(
    fit: MarginalFit, sigmas: Floats, estimated: bool, responses: Responses, options: _Marginal
) -> list[Finding]:
    asked = options.tol if fit.populations[0].basis is None else FREE_STEP
    found = convergence("the marginal likelihood", fit.n_iter, "passes", "a last step of", fit.residual, asked)
    narrow, sigma = float(sigmas.min()), float(sigmas.max())
    if estimated and narrow <= 1.01 * NO_SPREAD:
        found.append(
            Finding(
                "no_ability_spread",
                "warning",
                "The data show no spread of ability: sigma went to zero.",
                "Check the scoring; answers of one person seem to have nothing in common.",
            )
        )
    if estimated and sigma >= 0.95 * WIDE_SPREAD:
        found.append(
            Finding(
                "unbounded_ability_spread",
                "warning",
                f"The spread of ability has no finite estimate; sigma is held at {WIDE_SPREAD:g}.",
                "Nearly all people have all answers right or all wrong; difficulties are not to be trusted.",
            )
        )
    longest = int(responses.counts.max(initial=1)) * responses.thresholds.widest**2
    wanted = enough_nodes(max(sigma, NO_SPREAD), longest)
    if options.nodes is None and wanted >= MOST:
        found.append(
            Finding(
                "coarse_nodes",
                "note",
                f"{MOST} nodes are the most used by default, and where people gave most answers posteriors are "
                "narrower than these resolve.",
                "More nodes show whether it matters.",
            )
        )
    if responses.thresholds.n_entries > DENSE_ITEMS:
        found.append(
            Finding(
                "approximate_se",
                "note",
                f"With more than {DENSE_ITEMS:,} items standard errors come from each item's own information.",
                "They may be a few per cent low, and more where groups of items are weakly linked.",
            )
        )
    return found


# ------------------------------------------------------------------------------------ adaptive designs


def fit_adaptive(estimator: E, data: Any, *, groups: Any = None, weights: Any = None, progress: Any = None) -> E:
    """Fit any estimator to an adaptive design: what it learns is what marginal likelihood finds, and says so.

    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = fit_adaptive(SpectralRasch(), datasets.load_lsat())
    >>> fit.calibration_.provenance.estimator, fit.difficulty_.round(2).tolist()
    ('MarginalRasch', [-1.26, 0.48, 1.24, 0.17, -0.62])
    """
    if estimator.several:
        marginal: _Marginal = MarginalPartialCredit(threads=estimator.threads, unused=estimator.unused)
    else:
        marginal = MarginalRasch(threads=estimator.threads, threshold=estimator.threshold)
    found = marginal.fit(data, groups=groups, weights=weights, design=ADAPTIVE, progress=progress)
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)  # nothing of an earlier fit survives
    vars(estimator).update({name: value for name, value in vars(found).items() if name.endswith("_")})
    return estimator


def is_adaptive(calibration: Calibration) -> bool:
    """Whether the calibration was told that items were chosen by the answers."""
    return any(finding.code == CODE for finding in calibration.findings)


def adaptive_finding(grouped: bool, better: float) -> Finding:
    """What a calibration of an adaptive design says about itself; `better`: AIC of a free distribution below normal."""
    if grouped:
        shape = "takes abilities as normal in each group"
    elif better > 0:
        shape = f"{FREE_SHAPE} (AIC {better:.1f} below that of a normal one)"
    else:
        shape = "takes abilities as normal (a distribution of free shape fits no better, by AIC)"
    return Finding(
        CODE,
        "note",
        "Items were chosen by the answers, as was said; difficulties come from marginal maximum likelihood, which "
        f"{shape} and allows for any such choice.",
        "" if grouped else "Where people come from several populations, say `groups=`.",
    )
