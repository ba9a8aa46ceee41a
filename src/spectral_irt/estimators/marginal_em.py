"""The EM iteration behind `MarginalRasch`: difficulties and the populations of abilities, in turn."""

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
    """What `marginal_difficulty` found; populations, one for each group, are on the scale of mean-zero difficulties."""

    difficulty: Floats
    populations: tuple[Population, ...]
    loglik: float
    n_iter: int
    residual: float

    @property
    def population(self) -> Population:
        """The population, where there is one."""
        (population,) = self.populations
        return population


def marginal_difficulty(
    responses: Responses | Sequence[Responses],
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

    Responses of several groups of people, over the same items, get a normal population each. They need items in
    common, directly or through other groups.
    """
    groups = [responses] if isinstance(responses, Responses) else list(responses)
    m, longest = len(start), max(int(group.counts.max(initial=1)) for group in groups)
    x = np.concatenate(
        [start, np.zeros(len(groups) - 1), np.full(len(groups), np.log(1.0 if sigma is None else sigma))]
    )
    passes = 0
    if nodes is None:
        x, _, passes, _ = _accelerated_em(groups, x, sigma is None, ROUGH_NODES, "even", ROUGH_STEP, 50)
        nodes = enough_nodes(float(np.exp(x[-len(groups) :].max())), longest)
    x, loglik, more, step = _accelerated_em(groups, x, sigma is None, nodes, quadrature, tol, max_iter)
    difficulty, populations = x[:m], _populations(x, len(groups), nodes, quadrature)
    passes += more
    if free:
        (everyone,), (population,) = groups, populations
        difficulty, population, loglik, more, step = _free_weights(everyone, difficulty, population, max_iter)
        populations = [population]
        passes += more
    centre = difficulty.mean()
    centered = tuple(Population(one.nodes - centre, one.log_weights) for one in populations)
    return MarginalFit(difficulty - centre, centered, loglik, passes, step)


def _populations(x: Floats, n_groups: int, n_nodes: int, quadrature: str) -> list[Population]:
    """The normal populations that end x: means of all groups but the first, which is at zero, then log sigmas."""
    means = np.append(0.0, x[len(x) - 2 * n_groups + 1 : len(x) - n_groups])
    sigmas = np.exp(x[len(x) - n_groups :])
    pairs = zip(sigmas.tolist(), means.tolist(), strict=True)
    return [normal_population(sigma, n_nodes, quadrature, mean) for sigma, mean in pairs]


def _accelerated_em(
    groups: Sequence[Responses],
    x: Floats,
    estimate_sigma: bool,
    n_nodes: int,
    quadrature: str,
    tol: float,
    max_iter: int,
) -> tuple[Floats, float, int, float]:
    """EM on x = (difficulties, means, log sigmas); returns the point, its log-likelihood, the passes, the last step.

    Anderson's acceleration proposes; a proposal that lowers the likelihood is replaced by the plain EM step, which
    cannot.
    """
    m, n_groups = groups[0].n_items, len(groups)
    spread = slice(len(x) - n_groups, len(x))
    score = np.sum([group.item_scores for group in groups], axis=0).astype(float)
    low, high = np.log(NO_SPREAD), np.log(WIDE_SPREAD)

    def step(x: Floats) -> tuple[Floats, float]:
        populations = _populations(x, n_groups, n_nodes, quadrature)
        sums = [
            group.sum(expected_counts, x[:m], population) for group, population in zip(groups, populations, strict=True)
        ]
        nodes = np.concatenate([population.nodes for population in populations])
        beta = _item_step(x[:m], np.concatenate([counts for counts, _, _ in sums], axis=1), score, nodes)
        means, log_sigmas = np.zeros(n_groups), x[spread].copy()
        for g, (_, people, _) in enumerate(sums):
            share = people / people.sum()
            means[g] = share @ populations[g].nodes
            if estimate_sigma:
                log_sigmas[g] = np.clip(np.log(share @ (populations[g].nodes - means[g]) ** 2) / 2, low, high)
        # A first mean other than zero is the same model with everything shifted: parameter-expanded EM.
        image = np.concatenate([beta - means[0], means[1:] - means[0], log_sigmas])
        return image, float(sum(loglik for _, _, loglik in sums))

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
        x[spread] = np.clip(x[spread], low, high)
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
    """Log-likelihood of all answers of all people under given difficulties and population."""
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
    """The normal prior (mean, sd) under which held-out people's answers are likeliest, and all mean log-likelihoods.

    Difficulties are estimated from the other people under each sd, and centered; then all answers of each held-out
    person are scored under N(mean, sd^2), per answer. (The mean has no effect on centered difficulties.)
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
            f"{responses.source}: without the {out.sum():,} validation people fewer than two items have both right and "
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
