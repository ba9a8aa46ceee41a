"""Prediction of unseen people against scikit-learn's AUC and quadrature by brute force."""

import numpy as np
import pytest

from spectral_irt import ConditionalPartialCredit, ConditionalRatingScale, Responses, SpectralRasch, simulate
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.inference.prediction import TEN_PRIORS, compare, evaluate, marginal_categories, split_persons
from spectral_irt.model import category_probabilities


def test_marginal_probability_equals_a_fine_sum():
    beta = np.array([-3.0, 0.0, 0.4, 6.0])
    grid = np.linspace(-12, 12, 20_001)
    for mu, sd in TEN_PRIORS:
        density = np.exp(-0.5 * grid**2)
        brute = (1 / (1 + np.exp(beta[:, None] - mu - sd * grid))) @ density / density.sum()
        np.testing.assert_allclose(marginal_categories(Thresholds.ones(4), beta, mu, sd)[:, 1], brute, atol=1e-6)


@pytest.mark.slow
def test_evaluate_equals_scikit_learn_on_every_response():
    from sklearn.metrics import log_loss, roc_auc_score

    data = simulate.rasch(600, 12, design="sampled", p=0.5, ability_mean=1.0, seed=2)
    fit_on, validation, test = split_persons(data.responses, [0.6, 0.2, 0.2], seed=3)
    beta = SpectralRasch(se="none").fit(fit_on).difficulty_
    found = evaluate(beta, validation, test)
    table = test.to_dense()
    seen = ~np.isnan(table)
    p = np.broadcast_to(marginal_categories(test.thresholds, beta, *found.prior)[:, 1], table.shape)[seen]
    assert found.auc == pytest.approx(roc_auc_score(table[seen], p), abs=1e-12)
    assert found.loglik == pytest.approx(-log_loss(table[seen], p), abs=1e-12)
    assert found.n_responses == seen.sum()
    assert found.prior[0] == 1.0  # the mean ability, among the candidates


def test_split_users():
    data = simulate.rasch(103, 6, seed=1).responses
    parts = split_persons(data, [0.72, 0.08, 0.2], seed=5)
    assert sum(part.n_persons for part in parts) == 103
    assert len(set(np.concatenate([part.persons for part in parts]))) == 103
    again = split_persons(data, [0.72, 0.08, 0.2], seed=5)
    assert all(np.array_equal(a.persons, b.persons) for a, b in zip(parts, again, strict=True))
    with pytest.raises(OptionError, match="add to 1"):
        split_persons(data, [0.5, 0.2], seed=1)


def test_items_without_difficulty_are_predicted_at_the_average():
    responses = Responses.from_wide([[1, 0, 1], [0, 1, 0], [1, 1, 0]])
    found = evaluate(np.array([0.5, -0.5, np.nan]), responses, responses)
    other = evaluate(np.array([0.5, -0.5, 0.0]), responses, responses)
    assert found == other
    assert found.n_responses == 9  # answers to the item without a difficulty are predicted, too, and counted


def test_compare_goes_on_when_a_method_fails():
    class Broken(SpectralRasch):
        def _estimate(self, *args, **design):
            raise OptionError("nothing to be done.\nsorry")

    data = simulate.rasch(300, 8, seed=1).responses
    rows = compare(data, {"good": SpectralRasch, "broken": Broken, "cml": SpectralRasch}, seed=1)
    assert [row.method for row in rows] == ["good", "broken", "cml"]
    assert rows[1].problem == "nothing to be done. sorry"
    assert np.isnan(rows[1].auc)
    assert rows[0].distance_to_cml == 0
    assert 0.5 < rows[0].auc < 1
    assert set(rows[0].to_dict()) >= {"auc", "loglik", "seconds"}
    assert "peak_mb" not in rows[0].to_dict()  # the operating system's business, and another on each
    with pytest.raises(OptionError, match="between 0 and 1"):
        compare(data, {}, holdout=1.5)


@pytest.mark.slow
def test_held_out_answers_are_predicted():
    """By hand for one prior; and the true model predicts better than one that ties its thresholds."""
    data = simulate.partial_credit(900, thresholds=[[-1.5, 1.5], [0.8, -0.8], [-0.2, 0.2], [1.0, -1.0]], seed=4)
    nodes = np.linspace(-6, 6, 2001)
    weight = np.exp(-(nodes**2) / 2)
    p = category_probabilities(nodes, np.tile([0, -1.5, 0], (2001, 1)))
    found = marginal_categories(data.responses.thresholds, data.thresholds, 0.0, 1.0)[0]
    np.testing.assert_allclose(found, weight @ p / weight.sum(), atol=1e-6)
    methods = {"pcm-cml": ConditionalPartialCredit, "rsm-cml": ConditionalRatingScale}
    rows = compare(data.responses, methods, seed=1)
    assert rows[0].loglik > rows[1].loglik + 0.01
    assert rows[0].distance_to_cml == 0
    assert rows[1].distance_to_cml > 0.3
