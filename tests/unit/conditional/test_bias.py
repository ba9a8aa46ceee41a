"""The bias of first order: against exact enumeration of binomial logits, and of posterior means by integration."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

import spectral_irt as si
from ratings import simulated
from spectral_irt.conditional.bias import bias_factors

MANY = 10_000  # so that the bias is many standard errors of the scale of all values


class Trials:
    """Logits eta of n trials each: the information on each is n p (1 - p)."""

    def __init__(self, n):
        self.n = n

    def at(self, beta):
        information = self.n / (2 + 2 * np.cosh(beta))
        return SimpleNamespace(
            of_parameters=lambda design: sparse.diags_array(information), information_on=lambda design: information
        )


def at(likelihood, eta, ridge=None, fixed=None):
    """Where Newton's steps ended: at eta."""
    matrix = likelihood.at(eta).of_parameters(None)
    return SimpleNamespace(matrix=matrix, design=sparse.eye_array(len(eta)), ridge=ridge, fixed=fixed)


class Prior:
    """Of the precision alpha around zero on all parameters, in full."""

    def __init__(self, alpha, n):
        self.precision = np.full(n, alpha)
        self.fade = np.ones(n)

    def __matmul__(self, columns):
        return self.precision[:, None] * columns


@pytest.mark.parametrize("p", [0.6, 0.75, 0.9])
def test_what_is_taken_off_is_the_bias_by_exact_enumeration(p):
    n = 1000
    eta, x = np.full(MANY, np.log(p / (1 - p))), np.arange(1, n)
    chance = stats.binom.pmf(x, n, p)
    mean = float((np.log(x / (n - x)) * chance).sum() / chance.sum())  # over all x that are not extreme
    (factor,) = bias_factors(Trials(n), at(Trials(n), eta), eta, [slice(0, MANY)])
    assert 1 - factor == pytest.approx(mean / eta[0] - 1, rel=0.04)  # the next order


@pytest.mark.parametrize("p", [0.6, 0.75, 0.9])
def test_under_a_prior_the_mode_is_taken_to_the_posterior_mean(p):
    """Binomial logits under N(0, 1): by integration over a grid, and with the sign turned of the bias of likelihood."""
    n, alpha = 60, 1.0
    grid = np.linspace(-6, 6, 20_001)
    eta = np.log(p / (1 - p))
    successes = n * p + alpha * eta  # for which eta is the mode
    density = successes * grid - n * np.logaddexp(0, grid) - alpha * grid**2 / 2
    weight = np.exp(density - density.max())
    mean = float(grid @ weight / weight.sum())
    values = np.full(MANY, eta)
    found = at(Trials(n), values, ridge=Prior(alpha, MANY))
    (factor,) = bias_factors(Trials(n), found, values, [slice(0, MANY)])
    assert mean > eta
    assert factor - 1 == pytest.approx(mean / eta - 1, rel=0.12)


def test_each_term_has_its_own_factor_and_what_is_fixed_takes_up_no_information():
    """Few trials in one half, many in the other: each is corrected as if it were alone; none where all is known."""
    n = np.repeat([50.0, 5000.0], MANY)
    eta = np.ones(2 * MANY)
    halves = [slice(0, MANY), slice(MANY, 2 * MANY)]
    few, many = bias_factors(Trials(n), at(Trials(n), eta), eta, halves)
    (alone,) = bias_factors(Trials(n[:MANY]), at(Trials(n[:MANY]), eta[:MANY]), eta[:MANY], [slice(0, MANY)])
    assert few == pytest.approx(alone, abs=1e-9)
    assert (1 - few) / (1 - many) == pytest.approx(100, rel=0.03)
    fixed = np.arange(2 * MANY) < MANY
    np.testing.assert_allclose(
        bias_factors(Trials(n), at(Trials(n), eta, fixed=fixed), eta, [slice(0), halves[1]]), [1, many]
    )
    none = bias_factors(Trials(n), at(Trials(n), eta, fixed=np.ones(2 * MANY, dtype=bool)), eta, halves)
    np.testing.assert_array_equal(none, 1.0)


def test_a_large_sample_is_left_to_the_last_digit_and_nothing_jumps():
    """From nothing to all of it between a twentieth and three twentieths of a standard error of the scale."""
    factors = []
    for n in (1e7, 3e5, 1e5, 6e4, 4e4, 2e4):
        eta = np.ones(200)
        (factor,) = bias_factors(Trials(n), at(Trials(n), eta), eta, [slice(0, 200)])
        factors.append(1 - factor)
    assert factors[0] == 0
    assert (np.diff(factors) >= 0).all()
    assert factors[-1] > 0


def test_regularization_0_is_maximum_likelihood_itself():
    rng = np.random.default_rng(4)
    data, *_ = simulated([rng.choice(10, 2, replace=False).tolist() for _ in range(150)], 4, 3, seed=4)
    likeliest = si.SpectralPartialCredit(regularization=0).fit(data)
    corrected = si.SpectralPartialCredit().fit(data)
    plain, rated = likeliest.calibration_.facets, corrected.calibration_.facets
    assert not any(acts.any() for acts in rated.under_prior.values())
    assert set(plain.factor.values()) == {1.0}
    assert all(0.9 < factor < 0.99 for factor in rated.factor.values())
    for name in ("severity", "se"):
        np.testing.assert_allclose(
            rated.of["rater"][name], rated.factor["rater"] * plain.of["rater"][name], rtol=1e-4, atol=1e-6
        )
    np.testing.assert_allclose(rated.items.thresholds, rated.factor["items"] * plain.items.thresholds, atol=1e-5)
    assert "bias_correction" in [finding.code for finding in corrected.findings_]
    assert "bias_correction" not in [finding.code for finding in likeliest.findings_]


def test_weights_that_differ_make_the_bias_larger_and_equal_ones_leave_it():
    rng = np.random.default_rng(4)
    data, *_ = simulated([rng.choice(10, 2, replace=False).tolist() for _ in range(150)], 4, 3, seed=4)
    plain = si.SpectralPartialCredit().fit(data).calibration_.facets.factor
    equal = si.SpectralPartialCredit().fit(data, weights=np.full(150, 3.0)).calibration_.facets.factor
    unequal = si.SpectralPartialCredit().fit(data, weights=np.tile([0.2, 1.8], 75)).calibration_.facets.factor
    for name in ("items", "rater"):
        assert equal[name] == pytest.approx(plain[name], abs=2e-4)
        assert 1 - unequal[name] > 1.3 * (1 - plain[name])  # squares of weights: 1.64 times
