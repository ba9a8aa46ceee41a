"""Is one slope enough: exact moments for few people, and a level that holds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spectral_irt import Responses, SpectralRasch
from spectral_irt.inference.items.slopes import _given_the_sum, slopes


def test_moments_given_the_sum_by_enumeration() -> None:
    theta = np.array([-1.3, -0.2, 0.4, 1.9])
    n = np.array([[1.0, 1, 1, 1], [1, 0, 2, 1], [2, 2, 1, 0]])
    r = np.array([[1.0, 0, 1, 0], [0, 0, 2, 1], [1, 0, 0, 0]])
    score, variance, varies = _given_the_sum(n, r, theta)
    apart = theta - (n.sum(axis=0) @ theta) / n.sum()
    for i in range(3):
        each = np.repeat(apart, n[i].astype(int))
        answers = np.array([x for x in product((0, 1), repeat=len(each)) if sum(x) == r[i].sum()])
        t = answers @ each
        chance = np.exp(t) / np.exp(t).sum()
        mean = chance @ t
        spread = chance @ (t - mean) ** 2
        assert score[i] == pytest.approx(r[i] @ apart - mean, abs=1e-12)
        assert variance[i] == pytest.approx(spread, rel=1e-10)
        assert varies[i] == pytest.approx(chance @ (t - mean) ** 4 / spread**2 - 1, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("models", [9, 30])
def test_one_slope_is_enough_where_it_is(models: int) -> None:
    """With nine models, chi-square on normal scores rejected three true models of four."""
    ratios = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        ability, difficulty = random.normal(0.8, 1, models), random.normal(0, 1.3, 300)
        right = random.random((models, 300)) < 1 / (1 + np.exp(difficulty - ability[:, None]))
        found = slopes(
            Responses.from_wide(right.astype(float)), -SpectralRasch(se="none").fit(1.0 * right.T).difficulty_
        )
        ratios.append(found.chi2 / found.df)
    # twenty means of some 270 squares, each with a variance of 2 at most
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 270 / 20))
