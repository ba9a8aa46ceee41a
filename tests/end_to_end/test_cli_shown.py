"""What `fit` and its like show: on a terminal, in a pipe, to a reader that goes away."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import spectral_irt
from end_to_end.odd_labels import odd_labels
from end_to_end.tables import WRITTEN, rows_of
from spectral_irt import simulate

pytestmark = pytest.mark.slow  # whole runs of commands

Cli = Callable[..., Any]

HEADER = ["item", "difficulty", "se", "ci_low", "ci_high", "n", "n_correct", "p_correct", "status"]


def test_a_short_test_is_shown_whole(cli: Cli, lsat: Path) -> None:
    out = cli("fit", lsat, "-o", "out").out
    assert "larger = harder" in out
    places = [out.index(f"item{k} ") for k in (3, 2, 4, 5, 1)]
    assert places == sorted(places)  # hardest first
    assert "1,000 people, 5 items, 5,000 responses, 76.4% right" in out
    assert "Prior: none (all items are connected" in out.replace("\n", " ")
    assert "Standard errors: sandwich, dense." in out.replace("\n", " ")
    assert "carry no information about difficulty" in out
    assert f"Results are in out: {', '.join(WRITTEN[:-1])} and fit.json." in out.replace("\n", " ")
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_an_ordinary_test_is_shown_whole_with_its_fit(cli: Cli) -> None:
    cli("simulate", "-o", "a.csv", "--persons", 400, "--items", 30, "--seed", 1)
    out = cli("fit", "a.csv", "-o", "out").out
    table = sorted((-float(r["difficulty"]), r["item"]) for r in _items("out/items.csv"))
    lines = out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("item ")) + 1
    assert [line.split()[0] for line in lines[first : first + 30]] == [item for _, item in table]
    fit = {row["item"]: row for row in _items("out/items.csv")}
    for line in lines[first : first + 30]:
        own = fit[line.split()[0]]
        numbers = [float(own[name]) for name in ("infit", "outfit", "point_measure")]
        assert line.split()[-3:] == [f"{number:.2f}" for number in numbers]


def test_a_few_people_are_ranked_before_the_items(cli: Cli) -> None:
    data = simulate.rasch(6, 200, ability=np.linspace(-1, 1, 6), seed=3).responses
    model, prompt, right = data.answers()
    log = {"model": [f"m{k}" for k in model], "prompt": [f"p{k}" for k in prompt], "correct": right.astype(int)}
    pl.DataFrame(log).write_csv("log.csv")
    lines = cli("fit", "log.csv", "-o", "out").out.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("model "))
    assert lines[head].split()[:4] == ["model", "rank", "interval", "ability"]
    expected = sorted(rows_of(Path("out/persons.csv"))[1:], key=lambda row: -round(float(row[3]), 9))
    assert [line.split()[0] for line in lines[head + 1 : head + 7]] == [row[0] for row in expected]
    assert [line.split()[1] for line in lines[head + 1 : head + 7]] == list("123446"), "m1 and m2 have the same score"
    assert any(line.startswith("prompt ") for line in lines[head + 7 :])
    assert "rank" not in cli("fit", "log.csv", "--skip", "persons").out


def _items(path: str) -> list[dict[str, str]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))


def test_without_a_place_nothing_is_written(cli: Cli, lsat: Path, tmp_path: Path) -> None:
    done = cli("fit", lsat)
    assert done.code == 0
    assert "-o DIR" in done.out
    assert os.listdir(tmp_path) == ["lsat.csv"]


@pytest.mark.parametrize("width", [40, 45, 60, 80, 100, 160, 200])
def test_numbers_are_never_cut(cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = cli("fit", odd_labels("csv")).out
    assert "…" not in out


def test_check_prints_the_findings_and_nothing_else(cli: Cli, lsat: Path) -> None:
    done = cli("check", lsat)
    assert done.code == 0
    assert done.out.startswith("note  Items: 5 columns 'item1', 'item2'")
    assert "note  301 of 1,000 people" in done.out
    rows = "\n".join("1,0,0\n0,1,0\n0,0,1\n1,1,0" for _ in range(10))
    Path("fine.csv").write_text(f"q1,q2,q3\n{rows}\n")
    out = cli("check", "fine.csv").out
    assert out == "note  Items: 3 columns 'q1', 'q2', 'q3'. People are numbered.\nNo problems found.\n"


def test_check_finds_weak_links(cli: Cli) -> None:
    design = ["--design", "linked", "--forms", 12, "--length", 10, "--anchors", 1]
    cli("simulate", "-o", "forms.csv", "--persons", 600, *design)
    assert "link two groups" in " ".join(cli("check", "forms.csv").out.split())


def test_demo_shows_its_command_and_finds_both_faults(cli: Cli) -> None:
    done = cli("demo", "-o", "results")
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.replace("\\\n", " ").split())
    assert "'tides' is harder for 'inland'" in text
    assert "misfits beyond chance: underfit 'density'" in text
    assert "Results are in results: items.csv, persons.csv, scores.csv, " in text
    assert "'density': the key is 'B', but the 371 people who chose 'C' are abler" in text
    assert "groups.csv, dif.csv and fit.json." in text
    assert len(rows_of(Path("results/items.csv"))) == 31
    command = text[text.index("spectral-irt fit") : text.index(" quiz.csv 800 people")]
    before = {path.name: path.read_bytes() for path in Path("results").glob("*.csv")}
    again = cli(*shlex.split(command)[1:])  # as somebody would who copies it
    assert again.code == 0
    assert {path.name: path.read_bytes() for path in Path("results").glob("*.csv")} == before
    drop = slice(len(done.out) - len(done.out[done.out.index("quiz.csv  800") :]), None)
    assert again.out.split("Read in")[0] == done.out[drop].split("Read in")[0]


def test_demo_hands_out_its_files_with_commands_that_work(cli: Cli) -> None:
    done = cli("demo", "--files", ".")
    assert (done.code, done.err) == (0, "")
    commands = [line.split()[1:] for line in done.out.splitlines() if line.startswith("  spectral-irt")]
    assert [command[1] for command in commands] == ["quiz.csv", "lsat.csv", "runs"]
    assert [cli(*command).code for command in commands] == [0, 0, 0]
    assert len(rows_of(Path("lsat-results/items.csv"))) == 6


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out == f"spectral-irt {spectral_irt.__version__}\n"
    assert cli().out == cli("--help").out


def process(*args: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spectral_irt", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", **options)


def test_labels_are_whole_when_piped(tmp_path: Path) -> None:
    labels = [f"{'the-same-long-beginning-' * 3}{k}" for k in range(6)]
    rows = np.random.default_rng(1).integers(0, 2, (60, 6)).tolist()
    (tmp_path / "a.csv").write_text("\n".join([",".join(labels), *(",".join(map(str, row)) for row in rows)]))
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    out = process("fit", "a.csv", cwd=tmp_path, env=plain).stdout
    assert all(f"\n{label} " in out for label in labels)
    table = [line for line in out.splitlines() if line.startswith("the-same")]
    assert max(map(len, out[out.index(f"\n{table[-1]}\n") + len(table[-1]) + 2 :].splitlines())) <= 80
    narrow = process("fit", "a.csv", cwd=tmp_path, env={**plain, "COLUMNS": "60"}).stdout
    assert max(map(len, narrow.splitlines())) <= 60
    assert [line.split()[0][-1] for line in narrow.splitlines() if "..." in line][:6] == [line[72] for line in table]


def test_a_terminal_that_knows_ascii_only(lsat: Path, tmp_path: Path) -> None:
    text = lsat.read_text().replace("item3", "Größe")
    lsat.write_text(text, encoding="utf-8")
    done = process("fit", lsat, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120"})
    assert done.returncode == 0
    assert "Gr\\xf6\\xdfe" in done.stdout


def test_what_the_file_calls_them_is_what_they_are_called(cli: Cli, tmp_path: Path) -> None:
    data = simulate.rasch(30, 12, seed=2).responses
    model, prompt, right = data.answers()
    log = {"model": [f"m{k}" for k in model], "prompt_id": [f"p{k}" for k in prompt], "correct": right.astype(int)}
    pl.DataFrame(log).write_csv(tmp_path / "log.csv")
    assert "30 models, 12 prompts, 360 responses" in cli("fit", tmp_path / "log.csv").out
