"""The displacement of an anchored item against another fit in which that item is free."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import Responses, simulate
from spectral_irt.conditional import displacement
from spectral_irt.errors import OptionError

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
    monkeypatch.setattr(displacement, "REFIT_ANSWERS", 0)
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


@pytest.mark.parametrize("name", ["right or wrong", "4 categories"])
def test_every_table_has_the_displacement_of_the_fit(name):
    data, estimator = CASES[name]
    _, fit = anchored(data, estimator, WRONG_BY)
    study = fit.analyse(data.responses)
    expected = fit.calibration_.further["displacement"][:5]
    tables = study.tables()
    for table in ("items", "item_fit"):
        np.testing.assert_array_equal(tables[table]["displacement"][:5], expected)
        assert np.isnan(tables[table]["displacement"][5:]).all()
    rows = study.record()["anchors"]["items"]
    assert [row["displacement"] for row in rows] == expected.tolist()
    shown = study.summary(width=200)
    assert "displ." in shown
    assert f"{expected[4]:.2f}" in shown
    without = estimator().fit(data.responses).analyse(data.responses)
    assert "displacement" not in without.tables()["item_fit"]
    assert without.record()["anchors"] is None


@pytest.mark.parametrize("name", ["missing answers", "4 categories"])
def test_a_free_anchor_is_estimated_beside_the_others(name):
    data, estimator = CASES[name]
    anchors, fit = anchored(data, estimator, WRONG_BY)
    label = data.responses.items[4]
    others = {each: value for each, value in anchors.items() if each != label}
    expected = estimator(regularization=0).fit(data.responses, anchors=others)
    free = estimator(regularization=0).fit(data.responses, anchors=anchors, free=label)
    named = si.AnchoredRasch(anchors, free=[label], regularization=0).fit(data.responses)
    for found in (free, named):
        np.testing.assert_array_equal(found.difficulty_, expected.difficulty_)
        np.testing.assert_array_equal(found.se_, expected.se_)
        assert found.status_[4] == "ok"
        (note,) = [finding for finding in found.findings_ if finding.code == "freed_anchors"]
        assert note.items == (label,)
        assert found.analyse(data.responses).record()["anchors"]["free"] == [label]
    (warning,) = [finding for finding in fit.findings_ if finding.code == "displaced_anchors"]
    assert warning.items[0] == label  # the farthest
    assert f"`free=['{label}']`" in warning.remedy


def test_errors_of_a_bank_stay_with_the_anchors_that_are_left():
    data = simulate.rasch(900, 12, seed=11).responses
    old, new = data.take_persons(np.arange(400)), data.take_persons(np.arange(400, 900))
    bank = si.SpectralRasch().fit(old).analyse(old).to_bank()
    free = si.AnchoredRasch(bank, free=[2, 7]).fit(new)
    assert free.anchored_.tolist() == [item not in (2, 7) for item in range(12)]
    np.testing.assert_array_equal(free.anchor_se_[free.anchored_], bank.se[free.anchored_])
    exact = si.AnchoredRasch(dict(enumerate(bank.difficulty.tolist())), free=[2, 7]).fit(new)
    assert (free.se_[[2, 7]] > exact.se_[[2, 7]]).all()  # errors of the anchors are passed on


def test_what_cannot_be_set_free():
    data, estimator = CASES["right or wrong"]
    fit = estimator()
    with pytest.raises(OptionError, match=r"'gone'.* the data have the items"):
        fit.fit(data.responses, anchors={0: 0.1, 1: 0.2}, free=["gone"])
    with pytest.raises(OptionError, match="names 7, no anchor and therefore free already"):
        fit.fit(data.responses, anchors={0: 0.1, 1: 0.2}, free=[1, 7])
    with pytest.raises(OptionError, match="there are no `anchors`"):
        fit.fit(data.responses, free=[1])
    with pytest.raises(OptionError, match="`free` leaves none of the anchors that are in the data"):
        fit.fit(data.responses, anchors={0: 0.1, 1: 0.2}, free=[0, 1])


def test_a_displaced_anchor_is_among_the_curves_that_are_drawn():
    from spectral_irt.plots.all import items_of_a_sheet

    data = simulate.rasch(600, 45, seed=8)
    anchors = {item: data.difficulty[item] for item in range(10)}
    anchors[3] += 0.9
    study = si.AnchoredRasch(anchors).fit(data.responses).analyse(data.responses)
    labels, which = items_of_a_sheet(study)
    assert labels[0] == 3
    assert len(labels) == len(set(labels)) == 30
    assert "displaced anchors first" in which
