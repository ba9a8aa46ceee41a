"""What items share beyond one ability: found where it is, in any design, and not where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.data import Responses
from spectral_irt.inference.dimensions import dimensionality as module
from spectral_irt.inference.dimensions.dimensionality import Dimensionality, dimensionality


def drawn(rng: np.random.Generator, logit: np.ndarray) -> np.ndarray:
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)


def look(x: np.ndarray) -> Dimensionality | None:
    responses = Responses.from_wide(x)
    return dimensionality(SpectralRasch(se="none").fit(responses).calibration_, responses)


@pytest.mark.parametrize(("m", "seen", "severity"), [(30, 1.0, "warning"), (30, 0.5, "warning"), (12, 1.0, "note")])
def test_two_abilities_are_two_sides_of_a_contrast_whose_size_decides(m: int, seen: float, severity: str) -> None:
    rng = np.random.default_rng(1)
    theta = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], 1500)
    x = drawn(rng, theta[:, np.arange(m) % 2] - rng.normal(size=m))
    x[rng.random(x.shape) > seen] = np.nan
    found = look(x)
    assert found is not None
    assert found.two_dimensions
    assert len(set(np.sign(found.loadings[::2]))) == 1
    np.testing.assert_array_equal(np.sign(found.loadings[::2]), -np.sign(found.loadings[1::2]))
    finding = next(each for each in found.findings if each.code == "second_dimension")
    assert finding.severity == severity
    assert (found.strength < module.CONTRAST) == (severity == "note")


def test_testlets_are_groups() -> None:
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(2000, 1)) + np.repeat(rng.normal(0, 1.2, (2000, 3)), 4, axis=1)
    found = look(drawn(rng, theta - rng.normal(size=12)))
    assert found is not None
    groups = module.clusters(12, found.first, found.second)
    assert sorted(group.tolist() for group in groups) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert "in 3 groups" in found.findings[0].sentence
    assert found.findings[0].severity == "warning"  # a set of items, whatever its strongest pair


def test_one_copied_pair_is_a_pair_and_no_dimension() -> None:
    rng = np.random.default_rng(3)
    x = drawn(rng, rng.normal(size=(1000, 1)) - rng.normal(size=15))
    who = rng.random(1000) < 0.5
    x[who, 9] = x[who, 4]
    found = look(x)
    assert found is not None
    assert (found.first.tolist(), found.second.tolist()) == ([4], [9])
    assert [finding.code for finding in found.findings] == ["dependent_items"]
    assert found.findings[0].items == (4, 9)
    assert "Local dependence in 1 pair of items (residual correlation 0." in found.findings[0].sentence


def test_difficulties_from_elsewhere_are_no_dependence() -> None:
    """Anchors that are off by half a logit either way: displaced, but no more alike for that."""
    data = simulate.rasch(3000, 20, seed=4)
    made = SpectralRasch(se="none").fit(data.responses).calibration_
    shifted = made.replace(thresholds=made.difficulty + np.where(np.arange(20) % 2, 0.5, -0.5))
    found = dimensionality(shifted, data.responses)
    assert found is not None
    assert not found.findings


def test_people_and_items_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEOPLE", 300)
    monkeypatch.setattr(module, "ITEMS", 10)
    data = simulate.rasch(900, 30, design="popularity", n_responses=15_000, seed=5)
    found = dimensionality(SpectralRasch(se="none").fit(data.responses).calibration_, data.responses)
    assert found is not None
    assert found.sampled
    assert 100 < found.n_people <= 300
    often = np.argsort(-data.responses.item_counts, kind="stable")[:10]
    assert sorted(found.items.tolist()) == sorted(data.responses.items[often].tolist())


def test_too_few_people_or_items_have_nothing_to_tell() -> None:
    assert look(simulate.rasch(80, 10, seed=1).responses.to_dense()) is None
    assert look(simulate.rasch(800, 3, seed=1).responses.to_dense()) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "design",
    [
        {"n_persons": 400, "n_items": 30},
        {"n_persons": 2000, "n_items": 5},
        {"n_persons": 600, "n_items": 40, "design": "sampled", "p": 0.4},
    ],
)
def test_p_values_keep_their_level(design: dict) -> None:
    """Of 80 data sets under the model at most 5% + 2.5 standard errors below 5%, for pairs and for the contrast."""
    p = []
    for seed in range(80):
        responses = simulate.rasch(**design, seed=seed).responses
        found = dimensionality(SpectralRasch(se="none").fit(responses).calibration_, responses)
        assert found is not None
        p.append((found.pairs_p, found.contrast_p))
    assert np.all(np.mean(np.array(p) < 0.05, axis=0) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 80))


@pytest.mark.parametrize("ordered", [False, True])
def test_unequal_slopes_are_no_second_dimension(ordered: bool) -> None:
    """One ability behind steep and flat items: the contrast is there, and called by its name."""
    rng = np.random.default_rng(12)
    theta, slope = rng.normal(size=(1500, 1)), np.repeat([0.5, 1.5], 10)
    x = drawn(rng, slope * (theta - rng.normal(size=20)))
    if ordered:
        x = x + drawn(rng, slope * (theta - rng.normal(size=20) - 1)) * x
        answers: Responses = Responses.from_wide(x, ordered=True)
        found = dimensionality(SpectralPartialCredit(se="none").fit(answers).calibration_, answers)
    else:
        found = look(x)
    assert found is not None
    assert found.equal_slopes is not None
    assert found.equal_slopes[0] < 0.001
    assert found.by_slopes
    assert not found.two_dimensions
    assert not found.dependent
    assert [finding.code for finding in found.findings] == ["unequal_slopes"]
    assert "Items differ in slope" in found.findings[0].sentence


def test_a_minor_dimension_of_a_quarter_of_the_items_is_not_taken_for_flat_items() -> None:
    rng = np.random.default_rng(13)
    theta = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 1500)
    found = look(drawn(rng, theta[:, (np.arange(20) % 4 == 0).astype(int)] - rng.normal(size=20)))
    assert found is not None
    assert found.two_dimensions
    np.testing.assert_array_equal(np.sign(found.loadings) == np.sign(found.loadings[0]), np.arange(20) % 4 == 0)
