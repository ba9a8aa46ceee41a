"""Importing the package costs numpy and scipy.sparse, and nothing else that is heavy."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spectral_irt
from spectral_irt import estimators

HEAVY = {"polars", "narwhals", "pandas", "pyarrow", "sklearn", "typer", "rich", "matplotlib", "jinja2", "dask"}
HEAVY |= {f"scipy.{name}" for name in ("stats", "optimize", "special", "linalg", "sparse.linalg", "sparse.csgraph")}
STATEMENTS = [
    "import numpy, scipy.sparse",  # old versions of scipy load more
    "import spectral_irt",
    "from spectral_irt import simulate; simulate.rasch(10, 3, seed=1)",
    "from spectral_irt import datasets; datasets.load_lsat()",
    "import spectral_irt.plots.all, spectral_irt.plots.all",
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


@pytest.mark.parametrize("package", [spectral_irt, estimators])
def test_type_checkers_see_the_names_that_there_are(package: Any) -> None:
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: f"{one.module}.{alias.name}" for one in checked.body for alias in one.names}  # type: ignore[attr-defined]
    assert sorted(seen) == sorted(package._HOMES)
    for name, path in seen.items():
        module, _, attribute = path.rpartition(".")
        assert getattr(package, name) is getattr(__import__(module, fromlist=[attribute]), attribute)
