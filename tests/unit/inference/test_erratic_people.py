"""How many people are erratic, and how many by chance."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.inference.erratic_people import LIMIT, erratic_people
from spectral_irt.responses import Responses


def careless(share: float, n: int = 1500, m: int = 30, seed: int = 1) -> Responses:
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(n, 1)) - rng.normal(size=m)
    logit[: int(share * n)] = 0.0
    return Responses.from_wide((rng.random((n, m)) < 1 / (1 + np.exp(-logit))).astype(float))


def test_the_share_is_that_of_the_table_of_people() -> None:
    responses = careless(0.1)
    study = SpectralRasch(se="none").fit(responses).analyse(responses)
    found = erratic_people(responses, study.calibration.difficulty)
    columns = study.person_columns()
    known = np.isfinite(columns["infit"])
    erratic = (columns["infit_z"][known] > LIMIT) | (columns["outfit_z"][known] > LIMIT)
    assert found is not None
    assert (found.n_people, found.share) == (known.sum(), erratic.mean())
    assert found.too_many
    assert "where chance has" in found.findings[0].sentence


@pytest.mark.slow
def test_chance_is_what_the_model_does_with_known_abilities() -> None:
    """20 data sets of the same people and items from the truth: their share is the one by chance, to 3 errors."""
    data = simulate.rasch(1500, 25, seed=2)
    found = erratic_people(data.responses, SpectralRasch(se="none").fit(data.responses).difficulty_)
    assert found is not None
    shares = []
    for seed in range(20):
        again = simulate.rasch(1500, 25, difficulty=data.difficulty, ability=data.ability, seed=100 + seed).responses
        other = erratic_people(again, data.difficulty)
        assert other is not None
        shares.append(other.share)
    error = np.hypot(np.std(shares) / np.sqrt(20), np.std(shares) / 2)  # 4 replicates stand behind `chance`
    assert abs(found.chance - np.mean(shares)) < 3 * error
    assert not found.findings


def test_few_people_and_endless_tests_are_left_alone() -> None:
    small = simulate.rasch(60, 20, seed=1)
    assert erratic_people(small.responses, small.difficulty) is None
    long = simulate.rasch(120, 1500, seed=1)
    assert erratic_people(long.responses, long.difficulty) is None
