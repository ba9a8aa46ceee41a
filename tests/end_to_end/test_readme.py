"""What the README shows is what one gets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import page_runner
from spectral_irt.analysis.folder import RESULTS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

NUMBERED = ("outfit_conditional_", "share_")  # columns of which the page shows the first

Cli = Callable[..., Any]


def test_it_opens_with_demo_and_test() -> None:
    assert [line.split("#")[0].strip() for line in BLOCKS[0][1].splitlines()] == ["make demo", "make test"]


@pytest.mark.slow
@pytest.mark.parametrize("page", page_runner.pages(), ids=lambda page: page.stem)
def test_what_a_page_shows_runs_and_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    assert page_runner.check(page, tmp_path) == []


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_paths_named_in_the_readme_exist() -> None:
    for name in re.findall(r"`((?:benchmarks|tests)/[\w/.]+)`", README):
        assert (ROOT / name).exists(), name


@pytest.mark.slow
def test_every_column_and_field_is_described(cli: Cli, lsat: Path) -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    halves = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(1, 1001))
    Path("people.csv").write_text(f"user,half\n{halves}")
    options = ["--scale", "500,100", "--rank", "--bank", "bank", "--bootstrap", 40, "--group-file", "people.csv"]
    assert cli("fit", lsat, "-o", "all", "--cut", "450", *options).code == 0
    rows = [",".join(str((k >> j) % 2) for j in range(6)) for k in range(64)]
    booklets = "".join(f"{k},{'' if k % 3 else ','}{row}{',' if k % 3 else ''}\n" for k, row in enumerate(rows))
    Path("booklets.csv").write_text(f"user,q1,q2,q3,q4,q5,q6,q7\n{booklets}")
    assert cli("fit", "booklets.csv", "-o", "booklets").code == 0
    assert cli("fit", lsat, "-o", "plain", "--anchors", "bank").code == 0
    Path("key.csv").write_text("item,key\n" + "".join(f"item{k},1\n" for k in range(1, 6)))
    assert cli("fit", lsat, "-o", "keyed", "--key", "key.csv").code == 0
    assert cli("simulate", "--model", "pcm", "--users", 200, "--items", 5, "-o", "ordered.csv").code == 0
    assert cli("fit", "ordered.csv", "-o", "ordered", "--group-file", "people.csv").code == 0
    assert cli("score", lsat, "--bank", "bank", "-o", "scored").code == 0
    assert cli("link", "bank", "bank", "--table", "link.csv", "--equate", "equating.csv", "-o", "linked").code == 0
    assert cli("compare", lsat, "-o", "compared.csv", "--estimators", "cml,jml").code == 0
    assert cli("demo", "--data", "logs", "--files", ".").code == 0
    assert cli("leaderboard", "runs", "-o", "board").code == 0
    tables = [*Path().glob("*/*.csv"), *map(Path, ("link.csv", "equating.csv", "compared.csv"))]
    assert {path.name for path in tables} >= {name for name in RESULTS if name.endswith(".csv")}
    names = [name for path in tables for name in path.read_text(encoding="utf-8").splitlines()[0].split(",")]
    for path in (Path("all/fit.json"), Path("scored/score.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        # The estimator's parameters, described with it; names of files; what was said about reading; labels.
        own = {"settings", "digests", "reading", "classes", "groups"}
        names += [*record, *_fields(record, own), *(name for found in record["findings"] for name in found)]
    told = {word.strip() for span in re.findall(r"`([^`\n]+)`", page) for word in span.split(",")}
    for name in names:
        assert f"`{name}`" in page or name in told or name.startswith(NUMBERED), name


def test_every_line_of_a_summary_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    said: set[str] = set()
    for name in ("analysis/summary.py", "cli/score.py", "cli/update.py", "cli/link.py"):
        source = (ROOT / "src" / "spectral_irt" / name).read_text(encoding="utf-8")
        for place in re.findall(r"^ *lines\b.*?(?=^    \w|\Z)", source, re.MULTILINE | re.DOTALL):
            said |= set(re.findall(r'\(\s*"([a-z][a-z ]+)", ', place))
    assert {"people", "fit", "groups", "bank", "before", "drift"} <= said
    assert not {label for label in said if f"`{label}`" not in page}


@pytest.mark.slow
def test_every_head_of_a_table_on_the_terminal_is_explained(cli: Cli, lsat: Path) -> None:
    page = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    heads = re.search(r"^item +(difficulty.*)$", cli("fit", lsat, "-o", "all").out, re.MULTILINE)
    assert heads is not None
    for head in heads[1].split():
        assert re.search(rf"\*\*[^*]*{re.escape(head)}[^*]*\*\*", page), head


def _fields(value: dict[str, Any], own: set[str]) -> list[str]:
    inner = [(name, one) for name, one in value.items() if isinstance(one, dict) and name not in own]
    return [found for _, one in inner for found in [*one, *_fields(one, own)]]


def test_every_finding_is_described() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    codes = set(re.findall(r'\b(?:Finding|about)\(\s*"(\w+)"', source))
    assert len(codes) > 20
    assert not {code for code in codes if f"`{code}`" not in page}
