"""The difference of two calibrations of the same persons, where one has fewer responses or other items, with its error.

Each person has a part in both estimates, psi_l = B g_l: the inverse information times the person's score of the
conditional likelihood; that in the location of an item is the mean of those in its thresholds. The difference of two
locations has the sum over persons of the square of the difference of their parts as variance, so that what both
estimates share does not count:

    Var(b2 - b1) = B1 G1'G1 B1' + B2 G2'G2 B2' - B1 G1'G2 B2' - B2 G2'G1 B1'.

Where the model holds and the second has some of the responses of the first, this is Var(b2) - Var(b1) (Andersen 2002;
Andrich, Marais & Humphry 2012). Weights and clusters count as in `groups/sampling.py`. Fits before and after a change
are compared so (`analysis/comparison.py`, `analysis/second_fit.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

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
    """B of the locations of some items, and G, the scores of all clusters of persons."""

    bread: Floats
    scores: sparse.csr_array

    def cross(self, other: Influence) -> Floats:
        """B G'H C' with the influence (C, H) of the other."""
        between: Floats = np.asarray((self.scores.T @ other.scores).toarray())
        return self.bread @ between @ other.bread.T


def difference_covariance(first: Calibrated, second: Calibrated, places: tuple[Ints, Ints]) -> Floats | None:
    """The covariance of second less first, of the locations of the items at these places of each, whatever their
    categories; None where it is not known: with anchors, a rating scale, or many thresholds."""
    if _has_no_covariance(first.calibration) or _has_no_covariance(second.calibration):
        return None
    clusters = _numbers_of_clusters(first, second)
    n_clusters = 1 + max(int(number.max(initial=0)) for number in clusters)
    of_first, of_second = (
        _influence(calibrated, number, n_clusters, place)
        for calibrated, number, place in zip((first, second), clusters, places, strict=True)
    )
    cross = of_first.cross(of_second)
    covariance: Floats = -(cross + cross.T)
    covariance += of_first.cross(of_first)
    covariance += of_second.cross(of_second)
    return covariance


def nested_covariance(first: Calibrated, second: Calibrated, places: tuple[Ints, Ints]) -> Floats | None:
    """The same where the second has some of the responses of the first, and persons count alike and came one by one:
    Var(b2) - Var(b1) by the model (Andersen 2002), which needs no square of any person and holds for few responses."""
    if not (first.sampling.simple and second.sampling.simple):
        return difference_covariance(first, second, places)
    if _has_no_covariance(first.calibration) or _has_no_covariance(second.calibration):
        return None
    return _covariance_by_model(second, places[1]) - _covariance_by_model(first, places[0])


def _covariance_by_model(calibrated: Calibrated, items: Ints) -> Floats:
    estimated = _estimated_part(calibrated)
    likelihood = Likelihood(estimated.responses, estimated.thresholds)
    covariance = ridged_inverse(information_at(likelihood, estimated.thresholds).matrix)
    averaging = estimated.averaging(items)
    result: Floats = averaging @ covariance @ averaging.T
    return result


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
    of_first = first.sampling.clusters(first.responses.n_persons)
    is_new = place < 0
    of_second = np.where(is_new, 0, of_first[place])
    of_second[is_new] = int(of_first.max(initial=0)) + 1 + np.arange(int(is_new.sum()))
    return of_first, of_second


class EstimatedPart(NamedTuple):
    """The responses to the items with an estimate, their thresholds, and where these items stand among all."""

    responses: Responses
    thresholds: Floats
    items: Ints

    def averaging(self, items: Ints) -> sparse.csr_array:
        """Thresholds -> locations of these items, named by where they stand among all: means of their thresholds."""
        layout = self.responses.thresholds
        row = np.searchsorted(self.items, items)
        columns = layout.of_items(row)
        size = layout.max_score[row]
        rows = np.repeat(np.arange(len(row)), size)
        return sparse.csr_array((np.repeat(1 / size, size), (rows, columns)), shape=(len(row), layout.n_entries))


def _estimated_part(calibrated: Calibrated) -> EstimatedPart:
    calibration = calibrated.calibration
    responses = calibrated.responses
    if not calibration.measured.all():
        responses = responses.take_items(calibration.measured)
    items = np.flatnonzero(calibration.measured)
    return EstimatedPart(responses, calibration.thresholds[calibration.layout.of_items(items)], items)


def _influence(calibrated: Calibrated, cluster: Ints, n_clusters: int, items: Ints) -> Influence:
    """On the locations of these items."""
    estimated = _estimated_part(calibrated)
    sampling = replace(calibrated.sampling, cluster=cluster)
    scores = cluster_scores(estimated.responses, estimated.thresholds, sampling, n_clusters)
    of_all = bread(estimated.responses, estimated.thresholds, calibrated.sampling.weights, None)
    return Influence(estimated.averaging(items) @ of_all, scores)


def centered_on(covariance: Floats, weights: Floats) -> Floats:
    """The covariance after the weighted mean was taken off."""
    centering = np.eye(len(covariance)) - weights[None, :]
    result: Floats = centering @ covariance @ centering.T
    return result
