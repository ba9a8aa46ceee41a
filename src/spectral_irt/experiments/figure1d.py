"""Figure 1 (d): the time that each estimator takes, against the number of users."""

from __future__ import annotations

from typing import Any

from spectral_irt.experiments import synthetic
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.synthetic import DEFAULT, PAPER, Setting
from spectral_irt.experiments.trials import Row, Task

USERS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
ITEMS, SHOWN = 100, 0.2
METHODS = (PAPER, DEFAULT, "CMLE", "MMLE, prior N(0, 1)", "JMLE")
TRIALS = 20  # a mean of twenty times is as good as its machine is quiet


def plan(request: Request) -> list[Task]:
    settings = [Setting(n, ITEMS, SHOWN) for n in USERS]
    return synthetic.plan("figure1d", request, settings, METHODS, trials=TRIALS)


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import time_figure

    return time_figure(tables["summary"], f"{ITEMS} items, each shown with probability {SHOWN:g}", "Time to estimate")


EXPERIMENT = Experiment("figure1d", "Time against the number of users", plan, draw, synthetic.more)

if __name__ == "__main__":
    main(EXPERIMENT)
