"""From a file of answers to items.csv and fit.json, through the command line."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import spectral_irt
from spectral_irt import Finding, SpectralRasch, datasets, simulate
from spectral_irt.analysis.record import NAMED_ITEMS, finding_record
from spectral_irt.bank.anchors import as_anchors
from spectral_irt.cli.main import main
from spectral_irt.responses.read import read_responses
from spectral_irt.spreadsheet import unguarded

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands

Cli = Callable[..., Any]

HEADER = ["item", "difficulty", "se", "ci_low", "ci_high", "n", "score", "p_correct", "status"]

# Everything a label may hold: scripts, separators, quotes, line breaks, markup of several kinds, control characters.
LABELS = [
    "Ünï✓ 漢字",
    "a,b;c",
    'quo"te',
    "it's",
    "new\nline",
    "cr\rx",
    "crlf\r\ny",
    "tab\there",
    "<script>alert(1)</script>",
    "&amp;",
    "[red]x[/red]",
    "[/]",
    ":smile:",
    "=1+1",
    " before",
    "after ",
    "\x1b[31mred",
    "\u202eright to left",
    "\\n",
    "007",
    "null",
    "x" * 300,
]


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def strict_json(path: Path) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


# ------------------------------------------------------------------------------------------ files


def test_items_csv_holds_every_digit_of_the_estimate(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "-o", "out")
    assert (done.code, done.err) == (0, "")
    header, *rows = rows_of(Path("out/items.csv"))
    assert header == HEADER
    columns = SpectralRasch().fit(datasets.load_lsat()).item_columns()
    for k, name in enumerate(HEADER):
        found = [row[k] for row in rows]
        if columns[name].dtype.kind == "f":
            assert [float(cell) for cell in found] == columns[name].tolist()
        else:
            assert found == [str(value) for value in columns[name].tolist()]


def test_fit_json_says_what_was_done(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-o", "out", "--weighting", "users", "--threads", "1")
    record = strict_json(Path("out/fit.json"))
    assert record["program"] == "spectral-irt"
    assert record["versions"]["spectral_irt"] == spectral_irt.__version__
    assert set(record["versions"]) == {"spectral_irt", "python", "numpy", "scipy", "polars"}
    assert record["estimator"] == "spectral"
    assert record["settings"]["weighting"] == "users"
    assert record["settings"]["threads"] == 1
    assert record["input"] == {"source": "lsat.csv", "files": [str(lsat)], "reading": {}}
    assert record["counts"] == {
        "users": 1000,
        "items": 5,
        "responses": 5000,
        "right": 3819,
        "items_with_estimate": 5,
        "items_anchored": 0,
    }
    assert record["data_digest"] == datasets.load_lsat().digest()
    assert record["iterations"] >= 1
    assert record["residual"] < 1e-10
    assert 0 < record["contraction"] < 1
    assert record["regularization"]["kind"] == "none"
    assert "information" in record["regularization"]["reason"]
    assert record["se_method"] == "dense"
    assert {finding["code"] for finding in record["findings"]} >= {"silent_users", "regularization"}
    assert all(set(f) == {"code", "severity", "sentence", "remedy", "n_items", "items"} for f in record["findings"])
    assert set(record["seconds"]) == {"read", "fit", "analysis", "total"}
    assert record["outputs"] == ["items.csv", "persons.csv", "item_fit.csv", "item_analysis.csv", "fit.json"]


def test_parquet_is_the_same_table(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-o", "out", "--parquet")
    table = pl.read_parquet("out/items.parquet")
    assert table.columns == HEADER
    assert table.equals(pl.read_csv("out/items.csv", schema=table.schema))


def test_items_without_an_estimate_have_empty_cells(cli: Cli) -> None:
    Path("a.csv").write_text("u,q1,q2,q3,q4\na,1,0,1,\nb,0,1,1,\nc,1,0,0,\nd,0,1,0,\n")
    done = cli("fit", "a.csv", "-o", "out", "--parquet")
    assert done.code == 0
    row = rows_of(Path("out/items.csv"))[4]
    assert row == ["q4", "", "", "", "", "0", "0", "", "no responses"]
    assert pl.read_parquet("out/items.parquet").row(3)[1:5] == (None, None, None, None)
    assert strict_json(Path("out/fit.json"))["counts"]["items_with_estimate"] == 3


def test_long_lists_of_items_are_cut_in_the_record() -> None:
    finding = Finding("extreme_items", "warning", "Many.", items=tuple(range(NAMED_ITEMS + 5)))
    record = finding_record(finding)
    assert record["n_items"] == NAMED_ITEMS + 5
    assert record["items"] == list(range(NAMED_ITEMS))


def test_a_second_fit_replaces_the_first_and_nothing_else(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-o", "out", "--parquet")
    Path("out/notes.txt").write_text("mine")
    before = Path("out/items.csv").read_bytes()
    done = cli("fit", lsat, "-o", "out", "--weighting", "pairs")
    assert done.code == 0
    assert Path("out/items.csv").read_bytes() != before
    written = ["fit.json", "item_analysis.csv", "item_fit.csv", "items.csv", "notes.txt", "persons.csv"]
    assert sorted(os.listdir("out")) == written  # the old Parquet files are stale
    assert cli("fit", lsat, "-o", "out", "--no-persons", "--no-fit").code == 0
    assert sorted(os.listdir("out")) == ["fit.json", "item_analysis.csv", "items.csv", "notes.txt"]


def test_directories_are_made(cli: Cli, lsat: Path) -> None:
    assert cli("fit", lsat, "-o", "a/b/c").code == 0
    assert sorted(os.listdir("a/b/c")) == ["fit.json", "item_analysis.csv", "item_fit.csv", "items.csv", "persons.csv"]


@pytest.mark.slow
def test_several_files_are_one_table(cli: Cli, lsat: Path) -> None:
    header, *lines = lsat.read_text().splitlines()
    Path("part1.csv").write_text("\n".join([header, *lines[:400]]))
    Path("part2.csv").write_text("\n".join([header, *lines[400:]]))
    assert cli("fit", "part1.csv", "part2.csv", "-o", "both").code == 0
    assert cli("fit", "part*.csv", "-o", "glob").code == 0
    cli("fit", lsat, "-o", "whole")
    assert Path("both/items.csv").read_bytes() == Path("whole/items.csv").read_bytes()
    assert Path("glob/items.csv").read_bytes() == Path("whole/items.csv").read_bytes()


# ------------------------------------------------------------------------------------------ labels


def odd_labels(kind: str) -> Path:
    rng = np.random.default_rng(1)
    answers = (rng.random((80, len(LABELS))) < 0.6).astype(int)
    path = Path(f"odd.{kind}")
    if kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(["user", *LABELS])
            writer.writerows([f"p{k}", *row] for k, row in enumerate(answers.tolist()))
    elif kind == "jsonl":
        lines = (
            {"subject_id": f"p{k}", "responses": dict(zip(LABELS, row, strict=True))}
            for k, row in enumerate(answers.tolist())
        )
        path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    else:
        user, item = np.divmod(np.arange(answers.size), len(LABELS))
        columns = {"user": user, "item": [LABELS[k] for k in item], "response": answers.ravel()}
        pl.DataFrame(columns).write_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_labels_come_out_as_they_went_in(cli: Cli, kind: str) -> None:
    assert cli("fit", odd_labels(kind), "-o", "out", "--parquet").code == 0
    cells = [row[0] for row in rows_of(Path("out/items.csv"))[1:]]
    found = [unguarded(cell) for cell in cells]
    assert sorted(found) == sorted(LABELS)
    assert pl.read_csv("out/items.csv")["item"].to_list() == cells
    assert as_anchors("out/items.csv").items.tolist() == found  # our own reader
    assert pl.read_parquet("out/items.parquet")["item"].to_list() == found


def test_labels_come_out_as_they_went_in_findings(cli: Cli) -> None:
    with Path("a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "q1", "q2", *LABELS])
        writer.writerows([[f"p{k}", k % 2, (k // 2) % 2, *[1] * len(LABELS)] for k in range(8)])
    assert cli("fit", "a.csv", "-o", "out").code == 0
    findings = {finding["code"]: finding for finding in strict_json(Path("out/fit.json"))["findings"]}
    assert findings["extreme_items"]["items"] == LABELS


def test_labels_are_never_markup_on_the_terminal(cli: Cli) -> None:
    done = cli("fit", odd_labels("csv"))
    kept = {c for c in done.out if not c.isprintable()}
    assert kept == {"\n"}
    columns = SpectralRasch().fit(read_responses("odd.csv")).item_columns()
    order = np.argsort(-columns["difficulty"], kind="stable")
    shown = [columns["item"][k] for k in [*order[:5], *order[-5:]]]
    for label in shown:
        if label.isprintable() and len(label) < 12:
            assert label in done.out


def test_markup_in_a_short_test_is_shown_as_it_is(cli: Cli) -> None:
    labels = ["[red]x[/red]", "[/]", ":smile:", "\x1b[31mred"]
    rng = np.random.default_rng(2)
    rows = [",".join(map(str, row)) for row in rng.integers(0, 2, (40, 4)).tolist()]
    Path("a.csv").write_text("\n".join([",".join(labels), *rows]))
    out = cli("fit", "a.csv").out
    assert all(text in out for text in ["[red]x[/red]", "[/]", ":smile:", "\\x1b[31mred"])
    assert "\x1b" not in out


# ------------------------------------------------------------------------------------- the terminal


def test_a_short_test_is_shown_whole(cli: Cli, lsat: Path) -> None:
    out = cli("fit", lsat, "-o", "out").out
    assert "larger = harder" in out
    places = [out.index(f"item{k} ") for k in (3, 2, 4, 5, 1)]
    assert places == sorted(places)  # hardest first
    assert "1,000 people, 5 items, 5,000 responses, 76.4% right" in out
    assert "Regularization: none (all items are connected" in out.replace("\n", " ")
    assert "Standard errors: sandwich, dense." in out.replace("\n", " ")
    assert "carry no information about difficulty" in out
    where = "Results are in out: items.csv, persons.csv, item_fit.csv, item_analysis.csv and fit.json."
    assert where in " ".join(out.split())
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_a_long_test_is_shown_by_its_extremes(cli: Cli) -> None:
    cli("simulate", "-o", "a.csv", "--users", 400, "--items", 30, "--seed", 1)
    out = cli("fit", "a.csv", "-o", "out").out
    table = sorted((float(r["difficulty"]), r["item"]) for r in map(_row, rows_of(Path("out/items.csv"))[1:]))
    assert [out.count(word) for word in ("hardest", "easiest", "least sure")] == [1, 1, 1]
    hardest = out[out.index("hardest") :].split()
    assert hardest[1] == table[-1][1]
    easiest = out[out.index("easiest") :].split()
    assert easiest[1] == table[0][1]


def _row(cells: list[str]) -> dict[str, str]:
    return dict(zip(HEADER, cells, strict=True))


def test_without_a_place_nothing_is_written(cli: Cli, lsat: Path, tmp_path: Path) -> None:
    done = cli("fit", lsat)
    assert done.code == 0
    assert "-o DIR" in done.out
    assert os.listdir(tmp_path) == ["lsat.csv"]


@pytest.mark.parametrize("width", [45, 60, 80, 100, 160])
def test_numbers_are_never_cut(cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = cli("fit", odd_labels("csv")).out
    assert "…" not in out
    assert ("●" in out) == (width >= 100)


# ------------------------------------------------------------------------------------------ options


def test_scoring_by_key_threshold_and_own_mean(cli: Cli) -> None:
    Path("choices.csv").write_text("who,q1,q2,q3\na,A,B,9\nb,A,C,A\nc,B,B,C\nd,C,C,A\ne,B,B,A\n")
    Path("key.csv").write_text("item,key\nq1,A\nq2,B\nq3,C\n")
    assert cli("fit", "choices.csv", "--user", "who", "--key", "key.csv", "--missing", 9, "-o", "key").code == 0
    scores = [(row[0], row[5], row[6]) for row in rows_of(Path("key/items.csv"))[1:]]
    assert scores == [("q1", "5", "2"), ("q2", "5", "3"), ("q3", "4", "1")]
    assert strict_json(Path("key/fit.json"))["input"]["reading"] == {"user": "who", "key": "key.csv", "missing": ["9"]}

    assert cli("fit", "choices.csv", "--correct", "A", "--correct", "B", "--missing", 9, "-o", "correct").code == 0
    assert [row[6] for row in rows_of(Path("correct/items.csv"))[1:]] == ["4", "3", "3"]

    Path("ratings.csv").write_text(
        "user,movie,rating\n" + "".join(f"u{k},m{k * j % 4},{j}\n" for k in (1, 3) for j in range(4))
    )
    assert cli("fit", "ratings.csv", "--threshold", 1.5, "-o", "above").code == 0
    cli("fit", "ratings.csv", "--above-mean", "right", "-o", "right")
    cli("fit", "ratings.csv", "--above-mean", "wrong", "-o", "wrong")
    score = {name: [int(row[6]) for row in rows_of(Path(name) / "items.csv")[1:]] for name in ("right", "wrong")}
    assert [a + b for a, b in zip(score["right"], score["wrong"], strict=True)] == [2, 2, 2, 2]


def test_missing_codes_that_look_like_options(cli: Cli) -> None:
    Path("a.csv").write_text("u,q1,q2\na,1,0\nb,0,1\nc,-1,.\nd,1,-99\n")
    assert cli("fit", "a.csv", "--missing", "-1", "--missing", ".", "--missing", "-99", "-o", "out").code == 0
    assert [row[5] for row in rows_of(Path("out/items.csv"))[1:]] == ["3", "2"]


def test_duplicates_orientation_and_column_names(cli: Cli) -> None:
    Path("long.csv").write_text("who,what,mark\na,x,1\na,x,0\na,y,0\nb,x,0\nb,y,1\nc,x,1\nc,y,0\n")
    columns = ("--user", "who", "--item", "what", "--response", "mark")
    assert cli("fit", "long.csv", *columns, "--duplicates", "first", "-o", "first").code == 0
    assert cli("fit", "long.csv", *columns, "--duplicates", "last", "-o", "last").code == 0
    assert [row[6] for row in rows_of(Path("first/items.csv"))[1:]] == ["2", "1"]
    assert [row[6] for row in rows_of(Path("last/items.csv"))[1:]] == ["1", "1"]
    Path("turned.csv").write_text("item,ann,bob,eve\nq1,1,0,1\nq2,0,1,1\n")
    assert cli("fit", "turned.csv", "--orient", "items", "-o", "turned").code == 0
    assert [row[5:7] for row in rows_of(Path("turned/items.csv"))[1:]] == [["3", "2"], ["3", "2"]]


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (["--estimator", "paper"], SpectralRasch.paper()),
        (
            ["--estimator", "paper", "--nu", "0.5", "--nu-rule", "together"],
            SpectralRasch.paper(nu=0.5, nu_rule="together"),
        ),
        (["--weighting", "pairs", "--se", "none"], SpectralRasch(weighting="pairs", se="none")),
        (["--regularization", "2.5"], SpectralRasch(regularization=2.5)),
        (["--regularization", "0"], SpectralRasch(regularization=0.0)),
        (["--regularization", "auto", "--max-iter", "50"], SpectralRasch(max_iter=50)),
    ],
)
def test_options_reach_the_estimator(cli: Cli, lsat: Path, options: list[str], estimator: SpectralRasch) -> None:
    assert cli("fit", lsat, "-o", "out", *options).code == 0
    expected = estimator.fit(datasets.load_lsat())
    assert [float(row[1]) for row in rows_of(Path("out/items.csv"))[1:]] == expected.difficulty_.tolist()
    settings = strict_json(Path("out/fit.json"))["settings"]
    assert settings == estimator.get_params()


def test_the_largest_component_alone(cli: Cli) -> None:
    Path("a.csv").write_text(
        "user,item,response\na,q1,1\na,q2,0\nb,q2,1\nb,q1,0\na,q3,1\nb,q3,0\nc,x1,1\nc,x2,0\nd,x1,0\nd,x2,1\n"
    )
    assert "--largest-component" in cli("fit", "a.csv", "--regularization", 0).err
    assert cli("fit", "a.csv", "--regularization", 0, "--largest-component", "-o", "out").code == 0
    assert [row[0] for row in rows_of(Path("out/items.csv"))[1:]] == ["q1", "q2", "q3"]


# ------------------------------------------------------------------------------------- other commands


def test_check_prints_the_findings_and_nothing_else(cli: Cli, lsat: Path) -> None:
    done = cli("check", lsat)
    assert done.code == 0
    assert done.out.startswith("note  Taken for items: 5 columns 'item1', 'item2'")
    assert "note  301 of 1,000 people" in done.out
    rows = "\n".join("1,0,0\n0,1,0\n0,0,1\n1,1,0" for _ in range(10))
    Path("fine.csv").write_text(f"q1,q2,q3\n{rows}\n")
    out = cli("check", "fine.csv").out
    assert out == "note  Taken for items: 3 columns 'q1', 'q2', 'q3'. People are numbered.\nNothing odd.\n"


def test_check_finds_weak_links(cli: Cli) -> None:
    cli(
        "simulate",
        "-o",
        "forms.csv",
        "--users",
        600,
        "--design",
        "linked",
        "--forms",
        12,
        "--length",
        10,
        "--anchors",
        1,
    )
    out = cli("check", "forms.csv").out
    assert "warning" in out
    assert "contraction" in out


def test_demo_shows_the_table_and_says_where_the_results_are(cli: Cli) -> None:
    done = cli("demo", "-o", "results")
    assert done.code == 0
    assert "item3" in done.out
    where = "Results are in results: items.csv, persons.csv, item_fit.csv, item_analysis.csv and fit.json."
    assert where in " ".join(done.out.split())
    assert len(rows_of(Path("results/items.csv"))) == 6


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out == f"spectral-irt {spectral_irt.__version__}\n"
    assert "Usage" in cli().out
    for command in ("fit", "check", "score", "link", "update", "compare", "simulate", "demo"):
        done = cli(command, "--help")
        assert done.code == 0
        assert f"spectral-irt {command} " in done.out[done.out.index("Example") :]


# ---------------------------------------------------------------------------------- as a process


def process(*args: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spectral_irt", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", **options)


@pytest.mark.slow
def test_silent_and_plain_when_piped(lsat: Path, tmp_path: Path) -> None:
    done = process("fit", lsat, "-o", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_a_reader_that_goes_away_hears_nothing_more(lsat: Path, tmp_path: Path) -> None:
    run = f"{sys.executable} -m spectral_irt"
    line = f"{run} fit {lsat.name} -o out | true; {run} --help | head -1"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert (tmp_path / "out" / "items.csv").exists()  # the results come first


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_only(lsat: Path, tmp_path: Path) -> None:
    text = lsat.read_text().replace("item3", "Größe")
    lsat.write_text(text, encoding="utf-8")
    done = process("fit", lsat, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120"})
    assert done.returncode == 0
    assert "Gr\\xf6\\xdfe" in done.stdout


def test_the_same_fit_gives_the_same_bytes(lsat: Path, tmp_path: Path) -> None:
    data = simulate.rasch(300, 40, design="sampled", p=0.3, seed=1).responses
    user = np.repeat(data.users, data.counts)
    item = np.concatenate([block.items for block in data.blocks])
    right = np.concatenate([block.right() for block in data.blocks]).astype(int)
    pl.DataFrame({"user": user, "item": item, "response": right}).write_parquet(tmp_path / "a.parquet")
    for threads in (1, 2):
        assert (
            main(["fit", str(tmp_path / "a.parquet"), "-o", str(tmp_path / f"{threads}"), "--threads", f"{threads}"])
            == 0
        )
    assert (tmp_path / "1" / "items.csv").read_bytes() == (tmp_path / "2" / "items.csv").read_bytes()


def test_what_the_file_calls_them_is_what_they_are_called(cli: Cli, tmp_path: Path) -> None:
    data = simulate.rasch(30, 12, seed=2).responses
    model, prompt, right = data.answers()
    log = {"model": [f"m{k}" for k in model], "prompt_id": [f"p{k}" for k in prompt], "correct": right.astype(int)}
    pl.DataFrame(log).write_csv(tmp_path / "log.csv")
    assert "30 models, 12 prompts, 360 responses" in cli("fit", tmp_path / "log.csv").out


def test_with_a_key_every_option_is_written_and_a_wrong_key_is_said(cli: Cli) -> None:
    rng = np.random.default_rng(4)
    right = rng.random((400, 12)) < 1 / (1 + np.exp(np.linspace(-1, 1, 12) - rng.normal(size=(400, 1))))
    chosen = np.where(right, "A", np.array(list("BCD"))[rng.integers(0, 3, right.shape)]).astype(object)
    chosen[::9, 10:] = ""
    chosen[5, 3] = ""
    names = [f"q{k + 1}" for k in range(12)]
    pl.DataFrame({"id": np.arange(400), **dict(zip(names, chosen.T.tolist(), strict=True))}).write_csv("answers.csv")
    pl.DataFrame({"item": names, "key": ["A"] * 7 + ["C"] + ["A"] * 4}).write_csv("key.csv")
    done = cli("fit", "answers.csv", "--key", "key.csv", "--not-reached", "wrong", "-o", "out")
    assert done.code == 0, done.err
    assert "The key of 1 item is probably wrong. 'q8': the key is 'C', but the" in " ".join(done.out.split())
    assert "Cells that count as wrong, as asked: 90 not-reached" in " ".join(done.out.split())
    table = pl.read_csv("out/distractors.csv")
    assert table.columns[:5] == ["item", "option", "key", "n", "share"]
    assert table["n"].sum() == 400 * 12 - 1  # one omitted
    assert table.filter(pl.col("option") == "(blank)")["n"].to_list() == [45, 45]
    analysis = pl.read_csv("out/item_analysis.csv")
    assert analysis["omitted"].sum() == 1
    assert analysis["not_reached"].to_list() == [0] * 10 + [45, 45]
    assert analysis["n"].to_list() == [400] * 3 + [399] + [400] * 8
    record = json.loads(Path("out/fit.json").read_text(encoding="utf-8"))
    assert record["input"]["reading"]["not_reached"] == "wrong"
    assert "distractors.csv" in record["outputs"]
    assert cli("fit", "answers.csv", "--correct", "A", "-o", "out").code == 0  # no key: the table is stale
    assert not Path("out/distractors.csv").exists()
    bad = cli("fit", "answers.csv", "--key", "key.csv", "--omitted", "zero")
    assert bad.code == 2
    assert "--omitted is 'zero'; it can be 'missing', 'wrong'." in " ".join(bad.err.split())
