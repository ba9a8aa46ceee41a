"""How far the intervals of variational Bayes can be trusted, beside those of the default estimator.

    python benchmarks/variational.py [--replicates 40]

Complete answers of simulated people to items with standard normal difficulties. Slope: of the estimates on the truth (1
is right, below 1 differences are too small). Coverage: of 95% intervals, over items and replicates with fixed seeds.
"""

from __future__ import annotations

import numpy as np

import harness
from spectral_irt import SpectralRasch, VariationalRasch, simulate


def replicate(sd: float, items: int, people: int, seed: int) -> dict[str, float]:
    """Slope and share of items covered, of each estimator."""
    data = simulate.rasch(people, items, ability_sd=sd, seed=seed)
    truth = data.difficulty - data.difficulty.mean()
    found = {}
    for name, estimator in (("VB", VariationalRasch()), ("spectral", SpectralRasch())):
        fit = estimator.fit(data.responses)
        known = np.isfinite(fit.se_)
        found[f"{name} slope"] = float(fit.difficulty_[known] @ truth[known] / (truth[known] @ truth[known]))
        found[f"{name} covers"] = float(np.mean(np.abs(fit.difficulty_ - truth)[known] < 1.96 * fit.se_[known]))
    return found


if __name__ == "__main__":
    cases = harness.cases(replicate, ability_sd=(1.0, 1.5), items=(5, 10, 20, 60), people=(300, 1000, 5000))
    harness.study("Variational Bayes", cases, harness.arguments(__doc__, replicates=40))
