"""How the persons of an analysis were sampled: the weight of each, and the cluster (class, school) that each came with.

Everything that compares groups or tests the model asks here which weights, which clusters and which information it has
to use: `calibrations.py` for groups calibrated on their own, `score_test.py`, `hausman.py`, `cluster_errors.py`,
`mean_differences.py`, `grouping.py`, and `inference/nested.py`. With w_l the weight of person l, in cluster c(l), and
thresholds beta = A eta,

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities, information_at, residuals
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.labels import by_label
from spectral_irt.numerics import chosen_or_none, csr, safe_divide

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
        weights = chosen_or_none(self.weights, members)
        cluster = chosen_or_none(self.cluster, members)
        return replace(self, weights=weights, cluster=cluster)

    def person_weights(self, n_persons: int) -> Floats:
        """How much each person counts."""
        if self.weights is not None:
            return self.weights
        return np.ones(n_persons)

    def clusters(self, n_persons: int) -> Ints:
        """The number of each person's cluster; everybody is one of their own where there are none."""
        if self.cluster is not None:
            return self.cluster
        return np.arange(n_persons)

    @property
    def words(self) -> str:
        """What there is, in words: weights, clusters, or both."""
        is_there = {"weights": self.weights is not None, "clusters": self.cluster is not None}
        return " and ".join(name for name, yes in is_there.items() if yes)


SIMPLE = Sampling()  # persons who count alike and came one by one


@dataclass(frozen=True, eq=False)
class SampledPersons:
    """The responses of some persons, as a rule those of a group, and how these persons were sampled."""

    responses: Responses
    sampling: Sampling

    @property
    def weight(self) -> Floats:
        """How much each person counts."""
        return self.sampling.person_weights(self.responses.n_persons)

    @property
    def cluster(self) -> Ints:
        """The number of each person's cluster."""
        return self.sampling.clusters(self.responses.n_persons)

    @property
    def evidence(self) -> Floats:
        """About how much each person tells about the items: the number of responses, by weight."""
        return self.responses.counts * self.weight

    def take(self, members: NDArray[np.bool_]) -> SampledPersons:
        """Some of the persons."""
        return SampledPersons(self.responses.take_persons(members), self.sampling.take(members))

    def take_items(self, items: NDArray[Any]) -> SampledPersons:
        """The responses to some of the items."""
        return replace(self, responses=self.responses.take_items(items))


def cluster_numbers(responses: Responses, clusters: Any) -> Ints:
    """The number of each person's cluster, by label; a person without one is a cluster alone."""
    split = by_label(responses, clusters)
    has_none = split.group < 0
    return np.where(has_none, split.n_groups + np.cumsum(has_none) - 1, split.group)


def degrees_of_freedom(cluster: Ints, evidence: Floats) -> float:
    """Of errors from these clusters: one less than the number of clusters of equal size that they are worth.

    `cluster` is that of each person who tells something, and `evidence` how much that person tells.

    >>> degrees_of_freedom(np.array([0, 0, 1, 1, 2, 2]), np.ones(6))
    2.0
    """
    total = np.bincount(cluster, weights=evidence)
    return float(total.sum() ** 2 / np.sum(total**2)) - 1


def joint_degrees_of_freedom(groups: Sequence[SampledPersons]) -> float:
    """Of errors from the clusters of several groups together."""
    informative = np.concatenate([group.responses.informative for group in groups])
    cluster = np.concatenate([group.cluster for group in groups])
    evidence = np.concatenate([group.evidence for group in groups])
    return degrees_of_freedom(cluster[informative], evidence[informative])


def cluster_factor(n_clusters: int) -> float:
    """f = C / (C - 1) of the module's head; of a single cluster, which has no error to tell, 1."""
    return n_clusters / max(n_clusters - 1, 1)


def bread(responses: Responses, beta: Floats, weights: Floats | None, design: Floats | None) -> Floats:
    """B of the module's head, with the mean location held at zero."""
    likelihood = Likelihood(responses, beta, weights=weights)
    if design is None:
        inverse = ridged_inverse(information_at(likelihood, beta).matrix)
    else:
        information = information_at(likelihood, beta, sparse.csr_array(design)).matrix
        inverse = design @ ridged_inverse(information) @ design.T
    return inverse - responses.thresholds.mean_weights() @ inverse


def ridged_inverse(matrix: Floats) -> Floats:
    """The inverse of an information matrix that is singular where items are not linked."""
    size = len(matrix)
    return np.linalg.inv(matrix + RIDGE * np.trace(matrix) / size * np.eye(size))


def person_scores(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), persons x thresholds."""
    if not layout.binary:
        return residuals(block, layout, beta)
    # The same for one threshold an item, much faster.
    values = block.right() - conditional_probabilities(block, beta, series_from=SERIES_FROM)
    return csr(block.indptr.astype(np.int32), np.asarray(block.items), values, len(beta))


def _weighted_scores(block: Block, weight: Floats, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array(weight) @ person_scores(block, layout, beta))


def cluster_scores(responses: Responses, beta: Floats, sampling: Sampling, n_clusters: int) -> sparse.csr_array:
    """g_c of the module's head, clusters x thresholds."""
    n_persons = responses.n_persons
    weights = sampling.person_weights(n_persons)
    blocks = responses.entries.map(_weighted_scores, responses.thresholds, beta, persons=(weights,))
    by_person = sparse.csr_array(sparse.vstack(list(blocks)))
    place = (sampling.clusters(n_persons), np.arange(n_persons))
    membership = sparse.csr_array((np.ones(n_persons), place), shape=(n_clusters, n_persons))
    return sparse.csr_array(membership @ by_person)


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

    def covariance_of_sum(self, coefficients: Floats) -> Floats:
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
        return safe_divide(total**2, squares, otherwise=self.df_joint)


class _GroupSandwich(NamedTuple):
    """What one group brings to the sandwiches: sqrt(f) g_c, B, the clusters of its persons who tell something, and the
    degrees of freedom of its errors."""

    scores: sparse.csr_array
    bread: Floats
    clusters: Ints
    df: float


def sandwiches(groups: Sequence[SampledPersons], thresholds: Floats, design: Floats | None) -> Sandwiches:
    """The sandwich of each group of persons at its own thresholds (groups x thresholds), and between groups."""
    n_clusters = 1 + max(int(group.cluster.max(initial=0)) for group in groups)
    parts = []
    for group, beta in zip(groups, thresholds, strict=True):
        parts.append(_group_sandwich(group, beta, design, n_clusters))
    clustered = groups[0].sampling.cluster is not None
    n_distinct = len(np.unique(np.concatenate([part.clusters for part in parts])))
    shared = clustered and n_distinct < sum(len(part.clusters) for part in parts)
    n_groups, n_thresholds = thresholds.shape
    covariances = [[np.zeros((n_thresholds, n_thresholds))] * n_groups for _ in range(n_groups)]
    for g, first in enumerate(parts):
        for h, second in enumerate(parts[g:], start=g):
            if g == h or shared:
                middle = np.asarray((first.scores.T @ second.scores).toarray())
                covariances[g][h] = first.bread @ middle @ second.bread.T
                covariances[h][g] = covariances[g][h].T
    df = np.array([part.df for part in parts])
    df_joint = float(df.sum())
    if shared:
        df_joint = joint_degrees_of_freedom(groups)
    breads = tuple(part.bread for part in parts)
    return Sandwiches(tuple(map(tuple, covariances)), breads, df, df_joint, shared)


def _group_sandwich(group: SampledPersons, beta: Floats, design: Floats | None, n_clusters: int) -> _GroupSandwich:
    responses = group.responses
    sampling = group.sampling
    informative = responses.informative
    cluster = group.cluster[informative]
    occupied = np.unique(cluster)
    factor = 1.0
    df = np.inf
    if sampling.cluster is not None:
        factor = cluster_factor(len(occupied))
        df = degrees_of_freedom(cluster, group.evidence[informative])
    scores = np.sqrt(factor) * cluster_scores(responses, beta, sampling, n_clusters)
    return _GroupSandwich(scores, bread(responses, beta, sampling.weights, design), occupied, df)
