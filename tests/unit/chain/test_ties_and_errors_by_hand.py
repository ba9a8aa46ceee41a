"""The virtual item of a chain alone by its balance of flows; and errors in one pass by loops over persons."""

import numpy as np
import pytest

from spectral_irt import Responses, simulate
from spectral_irt.chain.errors import contributions, one_pass
from spectral_irt.chain.prior import Regularization
from spectral_irt.chain.stationary import Rounds


def solved(responses, name, *, kind="none", alpha=0.0, information=None):
    plan = Regularization(kind, "as asked", alpha)
    if information is None:
        information = np.ones(responses.thresholds.n_entries)
    rounds = Rounds(responses, name, plan, information, tol=1e-12, max_passes=1000, tell=lambda text: None)
    rounds.solve()
    return rounds


@pytest.mark.parametrize("name", ["persons", "pairs", "ability"])
def test_what_flows_through_the_virtual_item(name):
    """Items meet an item of average difficulty at alpha times the flow per information: pi - 1 over the root of pi.

    Under ability weights flows are in units of information already, and the pull is the logarithm of pi.
    """
    data = simulate.rasch(80, 6, seed=3).responses
    information = np.array([9.0, 12.0, 14.0, 15.0, 11.0, 10.0])
    alpha = 6.0
    rounds = solved(data, name, kind="virtual item", alpha=alpha, information=information)
    pi = np.exp(rounds.beta)
    rates = rounds.data.matrix()
    np.fill_diagonal(rates, 0.0)
    if name == "ability":
        unit = 1.0
        tie = alpha * rounds.beta / (pi - 1)
    else:
        unit = np.sum(pi * rates.sum(axis=1)) / information.sum()
        tie = alpha * unit / np.sqrt(pi)
    level = tie.sum() / np.sum(tie * pi)  # of the items beside the virtual one, which balances, too
    outflow = level * pi * (rates.sum(axis=1) + tie)
    inflow = level * (pi @ rates) + tie
    np.testing.assert_allclose(inflow, outflow, rtol=3e-3)
    free = solved(data, name)
    assert rounds.beta.std() < 0.9 * free.beta.std()
    balance = rounds.balance()
    slope = np.ones(6) if name == "ability" else np.cosh(rounds.beta / 2)
    np.testing.assert_allclose(balance.precision, alpha * unit * slope)
    np.testing.assert_allclose(balance.meat, alpha * (unit * slope) ** 2)


@pytest.mark.parametrize("categories", [2, 4])
@pytest.mark.parametrize("name", ["persons", "ability"])
def test_errors_in_one_pass_by_loops(categories, name):
    """Var_i = sum_l (g_li / J_ii + u_l)^2, u_l = -mean of g_l / J; of a location the mean over its thresholds."""
    data = simulate.partial_credit(60, 4, categories=categories, design="sampled", p=0.8, seed=2)
    responses = data.responses
    assert isinstance(responses, Responses)
    balance = solved(responses, name).balance()
    layout = responses.thresholds
    g = np.concatenate(
        [sum(half.toarray() for half in contributions(part, balance.pi, layout)) for part in balance.data.parts.parts]
    )
    j = balance.through
    average = layout.mean_weights()
    variance = np.zeros(layout.n_entries)
    of_location = np.zeros(layout.n_items)
    for row in g:
        moved = row / j
        mean = average @ moved
        variance += (moved - mean) ** 2
        of_location += (layout.mean(moved) - mean) ** 2
    se, location_se = one_pass(balance)
    np.testing.assert_allclose(se, np.sqrt(variance))
    np.testing.assert_allclose(location_se, np.sqrt(of_location))
