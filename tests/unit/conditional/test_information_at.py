"""Default standard errors against a sandwich from exact symmetric functions, written as loops (`dense_ordered`)."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from dense_ordered import sandwich, scores_and_information
from spectral_irt import Responses, simulate
from spectral_irt.conditional import exact_likelihood
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.estimators import LinearDesign, linear_fit

CLOSE = 2e-4  # relative: where steps end within 1e-4 standard errors, and series within 1e-4


def with_missing(table, share, seed):
    table = table.copy()
    table[np.random.default_rng(seed).random(table.shape) < share] = np.nan
    return table


def ordered(persons, items, categories, seed, missing=0.0):
    table = simulate.partial_credit(persons, items, categories=categories, seed=seed).responses.to_dense()
    return with_missing(table, missing, seed)


def right_wrong(persons, items, seed, missing=0.0):
    return with_missing(simulate.rasch(persons, items, seed=seed).responses.to_dense(), missing, seed)


def booklets(seed):
    """Three forms of four items, each linked to the next by two."""
    table = right_wrong(900, 8, seed)
    for form in range(3):
        table[form::3, : 2 * form] = np.nan
        table[form::3, 2 * form + 4 :] = np.nan
    return table


def table_sandwich(responses, fit, **more):
    return sandwich(responses.to_dense(), responses.thresholds.max_score, fit.calibration_.thresholds, **more)


TABLES = {
    "2 items of 5 categories": ordered(400, 2, 5, seed=11),
    "3 items of 3 categories": ordered(400, 3, 3, seed=12),
    "3 items of 5 categories": ordered(500, 3, 5, seed=13),
    "5 items, right or wrong": right_wrong(400, 5, seed=14),
    "booklets": booklets(seed=15),
    "missing answers": right_wrong(500, 8, seed=16, missing=0.3),
    "missing ordered answers": ordered(400, 4, 3, seed=17, missing=0.3),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_default_standard_errors_are_those_of_the_exact_information(name, weighted):
    responses = Responses.from_wide(TABLES[name])
    binary = responses.thresholds.binary
    weights = np.random.default_rng(1).choice([0.3, 1.0, 2.0], responses.n_persons) if weighted else None
    weights = None if weights is None else weights / weights.mean()
    estimator = si.SpectralRasch if binary else si.SpectralPartialCredit
    fit = estimator(regularization=0).fit(responses, weights=weights)
    expected = table_sandwich(responses, fit, weights=weights)
    np.testing.assert_allclose(fit.threshold_se_ if not binary else fit.se_, np.sqrt(np.diag(expected)), rtol=CLOSE)
    np.testing.assert_allclose(fit.covariance(), expected, atol=2 * CLOSE * np.diag(expected).max())


@pytest.mark.parametrize("name", ["3 items of 3 categories", "missing answers"])
def test_standard_errors_beside_anchors_are_those_of_the_exact_information(name):
    responses = Responses.from_wide(TABLES[name])
    layout = responses.thresholds
    free = (si.SpectralRasch if layout.binary else si.SpectralPartialCredit)(regularization=0).fit(responses)
    beta = free.calibration_.thresholds
    anchors = {responses.items[0]: beta[: layout.max_score[0]] + 0.1}
    fit = type(free)(regularization=0).fit(responses, anchors=anchors)
    expected = table_sandwich(responses, fit, fixed=layout.item == 0)
    np.testing.assert_allclose(fit.calibration_.threshold_se, np.sqrt(np.diag(expected)), rtol=CLOSE)


def rating_design(layout):
    location = layout.item[:, None] == np.arange(layout.n_items)
    return np.hstack([location, layout.level[:, None] == np.arange(1, layout.widest + 1)]).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("persons", [300, 3900, 4100])
def test_rating_scales_of_any_size_have_the_exact_information(persons, weighted, monkeypatch):
    """19,500 and 20,500 answers: the likelihood is computed in two ways, its information in one."""
    monkeypatch.setattr(linear_fit, "bias_factors", lambda *given: np.ones(2))  # errors are multiplied by them
    responses = simulate.rating_scale(persons, 5, categories=4, seed=2).responses
    weights = np.random.default_rng(1).choice([0.3, 1.0, 2.0], persons) if weighted else None
    weights = None if weights is None else weights / weights.mean()
    fit = si.SpectralRatingScale().fit(responses, weights=weights)
    expected = table_sandwich(responses, fit, weights=weights, design=rating_design(responses.thresholds))
    np.testing.assert_allclose(fit.threshold_se_, np.sqrt(np.diag(expected)), rtol=CLOSE)


def test_effects_of_properties_have_the_exact_information():
    """A linear logistic test model: the inverse of A'HA."""
    responses = Responses.from_wide(right_wrong(400, 5, seed=21))
    x = np.array([0.0, 1.0, 1.0, 2.0, 4.0])
    study = si.SpectralRasch().fit(responses).analyse(responses)
    table = study.item_covariates({"x": dict(zip(responses.items.tolist(), x, strict=True))})
    beta = table["effect"][0] * x
    _, information = scores_and_information(responses.to_dense(), responses.thresholds.max_score, beta)
    np.testing.assert_allclose(table["se"][0], (x @ information @ x) ** -0.5, rtol=CLOSE)


@pytest.mark.parametrize("dense_thresholds", [2_000, 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_ratings_have_the_exact_information(weighted, dense_thresholds, monkeypatch):
    """Items + raters, with standard errors of `se="information"`: A'HA by patterns, also without the matrix of all
    combinations of item and rater."""
    monkeypatch.setattr(exact_likelihood, "DENSE_THRESHOLDS", dense_thresholds)
    rng = np.random.default_rng(5)
    rows = [
        (person, item, f"r{rater}", int(rng.integers(0, 4)))
        for person in range(150)
        for rater in rng.choice(4, 2, replace=False)
        for item in ("a", "b")
    ]
    person, item, rater, score = zip(*rows, strict=True)
    frame = {"person": person, "item": item, "rater": rater, "score": score}
    responses = si.read(pl.DataFrame(frame), facets=["rater"])
    weights = rng.choice([0.3, 1.0, 2.0], 150) if weighted else np.ones(150)
    weights = weights / weights.mean()
    estimator = si.SpectralPartialCredit(regularization=0, se="information")
    fit = estimator.fit(responses, design=LinearDesign("items + rater"), weights=weights if weighted else None)
    measures = fit.calibration_.facets
    table, most = responses.to_dense(), responses.thresholds.max_score
    _, information = scores_and_information(table, most, fit.calibration_.thresholds, weights)
    a = measures.design.toarray()
    covariance = np.linalg.pinv(a.T @ information @ a, rcond=1e-10, hermitian=True)
    own = measures.columns["rater"]
    center = np.eye(4) - 0.25
    expected = np.sqrt(np.diag(center @ covariance[own, own] @ center))
    np.testing.assert_allclose(measures.of["rater"]["se"], expected, rtol=CLOSE)


def test_people_with_few_answers_are_exact_beside_people_with_many():
    """Most people answered 2 items, the others 14: only the first have their patterns looked for."""
    table = ordered(300, 14, 3, seed=31)
    table[np.arange(300) % 4 > 0, 2:] = np.nan
    responses = Responses.from_wide(table)
    beta = np.tile([-0.7, 0.7], 14)
    _, expected = scores_and_information(table, responses.thresholds.max_score, beta)
    likelihood = Likelihood(responses, beta)
    mixed = information_at(likelihood, beta)
    assert mixed.exact
    se = np.sqrt(np.diag(np.linalg.pinv(expected)))
    np.testing.assert_allclose(np.sqrt(np.diag(np.linalg.pinv(mixed.matrix))), se, rtol=5e-3)
    matched = np.sqrt(np.diag(np.linalg.pinv(likelihood.at(beta).dense())))
    assert np.abs(matched / se - 1).max() > 0.03


def test_people_with_few_answers_who_tell_nothing_change_nothing():
    """Their scores are all extreme: they have no pattern."""
    table = right_wrong(200, 14, seed=32)
    table[0, 2:] = np.nan
    table[0, :2] = 1
    responses = Responses.from_wide(table)
    beta = np.linspace(-1.5, 1.5, 14)
    likelihood = Likelihood(responses, beta)
    np.testing.assert_array_equal(information_at(likelihood, beta).matrix, likelihood.at(beta).dense())


def test_patterns_that_are_too_many_leave_the_matched_information(monkeypatch):
    responses = Responses.from_wide(TABLES["missing answers"])
    beta = np.linspace(-1, 1, 8)
    likelihood = Likelihood(responses, beta)
    exact = information_at(likelihood, beta)
    monkeypatch.setattr(exact_likelihood, "EXACT_CELLS", 0)
    matched = information_at(likelihood, beta)
    assert (exact.exact, matched.exact) == (True, False)
    np.testing.assert_array_equal(matched.matrix, likelihood.at(beta).dense())
    np.testing.assert_allclose(matched.matrix, exact.matrix, atol=0.1 * exact.matrix.max())


def test_shared_sets_and_single_rows_have_the_same_information():
    responses = Responses.from_wide(TABLES["5 items, right or wrong"])
    beta = np.linspace(-1, 1, 5)
    shared = Likelihood(responses, beta, shared=responses.shared)
    assert shared.shared is not None
    by_sets = information_at(shared, beta).matrix
    np.testing.assert_allclose(by_sets, information_at(Likelihood(responses, beta), beta).matrix, rtol=1e-10)


def test_a_weight_of_two_counts_as_two_people():
    table = TABLES["missing ordered answers"]
    weights = np.where(np.arange(len(table)) % 3 == 0, 2.0, 1.0)
    twice = Responses.from_wide(np.vstack([table, table[weights == 2]]))
    beta = np.tile([-0.5, 0.5], 4)
    weighted = ExactLikelihood(Responses.from_wide(table), weights=weights)
    repeated = ExactLikelihood(twice)
    np.testing.assert_allclose(weighted.information(beta), repeated.information(beta), rtol=1e-10)
    np.testing.assert_allclose(weighted.at(beta).gradient, repeated.at(beta).gradient, atol=1e-9)
    assert weighted.at(beta).loglik == pytest.approx(repeated.at(beta).loglik)
