"""The chain with known items: against the equations written out, and against the free chain."""

from __future__ import annotations

import numpy as np
import pytest

from dense import dense_pairs
from spectral_irt import SpectralRasch, simulate
from spectral_irt.chain.anchored import AnchoredChain, FixedAndPrior, solve_anchored
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.stationary import stationary
from spectral_irt.chain.weights import ABILITY, PERSONS
from spectral_irt.data import Responses
from spectral_irt.data.design import tied_to


def test_the_ground_holds_the_anchored_items() -> None:
    """pi_i d_i = sum_j pi_j Y_ji for the free items, with pi of the others as given; solved densely."""
    data = simulate.rasch(300, 12, seed=1)
    Y, _ = dense_pairs(data.responses.to_dense(), lambda person, i, j: 1 / 12)
    fixed = np.arange(12) < 5
    pi = np.exp(np.where(fixed, data.difficulty, 0))
    free = ~fixed
    matrix = np.diag(Y.sum(axis=1)) - Y.T
    expected = np.linalg.solve(matrix[np.ix_(free, free)], -matrix[np.ix_(free, fixed)] @ pi[fixed])

    chain = ItemChain.under(data.responses, PERSONS)
    known = FixedAndPrior(fixed, np.where(fixed, data.difficulty, 0.0), np.zeros(12))
    found = stationary(AnchoredChain(chain, np.zeros(12), known))
    assert found.residual < 1e-12
    np.testing.assert_allclose(found.pi[:-1] / found.pi[-1], expected, rtol=1e-10)


@pytest.mark.parametrize("m", [9, 50])
def test_one_vector_and_many_columns_agree(m: int) -> None:
    data = simulate.rasch(200, m, seed=2)
    chain = ItemChain.under(data.responses, PERSONS)
    fixed = np.arange(m) < 3
    grounded = AnchoredChain(chain, np.zeros(m), FixedAndPrior(fixed, np.where(fixed, data.difficulty, 0), 1.0 - fixed))
    columns = np.random.default_rng(0).random((m - 2, 4))
    many = grounded.inflow(columns)
    for k in range(4):
        np.testing.assert_allclose(many[:, k], grounded.inflow(columns[:, k]))
    np.testing.assert_allclose(grounded.inflow(np.eye(m - 2)).sum(axis=0), grounded.rates)  # what leaves arrives


@pytest.mark.parametrize("design", ["complete", "sampled"])
def test_anchors_at_a_free_fit_reproduce_it(design: str) -> None:
    options = {"p": 0.4} if design == "sampled" else {}
    data = simulate.rasch(1500, 40, design=design, seed=3, **options)
    fit = SpectralRasch(refine=False, regularization=0).fit(data.responses)
    fixed = np.random.default_rng(1).random(40) < 0.3
    known = FixedAndPrior(fixed, fit.difficulty_ + 2, np.zeros(40))
    solved = solve_anchored(data.responses, np.zeros(40), known)
    # The free fit stops its rounds when a twentieth of a standard error is left at most.
    assert np.max(np.abs(solved.beta - 2 - fit.difficulty_) / fit.se_) < 0.05
    assert np.array_equal(solved.beta[fixed], known.mean[fixed])


def test_a_prior_is_data_at_its_mean() -> None:
    """With a precision far above the information nothing moves; with one far below the prior does not matter."""
    data = simulate.rasch(800, 15, seed=4)
    fit = SpectralRasch(refine=False, regularization=0).fit(data.responses)
    mean = np.linspace(-1, 1, 15)
    stiff = solve_anchored(data.responses, mean, FixedAndPrior(np.zeros(15, dtype=bool), mean, np.full(15, 1e8)))
    np.testing.assert_allclose(stiff.beta, mean, atol=1e-4)
    weak = solve_anchored(data.responses, mean, FixedAndPrior(np.zeros(15, dtype=bool), mean, np.full(15, 1e-6)))
    np.testing.assert_allclose(weak.beta - weak.beta.mean(), fit.difficulty_, atol=0.02 * fit.se_.min())


def test_prior_pulls_as_a_normal_one() -> None:
    """At the solution the score of every item equals precision times distance from the mean."""
    data = simulate.rasch(300, 10, seed=5)
    precision = np.linspace(1, 50, 10)
    mean = np.full(10, 0.5)
    solved = solve_anchored(data.responses, mean, FixedAndPrior(np.zeros(10, dtype=bool), mean, precision))
    pi = np.exp(solved.beta)
    chain = ItemChain.under(data.responses, ABILITY, solved.beta)
    score = chain.inflow(pi) - pi * chain.rates
    np.testing.assert_allclose(score, precision * (solved.beta - mean), atol=0.02)


def test_what_the_anchors_reach() -> None:
    nan = np.nan
    table = [[1, 0, nan, nan], [0, 1, nan, nan], [nan, nan, 1, 0], [nan, nan, 0, 1], [1, nan, 0, nan]]
    responses = Responses.from_wide(table)
    assert tied_to(responses, np.array([True, False, False, False])).tolist() == [True, True, False, False]
    both = Responses.from_wide([*table, [0, nan, 1, nan]])
    assert tied_to(both, np.array([True, False, False, False])).all()
    nobody = both.take_persons([])
    assert tied_to(nobody, np.array([True, False, False, False])).tolist() == [True, False, False, False]
