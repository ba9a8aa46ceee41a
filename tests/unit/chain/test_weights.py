"""The table of weightings: each entry says all that differs by weighting."""

import numpy as np
import pytest

from spectral_irt import PairwiseRasch, SpectralRasch, simulate
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.weights import WEIGHTINGS, Weighting, weighting_named
from spectral_irt.errors import OptionError


@pytest.mark.parametrize("estimator", [SpectralRasch, PairwiseRasch])
def test_users_is_another_name_of_persons(estimator: type) -> None:
    data = simulate.rasch(300, 8, seed=1).responses
    one, other = (estimator(weighting=name).fit(data) for name in ("persons", "users"))
    assert np.array_equal(one.difficulty_, other.difficulty_)
    assert np.array_equal(one.se_, other.se_)
    assert other.get_params()["weighting"] == "users"  # parameters stay as they were given


@pytest.mark.parametrize("name", ["votes", "", None, 3, ["pairs"]])
def test_an_unknown_one_is_an_error_that_lists_the_table(name: object) -> None:
    with pytest.raises(OptionError, match=r"it can be 'ability', 'persons', 'pairs'\."):
        weighting_named(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("weighting", WEIGHTINGS.values(), ids=WEIGHTINGS)
def test_slope_and_tie_are_of_one_pull(weighting: Weighting) -> None:
    """The tie's flow h (pi - 1) at beta is an odd function of beta, and `slope` is its derivative."""
    beta = np.linspace(-3, 3, 13)

    def pull(beta: np.ndarray) -> np.ndarray:
        return weighting.tie(np.exp(beta)) * (np.exp(beta) - 1)

    np.testing.assert_allclose(pull(-beta), -pull(beta), atol=1e-12)
    np.testing.assert_allclose((pull(beta + 1e-5) - pull(beta - 1e-5)) / 2e-5, weighting.slope(beta), rtol=1e-6)


@pytest.mark.parametrize("weighting", WEIGHTINGS.values(), ids=WEIGHTINGS)
def test_flow_is_information_where_the_entry_says_so(weighting: Weighting) -> None:
    """Under the truth the flow through each item is then its information: the variance of what persons contribute."""
    data = simulate.rasch(20_000, 10, seed=3)
    chain = ItemChain.under(data.responses, weighting, data.difficulty)
    flow = np.exp(data.difficulty) * chain.rates
    p = 1 / (1 + np.exp(data.difficulty - data.ability[:, None]))
    v = p * (1 - p)
    information = (v - v**2 / v.sum(axis=1, keepdims=True)).sum(axis=0)
    near = np.allclose(flow / information, 1, atol=0.15)
    assert near == weighting.in_information
