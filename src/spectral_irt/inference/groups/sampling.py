"""How the persons of an analysis were sampled: the weight of each, and the cluster (class, school) that each came with.

Everything that compares groups or tests the model asks here which weights, which clusters and which information it has
to use. With w_l the weight of person l, in cluster c(l), and thresholds beta = A eta,

    g_c = sum over l in c of w_l (1{X_l >= k} - P(X_l >= k | s_l)),      H = sum of w_l Cov(1{X_l >= k} | s_l),
    V = B (f sum_c g_c g_c') B',      B = A (A'H A)^+ A',      f = C / (C - 1) for C clusters (Liang & Zeger 1986).

Persons with weights, but without clusters, are a cluster each, and f is 1 (Huber 1967). Persons who count alike and
came one by one need no sandwich: the inverse information has their errors.

Errors from few clusters vary, so that they go with Student's t. Its degrees of freedom are one less than the number of
clusters; where some weigh more than others, than the number of equal ones that they are worth, 1 / sum of squared
shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities, information_at, residuals
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.labels import by_label
from spectral_irt.numerics import csr

RIDGE = 1e-9  # of the mean diagonal: what is not linked has no contributions either, and stays out


@dataclass(frozen=True, eq=False)
class Sampling:
    """How persons were sampled.

    Attributes
    ----------
    weights : float array, optional
        How much each person counts, with mean 1; None where all count alike.
    cluster : int array, optional
        The number of each person's cluster; None where persons came one by one.
    name : str
        What the clusters are called in texts.
    """

    weights: Floats | None = None
    cluster: Ints | None = None
    name: str = "clusters"

    @property
    def simple(self) -> bool:
        """Whether all persons count alike and came one by one."""
        return self.weights is None and self.cluster is None

    def take(self, members: NDArray[np.bool_]) -> Sampling:
        """Of some of the persons; clusters keep their numbers."""
        weights = None if self.weights is None else self.weights[members]
        cluster = None if self.cluster is None else self.cluster[members]
        return replace(self, weights=weights, cluster=cluster)

    def counts(self, n_persons: int) -> Floats:
        """How much each person counts."""
        return np.ones(n_persons) if self.weights is None else self.weights

    def clusters(self, n_persons: int) -> Ints:
        """The number of each person's cluster; everybody is one of their own where there are none."""
        return np.arange(n_persons) if self.cluster is None else self.cluster

    @property
    def words(self) -> str:
        """What there is, in words: weights, clusters, or both."""
        there = {"weights": self.weights is not None, "clusters": self.cluster is not None}
        return " and ".join(name for name, given in there.items() if given)


SIMPLE = Sampling()


def cluster_numbers(responses: Responses, clusters: Any) -> Ints:
    """The number of each person's cluster, by label; a person without one is a cluster alone."""
    split = by_label(responses, clusters)
    alone = split.group < 0
    return np.where(alone, split.n_groups + np.cumsum(alone) - 1, split.group)


def degrees_of_freedom(cluster: Ints, count: Floats) -> float:
    """Of errors from these clusters: one less than the number of clusters of equal size that they are worth.

    `cluster` is that of each person who tells something, and `count` how much that person counts.

    >>> degrees_of_freedom(np.array([0, 0, 1, 1, 2, 2]), np.ones(6))
    2.0
    """
    total = np.bincount(cluster, weights=count)
    return float(total.sum() ** 2 / np.sum(total**2)) - 1


def bread(responses: Responses, beta: Floats, weights: Floats | None, design: Floats | None) -> Floats:
    """B of the module's head, with the mean location held at zero."""
    likelihood = Likelihood(responses, beta, weights=weights)
    if design is None:
        inverse = ridged_inverse(information_at(likelihood, beta).matrix)
    else:
        inside = information_at(likelihood, beta, sparse.csr_array(design)).matrix
        inverse = design @ ridged_inverse(inside) @ design.T
    return inverse - responses.thresholds.averaging() @ inverse


def ridged_inverse(matrix: Floats) -> Floats:
    size = len(matrix)
    return np.linalg.inv(matrix + RIDGE * np.trace(matrix) / size * np.eye(size))


def person_scores(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), persons x thresholds."""
    if not layout.binary:
        return residuals(block, layout, beta)
    values = block.right() - conditional_probabilities(block, beta, series_from=SERIES_FROM)  # much faster
    return csr(block.indptr.astype(np.int32), np.asarray(block.items), values, len(beta))


def _weighted_scores(block: Block, weight: Floats, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array(weight) @ person_scores(block, layout, beta))


def cluster_scores(responses: Responses, beta: Floats, sampling: Sampling, n_clusters: int) -> sparse.csr_array:
    """g_c of the module's head, clusters x thresholds."""
    n, args = responses.n_persons, (responses.thresholds, beta)
    blocks = responses.entries.map(_weighted_scores, *args, persons=(sampling.counts(n),))
    each = sparse.csr_array(sparse.vstack(list(blocks)))
    shape = (n_clusters, n)
    members = sparse.csr_array((np.ones(n), (sampling.clusters(n), np.arange(n))), shape=shape)
    return sparse.csr_array(members @ each)


@dataclass(frozen=True, eq=False)
class Sandwiches:
    """Covariances of the thresholds of several groups, each calibrated on its own.

    `covariances[g][h]` is that of the thresholds of group g with those of group h, which is not zero where persons of
    both are in the same clusters (`shared`). `df` has the degrees of freedom of each group by itself, and `df_joint`
    those of all groups together, infinite without clusters. `model` has the inverse information of each group, what the
    covariance would be of persons who count alike and came one by one.
    """

    covariances: tuple[tuple[Floats, ...], ...]
    model: tuple[Floats, ...]
    df: Floats
    df_joint: float
    shared: bool

    def combined(self, coefficients: Floats) -> Floats:
        """The covariance of the sum of coefficient times thresholds over the groups."""
        total = np.zeros_like(self.covariances[0][0])
        for g in np.flatnonzero(coefficients):
            for h in np.flatnonzero(coefficients):
                total += coefficients[g] * coefficients[h] * self.covariances[g][h]
        return total

    def df_of(self, variances: Floats) -> Floats:
        """Degrees of freedom of a sum over the groups, whose parts have these variances (groups x numbers).

        Groups of clusters of their own add theirs as Welch and Satterthwaite say, (sum v)^2 / sum (v^2 / df); where
        clusters are in several groups, they are those of all clusters.
        """
        if self.shared or np.isinf(self.df_joint):
            return np.full(variances.shape[1], self.df_joint)
        squares = (variances**2 / np.maximum(self.df, 1e-9)[:, None]).sum(axis=0)
        total = variances.sum(axis=0)
        return np.divide(total**2, squares, out=np.full(len(total), self.df_joint), where=squares > 0)


def sandwiches(
    groups: Sequence[Responses], samplings: Sequence[Sampling], thresholds: Floats, design: Floats | None
) -> Sandwiches:
    """The sandwich of each group of persons at its own thresholds (groups x thresholds), and between groups."""
    clustered = samplings[0].cluster is not None
    sizes = [group.n_persons for group in groups]
    numbers = [sampling.clusters(n) for sampling, n in zip(samplings, sizes, strict=True)]
    n_clusters = 1 + max(int(number.max(initial=0)) for number in numbers)
    scores, breads, df, occupied = [], [], [], []
    for group, sampling, number, beta in zip(groups, samplings, numbers, thresholds, strict=True):
        tells = group.informative
        there = np.unique(number[tells])
        factor = 1.0
        if clustered:
            factor = len(there) / max(len(there) - 1, 1)
            df.append(degrees_of_freedom(number[tells], _told(group, sampling)[tells]))
        else:
            df.append(np.inf)
        scores.append(np.sqrt(factor) * cluster_scores(group, beta, sampling, n_clusters))
        breads.append(bread(group, beta, sampling.weights, design))
        occupied.append(there)
    shared = clustered and len(np.unique(np.concatenate(occupied))) < sum(map(len, occupied))
    n = len(groups)
    nothing = np.zeros((thresholds.shape[1], thresholds.shape[1]))
    blocks = [[nothing] * n for _ in range(n)]
    for g in range(n):
        for h in range(g, n):
            if g == h or shared:
                middle = np.asarray((scores[g].T @ scores[h]).toarray())
                blocks[g][h] = breads[g] @ middle @ breads[h].T
                blocks[h][g] = blocks[g][h].T
    together = np.inf
    if clustered:
        tells = np.concatenate([group.informative for group in groups])
        counts = np.concatenate([_told(group, one) for group, one in zip(groups, samplings, strict=True)])
        whole = degrees_of_freedom(np.concatenate(numbers)[tells], counts[tells])
        together = whole if shared else float(sum(df))
    return Sandwiches(tuple(map(tuple, blocks)), tuple(breads), np.array(df), together, shared)


def _told(group: Responses, sampling: Sampling) -> Floats:
    """About how much each person tells about the items: the number of responses, by weight."""
    return group.counts * sampling.counts(group.n_persons)
