"""Table 1: spectral, MMLE, CMLE and JMLE on every dataset that is found."""

from __future__ import annotations

from typing import Any

from spectral_irt.experiments import benchmark
from spectral_irt.experiments.experiment import Experiment, Request, main
from spectral_irt.experiments.trials import Row, Task

FITS = ("paper", "default", "mmle", "cmle", "jmle")


def plan(request: Request) -> list[Task]:
    return benchmark.plan("table1", request, FITS)


def more(rows: list[Row]) -> dict[str, list[Row]]:
    return {"summary": benchmark.summary(rows)}


def draw(rows: list[Row], tables: Any) -> Any:
    from spectral_irt.experiments.figures import benchmark_figure

    return benchmark_figure(tables["summary"], EXPERIMENT.title)


EXPERIMENT = Experiment("table1", "Real data: spectral, MMLE, CMLE, JMLE", plan, draw, more, uses_data=True)

if __name__ == "__main__":
    main(EXPERIMENT)
