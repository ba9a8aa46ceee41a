"""The documentation as a whole: nothing is an orphan, and every public name has an example."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import spectral_irt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))


def test_no_page_is_an_orphan() -> None:
    listed = {Path("index.md")}
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {((DOCS / page).parent / f"{name}.md").resolve().relative_to(DOCS.resolve()) for name in names}
    assert set(PAGES) == listed


@pytest.mark.parametrize(
    "name", [name for name in spectral_irt.__all__ if not isinstance(getattr(spectral_irt, name), types.ModuleType)]
)
def test_every_public_name_has_an_example_and_a_place_in_the_reference(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(spectral_irt, name)) or ""), name
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^   {name}$", page, re.MULTILINE), name


def test_every_command_is_on_the_page_of_commands() -> None:
    from typer.main import get_command

    from spectral_irt.cli.main import app

    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^```\{help\} (.*)$", page, re.MULTILINE) == list(get_command(app).commands)  # type: ignore[attr-defined]


def test_every_option_of_every_command_is_on_the_page_of_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows what `--help` prints, at the width that `docs/conf.py` has; no option may be missing there."""
    from typer.main import get_command

    from spectral_irt.cli.main import app, main

    width = re.search(r'"COLUMNS"\] = "(\d+)"', (DOCS / "conf.py").read_text(encoding="utf-8"))
    assert width is not None
    monkeypatch.setenv("COLUMNS", width[1])
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        said = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown))
        shown_ones = [one for one in command.params if not getattr(one, "hidden", False)]
        options = {flag for one in shown_ones for flag in (*one.opts, *one.secondary_opts) if flag.startswith("-")}
        assert options <= said, (name, options - said)
        assert max(map(len, shown.splitlines())) <= int(width[1]), name


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        tmp_path / "trees",
        DOCS,
        tmp_path / "site",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tutorials/exam.html" in (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8")


def test_the_citation_names_this_version() -> None:
    from spectral_irt import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
