"""The matrix-free chain against rates summed one by one, for right and wrong answers and for thresholds."""

from dataclasses import replace

import numpy as np
import pytest

from dense import AWKWARD, dense_pairs, gth, pair_weight
from dense_ordered import conditional, dense_rates, draw
from spectral_irt import PairwiseRasch, Responses, SpectralRasch, simulate
from spectral_irt.chain import errors, operator
from spectral_irt.chain.errors import covariance, one_pass
from spectral_irt.chain.operator import ABILITY, PERSONS, WEIGHTINGS, ItemChain, Neighbors, TiedChain
from spectral_irt.chain.prior import Regularization
from spectral_irt.chain.stationary import Rounds
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import OptionError

THRESHOLDS = [[-0.5, 0.7], [0.2], [-1.0, -0.2, 1.1], [0.0, 0.4], [-0.3, 0.6, 0.2]]
FLAT = np.concatenate(THRESHOLDS)


def random_table(n=40, m=7, p=0.6):
    rng = np.random.default_rng(0)
    table = (rng.random((n, m)) < 0.5).astype(float)
    table[rng.random((n, m)) > p] = np.nan
    return table


def ordered_table():
    rng = np.random.default_rng(3)
    X = draw(rng, rng.normal(size=150), THRESHOLDS, missing=0.2)
    X[0], X[1], X[2], X[3] = np.nan, [2, 1, 3, 2, 3], [0, np.nan, 0, 0, 0], [1, *[np.nan] * 4]
    return X


ORDERED = ordered_table()
RESPONSES = Responses.from_wide(ORDERED, ordered=True)


def solved(responses, name, kind="none", alpha=0.0):
    plan, start = Regularization(kind, "as asked", alpha), np.ones(responses.thresholds.n_entries)
    rounds = Rounds(responses, name, plan, start, tol=1e-12, max_passes=1000, tell=lambda text: None)
    rounds.solve()
    return rounds


def rates_by_definition(table, name, beta, chain):
    """Of ordered answers given the weights of people, which are tested below."""
    if table is not ORDERED:
        return dense_pairs(table, pair_weight(table, name, beta))[0]
    part = chain.parts.parts[0]

    def factor(person, i, k):
        return 1 / (1 + np.exp(THRESHOLDS[i][k - 1]) * part.inverse_t[person]) if name == "ability" else 1.0

    return dense_rates(table, RESPONSES.thresholds.max_score, weight=lambda person: part.weight[person], factor=factor)


@pytest.mark.parametrize("name", WEIGHTINGS)
@pytest.mark.parametrize("table", [random_table(), AWKWARD, ORDERED], ids=["random", "awkward", "ordered"])
def test_rates_and_flows_equal_the_explicit_sums(table, name):
    ordered = table is ORDERED
    beta = FLAT if ordered else np.linspace(-1, 1.5, table.shape[1])
    chain = ItemChain.under(Responses.from_wide(table, ordered=ordered), operator.weighting_named(name), beta)
    Y = rates_by_definition(table, name, beta, chain)
    v = np.random.default_rng(1).random((len(beta), 3))
    for ours, theirs in (
        (chain.matrix(), Y),
        (chain.rates, Y.sum(axis=1)),
        (chain.inflow(v), Y.T @ v),
        (chain.inflow(v[:, 0]), Y.T @ v[:, 0]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_ability_chain_rebuilt_in_old_memory_is_the_same():
    responses = Responses.from_wide(random_table(n=200))
    beta = np.linspace(-1, 1, 7)
    fresh, old = (ItemChain.under(responses, ABILITY, at) for at in (beta, -beta))
    assert np.array_equal(fresh.rates, ItemChain.under(responses, ABILITY, beta, old).rates)


def test_tied_chain_adds_one_state():
    table, tie = random_table(), np.linspace(0.1, 0.7, 7)
    full = np.zeros((8, 8))
    full[:7, :7] = dense_pairs(table, pair_weight(table, "persons", np.zeros(7)))[0]
    full[7, :7] = full[:7, 7] = tie
    tied = TiedChain(ItemChain.under(Responses.from_wide(table), PERSONS), tie)
    v = np.random.default_rng(0).random((8, 2))
    np.testing.assert_allclose(tied.rates, full.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(tied.inflow(v), full.T @ v, rtol=1e-12)
    np.testing.assert_allclose(tied.inflow(v[:, 1]), full.T @ v[:, 1], rtol=1e-12)


def test_weights_of_people_are_one_over_answers_and_abilities_depend_on_items_and_total_score_alone():
    weight = ItemChain.under(RESPONSES, PERSONS, FLAT).parts.parts[0].weight
    n = (~np.isnan(ORDERED)).sum(axis=1)
    assert weight[:4].tolist() == [0, 0, 0, 0]  # no answers, all at the top, all at the bottom, a single item
    np.testing.assert_allclose(weight[weight > 0], 1 / n[weight > 0])
    theta, variance = operator.prox_ability(RESPONSES.blocks[0], FLAT, RESPONSES.thresholds)
    seen = {}
    for row, *found in zip(ORDERED, theta, variance, strict=True):
        key = (tuple(np.isnan(row)), np.nansum(row))
        np.testing.assert_allclose(seen.setdefault(key, found), found, rtol=1e-12)


def contributions(chain, beta):
    failed, passed = errors.contributions(chain.parts.parts[0], np.exp(beta), chain.thresholds)
    return failed + passed


def test_contributions_add_to_the_balance():
    chain, pi = ItemChain.under(RESPONSES, ABILITY, FLAT), np.exp(FLAT)
    g = contributions(chain, FLAT)
    np.testing.assert_allclose(g.sum(axis=0), chain.inflow(pi) - pi * chain.rates, atol=1e-12)
    np.testing.assert_allclose(g.sum(axis=1), 0, atol=1e-12)  # every pair is antisymmetric


def test_the_estimate_is_unbiased_given_the_score():
    """Every person's expected contribution, over all patterns of a total score, is zero at the truth: any weights."""
    thresholds = THRESHOLDS[:4]
    beta, K = np.concatenate(thresholds), np.array([len(own) for own in thresholds])
    for score in range(1, int(K.sum())):
        X, p = conditional(thresholds, score)
        used = np.vstack([X, np.zeros(4), K, np.ones((4, 4)), [2, 1, 2, 2]])  # every category, by rows that leave again
        answers = Responses.from_wide(used, ordered=True).take_persons(np.arange(len(X)))
        for name in ("persons", "ability"):
            g = contributions(ItemChain.under(answers, operator.weighting_named(name), beta), beta).toarray()
            np.testing.assert_allclose(p @ g, 0, atol=1e-13)


@pytest.mark.parametrize("name", ["pairs", "persons"])
def test_the_solution_is_the_stationary_distribution(name):
    rounds = solved(RESPONSES, name)
    log_pi = np.log(gth(rates_by_definition(ORDERED, name, FLAT, rounds.data)))
    np.testing.assert_allclose(rounds.beta, log_pi - log_pi.mean(), atol=1e-9)


@pytest.mark.parametrize("name", WEIGHTINGS)
@pytest.mark.parametrize("plan", [("none", 0.0), ("virtual item", 1.5)])
def test_with_several_thresholds_or_one_the_same_passes(name, plan):
    data = simulate.rasch(400, 30, design="sampled", p=0.6, seed=4).responses
    several = Thresholds(np.ones(30, dtype=np.int64))
    vars(several)["binary"] = False
    other = replace(data, thresholds=several)
    one, two = (solved(responses, name, *plan) for responses in (data, other))
    np.testing.assert_allclose(two.beta, one.beta, atol=1e-10)
    for way in (covariance, one_pass):
        for mine, theirs in zip(way(two.balance()), way(one.balance()), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-10)
    np.testing.assert_allclose(Neighbors(other).dense(), Neighbors(data).dense(), atol=1e-12)


@pytest.mark.parametrize("estimator", [SpectralRasch, PairwiseRasch])
def test_users_is_another_name_of_persons(estimator):
    data = simulate.rasch(300, 8, seed=1).responses
    one, other = (estimator(weighting=name).fit(data) for name in ("persons", "users"))
    assert np.array_equal(one.difficulty_, other.difficulty_)
    assert np.array_equal(one.se_, other.se_)
    assert other.get_params()["weighting"] == "users"  # parameters stay as they were given


@pytest.mark.parametrize("name", ["votes", "", None, 3, ["pairs"]])
def test_an_unknown_weighting_is_an_error_that_lists_the_table(name):
    with pytest.raises(OptionError, match=r"it can be 'ability', 'persons', 'pairs'\."):
        operator.weighting_named(name)


@pytest.mark.parametrize("weighting", WEIGHTINGS.values(), ids=WEIGHTINGS)
def test_slope_and_tie_are_of_one_pull_and_flow_is_information_where_the_entry_says_so(weighting):
    """The tie's flow h (pi - 1) at beta is an odd function of beta, and `slope` is its derivative.

    Under the truth the flow through each item may be its information: the variance of what persons contribute.
    """
    beta = np.linspace(-3, 3, 13)

    def pull(beta):
        return weighting.tie(np.exp(beta)) * (np.exp(beta) - 1)

    np.testing.assert_allclose(pull(-beta), -pull(beta), atol=1e-12)
    np.testing.assert_allclose((pull(beta + 1e-5) - pull(beta - 1e-5)) / 2e-5, weighting.slope(beta), rtol=1e-6)
    data = simulate.rasch(20_000, 10, seed=3)
    flow = np.exp(data.difficulty) * ItemChain.under(data.responses, weighting, data.difficulty).rates
    p = 1 / (1 + np.exp(data.difficulty - data.ability[:, None]))
    v = p * (1 - p)
    information = (v - v**2 / v.sum(axis=1, keepdims=True)).sum(axis=0)
    assert np.allclose(flow / information, 1, atol=0.15) == weighting.moving
