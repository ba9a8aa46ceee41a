"""Tables of ratings, against plain loops over the ratings and over all ratings with the same total."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import spectral_irt as si
from ratings import given_totals, simulated
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.errors import OptionError
from spectral_irt.estimators.linear_design import LinearDesign
from spectral_irt.inference.interactions import item_contrasts
from spectral_irt.inference.rating_tables import all_same

CODES = np.array([5, 10, 20])  # as raters wrote 0, 1, 2


@pytest.fixture(scope="module", params=[si.SpectralPartialCredit, si.SpectralRatingScale])
def study(request):
    """Two items, four raters, two a person; ratings in codes with a gap."""
    responses, *_ = simulated([[k % 4, (k + 1) % 4] for k in range(80)], 2, 3, seed=6)
    person, place, x = responses.answers()
    item, rater = responses.facets.codes[place].T
    columns = {"person": person, "item": item, "rater": [f"r{k}" for k in rater], "rating": CODES[x]}
    table = pl.DataFrame(columns).filter(~((pl.col("rater") == "r3") & (pl.col("item") == 1) & (pl.col("person") > 60)))
    responses = si.read(table, facets=["rater"], ordered=True)
    return request.param().fit(responses).analyse(responses), table


def each(study):
    """Every rating of a person without an extreme total: virtual item, category, probabilities, ability."""
    calibration, responses = study.calibration, study.responses
    ability = study.abilities("wle").ability
    layout = calibration.layout
    for person, row in enumerate(responses.to_dense()):
        if not responses.informative[person]:
            continue
        for v in np.flatnonzero(~np.isnan(row)):
            beta = calibration.thresholds[layout.first[v] : layout.first[v] + layout.max_score[v]]
            weight = np.exp(np.append(0, np.cumsum(ability[person] - beta)))
            yield person, v, int(row[v]), weight / weight.sum(), ability[person]


@pytest.mark.parametrize("name", ["rater", "item"])
def test_use_of_categories_is_that_of_plain_loops(study, name):
    study, table = study
    facets = study.calibration.facets.facets
    labels, level = (facets.items, facets.item) if name == "item" else facets.column("rater")
    expected = np.zeros((len(labels), 3))
    for rated, _, p, patterns in given_totals(study.calibration, study.responses):
        for k, v in enumerate(rated):
            expected[level[v]] += [p @ (patterns[:, k] == c) for c in range(3)]
    sums = np.zeros((6, len(labels), 3))  # n, measure, z^2; and what is expected of each
    location = study.calibration.layout.mean(study.calibration.thresholds)
    for _, v, x, p, theta in each(study):
        off = np.arange(3) - p @ np.arange(3)
        z2 = off**2 / (p @ off**2)
        measure = theta - location[v]
        sums[:3, level[v], x] += 1, measure, z2[x]
        sums[3:, level[v]] += p, p * measure, p * z2
    found = study.category_use(name)
    assert found["category"].to_list() == CODES.tolist() * len(labels)
    counted = table.group_by(name, "rating").len()
    cells = zip(np.repeat(labels, 3), np.tile(CODES, len(labels)), strict=True)
    for row, (label, code) in zip(found.iter_rows(named=True), cells, strict=True):
        (n,) = counted.filter((pl.col(name) == label) & (pl.col("rating") == code))["len"]
        assert (row[name], row["n"]) == (label, n)
        assert row["share"] == pytest.approx(n / table.filter(pl.col(name) == label).height)
    np.testing.assert_allclose(found["expected"], expected.ravel(), rtol=1e-9)
    np.testing.assert_allclose(found["mean_measure"], (sums[1] / sums[0]).ravel(), rtol=1e-9)
    np.testing.assert_allclose(found["expected_measure"], (sums[4] / sums[3]).ravel(), rtol=1e-9)
    np.testing.assert_allclose(found["outfit"], (sums[2] / sums[5]).ravel(), rtol=1e-9)


def test_point_measure_correlations_are_those_of_plain_loops(study):
    """Of ratings with measures less locations; and what the model expects of it, with the variance of each rating."""
    study, _ = study
    labels, level = study.calibration.facets.facets.column("rater")
    location = study.calibration.layout.mean(study.calibration.thresholds)
    rows = [(level[v], CODES[x], theta - location[v], p @ CODES, p @ CODES**2) for _, v, x, p, theta in each(study)]
    of_level, rating, measure, mean, square = np.array(rows).T
    found = study.facet()
    for number in range(len(labels)):
        own = of_level == number
        correlation = np.corrcoef(rating[own], measure[own])[0, 1]
        assert found["point_measure"][number] == pytest.approx(correlation)
        variance = mean[own].var() + (square[own] - mean[own] ** 2).mean()
        between = np.cov(mean[own], measure[own], ddof=0)[0, 1]
        expected = between / (variance * measure[own].var()) ** 0.5
        assert found["point_measure_expected"][number] == pytest.approx(expected)


def test_averages_of_interactions_are_those_of_the_file_and_given_the_totals(study):
    study, table = study
    facets = study.calibration.facets.facets
    expected = np.zeros(study.responses.n_items)
    for rated, _, p, patterns in given_totals(study.calibration, study.responses):
        for k, v in enumerate(rated):
            expected[v] += p @ CODES[patterns[:, k]]
    labels, rater = facets.column("rater")
    found = study.interactions("rater")
    for row in found.iter_rows(named=True):
        ratings = table.filter((pl.col("rater") == row["rater"]) & (pl.col("item") == row["item"]))["rating"]
        assert (row["n"], row["observed_average"]) == (len(ratings), pytest.approx(ratings.mean()))
        (v,) = np.flatnonzero((labels[rater] == row["rater"]) & (facets.items[facets.item] == row["item"]))
        assert row["expected_average"] == pytest.approx(expected[v] / len(ratings))
        if abs(row["z"]) > 0.1:  # more severe: lower than expected
            assert (row["bias"] > 0) == (row["observed_average"] < row["expected_average"])
    groups = dict(zip(study.responses.persons.tolist(), ["a", "b"] * 40, strict=True))
    by_group = study.interactions("rater", groups)
    of_group = table.with_columns(pl.col("person").replace_strict(groups).alias("group"))
    total = 0.0
    for row in by_group.iter_rows(named=True):
        ratings = of_group.filter((pl.col("rater") == row["rater"]) & (pl.col("group") == row["group"]))["rating"]
        assert (row["n"], row["observed_average"]) == (len(ratings), pytest.approx(ratings.mean()))
        total += row["n"] * row["expected_average"]
    assert total == pytest.approx(expected.sum())


def test_unexpected_ratings_are_all_that_are_far_from_the_model(monkeypatch, study):
    study, _ = study
    monkeypatch.setattr("spectral_irt.inference.rating_tables.UNEXPECTED", 1.5)
    facets = study.calibration.facets.facets
    labels, rater = facets.column("rater")
    plain = []
    for person, v, x, p, theta in each(study):
        off = np.arange(3) - p @ np.arange(3)
        z = off[x] / np.sqrt(p @ off**2)
        if abs(z) >= 1.5:
            who = study.responses.persons[person]
            plain.append((-abs(z), who, facets.items[facets.item[v]], labels[rater[v]], CODES[x], p @ CODES, z, theta))
    plain.sort()
    found = study.unexpected_ratings(limit=1000 + len(plain))
    assert found.columns == ["person", "item", "rater", "response", "expected", "z", "ability"]
    assert len(found) == len(plain) > 5
    assert np.diff(np.abs(found["z"])).max() <= 0
    for ours, (_, *one) in zip(sorted(found.rows(), key=lambda row: (-abs(row[5]), row[0])), plain, strict=True):
        assert ours[:4] == tuple(one[:4])
        np.testing.assert_allclose(ours[4:], np.array(one[4:], dtype=float), rtol=1e-9)
    assert study.unexpected_ratings(limit=2).rows() == found.rows()[:2]


@pytest.mark.parametrize("n_items", [2, 3])
def test_contrasts_are_differences_of_two_columns_more(n_items):
    """Against the dense information: two items of a rater beside the whole design, by least squares."""
    responses, *_ = simulated([[k % 4, (k + 1) % 4] for k in range(120)], n_items, 3, seed=2)
    calibration = si.SpectralPartialCredit(regularization=0).fit(responses).calibration_
    found = item_contrasts(calibration, responses, "rater")
    likelihood, beta = ExactLikelihood(responses), calibration.facets.likeliest
    information, gradient = likelihood.information(beta), likelihood.at(beta).gradient
    design = LinearDesign().of(responses).matrix.toarray()
    facets, layout = calibration.facets.facets, calibration.layout
    assert len(found["z"]) == 4 * n_items * (n_items - 1) // 2
    for k in range(len(found["z"])):
        columns = []
        for item in (found["item"][k], found["other_item"][k]):
            (v,) = np.flatnonzero((facets.codes[:, 1] == found["rater"][k]) & (facets.item == item))
            columns.append(layout.item == v)
        whole = np.column_stack([*columns, design])
        inverse = np.linalg.pinv(whole.T @ information @ whole, rcond=1e-9)
        direction = np.zeros(whole.shape[1])
        direction[:2] = 1, -1
        se = np.sqrt(direction @ inverse @ direction)
        contrast = direction @ inverse @ whole.T @ gradient
        assert found["se"][k] == pytest.approx(se, rel=1e-4)
        assert found["contrast"][k] == pytest.approx(contrast, rel=1e-3, abs=1e-4)
    np.testing.assert_allclose(found["p"], 2 * stats.norm.sf(np.abs(found["z"])))


def test_contrasts_of_very_many_are_refused(monkeypatch, study):
    study, _ = study
    monkeypatch.setattr("spectral_irt.inference.interactions.DENSE_PARAMETERS", 3)
    with pytest.raises(OptionError, match="8 pairs of rater and item; contrasts are for up to 3"):
        item_contrasts(study.calibration, study.responses, "rater")


def test_equal_severities_are_tested_by_a_chi_square_of_their_differences():
    """Three independent values of one variance v: less their mean they have the variance 2/3 v, and the sum of squares
    over v is chi-square with two degrees of freedom."""
    values, v = np.array([0.3, -0.1, 0.7]), 0.04
    away = values - values.mean()
    found = all_same(away, np.full(3, np.sqrt(2 / 3 * v)))
    assert found.chi2 == pytest.approx((away**2).sum() / v)
    assert (found.df, found.p) == (2, pytest.approx(stats.chi2.sf(found.chi2, 2)))
    assert all_same(np.array([0.4, 0.0]), np.array([0.1, 0.0])) is None  # one is an anchor
    assert all_same(np.zeros(3), np.full(3, np.inf)) is None  # nothing links them


def test_raters_who_cannot_be_compared_are_zero_without_a_prior():
    """One rater an essay: items as by conditional likelihood that knows of no raters, no severity with an error, and
    no prior on what nothing tells."""
    responses, *_ = simulated([[k % 3] for k in range(900)], 4, 3, seed=8)
    fit = si.SpectralPartialCredit(regularization="auto").fit(responses)
    found = fit.calibration_.facets
    assert found.of["rater"]["severity"].tolist() == [0, 0, 0]
    assert np.isinf(found.of["rater"]["se"]).all()
    assert set(found.of["rater"]["status"]) == {"unlinked"}
    assert not found.under_prior["rater"].any()
    assert not found.under_prior["items"].any()  # each threshold has many ratings
    person, place, x = responses.answers()
    table = np.full((900, 4), np.nan)
    table[person, responses.facets.item[place]] = x
    plain = si.ConditionalPartialCredit().fit(table)
    np.testing.assert_allclose(found.items.thresholds / found.factor["items"], plain.thresholds_, atol=2e-4)
    record = fit.analyse(responses)._facet_record()["rater"]
    assert (record["p"], record["reliability"]) == (None, None)
