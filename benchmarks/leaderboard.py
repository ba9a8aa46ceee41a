"""Leaderboards: do ranks hold?

    python benchmarks/leaderboard.py [--parts ranks,spreads] [--replicates 40] [--sizes 500]

ranks: simulated leaderboards of 30 models (abilities normal with the given standard deviation), with and without
clusters of prompts whose models have abilities of their own (passages of five prompts); the share in which all true
ranks are in their intervals, their mean width as a share of the models, and the number of models whose ranks are wholly
below those of their tier's first. spreads: the same where abilities are not normal, or models come in families.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import numpy as np

import draws
import harness
import spectral_irt as si


def families(size: int, within: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, m: np.repeat(rng.normal(size=m // size), size) + rng.normal(0, within, m)


# Of abilities, with mean 0 and variance 1 or so.
SPREADS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": draws.SPREADS["normal"],
    "a few far ahead (exponential)": draws.SPREADS["exponential"],
    "many at the top (exponential)": draws.SPREADS["exponential, crowded above"],
    "t with 3 degrees of freedom": draws.SPREADS["t with 3 degrees of freedom"],
    "two tight groups, 6 and 24": lambda rng, m: np.where(np.arange(m) < m / 5, 2.0, -0.5) + rng.normal(0, 0.05, m),
    "six families of five": families(5, 0.05),
    "six families of five, within 0.03": families(5, 0.03),
    "three families of ten, within 0.02": families(10, 0.02),
    "nearly equal (sd / 50)": lambda rng, m: rng.normal(0, 0.02, m),
}


def hold(spread: str, sd: float, n: int, passages: int, seeds: Iterable[int]) -> harness.Row:
    """How often all true ranks are in their intervals, how wide these are, and models that contradict their tier.

    With passages, models differ in how they do on each.
    """
    m, rows, passage = 30, [], np.arange(n) * passages // n
    for seed in seeds:
        rng = np.random.default_rng([31, seed])
        ability = sd * SPREADS[spread](rng, m)
        logit = ability[:, None] - rng.normal(0, 1.5, n)
        if passages:
            logit = logit + rng.normal(0, 0.7, (m, passages))[:, passage]
        board = si.Leaderboard(draws.answers(rng, logit), clustered_by=passage.tolist() if passages else None)
        found = board.model_columns()
        true = (m - np.argsort(np.argsort(ability)))[found["model"].astype(int)]
        low, high, tier = found["rank_low"], found["rank_high"], found["tier"]
        first = np.searchsorted(tier, tier)  # the first of each model's tier
        rows.append([np.all((low <= true) & (true <= high)), np.mean(high - low + 1) / m, np.sum(low > high[first])])
    held, width, _ = np.mean(rows, axis=0)
    return {"hold": held, "width": width, "below their tier": int(np.sum(rows, axis=0)[2])}


def ranks(asked: Namespace) -> Iterator[harness.Row]:
    for n, sd, clusters in product(asked.sizes, (1.0, 0.3), ("no", "yes")):
        labels = {"prompts": n, "sd of abilities": sd, "clusters": clusters}
        yield labels | hold("normal", sd, n, n // 5 if clusters == "yes" else 0, asked.seeds)


def spreads(asked: Namespace) -> Iterator[harness.Row]:
    for n, sd, spread in product(asked.sizes, (1.0, 0.3), SPREADS):
        yield {"abilities": spread, "prompts": n, "sd": sd} | hold(spread, sd, n, 0, asked.seeds)


PARTS = {"ranks": ranks, "spreads": spreads}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=tuple(PARTS), replicates=40, sizes=(500,))
    for part in asked.parts:
        harness.show(part, PARTS[part](asked), asked)
