"""How well do errors and comparisons of groups hold with weights, with few clusters, and with unequal slopes?

    python benchmarks/clusters.py [--parts coverage,dif,means,slopes] [--replicates 200] [--seed 0] [--save clusters]

Classes find some items harder than others do, by effects of class x item; weights of persons are lognormal (sd 1 of the
logarithm), drawn for each person or for each class. Coverage: share of the 95% intervals of the difficulties over all
classes that hold the truth, which lies nearer to zero than in an average class by sqrt(1 + .346 sd^2) (Zeger, Liang &
Albert 1988), and for ordered responses comes from a large draw; with errors that know of no clusters, with those that
do and the normal quantile, and as they are printed. DIF: no item differs between groups, which have whole classes or
parts of each; below .05: share of items with p < 0.05; named: data sets in which an item is named. Means: of groups of
whole classes whose means differ by chance. Slopes: responses in four categories, groups of unlike ability, slopes the
same in both; falsely: data sets in which a clean item is named; found: share of two items that are harder by 0.6 logits
and are named.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import draws
import harness
from spectral_irt import SpectralPartialCredit, SpectralRasch
from spectral_irt.calibration import Z95, t_quantile

ITEMS = 10
SHRUNK = 0.346  # of difficulties over classes, for each unit of the variance of effects
STEPS = np.array([-1.0, 0.0, 1.0])
LARGE = 4_000  # classes whose mean is taken for the truth of ordered responses
# classes, persons of each, sd of class x item effects, whose weights, categories
CALIBRATIONS: dict[str, tuple[int, int, float, str, int]] = {
    "40 classes of 20; weights of persons": (40, 20, 0.5, "persons", 2),
    "40 classes of 20; weights of classes": (40, 20, 0.5, "classes", 2),
    "40 classes of 20; weights of persons; no class effects": (40, 20, 0.0, "persons", 2),
    "5 classes of 40": (5, 40, 0.5, "none", 2),
    "10 classes of 30": (10, 30, 0.5, "none", 2),
    "20 classes of 20": (20, 20, 0.5, "none", 2),
    "8 classes of 40; four categories": (8, 40, 0.5, "none", 4),
}
# classes, persons of each, sd of class x item effects, groups of whole classes
COMPARISONS: dict[str, tuple[int, int, float, bool]] = {
    "20 whole classes of 25": (20, 25, 0.5, True),
    "20 whole classes of 25; no class effects": (20, 25, 0.0, True),
    "8 whole classes of 60": (8, 60, 0.5, True),
    "20 classes of 25, divided": (20, 25, 0.5, False),
}
# sd of the logarithms of slopes, impact, items that differ
SLOPES: dict[str, tuple[float, float, int]] = {
    "slopes sd 0.4; abler by 1": (0.4, 1.0, 0),
    "slopes sd 0.5; abler by 1.5": (0.5, 1.5, 0),
    "slopes sd 0.3; abler by 1; 2 of 10": (0.3, 1.0, 2),
}


def answers_of_classes(rng: Any, room: np.ndarray, effect: float, beta: np.ndarray, highest: int) -> np.ndarray:
    harder = effect * rng.normal(size=(room.max() + 1, len(beta)))
    logit = rng.normal(size=(len(room), 1)) - beta - harder[room]
    if highest == 1:
        return draws.answers(rng, logit)
    return draws.categories(rng, logit[..., None] - STEPS)


def truth(effect: float, highest: int, beta: np.ndarray) -> np.ndarray:
    """Difficulties over all classes."""
    if highest == 1:
        return beta / np.sqrt(1 + SHRUNK * effect**2)
    rng = np.random.default_rng(99)
    table = answers_of_classes(rng, np.repeat(np.arange(LARGE), 10), effect, beta, highest)
    found: np.ndarray = SpectralPartialCredit(regularization=0).fit(table).difficulty_
    return found


def calibration(design: str, target: np.ndarray, seed: int) -> dict[str, float]:
    classes, size, effect, whose, categories = CALIBRATIONS[design]
    rng = np.random.default_rng([seed, 1])
    beta, room = np.linspace(-1.5, 1.5, ITEMS), np.repeat(np.arange(classes), size)
    table = answers_of_classes(rng, room, effect, beta, categories - 1)
    weights = None
    if whose != "none":
        drawn = np.exp(rng.normal(size=len(room) if whose == "persons" else classes))
        weights = drawn if whose == "persons" else drawn[room]
    fit = (SpectralRasch if categories == 2 else SpectralPartialCredit)().fit(table, weights=weights)
    made = fit.analyse(table).clustered(room.tolist()).calibration
    error = np.abs(made.difficulty - target)
    return {
        "plain": float(np.mean(error < Z95 * fit.se_)),
        "clustered, normal": float(np.mean(error < Z95 * made.se)),
        "clustered": float(np.mean(error < made.ci_width * made.se)),
    }


def comparison(design: str, seed: int) -> dict[str, float]:
    classes, size, effect, whole = COMPARISONS[design]
    rng = np.random.default_rng([seed, 2])
    room = np.repeat(np.arange(classes), size)
    table = answers_of_classes(rng, room, effect, rng.normal(size=12), 1)
    group = (room % 2 if whole else rng.integers(0, 2, len(room))).tolist()
    study = SpectralRasch().fit(table).analyse(table)
    row = {}
    for name, one in (("plain", study), ("clustered", study.clustered(room.tolist()))):
        found = one.dif(group, nonuniform=False).contrasts
        row |= {f"{name}: below .05": np.mean(found["p"] < 0.05), f"{name}: named": float(found["flagged"].any())}
    return row


def means(classes: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 3])
    room = np.repeat(np.arange(classes), 15)
    ability = rng.normal(0, 0.8, len(room)) + rng.normal(0, 0.6, classes)[room]
    table = draws.answers(rng, ability[:, None] - np.linspace(-1.5, 1.5, 15))
    study = SpectralRasch().fit(table).analyse(table)
    row = {}
    for name, one in (("plain", study), ("clustered", study.clustered(room.tolist()))):
        found = one.group_means((room % 2).tolist())
        reach = [t_quantile(df) for df in found["df"]] if "df" in found.columns else [Z95, Z95]
        for column, se in (("mean", "se"), ("latent_mean", "latent_se")):
            held = np.abs(found[column].to_numpy()) < reach * found[se].to_numpy()
            row[f"{name}: {column.replace('_', ' ')}"] = float(np.mean(held))
    return row


def slopes(design: str, seed: int) -> dict[str, float]:
    spread, impact, differ = SLOPES[design]
    rng = np.random.default_rng([seed, 4])
    n = 400
    second = np.repeat([False, True], n)[:, None]
    beta, slope = 0.8 * rng.normal(size=ITEMS), np.exp(spread * rng.normal(size=ITEMS))
    moved = 0.6 * second * (np.arange(ITEMS) < differ)
    distance = rng.normal(size=(2 * n, 1)) + impact * second - beta - moved
    table = draws.categories(rng, slope[:, None] * (distance[..., None] - STEPS))
    found = SpectralPartialCredit().fit(table).analyse(table).dif(second[:, 0].tolist(), nonuniform=False).contrasts
    clean = found["item"].astype(int) >= differ
    row = {"falsely": float(found["flagged"][clean].any())}
    return row | ({"found": float(found["flagged"][~clean].mean())} if differ else {})


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=200, parts=("coverage", "dif", "means", "slopes"))
    if "coverage" in asked.parts:
        beta = np.linspace(-1.5, 1.5, ITEMS)
        rows = []
        for design, (_, _, effect, _, categories) in CALIBRATIONS.items():
            rows.append(({"design": design}, partial(calibration, design, truth(effect, categories - 1, beta))))
        harness.study("coverage of difficulties", rows, asked)
    if "dif" in asked.parts:
        harness.study("DIF between groups of classes", harness.cases(comparison, design=COMPARISONS), asked)
    if "means" in asked.parts:
        harness.study("coverage of the means of two groups", harness.cases(means, classes=(10, 30)), asked)
    if "slopes" in asked.parts:
        harness.study("DIF with unequal slopes", harness.cases(slopes, design=SLOPES), asked)
