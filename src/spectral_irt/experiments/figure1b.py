"""Figure 1 (b): MMLE with the prior N(0, 1) when abilities are N(0, 4)."""

from __future__ import annotations

from typing import Any

from spectral_irt.experiments import synthetic
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.synthetic import DEFAULT, PAPER, Setting
from spectral_irt.experiments.trials import Row, Task

USERS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
ITEMS = 10
SIGMA = 2.0
METHODS = (PAPER, DEFAULT, "CMLE", "MMLE, prior N(0, 1)", "MMLE, prior sd estimated", "JMLE")


def plan(request: Request) -> list[Task]:
    settings = [Setting(n, ITEMS, sigma=SIGMA) for n in USERS]
    return synthetic.plan("figure1b", request, settings, METHODS)


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import error_figure

    return error_figure(
        tables["summary"],
        f"{ITEMS} items, complete, abilities N(0, {SIGMA**2:g})",
        "A wrong prior keeps MMLE from the truth; estimating its spread repairs it",
    )


EXPERIMENT = Experiment("figure1b", "MMLE with a wrong prior is inconsistent", plan, draw, synthetic.more)

if __name__ == "__main__":
    main(EXPERIMENT)
