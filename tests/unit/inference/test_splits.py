"""How people are divided: every kind of split by its definition, and what may not decide on a group."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from spectral_irt import Responses, simulate
from spectral_irt.errors import OptionError
from spectral_irt.inference.groups.grouping import by_label, divide, item_sets

_ = np.nan
TABLE = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [_, 1, 0, 0], [_, 1, 1, 0], [_, _, _, _]])


def test_typical_scores_against_a_loop():
    data = simulate.rasch(300, 5, design="sampled", p=0.7, seed=1).responses
    table = data.to_dense()
    seen = ~np.isnan(table)
    score = np.nansum(table, axis=1)
    for person, group in enumerate(divide(data, "median").group):
        alike = (seen == seen[person]).all(axis=1)
        assert group == (score[person] > np.median(score[alike]))


def test_every_score():
    found = divide(Responses.from_wide(TABLE), "scores")
    assert found.names == ("raw score = 1", "raw score = 2", "raw score = 3")
    assert found.group.tolist() == [0, 1, 2, -1, 0, 1, -1]


def test_ability_is_a_split_at_the_median_score_on_complete_data():
    for seed in range(5):
        data = simulate.rasch(501, 9, seed=seed)
        ability = divide(data.responses, "ability", difficulty=data.difficulty).group
        scores = data.responses.scores
        informed = (scores > 0) & (scores < 9)
        middle = np.median(scores[informed])
        above, below = np.sum(scores[informed] > middle), np.sum(scores[informed] < middle)
        assert np.array_equal(ability, scores > middle if above >= below else scores >= middle)


def test_ability_depends_on_items_and_score_alone():
    """Equal items and score, equal group: the last digits of a sum must not let single answers in."""
    data = simulate.rasch(3000, 12, design="booklets", booklets=3, seed=2)
    group = divide(data.responses, "ability", difficulty=data.difficulty).group
    keys = np.stack([item_sets(data.responses), data.responses.scores], axis=1)
    for key in np.unique(keys, axis=0):
        assert len(np.unique(group[(keys == key).all(axis=1)])) == 1


def test_ability_of_items_without_difficulty_and_of_nobody():
    data = Responses.from_wide(TABLE)
    beta = np.array([-1.0, 0.0, 1.0, np.nan])
    assert divide(data, "ability", difficulty=beta).group[-1] == -1
    with pytest.raises(OptionError, match="needs difficulties"):
        divide(data, "ability")


@pytest.mark.parametrize(
    "labels",
    [
        ["b", None, "a", "", "b", float("nan"), "a"],
        np.array(["b", None, "a", "", "b", np.nan, "a"], dtype=object),
        pd.Series(["b", None, "a", "", "b", np.nan, "a"]),
        pd.Series(["b", pd.NA, "a", "", "b", pd.NA, "a"], dtype="string"),
        pl.Series(["b", None, "a", "", "b", None, "a"]),
        {0: "b", 2: "a", 4: "b", 6: "a", 99: "c"},
    ],
    ids=["list", "array", "pandas", "pandas string", "polars", "mapping"],
)
def test_labels(labels):
    found = by_label(Responses.from_wide(TABLE), labels)
    assert found.names == ("a", "b")
    assert found.group.tolist() == [1, -1, 0, -1, 1, -1, 0]
    assert found.sizes.tolist() == [2, 2]


def test_bad_splits():
    data = Responses.from_wide(TABLE)
    with pytest.raises(
        OptionError, match=r"`split` is 'thirds'; it can be 'median', 'mean', 'ability', 'scores', or lab"
    ):
        divide(data, "thirds")
    with pytest.raises(OptionError, match="the groups are 3 labels, and the data has 7 people"):
        divide(data, ["a", "b", "a"])
    with pytest.raises(OptionError, match=r"shape \(7, 2\)"):
        divide(data, np.zeros((7, 2)))
    with pytest.raises(OptionError, match=r"none of the 2 people in the groups \('x', 'y'\) is in the data \(0, 1, 2"):
        divide(data, {"x": "a", "y": "b"})
