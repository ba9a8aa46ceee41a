"""Ranks of people: the order by the estimates, and intervals that hold for all at once."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.inference.ranks.people import person_ranks


def test_places_ties_and_people_without_an_ability() -> None:
    ability = np.array([0.5, 2.0, np.nan, 0.5, -np.inf, -3.0])
    found = person_ranks(ability, np.array([0.1, 0.1, np.nan, 0.1, np.inf, 0.1]))
    assert found["rank"].tolist() == [2, 1, 0, 2, 0, 4]
    assert found["rank_low"].tolist() == [2, 1, 0, 2, 0, 4]
    assert found["rank_high"].tolist() == [3, 1, 0, 3, 0, 4]
    np.testing.assert_allclose(found["ci_high"][[0, 5]] - ability[[0, 5]], 1.959964 * 0.1, rtol=1e-6)
    assert np.isnan(found["ci_low"][[2, 4]]).all()


def test_alone_and_not_at_all() -> None:
    assert person_ranks(np.array([1.0]), np.array([0.5]))["rank_high"].tolist() == [1]
    assert person_ranks(np.empty(0), np.empty(0))["rank"].tolist() == []


@pytest.mark.slow
def test_few_people_many_items() -> None:
    """Whole fits: 8 people, 400 items whose difficulties 8 answers each must tell."""
    ability = np.linspace(-0.5, 0.5, 8)
    missed = 0
    for seed in range(60):
        data = simulate.rasch(8, 400, ability=ability, seed=seed).responses
        table = columns_of(SpectralRasch(se="none").fit(data).analyse(data).person_ranking)
        assert table["rank"].tolist() == sorted(table["rank"].tolist())
        true_rank = 8 - np.array([int(person) for person in table["person"]])
        missed += bool(np.any((table["rank_low"] > true_rank) | (table["rank_high"] < true_rank)))
    assert missed <= 7  # 3 expected at most, 1.7 the se
