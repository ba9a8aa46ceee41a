"""Linking: known shifts are found, drifted items are flagged, results go to the other scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import Bank, link
from spectral_irt.errors import BankError, OptionError


def bank_of(difficulty: np.ndarray, se: float = 0.1, first: int = 0) -> Bank:
    m = len(difficulty)
    return Bank(
        items=np.arange(first, first + m),
        difficulty=np.asarray(difficulty, dtype=float),
        se=np.full(m, se),
        status=np.full(m, "ok", dtype=object),
        n=np.full(m, 400),
        n_right=np.full(m, 200),
        information=np.full(m, 1 / se**2),
        anchored=np.zeros(m, dtype=bool),
        group=np.zeros(m, dtype=np.int64),
        estimator="test",
    )


@pytest.fixture
def pair() -> tuple[Bank, Bank, np.ndarray]:
    """Two banks of the same 40 items; b is a - 0.5 with noise, and items 3 and 17 have drifted by +-1."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=40)
    drift = np.zeros(40)
    drift[3], drift[17] = 1.0, -1.0
    a = bank_of(truth + rng.normal(0, 0.1, 40))
    b = bank_of(truth - 0.5 + drift + rng.normal(0, 0.1, 40))
    return a, b, drift


def test_mean_by_hand() -> None:
    found = link(bank_of(np.array([0.0, 1.0, 2.0])), bank_of(np.array([1.0, 1.5, 2.5])), "mean")
    assert found.shift == pytest.approx(-2 / 3)
    assert found.slope == 1
    assert found.shift_se == pytest.approx(np.sqrt(6 * 0.01) / 3)
    assert found.link_error == pytest.approx(np.std([1.0, 0.5, 0.5], ddof=1) / np.sqrt(3))
    assert found.difference == pytest.approx([1 / 3, -1 / 6, -1 / 6])
    assert found.z == pytest.approx(found.difference / np.sqrt(0.02))


def test_mean_sigma_recovers_shift_and_slope() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=50)
    a, b = bank_of(truth), bank_of((truth - 0.7) / 1.3)
    found = link(a, b, "mean-sigma")
    assert (found.shift, found.slope) == pytest.approx((0.7, 1.3))
    linked = found.apply(b)
    assert linked.difficulty == pytest.approx(a.difficulty)
    assert linked.se == pytest.approx(1.3 * b.se)
    assert not found.drift.any()


@pytest.mark.slow
def test_mean_sigma_standard_errors_by_simulation() -> None:
    rng = np.random.default_rng(2)
    truth = rng.normal(0.5, 1, 30)
    draws = []
    for _ in range(400):
        a, b = bank_of(truth + rng.normal(0, 0.1, 30)), bank_of(truth + 1 + rng.normal(0, 0.1, 30))
        found = link(a, b, "mean-sigma")
        draws.append((found.shift, found.slope, found.shift_se, found.slope_se, found.link_error))
    shift, slope, shift_se, slope_se, link_error = np.array(draws).T
    assert np.mean(shift_se) == pytest.approx(shift.std(), rel=0.12)
    assert np.mean(slope_se) == pytest.approx(slope.std(), rel=0.12)
    assert np.mean(link_error) == pytest.approx(shift.std(), rel=0.15)


def test_drift_is_found_and_the_robust_shift_ignores_it(pair: tuple[Bank, Bank, np.ndarray]) -> None:
    a, b, drift = pair
    drifted = replace(b, difficulty=b.difficulty + 2 * np.abs(drift) * (drift < 0))  # now both up: the mean is off
    robust, mean = link(a, drifted, "robust"), link(a, drifted, "mean")
    assert robust.drift.nonzero()[0].tolist() == [3, 17]
    assert mean.drift.nonzero()[0].tolist() == [3, 17]
    assert abs(robust.shift - 0.5) < 3 * robust.shift_se
    assert mean.shift - robust.shift == pytest.approx(-2 * 1.0 / 40, abs=0.02)
    assert robust.difference[3] == pytest.approx(1.0, abs=0.4)
    assert robust.finding.severity == "warning"
    assert robust.finding.items == (3, 17)
    assert robust.table().columns == list(robust.columns())


def test_no_more_flags_than_chance_without_drift() -> None:
    flags = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=30)
        flags.append(link(bank_of(truth + rng.normal(0, 0.1, 30)), bank_of(truth + rng.normal(0, 0.1, 30))).drift)
    assert np.mean(flags) < 0.02


@pytest.mark.slow
def test_real_calibrations_of_two_groups() -> None:
    """Two halves of the items overlap; groups differ in ability by 1. After the link both are on one scale."""
    rng = np.random.default_rng(4)
    beta = rng.normal(size=30)
    easy = simulate.rasch(3000, difficulty=beta[:20], ability_mean=0, seed=5)
    hard = simulate.rasch(3000, difficulty=beta[10:], ability_mean=1, seed=6)
    one = SpectralRasch().fit(easy.responses)
    other_data = replace(hard.responses, items=np.arange(10, 30))
    other = SpectralRasch().fit(other_data)
    found = link(one, other)
    linked = found.apply(Bank.from_fit(other, other_data))
    truth = beta[10:] - beta[:20].mean()
    assert len(found.item) == 10
    assert np.sqrt(np.mean(((linked.difficulty - truth) / linked.se) ** 2)) < 1.6
    assert abs(found.shift - (beta[10:].mean() - beta[:20].mean())) < 3 * found.shift_se


def test_apply_takes_scale_and_says_so(pair: tuple[Bank, Bank, np.ndarray]) -> None:
    a, b, _ = pair
    a = a.rescale(mean=500, sd=100)
    found = a.link(b)
    linked = found.apply(b)
    assert linked.scale == a.scale
    assert linked.findings[-1].code == "linked"
    assert linked.difficulty - b.difficulty == pytest.approx(found.shift)
    assert np.array_equal(b.difficulty, pair[1].difficulty)


def test_labels_that_differ_by_type_alone() -> None:
    a, b = bank_of(np.arange(5.0)), bank_of(np.arange(5.0) + 1)
    text = np.empty(5, dtype=object)
    text[:] = [str(k) for k in range(5)]
    assert link(a, replace(b, items=text), "mean").shift == pytest.approx(-1)


def test_too_few_common_items() -> None:
    a = bank_of(np.arange(5.0))
    with pytest.raises(BankError, match="share 0 items; method='robust' needs at least 3"):
        link(a, bank_of(np.arange(5.0), first=5))
    with pytest.raises(BankError, match=r"share 1 items: 4; method='mean' needs at least 2"):
        link(a, bank_of(np.arange(5.0), first=4), "mean")
    with pytest.raises(BankError, match="needs at least 3"):
        link(a, bank_of(np.arange(5.0), first=3), "mean-sigma")
    with pytest.raises(BankError, match="do not differ"):
        link(bank_of(np.zeros(5)), bank_of(np.arange(5.0)), "mean-sigma")
    with pytest.raises(OptionError, match="'mean', 'mean-sigma', 'robust'"):
        link(a, a, "median")
    with pytest.raises(BankError, match=r"make one with Bank\.from_fit\(fit, responses\)"):
        link(a, a).apply(SpectralRasch())  # type: ignore[arg-type]
