"""Tests of equal group means, against scipy, a dense sandwich, and their level in repeated samples."""

import numpy as np
import pytest
from scipy import stats

from spectral_irt.inference.groups.mean_differences import mean_differences
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling

RNG = np.random.default_rng(4)
ABILITY = RNG.normal(size=60) * np.repeat([1.0, 2.0, 0.5], 20) + np.repeat([0.0, 0.5, 0.3], 20)
GROUP = np.repeat([0, 1, 2], 20)


def test_two_groups_are_welchs_t_test_as_in_scipy():
    two = GROUP < 2
    found = mean_differences(ABILITY[two], GROUP[two], 2, SIMPLE)
    expected = stats.ttest_ind(ABILITY[GROUP == 1], ABILITY[GROUP == 0], equal_var=False)
    assert found.difference[1] / found.se[1] == pytest.approx(expected.statistic)
    assert found.p_holm[1] == pytest.approx(expected.pvalue)
    assert found.p_equal == pytest.approx(expected.pvalue)


def test_three_groups_are_welchs_f_test():
    """stats.f_oneway([1, 2, 3], [2, 3, 5], [9, 4, 1], equal_var=False) of SciPy 1.17.1."""
    ability = np.array([1.0, 2, 3, 2, 3, 5, 9, 4, 1])
    found = mean_differences(ability, np.repeat([0, 1, 2], 3), 3, SIMPLE)
    assert found.p_equal == pytest.approx(0.43963989885691385)


def test_people_without_a_group_or_an_ability_stay_out():
    ability = np.concatenate([ABILITY, [np.nan, 50.0]])
    group = np.concatenate([GROUP, [0, -1]])
    alone, more = mean_differences(ABILITY, GROUP, 3, SIMPLE), mean_differences(ability, group, 3, SIMPLE)
    assert alone.p_equal == more.p_equal
    np.testing.assert_array_equal(alone.p_holm, more.p_holm)


def test_a_person_with_weight_two_counts_as_a_mean_of_two():
    """Weights move the mean; equal weights change nothing."""
    equal = mean_differences(ABILITY, GROUP, 3, Sampling(weights=np.full(60, 1.0)))
    assert equal.p_equal == pytest.approx(mean_differences(ABILITY, GROUP, 3, SIMPLE).p_equal)
    weights = RNG.uniform(0.5, 1.5, 60)
    found = mean_differences(ABILITY, GROUP, 3, Sampling(weights=weights))
    means = [np.average(ABILITY[k == GROUP], weights=weights[k == GROUP]) for k in range(3)]
    np.testing.assert_allclose(found.difference[1:], np.array(means[1:]) - means[0])


def test_clusters_across_groups_against_a_dense_sandwich():
    cluster = np.tile(np.arange(10), 6)  # every cluster has people of all groups
    ability = ABILITY + np.linspace(-2, 2, 10)[cluster]
    found = mean_differences(ability, GROUP, 3, Sampling(cluster=cluster))
    mean = np.array([ability[k == GROUP].mean() for k in range(3)])
    sums = np.array(
        [[np.sum((ability - mean[k])[(k == GROUP) & (cluster == c)]) / 20 for k in range(3)] for c in range(10)]
    )
    covariance = 10 / 9 * sums.T @ sums
    contrasts = np.array([[-1, 1, 0], [-1, 0, 1]])
    inside = contrasts @ covariance @ contrasts.T
    np.testing.assert_allclose(found.se[1:], np.sqrt(np.diagonal(inside)))
    t = contrasts @ mean @ np.linalg.inv(inside) @ contrasts @ mean
    assert found.p_equal == pytest.approx(stats.f.sf(t * 8 / (9 * 2), 2, 8))


def test_groups_that_are_single_clusters_are_not_compared():
    found = mean_differences(ABILITY, GROUP, 3, Sampling(cluster=GROUP))
    assert np.isnan(found.p_equal)
    assert np.isnan(found.se).all()


@pytest.mark.parametrize("nested", [True, False])
def test_level_with_few_clusters(nested):
    """Two groups, ten clusters, equal means: 5% of samples are significant, up to four standard errors."""
    rng = np.random.default_rng(8)
    cluster = np.repeat(np.arange(10), 12)
    group = cluster % 2 if nested else np.tile([0, 1], 60)
    significant = 0
    for _ in range(800):
        ability = rng.normal(size=120) + rng.normal(size=10)[cluster]
        significant += mean_differences(ability, group, 2, Sampling(cluster=cluster)).p_equal < 0.05
    assert 800 * 0.05 - 4 * 6.2 < significant < 800 * 0.05 + 4 * 6.2


def test_a_group_of_one_person_leaves_the_others_compared():
    group = GROUP.copy()
    group[0] = 3
    found = mean_differences(ABILITY, group, 4, SIMPLE)
    assert np.isfinite(found.p_equal)
    assert np.isnan(found.se[3])
