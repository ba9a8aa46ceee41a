"""Right answers by stratum of ability, against counting and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.data import Responses
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.fit.strata import STRATA, strata_columns, wilson_interval
from spectral_irt.persons.abilities import abilities


def strata(responses: Responses, beta: np.ndarray, items: np.ndarray, number: int = STRATA) -> dict[str, np.ndarray]:
    return strata_columns(responses, GivenScore.of(responses, beta), abilities(responses, beta).ability, items, number)


def given_score(beta: np.ndarray, score: int) -> np.ndarray:
    """P(X_i = 1 | score) by going through all patterns."""
    patterns = np.array([p for p in product((0, 1), repeat=len(beta)) if sum(p) == score])
    weight = np.exp(-patterns @ beta)
    return weight @ patterns / weight.sum()


def test_against_counting() -> None:
    """Complete data, few items: a stratum is a score, and expected shares come from enumeration."""
    rng = np.random.default_rng(2)
    beta = np.array([-1.0, -0.3, 0.1, 0.4, 0.8])
    x = (rng.random((600, 5)) < 1 / (1 + np.exp(beta - rng.normal(0, 1, (600, 1))))).astype(float)
    responses = Responses.from_wide(x)
    found = abilities(responses, beta)
    table = strata(responses, beta, np.array([3, 0]), 50)
    score = x.sum(axis=1)
    for item in (3, 0):
        rows = table["item"] == item
        assert table["stratum"][rows].tolist() == [1, 2, 3, 4]
        for k, s in enumerate((1, 2, 3, 4)):
            who = score == s
            assert table["n"][rows][k] == who.sum()
            assert table["observed"][rows][k] == pytest.approx(x[who, item].mean())
            assert table["expected"][rows][k] == pytest.approx(given_score(beta, s)[item])
            assert table["ability"][rows][k] == pytest.approx(found.ability[who].mean())


def test_incomplete_data_in_several_blocks_and_items_without_a_difficulty() -> None:
    rng = np.random.default_rng(3)
    beta = rng.normal(0, 1, 9)
    beta[4] = np.nan
    x = (rng.random((500, 9)) < 0.5).astype(float)
    x[rng.random((500, 9)) < 0.4] = np.nan
    whole = Responses.from_wide(x)
    blocks = [whole.take_persons(np.arange(start, start + 100)).blocks[0] for start in range(0, 500, 100)]
    responses = Responses(tuple(blocks), whole.items, whole.persons)
    table = strata(responses, beta, np.array([7]), 5)
    known = np.isfinite(x) & np.isfinite(beta)
    score, n = np.where(known, x, 0).sum(axis=1), known.sum(axis=1)
    who = (score > 0) & (score < n) & known[:, 7]
    expected = 0.0
    for row in np.flatnonzero(who):
        mine = np.flatnonzero(known[row])
        expected += given_score(beta[mine], int(score[row]))[mine == 7][0]
    assert table["n"].sum() == who.sum()
    assert len(table["n"]) == 5
    assert (table["n"] * table["observed"]).sum() == pytest.approx(x[who, 7].sum())
    assert (table["n"] * table["expected"]).sum() == pytest.approx(expected)
    assert (np.diff(table["ability"]) > 0).all()


def test_few_people_make_few_strata() -> None:
    answers = si.simulate.rasch(40, 30, seed=4).responses
    beta = np.zeros(30)
    table = strata(answers, beta, np.array([0]))
    assert len(table["n"]) == 3


@pytest.mark.slow
def test_under_the_model_marks_lie_on_the_curve_but_for_chance() -> None:
    """A short test, where the abilities' own error would show: z of observed against expected is standard normal."""
    z = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        beta = np.linspace(-1.5, 1.5, 8)
        x = (rng.random((2000, 8)) < 1 / (1 + np.exp(beta - rng.normal(0.5, 1, (2000, 1))))).astype(float)
        responses = Responses.from_wide(x)
        table = strata(responses, beta, np.arange(8))
        p, n = table["expected"], table["n"]
        z.append((table["observed"] - p) / np.sqrt(p * (1 - p) / n))
    every = np.concatenate(z)
    # Values nearly independent: four standard errors of the mean of their squares, sqrt(2 / number) each, and of
    # the mean.
    assert len(every) > 900
    assert np.mean(every**2) == pytest.approx(1.0, abs=4 * np.sqrt(2 / len(every)))
    assert np.mean(every) == pytest.approx(0.0, abs=4 / np.sqrt(len(every)))


def test_wilson_contains_the_proportions_that_are_not_refused() -> None:
    """Its ends are where |x/n - p| = 1.96 sqrt(p (1 - p) / n), the definition."""
    n, right = np.array([10.0, 25.0, 400.0]), np.array([10.0, 3.0, 100.0])
    for end in wilson_interval(right, n):
        inside = (end > 0) & (end < 1)
        gap = np.abs(right / n - end)[inside]
        assert gap == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / n)[inside], rel=1e-6)
