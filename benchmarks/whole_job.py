"""The whole command on large Parquet files: seconds, peak memory, and the least that reading such a file can take.

    python benchmarks/whole_job.py [--rows 1000000,10000000,100000000] [--text]

For every size `spectral-irt simulate` writes the file (person, item, response; skewed), and `spectral-irt fit`
reads it, estimates, scores everybody, judges every item and writes the results; then once more with difficulties only.
The units are bare processes in which polars loads the three columns, and loads them, codes people and items as integers
and groups the rows by person. With `--text` people and items have names, and the rows are in no order.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import table

READ = "import sys, polars; print(polars.read_parquet(sys.argv[1], columns=['person', 'item', 'response']).height)"
GROUP = """
import sys
import polars as pl
rows = pl.read_parquet(sys.argv[1], columns=["person", "item", "response"])
codes = [pl.col(name).cast(pl.String).cast(pl.Categorical).to_physical() for name in ("person", "item")]
print(rows.with_columns(codes).group_by("person").agg("item", "response").height)
"""
SHUFFLE = """
import sys
import polars as pl
rows = pl.read_parquet(sys.argv[1])
named = [pl.format("{}-{}", pl.lit(name), pl.col(name)).alias(name) for name in ("person", "item")]
rows.with_columns(named).sample(fraction=1, shuffle=True, seed=1).write_parquet(sys.argv[1])
"""
FIT = [sys.executable, "-m", "spectral_irt", "fit"]


def run(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak gigabytes of a command, all of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    rows: list[list[object]] = []
    for size in map(int, options.rows.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "answers.parquet"))
            shape = ["--persons", str(size // 145), "--items", str(max(100, int(6 * size**0.5)))]
            simulate = [*FIT[:-1], "simulate", "-o", file, "--design", "popularity", "--responses", str(size)]
            run([*simulate, *shape, "--seed", "1"])
            if options.text:
                run([sys.executable, "-c", SHUFFLE, file])
            base = run([sys.executable, "-c", READ, file])
            grouped = run([sys.executable, "-c", GROUP, file])
            whole = run([*FIT, file, "-o", str(Path(folder, "whole"))])
            bare = run([*FIT, file, "-o", str(Path(folder, "bare")), "--skip", "persons,fit"])
        runs = {"loaded by polars": base, "and grouped": grouped, "fit": whole, "difficulties only": bare}
        for title, (wall, cpu, memory) in runs.items():
            rows.append([f"{size:,}", title, wall, cpu, cpu / base[1], cpu / grouped[1], cpu / bare[1], memory])
    head = ["rows", "what", "wall s", "CPU s", "x load (CPU)", "x grouped (CPU)", "x difficulties (CPU)", "peak GB"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
