"""MarginalRasch: marginal maximum likelihood, abilities integrated out over a population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import examine
from spectral_irt.errors import DesignError, OptionError, check_option, listed
from spectral_irt.estimators.adaptive import ADAPTIVE, DESIGNS, FIXED, adaptive_finding
from spectral_irt.estimators.base import RaschEstimator, Tell
from spectral_irt.estimators.estimate import DENSE_ITEMS, Estimate, Kept, convergence
from spectral_irt.estimators.marginal_em import (
    FREE_STEP,
    NO_SPREAD,
    WIDE_SPREAD,
    MarginalFit,
    choose_prior,
    free_population,
    marginal_difficulty,
)
from spectral_irt.estimators.marginal_groups import People, people_by_group, population_findings
from spectral_irt.estimators.marginal_information import MarginalErrors, marginal_errors, marginal_information
from spectral_irt.estimators.population import MOST, Population, abilities, enough_nodes
from spectral_irt.estimators.spectral_fit import start_thresholds
from spectral_irt.tables import Columns

Prior = Literal["auto", "normal", "free", "validation"]
Quadrature = Literal["even", "hermite"]
PRIORS, QUADRATURES = get_args(Prior), get_args(Quadrature)

# The paper tries ten normal distributions and does not list them. These are the nine of its authors' script (means -1,
# 0, 1 with sd 0.5, 1, 1.5) and the wide one of its misspecification experiment.
TEN_NORMALS = (*((mu, sd) for mu in (0.0, -1.0, 1.0) for sd in (0.5, 1.0, 1.5)), (0.0, 2.0))


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalRasch(RaschEstimator):
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
    prior : "auto", "normal", "free" or "validation"
        "normal": N(mu, sigma^2) with both estimated. "free": a smooth distribution of any shape, its log density a
        polynomial of degree 4 or 6, where Akaike's criterion prefers that to a normal one. "validation": the one of
        `priors` under which held-out people are likeliest (the paper's procedure), then all data with its sd. "auto"
        (default): "free" for adaptive designs, where a wrong shape does most harm, "normal" for others and for groups.
    sigma : float, optional
        A fixed standard deviation of ability for prior="normal"; `sigma=1` is the paper's MMLE on synthetic data. The
        mean needs no fixing: difficulties average zero, and mu is where people then lie.
    priors : sequence of (mean, sd), optional
        Candidates for "validation"; default ten normal distributions.
    validation : float
        Share of people held out to choose a prior; a tenth, as in the paper.
    nodes : int, optional
        Quadrature nodes. Default: as many as the person with most answers needs (whose posterior is narrowest), 41 to
        401.
    quadrature : "even" or "hermite"
        Even nodes resolve narrow posteriors with fewer nodes; Gauss-Hermite is what other programs use.
    tol, max_iter : float, int
        Stop when an EM step changes no parameter by more than `tol`; at most so many passes. (A free distribution
        stops when the gradient is a hundredth of a standard error.)
    threads, threshold
        As in every estimator.
    random_state : int
        Draws the validation people.

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
    prior_, validation_loglik_
        With prior="validation": the chosen (mean, sd), and the mean log-likelihood an answer under each candidate.

    Notes
    -----
    Standard errors invert the observed information (Louis 1982) of difficulties and of everything that describes the
    populations. Beyond 5,000 items each item's own information is used alone.

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
    priors: Sequence[tuple[float, float]] | None = None
    validation: float = 0.1
    nodes: int | None = None
    quadrature: str = "even"
    tol: float = 1e-6
    max_iter: int = 500
    threads: int | None = None
    threshold: float | None = None
    random_state: int = 0

    def _check(self) -> None:
        check_option("prior", self.prior, PRIORS)
        check_option("quadrature", self.quadrature, QUADRATURES)
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma > 0):
            raise OptionError(f"`sigma` is {self.sigma!r}; it must be positive, or None to estimate it.")
        if self.sigma is not None and self.prior not in ("auto", "normal"):
            raise OptionError(f"sigma is fixed at {self.sigma!r}, which goes with prior='normal', not {self.prior!r}.")
        if self.nodes is not None and self.nodes < 3:
            raise OptionError(f"`nodes` is {self.nodes!r}; it must be 3 or more, or None.")
        if not 0 < self.validation < 1:
            raise OptionError(f"`validation` is {self.validation!r}; it must be between 0 and 1.")

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        groups: Any = None,
        design: str = FIXED,
        progress: Tell | None = None,
    ) -> Self:
        """Calibrate the items; `data`, `y` and `progress` as in every estimator.

        Parameters
        ----------
        groups : labels or mapping, optional
            The group of each person, in their order or by their label; abilities have a mean and a standard deviation
            for each. People without a label are a group of their own.
        design : "fixed" or "adaptive"
            Whether items were chosen by earlier answers. The numbers are the same; the calibration keeps in mind that
            nothing given the scores may be asked of such data.
        """
        check_option("design", design, DESIGNS)
        return self._fitted(data, progress, groups=groups, design=design)

    def _estimate(self, responses: Responses, tell: Tell, groups: Any = None, design: str = FIXED) -> Estimate:
        self._check()
        kept = _keep_mixed(responses)
        rest = kept.responses
        people = people_by_group(rest, groups)
        if groups is not None and self.prior not in ("auto", "normal"):
            raise OptionError(f"groups have normal populations; the prior cannot be {self.prior!r}.")
        start = start_thresholds(rest)
        options: dict[str, Any] = {"nodes": self.nodes, "quadrature": self.quadrature, "max_iter": self.max_iter}
        extra: dict[str, Any] = {}
        sigma = self.sigma
        if self.prior == "validation":
            priors = [(float(mu), float(sd)) for mu, sd in (self.priors or TEN_NORMALS)]
            chosen, scores = choose_prior(
                rest, priors, share=self.validation, seed=self.random_state, start=start, tol=1e-3, **options
            )
            extra |= {"prior": chosen, "validation_loglik": scores}
            sigma = chosen[1]
        fit = marginal_difficulty(people.answers, start=start, sigma=sigma, tol=self.tol, **options)
        asked = self.prior == "auto" and design == ADAPTIVE and groups is None and sigma is None
        if self.prior == "free" or asked:
            fit = free_population(people.answers[0], fit, start, max_iter=self.max_iter)
        free = fit.populations[0].basis is not None
        with_sigma = sigma is None
        found = marginal_information(people.answers, fit.difficulty, fit.populations, with_sigma=with_sigma)
        errors = marginal_errors(found, fit.populations)
        n_persons = int(np.sum(rest.counts > 0))
        n_parameters = rest.n_items + len(found.own) - free  # of a free population one parameter is its origin
        table = _population_columns(people, fit, errors, sigma)
        nodes, weights = _mixture(people, fit.populations)
        alone = len(people.answers) == 1
        everyone = Population(nodes, np.log(np.maximum(weights, 1e-300)))
        extra |= {
            "mu": fit.population.mean if alone else everyone.mean,
            "sigma": float(table["sd"][0]) if alone else everyone.sd,
            "sigma_se": float(table["sd_se"][0]) if alone else np.nan,
            "population": table,
            "aic": 2 * n_parameters - 2 * fit.loglik,
            "bic": n_parameters * float(np.log(n_persons)) - 2 * fit.loglik,
            "n_parameters": n_parameters,
            "nodes": nodes,
            "weights": weights,
        }
        ability, ability_se = np.empty(rest.n_persons), np.empty(rest.n_persons)
        for g, (part, population) in enumerate(zip(people.answers, fit.populations, strict=True)):
            there = people.split.members(g)
            ability[there], ability_se[there] = part.gather(abilities, fit.difficulty, population)
        extra |= {"ability": ability, "ability_se": ability_se}
        findings = [*people.findings]
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
            extra=extra,
        )


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


def _mixture(people: People, populations: Sequence[Population]) -> tuple[Floats, Floats]:
    """Nodes and weights of everybody."""
    sizes = np.array([np.sum(part.counts > 0) for part in people.answers], dtype=float)
    weights = [np.exp(one.log_weights) * share for one, share in zip(populations, sizes / sizes.sum(), strict=True)]
    return np.concatenate([one.nodes for one in populations]), np.concatenate(weights)


def _keep_mixed(responses: Responses) -> Kept:
    """Items with right and wrong answers; the population ties them together even where no person does."""
    design = examine(responses)
    mixed = ~(design.unanswered | design.all_right | design.all_wrong)
    if mixed.sum() < 2:
        raise DesignError(
            f"{responses.source}: fewer than two items have both right and wrong answers; marginal likelihood needs "
            "them. Use `SpectralRasch` or `VariationalRasch`, whose prior on difficulties makes up for it."
        )
    shown = {"no_responses", "disconnected", "many_more_items_than_persons"}
    findings = [finding for finding in design.findings if finding.code in shown]
    extreme = design.all_right | design.all_wrong
    if extreme.any():
        names = responses.items[extreme]
        findings.append(
            Finding(
                "items_left_out",
                "warning",
                f"{len(names):,} items answered right by everyone or by no one have no finite difficulty and are left "
                f"out: {listed(names)}.",
                "Use `SpectralRasch` or `VariationalRasch` for an estimate from a prior, or drop the items.",
                tuple(names.tolist()),
            )
        )
    rest = responses if mixed.all() else responses.take_items(mixed)
    return Kept(rest, mixed, design.status(), tuple(findings), responses.thresholds)


def _fit_findings(
    fit: MarginalFit, sigmas: Floats, estimated: bool, responses: Responses, options: MarginalRasch
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
    wanted = enough_nodes(max(sigma, NO_SPREAD), int(responses.counts.max(initial=1)))
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
    if responses.n_items > DENSE_ITEMS:
        found.append(
            Finding(
                "approximate_se",
                "note",
                f"With more than {DENSE_ITEMS:,} items standard errors come from each item's own information.",
                "They may be a few per cent low, and more where groups of items are weakly linked.",
            )
        )
    return found
