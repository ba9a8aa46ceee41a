"""Updates: ten pieces against everything at once, new items, anchored banks, and people who come twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from changed_bank import changed
from spectral_irt import SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.bank import Bank, anchored_fit
from spectral_irt.data import Responses
from spectral_irt.errors import BankError
from spectral_irt.estimators.base import RaschEstimator

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

CLOSE = 0.1  # standard errors, root mean square: an update is as good as a fit to all

DESIGNS: dict[str, tuple[int, int | None, dict[str, Any]]] = {
    "complete": (5000, 60, {}),
    "sampled": (5000, 60, {"p": 0.2}),
    "popularity": (5000, 300, {"n_responses": 100_000}),
    "booklets": (5000, 60, {"booklets": 6}),
    "linked": (6000, None, {"forms": 6, "length": 20, "anchors": 4}),
}


def named(responses: Responses) -> Responses:
    """The same with people who have names."""
    users = np.array([f"user {label}" for label in responses.persons.tolist()], dtype=object)
    return replace(responses, persons=users)


def pieces(responses: Responses, number: int = 10) -> list[Responses]:
    order = np.random.default_rng(1).permutation(responses.n_persons)
    return [responses.take_persons(np.sort(part)) for part in np.array_split(order, number)]


def bank_of(responses: Responses, **options: Any) -> Bank:
    return Bank.from_fit(SpectralRasch(**options).fit(responses), responses)


def distance(bank: Bank, fit: RaschEstimator) -> float:
    place = {label: k for k, label in enumerate(bank.items.tolist())}
    order = [place[label] for label in fit.item_labels_.tolist()]
    apart = bank.difficulty[order] - fit.difficulty_
    return float(np.sqrt(np.mean(((apart - apart.mean()) / fit.se_) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_ten_pieces_are_as_good_as_all_at_once(design: str) -> None:
    n, m, options = DESIGNS[design]
    responses = simulate.rasch(n, m, design=design, seed=3, **options).responses
    fit = SpectralRasch().fit(responses)
    first, *rest = pieces(responses)
    bank = bank_of(first)
    diagonal = changed(bank, matrix=None)  # as banks of more than 2,000 items are
    assert distance(bank, fit) > 1  # there is something to learn
    for piece in rest:
        bank = bank.update(piece)
        diagonal = diagonal.update(piece) if design == "sampled" else diagonal
    assert design != "sampled" or distance(diagonal, fit) < CLOSE
    assert np.sqrt(np.mean(((bank.difficulty - fit.difficulty_) / fit.se_) ** 2)) < CLOSE  # same scale, too
    assert np.median(bank.se / fit.se_) == pytest.approx(1, abs=0.05)
    assert np.array_equal(bank.n, responses.item_counts)
    assert np.array_equal(bank.calibration.score, responses.item_scores)
    assert bank.n_persons == n
    assert [data.how for data in bank.data] == ["fit"] + 9 * ["update"]


@pytest.mark.parametrize("size", [2000, 0])
def test_ordered_answers_whole_or_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The outer thresholds of rare categories rest on the prior of a fit, not on one that draws to the middle."""
    monkeypatch.setattr("spectral_irt.bank.evidence.MATRIX_SIZE", size)
    monkeypatch.setattr("spectral_irt.bank.build.MATRIX_SIZE", size)
    responses = simulate.partial_credit(1200, 60, categories=5, design="sampled", p=0.3, seed=2).responses
    fit = SpectralPartialCredit().fit(responses).calibration_
    first, *rest = pieces(responses, 3)
    bank = Bank.from_fit(SpectralPartialCredit().fit(first), first)
    for piece in rest:
        bank = Bank.load(bank.update(piece).save(tmp_path / "bank"))
    assert (bank.evidence.matrix is None, bank.evidence.blocks is None) == (size == 0, size > 0)
    made = bank.calibration
    assert np.sqrt(np.mean(((made.thresholds - fit.thresholds) / fit.threshold_se) ** 2)) < CLOSE
    assert np.median(made.threshold_se / fit.threshold_se) == pytest.approx(1, abs=0.05)
    assert np.median(made.se / fit.se) == pytest.approx(1, abs=0.05)


def test_without_the_matrix_weak_links_are_said() -> None:
    responses = simulate.rasch(3000, design="linked", forms=6, length=20, anchors=1, seed=5).responses
    first, second = pieces(responses, 2)
    bank = changed(bank_of(first), matrix=None).update(second)
    assert "weak_links" in [finding.code for finding in bank.findings]


def test_new_forms_with_new_items_arrive_one_after_another() -> None:
    responses = simulate.rasch(6000, design="linked", forms=6, length=20, anchors=4, seed=6).responses
    fit = SpectralRasch().fit(responses)
    start = np.array([row[0] for row in _first_items(responses)])
    bank = None
    for form in np.unique(start):
        piece = responses.take_persons(start == form)
        piece = piece.take_items(piece.item_counts > 0)
        bank = bank_of(piece) if bank is None else bank.update(piece)
    assert bank is not None
    assert bank.n_items == responses.n_items
    assert distance(bank, fit) < CLOSE
    new = [finding for finding in bank.findings if finding.code == "new_items"]
    assert len(new) == 1
    assert len(new[0].items) == 16


def _first_items(responses: Responses) -> list[np.ndarray]:
    rows = []
    for block in responses.blocks:
        rows += [np.sort(block.items[a:b]) for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True)]
    return rows


def test_the_scale_is_kept() -> None:
    data = simulate.rasch(2000, 20, seed=7)
    first, second = pieces(data.responses, 2)
    bank = bank_of(first.take_items(np.arange(15)))
    moved = changed(bank, thresholds=bank.difficulty + 5)
    updated = moved.update(second)
    assert updated.difficulty[:15].mean() == pytest.approx(5)
    assert np.array_equal(updated.items, np.arange(20))
    truth = data.difficulty - data.difficulty[:15].mean() + 5
    assert np.max(np.abs(updated.difficulty - truth) / updated.se) < 4.5


def test_anchored_items_do_not_move() -> None:
    data = simulate.rasch(3000, 20, seed=8)
    first, second = pieces(data.responses, 2)
    anchors = dict(enumerate(data.difficulty[:6] + 2))
    bank = Bank.from_fit(anchored_fit(first, anchors), first)
    updated = bank.update(second)
    assert np.array_equal(updated.difficulty[:6], data.difficulty[:6] + 2)
    whole = anchored_fit(data.responses, anchors)
    free = slice(6, None)
    apart = (updated.difficulty - whole.difficulty_)[free] / whole.se_[free]
    assert np.sqrt(np.mean(apart**2)) < CLOSE
    assert np.median(updated.se[free] / whole.se_[free]) == pytest.approx(1, abs=0.1)
    assert set(updated.status[:6]) == {"anchored"}
    diagonal = changed(bank, matrix=None).update(second)
    assert np.array_equal(diagonal.difficulty[:6], data.difficulty[:6] + 2)


def test_unanswered_and_extreme_items() -> None:
    """Items without answers stay without estimate; the extreme ones rest on the prior until they are so no more."""
    rng = np.random.default_rng(10)
    first = (rng.random((300, 8)) < 0.5).astype(float)
    first[:, 5] = np.nan
    first[40:, 6] = np.nan
    first[:40, 6] = 1
    bank = bank_of(Responses.from_wide(first))
    assert np.isnan(bank.difficulty[5])
    assert bank.status[6] == "all right"
    second = (rng.random((300, 8)) < 0.5).astype(float)
    second[:, 5] = np.nan
    second[:, 7] = np.nan
    updated = bank.update(second)
    assert np.isnan(updated.difficulty[5])
    assert updated.status.tolist() == ["ok"] * 5 + ["no responses", "ok", "ok"]
    assert updated.evidence.prior_precision == 0
    assert updated.difficulty[6] < 0
    third = np.column_stack([second[:, :4], np.full((300, 2), np.nan), np.ones(300), second[:, 4]])
    assert bank.update(third).status[6] == "all right"


# ------------------------------------------------------------------------------------------ bad updates


@pytest.fixture(scope="module")
def two() -> tuple[Bank, Responses, Responses]:
    first, second = pieces(named(simulate.rasch(400, 12, seed=12).responses), 2)
    return bank_of(first), first, second


def test_the_same_data_again(two: tuple[Bank, Responses, Responses]) -> None:
    bank, first, second = two
    with pytest.raises(BankError, match="these very data are in the bank already"):
        bank.update(first)
    updated = bank.update(second)
    with pytest.raises(BankError, match="these very data"):
        updated.update(second)
    assert updated.update(second, repeats="skip") is updated
    some = second.take_persons(np.arange(29))  # of so few people guesses could be tried against a checksum
    assert bank.update(some).data[-1].digest == ""
    bank.update(some).update(some)


def test_the_same_bits_whatever_the_threads(two: tuple[Bank, Responses, Responses]) -> None:
    bank, _, second = two
    one, many = bank.update(second, threads=1), bank.update(second, threads=2)
    assert np.array_equal(one.difficulty, many.difficulty)
