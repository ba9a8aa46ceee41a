"""What the README shows is what one gets, from `make demo` in a bare checkout on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import page_runner

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_it_says_how_to_install_and_develop():
    assert BLOCKS[0][1].startswith("$ pip install .")
    assert [line.split("#")[0].strip() for line in BLOCKS[-1][1].splitlines()] == ["make demo", "make test"]


@pytest.mark.slow
@pytest.mark.parametrize("page", page_runner.pages(), ids=lambda page: page.stem)
def test_what_a_page_shows_runs_and_prints_what_is_shown(page, tmp_path):
    assert page_runner.check(page, tmp_path) == []


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_paths_named_in_the_readme_exist():
    for name in re.findall(r"`((?:benchmarks|tests)/[\w/.]+)`", README):
        assert (ROOT / name).exists(), name


# A python whose venv has a pip that talks as pip does, and a command that says one line.
STUB = """#!/bin/sh
if [ "$2" = venv ]; then
  mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
  printf '#!/bin/sh\\necho "the product: $*"\\n' > "$3/bin/spectral-irt" && chmod +x "$3/bin/spectral-irt"
  exit 0
fi
echo "Collecting numpy"
echo "WARNING: Running pip as the 'root' person can result in broken permissions" >&2
{end}
"""
FAILS = 'echo "ERROR: Could not find a version that satisfies the requirement numpy" >&2; exit 1'


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("fails", [False, True], ids=["installs", "does not install"])
def test_demo_shows_only_the_product(tmp_path, fails):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    python = tmp_path / "python"
    python.write_text(STUB.replace("{end}", FAILS if fails else "exit 0"))
    python.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "demo", f"PYTHON={python}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    if fails:
        assert done.returncode != 0
        assert "ERROR: Could not find a version" in done.stderr
        assert done.stdout == ""
        assert not (tmp_path / ".venv" / ".core").exists()
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "the product: demo -o demo-results\n"
