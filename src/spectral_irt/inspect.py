"""A metric for inspect_ai: the ability of the model of a run, on the scale of a leaderboard, with its standard error.

    from inspect_ai.scorer import accuracy, match, scorer
    from spectral_irt.inspect import ability

    task = Task(dataset, scorer=match(), metrics=[accuracy(), ability("board/prompts.csv")])

Difficulties of prompts are those of `spectral-irt leaderboard runs -o board`. A run may have any of these prompts: on
hard ones a model of the same ability has fewer right answers, and its accuracy is lower, but not its ability.
inspect_ai calls the metric when a run has been scored; it is imported when the metric is made, not before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.persons import abilities

NAME = "spectral_irt/ability"
COLUMNS = ("prompt", "difficulty")


def ability(
    prompts: str | PathLike[str] | Mapping[str, float], *, benchmark: str | None = None, threshold: float = 0.5
) -> Any:
    """The metric: a run's `ability`, its standard error `ability_se`, and `ability_n`, the prompts that it is from.

    Warm's estimate at the known difficulties; NaN where the run has none of the prompts. Samples without a score, and
    those whose prompt has no difficulty, are left out, which `ability_n` shows.

    Parameters
    ----------
    prompts : path or mapping
        `prompts.csv` of a leaderboard (columns prompt and difficulty), or difficulties by prompt.
    benchmark : str, optional
        A leaderboard calls a prompt "benchmark/sample". By default the benchmark does not matter, as long as no sample
        has the same name in two of them.
    threshold : float
        Scores above it are right.
    """
    from inspect_ai.scorer import metric, value_to_float

    difficulty = sample_difficulties(prompts, benchmark)
    number = value_to_float()

    @metric(name=NAME)
    def ability_of_run() -> Any:
        def compute(scores: Sequence[Any]) -> dict[str, float]:
            answered: dict[str, bool] = {}
            for one in scores:
                value = one.score.value
                is_scored = value is not None and not (isinstance(value, float) and math.isnan(value))
                if is_scored and str(one.sample_id) in difficulty:
                    answered[str(one.sample_id)] = number(value) > threshold
            return ability_columns(answered, difficulty)

        return compute

    return ability_of_run()


def sample_difficulties(
    prompts: str | PathLike[str] | Mapping[str, float], benchmark: str | None = None
) -> dict[str, float]:
    """The difficulty of each sample by its name; those without an estimate are left out.

    >>> sample_difficulties({"arc/1": -0.5, "arc/2": float("nan"), "gsm/1": 2.0}, "arc")
    {'1': -0.5}
    """
    by_prompt = prompts if isinstance(prompts, Mapping) else _read(Path(prompts))
    found: dict[str, float] = {}
    for prompt, value in by_prompt.items():
        name, _, sample = str(prompt).rpartition("/")
        if (benchmark is not None and name != benchmark) or not math.isfinite(value):
            continue
        if sample in found:
            raise OptionError(f"two benchmarks have a sample {sample!r}; say which one is meant with `benchmark=`.")
        found[sample] = float(value)
    if not found:
        of_benchmark = f" of the benchmark {benchmark!r}" if benchmark else ""
        raise OptionError(f"no prompt{of_benchmark} has a difficulty.")
    return found


def _read(path: Path) -> dict[str, float]:
    import polars as pl

    try:
        table = pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ReadError(f"{path} cannot be read as a table of prompts: {error}.") from None
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise ReadError(f"{path} has no column {missing[0]!r}; give prompts.csv of a leaderboard.")
    values = table["difficulty"].cast(pl.Float64, strict=False).fill_null(math.nan).to_list()
    return dict(zip(table["prompt"].cast(pl.String).to_list(), values, strict=True))


def ability_columns(answered: Mapping[str, bool], difficulty: Mapping[str, float]) -> dict[str, float]:
    """What the metric gives for a run, from which of its samples are right.

    >>> run = ability_columns({"1": True, "2": False}, {"1": 0.0, "2": 0.0})
    >>> round(run["ability"], 2), round(run["ability_se"], 2), run["ability_n"]
    (0.0, 1.41, 2)
    """
    if not answered:
        return {"ability": math.nan, "ability_se": math.nan, "ability_n": 0}
    row = Responses.from_wide(np.array([list(map(float, answered.values()))]))
    estimate = abilities(row, np.array([difficulty[sample] for sample in answered]))
    return {"ability": float(estimate.ability[0]), "ability_se": float(estimate.se[0]), "ability_n": len(answered)}
