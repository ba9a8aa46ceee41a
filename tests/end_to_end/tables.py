"""Tables that a command wrote, read back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]

# What `fit -o` writes of a complete test without a key.
TABLES = ["items", "persons", "scores"]
WRITTEN = [*(f"{table}.csv" for table in TABLES), "fit.json"]


def read_csv(path: str | Path) -> Rows:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(rows: Rows, name: str) -> list[float]:
    """A column; NaN where a cell is empty."""
    return [float(row[name]) if row[name] else np.nan for row in rows]


def record(folder: str = "out") -> Any:
    """What `fit` says about how the results came about."""
    return json.loads(Path(folder, "fit.json").read_text(encoding="utf-8"))


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def strict_json(path: Path) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
