"""Pairwise likelihood: people's scores against loops, the sandwich. Reciprocal methods: closed forms, missing pairs."""

import numpy as np
import pytest

from dense import AWKWARD, dense_pairs
from spectral_irt import SpectralRasch
from spectral_irt.chain.paper import pair_counts
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError
from spectral_irt.estimators import pairwise
from spectral_irt.estimators.pairwise import ChoppinRasch, EigenvectorRasch, PairwiseRasch, pairwise_difficulty
from spectral_irt.simulate import rasch


def scores_by_loops(X, beta, weighting):
    pi = np.exp(beta)
    G = np.zeros(X.shape)
    for person, row in enumerate(X):
        right, wrong = np.flatnonzero(row == 1), np.flatnonzero(row == 0)
        w = 1.0 if weighting == "pairs" else 1 / max(len(right) + len(wrong), 1)
        for i in right:
            for j in wrong:
                G[person, i] -= w * pi[i] / (pi[i] + pi[j])
                G[person, j] += w * pi[i] / (pi[i] + pi[j])
    return G


@pytest.mark.parametrize("weighting", ["pairs", "persons"])
@pytest.mark.parametrize("pairs_at_a_time", [2_000_000, 5])
def test_scores_of_users_equal_loops(weighting, pairs_at_a_time, monkeypatch):
    monkeypatch.setattr("spectral_irt.estimators.pairwise.PAIRS", pairs_at_a_time)
    beta = np.array([-0.7, 0.2, 0.9, -0.4, 0.1, 0.3, -0.4])
    for X in (AWKWARD, rasch(40, 7, design="sampled", p=0.6, seed=1).responses.to_dense()):
        found = pairwise.person_scores(Responses.from_wide(X).blocks[0], beta, weighting).toarray()
        expected = scores_by_loops(X, beta, weighting)
        n, s = (~np.isnan(X)).sum(axis=1), np.nansum(X, axis=1)
        np.testing.assert_allclose(found, expected[(s > 0) & (s < n)], atol=1e-12)


@pytest.mark.parametrize("weighting", ["pairs", "persons"])
def test_scores_add_to_zero_and_sandwich_equals_the_dense_one(weighting):
    data = rasch(150, 8, design="sampled", p=0.6, seed=3).responses
    fit = PairwiseRasch(weighting=weighting).fit(data)
    X = data.to_dense()
    G = scores_by_loops(X, fit.difficulty_, weighting)
    np.testing.assert_allclose(G.sum(axis=0), 0, atol=1e-7)
    n = np.maximum((~np.isnan(X)).sum(axis=1), 1)
    Y, _ = dense_pairs(X, None if weighting == "pairs" else lambda person, i, j: 1 / n[person])
    pi = np.exp(fit.difficulty_)
    W = (Y + Y.T) * np.outer(pi, pi) / np.add.outer(pi, pi) ** 2
    bread = np.linalg.pinv(np.diag(W.sum(axis=1)) - W)
    np.testing.assert_allclose(fit.se_, np.sqrt(np.diag(bread @ (G.T @ G) @ bread)), rtol=1e-6)
    loglik = sum(Y[i, j] * np.log(pi[j] / (pi[i] + pi[j])) for i in range(8) for j in range(8))
    assert fit.loglik_ == pytest.approx(loglik)


def test_exact_counts_give_back_the_difficulties():
    beta = np.array([-1.0, 0.3, 0.0, 0.7])
    pi = np.exp(beta)
    Y = pi[None, :] / np.add.outer(pi, pi)  # share of pairs in which j is the wrong one
    np.fill_diagonal(Y, 0)
    np.testing.assert_allclose(pairwise_difficulty(Y)[0], beta, atol=1e-8)


def test_recovers_the_truth_within_its_errors():
    data = rasch(3000, 30, design="popularity", n_responses=30_000, seed=5)
    for weighting in ("pairs", "persons"):
        fit = PairwiseRasch(weighting=weighting).fit(data.responses)
        z = (fit.difficulty_ - data.difficulty) / fit.se_
        assert 0.4 < np.mean(z**2) < 1.9  # chi square with 29 degrees of freedom over 30: sd 0.26
    data = rasch(4000, 15, seed=6)
    se = SpectralRasch().fit(data.responses).se_
    for estimator in (ChoppinRasch, EigenvectorRasch):
        z = (estimator().fit(data.responses).difficulty_ - data.difficulty) / se
        assert 0.25 < np.mean(z**2) < 2.2  # chi square with 14 degrees of freedom over 15: sd 0.35


@pytest.mark.slow
def test_users_weights_help_when_lengths_differ():
    errors = {"pairs": 0.0, "persons": 0.0}
    for seed in range(8):
        data = rasch(1500, 80, design="popularity", n_responses=30_000, seed=seed)
        for weighting in errors:
            fit = PairwiseRasch(weighting=weighting).fit(data.responses)
            errors[weighting] += np.nansum((fit.difficulty_ - data.difficulty) ** 2)
    assert errors["persons"] < errors["pairs"]


def test_sparse_counts_equal_dense_ones():
    data = rasch(300, 9, design="sampled", p=0.6, seed=10).responses
    dense, sparse = (pairwise_difficulty(pair_counts(data, dense=way))[0] for way in (True, False))
    np.testing.assert_allclose(dense, sparse, atol=1e-12)


BOTH = pytest.mark.parametrize("estimator", [ChoppinRasch, EigenvectorRasch])


@pytest.mark.parametrize("size", [2, 3, 12])
def test_exact_reciprocal_matrix_gives_back_the_difficulties(size):
    beta = np.random.default_rng(size).uniform(-4, 4, size)
    matrix = np.exp(np.subtract.outer(beta, beta))
    np.testing.assert_allclose(pairwise.choppin_difficulty(matrix), beta - beta.mean(), atol=1e-12)
    found, n_iter, residual = pairwise.eigenvector_difficulty(matrix)
    np.testing.assert_allclose(found, beta - beta.mean(), atol=1e-10)
    assert n_iter <= 3
    assert residual < 1e-12


def test_both_equal_their_definition():
    X = rasch(400, 7, seed=2).responses.to_dense()
    Y, _ = dense_pairs(X)
    D = np.ones((7, 7))
    for i in range(7):
        for j in range(7):
            if i != j:
                D[i, j] = Y[j, i] / Y[i, j]
    np.testing.assert_allclose(ChoppinRasch().fit(X).difficulty_, np.log(D).mean(axis=1), atol=1e-12)
    values, vectors = np.linalg.eig(D)
    leading = np.log(np.abs(vectors[:, np.argmax(values.real)].real))
    np.testing.assert_allclose(EigenvectorRasch().fit(X).difficulty_, leading - leading.mean(), atol=1e-10)
    np.testing.assert_allclose(EigenvectorRasch().fit(X).reciprocal_, D)


@BOTH
def test_two_items_are_a_log_ratio_without_errors(estimator):
    X = [[1, 0]] * 6 + [[0, 1]] * 2 + [[1, 1]] * 3
    fit = estimator().fit(X)
    assert fit.difficulty_[1] - fit.difficulty_[0] == pytest.approx(np.log(3))
    assert np.isnan(fit.se_).all()
    assert "no_standard_errors" in [one.code for one in fit.findings_]


@BOTH
def test_missing_pairs_are_counted_and_named(estimator):
    X = rasch(300, 6, seed=7).responses.to_dense()
    X[:150, 0] = np.nan
    X[150:, 1] = np.nan  # nobody answered both 0 and 1
    with pytest.raises(DesignError, match=r"1 of 15 pairs .*: \(0, 1\)\. "):
        estimator().fit(X)
    everyone_right = np.column_stack([X[:, 2:], np.ones(300)])
    with pytest.raises(DesignError, match=r"4 of 10 pairs .*\(0, 4\), \(1, 4\)"):
        estimator().fit(everyone_right)
    X[:150, 3:], X[150:, :3] = np.nan, np.nan
    with pytest.raises(DesignError, match=r"11 of 15 pairs .* and 6 more"):
        estimator().fit(X)
