"""Trials that survive an interrupt: each one is written down when it is finished, and never done twice.

A trial depends on nothing but the seed and its own name, so that a run that was interrupted and goes on gives the same
rows as one that was not. They are kept in `NAME.partial.jsonl` in the output folder until the table is complete.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
Tell = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Task:
    """One trial: a name of its own, and what to do for its rows."""

    key: str
    work: Callable[[], Sequence[Row]]


def generator(seed: int, *names: object) -> np.random.Generator:
    """Random numbers that belong to these names: the same whatever was drawn before, and in whatever order.

    >>> bool(generator(1, "n=100", 3).integers(1000) == generator(1, "n=100", 3).integers(1000))
    True
    """
    return np.random.default_rng(np.random.SeedSequence([seed, *(zlib.crc32(str(name).encode()) for name in names)]))


def run_trials(path: Path, about: Mapping[str, Any], tasks: Iterable[Task], tell: Tell) -> list[Row]:
    """The rows of all tasks in their order; finished ones are read from `path`, the others done and added to it.

    `about` is what the rows depend on besides the tasks' names (the seed, for one). A file that is about something else
    is begun anew.
    """
    tasks = list(tasks)
    finished = _finished(path, about)
    if finished is None:
        finished = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"about": dict(about)}) + "\n", encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        for k, task in enumerate(tasks):
            tell(task.key, k / len(tasks))
            if task.key not in finished:
                rows = list(task.work())
                line = json.dumps({"key": task.key, "rows": rows})
                file.write(line + "\n")
                file.flush()
                finished[task.key] = json.loads(line)["rows"]
    return [row for task in tasks for row in finished[task.key]]


def count_finished(path: Path) -> int:
    """How many trials the file holds; 0 if there is none."""
    try:
        return max(0, path.read_bytes().count(b"\n") - 1)
    except OSError:
        return 0


def _finished(path: Path, about: Mapping[str, Any]) -> dict[str, list[Row]] | None:
    """Key to rows of what was finished before; None when there is no file about this. A torn last line is cut off."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    whole = content[: content.rfind(b"\n") + 1]
    try:
        head, *lines = [json.loads(line) for line in whole.splitlines()]
        if head["about"] != json.loads(json.dumps(dict(about))):
            return None
        found = {line["key"]: line["rows"] for line in lines}
    except (ValueError, KeyError, TypeError):
        return None
    if len(whole) < len(content):
        path.write_bytes(whole)
    return found
