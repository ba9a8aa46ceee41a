"""Whatever the program prints or writes has its paragraph: columns, fields, heads of tables, lines, findings."""

import json
import re
from pathlib import Path

import pytest
from rich.table import Table

from spectral_irt.analysis.folder import RESULTS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
STATISTICS = (REFERENCE / "statistics.md").read_text(encoding="utf-8")

NUMBERED = ("outfit_conditional_", "share_")  # columns of which the page shows the first
LABELS = {"", "item", "person", "student", "model", "estimator", "group", "class"}  # heads of columns of names


@pytest.fixture
def heads(monkeypatch):
    """The heads of all tables that are shown on the terminal from now on."""
    seen = set()
    add = Table.add_column

    def watched(self, header="", *args, **options):
        seen.add(" ".join(str(header).split()))
        add(self, header, *args, **options)

    monkeypatch.setattr(Table, "add_column", watched)
    return seen


def run_all(cli):
    """Every command that writes a table or shows one, in the current folder."""
    halves = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(1, 1001))
    Path("people.csv").write_text(f"person,half\n{halves}")
    people = "--scale 500,100 --rank --critical 199 --group-file people.csv --all"
    rows = [",".join(str((k >> j) % 2) for j in range(6)) for k in range(64)]
    booklets = "".join(f"{k},{'' if k % 3 else ','}{row}{',' if k % 3 else ''}\n" for k, row in enumerate(rows))
    Path("booklets.csv").write_text(f"person,q1,q2,q3,q4,q5,q6,q7\n{booklets}")
    Path("key.csv").write_text("item,key\n" + "".join(f"item{k},1\n" for k in range(1, 6)))
    Path("properties.csv").write_text("item,length\n" + "".join(f"item{k},{k % 3}\n" for k in range(1, 6)))
    ordered = "simulate --model pcm --persons 200 --items 5"
    trial = [
        f"{k},{w},{'xy'[k % 2]},{(k * w) % 2},{(k // 2) % 2},{(k // 4 + w) % 2}\n" for k in range(64) for w in (1, 2)
    ]
    Path("trial.csv").write_text(f"person,wave,arm,q1,q2,q3\n{''.join(trial)}")
    answers = [f"{k},{'ab'[k % 2]},{k // 2 % 2},{k // 4 % 2},{(k % 2) if k % 3 else k // 8 % 2}\n" for k in range(960)]
    Path("pupils.csv").write_text(f"person,half,q1,q2,q3\n{''.join(answers)}")
    for line in (
        "fit trial.csv -o trial --wave wave --arm arm --skip fit",
        "fit pupils.csv -o tree --items q1,q2,q3 --dif-tree half --dif-size any --skip fit",
        f"fit lsat.csv -o all --cut 450 --bank bank {people}",
        "fit booklets.csv -o booklets --all",
        "fit lsat.csv -o plain --anchors bank",
        "fit lsat.csv -o changed --tailor 0.4",
        "fit lsat.csv -o keyed --all --key key.csv --item-covariates properties.csv",
        "score lsat.csv --bank bank -o scored",
        "link bank bank --common-items link.csv --equate equating.csv -o linked",
        "compare lsat.csv -o compared.csv --estimators cml,jml",
        "demo --files .",
        "leaderboard runs -o board",
        "simulate --persons 40 --items 30 --seed 3 -o models.csv --truth truth.csv",
        "fit models.csv -o models --bank pool",
        "shortlist models.csv --size 10 -o short",
        "score models.csv --bank short -o predicted.csv",
        "export pool --to catsim -o catsim.csv",
        "simulate --persons 40 --items 30 --seed 1 -o later.csv",
        "update pool later.csv -o pool2",
        f"{ordered} --seed 2 -o ordered.csv --truth steps.csv",
        f"fit ordered.csv -o ordered --bank points {people}",
        "fit ordered.csv -o held --anchors points",
        "score ordered.csv --bank points -o points.csv",
        "link points points --common-items link_ordered.csv",
        "compare ordered.csv -o compared_ordered.csv --estimators pcm-cml,rsm-cml",
        f"{ordered} --seed 1 -o later.csv",
        "update points later.csv -o points2",
    ):
        cli.ok(line)


@pytest.mark.slow
def test_every_column_field_and_head_is_described(cli, lsat, heads):
    run_all(cli)
    given = {"people.csv", "booklets.csv", "key.csv", "properties.csv", "quiz.csv", "quiz_key.csv", "lsat.csv"}
    given |= {"survey.csv", "ratings.csv", "trial.csv", "pupils.csv"}
    tables = [path for path in Path().rglob("*.csv") if path.name not in given and "runs" not in path.parts]
    assert {path.name for path in tables} >= {name for name in RESULTS if name.endswith(".csv")}
    # The scalogram has a column for each item.
    shown = [path for path in tables if path.name != "guttman.csv"]
    names = {name for path in shown for name in path.read_text(encoding="utf-8").splitlines()[0].split(",")}
    for path in (Path("all/fit.json"), Path("changed/fit.json"), Path("ordered/fit.json"), Path("scored/score.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        # The estimator's parameters, described with it; names of files; what was said about reading; labels.
        own = {"settings", "digests", "reading", "classes", "groups"}
        names |= {*record, *_fields(record, own), *(name for found in record["findings"] for name in found)}
    names = {name for name in names if not re.fullmatch(r"(measure|se)_\d", name)}  # of each wave
    names -= {"half"}  # a column about people that was asked for, under its own name
    page = (REFERENCE / "files.md").read_text(encoding="utf-8")
    told = {word.strip() for span in re.findall(r"`([^`\n]+)`", page) for word in span.split(",")}
    assert not {name for name in names if name not in told and not name.startswith(NUMBERED)}

    assert {"difficulty", "ability", "robust z", "moved", "log-lik", "tier", "whole score", "thresholds"} <= heads
    bold = {word.strip("` ") for span in re.findall(r"\*\*(.+?)\*\*", STATISTICS) for word in span.split(",")}
    assert sorted(heads - LABELS - bold) == []


def _fields(value, own):
    inner = [(name, one) for name, one in value.items() if isinstance(one, dict) and name not in own]
    return [found for _, one in inner for found in [*one, *_fields(one, own)]]


def test_every_line_of_a_summary_is_explained():
    said = set()
    for name in ("analysis/summary.py", "cli/bank_work.py"):
        source = (ROOT / "src" / "spectral_irt" / name).read_text(encoding="utf-8")
        for place in re.findall(r"^ *lines\b.*?(?=^    \w|\Z)", source, re.MULTILINE | re.DOTALL):
            said |= set(re.findall(r'\(\s*"([a-z][a-z ]+)", ', place))
    assert {"people", "fit", "groups", "bank", "before", "drift"} <= said
    assert not {label for label in said if f"`{label}`" not in STATISTICS}


def test_every_finding_is_described():
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    codes = set(re.findall(r'\b(?:Finding|about)\(\s*"(\w+)"', source))
    assert len(codes) > 20
    assert not {code for code in codes if f"`{code}`" not in page}
