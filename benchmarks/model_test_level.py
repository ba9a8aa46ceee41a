"""How often `study.model_test()` rejects a true model, by the way in which answers are missing.

    python benchmarks/model_test_level.py [--replicates 100]

Rasch data with fixed seeds; 5% should be rejected. The last two designs depend on the answers themselves, which
conditional methods do not allow.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from measure import table
from spectral_irt import Responses, SpectralRasch
from spectral_irt.errors import DesignError

Rng = np.random.Generator


def answers(rng: Rng, ability: np.ndarray, items: int) -> np.ndarray:
    difficulty = np.linspace(-2, 2, items)
    return (rng.random((len(ability), items)) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(float)


def complete(rng: Rng) -> np.ndarray:
    return answers(rng, rng.normal(size=500), 20)


def half(rng: Rng) -> np.ndarray:
    x = complete(rng)
    x[rng.random(x.shape) < 0.5] = np.nan
    return x


def sparse(rng: Rng) -> np.ndarray:
    x = answers(rng, rng.normal(size=2000), 50)
    x[rng.random(x.shape) < 0.9] = np.nan
    return x


def targeted(rng: Rng) -> np.ndarray:
    grade = np.arange(600) % 3
    x = answers(rng, rng.normal(grade - 1.0, 0.8), 30)
    start = (7.5 * grade)[:, None]
    x[(np.arange(30) < start) | (np.arange(30) >= start + 15)] = np.nan
    return x


def two_stages(rng: Rng) -> np.ndarray:
    x = answers(rng, rng.normal(size=600), 30)
    high = x[:, 5:25:2].sum(axis=1) >= 5
    x[np.ix_(high, [0, 1, 2, 3, 4, 6, 8, 10])] = np.nan
    x[np.ix_(~high, [20, 22, 24, 25, 26, 27, 28, 29])] = np.nan
    return x


def stopped(rng: Rng) -> np.ndarray:
    x = answers(rng, rng.normal(size=600), 20)
    for row in x:
        wrong = np.flatnonzero((row[:-2] == 0) & (row[1:-1] == 0) & (row[2:] == 0))
        if len(wrong):
            row[wrong[0] + 3 :] = np.nan
    return x


DESIGNS: dict[str, Callable[[Rng], np.ndarray]] = {
    "complete": complete,
    "half missing by chance": half,
    "nine in ten missing by chance": sparse,
    "forms of three levels for three grades": targeted,
    "two stages, the second by the first's score": two_stages,
    "stopped after three wrong in a row": stopped,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=100)
    number = parser.parse_args().replicates
    warnings.simplefilter("ignore")
    rows: list[list[object]] = []
    for name, draw in DESIGNS.items():
        p = []
        for seed in range(number):
            responses = Responses.from_wide(draw(np.random.default_rng(seed)))
            try:
                p.append(SpectralRasch().fit(responses).analyse(responses).model_test().p)
            except DesignError:  # a half cannot be calibrated on its own
                p.append(np.nan)
        known = np.array(p)[np.isfinite(p)]
        rows.append([name, len(known), f"{np.mean(known < 0.05):.3f}"])
    print(table(["design", "data sets", "rejected at 5%"], rows))


if __name__ == "__main__":
    main()
