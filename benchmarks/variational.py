"""How far the intervals of variational Bayes can be trusted, beside those of the default estimator.

    python benchmarks/variational.py [--replicates 40]

Complete answers of simulated people to items with standard normal difficulties. Slope: of the estimates on the truth (1
is right, below 1 differences are too small). Coverage: of 95% intervals, over items and replicates with fixed seeds.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from measure import table
from spectral_irt import SpectralRasch, VariationalRasch, simulate

ITEMS = (5, 10, 20, 60)
PEOPLE = (300, 1000, 5000)
SDS = (1.0, 1.5)


def replicate(people: int, items: int, sd: float, seed: int) -> list[float]:
    """Slope and share of items covered, of each estimator."""
    data = simulate.rasch(people, items, ability_sd=sd, seed=seed)
    truth = data.difficulty - data.difficulty.mean()
    found = []
    for estimator in (VariationalRasch(), SpectralRasch()):
        fit = estimator.fit(data.responses)
        known = np.isfinite(fit.se_)
        slope = float(fit.difficulty_[known] @ truth[known] / (truth[known] @ truth[known]))
        found += [slope, float(np.mean(np.abs(fit.difficulty_ - truth)[known] < 1.96 * fit.se_[known]))]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=40)
    number = parser.parse_args().replicates
    warnings.simplefilter("ignore")
    rows: list[list[object]] = []
    for sd in SDS:
        for items in ITEMS:
            for people in PEOPLE:
                found = np.mean([replicate(people, items, sd, seed) for seed in range(number)], axis=0)
                rows.append([sd, items, people, *(f"{x:.2f}" for x in found)])
    print(f"{number} replicates")
    print(table(["ability sd", "items", "people", "VB slope", "VB covers", "spectral slope", "spectral covers"], rows))


if __name__ == "__main__":
    main()
