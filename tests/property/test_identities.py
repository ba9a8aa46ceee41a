"""Identities that hold for every chain, every truth, every table."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spectral_irt import Responses, SpectralRasch
from spectral_irt.chain.operator import ABILITY, ItemChain
from spectral_irt.chain.paper import PairChain, algorithm_1, algorithm_2, regularize
from spectral_irt.chain.stationary import stationary

logits = st.floats(-3, 3)
betas = hnp.arrays(float, st.integers(3, 40), elements=logits)
settings.register_profile("steady", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("steady")


def exact_rates(beta, theta, shown):
    """Y*_ij = sum_l A_li A_lj P(X_li = 1) P(X_lj = 0), the paper's idealised chain."""
    p = 1 / (1 + np.exp(beta[None, :] - theta[:, None]))
    y = (shown * p).T @ (shown * (1 - p))
    np.fill_diagonal(y, 0)
    return y


@given(betas, st.integers(0, 2**32 - 1))
def test_the_exact_chain_has_exp_beta_as_its_distribution(beta, seed):
    rng = np.random.default_rng(seed)
    theta, shown = rng.normal(0, 2, 15), (rng.random((15, len(beta))) < 0.7).astype(float)
    shown[0] = 1  # one person who saw everything keeps the design in one piece
    y = exact_rates(beta, theta, shown)
    found = stationary(PairChain(y), tol=1e-13).pi
    expected = np.exp(beta) / np.exp(beta).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    flow = expected[:, None] * y
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9)  # detailed balance


@given(hnp.arrays(float, st.integers(3, 8), elements=logits), st.integers(0, 2**32 - 1))
def test_algorithms_1_and_2_are_equivalent(beta, seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(5 * exact_rates(beta, rng.normal(size=10), np.ones((10, len(beta))))).astype(float)
    y = regularize(counts, 0.5, rule="together", b=1 - np.eye(len(beta)))
    one, two = algorithm_1(y, tol=1e-13), algorithm_2(y, tol=1e-13)
    np.testing.assert_allclose(one.difficulty, two.difficulty, atol=1e-8)
    rescaled = one.chain_pi * two.normalization
    np.testing.assert_allclose(two.chain_pi, rescaled / rescaled.sum(), atol=1e-8)


@pytest.mark.slow
@given(hnp.arrays(float, st.integers(2, 6), elements=logits), st.floats(-2, 2))
def test_ability_weights_are_unbiased_by_enumeration(beta, theta):
    """The expected balance of one person is zero at the true difficulties, whatever the weights' own difficulties.

    Every pattern of answers is enumerated with its probability; weights are taken at other difficulties on purpose.
    """
    patterns = np.array(list(itertools.product([0.0, 1.0], repeat=len(beta))))
    p = 1 / (1 + np.exp(beta - theta))
    chance = np.prod(np.where(patterns == 1, p, 1 - p), axis=1)
    at = beta[::-1].copy()
    balance = np.zeros(len(beta))
    for pattern, weight in zip(patterns, chance, strict=True):
        chain = ItemChain.under(Responses.from_wide(pattern[None, :]), ABILITY, at)
        balance += weight * (chain.inflow(np.exp(beta)) - np.exp(beta) * chain.rates)
    scale = np.exp(beta).max() / np.exp(beta).min()
    np.testing.assert_allclose(balance, 0, atol=1e-12 * max(scale, 1) * np.exp(np.abs(beta).max()))


@settings(max_examples=15)  # each of them three fits
@given(st.integers(1, 200), st.integers(1, 200), st.integers(0, 50))
def test_two_items(first, second, both):
    """beta_1 - beta_2 = log(Y_21 / Y_12), by any weighting."""
    table = np.array([[1, 0]] * first + [[0, 1]] * second + [[1, 1]] * both, dtype=float)
    for weighting in ("pairs", "persons", "ability"):
        fit = SpectralRasch(weighting=weighting, regularization=0).fit(table)
        np.testing.assert_allclose(fit.difficulty_[0] - fit.difficulty_[1], np.log(second / first), atol=1e-9)
