"""When answers decide what comes next, when people are of several kinds, and when they come in classes.

    python benchmarks/adaptive.py [--replicates 100] [--seed 0]
                                  [--only adaptive,shapes,random,populations,order,classes]

Prints, for each design, how often 95% intervals contain the true difficulty, and the slope of the estimates on it
(weighted by the number of answers), for the default estimator, which is conditional on the scores as CML is, and for
marginal likelihood (`--design adaptive`; with `--population-by` where the design has groups); and how often a plain fit
warns that the two disagree. Items without right or wrong answers are left out. New difficulties (standard normal),
people and answers in every replicate.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt import MarginalRasch, Responses, SpectralRasch, simulate
from spectral_irt.inference.groups.cluster_errors import cluster_covariance
from spectral_irt.inference.groups.hausman import hausman


@dataclass(frozen=True)
class Data:
    responses: Responses
    difficulty: Any
    groups: Any = None


def simulated(**options: Any) -> Callable[[int], Data]:
    def draw(seed: int) -> Data:
        data = simulate.rasch(**options, seed=seed)
        return Data(data.responses, data.difficulty)

    return draw


# Abilities with mean zero and (but for the two groups) standard deviation one.
SHAPES: dict[str, Callable[[np.random.Generator], Any]] = {
    "normal": lambda rng: rng.normal(size=1500),
    "gamma, skewness 1": lambda rng: rng.gamma(4, 0.5, size=1500) - 2,
    "exponential": lambda rng: rng.exponential(size=1500) - 1,
    "two groups at -1.2 and 1.2": lambda rng: rng.choice([-1.2, 1.2], 1500) + 0.5 * rng.normal(size=1500),
}


def shaped(shape: str, **options: Any) -> Callable[[int], Data]:
    def draw(seed: int) -> Data:
        ability = SHAPES[shape](np.random.default_rng([seed, 1]))
        data = simulate.rasch(1500, ability=ability, seed=seed, **options)
        return Data(data.responses, data.difficulty)

    return draw


CHOSEN: dict[str, dict[str, Any]] = {
    "adaptive test, 15 of 60 items": {"n_items": 60, "design": "adaptive", "length": 15},
    "two stages, 10 then 15 of 30 items": {"n_items": 40, "design": "two-stage", "routing": 10},
    "stop after three wrong, 30 items": {"n_items": 30, "design": "stopping", "wrong": 3},
}


def answers(rng: np.random.Generator, difficulty: Any, ability: Any) -> Any:
    return (rng.random((len(ability), len(difficulty))) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(float)


def vertical(seed: int) -> Data:
    """Three grades a logit apart, 24 items each, at the level of the grade, 8 of them in common with the next."""
    rng = np.random.default_rng(seed)
    first = np.array([0, 16, 32])
    difficulty = rng.normal(size=56) * 0.8 + np.interp(np.arange(56), first + 12, [-1, 0, 1])
    difficulty -= difficulty.mean()
    grade = np.repeat([0, 1, 2], 400)
    X = answers(rng, difficulty, grade - 1.0 + rng.normal(size=1200))
    for g in range(3):
        shown = np.arange(first[g], first[g] + 24)
        X[np.ix_(grade == g, np.setdiff1d(np.arange(56), shown))] = np.nan
    return Data(Responses.from_wide(X), difficulty, grade)


def not_reached(as_wrong: bool) -> Callable[[int], Data]:
    """40 items in order; the less able are slower: they reach 30 items on average, the able all of them."""

    def draw(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        difficulty = rng.normal(size=40)
        difficulty -= difficulty.mean()
        ability = rng.normal(size=1000)
        X = answers(rng, difficulty, ability)
        reached = np.clip(np.round(35 + 5 * ability + 3 * rng.normal(size=1000)), 5, 40)
        X[np.arange(40) >= reached[:, None]] = 0.0 if as_wrong else np.nan
        return Data(Responses.from_wide(X), difficulty)

    return draw


DESIGNS: dict[str, dict[str, Callable[[int], Data]]] = {
    "adaptive": {
        "adaptive test, 20 of 200 items, 1,500 people": simulated(
            n_persons=1500, n_items=200, design="adaptive", length=20
        ),
        "two stages, 10 then 15 of 30 items, 1,500 people": simulated(
            n_persons=1500, n_items=40, design="two-stage", routing=10
        ),
        "stop after three wrong, 30 items, 1,500 people": simulated(
            n_persons=1500, n_items=30, design="stopping", wrong=3
        ),
    },
    "shapes": {f"{name}, {shape}": shaped(shape, **how) for name, how in CHOSEN.items() for shape in SHAPES},
    "random": {
        "complete, 30 items, 1,000 people": simulated(n_persons=1000, n_items=30),
        "30% at random, 60 items, 1,000 people": simulated(n_persons=1000, n_items=60, design="sampled", p=0.3),
        "6 booklets at random, 60 items, 1,000 people": simulated(
            n_persons=1000, n_items=60, design="booklets", booklets=6
        ),
    },
    "populations": {"three grades a logit apart, 1,200 people": vertical},
    "order": {
        "the less able do not reach the end, left out": not_reached(as_wrong=False),
        "the less able do not reach the end, scored as wrong": not_reached(as_wrong=True),
    },
}


def compare(draw: Callable[[int], Data], seed: int) -> dict[str, float]:
    data = draw(seed)
    calibration = SpectralRasch().fit(data.responses).calibration_
    test = hausman(calibration, data.responses)
    out = {"warned": float(bool(test.findings)), "p below .05": float(test.p < 0.05)}
    marginal = MarginalRasch(tol=1e-4)
    fits = {"plain": calibration, "adaptive": marginal.fit(data.responses, design="adaptive").calibration_}
    if data.groups is not None:
        fits["by group"] = MarginalRasch(tol=1e-4).fit(data.responses, groups=data.groups).calibration_
    for name, found in fits.items():
        ok = found.status == "ok"
        error = found.difficulty - data.difficulty
        error = error - error[ok].mean()
        out[f"coverage {name}"] = float(np.mean(np.abs(error[ok]) < 1.96 * found.se[ok]))
        out[f"slope {name}"] = float(
            np.polyfit(data.difficulty[ok], found.difficulty[ok], 1, w=np.sqrt(found.n[ok]))[0]
        )
    return out


def classes(seed: int, n_classes: int, difficulty: Any, of_all: Any) -> dict[str, float]:
    """25 people in a class, and effects of class x item with a standard deviation of .6."""
    X, room = in_classes(seed, n_classes, difficulty)
    responses = Responses.from_wide(X)
    calibration = SpectralRasch().fit(responses).calibration_
    robust = cluster_covariance(calibration, responses, room).se
    out = {}
    for name, truth in (("an average class", difficulty), ("all classes", of_all)):
        error = np.abs(calibration.difficulty - truth)
        out[f"{name}, plain"] = float(np.mean(error < 1.96 * calibration.se))
        out[f"{name}, clustered"] = float(np.mean(error < 1.96 * robust))
    return out


def in_classes(seed: int, n_classes: int, difficulty: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    room = np.repeat(np.arange(n_classes), 25)
    harder = 0.6 * rng.normal(size=(n_classes, len(difficulty)))
    p = 1 / (1 + np.exp(difficulty + harder[room] - rng.normal(size=(len(room), 1))))
    return (rng.random(p.shape) < p).astype(float), room


def mean(rows: list[dict[str, float]], key: str) -> str:
    return f"{np.mean([row[key] for row in rows]):.3f}" if key in rows[0] else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first replicate")
    parser.add_argument("--only", default=",".join([*DESIGNS, "classes"]))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| design | plain: coverage | slope | `--design adaptive`: coverage | slope | with groups: coverage | slope "
        "| warned | p < .05 |\n|---|---|---|---|---|---|---|---|---|"
    )
    start, seeds = time.perf_counter(), range(asked.seed, asked.seed + asked.replicates)
    for kind in asked.only.split(","):
        for name, draw in DESIGNS.get(kind, {}).items():
            rows = [compare(draw, seed) for seed in seeds]
            keys = [f"{what} {fit}" for fit in ("plain", "adaptive", "by group") for what in ("coverage", "slope")]
            print(f"| {name} | " + " | ".join(mean(rows, key) for key in [*keys, "warned", "p below .05"]) + " |")
    if "classes" in asked.only:
        difficulty = np.random.default_rng(0).normal(size=20)
        difficulty -= difficulty.mean()
        of_all = SpectralRasch().fit(in_classes(1, 8000, difficulty)[0]).difficulty_
        print("\n| classes of 25, effects of sd .6, 20 items | coverage of the difficulty in: " + " | " * 4 + "|")
        for n_classes in (20, 40, 80):
            rows = [
                classes(seed, n_classes, difficulty, of_all)
                for seed in range(asked.seed, asked.seed + asked.replicates)
            ]
            print(f"| {n_classes} | " + " | ".join(f"{key}: {mean(rows, key)}" for key in rows[0]) + " |")
    print(f"\n{asked.replicates} replicates, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
