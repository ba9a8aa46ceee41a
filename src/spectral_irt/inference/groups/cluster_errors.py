"""Standard errors where people come in clusters: classrooms, schools, testing sessions.

Answers of classmates are alike beyond their abilities, and counting every person on their own overstates how much is
known. The sandwich that adds up what people contribute, cluster by cluster, needs no model of how they are alike:

    V = H^+ (C / (C - 1) sum_c g_c g_c') H^+,    g_c = sum of 1{X_l >= k} - P(X_l >= k | s_l) over cluster c,

with H the information of the conditional likelihood. For marginal likelihood, g and H are its own. On a rating scale,
whose thresholds are A eta, H^+ is A (A'H A)^+ A'. The g_c are sparse and added block by block, so that as many clusters
as people take no more memory than a few (Liang & Zeger 1986, Biometrika 73, 13-22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.calibration import MARGINAL, SMALL, Calibration
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.conditional.exact_likelihood import SERIES_FROM, conditional_probabilities, information_at, residuals
from spectral_irt.conditional.newton import Likelihood
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, n_persons
from spectral_irt.data.labels import by_label
from spectral_irt.errors import DesignError
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.estimators.marginal_fit import free_population, marginal_difficulty, marginal_information
from spectral_irt.estimators.population import marginal_scores, people_by_group
from spectral_irt.inference.groups.calibrations import model_like
from spectral_irt.numerics import conjugate_gradients, csr, gram

FEW = 20  # clusters; with fewer, cluster-robust standard errors are too small by a tenth and more
COLUMNS = 100  # clusters solved for at a time, where thresholds are many
RIDGE = 1e-9  # of the mean diagonal: what is not linked has no contributions either, and stays out


@dataclass(frozen=True, eq=False)
class Clustered:
    """Cluster-robust errors of difficulties and of thresholds, NaN for items without a proper estimate of their own;
    and the covariance of up to 2,000 thresholds, with NaN likewise."""

    se: Floats
    threshold_se: Floats
    covariance: Floats | None
    n_clusters: int


def cluster_covariance(calibration: Calibration, responses: Responses, clusters: Any, groups: Any = None) -> Clustered:
    """Cluster-robust covariance of the thresholds, whose mean location is zero.

    `clusters` has the cluster of each person, in their order or by their label; somebody without one is a cluster
    alone. `groups` are the populations of a marginal calibration that had several.
    """
    split = by_label(responses, clusters)
    alone = split.group < 0
    code = np.where(alone, split.n_groups + np.cumsum(alone) - 1, split.group)
    if calibration.anchored.any():
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors are for difficulties that average zero, and these are "
            "anchored."
        )
    measured = np.flatnonzero(calibration.measured)
    some, place = responses.take_items(measured), calibration.layout.of_items(measured)
    tells = some.counts > 0
    occupied = np.unique(code[tells])
    if len(occupied) < 2 or len(measured) < 2:
        raise DesignError(
            f"{responses.source}: {len(occupied):,} clusters of people and {len(measured):,} items with an estimate; "
            "cluster-robust standard errors need two of each."
        )
    code, n = np.where(tells, np.searchsorted(occupied, code), 0), len(occupied)
    beta, design = calibration.thresholds[place], model_like(calibration).design(some)
    if calibration.likelihood == MARGINAL:
        locations, thresholds, matrix = _marginal(some, beta, code, groups, calibration.adaptive, design)
    else:
        locations, thresholds, matrix = _conditional(some, beta, code, design)
    # Items that rest on the prior take part in the mean that is zero, and what is not known of them shifts the others.
    rest = calibration.known & ~calibration.measured & np.isfinite(calibration.se)
    shift = float(np.sum(calibration.se[rest] ** 2)) / int(calibration.known.sum()) ** 2
    se, threshold_se = np.full(calibration.n_items, np.nan), np.full(calibration.layout.n_entries, np.nan)
    se[measured] = np.sqrt(n / (n - 1) * locations + shift)
    threshold_se[place] = np.sqrt(n / (n - 1) * thresholds + shift)
    covariance = None
    if matrix is not None:
        covariance = np.full((len(threshold_se), len(threshold_se)), np.nan)
        covariance[np.ix_(place, place)] = n / (n - 1) * matrix + shift
    return Clustered(se, threshold_se, covariance, n)


def clustered(
    calibration: Calibration, responses: Responses, clusters: Any, groups: Any = None, *, name: str = "clusters"
) -> tuple[Calibration, Clustered]:
    """The calibration with cluster-robust standard errors where it has any of its own, and a word about it."""
    found = cluster_covariance(calibration, responses, clusters, groups)
    made, binary = calibration.provenance, calibration.layout.binary
    small = found.covariance is not None and len(found.covariance) <= SMALL
    sentence = f"Standard errors allow for {found.n_clusters:,} {name}, within which answers may be alike"
    finding = Finding("clustered", "note", f"{sentence}.")
    if found.n_clusters < FEW:
        few = f"{sentence}; from fewer than {FEW} they are still too small."
        remedy = "Read intervals as wider than they are, or collect answers from more clusters."
        finding = Finding("few_clusters", "warning", few, remedy)
    robust = calibration.replace(
        threshold_se=np.where(np.isfinite(found.threshold_se), found.threshold_se, calibration.threshold_se),
        location_se=None if binary else np.where(np.isfinite(found.se), found.se, calibration.se),
        threshold_covariance=found.covariance if small else None,
        findings=(*calibration.findings, finding),
        provenance=replace(made, se_method=f"sandwich, {found.n_clusters:,} clusters"),
    )
    return robust, found


# Some people, the number of each one's cluster, and the kernel that gives their scores (people x parameters), with what
# it takes; variances of the locations and of the thresholds, and the covariance of these where they are few.
_People = tuple[Responses, Ints, Callable[..., sparse.csr_array], tuple[Any, ...]]
_Errors = tuple[Floats, Floats, Floats | None]


def _scores_by_cluster(people: Sequence[_People]) -> Iterator[sparse.csr_array]:
    """The scores of each cluster, clusters x parameters, some clusters at a time.

    Those of a cluster within one block come with this block; only those of the others are kept to the end.
    """
    sizes = [size for answers, *_ in people for size in answers.entries.map(n_persons)]
    block, code = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([own for _, own, *_ in people])
    low, high = np.full(int(code.max()) + 1, len(sizes)), np.full(int(code.max()) + 1, -1)
    np.minimum.at(low, code, block)
    np.maximum.at(high, code, block)
    alone = low == high  # all people of a cluster are in the same block
    open_codes, open_scores = [], []
    for answers, own, kernel, args in people:
        for number, scores in answers.entries.map(_summed, kernel, args, persons=(own,)):
            whole = alone[number]
            yield scores[whole]
            open_codes.append(number[~whole])
            open_scores.append(scores[~whole])
    if sum(map(len, open_codes)):
        yield _added(np.concatenate(open_codes), sparse.csr_array(sparse.vstack(open_scores)))[1]


def _summed(block: Block, code: Ints, kernel: Any, args: tuple[Any, ...]) -> tuple[Ints, sparse.csr_array]:
    return _added(code, kernel(block, *args))


def _added(code: Ints, scores: sparse.csr_array) -> tuple[Ints, sparse.csr_array]:
    """The clusters there are, and the sums of the rows of each."""
    number, of = np.unique(code, return_inverse=True)
    if len(number) == len(code):
        return code, scores
    shape = (len(number), len(code))
    together = sparse.csr_array((np.ones(len(code)), (of.ravel(), np.arange(len(code)))), shape=shape)
    return number, together @ scores


def _conditional(responses: Responses, beta: Floats, code: Ints, design: Floats | None) -> _Errors:
    layout = responses.thresholds
    scores = _scores_by_cluster([(responses, code, _conditional_scores, (layout, beta))])
    if len(beta) > KEEP_COVARIANCE:
        return _without_a_matrix(responses, beta, scores)
    information = information_at(Likelihood(responses, beta), beta).matrix
    if design is None:
        return _sandwich(layout, _inverse(information), scores)
    return _sandwich(layout, design @ _inverse(design.T @ information @ design) @ design.T, scores)


def _without_a_matrix(responses: Responses, beta: Floats, scores: Iterator[sparse.csr_array]) -> _Errors:
    """Diagonals of H^+ G' G H^+, a few clusters at a time."""
    layout, point = responses.thresholds, Likelihood(responses, beta).at(beta)
    center = layout.averaging()
    locations, thresholds = np.zeros(layout.n_items), np.zeros(layout.n_entries)
    for piece in scores:
        for start in range(0, piece.shape[0], COLUMNS):
            right = piece[start : start + COLUMNS].toarray().T
            y = conjugate_gradients(point.__matmul__, point.information, right, tol=1e-5)[0]
            y = y - center @ y
            thresholds += (y**2).sum(axis=1)
            locations += (np.add.reduceat(y, layout.first, axis=0) ** 2).sum(axis=1) / layout.max_score**2
    return locations, thresholds, None


def _marginal(
    responses: Responses, beta: Floats, code: Ints, groups: Any, adaptive: bool, design: Floats | None
) -> _Errors:
    (split, parts, _), layout = people_by_group(responses, groups), responses.thresholds
    a = None if design is None else sparse.csr_array(design)
    fit = marginal_difficulty(parts, start=beta, design=a, tol=1e-4, max_iter=100)
    if adaptive and groups is None:  # the search begins at the estimate itself
        fit = free_population(parts[0], fit, 2 * beta, design=a)
    found = marginal_information(parts, fit.difficulty, fit.populations, design=a)
    if found.single is not None:
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors of marginal likelihood need a matrix of all items, "
            f"and {len(beta):,} are too many. Use the spectral or the conditional estimator."
        )
    scored = []
    places = found.places(fit.populations)
    for g, (part, population, others) in enumerate(zip(parts, fit.populations, places, strict=True)):
        args = (fit.difficulty, population, layout, others)
        scored.append((part.responses, code[split.group == g], marginal_scores, args))
    return _sandwich(layout, found.inverse(RIDGE)[: len(beta)], _scores_by_cluster(scored))


def _inverse(information: Floats) -> Floats:
    size = len(information)
    return np.linalg.inv(information + RIDGE * np.trace(information) / size * np.eye(size))


def _sandwich(layout: Thresholds, bread: Floats, scores: Iterator[sparse.csr_array]) -> _Errors:
    """With the mean location held at zero."""
    bread = bread - layout.averaging() @ bread
    covariance = bread @ sum(gram(piece) for piece in scores) @ bread.T
    locations = np.diag(location_covariance(layout, covariance)).copy()
    return locations, np.diag(covariance).copy(), covariance if len(covariance) <= KEEP_COVARIANCE else None


def _conditional_scores(block: Block, layout: Thresholds, beta: Floats) -> sparse.csr_array:
    """1{X >= k} - P(X >= k | s), people x thresholds."""
    if not layout.binary:
        return residuals(block, layout, beta)
    values = block.right() - conditional_probabilities(block, beta, series_from=SERIES_FROM)  # much faster
    return csr(block.indptr.astype(np.int32), np.asarray(block.items), values, len(beta))
