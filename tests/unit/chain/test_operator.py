"""The matrix-free chain against pair weights summed one by one."""

import numpy as np
import pytest

from dense import AWKWARD, dense_pairs
from spectral_irt import Responses
from spectral_irt.chain.operator import ItemChain, TiedChain
from spectral_irt.chain.weights import ABILITY, weighting_named


def random_table(n=40, m=7, p=0.6, seed=0):
    rng = np.random.default_rng(seed)
    table = (rng.random((n, m)) < 0.5).astype(float)
    table[rng.random((n, m)) > p] = np.nan
    return table


def theta_by_hand(row, beta):
    """PROX over the items of one person."""
    seen = ~np.isnan(row)
    mean, variance = beta[seen].mean(), beta[seen].var()
    share = row[seen].mean()
    return mean + np.sqrt(1 + variance / 2.89) * np.log(share / (1 - share))


def pair_weight(table, weighting, beta):
    """h(l, i, j) straight from the definitions in chain/weights.py."""

    def h(person, i, j):
        row = table[person]
        seen = ~np.isnan(row)
        if row[seen].min() == row[seen].max():
            return 0.0
        if weighting == "pairs":
            return 1.0
        if weighting == "persons":
            return 1 / seen.sum()
        t, pi = np.exp(theta_by_hand(row, beta)), np.exp(beta)
        p = t / (t + pi[seen])
        return t / np.sum(p * (1 - p)) / ((t + pi[i]) * (t + pi[j]))

    return h


def make_chain(responses, weighting, beta, engine=None):
    responses = responses.using(engine)
    return ItemChain.under(responses, weighting_named(weighting), beta)


@pytest.mark.parametrize("weighting", ["pairs", "persons", "ability"])
@pytest.mark.parametrize("table", [random_table(), AWKWARD], ids=["random", "awkward"])
def test_inflow_and_rates_equal_the_explicit_sums(table, weighting):
    beta = np.linspace(-1, 1.5, table.shape[1])
    y, _ = dense_pairs(table, pair_weight(table, weighting, beta))
    chain = make_chain(Responses.from_wide(table), weighting, beta)
    v = np.random.default_rng(1).random((table.shape[1], 3))
    np.testing.assert_allclose(chain.rates, y.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(chain.inflow(v), y.T @ v, rtol=1e-12)
    np.testing.assert_allclose(chain.inflow(v[:, 0]), y.T @ v[:, 0], rtol=1e-12)


def test_ability_chain_rebuilt_in_old_memory_is_the_same():
    responses = Responses.from_wide(random_table(n=200))
    beta = np.linspace(-1, 1, 7)
    fresh = make_chain(responses, "ability", beta)
    old = make_chain(responses, "ability", -beta)
    again = ItemChain.under(responses, ABILITY, beta, old)
    assert np.array_equal(fresh.rates, again.rates)


def test_tied_chain_adds_one_state():
    table = random_table()
    chain = make_chain(Responses.from_wide(table), "persons", None)
    tie = np.linspace(0.1, 0.7, 7)
    y, _ = dense_pairs(table, pair_weight(table, "persons", None))
    full = np.zeros((8, 8))
    full[:7, :7] = y
    full[7, :7] = full[:7, 7] = tie
    tied = TiedChain(chain, tie)
    v = np.random.default_rng(0).random((8, 2))
    np.testing.assert_allclose(tied.rates, full.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(tied.inflow(v), full.T @ v, rtol=1e-12)
    np.testing.assert_allclose(tied.inflow(v[:, 1]), full.T @ v[:, 1], rtol=1e-12)
