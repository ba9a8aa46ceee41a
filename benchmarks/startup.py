"""How long a command takes from start to end, in units of a Python that only imports what it stands on.

    python benchmarks/startup.py

`spectral-irt fit` on LSAT (5,000 answers in a CSV) and on a CSV of a million rows, each with results written.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import table
from spectral_irt import datasets

IMPORTS = "import numpy, scipy.sparse, polars, typer, rich"


def seconds(command: list[str], repeats: int = 3) -> float:
    """The least wall time over the repeats."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    program = [sys.executable, "-m", "spectral_irt"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lsat, big = folder / "lsat.csv", folder / "big.csv"
        answers = datasets.load_lsat().to_dense().astype(int)
        lsat.write_text("\n".join(["a,b,c,d,e", *(",".join(map(str, row)) for row in answers.tolist())]) + "\n")
        shape = [
            "--design",
            "popularity",
            "--responses",
            "1000000",
            "--persons",
            "6040",
            "--items",
            "3900",
            "--seed",
            "1",
        ]
        subprocess.run([*program, "simulate", "-o", str(big), *shape], check=True, capture_output=True)
        base = seconds([sys.executable, "-c", IMPORTS])
        rows: list[list[object]] = [["imports alone", base, 1.0]]
        for title, command in {
            "--help": [*program, "--help"],
            "fit, LSAT": [*program, "fit", str(lsat), "-o", str(folder / "one")],
            "fit, 1 M rows": [*program, "fit", str(big), "-o", str(folder / "two")],
            "fit, 1 M rows, difficulties only": [
                *program,
                *("fit", str(big), "-o", str(folder / "three"), "--skip", "persons,fit"),
            ],
        }.items():
            spent = seconds(command)
            rows.append([title, spent, spent / base])
    print(table(["command", "wall s", "x imports"], rows))


if __name__ == "__main__":
    main()
