"""Critical values: data drawn again, ranks, options, and the share of items flagged."""

from __future__ import annotations

import numpy as np
import pytest

from dense import AWKWARD
from spectral_irt import Responses, SpectralRasch, simulate
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit import bootstrap
from spectral_irt.inference.fit.bootstrap import band, bootstrap_limits, redraw
from spectral_irt.inference.fit.mean_squares import conditional_statistics
from spectral_irt.persons import abilities


def again(responses, beta, seed=0, threads=1):
    known = abilities(responses, beta, "eap", prior_mean=0.0, prior_sd=1.0)
    people = responses.using(LocalEngine(threads))
    return redraw(people, beta, known.ability, known.se, np.random.SeedSequence(seed))


def test_redrawn_data_have_the_same_design():
    beta = np.linspace(-1, 1, 7)
    responses = Responses.from_wide(AWKWARD)
    drawn = again(responses, beta).to_dense()
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(AWKWARD))
    assert np.nansum(np.abs(drawn - AWKWARD)) > 0
    beta[0] = np.nan  # an item without a difficulty cannot be drawn
    assert np.isnan(again(responses, beta).to_dense()[:, 0]).all()


def test_redrawn_data_follow_the_model():
    data = simulate.rasch(20_000, 30, design="sampled", p=0.6, seed=1)
    new = again(data.responses, data.difficulty)
    share = data.responses.item_scores / data.responses.item_counts
    np.testing.assert_allclose(new.item_scores / new.item_counts, share, atol=0.025)
    # Abilities drawn from posteriors vary as abilities do, so scores vary as scores did.
    old_spread = np.var(data.responses.scores / data.responses.counts)
    assert abs(np.var(new.scores / new.counts) / old_spread - 1) < 0.05


@pytest.mark.slow
def test_draws_depend_on_the_seed_alone():
    data = simulate.rasch(6000, 300, design="sampled", p=0.6, seed=1)
    one, two, other = (
        again(data.responses, data.difficulty, seed, threads).digest() for seed, threads in ((0, 1), (0, 2), (1, 1))
    )
    assert one == two != other


def test_ranks():
    drawn = np.tile(np.arange(1.0, 200.0), (3, 1)).T  # 1 to 199: the 5% limits are the values of rank 5 and 195
    drawn[:, 2] = np.nan
    low, high, p = band(np.array([100.0, 196.0, 1.0]), drawn)
    np.testing.assert_allclose(low[:2], 5)
    np.testing.assert_allclose(high[:2], 195)
    np.testing.assert_allclose(p[:2], [1.0, 2 * 5 / 200])
    assert np.isnan([low[2], high[2], p[2]]).all()


@pytest.mark.slow
def test_sample_and_options(monkeypatch):
    data = simulate.rasch(2000, 6, seed=1)
    seen = []

    def statistic(responses, difficulty):
        seen.append((responses.n_persons, difficulty.copy()))
        return conditional_statistics(responses, difficulty)

    monkeypatch.setattr(bootstrap, "conditional_statistics", statistic)
    bootstrap_limits(data.responses, data.difficulty, 39, sample=100, seed=3)
    assert all(n == 100 for n, _ in seen)
    assert all(np.array_equal(beta, data.difficulty) for _, beta in seen)  # known from elsewhere, so left alone
    seen.clear()
    bootstrap_limits(data.responses, data.difficulty, 39, seed=3)
    assert all(n == 2000 for n, _ in seen)
    assert not np.array_equal(seen[1][1], seen[2][1])  # fitted anew to each replicate
    for options, complaint in (({"replicates": 10}, "at least 39"), ({"sample": 1}, "number of people")):
        with pytest.raises(OptionError, match=complaint):
            bootstrap_limits(data.responses, data.difficulty, **options)


@pytest.mark.slow
def test_table_with_limits():
    slopes = np.ones(15)
    slopes[3], slopes[9] = 3.0, 0.3
    responses = simulate.rasch(800, 15, slopes=slopes, seed=2).responses
    fit = SpectralRasch(se="none").fit(responses)
    table = fit.analyse(responses).item_fit(bootstrap=60)
    assert table.columns[-8:] == [
        *(f"{name}_conditional_{what}" for name in ("infit", "outfit") for what in ("low", "high", "p")),
        "misfit_p",
        "misfit",
    ]
    assert table["misfit"][3] == "overfit"
    assert table["misfit"][9] == "underfit"
    assert (table["infit_conditional_low"] < 1).all()
    assert (table["infit_conditional_high"] > 1).all()
    assert table.equals(fit.analyse(responses).item_fit(bootstrap=60))


@pytest.mark.slow
def test_good_items_are_flagged_at_the_level():
    """12 tests of 40 items with 30% missing, 100 replicates: 480 items, of which 5% should be outside."""
    outside = {"infit_conditional": [], "outfit_conditional": []}
    for seed in range(12):
        responses = simulate.rasch(1000, 40, design="sampled", p=0.7, seed=500 + seed).responses
        table = SpectralRasch(se="none").fit(responses).analyse(responses).item_fit(bootstrap=100)
        for name, flags in outside.items():
            flags.append((table[name] < table[f"{name}_low"]) | (table[name] > table[f"{name}_high"]))
    for flags in outside.values():
        assert 0.03 <= np.mean(np.concatenate(flags)) <= 0.07
