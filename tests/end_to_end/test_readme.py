"""What the README shows is what one gets."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

Cli = Callable[..., Any]

CLOSE = 0.005  # numbers on display may move by rounding, no further


def shown(language: str) -> list[tuple[str, str]]:
    """Blocks of a language, each with the output that stands after it, if any."""
    following = [*BLOCKS[1:], ("", "")]
    return [
        (text, after if kind == "text" else "")
        for (name, text), (kind, after) in zip(BLOCKS, following, strict=True)
        if name == language
    ]


def same(found: str, expected: str) -> None:
    """The same words and nearly the same numbers; times and residuals are left out."""
    volatile = re.compile(r"\d+\.\d+ s\b|\de[-+]\d+")
    for line, wanted in zip(_words(volatile, found), _words(volatile, expected), strict=True):
        try:
            assert abs(float(line) - float(wanted)) <= CLOSE
        except ValueError:
            assert line == wanted


def _words(volatile: re.Pattern[str], text: str) -> list[str]:
    return volatile.sub("...", text).replace(",", "").split()


def test_it_opens_with_demo_and_test() -> None:
    assert [line.split("#")[0].strip() for line in BLOCKS[0][1].splitlines()] == ["make demo", "make test"]


def test_python_blocks_run_and_print_what_is_shown() -> None:
    blocks = shown("python")
    assert blocks
    names: dict[str, Any] = {}
    for code, expected in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "README.md", "exec"), names)
        same(out.getvalue(), expected)


def test_shell_blocks_run_and_the_last_prints_what_is_shown(cli: Cli) -> None:
    blocks = [(text, output) for text, output in shown("sh") if text.startswith("spectral-irt")]
    assert blocks
    for text, expected in blocks:
        for line in text.splitlines():
            program, *args = shlex.split(line, comments=True)
            assert program == "spectral-irt"
            done = cli(*args)
            assert (done.code, done.err) == (0, "")
        same(done.out, expected)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_paths_named_in_the_readme_exist() -> None:
    for name in re.findall(r"`((?:benchmarks|tests)/[\w/.]+)`", README):
        assert (ROOT / name).exists(), name


def test_every_column_and_field_is_described(cli: Cli) -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    cli("demo", "-o", "results")
    columns = Path("results/items.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    record = json.loads(Path("results/fit.json").read_text(encoding="utf-8"))
    nested = [name for value in record.values() if isinstance(value, dict) for name in value]
    settings = list(record["settings"])  # the estimator's own parameters, described with it
    for name in [*columns, *record, *(name for name in nested if name not in settings), *record["findings"][0]]:
        assert f"`{name}`" in page, name
