"""Rates: how the error falls with persons and with the share of items shown, against the theorems and the floor.

Theorem 1 (few items) says l2 error = O(sqrt(m) / sqrt(n p^2)), Theorem 2 (many items) O(sqrt(m) / sqrt(n p)), Theorem 3
that nobody has a mean squared error below 4 m / (n p). On log-log axes: slopes of -1/2 in n, and of -1 or -1/2 in p.

Nguyen & Zhang (AISTATS 2023, arXiv 2303.06234) bound the error of every single item by the best rate, 1 / sqrt(n p), up
to a logarithm. So the error of the worst item falls with the same slopes, and with more items, where the l2 error grows
as sqrt(m), it grows as sqrt(log m) does, like the largest of m independent normal errors. Their theorem, like the
others, is about difficulties of a bounded range, which this last panel draws uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.bounds import lower_bound
from reproduction.figures import Panel, rates_figure
from reproduction.simulations import DEFAULT, PAIRS, Setting, Simulation, at, averages
from reproduction.trials import Row
from spectral_irt.simulate import Simulated, rasch

METHODS = (PAIRS, DEFAULT, "CMLE")
SHOWN = "share of items shown p"
PANELS = (
    Panel("5 items, complete", name="n", slope=-0.5, theorem="Theorem 1: slope -1/2"),
    Panel("5 items, 20,000 persons", "p", SHOWN, "p, few items", -1.0, "Theorem 1: slope -1"),
    Panel("200 items, 2,000 persons", "p", SHOWN, "p, many items", -0.5, "Theorem 2: slope -1/2"),
    Panel(
        "2,000 persons, each item shown with probability 0.2",
        "m",
        "items m",
        "worst item",
        0.0,
        r"entrywise: $\sqrt{\log m}$",
        "largest",
    ),
)
REACH = 1.5  # difficulties between -1.5 and 1.5 where the range is bounded


@dataclass(frozen=True)
class BoundedSetting(Setting):
    """Difficulties uniform on a bounded range."""

    def draw(self, seed: np.random.Generator) -> Simulated:
        difficulty = seed.uniform(-REACH, REACH, self.m)
        return rasch(self.n, self.m, difficulty=difficulty, ability_sd=self.sigma, seed=seed, **self.design())


class Rates(Simulation):
    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        table = averages(rows, "panel")
        for row in table:
            free = lower_bound(row["n"], row["m"], row["p"])  # of m free difficulties; ours add to zero
            row["theorem_floor"] = math.sqrt(free * (row["m"] - 1) / row["m"])
        return {"summary": table, "slopes": slopes(table)}

    def draw(self, tables: Mapping[str, list[Row]]) -> Any:
        return rates_figure(tables["summary"], tables["slopes"], self.panels, self.claim)


def slopes(table: Sequence[Row]) -> list[Row]:
    """The slopes of the log of both errors against log n, log p or log m, by least squares, beside the theorem's."""
    out: list[Row] = []
    for panel in PANELS:
        for method in METHODS:
            line = [row for row in panel.rows(table) if row["method"] == method]
            out.append(
                {
                    "panel": panel.name,
                    "method": method,
                    "axis": panel.axis,
                    "slope": slope(line, panel.axis, panel.measure),
                    "slope_worst_item": slope(line, panel.axis, "largest"),
                    "theorem_slope": panel.slope,
                    "theorem": panel.theorem,
                }
            )
    return out


def slope(line: Sequence[Row], axis: str, measure: str) -> float:
    if len(line) < 2:
        return math.nan
    x = np.log([row[axis] for row in line])
    y = np.log([row[measure] for row in line])
    return float(np.polyfit(x, y, 1)[0])


EXPERIMENTS = {
    "rates": Rates(
        "rates",
        "Error against persons and share shown, with the theorems' slopes",
        at((500, 1_000, 2_000, 5_000, 10_000, 20_000), 5, panel="n")
        + tuple(Setting(20_000, 5, p, panel="p, few items") for p in (0.05, 0.1, 0.2, 0.5, 1.0))
        + tuple(Setting(2_000, 200, p, panel="p, many items") for p in (0.1, 0.2, 0.5, 1.0))
        + tuple(BoundedSetting(2_000, m, 0.2, panel="worst item") for m in (25, 50, 100, 200, 400, 800)),
        METHODS,
        "How fast the error falls, and how fast the theorems say it does",
        PANELS,
        trials=50,
    )
}
