"""Are loads with drifted items found before they are in a bank, are clean ones let in, and what does that cost?

    python benchmarks/banks.py [--replicates 200] [--drift 0,0.5] [--time] [--items 500,1000,2000]

A bank is calibrated with some people, and a load of others is compared with it, item by item. With a drift one item in
ten is harder by so many logits in the load.

alarm: loads in which an item without drift is named; found: drifted items that are named; size: mean displacement of
the drifted items.

`--time` instead: CPU seconds of `link` (two banks with the same items, of a million answers each) and of `update`
(200,000 answers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import draws
import harness
from spectral_irt import Bank, Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.bank.drift import drift as compare

# name: people of the bank, people of the load, items, share answered, categories
LOADS: dict[str, tuple[int, int, int, float, int]] = {
    "5 people": (1000, 5, 30, 1.0, 2),
    "30 people": (1000, 30, 30, 1.0, 2),
    "500 people": (1000, 500, 30, 1.0, 2),
    "2000 people and a bank of 300": (300, 2000, 30, 1.0, 2),
    "500 people and a third answered": (2000, 500, 60, 0.33, 2),
    "500 people in 4 categories": (1000, 500, 20, 1.0, 4),
}
SHARE = 0.1  # of the items drift
ANSWERS = 100  # of each person, where time is measured
MANY, LOAD = 1_000_000, 200_000  # answers of a bank and of a load there


def bank_of(responses: Responses) -> Bank:
    fit = (SpectralRasch if responses.thresholds.binary else SpectralPartialCredit)().fit(responses)
    return Bank.from_fit(fit, responses)


def load(name: str, by: float, seed: int) -> dict[str, float]:
    """What is said about one load."""
    people, more, n_items, share, categories = LOADS[name]
    rng = np.random.default_rng([seed, people, more, n_items, categories])
    difficulty = rng.normal(size=n_items)
    moved = rng.permutation(n_items) < round(SHARE * n_items) * (by > 0)
    options: dict[str, Any] = {"design": "sampled", "p": share} if share < 1 else {}
    first, second = (
        draws.simulated(categories, n, where, seed=int(rng.integers(2**31)), **options).responses
        for n, where in ((people, difficulty), (more, difficulty + by * moved))
    )
    bank = bank_of(first)
    found = compare(bank, bank._align(bank._as_responses(second), ignore_unknown=True))
    drifted = moved[found.item.astype(int)]
    return {
        "alarm": float((found.drifted & ~drifted).any()),
        "found": float(found.drifted[drifted].mean()) if drifted.any() else np.nan,
        "size": float(found.displacement[drifted].mean()) if drifted.any() else np.nan,
    }


def times(n_items: int) -> harness.Row:
    """CPU seconds with so many items."""
    difficulty = np.random.default_rng(n_items).normal(size=n_items)

    def sample(answers: int, seed: int) -> Responses:
        people, share = answers // ANSWERS, ANSWERS / n_items
        return simulate.rasch(people, difficulty=difficulty, design="sampled", p=share, seed=seed).responses

    first, second = bank_of(sample(MANY, 1)), bank_of(sample(MANY, 2))
    more = sample(LOAD, 3)
    spent = harness.in_turns({"link": lambda: first.link(second), "update": lambda: first.update(more)})
    return {"items": n_items} | {name: cost.cpu for name, cost in spent.items()}


if __name__ == "__main__":
    options: dict[str, Any] = {"drift": (0.0, 0.5), "time": False, "items": (500, 1000, 2000)}
    asked = harness.arguments(__doc__, replicates=200, loads=tuple(LOADS), **options)
    if asked.time:
        harness.show("Banks: CPU seconds", map(times, asked.items), asked)
    else:
        harness.study("Loads", harness.cases(load, load=asked.loads, drift=asked.drift), asked)
