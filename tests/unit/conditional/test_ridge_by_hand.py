"""The prior on the parameters of a design as dense matrices, and the errors of many parameters from few solves."""

from types import SimpleNamespace

import numpy as np
import pytest

from spectral_irt.chain.prior import prior_precision, share_of_prior
from spectral_irt.conditional import errors
from spectral_irt.conditional.linear import Ridge

GROUP = np.array([0, 0, 0, -1, 1, 1, 1, 1])
WEIGHT = np.array([0.5, 0.3, 0.2, 0.0, 0.1, 0.2, 0.3, 0.4])
FADE = np.array([1.0, 0.5, 0.0, 0.7, 1.0, 0.25, 0.0, 0.6])
ALPHA = np.array([2.0, 0.8])
TIED = np.array([True, True, True, True, False, True, True, True])


def a_ridge(**change):
    fields = {"alpha": ALPHA, "of_all": ALPHA, "fade": FADE, "weight": WEIGHT, **change}
    return Ridge(GROUP, TIED, **fields)


def deviations():
    """Takes the weighted mean of its group away from each parameter; nothing for a parameter of no group."""
    matrix = np.eye(8)
    for k in range(8):
        for j in range(8):
            if GROUP[k] == GROUP[j] >= 0:
                matrix[k, j] -= WEIGHT[j]
    return matrix


PRECISION = np.append(ALPHA, 0.0)[GROUP] * FADE


def test_the_penalty_and_its_spread_are_quadratic_forms():
    ridge = a_ridge()
    np.testing.assert_allclose(ridge.precision, PRECISION)
    c = deviations()
    np.testing.assert_allclose(ridge @ np.eye(8), c.T @ np.diag(PRECISION) @ c, atol=1e-14)
    np.testing.assert_allclose(ridge.spread(np.eye(8)), c.T @ np.diag(PRECISION * FADE) @ c, atol=1e-14)
    noise = np.random.default_rng(3).standard_normal((8, 5))
    drawn = ridge.draw(np.random.default_rng(3), 5)
    np.testing.assert_allclose(drawn, c.T @ np.diag(np.sqrt(PRECISION * FADE)) @ noise, atol=1e-14)


def test_a_renewed_prior_by_groups():
    rng = np.random.default_rng(1)
    eta = rng.normal(0, 1, 8)
    given_others = rng.uniform(1, 8, 8)
    unknown = given_others * rng.uniform(0.6, 1, 8)
    ridge = a_ridge()
    new = ridge.with_new_precision(eta, given_others, unknown)
    for g in (0, 1):
        members = np.flatnonzero(g == GROUP)
        share = given_others[members] / (given_others[members] + ALPHA[g])
        weight = share / share.sum()
        np.testing.assert_allclose(new.weight[members], weight)
        deviation = eta[members] - weight @ eta[members]
        pulled = deviation * (unknown[members] + PRECISION[members])
        of_all = prior_precision(pulled / (unknown[members] + ALPHA[g]), unknown[members], ALPHA[g])
        fade = share_of_prior(given_others[members], TIED[members], of_all)
        assert new.of_all[g] == pytest.approx(of_all)
        np.testing.assert_allclose(new.fade[members], fade)
        alpha = prior_precision(pulled / (unknown[members] + ALPHA[g]), unknown[members], ALPHA[g], fade)
        assert new.alpha[g] == pytest.approx(alpha)
    as_asked = a_ridge(estimated=False).with_new_precision(eta, given_others, unknown)
    np.testing.assert_array_equal(as_asked.alpha, ALPHA)
    np.testing.assert_array_equal(as_asked.fade, FADE)
    np.testing.assert_allclose(as_asked.weight, new.weight)


def test_how_far_a_pull_may_be_off_by_its_learned_precision():
    """The derivative of the pull by log alpha, times a standard deviation that two imaginary raters keep finite."""
    rng = np.random.default_rng(6)
    eta = rng.normal(0, 1.5, 8)
    unknown = rng.uniform(1, 6, 8)
    found = a_ridge().pulls_unsure(eta, unknown)
    for g in (0, 1):
        step = np.exp(1e-6 * (np.arange(2) == g))
        derivative = (a_ridge(alpha=ALPHA * step) @ eta - a_ridge() @ eta) / 1e-6
        known = 2 * ALPHA[g]
        for k in np.flatnonzero(g == GROUP):
            known += FADE[k] * (unknown[k] / (unknown[k] + ALPHA[g])) ** 2
        np.testing.assert_allclose(found[:, g], derivative * np.sqrt(2 / known), rtol=1e-5, atol=1e-9)
    assert not a_ridge(estimated=False).pulls_unsure(eta, unknown).any()


def test_groups_that_tell_nothing_have_a_plain_mean_and_a_single_parameter_no_prior():
    ridge = a_ridge().with_new_precision(np.zeros(8), np.zeros(8), np.ones(8))
    np.testing.assert_allclose(ridge.weight[[0, 1, 2]], 1 / 3)
    one = Ridge.of(np.array([0, 1, 1, -1]), np.ones(4, dtype=bool))
    assert one.alpha.tolist() == [0.0, 1.0]
    assert one.precision.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert one.estimated
    given = Ridge.of(np.array([0, 0, -1]), np.ones(3, dtype=bool), 2.5)
    assert (given.alpha.tolist(), given.estimated) == ([2.5], False)


def test_the_distance_of_two_priors():
    ridge = a_ridge()
    assert ridge.distance(ridge) == 0
    assert ridge.distance(a_ridge(alpha=ALPHA * [1.0, 1.3])) == pytest.approx(np.log(1.3))
    assert ridge.distance(a_ridge(fade=FADE - 0.2 * (np.arange(8) == 1))) == pytest.approx(0.2)
    moved = WEIGHT + 0.03 * (np.arange(8) == 0) - 0.02 * (np.arange(8) == 1)
    assert ridge.distance(a_ridge(weight=moved)) == pytest.approx(0.05)  # sums of what means have moved
    without = a_ridge(alpha=np.array([2.0, 0.0]))
    assert without.distance(a_ridge(alpha=np.array([2.0, 7.0]))) == 0


@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_variance_of_many_parameters_is_that_of_the_diagonal_and_what_solves_differ_by(ridge, fixed):
    """Var_i = M_i / H_i^2 + mean over columns of (H^-1 b)_i^2 - (b_i / H_i)^2, M with what the prior adds."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(8, 12))
    h = root @ root.T + 10 * np.eye(8)
    signs = rng.normal(size=(8, errors.PROBES))
    held = np.arange(8) == 3
    eta = rng.normal(size=8)
    unknown = rng.uniform(1, 4, 8)
    made = SimpleNamespace(
        eta=eta,
        information=unknown,
        design="a design",
        diagonal=np.diag(h).copy(),
        point=SimpleNamespace(signed_scores=lambda seed, columns, design: signs),
        ridge=a_ridge() if ridge else None,
        fixed=held if fixed else None,
        solve=lambda b, tol: np.linalg.solve(h, b),
    )
    squares = rng.uniform(5, 20, 8)
    factor = rng.uniform(0.9, 1.2, 8)
    contrasts = np.eye(8) - 1 / 8
    found = errors.parameter_variance(made, lambda x: contrasts @ x, squares, factor, seed=4)
    b = factor[:, None] * signs
    meat = factor**2 * squares
    if ridge:
        noise = np.random.default_rng(4)
        unsure = a_ridge().pulls_unsure(eta, unknown)
        b = b + a_ridge().draw(noise, errors.PROBES) + unsure @ noise.standard_normal((2, errors.PROBES))
        meat = meat + PRECISION * FADE + unsure[:, 0] ** 2 + unsure[:, 1] ** 2
    if fixed:
        b[3] = 0
    variance = meat / np.diag(h) ** 2
    more = np.mean((contrasts @ np.linalg.solve(h, b)) ** 2 - (b / np.diag(h)[:, None]) ** 2, axis=1)
    expected = np.maximum(variance + more, errors.LEAST_VARIANCE * variance)
    np.testing.assert_allclose(found, expected)
    assert (expected > errors.LEAST_VARIANCE * variance).any()


def test_scores_of_parameters_that_few_people_met_are_drawn_together():
    """Ratios of squared scores to the information, without bias, towards their mean by how little they differ."""
    information = np.array([4.0, 5.0, 3.0, 8.0, 2.0, 0.0, 6.0])
    squares = np.array([5.0, 3.0, 6.0, 9.0, 2.5, 1.0, 4.0])
    people = np.array([5.0, 8.0, 6.0, 12.0, 1.0, 9.0, 10.0])
    group = np.array([0, 0, 0, 1, 0, 0, -1])
    found = errors.score_factors(information, squares, people, group)
    ratio = [(squares[k] / information[k]) * people[k] / (people[k] - 1) for k in range(3)]
    n = people[:3]
    mean = np.sum(ratio * n) / n.sum()
    beyond = max(sum(((r / mean - 1) ** 2 - 2 / k) * k for r, k in zip(ratio, n, strict=True)) / n.sum(), 0)
    for k in range(3):
        share = beyond / (beyond + 2 / n[k])
        target = share * ratio[k] + (1 - share) * mean
        assert found[k] == pytest.approx(np.sqrt(target / (squares[k] / information[k])))
    assert found[3] == pytest.approx(np.sqrt(12 / 11))  # by itself: without bias
    assert found[4:].tolist() == [1.0, 1.0, 1.0]
