"""Conditional item fit of rating scales: what locations and shared offsets take off, its level and its power."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.inference.fit.mean_squares import (
    SumsGivenScore,
    _used_by_rating_scales,
    _used_by_thresholds,
    conditional_statistics,
)


def draw(seed: list[int], n_persons: int, locations: Floats, offsets: list[float], wide: int = -1) -> Floats:
    """Answers on a rating scale; the thresholds of the item `wide` lie 2.3 times as far apart."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1, n_persons)
    answers = np.empty((n_persons, len(locations)))
    for item, location in enumerate(locations):
        thresholds = location + np.array(offsets) * (2.3 if item == wide else 1.0)
        categories = np.arange(len(thresholds) + 1)
        p = np.exp(categories * ability[:, None] - np.concatenate([[0], np.cumsum(thresholds)]))
        p /= p.sum(axis=1, keepdims=True)
        answers[:, item] = (rng.random(n_persons)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return answers


def wilson_hilferty(mean_square: float, q: float) -> float:
    return (np.cbrt(mean_square) - 1) * 3 / q + q / 3


def given_score_by_enumeration(beta: list[Floats], score: int) -> list[Floats]:
    """P(X_i = k | score) of every item, from all patterns of answers."""
    sizes = [len(thresholds) + 1 for thresholds in beta]
    total = [np.zeros(size) for size in sizes]
    for pattern in product(*map(range, sizes)):
        if sum(pattern) == score:
            chance = np.exp(-sum(beta[item][:k].sum() for item, k in enumerate(pattern)))
            for item, k in enumerate(pattern):
                total[item][k] += chance
    return [p / p.sum() for p in total]


def test_what_is_taken_off_by_a_design_matrix() -> None:
    """r'A (A'S A)^+ A'd and r'A (A'S A)^+ A'r with the matrix A of locations and offsets, at values that are no
    estimates; two scales, of three and of two thresholds."""
    scale = np.array([0, 0, 0, 1, 1])
    sizes = [3, 3, 3, 2, 2]
    rng = np.random.default_rng(3)
    beta = [rng.normal(0, 0.3) + np.linspace(-1, 1, size) for size in sizes]
    answers = np.stack([rng.integers(0, size + 1, 40) for size in sizes], axis=1).astype(float)
    first = np.concatenate([[0], np.cumsum(sizes)])
    design = np.zeros((first[-1], len(sizes) + 3 + 2))
    for item, size in enumerate(sizes):
        design[first[item] : first[item + 1], item] = 1
        column = len(sizes) + (0 if scale[item] == 0 else 3)
        design[first[item] : first[item + 1], column : column + size] = np.eye(size)
    d, s = np.zeros(first[-1]), np.zeros((first[-1], first[-1]))
    r, square, v_sum, f_variance = (
        np.zeros((len(sizes), first[-1])),
        np.zeros(len(sizes)),
        np.zeros(len(sizes)),
        np.zeros(len(sizes)),
    )
    for row in answers:
        if row.sum() in (0, sum(sizes)):
            continue
        for item, p in enumerate(given_score_by_enumeration(beta, int(row.sum()))):
            k = np.arange(len(p))
            mean = p @ k
            v = p @ (k - mean) ** 2
            f = (k - mean) ** 2 - v
            own = slice(first[item], first[item + 1])
            passed = (k[:, None] >= k[1:]).astype(float)
            centered = passed - p @ passed
            d[own] += centered[int(row[item])]
            s[own, own] += centered.T @ (p[:, None] * centered)
            r[item, own] += (p * f) @ centered
            square[item] += (row[item] - mean) ** 2
            v_sum[item] += v
            f_variance[item] += p @ f**2
    inverse = np.linalg.pinv(design.T @ s @ design, rcond=1e-10, hermitian=True)
    taken = r @ design @ inverse @ design.T
    se = np.sqrt(f_variance - (taken * r).sum(axis=1)) / v_sum
    left = square / v_sum - taken @ d / v_sum
    responses = Responses.from_wide(answers, ordered=True)
    found = conditional_statistics(responses, np.concatenate(beta), scale_of_item=scale)
    np.testing.assert_allclose(found["infit"], square / v_sum, rtol=1e-10)
    np.testing.assert_allclose(found["infit_se"], se, rtol=1e-8)
    np.testing.assert_allclose(
        found["infit_z"], [wilson_hilferty(*each) for each in zip(left, se, strict=True)], rtol=1e-7
    )


def test_thresholds_farther_apart_are_overfit() -> None:
    flagged = []
    for replicate in range(10):
        answers = draw([16, replicate], 800, np.linspace(-1, 1, 8), [-1, 0, 1], wide=3)
        table = si.SpectralRatingScale().fit(answers).analyse(answers).item_fit()
        assert table["infit_conditional"][3] < 0.9
        assert table["infit_conditional_z"][3] < -2
        flagged.append(table["misfit"][3] == "overfit")
    assert np.mean(flagged) >= 0.8


def test_a_partial_credit_model_allows_for_any_distances() -> None:
    answers = draw([16, 0], 800, np.linspace(-1, 1, 8), [-1, 0, 1], wide=3)
    assert (si.SpectralPartialCredit().fit(answers).analyse(answers).item_fit()["misfit"] == "").all()


@pytest.mark.slow
def test_level_and_standard_error_in_small_samples() -> None:
    """Of 120 data sets; the sd of the infit over them is that of answers drawn and fitted again."""
    z, infit, se = [], [], []
    for replicate in range(120):
        answers = draw([71, replicate], 250, np.linspace(-1, 1, 8), [-1, 0, 1])
        statistics = si.SpectralRatingScale().fit(answers).analyse(answers)._conditional()
        z.append(statistics["infit_z"])
        infit.append(statistics["infit"])
        se.append(statistics["infit_se"])
    assert 0.03 < np.mean(np.abs(z) > 1.96) < 0.07
    assert 0.9 < np.std(z) < 1.07
    np.testing.assert_allclose(np.mean(se, axis=0).mean() / np.std(infit, axis=0).mean(), 1, atol=0.12)


def test_draws_take_off_the_offsets_in_common() -> None:
    answers = draw([16, 2], 800, np.linspace(-1, 1, 8), [-1, 0, 1], wide=3)
    study = si.SpectralRatingScale().fit(answers).analyse(answers)
    table = study.item_fit(critical=199, seed=1)
    assert table["misfit"][3] == "overfit"
    width = (table["infit_conditional_high"] - table["infit_conditional_low"]).to_numpy()
    # The middle 95% of replicates, against the standard error that is computed: free thresholds make it narrower.
    np.testing.assert_allclose(width / (2 * 1.96), study._conditional()["infit_se"], rtol=0.25)


@pytest.mark.parametrize("scale", [[0, 0, 0, 0, 0], [0, 1, 0, 1, 1]], ids=["one scale", "two scales"])
def test_what_locations_and_offsets_take_off_is_the_projection_on_their_design(scale: list[int]) -> None:
    """r' A (A' S A)^+ A' d and r' A (A' S A)^+ A' r, r that of one item and S of all, with a column for each location
    and each offset of a scale."""
    rng = np.random.default_rng(3)
    n, k = 5, 3
    scale_of_item = np.array(scale)
    roots = rng.normal(size=(n, k, 6))
    between = roots @ roots.transpose(0, 2, 1)
    off, r_infit, r_outfit = rng.normal(size=(3, n, k))
    nothing = np.zeros(n)
    sums = SumsGivenScore(*[nothing] * 6, off=off, r_infit=r_infit, r_outfit=r_outfit, between=between)
    design = np.zeros((n, k, n + 2 * k))
    for item in range(n):
        design[item, :, item] = 1
        for level in range(k):
            design[item, level, n + k * scale_of_item[item] + level] = 1
    A = design.reshape(n * k, -1)
    S = np.zeros((n * k, n * k))
    for item in range(n):
        own = slice(k * item, k * item + k)
        S[own, own] = between[item]
    projection = A @ np.linalg.pinv(A.T @ S @ A, rcond=1e-10, hermitian=True) @ A.T
    used = _used_by_rating_scales(sums, scale_of_item)
    free = _used_by_thresholds(sums)
    for item in range(n):
        for r, taken, variance in (
            (r_infit, used.infit, used.infit_variance),
            (r_outfit, used.outfit, used.outfit_variance),
        ):
            alone = np.zeros((n, k))
            alone[item] = r[item]
            alone = alone.ravel()
            assert taken[item] == pytest.approx(alone @ projection @ off.ravel())
            assert variance[item] == pytest.approx(alone @ projection @ alone)
        inverse = np.linalg.inv(between[item])
        assert free.infit[item] == pytest.approx(r_infit[item] @ inverse @ off[item])
        assert free.outfit_variance[item] == pytest.approx(r_outfit[item] @ inverse @ r_outfit[item])
        assert free.outfit[item] == pytest.approx(r_outfit[item] @ inverse @ off[item])
        assert free.infit_variance[item] == pytest.approx(r_infit[item] @ inverse @ r_infit[item])
