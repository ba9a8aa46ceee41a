"""The theorems' numbers, by hand and against simulated errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.errors import OptionError
from spectral_irt.inference.bounds import (
    floor,
    information,
    least_difference,
    lower_bound,
    lower_bound_two_items,
    spread,
    upper_bound,
    upper_bound_many_items,
)


def test_upper_bound_by_hand() -> None:
    bound = upper_bound(1_000_000, 5, 0.5, kappa=0.1, gamma=0.2)
    pairs = 250_000
    expected = 96 / math.sqrt(3) * math.exp(0.4) / 0.2 * math.sqrt(math.log(pairs)) / math.sqrt(pairs)  # log > m
    assert bound.value == pytest.approx(expected)
    assert [condition.need for condition in bound.conditions] == pytest.approx(
        [101 * math.log(5), 30 * 144 * math.exp(0.4) / 0.04 * math.log(5)]
    )
    assert [condition.have for condition in bound.conditions] == [pairs, pairs]
    assert [condition.holds for condition in bound.conditions] == [True, False]  # 250,000 against 259,000
    assert not bound.holds
    assert upper_bound(1_100_000, 5, 0.5, kappa=0.1, gamma=0.2).holds
    assert bound.probability == pytest.approx(1 - math.exp(-0.04 * pairs / (1440 * math.exp(0.4))), abs=1e-9)


def test_upper_bound_of_many_items_by_hand() -> None:
    bound = upper_bound_many_items(10_000, 400, 0.25, kappa=0.5, gamma=0.1)
    assert bound.value == pytest.approx(96 / math.sqrt(2) * math.exp(2) / 0.1 * math.sqrt(400 / 2500))
    seen = bound.conditions[-1]
    assert (seen.have, seen.need) == (100, pytest.approx(101 * math.log(10_000)))
    assert not bound.holds
    # Sharper than the other by sqrt(p), but for the constant.
    other = upper_bound(10_000, 400, 0.25, kappa=0.5, gamma=0.1)
    assert bound.value / other.value == pytest.approx(math.sqrt(3 / 2) * math.sqrt(0.25))


def test_lower_bounds_by_hand() -> None:
    assert lower_bound(1000, 20, 0.1).value == pytest.approx(0.8)
    assert lower_bound(1000, 20, 0.1).holds
    assert lower_bound_two_items(1000, 0.1).value == pytest.approx(0.1)
    assert lower_bound_two_items(1000, 0.1).holds
    assert not lower_bound_two_items(1000, 0.1, n_items=3).holds


def test_floor_is_that_of_the_simulation() -> None:
    data = simulate.rasch(300, 12, design="sampled", p=0.4, seed=1)
    told = information(data.responses, data.difficulty, data.ability)
    np.testing.assert_allclose(told, data.information())
    assert math.sqrt(floor(told).value / 12) == pytest.approx(data.floor_rmse())
    # Never below the paper's, which takes the largest information there can be.
    counts = data.responses.item_counts
    assert floor(told).value >= (4 / counts).sum()


def test_centered_floor_is_the_constrained_bound() -> None:
    told = np.array([3.0, 5.0, 11.0])
    inverse = np.diag(1 / told)
    one = np.ones(3)
    constrained = inverse - np.outer(inverse @ one, inverse @ one) / (one @ inverse @ one)
    assert floor(told, centered=True).value == pytest.approx(np.trace(constrained))
    with_silent = floor([3.0, 0.0, 5.0])
    assert with_silent.value == pytest.approx(1 / 3 + 1 / 5)
    assert not with_silent.holds
    assert math.isnan(floor([0.0]).value)


def test_gamma_and_kappa() -> None:
    beta, theta = np.array([-1.0, 0.3, 0.9]), np.array([-2.0, 0.1, 1.5])
    p = 1 / (1 + np.exp(beta - theta[:, None]))
    slow = min(p[u, i] * (1 - p[u, j]) for u in range(3) for i in range(3) for j in range(3) if i != j)
    assert least_difference(beta, theta) == pytest.approx(slow)
    assert spread(beta) == pytest.approx(1.9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(150_000, 1.0), (150_000, 0.7)])
def test_errors_lie_between_the_bounds(n: int, p: float) -> None:
    """Where the conditions hold, the error of the paper's estimator is below the upper bound (by far); over a few
    draws its mean square is above the floor."""
    truth = np.array([0.1, -0.1])
    errors, floors = [], []
    for seed in range(5):
        data = simulate.rasch(n, 2, design="sampled", p=p, difficulty=truth, ability_sd=0.2, seed=seed)
        fit = SpectralRasch(weighting="pairs", regularization=0, se="none").fit(data.responses)
        errors.append(np.sum((fit.difficulty_ - data.difficulty) ** 2))
        floors.append(floor(data.information(), centered=True).value)
    gamma = least_difference(truth, np.clip(data.ability, -0.7, 0.7))  # the bound is for bounded abilities
    bound = upper_bound(n, 2, p, kappa=spread(truth), gamma=gamma)
    assert bound.conditions[0].holds
    assert np.sqrt(np.max(errors)) < bound.value
    assert np.mean(errors) > 0.3 * np.mean(floors)  # five draws of one number: a wide margin
    assert np.mean(errors) < 10 * np.mean(floors)


def test_conditions_can_hold() -> None:
    truth = np.array([0.05, -0.05])
    data = simulate.rasch(150_000, difficulty=truth, ability_sd=0.0, seed=1)
    gamma = least_difference(data.difficulty, data.ability)
    bound = upper_bound(150_000, 2, kappa=spread(data.difficulty), gamma=gamma)
    assert bound.holds
    assert bound.probability == pytest.approx(1.0, abs=2e-2)
    fit = SpectralRasch.paper(nu=0).fit(data.responses)
    error = float(np.linalg.norm(fit.difficulty_ - data.difficulty))
    assert 0 < error < bound.value


@pytest.mark.slow
def test_mean_squared_error_is_above_the_floor() -> None:
    """Unregularized estimates of a small test, over many draws."""
    squared, floors = [], []
    for seed in range(60):
        data = simulate.rasch(400, 8, seed=seed)
        fit = SpectralRasch(regularization=0, se="none").fit(data.responses)
        squared.append(np.sum((fit.difficulty_ - data.difficulty) ** 2))
        floors.append(floor(data.information(), centered=True).value)
    assert 0.95 < np.mean(squared) / np.mean(floors) < 1.6


@pytest.mark.parametrize(
    "design", [{"n_persons": 1000, "n_items": 20}, {"n_persons": 3000, "n_items": 50, "design": "sampled", "p": 0.2}]
)
def test_error_over_floor(design: dict[str, object]) -> None:
    data = simulate.rasch(**design, seed=2)  # type: ignore[arg-type]
    fit = SpectralRasch(regularization=0).fit(data.responses)
    true_ratio = np.sqrt((fit.se_**2).sum() / floor(data.information(), centered=True).value)
    found = fit.analyse(data.responses).error_over_floor()
    assert found == pytest.approx(true_ratio, rel=0.05)
    assert 0.97 < found < 1.3
    assert math.isnan(SpectralRasch(se="none").fit(data.responses).analyse(data.responses).error_over_floor())


def test_error_over_floor_under_a_prior() -> None:
    """Sparse data: without the prior in it, the floor would be far above the error."""
    data = simulate.rasch(200, 300, design="sampled", p=0.1, seed=3)
    fit = SpectralRasch().fit(data.responses)
    assert fit.regularization_.kind == "neighbors"
    assert 0.95 < fit.analyse(data.responses).error_over_floor() < 1.3


def test_error_over_floor_with_an_item_nobody_answered() -> None:
    answers = simulate.rasch(200, 6, seed=1).responses.to_dense()
    answers[:, 2] = np.nan
    fit = SpectralRasch().fit(answers)
    assert 0.8 < fit.analyse(answers).error_over_floor() < 1.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_persons": 0}, "needs a person"),
        ({"n_items": 1}, "two items"),
        ({"p": 0.0}, "`p` is 0.0"),
        ({"p": 1.5}, "`p` is 1.5"),
        ({"kappa": -1.0}, "kappa is -1.0"),
        ({"gamma": 0.3}, "gamma is 0.3"),
        ({"gamma": math.nan}, "gamma is nan"),
    ],
)
def test_impossible_settings(arguments: dict[str, float], message: str) -> None:
    every = {"n_persons": 10, "n_items": 3, "p": 0.5, "kappa": 1.0, "gamma": 0.1, **arguments}
    n, m, p = every.pop("n_persons"), every.pop("n_items"), every.pop("p")
    for function in (upper_bound, upper_bound_many_items):
        with pytest.raises(OptionError, match=message):
            function(n, m, p, **every)  # type: ignore[arg-type]


def test_no_overflow() -> None:
    assert upper_bound(10, 3, kappa=400.0, gamma=0.1).value == math.inf
    assert upper_bound(10, 3, kappa=400.0, gamma=0.1).probability == 0
