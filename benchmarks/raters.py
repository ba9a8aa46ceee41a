"""Ratings: are severities, thresholds and adjusted measures of persons as sure as their standard errors say?

    python benchmarks/raters.py [--replicates 20] [--designs crossed,spiral]

Five items in four categories, raters whose severities have a standard deviation of 0.6 logits; new ones, new persons
and new ratings in every replicate. The columns are the coverage of 95% intervals of severities, of the items'
thresholds and of persons' measures (Warm's), adjusted for the severity of their raters, without extreme scores; and
the slopes of severities and measures on the truth.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import draws
import harness
import spectral_irt as si

ITEMS, CATEGORIES = 5, 4


def two_each(rng: draws.Rng, people: int = 300, raters: int = 12) -> list[list[int]]:
    return [rng.choice(raters, 2, replace=False).tolist() for _ in range(people)]


def nested(people: int = 300, groups: int = 4, common: int = 10) -> list[list[int]]:
    """Three raters a school rate its own persons; ten persons are rated by a rater of each."""
    own = [[3 * (k % groups) + j for j in range(3)] for k in range(people)]
    return own + [[3 * g for g in range(groups)] for _ in range(common)]


def few_by_severe(rng: draws.Rng, people: int = 300) -> list[list[int]]:
    """Ten raters in pairs; two more, who are severe, rate eight persons each."""
    meets = two_each(rng, people, 10)
    for k in range(16):
        meets[k].append(10 + k % 2)
    return meets


DESIGNS: dict[str, Any] = {
    "everybody by every rater": lambda rng: [list(range(6)) for _ in range(150)],
    "two raters a person": two_each,
    "in a spiral: each rater with two neighbors": lambda rng: [[k % 12, (k + 1) % 12] for k in range(300)],
    "four groups of three raters linked by ten people": lambda rng: nested(),
    "ten raters and two severe ones of eight people each": few_by_severe,
}


def replicate(design: str, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 7])
    meets = DESIGNS[design](rng)
    severity = rng.normal(0, 0.6, 1 + max(map(max, meets)))
    if "severe" in design:
        severity[-2:] = 2.0
    severity -= severity.mean()
    beta = np.sort(rng.normal(size=(ITEMS, CATEGORIES - 1)), axis=1)
    beta -= beta.mean()
    theta = rng.normal(0, 1.2, len(meets))
    responses = draws.ratings(meets, severity, beta, theta, rng)
    fit = si.SpectralPartialCredit().fit(responses)
    found, items = fit.calibration_.facets.of["rater"], fit.calibration_.facets.items
    persons = fit.analyse(responses).persons()
    told = persons["score"].is_between(0, persons["max_score"], closed="none").to_numpy()
    measure, se = (persons[name].to_numpy()[told] for name in ("ability", "se"))
    return {
        "severities": float(np.mean(np.abs(found.severity - severity) < 1.96 * found.se)),
        "thresholds": float(np.mean(np.abs(items.thresholds - beta.ravel()) < 1.96 * items.threshold_se)),
        "persons": float(np.mean(np.abs(measure - theta[told]) < 1.96 * se)),
        "slope of severities": float(np.polyfit(severity, found.severity, 1)[0]),
        "slope of persons": float(np.polyfit(theta[told], measure, 1)[0]),
    }


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=20, designs=tuple(DESIGNS))
    cases = [({"design": name}, partial(replicate, name)) for name in asked.designs]
    harness.study("Coverage of 95% intervals of ratings", cases, asked)
