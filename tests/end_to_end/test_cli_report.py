"""`fit --report FILE`: one page, complete or not at all, and clear words when it cannot be made."""

import base64
import json
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from hostile import HOSTILE, hostile_table
from spectral_irt.report.blocks import picture
from undrawn import without_pictures

pytestmark = pytest.mark.slow  # whole runs of commands

Cli = Callable[..., Any]


class Page(HTMLParser):
    """The tags, texts and data of a page."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.source = Path(path).read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    @property
    def lines(self) -> list[str]:
        return [line for text in self.texts for line in text.splitlines()]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])

    def titles(self) -> list[str]:
        return re.findall(r"<h2[^>]*>([^<]*)</h2>", self.source)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures."""
    without_pictures(monkeypatch)


def test_fit_writes_a_page_that_needs_nothing_else(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "--report", "deep/report.html")
    assert done.code == 0
    assert "Written: deep/report.html." in done.out
    page = Page("deep/report.html")
    assert page.titles() == [
        *("Findings", "Summary", "People and items on one scale", "Items", "Curves of the items", "People"),
        *(
            "From score to ability",
            "Does the model fit?",
            "Dimensionality",
            "Methods",
            "How the data were read",
            "Not in this report",
        ),
        "Appendix: long tables",
    ]
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/svg+xml;base64,")), (tag, value)
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
        assert tag != "img" or len(attributes["alt"] or "") > 20
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    first = Path("deep/report.html").read_bytes()
    assert cli("fit", lsat, "--report", "deep/report.html").code == 0  # over the old one
    assert Path("deep/report.html").read_bytes() == first  # and the same each time


def test_python_and_the_shell_make_the_same_page(cli: Cli, lsat: Path, quick: None) -> None:
    assert cli("fit", lsat, "--report", "shell.html").code == 0
    answers = si.read(str(lsat))
    study = si.SpectralRasch().fit(answers).analyse(answers)
    assert study.report("python.html") == Path("python.html")
    shell, python = (Path(name).read_text(encoding="utf-8") for name in ("shell.html", "python.html"))
    command = r"<h3>The same on the command line</h3>\s*<pre.*?</pre>\s*"
    shell = re.sub(command, "", shell, flags=re.S)  # Python knows of none
    assert shell.replace("lsat.csv", "answers.csv").split() == python.replace("lsat.csv", "answers.csv").split()


AGAIN = [
    "fit lsat.csv --group-file people.csv --rank 3 --ability pv:3 --seed 7 --cut raw:3",
    "fit lsat.csv --group-file people.csv --group half --clustered-by room --scale 500,100",
    "fit lsat.csv --group-file people.csv --survey-weight w --group half --set max_iter=50",
    "fit scale.csv --model rsm --estimator cml --group half",
    "fit scale.csv --ignore half --reverse q1 --cut 0 --skip fit",
    "fit gap.csv --model rsm",
]


@pytest.mark.parametrize("line", AGAIN)
def test_the_command_and_the_python_of_a_report_do_it_again(cli: Cli, lsat: Path, quick: None, line: str) -> None:
    rooms = "".join(f"{k},{'ab'[k < 501]},{k % 20},{1 + k % 2}\n" for k in range(1, 1001))
    Path("people.csv").write_text("student,half,room,w\n" + rooms)
    if "--group-file people.csv --rank" in line:
        Path("people.csv").write_text("student,half\n" + "".join(f"{k},{'ab'[k < 501]}\n" for k in range(1, 1001)))
    scale = (Path(__file__).parents[1] / "reference" / "scale8.csv").read_text().splitlines()
    Path("scale.csv").write_text("\n".join(f"{row},{'half' if k == 0 else 'ab'[k % 2]}" for k, row in enumerate(scale)))
    gap = [
        row if k == 0 else re.sub("^1", "2", row) for k, row in enumerate(scale)
    ]  # a category of q1 that nobody used
    Path("gap.csv").write_text("\n".join(gap))
    assert cli(*line.split(), "--report=r.html", "-o", "results").code == 0
    said = Page("r.html").lines
    command = next(text for text in said if text.startswith("spectral-irt fit"))
    python = said[said.index("import spectral_irt as si") :][:4]
    Path("results").rename("old")
    assert cli(*shlex.split(command)[1:]).code == 0
    for path in Path("old").glob("*.csv"):
        assert path.read_bytes() == Path("results", path.name).read_bytes(), path.name
    names: dict[str, Any] = {}
    exec("\n".join(python), names)
    items = pl.read_csv("old/items.csv")
    again = names["study"].tables()["items"]
    for name in ("difficulty", "se", *(["measure"] if "scale 500" in line else [])):
        assert np.allclose(again[name], items[name].to_numpy(), atol=1e-9), name


WORDS_OF_TESTS = re.compile(r"\b(abilit\w*|able|abler|ablest)\b", re.IGNORECASE)  # items stay hard and easy
SCALE = Path(__file__).parents[1] / "reference" / "scale8.csv"


def test_a_trait_has_its_name_everywhere(cli: Cli) -> None:
    done = cli("fit", SCALE, "--trait", "anxiety", "--report", "r.html", "-o", "results", "--all", "--list-persons")
    plain = cli("fit", SCALE, "-o", "plain", "--all")
    assert done.code == plain.code == 0
    assert "mean anxiety" in " ".join(done.out.split())
    assert not WORDS_OF_TESTS.findall(done.out)
    page = Page("r.html")
    assert [text for text in page.texts if WORDS_OF_TESTS.search(text) and "Psychometrika" not in text] == []
    heads = [column["head"] for table in page.data.values() for column in table["columns"]]
    assert {"Anxiety", "Mean anxiety", "Location"} <= set(heads)
    assert not [head for head in heads if WORDS_OF_TESTS.search(head)]
    assert "study = fit.analyse(answers, trait='anxiety')" in page.lines
    drawn = "".join(base64.b64decode(one).decode() for one in re.findall(r"base64,([\w+/=]+)", page.source))
    assert "anxiety (logits)" in drawn
    assert not WORDS_OF_TESTS.search("".join(re.findall(r"<text[^>]*>.*?</text>", drawn)))
    for path in Path("plain").glob("*.csv"):  # columns and numbers are the same
        assert path.read_bytes() == Path("results", path.name).read_bytes(), path.name
    assert json.loads(Path("results/fit.json").read_text())["trait"] == "anxiety"
    # Nobody said what is measured: ordered answers have no ability, and right and wrong ones do.
    assert "mean person measure" in " ".join(plain.out.split())
    assert json.loads(Path("plain/fit.json").read_text())["trait"] is None
    for word in ("", " ", "a\nb"):
        cli.refused(
            ["fit", SCALE, "--trait", word, "-o", "nothing"], "is no word; say what is measured, such as --trait an"
        )


def test_hostile_labels_are_text(cli: Cli) -> None:
    hostile_table(Path("hostile.csv"))
    options = ["--group", "<u>sex</u>", "--list-persons"]
    assert cli("fit", "hostile.csv", "--report", "report.html", *options).code == 0
    page = Page("report.html")
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [tag for tag, _ in page.tags if tag in ("b", "i", "u")]
    assert all((attributes["src"] or "").startswith("data:") for tag, attributes in page.tags if tag == "img")
    labels = page.data["items"]["columns"][0]
    assert sorted(labels["values"]) == sorted(HOSTILE)  # as they are, for those who download them
    shown = {label: labels["shown"].get(str(k), label) for k, label in enumerate(labels["values"])}
    assert all(text.isprintable() and len(text) <= 90 for text in shown.values())
    assert shown[HOSTILE[5]] == "two\\nlines"
    assert shown[HOSTILE[4]] == "a\\u202egnp.exe"
    assert list(labels["cells"].values()) == ['\'=HYPERLINK("http://evil")']
    assert "\u202e" not in page.text
    assert "<script>alert(1)</script>" in page.text  # as text
    assert "{{ 7 * 7 }}" in page.text


def test_what_we_did_not_write_is_not_replaced(cli: Cli, lsat: Path) -> None:
    Path("mine.html").write_text("<p>about spectral-irt</p>")
    Path("folder.html").mkdir()
    for place, said in (
        ("mine.html", "'mine.html' exists, and spectral-irt did not make it"),
        ("report.csv", "'report.csv' ends neither in .html nor in .docx"),
        ("folder.html", "it is a directory"),
        ("mine.html/report.html", "a part of the path is a file"),
    ):
        cli.refused(f"fit lsat.csv --report {place}", said)


def test_parts_that_were_left_out_are_said(cli: Cli, lsat: Path, quick: None) -> None:
    assert cli("fit", lsat, "--skip", "persons,fit", "--set", "se=none", "--report", "r.html").code == 0
    page = Page("r.html")
    assert page.titles() == [
        *(
            "Findings",
            "Summary",
            "Items",
            "From score to ability",
            "Methods",
            "How the data were read",
            "Not in this report",
        )
    ]
    for part in ("People and items on one scale", "People", "Does the model fit?", "Dimensionality"):
        assert f"{part}: " in page.text
    assert "No groups of people were compared." in page.text


def test_an_analysis_without_people(tmp_path: Path, quick: None) -> None:
    answers = si.datasets.load_lsat()
    calibration = si.SpectralRasch().fit(answers).calibration_
    nobody = si.Analysis(calibration, answers.take_persons(np.empty(0, dtype=np.int64)))
    nobody.report(tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    assert "0 people gave 0 answers to 5 items" in page.text


def test_pictures_are_small_and_words_in_them_are_words() -> None:
    answers = si.datasets.load_lsat()
    study = si.SpectralRasch().fit(answers).analyse(answers)
    found = picture(study.plot.scores(), "alt")
    assert found.address.startswith("data:image/svg+xml;base64,")
    assert len(found.address) < 60_000


def test_pages_for_pupils(cli, tmp_path):
    rows = [f"p{k},{'ABC'[k % 3]},{'ABC'[k % 2]},{'AB'[k % 5 == 0]},{'ABC'[k % 7 % 3]}" for k in range(30)]
    (tmp_path / "class.csv").write_text("name,q1,q2,q3,q4\nKEY,A,B,A,C\n" + "\n".join(rows) + "\n")
    done = cli("fit", "class.csv", "--pupil-pages", "pupils.html", "--title", "Unit 3")
    assert done.code == 0, done.err
    assert "Written: pupils.html." in done.out
    page = Page(tmp_path / "pupils.html")
    assert "Class list: Unit 3" in page.text
    assert page.text.count("The measure allows for how hard the questions are") == 30
