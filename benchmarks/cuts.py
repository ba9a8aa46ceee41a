"""How near predicted accuracy and consistency of cut scores come to the true ones.

    python benchmarks/cuts.py [--replicates 8]

Simulated people of known ability take two tests of the same items; the first is calibrated by default, people are put
into three classes at -0.5 and 0.7 logits by Warm's estimates, and `study.cuts` predicts how many are in the class of
their true ability (accuracy), and how many in the same class by the second test (consistency). "Forms": everybody
answered every item. "Own items": each answer is missing with a chance of a half, so that few people share a form.
Averages over replicates with fixed seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

from measure import table
from spectral_irt import SpectralRasch
from spectral_irt.inference.scores.cut_scores import class_of

PEOPLE, CUTS = 3_000, np.array([-0.5, 0.7])
HEAD = ["abilities", "items", "answers", "accuracy", "true", "consistency", "true"]


def abilities(kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "normal":
        return rng.normal(0.2, 1.0, PEOPLE)
    if kind == "exponential":
        return rng.exponential(1.0, PEOPLE) - 1
    return rng.normal(0.0, 0.5, PEOPLE) + np.where(rng.random(PEOPLE) < 0.5, -1.0, 1.0)


def replicate(kind: str, items: int, missing: float, seed: int) -> list[float]:
    rng = np.random.default_rng([seed, items])
    beta = rng.normal(size=items)
    beta -= beta.mean()
    theta = abilities(kind, rng)
    absent = rng.random((PEOPLE, items)) < missing
    chance = 1 / (1 + np.exp(beta - theta[:, None]))
    first, again = (np.where(absent, np.nan, rng.random(chance.shape) < chance) for _ in range(2))
    fit = SpectralRasch(se="none").fit(first)
    study = fit.analyse(first)
    found = study.cuts(CUTS).row(-1, named=True)
    mine, other = (class_of(each.abilities().ability, CUTS) for each in (study, fit.analyse(again)))
    answered = study.abilities().n > 0
    right, same = (mine == class_of(theta, CUTS))[answered], (mine == other)[answered]
    return [found["accuracy"], right.mean(), found["consistency"], same.mean()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=8)
    number = parser.parse_args().replicates
    rows: list[list[object]] = []
    for kind in ("normal", "exponential", "two classes"):
        for items in (10, 20, 60):
            for missing, told in ((0.0, "forms"), (0.5, "own items")):
                found = np.mean([replicate(kind, items, missing, seed) for seed in range(number)], axis=0)
                rows.append([kind, items, told, *(f"{x:.3f}" for x in found)])
    print(f"{PEOPLE:,} people, {number} replicates")
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
