"""Ranks in two groups of people."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.errors import DesignError
from spectral_irt.inference.ranks.intervals import surely_ranked
from spectral_irt.inference.ranks.rank_change import apart_until, compare_ranks, rank_change_between

COLUMNS = [
    "item",
    *("difficulty_first", "rank_first", "low_first", "high_first"),
    *("difficulty_second", "rank_second", "low_second", "high_second"),
    *("statistic", "p", "p_all"),
]


def answers(first: np.ndarray, second: np.ndarray, n: int, seed: int) -> np.ndarray:
    """n people to whom items are so hard, and n to whom they are otherwise."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(2 * n, 1)) - np.repeat([first, second], n, axis=0)
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_statistic_is_where_the_intervals_part(seed: int) -> None:
    """Just below its statistic an item's two intervals are apart, just above they overlap."""
    rng = np.random.default_rng(seed)
    difficulty, se = rng.normal(size=(2, 12)) * 3, rng.uniform(0.1, 0.6, size=(2, 12))
    difficulty[1, :6] = difficulty[0, :6]
    found = apart_until(difficulty, se)
    assert np.any(found > 0)

    def apart(critical: float) -> np.ndarray:
        low, high = zip(*(surely_ranked(b, s, critical) for b, s in zip(difficulty, se, strict=True)), strict=True)
        return (low[0] > high[1]) | (low[1] > high[0])

    for i, value in enumerate(found):
        if value > 0:
            assert apart(value * (1 - 1e-9))[i]
        assert not apart(max(value, 1e-9) * (1 + 1e-9))[i] or value == 0


def test_an_item_that_moves() -> None:
    beta = np.linspace(2, -2, 10)
    moved = beta.copy()
    moved[8] = 2.2
    data = answers(beta, moved, 600, seed=1)
    study = SpectralRasch().fit(data).analyse(data)
    found = study.rank_test(np.repeat(["before", "after"], 600))
    table = found.table()
    assert table.columns == COLUMNS
    row = table.row(8, named=True)
    assert sorted([row["rank_first"], row["rank_second"]]) == [1, 9]
    assert row["p"] < 1e-6
    assert row["p_all"] < 0.001
    assert found.p == table["p_all"].min()
    assert found.statistic == table["statistic"].max()
    assert "10 items, p = 0.0" in found.sentence
    assert table["p"].to_list()[9] == table["p_all"].to_list()[9] == 1  # the easiest item stays the easiest


def test_two_calibrations_share_items() -> None:
    data = answers(np.linspace(2, -2, 8), np.linspace(2, -2, 8), 300, seed=2)
    import polars as pl

    first = pl.DataFrame(data[:300], schema=[f"q{i}" for i in range(8)])
    second = pl.DataFrame(data[300:, ::-1], schema=[f"q{i}" for i in range(7, -1, -1)]).drop("q3")
    made = [SpectralRasch().fit(frame).calibration_ for frame in (first, second)]
    found = rank_change_between(*made)
    assert found.columns["item"].tolist() == ["q0", "q1", "q2", "q4", "q5", "q6", "q7"]
    assert found.columns["rank_first"].tolist() == found.columns["rank_second"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert found.p > 0.05
    with pytest.raises(DesignError, match="share fewer than two items"):
        rank_change_between(made[0], SpectralRasch().fit(second.rename(lambda name: "x" + name)).calibration_)


def test_only_two_groups() -> None:
    responses = simulate.rasch(90, 5, seed=1).responses
    study = SpectralRasch().fit(responses).analyse(responses)
    with pytest.raises(DesignError, match=r"two groups of people, and there are 3; compare them two at a time"):
        study.rank_test(np.repeat(["a", "b", "c"], 30))


@pytest.mark.slow
def test_level_with_known_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of nearly equal items far apart, normal errors: one pair in the wrong order is enough to part intervals."""
    monkeypatch.setattr("spectral_irt.inference.ranks.intervals.DRAWS", 500)
    rng = np.random.default_rng(3)
    beta = np.repeat(np.arange(5) * 10.0, 2) + np.tile([0.0, 1e-6], 5)
    se = np.ones((2, 10))
    found = [compare_ranks(np.arange(10), beta + rng.normal(size=(2, 10)), se, seed=s) for s in range(100)]
    assert np.mean([test.p < 0.05 for test in found]) <= 0.07
    assert np.mean([test.columns["p"][0] < 0.05 for test in found]) <= 0.07


@pytest.mark.slow
def test_level_and_power() -> None:
    beta = np.linspace(2, -2, 20)
    groups = np.repeat(["a", "b"], 300)
    rejected: dict[float, list[bool]] = {0.0: [], 2.0: []}
    for shift, out in rejected.items():
        moved = beta.copy()
        moved[10] += shift
        for seed in range(15):
            data = answers(beta, moved, 300, seed=seed)
            study = SpectralRasch().fit(data).analyse(data)
            out.append(bool(study.rank_test(groups).columns["p"][10] < 0.05))
    assert np.mean(rejected[0.0]) <= 0.07
    assert np.mean(rejected[2.0]) >= 0.8  # from rank 11 to 2
