"""From a file to packed blocks: CPU time per response, and against what polars needs to load the file and group it.

    python benchmarks/packing.py [--rows 20000000] [--only integers,ordered,strings,grouped,wide,array]

The unit is a bare process in which polars loads the three columns and groups items and answers by a person code that is
an integer already. Everything else is `spectral_irt.read` (or `Responses.from_wide`) in a process of its own; what
importing costs is taken off both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl

import spectral_irt as si
from measure import table

IMPORT = "import polars, numpy, scipy.sparse, spectral_irt as si, sys; "
LOAD = IMPORT + (
    "d = polars.read_parquet(sys.argv[1], columns=['person', 'item', 'response']); "
    "d.group_by('person').agg('item', 'response')"
)
READ = IMPORT + "si.read(sys.argv[1])"
ARRAY = IMPORT + "X = numpy.load(sys.argv[1]); si.Responses.from_wide(X)"
ONLY_LOAD = IMPORT + "X = numpy.load(sys.argv[1])"


def cpu(program: str, file: Path) -> tuple[float, float]:
    """CPU seconds and peak gigabytes of a program on a file."""
    process = subprocess.Popen([sys.executable, "-c", program, str(file)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{program} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def peak(file: Path) -> float:
    """Bytes a row that arrays take at most while a file is read, beyond those of the result."""
    tracemalloc.start()
    found = si.read(file)
    after, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (most - after) / found.n_responses


def answers(n_rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """Distinct (person, item) pairs in any order; items differ in how often they are met."""
    n_persons, n_items = max(n_rows // 145, 10), max(100, int(6 * n_rows**0.5))
    share = np.cumsum(1 / np.arange(1, n_items + 1) ** 0.6)
    n = int(1.12 * n_rows)
    item = np.minimum(np.searchsorted(share / share[-1], rng.random(n)), n_items - 1)
    pairs = rng.permutation(np.unique(rng.integers(0, n_persons, n) * n_items + item))[:n_rows]
    right = (rng.random(len(pairs)) < 0.6).astype(np.int8)
    return pl.DataFrame({"person": pairs // n_items, "item": pairs % n_items, "response": right})


def named(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """The same with texts for people and items, whose order is another."""
    columns = {}
    for name, form in (("person", "user-{:08d}"), ("item", "item-{:06d}")):
        labels = [form.format(k) for k in rng.permutation(int(frame[name].max()) + 1)]  # type: ignore[arg-type]
        columns[name] = pl.Series(labels).gather(frame[name])
    return frame.with_columns(**columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--only", default="integers,ordered,strings,grouped,wide,array")
    asked = parser.parse_args()
    wanted, rng = asked.only.split(","), np.random.default_rng(1)
    out: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "answers.parquet")
        bare, _ = cpu(IMPORT, file)

        def measure(title: str, n: int, program: str, path: Path, less: float, unit: float | None) -> float:
            seconds, memory = cpu(program, path)
            seconds -= less
            out.append([title, f"{n:,}", seconds, 1e6 * seconds / n, "" if unit is None else seconds / unit, memory])
            return seconds

        if {"integers", "ordered", "strings", "grouped"} & set(wanted):
            frame = answers(asked.rows, rng)
            n = frame.height
            frame.write_parquet(file)
            unit = measure("polars: load and group by an integer", n, LOAD, file, bare, None)
            if "integers" in wanted:
                measure("integer labels, any order", n, READ, file, bare, unit)
            if "ordered" in wanted:
                graded = frame.with_columns(response=pl.Series(rng.integers(0, 5, n), dtype=pl.Int8))
                graded.write_parquet(file)
                measure("the same in five categories", n, READ, file, bare, unit)
                print(f"five categories: {peak(file):.1f} bytes a row beyond what stays, of arrays")
            texts = named(frame, rng)
            if "strings" in wanted:
                texts.write_parquet(file)
                measure("text labels, any order", n, READ, file, bare, unit)
            if "grouped" in wanted:
                texts.sort("person").write_parquet(file)
                measure("text labels, rows of a person together", n, READ, file, bare, unit)
        for n_persons, n_items in ((5_000, 100), (100_000, 50)):
            X = (rng.random((n_persons, n_items)) < 0.6).astype(np.float64)
            shape = f"{n_persons:,} x {n_items}"
            if "wide" in wanted:
                sheet = Path(folder, "sheet.csv")
                columns = {f"q{k}": X[:, k].astype(np.int8) for k in range(n_items)}
                pl.DataFrame({"person": [f"p{k}" for k in range(n_persons)], **columns}).write_csv(sheet)
                measure(f"CSV, {shape}", X.size, READ, sheet, bare, None)
            if "array" in wanted:
                array = Path(folder, "array.npy")
                np.save(array, X)
                measure(f"array, {shape}", X.size, ARRAY, array, cpu(ONLY_LOAD, array)[0], None)
    print(table(["what", "responses", "CPU s", "µs each", "x unit", "peak GB"], out))


if __name__ == "__main__":
    main()
