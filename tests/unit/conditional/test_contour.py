"""The contour sum against the classical recursion, and where that fails; `test_exact_methods.py` enumerates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_irt.conditional.exact import Contour
from spectral_irt.data.block import Thresholds

pytestmark = pytest.mark.slow  # many short ones: seconds together

# Ten roundings of a number of order one; the contour sum leaves out 1e-16.
TOLERANCE = 1e-13


def column(beta):
    return np.asarray(beta, dtype=float)[None, :, None]


def moments(beta, score):
    found = Contour.of(column(beta), np.array([score]), np.array([len(beta)])).given
    return found.log_gamma[0], found.p[0, :, 0]


def recursion(beta, score):
    """log gamma and P by the classical recursion in 80-bit numbers, once for every item left out."""
    eps = np.exp(-np.asarray(beta, dtype=np.longdouble))

    def gammas(values):
        g = np.zeros(score + 1, dtype=np.longdouble)
        g[0] = 1
        for value in values:
            g[1:] = g[1:] + value * g[:-1]
        return g

    total = gammas(eps)[score]
    p = [eps[i] * gammas(np.delete(eps, i))[score - 1] / total for i in range(len(eps))]
    return float(np.log(total)), np.array(p, dtype=float)


@pytest.mark.parametrize(("n", "spread"), [(30, 1.0), (30, 4.0), (120, 1.0), (120, 0.1), (120, 3.0)])
def test_recursion(n, spread):
    beta = np.random.default_rng(n).normal(size=n) * spread
    for score in sorted({1, 2, 3, n // 5, n // 2, n - 7, n - 2, n - 1}):
        log_gamma, p = recursion(beta, score)
        ours, probabilities = moments(beta, score)
        assert abs(ours - log_gamma) < 1e-12 * max(1, abs(log_gamma))
        np.testing.assert_allclose(probabilities, p, rtol=1e-11, atol=TOLERANCE)


def test_pair_probabilities_obey_the_swap_identity():
    """P(X_i = 1, X_j = 0 | s) = eps_i (P_i - P_j) / (eps_i - eps_j), at a length no enumeration reaches."""
    n, score = 400, 150
    beta = np.random.default_rng(5).normal(size=n)
    sums = Contour.of(column(beta), np.array([score]), np.array([n]))
    b, c = (factor[:, :, 0] for factor in sums.pair_factors())
    p = sums.given.p[0, :, 0]
    both = (b @ b.transpose(0, 2, 1) - c @ c.transpose(0, 2, 1))[0]
    i, j = np.argmin(beta), np.argmax(beta)
    eps = np.exp(-beta)
    np.testing.assert_allclose(p[i] - both[i, j], eps[i] * (p[i] - p[j]) / (eps[i] - eps[j]), rtol=1e-12)
    np.fill_diagonal(both, p)
    np.testing.assert_allclose(both.sum(axis=1), score * p, rtol=1e-12)


@pytest.mark.parametrize("n", [1_500, 80_000])
def test_no_length_overflows(n):
    """Equal difficulties: P = s / n, whatever the common difficulty; gamma_s itself is beyond 10^400."""
    for score in (1, n // 3, n - 1):
        log_gamma, p = moments(np.full(n, 2.5), score)
        assert np.isfinite(log_gamma)
        np.testing.assert_allclose(p, score / n, rtol=1e-11)


def test_hopeless_spread_stays_finite():
    """Items so far apart that the score decides everything."""
    beta = np.array([-300.0, -40.0, 0.0, 0.5, 50.0, 400.0])
    for score in range(1, 6):
        log_gamma, p = moments(beta, score)
        assert np.isfinite(log_gamma)
        np.testing.assert_allclose(p.sum(), score, atol=1e-12)
        assert p.min() >= 0
        assert p.max() <= 1
    np.testing.assert_allclose(moments(beta, 2)[1], [1, 1, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(moments(beta, 3)[1][2], 1 / (1 + np.exp(-0.5)), atol=1e-12)


difficulties = st.lists(st.floats(-6, 6), min_size=2, max_size=60)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(difficulties, st.data())
def test_identities(beta, data):
    beta = np.array(beta)
    score = data.draw(st.integers(1, len(beta) - 1))
    shift = data.draw(st.floats(-20, 20))
    log_gamma, p = moments(beta, score)
    assert abs(p.sum() - score) < 1e-11  # the score is what was given
    moved, q = moments(beta + shift, score)
    np.testing.assert_allclose(q, p, atol=1e-11)  # abilities, and the origin, drop out
    assert abs(moved + shift * score - log_gamma) < 1e-9
    mirrored = moments(-beta, len(beta) - score)[1]
    np.testing.assert_allclose(mirrored, 1 - p, atol=1e-11)  # right and wrong change places
    assert np.all(np.diff(p[np.argsort(beta)]) <= 1e-12)  # the harder, the less likely


def test_a_thousand_items_of_five_categories():
    steps = Thresholds(np.full(1000, 4))
    beta = np.random.default_rng(0).normal(size=4000)
    cumulated = steps.cumulated(beta).T[1:, :, None]
    for score in (1, 700, 3999):
        found = Contour.of(cumulated, np.array([score]), np.array([4000])).given
        assert abs(found.passed.sum() - score) < 1e-9 * score
        assert np.isfinite(found.log_gamma[0])
