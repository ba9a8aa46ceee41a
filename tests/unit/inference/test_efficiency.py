"""The least possible error of difficulties, and the estimated one beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reproduction.bounds import kappa, least_difference, lower_bound
from spectral_irt import SpectralRasch, simulate
from spectral_irt.inference.efficiency import floor, item_information


def test_floor_is_that_of_the_simulation() -> None:
    data = simulate.rasch(300, 12, design="sampled", p=0.4, seed=1)
    told = item_information(data.responses, data.difficulty, data.ability)
    np.testing.assert_allclose(told, data.information())
    assert math.sqrt(floor(told) / 12) == pytest.approx(data.floor_rmse())
    # Never below the paper's, which takes the largest information there can be.
    assert floor(told) >= (4 / data.responses.item_counts).sum()
    assert lower_bound(1000, 20, 0.1) == pytest.approx(0.8)


def test_centered_floor_is_the_constrained_bound() -> None:
    told = np.array([3.0, 5.0, 11.0])
    inverse = np.diag(1 / told)
    one = np.ones(3)
    constrained = inverse - np.outer(inverse @ one, inverse @ one) / (one @ inverse @ one)
    assert floor(told, centered=True) == pytest.approx(np.trace(constrained))
    assert floor([3.0, 0.0, 5.0]) == pytest.approx(1 / 3 + 1 / 5)
    assert math.isnan(floor([0.0]))


def test_gamma_and_kappa() -> None:
    beta, theta = np.array([-1.0, 0.3, 0.9]), np.array([-2.0, 0.1, 1.5])
    p = 1 / (1 + np.exp(beta - theta[:, None]))
    slow = min(p[u, i] * (1 - p[u, j]) for u in range(3) for i in range(3) for j in range(3) if i != j)
    assert least_difference(beta, theta) == pytest.approx(slow)
    assert kappa(beta) == pytest.approx(1.9)


@pytest.mark.slow
def test_mean_squared_error_is_above_the_floor() -> None:
    """Unregularized estimates of a small test, over many draws."""
    squared, floors = [], []
    for seed in range(60):
        data = simulate.rasch(400, 8, seed=seed)
        fit = SpectralRasch(regularization=0, se="none").fit(data.responses)
        squared.append(np.sum((fit.difficulty_ - data.difficulty) ** 2))
        floors.append(floor(data.information(), centered=True))
    assert 0.95 < np.mean(squared) / np.mean(floors) < 1.6


@pytest.mark.parametrize(
    "design", [{"n_persons": 1000, "n_items": 20}, {"n_persons": 3000, "n_items": 50, "design": "sampled", "p": 0.2}]
)
def test_error_over_floor(design: dict[str, object]) -> None:
    data = simulate.rasch(**design, seed=2)  # type: ignore[arg-type]
    fit = SpectralRasch(regularization=0).fit(data.responses)
    true_ratio = np.sqrt((fit.se_**2).sum() / floor(data.information(), centered=True))
    found = fit.analyse(data.responses).error_over_floor()
    assert found == pytest.approx(true_ratio, rel=0.05)
    assert 0.97 < found < 1.3
    assert math.isnan(SpectralRasch(se="none").fit(data.responses).analyse(data.responses).error_over_floor())


def test_error_over_floor_under_a_prior() -> None:
    """Sparse data: without the prior in it, the floor would be far above the error. And an item nobody answered."""
    data = simulate.rasch(200, 300, design="sampled", p=0.1, seed=3)
    fit = SpectralRasch().fit(data.responses)
    assert fit.regularization_.kind == "neighbors"
    assert 0.95 < fit.analyse(data.responses).error_over_floor() < 1.3
    answers = simulate.rasch(200, 6, seed=1).responses.to_dense()
    answers[:, 2] = np.nan
    assert 0.8 < SpectralRasch().fit(answers).analyse(answers).error_over_floor() < 1.5
