"""Ordered answers: error of the default and of the chain against CML, intervals, and speed.

    python benchmarks/ordered.py [--replicates 40] [--parts efficiency,coverage,speed] [--seed 0]

Thresholds are standard normal and independent ("normal") or a logit apart around a normal location ("steps"), drawn
once for a setting; people and answers are new in every replicate. Standard errors over replicates are in brackets. The
speed part takes five million answers of either kind. `designs.py` and `adaptive.py` have more with `--ordered`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import draws
import harness
import spectral_irt as si
from efficiency import efficiencies

SHORT = {"8 items, 3 categories": (8, 2), "8 items, 4 categories": (8, 3), "10 items, 5 categories": (10, 4)}
PEOPLE = 800  # of the efficiency and coverage settings
COMPARED: dict[str, Callable[[], Any]] = {
    "CML": lambda: si.ConditionalPartialCredit(se="none"),
    "default": lambda: si.SpectralPartialCredit(regularization=0, se="none"),
    "by ability": lambda: si.SpectralPartialCredit(regularization=0, refine=False, se="none"),
    "by persons": lambda: si.SpectralPartialCredit(weighting="persons", regularization=0, se="none"),
}
INTERVALS: dict[str, Callable[[], Any]] = {
    "spectral": si.SpectralPartialCredit,
    "no prior": lambda: si.SpectralPartialCredit(regularization=0),
    "conditional": si.ConditionalPartialCredit,
}


def truth(kind: str, items: int, k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(items * 10 + k)
    if kind == "normal":
        return list(rng.normal(size=(items, k)))
    return list(draws.around(rng, rng.normal(size=items), np.arange(k) - (k - 1) / 2))


def efficiency(asked: Namespace) -> None:
    rows = []
    for kind, (name, (items, k)) in product(("normal", "steps"), SHORT.items()):
        draw = partial(si.simulate.partial_credit, PEOPLE, thresholds=truth(kind, items, k))
        rows.append({"thresholds": kind, "data": name, **efficiencies(COMPARED, draw, asked.seeds, "thresholds")})
    harness.show(f"Efficiency against CML ({PEOPLE} people, complete)", rows, asked)


def covered(thresholds: list[np.ndarray], seed: int) -> dict[str, float]:
    data = si.simulate.partial_credit(PEOPLE, thresholds=thresholds, seed=seed)
    location = data.responses.thresholds.mean(data.thresholds)
    out = {}
    for one, make in INTERVALS.items():
        fit = make().fit(data.responses)
        ok, zero = fit.status_ == "ok", location[np.isfinite(fit.difficulty_)].mean()
        each = ok[data.responses.thresholds.item]
        away, moved = fit.thresholds_ - data.thresholds + zero, fit.difficulty_ - location + zero
        out[f"{one}: thresholds"] = float(np.mean(np.abs(away[each]) < 1.96 * fit.threshold_se_[each]))
        out[f"{one}: locations"] = float(np.mean(np.abs(moved[ok]) < 1.96 * fit.se_[ok]))
    return out


def rating_scale(seed: int) -> dict[str, float]:
    data = si.simulate.rating_scale(400, difficulty=np.linspace(-1.2, 1.2, 8), categories=5, seed=seed)
    out = {}
    for one, make in {"conditional": si.ConditionalRatingScale, "chain": si.SpectralRatingScale}.items():
        fit = make().fit(data.responses)
        if np.isfinite(fit.thresholds_).all():
            away = fit.thresholds_ - data.thresholds
            out[f"{one}: squared error"] = float(np.sum(away**2))
            out[f"{one}: coverage"] = float(np.mean(np.abs(away) < 1.96 * fit.threshold_se_))
    return out


def coverage(asked: Namespace) -> None:
    cases = [({"data": name}, partial(covered, truth("steps", *size))) for name, size in SHORT.items()]
    harness.study(f"Coverage of 95% intervals, {PEOPLE} people, complete", cases, asked)
    harness.study("Rating scale", [({"data": "8 items, 5 categories, 400 people"}, rating_scale)], asked)


def speed(asked: Namespace) -> None:
    people, items, design = 50_000, 2000, {"design": "sampled", "p": 0.05}
    binary = si.simulate.rasch(people, items, seed=1, **design).responses
    ordered = si.simulate.partial_credit(people, items, categories=5, seed=1, **design).responses
    fits = {"right or wrong": (si.SpectralRasch(), binary), "five": (si.SpectralPartialCredit(), ordered)}
    spent = harness.in_turns({name: partial(one.fit, data) for name, (one, data) in fits.items()})
    base = spent["right or wrong"].cpu
    rows = [{"categories": one, "wall s": c.wall, "CPU s": c.cpu, "ratio": c.cpu / base} for one, c in spent.items()]
    harness.show(f"{ordered.n_responses:,} answers, 2,000 items, whole fit with standard errors", rows, asked)


PARTS = {"efficiency": efficiency, "coverage": coverage, "speed": speed}

if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=40, parts=tuple(PARTS))
    for part in asked.parts:
        PARTS[part](asked)
