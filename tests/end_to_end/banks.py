"""Banks and answers for tests that go through the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from spectral_irt import simulate

Cli = Callable[..., Any]


def write(path: str, seed: int, items: int = 10, persons: int = 400, first: int = 0) -> Path:
    """Answers of people called after the file, to items q0, q1, ... of fixed difficulties."""
    beta = np.linspace(-1.5, 1.5, 20)[first : first + items]
    data = simulate.rasch(persons, items, difficulty=beta, seed=seed).responses.to_dense().astype(int)
    names = [f"q{first + k}" for k in range(items)]
    table = pl.DataFrame(data, schema=names, orient="row")
    people = pl.Series("person", [f"{Path(path).stem}{k}" for k in range(persons)])
    table.insert_column(0, people).write_csv(path)
    return Path(path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(done: Any, *says: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    for text in says:
        assert text in done.err
