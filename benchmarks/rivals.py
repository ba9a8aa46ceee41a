"""Every estimator at the size of ML-1M, and conditional maximum likelihood where other programs fail.

    python benchmarks/rivals.py [--responses 1000000]

Simulated popularity-skewed responses of 6,040 people to 3,700 items; each estimator with its standard errors, each in a
fresh copy of the data. The reciprocal methods are left out: they need every pair of items to have met.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from measure import cost, table
from spectral_irt import ConditionalRasch, Responses, simulate
from spectral_irt.estimators.by_name import METHODS, make_estimator


def fresh(responses: Responses) -> Responses:
    return responses.take_persons(np.arange(responses.n_persons))


def main() -> None:
    warnings.simplefilter("ignore")
    n = int(sys.argv[sys.argv.index("--responses") + 1]) if "--responses" in sys.argv else 1_000_000
    data = simulate.rasch(6_040, 3_700, design="popularity", n_responses=n, seed=1)
    print(data.responses)
    rows: list[list[object]] = []
    for name in METHODS:
        if name in ("choppin", "eigenvector"):
            continue
        fits = []
        spent = cost(lambda name=name, fits=fits: fits.append(make_estimator(name, {}).fit(fresh(data.responses))), 1)
        error = fits[0].difficulty_ - data.difficulty
        rmse = float(np.sqrt(np.nanmean(error**2))) / data.floor_rmse()
        known = int(np.isfinite(error).sum())
        rows.append([name, spent.wall, spent.cpu, spent.memory / 1e6, fits[0].n_iter_, known, rmse])
    print(table(["estimator", "wall s", "CPU s", "peak MB", "iterations", "items", "rmse / floor"], rows))

    print("\nConditional maximum likelihood, exact")
    rows = []
    for title, options in {
        "1,500 items x 2,000 people, complete": {"n_persons": 2000, "n_items": 1500},
        "2,000 items x 20,000 people, 5% seen": {"n_persons": 20_000, "n_items": 2000, "design": "sampled", "p": 0.05},
    }.items():
        responses = simulate.rasch(**options, seed=1).responses
        fits = []
        spent = cost(lambda fits=fits, responses=responses: fits.append(ConditionalRasch().fit(responses)), 1)
        rows.append([title, spent.wall, spent.cpu, fits[0].n_iter_, float(fits[0].residual_)])
    print(table(["data", "wall s", "CPU s", "passes", "largest gradient"], rows))


if __name__ == "__main__":
    main()
