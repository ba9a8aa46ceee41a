"""Partial credit: the two-phase algorithm of Nguyen & Zhang (ICML 2024) beside our chain, our default and CML.

Every trial draws the location of each item from N(0, 0.7²), its thresholds a logit apart around it with deviations from
N(0, 0.5²), and abilities from N(0, 1). Errors are those of all thresholds, centered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.bounds import floor_of_thresholds
from reproduction.figures import Panel
from reproduction.simulations import DEFAULT, Method, Setting, Simulation, measure
from reproduction.trials import Row, generator
from spectral_irt.chain.paper import two_phase
from spectral_irt.data.block import Mask
from spectral_irt.estimators.conditional import ConditionalPartialCredit
from spectral_irt.estimators.spectral import SpectralPartialCredit
from spectral_irt.simulate import Simulated, partial_credit

TWO_PHASE, CHAIN = "two-phase (ICML 2024)", "spectral (chain alone)"
PROGRAM_NU = 0.1  # what the authors' program adds
LOCATION_SD = 0.7


def _fit(make: Callable[[], Any]) -> Method:
    return lambda responses: make().fit(responses).thresholds_


METHODS: dict[str, Method] = {
    TWO_PHASE: lambda responses: two_phase(responses, nu=PROGRAM_NU).thresholds,
    CHAIN: _fit(lambda: SpectralPartialCredit(refine=False, se="none")),
    DEFAULT: _fit(lambda: SpectralPartialCredit(se="none")),
    "CMLE": _fit(lambda: ConditionalPartialCredit(se="none")),
}


@dataclass(frozen=True)
class CreditSetting(Setting):
    """n persons, m items of the categories 0 to `max_score`, each shown with probability p."""

    max_score: int = 3

    def draw(self, seed: np.random.Generator) -> Simulated:
        return partial_credit(
            self.n,
            self.m,
            categories=self.max_score + 1,
            difficulty_sd=LOCATION_SD,
            ability_sd=self.sigma,
            seed=seed,
            **self.design(),
        )

    def least_error(self, data: Simulated, shared: Mask) -> float:
        return floor_of_thresholds(data, shared)


class PartialCredit(Simulation):
    def trial(self, seed: int, setting: Setting, number: int) -> list[Row]:
        data = setting.draw(generator(seed, self.name, setting, number))
        return measure(data, setting, number, {name: METHODS[name] for name in self.methods})


EXPERIMENTS = {
    "credit": PartialCredit(
        "credit",
        "Partial credit: the two-phase algorithm, the joint chain, CML",
        tuple(CreditSetting(n, 10, panel="complete") for n in (1_000, 2_000, 5_000, 10_000))
        + tuple(CreditSetting(n, 20, 0.4, panel="share") for n in (2_000, 5_000, 10_000)),
        (TWO_PHASE, CHAIN, DEFAULT, "CMLE"),
        "Partial credit: a chain for each level, or one for all",
        (
            Panel("10 items of 4 categories, complete", name="complete"),
            Panel("20 items of 4 categories, each shown with probability 0.4", name="share"),
        ),
        trials=50,
    )
}
