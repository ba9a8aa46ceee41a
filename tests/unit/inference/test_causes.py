"""Likely causes of misfit."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.data import Responses

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each


def codes(responses: Responses) -> set[str]:
    return {each.code for each in SpectralRasch(se="none").fit(responses).analyse(responses).checks().findings}


def test_unequal_slopes_are_seen_and_named() -> None:
    rng = np.random.default_rng(1)
    slopes = np.exp(rng.normal(0, 0.5, 30))
    data = simulate.rasch(2000, 30, slopes=slopes, seed=1).responses
    named = codes(data)
    assert {"misfitting_items", "unequal_slopes"} <= named
    assert "guessing" not in named


def test_guessing_is_named() -> None:
    rng = np.random.default_rng(2)
    p = 0.25 + 0.75 / (1 + np.exp(rng.normal(0.5, 1, 30) - rng.normal(0, 1.2, (2000, 1))))
    found = codes(Responses.from_wide((rng.random(p.shape) < p).astype(float)))
    assert "guessing" in found
    assert "unequal_slopes" not in found


def test_speed_is_named_and_answers_not_reached_as_missing_are_fine() -> None:
    rng = np.random.default_rng(3)
    x = (rng.random((2000, 30)) < 1 / (1 + np.exp(rng.normal(size=30) - rng.normal(size=(2000, 1))))).astype(float)
    stop = np.where(rng.random(2000) < 0.2, rng.integers(20, 30, 2000), 30)
    reached = np.arange(30) < stop[:, None]
    assert {"dependent_items", "last_items"} <= codes(Responses.from_wide(np.where(reached, x, 0.0)))
    assert not codes(Responses.from_wide(np.where(reached, x, np.nan)))


def test_no_cause_without_misfit() -> None:
    assert not codes(simulate.rasch(2000, 30, seed=1).responses)
