"""Standard errors where people come in clusters: classrooms, schools, testing sessions.

Answers of classmates are alike beyond their abilities, and counting every person on their own overstates how much is
known. The sandwich that adds up what people contribute, cluster by cluster, needs no model of how they are alike:

    V = H^+ (C / (C - 1) sum_c g_c g_c') H^+,    g_c = sum of w_l (1{X_l >= k} - P(X_l >= k | s_l)) over cluster c,

with w_l the weight of a person, and H the information of the conditional likelihood by these weights (`sampling.py`).
For marginal likelihood, g and H are its own. On a rating scale, whose thresholds are A eta, H^+ is A (A'H A)^+ A'. The
g_c are sparse and added block by block, so that as many clusters as people take no more memory than a few (Liang &
Zeger 1986, Biometrika 73, 13-22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
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
    Sampling,
    bread,
    cluster_numbers,
    degrees_of_freedom,
    person_scores,
)
from spectral_irt.numerics import conjugate_gradients, gram

FEW_CLUSTERS = 20  # below, the quantile of t is 7% and more above the normal one
COLUMNS = 100  # clusters solved for at a time, where thresholds are many


@dataclass(frozen=True, eq=False)
class Clustered:
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
) -> Clustered:
    """Cluster-robust covariance of the thresholds, whose mean location is zero.

    `clusters` has the cluster of each person, in their order or by their label; somebody without one is a cluster
    alone. `groups` are the populations of a marginal calibration that had several, `weights` those of the persons in
    the fit.
    """
    return _covariance(calibration, responses, cluster_numbers(responses, clusters), groups, weights)


def _covariance(
    calibration: Calibration, responses: Responses, cluster: Ints, groups: Any, weights: Floats | None
) -> Clustered:
    if calibration.anchored.any():
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors are for difficulties that average zero, and these are "
            "anchored."
        )
    measured = np.flatnonzero(calibration.measured)
    some = responses.take_items(measured)
    place = calibration.layout.of_items(measured)
    tells = some.counts > 0
    occupied = np.unique(cluster[tells])
    if len(occupied) < 2 or len(measured) < 2:
        raise DesignError(
            f"{responses.source}: {len(occupied):,} clusters of people and {len(measured):,} items with an estimate; "
            "cluster-robust standard errors need two of each."
        )
    n = len(occupied)
    sampling = Sampling(weights, np.where(tells, np.searchsorted(occupied, cluster), 0))
    beta = calibration.thresholds[place]
    design = model_like(calibration).design(some)
    if calibration.likelihood == MARGINAL:
        errors = _marginal(some, beta, sampling, groups, calibration.adaptive, design)
    else:
        errors = _conditional(some, beta, sampling, design)
    # Items that rest on the prior take part in the mean that is zero, and what is not known of them shifts the others.
    rest = calibration.known & ~calibration.measured & np.isfinite(calibration.se)
    shift = float(np.sum(calibration.se[rest] ** 2)) / int(calibration.known.sum()) ** 2
    factor = n / (n - 1)
    se = np.full(calibration.n_items, np.nan)
    se[measured] = np.sqrt(factor * errors.locations + shift)
    threshold_se = np.full(calibration.layout.n_entries, np.nan)
    threshold_se[place] = np.sqrt(factor * errors.thresholds + shift)
    covariance = None
    if errors.covariance is not None:
        covariance = np.full((len(threshold_se), len(threshold_se)), np.nan)
        covariance[np.ix_(place, place)] = factor * errors.covariance + shift
    told = some.informative
    counts = some.counts * sampling.counts(some.n_persons)
    df = degrees_of_freedom(sampling.clusters(some.n_persons)[told], counts[told]) if told.any() else n - 1.0
    return Clustered(se, threshold_se, covariance, n, df)


def clustered(
    calibration: Calibration,
    responses: Responses,
    clusters: Any,
    groups: Any = None,
    *,
    weights: Floats | None = None,
    name: str = "clusters",
) -> tuple[Calibration, Clustered]:
    """The calibration with cluster-robust standard errors where it has any of its own, and a word about it."""
    found = cluster_covariance(calibration, responses, clusters, groups, weights)
    binary = calibration.layout.binary
    small = found.covariance is not None and len(found.covariance) <= SMALL
    provenance = replace(calibration.provenance, se_method=f"sandwich, {found.n_clusters:,} clusters", se_df=found.df)
    robust = calibration.replace(
        threshold_se=np.where(np.isfinite(found.threshold_se), found.threshold_se, calibration.threshold_se),
        location_se=None if binary else np.where(np.isfinite(found.se), found.se, calibration.se),
        threshold_covariance=found.covariance if small else None,
        findings=(*calibration.findings, cluster_finding(found, name)),
        provenance=provenance,
    )
    return robust, found


def cluster_finding(found: Clustered, name: str) -> Finding:
    """That errors allow for clusters; a warning where these are few."""
    sentence = f"Standard errors allow for {found.n_clusters:,} {name}, within which answers may be alike"
    further = (
        "DIF, means of groups and tests of the model between groups allow for them, too; item fit, local dependence "
        "and dimensions do not."
    )
    if found.df + 1 >= FEW_CLUSTERS:
        return Finding("clustered", "note", f"{sentence}.", further)
    worth = "" if found.df > found.n_clusters - 2 else f", worth {found.df + 1:.1f} clusters of equal size"
    few = (
        f"{sentence}{worth}. From so few the standard errors themselves are uncertain: 95% intervals are "
        f"{t_quantile(found.df):.2f} standard errors either way (t, {found.df:.3g} degrees of freedom) instead of 1.96."
    )
    remedy = f"Collect answers from more clusters, 20 or more, if you can. {further}"
    return Finding("few_clusters", "warning", few, remedy)


class _Scored(NamedTuple):
    """Some people, with the number of each one's cluster and the weight of each, and the kernel that gives their scores
    (people x parameters), with what it takes."""

    responses: Responses
    cluster: Ints
    weights: Floats
    kernel: Callable[..., sparse.csr_array]
    args: tuple[Any, ...]


class _Errors(NamedTuple):
    """Variances of the locations and of the thresholds, and the covariance of these where they are few."""

    locations: Floats
    thresholds: Floats
    covariance: Floats | None


def _scores_by_cluster(people: Sequence[_Scored]) -> Iterator[sparse.csr_array]:
    """The scores of each cluster, clusters x parameters, some clusters at a time.

    Those of a cluster within one block come with this block; only those of the others are kept to the end.
    """
    sizes = [size for some in people for size in some.responses.entries.map(n_persons)]
    block = np.repeat(np.arange(len(sizes)), sizes)
    code = np.concatenate([some.cluster for some in people])
    low, high = np.full(int(code.max()) + 1, len(sizes)), np.full(int(code.max()) + 1, -1)
    np.minimum.at(low, code, block)
    np.maximum.at(high, code, block)
    in_one_block = low == high
    open_codes, open_scores = [], []
    for some in people:
        persons = (some.cluster, some.weights)
        for number, scores in some.responses.entries.map(_summed, some.kernel, some.args, persons=persons):
            whole = in_one_block[number]
            yield scores[whole]
            open_codes.append(number[~whole])
            open_scores.append(scores[~whole])
    if sum(map(len, open_codes)):
        yield _added(np.concatenate(open_codes), sparse.csr_array(sparse.vstack(open_scores)))[1]


def _summed(
    block: Block, code: Ints, weight: Floats, kernel: Any, args: tuple[Any, ...]
) -> tuple[Ints, sparse.csr_array]:
    return _added(code, sparse.csr_array(sparse.diags_array(weight) @ kernel(block, *args)))


def _added(code: Ints, scores: sparse.csr_array) -> tuple[Ints, sparse.csr_array]:
    """The clusters there are, and the sums of the rows of each."""
    number, of = np.unique(code, return_inverse=True)
    if len(number) == len(code):
        return code, scores
    shape = (len(number), len(code))
    together = sparse.csr_array((np.ones(len(code)), (of.ravel(), np.arange(len(code)))), shape=shape)
    return number, together @ scores


def _conditional(responses: Responses, beta: Floats, sampling: Sampling, design: Floats | None) -> _Errors:
    layout, n = responses.thresholds, responses.n_persons
    people = _Scored(responses, sampling.clusters(n), sampling.counts(n), person_scores, (layout, beta))
    scores = _scores_by_cluster([people])
    if len(beta) > KEEP_COVARIANCE:
        return _without_a_matrix(responses, beta, sampling.weights, scores)
    return _sandwich(layout, bread(responses, beta, sampling.weights, design), scores)


def _without_a_matrix(
    responses: Responses, beta: Floats, weights: Floats | None, scores: Iterator[sparse.csr_array]
) -> _Errors:
    """Diagonals of H^+ G' G H^+, a few clusters at a time."""
    layout = responses.thresholds
    point = Likelihood(responses, beta, weights=weights).at(beta)
    center = layout.averaging()
    locations, thresholds = np.zeros(layout.n_items), np.zeros(layout.n_entries)
    for piece in scores:
        for start in range(0, piece.shape[0], COLUMNS):
            right = piece[start : start + COLUMNS].toarray().T
            y = conjugate_gradients(point.__matmul__, point.information, right, tol=1e-5)[0]
            y = y - center @ y
            thresholds += (y**2).sum(axis=1)
            locations += (np.add.reduceat(y, layout.first, axis=0) ** 2).sum(axis=1) / layout.max_score**2
    return _Errors(locations, thresholds, None)


def _marginal(
    responses: Responses, beta: Floats, sampling: Sampling, groups: Any, adaptive: bool, design: Floats | None
) -> _Errors:
    layout, n = responses.thresholds, responses.n_persons
    split, parts, _ = people_by_group(responses, groups, sampling.weights)
    a = None if design is None else sparse.csr_array(design)
    fit = marginal_difficulty(parts, start=beta, design=a, tol=1e-4, max_iter=100)
    if adaptive and groups is None:  # the search begins at the estimate itself
        fit = free_population(parts[0], fit, 2 * beta, design=a)
    information = marginal_information(parts, fit.difficulty, fit.populations, design=a)
    if information.single is not None:
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors of marginal likelihood need a matrix of all items, "
            f"and {len(beta):,} are too many. Use the spectral or the conditional estimator."
        )
    scored = []
    places = information.places(fit.populations)
    for g, (part, population, others) in enumerate(zip(parts, fit.populations, places, strict=True)):
        members = split.group == g
        cluster, counts = sampling.clusters(n)[members], sampling.counts(n)[members]
        args = (fit.difficulty, population, layout, others)
        scored.append(_Scored(part.responses, cluster, counts, marginal_scores, args))
    inverse = information.inverse(RIDGE)[: len(beta)]
    return _sandwich(layout, inverse - layout.averaging() @ inverse, _scores_by_cluster(scored))


def _sandwich(layout: Thresholds, centered: Floats, scores: Iterator[sparse.csr_array]) -> _Errors:
    """From the inverse information, with the mean location held at zero, and the scores."""
    covariance = centered @ sum(gram(piece) for piece in scores) @ centered.T
    locations = np.diag(location_covariance(layout, covariance)).copy()
    few = len(covariance) <= KEEP_COVARIANCE
    return _Errors(locations, np.diag(covariance).copy(), covariance if few else None)
