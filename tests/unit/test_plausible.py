"""Plausible values: exact quantiles of single posteriors, the same values however the data lie, then populations."""

import numpy as np
import pytest

from dense import AWKWARD, posterior
from spectral_irt import SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import OptionError
from spectral_irt.persons import abilities
from spectral_irt.persons.plausible import background, latent_regression, plausible_values
from split import in_pieces

DIFFICULTY = np.array([-1.5, 0.3, 0.0, 2.0, -0.7, 1.1, -8.0])


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (1.0, 3.0), (-2.0, 0.3)])
def test_values_are_quantiles_of_each_posterior(mean, sd):
    """Cells are a tenth of a posterior sd wide: the distribution function is right to a thousandth."""
    found = plausible_values(in_pieces(AWKWARD, 2), DIFFICULTY, draws=4, seed=7, prior=(mean, sd))
    rng = np.random.default_rng(7)
    chance = np.stack([rng.random(len(AWKWARD)) for _ in range(4)], axis=1)
    for row, values, u in zip(AWKWARD, found.values, chance, strict=True):
        grid, weight = posterior(row, DIFFICULTY, mean, sd, points=100_001)
        np.testing.assert_allclose(np.interp(values, grid, np.cumsum(weight) - weight / 2), u, rtol=0, atol=1e-3)


@pytest.mark.slow
def test_same_values_whatever_the_blocks_threads_and_draws():
    table = simulate.rasch(300, 12, seed=3).responses.to_dense()
    table[np.random.default_rng(0).random(table.shape) < 0.3] = np.nan
    beta = np.linspace(-2, 2, 12)
    whole = plausible_values(in_pieces(table, 1), beta, seed=1)
    for pieces, threads in ((1, 2), (7, 1), (7, 2)):
        other = plausible_values(in_pieces(table, pieces).with_engine(LocalEngine(threads)), beta, seed=1)
        np.testing.assert_array_equal(other.values, whole.values)
    two = plausible_values(in_pieces(table, 1), beta, draws=2, seed=1)
    np.testing.assert_array_equal(two.values, whole.values[:, :2])
    assert np.abs(plausible_values(in_pieces(table, 1), beta, seed=2).values - whole.values).min() > 0


def test_columns_of_people_and_what_cannot_be():
    data = simulate.rasch(200, 6, seed=1).responses
    study = SpectralRasch().fit(data).analyse(data, ability="pv")
    table = study.persons(draws=3, seed=9)
    assert list(table.columns)[-3:] == ["pv1", "pv2", "pv3"]
    np.testing.assert_array_equal(table["ability"], study.persons(method="eap")["ability"])
    assert [name for name in study.persons().columns if name.startswith("pv")] == [f"pv{k}" for k in range(1, 6)]
    scaled = study.rescale(500, 100)
    columns = columns_of(scaled.persons, seed=9)
    np.testing.assert_allclose(columns["measure_pv1"], scaled.calibration.scale.measure(columns["pv1"]))
    drawn = np.concatenate([columns_of(scaled.persons, draws=40)[f"measure_pv{k + 1}"] for k in range(40)])
    assert abs(drawn.std() - 100) < 3  # of the population, not of posterior means
    prior, given = (0.0, 1.0), np.arange(200)
    for call, message in (
        (lambda: study.persons(draws=0), r"draws.* is 0"),
        (lambda: plausible_values(data, study.calibration.difficulty, prior=prior, given=given), "not both"),
        (lambda: background({"age": [1, 2, 3]}, 200), "'age' has 3 entries"),
        (lambda: background(np.array([1.0, np.nan]), 2), "missing or infinite"),
    ):
        with pytest.raises(OptionError, match=message):
            call()


def test_labels_and_numbers_become_a_matrix():
    x = background({"sex": ["f", None, "m", "f"], "ages": np.array([[1.0, 5], [2, 5], [3, 5], [4, 5]])}, 4)
    assert x[:, :3].tolist() == [[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]]
    np.testing.assert_allclose(x[:, 3].std(), 1)
    assert not x[:, 4].any()


def test_regression_on_nothing_is_the_population():
    data = simulate.rasch(400, 8, ability_mean=0.4, seed=2)
    found = abilities(data.responses, data.difficulty, "eap")
    mean, sd = latent_regression(data.responses, data.difficulty, np.ones((400, 1)))
    np.testing.assert_allclose(mean, found.prior[0], atol=2e-5)
    assert abs(sd - found.prior[1]) < 2e-5


@pytest.mark.slow
def test_a_population_is_recovered():
    """Variance, a percentile and a slope, where five items are right about neither by WLE nor by EAP.

    4,000 people: the variance of 1.44 has a standard error of about .05 with a reliability of .5, the slope of .5 one
    of about .03.
    """
    rng = np.random.default_rng(11)
    x = rng.normal(size=4000)
    ability = 0.5 * x + rng.normal(size=4000) * np.sqrt(1.44 - 0.25)
    data = simulate.rasch(4000, 5, ability=ability, difficulty=np.linspace(-1, 1, 5), seed=1)
    study = SpectralRasch(se="none").fit(data.responses).analyse(data.responses)

    def slope(values):
        return float(np.polyfit(x, values, 1)[0])

    drawn = study.plausible_values(given=x, seed=3).values
    assert abs(drawn.var(axis=0).mean() - 1.44) < 0.15
    assert abs(np.mean([slope(column) for column in drawn.T]) - 0.5) < 0.09
    assert abs(np.percentile(drawn, 90) - np.percentile(ability, 90)) < 0.15
    assert study.abilities("wle").ability.var() > 1.44 * 1.3
    assert study.abilities("eap").ability.var() < 1.44 * 0.7
    assert slope(study.abilities("eap").ability) < 0.5 * 0.75
    # Without x in the population the variance is right all the same; a relation to x is not.
    plain = study.plausible_values(seed=3).values
    assert abs(plain.var(axis=0).mean() - 1.44) < 0.15
    assert np.mean([slope(column) for column in plain.T]) < 0.5 * 0.75


@pytest.mark.slow
def test_groups_are_recovered():
    rng = np.random.default_rng(5)
    group = rng.choice(["a", "b"], size=3000)
    ability = np.where(group == "b", 0.8, 0.0) + rng.normal(size=3000)
    data = simulate.rasch(3000, 6, ability=ability, seed=2)
    study = SpectralRasch(se="none").fit(data.responses).analyse(data.responses)
    drawn, eap = study.plausible_values(given={"group": group}).values, study.abilities("eap").ability
    assert abs(drawn[group == "b"].mean() - drawn[group == "a"].mean() - 0.8) < 0.15  # standard error .05
    assert eap[group == "b"].mean() - eap[group == "a"].mean() < 0.6
