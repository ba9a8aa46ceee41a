"""The covariance of the difference of two calibrations of the same persons, against loops over persons and answers."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.inference import nested
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling

NAN = np.nan


def answers(n_persons=40, n_items=5, seed=3):
    rng = np.random.default_rng(seed)
    beta = np.linspace(-1, 1, n_items)
    p = 1 / (1 + np.exp(beta - rng.normal(size=n_persons)[:, None]))
    table = (rng.random((n_persons, n_items)) < p).astype(float)
    table[rng.random(table.shape) < 0.15] = NAN
    return table


def calibrated(table, persons, sampling=SIMPLE):
    """A calibration at its own estimate, whose prior does not matter here: the formulas take any thresholds."""
    responses = replace(si.Responses.from_wide(table), persons=persons)
    fit = si.SpectralRasch(regularization=0, se="none").fit(responses)
    return nested.Calibrated(fit.calibration_, responses, sampling)


def scores_and_information(table, beta, weights):
    """1{x = 1} - P(x = 1 | score) of each person, and the weighted sum of their covariances, by listing all answers."""
    n_persons, n_items = table.shape
    scores = np.zeros((n_persons, n_items))
    information = np.zeros((n_items, n_items))
    for person, row in enumerate(table):
        met = np.flatnonzero(~np.isnan(row))
        patterns = [x for x in product((0, 1), repeat=len(met)) if sum(x) == np.nansum(row)]
        chance = np.exp([-np.dot(x, beta[met]) for x in patterns])
        chance /= chance.sum()
        mean = chance @ np.array(patterns).reshape(len(patterns), len(met))
        square = np.einsum("p,pi,pj->ij", chance, np.array(patterns), np.array(patterns))
        scores[person, met] = row[met] - mean
        information[np.ix_(met, met)] += weights[person] * (square - np.outer(mean, mean))
    return scores * weights[:, None], information


def influence(table, beta, weights):
    scores, information = scores_and_information(table, beta, weights)
    return scores, np.linalg.pinv(information, rcond=1e-10)


@pytest.mark.parametrize("sampled", ["simple", "weights", "clusters"])
def test_what_both_estimates_share_does_not_count(sampled):
    table = answers()
    n_persons, n_items = table.shape
    persons = np.array([f"p{k}" for k in range(n_persons)], dtype=object)
    fewer = table[:30].copy()
    fewer[::3, 0] = NAN
    more = np.vstack([fewer, answers(n_persons=4, seed=8)])
    names = np.append(persons[:30], ["x1", "x2", "x3", "x4"])
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 1.5, n_persons) if sampled == "weights" else np.ones(n_persons)
    cluster = rng.integers(9, size=n_persons) if sampled == "clusters" else np.arange(n_persons)
    sampling = {"simple": SIMPLE, "weights": Sampling(weights=weights), "clusters": Sampling(cluster=cluster)}[sampled]
    later = np.append(weights[:30], np.ones(4))
    later_sampling = replace(sampling, weights=later if sampled == "weights" else None, cluster=None)
    first = calibrated(table, persons, sampling)
    second = calibrated(more, names, later_sampling)
    place = np.arange(n_items)
    found = nested.difference_covariance(first, second, (place, place))

    g1, b1 = influence(table, first.calibration.difficulty, weights)
    g2, b2 = influence(more, second.calibration.difficulty, later)
    n_clusters = cluster.max() + 1
    sums = np.zeros((n_clusters + 4, n_items))  # of the differences of the parts, by cluster
    for person in range(n_persons):
        sums[cluster[person]] -= b1 @ g1[person]
    for person in range(34):
        of_cluster = cluster[person] if person < 30 else n_clusters + person - 30
        sums[of_cluster] += b2 @ g2[person]
    np.testing.assert_allclose(found, sums.T @ sums, atol=1e-6)  # a ridge of 1e-9 is in the inverse

    some = np.array([3, 1])
    part = nested.difference_covariance(first, second, (some, some))
    np.testing.assert_allclose(part, found[np.ix_(some, some)], atol=1e-12)


def test_of_fewer_responses_it_is_the_difference_of_the_inverse_informations():
    table = answers(n_persons=60)
    fewer = table.copy()
    fewer[::2, 4] = NAN
    persons = np.arange(60)
    first = calibrated(table, persons)
    second = calibrated(fewer, persons)
    place = np.array([0, 2, 4])
    found = nested.nested_covariance(first, second, (place, place))
    centering = np.eye(5) - 1 / 5
    inverses = []
    for each, seen in ((first, table), (second, fewer)):
        information = scores_and_information(seen, each.calibration.difficulty, np.ones(60))[1]
        inverses.append(np.linalg.pinv(information, rcond=1e-10))
    # A ridge leaves the level of the items open; contrasts have the same variances.
    contrast = np.array([[1.0, -1, 0], [0, 1, -1]])
    expected = (inverses[1] - inverses[0])[np.ix_(place, place)]
    np.testing.assert_allclose(contrast @ found @ contrast.T, contrast @ expected @ contrast.T, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(centering @ inverses[0], inverses[0], atol=1e-10)

    weighted = first._replace(sampling=Sampling(weights=np.ones(60)))
    np.testing.assert_allclose(
        nested.nested_covariance(weighted, second, (place, place)),
        nested.difference_covariance(weighted, second, (place, place)),
    )
    np.testing.assert_allclose(
        nested.nested_covariance(first, weighted, (place, place)),
        nested.difference_covariance(first, weighted, (place, place)),
    )


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ({}, True),
        ({"layout": SimpleNamespace(n_entries=nested.MOST_THRESHOLDS + 1)}, False),
        ({"anchored": np.array([False, True])}, False),
        ({"scale_of_item": np.zeros(2)}, False),
        ({"facets": object()}, False),
        ({"adaptive": True}, False),
    ],
)
def test_calibrations_without_a_covariance(change, known):
    plain = {
        "layout": SimpleNamespace(n_entries=nested.MOST_THRESHOLDS),
        "anchored": np.zeros(2, dtype=bool),
        "scale_of_item": None,
        "facets": None,
        "adaptive": False,
    }
    assert nested._has_no_covariance(SimpleNamespace(**plain | change)) is not known


def test_one_without_a_covariance_is_enough():
    table = answers()
    fine = calibrated(table, np.arange(len(table)))
    anchored = SimpleNamespace(
        layout=fine.calibration.layout, anchored=np.array([True]), scale_of_item=None, facets=None, adaptive=False
    )
    other = fine._replace(calibration=anchored)
    place = np.arange(5)
    for pair in ((fine, other), (other, fine)):
        assert nested.difference_covariance(*pair, (place, place)) is None
        assert nested.nested_covariance(*pair, (place, place)) is None


def test_the_covariance_after_a_weighted_mean_was_taken_off():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    centered = root - weights @ root  # each column less its weighted mean
    np.testing.assert_allclose(nested.centered_on(root @ root.T, weights), centered @ centered.T, atol=1e-12)
