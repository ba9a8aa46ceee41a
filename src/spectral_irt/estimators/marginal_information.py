"""How sure marginal likelihood is: Louis' observed information of thresholds and populations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.estimators.estimate import DENSE_ITEMS, person_slices
from spectral_irt.estimators.population import (
    CELLS,
    Members,
    Population,
    Several,
    answers_of,
    expected_passes,
    log_denominators,
    marginal_scores,
    members,
    passing,
    population_scores,
    posterior,
)
from spectral_irt.numerics import gram


def information(
    block: Block,
    weight: Floats | None,
    beta: Floats,
    population: Population,
    order: int,
    dense: bool,
    layout: Thresholds,
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
    table, p = log_denominators(beta, population, layout), passing(beta, population, layout)
    (n_items, k), size = table.shape, len(beta)
    scores = population_scores(population)
    counts, at_node = np.zeros((n_items, k)), np.zeros(k)
    lost = np.zeros((size, size)) if dense else np.zeros(size)
    cross, own = np.zeros((size, scores.shape[1])), np.zeros((scores.shape[1],) * 2)
    for start, stop in person_slices(block, CELLS // k):
        post, _ = posterior(block, start, stop, beta, population, table, layout)
        post[block.counts[start:stop] == 0] = 0
        root = None if weight is None else np.sqrt(weight[start:stop, None])
        projected = _polynomials(post, population.nodes, order)
        if root is not None:
            post = root**2 * post
        counts += answers_of(block, start, stop, n_items, layout)[0].T @ post
        at_node += post.sum(axis=0)
        for q in projected if root is None else [root * q for q in projected]:
            c = expected_passes(block, start, stop, p, q, layout)
            t = q @ scores
            lost += gram(c) if dense else np.bincount(c.indices, weights=c.data**2, minlength=size)
            cross -= c.T @ t
            own -= t.T @ t
    return _given_ability(counts, p, dense, layout) - lost, cross, own + _of_population(at_node, population, scores)


def _given_ability(counts: Floats, p: Floats, dense: bool, layout: Thresholds) -> Floats:
    """The information of the thresholds, or its diagonal, if abilities were seen."""
    if layout.binary or not dense:
        alone = np.einsum("ik,ik->i", counts[layout.item], p * (1 - p))
        return np.diag(alone) if dense else alone
    weighted = counts[layout.item] * p
    higher = np.maximum(np.arange(len(p))[:, None], np.arange(len(p)))
    same = layout.item[:, None] == layout.item
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
    responses: Several, beta: Floats, populations: Sequence[Population], *, with_sigma: bool
) -> MarginalInformation:
    """The information of all groups; an entry of the populations of which the data say nothing is left out."""
    groups = members(responses)
    m, n_groups, layout = len(beta), len(groups), groups[0].responses.thresholds
    answers = sum(group.responses.n_responses for group in groups)
    people = sum(int(np.sum(group.responses.counts > 0)) for group in groups)
    order = 3 if answers / max(people, 1) < 50 else 1  # with many answers posteriors are so narrow that all is straight
    dense, weights = m <= DENSE_ITEMS, layout.averaging()
    basis = populations[0].basis
    if basis is not None:
        order = max(order, basis.shape[1])  # statistics of this degree are then projected without a rest
        items, cross, own = _sum(groups[0], beta, populations[0], order, dense)
        return MarginalInformation(items, cross, own, np.ones(len(own), dtype=bool), weights)
    items = np.zeros((m, m) if dense else m)
    cross, own = np.zeros((m, 2 * n_groups)), np.zeros((2 * n_groups, 2 * n_groups))
    for g, (group, population) in enumerate(zip(groups, populations, strict=True)):
        pair = [g, n_groups + g]  # its mean and its log sigma
        more, cross[:, pair], own[np.ix_(pair, pair)] = _sum(group, beta, population, order, dense)
        items = items + more
    there = np.diag(own) > 0
    there[0] = False
    there[n_groups:] &= with_sigma
    return MarginalInformation(items, cross[:, there], own[np.ix_(there, there)], there, weights)


def _sum(people: Members, beta: Floats, population: Population, order: int, dense: bool) -> tuple[Floats, ...]:
    found: tuple[Floats, ...] = people.sum(information, beta, population, order, dense, people.layout)
    return found


def score_covariance(
    groups: Sequence[Members], beta: Floats, populations: Sequence[Population], found: MarginalInformation
) -> Floats:
    """Of the gradient where people have weights, which count twice in it: the middle of a sandwich."""
    m, n_groups = len(beta), len(groups)
    if populations[0].basis is not None:
        return groups[0].sum(score_squares, beta, populations[0], groups[0].layout)
    total = np.zeros((m + 2 * n_groups,) * 2)
    for g, (group, population) in enumerate(zip(groups, populations, strict=True)):
        mine = np.append(np.arange(m), [m + g, m + n_groups + g])
        total[np.ix_(mine, mine)] += group.sum(score_squares, beta, population, group.layout)
    there = np.append(np.full(m, True), found.there)
    return total[np.ix_(there, there)]


def score_squares(block: Block, weight: Floats, beta: Floats, population: Population, layout: Thresholds) -> Floats:
    """The sum over people of the squared weight times s s', with s the scores of thresholds and population."""
    scores, own = marginal_scores(block, beta, population, layout)
    return gram(sparse.csr_array(sparse.diags_array(weight) @ sparse.hstack([scores, sparse.csr_array(own)])))


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


def marginal_errors(
    found: MarginalInformation, populations: Sequence[Population], middle: Floats | None = None
) -> MarginalErrors:
    """Standard errors, squared, from the information; or with it on both sides of a sandwich."""
    m, n_groups = len(found.items), len(populations)
    free = populations[0].basis is not None
    others = np.full(2 * n_groups, np.nan)
    if not found.dense:
        if not free:
            others[found.there] = 1 / np.diag(found.own)
        others[:n_groups] = np.nan  # on the scale of the difficulties, whose covariances are not known
        return MarginalErrors(1 / np.maximum(found.items, 1e-300), None, others[:n_groups], others[n_groups:])
    cov = np.linalg.inv(found.whole())
    cov = cov if middle is None else cov @ middle @ cov
    to_mean = cov[:, :m] @ found.weights  # covariance of everything with the mean difficulty
    of_mean = found.weights @ to_mean[:m]
    covariance = cov[:m, :m] - to_mean[:m, None] - to_mean[:m] + of_mean
    variance = np.diag(covariance).copy()
    if free:
        mean, log_sigma = (float(slope @ cov @ slope) for slope in _moment_slopes(populations[0], found.weights))
        return MarginalErrors(variance, covariance, np.array([mean]), np.array([log_sigma]))
    others[found.there] = np.diag(cov)[m:]
    means = np.zeros(2 * n_groups)
    means[found.there] = -2 * to_mean[m:]
    others[0] = 0.0
    return MarginalErrors(variance, covariance, (others + means)[:n_groups] + of_mean, others[n_groups:].copy())


def _moment_slopes(population: Population, weights: Floats) -> tuple[Floats, Floats]:
    """How the mean of a free population, over the mean threshold, and log sigma move with all parameters."""
    assert population.basis is not None
    w, away = np.exp(population.log_weights), population.nodes - population.mean
    basis = population.basis - w @ population.basis
    mean = np.concatenate([-weights, (w * away) @ basis])
    log_sigma = np.concatenate([np.zeros(len(weights)), (w * away**2) @ basis / (2 * population.sd**2)])
    return mean, log_sigma
