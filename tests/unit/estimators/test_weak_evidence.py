"""Standard errors where few people say how scores spread: across weak links, and beside categories that nobody used."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import spectral_irt as si
from dense_ordered import sandwich
from spectral_irt import Responses
from spectral_irt.chain.prior import skewed_posterior

FORMS = np.tile([-1.0, -0.3, 0.3, 1.0], 2)
DIFFERENCE = np.repeat([0.25, -0.25], 4)  # of the means of the two forms
WITHIN = np.array([1.0, 0, 0, -1, 0, 0, 0, 0])


def two_forms(linking, seed):
    """A hundred people on each of two forms of four items, and a few who took both."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1, 200 + linking)
    table = (rng.random((len(ability), 8)) < 1 / (1 + np.exp(FORMS - ability[:, None]))).astype(float)
    table[:100, 4:] = np.nan
    table[100:200, :4] = np.nan
    return table


@pytest.mark.parametrize("weighted", [False, True])
def test_a_weak_link_has_the_larger_of_both_standard_errors(weighted):
    table = two_forms(linking=3, seed=4)
    weights = np.where(np.arange(len(table)) >= 200, 0.4, 1.0) if weighted else None
    fit = si.SpectralRasch(regularization=0).fit(table, weights=weights)
    each = np.ones(len(table)) if weights is None else weights / weights.mean()
    difficulty, ones = fit.difficulty_, np.ones(8, dtype=np.int64)
    robust = sandwich(table, ones, difficulty, weights=each)
    inverse = sandwich(table, ones, difficulty, weights=each, robust=False)
    model = inverse @ np.linalg.pinv(sandwich(table, ones, difficulty, weights=each**2, robust=False)) @ inverse
    between, within = (direction @ fit.covariance() @ direction for direction in (DIFFERENCE, WITHIN))
    assert DIFFERENCE @ robust @ DIFFERENCE < 0.8 * (DIFFERENCE @ model @ DIFFERENCE)  # too small: the case in point
    assert between == pytest.approx(DIFFERENCE @ model @ DIFFERENCE, rel=0.05)
    assert within == pytest.approx(WITHIN @ robust @ WITHIN, rel=0.02)  # within a form nothing changes


def test_a_strong_link_has_the_sandwich():
    table = two_forms(linking=60, seed=5)
    fit = si.SpectralRasch(regularization=0).fit(table)
    expected = sandwich(table, np.ones(8, dtype=np.int64), fit.difficulty_)
    np.testing.assert_allclose(fit.se_, np.sqrt(np.diag(expected)), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("linking", [2, 5])
def test_intervals_across_a_weak_link_cover(linking):
    covered = []
    for seed in range(100):
        fit = si.SpectralRasch().fit(two_forms(linking, seed=[linking, seed]))
        se = np.sqrt(DIFFERENCE @ fit.covariance() @ DIFFERENCE)
        covered.append(abs(DIFFERENCE @ fit.difficulty_) < 1.96 * se)
    assert np.mean(covered) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 100)


def beside_empty_categories(seed, persons=250, items=40):
    """(estimate - truth) / se of thresholds beside a category that nobody used, their order far from regular."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, 3, (items, 3))
    beta = rng.normal(0, 1, items)[:, None] + offsets - offsets.mean(axis=1, keepdims=True)
    ability = rng.normal(0, 1, persons)
    table = np.zeros((persons, items))
    for i, own in enumerate(beta):
        chance = np.exp(np.arange(4) * ability[:, None] - np.concatenate([[0.0], np.cumsum(own)]))
        chance /= chance.sum(axis=1, keepdims=True)
        table[:, i] = (rng.random(persons)[:, None] > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
    highest = table.max(axis=0) == 3
    table, beta = table[:, highest], beta[highest]
    counts = np.stack([(table == category).sum(axis=0) for category in range(4)], axis=1)
    fit = si.SpectralPartialCredit(unused="keep").fit(Responses.from_wide(table, ordered=True, unused="keep"))
    z = (fit.thresholds_.reshape(-1, 3) - beta + beta.mean()) / fit.threshold_se_.reshape(-1, 3)
    return z[np.minimum(counts[:, :-1], counts[:, 1:]) == 0]


@pytest.mark.parametrize("rate", [1.0, 0.7])
@pytest.mark.parametrize("precision", [0.05, 0.14, 2.0])
@pytest.mark.parametrize("information", [1e-4, 0.3, 3.0])
def test_moments_of_a_posterior_cut_off_on_one_side(information, precision, rate):
    """A normal prior and a likelihood exp(-a exp(-k x)), which says only that x is not far below: by quadrature around
    the mode, which a search finds."""

    def slope(x):
        return information / rate * np.exp(-rate * x) - precision * (x + shift)

    shift = information / rate / precision  # so that the mode is at zero and the information there as given
    mode = brentq(slope, -5, 5)
    assert mode == pytest.approx(0, abs=1e-9)

    def posterior(x):
        return np.exp(-information / rate**2 * (np.exp(-rate * x) - 1) - precision / 2 * ((x + shift) ** 2 - shift**2))

    total = quad(posterior, -60, 60, points=[-5, 0, 5], limit=400)[0]
    mean, squares = (quad(lambda x, k=k: x**k * posterior(x), -60, 60, points=[-5, 0, 5], limit=400)[0] for k in (1, 2))
    found = skewed_posterior(np.array([information]), np.array([precision]), np.array([rate]))
    assert found.mean_square[0] == pytest.approx(squares / total, rel=1e-4)
    assert found.mean[0] == pytest.approx(mean / total, rel=1e-3, abs=1e-6)


def test_thresholds_beside_an_empty_category_have_errors_that_hold():
    """Without what is missing along the contrast of two thresholds, the root mean square is about 2."""
    z = np.concatenate([beside_empty_categories(seed) for seed in range(500, 506)])
    assert len(z) > 40
    assert np.sqrt(np.mean(z**2)) < 1.2
    assert np.mean(np.abs(z) < 1.96) > 0.9
