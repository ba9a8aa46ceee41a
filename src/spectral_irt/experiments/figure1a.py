"""Figure 1 (a): with few items JMLE stays away from the truth, however many users there are."""

from __future__ import annotations

from typing import Any

from spectral_irt.experiments import synthetic
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.synthetic import DEFAULT, PAPER, Setting
from spectral_irt.experiments.trials import Row, Task

USERS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
ITEMS = 10
METHODS = (PAPER, DEFAULT, "CMLE", "MMLE, prior N(0, 1)", "JMLE")


def plan(request: Request) -> list[Task]:
    return synthetic.plan("figure1a", request, [Setting(n, ITEMS) for n in USERS], METHODS)


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import error_figure

    return error_figure(
        tables["summary"],
        f"{ITEMS} items, complete, abilities N(0, 1)",
        "JMLE does not come closer with more users",
    )


EXPERIMENT = Experiment("figure1a", "JMLE is inconsistent when items are few", plan, draw, synthetic.more)

if __name__ == "__main__":
    main(EXPERIMENT)
