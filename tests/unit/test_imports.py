"""Importing the package costs numpy and scipy.sparse, and nothing else that is heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "polars",
    "narwhals",
    "pandas",
    "pyarrow",
    "sklearn",
    "typer",
    "rich",
    "matplotlib",
    "jinja2",
    "dask",
    "scipy.stats",
    "scipy.optimize",
    "scipy.special",
    "scipy.linalg",
    "scipy.sparse.linalg",
    "scipy.sparse.csgraph",
}


STATEMENTS = [
    "import numpy, scipy.sparse",  # old versions of scipy load more
    "import spectral_irt",
    "from spectral_irt import simulate; simulate.rasch(10, 3, seed=1)",
    "from spectral_irt import datasets; datasets.load_lsat()",
    "import spectral_irt.plots.plots, spectral_irt.plots.standard",
]


@pytest.fixture(scope="module")
def loaded() -> list[set[str]]:
    """What is loaded after each statement, one after the other in one process."""
    told = "\nprint(json.dumps(sorted(sys.modules)))\n"
    program = "import json, sys\n" + told.join([*STATEMENTS, ""])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("statement", STATEMENTS[1:])
def test_nothing_heavy_is_loaded(loaded: list[set[str]], statement: str) -> None:
    ours = loaded[STATEMENTS.index(statement)] - loaded[0]
    assert not HEAVY & ours
