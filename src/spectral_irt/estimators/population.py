"""A population of abilities on nodes, and what a block of people says given it: the kernels of marginal likelihood.

`beta` are thresholds, item after item, and `steps` says which belongs to which; None where every item has one, its
difficulty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.thresholds import Thresholds, rows_of
from spectral_irt.estimators.estimate import answered, person_slices
from spectral_irt.model import category_probabilities, sigmoid
from spectral_irt.sparse_kernels import csr

REACH = 6.0  # nodes cover mu +- 6 sigma: 2e-9 of a normal distribution lies outside
# Even nodes 1.25 posterior standard deviations apart integrate a normal posterior to 1e-5, and all wider
# posteriors (of fewer answers) far better: the trapezoidal rule errs by 2 exp(-2 pi^2 / 1.25^2).
SPACING = 1.25
FEWEST, MOST = 41, 401
CELLS = 2_000_000  # people x nodes worked on at a time


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution of abilities on nodes.

    Where its shape was estimated, log weight = constant + a' basis: `basis`, nodes x parameters, has the statistics.
    """

    nodes: Floats
    log_weights: Floats
    basis: Floats | None = None

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
    block: Block,
    start: int,
    stop: int,
    beta: Floats,
    population: Population,
    table: Floats,
    steps: Thresholds | None = None,
) -> tuple[Floats, Floats]:
    """P(node | answers) of people `start` to `stop`, people x nodes, and the log-likelihood of each.

    log P(answers | theta) = s theta - sum of beta over thresholds passed - sum over all items answered of
    log(1 + exp(theta - beta_1) + ...): one sparse product with the table of these, items x nodes.
    """
    passed = (block.pattern(len(beta)) @ _summed(beta, steps))[2 * start : 2 * stop : 2]
    met, score = answers_of(block, start, stop, len(table), steps)
    log_p = score[:, None] * population.nodes + population.log_weights
    log_p -= met @ table
    top = log_p.max(axis=1)
    np.exp(log_p - top[:, None], out=log_p)
    total = log_p.sum(axis=1)
    log_p /= total[:, None]
    return log_p, top + np.log(total) - passed


def answers_of(block: Block, start: int, stop: int, n_items: int, steps: Thresholds | None) -> tuple[Any, Ints]:
    """People `start` to `stop` x items, 1 where there is an answer; and their total scores."""
    if steps is None:
        return answered(block, start, stop, n_items), block.scores[start:stop]
    rows = rows_of(block, steps).part(start, stop)
    return csr(rows.indptr.astype(np.int32), rows.items, np.ones(len(rows.items)), n_items), rows.scores


def _summed(beta: Floats, steps: Thresholds | None) -> Floats:
    """The thresholds up to each one, of the same item."""
    if steps is None:
        return beta
    return steps.cumulated(beta)[steps.item, steps.level]


def log_denominators(beta: Floats, population: Population, steps: Thresholds | None = None) -> Floats:
    """log(1 + exp(theta - beta_1) + exp(2 theta - beta_1 - beta_2) + ...), items x nodes."""
    if steps is None:
        return np.logaddexp(0, population.nodes - beta[:, None])
    cumulated = steps.cumulated(beta)
    x = population.nodes[:, None] * np.arange(cumulated.shape[1]) - cumulated[:, None, :]
    return np.asarray(np.logaddexp.reduce(x, axis=2))


def passing(beta: Floats, population: Population, steps: Thresholds | None = None) -> Floats:
    """P(X >= k) of every threshold k at every node."""
    if steps is None:
        return sigmoid(population.nodes - beta[:, None])
    at = np.broadcast_to(population.nodes, (steps.n_items, len(population.nodes)))
    p = category_probabilities(at, steps.cumulated(beta)[:, None, :])
    return np.asarray(np.flip(np.cumsum(np.flip(p, 2), 2), 2)[steps.item, :, steps.level])


def expected_counts(
    block: Block, beta: Floats, population: Population, steps: Thresholds | None = None
) -> tuple[Floats, Floats, Floats]:
    """The E step: expected answers to each item from each node, expected people at each node, log-likelihood."""
    table = log_denominators(beta, population, steps)
    m, k = table.shape
    counts, persons, loglik = np.zeros((m, k)), np.zeros(k), 0.0
    for start, stop in person_slices(block, CELLS // k):
        post, each = posterior(block, start, stop, beta, population, table, steps)
        counts += answers_of(block, start, stop, m, steps)[0].T @ post
        present = block.counts[start:stop] > 0  # a person without answers says nothing about the population either
        persons += present @ post
        loglik += float(each @ present)
    return counts, persons, np.array(loglik)


def abilities(block: Block, difficulty: Floats, population: Population) -> tuple[Floats, Floats]:
    """Posterior mean (EAP) and standard deviation of the ability of every person."""
    table = log_denominators(difficulty, population)
    mean, sd = np.empty(block.n_persons), np.empty(block.n_persons)
    for start, stop in person_slices(block, CELLS // len(population.nodes)):
        post, _ = posterior(block, start, stop, difficulty, population, table)
        mean[start:stop] = post @ population.nodes
        variance = post @ population.nodes**2 - mean[start:stop] ** 2
        sd[start:stop] = np.sqrt(np.maximum(variance, 0))
    return mean, sd


def thresholds_met(block: Block, start: int, stop: int, steps: Thresholds | None) -> tuple[Ints, NDArray[np.int32]]:
    """All thresholds of the items that people `start` to `stop` answered: where those of each begin, and which."""
    if steps is None:
        first, last = block.indptr[start], block.indptr[stop]
        return block.indptr[start : stop + 1] - first, np.asarray(block.items[first:last])
    rows = rows_of(block, steps).part(start, stop)
    number = steps.max_score[rows.items]
    ends = np.concatenate([[0], np.cumsum(number)])
    of_item = np.repeat(steps.first[rows.items] - ends[:-1], number)
    return ends[rows.indptr], (of_item + np.arange(ends[-1])).astype(np.int32)


def expected_passes(block: Block, start: int, stop: int, p: Floats, q: Floats, steps: Thresholds | None = None) -> Any:
    """sum over nodes of p_k q_l, people x thresholds, for the thresholds k of the items that person l answered."""
    indptr, index = thresholds_met(block, start, stop, steps)
    person = np.repeat(np.arange(stop - start), np.diff(indptr))
    out = np.empty(len(index))
    size = max(1, CELLS // (4 * p.shape[1]))
    for a in range(0, len(out), size):
        rows = slice(a, a + size)
        out[rows] = np.einsum("nk,nk->n", p[index[rows]], q[person[rows]])
    return csr(indptr.astype(np.int32), index, out, len(p))
