"""Which way to standard errors is taken, what parts without a link do not know, and what is said of a design."""

from types import SimpleNamespace

import numpy as np
import pytest

from spectral_irt import simulate
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data.block import Thresholds
from spectral_irt.estimators.anchored import Anchored
from spectral_irt.estimators.estimable import Errors, between_parts
from spectral_irt.estimators.linear_fit import DesignResult, Explained, _people, explain_items, numbers_taken_for_words
from spectral_irt.estimators.spectral_errors import choose_method, chosen_method, expected_meat


@pytest.mark.parametrize(
    ("n_items", "contraction", "work", "method"),
    [
        (19, 0.1, 1e12, "dense"),
        (20, 0.1, 1e12, "one-pass"),
        (1000, 0.1, 3e9, "dense"),  # 4e9 multiplications in all
        (1000, 0.1, 3.1e9, "one-pass"),
        (1001, 0.1, 1e5, "one-pass"),
        (1001, 0.29, 1e5, "one-pass"),
        (1001, 0.3, 1e5, "multiplier"),
        (1001, 0.89, 1e5, "multiplier"),
        (1001, 0.9, 1e5, "dense"),
        (5000, 0.9, 1e5, "dense"),
        (5001, 0.9, 1e5, "multiplier"),
        (5001, 0.9, np.inf, "one-pass"),
    ],
)
def test_the_way_to_standard_errors(n_items, contraction, work, method):
    assert choose_method(n_items, contraction, work) == method
    rest = SimpleNamespace(thresholds=Thresholds.ones(n_items), pair_work=work)
    assert chosen_method(rest, contraction) == method
    alone = {"multiplier": "dense" if n_items <= 5000 else "one-pass"}.get(method, method)
    assert chosen_method(rest, contraction, multipliers=False) == alone


@pytest.mark.parametrize(
    ("n_items", "contraction", "method"), [(500, 0.9, "dense"), (501, 0.49, "one-pass"), (501, 0.5, "multiplier")]
)
def test_the_way_to_standard_errors_of_several_thresholds(n_items, contraction, method):
    rest = SimpleNamespace(thresholds=Thresholds(np.full(n_items, 2)), pair_work=1e5)
    assert chosen_method(rest, contraction) == method


def test_parts_without_a_link_share_what_is_not_known_of_their_level():
    parts = np.array([0, 1, 1, 2, 0, 0])
    np.testing.assert_array_equal(between_parts(parts, 0.5, False), [0, np.inf, np.inf, np.inf, 0, 0])
    np.testing.assert_allclose(between_parts(parts, 0.5, True), [2 / 3, 1, 1, 2, 2 / 3, 2 / 3])
    layout = Thresholds(np.array([2, 1, 2]))
    covariance = np.diag([1.0, 2, 3, 4, 5]) + 0.1
    se = np.sqrt(np.diag(covariance))
    errors = Errors(se, np.array([0.5, 0.6, 0.7]), "dense", covariance)
    unknown = np.array([0.2, 0.7, 0.7])
    wider = errors.with_unknown_levels(layout, np.array([0, 1, 1]), unknown)
    part, more = np.array([0, 0, 1, 1, 1]), np.array([0.2, 0.2, 0.7, 0.7, 0.7])
    np.testing.assert_allclose(wider.thresholds**2, se**2 + more)
    np.testing.assert_allclose(wider.locations**2, np.array([0.25, 0.36, 0.49]) + unknown)
    expected = covariance.copy()
    for i in range(5):
        for j in range(5):
            if part[i] == part[j]:
                expected[i, j] += more[i]
    np.testing.assert_allclose(wider.covariance, expected)
    none = Errors(se, np.ones(3), "one-pass").with_unknown_levels(layout, np.array([0, 1, 1]), unknown)
    assert none.covariance is None


@pytest.mark.parametrize(("p", "named"), [(0.049, True), (0.05, False), (None, False)])
def test_properties_that_do_not_explain_everything_are_told(p, named):
    found = Explained({}, 10, -50.0, -40.0, 3, 0.72, 20.0, p, ("a remark",))
    codes = [one if isinstance(one, str) else one.code for one in found.findings]
    assert codes == (["a remark", "covariates_incomplete"] if named else ["a remark"])
    if named:
        assert "explain 72% of the variance" in found.findings[1].sentence


def test_numbers_with_a_word_among_them_are_told():
    few = {"length": {1: 1, 2: 2, 3: "long", 4: 3, 5: None}, "kind": {1: "a", 2: "b", 3: 1}, "size": {1: 1, 2: 2}}
    (finding,) = numbers_taken_for_words(few)
    assert finding.items == (3,)
    assert "'length' is not in numbers throughout ('long' (item 3))" in finding.sentence
    assert "an effect for each of 4" in finding.sentence
    half = {"length": {1: 1, 2: "x", 3: "long", 4: 3}}
    assert not list(numbers_taken_for_words(half))


def test_properties_beside_free_items_by_their_likelihoods():
    """chi-square is twice the difference of the logarithms, df the parameters that items have more."""
    data = simulate.rasch(300, 7, seed=3)
    known = {item: float(b) for item, b in zip(data.responses.items.tolist(), data.difficulty, strict=True)}
    found = explain_items(data.responses, {"difficulty": known})
    assert found.df == 7 - 1 - 1
    assert found.chi2 == pytest.approx(2 * (found.loglik_free - found.loglik))
    assert found.effects["effect"][0] == pytest.approx(1, abs=3 * found.effects["se"][0])
    np.testing.assert_allclose(found.effects["z"], found.effects["effect"] / found.effects["se"])
    assert 0.9 < found.explained < 1
    two = {"other": {item: float(k % 3) for k, item in enumerate(known)}, "difficulty": known}
    more = explain_items(data.responses, two)
    assert more.df == found.df - 1
    assert more.loglik >= found.loglik


def test_people_who_met_a_column_count_once_and_not_with_an_extreme_score():
    data = simulate.rasch(50, 6, design="sampled", p=0.6, seed=4).responses
    meets = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]], dtype=float)
    from scipy import sparse

    found = data.entries.sum(_people, data.thresholds, sparse.csr_array(meets))
    expected = np.zeros(2)
    for row in data.to_dense():
        answered = ~np.isnan(row)
        if 0 < np.nansum(row) < answered.sum():
            expected += (answered @ meets) > 0
    np.testing.assert_array_equal(found, expected)


def test_items_of_two_facets_are_numbered_by_the_subsets_of_both():
    """Virtual items on the same scale have one number; those of the first subsets come first."""
    names = ("item", "rater", "day")
    codes = {"rater": np.array([0, 0, 1, 1, 2, 2]), "day": np.array([0, 1, 0, 1, 0, 1])}
    facets = SimpleNamespace(names=names, column=lambda name: (None, codes[name]))
    subset = {"rater": np.array([1, 0, 0]), "day": np.array([0, 1])}
    scales = np.array([3, 2, 0, 1, 0, 1])  # by rater and day: (1,0) (1,1) (0,0) (0,1) (0,0) (0,1)
    result = SimpleNamespace(design=SimpleNamespace(facets=facets), scales=scales, subset=subset)
    assert DesignResult.subset_of_items(result).tolist() == [2, 3, 0, 1, 0, 1]


def test_a_chain_beside_anchors_has_their_mean_in_each_part():
    """Of a part without anchors the mean of all, and anchors as they are given."""
    value = np.array([1.0, np.nan, 2.0, np.nan, np.nan, 0.5, np.nan])
    beta = np.array([0.0, 0.3, 0.4, -1.0, 0.2, 0.1, -0.5])
    component = np.array([0, 0, 0, 2, 2, 1, 1])
    mask = np.ones(7, dtype=bool)
    found = Anchored(value, np.full(7, -1)).around(beta, mask, component)
    first = ((1.0 - 0.0) + (2.0 - 0.4)) / 2
    every = ((1.0 - 0.0) + (2.0 - 0.4) + (0.5 - 0.1)) / 3
    np.testing.assert_allclose(found, [1.0, 0.3 + first, 2.0, -1.0 + every, 0.2 + every, 0.5, -0.5 + 0.4])


def test_expected_squares_of_weighted_scores_have_the_weights_squared():
    data = simulate.rasch(120, 5, seed=2)
    weights = np.random.default_rng(1).uniform(0.3, 3, 120)
    beta = data.difficulty
    found = SimpleNamespace(point=SimpleNamespace(beta=beta))
    expected = np.zeros((5, 5))
    for person in np.flatnonzero(data.responses.informative):  # the others tell nothing
        alone = data.responses.take_persons(np.array([person]))
        expected += weights[person] ** 2 * ExactLikelihood(alone).information(beta)
    likelihood = Likelihood(data.responses, beta, weights=weights)
    np.testing.assert_allclose(expected_meat(likelihood, found.point.beta, None), expected, rtol=1e-4, atol=1e-6)
    given = np.eye(5)
    assert expected_meat(Likelihood(data.responses, beta), beta, given) is given
