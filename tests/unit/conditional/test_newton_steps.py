"""How Newton's steps are limited, leveled, judged and solved for: against plain loops and dense matrices."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from spectral_irt import SpectralRasch, simulate
from spectral_irt.conditional import newton as newton_room
from spectral_irt.conditional import table_sums
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.linear import Ridge
from spectral_irt.conditional.newton import Aim, Newton, _Steps
from spectral_irt.conditional.penalized import PenalizedPoint, centered_within, parameters
from spectral_irt.data.block import Thresholds

LAYOUT = Thresholds(np.array([2, 1, 2]))
NOWHERE = SimpleNamespace(layout=LAYOUT)


def matrix_at(point=NOWHERE, n=5, design=None, fixed=None, floating=None, ridge=None, open_directions=None):
    floating = np.zeros(5, dtype=np.int64) if floating is None else floating
    eta = np.zeros(n)
    return PenalizedPoint(np.zeros(5), eta, point, design, None, fixed, floating, open_directions, ridge)


@pytest.mark.parametrize("floating", [[0, 0, 0, 0, 0], [0, 1, -1, 1, 0]])
def test_each_floating_part_has_the_mean_zero(floating):
    floating = np.array(floating)
    v = np.array([[1.0, 2], [4, -1], [3, 3], [0.5, 0], [2, 2.5]])
    expected = v.copy()
    for part in set(floating) - {-1}:
        expected[floating == part] -= v[floating == part].mean(axis=0)
    np.testing.assert_allclose(centered_within(v, floating), expected)
    np.testing.assert_allclose(centered_within(v[:, 0], floating), expected[:, 0])


def test_a_step_moves_no_threshold_by_more_than_two_logits():
    current = matrix_at()
    short = np.array([2.0, -1.5, 0.3, 0.2, -1.0])
    assert current.limit_step(short) is short  # as it is, whatever its mean
    long = np.array([5.0, -1.5, 0.3, 0.2, -4.0])
    clipped = np.array([2.0, -1.5, 0.3, 0.2, -2.0])
    np.testing.assert_allclose(current.limit_step(long), clipped - clipped.mean())


def test_a_parameter_is_limited_by_the_threshold_that_it_moves_most():
    design = sparse.csr_array(np.array([[1.0, 0, 0], [1, 10, 0], [0, -5, 0], [0, 0, 0.5], [0, 0, 0.1]]))
    direction = np.array([[0.6], [0.0], [0.8]])
    current = matrix_at(n=3, design=design, open_directions=direction)
    step = np.array([0.2, 0.15, 1.0])
    assert current.largest_move(step) == pytest.approx(1.7)
    assert current.limit_step(step) is step
    step = np.array([-3.0, 0.5, 6.0])
    bounded = np.array([-2.0, 0.2, 4.0])  # 2 / 1, 2 / 10 and 2 / 0.5
    np.testing.assert_allclose(current.limit_step(step), bounded - direction[:, 0] * (direction[:, 0] @ bounded))


def test_the_inverse_of_a_design_has_nothing_along_open_directions():
    root = np.random.default_rng(3).normal(size=(4, 9))
    direction = np.array([1.0, 0.0, -1.0, 1.0]) / np.sqrt(3)
    root -= np.outer(direction, direction @ root)
    current = matrix_at(n=4, design=sparse.eye_array(4), open_directions=direction[:, None])
    expected = np.linalg.pinv(root @ root.T, rcond=1e-9, hermitian=True)
    np.testing.assert_allclose(current.dense_inverse(root @ root.T), expected, atol=1e-9)


@pytest.mark.parametrize("fixed", [None, np.array([False, True, False, False])])
def test_the_inverse_of_a_design_has_the_precision_of_a_prior_and_nothing_for_fixed_parameters(fixed):
    root = np.random.default_rng(3).normal(size=(4, 2))  # of rank 2: the prior makes it regular
    information = root @ root.T + np.diag([1.0, 0.0, 1.0, 0.0])
    ridge = Ridge.of(np.array([-1, 0, -1, 0]), np.zeros(4, dtype=bool), 3.0)
    none = np.zeros((4, 0))
    current = matrix_at(n=4, design=sparse.eye_array(4), fixed=fixed, ridge=ridge, open_directions=none)
    free = np.arange(4) if fixed is None else np.flatnonzero(~fixed)
    expected = np.zeros((4, 4))
    whole = information + ridge @ np.eye(4)
    expected[np.ix_(free, free)] = np.linalg.inv(whole[np.ix_(free, free)])
    np.testing.assert_allclose(current.dense_inverse(information), expected, atol=1e-9)


def steps_of(fine=True, noise=1.0, prior=None):
    likelihood = SimpleNamespace(fine=fine, noise=noise, layout=LAYOUT)
    return _Steps(Newton(likelihood, prior=prior), np.zeros(5))


def aim_at(loglik, gain, step=None, prior=None, diagonal=None):
    current = matrix_at(SimpleNamespace(layout=LAYOUT, loglik=loglik, tables=None))
    object.__setattr__(current, "prior", prior)
    if diagonal is not None:
        vars(current)["diagonal"] = diagonal
    return Aim(current, np.zeros(5) if step is None else step, gain)


def test_a_step_went_too_far_where_the_likelihood_fell():
    steps = steps_of()
    assert not steps.went_too_far(aim_at(-200.0, 1.0))  # nothing was accepted so far
    steps.accepted = aim_at(-100.0, 1.0)
    steps.step = np.full(5, 0.1)
    assert steps.went_too_far(aim_at(-100.001, 0.1))
    assert not steps.went_too_far(aim_at(-99.9, 50.0))
    assert not steps.went_too_far(aim_at(-100 * (1 + 0.5e-12), 0.1))  # rounding


def test_a_step_went_too_far_where_more_is_to_be_gained_than_before_it():
    """Under a prior, or where the likelihood is not known: twice as much, after a step that is more than nothing."""
    steps = steps_of()
    steps.accepted = aim_at(np.nan, 1.0)
    steps.step = np.full(5, 0.1)
    assert steps.went_too_far(aim_at(np.nan, 2.1))
    assert not steps.went_too_far(aim_at(np.nan, 1.9))
    steps.step = np.full(5, 0.9e-3)
    assert not steps.went_too_far(aim_at(np.nan, 2.1))
    steps.step = np.full(5, 0.1)
    steps.accepted = aim_at(-100.0, 1.0)
    prior = SimpleNamespace()
    assert not steps.went_too_far(aim_at(-101.0, 1.9, prior=prior))
    assert steps.prior is prior
    assert steps.went_too_far(aim_at(-99.0, 2.1, prior=prior))


def test_steps_are_halved_back_and_measured_in_standard_errors():
    steps = steps_of()
    step = np.array([0.4, -0.4, 0.1, 0.0, -0.1])
    diagonal = np.array([4.0, 1.0, 100.0, 1.0, 9.0])
    steps.evaluations = 1
    steps.take(aim_at(np.nan, 1.0, step, diagonal=diagonal))
    np.testing.assert_allclose(steps.eta, step)
    assert steps.move == pytest.approx(1.0)  # of the third: 0.1 times 10
    assert steps.next_move == pytest.approx(0.08)
    steps.turn_back()
    np.testing.assert_allclose(steps.eta, step / 2)
    np.testing.assert_allclose(steps.step, step / 2)
    steps.turn_back()
    np.testing.assert_allclose(steps.eta, step / 4)
    steps.take(aim_at(np.nan, 1.0, step / 2, diagonal=diagonal))
    assert steps.move == pytest.approx(0.5)
    assert steps.next_move == pytest.approx(0.25)  # half of the last one, as this was of the one before
    steps.take(aim_at(np.nan, 1.0, step, diagonal=diagonal))
    assert steps.next_move == pytest.approx(1.0)  # no more than itself


@pytest.mark.parametrize(
    ("fine", "prior", "close"), [(True, None, 1e-4), (False, None, 0.04), (True, SimpleNamespace(estimated=True), 0.04)]
)
def test_steps_end_closer_where_likelihoods_are_fine_and_nothing_is_learned(fine, prior, close):
    assert steps_of(fine, prior=prior).close == close


def test_parameters_are_the_least_squares_ones():
    design = sparse.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]))
    beta = np.array([0.3, -0.2, 1.0, 0.5, 0.9])
    np.testing.assert_allclose(parameters(design, beta), np.linalg.lstsq(design.toarray(), beta, rcond=None)[0])


def test_fixed_and_floating_parts_end_at_the_maximum_of_the_likelihood():
    """The derivative is zero along free directions; fixed thresholds stay, and a part beside one does not float."""
    responses = simulate.partial_credit(200, 5, categories=3, seed=4).responses
    layout = responses.thresholds
    likelihood = ExactLikelihood(responses)
    start = np.zeros(layout.n_entries)
    free = Newton(likelihood).solve(start + 3.0)
    assert free.beta.mean() == pytest.approx(0, abs=1e-9)
    assert np.abs(likelihood.at(free.beta).gradient).max() < 1e-3
    fixed = layout.item == 2
    start[fixed] = [0.4, 1.0]
    held = Newton(likelihood, fixed=fixed).solve(start)
    np.testing.assert_array_equal(held.beta[fixed], [0.4, 1.0])
    assert (held.floating == -1).all()
    gradient = likelihood.at(held.beta).gradient
    assert np.abs(gradient[~fixed]).max() < 1e-2
    assert np.abs(gradient[fixed]).max() > 0.1
    assert held.pull()[fixed].tolist() == [0, 0]
    assert not (held @ np.ones(layout.n_entries))[fixed].any()
    blocks = held.inverse
    information = likelihood.at(held.point.beta).own
    for item in range(5):
        expected = np.zeros((2, 2)) if item == 2 else np.linalg.inv(information[item])
        np.testing.assert_allclose(blocks[item], expected, rtol=1e-6)


def test_of_many_responses_the_prior_starts_with_the_precision_that_it_ends_with(monkeypatch):
    """A precision that is off is renewed, which costs passes over the responses: here it never is, and one linear
    system is solved in each evaluation."""
    changes = []
    renewed = newton_room._renewed_prior

    def watched(*given):
        renewal = renewed(*given)
        changes.append(renewal.change)
        return renewal

    monkeypatch.setattr(newton_room, "_renewed_prior", watched)
    data = simulate.rasch(3_000, 1_000, design="popularity", n_responses=120_000, seed=3).responses
    fit = SpectralRasch().fit(data)
    assert fit.regularization_.items > 0
    assert changes
    assert max(changes) < newton_room.STEADY_PRIOR


@pytest.mark.parametrize(
    ("evaluations", "fine", "with_tables", "constrained", "moves"),
    [
        (1, False, True, "", True),
        (2, False, True, "", False),
        (1, True, True, "", False),
        (1, False, False, "", False),
        (1, False, True, "fixed", False),
        (1, False, True, "design", False),
    ],
)
def test_far_items_move_by_themselves_after_the_first_step_of_many(
    monkeypatch, evaluations, fine, with_tables, constrained, moves
):
    far = np.array([3.0, 1.0, 0.0, -1.0, 2.0])
    asked = []

    def far_items(point, eta, step, prior):
        asked.append((eta, step))
        return far

    monkeypatch.setattr(table_sums, "far_items", far_items)
    likelihood = SimpleNamespace(fine=fine, noise=1.0, layout=LAYOUT)
    fixed = np.array([True, False, False, False, False]) if constrained == "fixed" else None
    design = sparse.eye_array(5, format="csr") if constrained == "design" else None
    steps = _Steps(Newton(likelihood, fixed=fixed, design=design, open_directions=np.zeros((5, 0))), np.zeros(5))
    steps.evaluations = evaluations
    point = SimpleNamespace(layout=LAYOUT, loglik=-10.0, tables=object() if with_tables else None)
    current = matrix_at(point, design=design, fixed=fixed)
    vars(current)["diagonal"] = np.ones(5)
    step = np.array([0.1, -0.1, 0.3, -0.3, 0.0])
    steps.take(Aim(current, step, 1.0))
    assert len(asked) == moves
    np.testing.assert_allclose(steps.eta, far - far.mean() if moves else step)
    assert steps.move == pytest.approx(0.3)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_evaluations_than_asked_for(most):
    responses = simulate.rasch(80, 5, seed=1).responses
    problem = Newton(ExactLikelihood(responses))
    start = np.array([2.0, -2, 2, -2, 0])
    assert problem.solve(start, max_evaluations=most).evaluations == most
    assert problem.solve_to_gradient(start, 0.0, max_evaluations=most).evaluations == most
    near = problem.solve_to_gradient(start, 1e-6)
    assert near.largest_derivative() <= 1e-6
    assert problem.solve_to_gradient(near.eta, 1e-5).evaluations == 1
