"""Standard errors of slopes: against derivatives by finite differences of likelihoods written as loops."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from drawn import drawn
from spectral_irt import Responses, simulate
from spectral_irt.inference.groups.slope_shifts import _common_slopes, _GroupSlopes
from spectral_irt.inference.items import slope_model as module
from spectral_irt.inference.items.slope_model import SlopeModel, slope_model
from spectral_irt.inference.items.slopes import MOST_GROUPS, PRIOR_SD, by_ability, slopes

STEP = 1e-4


def second_derivatives(function, at):
    """The matrix of second derivatives, by central differences."""
    n = len(at)
    steps = STEP * np.eye(n)
    return np.array(
        [
            [
                (
                    function(at + steps[i] + steps[j])
                    - function(at + steps[i] - steps[j])
                    - function(at - steps[i] + steps[j])
                    + function(at - steps[i] - steps[j])
                )
                / (4 * STEP**2)
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


def test_errors_of_slopes_on_given_abilities_are_those_of_the_second_derivatives():
    data = simulate.rasch(150, 5, seed=3)
    found = slopes(data.responses, data.ability)
    n, r, theta = by_ability(data.responses, data.ability)
    for item in range(5):

        def penalized(value, item=item):
            logit = value[0] * theta - value[1]
            likelihood = np.sum(r[item] * logit - n[item] * np.logaddexp(0, logit))
            return likelihood - (value[0] - 1) ** 2 / (2 * PRIOR_SD**2)

        at = np.array([found.slope[item], found.intercept[item]])
        gradient = [(penalized(at + step) - penalized(at - step)) / (2 * STEP) for step in STEP * np.eye(2)]
        np.testing.assert_allclose(gradient, 0, atol=1e-2)  # there is the maximum
        information = -second_derivatives(penalized, at)
        assert found.se[item] == pytest.approx(np.sqrt(np.linalg.inv(information)[0, 0]), rel=1e-3)


@pytest.mark.parametrize("categories", [2, 3])
def test_errors_of_the_slope_model_are_those_of_scores_by_differences(categories, monkeypatch):
    """The inverse of sum_l g_l g_l' of an item's own parameters, g the derivative of a person's marginal likelihood."""
    simulated = simulate.partial_credit(200, 5, categories=categories, seed=4)
    calls = []
    posterior = module._posterior

    def recorded(chosen, p, there, weight):
        calls.append((p, weight))
        return posterior(chosen, p, there, weight)

    monkeypatch.setattr(module, "_posterior", recorded)
    found = slope_model(simulated.responses)
    p, weight = calls[-1]  # at the end: items x categories x abilities, and the population
    answers = simulated.responses.to_dense().astype(int)
    grid, persons = module.GRID, np.arange(len(answers))
    each = np.array([[p[i, answers[person, i]] for i in range(5)] for person in persons])  # P(answer | ability)
    mean = np.array([grid @ (weight * one.prod(axis=0)) / (weight @ one.prod(axis=0)) for one in each])
    common = float(found.ability @ mean / (mean @ mean))
    for item in range(5):
        others = np.delete(each, item, axis=1).prod(axis=1)
        intercepts = -np.cumsum(found.intercepts.reshape(5, -1)[item])
        at = np.array([found.slope[item] * common, *intercepts])

        def marginal(value, item=item, others=others):
            level = np.arange(categories)
            logit = level[:, None] * value[0] * grid + np.append(0.0, value[1:])[:, None]
            own = np.exp(logit) / np.exp(logit).sum(axis=0)
            return np.log((own[answers[:, item]] * others) @ weight)

        scores = np.array([(marginal(at + step) - marginal(at - step)) / (2 * STEP) for step in STEP * np.eye(len(at))])
        se = np.sqrt(np.linalg.inv(scores @ scores.T)[0, 0]) / common
        assert found.slope_se[item] == pytest.approx(se, rel=1e-3)


def test_common_slopes_are_drawn_in_by_what_their_errors_explain():
    """Means by precision over the groups, and each drawn to 1 by the share of its variance that is error."""
    responses = simulate.rasch(400, 4, seed=3).responses
    group = np.arange(400) % 2
    people = [responses.take_persons(np.flatnonzero(group == g)) for g in (0, 1)]
    slope = np.array([[0.5, 0.9, 1.2, 1.4], [0.7, 0.9, 1.1, 1.3]])
    se = np.array([[0.10, 0.20, 0.15, 0.10], [0.20, 0.10, 0.15, 0.30]])
    intercepts = np.array([-1.0, 0.0, 0.5, 1.0])
    models = [SlopeModel(slope[g], se[g], intercepts, np.zeros(200), np.ones(200)) for g in (0, 1)]
    groups = [_GroupSlopes(*each) for each in zip(people, models, strict=True)]
    common = _common_slopes(groups, np.ones(4, dtype=bool))
    mean = np.average(slope, axis=0, weights=se**-2.0)
    error = 1 / (se**-2.0).sum(axis=0)
    true = mean.var() - error.mean()
    np.testing.assert_allclose(common.slope, 1 + true / (true + error) * (mean - mean.mean()))
    np.testing.assert_allclose(common.slope_se, np.sqrt(true * error / (true + error)))
    np.testing.assert_allclose(common.origin, 0, atol=1e-12)
    np.testing.assert_allclose(common.intercepts, intercepts)


def turned_items():
    """80 people and 6 items, one of which falls with ability, one flat and one steep; each person with an ability."""
    rng = np.random.default_rng(5)
    ability = rng.normal(size=80)
    slope = np.array([-1.5, -0.2, 0.6, 1.0, 1.4, 2.5])
    table = drawn(rng, ability[:, None] * slope - np.linspace(-0.5, 0.5, 6))
    table[rng.random(table.shape) < 0.1] = np.nan
    return table, ability


def profile(theta, x, slope):
    """The log-likelihood of one item at this slope, with the difficulty that fits best: by Newton's method."""
    c = 0.0
    for _ in range(100):
        p = 1 / (1 + np.exp(c - slope * theta))
        c += (p.sum() - x.sum()) / (p * (1 - p)).sum()
    return np.sum(x * (slope * theta - c) - np.logaddexp(0, slope * theta - c))


def test_how_much_steeper_than_the_others_is_the_score_at_the_slope_in_common():
    table, ability = turned_items()
    found = slopes(Responses.from_wide(table), ability)
    n, r, theta = by_ability(Responses.from_wide(table), ability)
    items = []
    for counts, right in zip(n.astype(int), r.astype(int), strict=True):
        at = np.repeat(theta, counts)
        x = np.concatenate([[1.0] * b + [0.0] * (a - b) for a, b in zip(counts, right, strict=True)])
        items.append((at, x))

    def derivatives(slope):
        step = 1e-3
        below, middle, above = (np.array([profile(at, x, slope + k * step) for at, x in items]) for k in (-1, 0, 1))
        return (above - below) / (2 * step), -(above - 2 * middle + below) / step**2

    low, high = 0.01, 5.0
    for _ in range(40):  # the slope that all items have in common: scores add up to zero
        common = (low + high) / 2
        low, high = (common, high) if derivatives(common)[0].sum() > 0 else (low, common)
    score, variance = derivatives(common)
    z = score / np.sqrt(variance)
    np.testing.assert_allclose(found.z, z, rtol=2e-3, atol=1e-3)
    assert found.df == 5
    assert found.chi2 == pytest.approx(np.sum(z**2), rel=5e-3)
    assert found.p == pytest.approx(stats.chi2.sf(found.chi2, 5), rel=1e-6)  # one of six is the slope in common
    assert found.spread == pytest.approx(np.sqrt(np.var(found.slope, ddof=1) - np.mean(found.se**2)))


def test_of_few_people_the_sum_of_squares_has_the_variance_of_all_answers_with_the_same_numbers_right():
    """Three items, seven people: every way to have as many right; scores less what the slope in common takes off."""
    theta = np.array([-2.0, -1.1, -0.4, 0.1, 0.7, 1.5, 2.3])
    table = np.array([[0, 0, 1, 0, 1, 1, 1], [1, 0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 0, 0, 1]], dtype=float).T
    apart = theta - theta.mean()

    def ways(item, slope):
        """The score of each way, and how likely it is."""
        size = int(table[:, item].sum())
        scores = np.array([apart[list(who)].sum() for who in combinations(range(7), size)])
        p = np.exp(slope * scores)
        p /= p.sum()
        return scores - p @ scores, p, table[:, item] @ apart - p @ scores

    low, high = 0.01, 5.0
    for _ in range(60):
        common = (low + high) / 2
        total = sum(ways(item, common)[2] for item in range(3))
        low, high = (common, high) if total > 0 else (low, common)
    scores, p, observed = zip(*(ways(item, common) for item in range(3)), strict=True)
    variance = np.array([b @ a**2 for a, b in zip(scores, p, strict=True)])
    u = np.sqrt(variance / variance.sum())
    M = np.eye(3) - np.outer(u, u)
    y = np.stack(np.meshgrid(*(a / np.sqrt(v) for a, v in zip(scores, variance, strict=True)), indexing="ij"), axis=-1)
    chance = p[0][:, None, None] * p[1][:, None] * p[2]
    form = np.einsum("...i,ij,...j->...", y, M, y)
    assert np.sum(chance * form) == pytest.approx(2.0)
    expected = np.sum(chance * form**2) - 4.0
    found = slopes(Responses.from_wide(table), theta)
    np.testing.assert_allclose(found.z, np.array(observed) / np.sqrt(variance), atol=1e-4)
    shape = 4 / expected
    assert found.p == pytest.approx(stats.gamma.sf(found.chi2, a=2 * shape / 2, scale=2 / shape), rel=1e-3)
    assert abs(expected - 4.0) > 0.2  # not that of normal scores


def test_slopes_below_zero_by_the_correlation_of_answers_and_ability():
    """The score test of a slope of zero is sqrt(n) times that correlation; Benjamini and Hochberg at 5%."""
    table, ability = turned_items()
    found = slopes(Responses.from_wide(table), ability)
    theta = by_ability(Responses.from_wide(table), ability)[2]
    order = np.argsort(np.argsort(ability))
    binned = theta[order * MOST_GROUPS // 80]  # 80 people in 64 groups of nearly the same ability
    p = []
    for x in table.T:
        there = ~np.isnan(x)
        p.append(stats.norm.cdf(np.sqrt(there.sum()) * np.corrcoef(x[there], binned[there])[0, 1]))
    rejected = stats.false_discovery_control(p) < 0.05
    assert rejected.tolist() == [True, False, False, False, False, False]
    np.testing.assert_array_equal(found.negative, rejected & (found.slope < 0))


def test_groups_of_like_ability_hold_everybody_once():
    table, ability = turned_items()
    ability[3] = np.nan
    n, r, theta = by_ability(Responses.from_wide(table), ability)
    known = np.flatnonzero(~np.isnan(ability))
    order = known[np.argsort(ability[known])]
    assert len(theta) == MOST_GROUPS
    place = np.arange(79) * MOST_GROUPS // 79
    for k in range(MOST_GROUPS):
        people = order[place == k]
        assert theta[k] == pytest.approx(ability[people].mean())
        np.testing.assert_array_equal(n[:, k], (~np.isnan(table[people])).sum(axis=0))
        np.testing.assert_array_equal(r[:, k], np.nansum(table[people], axis=0))


def test_probabilities_of_curves_far_out():
    """Where e^x is beyond the range of numbers, too."""
    features = np.array([[[0.0, 0.0]], [[1.0, -1.0]], [[2.0, -2.0]]])  # categories x one parameter x abilities
    has_category = np.array([[True, True, True], [True, True, False]])
    model = module.CurveModel(features, has_category, np.ones((2, 1), dtype=bool))
    near = model.probabilities(np.array([[0.5], [0.7]]))
    for item, value in enumerate((0.5, 0.7)):
        for q in range(2):
            e = [np.exp(value * features[k, 0, q]) * has_category[item, k] for k in range(3)]
            np.testing.assert_allclose(near[item, :, q], np.array(e) / sum(e))
    far = model.probabilities(np.array([[900.0], [900.0]]))
    np.testing.assert_allclose(far[0], [[0, 1], [0, 0], [1, 0]], atol=1e-300)
    np.testing.assert_allclose(far[1], [[0, 1], [1, 0], [0, 0]], atol=1e-300)
