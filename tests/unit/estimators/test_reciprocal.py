"""Choppin's row means and the eigenvector method: closed forms, missing pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dense import dense_pairs
from spectral_irt import SpectralRasch
from spectral_irt.errors import DesignError
from spectral_irt.estimators.reciprocal import (
    ChoppinRasch,
    EigenvectorRasch,
    choppin_difficulty,
    eigenvector_difficulty,
    reciprocal_matrix,
)
from spectral_irt.simulate import rasch

BOTH = pytest.mark.parametrize("estimator", [ChoppinRasch, EigenvectorRasch])


@given(arrays(float, st.integers(2, 12), elements=st.floats(-4, 4)))
def test_exact_reciprocal_matrix_gives_back_the_difficulties(beta):
    matrix = np.exp(np.subtract.outer(beta, beta))
    np.testing.assert_allclose(choppin_difficulty(matrix), beta - beta.mean(), atol=1e-12)
    found, n_iter, residual = eigenvector_difficulty(matrix)
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
    np.testing.assert_allclose(reciprocal_matrix(Y), D)
    np.testing.assert_allclose(ChoppinRasch().fit(X).difficulty_, np.log(D).mean(axis=1), atol=1e-12)
    values, vectors = np.linalg.eig(D)
    leading = np.log(np.abs(vectors[:, np.argmax(values.real)].real))
    np.testing.assert_allclose(EigenvectorRasch().fit(X).difficulty_, leading - leading.mean(), atol=1e-10)
    np.testing.assert_allclose(EigenvectorRasch().fit(X).reciprocal_, D)


@BOTH
def test_two_items_are_a_log_ratio(estimator):
    X = [[1, 0]] * 6 + [[0, 1]] * 2 + [[1, 1]] * 3
    fit = estimator().fit(X)
    assert fit.difficulty_[1] - fit.difficulty_[0] == pytest.approx(np.log(3))
    assert np.isnan(fit.se_).all()
    assert "no_standard_errors" in [one.code for one in fit.findings_]


@BOTH
def test_recovers_the_truth(estimator):
    data = rasch(4000, 15, seed=6)
    fit = estimator().fit(data.responses)
    z = (fit.difficulty_ - data.difficulty) / SpectralRasch().fit(data.responses).se_
    assert 0.25 < np.mean(z**2) < 2.2  # chi square with 14 degrees of freedom over 15: sd 0.35


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


@BOTH
def test_only_five_missing_pairs_are_named(estimator):
    X = np.full((200, 8), np.nan)
    X[:100, :4] = rasch(100, 4, seed=1).responses.to_dense()
    X[100:, 4:] = rasch(100, 4, seed=2).responses.to_dense()
    with pytest.raises(DesignError, match=r"16 of 28 pairs .* and 11 more"):
        estimator().fit(X)
