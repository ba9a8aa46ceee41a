"""The whole command on large Parquet files: seconds, peak memory, and the least that reading such a file can take.

    python benchmarks/whole_job.py [--rows 1000000,10000000,100000000]

For every size `spectral-irt simulate` writes the file (user, item, response; popularity-skewed), and `spectral-irt fit`
reads it, estimates, scores everybody, judges every item and writes the results; then once more with difficulties only.
The unit is a bare process in which polars loads the three columns.
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

READ = "import sys, polars; print(polars.read_parquet(sys.argv[1], columns=['user', 'item', 'response']).height)"
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
    rows: list[list[object]] = []
    for size in map(int, parser.parse_args().rows.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "answers.parquet"))
            shape = ["--users", str(size // 145), "--items", str(max(100, int(6 * size**0.5)))]
            simulate = [*FIT[:-1], "simulate", "-o", file, "--design", "popularity", "--responses", str(size)]
            run([*simulate, *shape, "--seed", "1"])
            base = run([sys.executable, "-c", READ, file])
            whole = run([*FIT, file, "-o", str(Path(folder, "whole"))])
            bare = run([*FIT, file, "-o", str(Path(folder, "bare")), "--no-persons", "--no-fit"])
        for title, (wall, cpu, memory) in {"loaded by polars": base, "fit": whole, "difficulties only": bare}.items():
            rows.append([f"{size:,}", title, wall, cpu, cpu / base[1], cpu / bare[1], memory])
    print(table(["rows", "what", "wall s", "CPU s", "x load (CPU)", "x difficulties (CPU)", "peak GB"], rows))


if __name__ == "__main__":
    main()
