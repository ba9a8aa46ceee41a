"""Andersen's, Wald's and Rao's tests: by definition on small data, size and power on simulated data, and bad input."""

import numpy as np
import pytest

from drawn import drawn
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, andersen, simulate
from spectral_irt.errors import DesignError, DisconnectedDesignError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.groups import calibrations
from spectral_irt.inference.groups.calibrations import GroupModel, by_newton, calibrate_groups
from spectral_irt.inference.groups.grouping import by_label, divide
from spectral_irt.inference.groups.model_tests import joint_statistic, score_split, weighted_spread
from spectral_irt.inference.groups.score_test import ability_split
from spectral_irt.inference.results import adjust_p, chi2_tail, two_sided

SAMPLES = 40  # data sets under the model


def keeps_its_level(p):
    """Few rejections at 5%, and p-values in the middle of 0 to 1: their mean has an error of 0.29 / sqrt(n)."""
    p = np.array(p)
    assert np.mean(p < 0.05) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / len(p))
    assert abs(p.mean() - 0.5) <= 3 * 0.29 / np.sqrt(len(p))


def test_tails_equal_scipy_stats():
    stats = pytest.importorskip("scipy.stats")
    x = np.array([0.0, 0.3, 4.0, 80.0, np.nan])
    np.testing.assert_allclose(chi2_tail(x, 7), stats.chi2.sf(x, 7))
    np.testing.assert_allclose(two_sided(x), 2 * stats.norm.sf(x))


def test_adjusted_p_values_equal_their_definitions():
    p = np.random.default_rng(1).random(20) ** 3
    p[[4, 9]] = np.nan
    known = np.flatnonzero(np.isfinite(p))
    n = len(known)
    step_down, step_up = adjust_p(p, "holm"), adjust_p(p, "bh")
    for i in known:
        smaller = [p[j] * (p[known] >= p[j]).sum() for j in known if p[j] <= p[i]]
        larger = [p[j] * n / (p[known] <= p[j]).sum() for j in known if p[j] >= p[i]]
        assert step_down[i] == pytest.approx(min(1, max(smaller)))
        assert step_up[i] == pytest.approx(min(1, min(larger)))
    assert np.isnan(step_down[[4, 9]]).all()


@pytest.mark.slow
def test_andersen_leaves_out_what_is_extreme_in_a_group_and_refits():
    table = simulate.rasch(300, 8, seed=3).responses.to_dense()
    group = np.repeat(["a", "b"], 150)
    table[group == "b", 5] = 1  # everyone in b
    table[::7, 2] = np.nan
    whole = andersen(Responses.from_wide(table, items=list("stuvwxyz")), group)
    assert whole.groups.left_out.tolist() == ["x"]
    assert "'x'" in whole.findings[0].sentence
    without = andersen(Responses.from_wide(np.delete(table, 5, axis=1)), group)
    assert whole.statistic == pytest.approx(without.statistic, abs=1e-8)
    assert whole.df == without.df == 6
    assert "1 items left out" in repr(whole)
    assert whole.table().shape == (14, 4)


def test_andersen_takes_only_users_with_a_group():
    data = simulate.rasch(400, 6, seed=4).responses
    labels = np.where(np.arange(400) < 300, np.arange(400) % 3, np.nan)
    some = andersen(data.take_persons(np.arange(300)), np.arange(300) % 3)
    assert andersen(data, labels).statistic == pytest.approx(some.statistic, abs=1e-9)
    assert some.df == 10


@pytest.mark.slow
def test_andersen_size_and_power():
    keeps_its_level([andersen(simulate.rasch(600, 10, seed=seed).responses).p for seed in range(SAMPLES)])
    power = []
    for seed in range(10):
        slopes = np.exp(0.3 * np.random.default_rng(seed).standard_normal(15))
        power.append(andersen(simulate.rasch(1500, 15, slopes=slopes, seed=seed).responses).p)
    assert np.mean(np.array(power) < 0.05) > 0.9


def test_joint_statistic_is_the_pseudo_inverse_form():
    rng = np.random.default_rng(0)
    m = 6
    centre = np.eye(m) - 1 / m
    b, roots = rng.standard_normal((3, m)) @ centre, centre @ rng.standard_normal((3, m, m))
    v = tuple(root @ root.T for root in roots)
    d = b[0] - b[1]
    assert joint_statistic(b[:2], v[:2], np.ones(m)) == pytest.approx(d @ np.linalg.pinv(v[0] + v[1]) @ d)
    # Three groups: the contrasts with the first, whose covariance is block-wise.
    contrast = np.concatenate([b[1] - b[0], b[2] - b[0]])
    joint = np.kron(np.ones((2, 2)), v[0]) + np.block([[v[1], 0 * v[1]], [0 * v[2], v[2]]])
    assert joint_statistic(b, v, np.ones(m)) == pytest.approx(contrast @ np.linalg.pinv(joint, rcond=1e-10) @ contrast)


def test_spread_around_the_weighted_mean_item_by_item():
    """Of items that do not vary in any group, as one that is held, it is zero where they agree."""
    values = np.array([[0.2, 1.0, 0.0], [0.9, 1.4, 0.0], [-0.4, 0.1, 0.0]])
    variances = np.array([[0.1, 0.3, 0.0], [0.2, 0.1, 0.0], [0.5, 0.4, 0.0]])
    expected = []
    for b, v in zip(values.T[:2], variances.T[:2], strict=True):
        mean = sum(b / v) / sum(1 / v)
        expected.append(sum((b - mean) ** 2 / v))
    np.testing.assert_allclose(weighted_spread(values, variances), [*expected, 0])


def test_three_groups():
    data = simulate.rasch(900, 7, seed=7).responses
    found = SpectralRasch().fit(data).analyse(data).model_test(np.arange(900) % 3)
    assert found.df == 12
    assert np.isnan(found.z).all()
    assert 0 < found.p < 1
    assert found.table().columns == ["item", "statistic", "p", "p_holm", "p_bh"]


def test_more_items_than_are_compared_at_once(monkeypatch):
    monkeypatch.setattr(calibrations, "DENSE_ITEMS", 60)
    data = simulate.rasch(400, 70, seed=9).responses
    found = SpectralRasch().fit(data).analyse(data).model_test()
    assert np.isnan(found.p)
    assert found.findings[-1].code == "no_joint_test"
    assert np.isfinite(found.z).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "options"),
    [(1000, 15, {}), (2000, 15, {}), (1000, 60, {}), (1200, 25, {"design": "sampled", "p": 0.5})],
    ids=["1000 x 15", "2000 x 15", "1000 x 60", "half missing"],
)
def test_score_split_keeps_its_size(n, m, options):
    data = [simulate.rasch(n, m, seed=seed, **options).responses for seed in range(SAMPLES)]
    tests = [SpectralRasch(se="none").fit(responses).analyse(responses).model_test() for responses in data]
    keeps_its_level([test.p for test in tests])
    of_items = np.concatenate([test.columns["p"] for test in tests])
    assert abs(np.mean(of_items < 0.05) - 0.05) <= 3 * np.sqrt(0.05 * 0.95 / len(of_items))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 2000])
def test_score_split_rejects_unequal_slopes(n):
    p = []
    for seed in range(15):
        slopes = np.exp(0.3 * np.random.default_rng(seed).standard_normal(15))
        data = simulate.rasch(n, 15, slopes=slopes, seed=seed).responses
        p.append(SpectralRasch(se="none").fit(data).analyse(data).model_test().p)
    assert np.mean(np.array(p) < 0.05) > 0.9


def test_wald_test_of_several_thresholds():
    answers = simulate.partial_credit(1600, 10, categories=4, seed=8).responses
    test = SpectralPartialCredit().fit(answers).analyse(answers).model_test("median")
    m = len(test.columns["item"])
    assert (test.df, test.columns["df"].tolist()) == (3 * m - 1, [3] * m)
    assert test.table().columns == ["item", "contrast", "se", "z", "statistic", "df", "p", "p_holm", "p_bh"]
    thresholds = test.groups.thresholds.reshape(2, m, 3)
    np.testing.assert_allclose(test.columns["contrast"], (thresholds[1] - thresholds[0]).mean(axis=1), atol=1e-10)


def test_groups_that_cannot_be_compared():
    data = simulate.rasch(200, 6, seed=11).responses
    for groups, text in (
        (["a"] * 200, "two groups of people are needed to compare, and there is a single one, 'a'"),
        ([None] * 200, "two groups of people are needed to compare, and there is none"),
        (np.where(data.scores == 6, "top", "rest"), "in the group 'top'"),
    ):
        with pytest.raises(DesignError, match=text):
            andersen(data, groups)


def test_a_group_whose_items_fall_apart_is_named():
    table = simulate.rasch(400, 8, seed=12).responses.to_dense()
    table[200:300, :4] = np.nan
    table[300:, 4:] = np.nan
    with pytest.raises(DisconnectedDesignError, match=r"in the group 'b' \(200 people\) of the data: the items split"):
        andersen(table[:, [0, 1, 2, 4, 5, 6]], np.repeat(["a", "b"], 200))
    # Where most items hang together, the few that do not are left out.
    found = andersen(table[:, [0, 1, 2, 3, 4, 5]], np.repeat(["a", "b"], 200))
    assert found.groups.left_out.tolist() == [4, 5]


def test_locations_solve_the_conditional_equations():
    data = simulate.partial_credit(400, 5, categories=4, seed=2)
    shape = data.thresholds - np.repeat(np.linspace(-1, 1, 5), 3)  # wrong locations, right distances
    found, again = (
        by_newton(data.responses, (model := GroupModel(shape=each)), model.design(data.responses), "")
        for each in (shape, data.thresholds)
    )
    np.testing.assert_allclose(found.thresholds, again.thresholds, atol=1e-8)
    true = data.thresholds - data.thresholds.mean()
    assert np.abs((found.thresholds - true) / found.se).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False])
def test_groups_with_many_patterns_of_missing_answers_are_calibrated_by_series(held, monkeypatch):
    data = simulate.partial_credit(1500, 12, categories=4, design="sampled", p=0.85, seed=5)
    model = GroupModel(shape=data.thresholds if held else None)
    exact = by_newton(data.responses, model, model.design(data.responses), "")
    monkeypatch.setattr("spectral_irt.conditional.exact_likelihood.EXACT_CELLS", 0)
    series = by_newton(data.responses, model, model.design(data.responses), "")
    assert exact.loglik is not None
    assert series.loglik is None
    assert np.abs((series.thresholds - exact.thresholds) / exact.se).max() < 0.01
    np.testing.assert_allclose(series.se, exact.se, rtol=0.02)


def test_groups_without_common_items_say_so():
    table = np.array([[0, 1], [1, 0], [2, 1], [1, 2], [0, 0], [2, 2.0]])
    answers = Responses.from_wide(np.concatenate([table, table[:, ::-1]]), ordered=True)
    with pytest.raises(DesignError, match=r"in the group '0'.*categories"):
        calibrate_groups(answers, by_label(answers, [0] * 2 + [1] * 10), GroupModel())


def test_a_rating_scale_in_a_group_that_left_categories_out_says_so():
    """Nobody of a low score is in a high category: the distances of its thresholds may be anything there."""
    data = simulate.rating_scale(500, 5, categories=4, seed=3).responses
    with pytest.raises(DesignError, match=r"in the group 'raw score = 1' the items have no finite location"):
        andersen(data, "scores", model="rsm")


def test_agrees_with_the_likelihood_ratio_where_the_model_is_nearly_right():
    """Score, Wald and likelihood ratio statistics are equal to first order; here they differ by a few percent."""
    slopes = np.ones(10)
    slopes[[2, 7]] = 1.3, 0.75
    data = simulate.rasch(4000, 10, slopes=slopes, seed=1).responses
    fit = ConditionalRasch().fit(data)
    score = ability_split(fit.calibration_, data)
    halves = divide(data, "ability", difficulty=fit.difficulty_).group
    ratio, wald = andersen(data, halves), score_split(fit.calibration_, data, halves)
    assert score.df == ratio.df == 9
    assert score.statistic == pytest.approx(ratio.statistic, rel=0.05)
    assert score.statistic == pytest.approx(wald.statistic, rel=0.05)
    worst = np.argsort(-np.abs(score.z))[:2]
    assert sorted(worst.tolist()) == [2, 7]
    assert np.sign(score.z[2]) == -np.sign(score.z[7]) == -1  # weak people do worse on the steep item


def test_shift_in_the_difficulties_is_made_up_for():
    data = simulate.rasch(3000, 12, seed=2).responses
    made = SpectralRasch(se="none").fit(data).calibration_
    moved = made.replace(thresholds=made.difficulty + 0.02 * np.sin(np.arange(12)))
    assert ability_split(moved, data).statistic == pytest.approx(ability_split(made, data).statistic, abs=0.6)


def test_items_with_little_information_are_left_out_and_parts_without_a_link_cost_a_degree():
    rng = np.random.default_rng(0)
    data = simulate.rasch(2000, 12, difficulty=[*rng.normal(size=11), 8.0], seed=3).responses
    test = ability_split(SpectralRasch(se="none").fit(data).calibration_, data)
    assert len(test.z) == 11
    assert test.df == 11
    with pytest.raises(DesignError, match="no two items"):
        few = simulate.rasch(12, 4, seed=1).responses
        ability_split(SpectralRasch(se="none").fit(few).calibration_, few)


@pytest.mark.slow
def test_level_in_a_vertical_design():
    """4 grades, half of the items in common: at 1%, at most 2 of 30, which Wald's test exceeds."""
    below = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        level, grade = np.repeat(np.arange(5), 12), np.arange(2000) % 4
        logit = (grade - 1.5 + rng.normal(size=2000))[:, None] - (level - 2 + rng.normal(0, 0.7, 60))
        x = drawn(rng, logit)
        x[(level != grade[:, None]) & (level != grade[:, None] + 1)] = np.nan
        fit = SpectralRasch(se="none").fit(x)
        below += ability_split(fit.calibration_, fit.analyse(x).responses).p < 0.01
    assert below <= 2
