"""How sure marginal likelihood is: Louis' observed information of difficulties and populations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.estimators.estimate import DENSE_ITEMS, person_slices
from spectral_irt.estimators.population import (
    CELLS,
    Population,
    answers_of,
    expected_passes,
    log_denominators,
    passing,
    posterior,
)
from spectral_irt.numerics import gram


def information(
    block: Block, beta: Floats, population: Population, order: int, dense: bool, steps: Thresholds | None = None
) -> tuple[Floats, Floats, Floats]:
    """The block's share of the observed information of thresholds and population, by Louis' formula.

    Given theta the information of two thresholds of an item is P(X >= the higher) - P(X >= one) P(X >= the other),
    p (1 - p) of a single one. With z = (theta - mu) / sigma it is 1 / sigma^2 for the mean, 2 z^2 for log sigma and
    2 z / sigma between them; and the covariance of the statistics for the parameters of a free population. From it
    comes off, for every person, the posterior covariance of the scores, which are functions of theta: P(X >= k), and
    z / sigma and z^2 or the statistics. They are projected on the first `order` polynomials that are orthonormal under
    the person's posterior; what is left out falls with the posterior variance to the power `order`.

    Returns the thresholds' block (or its diagonal if not dense), the cross terms, and that of the population.
    """
    table, p = log_denominators(beta, population, steps), passing(beta, population, steps)
    (n_items, k), size = table.shape, len(beta)
    scores = population_scores(population)
    counts, at_node = np.zeros((n_items, k)), np.zeros(k)
    lost = np.zeros((size, size)) if dense else np.zeros(size)
    cross, own = np.zeros((size, scores.shape[1])), np.zeros((scores.shape[1],) * 2)
    for start, stop in person_slices(block, CELLS // k):
        post, _ = posterior(block, start, stop, beta, population, table, steps)
        post[block.counts[start:stop] == 0] = 0
        counts += answers_of(block, start, stop, n_items, steps)[0].T @ post
        at_node += post.sum(axis=0)
        for q in _polynomials(post, population.nodes, order):
            c = expected_passes(block, start, stop, p, q, steps)
            t = q @ scores
            lost += gram(c) if dense else np.bincount(c.indices, weights=c.data**2, minlength=size)
            cross -= c.T @ t
            own -= t.T @ t
    return _given_ability(counts, p, dense, steps) - lost, cross, own + _of_population(at_node, population, scores)


def _given_ability(counts: Floats, p: Floats, dense: bool, steps: Thresholds | None) -> Floats:
    """The information of the thresholds, or its diagonal, if abilities were seen."""
    if steps is None or not dense:
        each = counts if steps is None else counts[steps.item]
        alone = np.einsum("ik,ik->i", each, p * (1 - p))
        return np.diag(alone) if dense else alone
    weighted = counts[steps.item] * p
    higher = np.maximum(np.arange(len(p))[:, None], np.arange(len(p)))
    same = steps.item[:, None] == steps.item
    return np.where(same, weighted.sum(axis=1)[higher] - weighted @ p.T, 0.0)


def _of_population(at_node: Floats, population: Population, scores: Floats) -> Floats:
    """The information of the population's parameters, if abilities were seen."""
    if population.basis is not None:
        weights = np.exp(population.log_weights)
        away = scores - weights @ scores
        return at_node.sum() * (away.T * weights) @ away
    unit, z = 1 / population.sd, scores[:, 0] * population.sd
    between = 2 * unit * float(at_node @ z)
    return np.array([[unit**2 * float(at_node.sum()), between], [between, 2 * float(at_node @ z**2)]])


def population_scores(population: Population) -> Floats:
    """But for a constant the scores of the population's parameters at every node, given the ability.

    z / sigma and z^2, of the mean and of log sigma; or the statistics of a free population.
    """
    if population.basis is not None:
        return population.basis
    z = (population.nodes - population.mean) / population.sd
    return np.stack([z / population.sd, z**2], axis=1)


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


@dataclass(frozen=True, eq=False)
class MarginalInformation:
    """The observed information of the thresholds and of what describes the populations.

    Attributes
    ----------
    items : thresholds x thresholds
        Or its diagonal, with more than 5,000.
    cross, own : thresholds x others, others x others
        Of the others: the means of all groups but the first, which gives the scale its origin, then log sigma of every
        group if it was estimated; or the parameters of a free population.
    there : bool array
        Which they are, of the means of all groups and the log sigmas of all groups.
    weights : float array
        Of the thresholds in the mean that is zero.
    """

    items: Floats
    cross: Floats
    own: Floats
    there: NDArray[np.bool_]
    weights: Floats

    @property
    def dense(self) -> bool:
        return self.items.ndim == 2

    def whole(self) -> Floats:
        """The matrix of thresholds and others together, its origin fixed."""
        found = np.block([[self.items, self.cross], [self.cross.T, self.own]])
        if not self.there[0]:
            return found
        # Thresholds and a free population can be shifted together: the mean threshold is held.
        found[: len(self.items), : len(self.items)] += np.trace(self.items) * np.outer(self.weights, self.weights)
        return found


def marginal_information(
    groups: Sequence[Responses],
    beta: Floats,
    populations: Sequence[Population],
    *,
    with_sigma: bool,
    steps: Thresholds | None = None,
) -> MarginalInformation:
    """The information of all groups; an entry of the populations of which the data say nothing is left out."""
    m, n_groups = len(beta), len(groups)
    answers, people = (sum(numbers) for numbers in zip(*map(_size, groups), strict=True))
    order = 3 if answers / max(people, 1) < 50 else 1  # with many answers posteriors are so narrow that all is straight
    dense = m <= DENSE_ITEMS
    weights = np.full(m, 1 / m) if steps is None else steps.averaging()
    basis = populations[0].basis
    if basis is not None:
        (group,), (population,) = groups, populations
        order = max(order, basis.shape[1])  # statistics of this degree are then projected without a rest
        items, cross, own = group.sum(information, beta, population, order, dense, steps)
        return MarginalInformation(items, cross, own, np.ones(len(own), dtype=bool), weights)
    items = np.zeros((m, m) if dense else m)
    cross, own = np.zeros((m, 2 * n_groups)), np.zeros((2 * n_groups, 2 * n_groups))
    for g, (group, population) in enumerate(zip(groups, populations, strict=True)):
        pair = [g, n_groups + g]  # its mean and its log sigma
        more, cross[:, pair], own[np.ix_(pair, pair)] = group.sum(information, beta, population, order, dense, steps)
        items = items + more
    there = np.diag(own) > 0
    there[0] = False
    there[n_groups:] &= with_sigma
    return MarginalInformation(items, cross[:, there], own[np.ix_(there, there)], there, weights)


def _size(group: Responses) -> tuple[int, int]:
    return group.n_responses, int(np.sum(group.counts > 0))


@dataclass(frozen=True, eq=False)
class MarginalErrors:
    """Variances on the scale of mean-zero difficulties.

    Attributes
    ----------
    variance : float array
        Of each threshold.
    covariance : thresholds x thresholds, or None where they are too many
    mean_variance, log_sigma_variance : float arrays, one number a group
        NaN where it was not estimated, or where items are too many.
    """

    variance: Floats
    covariance: Floats | None
    mean_variance: Floats
    log_sigma_variance: Floats


def marginal_errors(found: MarginalInformation, populations: Sequence[Population]) -> MarginalErrors:
    """Standard errors, squared, from the information."""
    m, n_groups = len(found.items), len(populations)
    free = populations[0].basis is not None
    others = np.full(2 * n_groups, np.nan)
    if not found.dense:
        if not free:
            others[found.there] = 1 / np.diag(found.own)
        others[:n_groups] = np.nan  # on the scale of the difficulties, whose covariances are not known
        return MarginalErrors(1 / np.maximum(found.items, 1e-300), None, others[:n_groups], others[n_groups:])
    cov = np.linalg.inv(found.whole())
    to_mean = cov[:, :m] @ found.weights  # covariance of everything with the mean difficulty
    middle = found.weights @ to_mean[:m]
    covariance = cov[:m, :m] - to_mean[:m, None] - to_mean[:m] + middle
    variance = np.diag(covariance).copy()
    if free:
        mean, log_sigma = (float(slope @ cov @ slope) for slope in _moment_slopes(populations[0], found.weights))
        return MarginalErrors(variance, covariance, np.array([mean]), np.array([log_sigma]))
    others[found.there] = np.diag(cov)[m:]
    means = np.zeros(2 * n_groups)
    means[found.there] = -2 * to_mean[m:]
    others[0] = 0.0
    return MarginalErrors(variance, covariance, (others + means)[:n_groups] + middle, others[n_groups:].copy())


def _moment_slopes(population: Population, weights: Floats) -> tuple[Floats, Floats]:
    """How the mean of a free population, over the mean threshold, and log sigma move with all parameters."""
    assert population.basis is not None
    w, away = np.exp(population.log_weights), population.nodes - population.mean
    basis = population.basis - w @ population.basis
    mean = np.concatenate([-weights, (w * away) @ basis])
    log_sigma = np.concatenate([np.zeros(len(weights)), (w * away**2) @ basis / (2 * population.sd**2)])
    return mean, log_sigma
