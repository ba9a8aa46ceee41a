"""The difference of two calibrations of the same persons, where one has fewer responses or other items, with its error.

Each person has a part in both estimates, psi_l = B g_l: the inverse information times the person's score of the
conditional likelihood. The difference of two thresholds has the sum over persons of the square of the difference of
their parts as variance, so that what both estimates share does not count:

    Var(b2 - b1) = B1 G1'G1 B1' + B2 G2'G2 B2' - B1 G1'G2 B2' - B2 G2'G1 B1'.

Where the model holds and the second has some of the responses of the first, this is Var(b2) - Var(b1) (Andersen 2002;
Andrich, Marais & Humphry 2012). Weights and clusters count as in `groups/sampling.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.inference.groups.sampling import Sampling, bread, cluster_scores, ridged_inverse

MOST_THRESHOLDS = 2_000  # whose covariance is held as a matrix


class Calibrated(NamedTuple):
    """A calibration, the responses that it is of, and how the persons were sampled."""

    calibration: Calibration
    responses: Responses
    sampling: Sampling


class Influence(NamedTuple):
    """B of all thresholds with an estimate, the scores of all clusters of persons, and which thresholds these are."""

    bread: Floats
    scores: object
    place: Ints


def difference_covariance(first: Calibrated, second: Calibrated, places: tuple[Ints, Ints]) -> Floats | None:
    """The covariance of second less first, of the thresholds at these places of each; None where it is not known:
    with anchors, a rating scale, or many thresholds."""
    if _has_no_covariance(first.calibration) or _has_no_covariance(second.calibration):
        return None
    clusters = _numbers_of_clusters(first, second)
    n_clusters = 1 + max(int(number.max(initial=0)) for number in clusters)
    one, other = (_influence(each, number, n_clusters) for each, number in zip((first, second), clusters, strict=True))
    parts = []
    for influence, wanted in zip((one, other), places, strict=True):
        at = np.searchsorted(influence.place, wanted)
        parts.append((influence.bread[at], influence.scores))
    (bread_one, scores_one), (bread_other, scores_other) = parts
    cross = bread_one @ np.asarray((scores_one.T @ scores_other).toarray()) @ bread_other.T  # type: ignore[attr-defined]
    covariance: Floats = -(cross + cross.T)
    for matrix, scores in parts:
        covariance += matrix @ np.asarray((scores.T @ scores).toarray()) @ matrix.T  # type: ignore[attr-defined]
    return covariance


def nested_covariance(first: Calibrated, second: Calibrated, places: tuple[Ints, Ints]) -> Floats | None:
    """The same where the second has some of the responses of the first, and persons count alike and came one by one:
    Var(b2) - Var(b1) by the model (Andersen 2002), which needs no square of any person and holds for few responses."""
    if not (first.sampling.simple and second.sampling.simple):
        return difference_covariance(first, second, places)
    matrices = []
    for each, wanted in zip((first, second), places, strict=True):
        if _has_no_covariance(each.calibration):
            return None
        estimated = each.calibration.measured
        responses = each.responses if estimated.all() else each.responses.take_items(estimated)
        place = each.calibration.layout.of_items(np.flatnonzero(estimated))
        beta = each.calibration.thresholds[place]
        inverse = ridged_inverse(information_at(Likelihood(responses, beta), beta).matrix)
        at = np.searchsorted(place, wanted)
        matrices.append(inverse[np.ix_(at, at)])
    covariance: Floats = matrices[1] - matrices[0]
    return covariance


def _has_no_covariance(calibration: Calibration) -> bool:
    too_many = calibration.layout.n_entries > MOST_THRESHOLDS
    constrained = calibration.anchored.any() or calibration.scale_of_item is not None
    return bool(too_many or constrained or calibration.facets is not None or calibration.adaptive)


def _numbers_of_clusters(first: Calibrated, second: Calibrated) -> tuple[Ints, Ints]:
    """The number of each person's cluster, the same in both; a person who came alone is one."""
    if first.responses.persons is second.responses.persons:
        place = np.arange(second.responses.n_persons)
    else:
        place = positions(second.responses.persons, first.responses.persons)
    own = first.sampling.clusters(first.responses.n_persons)
    new = place < 0
    number = np.where(new, 0, own[place])
    number[new] = int(own.max(initial=0)) + 1 + np.arange(int(new.sum()))
    return own, number


def _influence(each: Calibrated, number: Ints, n_clusters: int) -> Influence:
    calibration = each.calibration
    has_estimate = calibration.measured
    responses = each.responses if has_estimate.all() else each.responses.take_items(has_estimate)
    place = calibration.layout.of_items(np.flatnonzero(has_estimate))
    beta = calibration.thresholds[place]
    sampling = replace(each.sampling, cluster=number)
    scores = cluster_scores(responses, beta, sampling, n_clusters)
    return Influence(bread(responses, beta, each.sampling.weights, None), scores, place)


def centered_on(covariance: Floats, weights: Floats) -> Floats:
    """The covariance after the weighted mean was taken off."""
    centering = np.eye(len(covariance)) - weights[None, :]
    result: Floats = centering @ covariance @ centering.T
    return result
