"""Components of the design, found with the answers at hand and from sums over people alone."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import Responses
from spectral_irt.responses.design import _components_by_sums, _components_of


@pytest.mark.parametrize("seed", range(30))
def test_sums_alone_find_the_same_components(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (rng.integers(2, 25), rng.integers(2, 12))).astype(float)
    table[rng.random(table.shape) < rng.uniform(0.2, 0.85)] = np.nan
    responses = Responses.from_wide(table)
    searched, summed = _components_of(responses), _components_by_sums(responses)
    same = [labels[:, None] == labels for labels in (searched, summed)]
    np.testing.assert_array_equal(*same)


def test_kinds_of_people() -> None:
    people = [[1, None], [None, None], [1, 1], [0, 0], [1, 0], [0, 1], [0, None]]
    assert Responses.from_wide(people).kinds_of_people.tolist() == [1, 2, 1, 1, 2]
