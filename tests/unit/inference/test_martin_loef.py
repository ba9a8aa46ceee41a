"""Martin-Löf's test by its definition; eRm's numbers are in tests/reference."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import ConditionalRasch, datasets, martin_loef, simulate
from spectral_irt.errors import DesignError, OptionError


def test_martin_loef_by_definition():
    data = datasets.load_lsat()
    labels = dict(zip(data.items.tolist(), "aabba", strict=True))
    found = martin_loef(data, labels)
    table = data.to_dense()
    sets = [[0, 1, 4], [2, 3]]
    scores = np.stack([table[:, chosen].sum(axis=1) for chosen in sets])
    term = 0.0
    for columns, sign in ((scores, 1), (table.sum(axis=1)[None], -1)):
        for count in np.unique(columns, axis=1, return_counts=True)[1]:
            term += sign * count * np.log(count / 1000)
    parts = [ConditionalRasch().fit(table[:, chosen]).loglik_ for chosen in sets]
    expected = 2 * (term + sum(parts) - ConditionalRasch().fit(table).loglik_)
    assert found.statistic == pytest.approx(expected)
    assert found.df == 5
    assert [one.tolist() for one in found.items] == [data.items[chosen].tolist() for chosen in sets]


def test_martin_loef_finds_two_abilities():
    first, second = (simulate.rasch(2000, 5, seed=seed).responses.to_dense() for seed in (1, 2))
    assert martin_loef(np.hstack([first, second]), [0] * 5 + [1] * 5).p < 1e-6
    assert martin_loef(simulate.rasch(2000, 10, seed=1).responses).p > 0.01


@pytest.mark.parametrize(
    ("table", "split", "error", "text"),
    [
        ([[1, 0, 1], [0, np.nan, 1], [0, 1, 0]], "median", DesignError, "1 of 3 people miss an answer"),
        ([[1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]], "median", DesignError, "no finite difficulty: 0"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], "thirds", OptionError, "it can be 'median', 'mean'"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], [1, 1, 1, 2], OptionError, "'2' has fewer"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], [1, 1, 1, 1], OptionError, "only one set"),
        ([[1, 0, 1, 0], [0, 1, 0, 1]], [1, 2], OptionError, "a label for each of the 4 items"),
    ],
)
def test_martin_loef_bad_input(table, split, error, text):
    with pytest.raises(error, match=text):
        martin_loef(np.array(table, dtype=float), split)
