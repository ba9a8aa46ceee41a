"""What a prior did to each threshold: beside conditional maximum likelihood by listing all answers with the score."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.calibration import MOVED
from spectral_irt.data.block import Thresholds
from spectral_irt.estimators.base import out_of_order
from spectral_irt.estimators.spectral_steps import tied_within


def conditional_maximum(x: np.ndarray, widest: int) -> np.ndarray:
    """Thresholds, mean zero, that make each row of x likeliest given its sum; items have the categories 0..widest."""
    n_items = x.shape[1]
    patterns = np.array(list(product(range(widest + 1), repeat=n_items)))
    scores = patterns.sum(axis=1)
    rows = x.astype(int)

    def log_weights(beta: np.ndarray, table: np.ndarray) -> np.ndarray:
        cumulated = np.concatenate([np.zeros((n_items, 1)), beta.reshape(n_items, widest).cumsum(axis=1)], axis=1)
        return -cumulated[np.arange(n_items), table].sum(axis=1)

    def negative(beta: np.ndarray) -> float:
        weights = np.exp(log_weights(beta, patterns))
        totals = np.bincount(scores, weights=weights)
        return float(np.sum(np.log(totals[rows.sum(axis=1)]) - log_weights(beta, rows)) + 1e-3 * beta.mean() ** 2)

    found = minimize(negative, np.zeros(n_items * widest), method="BFGS", options={"gtol": 1e-6})
    return found.x - found.x.mean()


def test_of_items_right_or_wrong():
    x = simulate.rasch(25, 5, seed=31).responses.to_dense()
    calibration = SpectralRasch().fit(x).calibration_
    assert calibration.prior.kind == "neighbors"
    np.testing.assert_allclose(calibration.without_prior, conditional_maximum(x, 1), atol=0.01)
    moved = np.abs(calibration.thresholds - calibration.without_prior) > MOVED
    assert moved.any()
    assert not moved.all()
    np.testing.assert_array_equal(calibration.moved_by_prior, moved)
    assert "without_prior" in calibration.item_columns()


@pytest.fixture(scope="module")
def ordered() -> np.ndarray:
    return simulate.partial_credit(60, 4, categories=4, seed=8).responses.to_dense()


def test_of_ordered_items(ordered):
    calibration = SpectralPartialCredit().fit(ordered).calibration_
    assert calibration.prior.kind == "neighbors"
    expected = conditional_maximum(ordered, 3)
    np.testing.assert_allclose(calibration.without_prior, expected, atol=0.02)
    assert calibration.moved_by_prior.any()
    np.testing.assert_array_equal(calibration.threshold_columns()["without_prior"], calibration.without_prior)
    shift = np.abs(calibration.thresholds - expected)
    assert calibration.prior.shift == pytest.approx(shift.max(), abs=0.02)


def test_a_category_that_only_the_highest_scorer_chose(ordered):
    """The threshold has no finite estimate; the item is as linked and as fit as any."""
    x = ordered.copy()
    x[:, 0] = np.minimum(x[:, 0], 2)
    x[0] = 3
    responses = Responses.from_wide(x, items=list("abcd"), ordered=True)
    calibration = SpectralPartialCredit().fit(responses).calibration_
    assert calibration.status.tolist() == ["ok"] * 4
    assert np.isnan(calibration.without_prior[2])
    assert np.isfinite(np.delete(calibration.without_prior, 2)).all()
    assert calibration.moved_by_prior[2]
    assert calibration.items_named_by("rare_categories") == ["a"]
    assert not calibration.items_named_by("disconnected")
    study = SpectralPartialCredit().fit(responses).analyse(responses)
    assert np.isfinite(study.item_fit()["infit_conditional"].to_numpy()).all()
    bare = SpectralPartialCredit(regularization=0.0).fit(responses.take_items(np.array([False, True, True, True])))
    assert bare.calibration_.without_prior is None


def test_nothing_is_marked_without_a_prior():
    calibration = SpectralRasch().fit(simulate.rasch(2000, 5, seed=4).responses).calibration_
    assert calibration.without_prior is None
    assert not calibration.moved_by_prior.any()
    assert "without_prior" not in calibration.item_columns()


def finding_of(thresholds: list[float], without: list[float] | None) -> tuple:
    layout = Thresholds(np.array([2, 2]))
    responses = SimpleNamespace(thresholds=layout, items=np.array(["a", "b"], dtype=object), notes=(), n_items=2)
    found = SimpleNamespace(
        thresholds=np.array(thresholds),
        se=np.ones(4),
        facets=None,
        covariance=None,
        without_prior=None if without is None else np.array(without),
    )
    return out_of_order(responses, found)


@pytest.mark.parametrize(
    ("thresholds", "without", "sentence", "items"),
    [
        ([0.0, -0.5, 0.0, 1.0], None, "1 item has a threshold below the one before it: 'a'; it may be chance.", ("a",)),
        (
            [0.0, 0.5, 0.0, 1.0],
            [0.4, 0.1, 0.0, 1.0],
            "No item has a threshold below the one before it; without the prior on thresholds with few responses, "
            "1 item has a threshold below the one before it: 'a'.",
            ("a",),
        ),
        (
            [0.0, -0.5, 0.0, 1.0],
            [0.0, 0.5, np.nan, 1.0],
            "1 item has a threshold below the one before it: 'a'; it may be chance. Without the prior on thresholds "
            "with few responses none has.",
            ("a",),
        ),
    ],
)
def test_disorder_is_judged_with_and_without_the_prior(thresholds, without, sentence, items):
    (finding,) = finding_of(thresholds, without)
    assert finding.sentence == sentence
    assert finding.items == items


def test_ordered_thresholds_are_not_mentioned():
    assert finding_of([0.0, 0.5, 0.0, 1.0], [0.0, 0.5, np.nan, 1.0]) == ()


def two_forms(responses: np.ndarray) -> np.ndarray:
    """The first 300 of 600 people on the first ten items, the others on the other ten."""
    x = responses.copy()
    x[:300, 10:] = np.nan
    x[300:, :10] = np.nan
    return x


@pytest.mark.parametrize("estimator", [SpectralRasch, SpectralPartialCredit])
def test_forms_that_nothing_links_are_estimated_as_each_alone(estimator):
    """A prior is for items of which little is known: to have no link to others is no lack of responses."""
    n_thresholds = 1 if estimator is SpectralRasch else 2
    thresholds = np.linspace(-1, 1, 20)[:, None] + np.linspace(-0.7, 0.7, n_thresholds)
    simulated = simulate.partial_credit(600, thresholds=list(thresholds), seed=12)
    x = two_forms(simulated.responses.to_dense())
    calibration = estimator().fit(x).calibration_
    assert "linked within its group" in str(calibration.prior)
    assert not calibration.moved_by_prior.any()
    of_first = calibration.layout.item < 10
    for rows, items, own in ((slice(300), slice(10), of_first), (slice(300, 600), slice(10, 20), ~of_first)):
        alone = estimator().fit(x[rows, items]).calibration_
        np.testing.assert_allclose(calibration.thresholds[own], alone.thresholds, atol=2e-4)
        assert set(calibration.status[items]) in ({"ok"}, {"unlinked"})
        if np.isfinite(calibration.threshold_se[own]).all():
            np.testing.assert_allclose(calibration.threshold_se[own], alone.threshold_se, rtol=1e-3)


def test_of_forms_that_nothing_links_the_prior_acts_on_items_of_few_responses_as_in_each_alone():
    x = two_forms(simulate.rasch(600, 20, seed=12).responses.to_dense())
    x[300:, 19] = np.arange(300) < 2  # two right
    x[300:, 18] = np.where(np.arange(300) < 8, x[300:, 18], np.nan)
    calibration = SpectralRasch().fit(x).calibration_
    alone = SpectralRasch().fit(x[300:, 10:]).calibration_
    assert calibration.prior.items == alone.prior.items == 2
    assert (calibration.prior.unlinked, calibration.prior.alone) == (0, 0)
    assert "acts on 2 of 20 items with few responses; it moves" in str(calibration.prior)
    # The precision is settled to a twentieth only (`STEADY_PRIOR`), which moves the two by a thirtieth of an error.
    np.testing.assert_allclose(calibration.thresholds[10:], alone.thresholds, atol=0.03)
    np.testing.assert_allclose(calibration.without_prior[10:], alone.without_prior, atol=0.01)
    np.testing.assert_allclose(calibration.without_prior[:10], calibration.thresholds[:10], atol=0.01)


def test_which_thresholds_are_tied_within_their_part():
    """To the largest component of two items or more; to the scale in part 0, whatever there is."""
    layout = Thresholds(np.array([1, 1, 2, 1, 2, 1, 1, 1]))
    parts = np.array([0, 0, 1, 1, 1, 1, 2, 2])
    component = np.array([0, 3, 1, 1, 1, 2, 2, 5, 4, 6])  # the thresholds of item 4 are a component, but of one item
    tied = component == 0
    expected = [True, False, True, True, True, False, False, False, False, False]
    assert tied_within(parts, component, tied, layout).tolist() == expected
