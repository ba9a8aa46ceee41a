"""Rates: how the error falls with people and with the share of items shown, against the theorems and the floor.

Theorem 1 (few items) says l2 error = O(sqrt(m) / sqrt(n p^2)), Theorem 2 (many items) O(sqrt(m) / sqrt(n p)), Theorem 3
that nobody has a mean squared error below 4 m / (n p). On log-log axes: slopes of -1/2 in n, and of -1 or -1/2 in p.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.bounds import lower_bound
from reproduction.figures import Panel, rates_figure
from reproduction.simulations import DEFAULT, PAIRS, Setting, Simulation, at, averages
from reproduction.trials import Row

METHODS = (PAIRS, DEFAULT, "CMLE")
SHOWN = "share of items shown p"
PANELS = (
    Panel("5 items, complete", name="n", slope=-0.5, theorem="Theorem 1: slope -1/2"),
    Panel("5 items, 20,000 persons", "p", SHOWN, "p, few items", -1.0, "Theorem 1: slope -1"),
    Panel("200 items, 2,000 persons", "p", SHOWN, "p, many items", -0.5, "Theorem 2: slope -1/2"),
)


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
    """The slope of log error against log n or log p, by least squares, beside the theorem's."""
    out: list[Row] = []
    for panel in PANELS:
        for method in METHODS:
            line = [row for row in panel.rows(table) if row["method"] == method]
            x, y = (np.log([row[name] for row in line]) for name in (panel.axis, "error"))
            fitted = float(np.polyfit(x, y, 1)[0]) if len(line) > 1 else math.nan
            out.append(
                {
                    "panel": panel.name,
                    "method": method,
                    "axis": panel.axis,
                    "slope": fitted,
                    "theorem_slope": panel.slope,
                    "theorem": panel.theorem,
                }
            )
    return out


EXPERIMENTS = {
    "rates": Rates(
        "rates",
        "Error against persons and share shown, with the theorems' slopes",
        at((500, 1_000, 2_000, 5_000, 10_000, 20_000), 5, panel="n")
        + tuple(Setting(20_000, 5, p, panel="p, few items") for p in (0.05, 0.1, 0.2, 0.5, 1.0))
        + tuple(Setting(2_000, 200, p, panel="p, many items") for p in (0.1, 0.2, 0.5, 1.0)),
        METHODS,
        "How fast the error falls, and how fast the theorems say it does",
        PANELS,
        trials=50,
    )
}
