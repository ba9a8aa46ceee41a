"""Units of item properties, and the zero of the scale: neither may change what is found."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import spectral_irt as si
from spectral_irt import simulate
from spectral_irt.conditional.linear import unidentified_directions
from spectral_irt.errors import OptionError
from spectral_irt.estimators import LinearDesign


@pytest.fixture(scope="module")
def spaced():
    """Difficulties that rise with a property by about half a logit, and the property of each item."""
    x = np.arange(10) / 3
    responses = simulate.rasch(500, 10, difficulty=0.5 * x, seed=2).responses
    return responses, x


def effect(responses, values):
    study = si.SpectralRasch().fit(responses).analyse(responses)
    table = study.item_covariates({"x": dict(zip(responses.items.tolist(), values.tolist(), strict=True))})
    return table["effect"][0], table["se"][0]


@pytest.mark.parametrize("unit", [1e-5, 1e-4, 1e-3, 1e4, 1e12])
def test_an_effect_times_its_unit_is_the_same_in_every_unit(spaced, unit):
    responses, x = spaced
    np.testing.assert_allclose(np.array(effect(responses, x * unit)) * unit, effect(responses, x), rtol=1e-9)


@pytest.mark.parametrize("zero", [-3.0, 1e3, 1e9])
def test_an_effect_does_not_depend_on_the_zero_of_its_property(spaced, zero):
    responses, _ = spaced
    whole = np.arange(10.0)
    np.testing.assert_allclose(effect(responses, whole + zero), effect(responses, whole), rtol=1e-9)


def test_two_properties_in_unlike_units(spaced):
    responses, x = spaced
    study = si.SpectralRasch().fit(responses).analyse(responses)
    odd = (np.arange(10) % 2).astype(float)

    def effects(unit):
        given = {"x": x * unit, "odd": odd / unit}
        named = {name: dict(zip(responses.items.tolist(), each, strict=True)) for name, each in given.items()}
        return study.item_covariates(named)["effect"].to_numpy() * [unit, 1 / unit]

    np.testing.assert_allclose(effects(1e-6), effects(1.0), rtol=1e-9)


def test_a_property_that_is_the_same_for_all_items_is_refused(spaced):
    responses, x = spaced
    for value in (0.1 + 0.2, 1e9, 1e-9):
        with pytest.raises(OptionError, match="cannot be told apart"):
            effect(responses, np.full(len(x), value))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_directions_left_open_do_not_depend_on_units(unit):
    """Items and a property of items: the property is a sum of items, in any unit."""
    x = np.array([0.0, 1.0, 3.0])
    design = np.column_stack([np.eye(3), x * unit])
    open_directions = unidentified_directions(sparse.csr_array(design), np.zeros(3, dtype=np.int64))
    assert open_directions.shape == (4, 2)
    moved = design @ open_directions
    np.testing.assert_allclose(moved - moved.mean(axis=0), 0, atol=1e-7)
    assert unidentified_directions(sparse.csr_array(x[:, None] * unit), np.zeros(3, dtype=np.int64)).shape == (1, 0)


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(1)
    rows = [
        (person, f"i{item}", f"r{rater}", int(rng.integers(0, 3)))
        for person in range(100)
        for rater in rng.choice(4, 2, replace=False)
        for item in range(3)
    ]
    frame = pl.DataFrame(rows, schema=["person", "item", "rater", "score"], orient="row")
    return si.read(frame, facets=["rater"])


def interactions(ratings, values, regularization=0.0):
    properties = {"x": {f"i{item}": value for item, value in enumerate(values)}}
    design = LinearDesign("items + rater + rater:x", properties=properties)
    fit = si.SpectralPartialCredit(regularization=regularization).fit(ratings, design=design)
    effects = fit.effects_
    return np.array(effects["effect"])[np.array(effects["term"]) == "rater:x"], fit.calibration_.thresholds


def test_an_interaction_does_not_depend_on_zero_or_unit_of_its_property(ratings):
    """A centered property is 0 for some items and below it for others: it says by how much, not whether."""
    x = np.array([-1.0, 0.0, 1.0])
    expected, thresholds = interactions(ratings, x)
    shifted, same = interactions(ratings, x + 3)
    np.testing.assert_allclose(shifted - shifted.mean(), expected - expected.mean(), atol=1e-5)
    np.testing.assert_allclose(same - same.mean(), thresholds - thresholds.mean(), atol=1e-5)
    for unit in (1e-4, 1e4):
        np.testing.assert_allclose(interactions(ratings, x * unit)[0] * unit, expected, rtol=1e-6, atol=1e-8)


def test_a_centered_property_calls_for_no_prior(ratings):
    properties = {"x": {"i0": -1.0, "i1": 0.0, "i2": 1.0}}
    fit = si.SpectralPartialCredit().fit(ratings, design=LinearDesign("items + rater + rater:x", properties=properties))
    assert not [finding for finding in fit.findings_ if finding.code == "regularization"]


def test_difficulties_have_the_mean_zero_also_where_steps_were_cut():
    """Items from -9 to 9: the first step of an item points farther than a step may go."""
    difficulty, ability = np.linspace(-9, 9, 8), np.random.default_rng(0).normal(0, 4, 400)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    table = (np.random.default_rng(5).random(chance.shape) < chance).astype(float)
    fit = si.SpectralRasch(regularization=0).fit(table)
    assert abs(np.nanmean(fit.difficulty_)) < 1e-9
    known = np.isfinite(fit.difficulty_)
    exact = si.ConditionalRasch().fit(table[:, known])
    np.testing.assert_allclose(fit.difficulty_[known], exact.difficulty_, atol=0.01)


def test_every_part_has_the_mean_zero_also_where_steps_were_cut():
    difficulty, ability = np.linspace(-9, 9, 8), np.random.default_rng(0).normal(0, 4, 800)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    half = (np.random.default_rng(5).random(chance.shape) < chance).astype(float)
    table = np.full((800, 16), np.nan)
    table[:400, :8], table[400:, 8:] = half[:400], half[400:]
    fit = si.SpectralRasch().fit(table)
    assert fit.difficulty_[:8].mean() == pytest.approx(0, abs=1e-9)
    assert fit.difficulty_[8:].mean() == pytest.approx(0, abs=1e-9)
