"""How sure marginal likelihood is: Louis' observed information of difficulties and populations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.estimators.population import CELLS, Population, posterior, row_products, softplus_table
from spectral_irt.estimators.support import DENSE_ITEMS, answered, user_slices
from spectral_irt.numerics import gram
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats


def information(
    block: Block, difficulty: Floats, population: Population, order: int, dense: bool
) -> tuple[Floats, Floats, Floats]:
    """The block's share of the observed information of (difficulty, mean, log sigma), by Louis' formula.

    Given theta the information is sum p (1 - p) on the diagonal, and with z = (theta - mu) / sigma it is 1 / sigma^2
    for the mean, 2 z^2 for log sigma and 2 z / sigma between them. From it comes off, for every person, the posterior
    covariance of the scores, which are functions of theta: p_i(theta), z / sigma, and z^2. They are projected on the
    first `order` polynomials that are orthonormal under the person's posterior; what is left out falls with the
    posterior variance to the power `order`.

    Returns the items' block (m x m, or its diagonal if not dense), the cross terms (m x 2), and the 2 x 2 of the
    population.
    """
    m, k = len(difficulty), len(population.nodes)
    table = softplus_table(difficulty, population)
    p = np.exp(population.nodes - difficulty[:, None] - table)
    pq = p * (1 - p)
    scores = population_scores(population)
    unit, z = 1 / population.sd, scores[:, 0] * population.sd
    items = np.zeros((m, m)) if dense else np.zeros(m)
    cross, own = np.zeros((m, 2)), np.zeros((2, 2))
    for start, stop in user_slices(block, CELLS // k):
        post, _ = posterior(block, start, stop, difficulty, population, table)
        post[block.counts[start:stop] == 0] = 0
        each = np.einsum("ik,ik->i", answered(block, start, stop, m).T @ post, pq)
        if dense:
            items[np.diag_indices(m)] += each
        else:
            items += each
        at_node = post.sum(axis=0)
        between = 2 * unit * float(at_node @ z)
        own += [[unit**2 * float(at_node.sum()), between], [between, 2 * float(at_node @ z**2)]]
        for q in _polynomials(post, population.nodes, order):
            c = answered(block, start, stop, m, row_products(block, start, stop, p, q))
            t = q @ scores
            if dense:
                items -= gram(c)
            else:
                c2 = answered(block, start, stop, m, c.data**2)
                items -= c2.T @ np.ones(stop - start)
            cross -= c.T @ t
            own -= t.T @ t
    return items, cross, own


def population_scores(population: Population) -> Floats:
    """z / sigma and z^2 at every node: but for a constant, the scores of the mean and of log sigma given theta."""
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
    """The observed information of the difficulties and of what describes the populations.

    The mean of the first population is taken as fixed, which gives the scale its origin.

    Attributes
    ----------
    items : items x items
        Or its diagonal, with more than 5,000 items.
    cross, own : items x others, others x others
        Of the others: the means of all groups but the first, then log sigma of every group if it was estimated.
    there : bool array
        Which they are, of the means of all groups and the log sigmas of all groups.
    """

    items: Floats
    cross: Floats
    own: Floats
    there: NDArray[np.bool_]

    @property
    def dense(self) -> bool:
        return self.items.ndim == 2

    def whole(self) -> Floats:
        """The matrix of difficulties and others together."""
        return np.block([[self.items, self.cross], [self.cross.T, self.own]])


def marginal_information(
    groups: Sequence[Responses], difficulty: Floats, populations: Sequence[Population], *, with_sigma: bool
) -> MarginalInformation:
    """The information of all groups; an entry of the populations of which the data say nothing is left out."""
    m, n_groups = len(difficulty), len(groups)
    answers, people = (sum(numbers) for numbers in zip(*map(_size, groups), strict=True))
    order = 3 if answers / max(people, 1) < 50 else 1  # with many answers posteriors are so narrow that all is straight
    dense = m <= DENSE_ITEMS
    items: Floats = np.zeros((m, m) if dense else m)
    cross, own = np.zeros((m, 2 * n_groups)), np.zeros((2 * n_groups, 2 * n_groups))
    for g, (group, population) in enumerate(zip(groups, populations, strict=True)):
        pair = [g, n_groups + g]  # its mean and its log sigma
        more, cross[:, pair], own[np.ix_(pair, pair)] = group.sum(information, difficulty, population, order, dense)
        items = items + more
    there = np.diag(own) > 0
    there[0] = False
    there[n_groups:] &= with_sigma
    return MarginalInformation(items, cross[:, there], own[np.ix_(there, there)], there)


def _size(group: Responses) -> tuple[int, int]:
    return group.n_responses, int(np.sum(group.counts > 0))


@dataclass(frozen=True, eq=False)
class MarginalErrors:
    """Variances on the scale of mean-zero difficulties.

    Attributes
    ----------
    variance : float array
        Of each difficulty.
    covariance : items x items, or None where items are too many
    mean_variance, log_sigma_variance : float arrays, one number a group
        NaN where it was not estimated, or where items are too many.
    """

    variance: Floats
    covariance: Floats | None
    mean_variance: Floats
    log_sigma_variance: Floats


def marginal_errors(found: MarginalInformation) -> MarginalErrors:
    """Standard errors, squared, from the information."""
    m, n_groups = len(found.items), len(found.there) // 2
    others = np.full(2 * n_groups, np.nan)
    if not found.dense:
        others[found.there] = 1 / np.diag(found.own)
        others[:n_groups] = np.nan  # on the scale of the difficulties, whose covariances are not known
        return MarginalErrors(1 / np.maximum(found.items, 1e-300), None, others[:n_groups], others[n_groups:])
    cov = np.linalg.inv(found.whole())
    to_mean = cov[:, :m].mean(axis=1)  # covariance of everything with the mean difficulty
    middle = to_mean[:m].mean()
    covariance = cov[:m, :m] - to_mean[:m, None] - to_mean[:m] + middle
    others[found.there] = np.diag(cov)[m:]
    means = np.zeros(2 * n_groups)
    means[found.there] = -2 * to_mean[m:]
    others[0] = 0.0
    return MarginalErrors(
        np.diag(covariance).copy(), covariance, (others + means)[:n_groups] + middle, others[n_groups:].copy()
    )
