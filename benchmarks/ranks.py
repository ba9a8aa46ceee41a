"""Are rank intervals and probabilities of the top what they say.

    python benchmarks/ranks.py [--replicates 100] [--categories 2]

For three designs and six spreads of difficulties, the share of items whose true rank is in its own interval,
the share of data sets in which all are in the intervals for all items at once, both with the mean width as a share of
the items; and of the items with a probability of the top between two limits, the mean probability and the share that
are truly in the top. Every replicate draws new difficulties (standard deviation 1), people and answers, right or wrong
or in so many categories.
"""

from __future__ import annotations

import itertools
from argparse import Namespace

import numpy as np

import draws
import harness
from spectral_irt import SpectralPartialCredit, SpectralRasch
from spectral_irt.inference.ranks.items import item_ranks

THIN = {"design": "popularity", "n_responses": 6000, "exponent": 0.7}
# a description, people, items, how many are the top, who sees which items
DESIGNS: dict[str, tuple[str, int, int, int, dict]] = {
    "short": ("300 people, 20 items, complete; top 5", 300, 20, 5, {}),
    "sampled": ("400 people, 60 items, 20% seen; top 10", 400, 60, 10, {"design": "sampled", "p": 0.2}),
    "thin": ("2,000 people, 200 items, 6,000 answers, popularity rank^-0.7; top 20", 2000, 200, 20, THIN),
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


def intervals(design: str, spread: str, asked: Namespace) -> harness.Row:
    own, chance, hit = [], [], []
    _, people, m, top, seen = DESIGNS[design]
    for seed in asked.seeds:
        beta = SPREADS[spread](np.random.default_rng([1, seed]), m)
        data = draws.simulated(asked.categories, people, beta, seed=seed, **seen)
        kind = SpectralRasch if asked.categories == 2 else SpectralPartialCredit
        fit = kind(se="dense").fit(data.responses)
        found = item_ranks(fit.calibration_, fit.covariance(), top=top)
        rank = m - np.argsort(np.argsort(data.difficulty))
        low, high, p_top = (found[name] for name in ("rank_low", "rank_high", "p_top"))
        own.append((np.mean((low <= rank) & (rank <= high)), np.mean(high - low + 1) / m))
        known = np.isfinite(p_top)
        chance.append(p_top[known])
        hit.append(rank[known] <= top)
    p, in_top = np.concatenate(chance), np.concatenate(hit)
    cover, width = np.mean(own, axis=0)
    row: harness.Row = {"design": design, "spread": spread, "interval": cover, "its width": width}
    for low, high in itertools.pairwise(LIMITS):
        here = (low <= p) & (p < high)
        said = f"{p[here].mean():.2f}: {in_top[here].mean():.2f} (of {here.sum()})" if here.sum() >= 30 else "-"
        row[f"p_top {low:g} to {high:g}"] = said
    return row


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=100, categories=2)
    print("\n".join(f"{name}: {said}" for name, (said, *_) in DESIGNS.items()))
    rows = (intervals(design, spread, asked) for design in DESIGNS for spread in SPREADS)
    harness.show(f"Intervals, {asked.replicates} replicates", rows, asked)
