"""The sandwich against its definition, and the cheaper way against the dense one."""

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.estimators.spectral_errors import choose_method


def contributions(table, beta, weighting):
    """Y and the matrix of g_li = sum_j h_ij (pi_j X_j (1 - X_i) - pi_i X_i (1 - X_j))."""
    n, m = table.shape
    pi = np.exp(beta)
    y, g = np.zeros((m, m)), np.zeros((n, m))
    for person, row in enumerate(table):
        seen = np.flatnonzero(~np.isnan(row))
        if not len(seen) or row[seen].min() == row[seen].max():
            continue
        h = np.full((m, m), 1.0 if weighting == "pairs" else 1 / len(seen))
        if weighting == "ability":
            share = row[seen].mean()
            spread = np.sqrt(1 + beta[seen].var() / 2.89)
            t = np.exp(beta[seen].mean() + spread * np.log(share / (1 - share)))
            p = t / (t + pi[seen])
            h = t / np.sum(p * (1 - p)) / np.outer(t + pi, t + pi)
        for i in seen:
            for j in seen:
                y[i, j] += h[i, j] * row[i] * (1 - row[j])
                g[person, i] += h[i, j] * (pi[j] * row[j] * (1 - row[i]) - pi[i] * row[i] * (1 - row[j]))
    return y, g


@pytest.mark.parametrize("weighting", ["pairs", "persons", "ability"])
def test_dense_sandwich_is_the_formula(weighting):
    table = simulate.rasch(150, 6, design="sampled", p=0.8, seed=4).responses.to_dense()
    fit = SpectralRasch(refine=False, weighting=weighting, regularization=0, se="dense").fit(table)
    y, g = contributions(table, fit.difficulty_, weighting)
    flow = np.exp(fit.difficulty_)[:, None] * y
    inverse = np.linalg.pinv(np.diag(flow.sum(axis=1)) - flow.T)
    expected = inverse @ g.T @ g @ inverse.T
    # Ability weights are taken one round before the end: equal to about the square of a standard error.
    rtol = 1e-2 if weighting == "ability" else 1e-8
    np.testing.assert_allclose(fit.se_, np.sqrt(np.diag(expected)), rtol=rtol)
    np.testing.assert_allclose(fit.covariance().sum(axis=0), 0, atol=1e-10)


def test_two_items_have_the_closed_form():
    """beta_1 - beta_2 = log(Y_21 / Y_12) with variance 1 / Y_12 + 1 / Y_21."""
    table = np.array([[1, 0]] * 30 + [[0, 1]] * 20 + [[1, 1]] * 10 + [[0, 0]] * 5, dtype=float)
    fit = SpectralRasch(refine=False, regularization=0).fit(table)
    assert fit.difficulty_[0] - fit.difficulty_[1] == pytest.approx(np.log(20 / 30), abs=1e-12)
    assert 2 * fit.se_[0] == pytest.approx(np.sqrt(1 / 20 + 1 / 30), rel=1e-10)


def test_one_pass_is_close_where_the_chain_mixes_fast():
    data = simulate.rasch(4000, 600, design="popularity", n_responses=110_000, seed=3).responses
    dense = SpectralRasch(refine=False, se="dense", regularization=0).fit(data)
    quick = SpectralRasch(refine=False, se="one-pass", regularization=0).fit(data)
    assert dense.contraction_ < 0.3
    ratio = quick.se_ / dense.se_
    assert 0.98 < np.nanmin(ratio) <= np.nanmax(ratio) < 1.06


def test_the_choice():
    assert choose_method(20, 0.1, 1e5) == choose_method(10, 0.1, 1e12) == choose_method(3900, 0.95, 4e8) == "dense"
    assert choose_method(3900, 0.1, 4e8) == choose_method(27_000, 0.1, 1e10) == "one-pass"
    assert choose_method(3900, 0.5, 4e8) == choose_method(27_000, 0.95, 1e10) == "multiplier"
