"""Rates: how the error falls with users and with the share of items shown, against the theorems and the floor.

Theorem 1 (few items) says l2 error = O(sqrt(m) / sqrt(n p^2)), Theorem 2 (many items) O(sqrt(m) / sqrt(n p)), Theorem 3
that nobody has a mean squared error below 4 m / (n p). On log-log axes: slopes of -1/2 in n, and of -1 or -1/2 in p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spectral_irt.experiments import synthetic
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.synthetic import DEFAULT, Setting
from spectral_irt.experiments.trials import Row, Task
from spectral_irt.inference.bounds import lower_bound

PAIRS = "spectral (pairs, nothing added)"
METHODS = (PAIRS, DEFAULT, "CMLE")
TRIALS = 50

USERS = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
FEW, MANY = 5, 200
FEW_USERS, FEW_SHARES = 20_000, (0.05, 0.1, 0.2, 0.5, 1.0)
MANY_USERS, MANY_SHARES = 2_000, (0.1, 0.2, 0.5, 1.0)

# Panel, the axis that varies, what it is called, the theorem's slope, what else is fixed.
PANELS = (
    ("n", "n", "users n", -0.5, "Theorem 1: slope -1/2", f"{FEW} items, complete"),
    ("p, few items", "p", "share of items shown p", -1.0, "Theorem 1: slope -1", f"{FEW} items, {FEW_USERS:,} users"),
    (
        "p, many items",
        "p",
        "share of items shown p",
        -0.5,
        "Theorem 2: slope -1/2",
        f"{MANY} items, {MANY_USERS:,} users",
    ),
)


def plan(request: Request) -> list[Task]:
    settings = [Setting(n, FEW, panel="n") for n in USERS]
    settings += [Setting(FEW_USERS, FEW, p, panel="p, few items") for p in FEW_SHARES]
    settings += [Setting(MANY_USERS, MANY, p, panel="p, many items") for p in MANY_SHARES]
    return synthetic.plan("rates", request, settings, METHODS, trials=TRIALS)


def more(rows: list[Row]) -> dict[str, list[Row]]:
    table = synthetic.more(rows)["summary"]
    for row in table:
        free = lower_bound(row["n"], row["m"], row["p"]).value  # of m free difficulties; ours add to zero
        row["theorem_floor"] = math.sqrt(free * (row["m"] - 1) / row["m"])
    return {"summary": table, "slopes": slopes(table)}


def slopes(table: Sequence[Row]) -> list[Row]:
    """The slope of log error against log n or log p, by least squares, beside the theorem's."""
    out: list[Row] = []
    for panel, axis, _, slope, theorem, _ in PANELS:
        for method in METHODS:
            line = [row for row in table if row["panel"] == panel and row["method"] == method]
            x, y = (np.log([row[name] for row in line]) for name in (axis, "error"))
            fitted = float(np.polyfit(x, y, 1)[0]) if len(line) > 1 else math.nan
            out.append({"panel": panel, "method": method, "axis": axis, "slope": fitted, "theorem_slope": slope})
            out[-1]["theorem"] = theorem
    return out


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import rates_figure

    return rates_figure(tables["summary"], tables["slopes"], PANELS)


EXPERIMENT = Experiment("rates", "Error against users and share shown, with the theorems' slopes", plan, draw, more)

if __name__ == "__main__":
    main(EXPERIMENT)
