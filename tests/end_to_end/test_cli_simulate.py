"""`spectral-irt simulate`, and what a fit makes of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from spectral_irt import simulate
from spectral_irt.reading import read

Cli = Callable[..., Any]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_file_holds_what_python_draws(cli: Cli, suffix: str) -> None:
    name = f"sub/a.{suffix}"
    done = cli("simulate", "-o", name, "--persons", 200, "--items", 12, "--seed", 3, "--truth", f"sub/t.{suffix}")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"200 people, 12 items, 2,400 responses: {name} and sub/t.{suffix}\n"
    expected = simulate.rasch(200, 12, seed=3)
    assert read(name).digest() == expected.responses.digest()
    truth = pl.read_csv("sub/t.csv") if suffix == "csv" else pl.read_parquet("sub/t.parquet")
    assert truth.columns == ["item", "difficulty"]
    assert truth["difficulty"].to_list() == expected.difficulty.tolist()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("--items 30 --design sampled --p 0.2", {"n_items": 30, "design": "sampled", "p": 0.2}),
        (
            "--items 60 --design popularity --responses 4000 --exponent 0.5 --activity-sd 0.3",
            {"n_items": 60, "design": "popularity", "n_responses": 4000, "exponent": 0.5, "activity_sd": 0.3},
        ),
        (
            "--items 24 --design booklets --booklets 4 --length 9",
            {"n_items": 24, "design": "booklets", "booklets": 4, "length": 9},
        ),
        (
            "--design linked --forms 5 --length 8 --anchors 2",
            {"design": "linked", "forms": 5, "length": 8, "anchors": 2},
        ),
        (
            "--items 6 --ability-mean 1 --ability-sd 0.5 --difficulty-sd 2",
            {"n_items": 6, "ability_mean": 1.0, "ability_sd": 0.5, "difficulty_sd": 2.0},
        ),
    ],
    ids=lambda value: value.split("--design ")[-1].split()[0] if isinstance(value, str) else "",
)
def test_designs(cli: Cli, args: str, expected: dict[str, Any]) -> None:
    assert cli("simulate", "-o", "a.parquet", "--persons", 300, "--seed", 1, *args.split()).code == 0
    data = simulate.rasch(300, seed=1, **expected).responses
    table = pl.read_parquet("a.parquet")
    assert len(table) == data.n_responses
    found = np.zeros((data.n_persons, data.n_items))
    found[table["person"], table["item"]] = 1 + table["response"].to_numpy()
    assert np.array_equal(found - 1, np.nan_to_num(data.to_dense(), nan=-1))


def test_the_same_seed_gives_the_same_bytes(cli: Cli) -> None:
    for name in ("a.csv", "b.csv"):
        cli("simulate", "-o", name, "--items", 5, "--persons", 50, "--seed", 7)
    cli("simulate", "-o", "c.csv", "--items", 5, "--persons", 50, "--seed", 8)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert Path("a.csv").read_bytes() != Path("c.csv").read_bytes()


@pytest.mark.slow
def test_a_fit_finds_the_truth_again(cli: Cli) -> None:
    cli("simulate", "-o", "a.csv", "--persons", 2000, "--items", 25, "--seed", 1, "--truth", "t.csv")
    assert cli("fit", "a.csv", "-o", "out").code == 0
    both = pl.read_csv("out/items.csv").join(pl.read_csv("t.csv"), on="item", suffix="_true")
    error = (both["difficulty"] - both["difficulty_true"]) / both["se"]
    assert len(both) == 25
    assert (error**2).mean() < 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("-o a.txt --items 5", ["'a.txt'", ".csv nor .parquet"]),
        ("-o a.csv --items 5 --truth t.xlsx", ["'t.xlsx'", ".csv nor .parquet"]),
        ("-o a.csv --items 5 --truth a.csv", ["same file", "name of its own"]),
        ("-o a.csv", ["--items is missing", "say how many"]),
        ("-o a.csv --items 5 --persons 0", ["--persons is 0", "at least 1"]),
        ("-o a.csv --items 5 --design round", ["--design is 'round'", "'complete', 'sampled'"]),
        ("-o a.csv --items 5 --design sampled", ["needs --p"]),
        ("-o a.csv --items 5 --design sampled --p 2", ["--p is 2", "at most 1"]),
        ("-o a.csv --items 5 --design popularity", ["needs --responses"]),
        ("-o a.csv --items 5 --design popularity --responses 9", ["--responses is 9", "give 2,000 to 5,000"]),
        ("-o a.csv --items 5 --p 0.5", ["no parameter --p", "takes"]),
        ("-o a.csv --items 5 --seed -1", ["--seed is -1"]),
        ("-o a.csv --items 5 --ability-sd -1", ["--ability-sd is -1"]),
        ("--items 5", ["'--output'", "spectral-irt simulate --help"]),
    ],
)
def test_mistakes(cli: Cli, tmp_path: Path, args: str, says: list[str]) -> None:
    done = cli("simulate", *args.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    for text in says:
        assert text in done.err
    assert os.listdir(tmp_path) == []
