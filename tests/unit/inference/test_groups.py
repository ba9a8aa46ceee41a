"""Groups of people: how they are divided, their means, and errors that allow for clusters."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spectral_irt as si
from drawn import drawn, drawn_categories
from spectral_irt.data.groupings import grouping_of
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups import cluster_errors
from spectral_irt.inference.groups.cluster_errors import cluster_covariance, with_cluster_errors
from spectral_irt.inference.groups.grouping import (
    NO_LABEL,
    ability_and_level,
    by_label,
    divide,
    group_columns,
    item_sets,
)
from spectral_irt.numerics import gram
from spectral_irt.persons import abilities
from split import in_blocks

_ = np.nan
TABLE = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [_, 1, 0, 0], [_, 1, 1, 0], [_, _, _, _]])


def test_scores_against_a_loop():
    data = si.simulate.rasch(300, 5, design="sampled", p=0.7, seed=1).responses
    table = data.to_dense()
    seen = ~np.isnan(table)
    score = np.nansum(table, axis=1)
    for person, group in enumerate(divide(data, "median").group):
        alike = (seen == seen[person]).all(axis=1)
        assert group == (score[person] > np.median(score[alike]))
    found = divide(si.Responses.from_wide(TABLE), "scores")
    assert found.names == ("raw score = 1", "raw score = 2", "raw score = 3")
    assert found.group.tolist() == [0, 1, 2, -1, 0, 1, -1]
    beta = np.array([-1.0, 0.0, 1.0, np.nan])  # the last person answered nothing
    assert divide(si.Responses.from_wide(TABLE), "ability", difficulty=beta).group[-1] == -1


def test_ability_is_a_split_at_the_median_score_on_complete_data():
    for seed in range(5):
        data = si.simulate.rasch(501, 9, seed=seed)
        ability = divide(data.responses, "ability", difficulty=data.difficulty).group
        scores = data.responses.scores
        informed = scores[(scores > 0) & (scores < 9)]
        middle = np.median(informed)
        more_above = np.sum(informed > middle) >= np.sum(informed < middle)
        assert np.array_equal(ability, scores > middle if more_above else scores >= middle)


def test_rough_abilities_and_levels_by_hand():
    """PROX over the items with a difficulty, with half an answer each way."""
    beta = np.array([-1.2, 0.4, 2.0, np.nan])
    ability, level = si.Responses.from_wide(TABLE).gather(ability_and_level, beta)
    for row, theta, mean in zip(TABLE, ability, level, strict=True):
        there = ~np.isnan(row) & ~np.isnan(beta)
        if not there.any():
            assert (theta, mean) == (0, 0)
            continue
        own, right, n = beta[there], row[there].sum(), there.sum()
        assert mean == pytest.approx(own.mean())
        expected = own.mean() + np.sqrt(1 + own.var() / 2.89) * np.log((right + 0.5) / (n - right + 0.5))
        assert theta == pytest.approx(expected)


@pytest.mark.parametrize("ordered", [False, True])
def test_where_forms_follow_ability_halves_are_of_those_who_met_items_like_theirs(ordered):
    """The regression of abilities on the mean difficulty of the items, its slope from 0 to 1, is taken off where it has
    more than a tenth of the variance of abilities; nothing is taken off where forms are for everybody."""
    rng = np.random.default_rng(5)
    difficulty = np.repeat([-1.5, 0.0, 1.5], 6) + rng.normal(0, 0.4, 18)
    form = rng.integers(0, 3, 240)
    for targeted in (1.5, 0.0):
        theta = targeted * (form - 1) + rng.normal(0, 1, 240)
        thresholds = difficulty[:, None] + (np.array([-0.6, 0.6]) if ordered else np.zeros(1))
        log_weights = np.cumsum(theta[:, None, None] - thresholds, axis=2)
        x = drawn_categories(rng, np.concatenate([np.zeros((240, 18, 1)), log_weights], axis=2))
        x[np.abs(np.arange(18) // 6 - form[:, None]) > 0] = np.nan
        x[:, :2] = np.where(np.isnan(x[:, :2]), rng.integers(0, 2, (240, 2)), x[:, :2])  # all met two items
        responses = si.Responses.from_wide(x, ordered=ordered)
        if ordered:
            ability = abilities(responses, thresholds.ravel()).ability
            level = np.array([difficulty[~np.isnan(row)].mean() for row in x])
        else:
            ability, level = responses.gather(ability_and_level, difficulty)
        top = np.nansum(np.where(np.isnan(x), np.nan, thresholds.shape[1]), axis=1)
        told = (np.nansum(x, axis=1) > 0) & (np.nansum(x, axis=1) < top)
        deviation = level[told] - level[told].mean()
        slope = min(max(float(deviation @ ability[told] / (deviation @ deviation)), 0.0), 1.0)
        explained = slope**2 * np.var(level[told])
        assert (explained > 0.1 * np.var(ability[told])) == (targeted > 0)
        if targeted:
            ability = ability - slope * level
        cut = np.median(ability[told])
        upper = ability > cut + 1e-9
        if np.sum(upper & told) < np.sum((ability < cut - 1e-9) & told):
            upper = ability >= cut - 1e-9
        found = divide(responses, "ability", difficulty=thresholds.ravel())
        np.testing.assert_array_equal(found.group, upper.astype(int))


def test_ability_depends_on_items_and_score_alone():
    """Equal items and score, equal group: the last digits of a sum must not let single answers in."""
    data = si.simulate.rasch(3000, 12, design="booklets", booklets=3, seed=2)
    group = divide(data.responses, "ability", difficulty=data.difficulty).group
    keys = np.stack([item_sets(data.responses), data.responses.scores], axis=1)
    for key in np.unique(keys, axis=0):
        assert len(np.unique(group[(keys == key).all(axis=1)])) == 1


@pytest.mark.parametrize(
    "labels",
    [
        ["b", None, "a", "", "b", float("nan"), "a"],
        np.array(["b", None, "a", "", "b", np.nan, "a"], dtype=object),
        pd.Series(["b", None, "a", "", "b", np.nan, "a"]),
        pd.Series(["b", pd.NA, "a", "", "b", pd.NA, "a"], dtype="string"),
        pl.Series(["b", None, "a", "", "b", None, "a"]),
        {0: "b", 2: "a", 4: "b", 6: "a", 99: "c"},
    ],
    ids=["list", "array", "pandas", "pandas string", "polars", "mapping"],
)
def test_labels(labels):
    found = by_label(si.Responses.from_wide(TABLE), labels)
    assert found.names == ("a", "b")
    assert found.group.tolist() == [1, -1, 0, -1, 1, -1, 0]


@pytest.mark.parametrize(
    ("split", "text"),
    [
        ("thirds", "`split` is 'thirds'; it can be 'median', 'mean', 'ability', 'scores', or lab"),
        ("ability", "needs difficulties"),
        (["a", "b", "a"], "the groups are 3 labels, and the data has 7 people"),
        (np.zeros((7, 2)), r"shape \(7, 2\)"),
        ({"x": "a", "y": "b"}, r"none of the 2 people in the groups \('x', 'y'\) is in the data \(0, 1, 2"),
    ],
)
def test_bad_splits(split, text):
    with pytest.raises(OptionError, match=text):
        divide(si.Responses.from_wide(TABLE), split)


def test_observed_means_are_those_of_the_persons():
    rng = np.random.default_rng(3)
    group = np.repeat(["low", "high"], [120, 80])
    table = drawn(rng, rng.normal(np.where(group == "low", -0.5, 1.5))[:, None] - np.linspace(-1.5, 1.5, 8))
    study = si.SpectralRasch().fit(table).analyse(table)
    found = study.group_means(group.tolist())
    assert found["grouping"].to_list() == ["group", "group"]
    assert found["group"].to_list() == ["high", "low"]
    for label, n, mean, se, sd in found.select("group", "n", "mean", "se", "sd").iter_rows():
        theirs = study.persons()["ability"].to_numpy()[group == label]
        assert n == len(theirs)
        assert (mean, sd, se) == pytest.approx((theirs.mean(), theirs.std(ddof=1), theirs.std(ddof=1) / np.sqrt(n)))
    assert (found["sd"] > found["latent_sd"]).all()  # the population is without errors of measurement


@pytest.mark.slow
def test_the_errors_of_the_means_are_right():
    """Standard errors of both means against 60 samples; the ratio of two standard deviations has an error of 9%."""
    beta, found = np.linspace(-1.5, 1.5, 10), []
    for seed in range(60):
        rng = np.random.default_rng([8, seed])
        answers = si.Responses.from_wide(drawn(rng, rng.normal(0.4, 1, (150, 1)) - beta))
        row = group_columns(answers, beta, abilities(answers, beta), ["a"] * 150, "g")
        found.append([row[name][0] for name in ("mean", "se", "latent_mean", "latent_se", "latent_sd")])
    mean, se, latent, latent_se, sd = np.array(found).T
    assert se.mean() / mean.std() == pytest.approx(1, abs=0.27)
    assert latent_se.mean() / latent.std() == pytest.approx(1, abs=0.27)
    assert abs(latent.mean() - 0.4) < 3 * latent.std() / np.sqrt(60) + 0.01
    assert sd.mean() == pytest.approx(1, abs=0.03)


def test_small_groups_and_people_without_a_label():
    rng = np.random.default_rng(0)
    table = drawn(rng, rng.normal(size=(60, 1)) - np.linspace(-1, 1, 10))
    table[5] = np.nan  # has no ability, and counts nowhere
    study = si.SpectralRasch().fit(table).analyse(table)
    labels = ["one", *["many"] * 40, *[None] * 10, *[""] * 9]
    found = study.group_means({"class": labels})
    assert found["grouping"].unique().to_list() == ["class"]
    assert found["group"].to_list() == ["many", "one", NO_LABEL]
    assert found["n"].to_list() == [39, 1, 19]
    alone = found.row(1, named=True)
    assert alone["mean"] == study.persons()["ability"][0]
    assert np.isnan([alone[name] for name in ("se", "sd", "latent_mean", "latent_se", "latent_sd")]).all()
    scaled = study.rescale(100, 15)
    scale, means = scaled.calibration.scale, scaled.group_means({"class": labels})
    np.testing.assert_allclose(means["measure_mean"], scale.mean + scale.unit * found["mean"].to_numpy())
    np.testing.assert_allclose(means["measure_se"], scale.unit * found["se"].to_numpy())
    with pytest.raises(OptionError, match="3 labels"):
        study.group_means(["a", "b", "c"])
    assert study.group_means(dict(enumerate(labels)))["n"].to_list() == [39, 1, 19]


def test_people_count_by_their_weights():
    """One stratum drawn ten times too often: weighted mean, sd and reliability are those of a sample without that."""
    rng = np.random.default_rng(31)
    beta = rng.normal(size=15)
    often = np.repeat([True, False], [2000, 200])
    theta = np.where(often, rng.normal(-1, 0.8, 2200), rng.normal(1, 0.8, 2200))
    x = drawn(rng, theta[:, None] - beta)
    weights = np.where(often, 0.1, 1.0)
    study = si.SpectralRasch().fit(x, weights=weights).analyse(x)
    found = study.reliability()
    thinned = np.concatenate([np.arange(0, 2000, 10), np.arange(2000, 2200)])
    even = si.SpectralRasch().fit(x[thinned]).analyse(x[thinned]).reliability()
    for mine, other, allowed in (
        (found.population_mean, -beta.mean(), 0.15),
        (found.population_sd, np.sqrt(0.64 + 1), 0.12),
        (found.persons_with_extremes.mean, -beta.mean(), 0.15),
        (found.eap_reliability, even.eap_reliability, 0.03),
        (found.persons.reliability, even.persons.reliability, 0.04),
        (found.kr20, even.kr20, 0.03),
    ):
        assert mine == pytest.approx(other, abs=allowed)
    record = study.record()["persons"]
    assert record["mean"] == pytest.approx(found.persons_with_extremes.mean)
    assert record["sd"] == pytest.approx(found.persons_with_extremes.sd)
    assert f"mean ability {found.persons_with_extremes.mean:.2f}" in " ".join(study.summary().split())
    groups = study.group_means(np.arange(2200) % 2)
    assert np.abs(groups["latent_mean"] + beta.mean()).max() < 0.3
    assert (groups["latent_sd"] < groups["sd"]).all()
    # other people than those of the fit have no weights
    assert si.SpectralRasch().fit(x, weights=weights).analyse(x[:500]).weights is None


def classrooms(n_classes=40, size=25, n_items=20, effect=0.6, seed=0):
    """Complete answers of classes, each of which finds some items harder than others do."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(-1, 1, n_items)
    room = np.repeat(np.arange(n_classes), size)
    harder = effect * rng.normal(size=(n_classes, n_items))
    return drawn(rng, rng.normal(size=(n_classes * size, 1)) - beta - harder[room]), room, beta


def by_enumeration(X, thresholds, cluster, design=None):
    """C/(C-1) H^+ sum g g' H^+ with P(X >= k | s) and its covariance from all answers of the same score."""
    most = [len(one) for one in thresholds]
    every = np.array(list(product(*(range(k + 1) for k in most))))

    def passed(x):
        return np.concatenate([x[..., i, None] >= np.arange(1, k + 1) for i, k in enumerate(most)], axis=-1) * 1.0

    beta = np.concatenate(thresholds)
    H, g = np.zeros((len(beta), len(beta))), np.zeros((cluster.max() + 1, len(beta)))
    for row, c in zip(X, cluster, strict=True):
        same = passed(every[every.sum(axis=1) == row.sum()])
        p = np.exp(-same @ beta)
        p /= p.sum()
        mean = p @ same
        H += (same * p[:, None]).T @ same - np.outer(mean, mean)
        g[c] += passed(row) - mean
    n, A = len(np.unique(cluster)), np.eye(len(beta)) if design is None else design
    inverse = A @ np.linalg.pinv(A.T @ H @ A, rcond=1e-10, hermitian=True) @ A.T
    center = np.eye(len(beta)) - np.concatenate([np.full(k, 1 / (k * len(most))) for k in most])
    inverse = center @ inverse
    return n / (n - 1) * inverse @ g.T @ g @ inverse.T


def test_the_formula():
    X, room, _ = classrooms(12, 10, 5)
    fit = si.ConditionalRasch().fit(X)
    found = cluster_covariance(fit.calibration_, si.Responses.from_wide(X), room)
    np.testing.assert_allclose(found.covariance, by_enumeration(X, fit.difficulty_[:, None], room), atol=1e-8)
    np.testing.assert_allclose(found.se, np.sqrt(np.diag(found.covariance)), rtol=1e-7)
    assert found.n_clusters == 12


@pytest.mark.parametrize("scale", [False, True])
def test_the_formula_for_categories(scale):
    draw = si.simulate.rating_scale if scale else si.simulate.partial_credit
    answers = draw(120, 4, categories=3 if scale else [2, 3, 4, 3], seed=6).responses
    room, layout = np.arange(120) // 10, answers.thresholds
    fit = (si.ConditionalRatingScale if scale else si.ConditionalPartialCredit)().fit(answers)
    design = None
    if scale:
        design = np.concatenate([np.repeat(np.eye(4), 2, axis=0), np.tile([[1.0], [-1.0]], (4, 1))], axis=1)
    expected = by_enumeration(answers.to_dense(), np.split(fit.thresholds_, layout.first[1:]), room, design)
    made, found = with_cluster_errors(fit.calibration_, answers, room)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-6)
    mean = (layout.item == np.arange(4)[:, None]) / layout.max_score[:, None]
    np.testing.assert_allclose(made.se, np.sqrt(np.diag(mean @ expected @ mean.T)), rtol=1e-5)
    np.testing.assert_allclose(made.threshold_se, np.sqrt(np.diag(expected)), rtol=1e-5)


@pytest.mark.parametrize("marginal", [False, True])
def test_no_matrix_has_a_row_for_every_cluster(marginal, monkeypatch):
    """What is made dense is a matrix of items; clusters in several blocks are the only ones kept to the end."""
    data = in_blocks(si.simulate.rasch(600, 12, design="sampled", p=0.5, seed=3).responses, 50)
    calibration = (si.MarginalRasch if marginal else si.ConditionalRasch)().fit(data).calibration_
    rows = []
    monkeypatch.setattr(cluster_errors, "gram", lambda piece: rows.append(piece.shape[0]) or gram(piece))
    alone = cluster_covariance(calibration, data, np.arange(600))
    assert alone.n_clusters == 600
    assert max(rows) == 50
    assert sum(rows) == 600
    rows.clear()
    pairs = cluster_covariance(calibration, data, (np.arange(600) + 25) // 50)  # each of two blocks, but the ends
    assert max(rows) == 11
    apart = cluster_covariance(calibration, in_blocks(data, 600), (np.arange(600) + 25) // 50)
    np.testing.assert_allclose(pairs.covariance, apart.covariance, atol=1e-10)


def test_everybody_alone_is_the_sandwich():
    data = si.simulate.rasch(400, 12, design="sampled", p=0.6, seed=1).responses
    fit = si.ConditionalRasch(se="sandwich").fit(data)
    alone = cluster_covariance(fit.calibration_, data, [None] * 400)
    np.testing.assert_allclose(alone.se, fit.se_ * np.sqrt(alone.n_clusters / (alone.n_clusters - 1)), rtol=1e-6)


def test_many_items_are_solved_for_without_a_matrix(monkeypatch):
    X, room, _ = classrooms(30, 10, 15)
    responses = si.Responses.from_wide(X)
    calibration = si.SpectralRasch().fit(responses).calibration_
    dense = cluster_covariance(calibration, responses, room)
    monkeypatch.setattr(cluster_errors, "KEEP_COVARIANCE", 10)
    solved = cluster_covariance(calibration, responses, room)
    assert solved.covariance is None
    np.testing.assert_allclose(solved.se, dense.se, rtol=0.01)  # by the matched information, which is that close
    answers = si.simulate.partial_credit(300, 6, categories=3, seed=1).responses
    ordered = si.ConditionalPartialCredit().fit(answers).calibration_
    solved = cluster_covariance(ordered, answers, room)
    monkeypatch.undo()
    dense = cluster_covariance(ordered, answers, room)
    np.testing.assert_allclose(solved.se, dense.se, rtol=0.05)  # of six items the matched one is cruder
    np.testing.assert_allclose(solved.threshold_se, dense.threshold_se, rtol=0.05)


def test_marginal_likelihood_has_its_own():
    """Classes that do not matter: the sandwich is the information, up to 1/sqrt(1200) = 3%, more with long tails."""
    X, room, _ = classrooms(600, 2, 10, effect=0.0)
    responses = si.Responses.from_wide(X)
    for groups in (None, np.arange(1200) % 2):
        fit = si.MarginalRasch().fit(responses, groups=groups)
        found = cluster_covariance(fit.calibration_, responses, room, groups)
        np.testing.assert_allclose(found.se, fit.se_, rtol=0.12)
    answers = si.simulate.partial_credit(1200, 8, categories=3, seed=1).responses
    ordered = si.MarginalPartialCredit().fit(answers)
    found = cluster_covariance(ordered.calibration_, answers, room)
    np.testing.assert_allclose(found.threshold_se, ordered.threshold_se_, rtol=0.12)
    np.testing.assert_allclose(found.se, ordered.se_, rtol=0.12)


def test_an_item_without_an_estimate_of_its_own_keeps_its_error():
    X, room, _ = classrooms(25, 30, 8)
    X[:, 3] = 1
    responses = si.Responses.from_wide(X)
    fit = si.SpectralRasch().fit(responses)
    study = fit.analyse(responses).clustered(room, name="classrooms")
    assert study.calibration.se[3] == fit.se_[3]
    others = si.Responses.from_wide(np.delete(X, 3, axis=1))
    with_others = cluster_covariance(si.SpectralRasch().fit(others).calibration_, others, room)
    shift = fit.se_[3] ** 2 / 64  # of the mean of eight items, one of which is hardly known
    np.testing.assert_allclose(study.calibration.se[4:] ** 2, with_others.se[3:] ** 2 + shift, rtol=0.02)
    assert "allow for 25 classrooms" in next(f.sentence for f in study.findings() if f.code == "clustered")
    assert "25 clusters" in study.summary()


def test_few_clusters_are_a_warning_and_one_is_refused():
    X, room, _ = classrooms(8, 20, 6)
    responses = si.Responses.from_wide(X)
    calibration = si.SpectralRasch().fit(responses).calibration_
    few, found = with_cluster_errors(calibration, responses, room)
    assert found.n_clusters == 8
    assert [(f.code, f.severity) for f in few.findings if "cluster" in f.code] == [("few_clusters", "warning")]
    with pytest.raises(DesignError, match="two of each"):
        cluster_covariance(calibration, responses, np.zeros(160))


@pytest.mark.slow
def test_coverage_with_classes_that_find_items_hard():
    """20 replicates of 20 items: .95 has a standard error of .014, and three are allowed. Effects that vary make
    probabilities over classes flatter than within one, by 1 / sqrt(1 + .346 sd^2) (Zeger, Liang & Albert 1988)."""
    plain, robust = [], []
    for seed in range(20):
        X, room, beta = classrooms(seed=seed)
        responses = si.Responses.from_wide(X)
        fit = si.SpectralRasch().fit(responses)
        error = np.abs(fit.difficulty_ - beta / np.sqrt(1 + 0.346 * 0.36))
        plain.append(np.mean(error < 1.96 * fit.se_))
        robust.append(np.mean(error < 1.96 * cluster_covariance(fit.calibration_, responses, room).se))
    assert np.mean(plain) < 0.85
    assert 0.91 < np.mean(robust) < 0.99


def test_numbers_such_as_age_are_cut_at_the_median_or_as_asked():
    ages = [str(age) for age in range(20, 80)]  # as text, from a file
    found = grouping_of("age", [*ages, None, ""])
    assert [found.labels.count(label) for label in ("under 50", "50 and over")] == [30, 30]
    assert found.labels[-2:] == [None, None]
    assert [finding.code for finding in found.findings] == ["cut_at_median"]
    asked = grouping_of("age", ages, (40.0, 65.0))
    assert [asked.labels.count(label) for label in ("under 40", "40 to under 65", "65 and over")] == [20, 25, 15]
    assert not asked.findings
    data = si.Responses.from_wide(np.zeros((60, 2)))
    assert by_label(data, asked.labels).names == ("under 40", "40 to under 65", "65 and over")  # by number, not as text
    wide = grouping_of("age", [5, 50, 500], (10.0, 100.0)).labels
    assert sorted(wide, reverse=True) == ["100 and over", "10 to under 100", "under 10"]


def test_numbers_that_name_groups_stay_as_they_are():
    grades = [1, 2, 3] * 20
    commas = grouping_of("age", ["39,5", "40,0", "66,25"], (40.0, 65.0)).labels
    assert commas == ["under 40", "40 to under 65", "65 and over"]
    assert grouping_of("grade", grades).labels == grades
    schools = np.repeat(np.arange(12), 40).tolist()  # many people in each
    assert grouping_of("school", schools).labels == schools
    assert set(grouping_of("age", schools).labels) == {"under 6", "6 and over"}
    assert len(set(grouping_of("dose", np.linspace(0, 1, 480).tolist()).labels)) == 2
    scores = [*np.repeat([19, 20], 32), *np.repeat(np.arange(21, 40), 9)]  # two of 21 are shared by 30 persons
    assert len(set(grouping_of("anger", scores).labels)) == 2
    words = ["a", "b", "12"] * 20
    assert grouping_of("site", words).labels == words
    with pytest.raises(OptionError, match="holds 'a', which is no number"):
        grouping_of("site", words, (3.0,))
