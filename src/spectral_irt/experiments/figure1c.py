"""Figure 1 (c): missing data, with CMLE computed correctly, and as the paper's baseline computes it."""

from __future__ import annotations

from typing import Any

from spectral_irt.experiments import synthetic
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.synthetic import DEFAULT, PAPER, Setting
from spectral_irt.experiments.trials import Row, Task

ITEMS = 100
USERS, SHOWN = (500, 1_000, 2_000, 5_000, 10_000), 0.2  # first panel
SOME_USERS, SHARES = 2_000, (0.1, 0.2, 0.5, 1.0)  # second panel
METHODS = (
    PAPER,
    DEFAULT,
    "CMLE",
    "MMLE, prior N(0, 1)",
    "JMLE",
    "CMLE as the paper's baseline computes it",
)


def plan(request: Request) -> list[Task]:
    settings = [Setting(n, ITEMS, SHOWN, panel="users") for n in USERS]
    settings += [Setting(SOME_USERS, ITEMS, p, panel="share shown") for p in SHARES]
    return synthetic.plan("figure1c", request, settings, METHODS)


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import Panel, error_panels

    summary = tables["summary"]
    return error_panels(
        [
            Panel(
                [row for row in summary if row["panel"] == "users"],
                "n",
                "users",
                f"{ITEMS} items, each shown with probability {SHOWN:g}",
            ),
            Panel(
                [row for row in summary if row["panel"] == "share shown"],
                "p",
                "probability p that an item is shown",
                f"{ITEMS} items, {SOME_USERS:,} users",
            ),
        ],
        "Missing data: the paper's CMLE baseline fails, CMLE does not",
    )


EXPERIMENT = Experiment(
    "figure1c", "Missing data: CMLE, correct and as the paper's baseline", plan, draw, synthetic.more
)

if __name__ == "__main__":
    main(EXPERIMENT)
