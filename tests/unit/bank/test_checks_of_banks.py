"""Every rule about the numbers of a bank, on both sides of its border."""

import numpy as np
import polars as pl
import pytest

from spectral_irt.bank import checks
from spectral_irt.data.block import Thresholds

NAN, INF = float("nan"), float("inf")
GROUPS = checks.MOST_GROUPS


def items(**changed):
    columns = {"item": ["a", "b"], "n": [10, 0], "score": [5, 0], "information": [2.0, 0.0], "link_group": [0, -1]}
    columns |= {"se": [0.2, 0.0], "label": ['"a"', '"b"']}
    return pl.DataFrame(columns | changed)


def thresholds(**changed):
    columns = {"threshold": [-500.0, 500.0], "prior_mean": [0.0, NAN], "information": [0.0, 3.0]}
    return pl.DataFrame(columns | {"prior_gradient": [0.0, -2.0]} | changed)


def categories(**changed):
    columns = {"item": [0, 0, 1, 1, 1], "category": [0, 1, 0, 1, 2], "n": [0, 4, 1, 2, 3]}
    columns |= {"code": [0.0, 1.0, 1.0, 3.0, 4.0], "threshold": [NAN, 0.3, NAN, -1.0, 1.0]}
    return pl.DataFrame(columns | changed)


RULES = {
    "counts": (checks._counts, items),
    "groups": (checks._groups, items),
    "errors": (checks._errors, items),
    "labels": (checks._labels, items),
    "thresholds": (checks._thresholds, thresholds),
    "categories": (lambda rows: checks._categories(rows, Thresholds(np.array([1, 2]))), categories),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_table_at_the_border_of_what_can_be_is_one(rule):
    check, table = RULES[rule]
    assert list(check(table())) == []


@pytest.mark.parametrize(
    ("rule", "column", "values", "words"),
    [
        ("counts", "n", [10, -1], "item 'b' with the number of responses -1"),
        ("counts", "score", [-2, 0], "item 'a' with the sum of responses -2"),
        ("counts", "information", [2.0, -0.1], "information about items that is no number"),
        ("counts", "information", [NAN, 0.0], "information about items that is no number"),
        ("counts", "information", [INF, 0.0], "information about items that is no number"),
        ("groups", "link_group", [0, -2], "groups of items"),
        ("groups", "link_group", [0, GROUPS], "groups of items"),
        ("errors", "se", [0.2, -0.5], "the standard error -0.5"),
        ("labels", "label", ['"a"', '"a"'], "two items with the label"),
        ("labels", "label", ['"a"', "[1]"], "labels are text or numbers"),
        ("thresholds", "threshold", [-500.1, 0.0], "the threshold -500.1"),
        ("thresholds", "threshold", [0.0, 500.1], "the threshold 500.1"),
        ("thresholds", "prior_mean", [0.0, 501.0], "the mean of the prior 501"),
        ("thresholds", "information", [0.0, -1.0], "information about thresholds"),
        ("thresholds", "information", [0.0, INF], "information about thresholds"),
        ("thresholds", "prior_gradient", [0.0, NAN], "a gradient of the prior"),
        ("categories", "category", [0, 1, 0, 2, 1], "categories that are not 0, 1, 2"),
        ("categories", "item", [0, 0, 0, 1, 1], "categories that are not 0, 1, 2"),
        ("categories", "n", [0, 4, 1, -2, 3], "fewer than no responses"),
        ("categories", "code", [0.0, 1.0, 1.0, 1.0, 4.0], "codes of categories that do not rise"),
        ("categories", "code", [0.0, NAN, 1.0, 3.0, 4.0], "codes of categories that do not rise"),
        ("categories", "code", [0.0, 1.0, 1.0, 3.0, INF], "codes of categories that do not rise"),
    ],
)
def test_one_number_beyond_the_border_is_named(rule, column, values, words):
    check, table = RULES[rule]
    wrong = list(check(table(**{column: values})))
    assert len(wrong) == 1
    assert words in wrong[0]


def test_groups_and_errors_that_are_unknown_or_many():
    assert list(checks._groups(items(link_group=[0, GROUPS - 1]))) == []
    assert list(checks._errors(items(se=[NAN, INF]))) == []
    # The code of a category of an item without a difficulty may be unknown.
    unknown = categories(code=[0.0, NAN, 1.0, 3.0, 4.0], threshold=[NAN, NAN, NAN, -1.0, 1.0])
    assert list(RULES["categories"][0](unknown)) == []


@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        ([0, 1, 2], [0, 0, 1], [1.0, 0.5, 2.0], ""),
        ([0, 1, 3], [0, 0, 1], [1.0, 0.5, 2.0], "that it does not have"),
        ([0, 1, 2], [-1, 0, 1], [1.0, 0.5, 2.0], "that it does not have"),
        ([0, 1, 1], [0, 0, 2], [1.0, 0.5, 2.0], "that it does not have"),
        ([0, 1, 1], [0, 0, 0], [1.0, 0.5, 2.0], "twice"),
        ([0, 2, 1], [0, 0, 1], [1.0, 0.5, 2.0], "twice"),
        ([0, 1, 2], [0, 0, 1], [1.0, NAN, 2.0], "no number"),
    ],
)
def test_entries_of_an_information_matrix(row, column, value, words):
    entries = pl.DataFrame({"row": row, "column": column, "value": value})
    wrong = list(checks._matrix(entries, Thresholds(np.array([1, 2]))))
    assert len(wrong) == bool(words)
    assert not words or words in wrong[0]


@pytest.mark.parametrize("stacked", [False, True])
def test_eigenvalues_below_zero_by_more_than_rounding(stacked):
    vectors = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]

    def matrix(least):
        full = vectors @ np.diag([least, 1.0, 2.0]) @ vectors.T
        return np.array([np.eye(3), full]) if stacked else full

    for fine in (0.0, 1e-3, -0.5e-6):
        checks.check_information(matrix(fine))
    for wrong in (-2e-6, -1.0):
        with pytest.raises(checks.SenselessBank, match="eigenvalue below zero"):
            checks.check_information(matrix(wrong))


@pytest.mark.parametrize(
    ("value", "least", "above", "number"),
    [
        (0, 0, -INF, True),
        (-1e-9, 0, -INF, False),
        (0.0, -INF, 0, False),
        (1e-9, -INF, 0, True),
        (True, 0, -INF, False),
        (NAN, -INF, -INF, False),
        (INF, 0, -INF, False),
        ("1", 0, -INF, False),
    ],
)
def test_what_is_a_number(value, least, above, number):
    assert checks._is_number(value, least=least, above=above) is number


def test_what_is_a_count():
    assert [value for value in (0, 3, -1, 2.0, True, "1") if checks._is_count(value)] == [0, 3]
