"""The pieces of accuracy and consistency: shares of cells, sums of codes, people without a form, one by one."""

import numpy as np
import pytest
from scipy.stats import norm

from drawn import drawn
from spectral_irt import Responses, simulate
from spectral_irt.data.code_sums import CodeSums
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores.cut_scores import (
    _distribution,
    _inverse_information,
    _on_no_form,
    _scores_of_sums,
    _true_class,
)
from spectral_irt.model import sigmoid
from spectral_irt.persons import abilities
from spectral_irt.persons.test_form import Form


def test_a_cell_that_a_cut_divides_belongs_to_both_classes():
    theta = np.array([-1.0, 0.0, 1.0, 2.0])
    found = _true_class(theta, np.array([-0.3, 0.2, 1.5]))
    expected = np.zeros((4, 4))
    for row, at in zip(expected, theta, strict=True):
        ends = np.array([-np.inf, -0.3, 0.2, 1.5, np.inf])
        for k in range(4):
            row[k] = max(min(at + 0.5, ends[k + 1]) - max(at - 0.5, ends[k]), 0)
    np.testing.assert_allclose(found, expected)


def test_the_score_of_a_sum_of_codes_or_why_there_is_none():
    sums = CodeSums(np.array([2, 3, 4, 5, 8]), np.array([2, 3, 6, 7, 8]))
    np.testing.assert_array_equal(_scores_of_sums(np.array([3.0, 4.0, 7.0, 8.0]), sums), [1, 2, 3, 4])
    for cut, words in (
        (5.0, "several scores"),
        (2.0, "none from 3 to 8"),
        (9.0, "none from 3 to 8"),
        (3.5, "none from 3 to 8"),
    ):
        with pytest.raises(OptionError, match=words):
            _scores_of_sums(np.array([cut]), sums)
    with pytest.raises(OptionError, match="not known"):
        _scores_of_sums(np.array([3.0]), None)


def test_the_population_of_a_form_of_few_people_is_the_mean_of_their_posteriors():
    beta = np.linspace(-1, 1, 4)
    theta = np.linspace(-4, 4, 81)
    chances = Form.of(beta).chances(theta)
    counts = np.array([1.0, 0.0, 3.5, 2.0, 0.5])
    found = _distribution(theta, chances, counts, (0.4, 1.2), False)
    expected = np.zeros(81)
    for score, n in enumerate(counts):
        joint = norm.pdf(theta, 0.4, 1.2) * chances[:, score]
        expected += n * joint / joint.sum()
    np.testing.assert_allclose(found, expected / counts.sum())


def score_moments(at, beta):
    """Mean, variance and third central moment of the score on these right or wrong items."""
    p = sigmoid(at - beta)
    return p.sum(), (p * (1 - p)).sum(), (p * (1 - p) * (1 - 2 * p)).sum()


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_people_without_a_form_one_by_one(method):
    """A normal posterior; scores of another test normal given the ability, but for being whole."""
    rng = np.random.default_rng(3)
    beta, prior, cuts = np.linspace(-1.5, 1.5, 9), (0.2, 1.1), np.array([-0.4, 0.7])
    X = drawn(rng, rng.normal(*prior, (25, 1)) - beta)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[4] = np.where(np.isnan(X[4]), np.nan, 1)
    responses = Responses.from_wide(X)
    weights = rng.uniform(0.5, 2, 25)
    given = {"prior_mean": prior[0], "prior_sd": prior[1]} if method == "eap" else {}
    found = abilities(responses, beta, method, **given)
    people = np.flatnonzero(found.n > 0)
    eap = abilities(responses, beta, "eap", prior_mean=prior[0], prior_sd=prior[1])
    ways = [cuts[:1], cuts[1:], cuts]
    result = _on_no_form(Form.of(beta), responses, ways, found, people, prior, weights)
    for way, row in zip(ways, result, strict=True):
        shares = []
        for person in people:
            own = beta[~np.isnan(X[person])]
            k = int(np.sum(found.ability[person] >= way))
            ends = [-np.inf, *way, np.inf]
            mean, sd = eap.ability[person], eap.se[person]
            low, high = norm.cdf((np.array(ends[k : k + 2]) - mean) / sd)
            scores = [-np.inf]
            for cut in way:
                expected, variance, third = score_moments(cut, own)
                if method == "wle":
                    expected -= third / (2 * variance)
                if method == "eap":
                    expected += (cut - prior[0]) / prior[1] ** 2
                scores.append(np.ceil(expected - 1e-6))
            scores.append(np.inf)

            theta = np.linspace(mean - 6 * sd, mean + 6 * sd, 121)
            chance = sigmoid(theta[:, None] - own)
            spread = np.sqrt((chance * (1 - chance)).sum(axis=1))
            inside, above = (norm.sf((end - 0.5 - chance.sum(axis=1)) / spread) for end in scores[k : k + 2])
            same = np.sum(norm.pdf(theta, mean, sd) * (inside - above)) * sd / 10
            shares.append([high - low, same, low, 1 - high])
        np.testing.assert_allclose(row, np.average(shares, axis=0, weights=weights[people]), atol=2e-3)


def test_errors_at_a_cut_are_root_mean_squares_over_people_with_different_items():
    data = simulate.partial_credit(40, 6, categories=3, design="sampled", p=0.6, seed=2)
    layout = data.responses.thresholds
    cuts = np.array([-0.5, 1.0])
    total, people = data.responses.entries.sum(_inverse_information, data.thresholds, layout, cuts)
    expected, n = np.zeros(2), 0
    for row in data.responses.to_dense():
        answered = np.flatnonzero(~np.isnan(row))
        if not len(answered):
            continue
        n += 1
        for place, cut in enumerate(cuts):
            information = 0.0
            for item in answered:
                own = data.thresholds[layout.item == item]
                weight = np.exp([k * cut - own[:k].sum() for k in range(3)])
                p = weight / weight.sum()
                information += p @ np.arange(3) ** 2 - (p @ np.arange(3)) ** 2
            expected[place] += 1 / information
    assert people == n
    np.testing.assert_allclose(total, expected)
