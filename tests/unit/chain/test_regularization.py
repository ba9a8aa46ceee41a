"""The prior of the virtual item: how its precision is found, and that it treats right and wrong alike."""

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.chain.regularization import IMAGINARY, prior_precision


def test_with_much_information_the_precision_is_that_of_the_estimates():
    beta = np.random.default_rng(1).normal(0, 1.3, 500)
    found = prior_precision(beta, np.full(500, 1e9), 1.0)
    assert found == pytest.approx((500 + IMAGINARY) / (np.sum(beta**2) + IMAGINARY), rel=1e-6)


def test_the_step_is_the_second_moment_of_the_posterior():
    """Against exact integration for an item that ten people of spread 1 answered, under a prior of precision 1."""
    theta = np.linspace(-1.5, 1.5, 10)
    grid = np.linspace(-12, 12, 20_001)
    wrong = 1 / (1 + np.exp(theta - grid[:, None]))
    for right in range(11):
        log_density = -right * grid + np.log(wrong).sum(axis=1) - grid**2 / 2
        density = np.exp(log_density - log_density.max())
        density /= density.sum()
        mode = grid[np.argmax(density)]
        q = 1 / (1 + np.exp(theta - mode))
        information = np.sum(q * (1 - q))
        # The step is (share + 2) / (mode^2 + 2) with share = 1 - alpha (E beta^2 - mode^2).
        share = prior_precision(np.array([mode]), np.array([information]), 1.0) * (mode**2 + IMAGINARY) - IMAGINARY
        assert 1 - share == pytest.approx(
            density @ grid**2 - mode**2, rel=0.025
        )  # 1 / (information + 1): up to 35 % off


THIN = {
    "10 answers an item": {"n_users": 500, "n_items": 1000, "p": 0.02},
    "15 answers an item, long users": {"n_users": 300, "n_items": 1000, "p": 0.05},
    "20 answers an item, able users": {"n_users": 1000, "n_items": 1000, "p": 0.02, "ability_mean": 1.5},
}


@pytest.mark.parametrize("setting", THIN)
@pytest.mark.parametrize("spread", [0.7, 1.5])
def test_empirical_bayes_finds_the_spread_of_the_difficulties(setting, spread):
    """With m items of information I, 1 / alpha is known to about sqrt(2 / m) (1 + 1 / (I spread^2)) of itself."""
    ratios = []
    for seed in range(3):
        data = simulate.rasch(**THIN[setting], design="sampled", difficulty_sd=spread, seed=seed)
        alpha = SpectralRasch(se="none").fit(data.responses).regularization_.alpha
        ratios.append(alpha * np.var(data.difficulty))
    assert 0.8 < np.mean(ratios) < 1.2


@pytest.mark.parametrize("se", ["dense", "one-pass", "multiplier"])
def test_errors_do_not_depend_on_which_answer_is_called_right(se):
    table = simulate.rasch(300, 300, design="sampled", p=0.05, seed=3).responses.to_dense()
    fit, mirrored = (SpectralRasch(se=se).fit(answers) for answers in (table, 1 - table))
    assert np.sum(fit.status_ == "all wrong") >= 3
    # Rounds end when no item moves by more than a small part of its standard error.
    assert np.nanmax(np.abs(fit.difficulty_ + mirrored.difficulty_) / fit.se_) < 0.1
    np.testing.assert_allclose(fit.se_, mirrored.se_, rtol=0.06)
    np.testing.assert_allclose(fit.information_, mirrored.information_, rtol=0.15, atol=0.1)


@pytest.mark.slow
def test_errors_of_items_that_everybody_got_right_or_wrong():
    """Their squared error is on average what the standard errors say; 200 of them, so known to about a tenth."""
    squares = {"all right": [], "all wrong": []}
    for seed in range(6):
        data = simulate.rasch(300, 2000, design="sampled", p=0.1, difficulty_sd=1.5, seed=seed)
        fit = SpectralRasch().fit(data.responses)
        error = fit.difficulty_ - data.difficulty + data.difficulty.mean()
        for word, found in squares.items():
            found.append((error[fit.status_ == word] ** 2, fit.se_[fit.status_ == word] ** 2))
    for found in squares.values():
        error, promised = (np.concatenate(part) for part in zip(*found, strict=True))
        assert len(error) > 60
        assert 0.6 < error.mean() / promised.mean() < 1.7


def test_a_loose_tolerance_still_gets_its_rounds():
    """Weights and ties are settled whatever the residual asked for; only the last digits of each solve differ."""
    data = simulate.rasch(300, 60, design="sampled", p=0.2, seed=6).responses
    for weighting in ("ability", "users"):
        loose, tight = (SpectralRasch(weighting=weighting, tol=tol).fit(data) for tol in (1e-3, 1e-10))
        assert np.max(np.abs(loose.difficulty_ - tight.difficulty_) / tight.se_) < 0.1
