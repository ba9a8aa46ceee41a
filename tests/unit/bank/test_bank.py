"""Bank: what it takes from a fit, its scale, and its use as a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spectral_irt import Analysis, AnchoredRasch, SpectralRasch, datasets, simulate
from spectral_irt.bank import Bank
from spectral_irt.calibration import Scale
from spectral_irt.conditional.newton import Likelihood
from spectral_irt.data import Responses, as_responses
from spectral_irt.errors import BankError, NotFittedError, OptionError
from spectral_irt.estimators.conditional import ConditionalRasch


@pytest.fixture(scope="module")
def data() -> Responses:
    return simulate.rasch(400, 8, design="sampled", p=0.8, seed=1).responses


def test_what_a_fit_gives(data: Responses) -> None:
    fit = SpectralRasch().fit(data)
    bank = Bank.from_fit(fit, data)
    assert np.array_equal(bank.difficulty, fit.difficulty_)
    assert np.array_equal(bank.se, fit.se_)
    assert np.array_equal(bank.n, data.item_counts)
    assert np.array_equal(bank.calibration.score, data.item_scores)
    source = bank.calibration.provenance
    assert (source.estimator, source.settings["weighting"]) == ("SpectralRasch", "ability")
    assert [(d.digest, d.persons, d.responses, d.how) for d in bank.data] == [
        (data.digest(), 400, data.n_responses, "fit")
    ]
    assert bank.findings == fit.findings_
    assert not bank.calibration.anchored.any()
    assert not bank.difficulty.flags.writeable
    kept = bank.calibration
    assert kept.item_columns().keys() == fit.item_columns().keys()
    assert all(np.array_equal(kept.item_columns()[name], values) for name, values in fit.item_columns().items())


def test_other_estimators_have_banks_too(data: Responses) -> None:
    fit = ConditionalRasch().fit(data)
    bank = Bank.from_fit(fit, data)
    assert bank.calibration.provenance.estimator == "ConditionalRasch"
    assert bank.evidence.information == pytest.approx(1 / bank.se**2, rel=0.25)


def test_the_information_matrix_is_the_negative_slope_of_the_score(data: Responses) -> None:
    """To a few percent: the matched information is not the observed one."""
    beta = SpectralRasch(regularization=0).fit(data).difficulty_
    here = Likelihood(data, beta).at(beta)
    matrix = here.dense()
    np.testing.assert_allclose(matrix.sum(axis=0), 0, atol=1e-9)
    step = 0.05
    for k in (0, 5):
        places = [beta + s * np.eye(8)[k] for s in (step, -step)]
        moved = [Likelihood(data, there).at(there).gradient for there in places]
        slope = -(moved[0] - moved[1]) / (2 * step)
        assert slope[k] == pytest.approx(matrix[k, k], rel=0.1)
        assert np.delete(slope, k) == pytest.approx(np.delete(matrix[k], k), abs=0.1 * matrix[k, k])
    np.testing.assert_allclose(here.information, np.diag(matrix))
    v = np.random.default_rng(0).standard_normal(8)
    np.testing.assert_allclose(here @ v, matrix @ v)


def test_other_responses_are_refused(data: Responses) -> None:
    fit = SpectralRasch().fit(data)
    with pytest.raises(BankError, match="not the responses that the calibration was fitted to"):
        Bank.from_fit(fit, data.take_persons(np.arange(100)))
    with pytest.raises(NotFittedError):
        Bank.from_fit(SpectralRasch(), data)


def test_rescale() -> None:
    answers = datasets.load_lsat()
    bank = Bank.from_fit(SpectralRasch().fit(answers), answers)
    scaled = bank.rescale(mean=500, sd=100)
    assert scaled.measure.mean() == pytest.approx(500)
    assert scaled.measure.std() == pytest.approx(100)
    assert np.array_equal(scaled.difficulty, bank.difficulty)  # logits stay
    assert bank.scale == Scale()
    columns = scaled.item_columns()
    assert columns["se"] == pytest.approx(bank.se * scaled.scale.unit)
    assert columns["ci_high"] - columns["ci_low"] == pytest.approx(2 * 1.96 * columns["se"], rel=1e-4)
    assert scaled.table().columns[:3] == ["item", "difficulty", "se"]

    assert bank.rescale(mean=50, unit=10).measure == pytest.approx(50 + 10 * bank.difficulty)
    assert bank.rescale().scale == Scale()


def test_rescale_bad_numbers() -> None:
    answers = datasets.load_lsat()
    bank = Bank.from_fit(SpectralRasch().fit(answers), answers)
    for options, words in [
        ({"sd": 0}, "sd is 0"),
        ({"unit": -1}, "unit is -1"),
        ({"mean": float("nan")}, "mean is nan"),
        ({"sd": 1, "unit": 1}, "not both"),
    ]:
        with pytest.raises(OptionError, match=words):
            bank.rescale(**options)  # type: ignore[arg-type]


def test_a_bank_scores_people(data: Responses) -> None:
    fit = SpectralRasch().fit(data)
    bank = Bank.from_fit(fit, data)
    assert Analysis(bank.calibration, data).persons().equals(fit.analyse(data).persons())
    assert np.array_equal(bank.calibration.probability([0.0]), fit.predict_proba([0.0]))
    text = Responses.from_wide(data.to_dense(), items=[str(k) for k in range(8)])
    assert bank.score(text)["ability"].equals(bank.score(data)["ability"])


def people_of_one_kind() -> np.ndarray[Any, Any]:
    """Item 8 has right and wrong answers, all of them from people who have every answer right, or every one wrong."""
    table = np.full((130, 9), np.nan)
    table[:100, :8] = simulate.rasch(100, 8, seed=3).responses.to_dense()
    table[100:115, [0, 1, 2, 8]] = 1
    table[115:, [0, 1, 2, 8]] = 0
    return table


@pytest.mark.parametrize(
    "estimator",
    [
        SpectralRasch(),
        SpectralRasch(regularization=1.0),
        SpectralRasch(weighting="users"),
        SpectralRasch(weighting="pairs"),
        AnchoredRasch({0: 0.0, 1: 0.5}),
    ],
    ids=["auto", "prior", "users", "pairs", "anchored"],
)
def test_an_item_that_people_of_one_kind_answered_is_not_measured(estimator: Any) -> None:
    data = as_responses(people_of_one_kind())
    fit = estimator.fit(data)
    assert fit.status_[8] == "no information"
    assert "ok" in fit.status_
    assert fit.se_[8] > 0.5  # the prior's
    bank = Bank.from_fit(fit, data)
    assert not bank.estimated[8]
    assert bank.estimated[:8].all()
    with pytest.raises(BankError, match="none of the items answered has a difficulty"):
        bank.score(Responses.from_wide([[1], [0]], items=[8]))


def test_an_item_that_such_people_bring_into_a_bank_is_not_measured() -> None:
    table = people_of_one_kind()
    old = as_responses(table[:80, :8])
    bank = Bank.from_fit(SpectralRasch().fit(old), old).update(as_responses(table[80:]))
    assert bank.items[8] == 8
    assert bank.status[8] == "no information"
    assert not bank.estimated[8]
