"""CPU time of fits with matrix libraries held to one thread, as the package does, and with all their threads.

    python benchmarks/blas.py

Both in one run, in turns: the ratio is what counts. A short complete test (100 items x 5,000 people, where the dense
standard errors are nearly all of the work) and 20 passes over 20 million answers. And what the limit costs to import
and to enter.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from measure import table
from spectral_irt import SpectralRasch, simulate
from spectral_irt.chain.operator import ItemChain
from spectral_irt.chain.weights import PERSONS
from spectral_irt.engine import one_blas_thread, threads


@contextmanager
def all_threads() -> Iterator[None]:
    """Within it the package's limit does nothing."""
    limited, threads._libraries = threads._libraries, lambda with_scipy: []  # type: ignore[assignment]
    try:
        yield
    finally:
        threads._libraries = limited


def times(work: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """The least wall and CPU seconds."""
    found = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def compare(title: str, work: Callable[[], Any], repeats: int) -> list[object]:
    work()
    one, many = (np.inf, np.inf), (np.inf, np.inf)
    for _ in range(repeats):  # in turns, as the machine may be shared
        one = tuple(np.minimum(one, times(work, 1)))
        with all_threads():
            many = tuple(np.minimum(many, times(work, 1)))
    return [title, many[0], one[0], one[0] / many[0], many[1], one[1], one[1] / many[1]]


def main() -> None:
    short = simulate.rasch(5_000, 100, seed=1).responses
    rows = [compare("fit, 100 x 5,000", lambda: SpectralRasch().fit(short), 7)]
    wide = simulate.rasch(20_000, 1_000, seed=1).responses
    chain = ItemChain.under(wide, PERSONS)

    def passes() -> None:
        flow = np.ones(1_000)
        for _ in range(20):
            flow = chain.inflow(flow / chain.rates)

    rows.append(compare("20 passes, 20 M answers", passes, 8))
    head = ["", "wall s, all", "wall s, one", "ratio", "CPU s, all", "CPU s, one", "ratio"]
    print(table(head, rows))
    start = time.perf_counter()
    for _ in range(1000):
        with one_blas_thread():
            pass
    print(f"\nentering and leaving: {(time.perf_counter() - start) * 1e3:.0f} microseconds")
    loaded = "import sys; from spectral_irt import *; print('threadpoolctl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True)
    print(f"threadpoolctl imported with the package: {done.stdout.strip()}")


if __name__ == "__main__":
    main()
