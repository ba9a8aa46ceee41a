"""Calibration: small, frozen, without answers, whatever it came from."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

from spectral_irt import Bank, Calibration, SpectralPartialCredit, SpectralRasch, datasets, simulate
from spectral_irt.bank import AnchoredRasch
from spectral_irt.calibration import SMALL
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import OptionError

LARGEST = 200  # bytes per item
DERIVED = ("difficulty", "se", "known", "measured", "anchored", "moved_by_prior")


def arrays(calibration: Calibration) -> dict[str, np.ndarray]:
    """All arrays that it was given, and those that follow from them."""
    values = {name: getattr(calibration, name) for name in (*(field.name for field in fields(calibration)), *DERIVED)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)} | dict(calibration.further)


def test_it_is_small_after_many_blocks_and_threads_and_survives_a_pickle_and_a_copy() -> None:
    responses = simulate.rasch(20_000, 3_000, design="sampled", p=0.02, seed=1).responses
    assert responses.n_responses > 1_000_000
    assert len(responses.blocks) > 1
    before = SpectralRasch(threads=2).fit(responses).calibration_
    for after in (pickle.loads(pickle.dumps(before)), copy.deepcopy(before)):
        assert len(pickle.dumps(after)) < LARGEST * before.n_items
        assert arrays(after).keys() == arrays(before).keys()
        for name, values in arrays(before).items():
            np.testing.assert_array_equal(arrays(after)[name], values)
        assert (after.prior, after.scale, after.findings) == (before.prior, before.scale, before.findings)
        assert after.provenance == before.provenance
        assert after.items().equals(before.items())


def test_nobody_can_change_it() -> None:
    lsat = datasets.load_lsat()
    plain = SpectralRasch().fit(lsat).calibration_
    anchored = AnchoredRasch({"item1": 0.0}).fit(lsat).calibration_
    kept = Bank.from_fit(SpectralRasch().fit(lsat), lsat).calibration
    assert plain.threshold_covariance is not None
    assert {"anchored", "displacement", "anchor_se"} <= anchored.further.keys()
    for made in (plain, anchored, kept):
        for calibration in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made), made.replace(findings=())):
            assert len(arrays(calibration)) >= 8
            for values in arrays(calibration).values():
                with pytest.raises(ValueError, match="read-only"):
                    values[0] = values[0]
            with pytest.raises(AttributeError):
                calibration.scale = None  # type: ignore[misc]


def test_covariance_is_kept_of_few_items() -> None:
    for n_items in (SMALL, SMALL + 1):
        fit = SpectralRasch().fit(simulate.rasch(300, n_items, seed=2).responses)
        kept = fit.calibration_.threshold_covariance
        assert (kept is not None) == (n_items <= SMALL)
        if kept is not None:
            np.testing.assert_array_equal(kept, fit.covariance())
            np.testing.assert_allclose(np.sqrt(np.diag(kept)), fit.se_)


def test_items_with_several_thresholds_have_a_location() -> None:
    """The mean of the thresholds; nothing but the calibration knows where they lie."""
    calibration = Calibration(
        labels=np.array(["a", "b", "c"]),
        thresholds=np.array([0.5, -1.0, 0.0, 2.5, 1.0]),
        threshold_se=np.full(5, 0.1),
        layout=Thresholds(np.array([1, 3, 1])),
        status=np.array(["ok", "ok", "ok"]),
        n=np.array([10, 10, 0]),
        score=np.array([5, 4, 0]),
        item_information=np.ones(3),
    )
    np.testing.assert_allclose(calibration.difficulty, [0.5, 0.5, 1.0])
    assert calibration.items()["item"].to_list() == ["a", "b", "c"]


def test_forms_and_probabilities_go_by_label() -> None:
    calibration = SpectralRasch().fit(datasets.load_lsat()).calibration_
    p = calibration.probability([0.0, 1.0], items=["item3", "item1"])
    expected = 1 / (1 + np.exp(calibration.difficulty[[2, 0]] - np.array([[0.0], [1.0]])))
    np.testing.assert_allclose(p, expected)
    everything = calibration.probability([0.0], calibration.labels.tolist())
    np.testing.assert_allclose(calibration.probability([0.0]), everything)
    for ask in (calibration.probability, calibration.information):
        with pytest.raises(OptionError, match="unknown items 'item9'; this calibration has 'item1'"):
            ask([0.0], items=["item9"])
    with pytest.raises(OptionError, match="more than once"):
        calibration.score_table(items=["item1", "item1"])


def test_information_is_that_of_a_sum_of_answers_from_two_logits_below_to_two_above():
    """The variance of the total score, item by item; 121 abilities unless others are asked for."""
    thresholds = [np.array([-1.5, 0.5]), np.array([0.0]), np.array([-0.5, 1.0, 2.5])]
    data = simulate.partial_credit(300, thresholds=thresholds, seed=4).responses
    calibration = SpectralPartialCredit().fit(data).calibration_
    table = calibration.information()
    theta = table["ability"].to_numpy()
    beta = calibration.thresholds
    np.testing.assert_allclose(theta, np.linspace(beta.min() - 2, beta.max() + 2, 121))
    expected = np.zeros(121)
    for item in calibration.labels:
        p = calibration.category_probability(theta, item)
        k = np.arange(p.shape[1])
        expected += p @ k**2 - (p @ k) ** 2
    np.testing.assert_allclose(table["information"].to_numpy(), expected)
    np.testing.assert_allclose(table["se"].to_numpy(), 1 / np.sqrt(expected))
    some = calibration.information([0.0, 1.0], items=[calibration.labels[1]])
    own = 1 / (1 + np.exp(calibration.difficulty[1] - np.array([0.0, 1.0])))
    np.testing.assert_allclose(some["information"].to_numpy(), own * (1 - own))
