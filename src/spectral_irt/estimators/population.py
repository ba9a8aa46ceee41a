"""A population of abilities on nodes, and what a block of users says given it: the kernels of marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.estimators.support import DENSE_ITEMS, answered, user_slices
from spectral_irt.numerics import gram
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats

REACH = 6.0  # nodes cover mu +- 6 sigma: 2e-9 of a normal distribution lies outside
# Even nodes 1.25 posterior standard deviations apart integrate a normal posterior to 1e-5, and all shorter users'
# (wider) posteriors far better: the trapezoidal rule errs by 2 exp(-2 pi^2 / 1.25^2).
SPACING = 1.25
FEWEST, MOST = 41, 401
CELLS = 2_000_000  # users x nodes worked on at a time


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution of abilities on nodes."""

    nodes: Floats
    log_weights: Floats

    @property
    def mean(self) -> float:
        return float(np.exp(self.log_weights) @ self.nodes)

    @property
    def sd(self) -> float:
        weights = np.exp(self.log_weights)
        return float(np.sqrt(weights @ (self.nodes - weights @ self.nodes) ** 2))


def normalized(log_weights: Floats) -> Floats:
    """Logarithms of weights that add to one."""
    top = log_weights.max()
    return log_weights - (top + np.log(np.sum(np.exp(log_weights - top))))


def normal_population(sigma: float, n_nodes: int, quadrature: str = "even", mu: float = 0.0) -> Population:
    """N(mu, sigma^2) on nodes: evenly spaced (trapezoidal rule) or Gauss-Hermite.

    Even nodes lie closer together: 121 of them are 0.1 sigma apart, 121 Gauss-Hermite ones 0.29 sigma, and a user with
    n answers has a posterior only about 2 / sqrt(n) wide.
    """
    if quadrature == "hermite":
        z, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        z, log_weights = z[np.isfinite(log_weights)], log_weights[np.isfinite(log_weights)]
    else:
        z = np.linspace(-REACH, REACH, n_nodes)
        log_weights = -(z**2) / 2
    return Population(mu + sigma * z, normalized(log_weights))


def enough_nodes(sigma: float, longest: int) -> int:
    """Even nodes that resolve the posterior of the user with most answers; its information is at most n / 4."""
    narrowest = 1 / np.sqrt(1 / sigma**2 + longest / 4)
    wanted = int(np.ceil(2 * REACH * sigma / (SPACING * narrowest))) + 1
    return int(np.clip(wanted + 1 - wanted % 2, FEWEST, MOST))


# --------------------------------------------------------------------------------- kernels


def posterior(
    block: Block, start: int, stop: int, difficulty: Floats, population: Population, table: Floats
) -> tuple[Floats, Floats]:
    """P(node | answers) of users `start` to `stop`, users x nodes, and the log-likelihood of each.

    log P(answers | theta) = s theta - sum of beta over right answers - sum over all answers of log(1 + exp(theta -
    beta_i)): one sparse product with the table of log(1 + exp(node - beta_i)), items x nodes.
    """
    m = len(difficulty)
    right = (block.pattern(m) @ difficulty)[2 * start : 2 * stop : 2]
    log_p = block.scores[start:stop, None] * population.nodes + population.log_weights
    log_p -= answered(block, start, stop, m) @ table
    top = log_p.max(axis=1)
    np.exp(log_p - top[:, None], out=log_p)
    total = log_p.sum(axis=1)
    log_p /= total[:, None]
    return log_p, top + np.log(total) - right


def _table(difficulty: Floats, population: Population) -> Floats:
    return np.logaddexp(0, population.nodes - difficulty[:, None])


def expected_counts(block: Block, difficulty: Floats, population: Population) -> tuple[Floats, Floats, Floats]:
    """The E step: expected answers to each item from each node, expected users at each node, log-likelihood."""
    m, k = len(difficulty), len(population.nodes)
    table = _table(difficulty, population)
    counts, users, loglik = np.zeros((m, k)), np.zeros(k), 0.0
    for start, stop in user_slices(block, CELLS // k):
        post, each = posterior(block, start, stop, difficulty, population, table)
        counts += answered(block, start, stop, m).T @ post
        present = block.counts[start:stop] > 0  # a user without answers says nothing about the population either
        users += present @ post
        loglik += float(each @ present)
    return counts, users, np.array(loglik)


def abilities(block: Block, difficulty: Floats, population: Population) -> tuple[Floats, Floats]:
    """Posterior mean (EAP) and standard deviation of the ability of every user."""
    table = _table(difficulty, population)
    mean, sd = np.empty(block.n_users), np.empty(block.n_users)
    for start, stop in user_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, difficulty, population, table)
        mean[start:stop] = post @ population.nodes
        variance = post @ population.nodes**2 - mean[start:stop] ** 2
        sd[start:stop] = np.sqrt(np.maximum(variance, 0))
    return mean, sd


def information(
    block: Block, difficulty: Floats, population: Population, order: int, dense: bool
) -> tuple[Floats, Floats, Floats]:
    """The block's share of the observed information of (difficulty, log sigma), by Louis' formula.

    Given theta the information is sum p (1 - p) on the diagonal, and 2 theta^2 / sigma^2 for log sigma. From it comes
    off, for every user, the posterior covariance of the scores, which are functions of theta: p_i(theta), and theta^2 /
    sigma^2. They are projected on the first `order` polynomials that are orthonormal under the user's posterior; what
    is left out falls with the posterior variance to the power `order`.

    Returns the items' block (m x m, or its diagonal if not dense), the cross terms, and the term of log sigma.
    """
    m, k = len(difficulty), len(population.nodes)
    table = _table(difficulty, population)
    p = np.exp(population.nodes - difficulty[:, None] - table)
    pq = p * (1 - p)
    z2 = (population.nodes / population.sd) ** 2
    items = np.zeros((m, m)) if dense else np.zeros(m)
    cross, spread = np.zeros(m), 0.0
    for start, stop in user_slices(block, CELLS // k):
        post, _ = posterior(block, start, stop, difficulty, population, table)
        post[block.counts[start:stop] == 0] = 0
        own = np.einsum("ik,ik->i", answered(block, start, stop, m).T @ post, pq)
        if dense:
            items[np.diag_indices(m)] += own
        else:
            items += own
        spread += float(2 * (post @ z2).sum())
        for q in _polynomials(post, population.nodes, order):
            c = answered(block, start, stop, m, _row_products(block, start, stop, p, q))
            t = q @ z2
            if dense:
                items -= gram(c)
            else:
                c2 = answered(block, start, stop, m, c.data**2)
                items -= c2.T @ np.ones(stop - start)
            cross -= c.T @ t
            spread -= float(t @ t)
    return items, cross, np.array(spread)


def _polynomials(post: Floats, nodes: Floats, order: int) -> list[Floats]:
    """post times the orthonormal polynomials of degree 1 to `order` under each row of post (degree 0 is constant)."""
    basis = [np.ones_like(post)]
    for _ in range(order):
        new = basis[-1] * nodes
        for old in basis:
            new -= (post * old * new).sum(axis=1, keepdims=True) * old
        size = np.sqrt((post * new**2).sum(axis=1, keepdims=True))
        basis.append(np.divide(new, size, out=np.zeros_like(new), where=size > 1e-8))
    return [post * q for q in basis[1:]]


def _row_products(block: Block, start: int, stop: int, p: Floats, q: Floats) -> Floats:
    """sum over nodes of p_i q_l for every answer of users `start` to `stop`."""
    first, last = block.indptr[start], block.indptr[stop]
    items = block.items[first:last]
    user = np.repeat(np.arange(stop - start), block.counts[start:stop])
    out = np.empty(last - first)
    size = max(1, CELLS // (4 * p.shape[1]))
    for a in range(0, len(out), size):
        rows = slice(a, a + size)
        out[rows] = np.einsum("nk,nk->n", p[items[rows]], q[user[rows]])
    return out


def marginal_variances(
    responses: Responses, difficulty: Floats, population: Population, *, with_sigma: bool
) -> tuple[Floats, float]:
    """Variance of every mean-centered difficulty, and of log sigma (NaN if that was not estimated)."""
    m = responses.n_items
    dense = m <= DENSE_ITEMS
    mean_answers = responses.n_responses / max(int(np.sum(responses.counts > 0)), 1)
    order = 3 if mean_answers < 50 else 1  # long users' posteriors are so narrow that all functions look straight
    # Information wants abilities around zero; difficulties shift along.
    mean = population.mean
    centered = Population(population.nodes - mean, population.log_weights)
    items, cross, spread = responses.sum(information, difficulty - mean, centered, order, dense)
    spread = float(spread)
    if not dense:
        return 1 / np.maximum(items, 1e-300), 1 / spread if with_sigma and spread > 0 else np.nan
    if with_sigma and spread > 0:
        items = items - np.outer(cross, cross) / spread
    cov = np.linalg.inv(items)
    variance_sigma = np.nan
    if with_sigma and spread > 0:
        pull = cross / spread
        variance_sigma = 1 / spread + float(pull @ cov @ pull)
    rows = cov.mean(axis=0)
    return np.diag(cov) - 2 * rows + rows.mean(), variance_sigma
