"""One solver, three methods: each against elimination of states."""

import numpy as np
import pytest

from dense import gth as slow_gth
from spectral_irt import simulate
from spectral_irt.chain import stationary as module
from spectral_irt.chain.operator import PERSONS, ItemChain
from spectral_irt.chain.paper import PairChain
from spectral_irt.chain.stationary import gth, stationary
from spectral_irt.errors import ConvergenceWarning


def random_rates(m, seed, density=1.0):
    rng = np.random.default_rng(seed)
    y = rng.exponential(size=(m, m)) * (rng.random((m, m)) < density)
    y += np.roll(np.eye(m), 1, axis=1) * 0.1  # a cycle: always irreducible
    np.fill_diagonal(y, 0)
    return y


def line(groups, size, link):
    """Groups of items in a row, neighbors linked by a small rate: mixes slowly."""
    m = groups * size
    group = np.arange(m) // size
    gap = np.abs(group[:, None] - group[None, :])
    rng = np.random.default_rng(0)
    y = np.where(gap == 0, 1.0, np.where(gap == 1, link, 0.0)) * rng.uniform(0.5, 1.5, (m, m))
    np.fill_diagonal(y, 0)
    return y


def test_gth_equals_the_slow_version_and_the_eigenvector():
    y = random_rates(9, 1)
    np.testing.assert_allclose(gth(y), slow_gth(y), rtol=1e-13)
    generator = y - np.diag(y.sum(axis=1))
    np.testing.assert_allclose(gth(y) @ generator, 0, atol=1e-14)


def test_small_chains_are_eliminated():
    y = random_rates(20, 2)
    found = stationary(PairChain(y))
    assert found.method == "elimination"
    np.testing.assert_allclose(found.pi, slow_gth(y), rtol=1e-12)
    normal = y / y.sum(axis=1)[:, None]
    assert found.contraction == pytest.approx(np.sort(np.abs(np.linalg.eigvals(normal)))[-2])


def test_anderson_reaches_the_solution_and_measures_contraction():
    y = random_rates(60, 3, density=0.3)
    found = stationary(PairChain(y), tol=1e-13)
    assert found.method == "anderson"
    assert found.residual <= 1e-13
    np.testing.assert_allclose(found.pi, gth(y), rtol=1e-10)
    second = np.sort(np.abs(np.linalg.eigvals(y / y.sum(axis=1)[:, None])))[-2]
    assert 0.5 * second < found.contraction < 1.2 * second


def test_slow_chains_go_to_arnoldi():
    y = line(groups=12, size=8, link=1e-3)
    found = stationary(PairChain(y), tol=1e-12)
    assert found.method == "arnoldi"
    assert found.residual <= 1e-12
    assert found.contraction > 0.9
    np.testing.assert_allclose(found.pi, gth(y), rtol=1e-6)


def test_thirty_linked_forms_in_at_most_400_passes():
    """About 1,100 items, two anchors between neighbors: plain iteration is still at 4e-5 after 4,000 passes."""
    responses = simulate.rasch(6000, design="linked", forms=30, length=40, anchors=2, seed=5).responses
    assert 1100 < responses.n_items < 1200
    chain = ItemChain.under(responses, PERSONS)
    found = stationary(chain, tol=1e-10)
    assert found.residual <= 1e-10
    assert found.passes <= 400


def test_giving_up_is_said(monkeypatch):
    monkeypatch.setattr(module, "ARNOLDI_VECTORS", 10**6)
    y = line(groups=12, size=8, link=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"stopped after \d+ passes at residual"):
        stationary(PairChain(y), tol=1e-14, max_passes=20)
