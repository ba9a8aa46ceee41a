"""Importing the package costs numpy and scipy.sparse, and nothing else that is heavy."""

from __future__ import annotations

import functools
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


@functools.cache
def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import spectral_irt",
        "from spectral_irt import simulate; simulate.rasch(10, 3, seed=1)",
        "from spectral_irt import datasets; datasets.load_lsat()",
        "import spectral_irt.plots.plots, spectral_irt.plots.standard",
    ],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    ours = loaded_by(statement) - loaded_by("import numpy, scipy.sparse")  # old versions of scipy load more
    assert not HEAVY & ours
