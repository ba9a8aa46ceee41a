"""The estimators of ordered answers: identities, reference by enumeration, accuracy by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from dense_ordered import conditional_loglik, draw
from spectral_irt import SpectralRasch, simulate
from spectral_irt.conditional.likelihood import ExactLikelihood
from spectral_irt.data import Responses
from spectral_irt.errors import DesignError, DisconnectedDesignError, OptionError
from spectral_irt.estimators.conditional import ConditionalPartialCredit, conditional_thresholds
from spectral_irt.estimators.marginal import MarginalPartialCredit
from spectral_irt.estimators.rating_scale import ConditionalRatingScale, SpectralRatingScale
from spectral_irt.estimators.spectral import SpectralPartialCredit

pytestmark = pytest.mark.slow  # many short runs of whole jobs

ESTIMATORS = {
    "spectral": SpectralPartialCredit(regularization=0),
    "chain": SpectralPartialCredit(regularization=0, refine=False),
    "spectral persons": SpectralPartialCredit(weighting="persons", regularization=0),
    "conditional": ConditionalPartialCredit(),
    "marginal": MarginalPartialCredit(),
    "scale": SpectralRatingScale(),
    "conditional scale": ConditionalRatingScale(),
}


@pytest.fixture(scope="module")
def data():
    return simulate.rating_scale(600, 6, categories=4, seed=5)


# ------------------------------------------------------------------------------------- contract


@pytest.mark.parametrize("name", ESTIMATORS)
def test_accuracy(name, data):
    """Within four standard errors everywhere, and by chi-square on average."""
    fit = ESTIMATORS[name].fit(data.responses)
    away = fit.thresholds_ - data.thresholds
    z = away / fit.threshold_se_
    assert np.max(np.abs(z)) < 4
    assert 0.3 < np.mean(z**2) < 2.2
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance())), fit.threshold_se_, rtol=1e-10)
    average = np.kron(np.eye(6), np.full(3, 1 / 3))
    np.testing.assert_allclose(np.sqrt(np.diag(average @ fit.covariance() @ average.T)), fit.se_, rtol=1e-8)


# -------------------------------------------------------------------------------- right and wrong


@pytest.mark.parametrize("weighting", ["ability", "persons", "pairs"])
@pytest.mark.parametrize("regularization", [0, "auto", 2.0])
@pytest.mark.parametrize("shape", [(500, 12), (400, 50)])
def test_right_and_wrong_answers_give_the_binary_estimate(weighting, regularization, shape):
    data = simulate.rasch(*shape, design="sampled", p=0.7, seed=2).responses
    theirs = SpectralRasch(weighting=weighting, regularization=regularization, refine=False).fit(data)
    ours = SpectralPartialCredit(weighting=weighting, regularization=regularization, refine=False).fit(data)
    shift = theirs.difficulty_.mean()
    np.testing.assert_allclose(ours.difficulty_, theirs.difficulty_ - shift, atol=1e-10)
    np.testing.assert_allclose(ours.se_, theirs.se_, atol=1e-10)
    assert abs(ours.regularization_.alpha - theirs.regularization_.alpha) < 1e-9


# ------------------------------------------------------------------------------------ likelihoods

SMALL = [[-0.5, 0.7], [0.2], [-0.4, 0.1, 0.9], [0.0, 0.4]]


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    return draw(rng, rng.normal(size=80), SMALL, missing=0.25)


def test_the_conditional_likelihood_is_that_of_the_definition(small):
    answers = Responses.from_wide(small, ordered=True)
    likelihood = ExactLikelihood(answers)
    beta = np.concatenate(SMALL)

    def loglik(x):
        cuts = np.cumsum(answers.thresholds.max_score)[:-1]
        return conditional_loglik(small, [own.tolist() for own in np.split(x, cuts)])

    here = likelihood.at(beta)
    assert abs(here.loglik - loglik(beta)) < 1e-9
    numeric = optimize.approx_fprime(beta, loglik, 1e-6)
    np.testing.assert_allclose(here.gradient, numeric, atol=1e-4)
    exact = likelihood.information(beta, exact=True)
    steps = np.eye(len(beta)) * 1e-5
    slope = [(likelihood.at(beta - d).gradient - likelihood.at(beta + d).gradient) / 2e-5 for d in steps]
    np.testing.assert_allclose(exact, np.array(slope), atol=1e-6)
    matched = likelihood.information(beta, exact=False)
    assert np.abs(matched - exact).max() < 0.35 * np.diag(exact).max()  # near enough to climb by
    np.testing.assert_allclose(matched.sum(axis=0), 0, atol=1e-9)


def test_the_conditional_estimate_does_not_depend_on_the_information(small, monkeypatch):
    answers = Responses.from_wide(small, ordered=True)
    exact = conditional_thresholds(answers)
    monkeypatch.setattr("spectral_irt.conditional.likelihood.EXACT_WORK", 0)
    matched = conditional_thresholds(answers)
    assert matched.se_method == "matched information"
    np.testing.assert_allclose(matched.thresholds, exact.thresholds, atol=1e-8)


# ------------------------------------------------------------------------------------- the spectral one


@pytest.mark.parametrize("refine", [True, False])
def test_standard_errors_without_the_matrix(refine):
    data = simulate.partial_credit(1500, 60, categories=3, design="sampled", p=0.4, seed=1).responses
    dense, one, many = (
        SpectralPartialCredit(se=se, regularization=0, refine=refine).fit(data)
        for se in ("dense", "one-pass", "multiplier" if refine else "one-pass")
    )
    assert dense.contraction_ < 0.3
    for name in ("threshold_se_", "se_"):
        ratio = getattr(one, name) / getattr(dense, name)
        assert abs(np.median(ratio) - 1) < 0.04
        assert np.all(np.abs(ratio - 1) < 0.12)
        ratio = getattr(many, name) / getattr(dense, name)
        assert abs(np.median(ratio) - 1) < (0.02 if refine else 0.04)
        assert np.all(np.abs(ratio - 1) < (0.1 if refine else 0.12))


def test_thin_thresholds_get_a_prior_and_it_is_said():
    data = simulate.partial_credit(80, 8, categories=4, seed=3)
    fit = SpectralPartialCredit().fit(data.responses)
    assert fit.regularization_.kind == "neighbors"
    assert fit.regularization_.estimated
    assert any(f.code == "regularization" and "thresholds with few answers" in f.sentence for f in fit.findings_)
    loose = SpectralPartialCredit(regularization=0).fit(data.responses)
    rmse = [np.sqrt(np.nanmean((f.thresholds_ - data.thresholds) ** 2)) for f in (fit, loose)]
    assert rmse[0] < rmse[1]


def test_extreme_items_and_empty_categories():
    table = simulate.partial_credit(300, 5, categories=3, seed=3).responses.to_dense()
    table = np.column_stack([table, np.zeros(300), np.full(300, 2.0), np.full(300, np.nan)])
    fit = SpectralPartialCredit().fit(table)
    assert fit.status_.tolist()[5:] == ["all wrong", "all right", "no responses"]
    assert fit.difficulty_[5] > fit.difficulty_[:5].max()
    assert fit.difficulty_[6] < fit.difficulty_[:5].min()
    assert np.isnan(fit.difficulty_[7])
    assert {"extreme_items", "no_responses"} <= {f.code for f in fit.findings_}
    without = SpectralPartialCredit(regularization=0).fit(table)
    assert np.isnan(without.difficulty_[5:]).all()
    assert np.isfinite(without.difficulty_[:5]).all()
    assert any(f.code == "items_left_out" and len(f.items) == 3 for f in without.findings_)
    kept = SpectralPartialCredit(unused="keep").fit(np.column_stack([table[:, :5], np.minimum(table[:, 0], 1)]))
    assert kept.status_[5] == "empty category"
    assert np.isfinite(kept.thresholds_).all()


def test_groups_without_a_link():
    table = np.full((400, 6), np.nan)
    table[:200, :3] = simulate.partial_credit(200, 3, categories=3, seed=3).responses.to_dense()
    table[200:, 3:] = simulate.partial_credit(200, 3, categories=3, seed=4).responses.to_dense()
    with pytest.raises(DisconnectedDesignError, match="2 groups"):
        ConditionalPartialCredit().fit(table)
    fit = SpectralPartialCredit().fit(table)
    assert any(f.code == "disconnected" for f in fit.findings_)
    assert sorted(set(fit.status_)) == ["ok", "unlinked"]


def test_moves_inside_an_item_do_not_connect():
    """Two items; nobody passed a threshold of one while standing below the top of the other, but for its own."""
    table = np.array([[1, 0], [1, 0], [2, 0], [0, 0], [2, 1]])
    with pytest.raises((DisconnectedDesignError, DesignError)):
        SpectralPartialCredit(regularization=0).fit(table)


def test_thresholds_out_of_order_are_said():
    data = simulate.partial_credit(3000, thresholds=[[1.0, -1.0], [-0.5, 0.5], [-1.0, 1.0], [0.0, 0.3]], seed=1)
    (found,) = [f for f in SpectralPartialCredit().fit(data.responses).findings_ if f.code == "thresholds_out_of_order"]
    assert found.severity == "warning"
    assert 0 in found.items
    assert "more than chance (0)" in found.sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weighting": "best"}, "weighting"),
        ({"se": "big"}, "se"),
        ({"regularization": -1.0}, "regularization"),
        ({"tol": 2.0}, "tol"),
        ({"unused": "drop"}, "unused"),
    ],
)
def test_options(options, words):
    with pytest.raises(OptionError, match=words):
        SpectralPartialCredit(**options).fit([[0, 1, 2], [2, 1, 0], [1, 2, 1]])


# ---------------------------------------------------------------------------------------- rating scales


def test_groups_of_items_with_a_scale_of_their_own():
    rng = np.random.default_rng(0)
    scales = {"a": [-1.0, 0.0, 1.0], "b": [-0.3, 0.3]}
    thresholds = [np.array(scales["a"]) + d for d in (-0.5, 0.0, 0.6)] + [
        np.array(scales["b"]) + d for d in (-0.4, 0.3)
    ]
    data = simulate.partial_credit(4000, thresholds=thresholds, ability=rng.normal(size=4000), seed=1)
    groups = ["a", "a", "a", "b", "b"]
    for estimator in (SpectralRatingScale(groups=groups), ConditionalRatingScale(groups=groups)):
        fit = estimator.fit(data.responses)
        offsets = fit.offsets_
        assert offsets["group"].tolist() == ["a", "a", "a", "b", "b"]
        assert offsets["category"].tolist() == [1, 2, 3, 1, 2]
        expected = np.concatenate([scales["a"], scales["b"]])
        assert np.all(np.abs(offsets["offset"] - expected) < 4 * offsets["se"])
        assert np.all(offsets["se"] < 0.1)
        from_table = estimator.fit(data.responses.to_dense())
        np.testing.assert_allclose(from_table.thresholds_, fit.thresholds_, atol=1e-6)
    with pytest.raises(OptionError, match="same categories"):
        SpectralRatingScale().fit(data.responses)
    with pytest.raises(OptionError, match="5 items"):
        SpectralRatingScale(groups=["a"]).fit(data.responses)


def test_a_category_that_one_item_never_saw():
    data = simulate.rating_scale(500, 6, categories=4, seed=7)
    table = data.responses.to_dense()
    table[table[:, 5] == 3, 5] = np.nan
    for estimator in (SpectralRatingScale(), ConditionalRatingScale()):
        fit = estimator.fit(table)
        assert fit.n_thresholds_.tolist() == [3] * 6
        assert np.isfinite(fit.thresholds_).all()


# ---------------------------------------------------------------------------------------------- anchors


def test_anchored_to_all_but_a_shift_gives_the_free_estimate():
    """One item held where the free estimate has it, moved by 0.7: everything moves by 0.7."""
    data = simulate.partial_credit(1500, 8, categories=3, seed=1).responses
    free = SpectralPartialCredit(regularization=0).fit(data)
    held = free.thresholds_[:2] + 0.7
    anchored = SpectralPartialCredit(regularization=0).fit(data, anchors={0: held})
    np.testing.assert_allclose(anchored.thresholds_, free.thresholds_ + 0.7, atol=1e-4)
    assert anchored.status_.tolist() == ["anchored"] + ["ok"] * 7
    np.testing.assert_allclose(anchored.thresholds_[:2], held, atol=1e-12)


def test_anchored_thresholds_are_covered():
    hits = []
    for seed in range(12):
        data = simulate.partial_credit(800, 8, categories=4, seed=seed)
        truth = data.thresholds.reshape(8, 3)
        fit = SpectralPartialCredit().fit(data.responses, anchors={0: truth[0], 3: truth[3], 5: truth[5]})
        free = fit.threshold_se_ > 0
        assert free.sum() == 15
        hits.append(np.mean(np.abs(fit.thresholds_ - data.thresholds)[free] < 1.96 * fit.threshold_se_[free]))
    assert abs(np.mean(hits) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / (12 * 5))


def test_anchors_from_a_calibration_and_bad_ones():
    first = simulate.partial_credit(1000, 6, categories=3, seed=1)
    made = SpectralPartialCredit().fit(first.responses).calibration_
    table = first.responses.to_dense()[:500, 2:]
    again = Responses.from_wide(table, items=[2, 3, 4, 5], ordered=True)
    fit = SpectralPartialCredit().fit(again, anchors=made)
    np.testing.assert_allclose(fit.thresholds_, made.thresholds[4:], atol=1e-12)
    with pytest.raises(OptionError, match="has 1 thresholds"):
        SpectralPartialCredit().fit(again, anchors={2: [0.5]})
    with pytest.raises(OptionError, match="is among the anchors"):
        SpectralPartialCredit().fit(again, anchors={"x": [0.5, 1.0]})
    with pytest.raises(OptionError, match="weight by ability"):
        SpectralPartialCredit(weighting="persons").fit(again, anchors={2: [0.5, 1.0]})
