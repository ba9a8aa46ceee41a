"""Pairwise likelihood: people's scores against loops, the sandwich."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from dense import AWKWARD, dense_pairs
from spectral_irt.chain.paper import pair_counts
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError
from spectral_irt.estimators.pairwise import PairwiseRasch, pairwise_difficulty, person_scores
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
    monkeypatch.setattr(import_module("spectral_irt.estimators.pairwise"), "PAIRS", pairs_at_a_time)
    beta = np.array([-0.7, 0.2, 0.9, -0.4, 0.1, 0.3, -0.4])
    for X in (AWKWARD, rasch(40, 7, design="sampled", p=0.6, seed=1).responses.to_dense()):
        found = person_scores(Responses.from_wide(X).blocks[0], beta, weighting).toarray()
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


def test_two_items_are_a_log_ratio():
    fit = pairwise_difficulty(np.array([[0.0, 7.0], [2.0, 0.0]]))
    assert fit.difficulty[1] - fit.difficulty[0] == pytest.approx(np.log(7 / 2), abs=1e-9)


def test_exact_counts_give_back_the_difficulties():
    beta = np.array([-1.0, 0.3, 0.0, 0.7])
    pi = np.exp(beta)
    Y = pi[None, :] / np.add.outer(pi, pi)  # share of pairs in which j is the wrong one
    np.fill_diagonal(Y, 0)
    np.testing.assert_allclose(pairwise_difficulty(Y).difficulty, beta, atol=1e-8)


def test_recovers_the_truth_within_its_errors():
    data = rasch(3000, 30, design="popularity", n_responses=30_000, seed=5)
    for weighting in ("pairs", "persons"):
        fit = PairwiseRasch(weighting=weighting).fit(data.responses)
        z = (fit.difficulty_ - data.difficulty) / fit.se_
        assert 0.4 < np.mean(z**2) < 1.9  # chi square with 29 degrees of freedom over 30: sd 0.26


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
    dense = pairwise_difficulty(pair_counts(data, dense=True))
    sparse = pairwise_difficulty(pair_counts(data, dense=False))
    np.testing.assert_allclose(dense.difficulty, sparse.difficulty, atol=1e-12)


def test_many_items_use_the_diagonal(monkeypatch):
    data = rasch(800, 60, seed=3).responses
    dense = PairwiseRasch().fit(data)
    monkeypatch.setattr(import_module("spectral_irt.estimators.pairwise"), "DENSE_ITEMS", 10)
    quick = PairwiseRasch().fit(data)
    np.testing.assert_allclose(quick.se_, dense.se_, rtol=0.1)
    assert "approximate_se" in [f.code for f in quick.findings_]


def test_bad_options_are_refused():
    with pytest.raises(OptionError):
        PairwiseRasch(weighting="ability").fit(rasch(50, 4, seed=1).responses)
