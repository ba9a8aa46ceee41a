"""MarginalRasch: marginal maximum likelihood, abilities integrated out over a population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from spectral_irt.errors import (
    DesignError,
    OptionError,
    Words,
    check_option,
    listed,
)
from spectral_irt.estimators.base import Estimate, RaschEstimator, Tell, convergence
from spectral_irt.estimators.marginal_em import (
    FREE_STEP,
    NO_SPREAD,
    WIDE_SPREAD,
    MarginalFit,
    choose_prior,
    marginal_difficulty,
)
from spectral_irt.estimators.population import (
    MOST,
    abilities,
    enough_nodes,
    marginal_variances,
)
from spectral_irt.estimators.support import DENSE_ITEMS, Kept, start_difficulty
from spectral_irt.responses import Finding, Responses
from spectral_irt.responses.design import examine

Prior = Literal["normal", "free", "validation"]
Quadrature = Literal["even", "hermite"]
PRIORS, QUADRATURES = get_args(Prior), get_args(Quadrature)

# The paper tries ten normal distributions and does not list them. These are the nine of its authors' script (means -1,
# 0, 1 with sd 0.5, 1, 1.5) and the wide one of its misspecification experiment.
TEN_NORMALS = (*((mu, sd) for mu in (0.0, -1.0, 1.0) for sd in (0.5, 1.0, 1.5)), (0.0, 2.0))


class MarginalRasch(RaschEstimator):
    """Difficulties by marginal maximum likelihood (MML): abilities are draws from a population that is estimated too.

    P(answers of user l) = integral of prod_i P(X_li | theta, beta_i) dF(theta),  F = N(mu, sigma^2) by default.

    More efficient than conditional likelihood when the population is what it is taken for, inconsistent when it is not
    (the paper's Figure 1 with a fixed sd of 1 and a true one of 2); estimating sigma, the default, removes the worst of
    that.

    Parameters
    ----------
    prior : "normal", "free" or "validation"
        "normal": N(mu, sigma^2) with both estimated. "free": any distribution on the nodes. "validation": the
        one of `priors` under which held-out users are likeliest (the paper's procedure), then all data with its sd.
    sigma : float, optional
        A fixed standard deviation of ability for prior="normal"; `sigma=1` is the paper's MMLE on synthetic data. The
        mean needs no fixing: difficulties average zero, and mu is where users then lie.
    priors : sequence of (mean, sd), optional
        Candidates for "validation"; default ten normal distributions.
    validation : float
        Share of users held out to choose a prior; a tenth, as in the paper.
    nodes : int, optional
        Quadrature nodes. Default: as many as the user with most answers needs (its posterior is narrowest), 41 to 401.
    quadrature : "even" or "hermite"
        Even nodes resolve narrow posteriors with fewer nodes; Gauss-Hermite is what other programs use.
    tol, max_iter : float, int
        Stop when an EM step changes no parameter by more than `tol`; at most so many passes. (A free distribution
        stops when the gradient is a hundredth of a standard error.)
    threads, threshold
        As in every estimator.
    random_state : int
        Draws the validation users.

    Attributes
    ----------
    mu_, sigma_, sigma_se_ : float
        Mean and standard deviation of ability on the scale of the difficulties.
    loglik_, aic_, bic_, n_parameters_ : float
        Marginal log-likelihood; BIC counts users.
    ability_, ability_se_ : arrays, one number a user
        Posterior mean (EAP) and standard deviation.
    nodes_, weights_ : arrays
        The distribution of ability.
    prior_, validation_loglik_
        With prior="validation": the chosen (mean, sd), and the mean log-likelihood an answer under each candidate.

    Notes
    -----
    Standard errors invert the observed information (Louis 1982) of difficulties and log sigma; with prior="free" they
    take the distribution as known. Beyond 5,000 items each item's own information is used alone.

    References
    ----------
    Bock & Aitkin (1981), Psychometrika 46, 443. Liu, Rubin & Wu (1998), Biometrika 85, 755 (parameter expansion).
    Louis (1982), JRSS B 44, 226. Nguyen & Zhang (2022), section 4.

    Examples
    --------
    >>> from spectral_irt.datasets import load_lsat
    >>> fit = MarginalRasch().fit(load_lsat())
    >>> fit.difficulty_.round(2).tolist(), round(fit.sigma_, 3), round(fit.loglik_, 2)
    ([-1.26, 0.48, 1.24, 0.17, -0.62], 0.755, -2466.94)
    """

    def __init__(
        self,
        *,
        prior: str = "normal",
        sigma: float | None = None,
        priors: Sequence[tuple[float, float]] | None = None,
        validation: float = 0.1,
        nodes: int | None = None,
        quadrature: str = "even",
        tol: float = 1e-6,
        max_iter: int = 500,
        threads: int | None = None,
        threshold: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.prior = prior
        self.sigma = sigma
        self.priors = priors
        self.validation = validation
        self.nodes = nodes
        self.quadrature = quadrature
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads
        self.threshold = threshold
        self.random_state = random_state

    def _check(self) -> None:
        check_option("prior", self.prior, PRIORS)
        check_option("quadrature", self.quadrature, QUADRATURES)
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma > 0):
            raise OptionError(f"sigma is {self.sigma!r}; it must be positive, or None to estimate it.")
        if self.sigma is not None and self.prior != "normal":
            raise OptionError(f"sigma is fixed at {self.sigma!r}, which goes with prior='normal', not {self.prior!r}.")
        if self.nodes is not None and self.nodes < 3:
            raise OptionError(f"nodes is {self.nodes!r}; it must be 3 or more, or None.")
        if not 0 < self.validation < 1:
            raise OptionError(f"validation is {self.validation!r}; it must be between 0 and 1.")

    def _estimate(self, responses: Responses, tell: Tell) -> Estimate:
        self._check()
        kept = _keep_mixed(responses)
        rest = kept.responses
        start = start_difficulty(rest)
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
        free = self.prior == "free"
        fit = marginal_difficulty(rest, start=start, sigma=sigma, free=free, tol=self.tol, **options)
        with_sigma = sigma is None and not free
        variance, variance_sigma = marginal_variances(rest, fit.difficulty, fit.population, with_sigma=with_sigma)
        ability, ability_se = rest.gather(abilities, fit.difficulty, fit.population)
        n_users = int(np.sum(rest.counts > 0))
        n_parameters = rest.n_items + (len(fit.population.nodes) - 2 if free else int(with_sigma))
        extra |= {
            "mu": fit.population.mean,
            "sigma": fit.population.sd if free else _sd_of(fit, sigma),
            "sigma_se": _sd_of(fit, sigma) * float(np.sqrt(variance_sigma)) if with_sigma else np.nan,
            "aic": 2 * n_parameters - 2 * fit.loglik,
            "bic": n_parameters * float(np.log(n_users)) - 2 * fit.loglik,
            "n_parameters": n_parameters,
            "ability": ability,
            "ability_se": ability_se,
            "nodes": fit.population.nodes,
            "weights": np.exp(fit.population.log_weights),
            "kept": kept.mask,
        }
        findings = kept.findings + tuple(_fit_findings(fit, extra["sigma"], with_sigma, rest, self))
        return Estimate(
            kept.spread(fit.difficulty),
            kept.spread(np.sqrt(np.maximum(variance, 0))),
            kept.status,
            fit.n_iter,
            fit.residual,
            loglik=fit.loglik,
            findings=findings,
            extra=extra,
        )


def _sd_of(fit: MarginalFit, sigma: float | None) -> float:
    """sigma itself: the nodes' own standard deviation differs from it in the last digits."""
    if sigma is not None:
        return float(sigma)
    return fit.population.sd


def _keep_mixed(responses: Responses) -> Kept:
    """Items with right and wrong answers; the population ties them together even where no user does."""
    design = examine(responses)
    mixed = ~(design.unanswered | design.all_right | design.all_wrong)
    if mixed.sum() < 2:
        raise DesignError(
            f"{responses.source}: fewer than two items have both right and wrong answers; marginal likelihood needs "
            "them. Use SpectralRasch or VariationalRasch, whose prior on difficulties makes up for it."
        )
    shown = {"no_responses", "disconnected", "many_more_items_than_users"}
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
                "Use "
                + Words("SpectralRasch or VariationalRasch", "--estimator spectral or vb")
                + " for an estimate from a prior, or drop the items.",
                tuple(names.tolist()),
            )
        )
    rest = responses if mixed.all() else responses.take_items(mixed)
    return Kept(rest, mixed, design.status(), tuple(findings))


def _fit_findings(
    fit: MarginalFit, sigma: float, estimated: bool, responses: Responses, options: MarginalRasch
) -> list[Finding]:
    asked = options.tol if options.prior != "free" else FREE_STEP
    found = convergence("the marginal likelihood", fit.n_iter, "passes", "a last step of", fit.residual, asked)
    if estimated and sigma <= 1.01 * NO_SPREAD:
        found.append(
            Finding(
                "no_ability_spread",
                "warning",
                "The data show no spread of ability: sigma went to zero.",
                "Check the scoring; answers of one user seem to have nothing in common.",
            )
        )
    if estimated and sigma >= 0.95 * WIDE_SPREAD:
        found.append(
            Finding(
                "unbounded_ability_spread",
                "warning",
                f"The spread of ability has no finite estimate; sigma is held at {WIDE_SPREAD:g}.",
                "Nearly all users have all answers right or all wrong; difficulties are not to be trusted.",
            )
        )
    wanted = enough_nodes(max(sigma, NO_SPREAD), int(responses.counts.max(initial=1)))
    if options.nodes is None and wanted >= MOST:
        found.append(
            Finding(
                "coarse_nodes",
                "note",
                f"{MOST} nodes are the most used by default, and the longest users' posteriors are narrower than these "
                "resolve.",
                Words("Give nodes= a larger number to see whether it matters.", ""),
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
