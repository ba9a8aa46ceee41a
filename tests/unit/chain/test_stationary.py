"""One solver, three methods: each against elimination of states."""

import numpy as np
import pytest

from dense import gth as slow_gth
from spectral_irt import Responses, simulate
from spectral_irt.chain import stationary as module
from spectral_irt.chain.operator import PERSONS, ItemChain
from spectral_irt.chain.paper import PairChain
from spectral_irt.chain.stationary import _weak_link_finding, _weakest_link, gth, linked_items, stationary, weak_links
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


def two_forms(n_linking, seed=0):
    """Two forms of eight items, each taken by 300 people, and people who answered one item of either."""
    rng = np.random.default_rng(seed)
    x = np.full((600 + n_linking, 16), np.nan)
    x[:300, :8] = rng.random((300, 8)) < 0.5
    x[300:600, 8:] = rng.random((300, 8)) < 0.6
    x[600:, [3, 11]] = np.where(rng.random((n_linking, 1)) < 0.5, [1, 0], [0, 1])
    return Responses.from_wide(x)


def test_the_weakest_link_is_the_slowest_error_of_the_chain():
    """Its sides are the signs of the second eigenvector, and its rate of decay the second eigenvalue."""
    responses = two_forms(12)
    chain = ItemChain.under(responses, PERSONS)
    step = np.stack([chain.inflow(one / chain.rates) for one in np.eye(16)], axis=1)  # flow -> flow
    values, vectors = np.linalg.eig(step)
    second = np.argsort(-np.abs(values))[1]
    side, contraction = _weakest_link(responses, 0)
    assert contraction == pytest.approx(abs(values[second]), abs=1e-3)
    expected = vectors[:, second].real > 0
    assert (side == expected).all() or (side == ~expected).all()
    assert side[:8].all() != side[8:].all()
    assert _weakest_link(simulate.rasch(300, 10, seed=1).responses, 0) is None
    finding = weak_links(responses)
    assert finding.severity == "warning"
    assert finding.sentence.startswith("Only 12 of 612 people link two groups of 8 and 8 items")


@pytest.mark.parametrize(
    ("n_linking", "contraction", "severity"),
    [(50, 0.97, "note"), (49, 0.97, "warning"), (50, 0.971, "warning"), (400, 0.92, "note")],
)
def test_a_link_is_a_warning_where_it_is_thin_or_rests_on_few_people(n_linking, contraction, severity):
    responses = two_forms(60)
    side = np.arange(16) < 6
    finding = _weak_link_finding(responses, side, n_linking, contraction)
    assert finding.severity == severity
    assert finding.sentence.startswith("Only") == (severity == "warning")
    assert "6 and 10 items" in finding.sentence
    assert finding.items == (0, 1, 2, 3, 4, 5)
    assert _weak_link_finding(responses, ~side, n_linking, contraction).items == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("mixed", [False, True])
def test_items_are_linked_by_people_who_answered_two(mixed):
    """Groups by repeated joining, numbered by falling size; with a mixed score only, where the others say nothing."""
    nan = np.nan
    x = np.array(
        [
            [1, 0, nan, nan, nan, nan, nan],
            [nan, 1, 1, nan, nan, nan, nan],  # all right: links 1 and 2 unless a mixed score is asked for
            [nan, nan, nan, 1, 0, nan, nan],
            [nan, nan, nan, nan, 0, 1, nan],
            [nan, nan, nan, nan, nan, nan, 1],  # alone
        ]
    )
    group = {item: {item} for item in range(7)}
    answered = np.zeros(7, dtype=bool)
    for row in x:
        items = np.flatnonzero(~np.isnan(row))
        if len(items) < 2 or (mixed and len(set(row[items])) < 2):
            continue
        answered[items] = True
        joined = set().union(*(group[item] for item in items))
        for item in joined:
            group[item] = joined
    found, told = linked_items(Responses.from_wide(x), mixed)
    np.testing.assert_array_equal(told, answered)
    for one in range(7):
        assert {*np.flatnonzero(found == found[one])} == group[one]
    sizes = np.bincount(found)
    assert (np.diff(sizes) <= 0).all()
