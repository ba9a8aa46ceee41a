"""What commands show, on a terminal and in a pipe; labels are data there and in files."""

import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import WRITTEN, column, contents, read_csv, record, wide
from spectral_irt import simulate
from spectral_irt.bank.anchors import as_anchors
from spectral_irt.tables import cell_text

pytestmark = pytest.mark.slow  # whole runs of commands


def test_a_short_test_is_shown_whole(cli, lsat):
    done = cli("fit lsat.csv -o out")
    said = " ".join(done.out.split())
    assert "larger = harder" in said
    places = [done.out.index(f"item{k} ") for k in (3, 2, 4, 5, 1)]
    assert places == sorted(places)  # hardest first
    assert "1,000 people, 5 items, 5,000 responses, 76.4% right" in said
    assert "Prior: none (every item is linked" in said
    assert "Standard errors: sandwich, dense." in said
    assert "do not affect the difficulties" in said
    assert f"Results are in out: {', '.join(WRITTEN[:-1])} and fit.json." in said
    assert not any(line.endswith(" ") for line in done.out.splitlines())
    before = contents()
    assert "-o DIR" in cli.ok("fit lsat.csv")
    assert contents() == before


def test_an_ordinary_test_is_shown_whole_with_its_fit(cli):
    cli.ok("simulate -o a.csv --persons 400 --items 30 --seed 1")
    lines = cli("fit a.csv -o out").out.splitlines()
    items = sorted(read_csv("out/items.csv"), key=lambda row: (-float(row["difficulty"]), row["item"]))
    first = next(k for k, line in enumerate(lines) if line.startswith("item ")) + 1
    for line, item in zip(lines[first : first + 30], items, strict=True):
        numbers = [float(item[name]) for name in ("infit", "outfit", "point_measure")]
        assert [line.split()[0], *line.split()[-3:]] == [item["item"], *(f"{number:.2f}" for number in numbers)]


def test_a_few_models_are_ranked_by_points_too(cli):
    model, prompt, points = simulate.partial_credit(6, 90, categories=3, seed=3).responses.answers()
    pl.DataFrame({"model": model, "prompt": prompt, "response": points.astype(int)}).write_csv("log.csv")
    lines = [line.split() for line in cli("fit log.csv -o out").out.splitlines()]
    head = next(k for k, words in enumerate(lines) if words[:3] == ["model", "rank", "interval"])
    persons = sorted(read_csv("out/persons.csv"), key=lambda row: -float(row["ability"]))
    for words, row in zip(lines[head + 1 : head + 7], persons, strict=True):
        assert [words[0], words[-2]] == [row["person"], row["score"]]


def test_models_are_called_models_and_a_few_are_ranked_before_the_prompts(cli):
    data = simulate.rasch(6, 200, ability=np.linspace(-1, 1, 6), seed=3).responses
    model, prompt, right = data.answers()
    log = {"model": [f"m{k}" for k in model], "prompt_id": [f"p{k}" for k in prompt], "correct": right.astype(int)}
    pl.DataFrame(log).write_csv("log.csv")
    lines = cli("fit log.csv -o out").out.splitlines()
    assert any("6 models, 200 prompts, 1,200 responses" in line for line in lines)
    head = next(k for k, line in enumerate(lines) if line.startswith("model "))
    assert lines[head].split()[:4] == ["model", "rank", "interval", "ability"]
    expected = sorted(read_csv("out/persons.csv"), key=lambda row: -round(float(row["ability"]), 9))
    ranked = [line.split()[:2] for line in lines[head + 1 : head + 7]]
    assert [name for name, _ in ranked] == [row["person"] for row in expected]
    assert [rank for _, rank in ranked] == list("123446"), "m1 and m2 have the same score"
    assert any(line.startswith("prompt ") for line in lines[head + 7 :])
    assert "rank" not in cli.ok("fit log.csv --skip persons")


def test_check_prints_the_findings_and_nothing_else(cli, lsat):
    done = cli("check lsat.csv")
    assert done.out.startswith("note  Items: 5 columns 'item1', 'item2'")
    assert "note  301 of 1,000 people" in done.out
    Path("fine.csv").write_text("q1,q2,q3\n" + "1,0,0\n0,1,0\n0,0,1\n1,1,0\n" * 10)
    out = cli("check fine.csv").out
    assert out == "note  Items: 3 columns 'q1', 'q2', 'q3'. People are numbered.\nNo problems found.\n"
    cli.ok("simulate -o forms.csv --persons 600 --design linked --forms 12 --length 10 --anchors 1")
    assert "link two groups" in cli.ok("check forms.csv")


def test_demo_shows_its_command_and_finds_both_faults(cli):
    done = cli("demo -o results")
    text = " ".join(done.out.replace("\\\n", " ").split())
    assert "'tides' is harder for 'inland'" in text
    assert "misfits beyond chance: underfit 'density'" in text
    assert "Results are in results: items.csv, persons.csv, scores.csv, " in text
    assert "'density': the key is 'B', but the 371 people who chose 'C' measure higher" in text
    assert "groups.csv, dif.csv and fit.json." in text
    assert len(read_csv("results/items.csv")) == 30
    command = text[text.index("spectral-irt fit") : text.index(" quiz.csv 800 people")]
    before = {path.name: path.read_bytes() for path in Path("results").glob("*.csv")}
    again = cli(*shlex.split(command)[1:])  # as somebody would who copies it
    assert again.code == 0
    assert {path.name: path.read_bytes() for path in Path("results").glob("*.csv")} == before
    assert again.out.split("Read in")[0] == done.out[done.out.index("quiz.csv  800") :].split("Read in")[0]


def test_demo_hands_out_its_files_with_commands_that_work(cli):
    done = cli("demo --files .")
    commands = [line.split(maxsplit=1)[1] for line in done.out.splitlines() if line.startswith("  spectral-irt")]
    files = ["quiz.csv", "lsat.csv", "survey.csv", "ratings.csv", "runs"]
    assert [command.split()[1] for command in commands] == files
    for command in commands:
        cli.ok(command)
    assert len(read_csv("lsat-results/items.csv")) == 5


def test_demo_files_for_programs(cli):
    done = cli("demo --files quiet -q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert Path("quiet/quiz.csv").is_file()
    done = cli("demo --files told --json")
    outputs = json.loads(done.out)["outputs"]
    assert sorted(outputs) == sorted(str(path) for path in Path("told").rglob("*") if path.is_file())


def process(*args, cwd, **options):
    command = [sys.executable, "-m", "spectral_irt", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", **options)


@pytest.mark.parametrize("categories", [2, 3])
def test_labels_are_whole_when_piped(tmp_path, categories):
    labels = [f"{'the-same-long-beginning-' * 3}{k}" for k in range(6)]
    wide(tmp_path / "a.csv", np.random.default_rng(1).integers(0, categories, (60, 6)), labels)
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    out = process("fit", "a.csv", cwd=tmp_path, env=plain).stdout
    assert all(f"\n{label} " in out for label in labels)
    table = [line for line in out.splitlines() if line.startswith("the-same")]
    assert max(map(len, out[out.index(f"\n{table[-1]}\n") + len(table[-1]) + 2 :].splitlines())) <= 80
    narrow = process("fit", "a.csv", cwd=tmp_path, env={**plain, "COLUMNS": "60"}).stdout
    assert max(map(len, narrow.splitlines())) <= 60
    assert [line.split()[0][-1] for line in narrow.splitlines() if "..." in line][:6] == [line[72] for line in table]


def test_a_terminal_that_knows_ascii_only(lsat, tmp_path):
    lsat.write_text(lsat.read_text().replace("item3", "Größe"), encoding="utf-8")
    done = process("fit", lsat, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120"})
    assert done.returncode == 0
    assert "Gr\\xf6\\xdfe" in done.stdout


# Everything a label may hold: scripts, separators, quotes, line breaks, markup of several kinds, control characters.
LABELS = [
    *("Ünï✓ 漢字", "a,b;c", 'quo"te', "it's", "new\nline", "cr\rx", "crlf\r\ny", "tab\there", "&amp;", "=1+1", "\\n"),
    *("<script>alert(1)</script>", "[red]x[/red]", "[/]", ":smile:", " before", "after ", "\x1b[31mred", "007", "null"),
    *("\u202eright to left", "x" * 300),
]


@pytest.fixture
def odd(cli):
    """odd.csv, odd.jsonl and odd.parquet: the same answers to items of these names."""
    answers = (np.random.default_rng(1).random((80, len(LABELS))) < 0.6).astype(int)
    people = [f"p{k}" for k in range(80)]
    with Path("odd.csv").open("w", newline="", encoding="utf-8") as file:
        rows = ([name, *row] for name, row in zip(people, answers.tolist(), strict=True))
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["person", *LABELS], *rows])
    nested = [dict(zip(LABELS, row, strict=True)) for row in answers.tolist()]
    lines = [{"subject_id": name, "responses": row} for name, row in zip(people, nested, strict=True)]
    Path("odd.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    person, item = np.divmod(np.arange(answers.size), len(LABELS))
    columns = {"person": person, "item": [LABELS[k] for k in item], "response": answers.ravel()}
    pl.DataFrame(columns).write_parquet("odd.parquet")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_labels_come_out_as_they_went_in(cli, odd, kind):
    cli.ok(f"fit odd.{kind} -o out --parquet")
    cells = column("out/items.csv", "item")
    found = [cell_text(cell) for cell in cells]
    assert sorted(found) == sorted(LABELS)
    assert pl.read_csv("out/items.csv")["item"].to_list() == cells
    assert as_anchors("out/items.csv").items.tolist() == found  # our own reader
    assert pl.read_parquet("out/items.parquet")["item"].to_list() == found


def test_labels_come_out_as_they_went_in_findings(cli):
    with Path("a.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [[f"p{k}", k % 2, (k // 2) % 2, *[1] * len(LABELS)] for k in range(8)]
        csv.writer(file).writerows([["person", "q1", "q2", *LABELS], *rows])
    cli.ok("fit a.csv -o out")
    findings = {finding["code"]: finding for finding in record()["findings"]}
    assert findings["extreme_items"]["items"] == LABELS


@pytest.mark.parametrize("width", [40, 45, 60, 80, 100, 160, 200])
def test_labels_are_no_markup_and_numbers_are_never_cut(cli, odd, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    out = cli("fit odd.csv").out
    assert "…" not in out
    assert {c for c in out if not c.isprintable()} == {"\n"}
    if width >= 80:
        assert all(label in out for label in LABELS if label.isprintable() and len(label) < 12)


def test_of_a_rating_scale_an_item_without_its_lowest_category_rests_on_no_prior(cli):
    """The other items tell where its thresholds lie: check says what fit does."""
    rng = np.random.default_rng(3)
    answers = {f"i{k}": rng.integers(0, 3, 90) for k in range(1, 9)}
    answers["i4"] = np.maximum(answers["i4"], 1)
    pl.DataFrame({"person": np.arange(90).astype(str), **answers}).write_csv("liking.csv")
    assert "prior alone" not in " ".join(cli.ok("check liking.csv --model rsm").split())
    assert "prior alone" not in " ".join(cli.ok("fit liking.csv --model rsm --skip persons,fit").split())
