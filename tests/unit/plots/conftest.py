"""Small studies whose pictures are looked at."""

from __future__ import annotations

import numpy as np
import pytest

import spectral_irt as si

ODD = ["$x^2$", "<script>alert(1)</script>", "_a_", "A very long label of an item about ferns and mosses", "two\nlines"]


def make_study(n: int, m: int, *, share: float = 1.0, seed: int = 5) -> si.Analysis:
    """Two misfitting items, one that differs between groups (odd and even people), one pair that depends, odd names."""
    rng = np.random.default_rng(seed)
    theta, beta = rng.normal(0.3, 1.1, (n, 1)), rng.normal(0, 1.2, m)
    slope = np.where(np.arange(m) == 3, 0.3, np.where(np.arange(m) == 7, 2.5, 1.0))
    shift = np.outer(np.arange(n) % 2, np.arange(m) == 5) * 1.2
    answers = (rng.random((n, m)) < 1 / (1 + np.exp(-slope * (theta - beta - shift)))).astype(float)
    answers[: n // 2, 11] = answers[: n // 2, 12]
    answers[rng.random((n, m)) >= share] = np.nan
    labels = [*ODD, *(f"Item {k}" for k in range(len(ODD) + 1, m + 1))]
    responses = si.Responses.from_wide(answers, items=labels)
    return si.SpectralRasch().fit(responses).analyse(responses)


@pytest.fixture(scope="session")
def study() -> si.Analysis:
    return make_study(800, 20)


@pytest.fixture(scope="session")
def wide_study() -> si.Analysis:
    return make_study(1500, 500, share=0.1)
