"""Do 95% intervals hold the truth 95% of the time? Simulation in the settings of docs/explanation/estimator.md.

The average over items of the share of replicates that cover has a Monte-Carlo standard error of at most about 0.5% here
(items of a replicate are nearly independent, and there are 3,000 or more but for the shortest test), so 93-97% leaves
room for a bias of one and a half points and no more.
"""

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate

# The arguments of a drawing, and how many are drawn.
SETTINGS = {
    "5 items, 300 persons": ({"n_persons": 300, "n_items": 5}, 200),
    "20 items, 500 persons": ({"n_persons": 500, "n_items": 20}, 200),
    "50 items, 2000 people, 20% seen": ({"n_persons": 2000, "n_items": 50, "design": "sampled", "p": 0.2}, 60),
    "60 items, 2000 people, skewed": (
        {"n_persons": 2000, "n_items": 60, "design": "popularity", "n_responses": 24_000, "activity_sd": 0.8},
        60,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["ability", "persons", "pairs"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_cover(setting, weighting):
    covered = []
    arguments, replicates = SETTINGS[setting]
    for seed in range(replicates):
        data = simulate.rasch(**arguments, seed=seed)
        fit = SpectralRasch(weighting=weighting, threads=1).fit(data.responses)
        known = np.isfinite(fit.se_)
        z = (fit.difficulty_ - data.difficulty)[known] / fit.se_[known]
        covered.append(np.mean(np.abs(z) < 1.96))
    assert 0.93 < np.mean(covered) < 0.97


@pytest.mark.slow
def test_intervals_cover_at_twenty_million_responses():
    data = simulate.rasch(138_000, 27_000, design="popularity", n_responses=20_000_000, seed=8)
    fit = SpectralRasch().fit(data.responses)
    assert fit.se_method_ == "one-pass"
    z = (fit.difficulty_ - data.difficulty) / fit.se_
    # 27,000 items: the standard error of the share is 0.13%.
    assert 0.94 < np.nanmean(np.abs(z) < 1.96) < 0.96
