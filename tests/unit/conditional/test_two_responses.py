"""Persons with two responses each: the closed form beside the general likelihood, and beside enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.two_responses import TwoResponses
from spectral_irt.data import Responses
from spectral_irt.data.block import Thresholds


def two_responses(highest, n_persons=300, seed=3):
    """Persons with two responses each, extreme scores among them."""
    rng = np.random.default_rng(seed)
    highest = np.array(highest)
    items = np.array([rng.choice(len(highest), 2, replace=False) for _ in range(n_persons)]).ravel()
    category = rng.integers(0, highest[items] + 1)
    persons = np.repeat(np.arange(n_persons), 2)
    layout = Thresholds(highest)
    responses = Responses.from_codes(
        persons, items, category, persons=np.arange(n_persons), items=np.arange(len(highest)), thresholds=layout
    )
    return responses, rng.normal(size=layout.n_entries), rng


@pytest.mark.parametrize("highest", [(1, 1, 1, 1), (2, 2, 2, 2, 2), (1, 3, 2, 1)])
def test_closed_form_beside_the_general_likelihood(highest):
    responses, beta, rng = two_responses(highest)
    general = ExactLikelihood(responses)
    closed = TwoResponses(responses)
    point = closed.at(beta)
    assert point.loglik == pytest.approx(general.at(beta).loglik, rel=1e-12)
    assert point.gradient == pytest.approx(general.at(beta).gradient, abs=1e-10)
    information = general.information(beta)
    assert closed.information(beta) == pytest.approx(information, abs=1e-9)
    assert point.information == pytest.approx(np.diag(information), abs=1e-9)
    v = rng.normal(size=(len(beta), 2))
    assert point @ v == pytest.approx(information @ v, abs=1e-9)
    # A design with columns that few rows move, and one that all move.
    design = np.eye(len(beta))[:, ::2]
    design = sparse.csr_array(np.column_stack([design, rng.normal(size=len(beta))]))
    assert point.of_parameters(design).toarray() == pytest.approx(design.T @ information @ design, abs=1e-9)
    assert point.information_on(design) == pytest.approx(np.diag(design.T @ information @ design), abs=1e-9)
    assert point.score_gram() == pytest.approx(general.at(beta).score_gram(), abs=1e-9)


def test_blocks_of_the_items_are_those_of_the_information():
    responses, beta, _ = two_responses((1, 3, 2))
    closed = TwoResponses(responses)
    layout = responses.thresholds
    information = closed.information(beta)
    for item, highest in enumerate(layout.max_score.tolist()):
        places = layout.first[item] + np.arange(highest)
        block = closed.at(beta).own[item][:highest, :highest]
        assert block == pytest.approx(information[np.ix_(places, places)], abs=1e-9)


def test_likelihood_by_enumeration():
    layout = Thresholds(np.array([2, 3]))
    beta = np.array([0.3, -0.8, 1.1, 0.2, -0.4])
    below = np.array([[0, 0.3, -0.5, 0], [0, 1.1, 1.3, 0.9]])  # sums of thresholds passed
    for first, second in product(range(3), range(4)):
        category = np.array([first, second])
        responses = Responses.from_codes(
            np.zeros(2, dtype=int), np.arange(2), category, persons=[0], items=np.arange(2), thresholds=layout
        )
        ways = [(c, d) for c, d in product(range(3), range(4)) if c + d == first + second]
        total = sum(np.exp(-below[0, c] - below[1, d]) for c, d in ways)
        expected = -below[0, first] - below[1, second] - np.log(total)
        assert TwoResponses(responses).at(beta).loglik == pytest.approx(expected, abs=1e-12)
