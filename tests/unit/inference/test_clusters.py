"""Cluster-robust standard errors: against the formula by enumeration, the sandwich of others, and simulation."""

from __future__ import annotations

from importlib import import_module
from itertools import product

import numpy as np
import pytest

from spectral_irt import (
    ConditionalPartialCredit,
    ConditionalRasch,
    ConditionalRatingScale,
    MarginalPartialCredit,
    MarginalRasch,
    Responses,
    SpectralRasch,
    simulate,
)
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.cluster_errors import cluster_covariance, clustered
from spectral_irt.numerics import gram


def classrooms(n_classes=40, size=25, n_items=20, effect=0.6, seed=0):
    """Complete answers of classes, each of which finds some items harder than others do."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(-1, 1, n_items)
    room = np.repeat(np.arange(n_classes), size)
    harder = effect * rng.normal(size=(n_classes, n_items))
    theta = rng.normal(size=(n_classes * size, 1))
    X = rng.random((n_classes * size, n_items)) < 1 / (1 + np.exp(beta + harder[room] - theta))
    return X.astype(float), room, beta


def by_enumeration(X, thresholds, cluster, design=None):
    """C/(C-1) H^+ sum g g' H^+ with P(X >= k | s) and its covariance from all answers of the same score."""
    most = [len(one) for one in thresholds]
    every = np.array(list(product(*(range(k + 1) for k in most))))

    def passed(x):
        return np.concatenate([x[..., i, None] >= np.arange(1, k + 1) for i, k in enumerate(most)], axis=-1) * 1.0

    beta = np.concatenate(thresholds)
    H, g = np.zeros((len(beta), len(beta))), np.zeros((cluster.max() + 1, len(beta)))
    for row, c in zip(X, cluster, strict=True):
        same = passed(every[every.sum(axis=1) == row.sum()])
        p = np.exp(-same @ beta)
        p /= p.sum()
        mean = p @ same
        H += (same * p[:, None]).T @ same - np.outer(mean, mean)
        g[c] += passed(row) - mean
    n, A = len(np.unique(cluster)), np.eye(len(beta)) if design is None else design
    inverse = A @ np.linalg.pinv(A.T @ H @ A, rcond=1e-10, hermitian=True) @ A.T
    center = np.eye(len(beta)) - np.concatenate([np.full(k, 1 / (k * len(most))) for k in most])
    inverse = center @ inverse
    return n / (n - 1) * inverse @ g.T @ g @ inverse.T


def test_the_formula():
    X, room, _ = classrooms(12, 10, 5)
    fit = ConditionalRasch().fit(X)
    found = cluster_covariance(fit.calibration_, Responses.from_wide(X), room)
    expected = by_enumeration(X, fit.difficulty_[:, None], room)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-8)
    np.testing.assert_allclose(found.se, np.sqrt(np.diag(expected)), rtol=1e-7)
    assert found.n_clusters == 12


@pytest.mark.parametrize("scale", [False, True])
def test_the_formula_for_categories(scale):
    draw = simulate.rating_scale if scale else simulate.partial_credit
    answers = draw(120, 4, categories=3 if scale else [2, 3, 4, 3], seed=6).responses
    room, layout = np.arange(120) // 10, answers.thresholds
    fit = (ConditionalRatingScale if scale else ConditionalPartialCredit)().fit(answers)
    design = None
    if scale:
        design = np.concatenate([np.repeat(np.eye(4), 2, axis=0), np.tile([[1.0], [-1.0]], (4, 1))], axis=1)
    expected = by_enumeration(answers.to_dense(), np.split(fit.thresholds_, layout.first[1:]), room, design)
    made, found = clustered(fit.calibration_, answers, room)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-6)
    mean = (layout.item == np.arange(4)[:, None]) / layout.max_score[:, None]
    np.testing.assert_allclose(made.se, np.sqrt(np.diag(mean @ expected @ mean.T)), rtol=1e-5)
    np.testing.assert_allclose(made.threshold_se, np.sqrt(np.diag(expected)), rtol=1e-5)


@pytest.mark.parametrize("marginal", [False, True])
def test_no_matrix_has_a_row_for_every_cluster(marginal, monkeypatch):
    """As many clusters as people, in several blocks: what is made dense is a matrix of items, never of clusters.

    Clusters that lie in several blocks are the only ones kept to the end.
    """
    from split import in_blocks

    data = in_blocks(simulate.rasch(600, 12, design="sampled", p=0.5, seed=3).responses, 50)
    calibration = (MarginalRasch if marginal else ConditionalRasch)().fit(data).calibration_
    module, rows = import_module("spectral_irt.inference.groups.cluster_errors"), []
    monkeypatch.setattr(module, "gram", lambda piece: rows.append(piece.shape[0]) or gram(piece))
    alone = cluster_covariance(calibration, data, np.arange(600))
    assert alone.n_clusters == 600
    assert max(rows) == 50
    assert sum(rows) == 600
    rows.clear()
    pairs = cluster_covariance(calibration, data, (np.arange(600) + 25) // 50)  # each of two blocks, but the ends
    assert max(rows) == 11
    apart = cluster_covariance(calibration, in_blocks(data, 600), (np.arange(600) + 25) // 50)
    np.testing.assert_allclose(pairs.covariance, apart.covariance, atol=1e-10)


def test_everybody_alone_is_the_sandwich():
    data = simulate.rasch(400, 12, design="sampled", p=0.6, seed=1).responses
    fit = ConditionalRasch(se="sandwich").fit(data)
    alone = cluster_covariance(fit.calibration_, data, [None] * 400)
    np.testing.assert_allclose(alone.se, fit.se_ * np.sqrt(alone.n_clusters / (alone.n_clusters - 1)), rtol=1e-6)


def test_many_items_are_solved_for_without_a_matrix(monkeypatch):
    X, room, _ = classrooms(30, 10, 15)
    responses = Responses.from_wide(X)
    calibration = SpectralRasch().fit(responses).calibration_
    dense = cluster_covariance(calibration, responses, room)
    monkeypatch.setattr(import_module("spectral_irt.inference.groups.cluster_errors"), "KEEP_COVARIANCE", 10)
    solved = cluster_covariance(calibration, responses, room)
    assert solved.covariance is None
    np.testing.assert_allclose(solved.se, dense.se, rtol=0.01)  # by the matched information, which is that close
    answers = simulate.partial_credit(300, 6, categories=3, seed=1).responses
    ordered = ConditionalPartialCredit().fit(answers).calibration_
    solved = cluster_covariance(ordered, answers, room)
    monkeypatch.undo()
    dense = cluster_covariance(ordered, answers, room)
    np.testing.assert_allclose(solved.se, dense.se, rtol=0.05)  # of six items the matched one is cruder
    np.testing.assert_allclose(solved.threshold_se, dense.threshold_se, rtol=0.05)


def test_marginal_likelihood_has_its_own():
    """Classes that do not matter: the sandwich of marginal likelihood is its information, up to chance.

    600 clusters: each standard error is known to about 1/sqrt(1200) = 3%, and to less where tails are long.
    """
    X, room, _ = classrooms(600, 2, 10, effect=0.0)
    responses = Responses.from_wide(X)
    group = np.arange(1200) % 2
    for groups in (None, group):
        fit = MarginalRasch().fit(responses, groups=groups)
        found = cluster_covariance(fit.calibration_, responses, room, groups)
        np.testing.assert_allclose(found.se, fit.se_, rtol=0.12)
    answers = simulate.partial_credit(1200, 8, categories=3, seed=1).responses
    ordered = MarginalPartialCredit().fit(answers)
    found = cluster_covariance(ordered.calibration_, answers, room)
    np.testing.assert_allclose(found.threshold_se, ordered.threshold_se_, rtol=0.12)
    np.testing.assert_allclose(found.se, ordered.se_, rtol=0.12)


def without(X, item):
    return Responses.from_wide(np.delete(X, item, axis=1))


def test_an_item_without_an_estimate_of_its_own_keeps_its_error():
    X, room, _ = classrooms(25, 30, 8)
    X[:, 3] = 1
    responses = Responses.from_wide(X)
    fit = SpectralRasch().fit(responses)
    study = fit.analyse(responses).clustered(room, name="classrooms")
    assert study.calibration.se[3] == fit.se_[3]
    with_others = cluster_covariance(SpectralRasch().fit(np.delete(X, 3, axis=1)).calibration_, without(X, 3), room)
    shift = fit.se_[3] ** 2 / 64  # of the mean of eight items, one of which is hardly known
    np.testing.assert_allclose(study.calibration.se[4:] ** 2, with_others.se[3:] ** 2 + shift, rtol=0.02)
    assert [f.sentence for f in study.findings() if f.code == "clustered"] == [
        "Standard errors allow for 25 classrooms, within which answers may be alike."
    ]
    assert "25 clusters" in study.summary()


def test_few_clusters_are_a_warning_and_one_is_refused():
    X, room, _ = classrooms(8, 20, 6)
    responses = Responses.from_wide(X)
    calibration = SpectralRasch().fit(responses).calibration_
    few, found = clustered(calibration, responses, room)
    assert found.n_clusters == 8
    assert [(f.code, f.severity) for f in few.findings if "cluster" in f.code] == [("few_clusters", "warning")]
    with pytest.raises(DesignError, match="two of each"):
        cluster_covariance(calibration, responses, np.zeros(160))


@pytest.mark.slow
def test_coverage_with_classes_that_find_items_hard():
    """40 classes, effects of sd .6, 40 replicates of 20 items: .95 has a standard error of .01, and three are allowed.

    The difficulties that are covered are those of all classes: effects that vary make probabilities over classes
    flatter than within one, by 1 / sqrt(1 + .346 sd^2) (Zeger, Liang & Albert 1988).
    """
    plain, robust = [], []
    for seed in range(40):
        X, room, beta = classrooms(seed=seed)
        responses = Responses.from_wide(X)
        fit = SpectralRasch().fit(responses)
        error = np.abs(fit.difficulty_ - beta / np.sqrt(1 + 0.346 * 0.36))
        plain.append(np.mean(error < 1.96 * fit.se_))
        robust.append(np.mean(error < 1.96 * cluster_covariance(fit.calibration_, responses, room).se))
    assert np.mean(plain) < 0.85
    assert 0.92 < np.mean(robust) < 0.98
