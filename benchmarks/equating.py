"""Are equated scores right, and as sure as their standard errors say?

    python benchmarks/equating.py [--replicates 200]

Two forms with common items, each taken by other people, who differ in mean ability by 0.6 logits; both are calibrated
by default, linked and equated. Over the scores between nothing and everything right: the root mean square of the
difference from the true equating (in score points), the mean bias, the mean standard error over the standard deviation
of the estimates, and how often the truth is within 1.96 standard errors. Fixed seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

from measure import table
from spectral_irt import Responses, SpectralRasch, equate
from spectral_irt.inference.scores.equating import equated

HEAD = ["items", "common", "people each", "rms error", "bias", "se / sd", "coverage"]
SETTINGS = [(20, 8, 500), (20, 8, 2_000), (40, 10, 500), (20, 4, 500)]


def setting(items: int, common: int, people: int, replicates: int) -> list[float]:
    rng = np.random.default_rng(items + common)
    a = rng.normal(size=items)
    b = np.concatenate([a[:common], rng.normal(0.5, 1.0, items - common)])
    labels = [[f"c{k}" for k in range(common)] + [f"{x}{k}" for k in range(items - common)] for x in "ab"]
    truth = equated(a, b).equated[1:-1]
    estimates, errors = [], []
    for seed in range(replicates):
        draw = np.random.default_rng([seed, people])
        fits = []
        for beta, names, mean in zip((a, b), labels, (0.0, 0.6), strict=True):
            theta = draw.normal(mean, 1.0, people)
            right = draw.random((people, items)) < 1 / (1 + np.exp(beta - theta[:, None]))
            fits.append(SpectralRasch().fit(Responses.from_wide(right.astype(float), items=names)))
        found = equate(fits[0], fits[1])
        estimates.append(found.equated[0][1:-1])
        errors.append(found.se[0][1:-1])
    away, se = np.array(estimates) - truth, np.array(errors)
    ratio = (se.mean(axis=0) / away.std(axis=0, ddof=1)).mean()
    return [np.sqrt(np.mean(away**2)), away.mean(), ratio, np.mean(np.abs(away) < 1.96 * se)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    number = parser.parse_args().replicates
    rows: list[list[object]] = []
    for one in SETTINGS:
        rows.append([*one, *(f"{x:.3f}" for x in setting(*one, number))])
    print(f"{number} replicates")
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
