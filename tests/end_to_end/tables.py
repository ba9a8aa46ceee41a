"""Tables for commands to read, and those that they wrote, read back."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from spectral_irt import simulate

Rows = list[dict[str, Any]]

# What `fit -o` writes of a complete test without a key.
WRITTEN = ["items.csv", "persons.csv", "scores.csv", "fit.json"]


def wide(path: str | Path, answers: Any, items: list[str] | None = None, **people: Any) -> Path:
    """A wide table of answers to q1, q2, ..., after columns about the people; NaN is an empty cell."""
    answers = np.asarray(answers, dtype=float)
    names = items or [f"q{k + 1}" for k in range(answers.shape[1])]
    table = pl.DataFrame(answers, schema=names, orient="row").fill_nan(None).cast(pl.Int64)
    about = pl.DataFrame({name: np.asarray(values).tolist() for name, values in people.items()})
    pl.concat([about, table], how="horizontal").write_csv(path)
    return Path(path)


def form(path: str, seed: int, items: int = 10, persons: int = 400, first: int = 0) -> Path:
    """Answers of people called after the file, to items q0, q1, ... of fixed difficulties."""
    beta = np.linspace(-1.5, 1.5, 20)[first : first + items]
    answers = simulate.rasch(persons, items, difficulty=beta, seed=seed).responses.to_dense()
    names = [f"{Path(path).stem}{k}" for k in range(persons)]
    return wide(path, answers, [f"q{first + k}" for k in range(items)], person=names)


def read_csv(path: str | Path) -> Rows:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(path: str | Path, name: str) -> list[str]:
    return [row[name] for row in read_csv(path)]


def numbers(rows: Rows | str, name: str) -> list[float]:
    """A column of rows or of a file; NaN where a cell is empty."""
    rows = read_csv(rows) if isinstance(rows, str) else rows
    return [float(row[name]) if row[name] else np.nan for row in rows]


def record(folder: str | Path = "out", name: str = "fit.json") -> Any:
    """What a command wrote about how its results came about; it is strict JSON."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(Path(folder, name).read_text(encoding="utf-8"), parse_constant=refuse)


def contents(folder: str | Path = ".") -> dict[str, bytes | None]:
    """Everything below a folder, with the bytes of its files."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(Path(folder).rglob("*"))}
