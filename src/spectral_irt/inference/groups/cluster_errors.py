"""Standard errors where people come in clusters: classrooms, schools, testing sessions.

What a class was taught makes some items easier for all of it. Answers of classmates are then alike beyond their
abilities, and counting every person as a witness of their own overstates how much is known. The sandwich that adds up
what people contribute, cluster by cluster, needs no model of how they are alike:

    V = H^+ (C / (C - 1) sum_c g_c g_c') H^+,    g_c = sum of X_l - P(X_l | s_l) over the people of cluster c,

with H the information of the conditional likelihood. For marginal likelihood, g and H are its own.

References
----------
Liang & Zeger (1986), Biometrika 73, 13-22.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.calibration import SMALL, Calibration
from spectral_irt.conditional.given_score import SERIES_FROM, conditional_probabilities, pattern_sums
from spectral_irt.conditional.information import EXACT_WORK, Information, exact_information, exact_work, solve
from spectral_irt.conditional.patterns import padded, pattern_parts, threshold_codes
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import by_label
from spectral_irt.data.same_items import distinct_rows
from spectral_irt.errors import DesignError
from spectral_irt.estimators.adaptive import is_adaptive
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.estimators.marginal_em import free_population, marginal_difficulty
from spectral_irt.estimators.marginal_groups import people_by_group
from spectral_irt.estimators.marginal_information import marginal_information
from spectral_irt.estimators.marginal_scores import marginal_scores

FEW = 20  # clusters; with fewer, cluster-robust standard errors are too small by a tenth and more
COLUMNS = 100  # clusters solved for at a time, where items are many
RIDGE = 1e-9  # of the mean diagonal: what is not linked has no contributions either, and stays out


@dataclass(frozen=True, eq=False)
class Clustered:
    """Cluster-robust errors of the difficulties.

    Attributes
    ----------
    se : float array
        NaN for items without a proper estimate of their own.
    covariance : items x items, or None
        With NaN likewise; up to 2,000 items.
    n_clusters : int
    """

    se: Floats
    covariance: Floats | None
    n_clusters: int


def cluster_covariance(calibration: Calibration, responses: Responses, clusters: Any, groups: Any = None) -> Clustered:
    """Cluster-robust covariance of the mean-centered difficulties.

    Parameters
    ----------
    calibration, responses
        The data that were calibrated, in the order of the calibration's items.
    clusters : labels or mapping
        The cluster of each person, in their order or by their label; somebody without one is a cluster alone.
    groups : labels or mapping, optional
        The populations of a marginal calibration that had several.

    Examples
    --------
    >>> from spectral_irt import ConditionalRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> fit = ConditionalRasch().fit(lsat)
    >>> alone = cluster_covariance(fit.calibration_, lsat, range(1000))
    >>> bool(np.all(abs(alone.se / fit.se_ - 1) < 0.1))
    True
    """
    code = _codes(responses, clusters)
    if calibration.anchored.any():
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors are for difficulties that average zero, and these are "
            "anchored."
        )
    measured = np.flatnonzero(calibration.measured)
    some = responses if len(measured) == responses.n_items else responses.take_items(measured)
    tells = some.counts > 0
    occupied = np.unique(code[tells])
    if len(occupied) < 2 or len(measured) < 2:
        raise DesignError(
            f"{responses.source}: {len(occupied):,} clusters of people and {len(measured):,} items with an estimate; "
            "cluster-robust standard errors need two of each."
        )
    code = np.where(tells, np.searchsorted(occupied, code), 0)
    beta = calibration.difficulty[measured]
    marginal = calibration.provenance.estimator == "MarginalRasch"
    errors = (
        _marginal(some, beta, code, groups, is_adaptive(calibration)) if marginal else _conditional(some, beta, code)
    )
    n = len(occupied)
    factor = n / (n - 1)
    # Items that rest on the prior take part in the mean that is zero, and what is not known of them shifts the others.
    rest = calibration.known & ~calibration.measured & np.isfinite(calibration.se)
    shift = float(np.sum(calibration.se[rest] ** 2)) / int(calibration.known.sum()) ** 2
    se = np.full(calibration.n_items, np.nan)
    se[measured] = np.sqrt(factor * errors.variance + shift)
    covariance = None
    if errors.covariance is not None:
        covariance = np.full((calibration.n_items, calibration.n_items), np.nan)
        covariance[np.ix_(measured, measured)] = factor * errors.covariance + shift
    return Clustered(se, covariance, n)


def clustered(
    calibration: Calibration, responses: Responses, clusters: Any, groups: Any = None, *, name: str = "clusters"
) -> tuple[Calibration, Clustered]:
    """The calibration with cluster-robust standard errors where it has any of its own, and a word about it."""
    found = cluster_covariance(calibration, responses, clusters, groups)
    made = calibration.provenance
    small = found.covariance is not None and calibration.n_items <= SMALL
    return (
        calibration.replace(
            threshold_se=np.where(np.isfinite(found.se), found.se, calibration.se),
            covariance=found.covariance if small else None,
            findings=(*calibration.findings, *_findings(found.n_clusters, name)),
            provenance=replace(made, se_method=f"sandwich, {found.n_clusters:,} clusters"),
        ),
        found,
    )


def _findings(n: int, name: str) -> list[Finding]:
    sentence = f"Standard errors allow for {n:,} {name}, within which answers may be alike."
    if n >= FEW:
        return [Finding("clustered", "note", sentence)]
    return [
        Finding(
            "few_clusters",
            "warning",
            f"{sentence[:-1]}; from fewer than {FEW} they are still too small.",
            "Read intervals as wider than they are, or collect answers from more clusters.",
        )
    ]


def _codes(responses: Responses, clusters: Any) -> Ints:
    split = by_label(responses, clusters)
    alone = split.group < 0
    return np.where(alone, split.n_groups + np.cumsum(alone) - 1, split.group)


# ------------------------------------------------------------------------------- the two likelihoods


@dataclass(frozen=True, eq=False)
class _Errors:
    variance: Floats
    covariance: Floats | None


def _conditional(responses: Responses, beta: Floats, code: Ints) -> _Errors:
    m = len(beta)
    scores: Any = responses.sum(_conditional_scores, beta, int(code.max()) + 1, persons=(code,))
    patterns, steps = distinct_rows(responses), responses.thresholds
    tiles = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, steps))
    pieces, _ = tiles.map_and_sum(pattern_sums, beta)
    information = Information(pieces, m)
    if m > KEEP_COVARIANCE:
        return _Errors(_variance(information, scores), None)
    if tiles.sum(exact_work) <= EXACT_WORK:
        matrix = tiles.sum(exact_information, padded(steps, beta), threshold_codes(steps), m)
    else:
        matrix = information.dense()
    return _sandwich(matrix, scores.toarray(), m)


def _variance(information: Information, scores: Any) -> Floats:
    """Diagonal of H^+ G' G H^+, a few clusters at a time."""
    total = np.zeros(information.n_items)
    for start in range(0, scores.shape[0], COLUMNS):
        right = scores[start : start + COLUMNS].toarray().T
        total += (solve(information, right, tol=1e-5)[0] ** 2).sum(axis=1)
    return total


def _marginal(responses: Responses, beta: Floats, code: Ints, groups: Any, adaptive: bool) -> _Errors:
    people = people_by_group(responses, groups)
    fit = marginal_difficulty(people.answers, start=beta, tol=1e-4, max_iter=100)
    if adaptive and groups is None:  # the search begins at the estimate itself
        fit = free_population(responses, fit, 2 * beta)
    found = marginal_information(people.answers, fit.difficulty, fit.populations, with_sigma=True)
    if not found.dense:
        raise DesignError(
            f"{responses.source}: cluster-robust standard errors of marginal likelihood need a matrix of all items, "
            f"and {len(beta):,} are too many. Use the spectral or the conditional estimator."
        )
    n_groups, n, m = len(people.answers), int(code.max()) + 1, len(beta)
    total = np.zeros((n, m + len(found.there)))
    for g, (part, population) in enumerate(zip(people.answers, fit.populations, strict=True)):
        own = code[people.split.members(g)]
        items, of_population = part.sum(_marginal_scores, fit.difficulty, population, n, persons=(own,))
        total[:, :m] += items.toarray()
        total[:, slice(m, None) if population.basis is not None else [m + g, m + n_groups + g]] = of_population
    return _sandwich(found.whole(), total[:, np.append(np.full(m, True), found.there)], m)


def _sandwich(information: Floats, scores: Floats, m: int) -> _Errors:
    size = len(information)
    bread = np.linalg.inv(information + RIDGE * np.trace(information) / size * np.eye(size))
    influence = bread[:m] @ scores.T
    influence = influence - influence.mean(axis=0)
    covariance = influence @ influence.T
    return _Errors(np.diag(covariance).copy(), covariance if m <= KEEP_COVARIANCE else None)


def _conditional_scores(block: Block, code: Ints, beta: Floats, n: int) -> sparse.csr_array:
    """X - P(X = 1 | s) summed over the people of each cluster, clusters x items."""
    return _by_cluster(
        block, block.right() - conditional_probabilities(block, beta, series_from=SERIES_FROM), code, len(beta), n
    )


def _marginal_scores(
    block: Block, code: Ints, beta: Floats, population: Any, n: int
) -> tuple[sparse.csr_array, Floats]:
    values, of_population = marginal_scores(block, beta, population)
    sums = np.zeros((n, of_population.shape[1]))
    np.add.at(sums, code, of_population)
    return _by_cluster(block, values, code, len(beta), n), sums


def _by_cluster(block: Block, values: Floats, code: Ints, n_items: int, n: int) -> sparse.csr_array:
    cells = (np.repeat(code, block.counts), np.asarray(block.items))
    return sparse.coo_array((values, cells), shape=(n, n_items)).tocsr()
