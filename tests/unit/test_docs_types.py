"""The Python that the documentation shows is accepted by mypy, as it would be in a person's own project."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Shown, or run before what is shown.
BLOCK = re.compile(r"^(?:```|<!-- run )python\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
EVERY = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in EVERY if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_mypy_accepts_the_python_of_every_page(tmp_path):
    """A file for each page: its blocks one after the other, on the lines where they stand."""
    pytest.importorskip("mypy")
    assert ROOT / "README.md" in PAGES
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [""] * text.count("\n")
        for block in BLOCK.finditer(text):
            first = text.count("\n", 0, block.start(1))
            code = block[1].rstrip("\n").split("\n")
            lines[first : first + len(code)] = code
        (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache"]  # as `mypy` has them
    pages = sorted(tmp_path.glob("*.py"))
    done = subprocess.run([sys.executable, "-m", "mypy", *settings, *pages], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
