"""How often a wrong key is found in a test of 40 items with four options, and how often a right one is suspected.

    python benchmarks/wrong_keys.py [--replicates 100]

Answers with fixed seeds. Difficulties are between -2 and 2 where keys are right, and between -1 and 1 where one is
wrong; what attracts those who do not know differs from option to option.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from measure import table
from spectral_irt import Responses, SpectralRasch

Rng = np.random.Generator
ITEMS = 40
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=100)
    replicates = parser.parse_args().replicates
    warnings.simplefilter("ignore")
    rows = []
    for name, draw in RIGHT.items():
        for n in (100, 300, 1000):
            every = [found(draw(np.random.default_rng(seed), n), np.array([])) for seed in range(replicates)]
            counts = [sum(code in one for one in every) for code in ("wrong_key", "reversed_items")]
            rows.append((name, f"{n:,}", *(f"{count / replicates:.0%}" for count in counts)))
    print("Tests whose keys are all right, and of them with a finding:\n")
    print(table(("answers", "people", "wrong_key", "reversed_items"), rows))
    rows = []
    for wrong in (1, 4):
        for n in (100, 300, 1000):
            hits = others = 0
            for seed in range(replicates):
                rng = np.random.default_rng(10_000 + seed)
                chosen = model(rng, n, spread=1.0)[0]
                where = rng.choice(ITEMS, wrong, replace=False)
                named = set().union(*found(chosen, where).values())
                true = {LABELS[k] for k in where}
                hits, others = hits + len(named & true), others + len(named - true)
            rows.append((wrong, f"{n:,}", f"{hits / wrong / replicates:.0%}", others))
    print("\nTests with wrong keys, how many of them are found, and other items that are named:\n")
    print(table(("wrong keys", "people", "found", "others"), rows))


if __name__ == "__main__":
    main()
