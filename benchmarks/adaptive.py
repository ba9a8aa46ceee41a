"""When answers decide what comes next, when people are of several kinds, and when they come in classes.

    python benchmarks/adaptive.py [--replicates 100] [--seed 0] [--ordered]
                                  [--only adaptive,shapes,large,random,populations,order,classes]

For each design, how often 95% intervals contain the true thresholds (difficulties, where answers are right or wrong)
and the slope of the estimated locations on the true ones, for the default estimator and for marginal likelihood
(`--design adaptive`; by group where the design has groups); and how often a plain fit warns that the two disagree. New
items (standard normal), people and answers in every replicate. Items without right or wrong answers are left out; with
`--ordered`, which draws answers in categories, items with a category in which fewer than ten people are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import draws
import harness
from spectral_irt import MarginalPartialCredit, MarginalRasch, Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.inference.groups.cluster_errors import cluster_covariance
from spectral_irt.inference.groups.hausman import hausman

FEWEST = 10  # people in each category of an item that is counted


@dataclass(frozen=True)
class Data:
    responses: Responses
    thresholds: Any  # items x thresholds
    groups: Any = None


Draw = Callable[[int], Data]

# Abilities with mean zero and (but for the two groups) standard deviation one.
SHAPES: dict[str, Callable[[draws.Rng, int], Any]] = {
    "normal": draws.SPREADS["normal"],
    "gamma, skewness 1": lambda rng, n: rng.gamma(4, 0.5, size=n) - 2,
    "exponential": draws.SPREADS["exponential"],
    "two groups at -1.2 and 1.2": lambda rng, n: rng.choice([-1.2, 1.2], n) + 0.5 * rng.normal(size=n),
}


def simulated(n_persons: int, n_items: int, shape: str | None = None, **options: Any) -> Draw:
    """Answers in a design of the package, in categories where there are any."""

    def draw(seed: int) -> Data:
        given = {} if shape is None else {"ability": SHAPES[shape](np.random.default_rng([seed, 1]), n_persons)}
        kind = simulate.partial_credit if "categories" in options else simulate.rasch
        data = kind(n_persons, n_items, seed=seed, **given, **options)
        truth = data.thresholds if "categories" in options else data.difficulty
        return Data(data.responses, truth.reshape(n_items, -1))

    return draw


def drawn_thresholds(rng: draws.Rng, items: int, k: int) -> Any:
    beta = draws.around(rng, rng.normal(size=items), np.arange(k) - (k - 1) / 2)
    return beta - beta.mean()


def vertical(ordered: bool, seed: int) -> Data:
    """Three grades a logit apart, each with 24 items of its level (12 if ordered), a third shared with the next."""
    rng = np.random.default_rng(seed)
    length = 12 if ordered else 24
    items, first = 7 * length // 3, 2 * length // 3 * np.arange(3)
    beta = drawn_thresholds(rng, items, 2) if ordered else rng.normal(size=(items, 1))
    beta = beta * 0.8 + np.interp(np.arange(items), first + length // 2, [-1, 0, 1])[:, None]
    beta -= beta.mean()
    grade = np.repeat([0, 1, 2], 400)
    theta = grade - 1.0 + rng.normal(size=1200)
    logit = theta[:, None, None] - beta
    x = draws.categories(rng, logit) if ordered else draws.answers(rng, logit[..., 0])
    data = Responses.from_wide(draws.window(x, first[grade], length), ordered=ordered)
    return Data(data, beta, None if ordered else grade)


def not_reached(how: str, seed: int) -> Data:
    """40 items in order; the less able are slower: they reach 30 items on average, the able all of them."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=40)
    difficulty -= difficulty.mean()
    ability = rng.normal(size=1000)
    x = draws.answers(rng, ability[:, None] - difficulty)
    reached = np.clip(np.round(35 + 5 * ability + 3 * rng.normal(size=1000)), 5, 40)
    x[np.arange(40) >= reached[:, None]] = np.nan if how == "left out" else 0.0
    return Data(Responses.from_wide(x), difficulty[:, None])


def ordered_classes(of_items: float, seed: int) -> Data:
    """40 classes of 25 people; class means differ by .7, and each item by `of_items` from class to class."""
    rng = np.random.default_rng(seed)
    beta = drawn_thresholds(rng, 12, 3)
    room = np.repeat(np.arange(40), 25)
    theta = 0.7 * rng.normal(size=40)[room] + 0.7 * rng.normal(size=1000)
    harder = of_items * rng.normal(size=(40, 12))
    x = draws.categories(rng, (theta[:, None] - harder[room])[:, :, None] - beta)
    return Data(Responses.from_wide(x, ordered=True), beta)


CHOSEN: dict[str, dict[str, Any]] = {
    "adaptive test, 15 of 60 items": {"n_items": 60, "design": "adaptive", "length": 15},
    "two stages, 10 then 15 of 30 items": {"n_items": 40, "design": "two-stage", "routing": 10},
    "stop after three wrong, 30 items": {"n_items": 30, "design": "stopping", "wrong": 3},
}
DESIGNS: dict[str, dict[str, Draw]] = {
    "adaptive": {
        "adaptive test, 20 of 200 items, 1,500 people": simulated(1500, 200, design="adaptive", length=20),
        **{f"{name}, 1,500 people": simulated(1500, **how) for name, how in list(CHOSEN.items())[1:]},
    },
    "shapes": {
        f"{name}, {shape}": simulated(1500, shape=shape, **how) for name, how in CHOSEN.items() for shape in SHAPES
    },
    "large": {
        f"adaptive test, 15 of 60 items, 6,000 people, {shape}": simulated(
            6000, shape=shape, **CHOSEN["adaptive test, 15 of 60 items"]
        )
        for shape in ("normal", "exponential")
    },
    "random": {
        "complete, 30 items, 1,000 people": simulated(1000, 30),
        "30% at random, 60 items, 1,000 people": simulated(1000, 60, design="sampled", p=0.3),
        "6 booklets at random, 60 items, 1,000 people": simulated(1000, 60, design="booklets", booklets=6),
    },
    "populations": {"three grades a logit apart, 1,200 people": partial(vertical, False)},
    "order": {
        f"the less able do not reach the end, {how}": partial(not_reached, how)
        for how in ("left out", "scored as wrong")
    },
}
LONG: dict[str, Any] = {"categories": 3, "design": "adaptive", "length": 12}
SHORT: dict[str, Any] = {"categories": 4, "design": "adaptive", "length": 8}
THREE = partial(simulated, categories=3)
ORDERED: dict[str, dict[str, Draw]] = {
    "random": {
        "complete, 12 items, 4 categories, 600 people": simulated(600, 12, categories=4),
        "complete, 30 items, 3 categories, 300 people": THREE(300, 30),
        "30% at random, 40 items, 3 categories, 1,000 people": THREE(1000, 40, design="sampled", p=0.3),
        "6 booklets, 48 items, 3 categories, 900 people": THREE(900, 48, design="booklets", booklets=6),
    },
    "adaptive": {
        "adaptive, 12 of 60 items, 3 categories, 1,500 people": simulated(1500, 60, **LONG),
        "adaptive, 8 of 30 items, 4 categories, 1,500 people": simulated(1500, 30, **SHORT),
        "adaptive, 12 of 60 items, 3 categories, 1,500 people, exponential": simulated(1500, 60, "exponential", **LONG),
    },
    "populations": {"three grades a logit apart, 1,200 people": partial(vertical, True)},
    "classes": {
        "40 classes, means differ": partial(ordered_classes, 0.0),
        "40 classes, means differ, and items by 0.4": partial(ordered_classes, 0.4),
    },
}


def compare(draw: Draw, seed: int) -> dict[str, float]:
    data = draw(seed)
    k = data.thresholds.shape[1]
    plain = (SpectralRasch() if k == 1 else SpectralPartialCredit()).fit(data.responses).calibration_
    marginal = MarginalRasch(tol=1e-4) if k == 1 else MarginalPartialCredit()
    fits = {"plain": plain, "adaptive": marginal.fit(data.responses, design="adaptive").calibration_}
    if data.groups is not None:
        fits["by group"] = MarginalRasch(tol=1e-4).fit(data.responses, groups=data.groups).calibration_
    enough = plain.layout.max_score == k  # the others have categories that nobody used
    if k > 1:
        enough &= np.nan_to_num(plain.category_n, nan=0.0)[:, : k + 1].min(axis=1) >= FEWEST
    out = {}
    for name, found in fits.items():
        kept = enough if k > 1 else found.status == "ok"
        place = plain.layout.of_items(np.flatnonzero(kept))
        error = found.thresholds[place].reshape(-1, k) - data.thresholds[kept]
        error = error - error.mean()
        weight = np.sqrt(found.n[kept]) if k == 1 else None
        where = data.thresholds[kept].mean(axis=1)
        out[f"{name}: coverage"] = float(np.mean(np.abs(error) < 1.96 * found.threshold_se[place].reshape(-1, k)))
        if k > 1:
            out[f"{name}: of locations"] = float(np.mean(np.abs(error.mean(axis=1)) < 1.96 * found.se[kept]))
        out[f"{name}: slope"] = float(np.polyfit(where, found.difficulty[kept], 1, w=weight)[0])
    test = hausman(data.responses, plain.thresholds)
    return out | {"warned": float(bool(test.findings)), "p < .05": float(test.p < 0.05)}


def in_classes(seed: int, n_classes: int, difficulty: Any) -> tuple[Any, Any]:
    """25 people in a class, and effects of class x item with a standard deviation of .6."""
    rng = np.random.default_rng(seed)
    room = np.repeat(np.arange(n_classes), 25)
    harder = 0.6 * rng.normal(size=(n_classes, len(difficulty)))
    return draws.answers(rng, rng.normal(size=(len(room), 1)) - difficulty - harder[room]), room


def classes(difficulty: Any, of_all: Any, n_classes: int, seed: int) -> dict[str, float]:
    x, room = in_classes(seed, n_classes, difficulty)
    responses = Responses.from_wide(x)
    calibration = SpectralRasch().fit(responses).calibration_
    robust = cluster_covariance(calibration, responses, room).se
    out = {}
    for name, truth in (("average class", difficulty), ("all classes", of_all)):
        error = np.abs(calibration.difficulty - truth)
        out[f"{name}: plain"] = float(np.mean(error < 1.96 * calibration.se))
        out[f"{name}: clustered"] = float(np.mean(error < 1.96 * robust))
    return out


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=100, only=(*DESIGNS, "classes"), ordered=False)
    designs = ORDERED if asked.ordered else DESIGNS
    for kind in asked.only:
        if cases := [({"design": name}, partial(compare, draw)) for name, draw in designs.get(kind, {}).items()]:
            harness.study(f"Coverage, {kind}", cases, asked)
    if "classes" in asked.only and not asked.ordered:
        difficulty = np.random.default_rng(0).normal(size=20)
        difficulty -= difficulty.mean()
        of_all = SpectralRasch().fit(in_classes(1, 8000, difficulty)[0]).difficulty_
        cases = harness.cases(partial(classes, difficulty, of_all), classes=(20, 40, 80))
        harness.study("Classes of 25, effects of sd .6, 20 items: coverage of the difficulty in", cases, asked)
