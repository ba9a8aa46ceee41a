"""How near predicted accuracy and consistency of cut scores come to the true ones.

    python benchmarks/cuts.py [--replicates 8]

Simulated people of known ability take two tests of the same items; the first is calibrated by default, people are put
into three classes at -0.5 and 0.7 logits by Warm's estimates, and `study.cuts` predicts how many are in the class of
their true ability (accuracy), and how many in the same class by the second test (consistency). "Forms": everybody
answered every item. "Own items": each answer is missing with a chance of a half, so that few people share a form.
Averages over replicates with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import draws
import harness
from spectral_irt import SpectralRasch
from spectral_irt.inference.scores.cut_scores import class_of

PEOPLE, CUTS = 3_000, np.array([-0.5, 0.7])
ABILITIES: dict[str, Callable[[draws.Rng], np.ndarray]] = {
    "normal": lambda rng: rng.normal(0.2, 1.0, PEOPLE),
    "exponential": lambda rng: rng.exponential(1.0, PEOPLE) - 1,
    "two classes": lambda rng: rng.normal(0.0, 0.5, PEOPLE) + np.where(rng.random(PEOPLE) < 0.5, -1.0, 1.0),
}
MISSING = {"forms": 0.0, "own items": 0.5}


def replicate(kind: str, items: int, answers: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, items])
    beta = rng.normal(size=items)
    beta -= beta.mean()
    theta = ABILITIES[kind](rng)
    absent = rng.random((PEOPLE, items)) < MISSING[answers]
    first, again = (np.where(absent, np.nan, draws.answers(rng, theta[:, None] - beta)) for _ in range(2))
    fit = SpectralRasch(se="none").fit(first)
    study = fit.analyse(first)
    found = study.cuts(CUTS).row(-1, named=True)
    mine, other = (class_of(each.abilities().ability, CUTS) for each in (study, fit.analyse(again)))
    answered = study.abilities().n > 0
    right, same = (mine == class_of(theta, CUTS))[answered], (mine == other)[answered]
    predicted = {"accuracy": found["accuracy"], "consistency": found["consistency"]}
    return predicted | {"true accuracy": right.mean(), "true consistency": same.mean()}


if __name__ == "__main__":
    cases = harness.cases(replicate, abilities=ABILITIES, items=(10, 20, 60), answers=MISSING)
    harness.study(f"Cut scores, {PEOPLE:,} people", cases, harness.arguments(__doc__, replicates=8))
