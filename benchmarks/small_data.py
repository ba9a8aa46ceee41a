"""Ordinary test data, from a numpy array to difficulties with standard errors: CPU seconds in a running process.

    python benchmarks/small_data.py

Three tables: 50 items x 100,000 people and 100 x 5,000, complete; 500 x 5,000 with a fifth of the cells seen. CPU is of
all threads together, import left out; "first" is the first fit of the process, "then" the least of five more. The last
column is what the fit takes when people who share their items are taken one by one all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spectral_irt as si
from measure import table
from spectral_irt.data import Block, Responses

SHAPES = ((50, 100_000, 1.0), (100, 5_000, 1.0), (500, 5_000, 0.2))


def answers(n_items: int, n_people: int, seen: float) -> Any:
    rng = np.random.default_rng(1)
    beta, theta = np.linspace(-2, 2, n_items), rng.normal(size=(n_people, 1))
    x = (rng.random((n_people, n_items)) < 1 / (1 + np.exp(beta - theta))).astype(np.int8)
    return x if seen == 1 else np.where(rng.random(x.shape) < seen, x, np.nan)


def cpu(work: Callable[[], Any], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def fresh(packed: Responses, *, shared: bool = True) -> Responses:
    """The same packed answers, of which nothing is known yet."""
    blocks = tuple(Block(block.indptr, block.split, block.items) for block in packed.blocks)
    again = Responses(blocks, packed.items, packed.persons)
    if not shared:
        vars(again)["shared"] = None
    return again


def row(n_items: int, n_people: int, seen: float) -> list[object]:
    x = answers(n_items, n_people, seen)
    first = cpu(lambda: si.SpectralRasch().fit(x), 1)
    whole = cpu(lambda: si.SpectralRasch().fit(x), 5)
    packed = Responses.from_wide(x)
    fit = cpu(lambda: si.SpectralRasch().fit(fresh(packed)), 5)
    single = cpu(lambda: si.SpectralRasch().fit(fresh(packed, shared=False)), 5)
    return [f"{n_items:,} x {n_people:,}", f"{seen:.0%}", first, whole, fit, single]


def main() -> None:
    head = ["items x people", "seen", "array, first", "array, then", "packed", "one by one"]
    print(table(head, [row(*shape) for shape in SHAPES]))


if __name__ == "__main__":
    main()
