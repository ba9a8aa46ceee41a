"""The chain on thresholds against its definition, and against the binary chain."""

import numpy as np
import pytest

from dense import gth
from dense_ordered import dense_rates, draw
from spectral_irt.chain import operator
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.regularization import Regularization
from spectral_irt.chain.stationary import Rounds
from spectral_irt.chain.weights import ABILITY, PERSONS, prox_ability, weighting_named
from spectral_irt.data import Responses

THRESHOLDS = [[-0.5, 0.7], [0.2], [-1.0, -0.2, 1.1], [0.0, 0.4], [-0.3, 0.6, 0.2]]
NONE = Regularization("none", "as asked")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = draw(rng, rng.normal(size=150), THRESHOLDS, missing=0.2)
    X[0], X[1], X[2], X[3] = np.nan, [2, 1, 3, 2, 3], [0, np.nan, 0, 0, 0], [1, *[np.nan] * 4]
    return X


@pytest.fixture(scope="module")
def responses(table):
    return Responses.from_wide(table, ordered=True)


def flat():
    return np.concatenate(THRESHOLDS)


@pytest.mark.parametrize("name", ["pairs", "persons", "ability"])
def test_the_rates_are_those_of_the_definition(table, responses, name):
    beta, K = flat(), responses.thresholds.max_score
    chain = ItemChain.under(responses, weighting_named(name), beta)
    part = chain.parts.parts[0]

    def factor(person, i, k):
        if name != "ability":
            return 1.0
        return 1 / (1 + np.exp(THRESHOLDS[i][k - 1]) * part.inverse_t[person])

    Y = dense_rates(table, K, weight=lambda person: part.weight[person], factor=factor)
    np.testing.assert_allclose(chain.matrix(), Y, atol=1e-12)
    np.testing.assert_allclose(chain.rates, Y.sum(axis=1), atol=1e-12)
    v = np.random.default_rng(0).random((len(beta), 2))
    np.testing.assert_allclose(chain.inflow(v), Y.T @ v, atol=1e-12)
    np.testing.assert_allclose(chain.inflow(v[:, 0]), Y.T @ v[:, 0], atol=1e-12)
    np.testing.assert_allclose(chain.outflow(v), Y @ v, atol=1e-12)


def test_weights_of_persons_are_one_over_answers_not_entries(table, responses):
    chain = ItemChain.under(responses, PERSONS, flat())
    n = (~np.isnan(table)).sum(axis=1)
    weight = chain.parts.parts[0].weight
    assert weight[:4].tolist() == [0, 0, 0, 0]  # no answers, all at the top, all at the bottom, a single item
    np.testing.assert_allclose(weight[4:][weight[4:] > 0], (1 / n[4:])[weight[4:] > 0])


def test_ability_depends_on_items_and_total_score_alone(table, responses):
    block, thresholds = responses.blocks[0], responses.thresholds
    theta, variance = prox_ability(block, flat(), thresholds)
    seen = {}
    for person, row in enumerate(table):
        key = (tuple(np.isnan(row)), np.nansum(row))
        found = (theta[person], variance[person])
        np.testing.assert_allclose(seen.setdefault(key, found), found, rtol=1e-12)


def test_contributions_add_to_the_balance(table, responses):
    beta = flat()
    chain = ItemChain.under(responses, ABILITY, beta)
    g = contributions(chain, beta)
    pi = np.exp(beta)
    np.testing.assert_allclose(g.sum(axis=0), chain.inflow(pi) - pi * chain.rates, atol=1e-12)
    np.testing.assert_allclose(g.sum(axis=1), 0, atol=1e-12)  # every pair is antisymmetric


@pytest.mark.parametrize("name", ["pairs", "persons"])
def test_the_solution_is_the_stationary_distribution(table, responses, name):
    rounds = solve(responses, name)
    part = rounds.data.parts.parts[0]
    pi = gth(dense_rates(table, responses.thresholds.max_score, weight=lambda person: part.weight[person]))
    expected = np.log(pi) - np.log(pi).mean()
    np.testing.assert_allclose(rounds.beta, expected, atol=1e-9)


def contributions(chain, beta):
    failed, passed = operator.contributions(chain.parts.parts[0], np.exp(beta), chain.thresholds)
    return failed + passed


def solve(responses, name):
    options = {"tol": 1e-12, "max_passes": 1000, "tell": lambda text: None}
    rounds = Rounds(responses, name, NONE, np.ones(responses.thresholds.n_entries), **options)
    rounds.solve()
    return rounds


def test_the_estimate_is_unbiased_given_the_score():
    """Every person's expected contribution, over all patterns of a total score, is zero at the truth: any weights."""
    from dense_ordered import conditional

    thresholds = THRESHOLDS[:4]
    beta = np.concatenate(thresholds)
    K = np.array([len(own) for own in thresholds])
    for score in range(1, int(K.sum())):
        X, p = conditional(thresholds, score)
        answers = Responses.from_wide(
            np.vstack([X, np.zeros(4), K, np.eye(4) * 0 + 1, [2, 1, 2, 2]]), ordered=True
        )  # the last rows only so that every category is used
        answers = answers.take_persons(np.arange(len(X)))
        for name in ("persons", "ability"):
            chain = ItemChain.under(answers, weighting_named(name), beta)
            g = contributions(chain, beta).toarray()
            np.testing.assert_allclose(p @ g, 0, atol=1e-13)
