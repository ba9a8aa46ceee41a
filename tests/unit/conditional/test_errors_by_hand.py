"""Standard errors: sandwiches, errors passed on by anchors, weak links and displacements against dense formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from spectral_irt import simulate
from spectral_irt.conditional.displacement import answers_given_score, displaced_as_a_whole, item_equations
from spectral_irt.conditional.errors import (
    Matrices,
    center_parts,
    free_inverse,
    location_covariance,
    parameter_covariance,
    roots_of,
    score_factors,
)
from spectral_irt.conditional.exact_likelihood import ExactLikelihood, conditional_probabilities
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.linear import Ridge, unidentified_directions
from spectral_irt.conditional.newton import Newton
from spectral_irt.data.block import Thresholds

LAYOUT = Thresholds(np.array([2, 1, 3]))


def random_matrix(n, seed, rank=20):
    root = np.random.default_rng(seed).normal(size=(n, rank))
    return root @ root.T


def test_scores_of_few_people_are_steadied_towards_their_group():
    """Ratios of squares to information, drawn to their mean over the group by how much they differ beyond chance."""
    told = np.array([3.0, 4.0, 5.0, 2.0, 6.0, 0.0, 3.0, 2.0])
    squares = np.array([1.0, 6.0, 4.0, 4.0, 5.0, 0.0, 2.0, 1.0])
    people = np.array([40.0, 60.0, 80.0, 20.0, 20.0, 0.0, 9.0, 1.0])
    group = np.array([0, 0, 0, 0, 1, 0, -1, 0])
    factor = np.ones(8)
    own = [0, 1, 2, 3]
    n = people[own]
    ratio = squares[own] / told[own] * n / (n - 1)
    mean = np.average(ratio, weights=n)
    beyond = max(np.average((ratio / mean - 1) ** 2 - 2 / n, weights=n), 0)
    assert beyond > 0.01
    share = beyond / (beyond + 2 / n)
    factor[own] = np.sqrt((share * ratio + (1 - share) * mean) / (squares[own] / told[own]))
    factor[4] = np.sqrt(20 / 19)  # alone in its group
    np.testing.assert_allclose(score_factors(told, squares, people, group), factor)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("robust", [False, True])
def test_covariance_of_the_parameters_of_a_design_with_a_prior(robust, learned):
    """(A'HA + P)^-1 (A'MA + pull) (A'HA + P)^-1, scores times their factors; a learned precision adds its own error."""
    data = simulate.rasch(300, 6, seed=2)
    rng = np.random.default_rng(1)
    design = sparse.csr_array(np.column_stack([np.eye(6)[:, :4], rng.normal(size=6)]))
    ridge = Ridge.of(np.array([0, 0, 0, 0, -1]), np.ones(5, dtype=bool), None if learned else 2.0)
    likelihood = ExactLikelihood(data.responses)
    none = unidentified_directions(design, np.zeros(6, dtype=np.int64), None)
    found = Newton(likelihood, design=design, open_directions=none, ridge=ridge).solve(np.zeros(5))
    if learned:  # as if there were few responses
        found = replace(found, ridge=replace(found.ridge, fade=np.ones(5)))
    A = design.toarray()
    factor = np.linspace(0.8, 1.2, 5)
    information = A.T @ likelihood.information(found.point.beta) @ A
    scores = np.zeros((300, 6))
    block, beta = data.responses.blocks[0], found.point.beta
    p = conditional_probabilities(block, beta)
    person = np.repeat(np.arange(300), block.counts)
    np.add.at(scores, (person, block.items), block.right() - p)
    bread = np.linalg.inv(information + found.ridge @ np.eye(5))
    if robust:
        meat = factor[:, None] * (A.T @ scores.T @ scores @ A) * factor + found.ridge.spread(np.eye(5))
        expected = bread @ meat @ bread
    else:
        expected = bread
    if learned:
        unsure = bread @ found.ridge.pulls_unsure(found.eta, found.information)
        expected = expected + unsure @ unsure.T
        assert np.abs(unsure).max() > 1e-3
    covariance = parameter_covariance(found, robust, information, factor if robust else None)
    np.testing.assert_allclose(covariance, expected, rtol=1e-5, atol=1e-7)


def test_anchors_pass_their_errors_on():
    """Free thresholds move by -H_ff^-1 H_fa with the anchors."""
    bread = random_matrix(6, 1)
    fixed = np.array([True, False, False, True, False, False])
    inverse = np.zeros((6, 6))
    inverse[np.ix_(~fixed, ~fixed)] = np.linalg.inv(bread[np.ix_(~fixed, ~fixed)])
    matrices = Matrices(bread, bread, inverse, False)
    errors = np.array([[0.2, 0.05], [0.05, 0.3]])
    follow = -np.linalg.inv(bread[np.ix_(~fixed, ~fixed)]) @ bread[np.ix_(~fixed, fixed)]
    expected = np.zeros((6, 6))
    expected[np.ix_(~fixed, ~fixed)] = follow @ errors @ follow.T
    np.testing.assert_allclose(matrices.from_anchors(fixed, errors), expected, atol=1e-12)


@pytest.mark.parametrize("single", [False, True])
def test_the_sandwich_of_matrices(single):
    bread, meat = random_matrix(5, 1), random_matrix(5, 2)
    inverse = np.linalg.inv(bread)
    found = Matrices(bread, meat, inverse, single).covariance()
    np.testing.assert_allclose(found, inverse @ meat @ inverse, rtol=1e-4 if single else 1e-9)
    np.testing.assert_allclose(Matrices(bread, meat, inverse, single).covariance(robust=False), inverse)


def test_directions_that_few_people_inform_on_have_the_spread_that_is_expected():
    """Two groups of thresholds, hardly linked: what scores lack along the weak direction is added, and only there."""
    n = 8
    side = np.where(np.arange(n) < 4, 1.0, -1.0)
    inside = np.kron(np.eye(2), 4 * np.eye(4) - 1) * 30
    weak = np.outer(side, side) * 0.2
    bread = inside + weak + 1e-6 * np.eye(n)
    expected = bread.copy()
    meat = inside * 1.3 + 0.25 * weak + 1e-6 * np.eye(n)  # a quarter of what is expected along the link
    layout = Thresholds.ones(n)
    inverse = np.linalg.pinv(bread, rcond=1e-12, hermitian=True)
    C = np.eye(n) - 1 / n
    matrices = Matrices(bread, meat, C @ inverse @ C, False)
    found = matrices.across_weak_links(layout, expected).covariance()
    between = side / 4
    alone = matrices.covariance()
    model = C @ inverse @ C
    assert between @ alone @ between == pytest.approx(0.25 * (between @ model @ between), rel=0.05)
    assert between @ found @ between == pytest.approx(between @ model @ between, rel=0.05)
    within = np.zeros(n)
    within[:2] = 1.0, -1.0
    assert within @ found @ within == pytest.approx(within @ alone @ within, rel=1e-3)
    strong = Matrices(inside + 100 * weak, meat, C @ np.linalg.pinv(inside + 100 * weak) @ C, False)
    assert strong.across_weak_links(layout, expected) is strong


def test_roots_of_blocks():
    blocks = np.stack([random_matrix(3, seed) for seed in range(4)])
    roots = roots_of(blocks)
    np.testing.assert_allclose(roots @ roots, blocks)
    np.testing.assert_allclose(roots, roots.transpose(0, 2, 1))


@pytest.mark.parametrize("parts", [None, np.array([0, 1, 0])])
def test_locations_have_mean_zero_within_parts_and_their_covariance(parts):
    beta, covariance = np.linspace(-1, 2, 6), random_matrix(6, 3)
    part = np.zeros(3, dtype=np.int64) if parts is None else parts
    C = np.eye(6)
    for i in range(6):
        for j in range(6):
            if part[LAYOUT.item[i]] == part[LAYOUT.item[j]]:
                items = np.sum(part == part[LAYOUT.item[i]])
                C[i, j] -= 1 / (items * LAYOUT.max_score[LAYOUT.item[j]])
    found, spread = center_parts(LAYOUT, beta, covariance, parts)
    np.testing.assert_allclose(found, C @ beta)
    np.testing.assert_allclose(spread, C @ covariance @ C.T, atol=1e-12)
    mean = np.array([[(LAYOUT.item[j] == i) / LAYOUT.max_score[i] for j in range(6)] for i in range(3)])
    np.testing.assert_allclose(location_covariance(LAYOUT, covariance), mean @ covariance @ mean.T)
    assert center_parts(LAYOUT, beta, None, parts)[1] is None


def test_the_inverse_on_free_thresholds_is_zero_for_fixed_ones():
    responses = simulate.partial_credit(150, 4, categories=3, seed=1).responses
    layout = responses.thresholds
    fixed = layout.item == 1
    start = np.zeros(layout.n_entries)
    likelihood = ExactLikelihood(responses)
    held = Newton(likelihood, fixed=fixed).solve(start)
    bread = likelihood.information(held.point.beta)
    inverse = free_inverse(held, bread)
    np.testing.assert_allclose(inverse[np.ix_(~fixed, ~fixed)], np.linalg.inv(bread[np.ix_(~fixed, ~fixed)]), rtol=1e-6)
    assert not inverse[fixed].any()
    free = Newton(likelihood).solve(start)
    np.testing.assert_allclose(free_inverse(free, bread), np.linalg.pinv(bread, rcond=1e-9, hermitian=True), atol=1e-6)


@pytest.mark.parametrize("categories", [2, 4])
def test_a_fixed_item_moves_as_a_whole_to_where_its_own_equation_is_zero(categories):
    """Odds of category c times exp(-c delta), given the score: expected and observed sums agree; errors by squares."""
    data = simulate.partial_credit(250, 5, categories=categories, seed=5)
    layout, beta = data.responses.thresholds, data.thresholds.copy()
    fixed_items = np.array([True, False, True, False, False])
    beta[layout.item == 0] += 0.4
    likelihood = Likelihood(data.responses, beta)
    found = Newton(likelihood, fixed=fixed_items[layout.item]).solve(beta)
    found = replace(found, point=likelihood.at(found.point.beta))
    result = displaced_as_a_whole(found, None, fixed_items)
    answers = [answers_given_score(rows, found.point.tables) for rows in found.point.rows_with_scores.parts]
    for item in (0, 2):

        def equation(delta, item=item):
            lacking, steep, noise = 0.0, 0.0, 0.0
            for part in answers:
                of_item = part.items == item
                k = np.arange(len(part.p))[:, None]
                odds = part.p[:, of_item] * np.exp(-k * delta)
                odds = odds / odds.sum(axis=0)
                mean = (k * odds).sum(axis=0)
                x = part.category[of_item]
                w = np.broadcast_to(part.weight, part.items.shape)[of_item]
                lacking += np.sum(w * (mean - x))
                steep += np.sum(w * ((k**2 * odds).sum(axis=0) - mean**2))
                noise += np.sum((w * (mean - x)) ** 2)
            return lacking, steep, noise

        delta = brentq(lambda d, equation=equation: equation(d)[0], -5, 5)
        _, steep, noise = equation(delta)
        assert result.displacement[item] == pytest.approx(delta, abs=1e-4)
        assert result.se[item] == pytest.approx(np.sqrt(noise) / steep, rel=1e-4)
        everything = item_equations(answers[0], np.full(5, delta)) if len(answers) == 1 else None
        if everything is not None:
            np.testing.assert_allclose([one[item] for one in everything], equation(delta), atol=1e-6)
    assert np.isnan(result.displacement[~fixed_items]).all()
