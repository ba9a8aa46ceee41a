"""The iterations behind marginal likelihood: thresholds and the populations of abilities.

One threshold an item, its difficulty, where `steps` is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import DesignError
from spectral_irt.estimators.marginal_information import marginal_information
from spectral_irt.estimators.population import (
    MOST,
    Population,
    enough_nodes,
    expected_counts,
    normal_population,
    normalized,
    passing,
)
from spectral_irt.numerics import Anderson

ROUGH_NODES, ROUGH_STEP = 41, 1e-2  # the first rounds, in which the spread of abilities is found
FREE_STEP = 0.01  # gradient, in standard errors, at which a free distribution is left alone
# Degrees of the polynomial that log density is: 4 for one hump or two, skewed or not; 6 for an edge, as of an
# exponential distribution. Eight changed nothing (adaptive, two-stage and stopping designs, 600 to 1,500 people).
DEGREES = (4, 6)
NO_SPREAD, WIDE_SPREAD = 0.01, 50.0  # a standard deviation outside this is reported, and held there


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """What `marginal_difficulty` found; populations, one for each group, are on the scale of mean-zero difficulties."""

    difficulty: Floats
    populations: tuple[Population, ...]
    loglik: float
    n_iter: int
    residual: float
    better: float = 0.0  # by how much AIC prefers a free distribution to a normal one

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
    nodes: int | None = None,
    quadrature: str = "even",
    tol: float = 1e-6,
    max_iter: int = 500,
    steps: Thresholds | None = None,
) -> MarginalFit:
    """Difficulties, or thresholds, that maximize the marginal likelihood of normal populations.

    loglik = sum_l log sum_k w_k P(answers of l | theta_k)

    Every threshold must be passed by one and failed by another person. Each iteration is one pass over the responses.

    Responses of several groups of people, over the same items, get a normal population each. They need items in
    common, directly or through other groups.
    """
    groups = [responses] if isinstance(responses, Responses) else list(responses)
    m, longest = len(start), max(int(group.counts.max(initial=1)) for group in groups)
    longest *= 1 if steps is None else steps.widest**2  # an answer tells at most K^2 / 4
    x = np.concatenate(
        [start, np.zeros(len(groups) - 1), np.full(len(groups), np.log(1.0 if sigma is None else sigma))]
    )
    passes = 0
    if nodes is None:
        x, _, passes, _ = _accelerated_em(groups, x, sigma is None, ROUGH_NODES, "even", ROUGH_STEP, 50, steps)
        nodes = enough_nodes(float(np.exp(x[-len(groups) :].max())), longest)
    x, loglik, more, step = _accelerated_em(groups, x, sigma is None, nodes, quadrature, tol, max_iter, steps)
    populations = _populations(x, len(groups), nodes, quadrature)
    return _centered(x[:m], populations, loglik, passes + more, step, steps)


def _centered(
    beta: Floats, populations: Sequence[Population], loglik: float, passes: int, step: float, steps: Thresholds | None
) -> MarginalFit:
    centre = float(beta.mean() if steps is None else steps.averaging() @ beta)
    moved = tuple(replace(one, nodes=one.nodes - centre) for one in populations)
    return MarginalFit(beta - centre, moved, loglik, passes, step)


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
    steps: Thresholds | None,
) -> tuple[Floats, float, int, float]:
    """EM on x = (difficulties, means, log sigmas); returns the point, its log-likelihood, the passes, the last step.

    Anderson's acceleration proposes; a proposal that lowers the likelihood is replaced by the plain EM step, which
    cannot.
    """
    n_groups = len(groups)
    m = len(x) - 2 * n_groups + 1
    spread = slice(len(x) - n_groups, len(x))
    score = np.sum([passed(group, steps) for group in groups], axis=0)
    low, high = np.log(NO_SPREAD), np.log(WIDE_SPREAD)

    def step(x: Floats) -> tuple[Floats, float]:
        populations = _populations(x, n_groups, n_nodes, quadrature)
        sums = [
            group.sum(expected_counts, x[:m], population, steps)
            for group, population in zip(groups, populations, strict=True)
        ]
        everyone = Population(np.concatenate([population.nodes for population in populations]), np.zeros(0))
        beta = _item_step(x[:m], np.concatenate([counts for counts, _, _ in sums], axis=1), score, everyone, steps)
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


def free_population(
    responses: Responses, normal: MarginalFit, start: Floats, *, max_iter: int = 500, steps: Thresholds | None = None
) -> MarginalFit:
    """The fit with a population of free shape, or the normal one where AIC does not prefer the former.

    The logarithm of the density is a polynomial. Where answers decide what comes next the likelihood can have two
    maxima, a narrow population with items close together and a wide one with items far apart: the search begins at the
    normal fit, and at half the conditional estimates (`start`), which such designs stretch about twofold.
    """
    one = normal.population
    sd = max(1.0, one.sd)
    n_nodes = min(MOST, round(len(one.nodes) * sd / one.sd))  # as close together as those of the normal one
    begins = [(normal.difficulty, one), (start / 2, normal_population(sd, n_nodes))]
    best, gain, passes = normal, 0.0, normal.n_iter
    for degree in DEGREES:
        found = [_polynomial_weights(responses, *begin, degree, max_iter, steps) for begin in begins]
        passes += sum(one.n_iter for one in found)
        fit = max(found, key=lambda fit: fit.loglik)
        begins = [(fit.difficulty, fit.population)]
        better = 2 * (fit.loglik - normal.loglik) - 2 * (degree - 2)
        if better > gain and _is_maximum(responses, fit, steps):
            best, gain = fit, better
    return replace(best, n_iter=passes, better=gain)


def _is_maximum(responses: Responses, fit: MarginalFit, steps: Thresholds | None) -> bool:
    """Whether the likelihood falls on all sides, so that the parameters have errors."""
    found = marginal_information([responses], fit.difficulty, fit.populations, with_sigma=True, steps=steps)
    try:
        np.linalg.cholesky(found.whole() if found.dense else found.own)
    except np.linalg.LinAlgError:
        return False
    return True


def _polynomial_weights(
    responses: Responses, beta: Floats, population: Population, degree: int, max_iter: int, steps: Thresholds | None
) -> MarginalFit:
    """Thresholds and the polynomial together, by a limited-memory quasi-Newton method.

    The polynomials are orthonormal under the population begun with. Parameters are scaled by the square root of their
    information, so that the gradient is in standard errors; it stops at one hundredth, the residual is what is left.
    """
    from scipy.optimize import minimize

    m, nodes, begun = len(beta), population.nodes, population.log_weights
    root = np.exp(np.maximum(begun, -100.0) / 2)[:, None]
    z = (nodes - population.mean) / population.sd
    basis = np.linalg.qr(np.vander(z, degree + 1, increasing=True) * root)[0][:, 1:] / root
    score, people = passed(responses, steps), float(np.sum(responses.counts > 0))

    def at(x: Floats) -> Population:
        return Population(nodes, normalized(begun + basis @ x[m:]), basis)

    def objective(scaled: Floats) -> tuple[float, Floats]:
        x = scaled * scale
        here = at(x)
        counts, persons, loglik = responses.sum(expected_counts, x[:m], here, steps)
        p = passing(x[:m], here, steps)
        of_beta = (_of_thresholds(counts, steps) * p).sum(axis=1) - score
        of_shape = basis.T @ (persons - people * np.exp(here.log_weights))
        return -float(loglik), -np.concatenate([of_beta, of_shape]) * scale

    p = passing(beta, population, steps)
    counts = _of_thresholds(responses.sum(expected_counts, beta, population, steps)[0], steps)
    own = np.concatenate([(counts * p * (1 - p)).sum(axis=1), np.full(degree, 0.1 * people)])
    scale = 1 / np.sqrt(np.maximum(own, 1e-6))
    found = minimize(
        objective,
        np.concatenate([beta, np.zeros(degree)]) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": FREE_STEP},
    )
    x = found.x * scale
    residual = float(np.abs(found.jac).max())
    return _centered(x[:m], [at(x)], -float(found.fun), int(found.nfev) + 1, residual, steps)


def passed(responses: Responses, steps: Thresholds | None) -> Floats:
    """How many people passed each threshold: are in its category or above."""
    if steps is None:
        return responses.item_scores.astype(float)
    last = responses.item_scores.astype(float)  # the threshold that each passed last
    total = np.append(np.cumsum(last[::-1])[::-1], 0.0)
    return total[:-1] - total[(steps.first + steps.max_score)[steps.item]]


def _of_thresholds(counts: Floats, steps: Thresholds | None) -> Floats:
    return counts if steps is None else counts[steps.item]


def _item_step(beta: Floats, counts: Floats, score: Floats, population: Population, steps: Thresholds | None) -> Floats:
    """The M step of every item at once: sum_q counts_iq P(X >= k | node_q) = score_k, by Newton's method."""
    each = _of_thresholds(counts, steps)
    for _ in range(5):
        p = passing(beta, population, steps)
        excess = np.einsum("ik,ik->i", each, p) - score
        if steps is None or steps.binary:
            slope = np.einsum("ik,ik->i", each, p * (1 - p))
            move = excess / np.maximum(slope, 1e-10)
        else:
            move = _by_item(steps, each, p, excess)
        move = np.clip(move, -1, 1)
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta


def _by_item(steps: Thresholds, counts: Floats, p: Floats, excess: Floats) -> Floats:
    """Newton's step for the thresholds of each item together: items x levels, the absent levels standing still."""
    m, width = steps.n_items, steps.widest
    at = (steps.item, steps.level - 1)
    tails, right = np.zeros((m, width, p.shape[1])), np.zeros((m, width, 1))
    tails[at], right[at] = p, excess[:, None]
    weighted = np.zeros_like(tails)
    weighted[at] = counts * p
    higher = np.maximum(np.arange(width)[:, None], np.arange(width))
    information = weighted.sum(axis=2)[:, higher] - np.einsum("iak,ibk->iab", weighted, tails)
    present = np.zeros((m, width), dtype=bool)
    present[at] = True
    information = np.where(present[:, :, None] & present[:, None, :], information, np.eye(width))
    information += 1e-10 * np.eye(width)
    return np.asarray(np.linalg.solve(information, right)[at][:, 0])


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
    out = np.zeros(responses.n_persons, dtype=bool)
    out[held] = True
    train, valid = responses.take_persons(~out), responses.take_persons(out)
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
