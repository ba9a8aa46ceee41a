"""How much of the information each estimator uses: mean squared error of CML over its own, replicate by replicate.

    python benchmarks/efficiency.py [--replicates 100] [--settings A,D,E,F] [--write docs/explanation/efficiency.md]

Each setting has one draw of difficulties (standard normal, mean zero) and new persons, designs and answers in every
replicate. The error bar is the jackknife standard error over replicates.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from spectral_irt import SpectralRasch, simulate
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.joint import JointRasch
from spectral_irt.estimators.pairwise import PairwiseRasch

SETTINGS: dict[str, tuple[str, dict]] = {
    "A": ("5 items, 1,000 people, complete", {"n_persons": 1000, "n_items": 5}),
    "B": ("20 items, 500 people, complete", {"n_persons": 500, "n_items": 20}),
    "D": ("50 items, 2,000 people, 20% seen", {"n_persons": 2000, "n_items": 50, "design": "sampled", "p": 0.2}),
    "E": (
        "100 items, 2,000 people, lognormal numbers of answers",
        {"n_persons": 2000, "n_items": 100, "design": "popularity", "n_responses": 40_000, "exponent": 0.0},
    ),
    "F": (
        "as E with 4,000 persons and item popularity rank^-0.7",
        {"n_persons": 4000, "n_items": 100, "design": "popularity", "n_responses": 80_000, "exponent": 0.7},
    ),
}

ESTIMATORS: dict[str, Callable[[], RaschEstimator]] = {
    "spectral, pairs (the paper, nu = 0)": lambda: SpectralRasch(weighting="pairs", regularization=0, se="none"),
    "spectral, persons": lambda: SpectralRasch(weighting="persons", regularization=0, se="none"),
    "spectral, ability (the chain alone)": lambda: SpectralRasch(regularization=0, refine=False, se="none"),
    "pairwise likelihood, pairs": lambda: PairwiseRasch(weighting="pairs"),
    "pairwise likelihood, persons": lambda: PairwiseRasch(weighting="persons"),
    "joint likelihood (inconsistent)": lambda: JointRasch(),
}


def squared_errors(setting: str, replicates: int) -> dict[str, np.ndarray]:
    options = SETTINGS[setting][1]
    beta = np.random.default_rng(ord(setting)).normal(size=options["n_items"])
    out: dict[str, list[float]] = {name: [] for name in ["CML", *ESTIMATORS]}
    for seed in range(replicates):
        data = simulate.rasch(**options, difficulty=beta, seed=seed)
        for name, make in {"CML": lambda: ConditionalRasch(se="none"), **ESTIMATORS}.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = make().fit(data.responses).difficulty_
            out[name].append(float(np.nansum((found - data.difficulty) ** 2)))
    return {name: np.array(errors) for name, errors in out.items()}


def ratio(cml: np.ndarray, own: np.ndarray) -> tuple[float, float]:
    """Mean of one over mean of the other, with its jackknife standard error."""
    n = len(cml)
    left_out = (cml.sum() - cml) / (own.sum() - own)
    return float(cml.mean() / own.mean()), float(np.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--settings", default="A,D,E,F")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    settings = args.settings.split(",")
    cells: dict[str, list[str]] = {name: [] for name in ESTIMATORS}
    for setting in settings:
        errors = squared_errors(setting, args.replicates)
        for name in ESTIMATORS:
            value, error = ratio(errors["CML"], errors[name])
            cells[name].append(f"{value:.3f} ± {error:.3f}")
        print(f"{setting}: done", file=sys.stderr)
    lines = ["| estimator | " + " | ".join(settings) + " |", "|---|" + "---|" * len(settings)]
    lines += [f"| {name} | " + " | ".join(row) + " |" for name, row in cells.items()]
    legend = "\n".join(f"- **{name}**: {SETTINGS[name][0]}" for name in settings)
    command = f"python benchmarks/efficiency.py --replicates {args.replicates} --settings {args.settings}"
    text = "\n".join(lines)
    print(text)
    if args.write:
        args.write.write_text(
            "# Efficiency of the estimators\n\n"
            "Mean squared error of exact conditional maximum likelihood (CML) over that of each estimator, on the\n"
            f"same data; 1 means that nothing is lost. {args.replicates} replicates, jackknife standard errors.\n\n"
            f"{text}\n\n{legend}\n\nDifficulties and abilities are standard normal. Made by\n\n    {command}\n"
        )


if __name__ == "__main__":
    main()
