"""Differences that agree, and their joint errors: against dense matrices and simulation."""

import numpy as np
import pytest

from spectral_irt.data.block import Thresholds
from spectral_irt.inference.robust_center import robust_center, scatter
from spectral_irt.joint_errors import JointErrors, errors_of_thresholds, known_errors


def dense(errors):
    k = len(errors.diagonal)
    plain = np.diag(errors.diagonal) + errors.common[:, None] + errors.common
    return plain if errors.matrix is None else plain + errors.matrix.reshape(k, k)


@pytest.fixture
def kinds():
    rng = np.random.default_rng(0)
    v = rng.random(7) + 0.1
    root = rng.normal(size=(7, 7))
    centered, whole = JointErrors.of_centered(v), JointErrors.dense(root @ root.T)
    well_known = JointErrors.dense(root @ root.T + 4 * np.eye(7))  # a wrong sign of `own` leaves it positive
    simple = [JointErrors.independent(np.sqrt(v)), centered, whole, whole + centered, centered.times_factor(1.5)]
    return [*simple, well_known + centered, well_known.times_factor(0.7) + JointErrors.independent(np.sqrt(v))]


def test_centering_by_hand():
    v = np.array([1.0, 2.0, 3.0, 0.5])
    off = np.eye(4) - 0.25
    np.testing.assert_allclose(dense(JointErrors.of_centered(v)), off @ np.diag(v) @ off, atol=1e-12)
    again = JointErrors.after_centering(np.sqrt(np.diag(off @ np.diag(v) @ off)))
    np.testing.assert_allclose(again.diagonal, v)


def test_all_that_is_asked_of_them_equals_the_matrix(kinds):
    rng = np.random.default_rng(1)
    w, x = rng.random(7), rng.normal(size=7)
    w /= w.sum()
    for errors in kinds:
        v = dense(errors)
        off = np.eye(7) - w
        np.testing.assert_allclose(errors.variance, np.diag(v))
        np.testing.assert_allclose(errors.times(w), v @ w)
        assert errors.of(w) == pytest.approx(w @ v @ w)
        np.testing.assert_allclose(errors.around(w), np.diag(off @ v @ off.T))
        chosen = np.array([0, 2, 5])
        np.testing.assert_allclose(dense(errors.take(chosen)), v[np.ix_(chosen, chosen)])
        center = np.eye(7) - 1 / 7
        statistic, df = errors.disagreement(x)
        assert df == 6
        inverse = np.linalg.pinv(center @ v @ center)
        assert statistic == pytest.approx(x @ center @ inverse @ center @ x)
        assert errors.precision() == pytest.approx(np.trace(inverse))
    np.testing.assert_allclose(dense(kinds[3]), dense(kinds[2]) + dense(kinds[1]))
    np.testing.assert_allclose(dense(kinds[4]), 2.25 * dense(kinds[1]))


def test_a_part_of_the_values_is_tested_as_if_the_others_were_not_there(kinds):
    rng = np.random.default_rng(3)
    x, chosen = rng.normal(size=7), np.array([True, False, True, True, False, True, True])
    center = np.eye(5) - 1 / 5
    for errors in kinds:
        part = center @ dense(errors)[np.ix_(chosen, chosen)] @ center
        inverse = np.linalg.pinv(part)
        statistic, df = errors.disagreement(x, chosen)
        assert df == 4
        assert statistic == pytest.approx(x[chosen] @ inverse @ x[chosen], rel=1e-9)
        assert errors.precision(chosen) == pytest.approx(np.trace(inverse), rel=1e-9)
    singular = np.diag([0.0, 0.0, 1.0, 2.0, 3.0])  # of all there is no inverse, of a part there is
    part = np.array([False, True, True, True, True])
    statistic, df = JointErrors.dense(singular).disagreement(x[:5], part)
    inverse = np.linalg.pinv((np.eye(4) - 1 / 4) @ singular[1:, 1:] @ (np.eye(4) - 1 / 4))
    assert (statistic, df) == (pytest.approx(x[1:5] @ inverse @ x[1:5]), 3)


def test_the_test_of_agreement_keeps_its_level_and_the_excess_is_found():
    rng = np.random.default_rng(2)
    se = np.linspace(0.1, 0.3, 20)
    errors = JointErrors.independent(se)
    p = [scatter(rng.normal(0, se), errors, 0.05).p for _ in range(400)]
    found = [scatter(rng.normal(0, np.hypot(se, 0.4)), errors, 0.05).excess_variance for _ in range(400)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.033)  # three standard errors
    assert np.mean(found) == pytest.approx(0.16, rel=0.06)  # variance of a variance of 20: 33% of it, over 400


@pytest.mark.parametrize("off", [0, 4, 8])
def test_the_center_is_not_drawn_by_what_is_off(off):
    rng = np.random.default_rng(off)
    z, named, false = [], [], []
    errors = JointErrors.independent(np.full(20, 0.15))
    for _ in range(200):
        x = rng.normal(0.3, 0.15, 20)
        x[:off] += 1.0
        found = robust_center(x, errors)
        z.append((found.center - 0.3) / (0.15 / np.sqrt(found.agrees.sum())))
        named.append(~found.agrees[:off])
        false.append(~found.agrees[off:])
    assert np.mean(np.abs(z) < 1.96) > 0.89  # 95% less four standard errors of 1.5%
    assert not off or np.mean(named) > 0.98
    assert np.mean(false) < 0.02


def test_differences_without_errors_are_judged_by_their_own_spread():
    x = np.append(np.random.default_rng(3).normal(0, 0.1, 20), [3.0, 4.0])
    found = robust_center(x, JointErrors.independent(np.zeros(22)))
    assert np.flatnonzero(~found.agrees).tolist()[-2:] == [20, 21]
    assert found.agrees.sum() >= 18
    assert np.isnan(found.p)
    assert found.excess == pytest.approx(0.1, rel=0.4)
    same = robust_center(np.ones(5), JointErrors.independent(np.zeros(5)))
    assert same.agrees.all()
    assert same.center == 1


def test_thresholds_of_items_with_unlike_numbers_of_categories_are_centered():
    """The mean of the locations is zero, that of all thresholds is not: their errors are those of centered values."""
    layout = Thresholds(np.array([1, 3, 2, 4]))
    rng = np.random.default_rng(1)
    weights, variance = layout.mean_weights(), rng.uniform(0.01, 0.05, layout.n_entries)
    values = rng.normal(size=layout.n_entries)
    values -= weights @ values
    assert abs(values.mean()) > 0.01
    whole = np.eye(layout.n_entries) - np.outer(np.ones(layout.n_entries), weights)
    covariance = whole @ np.diag(variance) @ whole.T
    found, _ = known_errors(values, np.sqrt(np.diag(covariance)), None, weights)
    np.testing.assert_allclose(found.full(), covariance, atol=1e-12)
    assert known_errors(values + 1, np.sqrt(variance), None, weights)[0].common.any() == 0  # not centered


def test_errors_of_thresholds_agree_with_those_of_locations():
    """Of items with one and with three thresholds: the variances are those that were given, of both."""
    layout = Thresholds(np.array([3, 1, 3, 3]))
    thresholds = np.array([-1.0, 0.2, 0.5, 0.3, -0.4, 0.0, 0.9, -0.7, 0.1, 0.4])
    thresholds = thresholds - (layout.mean_weights() @ thresholds) / layout.mean_weights().sum()
    se = np.array([0.2, 0.18, 0.25, 0.15, 0.22, 0.2, 0.21, 0.3, 0.24, 0.26])
    location_se = np.array([0.12, 0.15, 0.11, 0.14])
    errors, kind = errors_of_thresholds(thresholds, se, None, layout, location_se)
    assert kind == "independent"
    np.testing.assert_allclose(errors.variance, se**2, rtol=1e-10)
    full = errors.full()
    for item in range(4):
        own = np.flatnonzero(layout.item == item)
        np.testing.assert_allclose(full[np.ix_(own, own)].mean(), location_se[item] ** 2, rtol=1e-10)
