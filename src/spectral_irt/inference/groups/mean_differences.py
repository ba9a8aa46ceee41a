"""Do groups of people have the same mean ability? Tests that do not assume equal variances, with weights and clusters.

With the means m_k of the groups, their covariance V (diagonal where persons come one by one) and contrasts against the
first group,

    persons one by one:  Welch's t for two groups, and his F for several (Welch 1951), with s_k^2 / n_k in V;
    clusters:            Hotelling's T = (Cm)' (C V C')^-1 (Cm), V from deviations that are added up within clusters,
                         also across groups: a school may have persons of both.

Weights make n_k the number of persons of equal weight that the group is worth, (sum w)^2 / sum w^2.

`grouping.group_columns` calls `mean_differences`.

References
----------
Welch (1951), On the comparison of several mean values, Biometrika 38, 330-336.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy  # whose parts are loaded when they are first asked
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.groups.sampling import Sampling, degrees_of_freedom
from spectral_irt.inference.results import adjust_p, two_sided, wald_tail


class MeanDifferences(NamedTuple):
    """Of every group: its mean less that of the first, the standard error, and Holm's p within the grouping (NaN for
    the first, and where a group has no error); and p of all means being equal."""

    difference: Floats
    se: Floats
    p_holm: Floats
    p_equal: float


class _Means(NamedTuple):
    """Means of groups, their covariance, and the degrees of freedom of each variance."""

    mean: Floats
    covariance: Floats
    df: Floats


def mean_differences(ability: Floats, group: Ints, n_groups: int, sampling: Sampling) -> MeanDifferences:
    """The groups 0 to `n_groups` - 1 compared; persons in group -1, and those without an ability, stay out."""
    compared = np.isfinite(ability) & (group >= 0)
    clustered = sampling.cluster is not None
    means = _means(ability[compared], group[compared], n_groups, sampling.take(compared))
    variance = np.diagonal(means.covariance)
    difference = means.mean - means.mean[0]
    se = np.sqrt(variance + variance[0] - 2 * means.covariance[0])
    difference[0] = np.nan
    se[0] = np.nan
    df = means.df
    with np.errstate(divide="ignore", invalid="ignore"):
        if not clustered:  # Welch and Satterthwaite
            df = (variance + variance[0]) ** 2 / (variance**2 / means.df + variance[0] ** 2 / means.df[0])
        p = two_sided(np.where(se > 0, difference / se, np.nan), np.where(df > 0, df, np.nan))
    return MeanDifferences(difference, se, adjust_p(p, "holm"), _all_equal(means, clustered=clustered))


def _means(ability: Floats, group: Ints, n_groups: int, sampling: Sampling) -> _Means:
    weight = sampling.person_weights(len(ability))
    total = np.bincount(group, weights=weight, minlength=n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(group, weights=weight * ability, minlength=n_groups) / total
        share = weight / total[group]
        deviation = ability - mean[group]
        if sampling.cluster is not None:
            return _clustered_means(mean, share * deviation, group, sampling.cluster, weight)
        n = np.bincount(group, minlength=n_groups)
        n_equal = total**2 / np.bincount(group, weights=weight**2, minlength=n_groups)
        variance = np.bincount(group, weights=share * deviation**2, minlength=n_groups) * n / (n - 1)
        return _Means(mean, np.diag(variance / n_equal), n_equal - 1)


def _clustered_means(mean: Floats, contribution: Floats, group: Ints, cluster: Ints, weight: Floats) -> _Means:
    """Errors of the means, from what each person contributes to the error of that of the own group."""
    n_groups = len(mean)
    numbers, row = np.unique(cluster, return_inverse=True)
    sums = np.zeros((len(numbers), n_groups))
    np.add.at(sums, (row, group), contribution)
    occupied = np.zeros(sums.shape, dtype=bool)
    occupied[row, group] = True
    n_clusters = occupied.sum(axis=0)
    # A single cluster has no error of its own.
    factor = np.where(n_clusters > 1, np.sqrt(n_clusters / (n_clusters - 1)), np.nan)
    covariance = sums.T @ sums * factor * factor[:, None]
    df = np.nan
    if len(numbers):
        df = degrees_of_freedom(row, weight)
    if not (occupied.sum(axis=1) > 1).any():  # every group has clusters of its own, and a mean of its own
        df -= n_groups - 1
    return _Means(mean, covariance, np.full(n_groups, df))


def _all_equal(means: _Means, *, clustered: bool) -> float:
    """p of equal means, of the groups that have an error."""
    variance = np.diagonal(means.covariance)
    has_error: NDArray[np.bool_] = np.isfinite(variance) & (variance > 0)
    n_groups = int(has_error.sum())
    if n_groups < 2:
        return np.nan
    mean = means.mean[has_error]
    if clustered:
        contrasts = mean[1:] - mean[0]
        to_first = np.column_stack([-np.ones(n_groups - 1), np.eye(n_groups - 1)])
        covariance = to_first @ means.covariance[np.ix_(has_error, has_error)] @ to_first.T
        statistic = contrasts @ np.linalg.pinv(covariance) @ contrasts
        return float(wald_tail(statistic, n_groups - 1, means.df[0]))
    weight = 1 / variance[has_error]
    deviation = mean - np.average(mean, weights=weight)
    uncertainty = np.sum((1 - weight / weight.sum()) ** 2 / means.df[has_error])
    between = np.sum(weight * deviation**2) / (n_groups - 1)
    statistic = between / (1 + 2 * (n_groups - 2) / (n_groups**2 - 1) * uncertainty)
    return float(scipy.special.fdtrc(n_groups - 1, (n_groups**2 - 1) / (3 * uncertainty), statistic))
