"""How much of the information each estimator uses: mean squared error of CML over its own, replicate by replicate.

    python benchmarks/efficiency.py [--replicates 100] [--settings A,D,E,F]

Each setting has one draw of difficulties (standard normal, mean zero) and new persons, designs and answers in every
replicate. The number in brackets is the jackknife standard error over replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import harness
from spectral_irt import ConditionalRasch, JointRasch, PairwiseRasch, SpectralRasch, simulate
from spectral_irt.errors import DesignError

Make = Callable[[], Any]
SKEWED = {"n_persons": 2000, "n_items": 100, "design": "popularity", "n_responses": 40_000, "exponent": 0.0}
MORE = {**SKEWED, "n_persons": 4000, "n_responses": 80_000, "exponent": 0.7}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "A": ("5 items, 1,000 people, complete", {"n_persons": 1000, "n_items": 5}),
    "B": ("20 items, 500 people, complete", {"n_persons": 500, "n_items": 20}),
    "D": ("50 items, 2,000 people, 20% seen", {"n_persons": 2000, "n_items": 50, "design": "sampled", "p": 0.2}),
    "E": ("100 items, 2,000 people, lognormal numbers of answers", SKEWED),
    "F": ("as E with 4,000 persons and item popularity rank^-0.7", MORE),
}
ESTIMATORS: dict[str, Make] = {
    "CML": lambda: ConditionalRasch(se="none"),
    "spectral, pairs (the paper, nu = 0)": lambda: SpectralRasch(weighting="pairs", regularization=0, se="none"),
    "spectral, persons": lambda: SpectralRasch(weighting="persons", regularization=0, se="none"),
    "spectral, ability (the chain alone)": lambda: SpectralRasch(regularization=0, refine=False, se="none"),
    "pairwise likelihood, pairs": lambda: PairwiseRasch(weighting="pairs"),
    "pairwise likelihood, persons": lambda: PairwiseRasch(weighting="persons"),
    "joint likelihood (inconsistent)": lambda: JointRasch(),
}


def efficiencies(
    estimators: Mapping[str, Make], draw: Callable[..., Any], seeds: range, what: str = "difficulty"
) -> dict[str, str]:
    """Of every estimator against the first, CML, over what that one estimates, and data sets in which it has it all."""
    squares: dict[str, list[float]] = {name: [] for name in estimators}
    for seed in seeds:
        data = draw(seed=seed)
        truth, known = getattr(data, what), None
        for name, make in estimators.items():
            try:
                found = getattr(make().fit(data.responses), what + "_")
            except DesignError:  # a level by itself need not be connected where all levels together are
                found = np.full(len(truth), np.nan)
            known = np.isfinite(found) if known is None else known
            squares[name].append(float(np.sum((found - truth)[known] ** 2)))
    first, *others = (np.array(values) for values in squares.values())
    return {name: ratio(first, own) for name, own in zip(list(squares)[1:], others, strict=True)}


def ratio(top: np.ndarray, bottom: np.ndarray) -> str:
    """A ratio of means with its jackknife standard error."""
    a, b = top[np.isfinite(bottom)], bottom[np.isfinite(bottom)]
    n = len(a)
    if n < 2:
        return f"{a.sum() / b.sum():.3f}" if n else "-"
    each = (a.sum() - a) / (b.sum() - b)
    return f"{a.sum() / b.sum():.3f} ({np.sqrt((n - 1) / n * np.sum((each - each.mean()) ** 2)):.3f})"


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=100, settings="A,D,E,F")
    found = {}
    for setting in asked.settings.split(","):
        said, options = SETTINGS[setting]
        beta = np.random.default_rng(ord(setting)).normal(size=options["n_items"])
        found[setting] = efficiencies(ESTIMATORS, partial(simulate.rasch, **options, difficulty=beta), asked.seeds)
        print(f"{setting}: {said}")
    rows = ({"estimator": name} | {one: found[one][name] for one in found} for name in list(ESTIMATORS)[1:])
    harness.show(f"Efficiency: {asked.replicates} replicates", rows, asked)
