"""A population of abilities on nodes, and what a block of people says given it: the kernels of marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.estimators.support import answered, user_slices
from spectral_irt.responses import Block
from spectral_irt.responses.block import Floats

REACH = 6.0  # nodes cover mu +- 6 sigma: 2e-9 of a normal distribution lies outside
# Even nodes 1.25 posterior standard deviations apart integrate a normal posterior to 1e-5, and all wider
# posteriors (of fewer answers) far better: the trapezoidal rule errs by 2 exp(-2 pi^2 / 1.25^2).
SPACING = 1.25
FEWEST, MOST = 41, 401
CELLS = 2_000_000  # people x nodes worked on at a time


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

    Even nodes lie closer together: 121 of them are 0.1 sigma apart, 121 Gauss-Hermite ones 0.29 sigma, and a person
    with n answers has a posterior only about 2 / sqrt(n) wide.
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
    """Even nodes that resolve the posterior of the person with most answers, whose information is at most n / 4."""
    narrowest = 1 / np.sqrt(1 / sigma**2 + longest / 4)
    wanted = int(np.ceil(2 * REACH * sigma / (SPACING * narrowest))) + 1
    return int(np.clip(wanted + 1 - wanted % 2, FEWEST, MOST))


# --------------------------------------------------------------------------------- kernels


def posterior(
    block: Block, start: int, stop: int, difficulty: Floats, population: Population, table: Floats
) -> tuple[Floats, Floats]:
    """P(node | answers) of people `start` to `stop`, people x nodes, and the log-likelihood of each.

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


def softplus_table(difficulty: Floats, population: Population) -> Floats:
    return np.logaddexp(0, population.nodes - difficulty[:, None])


def expected_counts(block: Block, difficulty: Floats, population: Population) -> tuple[Floats, Floats, Floats]:
    """The E step: expected answers to each item from each node, expected people at each node, log-likelihood."""
    m, k = len(difficulty), len(population.nodes)
    table = softplus_table(difficulty, population)
    counts, users, loglik = np.zeros((m, k)), np.zeros(k), 0.0
    for start, stop in user_slices(block, CELLS // k):
        post, each = posterior(block, start, stop, difficulty, population, table)
        counts += answered(block, start, stop, m).T @ post
        present = block.counts[start:stop] > 0  # a person without answers says nothing about the population either
        users += present @ post
        loglik += float(each @ present)
    return counts, users, np.array(loglik)


def abilities(block: Block, difficulty: Floats, population: Population) -> tuple[Floats, Floats]:
    """Posterior mean (EAP) and standard deviation of the ability of every person."""
    table = softplus_table(difficulty, population)
    mean, sd = np.empty(block.n_users), np.empty(block.n_users)
    for start, stop in user_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, difficulty, population, table)
        mean[start:stop] = post @ population.nodes
        variance = post @ population.nodes**2 - mean[start:stop] ** 2
        sd[start:stop] = np.sqrt(np.maximum(variance, 0))
    return mean, sd


def row_products(block: Block, start: int, stop: int, p: Floats, q: Floats) -> Floats:
    """sum over nodes of p_i q_l for every answer of people `start` to `stop`."""
    first, last = block.indptr[start], block.indptr[stop]
    items = block.items[first:last]
    user = np.repeat(np.arange(stop - start), block.counts[start:stop])
    out = np.empty(last - first)
    size = max(1, CELLS // (4 * p.shape[1]))
    for a in range(0, len(out), size):
        rows = slice(a, a + size)
        out[rows] = np.einsum("nk,nk->n", p[items[rows]], q[user[rows]])
    return out
