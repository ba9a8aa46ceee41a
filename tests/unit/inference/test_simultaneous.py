"""Ranks of all items at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import studentized_range

from spectral_irt.inference.ranks.intervals import largest_errors, simultaneous_ranks, square_root, surely_ranked


def obvious(errors: np.ndarray, se: np.ndarray, covariance: np.ndarray) -> float:
    m = len(se)
    return max(
        abs(errors[i] - errors[j]) / np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
        for i in range(m)
        for j in range(i)
    )


def test_equal_errors_have_the_studentized_range() -> None:
    """Tukey's distribution, with infinitely many degrees of freedom: T = range / sqrt(2)."""
    for m in (3, 40):
        found = largest_errors(np.ones(m), rng=np.random.default_rng(1))
        assert len(found) == 2000
        for level in (0.5, 0.9):
            exact = studentized_range.ppf(level, m, np.inf) / np.sqrt(2)
            # The share of draws below the exact quantile has a standard error of 0.011 or less.
            assert np.mean(found <= exact) == pytest.approx(level, abs=0.035)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.slow
def test_largest_error_is_that_of_all_pairs(correlated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving out pairs loses none, with very different standard errors and with blocks of items that err together."""
    rng = np.random.default_rng(2)
    m = 150
    covariance = np.diag(rng.lognormal(-2, 1.5, size=m))
    if correlated:
        covariance += 0.8 * np.kron(np.eye(3), np.ones((50, 50)))
    se = np.sqrt(np.diag(covariance))
    monkeypatch.setattr("spectral_irt.inference.ranks.intervals.DRAWS", 20)
    monkeypatch.setattr("spectral_irt.inference.ranks.intervals.LEAST_DRAWS", 20)
    monkeypatch.setattr("spectral_irt.inference.ranks.intervals.CELLS", 1000)
    monkeypatch.setattr("spectral_irt.inference.ranks.intervals.FARTHEST", 4)
    found = largest_errors(se, covariance=covariance if correlated else None, rng=np.random.default_rng(3))
    noise = np.random.default_rng(3)
    errors = noise.standard_normal((20, m)) @ square_root(covariance).T if correlated else None
    for d, value in enumerate(found):
        error = errors[d] if errors is not None else se * noise.standard_normal(m)
        assert value == pytest.approx(obvious(error, se, covariance), rel=1e-7)


def test_root_of_a_singular_covariance() -> None:
    centering = np.eye(30) - 1 / 30
    root = square_root(centering)
    np.testing.assert_allclose(root @ root.T, centering, atol=1e-8)
    indefinite = centering - 1e-6 * np.outer(np.ones(30), np.ones(30)) / 30
    root = square_root(indefinite)
    np.testing.assert_allclose(root @ root.T, centering, atol=1e-5)


def test_counting_what_is_sure() -> None:
    beta, se = np.array([3.0, 0.0, 0.5, -3.0]), np.full(4, 0.5)
    # A difference of 2.5 is 3.5 standard errors of it, one of 0.5 less than one.
    low, high = surely_ranked(beta, se, 3.0)
    assert (low.tolist(), high.tolist()) == ([1, 2, 2, 4], [1, 3, 3, 4])
    low, high = surely_ranked(beta, se, 100.0)
    assert (low.tolist(), high.tolist()) == ([1] * 4, [4] * 4)
    together = np.full((4, 4), 0.2499) + np.diag(np.full(4, 0.0001))
    low, high = surely_ranked(beta, se, 3.0, together)
    assert (low.tolist(), high.tolist()) == ([1, 3, 2, 4], [1, 3, 2, 4])


def test_one_item() -> None:
    low, high = simultaneous_ranks(np.zeros(1), np.ones(1), rng=np.random.default_rng(0))
    assert (low.tolist(), high.tolist()) == ([1], [1])


def test_wrong_orders_are_as_rare_as_said() -> None:
    """Pairs of nearly equal items far from all others: any wrong order makes a rank wrong, and still 95% are right."""
    rng = np.random.default_rng(6)
    beta = np.repeat(np.arange(10) * 10.0, 2) + np.tile([0.0, 1e-6], 10)
    rank = 20 - np.argsort(np.argsort(beta))
    critical = np.quantile(largest_errors(np.ones(20), rng=rng), 0.9)

    def covered(c: float) -> float:
        inside = []
        for _ in range(300):
            low, high = surely_ranked(beta + rng.normal(size=20), np.ones(20), c)
            inside.append(np.all((low <= rank) & (rank <= high)))
        return float(np.mean(inside))

    assert covered(critical) >= 0.95
    # At the 5% point of a single pair each is right with probability .975; 300 data sets leave an error of .024.
    assert covered(1.96) == pytest.approx(0.975**10, abs=0.08)


def test_many_items_are_ranked_without_looking_at_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are rounded up to levels: intervals hold those of all pairs, and are hardly wider."""
    rng = np.random.default_rng(5)
    m = 12_000
    beta, se = rng.normal(size=m), rng.lognormal(-1.5, 0.4, m)
    few = rng.choice(m, 300, replace=False)
    apart, enough = beta[few, None] - beta, 3.0 * np.hypot(se[few, None], se)
    low, high = 1 + np.sum(apart < -enough, axis=1), m - np.sum(apart > enough, axis=1)

    def refuse(m: int) -> None:
        raise AssertionError("all pairs")

    monkeypatch.setattr("spectral_irt.inference.ranks.intervals.some_rows", refuse)
    found = surely_ranked(beta, se, 3.0)
    assert np.all(found[0][few] <= low)
    assert np.all(high <= found[1][few])
    assert np.mean(found[1][few] - found[0][few]) < 1.02 * np.mean(high - low)
    assert np.max(simultaneous_ranks(beta, se, rng=rng)[1]) <= m
