"""Are equated scores right, and as sure as their standard errors say?

    python benchmarks/equating.py [--replicates 200]

Two forms with common items, each taken by other people, who differ in mean ability by 0.6 logits; both are calibrated
by default, linked and equated. Over the scores between nothing and everything right: the root mean square of the
difference from the true equating (in score points), the mean bias, the mean standard error over the standard deviation
of the estimates, and how often the truth is within 1.96 standard errors. Fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import draws
import harness
from spectral_irt import Responses, SpectralRasch, equate
from spectral_irt.inference.scores.equating import equate_scores

SETTINGS = [(20, 8, 500), (20, 8, 2_000), (40, 10, 500), (20, 4, 500)]


def setting(items: int, common: int, people: int, seeds: Iterable[int]) -> dict[str, float]:
    rng = np.random.default_rng(items + common)
    a = rng.normal(size=items)
    b = np.concatenate([a[:common], rng.normal(0.5, 1.0, items - common)])
    labels = [[f"c{k}" for k in range(common)] + [f"{x}{k}" for k in range(items - common)] for x in "ab"]
    truth = equate_scores(a, b).equated[1:-1]
    estimates, errors = [], []
    for seed in seeds:
        draw = np.random.default_rng([seed, people])
        fits = []
        for beta, names, mean in zip((a, b), labels, (0.0, 0.6), strict=True):
            x = draws.answers(draw, draw.normal(mean, 1.0, people)[:, None] - beta)
            fits.append(SpectralRasch().fit(Responses.from_wide(x, items=names)))
        found = equate(fits[0], fits[1])
        estimates.append(found.equated[0][1:-1])
        errors.append(found.se[0][1:-1])
    away, se = np.array(estimates) - truth, np.array(errors)
    return {
        "rms error": np.sqrt(np.mean(away**2)),
        "bias": away.mean(),
        "se / sd": (se.mean(axis=0) / away.std(axis=0, ddof=1)).mean(),
        "coverage": np.mean(np.abs(away) < 1.96 * se),
    }


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=200)
    names = ("items", "common", "people each")
    rows = (dict(zip(names, one, strict=True)) | setting(*one, asked.seeds) for one in SETTINGS)
    harness.show(f"Equating: {asked.replicates} replicates", rows, asked)
