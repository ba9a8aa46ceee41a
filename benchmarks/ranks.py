"""Are rank intervals and probabilities of the top what they say.

    python benchmarks/ranks.py [--replicates 100] [--categories 2]

For three designs and six spreads of difficulties, the share of items whose true rank is in its own interval,
the share of data sets in which all are in the intervals for all items at once, both with the mean width as a share of
the items; and of the items with a probability of the top between two limits, the mean probability and the share that
are truly in the top.

Every replicate draws new difficulties (standard deviation 1), people and answers, right or wrong or in so many
categories.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Iterator

import numpy as np

import draws
import harness
from spectral_irt import SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.inference.ranks.items import item_ranks
from spectral_irt.simulate import Simulated

DESIGNS: dict[str, tuple[str, dict, int]] = {
    "short": ("300 people, 20 items, complete; top 5", {"n_persons": 300, "n_items": 20}, 5),
    "sampled": (
        "400 people, 60 items, 20% seen; top 10",
        {"n_persons": 400, "n_items": 60, "design": "sampled", "p": 0.2},
        10,
    ),
    "thin": (
        "2,000 people, 200 items, 6,000 answers, popularity rank^-0.7; top 20",
        {"n_persons": 2000, "n_items": 200, "design": "popularity", "n_responses": 6000, "exponent": 0.7},
        20,
    ),
}

SPREADS = {
    "normal": draws.SPREADS["normal"],
    "exponential (a long tail of hard items)": lambda rng, m: rng.exponential(size=m),
    "exponential (hard items crowd)": lambda rng, m: -rng.exponential(size=m),
    "t with 3 degrees of freedom": draws.SPREADS["t with 3 degrees of freedom"],
    "two clusters, 10% hard": lambda rng, m: np.where(rng.random(m) < 0.1, 3.2, 0.0) + 0.05 * rng.normal(size=m),
    "equally hard (sd 0.02)": lambda rng, m: 0.02 * rng.normal(size=m),
}

LIMITS = (0.05, 0.35, 0.65, 0.95)


def draw(design: str, spread: str, categories: int, seed: int) -> Simulated:
    options = dict(DESIGNS[design][1])
    beta = SPREADS[spread](np.random.default_rng([1, seed]), options["n_items"])
    if categories == 2:
        return simulate.rasch(**options, difficulty=beta, seed=seed)
    del options["n_items"]
    thresholds = list(beta[:, None] + np.linspace(-1, 1, categories - 1))
    return simulate.partial_credit(**options, thresholds=thresholds, seed=seed)


def true_ranks(beta: np.ndarray) -> np.ndarray:
    return len(beta) - np.argsort(np.argsort(beta))


def intervals(asked: Namespace) -> Iterator[harness.Row]:
    for design, (_, _, top) in DESIGNS.items():
        for spread in SPREADS:
            own, chance, hit = [], [], []
            for seed in asked.seeds:
                data = draw(design, spread, asked.categories, seed)
                kind = SpectralRasch if asked.categories == 2 else SpectralPartialCredit
                fit = kind(se="dense").fit(data.responses)
                found = item_ranks(fit.calibration_, fit.covariance(), top=top)
                rank, m = true_ranks(data.difficulty), len(data.difficulty)
                low, high, p_top = (found[name] for name in ("rank_low", "rank_high", "p_top"))
                own.append((np.mean((low <= rank) & (rank <= high)), np.mean(high - low + 1) / m))
                known = np.isfinite(p_top)
                chance.append(p_top[known])
                hit.append(rank[known] <= top)
            p, in_top = np.concatenate(chance), np.concatenate(hit)
            cells = {}
            for low, high in itertools.pairwise(LIMITS):
                here = (low <= p) & (p < high)
                few = here.sum() < 30
                said = "-" if few else f"{p[here].mean():.2f}: {in_top[here].mean():.2f} (of {here.sum()})"
                cells[f"p_top {low:g} to {high:g}"] = said
            cover, width = np.mean(own, axis=0)
            yield {"design": design, "spread": spread, "interval": cover, "its width": width, **cells}


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=100, categories=2)
    print("\n".join(f"{name}: {said}" for name, (said, _, _) in DESIGNS.items()))
    harness.show(f"Intervals, {asked.replicates} replicates", intervals(asked), asked)
