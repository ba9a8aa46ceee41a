"""Estimators on simulated data: how far from the truth, and how long it took.

Every trial draws difficulties from N(0, 1), abilities from N(0, sigma^2) and answers, and gives the same answers to
every method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.errors import SpectralIrtError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.reciprocal import ChoppinRasch, EigenvectorRasch
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.experiments import methods as point
from spectral_irt.experiments.experiment import Request
from spectral_irt.experiments.tables import summarise
from spectral_irt.experiments.trials import Row, Task, generator
from spectral_irt.inference.bounds import floor
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Floats
from spectral_irt.simulate import Simulated, rasch

TRIALS = 100  # the paper's

# The authors' program used nu = 0.001 on synthetic data: just enough to keep the chain in one piece.
SMALL_NU = 0.001

Method = Callable[[Responses], Floats]

PAPER = "spectral (paper)"
DEFAULT = "spectral (default)"


def _fit(make: Callable[[], Any]) -> Method:
    return lambda responses: make().fit(responses).difficulty_


def missing_as_wrong(responses: Responses) -> Floats:
    """The CMLE that the paper compares with, which is right for complete data only.

    For every user it takes the elementary symmetric function over all m items, whichever of them the user answered. A
    score s reached on the answered items is then one pattern among all ways to get s of m items right: exactly the
    conditional likelihood of data in which every missing answer was a wrong one.
    """
    return ConditionalRasch(se="none").fit(np.nan_to_num(responses.to_dense(), nan=0.0)).difficulty_


METHODS: dict[str, Method] = {
    PAPER: _fit(lambda: SpectralRasch.paper(nu=SMALL_NU, se="none")),
    DEFAULT: _fit(lambda: SpectralRasch(se="none")),
    "CMLE": _fit(lambda: ConditionalRasch(se="none")),
    "CMLE as the paper's baseline computes it": missing_as_wrong,
    "MMLE, prior N(0, 1)": lambda responses: point.mmle(responses, 1.0).difficulty,
    "MMLE, prior sd estimated": lambda responses: point.mmle(responses).difficulty,
    "JMLE": lambda responses: point.jmle(responses).difficulty,
    "Choppin": _fit(ChoppinRasch),
    "eigenvector": _fit(EigenvectorRasch),
    # Every pair counts once and nothing is added: the estimator that the theorems speak of.
    "spectral (pairs, nothing added)": _fit(lambda: SpectralRasch(weighting="pairs", regularization=0, se="none")),
}


@dataclass(frozen=True)
class Setting:
    """One point of a figure: n users, m items, each shown with probability p, abilities N(0, sigma^2)."""

    n: int
    m: int
    p: float = 1.0
    sigma: float = 1.0
    panel: str = ""

    def draw(self, seed: np.random.Generator) -> Simulated:
        design: dict[str, Any] = {"design": "complete"} if self.p == 1 else {"design": "sampled", "p": self.p}
        return rasch(self.n, self.m, ability_sd=self.sigma, seed=seed, **design)

    def __str__(self) -> str:
        where = f"{self.panel}: " if self.panel else ""
        return f"{where}n={self.n} m={self.m} p={self.p:g} sigma={self.sigma:g}"


def more(rows: list[Row]) -> dict[str, list[Row]]:
    """The further tables of an experiment: means over the trials of each setting."""
    keys = [*(["panel"] if "panel" in rows[0] else []), "n", "m", "p", "sigma", "method"]
    return {"summary": summarise(rows, keys, ["error", "floor", "seconds"])}


def plan(
    name: str,
    request: Request,
    settings: Iterable[Setting],
    methods: Sequence[str] | Callable[[Setting], Sequence[str]],
    *,
    trials: int = TRIALS,
) -> list[Task]:
    """A task for every setting and trial; a row for every method in it."""
    chosen = methods if callable(methods) else lambda setting: methods
    return [
        Task(f"{setting} trial={k}", _work(name, request.seed, setting, k, tuple(chosen(setting))))
        for setting in settings
        for k in range(request.trials or trials)
    ]


def _work(name: str, seed: int, setting: Setting, trial: int, methods: tuple[str, ...]) -> Callable[[], list[Row]]:
    def work() -> list[Row]:
        data = setting.draw(generator(seed, name, setting, trial))
        return measure(data, setting, trial, {method: METHODS[method] for method in methods})

    return work


def measure(data: Simulated, setting: Setting, trial: int, methods: Mapping[str, Method]) -> list[Row]:
    """A row for each method: `error` is the l2 distance to the truth over the items that every method has, centred.

    `floor` is the least that the l2 error can be on average, by Cramér and Rao with the abilities known. A method that
    is not defined for the data has no numbers, and does not count when the items are compared.
    """
    found: dict[str, tuple[Floats, float]] = {}
    for name, method in methods.items():
        # Blocks remember what they prepared; a copy makes every method pay for its own preparation.
        responses = data.responses.take_users(np.arange(data.responses.n_users))
        start = time.perf_counter()
        try:
            difficulty = method(responses)
        except SpectralIrtError:
            difficulty = np.full(responses.n_items, np.nan)
        found[name] = difficulty, time.perf_counter() - start
    defined = [difficulty for difficulty, _ in found.values() if np.isfinite(difficulty).any()]
    shared = np.logical_and.reduce([np.isfinite(difficulty) for difficulty in defined])
    lowest = np.sqrt(floor(data.information()[shared], centred=True).value)
    return [
        {
            "panel": setting.panel,
            "n": setting.n,
            "m": setting.m,
            "p": float(setting.p),
            "sigma": float(setting.sigma),
            "trial": trial,
            "method": name,
            "items": int(shared.sum()),
            "error": distance(difficulty[shared], data.difficulty[shared]),
            "floor": float(lowest),
            "seconds": seconds,
        }
        for name, (difficulty, seconds) in found.items()
    ]


def distance(a: Floats, b: Floats) -> float:
    """||a - b||_2 after both are centred; NaN if either has a NaN."""
    return float(np.linalg.norm((a - a.mean()) - (b - b.mean())))
