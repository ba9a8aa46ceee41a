"""What decides on DIF and on agreement: classes, anchors, centers and their excess by plain formulas."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import spectral_irt as si
from spectral_irt import joint_errors
from spectral_irt.inference.groups.calibrations import Combination, GroupModel, calibrate_groups
from spectral_irt.inference.groups.dif import _beyond_slopes, _pair, as_t, ets_class, highest_class, purified_anchors
from spectral_irt.inference.groups.dif_details import (
    _threshold_findings,
    _unlike,
    nonuniform_findings,
    threshold_contrasts,
)
from spectral_irt.inference.groups.grouping import by_label
from spectral_irt.inference.groups.sampling import Sampling
from spectral_irt.inference.groups.slope_shifts import SlopeShifts, _used_both
from spectral_irt.inference.robust_center import (
    _closest_half,
    _variance_within,
    center_of_items,
    choice_variance,
    robust_center,
    scatter,
)
from spectral_irt.joint_errors import JointErrors


@pytest.mark.parametrize("df", [np.inf, 6.0])
def test_classes_of_the_ets_by_their_definition(df):
    """A: below 1 or not significant; C: 1.5 or more, and beyond 1 by a one-sided test at 5%; B: the others."""
    rng = np.random.default_rng(1)
    delta, se = rng.normal(0, 1.7, 400), rng.uniform(0.05, 0.9, 400)
    p = 2 * stats.t.sf(np.abs(delta) / se, df)
    tail = stats.t.sf if np.isfinite(df) else lambda x, df: stats.norm.sf(x)
    expected = []
    for size, error, chance in zip(np.abs(delta), se, p, strict=True):
        if size < 1 or chance >= 0.05:
            expected.append("A")
        elif size >= 1.5 and tail((size - 1) / error, df) < 0.05:
            expected.append("C")
        else:
            expected.append("B")
    assert ets_class(delta, se, p, 0.05, df).tolist() == expected
    assert {*expected} == {*"ABC"}
    assert ets_class(np.array([1.0, 1.5]), np.array([0.1, 0.1]), np.array([0.01, 0.01])).tolist() == ["B", "C"]


def test_limits_of_t_are_as_rare_as_those_of_the_normal_distribution():
    assert as_t(2.7, np.inf) == 2.7
    assert stats.t.sf(as_t(2.7, 8.0), 8) == pytest.approx(stats.norm.sf(2.7))


class Groups:
    """Difficulties of some groups with independent errors, as of `GroupCalibrations`."""

    def __init__(self, difficulty, se):
        self.difficulty, self.se = np.array(difficulty), np.array(se)
        self.names = tuple(f"g{k}" for k in range(len(difficulty)))
        self.items = np.arange(self.difficulty.shape[1])

    def combined_errors(self, coefficients):
        return JointErrors.independent(np.sqrt(coefficients**2 @ self.se**2))

    def combine(self, coefficients):
        size = len(self.items)
        se = np.sqrt(coefficients**2 @ self.se**2)
        return Combination(coefficients @ self.difficulty, se, np.full(size, np.inf))


def test_anchors_agree_in_every_group_or_are_those_that_differ_least():
    base = np.zeros(12)
    one, other = base + 0.5, base - 0.3
    one[[0, 1]] += 1.0
    other[[1, 2]] -= 1.0
    groups = Groups([base, one, other], np.full((3, 12), 0.1))
    assert np.flatnonzero(~purified_anchors(groups, None)).tolist() == [0, 1, 2]
    shift = np.zeros((3, 12))
    shift[1, 0] = 1.0  # slopes explain the first
    explained = SlopeShifts(shift, np.zeros((3, 12)))
    assert np.flatnonzero(~purified_anchors(groups, explained)).tolist() == [1, 2]
    unsure = SlopeShifts(np.zeros((3, 12)), np.where(np.arange(12) == 0, 0.5, 0.0) * np.ones((3, 1)))
    assert np.flatnonzero(~purified_anchors(groups, unsure)).tolist() == [1, 2]
    # Each group has other items that differ: of twelve, the quarter that differs least is kept.
    many = [base] + [base + np.where(np.arange(12) // 3 == k, 1.0 + 0.1 * np.arange(12), 0.0) for k in range(4)]
    kept = purified_anchors(Groups(many, np.full((5, 12), 0.1)), None)
    assert kept.sum() == 3


def test_a_contrast_of_two_groups_less_what_slopes_explain():
    groups = Groups([[0.0, 0.2], [0.5, -0.1], [1.0, 1.0]], [[0.1, 0.2], [0.2, 0.1], [0.3, 0.3]])
    shifts = SlopeShifts(np.array([[0.0, 0.0], [0.1, 0.3], [0.4, 0.2]]), np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.1]]))
    plain, fair = _pair(groups, 2, 1, None), _pair(groups, 2, 1, shifts)
    np.testing.assert_allclose(plain.value, [0.5, 1.1])
    np.testing.assert_allclose(fair.value, [0.5 - 0.3, 1.1 + 0.1])
    np.testing.assert_allclose(fair.se**2, [0.04 + 0.09 + 0.01 + 0.04, 0.01 + 0.09 + 0.01])


def test_what_slopes_turn_round_is_not_flagged():
    found = {"contrast": np.array([0.5, 0.5, -0.5])}
    fair = {"contrast": np.array([0.3, -0.3, -0.1]), "flagged": np.array([True, True, False])}
    assert _beyond_slopes(found, fair).tolist() == [True, False, False]
    overall = {"harder_for": np.array(["a", "b"], dtype=object)}
    turned = {"harder_for": np.array(["a", "a"], dtype=object), "flagged": np.array([True, True])}
    assert _beyond_slopes(overall, turned).tolist() == [True, False]


def test_the_class_of_an_item_is_the_highest_of_its_comparisons():
    items = {"item": np.arange(3), "class": np.array(["A", "B", "C"], dtype=object)}
    contrasts = {"class": np.array(["B", "A", "A", "A", "C", "B"], dtype=object)}
    assert highest_class(items, contrasts).tolist() == ["B", "C", "C"]


def test_differences_that_change_with_ability_are_named_by_size_and_direction():
    columns = {
        "item": np.array(["x", "y", "z", "x"], dtype=object),
        "group": np.array(["b", "b", "b", "c"], dtype=object),
        "reference": np.array(["a"] * 4, dtype=object),
        "interaction": np.array([0.6, -1.2, 2.0, 0.9]),
        "interaction_p": np.array([0.001, 0.002, 0.5, 0.01]),
        "nonuniform": np.array([True, True, False, True]),
    }
    (finding,) = nonuniform_findings(columns)
    assert finding.items == ("y", "x")
    assert "for 2 items" in finding.sentence
    told = ["'y' harder for 'a' than for 'b' by 1.20", "'x' harder for 'c' than for 'a' by 0.90"]
    told.append("'x' harder for 'b' than for 'a' by 0.60")
    assert [finding.sentence.index(one) for one in told] == sorted(finding.sentence.index(one) for one in told)
    columns["nonuniform"][:] = False
    assert nonuniform_findings(columns) == []
    columns["interaction_p"][:] = np.nan
    (untested,) = nonuniform_findings(columns)
    assert untested.code == "nonuniform_not_tested"
    assert untested.sentence.endswith("was not tested: a group has too few low scorers or too few high scorers.")


def test_thresholds_that_differ_most_are_named():
    thresholds = {
        "item": np.array(["x", "x", "y", "y"], dtype=object),
        "category": np.array([1, 2, 1, 2]),
        "z": np.array([2.0, -3.0, 4.0, 1.0]),
        "contrast": np.array([0.2, -0.4, 0.7, 0.1]),
        "group": np.array(["b"] * 4, dtype=object),
    }
    columns = {"threshold_dif_p_bh": np.array([0.04, 0.01]), "threshold_dif_p": np.array([0.02, 0.001])}
    (finding,) = _threshold_findings(thresholds, columns, np.array(["x", "y"], dtype=object), 0.05)
    assert finding.items == ("y", "x")
    assert "2 items have" in finding.sentence
    assert "'y' above all at category 1 (+0.70 logits for 'b')" in finding.sentence
    assert "'x' above all at category 2 (-0.40 logits for 'b')" in finding.sentence
    columns["threshold_dif_p_bh"] = np.array([0.05, 0.06])
    assert _threshold_findings(thresholds, columns, np.array(["x", "y"], dtype=object), 0.05) == ()


def test_thresholds_of_groups_centered_on_the_mean_location_of_the_anchors():
    """Every item counts alike in the mean, whatever its number of thresholds; errors are of what is so centered."""
    responses = si.simulate.partial_credit(400, 5, categories=[3, 2, 4, 3, 3], seed=4).responses
    split = by_label(responses, (np.arange(400) % 2).tolist())
    calibration = si.SpectralPartialCredit(regularization=0).fit(responses).calibration_
    anchors = np.array([True, True, True, False, False])
    rows, columns, _ = threshold_contrasts(calibration, responses, split, responses.items, anchors, 0.05)
    groups = calibrate_groups(responses, split, GroupModel())
    layout = groups.layout
    C = np.eye(layout.n_entries)
    for item in range(3):
        own = layout.item == item
        C[:, own] -= 1 / (3 * own.sum())
    contrast = C @ (groups.thresholds[1] - groups.thresholds[0])
    covariance = C @ (groups.covariances[0] + groups.covariances[1]) @ C.T
    se = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(rows["contrast"], contrast, atol=1e-9)
    np.testing.assert_allclose(rows["se"], se, rtol=1e-6)
    np.testing.assert_allclose(rows["p"], 2 * stats.norm.sf(np.abs(contrast / se)), rtol=1e-5)
    np.testing.assert_allclose(rows["threshold"] - rows["threshold_reference"], contrast, atol=1e-9)
    location = [rows["threshold_reference"][layout.item == item].mean() for item in range(3)]
    assert np.mean(location) == pytest.approx(calibration.difficulty[:3].mean())
    statistic, df = _unlike(layout, contrast, covariance)
    np.testing.assert_allclose(columns["threshold_dif"], statistic, rtol=1e-6)
    np.testing.assert_array_equal(columns["threshold_dif_df"], [1, 0, 2, 1, 1])
    for item in (0, 2, 3, 4):
        p = stats.chi2.sf(statistic[item], df[item])
        assert columns["threshold_dif_p"][item] == pytest.approx(p, rel=1e-4)
    assert np.isnan(columns["threshold_dif_p"][1])


@pytest.mark.parametrize("categories", [2, 4])
def test_intercepts_are_as_sure_as_both_categories_are_used(categories):
    """The harmonic sum of how many persons are in the category above and in the one below a threshold."""
    responses = si.simulate.partial_credit(60, 4, categories=categories, design="sampled", p=0.8, seed=1).responses
    table, expected = responses.to_dense(), []
    for item in range(4):
        for k in range(1, categories):
            above, below = np.sum(table[:, item] == k), np.sum(table[:, item] == k - 1)
            expected.append(above * below / (above + below))
    np.testing.assert_allclose(_used_both(responses), expected, rtol=1e-4, atol=1e-3)


def test_half_of_the_values_that_lie_closest_together():
    rng = np.random.default_rng(6)
    for _ in range(5):
        x, se = rng.normal(0, 2, 9), np.ones(9)
        best = min(combinations(range(9), 5), key=lambda own: np.var(x[list(own)]))
        assert np.flatnonzero(_closest_half(x, se, 5)).tolist() == list(best)
    x = np.array([0.0, 0.1, 0.2, 3.0, 3.5, 4.0])  # the latter lie closer together in their own errors
    assert np.flatnonzero(_closest_half(x, np.array([0.01, 0.01, 0.01, 5.0, 5.0, 5.0]), 4))[-3:].tolist() == [3, 4, 5]


def test_the_variance_of_a_normal_number_within_limits():
    for limit in (0.5, 2.0, 3.0):
        assert _variance_within(limit) == pytest.approx(stats.truncnorm.var(-limit, limit))
    assert _variance_within(np.inf) == 1


@pytest.mark.parametrize("within", [np.inf, 3.0])
def test_scatter_beyond_the_errors_by_moments(within):
    """DerSimonian and Laird's variance, of differences of which only those within some limit are seen."""
    rng = np.random.default_rng(2)
    x, se = rng.normal(0, 0.4, 15), rng.uniform(0.1, 0.3, 15)
    some = np.arange(15) < 12
    found = scatter(x, JointErrors.independent(se), 0.05, chosen=some, within=within)
    w = se[some] ** -2
    mean = np.average(x[some], weights=w)
    Q = np.sum(w * (x[some] - mean) ** 2)
    inside = 1 if within == np.inf else stats.truncnorm.var(-3, 3)
    assert (found.statistic, found.df) == (pytest.approx(Q), 11)
    assert found.p == pytest.approx(stats.chi2.sf(Q, 11))
    assert found.excess_variance == pytest.approx((Q / inside - 11) / (w.sum() - np.sum(w**2) / w.sum()))
    assert scatter(0.1 * x, JointErrors.independent(se), 0.05).excess_variance == 0
    unknown = scatter(x, JointErrors.independent(np.zeros(15)), 0.05, within=within)
    assert (unknown.df, unknown.excess_variance) == (0, pytest.approx(x.var(ddof=1) / inside))


@pytest.mark.parametrize("part", [None, np.arange(6) != 2])
@pytest.mark.parametrize("shared", [True, False])
def test_precision_is_the_trace_on_contrasts(part, shared, monkeypatch):
    """By how much Q grows for a unit of variance in all values: tr(G), G = W^-1 - W^-1 1 1' W^-1 / (1' W^-1 1)."""
    root = np.random.default_rng(1).normal(size=(6, 8))
    errors = JointErrors(np.full(6, 0.3), np.linspace(-0.1, 0.2, 6), root @ root.T)
    if not shared:
        monkeypatch.setattr(joint_errors.JointErrors, "_precision_of_all", None)
    chosen = np.ones(6, dtype=bool) if part is None else part
    inverse = np.linalg.inv(errors.full()[np.ix_(chosen, chosen)])
    ones = np.ones(chosen.sum())
    G = inverse - np.outer(inverse @ ones, ones @ inverse) / (ones @ inverse @ ones)
    assert errors.precision(part) == pytest.approx(np.trace(G))
    x = np.array([0.3, -1.0, 0.7, 2.0, 0.1, -0.4])
    statistic, df = errors.disagreement(x, part)
    assert (statistic, df) == (pytest.approx(x[chosen] @ G @ x[chosen]), chosen.sum() - 1)


def test_items_that_moved_are_told_from_thresholds_that_did():
    """One item moved as a whole; of another one threshold: its other threshold stays with those that agree."""
    rng = np.random.default_rng(3)
    item = np.repeat(np.arange(10), 2)
    x = 0.5 + rng.normal(0, 0.05, 20)
    x[4:6] += 1.0  # item 2
    x[15] += 1.5  # item 7
    errors = JointErrors.independent(np.full(20, 0.1))
    found, choice = center_of_items(x, errors, item, 0.05)
    assert np.flatnonzero(~found.agrees).tolist() == [4, 5, 15]
    assert found.center == pytest.approx(0.5, abs=0.05)
    moved = (x[4:6].mean() - found.center) / np.sqrt(0.01 / 2)
    assert np.abs(found.z[4:6]).max() > 9
    assert np.abs(found.z[4:6]) == pytest.approx(np.abs(moved), rel=0.1)
    assert choice == pytest.approx(0, abs=1e-4)
    single, choice = center_of_items(x[::2], JointErrors.independent(np.full(10, 0.1)), np.arange(10), 0.05)
    again = robust_center(x[::2], JointErrors.independent(np.full(10, 0.1)))
    assert single.center == again.center
    assert choice == choice_variance(x[::2], JointErrors.independent(np.full(10, 0.1)), again)


def test_the_choice_of_those_that_agree_moves_the_center():
    """The mean square of the centers of sets found after moving each value by chance, by 0.55 of its error."""
    x = np.concatenate([np.linspace(-0.2, 0.2, 12), [0.34, 0.36, -0.33]])
    se = np.full(15, 0.1)
    errors = JointErrors.independent(se)
    found = robust_center(x, errors)
    weights = found.agrees / found.agrees.sum()
    spread = np.sqrt(se**2 * (1 - 2 * weights) + np.sum(weights**2 * se**2))
    rng = np.random.default_rng(0)
    centers = []
    for _ in range(40):
        moved = robust_center(x + 0.55 * spread * rng.standard_normal(15), errors)
        centers.append(x[moved.agrees].mean())
    expected = np.mean((np.array(centers) - found.center) ** 2)
    assert expected > 1e-5
    assert choice_variance(x, errors, found) == pytest.approx(expected)
    assert choice_variance(x, JointErrors.independent(np.zeros(15)), found) == 0


@pytest.mark.parametrize("divided", [False, True], ids=["whole clusters", "clusters divided"])
def test_groups_of_clusters_around_the_mean_of_their_anchors(divided):
    """Differences of two groups, and Wald's statistic of each item over three, from the covariance of everything."""
    rng = np.random.default_rng(6)
    room = np.arange(360) // 12
    group = np.arange(360) % 3 if divided else room % 3
    ability = rng.normal(size=(360, 1)) + 0.4 * rng.normal(size=30)[room][:, None]
    responses = si.Responses.from_wide((rng.random((360, 5)) < 1 / (1 + np.exp(np.linspace(-1, 1, 5) - ability))) * 1.0)
    split = by_label(responses, group.tolist())
    found = calibrate_groups(responses, split, GroupModel(), Sampling(cluster=room))
    assert found.sandwiches.shared == divided
    anchors = np.array([True, True, False, True, False])
    centered = found.centered_on(anchors)
    a = anchors / 3
    C = np.eye(5) - a
    np.testing.assert_allclose(centered.difficulty, found.difficulty - (found.difficulty @ a)[:, None])
    blocks = found.sandwiches.covariances
    whole = np.block([[C @ blocks[g][h] @ C.T for h in range(3)] for g in range(3)])
    coefficients = np.array([-1.0, 0.0, 1.0])
    pair = centered.combine(coefficients)
    K = np.kron(coefficients, np.eye(5))
    np.testing.assert_allclose(pair.value, K @ centered.difficulty.ravel(), atol=1e-12)
    np.testing.assert_allclose(pair.se, np.sqrt(np.diag(K @ whole @ K.T)), rtol=1e-6)
    again = found.combine(coefficients, a)
    np.testing.assert_allclose(again.value, pair.value, atol=1e-12)
    np.testing.assert_allclose(again.se, pair.se, rtol=1e-6)
    further = np.array([[0.0] * 5, [0.1] * 5, [0.0, 0.2, 0.0, 0.3, 0.0]])
    statistic = centered.item_statistics(centered.difficulty, further)
    contrasts = np.array([[-1.0, 1, 0], [-1, 0, 1]])
    for item in range(5):
        own = np.arange(3) * 5 + item
        covariance = contrasts @ (whole[np.ix_(own, own)] + np.diag(further[:, item] ** 2)) @ contrasts.T
        apart = contrasts @ centered.difficulty[:, item]
        assert statistic[item] == pytest.approx(apart @ np.linalg.pinv(covariance) @ apart, rel=1e-6)
