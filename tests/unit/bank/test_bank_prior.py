"""The prior of a bank: it comes off exactly, keeps the distances of grades, and ties nothing that shares no people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from changed_bank import changed
from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import Bank, anchored_fit
from spectral_irt.bank.build import merged
from spectral_irt.data import Responses


def bank_of(responses: Responses, **options: object) -> Bank:
    return Bank.from_fit(SpectralRasch(**options).fit(responses), responses)  # type: ignore[arg-type]


def apart(bank: Bank, difficulty: np.ndarray, se: np.ndarray) -> float:
    """Root mean square distance in standard errors, after a common shift."""
    off = bank.difficulty - difficulty
    return float(np.sqrt(np.mean(((off - off.mean()) / se) ** 2)))


# ----------------------------------------------------------------------------------------- vertical scales


def five_grades(seed: int, people: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Answers of five grades a logit apart, 12 items each of which 3 are the next grade's too; and everyone's grade."""
    rng = np.random.default_rng(seed)
    beta = np.repeat(np.arange(6) - 2.0, 9)[:48] + rng.normal(0, 0.7, 48)
    grade = np.repeat(np.arange(5), people)
    table = np.full((len(grade), 48), np.nan)
    for k, own in enumerate(grade):
        items = slice(9 * own, 9 * own + 12)
        table[k, items] = rng.random(12) < 1 / (1 + np.exp(beta[items] - rng.normal(own - 2.0, 1)))
    return table, grade


@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_an_update_of_one_grade_keeps_the_distances_of_grades(seed: int) -> None:
    table, grade = five_grades(seed)
    order = np.random.default_rng(9).permutation(len(table))
    first, later = np.sort(order[:200]), np.sort(order[200:])
    later = later[grade[later] == 4]
    old, new = Responses.from_wide(table[first]), Responses.from_wide(table[later])
    whole = SpectralRasch().fit(Responses.from_wide(table[np.r_[first, later]]))
    bank = bank_of(old)
    assert bank.evidence.prior_precision > 0  # the items are thin
    assert (
        bank.evidence.prior_mean[-9:].mean() - bank.evidence.prior_mean[:9].mean() > 2
    )  # each has the level of its own grade
    updated = bank.update(new)
    assert apart(updated, whole.difficulty_, whole.se_) < 0.2
    distance = [each[-9:].mean() - each[:9].mean() for each in (updated.difficulty, whole.difficulty_)]
    assert distance[0] == pytest.approx(distance[1], abs=0.1)
    assert np.median(updated.se / whole.se_) == pytest.approx(1, abs=0.05)
    # Without the matrix the distance hardly moves, but no item is pulled out of its grade.
    assert apart(changed(bank, matrix=None).update(new), whole.difficulty_, whole.se_) < 0.3


def test_new_items_start_from_the_level_of_their_people() -> None:
    """A thin new item of the top grade is like the top grade, not like the mean of all."""
    table, grade = five_grades(1, people=150)
    few = np.flatnonzero(grade == 4)[:12]
    bank = bank_of(Responses.from_wide(np.delete(table, few, axis=0)[:, :47]))
    updated = bank.update(Responses.from_wide(table[few]))
    top = bank.difficulty[36:47].mean()
    assert updated.evidence.prior_mean[47] == pytest.approx(top, abs=0.6)
    assert abs(updated.difficulty[47] - top) < 1.5
    assert top > bank.difficulty.mean() + 1.5


# ------------------------------------------------------------------------------------- taken off, put on


def test_the_prior_comes_off_without_the_data() -> None:
    """A Newton step from what the bank keeps is the estimate without a prior, but for what curvature changes on it."""
    data = simulate.rasch(150, 12, seed=4).responses
    bank = bank_of(data, regularization=1.0)
    assert bank.evidence.prior_precision > 0
    assert bank.evidence.matrix is not None
    bare = SpectralRasch(regularization=0).fit(data)
    step = np.linalg.pinv(bank.evidence.matrix) @ bank.evidence.prior_gradient
    pulled = bare.difficulty_ - bank.difficulty
    assert np.max(np.abs(pulled) / bare.se_) > 0.2  # it did something
    np.testing.assert_allclose(step, pulled, atol=0.1 * np.max(np.abs(pulled)))


@pytest.mark.parametrize("regularization", [0, 2.0])
def test_a_bank_has_the_pull_of_its_prior(regularization: float) -> None:
    """On complete data d_i = (beta_i - mean) / (1 - 1/m), and (P beta)_i = alpha (beta_i - mean) / (1 - 1/m)^2."""
    data = simulate.rasch(300, 10, seed=5).responses
    bank = bank_of(data, regularization=regularization)
    wanted = regularization * (bank.difficulty - bank.difficulty.mean()) / 0.9**2
    np.testing.assert_allclose(bank.evidence.prior_gradient, wanted, atol=1e-2)


@pytest.mark.slow
def test_ten_pieces_of_data_that_misfit() -> None:
    """Unequal slopes and guessing: the update goes where the fit to all goes, not where another equation would."""
    rng = np.random.default_rng(2)
    beta, slope = np.linspace(-2.5, 2.5, 12), np.exp(rng.normal(0, 0.5, 12))
    guess = np.where(rng.random(12) < 0.4, 0.25, 0.0)
    p = guess + (1 - guess) / (1 + np.exp(-slope * (rng.normal(0, 1.2, (4000, 1)) - beta)))
    table = np.where(rng.random(p.shape) < 0.3, np.nan, (rng.random(p.shape) < p).astype(float))
    fit = SpectralRasch().fit(Responses.from_wide(table))
    first, *rest = (Responses.from_wide(piece) for piece in np.array_split(table, 10))
    bank = bank_of(first)
    for piece in rest:
        bank = bank.update(piece)
    assert apart(bank, fit.difficulty_, fit.se_) < 0.1
    assert np.median(bank.se / fit.se_) == pytest.approx(1, abs=0.03)


def test_an_anchored_bank_with_thin_items() -> None:
    data = simulate.rasch(200, 16, design="sampled", p=0.5, seed=6)
    order = np.random.default_rng(0).permutation(200)
    first, second = (data.responses.take_persons(np.sort(part)) for part in np.array_split(order, 2))
    anchors = dict(enumerate(data.difficulty[:4] + 2))
    whole = anchored_fit(data.responses, anchors)
    bank = Bank.from_fit(anchored_fit(first, anchors), first)
    assert bank.evidence.prior_precision > 0
    assert not bank.evidence.prior_gradient[:4].any()
    updated = bank.update(second)
    assert np.array_equal(updated.difficulty[:4], data.difficulty[:4] + 2)
    off = (updated.difficulty - whole.difficulty_)[4:] / whole.se_[4:]
    assert np.sqrt(np.mean(off**2)) < 0.15
    assert np.median((updated.se / whole.se_)[4:]) == pytest.approx(1, abs=0.06)


def test_an_anchored_calibration_brings_level_and_pull_into_the_bank() -> None:
    data = simulate.rasch(260, 14, seed=8)
    old = data.responses.take_persons(np.arange(200)).take_items(np.arange(10))
    new = data.responses.take_persons(np.arange(200, 220)).take_items(np.arange(4, 14))
    bank = bank_of(old)
    found = Bank.from_fit(anchored_fit(new, bank), new)
    both = merged(bank, found, new)
    np.testing.assert_array_equal(
        both.evidence.prior_gradient, [*bank.evidence.prior_gradient, *found.evidence.prior_gradient[6:]]
    )
    np.testing.assert_array_equal(both.evidence.prior_mean, [*bank.evidence.prior_mean, *found.evidence.prior_mean[6:]])
    assert found.evidence.prior_gradient[6:].any()
    more = simulate.rasch(400, 14, difficulty=data.difficulty, seed=9).responses
    updated = both.update(more)
    truth = data.difficulty - data.difficulty.mean()
    off = updated.difficulty - updated.difficulty.mean() - truth
    assert np.max(np.abs(off) / updated.se) < 4


def test_a_calibration_without_its_data_can_be_updated(tmp_path: Path) -> None:
    data = simulate.rasch(400, 12, seed=10).responses
    first, second = data.take_persons(np.arange(200)), data.take_persons(np.arange(200, 400))
    fit, whole = SpectralRasch().fit(first), SpectralRasch().fit(data)
    updated = Bank.load(fit.calibration_.save(tmp_path / "bank")).update(second)
    assert apart(updated, whole.difficulty_, whole.se_) < 0.2  # it keeps no score and no matrix


# ---------------------------------------------------------------------------------- parts that share no people


def two_parts(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = (rng.random((n, 10)) < 1 / (1 + np.exp(np.linspace(-1, 1, 10) - rng.normal(size=(n, 1))))).astype(float)
    table[: n // 2, 6:] = np.nan
    table[n // 2 :, :6] = np.nan
    return table


@pytest.mark.parametrize("matrix", [True, False])
def test_nothing_is_known_between_parts_until_people_link_them(tmp_path: Path, matrix: bool) -> None:
    bank = bank_of(Responses.from_wide(two_parts(400, 1)))
    bank = Bank.load((bank if matrix else changed(bank, matrix=None)).save(tmp_path / "bank"))
    assert np.isinf(bank.se).tolist() == [False] * 6 + [True] * 4
    still = bank.update(Responses.from_wide(two_parts(300, 2)))
    assert np.isinf(still.se).tolist() == [False] * 6 + [True] * 4
    means = [each[part].mean() for each in (bank.difficulty, still.difficulty) for part in (slice(6), slice(6, 10))]
    assert means[:2] == pytest.approx(means[2:], abs=1e-6)
    rng = np.random.default_rng(3)
    both = (rng.random((600, 10)) < 1 / (1 + np.exp(np.linspace(-1, 1, 10) - rng.normal(size=(600, 1))))).astype(float)
    linked = still.update(Responses.from_wide(both))
    assert np.isfinite(linked.se).all()
    assert set(linked.status) == {"ok"}
    assert "disconnected" in [finding.code for finding in still.findings]
    assert "disconnected" not in [finding.code for finding in linked.findings]
    assert linked.difficulty[:6].mean() == pytest.approx(bank.difficulty[:6].mean(), abs=1e-6)  # the scale that was
    if matrix:
        whole = SpectralRasch().fit(Responses.from_wide(np.vstack([two_parts(400, 1), two_parts(300, 2), both])))
        assert apart(linked, whole.difficulty_, whole.se_) < 0.15


@pytest.mark.parametrize("matrix", [True, False])
def test_new_items_that_share_no_people_have_no_place(matrix: bool) -> None:
    data = simulate.rasch(300, 6, seed=7).responses
    bank = bank_of(data) if matrix else changed(bank_of(data), matrix=None)
    updated = bank.update(Responses.from_wide(two_parts(200, 4)))
    assert np.isinf(updated.se).tolist() == [False] * 6 + [True] * 4
    said = [finding for finding in updated.findings if finding.code == "prior_only"]
    assert "infinite" in said[0].sentence
