"""Square roots and inverses of covariances that may be singular, and errors of which only standard errors are known."""

import numpy as np
import pytest

from spectral_irt.inference.groups.sampling import ridged_inverse
from spectral_irt.inference.ranks.intervals import square_root
from spectral_irt.joint_errors import known_errors


@pytest.fixture
def covariance():
    """Of five errors with a mean of zero: singular along (1, ..., 1)."""
    a = np.random.default_rng(2).normal(size=(5, 7))
    centering = np.eye(5) - 0.2
    return centering @ (a @ a.T) @ centering


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_root_is_the_same_in_any_unit(covariance, unit):
    root = square_root(unit * covariance)
    np.testing.assert_allclose(root @ root.T / unit, covariance, atol=1e-8 * np.trace(covariance))
    np.testing.assert_allclose(root / np.sqrt(unit), square_root(covariance), atol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_inverse_with_a_ridge_is_that_of_what_is_known_and_large_beyond(covariance, unit):
    inverse = ridged_inverse(unit * covariance)
    centering = np.eye(5) - 0.2
    np.testing.assert_allclose(centering @ inverse @ centering * unit, np.linalg.pinv(covariance), rtol=1e-4, atol=1e-6)
    values = np.linalg.eigvalsh(inverse)
    assert values.min() > 0  # also along the direction on which nothing is known
    assert values.max() * unit * np.trace(covariance) / 5 == pytest.approx(1e9, rel=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_of_centered_values_are_those_of_independent_ones_less_their_mean(weighted):
    """V = (I - 1 w') diag(v) (I - w 1'): the whole covariance follows from its diagonal, also beside a value without an
    error and one without an estimate, and whatever the weights add up to."""
    w = np.array([1.0, 2.0, 1.5, 3.0, 2.5]) if weighted else np.ones(5)
    share = w / w.sum()
    v = np.array([0.3, 0.1, 0.5, 0.2, 0.05])
    center = np.eye(5) - share
    expected = center @ np.diag(v) @ center.T
    difficulty = np.random.default_rng(1).normal(size=5)
    difficulty -= share @ difficulty
    place = np.array([0, 2, 3, 4, 6])
    all_se, all_difficulty, all_weights = np.full(7, np.nan), np.full(7, np.nan), np.ones(7)
    all_se[place], all_difficulty[place], all_weights[place] = np.sqrt(np.diag(expected)), difficulty, w
    errors, known_by = known_errors(all_difficulty, all_se, None, 3 * all_weights if weighted else None)
    assert known_by == "independent"
    np.testing.assert_allclose(errors.full()[np.ix_(place, place)], expected, atol=1e-12)
    # Not centered: independent.
    errors, _ = known_errors(all_difficulty + 0.5, all_se, None)
    np.testing.assert_allclose(errors.full()[np.ix_(place, place)], np.diag(np.diag(expected)), atol=1e-12)
    assert known_errors(all_difficulty, np.full(7, np.nan), None)[1] == "none"


def test_of_a_covariance_what_is_not_known_counts_by_its_standard_error(covariance):
    matrix = covariance.copy()
    matrix[1] = matrix[:, 1] = np.nan
    errors, known_by = known_errors(np.zeros(5), np.array([1.0, 0.7, 1.0, 1.0, 1.0]), matrix)
    expected = covariance.copy()
    expected[1] = expected[:, 1] = 0
    expected[1, 1] = 0.7**2
    assert known_by == "covariance"
    np.testing.assert_allclose(errors.full(), expected)
