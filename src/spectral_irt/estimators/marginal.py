"""MarginalRasch: marginal maximum likelihood, abilities integrated out over a population."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.engines import LocalEngine
from spectral_irt.errors import ConvergenceWarning, DesignError, OptionError, check_option, listed
from spectral_irt.estimators.base import Estimate, RaschEstimator
from spectral_irt.estimators.population import (
    MOST,
    Population,
    abilities,
    enough_nodes,
    expected_counts,
    marginal_variances,
    normal_population,
    normalised,
)
from spectral_irt.estimators.support import DENSE_ITEMS, Anderson, Kept, start_difficulty
from spectral_irt.responses import Block, Finding, Responses
from spectral_irt.responses.block import Floats
from spectral_irt.responses.design import examine

PRIORS = ("normal", "free", "validation")
QUADRATURES = ("even", "hermite")

# The paper tries ten normal distributions and does not list them. These are the nine of its authors' script (means -1,
# 0, 1 with sd 0.5, 1, 1.5) and the wide one of its misspecification experiment.
TEN_NORMALS = (*((mu, sd) for mu in (0.0, -1.0, 1.0) for sd in (0.5, 1.0, 1.5)), (0.0, 2.0))

ROUGH_NODES, ROUGH_STEP = 41, 1e-2  # the first rounds, in which the spread of abilities is found
FREE_STEP = 0.01  # gradient, in standard errors, at which a free distribution is left alone
NO_SPREAD, WIDE_SPREAD = 0.01, 50.0  # a standard deviation outside this is reported, and held there


# ------------------------------------------------------------------------------- algorithm


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """What `marginal_difficulty` found; the population is on the scale of the mean-zero difficulties."""

    difficulty: Floats
    population: Population
    loglik: float
    n_iter: int
    residual: float


def marginal_difficulty(
    responses: Responses,
    engine: LocalEngine,
    *,
    start: Floats,
    sigma: float | None = None,
    free: bool = False,
    nodes: int | None = None,
    quadrature: str = "even",
    tol: float = 1e-6,
    max_iter: int = 500,
) -> MarginalFit:
    """Difficulties that maximise the marginal likelihood.

    loglik = sum_l log sum_k w_k P(answers of l | theta_k)

    Every item must have right and wrong answers. Each iteration is one pass over the responses: accelerated EM for a
    normal population, then, if the weights w are free, a quasi-Newton method for these and the difficulties.
    """
    x = np.append(start, np.log(1.0 if sigma is None else sigma))
    passes = 0
    if nodes is None:
        x, _, passes, _ = _accelerated_em(responses, engine, x, sigma is None, ROUGH_NODES, "even", ROUGH_STEP, 50)
        nodes = enough_nodes(float(np.exp(x[-1])), int(responses.counts.max(initial=1)))
    x, loglik, more, step = _accelerated_em(responses, engine, x, sigma is None, nodes, quadrature, tol, max_iter)
    difficulty, population = x[:-1], normal_population(float(np.exp(x[-1])), nodes, quadrature)
    passes += more
    if free:
        difficulty, population, loglik, more, step = _free_weights(responses, engine, difficulty, population, max_iter)
        passes += more
    centre = difficulty.mean()
    population = Population(population.nodes - centre, population.log_weights)
    return MarginalFit(difficulty - centre, population, loglik, passes, step)


def _accelerated_em(
    responses: Responses,
    engine: LocalEngine,
    x: Floats,
    estimate_sigma: bool,
    n_nodes: int,
    quadrature: str,
    tol: float,
    max_iter: int,
) -> tuple[Floats, float, int, float]:
    """EM on x = (difficulties, log sigma); returns the point, its log-likelihood, the passes and the last step.

    Anderson's acceleration proposes; a proposal that lowers the likelihood is replaced by the plain EM step, which
    cannot.
    """
    score = responses.item_scores.astype(float)
    low, high = np.log(NO_SPREAD), np.log(WIDE_SPREAD)

    def step(x: Floats) -> tuple[Floats, float]:
        population = normal_population(float(np.exp(x[-1])), n_nodes, quadrature)
        counts, users, loglik = engine.sum(expected_counts, responses.blocks, x[:-1], population)
        beta = _item_step(x[:-1], counts, score, population.nodes)
        share = users / users.sum()
        mean = share @ population.nodes
        log_sigma = x[-1]
        if estimate_sigma:
            log_sigma = np.clip(np.log(share @ (population.nodes - mean) ** 2) / 2, low, high)
        # A mean other than zero is the same model with all difficulties shifted: parameter-expanded EM.
        return np.append(beta - mean, log_sigma), float(loglik)

    accelerate = Anderson()
    best, safe, good = -np.inf, x, x
    passes, change = 0, np.inf
    while passes < max_iter:
        image, loglik = step(x)
        passes += 1
        if loglik < best - 1e-10 * abs(best):
            if x is safe:
                break  # the plain step: what it lost is rounding, and there is nothing more to gain
            accelerate.forget()
            x = safe
            continue
        best, safe, good = loglik, image, x
        change = float(np.abs(image - x).max())
        if change <= tol:
            break
        x = np.clip(accelerate.next(x, image), image - 2, image + 2)
        x[-1] = np.clip(x[-1], low, high)
    return good, best, passes, change


def _free_weights(
    responses: Responses, engine: LocalEngine, difficulty: Floats, population: Population, max_iter: int
) -> tuple[Floats, Population, float, int, float]:
    """Difficulties and weights of the nodes together, by a limited-memory quasi-Newton method.

    EM takes thousands of passes to empty the nodes that nobody needs; this takes about a hundred. Parameters are
    scaled by the square root of their information, so that the gradient is in standard errors; it stops at one
    hundredth, and the residual is what is left of it.
    """
    from scipy.optimize import minimize

    m, nodes = len(difficulty), population.nodes
    score = responses.item_scores.astype(float)

    def gradient(beta: Floats, log_weights: Floats) -> tuple[float, Floats, Floats]:
        counts, users, loglik = engine.sum(expected_counts, responses.blocks, beta, Population(nodes, log_weights))
        p = 1 / (1 + np.exp(beta[:, None] - nodes))
        slope = np.concatenate([(counts * p).sum(axis=1) - score, users - users.sum() * np.exp(log_weights)])
        own = np.concatenate([(counts * p * (1 - p)).sum(axis=1), users.sum() * np.exp(log_weights)])
        return float(loglik), slope, own

    own = gradient(difficulty, population.log_weights)[2]
    scale = 1 / np.sqrt(np.maximum(own, 0.01 * np.sum(responses.counts > 0)))
    scale[:m] = 1 / np.sqrt(own[:m])

    def objective(z: Floats) -> tuple[float, Floats]:
        x = z * scale
        loglik, slope, _ = gradient(x[:m], normalised(x[m:]))
        return -loglik, -slope * scale

    found = minimize(
        objective,
        np.concatenate([difficulty, population.log_weights]) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": FREE_STEP},
    )
    x = found.x * scale
    weights = normalised(x[m:])
    residual = float(np.abs(found.jac).max())
    return x[:m], Population(nodes, weights), -float(found.fun), int(found.nfev) + 1, residual


def _item_step(beta: Floats, counts: Floats, score: Floats, nodes: Floats) -> Floats:
    """The M step of every item at once: sum_k counts_ik P(right | node_k) = score_i, by Newton's method."""
    for _ in range(5):
        p = 1 / (1 + np.exp(beta[:, None] - nodes))
        slope = np.einsum("ik,ik->i", counts, p * (1 - p))
        excess = np.einsum("ik,ik->i", counts, p) - score
        move = np.clip(excess / np.maximum(slope, 1e-10), -1, 1)
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta


def marginal_loglik(responses: Responses, engine: LocalEngine, difficulty: Floats, population: Population) -> float:
    """Log-likelihood of all answers of all users under given difficulties and population."""
    return float(engine.sum(_loglik, responses.blocks, difficulty, population))


def _loglik(block: Block, difficulty: Floats, population: Population) -> Floats:
    return expected_counts(block, difficulty, population)[2]


def choose_prior(
    responses: Responses,
    engine: LocalEngine,
    priors: Sequence[tuple[float, float]],
    *,
    share: float,
    seed: int,
    start: Floats,
    **options: Any,
) -> tuple[tuple[float, float], Floats]:
    """The normal prior (mean, sd) under which held-out users' answers are likeliest, and all mean log-likelihoods.

    Difficulties are estimated from the other users under each sd, and centred; then each held-out user's whole set of
    answers is scored under N(mean, sd^2), per answer. (The mean has no effect on centred difficulties.)
    """
    rng = np.random.default_rng(seed)
    occupied = np.flatnonzero(responses.counts > 0)
    held = rng.permutation(occupied)[: max(1, round(share * len(occupied)))]
    out = np.zeros(responses.n_users, dtype=bool)
    out[held] = True
    train, valid = responses.take_users(~out), responses.take_users(out)
    ok = (train.item_scores > 0) & (train.item_scores < train.item_counts)
    if ok.sum() < 2:
        raise DesignError(
            f"{responses.source}: without the {out.sum():,} validation users fewer than two items have both right and "
            "wrong answers. Use prior='normal', or a smaller validation share."
        )
    train, valid = train.take_items(ok), valid.take_items(ok)
    fits: dict[float, Floats] = {}
    scores = []
    for mu, sd in priors:
        if sd not in fits:
            fits[sd] = marginal_difficulty(train, engine, start=start[ok], sigma=sd, **options).difficulty
        longest = int(valid.counts.max(initial=1))
        population = normal_population(sd, options.get("nodes") or enough_nodes(sd, longest), mu=mu)
        scores.append(marginal_loglik(valid, engine, fits[sd], population) / max(valid.n_responses, 1))
    return priors[int(np.argmax(scores))], np.array(scores)


# ------------------------------------------------------------------------------- estimator


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

    def _estimate(self, responses: Responses, engine: LocalEngine) -> Estimate:
        self._check()
        kept = _keep_mixed(responses, engine)
        rest = kept.responses
        start = start_difficulty(rest, engine)
        options: dict[str, Any] = {"nodes": self.nodes, "quadrature": self.quadrature, "max_iter": self.max_iter}
        extra: dict[str, Any] = {}
        sigma = self.sigma
        if self.prior == "validation":
            priors = [(float(mu), float(sd)) for mu, sd in (self.priors or TEN_NORMALS)]
            chosen, scores = choose_prior(
                rest, engine, priors, share=self.validation, seed=self.random_state, start=start, tol=1e-3, **options
            )
            extra |= {"prior": chosen, "validation_loglik": scores}
            sigma = chosen[1]
        free = self.prior == "free"
        fit = marginal_difficulty(rest, engine, start=start, sigma=sigma, free=free, tol=self.tol, **options)
        with_sigma = sigma is None and not free
        variance, variance_sigma = marginal_variances(
            rest, engine, fit.difficulty, fit.population, with_sigma=with_sigma
        )
        ability, ability_se = (
            np.concatenate(both)
            for both in zip(*engine.map(abilities, rest.blocks, fit.difficulty, fit.population), strict=True)
        )
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


def _keep_mixed(responses: Responses, engine: LocalEngine) -> Kept:
    """Items with right and wrong answers; the population ties them together even where no user does."""
    design = examine(responses, engine.sum)
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
                "Use SpectralRasch or VariationalRasch for an estimate from a prior, or drop the items.",
                tuple(names.tolist()),
            )
        )
    rest = responses if mixed.all() else responses.take_items(mixed)
    return Kept(rest, mixed, design.status(), tuple(findings))


def _fit_findings(
    fit: MarginalFit, sigma: float, estimated: bool, responses: Responses, options: MarginalRasch
) -> list[Finding]:
    found = []
    if fit.residual > (options.tol if options.prior != "free" else FREE_STEP):
        text = f"marginal likelihood stopped after {fit.n_iter:,} passes; the last step was {fit.residual:.1e}"
        warnings.warn(f"{text} (asked: {options.tol:.1e}).", ConvergenceWarning, stacklevel=4)
        found.append(Finding("not_converged", "warning", f"M{text[1:]}.", "Raise max_iter or tol."))
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
                "Give nodes= a larger number to see whether it matters.",
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
