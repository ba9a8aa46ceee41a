"""What a bank keeps of answers, and what follows from it: matrices and blocks against dense formulas."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.bank import evidence
from spectral_irt.bank.evidence import (
    CERTAIN,
    Posterior,
    Precisions,
    Quadratic,
    SharedInformation,
    blocks_of,
    centered_on_parts,
    compare_with_others,
    diagonal_of,
    own_information,
)
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data.block import Thresholds

RNG = np.random.default_rng(3)
LAYOUT = Thresholds(np.array([2, 1, 3, 2]))
BETA = np.array([-0.8, 0.2, 0.5, -1.0, 0.1, 0.9, -0.2, 0.6])


def centering(layout):
    """Takes the mean of the locations away, every item counting alike."""
    weight = 1 / (layout.max_score[layout.item] * layout.n_items)
    return np.eye(len(weight)) - weight


def some_information(layout, seed=0):
    """A symmetric matrix whose rows add to zero, as those of the conditional likelihood."""
    rng = np.random.default_rng(seed)
    n = layout.n_entries
    root = rng.normal(size=(n, 3 * n))
    root -= root.mean(axis=0)
    return root @ root.T


def quadratic(layout, beta, blocks=False):
    matrix = some_information(layout)
    rng = np.random.default_rng(1)
    kept = blocks_of(matrix, layout) if blocks else matrix
    squares = np.diag(matrix) * rng.uniform(0.5, 1.5, len(beta))
    return Quadratic(beta, kept, rng.normal(size=len(beta)), rng.normal(size=layout.n_items), squares)


def posterior(layout, beta, kept, precisions=(0.0, 0.0), answers=None, fixed=None, floating=None, fixed_prior=True):
    n = layout.n_entries
    return Posterior(
        layout,
        kept,
        answers,
        beta,
        Precisions(*precisions),
        tied=np.ones(n, dtype=bool),
        fixed=np.zeros(n, dtype=bool) if fixed is None else fixed,
        floating=np.zeros(n, dtype=np.int64) if floating is None else floating,
        fixed_prior=fixed_prior,
    )


def answers_at(layout, beta, seed=2):
    thresholds = np.split(beta, layout.first[1:])
    responses = si.simulate.partial_credit(120, thresholds=thresholds, seed=seed).responses
    return responses, Likelihood(responses, beta).at(beta)


def test_blocks_and_diagonals_are_those_of_the_matrix():
    matrix = some_information(LAYOUT)
    blocks = blocks_of(matrix, LAYOUT)
    for item, (first, most) in enumerate(zip(LAYOUT.first, LAYOUT.max_score, strict=True)):
        own = slice(first, first + most)
        np.testing.assert_array_equal(blocks[item, :most, :most], matrix[own, own])
        assert not blocks[item, most:].any()
        assert not blocks[item, :, most:].any()
    np.testing.assert_array_equal(diagonal_of(matrix, LAYOUT), np.diag(matrix))
    np.testing.assert_array_equal(diagonal_of(blocks, LAYOUT), np.diag(matrix))
    assert blocks_of(blocks, LAYOUT) is blocks


@pytest.mark.parametrize("blocks", [False, True], ids=["matrix", "blocks"])
def test_items_are_compared_by_the_sums_over_their_thresholds(blocks):
    kept = quadratic(LAYOUT, BETA, blocks)
    matrix = some_information(LAYOUT)
    sums = np.array([[matrix[np.ix_(LAYOUT.item == i, LAYOUT.item == j)].sum() for j in range(4)] for i in range(4)])
    np.testing.assert_allclose(kept.between_items(LAYOUT), np.diag(sums) if blocks else sums, atol=1e-9)
    v = np.linspace(-1, 1, 8)
    same = LAYOUT.item[:, None] == LAYOUT.item
    np.testing.assert_allclose(kept.times(v, LAYOUT), np.where(same, matrix, 0.0) @ v if blocks else matrix @ v)
    responses, point = answers_at(LAYOUT, BETA)
    new = ExactLikelihood(responses).information(BETA)
    N = np.array([[new[np.ix_(LAYOUT.item == i, LAYOUT.item == j)].sum() for j in range(4)] for i in range(4)])
    u = np.array([0.3, -1.0, 0.4, 1.0])
    np.testing.assert_allclose(compare_with_others(point, u), N @ u, rtol=0.05, atol=0.3)  # the matched information
    np.testing.assert_allclose(own_information(point), np.diag(N), rtol=0.02)
    met = SharedInformation(kept.between_items(LAYOUT), point)
    old = np.diag(sums) if blocks else sums
    expected = (old * u if blocks else old @ u) + compare_with_others(point, u)
    np.testing.assert_allclose(met.deviation(u), expected)
    np.testing.assert_allclose(met.self_weight, 1 - np.diag(sums) - own_information(point))
    assert not met.mean_squares(u).any()


@pytest.mark.parametrize("blocks", [False, True], ids=["matrix", "blocks"])
@pytest.mark.parametrize("with_answers", [False, True])
def test_the_gradient_is_that_of_a_parabola_and_of_the_answers(blocks, with_answers):
    kept = quadratic(LAYOUT, BETA, blocks)
    there = BETA + np.linspace(-0.1, 0.2, 8)
    point = answers_at(LAYOUT, there)[1] if with_answers else None
    here = posterior(LAYOUT, there, kept, answers=point)
    move = there - BETA
    expected = kept.gradient - kept.times(move, LAYOUT)
    if with_answers:
        expected = expected + point.gradient
    np.testing.assert_allclose(here.gradient(), expected)
    np.testing.assert_allclose(
        here.information, diagonal_of(kept.information, LAYOUT) + (point.information if point else 0)
    )
    step = np.linspace(0.05, -0.04, 8)
    after = here.after(step)
    np.testing.assert_array_equal(after.beta, there + step)
    told = kept.times(step, LAYOUT) + (point @ step if point else 0)
    np.testing.assert_allclose(after.gradient, expected - told)
    if not with_answers:
        np.testing.assert_array_equal(after.information, kept.information)
        np.testing.assert_array_equal(after.squares, kept.squares)


def test_answers_are_added_to_a_matrix_with_the_squares_of_their_scores():
    kept = quadratic(LAYOUT, BETA)
    responses, point = answers_at(LAYOUT, BETA)
    after = posterior(LAYOUT, BETA, kept, answers=point).after(np.zeros(8))
    exact = ExactLikelihood(responses)
    np.testing.assert_allclose(after.information - kept.information, exact.information(BETA), rtol=0.05, atol=0.5)
    squares = np.diag(exact.at(BETA).score_gram())
    np.testing.assert_allclose(after.squares - kept.squares, squares, rtol=1e-3)
    np.testing.assert_array_equal(after.mean_of_others, kept.mean_of_others)


def test_answers_are_added_to_blocks_with_the_level_of_those_met():
    """Squares in the ratio that an item had, the typical one for what nobody had answered; levels by information."""
    kept = quadratic(LAYOUT, BETA, blocks=True)
    kept.information[3] = 0.0  # an item that is new
    kept.squares[LAYOUT.item == 3] = 0.0
    _, point = answers_at(LAYOUT, BETA)
    here = posterior(LAYOUT, BETA, kept, answers=point)
    after = here.after(np.zeros(8))
    np.testing.assert_allclose(after.information, kept.information + point.own)
    own = diagonal_of(kept.information, LAYOUT)
    known = LAYOUT.item != 3
    ratio = np.where(known, kept.squares / np.where(known, own, 1), 0)
    ratio[~known] = np.median(ratio[known])
    np.testing.assert_allclose(after.squares, kept.squares + ratio * point.information)
    place, new = LAYOUT.mean(BETA), own_information(point)
    old = kept.information.sum(axis=(1, 2))
    met = place - compare_with_others(point, place) / new  # the mean of the others that the people of these answers met
    np.testing.assert_allclose(after.mean_of_others, (old * kept.mean_of_others + new * met) / (old + new))
    np.testing.assert_array_equal(here.means_of_others(), kept.mean_of_others)


def test_the_mean_of_the_others_an_item_was_compared_with():
    """N (location) is E times what the item is above it."""
    kept = quadratic(LAYOUT, BETA)
    here = posterior(LAYOUT, BETA, kept, precisions=(1.0, 0.0))
    N, place = kept.between_items(LAYOUT), LAYOUT.mean(BETA)
    np.testing.assert_allclose(here.means_of_others(), place - N @ place / np.diag(N))


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1, 1], [2, 1, 3, 2]], ids=["right or wrong", "categories"])
@pytest.mark.parametrize("prior", [False, True])
def test_variances_are_those_of_a_dense_sandwich(sizes, prior):
    layout = Thresholds(np.array(sizes))
    beta = np.linspace(-1, 1, layout.n_entries)
    kept = quadratic(layout, beta)
    here = posterior(layout, beta, kept, precisions=(5.0, 3.0) if prior else (0.0, 0.0))
    bread, meat = kept.information, kept.information
    if prior:
        penalty = np.stack([here.prior.spread(column, 1) for column in np.eye(layout.n_entries)], axis=1)
        pull = np.stack([here.prior.spread(column, 2) for column in np.eye(layout.n_entries)], axis=1)
        assert np.abs(penalty).max() > 0.1
        bread, meat = bread + penalty, meat + pull
    inverse = np.linalg.pinv(bread, rcond=1e-10, hermitian=True)
    C = centering(layout)
    full = C @ inverse @ meat @ inverse @ C.T
    locations = [full[np.ix_(layout.item == i, layout.item == i)].mean() for i in range(layout.n_items)]
    thresholds, location = here.variance()
    np.testing.assert_allclose(thresholds, np.diag(full), rtol=1e-6)
    np.testing.assert_allclose(location, locations, rtol=1e-6)


def test_variances_beside_fixed_thresholds_and_of_nothing_free():
    kept = quadratic(LAYOUT, BETA)
    fixed = LAYOUT.item == 1
    here = posterior(LAYOUT, BETA, kept, fixed=fixed, floating=np.full(8, -1))
    inverse = np.linalg.inv(kept.information[np.ix_(~fixed, ~fixed)])
    thresholds, location = here.variance()
    np.testing.assert_allclose(thresholds[~fixed], np.diag(inverse))
    assert thresholds[fixed] == 0
    first = np.flatnonzero(~fixed) < 2
    assert location[0] == pytest.approx(inverse[np.ix_(first, first)].mean())
    everything = posterior(LAYOUT, BETA, kept, fixed=np.ones(8, dtype=bool), floating=np.full(8, -1))
    assert not np.concatenate(everything.variance()).any()


def test_variances_of_blocks_are_those_of_each_item_by_itself():
    kept = quadratic(LAYOUT, BETA, blocks=True)
    fixed = LAYOUT.item == 1
    here = posterior(LAYOUT, BETA, kept, precisions=(5.0, 3.0), fixed=fixed, floating=np.full(8, -1))
    thresholds, location = here.variance()
    one, two = here.prior.within(), here.prior.within(2)
    for item, most in enumerate(LAYOUT.max_score):
        if item == 1:
            assert thresholds[LAYOUT.item == 1] == location[1] == 0
            continue
        own = (item, slice(most), slice(most))
        inverse = np.linalg.inv((kept.information + one)[own])
        full = inverse @ (kept.information + two)[own] @ inverse
        np.testing.assert_allclose(thresholds[LAYOUT.item == item], np.diag(full), rtol=1e-6)
        assert location[item] == pytest.approx(full.mean(), rel=1e-6)


def test_the_ratio_of_squares_to_information_where_a_prior_counts():
    """Answers that look too regular count as regular as expected, as far as the prior counts."""
    kept = quadratic(LAYOUT, BETA)
    here = posterior(LAYOUT, BETA, kept)
    np.testing.assert_allclose(here.variance_ratio(), kept.squares / np.diag(kept.information))
    counting = SimpleNamespace(
        prior=SimpleNamespace(counts=np.linspace(0, 1, 8)),
        information=here.information,
        kept=kept,
        has_information=here.information > 0,
    )
    expected = []
    for share, squares, told in zip(np.linspace(0, 1, 8), kept.squares, here.information, strict=True):
        expected.append((squares + share * max(told - squares, 0)) / told)
    np.testing.assert_allclose(Posterior.variance_ratio(counting), expected)
    counting.information = np.where(np.arange(8) == 2, 0.0, here.information)
    counting.has_information = counting.information > 0
    assert Posterior.variance_ratio(counting)[2] == 1


def test_steps_end_where_the_penalized_gradient_is_zero():
    kept = quadratic(LAYOUT, BETA)
    here = posterior(LAYOUT, BETA, kept, precisions=(4.0, 2.0))
    for _ in range(30):
        here = posterior(LAYOUT, here.beta + here.step(), kept, precisions=(4.0, 2.0))
    down = here.gradient() - here.prior @ here.beta
    down -= down.mean()
    assert np.abs(down).max() < 1e-2 * np.abs(kept.gradient).max()


def test_covariances_centered_within_parts():
    """Each floating part has the weighted mean zero; the others stay."""
    weight = np.array([1.0, 0.5, 0.5, 1.0, 2.0])
    floating = np.array([0, 0, 1, 1, -1])
    covariance = some_information(Thresholds.ones(5)) + 2 * np.eye(5)
    C = np.eye(5)
    for part in (0, 1):
        own = floating == part
        C[own] -= np.where(own, weight / weight[own].sum(), 0.0)
    np.testing.assert_allclose(centered_on_parts(covariance, weight, floating), C @ covariance @ C.T)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_step_goes_along_the_derivative_of_the_penalty(blocks):
    """Deviations from the others that each was compared with; of blocks these are held where they were."""
    kept = quadratic(LAYOUT, BETA, blocks=blocks)
    floating = np.full(8, -1) if blocks else None  # blocks hold the scale, a whole matrix does not
    here = posterior(LAYOUT, BETA + 0.1, kept, precisions=(4.0, 2.0), floating=floating)

    def penalty(beta):
        of_locations = here.location_prior.deviation(LAYOUT.mean(beta))
        of_offsets = here.prior.deviation(beta)
        fade = here.prior.fade
        return 2.0 * np.sum(here.location_prior.fade * of_locations**2) + 1.0 * np.sum(fade * of_offsets**2)

    h = 1e-5
    slope = [(penalty(here.beta + h * one) - penalty(here.beta - h * one)) / (2 * h) for one in np.eye(8)]
    if blocks:
        assert np.abs(here.location_prior.constant_pull()).max() > 0.1
    curvature = np.stack([kept.times(one, LAYOUT) + here.prior @ one for one in np.eye(8)])
    expected = np.linalg.lstsq(curvature, here.gradient() - np.array(slope), rcond=1e-9)[0]
    found = here.step()
    if not blocks:
        expected -= expected.mean()
        found -= found.mean()
    assert 0.01 < np.abs(expected).max() < 1
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("with_answers", [False, True])
def test_a_prior_is_learned_from_all_information_and_the_expected_share_above(with_answers):
    """Of categories: from the blocks of kept and new responses, fixed thresholds being certain."""
    kept = quadratic(LAYOUT, BETA)
    point = answers_at(LAYOUT, BETA)[1] if with_answers else None
    fixed = np.arange(8) == 2
    n_below, n_above = np.linspace(10, 30, 8), np.linspace(40, 15, 8)
    n_below[6] = 0
    asked = {}

    @dataclass
    class Learning:
        rare: object = None

        def with_new_precision(self, beta, blocks, share):
            asked.update(rare=self.rare, blocks=blocks, share=share)
            return SimpleNamespace(alpha=2.5, location=SimpleNamespace(alpha=1.5))

    gradient = np.linspace(-1, 2, 8)
    here = SimpleNamespace(
        layout=LAYOUT,
        kept=kept,
        new=point,
        beta=BETA,
        fixed=fixed,
        has_information=np.ones(8, dtype=bool),
        prior=Learning(),
        gradient=lambda: gradient,
    )
    assert Posterior.renewed_precisions(here, n_below, n_above) == Precisions(1.5, 2.5)
    expected = blocks_of(kept.information, LAYOUT)
    if with_answers:
        expected = expected + point.own
    expected[1, 0, 0] = CERTAIN
    np.testing.assert_allclose(asked["blocks"], expected)
    np.testing.assert_allclose(asked["share"], (n_above + gradient) / (n_below + n_above))
    item, category = asked["rare"]
    assert (item.tolist(), category.tolist()) == ([LAYOUT.item[6]], [LAYOUT.level[6] - 1])


def test_a_prior_of_right_and_wrong_is_learned_from_the_items_that_are_known(monkeypatch):
    layout = Thresholds.ones(4)
    asked = []

    def renewed(*given):
        asked.extend(given)
        return 1.5

    monkeypatch.setattr(evidence, "renewed_precision", renewed)
    informed = np.array([True, True, False, True])
    deviation, fade = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 0.8, 0.5, 0.2])
    here = SimpleNamespace(
        layout=layout,
        beta=np.zeros(4),
        fixed=np.array([False, True, False, False]),
        information=np.array([3.0, 4.0, 0.0, 5.0]),
        has_information=informed,
        precisions=Precisions(2.0, 0.0),
        location_prior=SimpleNamespace(deviation=lambda beta: deviation, fade=fade),
        gradient=lambda: np.array([1.0, -1.0, 0.0, 2.0]),
    )
    n_below, n_above = np.array([5.0, 6, 0, 8]), np.array([3.0, 4, 0, 2])
    assert Posterior.renewed_precisions(here, n_below, n_above) == Precisions(1.5, 0.0)
    expected = (deviation[informed], [3.0, CERTAIN, 5.0], [4 / 8, 3 / 10, 4 / 10], 2.0, fade[informed])
    for found, each in zip(asked, expected, strict=True):
        np.testing.assert_allclose(found, each)
