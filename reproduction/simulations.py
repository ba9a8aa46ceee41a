"""Figures 1 and 2: estimators on simulated data, how far from the truth, and how long it took.

Every trial draws difficulties from N(0, 1), abilities from N(0, sigma^2) and answers, and gives the same answers to
every method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reproduction import methods as point
from reproduction.bounds import floor
from reproduction.experiment import Experiment, Request
from reproduction.figures import Panel, simulation_figure
from reproduction.results import summarize
from reproduction.trials import Row, Task, generator
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Mask
from spectral_irt.errors import SpectralIrtError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.pairwise import ChoppinRasch, EigenvectorRasch
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.simulate import Simulated, rasch

# The authors' program used nu = 0.001 on synthetic data: just enough to keep the chain in one piece.
SMALL_NU = 0.001

Method = Callable[[Responses], Floats]

PAPER = "spectral (paper)"
DEFAULT = "spectral (default)"
PAIRS = "spectral (pairs, nothing added)"
AS_PAPER_DOES = "CMLE as the paper's baseline computes it"
PRIOR, FREE_PRIOR = "MMLE, prior N(0, 1)", "MMLE, prior sd estimated"


def _fit(make: Callable[[], Any]) -> Method:
    return lambda responses: make().fit(responses).difficulty_


def missing_as_wrong(responses: Responses) -> Floats:
    """The CMLE that the paper compares with, which is right for complete data only.

    For every person it takes the elementary symmetric function over all m items, whichever of them were answered. A
    score s reached on the answered items is then one pattern among all ways to get s of m items right: exactly the
    conditional likelihood of data in which every missing answer was a wrong one.
    """
    return ConditionalRasch(se="none").fit(np.nan_to_num(responses.to_dense(), nan=0.0)).difficulty_


METHODS: dict[str, Method] = {
    PAPER: _fit(lambda: SpectralRasch.paper(nu=SMALL_NU, se="none")),
    DEFAULT: _fit(lambda: SpectralRasch(se="none")),
    "CMLE": _fit(lambda: ConditionalRasch(se="none")),
    AS_PAPER_DOES: missing_as_wrong,
    PRIOR: lambda responses: point.mmle(responses, 1.0).difficulty,
    FREE_PRIOR: lambda responses: point.mmle(responses).difficulty,
    "JMLE": lambda responses: point.jmle(responses).difficulty,
    "Choppin": _fit(ChoppinRasch),
    "eigenvector": _fit(EigenvectorRasch),
    # Every pair counts once and nothing is added: the estimator that the theorems speak of.
    PAIRS: _fit(lambda: SpectralRasch(weighting="pairs", regularization=0, se="none")),
}


@dataclass(frozen=True)
class Setting:
    """One point of a figure: n people, m items, each shown with probability p, abilities N(0, sigma^2)."""

    n: int
    m: int
    p: float = 1.0
    sigma: float = 1.0
    panel: str = ""

    def draw(self, seed: np.random.Generator) -> Simulated:
        return rasch(self.n, self.m, ability_sd=self.sigma, seed=seed, **self.design())

    def design(self) -> dict[str, Any]:
        """Who is shown what, in the words of `simulate`."""
        if self.p == 1:
            return {"design": "complete"}
        return {"design": "sampled", "p": self.p}

    def least_error(self, data: Simulated, shared: Mask) -> float:
        """The least that the l2 error of these items can be on average, abilities known (Cramér, Rao)."""
        return float(np.sqrt(floor(data.information()[shared], centered=True)))

    def __str__(self) -> str:
        where = f"{self.panel}: " if self.panel else ""
        return f"{where}n={self.n} m={self.m} p={self.p:g} sigma={self.sigma:g}"


def at(persons: Iterable[int], m: int, p: float = 1.0, sigma: float = 1.0, panel: str = "") -> tuple[Setting, ...]:
    """The same setting for several numbers of people."""
    return tuple(Setting(n, m, p, sigma, panel) for n in persons)


@dataclass(frozen=True)
class Simulation(Experiment):
    """An experiment on simulated data.

    Attributes
    ----------
    settings : tuple of Setting
    methods : tuple of str
        Names in `METHODS`.
    claim : str
        What stands over the figure.
    panels : tuple of Panel
    trials : int
        Of each setting; a hundred, as in the paper.
    drawn : "error" or "seconds"
    only_complete : bool
        Average over the trials in which every method is defined, the same ones for all.
    """

    settings: tuple[Setting, ...]
    methods: tuple[str, ...]
    claim: str
    panels: tuple[Panel, ...]
    trials: int = 100
    drawn: str = "error"
    only_complete: bool = False

    def plan(self, request: Request) -> list[Task]:
        return [
            Task(f"{setting} trial={k}", partial(self.trial, request.seed, setting, k))
            for setting in self.settings
            for k in range(request.trials or self.trials)
        ]

    def trial(self, seed: int, setting: Setting, number: int) -> list[Row]:
        data = setting.draw(generator(seed, self.name, setting, number))
        return measure(data, setting, number, {name: METHODS[name] for name in self.methods})

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        return {"summary": defined_everywhere(rows) if self.only_complete else averages(rows, "panel")}

    def draw(self, tables: Mapping[str, list[Row]]) -> Any:
        return simulation_figure(tables["summary"], self.panels, self.claim, self.drawn)


def averages(rows: list[Row], *by: str) -> list[Row]:
    """Means over the trials of each setting."""
    return summarize(rows, [*by, "n", "m", "p", "sigma", "method"], ["error", "largest", "floor", "seconds"])


def defined_everywhere(rows: list[Row]) -> list[Row]:
    """Averages over the trials in which every method is defined, and of how many trials these are."""
    holes = {(row["n"], row["trial"]) for row in rows if row["error"] != row["error"]}
    kept = [row for row in rows if (row["n"], row["trial"]) not in holes]
    drawn = {n: len({row["trial"] for row in rows if row["n"] == n}) for n in {row["n"] for row in rows}}
    return [{**row, "trials_drawn": drawn[row["n"]]} for row in averages(kept)]


def measure(data: Simulated, setting: Setting, trial: int, methods: Mapping[str, Method]) -> list[Row]:
    """A row for each method: `error` is the l2 distance to the truth over the items that every method has, centered.

    `largest` is the error of the item that is farthest from the truth. `seconds` is the time of the processor, of all
    its cores together, which does not depend on what else the machine does.

    `floor` is the least that the l2 error can be on average, by Cramér and Rao with the abilities known. A method that
    is not defined for the data has no numbers, and does not count when the items are compared. Of answers in more than
    two categories all this is about their thresholds.
    """
    found: dict[str, tuple[Floats, float]] = {}
    for name, method in methods.items():
        # Blocks remember what they prepared; a copy makes every method pay for its own preparation.
        responses = data.responses.take_persons(np.arange(data.responses.n_persons))
        start = time.process_time()
        try:
            difficulty = method(responses)
        except SpectralIrtError:
            difficulty = np.full(len(data.thresholds), np.nan)
        found[name] = difficulty, time.process_time() - start
    defined = [difficulty for difficulty, _ in found.values() if np.isfinite(difficulty).any()]
    shared = np.logical_and.reduce([np.isfinite(difficulty) for difficulty in defined])
    truth = data.thresholds[shared]
    lowest = setting.least_error(data, shared)
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
            "error": distance(difficulty[shared], truth),
            "largest": largest_distance(difficulty[shared], truth),
            "floor": lowest,
            "seconds": seconds,
        }
        for name, (difficulty, seconds) in found.items()
    ]


def distance(a: Floats, b: Floats) -> float:
    """||a - b||_2 after both are centered; NaN if either has a NaN."""
    return float(np.linalg.norm((a - a.mean()) - (b - b.mean())))


def largest_distance(a: Floats, b: Floats) -> float:
    """The largest difference of one item, of difficulties that are both centered; NaN if either has a NaN."""
    return float(np.max(np.abs((a - a.mean()) - (b - b.mean()))))


# ------------------------------------------------------------------------------------- the paper's figures

HUNDRED_TO_TEN_THOUSAND = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)

EXPERIMENTS = {
    each.name: each
    for each in (
        Simulation(
            "figure1a",
            "JMLE is inconsistent when items are few",
            at(HUNDRED_TO_TEN_THOUSAND, 10),
            (PAPER, DEFAULT, "CMLE", PRIOR, "JMLE"),
            "JMLE does not come closer with more persons",
            (Panel("10 items, complete, abilities N(0, 1)"),),
        ),
        Simulation(
            "figure1b",
            "MMLE with a wrong prior is inconsistent",
            at(HUNDRED_TO_TEN_THOUSAND, 10, sigma=2),
            (PAPER, DEFAULT, "CMLE", PRIOR, FREE_PRIOR, "JMLE"),
            "A wrong prior keeps MMLE from the truth; estimating its spread repairs it",
            (Panel("10 items, complete, abilities N(0, 4)"),),
        ),
        Simulation(
            "figure1c",
            "Missing data: CMLE, correct and as the paper's baseline",
            at((500, 1_000, 2_000, 5_000, 10_000), 100, 0.2, panel="persons")
            + tuple(Setting(2_000, 100, p, panel="share shown") for p in (0.1, 0.2, 0.5, 1.0)),
            (PAPER, DEFAULT, "CMLE", PRIOR, "JMLE", AS_PAPER_DOES),
            "Missing data: the paper's CMLE baseline fails, CMLE does not",
            (
                Panel("100 items, each shown with probability 0.2", label="persons", name="persons"),
                Panel("100 items, 2,000 persons", "p", "probability p that an item is shown", "share shown"),
            ),
        ),
        Simulation(
            "figure1d",
            "Time against the number of persons",
            at((500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000), 100, 0.2),
            (PAPER, DEFAULT, "CMLE", PRIOR, "JMLE"),
            "Processor time to estimate",
            (Panel("100 items, each shown with probability 0.2"),),
            trials=20,
            drawn="seconds",
        ),
        Simulation(
            "figure2",
            "Spectral against two older matrix methods, complete data",
            # With fewer people some two items are often answered differently by nobody: the matrix has a hole.
            at((2_000, 5_000, 10_000, 20_000), 100),
            (PAPER, DEFAULT, "CMLE", "Choppin", "eigenvector"),
            "Spectral against older matrix methods",
            (Panel("100 items, complete, abilities N(0, 1)"),),
            only_complete=True,
        ),
    )
}
