"""How many people are erratic, and how many by chance."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data import Responses
from spectral_irt.inference.fit.person_fit import LIMIT, person_misfit
from spectral_irt.persons.residuals import person_mean_squares, standardized


def careless(share: float, n: int = 1500, m: int = 30, seed: int = 1) -> Responses:
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(n, 1)) - rng.normal(size=m)
    logit[: int(share * n)] = 0.0
    return Responses.from_wide((rng.random((n, m)) < 1 / (1 + np.exp(-logit))).astype(float))


def test_the_share_is_that_of_the_table_of_people() -> None:
    responses = careless(0.1)
    study = SpectralRasch(se="none").fit(responses).analyse(responses)
    found = person_misfit(responses, study.calibration.difficulty)
    columns = columns_of(study.persons)
    known = np.isfinite(columns["infit"])
    erratic = (columns["infit_z"][known] > LIMIT) | (columns["outfit_z"][known] > LIMIT)
    assert found is not None
    assert (found.n_people, found.share) == (known.sum(), erratic.mean())
    assert found.too_many
    assert "expected are" in found.findings[0].sentence


@pytest.mark.slow
def test_chance_is_what_the_model_does_with_known_abilities() -> None:
    """20 data sets of the same people and items from the truth: their share is the one by chance, to 3 errors."""
    data = simulate.rasch(1500, 25, seed=2)
    found = person_misfit(data.responses, SpectralRasch(se="none").fit(data.responses).difficulty_)
    assert found is not None
    shares = []
    for seed in range(20):
        again = simulate.rasch(1500, 25, difficulty=data.difficulty, ability=data.ability, seed=100 + seed).responses
        other = person_misfit(again, data.difficulty)
        assert other is not None
        shares.append(other.share)
    error = np.hypot(np.std(shares) / np.sqrt(20), np.std(shares) / 2)  # 4 replicates stand behind `chance`
    assert abs(found.chance - np.mean(shares)) < 3 * error
    assert not found.findings


def test_few_people_and_endless_tests_are_left_alone() -> None:
    small = simulate.rasch(60, 20, seed=1)
    assert person_misfit(small.responses, small.difficulty) is None
    long = simulate.rasch(120, 1500, seed=1)
    assert person_misfit(long.responses, long.difficulty) is None


def test_an_item_many_logits_away_makes_nobody_misfit() -> None:
    """20 items near people and one 10 logits off: answers as expected have no outfit z above 2, and the right sign."""
    rng = np.random.default_rng(3)
    beta = np.append(rng.normal(size=20), 10.0)
    theta = rng.normal(size=2000)
    x = rng.random((2000, 21)) < 1 / (1 + np.exp(beta - theta[:, None]))
    x[:, 20] = False  # as expected: the chance of a right answer is 1 in 20,000
    found = person_mean_squares(Responses.from_wide(x.astype(float)), beta, theta)
    known = np.isfinite(found.outfit)
    assert np.mean(found.outfit_z[known] > LIMIT) < 0.03
    low = known & (found.outfit < 0.5)
    assert low.sum() > 20
    assert (found.outfit_z[low] < 0.5).all()
    x[:100, 20] = True
    surprising = person_mean_squares(Responses.from_wide(x.astype(float)), beta, theta)
    assert (surprising.outfit_z[:100][np.isfinite(surprising.outfit[:100])] > LIMIT).all()


def test_a_z_in_reach_is_wilson_and_hilfertys_and_moves_on_without_a_jump() -> None:
    square = np.array([0.27, 1.0, 3.0])
    for q in (0.2, 1.0, 2.0):
        np.testing.assert_allclose(standardized(square, np.full(3, q)), 3 * (np.cbrt(square) - 1) / q + q / 3)
    np.testing.assert_allclose(*(standardized(square, np.full(3, q)) for q in (2.0, 2.0 + 1e-9)), atol=1e-6)
    assert standardized(np.array([0.27]), np.array([10.0]))[0] < 0
