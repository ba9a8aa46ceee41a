"""What the README shows is what one gets."""

import re
from pathlib import Path

import pytest

import page_runner

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_it_is_short_and_says_how_to_install_and_develop():
    assert README.count("\n") <= 120
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
