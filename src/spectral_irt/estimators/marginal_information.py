"""How sure marginal likelihood is: Louis' observed information of thresholds and populations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.information import block_diagonal
from spectral_irt.data import Block
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.estimators.estimate import DENSE_ITEMS
from spectral_irt.estimators.population import (
    Members,
    Population,
    expected_passes,
    marginal_scores,
    passing,
    posteriors,
)
from spectral_irt.numerics import gram


def given_ability(counts: Floats, p: Floats, layout: Thresholds) -> Floats:
    """The information of the thresholds of each item, items x K x K, if abilities were seen.

    sum over nodes of counts (P(X >= the higher) - P(X >= one) P(X >= the other)); p (1 - p) of a single threshold.
    """
    if layout.binary:
        return np.einsum("ik,ik->i", counts, p * (1 - p))[:, None, None]
    at, shape = (layout.item, layout.level - 1), (layout.n_items, layout.widest, p.shape[1])
    tails, weighted = np.zeros(shape), np.zeros(shape)
    tails[at], weighted[at] = p, counts[layout.item] * p
    higher = np.maximum(np.arange(layout.widest)[:, None], np.arange(layout.widest))
    return weighted.sum(axis=2)[:, higher] - np.einsum("iak,ibk->iab", weighted, tails)


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

    Of the information given theta, which is the statistics' covariance for the population's parameters, comes off, for
    every person, the posterior covariance of the scores, which are functions of theta: P(X >= k), and the statistics.
    They are projected on the first `order` polynomials that are orthonormal under the person's posterior; what is left
    out falls with the posterior variance to the power `order`.

    Returns the thresholds' block (or its diagonal if not dense), the cross terms, and that of the population.
    """
    p, scores, size = passing(beta, population.nodes, layout), population.statistics, len(beta)
    counts, at_node = np.zeros((layout.n_items, p.shape[1])), np.zeros(p.shape[1])
    lost = np.zeros((size, size)) if dense else np.zeros(size)
    cross, own = np.zeros((size, scores.shape[1])), np.zeros((scores.shape[1],) * 2)
    for some in posteriors(block, beta, population, layout):
        each = (some.rows.counts > 0) * (1.0 if weight is None else weight[some.start : some.stop])
        post = some.p
        projected = _polynomials(post, population.nodes, order)
        post *= each[:, None]
        counts += some.answers(layout.n_items).T @ post
        at_node += post.sum(axis=0)
        for q in projected:
            q *= np.sqrt(each)[:, None]
            c = expected_passes(some.rows, p, q, layout)
            t = q @ scores
            lost += gram(c) if dense else np.bincount(c.indices, weights=c.data**2, minlength=size)
            cross -= c.T @ t
            own -= t.T @ t
    n = float(at_node.sum())
    if population.basis is None:  # mean and log sigma are no natural parameters: away from the maximum they bend
        first, second = at_node @ scores
        own += np.array([[n / population.sd**2, 2 * first], [2 * first, 2 * (n + second)]])
    else:
        own += n * (scores.T * np.exp(population.log_weights)) @ scores
    blocks = given_ability(counts, p, layout)
    if dense:
        return block_diagonal(layout, blocks).toarray() - lost, cross, own
    return blocks[layout.item, layout.level - 1, layout.level - 1] - lost, cross, own


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
        Or its diagonal, with more than 5,000; of a design beta = A eta, that of eta.
    cross, own : thresholds x others, others x others
        Of the others: the parameters of a free population; or mean and log sigma of each normal one, without the first
        mean, which gives the scale its origin, and without sigmas that were given or of which the data say nothing.
    there : bool array
        Which of them there are.
    weights : float array
        Of the thresholds in the mean that is zero.
    design : sparse array, optional
        A.
    """

    items: Floats
    cross: Floats
    own: Floats
    there: NDArray[np.bool_]
    weights: Floats
    design: Any = None

    @property
    def dense(self) -> bool:
        return self.items.ndim == 2

    @property
    def n_parameters(self) -> int:
        return len(self.items) + len(self.own) - int(self.there[0])  # of a free population one is its origin

    def whole(self) -> Floats:
        """The matrix of thresholds and others together, its origin fixed."""
        found = np.block([[self.items, self.cross], [self.cross.T, self.own]])
        if not self.there[0]:
            return found
        # Thresholds and a free population can be shifted together: the mean threshold is held.
        weights = self.weights if self.design is None else self.design.T @ self.weights
        found[: len(self.items), : len(self.items)] += np.trace(self.items) * np.outer(weights, weights)
        return found

    def inverse(self, ridge: float = 0.0) -> Floats:
        """Of the whole, for thresholds and populations."""
        whole = self.whole()
        found = np.linalg.inv(whole + ridge * np.trace(whole) / len(whole) * np.eye(len(whole)))
        if self.design is None:
            return found
        to = sparse.block_diag([self.design, np.eye(len(self.own))], format="csr")
        return to @ found @ to.T


def marginal_information(
    groups: Sequence[Members],
    beta: Floats,
    populations: Sequence[Population],
    *,
    with_sigma: bool = True,
    design: Any = None,
) -> MarginalInformation:
    """The information of all groups; an entry of the populations of which the data say nothing is left out."""
    m, layout = len(beta), groups[0].layout
    answers = sum(group.responses.n_responses for group in groups)
    people = sum(int(np.sum(group.responses.counts > 0)) for group in groups)
    order = 3 if answers / max(people, 1) < 50 else 1  # with many answers posteriors are so narrow that all is straight
    if populations[0].basis is not None:
        order = max(order, populations[0].basis.shape[1])  # statistics of this degree are projected without a rest
    dense = m <= DENSE_ITEMS
    sums = [
        group.sum(information, beta, population, order, dense, layout)
        for group, population in zip(groups, populations, strict=True)
    ]
    items, cross = sum(each[0] for each in sums), np.concatenate([each[1] for each in sums], axis=1)
    own = sparse.block_diag([each[2] for each in sums]).toarray()
    there = np.diag(own) > 0
    if populations[0].basis is None:
        there[0] = False
        there[1::2] &= with_sigma
    if design is not None:
        items, cross = design.T @ items @ design, design.T @ cross
    return MarginalInformation(items, cross[:, there], own[np.ix_(there, there)], there, layout.averaging(), design)


def score_covariance(
    groups: Sequence[Members], beta: Floats, populations: Sequence[Population], found: MarginalInformation
) -> Floats:
    """Of the gradient where people have weights, which count twice in it: the middle of a sandwich."""
    m, before = len(beta), 0
    total = np.zeros((m + len(found.there),) * 2)
    for group, population in zip(groups, populations, strict=True):
        squares = group.sum(score_squares, beta, population, group.layout)
        mine = np.append(np.arange(m), m + before + np.arange(len(squares) - m))
        total[np.ix_(mine, mine)] += squares
        before += len(squares) - m
    there = np.append(np.full(m, True), found.there)
    return total[np.ix_(there, there)]


def score_squares(block: Block, weight: Floats, beta: Floats, population: Population, layout: Thresholds) -> Floats:
    """The sum over people of the squared weight times s s', with s the scores of thresholds and population."""
    scores, own = marginal_scores(block, beta, population, layout)
    return gram(sparse.csr_array(sparse.diags_array(weight) @ sparse.hstack([scores, sparse.csr_array(own)])))


class MarginalErrors(NamedTuple):
    """Variances on the scale of mean-zero difficulties: of thresholds, and of mean and log sigma of each group.

    NaN where it was not estimated, or where items are too many; then there is no covariance of the thresholds either.
    """

    variance: Floats
    covariance: Floats | None
    mean: Floats
    log_sigma: Floats


def marginal_errors(
    found: MarginalInformation, populations: Sequence[Population], middle: Floats | None = None
) -> MarginalErrors:
    """Standard errors, squared, from the information; or with it on both sides of a sandwich."""
    m = len(found.weights) if found.dense else 0
    cov = found.inverse() if found.dense else np.linalg.inv(found.own)
    cov = cov if middle is None else cov @ middle @ cov
    weights = found.weights[:m]
    to_mean = cov[:m, :m] @ weights  # covariance of the thresholds with the mean one
    covariance = cov[:m, :m] - to_mean[:, None] - to_mean + weights @ to_mean
    others, before, known = np.full((2, len(populations)), np.nan), 0, found.there.copy()
    known[0] = True  # where the origin is
    for g, population in enumerate(populations):
        # How the mean, over the mean threshold, and log sigma move with the population's parameters.
        w, away, statistics = np.exp(population.log_weights), population.nodes - population.mean, population.statistics
        mine = slice(before, before + statistics.shape[1])
        before = mine.stop
        for row, (level, moved) in enumerate(((-1.0, w * away), (0.0, w * away**2 / (2 * population.sd**2)))):
            slope = np.zeros(len(found.there))
            slope[mine] = moved @ statistics
            if not np.any(np.abs(slope[~known]) > 1e-6):
                slopes = np.append(level * weights, slope[found.there])
                others[row, g] = slopes @ cov @ slopes
    if found.dense:
        return MarginalErrors(np.diag(covariance).copy(), covariance, *others)
    return MarginalErrors(1 / np.maximum(found.items, 1e-300), None, np.full(len(populations), np.nan), others[1])
