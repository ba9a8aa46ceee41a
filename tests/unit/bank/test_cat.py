"""Adaptive testing with a bank."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.bank.adaptive import next_item
from spectral_irt.bank.bank import Bank
from spectral_irt.bank.export import adaptive_text
from spectral_irt.errors import BankError, OptionError


@pytest.fixture(scope="module")
def bank() -> Bank:
    data = si.simulate.rasch(400, 60, seed=1)
    return si.SpectralRasch().fit(data.responses).analyse(data.responses).to_bank()


def test_the_next_item_is_the_most_informative_one_by_enumeration(bank: Bank) -> None:
    answers = {bank.items[3]: 1, bank.items[10]: 0, bank.items[20]: 1}
    found = next_item(bank, answers, population=(0.2, 1.1))
    theta = np.linspace(-6, 6, 4001)
    log = -((theta - 0.2) ** 2) / (2 * 1.1**2)
    for item, value in answers.items():
        eta = theta - bank.difficulty[bank.items.tolist().index(item)]
        log += value * eta - np.logaddexp(0, eta)
    weight = np.exp(log - log.max())
    mean = np.sum(weight * theta) / weight.sum()
    assert found.ability == pytest.approx(mean, abs=1e-3)
    assert found.se == pytest.approx(np.sqrt(np.sum(weight * (theta - mean) ** 2) / weight.sum()), abs=1e-3)
    p = 1 / (1 + np.exp(bank.difficulty - found.ability))
    information = {item: q * (1 - q) for item, q in zip(bank.items.tolist(), p, strict=True) if item not in answers}
    assert found.item == max(information, key=lambda item: information[item])


def test_nothing_is_left_and_answers_that_mean_nothing(bank: Bank) -> None:
    assert next_item(bank, dict.fromkeys(bank.items.tolist(), 1)).item is None
    with pytest.raises(BankError, match="no difficulty for 'nowhere'"):
        next_item(bank, {"nowhere": 1})
    with pytest.raises(OptionError, match="an answer is 2"):
        next_item(bank, {bank.items[0]: 2})


def test_the_items_for_other_programs(bank: Bank) -> None:
    rows = json.loads(adaptive_text(bank, "jscat"))
    assert rows[0]["difficulty"] == pytest.approx(bank.difficulty[0])
    assert set(rows[0]) == {"id", "difficulty", "discrimination", "guessing", "slipping"}
    head, first, *_ = adaptive_text(bank, "mirtcat").splitlines()
    assert head == "item,a1,d,g,u"
    assert float(first.split(",")[2]) == pytest.approx(-bank.difficulty[0])
    assert adaptive_text(bank, "adaptivetesting").splitlines()[0] == "ids,a,b,c,d"
    assert adaptive_text(bank, "catsim").startswith("item,a,b,c,d")


@pytest.fixture(scope="module")
def ordered() -> Bank:
    answers = si.simulate.partial_credit(800, 12, categories=4, seed=1).responses
    return si.SpectralPartialCredit().fit(answers).analyse(answers).to_bank()


def test_an_item_with_several_thresholds_is_asked_where_its_answer_varies_most(ordered: Bank) -> None:
    made = ordered.calibration
    answers = {ordered.items[3]: 2, ordered.items[7]: 3}
    found = next_item(ordered, answers, population=(0.0, 1.0))
    theta = np.linspace(-6, 6, 4001)
    log = -(theta**2) / 2
    for item, value in answers.items():
        log += np.log(made.category_probability(theta, item)[:, value])
    weight = np.exp(log - log.max())
    assert found.ability == pytest.approx(np.sum(weight * theta) / weight.sum(), abs=1e-3)
    told = {}
    for item in set(ordered.items.tolist()) - set(answers):
        p, k = made.category_probability([found.ability], item)[0], np.arange(4)
        told[item] = p @ k**2 - (p @ k) ** 2
    assert found.item == max(told, key=lambda item: told[item])
    with pytest.raises(OptionError, match="an answer is 4; it is one of 0, 1, 2, 3"):
        next_item(ordered, {ordered.items[0]: 4})


def test_programs_that_know_right_and_wrong_only_say_so(ordered: Bank) -> None:
    for program in ("catsim", "adaptivetesting", "jscat"):
        with pytest.raises(BankError, match=f"{program} knows right and wrong answers only; 0, 1, .* several thresh"):
            adaptive_text(ordered, program)
    head, first, *_ = adaptive_text(ordered, "mirtcat").splitlines()
    assert head == "item,itemtype,a1,ak0,ak1,ak2,ak3,d0,d1,d2,d3"
    assert [float(d) for d in first.split(",")[-3:]] == pytest.approx(-np.cumsum(ordered.calibration.thresholds[:3]))


def test_items_on_another_scale_are_not_asked() -> None:
    """Six items and four share no people: nothing links their scales."""
    rng = np.random.default_rng(3)
    table = np.full((500, 10), np.nan)
    table[:300, :6], table[300:, 6:] = rng.random((300, 6)) < 0.6, rng.random((200, 4)) < 0.4
    answers = si.Responses.from_wide(table)
    bank = si.SpectralRasch().fit(answers).analyse(answers).to_bank()
    first = next_item(bank, {})
    assert first.item in range(6)
    assert [finding.code for finding in first.findings] == ["several_scales"]
    assert next_item(bank, dict.fromkeys(range(6), 1)).item is None
    assert next_item(bank, {8: 1}).item in (6, 7, 9)
    both = next_item(bank, {7: 1, 8: 0, 0: 1})
    assert "Answers to 0 do not count" in both.findings[0].sentence
    assert both.ability == next_item(bank, {7: 1, 8: 0}).ability
