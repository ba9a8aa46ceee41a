"""Ordered answers that decide what comes next, people of several kinds, and people in classes.

    python benchmarks/ordered_adaptive.py [--replicates 40] [--only random,adaptive,populations,classes] [--seed 0]

Prints, for each design, how often 95% intervals contain the true thresholds and locations, and the slope of the
locations on the truth, for the default estimator, which is conditional on the total scores, and for marginal likelihood
(`--design adaptive`); and how often a plain fit warns that the two disagree. New thresholds, people and answers in
every replicate. Items with a threshold that rests on fewer than ten people on either side are left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from spectral_irt import MarginalPartialCredit, SpectralPartialCredit, simulate
from spectral_irt.data import Responses
from spectral_irt.inference.groups.hausman import hausman

FEWEST = 10  # people in each category of an item that is counted

Drawn = tuple[Any, Any]  # responses, thresholds of all items one after the other


def simulated(**options: Any) -> Callable[[int], Drawn]:
    def draw(seed: int) -> Drawn:
        data = simulate.partial_credit(**options, seed=seed)
        return data.responses, data.thresholds.reshape(data.responses.n_items, -1)

    return draw


def answers(rng: np.random.Generator, theta: Any, beta: Any) -> Any:
    """People x items; thresholds of every item, or of every person and item."""
    x = np.cumsum(np.concatenate([np.zeros((*beta.shape[:-1], 1)), -beta], axis=-1), axis=-1)
    x = x + theta[:, None, None] * np.arange(beta.shape[-1] + 1)
    p = np.exp(x - x.max(axis=-1, keepdims=True))
    p = np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)
    return (rng.random(p.shape[:2])[:, :, None] > p[:, :, :-1]).sum(axis=-1).astype(float)


def drawn_thresholds(rng: np.random.Generator, items: int, k: int) -> Any:
    beta = rng.normal(size=(items, 1)) + np.arange(k) - (k - 1) / 2 + 0.3 * rng.normal(size=(items, k))
    return beta - beta.mean()


def vertical(seed: int) -> Drawn:
    """Three grades a logit apart, 12 items each at the level of the grade, 4 of them in common with the next."""
    rng = np.random.default_rng(seed)
    first = np.array([0, 8, 16])
    beta = drawn_thresholds(rng, 28, 2) * 0.8 + np.interp(np.arange(28), first + 6, [-1, 0, 1])[:, None]
    beta -= beta.mean()
    grade = np.repeat([0, 1, 2], 400)
    X = answers(rng, grade - 1.0 + rng.normal(size=1200), beta)
    for g in range(3):
        X[np.ix_(grade == g, np.setdiff1d(np.arange(28), np.arange(first[g], first[g] + 12)))] = np.nan
    return Responses.from_wide(X, ordered=True), beta


def classes(of_items: float) -> Callable[[int], Drawn]:
    """40 classes of 25 people; class means differ by .7, and each item by `of_items` from class to class."""

    def draw(seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        beta = drawn_thresholds(rng, 12, 3)
        room = np.repeat(np.arange(40), 25)
        theta = 0.7 * rng.normal(size=40)[room] + 0.7 * rng.normal(size=1000)
        harder = of_items * rng.normal(size=(40, 12))
        return Responses.from_wide(answers(rng, theta, beta + harder[room][:, :, None]), ordered=True), beta

    return draw


def exponential(seed: int) -> Drawn:
    """An adaptive test for people of exponential ability."""
    ability = np.random.default_rng([seed, 1]).exponential(size=1500) - 1
    return simulated(n_persons=1500, n_items=60, categories=3, design="adaptive", length=12, ability=ability)(seed)


DESIGNS: dict[str, dict[str, Callable[[int], Drawn]]] = {
    "random": {
        "complete, 12 items, 4 categories, 600 people": simulated(n_persons=600, n_items=12, categories=4),
        "complete, 30 items, 3 categories, 300 people": simulated(n_persons=300, n_items=30, categories=3),
        "30% at random, 40 items, 3 categories, 1,000 people": simulated(
            n_persons=1000, n_items=40, categories=3, design="sampled", p=0.3
        ),
        "6 booklets, 48 items, 3 categories, 900 people": simulated(
            n_persons=900, n_items=48, categories=3, design="booklets", booklets=6
        ),
    },
    "adaptive": {
        "adaptive, 12 of 60 items, 3 categories, 1,500 people": simulated(
            n_persons=1500, n_items=60, categories=3, design="adaptive", length=12
        ),
        "adaptive, 8 of 30 items, 4 categories, 1,500 people": simulated(
            n_persons=1500, n_items=30, categories=4, design="adaptive", length=8
        ),
        "adaptive, 12 of 60 items, 3 categories, 1,500 people, exponential": exponential,
    },
    "populations": {"three grades a logit apart, 1,200 people": vertical},
    "classes": {"40 classes, means differ": classes(0.0), "40 classes, means differ, and items by 0.4": classes(0.4)},
}


def compare(draw: Callable[[int], Drawn], seed: int) -> dict[str, float]:
    responses, truth = draw(seed)
    calibration = SpectralPartialCredit().fit(responses).calibration_
    test = hausman(calibration, responses)
    out = {"warned": float(bool(test.findings)), "p below .05": float(test.p < 0.05)}
    k = truth.shape[1]
    whole = calibration.layout.max_score == k  # the others have categories that nobody used
    enough = whole & (np.nan_to_num(calibration.category_n, nan=0.0)[:, : k + 1].min(axis=1) >= FEWEST)
    place = calibration.layout.of_items(np.flatnonzero(enough))
    adaptive = MarginalPartialCredit().fit(responses, design="adaptive").calibration_
    for name, found in (("plain", calibration), ("adaptive", adaptive)):
        error = found.thresholds[place].reshape(-1, k) - truth[enough]
        error = error - error.mean()
        se = found.threshold_se[place].reshape(-1, k)
        location = error.mean(axis=1)
        out[f"thresholds {name}"] = float(np.mean(np.abs(error) < 1.96 * se))
        out[f"locations {name}"] = float(np.mean(np.abs(location) < 1.96 * found.se[enough]))
        out[f"slope {name}"] = float(np.polyfit(truth[enough].mean(axis=1), found.difficulty[enough], 1)[0])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the first replicate")
    parser.add_argument("--only", default=",".join(DESIGNS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for kind in asked.only.split(","):
        for name, draw in DESIGNS[kind].items():
            rows = [compare(draw, seed) for seed in range(asked.seed, asked.seed + asked.replicates)]
            print(f"\n{name} ({asked.replicates} replicates)")
            for column in rows[0]:
                print(f"  {column:22s} {np.mean([row[column] for row in rows]):.3f}", flush=True)


if __name__ == "__main__":
    main()
