"""Leaderboards: do ranks hold?

    python benchmarks/leaderboard.py [--parts ranks,spreads] [--replicates 40] [--sizes 500]

ranks: simulated leaderboards of 30 models (abilities normal with the given standard deviation), with and without
clusters of prompts whose models have abilities of their own (passages of five prompts); the share in which all true
ranks are in their intervals, their mean width as a share of the models, and the number of models whose ranks are wholly
below those of their tier's first. spreads: the same where abilities are not normal, or models come in families.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np

import draws
import harness
import spectral_irt as si


def table(ability: np.ndarray, n: int, rng: np.random.Generator, passages: int = 0) -> np.ndarray:
    """Models x prompts; with passages, models differ in how they do on each."""
    logit = ability[:, None] - rng.normal(0, 1.5, n)
    if passages:
        logit = logit + rng.normal(0, 0.7, (len(ability), passages))[:, np.arange(n) * passages // n]
    return draws.answers(rng, logit)


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
SEEDS = 31


def hold(spread: str, sd: float, n: int, passages: int, replicates: int) -> harness.Row:
    """How often all true ranks are in their intervals, how wide these are, and models that contradict their tier."""
    m, rows = 30, []
    for seed in range(replicates):
        rng = np.random.default_rng([SEEDS, seed])
        ability = sd * SPREADS[spread](rng, m)
        x = table(ability, n, rng, passages)
        clusters = (np.arange(n) * passages // n).tolist() if passages else None
        found = si.Leaderboard(x, clustered_by=clusters).model_columns()
        true = (m - np.argsort(np.argsort(ability)))[found["model"].astype(int)]
        low, high, tier = found["rank_low"], found["rank_high"], found["tier"]
        first = np.searchsorted(tier, tier)  # the first of each model's tier
        rows.append([np.all((low <= true) & (true <= high)), np.mean(high - low + 1) / m, np.sum(low > high[first])])
    held, width, contradictions = np.mean(rows, axis=0)
    return {"hold": held, "width": width, "below their tier": round(contradictions * replicates)}


def ranks(options: Namespace) -> Iterator[harness.Row]:
    for n in options.sizes:
        for sd in (1.0, 0.3):
            for passages in (0, n // 5):
                labels = {"prompts": n, "sd of abilities": sd, "clusters": "yes" if passages else "no"}
                yield labels | hold("normal", sd, n, passages, options.replicates)


def spreads(options: Namespace) -> Iterator[harness.Row]:
    for n in options.sizes:
        for sd in (1.0, 0.3):
            for spread in SPREADS:
                labels = {"abilities": spread, "prompts": n, "sd": sd}
                yield labels | hold(spread, sd, n, 0, options.replicates)


PARTS = {part.__name__: part for part in (ranks, spreads)}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, parts=("ranks", "spreads"), replicates=40, sizes=(500,))
    for part in asked.parts:
        harness.show(part, PARTS[part](asked), asked)
