"""Simulated logs of an evaluation harness: nine language models on the same prompts, for a leaderboard to rank."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

MODELS = ("kiwi-70b", "kiwi-8b", "kiwi-1b", "plum-34b", "plum-7b", "fig-40b", "fig-3b", "date-13b", "date-2b")
ABILITY = (2.1, 1.1, -0.6, 1.9, 0.8, 1.8, 0.1, 0.9, -0.3)
TASKS = {"arithmetic": 150, "reading": 150}
PASSAGE = 5  # prompts of "reading" about one text
WRONG_KEY = ("arithmetic", 17)
WHEN = "2026-03-02T09-00-00.000000"


def log_texts() -> Iterator[tuple[Path, str]]:
    """Where each log lies in a folder of runs, and its text: the sample logs of lm-evaluation-harness.

    The answers follow the Rasch model but for two faults. The key of prompt 17 of "arithmetic" is wrong, so that better
    models fail it; and a model that misreads a text of "reading" misses more of its five prompts than chance has.

    Examples
    --------
    >>> path, text = next(log_texts())
    >>> path.as_posix(), len(text.splitlines())
    ('kiwi-70b/samples_arithmetic_2026-03-02T09-00-00.000000.jsonl', 150)
    """
    random = np.random.default_rng(20260302)
    difficulty = {task: random.normal(0.0, 1.3, count) for task, count in TASKS.items()}
    for model, ability in zip(MODELS, ABILITY, strict=True):
        for task, count in TASKS.items():
            passages = random.normal(0.0, 0.8, -(-count // PASSAGE)) * (task == "reading")
            shown = difficulty[task] - np.repeat(passages, PASSAGE)[:count]
            right = random.random(count) < 1 / (1 + np.exp(shown - ability))
            if task == WRONG_KEY[0]:
                right[WRONG_KEY[1]] = random.random() > 1 / (1 + np.exp(-1.5 * (ability - 0.5)))
            lines = [json.dumps(_sample(task, k, bool(right[k]))) for k in range(count)]
            yield Path(model) / f"samples_{task}_{WHEN}.jsonl", "\n".join(lines) + "\n"


def _sample(task: str, k: int, right: bool) -> dict[str, object]:
    """One line of a sample log, without the texts of prompt and answer."""
    document: dict[str, object] = {"question": f"question {k}"}
    if task == "reading":
        document["passage"] = f"text {1 + k // PASSAGE}"
    return {
        "doc_id": k,
        "doc": document,
        "target": "1",
        "resps": [["1" if right else "0"]],
        "filtered_resps": ["1" if right else "0"],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"{task}-{k}",
        "acc": float(right),
    }
