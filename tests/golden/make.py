"""The golden results: what this version gives for some data sets, so that no digit changes unnoticed.

    python tests/golden/make.py

writes them again, into this folder. A change beyond 1e-8 needs a line in CHANGELOG.md that says so.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from spectral_irt.cli.main import main

HERE = Path(__file__).parent
REFERENCE = HERE.parent / "reference"
BOOKLETS = str(REFERENCE / "booklets24.csv")
CREDIT = str(REFERENCE / "credit6.csv")
RATINGS = ["--person", "student", "--item", "item", "--response", "x", "--facet", "rater"]
# The command of each folder.
RUNS: dict[str, list[str]] = {
    "lsat": [str(REFERENCE / "lsat6.csv")],
    "booklets": [BOOKLETS],
    "booklets_cml": [BOOKLETS, "--estimator", "cml"],
    "booklets_mml": [BOOKLETS, "--estimator", "mml"],
    "sparse": [str(HERE / "sparse.csv")],
    "sparse_chain": [str(HERE / "sparse.csv"), "--set", "refine=false"],
    "partial_credit": [CREDIT],
    "rating_scale": [CREDIT, "--model", "rsm"],
    "raters": [str(REFERENCE / "facets_sparse.csv"), *RATINGS],
}
TABLES = ("items.csv", "thresholds.csv", "scores.csv", "item_fit.csv", "rater.csv")  # those that a run has


def write(run: str, folder: Path) -> Path:
    """The results of a run in a folder of its own."""
    output = folder / run
    code = main(["fit", *RUNS[run], "--all", "-o", str(output), "-q"])
    assert code == 0, run
    return output


if __name__ == "__main__":
    for run in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            output = write(run, Path(folder))
            shutil.rmtree(HERE / run, ignore_errors=True)
            (HERE / run).mkdir()
            for table in TABLES:
                if (output / table).exists():
                    shutil.copy(output / table, HERE / run / table)
