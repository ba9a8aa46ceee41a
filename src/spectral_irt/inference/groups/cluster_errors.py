"""Standard errors where people come in clusters: classrooms, schools, testing sessions.

Answers of classmates are alike beyond their abilities, and counting every person on their own overstates how much is
known. The sandwich that adds up what people contribute, cluster by cluster, needs no model of how they are alike:

    V = H^+ (C / (C - 1) sum_c g_c g_c') H^+,    g_c = sum of w_l (1{X_l >= k} - P(X_l >= k | s_l)) over cluster c,

with w_l the weight of a person, and H the information of the conditional likelihood by these weights (`sampling.py`).
For marginal likelihood, g and H are its own. On a rating scale, whose thresholds are A eta, H^+ is A (A'H A)^+ A'. The
g_c are sparse and added block by block, so that as many clusters as people take no more memory than a few (Liang &
Zeger 1986, Biometrika 73, 13-22).

`study.clustered` and the leaderboard call `with_cluster_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import MARGINAL, SMALL, Calibration, t_quantile
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, n_persons
from spectral_irt.errors import DesignError
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.estimators.marginal_fit import free_population, marginal_difficulty, marginal_information
from spectral_irt.estimators.population import marginal_scores, people_by_group
from spectral_irt.inference.groups.calibrations import model_like
from spectral_irt.inference.groups.sampling import (
    RIDGE,
    SampledPersons,
    Sampling,
    bread,
    cluster_factor,
    cluster_numbers,
    joint_degrees_of_freedom,
    person_scores,
)
from spectral_irt.numerics import conjugate_gradients, gram

FEW_CLUSTERS = 20  # below, the quantile of t is 7% and more above the normal one
COLUMNS = 100  # clusters solved for at a time, where thresholds are many
SOLVED = 1e-5  # relative residual of these solutions: far below the error of a variance from clusters
# Of the marginal likelihood, which starts at its maximum: populations are found again.
MARGINAL_TOLERANCE = 1e-4
MARGINAL_STEPS = 100


@dataclass(frozen=True, eq=False)
class ClusterErrors:
    """Cluster-robust errors of difficulties and of thresholds, NaN for items without a proper estimate of their own;
    the covariance of up to 2,000 thresholds, with NaN likewise; the number of clusters that tell something, and the
    degrees of freedom of errors from these."""

    se: Floats
    threshold_se: Floats
    covariance: Floats | None
    n_clusters: int
    df: float


def cluster_covariance(
    calibration: Calibration, responses: Responses, clusters: Any, groups: Any = None, weights: Floats | None = None
) -> ClusterErrors:
    """Cluster-robust covariance of the thresholds, whose mean location is zero.

    `clusters` has the cluster of each person, in their order or by their label; somebody without one is a cluster
    alone. `groups` are the populations of a marginal calibration that had several, `weights` those of the persons in
    the fit.
    """
    if calibration.anchored.any():
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors are for difficulties that average zero, and these are "
            "anchored."
        )
    cluster = cluster_numbers(responses, clusters)
    measured = np.flatnonzero(calibration.measured)
    answers = responses.take_items(measured)
    place = calibration.layout.of_items(measured)
    has_answers = answers.counts > 0
    occupied = np.unique(cluster[has_answers])
    n_clusters = len(occupied)
    if n_clusters < 2 or len(measured) < 2:
        raise DesignError(
            f"{responses.source}: {n_clusters:,} clusters of people and {len(measured):,} items with an estimate; "
            "cluster-robust standard errors need two of each."
        )
    sampling = Sampling(weights, np.where(has_answers, np.searchsorted(occupied, cluster), 0))
    beta = calibration.thresholds[place]
    design = model_like(calibration).design(answers)
    if calibration.likelihood == MARGINAL:
        variances = _marginal(answers, beta, sampling, groups, calibration.adaptive, design)
    else:
        variances = _conditional(answers, beta, sampling, design)
    # Items that rest on the prior take part in the mean that is zero, and what is not known of them shifts the others.
    by_prior = calibration.known & ~calibration.measured & np.isfinite(calibration.se)
    shift = float(np.sum(calibration.se[by_prior] ** 2)) / int(calibration.known.sum()) ** 2
    factor = cluster_factor(n_clusters)
    se = np.full(calibration.n_items, np.nan)
    se[measured] = np.sqrt(factor * variances.locations + shift)
    threshold_se = np.full(calibration.layout.n_entries, np.nan)
    threshold_se[place] = np.sqrt(factor * variances.thresholds + shift)
    covariance = None
    if variances.covariance is not None:
        covariance = np.full((len(threshold_se), len(threshold_se)), np.nan)
        covariance[np.ix_(place, place)] = factor * variances.covariance + shift
    df = n_clusters - 1.0
    if answers.informative.any():
        df = joint_degrees_of_freedom([SampledPersons(answers, sampling)])
    return ClusterErrors(se, threshold_se, covariance, n_clusters, df)


def with_cluster_errors(
    calibration: Calibration,
    responses: Responses,
    clusters: Any,
    groups: Any = None,
    *,
    weights: Floats | None = None,
    name: str = "clusters",
) -> tuple[Calibration, ClusterErrors]:
    """The calibration with cluster-robust standard errors where it has any of its own, and a word about it."""
    errors = cluster_covariance(calibration, responses, clusters, groups, weights)
    keeps_matrix = errors.covariance is not None and len(errors.covariance) <= SMALL
    location_se = None
    if not calibration.layout.binary:
        location_se = np.where(np.isfinite(errors.se), errors.se, calibration.se)
    robust = calibration.replace(
        threshold_se=np.where(np.isfinite(errors.threshold_se), errors.threshold_se, calibration.threshold_se),
        location_se=location_se,
        threshold_covariance=errors.covariance if keeps_matrix else None,
        findings=(*calibration.findings, cluster_finding(errors, name)),
        provenance=replace(
            calibration.provenance, se_method=f"sandwich, {errors.n_clusters:,} clusters", se_df=errors.df
        ),
    )
    return robust, errors


def cluster_finding(errors: ClusterErrors, name: str) -> Finding:
    """That errors allow for clusters; a warning where these are few."""
    sentence = f"Standard errors allow for {errors.n_clusters:,} {name}, within which answers may be alike"
    scope = (
        "DIF, means of groups and tests of the model between groups allow for them, too; item fit, local dependence "
        "and dimensions do not."
    )
    if errors.df + 1 >= FEW_CLUSTERS:
        return Finding("clustered", "note", f"{sentence}.", scope)
    if errors.df <= errors.n_clusters - 2:
        sentence += f", worth {errors.df + 1:.1f} clusters of equal size"
    sentence += (
        ". From so few the standard errors themselves are uncertain: 95% intervals are "
        f"{t_quantile(errors.df):.2f} standard errors either way (t, {errors.df:.3g} degrees of freedom) instead of "
        "1.96."
    )
    remedy = f"Collect answers from more clusters, 20 or more, if you can. {scope}"
    return Finding("few_clusters", "warning", sentence, remedy)


class _Scoring(NamedTuple):
    """Some persons with the cluster and the weight of each, and the kernel that gives their scores (persons x
    parameters), with its arguments."""

    responses: Responses
    cluster: Ints
    weight: Floats
    kernel: Callable[..., sparse.csr_array]
    arguments: tuple[Any, ...]


class _Variances(NamedTuple):
    """Variances of the locations and of the thresholds, and the covariance of these where they are few."""

    locations: Floats
    thresholds: Floats
    covariance: Floats | None


def _scores_by_cluster(people: Sequence[_Scoring]) -> Iterator[sparse.csr_array]:
    """The scores of each cluster, clusters x parameters, some clusters at a time.

    Those of a cluster within one block come with this block; only those of the others are kept to the end.
    """
    in_one_block = _clusters_in_one_block(people)
    open_clusters = []  # those with people in several blocks
    open_scores = []
    for part in people:
        persons = (part.cluster, part.weight)
        for number, scores in part.responses.entries.map(_block_sums, part.kernel, part.arguments, persons=persons):
            complete = in_one_block[number]
            yield scores[complete]
            open_clusters.append(number[~complete])
            open_scores.append(scores[~complete])
    if sum(map(len, open_clusters)):
        yield _sums_by_cluster(np.concatenate(open_clusters), sparse.csr_array(sparse.vstack(open_scores)))[1]


def _clusters_in_one_block(people: Sequence[_Scoring]) -> NDArray[np.bool_]:
    """Of each cluster, by its number, whether all of its people are in the same block."""
    block_sizes = [size for part in people for size in part.responses.entries.map(n_persons)]
    block = np.repeat(np.arange(len(block_sizes)), block_sizes)
    cluster = np.concatenate([part.cluster for part in people])
    n_clusters = int(cluster.max()) + 1
    first = np.full(n_clusters, len(block_sizes))
    last = np.full(n_clusters, -1)
    np.minimum.at(first, cluster, block)
    np.maximum.at(last, cluster, block)
    return np.asarray(first == last)


def _block_sums(
    block: Block, cluster: Ints, weight: Floats, kernel: Callable[..., sparse.csr_array], arguments: tuple[Any, ...]
) -> tuple[Ints, sparse.csr_array]:
    scores = kernel(block, *arguments)
    return _sums_by_cluster(cluster, sparse.csr_array(sparse.diags_array(weight) @ scores))


def _sums_by_cluster(cluster: Ints, scores: sparse.csr_array) -> tuple[Ints, sparse.csr_array]:
    """The clusters there are, and the sums of the rows of each."""
    number, row = np.unique(cluster, return_inverse=True)
    if len(number) == len(cluster):
        return cluster, scores
    place = (row.ravel(), np.arange(len(cluster)))
    membership = sparse.csr_array((np.ones(len(cluster)), place), shape=(len(number), len(cluster)))
    return number, membership @ scores


def _conditional(responses: Responses, beta: Floats, sampling: Sampling, design: Floats | None) -> _Variances:
    layout = responses.thresholds
    persons = SampledPersons(responses, sampling)
    scores = _scores_by_cluster(
        [_Scoring(responses, persons.cluster, persons.weight, person_scores, arguments=(layout, beta))]
    )
    if len(beta) > KEEP_COVARIANCE:
        return _without_a_matrix(responses, beta, sampling.weights, scores)
    return _sandwich(layout, bread(responses, beta, sampling.weights, design), scores)


def _without_a_matrix(
    responses: Responses, beta: Floats, weights: Floats | None, scores: Iterator[sparse.csr_array]
) -> _Variances:
    """Diagonals of H^+ G' G H^+, a few clusters at a time."""
    layout = responses.thresholds
    point = Likelihood(responses, beta, weights=weights).at(beta)
    center = layout.mean_weights()
    locations = np.zeros(layout.n_items)
    thresholds = np.zeros(layout.n_entries)
    for some_scores in scores:
        for start in range(0, some_scores.shape[0], COLUMNS):
            g = some_scores[start : start + COLUMNS].toarray().T
            effect = conjugate_gradients(point.__matmul__, point.information, g, tol=SOLVED)[0]  # H^+ g
            effect = effect - center @ effect
            thresholds += (effect**2).sum(axis=1)
            on_items = np.add.reduceat(effect, layout.first, axis=0)
            locations += (on_items**2).sum(axis=1) / layout.max_score**2
    return _Variances(locations, thresholds, None)


def _marginal(
    responses: Responses, beta: Floats, sampling: Sampling, groups: Any, adaptive: bool, design: Floats | None
) -> _Variances:
    layout = responses.thresholds
    split, parts, _ = people_by_group(responses, groups, sampling.weights)
    a = None if design is None else sparse.csr_array(design)
    fit = marginal_difficulty(parts, start=beta, design=a, tol=MARGINAL_TOLERANCE, max_iter=MARGINAL_STEPS)
    if adaptive and groups is None:  # the search begins at the estimate itself
        fit = free_population(parts[0], fit, 2 * beta, design=a)
    information = marginal_information(parts, fit.difficulty, fit.populations, design=a)
    if information.single is not None:
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors of marginal likelihood need a matrix of all items, "
            f"and {len(beta):,} are too many. Use the spectral or the conditional estimator."
        )
    persons = SampledPersons(responses, sampling)
    people = []
    places = information.places(fit.populations)
    for g, (part, population, place) in enumerate(zip(parts, fit.populations, places, strict=True)):
        members = split.group == g
        arguments = (fit.difficulty, population, layout, place)
        people.append(
            _Scoring(part.responses, persons.cluster[members], persons.weight[members], marginal_scores, arguments)
        )
    inverse = information.inverse(RIDGE)[: len(beta)]
    return _sandwich(layout, inverse - layout.mean_weights() @ inverse, _scores_by_cluster(people))


def _sandwich(layout: Thresholds, centered_inverse: Floats, scores: Iterator[sparse.csr_array]) -> _Variances:
    """From the inverse information, with the mean location held at zero, and the scores."""
    middle = sum(gram(some_scores) for some_scores in scores)
    covariance = centered_inverse @ middle @ centered_inverse.T
    locations = np.diag(location_covariance(layout, covariance)).copy()
    thresholds = np.diag(covariance).copy()
    if len(covariance) > KEEP_COVARIANCE:
        return _Variances(locations, thresholds, None)
    return _Variances(locations, thresholds, covariance)
