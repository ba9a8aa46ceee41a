"""The iterations behind marginal likelihood: thresholds and the populations of abilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.information import block_diagonal, from_levels
from spectral_irt.conditional.newton import parameters
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.estimators.marginal_information import given_ability, marginal_information
from spectral_irt.estimators.population import (
    MOST,
    Members,
    Population,
    enough_nodes,
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


def marginal_difficulty(
    groups: Sequence[Members],
    *,
    start: Floats,
    sigma: float | None = None,
    design: Any = None,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> MarginalFit:
    """Difficulties, or thresholds, that maximize the marginal likelihood of normal populations, one for each group.

    loglik = sum_l log sum_k w_k P(answers of l | theta_k)

    Every threshold must be passed by one and failed by another person, and groups need items in common, directly or
    through other groups. Each iteration is one pass over the responses. Thresholds may be A eta with a known matrix A,
    the sparse `design`.
    """
    m, layout = len(start), groups[0].layout
    longest = max(int(group.responses.counts.max(initial=1)) for group in groups)
    longest *= layout.widest**2  # an answer tells at most K^2 / 4
    begin = start if design is None else design @ parameters(design, start)
    spread = np.full(len(groups), np.log(1.0 if sigma is None else sigma))
    x = np.concatenate([begin, np.zeros(len(groups) - 1), spread])
    x, _, passes, _ = _accelerated_em(groups, x, sigma is None, design, ROUGH_NODES, ROUGH_STEP, 50)
    nodes = enough_nodes(float(np.exp(x[-len(groups) :].max())), longest)
    x, loglik, more, step = _accelerated_em(groups, x, sigma is None, design, nodes, tol, max_iter)
    return _centered(x[:m], _populations(x, len(groups), nodes), loglik, passes + more, step, layout)


def _centered(
    beta: Floats, populations: Sequence[Population], loglik: float, passes: int, step: float, layout: Thresholds
) -> MarginalFit:
    centre = float(beta.mean() if layout.binary else layout.averaging() @ beta)
    moved = tuple(replace(one, nodes=one.nodes - centre) for one in populations)
    return MarginalFit(beta - centre, moved, loglik, passes, step)


def _populations(x: Floats, n_groups: int, n_nodes: int) -> list[Population]:
    """The normal populations that end x: means of all groups but the first, which is at zero, then log sigmas."""
    means = np.append(0.0, x[len(x) - 2 * n_groups + 1 : len(x) - n_groups])
    sigmas = np.exp(x[len(x) - n_groups :])
    pairs = zip(sigmas.tolist(), means.tolist(), strict=True)
    return [normal_population(sigma, n_nodes, mean) for sigma, mean in pairs]


def _accelerated_em(
    groups: Sequence[Members], x: Floats, estimate_sigma: bool, design: Any, n_nodes: int, tol: float, max_iter: int
) -> tuple[Floats, float, int, float]:
    """EM on x = (difficulties, means, log sigmas); returns the point, its log-likelihood, the passes, the last step.

    Anderson's acceleration proposes; a proposal that lowers the likelihood is replaced by the plain EM step, which
    cannot.
    """
    n_groups = len(groups)
    m = len(x) - 2 * n_groups + 1
    spread = slice(len(x) - n_groups, len(x))
    layout, score = groups[0].layout, np.sum([group.passed() for group in groups], axis=0)
    low, high = np.log(NO_SPREAD), np.log(WIDE_SPREAD)

    def step(x: Floats) -> tuple[Floats, float]:
        populations = _populations(x, n_groups, n_nodes)
        sums = [group.counts(x[:m], population) for group, population in zip(groups, populations, strict=True)]
        nodes = np.concatenate([population.nodes for population in populations])
        counts = np.concatenate([each for each, _, _ in sums], axis=1)
        beta = _item_step(x[:m], counts, score, nodes, layout, design)
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
        bold = accelerate.next(x, image) - image
        x = image + bold / max(1.0, float(np.abs(bold).max()) / 2)  # stays of the form A eta
        x[spread] = np.clip(x[spread], low, high)
    return good, best, passes, change


def free_population(
    people: Members, normal: MarginalFit, start: Floats, *, design: Any = None, max_iter: int = 500
) -> MarginalFit:
    """The fit with a population of free shape, or the normal one where AIC does not prefer the former.

    The logarithm of the density is a polynomial. Where answers decide what comes next the likelihood can have two
    maxima, a narrow population with items close together and a wide one with items far apart: the search begins at the
    normal fit, and at half the conditional estimates (`start`), which such designs stretch about twofold.
    """
    (one,) = normal.populations
    sd = max(1.0, one.sd)
    n_nodes = min(MOST, round(len(one.nodes) * sd / one.sd))  # as close together as those of the normal one
    begins = [(normal.difficulty, one), (start / 2, normal_population(sd, n_nodes))]
    best, gain, passes = normal, 0.0, normal.n_iter
    for degree in DEGREES:
        found = [_polynomial_weights(people, *begin, degree, design, max_iter) for begin in begins]
        passes += sum(fit.n_iter for fit in found)
        fit = max(found, key=lambda fit: fit.loglik)
        begins = [(fit.difficulty, fit.populations[0])]
        better = 2 * (fit.loglik - normal.loglik) - 2 * (degree - 2)
        if better > gain and _is_maximum(people, fit, design):
            best, gain = fit, better
    return replace(best, n_iter=passes, better=gain)


def _is_maximum(people: Members, fit: MarginalFit, design: Any) -> bool:
    """Whether the likelihood falls on all sides, so that the parameters have errors."""
    found = marginal_information([people], fit.difficulty, fit.populations, design=design)
    try:
        np.linalg.cholesky(found.whole() if found.dense else found.own)
    except np.linalg.LinAlgError:
        return False
    return True


def _polynomial_weights(
    people: Members, beta: Floats, population: Population, degree: int, design: Any, max_iter: int
) -> MarginalFit:
    """Thresholds and the polynomial together, by a limited-memory quasi-Newton method.

    The polynomials are orthonormal under the population begun with. Parameters are scaled by the square root of their
    information, so that the gradient is in standard errors; it stops at one hundredth, the residual is what is left.
    """
    from scipy.optimize import minimize

    nodes, begun, layout = population.nodes, population.log_weights, people.layout
    a = sparse.eye_array(len(beta), format="csr") if design is None else design
    eta, m = (beta if design is None else parameters(a, beta)), a.shape[1]
    root = np.exp(np.maximum(begun, -100.0) / 2)[:, None]
    z = (nodes - population.mean) / population.sd
    basis = np.linalg.qr(np.vander(z, degree + 1, increasing=True) * root)[0][:, 1:] / root
    score, size = people.passed(), people.size

    def at(x: Floats) -> Population:
        return Population(nodes, normalized(begun + basis @ x[m:]), basis)

    def objective(scaled: Floats) -> tuple[float, Floats]:
        x = scaled * scale
        here, there = a @ x[:m], at(x)
        counts, persons, loglik = people.counts(here, there)
        of_beta = (counts[layout.item] * passing(here, nodes, layout)).sum(axis=1) - score
        of_shape = basis.T @ (persons - size * np.exp(there.log_weights))
        return -float(loglik), -np.concatenate([a.T @ of_beta, of_shape]) * scale

    p = passing(beta, nodes, layout)
    counts = people.counts(beta, population)[0][layout.item]
    own = np.concatenate([(a * a).T @ (counts * p * (1 - p)).sum(axis=1), np.full(degree, 0.1 * size)])
    scale = 1 / np.sqrt(np.maximum(own, 1e-6))
    found = minimize(
        objective,
        np.concatenate([eta, np.zeros(degree)]) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": FREE_STEP},
    )
    x = found.x * scale
    residual = float(np.abs(found.jac).max())
    return _centered(a @ x[:m], [at(x)], -float(found.fun), int(found.nfev) + 1, residual, layout)


def _item_step(beta: Floats, counts: Floats, score: Floats, nodes: Floats, layout: Thresholds, design: Any) -> Floats:
    """The M step of every item at once: sum_q counts_iq P(X >= k | node_q) = score_k, by Newton's method."""
    for _ in range(5):
        p = passing(beta, nodes, layout)
        excess = np.einsum("ik,ik->i", counts[layout.item], p) - score
        blocks = given_ability(counts, p, layout)
        if design is not None:
            inside = design.T @ block_diagonal(layout, blocks) @ design
            move = design @ np.linalg.solve(inside.toarray() + 1e-10 * np.eye(inside.shape[0]), design.T @ excess)
        elif layout.binary:
            move = excess / np.maximum(blocks[:, 0, 0], 1e-10)
        else:  # the levels that an item does not have stand still
            absent = np.arange(layout.widest) >= layout.max_score[:, None]
            blocks = blocks + (absent + 1e-10)[:, :, None] * np.eye(layout.widest)
            right = layout.table(excess, 0.0)[:, :, None]
            move = from_levels(layout, np.asarray(np.linalg.solve(blocks, right)[:, :, 0], dtype=np.float64))
        move = np.clip(move, -1, 1) if design is None else move / max(1.0, np.abs(move).max())
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta
