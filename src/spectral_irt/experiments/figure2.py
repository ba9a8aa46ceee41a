"""Figure 2: the spectral method against Choppin's row means and Garner's eigenvector, complete data."""

from __future__ import annotations

from typing import Any

from spectral_irt.experiments import synthetic
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.synthetic import DEFAULT, PAPER, Setting
from spectral_irt.experiments.tables import summarise
from spectral_irt.experiments.trials import Row, Task

# With fewer users some pair of items is often answered differently by nobody, and the matrix of ratios has a hole.
USERS = (2_000, 5_000, 10_000, 20_000)
ITEMS = 100
METHODS = (PAPER, DEFAULT, "CMLE", "Choppin", "eigenvector")


def plan(request: Request) -> list[Task]:
    return synthetic.plan("figure2", request, [Setting(n, ITEMS) for n in USERS], METHODS)


def more(rows: list[Row]) -> dict[str, list[Row]]:
    return {"summary": _with_defined(rows)}


def _with_defined(rows: list[Row]) -> list[Row]:
    """Averages over the trials in which the matrix methods are defined, for every method the same ones."""
    holes = {(row["n"], row["trial"]) for row in rows if row["error"] != row["error"]}
    kept = [row for row in rows if (row["n"], row["trial"]) not in holes]
    drawn = {n: len({row["trial"] for row in rows if row["n"] == n}) for n in {row["n"] for row in rows}}
    table = summarise(kept, ["n", "m", "p", "sigma", "method"], ["error", "floor", "seconds"])
    return [{**row, "trials_drawn": drawn[row["n"]]} for row in table]


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import error_figure

    return error_figure(
        tables["summary"], f"{ITEMS} items, complete, abilities N(0, 1)", "Spectral against older matrix methods"
    )


EXPERIMENT = Experiment("figure2", "Spectral against two older matrix methods, complete data", plan, draw, more)

if __name__ == "__main__":
    main(EXPERIMENT)
