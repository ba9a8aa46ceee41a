"""Equating form by form: the booklets of a bank against last year's test."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.optimize import brentq

import spectral_irt as si
from spectral_irt.bank.covariance import Side
from spectral_irt.bank.equating import pairs_of_forms
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError

SETS = {"A": [*range(5), *range(5, 15)], "B": [*range(5), *range(10, 20)]}
YEARS = ("old", "new")


def responses_of(year, seed, categories=2, people=400, shift=0.0):
    """Last year: 12 items for everybody; this year: booklets A and B; five items are common."""
    rng = np.random.default_rng(seed)
    n_items = 12 if year == "old" else 20
    names = [f"c{k}" if k < 5 else f"{year}{k}" for k in range(n_items)]
    location = np.linspace(-1.2, 1.2, n_items)
    theta = rng.normal(shift, 1, people)
    steps = location[:, None] + np.linspace(-0.6, 0.6, categories - 1)[None] * (categories > 2)
    cumulated = np.concatenate([np.zeros((n_items, 1)), steps.cumsum(axis=1)], axis=1)
    logit = theta[:, None, None] * np.arange(categories) - cumulated
    p = np.exp(logit) / np.exp(logit).sum(axis=2, keepdims=True)
    table = (rng.random((people, n_items, 1)) > p.cumsum(axis=2)).sum(axis=2).astype(float)
    label = np.array(["A", "B"] * (people // 2))
    if year == "new":
        for name, items in SETS.items():
            table[np.ix_(label == name, np.setdiff1d(np.arange(n_items), items))] = np.nan
    options = {"ordered": True} if categories > 2 else {}
    return si.read(table, items=names, **options), label


def banks_of(categories=2, seed=0, people=400):
    made = []
    for k, year in enumerate(YEARS):
        responses, label = responses_of(year, 10 * seed + k, categories, people, 0.3 * k)
        estimator = si.SpectralPartialCredit() if categories > 2 else si.SpectralRasch()
        study = estimator.fit(responses).analyse(responses, form=label if year == "new" else None)
        made.append(study.to_bank())
    return made


def expected_score(thresholds, counts, theta):
    """The test characteristic curve, item after item."""
    total = 0.0
    start = 0
    for count in counts:
        cumulated = np.append(0, np.cumsum(thresholds[start : start + count]))
        weight = np.exp(theta * np.arange(count + 1) - cumulated)
        total += weight @ np.arange(count + 1) / weight.sum()
        start += count
    return total


def equated_by_hand(first, second, shift, score):
    """The ability of a score by bisection on one curve, and the score that the other curve has there."""
    theta = brentq(lambda at: expected_score(*first, at) - score, -12, 12, xtol=1e-12)
    return expected_score(*second, theta - shift)


def curve_of(bank, items):
    layout = bank.calibration.layout
    place = positions(items, bank.items)
    return bank.calibration.thresholds[layout.of_items(place)], layout.max_score[place].tolist()


@pytest.mark.parametrize("categories", [2, 3])
def test_a_booklet_against_last_years_test_is_the_plain_computation(categories, tmp_path):
    old, new = banks_of(categories)
    assert [form.name for form in new.forms] == ["A", "B"]
    new.save(tmp_path / "new")
    new = si.load(tmp_path / "new")
    assert [form.name for form in new.forms] == ["A", "B"]
    link = si.link(old, new)
    form = next(form for form in new.forms if form.name == "B")
    assert len(form.items) == 15
    found = si.equate(old, new, form_b="B")
    first, second = curve_of(old, old.items.tolist()), curve_of(new, form.items)
    assert found.names == ("A", "B: B")
    for score in range(1, sum(first[1])):
        by_hand = equated_by_hand(first, second, link.shift, score)
        assert found.equated[0][score] == pytest.approx(by_hand, abs=1e-6)


def test_errors_are_the_delta_method_by_numerical_derivatives():
    """Move each threshold of either side, link again by the same items and equate again, all by hand."""
    old, new = banks_of()
    link = si.link(old, new, "mean")
    found = si.equate(old, new, "mean", form_b="A")
    sides = Side.of(old), Side.of(new)
    form = next(form for form in new.forms if form.name == "A").items
    common = [f"c{k}" for k in range(5)]
    at_old, at_new = (positions(common, side.labels) for side in sides)
    on_form = positions(form, sides[1].labels)
    score, step = 6, 1e-4

    def equated(y, x):
        shift = np.mean(y[at_old] - x[at_new])
        return equated_by_hand((y, [1] * len(y)), (x[on_form], [1] * len(form)), shift, score)

    y, x = sides[0].threshold, sides[1].threshold
    assert equated(y, x) == pytest.approx(found.equated[0][score], abs=1e-6)
    variance = 0.0
    for k, side in enumerate(sides):
        gradient = np.zeros(len(side.threshold))
        for i in range(len(gradient)):
            ends = []
            for sign in (1, -1):
                moved = [y.copy(), x.copy()]
                moved[k][i] += sign * step
                ends.append(equated(*moved))
            gradient[i] = (ends[0] - ends[1]) / (2 * step)
        variance += side.errors.of(gradient)
    slope = (equated_by_hand((y, [1] * len(y)), (x[on_form], [1] * len(form)), link.shift + step, score)) - equated(
        y, x
    )
    variance += (slope / step) ** 2 * link.excess**2 / len(common)
    assert found.se[0][score] == pytest.approx(np.sqrt(variance), rel=1e-3)


def test_with_booklets_and_no_form_asked_python_asks_and_names_them():
    old, new = banks_of()
    with pytest.raises(si.errors.OptionError, match=r"B has 2 forms \('A', 'B'\)"):
        si.equate(old, new)
    assert si.equate(old, new, form_b="all").names == ("A", "B: all items")
    with pytest.raises(si.errors.OptionError, match="no form 'D'"):
        si.equate(old, new, form_b="D")


def test_a_bank_of_before_has_no_forms(tmp_path):
    _, new = banks_of()
    from dataclasses import replace

    from spectral_irt.bank.storage import bank_of, record_of, tables_of

    record = record_of(replace(new, forms=()))
    del record["forms"]
    assert bank_of(json.loads(json.dumps(record)), tables_of(new), ("", "")).forms == ()


def test_a_form_called_all_does_not_hide_the_items():
    old, new = banks_of()
    renamed = [dataclasses.replace(form, name="all") if form.name == "A" else form for form in new.forms]
    odd = dataclasses.replace(new, forms=tuple(renamed))
    assert pairs_of_forms(old, odd, "all,all items") == [("all", "all items")]
    of_form = si.equate(old, odd, form_b="all")
    of_items = si.equate(old, odd, form_b="all items")
    assert of_form.columns()["equated"].tolist() == si.equate(old, new, form_b="A").columns()["equated"].tolist()
    assert of_items.columns()["equated"].tolist() == si.equate(old, new, form_b="all").columns()["equated"].tolist()
    with pytest.raises(OptionError, match="B has no form 'C'; it has 'all', 'B', and 'all items'"):
        si.equate(old, odd, form_b="C")
