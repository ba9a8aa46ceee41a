"""Scores by judges: is self-preference found, do severities against people hold, and what does a board cost?

    python benchmarks/judges.py [--parts self,human,cost] [--replicates 100]

self: 20 models of ten families on 200 prompts, scored 1 to 5 by 6 judges, each of a family of its own, who differ in
severity with the given standard deviation. How often self-preference is significant at 5% (its level where there is
none, its power where judges give so many logits to their family), the mean estimate, and the share of intervals with
the true value. human: people scored a share of the answers that judges scored; the share of severities against people
in their 95% intervals. cost: CPU seconds from a CSV file to the page, 30 models, 5,000 prompts, 5 judges, scores 1 to
10.
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

import harness
import spectral_irt as si

FAMILIES = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")


def scores(
    rng: np.random.Generator,
    models: int,
    prompts: int,
    judges: int,
    categories: int,
    severity_sd: float,
    preference: float = 0.0,
    people: float = 0.0,
) -> tuple[pl.DataFrame, np.ndarray]:
    """Scores of every judge on every answer; of people, on that share of the answers. And the severities."""
    ability = rng.normal(0, 0.6, models)
    difficulty = rng.normal(0, 0.8, prompts)
    severity = severity_sd * rng.normal(size=judges)
    if people:
        severity[0] = 0.0
    family = np.arange(models) % len(FAMILIES)
    own = (family[:, None] == np.arange(judges))[:, None, :]
    offsets = np.linspace(-1.2, 1.2, categories - 1)
    logit = ability[:, None, None] - difficulty[:, None] - severity + preference * own
    weights = np.cumsum(np.concatenate([np.zeros((*logit.shape, 1)), logit[..., None] - offsets], axis=-1), axis=-1)
    p = np.exp(weights - weights.max(axis=-1, keepdims=True))
    below = np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)[..., :-1]
    score = 1 + (rng.random(logit.shape)[..., None] >= below).sum(axis=-1)
    keep = np.ones(score.shape, dtype=bool)
    if people:
        keep[..., 0] = rng.random(score.shape[:2]) < people
    model, prompt, judge = np.nonzero(keep)
    names = np.array([f"{FAMILIES[family[k]]}-{k}" for k in range(models)])
    judge_names = np.array([f"{FAMILIES[k]}-judge" for k in range(judges)], dtype=object)
    if people:
        judge_names[0] = "human"
    columns = {"model": names[model], "prompt": prompt, "judge": judge_names[judge].astype(str), "score": score[keep]}
    return pl.DataFrame(columns), severity


def self_preference(severity_sd: float, preference: float, seeds: Iterable[int]) -> harness.Row:
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([47, 1, seed])
        table, _ = scores(rng, 20, 200, 6, 5, severity_sd, preference)
        found = si.JudgedLeaderboard.read(table).self_preference
        assert found is not None
        rows.append([found.p < 0.05, found.estimate, found.low <= preference <= found.high])
    significant, estimate, held = np.mean(rows, axis=0)
    return {"significant": significant, "mean estimate": estimate, "in the interval": held}


def self(asked: Namespace) -> Iterator[harness.Row]:
    for severity_sd in (0.0, 1.0):
        for preference in (0.0, 0.3):
            labels = {"sd of severity": severity_sd, "self-preference": preference}
            yield labels | self_preference(severity_sd, preference, asked.seeds)


def human(asked: Namespace) -> Iterator[harness.Row]:
    for share in (0.1, 0.5):
        rows = []
        for seed in asked.seeds:
            rng = np.random.default_rng([47, 2, seed])
            table, severity = scores(rng, 10, 150, 4, 5, 0.7, people=share)
            board = si.JudgedLeaderboard.read(table, families={})
            judges = board.judge_columns
            true = dict(zip(sorted([f"{name}-judge" for name in FAMILIES[1:4]]), severity[1:], strict=True))
            inside = [
                low <= true[name] <= high
                for name, low, high in zip(judges["judge"], judges["ci_low"], judges["ci_high"], strict=True)
                if name in true
            ]
            rows.append(np.mean(inside))
        yield {"answers scored by people": share, "severities in their intervals": np.mean(rows)}


def cost(asked: Namespace) -> Iterator[harness.Row]:
    table, _ = scores(np.random.default_rng(0), 30, 5000, 5, 10, 0.5, preference=0.2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        table.write_csv(path)
        start = time.process_time()
        si.JudgedLeaderboard.read(path).report(Path(folder) / "board.html")
        seconds = time.process_time() - start
    yield {"models": 30, "prompts": 5000, "judges": 5, "categories": 10, "CPU seconds": seconds}


def main() -> None:
    asked = harness.arguments(__doc__, parts=("self", "human", "cost"), replicates=100)
    titles = {
        "self": f"Self-preference; {asked.replicates} data sets",
        "human": f"Severity against people; {asked.replicates} data sets",
        "cost": "From a file to the page",
    }
    for part in asked.parts:
        harness.show(titles[part], globals()[part](asked), asked)


if __name__ == "__main__":
    main()
