"""Rao's test of the less against the more able half."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.errors import DesignError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.groups.model_tests import ability_split, andersen, score_split


def test_agrees_with_the_likelihood_ratio_where_the_model_is_nearly_right() -> None:
    """Score, Wald and likelihood ratio statistics are equal to first order; here they differ by a few percent."""
    slopes = np.ones(10)
    slopes[[2, 7]] = 1.3, 0.75
    data = simulate.rasch(4000, 10, slopes=slopes, seed=1).responses
    fit = ConditionalRasch().fit(data)
    score = ability_split(fit.calibration_, data)
    halves = divide(data, "ability", difficulty=fit.difficulty_).group
    ratio, wald = andersen(data, halves), score_split(fit.calibration_, data, halves)
    assert score.df == ratio.df == 9
    assert score.statistic == pytest.approx(ratio.statistic, rel=0.05)
    assert score.statistic == pytest.approx(wald.statistic, rel=0.05)
    worst = np.argsort(-np.abs(score.z))[:2]
    assert sorted(worst.tolist()) == [2, 7]
    assert np.sign(score.z[2]) == -np.sign(score.z[7]) == -1  # weak people do worse on the steep item


def test_shift_in_the_difficulties_is_made_up_for() -> None:
    data = simulate.rasch(3000, 12, seed=2).responses
    made = SpectralRasch(se="none").fit(data).calibration_
    moved = made.replace(thresholds=made.difficulty + 0.02 * np.sin(np.arange(12)))
    assert ability_split(moved, data).statistic == pytest.approx(ability_split(made, data).statistic, abs=0.6)


def test_items_with_little_information_are_left_out_and_parts_without_a_link_cost_a_degree() -> None:
    rng = np.random.default_rng(0)
    data = simulate.rasch(2000, 12, difficulty=[*rng.normal(size=11), 8.0], seed=3).responses
    test = ability_split(SpectralRasch(se="none").fit(data).calibration_, data)
    assert len(test.z) == 11
    assert test.df == 11
    with pytest.raises(DesignError, match="no two items"):
        few = simulate.rasch(12, 4, seed=1).responses
        ability_split(SpectralRasch(se="none").fit(few).calibration_, few)


@pytest.mark.slow
def test_level_in_a_vertical_design() -> None:
    """4 grades, half of the items in common: at 1%, at most 3 of 60, which Wald's test exceeds."""
    below = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        level, grade = np.repeat(np.arange(5), 12), np.arange(2000) % 4
        logit = (grade - 1.5 + rng.normal(size=2000))[:, None] - (level - 2 + rng.normal(0, 0.7, 60))
        x = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
        x[(level != grade[:, None]) & (level != grade[:, None] + 1)] = np.nan
        fit = SpectralRasch(se="none").fit(x)
        below += ability_split(fit.calibration_, fit.analyse(x).responses).p < 0.01
    assert below <= 3
