"""From a file of answers to items.csv and fit.json, through the command line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import spectral_irt
from end_to_end.tables import WRITTEN, rows_of, strict_json
from spectral_irt import Finding, SpectralRasch, datasets, simulate
from spectral_irt.analysis.record import NAMED_ITEMS, finding_record
from spectral_irt.cli.main import main

pytestmark = pytest.mark.slow  # whole runs of commands

Cli = Callable[..., Any]

HEADER = ["item", "difficulty", "se", "ci_low", "ci_high", "n", "n_correct", "p_correct", "status"]


def test_items_csv_holds_every_digit_of_the_estimate(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "-o", "out")
    assert (done.code, done.err) == (0, "")
    header, *rows = rows_of(Path("out/items.csv"))
    assert header[: len(HEADER)] == HEADER
    columns = SpectralRasch().fit(datasets.load_lsat()).item_columns()
    for k, name in enumerate(HEADER):
        found = [row[k] for row in rows]
        if columns[name].dtype.kind == "f":
            assert [float(cell) for cell in found] == columns[name].tolist()
        else:
            assert found == [str(value) for value in columns[name].tolist()]


def test_fit_json_says_what_was_done(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-o", "out", "--chain-weights", "persons", "--threads", "1")
    record = strict_json(Path("out/fit.json"))
    assert record["program"] == "spectral-irt"
    assert record["versions"]["spectral_irt"] == spectral_irt.__version__
    assert set(record["versions"]) == {"spectral_irt", "python", "numpy", "scipy", "polars"}
    assert record["estimator"] == "spectral"
    assert record["settings"]["weighting"] == "persons"
    assert record["settings"]["threads"] == 1
    digests = {str(lsat): "sha256:" + hashlib.sha256(lsat.read_bytes()).hexdigest()}
    assert record["input"] == {"source": "lsat.csv", "files": [str(lsat)], "digests": digests, "reading": {}}
    assert record["counts"] == {
        "persons": 1000,
        "items": 5,
        "responses": 5000,
        "thresholds": 5,
        "right": 3819,
        **dict.fromkeys(("repeats_left_out", "columns_left_out", "counted_as_wrong"), 0),
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
    assert {finding["code"] for finding in record["findings"]} >= {"silent_persons", "regularization"}
    assert all(set(f) == {"code", "severity", "sentence", "remedy", "n_items", "items"} for f in record["findings"])
    assert set(record["seconds"]) == {"read", "fit", "analysis", "total"}
    assert record["outputs"] == WRITTEN


def test_items_without_an_estimate_have_empty_cells(cli: Cli) -> None:
    Path("a.csv").write_text("u,q1,q2,q3,q4\na,1,0,1,\nb,0,1,1,\nc,1,0,0,\nd,0,1,0,\n")
    done = cli("fit", "a.csv", "-o", "out", "--parquet")
    assert done.code == 0
    row = rows_of(Path("out/items.csv"))[4]
    assert row[:9] == ["q4", "", "", "", "", "0", "0", "", "no responses"]
    assert not any(row[9:])
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
    done = cli("fit", lsat, "-o", "out", "--chain-weights", "pairs")
    assert done.code == 0
    assert Path("out/items.csv").read_bytes() != before
    assert sorted(os.listdir("out")) == sorted([*WRITTEN, "notes.txt"])  # the old Parquet files are stale
    assert cli("fit", lsat, "-o", "out", "--skip", "persons,fit").code == 0
    assert sorted(os.listdir("out")) == ["fit.json", "items.csv", "notes.txt"]


def test_several_files_are_one_table(cli: Cli, lsat: Path) -> None:
    header, *lines = lsat.read_text().splitlines()
    Path("part1.csv").write_text("\n".join([header, *lines[:400]]))
    Path("part2.csv").write_text("\n".join([header, *lines[400:]]))
    assert cli("fit", "part1.csv", "part2.csv", "-o", "both").code == 0
    assert cli("fit", "part*.csv", "-o", "glob").code == 0
    cli("fit", lsat, "-o", "whole")
    assert Path("both/items.csv").read_bytes() == Path("whole/items.csv").read_bytes()
    assert Path("glob/items.csv").read_bytes() == Path("whole/items.csv").read_bytes()


def test_the_same_fit_gives_the_same_bytes(lsat: Path, tmp_path: Path) -> None:
    data = simulate.rasch(300, 40, design="sampled", p=0.3, seed=1).responses
    person = np.repeat(data.persons, data.counts)
    item = np.concatenate([block.items for block in data.blocks])
    right = np.concatenate([block.right() for block in data.blocks]).astype(int)
    pl.DataFrame({"person": person, "item": item, "response": right}).write_parquet(tmp_path / "a.parquet")
    for threads in (1, 2):
        assert (
            main(["fit", str(tmp_path / "a.parquet"), "-o", str(tmp_path / f"{threads}"), "--threads", f"{threads}"])
            == 0
        )
    assert (tmp_path / "1" / "items.csv").read_bytes() == (tmp_path / "2" / "items.csv").read_bytes()


def test_scoring_by_key_threshold_and_own_mean(cli: Cli) -> None:
    Path("choices.csv").write_text("who,q1,q2,q3\na,A,B,9\nb,A,C,A\nc,B,B,C\nd,C,C,A\ne,B,B,A\n")
    Path("key.csv").write_text("item,key\nq1,A\nq2,B\nq3,C\n")
    assert cli("fit", "choices.csv", "--person", "who", "--key", "key.csv", "--missing", 9, "-o", "key").code == 0
    scores = [(row[0], row[5], row[6]) for row in rows_of(Path("key/items.csv"))[1:]]
    assert scores == [("q1", "5", "2"), ("q2", "5", "3"), ("q3", "4", "1")]
    assert strict_json(Path("key/fit.json"))["input"]["reading"] == {
        "person": "who",
        "key": "key.csv",
        "missing": ["9"],
    }

    assert cli("fit", "choices.csv", "--correct", "A", "--correct", "B", "--missing", 9, "-o", "correct").code == 0
    assert [row[6] for row in rows_of(Path("correct/items.csv"))[1:]] == ["4", "3", "3"]

    Path("ratings.csv").write_text(
        "person,movie,rating\n" + "".join(f"u{k},m{k * j % 4},{j}\n" for k in (1, 3) for j in range(4))
    )
    assert cli("fit", "ratings.csv", "--threshold", 1.5, "-o", "above").code == 0
    cli("fit", "ratings.csv", "--threshold", "own-mean", "-o", "right")
    cli("fit", "ratings.csv", "--threshold", "own-mean:wrong", "-o", "wrong")
    score = {name: [int(row[6]) for row in rows_of(Path(name) / "items.csv")[1:]] for name in ("right", "wrong")}
    assert [a + b for a, b in zip(score["right"], score["wrong"], strict=True)] == [2, 2, 2, 2]


def test_missing_codes_that_look_like_options(cli: Cli) -> None:
    Path("a.csv").write_text("u,q1,q2\na,1,0\nb,0,1\nc,-1,.\nd,1,-99\n")
    assert cli("fit", "a.csv", "--missing", "-1", "--missing", ".", "--missing", "-99", "-o", "out").code == 0
    assert [row[5] for row in rows_of(Path("out/items.csv"))[1:]] == ["3", "2"]


def test_duplicates_orientation_and_column_names(cli: Cli) -> None:
    Path("long.csv").write_text("who,what,mark\na,x,1\na,x,0\na,y,0\nb,x,0\nb,y,1\nc,x,1\nc,y,0\n")
    columns = ("--person", "who", "--item", "what", "--response", "mark")
    assert cli("fit", "long.csv", *columns, "--duplicates", "first", "-o", "first").code == 0
    assert cli("fit", "long.csv", *columns, "--duplicates", "last", "-o", "last").code == 0
    assert [row[6] for row in rows_of(Path("first/items.csv"))[1:]] == ["2", "1"]
    assert [row[6] for row in rows_of(Path("last/items.csv"))[1:]] == ["1", "1"]
    Path("turned.csv").write_text("item,ann,bob,eve\nq1,1,0,1\nq2,0,1,1\n")
    assert cli("fit", "turned.csv", "--layout", "items-in-rows", "-o", "turned").code == 0
    assert [row[5:7] for row in rows_of(Path("turned/items.csv"))[1:]] == [["3", "2"], ["3", "2"]]


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (["--estimator", "paper"], SpectralRasch.paper()),
        (
            ["--estimator", "paper", "--set", "nu=0.5", "--set", "nu_rule=together"],
            SpectralRasch.paper(nu=0.5, nu_rule="together"),
        ),
        (["--chain-weights", "pairs", "--set", "se=none"], SpectralRasch(weighting="pairs", se="none")),
        (["--set", "regularization=2.5"], SpectralRasch(regularization=2.5)),
        (["--set", "regularization=0"], SpectralRasch(regularization=0.0)),
        (["--set", "regularization=auto", "--set", "max_iter=50"], SpectralRasch(max_iter=50)),
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
        "person,item,response\na,q1,1\na,q2,0\nb,q2,1\nb,q1,0\na,q3,1\nb,q3,0\nc,x1,1\nc,x2,0\nd,x1,0\nd,x2,1\n"
    )
    assert "--largest-component" in cli("fit", "a.csv", "--set", "regularization=0").err
    assert cli("fit", "a.csv", "--set", "regularization=0", "--largest-component", "-o", "out").code == 0
    assert [row[0] for row in rows_of(Path("out/items.csv"))[1:]] == ["q1", "q2", "q3"]
