"""Item fit against its definition on awkward data; conditional fit against enumeration; and under the model."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from dense import AWKWARD, probabilities, wilson_hilferty
from spectral_irt import Responses, SpectralRasch, simulate
from spectral_irt.errors import NotFittedError, OptionError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.fit.mean_squares import conditional_statistics, item_statistics

DIFFICULTY = np.array([-1.5, 0.3, 0.0, 2.0, -0.7, 1.1, -0.4])


def in_blocks(table, pieces):
    blocks = [Responses.from_wide(part).blocks[0] for part in np.array_split(table, pieces)]
    return Responses(tuple(blocks), np.arange(table.shape[1]), np.arange(len(table)))


def mixed(table, beta):
    """The table with NaN for people who have everything right or wrong, and for items without a difficulty."""
    table = np.where(np.isfinite(beta), table, np.nan)
    for row in table:
        seen = row[~np.isnan(row)]
        if len(seen) == 0 or seen.min() == seen.max():
            row[:] = np.nan
    return table


def squares_by_hand(x, p):
    v, n = p * (1 - p), len(x)
    return np.sum((x - p) ** 2) / v.sum(), np.mean((x - p) ** 2 / v), v, n


def given_score(row, beta):
    """P(X_i = 1 | score) of one person by adding up all answer patterns with that score."""
    seen = np.flatnonzero(~np.isnan(row))
    total, weight = np.zeros(len(row)), 0.0
    for ones in combinations(seen, int(row[seen].sum())):
        w = np.exp(-beta[list(ones)].sum())
        weight += w
        total[list(ones)] += w
    out = np.full(len(row), np.nan)
    out[seen] = total[seen] / weight
    return out


@pytest.mark.parametrize("missing", [None, 2])
@pytest.mark.parametrize("pieces", [1, 3])
def test_conventional_by_definition(pieces, missing):
    beta = DIFFICULTY.copy()
    if missing is not None:
        beta[missing] = np.nan
    theta = np.linspace(-1.03, 2.01, len(AWKWARD))
    theta[3] = np.inf  # maximum likelihood of the person with everything right
    found = SimpleNamespace(**item_statistics(in_blocks(AWKWARD, pieces), beta, theta))
    table = mixed(AWKWARD, beta)
    with np.errstate(over="ignore"):
        P = probabilities(theta, beta)
    for item in range(len(beta)):
        persons = np.flatnonzero(~np.isnan(table[:, item]))
        assert found.n[item] == len(persons)
        if not len(persons):
            assert np.isnan([found.infit[item], found.outfit[item], found.displacement[item]]).all()
            continue
        x, p, t = table[persons, item], P[persons, item], theta[persons]
        infit, outfit, v, n = squares_by_hand(x, p)
        c = v * (p**3 + (1 - p) ** 3)
        q_out, q_in = np.sqrt(np.sum(c / v**2) / n**2 - 1 / n), np.sqrt(np.sum(c - v**2)) / v.sum()
        np.testing.assert_allclose(found.infit[item], infit)
        np.testing.assert_allclose(found.outfit[item], outfit)
        np.testing.assert_allclose(found.infit_z[item], wilson_hilferty(infit, q_in))
        np.testing.assert_allclose(found.outfit_z[item], wilson_hilferty(outfit, q_out))
        np.testing.assert_allclose(found.displacement[item], np.sum(p - x) / v.sum(), atol=1e-12)
        np.testing.assert_allclose(found.exact_match[item], 100 * np.mean(np.abs(x - p) < 0.5))
        np.testing.assert_allclose(found.exact_match_expected[item], 100 * np.mean(np.maximum(p, 1 - p)))
        if n > 1 and x.min() < x.max():
            np.testing.assert_allclose(found.point_measure[item], np.corrcoef(x, t)[0, 1])
            slope = np.mean((p - p.mean()) * (t - t.mean()))
            spread = np.sqrt((p.var() + v.mean()) * t.var())
            np.testing.assert_allclose(found.point_measure_expected[item], slope / spread)
        else:
            assert np.isnan(found.point_measure[item])


def test_an_even_chance_is_half_a_match():
    found = item_statistics(Responses.from_wide([[1, 0], [0, 1]]), np.zeros(2), np.zeros(2))
    assert found["exact_match"].tolist() == [50, 50]
    assert np.isnan(found["infit_z"]).all()  # all V = 1/4: mean squares are 1 whatever the answers
    assert np.isnan(found["point_measure"]).all()


@pytest.mark.parametrize("missing", [None, 2])
@pytest.mark.parametrize("pieces", [1, 3])
def test_conditional_by_enumeration(pieces, missing):
    beta = DIFFICULTY.copy()
    if missing is not None:
        beta[missing] = np.nan
    found = SimpleNamespace(**conditional_statistics(in_blocks(AWKWARD, pieces), beta))
    table = mixed(AWKWARD, beta)
    P = np.array([given_score(row, beta) for row in table])
    for item in range(len(beta)):
        persons = np.flatnonzero(~np.isnan(table[:, item]))
        assert found.n[item] == len(persons)
        if not len(persons):
            assert np.isnan([found.infit[item], found.outfit_z[item], found.displacement[item]]).all()
            continue
        x, p = table[persons, item], P[persons, item]
        infit, outfit, v, n = squares_by_hand(x, p)
        np.testing.assert_allclose(found.infit[item], infit)
        np.testing.assert_allclose(found.outfit[item], outfit)
        np.testing.assert_allclose(found.displacement[item], np.sum(p - x) / v.sum(), atol=1e-12)
        for g, total, z in ((1 - 2 * p, v.sum(), found.infit_z[item]), ((1 - 2 * p) / v, n, found.outfit_z[item])):
            rest = g - np.sum(v * g) / v.sum()
            q = np.sqrt(np.sum(v * rest**2)) / total
            square = max(1 + np.sum((x - p) * rest) / total, 0)
            if q > 1e-7:
                np.testing.assert_allclose(z, wilson_hilferty(square, q), atol=1e-6)


@pytest.mark.parametrize("shape", [(300, 200), (800, 25)])
def test_the_series_for_long_rows(shape):
    data = simulate.rasch(*shape, seed=3)
    exact = conditional_statistics(data.responses, data.difficulty)
    rough = conditional_statistics(data.responses, data.difficulty, series_from=4.0)
    np.testing.assert_allclose(rough["infit"], exact["infit"], atol=1e-5)
    np.testing.assert_allclose(rough["outfit_z"], exact["outfit_z"], atol=1e-3)


def test_people_who_share_their_items_are_judged_from_tables(monkeypatch):
    """Two booklets and people with sets of their own: the same numbers as one by one."""
    data = simulate.rasch(900, 12, seed=8).responses
    x = data.to_dense()
    x[::2, :3] = np.nan
    x[5:25] = np.where(np.random.default_rng(0).random((20, 12)) < 0.3, np.nan, x[5:25])
    together, one_by_one = (Responses.from_wide(x) for _ in range(2))
    assert together.shared is not None
    assert together.shared.rest is not None
    monkeypatch.setitem(vars(one_by_one), "shared", None)
    beta = np.linspace(-1, 1, 12)
    one, other = (conditional_statistics(each, beta) for each in (one_by_one, together))
    for name, values in one.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-9, atol=1e-9)


def test_no_displacement_at_the_conditional_estimate():
    responses = simulate.rasch(500, 12, design="sampled", p=0.7, seed=2).responses
    fit = ConditionalRasch().fit(responses)
    np.testing.assert_allclose(fit.analyse(responses).item_fit()["displacement_conditional"], 0, atol=1e-8)


def test_displacement_of_a_moved_item():
    """An item anchored half a logit too easy is displaced upwards by about that; its standardized fit stays calm."""
    data = simulate.rasch(20_000, 20, seed=5)
    beta = data.difficulty.copy()
    beta[4] -= 0.5
    moved = conditional_statistics(data.responses, beta)
    assert abs(moved["displacement"][4] - 0.5) < 0.1
    assert abs(moved["infit_z"][4]) < 3
    theta = data.ability
    assert abs(item_statistics(data.responses, beta, theta)["displacement"][4] - 0.5) < 0.05


# --------------------------------------------------------------------------------------- the table


HEAD = [
    "item",
    "n",
    "infit",
    "infit_z",
    "outfit",
    "outfit_z",
    "infit_conditional",
    "infit_conditional_z",
    "outfit_conditional",
    "outfit_conditional_z",
    "point_measure",
    "point_measure_expected",
    "exact_match",
    "exact_match_expected",
    "displacement",
    "displacement_conditional",
    "misfit_p",
    "misfit",
]


def test_items_that_were_not_estimated_have_no_fit():
    table = simulate.rasch(300, 8, seed=2).responses.to_dense()
    table[:, 5] = 1
    for estimator in (SpectralRasch(), ConditionalRasch()):
        found = estimator.fit(table).analyse(table).item_fit()
        assert np.isnan(found["infit"][5])
        assert np.isnan(found["infit_conditional"][5])
        assert np.isfinite(np.delete(found["infit_conditional"].to_numpy(), 5)).all()


def test_errors():
    responses = simulate.rasch(300, 8, seed=2).responses
    fit = SpectralRasch().fit(responses)
    with pytest.raises(NotFittedError):
        SpectralRasch().analyse(responses).item_fit()
    with pytest.raises(OptionError, match="3 items are not in the calibration: 'x', 'y', 'z'"):
        fit.analyse(Responses.from_wide([[1, 0, 1]], items=["x", "y", "z"]))


# -------------------------------------------------------------------------------- under the model


@pytest.mark.slow
@pytest.mark.parametrize("m", [10, 20, 60])
def test_conditional_fit_averages_one(m):
    """30% missing, 1,000 people; the conventional mean squares fall short, the conditional ones do not."""
    rows = []
    for seed in range(40):
        responses = simulate.rasch(1000, m, design="sampled", p=0.7, seed=seed).responses
        rows.append(SpectralRasch(se="none").fit(responses).analyse(responses).item_fit())
    every = {name: np.concatenate([row[name].to_numpy() for row in rows]) for name in HEAD[2:]}
    assert abs(every["infit_conditional"].mean() - 1) < 0.01
    assert abs(every["outfit_conditional"].mean() - 1) < 0.02
    assert every["infit"].mean() < every["infit_conditional"].mean()
    for name in ("infit_conditional_z", "outfit_conditional_z"):
        assert 0.03 < np.mean(np.abs(every[name]) > 1.96) < 0.07
    assert abs(np.mean(every["point_measure"] - every["point_measure_expected"])) < 0.02
