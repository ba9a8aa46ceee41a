"""The documentation as a whole: nothing is an orphan, and every public name has an example."""

import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import spectral_irt
from spectral_irt.cli.help import TOPICS
from spectral_irt.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
# Shown, or run before what is shown.
BLOCK = re.compile(r"^(?:```|<!-- run )python\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
EVERY = [ROOT / "README.md", *(DOCS / page for page in PAGES)]
WITH_PYTHON = [page for page in EVERY if BLOCK.search(page.read_text(encoding="utf-8"))]


def test_no_page_is_an_orphan():
    listed = {Path("index.md")}
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {((DOCS / page).parent / f"{name}.md").resolve().relative_to(DOCS.resolve()) for name in names}
    assert set(PAGES) == listed


def test_no_tutorial_needs_what_its_reader_does_not_see():
    for page in (DOCS / "tutorials").glob("*.md"):
        assert "<!-- run" not in page.read_text(encoding="utf-8"), f"{page.name} has a hidden set-up"


def test_every_file_that_the_design_names_exists():
    source = ROOT / "src" / "spectral_irt"
    for line in (DOCS / "design.md").read_text(encoding="utf-8").splitlines():
        room = re.match(r"\| `(\w+)/`", line)
        for name in re.findall(r"`([\w/]+\.(?:py|html|css|js))`", line):
            within = source / room[1] if room else source
            assert (ROOT / name).exists() or (source / name).exists() or any(within.rglob(name)), name


@pytest.mark.parametrize(
    "name", [name for name in spectral_irt.__all__ if not isinstance(getattr(spectral_irt, name), types.ModuleType)]
)
def test_every_public_name_has_an_example_and_a_place_in_the_reference(name):
    assert ">>>" in (inspect.getdoc(getattr(spectral_irt, name)) or ""), name
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^   {name}$", page, re.MULTILINE), name


def test_every_command_and_every_topic_is_on_the_page_of_commands():
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^```\{help\} (.*)$", page, re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^```\{options\} (.*)$", page, re.MULTILINE) == list(TOPICS)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    options = ["-W", "--keep-going", "-q", "-d", tmp_path / "trees"]
    command = [sys.executable, "-m", "sphinx", *options, DOCS, tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "commands.html").read_text(encoding="utf-8")
    options = ("fit-key", "fit-memory", "fit-chain-weights", "fit-strict", "export-to", "link-equate", "pack-group")
    assert all(f'id="{name}"' in page for name in options)
    assert "tutorials/exam.html" in (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8")


def test_the_citation_names_this_version():
    assert f"\nversion: {spectral_irt.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.slow
def test_mypy_accepts_the_python_of_every_page(tmp_path):
    """A file for each page: its blocks one after the other, on the lines where they stand."""
    pytest.importorskip("mypy")
    assert ROOT / "README.md" in WITH_PYTHON
    for page in WITH_PYTHON:
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


@pytest.mark.parametrize("name", ["Analysis", "Bank", "Leaderboard"])
def test_help_of_every_method_names_its_parameters(name):
    kind = getattr(spectral_irt, name)
    silent = {}
    for method, function in inspect.getmembers(kind, callable):
        if method.startswith("_"):
            continue
        parameters = set(inspect.signature(function).parameters) - {"self", "cls", "study"}
        text = inspect.getdoc(function) or ""
        if missing := sorted(one for one in parameters if not re.search(rf"\b{one}\b", text)):
            silent[method] = missing
    assert silent == {}
