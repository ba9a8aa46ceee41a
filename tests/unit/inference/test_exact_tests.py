"""Ponocny's exact tests against all tables with the margins of a small one, and against eRm's NPtest."""

import json
from itertools import combinations, product

import numpy as np
import pytest

import spectral_irt as si
from gold import HERE, answers
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.exact_tests import exact_test, tables_with_margins

SMALL = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]], dtype=bool)
DRAWS = 4000
ERRORS = 4.5  # standard errors of a share that may differ: one of a hundred thousand does by chance


def all_tables(x):
    """Every table with the margins of this one, persons x items."""
    rows = [list(combinations(range(x.shape[1]), int(row.sum()))) for row in x]
    found = []
    for chosen in product(*rows):
        table = np.zeros(x.shape, dtype=bool)
        for person, items in enumerate(chosen):
            table[person, list(items)] = True
        if (table.sum(axis=0) == x.sum(axis=0)).all():
            found.append(table)
    return np.array(found)


def t2(x):
    return x[:, :3].sum(axis=1).var(ddof=1)


def t10(x, high):
    total = 0
    for i, j in product(range(x.shape[1]), repeat=2):
        a, b = (np.sum(x[group, i] & ~x[group, j]) for group in (high, ~high))
        c, d = (np.sum(x[group, j] & ~x[group, i]) for group in (high, ~high))
        total += abs(int(a) * int(d) - int(b) * int(c))
    return total


def close(found, exact, draws=DRAWS):
    return abs(found - exact) < ERRORS * np.sqrt(max(exact * (1 - exact), 0.001) / draws) + 1 / draws


def test_trades_reach_every_table_equally_often():
    every = all_tables(SMALL)
    keys = {table.tobytes(): k for k, table in enumerate(every)}
    drawn = np.concatenate(list(tables_with_margins(SMALL.T, DRAWS, 3)), axis=1)
    place = [keys[np.ascontiguousarray(drawn[:, k].T).tobytes()] for k in range(DRAWS)]
    counts = np.bincount(place, minlength=len(every))
    expected = DRAWS / len(every)
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi2 - (len(every) - 1)) < 5 * np.sqrt(2 * (len(every) - 1))


def test_p_values_are_those_of_all_tables():
    every = all_tables(SMALL)
    data = Responses.from_wide(SMALL.astype(float))
    exact = np.mean([t2(x) >= t2(SMALL) - 1e-9 for x in every])
    assert close(exact_test(data, "T2", items=[0, 1, 2], draws=DRAWS).p, exact)
    high = SMALL.sum(axis=1) > np.median(SMALL.sum(axis=1))
    found = exact_test(data, "T10", draws=DRAWS)
    assert found.statistic == t10(SMALL, high)
    assert close(found.p, np.mean([t10(x, high) >= t10(SMALL, high) for x in every]))
    correlations = np.array([np.corrcoef(x.T)[np.triu_indices(4, 1)] for x in every.astype(float)])
    distance = np.abs(correlations - correlations.mean(axis=0)).sum(axis=1)
    of_data = np.abs(np.corrcoef(SMALL.T)[np.triu_indices(4, 1)] - correlations.mean(axis=0)).sum()
    found = exact_test(data, "T11", draws=DRAWS)
    assert found.statistic == pytest.approx(of_data, abs=0.1)
    assert abs(found.p - np.mean(distance >= of_data - 1e-9)) < 0.06  # the mean of the draws is not that of all
    table = exact_test(data, "T1", draws=DRAWS).columns
    for i, j, agree, p in zip(table["item_1"], table["item_2"], table["agree"], table["p"], strict=True):
        assert agree == np.sum(SMALL[:, i] == SMALL[:, j])
        assert close(p, np.mean([np.sum(x[:, i] == x[:, j]) >= agree for x in every]))


def test_p_values_are_those_of_erm():
    """`NPtest` of eRm 1.0-2; see tests/reference/exact_tests.R."""
    theirs = json.loads((HERE / "test15_nptest.json").read_text())
    data = answers("test15")
    draws = 1000
    both = 1 / (1 / draws + 1 / theirs["n_eff"])  # draws of one program that would err as much as both
    found = exact_test(data, "T1", draws=draws)
    p = {}
    for a, b, value in zip(found.columns["item_1"], found.columns["item_2"], found.columns["p"], strict=True):
        p[a, b] = value
    labels = data.items.tolist()
    for (a, b), value in zip(combinations(labels, 2), theirs["T1"], strict=True):
        assert close(p[a, b], value, both)
    t2_found = exact_test(data, "T2", items=labels[:5], draws=draws)
    assert t2_found.statistic == pytest.approx(theirs["T2"]["statistic"], abs=1e-5)
    assert close(t2_found.p, theirs["T2"]["p"], both)
    t10_found = exact_test(data, "T10", draws=draws)
    assert t10_found.statistic == theirs["T10"]["statistic"]
    assert close(t10_found.p, theirs["T10"]["p"], both)
    assert close(exact_test(data, "T11", draws=draws).p, theirs["T11"]["p"], both)


def test_a_copied_item_is_found():
    x = si.simulate.rasch(120, 8, seed=2).responses.to_dense()
    x[:60, 5] = x[:60, 2]
    found = exact_test(x, "T1", draws=499)
    assert {found.columns["item_1"][0], found.columns["item_2"][0]} == {2, 5}
    assert found.p == found.columns["p_adjusted"][0] == 1 / 500
    assert exact_test(x, "T11", draws=199).p < 0.05


@pytest.mark.slow
def test_level():
    """200 data sets of 40 x 6: 5%, with a standard error of 1.5%."""
    p = [exact_test(si.simulate.rasch(40, 6, seed=300 + k).responses, "T10", draws=199).p for k in range(200)]
    assert 0.005 <= np.mean(np.array(p) < 0.05) <= 0.095


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"test": "T3"}, "it can be T1"),
        ({"test": "T2"}, "T2 takes them"),
        ({"test": "T1", "items": [0, 1]}, "no other test"),
        ({"test": "T2", "items": [0, 9]}, "names two or more"),
        ({"test": "T10", "split": ["a"] * 6}, "two labels"),
        ({"test": "T10", "split": "half"}, "can be 'median'"),
        ({"draws": 20}, "takes 199"),
    ],
)
def test_unfit_options(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        exact_test(Responses.from_wide(SMALL.astype(float)), **options)


def test_missing_answers_are_refused():
    x = SMALL.astype(float)
    x[2, 1] = np.nan
    with pytest.raises(DesignError, match="1 of 6 people miss an answer"):
        exact_test(x)
