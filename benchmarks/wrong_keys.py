"""How often a wrong key is found in a test of 40 items with four options, and how often a right one is suspected.

    python benchmarks/wrong_keys.py [--replicates 100]

Answers with fixed seeds. Difficulties are between -2 and 2 where keys are right, and between -1 and 1 where one is
wrong; what attracts those who do not know differs from option to option.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

import harness
from draws import Rng
from spectral_irt import Responses, SpectralRasch

ITEMS, PEOPLE = 40, (100, 300, 1000)
LABELS = [f"q{k + 1}" for k in range(ITEMS)]
OPTIONS = np.array(list("ABCD"), dtype=object)


def model(rng: Rng, n: int, *, spread: float = 2.0, slope: float = 0.0, guess: float = 0.0) -> tuple:
    """Who chose what (0: the right option), and abilities and difficulties."""
    theta, beta = rng.normal(size=(n, 1)), rng.uniform(-spread, spread, ITEMS)
    slopes = rng.uniform(1 - slope, 1 + slope, ITEMS)
    p = guess + (1 - guess) / (1 + np.exp(slopes * (beta - theta)))
    wrong = np.column_stack([rng.choice([1, 2, 3], n, p=rng.dirichlet([3.0] * 3)) for _ in range(ITEMS)])
    return np.where(rng.random((n, ITEMS)) < p, 0, wrong), theta, beta


def plausible(rng: Rng, n: int) -> np.ndarray:
    """A distractor of every item attracts those who know something: of the wrong answers of the abler, nine in ten."""
    chosen, theta, beta = model(rng, n)
    lured = (chosen > 0) & (rng.random(chosen.shape) < 0.9 / (1 + np.exp(2 * (beta - 1.0 - theta))))
    return np.where(lured, 1, chosen)


def two_right(rng: Rng, n: int) -> np.ndarray:
    """Half of those who know the answer to an item of four choose an option that is as good as the key."""
    chosen = model(rng, n)[0]
    other = (chosen == 0) & (rng.random(chosen.shape) < 0.5)
    other[:, 4:] = False
    return np.where(other, 1, chosen)


RIGHT: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "the model": lambda rng, n: model(rng, n)[0],
    "plausible distractors": plausible,
    "guessing, one in four": lambda rng, n: model(rng, n, guess=0.25)[0],
    "slopes from 0.4 to 1.6": lambda rng, n: model(rng, n, slope=0.6)[0],
    "four items with two right answers": two_right,
}


def found(chosen: np.ndarray, wrong: np.ndarray) -> dict[str, set[str]]:
    """Items by finding, where the key of some says 1 instead of 0."""
    key = {label: "B" if k in wrong else "A" for k, label in enumerate(LABELS)}
    responses = Responses.from_wide(OPTIONS[chosen], items=LABELS, key=key)
    study = SpectralRasch(se="none").fit(responses).analyse(responses)
    return {finding.code: set(finding.items) for finding in study._item_findings()}


def suspected(name: str, n: int, seed: int) -> dict[str, float]:
    codes = found(RIGHT[name](np.random.default_rng(seed), n), np.array([]))
    return {code: float(code in codes) for code in ("wrong_key", "reversed_items")}


def miskeyed(wrong: int, n: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(10_000 + seed)
    chosen = model(rng, n, spread=1.0)[0]
    where = rng.choice(ITEMS, wrong, replace=False)
    named, true = set().union(*found(chosen, where).values()), {LABELS[k] for k in where}
    return {"found": len(named & true) / wrong, "others a test": len(named - true)}


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=100)
    cases = [({"answers": name, "people": n}, partial(suspected, name, n)) for name, n in product(RIGHT, PEOPLE)]
    harness.study("All keys are right; share of tests with a finding", cases, asked)
    cases = [({"wrong keys": k, "people": n}, partial(miskeyed, k, n)) for k, n in product((1, 4), PEOPLE)]
    harness.study("Wrong keys that are found, and other items that are named", cases, asked)
