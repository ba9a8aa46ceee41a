"""What a linear design is told of its data, and what it tells of its parameters: by loops and from records."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import spectral_irt as si
from spectral_irt.data.block import Thresholds
from spectral_irt.estimators import linear_fit
from spectral_irt.estimators.linear_fit import DesignResult


def rated():
    """Ratings of 30 persons on three items by two raters; of the first item the highest category is rare."""
    rng = np.random.default_rng(2)
    rows = []
    for person in range(30):
        for item in ("a", "b", "c"):
            for rater in ("x", "y"):
                highest = 3 if item == "b" else 2
                rows.append((f"p{person:02}", item, rater, int(rng.integers(0, highest + 1))))
    frame = pl.DataFrame(rows, schema=["person", "item", "rater", "rating"], orient="row")
    return si.read(frame, response="rating", facets=["rater"])


def test_the_categories_beside_each_threshold_whoever_rated():
    responses = rated()
    design = si.LinearDesign("items + rater").of(responses)
    found = linear_fit._categories_beside(responses, design)
    counts = {}
    _, virtual, x = responses.answers()
    for one, category in zip(virtual.tolist(), x.astype(int).tolist(), strict=True):
        item = int(responses.facets.item[one])
        counts[item, category] = counts.get((item, category), 0) + 1
    expected = []
    used = []
    for item, most in enumerate((2, 3, 2)):
        for k in range(most):
            below, above = counts.get((item, k), 0), counts.get((item, k + 1), 0)
            expected.append(np.log((below + 0.5) / (above + 0.5)))
            used.append(below > 0 and above > 0)
    np.testing.assert_allclose(found.log_odds, expected)
    assert found.both_used.tolist() == used


def test_a_category_that_nobody_used_is_beside_two_thresholds():
    counts = np.array([[4, 0, 5, 2], [0, 3, np.nan, np.nan]])
    real = Thresholds(np.array([3, 1]))
    design = SimpleNamespace(facets=SimpleNamespace(by_item=lambda values: values), real=real)
    found = linear_fit._categories_beside(SimpleNamespace(category_counts=counts), design)
    assert found.both_used.tolist() == [False, False, True, False]
    np.testing.assert_allclose(found.log_odds, np.log([4.5 / 0.5, 0.5 / 5.5, 5.5 / 2.5, 0.5 / 3.5]))


def a_term(name, start, stop, of_facet=True):
    return SimpleNamespace(name=name, columns=slice(start, stop), of_facet=of_facet)


def test_levels_that_are_compared_with_no_other():
    design = SimpleNamespace(
        matrix=np.zeros((9, 8)),
        terms=[a_term("items", 0, 2, of_facet=False), a_term("rater", 2, 6), a_term("day", 6, 8)],
    )
    subset = {"items": np.array([0, 1]), "rater": np.array([0, 0, 1, 2])}
    assert linear_fit.levels_alone(design, subset).tolist() == [False] * 4 + [True] * 2 + [False] * 2


def a_result(**change):
    columns = slice(0, 4)
    design = SimpleNamespace(
        term=lambda name: SimpleNamespace(columns=columns),
        fixed=np.array([False, False, True, False, False]),
        terms=[a_term("rater", 0, 4), a_term("items", 4, 5, of_facet=False)],
        matrix=np.zeros((7, 5)),
        unit=np.array([1.0, 1, 1, 1, 10]),
    )
    fields = {
        "design": design,
        "eta": np.array([0.2, -0.4, 0.1, 0.3, 5.0]),
        "se": np.array([0.1, 0.2, 0.0, 0.4, 0.5]),
        "covariance": None,
        "se_method": "information",
        "subset": {"rater": np.array([0, 1, 1, 0])},
        "tied": np.array([True, True, True, False, True]),
        "optimum": SimpleNamespace(ridge=None),
        "factor": np.ones(2),
        "scales": np.zeros(3, dtype=np.int64),
    }
    return DesignResult(**fields | change)


def test_what_is_told_of_a_facet():
    found = a_result().facet("rater")
    assert found["status"].tolist() == ["ok", "unlinked", "anchored", "extreme"]
    assert found["se"].tolist() == [0.1, np.inf, 0.0, 0.4]
    single = a_result(subset={"rater": np.array([0, 0, 0, 1])}).facet("rater")
    assert single["status"].tolist() == ["ok", "ok", "anchored", "extreme"]
    assert single["se"].tolist() == [0.1, 0.2, 0.0, np.inf]


def test_effects_are_in_the_units_of_their_properties():
    found = a_result()
    np.testing.assert_allclose(found.effect, [0.2, -0.4, 0.1, 0.3, 0.5])
    np.testing.assert_allclose(found.effect_se, [0.1, 0.2, 0, 0.4, 0.05])
    assert not any(mask.any() for mask in found.under_prior.values())
    ridge = SimpleNamespace(precision=np.array([0.0, 2, 0, 0, 1]))
    held = a_result(optimum=SimpleNamespace(ridge=ridge)).under_prior
    assert held["rater"].tolist() == [False, True, False, False]
    assert held["items"].tolist() == [True]


@pytest.mark.parametrize("known", [False, True])
def test_errors_of_sums_of_parameters(known):
    root = np.random.default_rng(1).normal(size=(5, 9))
    covariance = root @ root.T
    b = np.array([[1.0, 0, -1, 0, 0], [0, 2, 0, 0.5, 1]])
    se = np.sqrt(np.diag(covariance))
    found = a_result(se=se, covariance=covariance if known else None).errors_of(sparse.csr_array(b))
    whole = covariance if known else np.diag(se**2)
    np.testing.assert_allclose(found, np.sqrt(np.diag(b @ whole @ b.T)))


def test_subsets_of_virtual_items_are_numbered_as_those_of_their_facets():
    """By the subsets of the raters and the days of each, the lowest first; equal scales have equal numbers."""
    rater, day = np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 0])
    codes = {"rater": rater, "day": day}
    facets = SimpleNamespace(names=("item", "rater", "day"), column=lambda name: (None, codes[name]))
    result = a_result(
        design=SimpleNamespace(facets=facets),
        subset={"rater": np.array([0, 2, 1]), "day": np.array([0, 1])},
        scales=np.array([2, 2, 0, 0, 1]),
    )
    # Numbers of rater and day: (2, 0) = 4, (0, 1) = 1 and (1, 0) = 2.
    assert result.subset_of_items().tolist() == [2, 2, 0, 0, 1]
