"""The displacement of an anchored item against another fit in which that item is free."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import Responses, simulate
from spectral_irt.conditional import errors

WRONG_BY = np.array([0.9, -0.1, 0.0, 0.0, 2.0])  # what is added to the true values of the first items


def anchored(data, estimator, wrong_by, **options):
    responses = data.responses
    layout = responses.thresholds
    anchors = {}
    for item, wrong in enumerate(wrong_by):
        own = data.thresholds[layout.item == item] - data.thresholds.mean()
        anchors[responses.items[item]] = own + wrong
    return anchors, estimator(regularization=0).fit(responses, anchors=anchors, **options)


def refit(responses, estimator, anchors, item, **options):
    """How far from its anchor a fit puts an item that is free, and its standard error."""
    others = {label: value for label, value in anchors.items() if label != responses.items[item]}
    fit = estimator(regularization=0).fit(responses, anchors=others, **options)
    return fit.difficulty_[item] - np.mean(anchors[responses.items[item]]), fit.se_[item]


CASES = {
    "right or wrong": (simulate.rasch(500, 10, seed=3), si.SpectralRasch),
    "missing answers": (simulate.rasch(800, 12, design="sampled", p=0.5, seed=4), si.SpectralRasch),
    "4 categories": (simulate.partial_credit(500, 8, categories=4, seed=5), si.SpectralPartialCredit),
    "all items anchored": (simulate.partial_credit(400, 5, categories=3, seed=6), si.SpectralPartialCredit),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_displacements_are_those_of_another_fit(name, weighted):
    data, estimator = CASES[name]
    weights = np.random.default_rng(1).choice([0.5, 1.5], data.responses.n_persons) if weighted else None
    anchors, fit = anchored(data, estimator, WRONG_BY, weights=weights)
    further = fit.calibration_.further
    for item in range(len(WRONG_BY)):
        moved, se = refit(data.responses, estimator, anchors, item, weights=weights)
        assert further["displacement"][item] == pytest.approx(moved, rel=0.02, abs=0.004)
        assert further["displacement_se"][item] == pytest.approx(se, rel=0.02)


def test_where_other_fits_would_take_long_an_item_moves_as_a_whole(monkeypatch):
    data, estimator = CASES["right or wrong"]
    exact = anchored(data, estimator, WRONG_BY)[1].calibration_.further
    monkeypatch.setattr(errors, "REFIT_ANSWERS", 0)
    rough = anchored(data, estimator, WRONG_BY)[1].calibration_.further
    np.testing.assert_allclose(rough["displacement"][:5], exact["displacement"][:5], rtol=0.06, atol=0.01)
    np.testing.assert_allclose(rough["displacement_se"][:5], exact["displacement_se"][:5], rtol=0.06)


@pytest.mark.parametrize("regularization", [0, "auto"])
def test_the_only_anchor_of_a_part_has_no_displacement(regularization):
    """Two forms without common people, one anchor in each: set free, an anchor would take its form along."""
    table = simulate.rasch(600, 10, seed=7).responses.to_dense()
    table[:300, 5:] = np.nan
    table[300:, :5] = np.nan
    responses = Responses.from_wide(table)
    label = responses.items.tolist()
    fit = si.SpectralRasch(regularization=regularization)
    alone = fit.fit(responses, anchors={label[0]: 0.3, label[5]: -0.2}).calibration_.further
    assert np.isnan(alone["displacement"]).all()
    two = fit.fit(responses, anchors={label[0]: 0.3, label[1]: 0.1, label[5]: -0.2}).calibration_.further
    assert np.isfinite(two["displacement"][:2]).all()
    assert np.isnan(two["displacement"][2:]).all()
