"""Checks, dependence and classical statistics of ordered answers: the binary case, and power."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import ConditionalPartialCredit, ConditionalRatingScale, SpectralPartialCredit, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.inference.prediction import compare, marginal_categories

# ------------------------------------------------------------------------------------------ tests of the model


@pytest.mark.slow
def test_unequal_slopes_are_found_and_equal_ones_are_not():
    """Power: slopes of 0.4 and 1.8 among 1,000 people."""
    rng = np.random.default_rng(3)
    theta, slope = rng.normal(0, 1.3, 1000), np.tile([0.4, 1.0, 1.8, 1.0], 2)
    beta = np.sort(rng.normal(0, 1, (8, 3)), axis=1)
    table = np.empty((1000, 8))
    for i in range(8):
        x = np.concatenate([np.zeros((1000, 1)), np.cumsum(slope[i] * theta[:, None] - beta[i], axis=1)], axis=1)
        p = np.exp(x - x.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        table[:, i] = (rng.random(1000)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    study = SpectralPartialCredit().fit(table).analyse(table)
    assert study.quick_model_test().p < 1e-6
    assert study.model_test("mean").p < 1e-6
    checks = study.checks()
    assert checks.alarmed
    assert {0, 4} <= set(np.flatnonzero(columns_of(study.item_fit)["misfit"] == "underfit"))
    good = simulate.partial_credit(1000, 8, categories=4, seed=1).responses
    fitting = SpectralPartialCredit().fit(good).analyse(good)
    assert not fitting.checks().alarmed
    assert "no misfit of items seen" in fitting.checks().sentence()


# --------------------------------------------------------------------------------------------- dependence


@pytest.mark.slow
def test_dependent_items_and_a_second_dimension_are_found():
    """Power: an item that copies another for half of the people; two abilities with a correlation of 0.6."""
    rng = np.random.default_rng(2)
    table = simulate.partial_credit(800, 10, categories=4, seed=6).responses.to_dense()
    copied = table.copy()
    copied[:400, 1] = copied[:400, 0]
    study = SpectralPartialCredit().fit(copied).analyse(copied)
    found = study.checks().shared
    assert found.dependent
    assert (found.first[0], found.second[0]) == (0, 1)
    pair = study.local_dependence().table().row(0, named=True)
    assert {pair["item_1"], pair["item_2"]} == {0, 1}
    assert pair["dependent"]
    common, own = rng.normal(size=(2, 800)), np.sqrt(0.4)
    abilities = [1.3 * (np.sqrt(0.6) * common[0] + own * rng.normal(size=800)) for _ in range(2)]
    two = [
        simulate.partial_credit(800, 8, categories=4, ability=each, seed=9).responses.to_dense() for each in abilities
    ]
    both = np.concatenate(two, axis=1)
    assert SpectralPartialCredit().fit(both).analyse(both).checks().shared.two_dimensions


# ---------------------------------------------------------------------------------------- classical statistics


@pytest.mark.parametrize(
    ("turned", "noise"), [((0, 3, 4, 7, 9, 11), 0.0), ((1, 2, 5, 8, 9, 10), 0.4), ((4, 6, 7), 0.2)]
)
def test_all_reversed_items_are_named_first_and_ready_to_paste(turned: tuple[int, ...], noise: float) -> None:
    """Half of the items reversed is the hard case: no total score says who is able."""
    rng = np.random.default_rng(len(turned))
    x = simulate.partial_credit(600, 12, categories=5, seed=12).responses.to_dense()
    x = np.where(rng.random(x.shape) < noise, rng.integers(0, 5, x.shape), x)
    x[:, turned] = 4 - x[:, turned]
    x[rng.random(x.shape) < 0.05] = np.nan
    study = SpectralPartialCredit().fit(x).analyse(x)
    codes = [one.code for one in study.findings()]
    found = study.findings()[codes.index("reversed_items")]
    rest = tuple(k for k in range(12) if k not in turned)
    assert found.items == (
        rest if len(turned) == 6 and 0 in turned else turned
    )  # of equal halves, not that of the first
    assert f"`reverse='{','.join(map(str, found.items))}'`" in found.remedy
    assert ("either half may be" in found.sentence) == (len(turned) == 6)
    follow = [code for code in codes if code in ("second_dimension", "misfitting_items", "dependent_items")]
    assert follow
    assert codes.index(follow[0]) > codes.index("reversed_items")


# -------------------------------------------------------------------------------------------------- prediction


@pytest.mark.slow
def test_held_out_answers_are_predicted():
    """By hand for one prior; and the true model predicts better than one that ties its thresholds."""
    data = simulate.partial_credit(900, thresholds=[[-1.5, 1.5], [0.8, -0.8], [-0.2, 0.2], [1.0, -1.0]], seed=4)
    nodes = np.linspace(-6, 6, 2001)
    weight = np.exp(-(nodes**2) / 2)
    x = np.stack([0 * nodes, nodes + 1.5, 2 * nodes], axis=1)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p = (weight[:, None] * p / p.sum(axis=1, keepdims=True)).sum(axis=0) / weight.sum()
    steps = data.responses.thresholds
    np.testing.assert_allclose(marginal_categories(steps, data.thresholds, 0.0, 1.0)[0], p, atol=1e-6)
    methods = {"pcm-cml": ConditionalPartialCredit, "rsm-cml": ConditionalRatingScale}
    rows = compare(data.responses, methods, seed=1)
    assert rows[0].loglik > rows[1].loglik + 0.01
    assert rows[0].distance_to_cml == 0
    assert rows[1].distance_to_cml > 0.3
