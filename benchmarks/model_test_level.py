"""How often `study.model_test()` rejects a true model, by the way in which answers are missing.

    python benchmarks/model_test_level.py [--replicates 100]

Rasch data with fixed seeds; 5% should be rejected. The last two designs depend on the answers themselves, which
conditional methods do not allow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import draws
import harness
from spectral_irt import Responses, SpectralRasch
from spectral_irt.errors import DesignError


def complete(rng: draws.Rng, people: int = 500, items: int = 20, missing: float = 0.0) -> np.ndarray:
    x = draws.answers(rng, rng.normal(size=(people, 1)) - np.linspace(-2, 2, items))
    return np.where(rng.random(x.shape) < missing, np.nan, x) if missing else x


def targeted(rng: draws.Rng) -> np.ndarray:
    grade = np.arange(600) % 3
    x = draws.answers(rng, rng.normal(grade - 1.0, 0.8)[:, None] - np.linspace(-2, 2, 30))
    return draws.window(x, 7.5 * grade, 15)


def two_stages(rng: draws.Rng) -> np.ndarray:
    x = complete(rng, 600, 30)
    high = x[:, 5:25:2].sum(axis=1) >= 5
    x[np.ix_(high, [0, 1, 2, 3, 4, 6, 8, 10])] = np.nan
    x[np.ix_(~high, [20, 22, 24, 25, 26, 27, 28, 29])] = np.nan
    return x


def stopped(rng: draws.Rng) -> np.ndarray:
    x = complete(rng, 600)
    for row in x:
        wrong = np.flatnonzero((row[:-2] == 0) & (row[1:-1] == 0) & (row[2:] == 0))
        if len(wrong):
            row[wrong[0] + 3 :] = np.nan
    return x


DESIGNS: dict[str, Callable[[draws.Rng], np.ndarray]] = {
    "complete": complete,
    "half missing by chance": partial(complete, missing=0.5),
    "nine in ten missing by chance": partial(complete, people=2000, items=50, missing=0.9),
    "forms of three levels for three grades": targeted,
    "two stages, the second by the first's score": two_stages,
    "stopped after three wrong in a row": stopped,
}


def replicate(design: str, seed: int) -> dict[str, float]:
    responses = Responses.from_wide(DESIGNS[design](np.random.default_rng(seed)))
    try:
        p = SpectralRasch().fit(responses).analyse(responses).model_test().p
    except DesignError:  # a half cannot be calibrated on its own
        p = np.nan
    return {"tested": float(np.isfinite(p)), "rejected at 5%": float(p < 0.05) if np.isfinite(p) else np.nan}


if __name__ == "__main__":
    cases = [({"design": name}, partial(replicate, name)) for name in DESIGNS]
    harness.study("The test of the model", cases, harness.arguments(__doc__, replicates=100))
