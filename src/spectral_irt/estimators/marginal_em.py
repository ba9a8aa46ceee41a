"""The EM iteration behind `MarginalRasch`: difficulties and the population of abilities, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.errors import DesignError
from spectral_irt.estimators.population import (
    Population,
    enough_nodes,
    expected_counts,
    normal_population,
    normalized,
)
from spectral_irt.model import sigmoid
from spectral_irt.numerics import Anderson
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats

ROUGH_NODES, ROUGH_STEP = 41, 1e-2  # the first rounds, in which the spread of abilities is found
FREE_STEP = 0.01  # gradient, in standard errors, at which a free distribution is left alone
NO_SPREAD, WIDE_SPREAD = 0.01, 50.0  # a standard deviation outside this is reported, and held there


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
    *,
    start: Floats,
    sigma: float | None = None,
    free: bool = False,
    nodes: int | None = None,
    quadrature: str = "even",
    tol: float = 1e-6,
    max_iter: int = 500,
) -> MarginalFit:
    """Difficulties that maximize the marginal likelihood.

    loglik = sum_l log sum_k w_k P(answers of l | theta_k)

    Every item must have right and wrong answers. Each iteration is one pass over the responses: accelerated EM for a
    normal population, then, if the weights w are free, a quasi-Newton method for these and the difficulties.
    """
    x = np.append(start, np.log(1.0 if sigma is None else sigma))
    passes = 0
    if nodes is None:
        x, _, passes, _ = _accelerated_em(responses, x, sigma is None, ROUGH_NODES, "even", ROUGH_STEP, 50)
        nodes = enough_nodes(float(np.exp(x[-1])), int(responses.counts.max(initial=1)))
    x, loglik, more, step = _accelerated_em(responses, x, sigma is None, nodes, quadrature, tol, max_iter)
    difficulty, population = x[:-1], normal_population(float(np.exp(x[-1])), nodes, quadrature)
    passes += more
    if free:
        difficulty, population, loglik, more, step = _free_weights(responses, difficulty, population, max_iter)
        passes += more
    centre = difficulty.mean()
    population = Population(population.nodes - centre, population.log_weights)
    return MarginalFit(difficulty - centre, population, loglik, passes, step)


def _accelerated_em(
    responses: Responses,
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
        counts, users, loglik = responses.sum(expected_counts, x[:-1], population)
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
    responses: Responses, difficulty: Floats, population: Population, max_iter: int
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
        counts, users, loglik = responses.sum(expected_counts, beta, Population(nodes, log_weights))
        p = sigmoid(nodes - beta[:, None])
        slope = np.concatenate([(counts * p).sum(axis=1) - score, users - users.sum() * np.exp(log_weights)])
        own = np.concatenate([(counts * p * (1 - p)).sum(axis=1), users.sum() * np.exp(log_weights)])
        return float(loglik), slope, own

    own = gradient(difficulty, population.log_weights)[2]
    scale = 1 / np.sqrt(np.maximum(own, 0.01 * np.sum(responses.counts > 0)))
    scale[:m] = 1 / np.sqrt(own[:m])

    def objective(z: Floats) -> tuple[float, Floats]:
        x = z * scale
        loglik, slope, _ = gradient(x[:m], normalized(x[m:]))
        return -loglik, -slope * scale

    found = minimize(
        objective,
        np.concatenate([difficulty, population.log_weights]) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": FREE_STEP},
    )
    x = found.x * scale
    weights = normalized(x[m:])
    residual = float(np.abs(found.jac).max())
    return x[:m], Population(nodes, weights), -float(found.fun), int(found.nfev) + 1, residual


def _item_step(beta: Floats, counts: Floats, score: Floats, nodes: Floats) -> Floats:
    """The M step of every item at once: sum_k counts_ik P(right | node_k) = score_i, by Newton's method."""
    for _ in range(5):
        p = sigmoid(nodes - beta[:, None])
        slope = np.einsum("ik,ik->i", counts, p * (1 - p))
        excess = np.einsum("ik,ik->i", counts, p) - score
        move = np.clip(excess / np.maximum(slope, 1e-10), -1, 1)
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta


def marginal_loglik(responses: Responses, difficulty: Floats, population: Population) -> float:
    """Log-likelihood of all answers of all users under given difficulties and population."""
    return float(responses.sum(_loglik, difficulty, population))


def _loglik(block: Block, difficulty: Floats, population: Population) -> Floats:
    return expected_counts(block, difficulty, population)[2]


def choose_prior(
    responses: Responses,
    priors: Sequence[tuple[float, float]],
    *,
    share: float,
    seed: int,
    start: Floats,
    **options: Any,
) -> tuple[tuple[float, float], Floats]:
    """The normal prior (mean, sd) under which held-out users' answers are likeliest, and all mean log-likelihoods.

    Difficulties are estimated from the other users under each sd, and centered; then each held-out user's whole set of
    answers is scored under N(mean, sd^2), per answer. (The mean has no effect on centered difficulties.)
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
            fits[sd] = marginal_difficulty(train, start=start[ok], sigma=sd, **options).difficulty
        longest = int(valid.counts.max(initial=1))
        population = normal_population(sd, options.get("nodes") or enough_nodes(sd, longest), mu=mu)
        scores.append(marginal_loglik(valid, fits[sd], population) / max(valid.n_responses, 1))
    return priors[int(np.argmax(scores))], np.array(scores)
