"""The tables people ask for, from files to files: scores, forms, unexpected answers, groups, cuts, equating."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import read_csv
from spectral_irt import equate, load

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each

Cli = Callable[..., Any]


def table_of(path: Path, right: np.ndarray, items: list[str], **people: list[Any]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", *people, *items])
        for k, row in enumerate(right.tolist()):
            cells = ["" if x != x else int(x) for x in row]
            writer.writerow([f"s{k}", *(column[k] for column in people.values()), *cells])
    return path


def drawn(theta: np.ndarray, beta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((len(theta), len(beta))) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """400 students of two sexes, some unknown; three who know the hard items only."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m", ""], 400, p=[0.5, 0.45, 0.05])
    right = drawn(rng.normal(0.5 * (sex == "f"), 1), np.linspace(-2, 2, 12), rng)
    right[:3] = np.r_[np.zeros(6), np.ones(6)]
    return table_of(tmp_path / "school.csv", right, [f"q{k + 1}" for k in range(12)], sex=sex.tolist())


def test_scores_groups_and_cuts_are_written_and_shown(cli: Cli, school: Path) -> None:
    done = cli(
        "fit", school, "--group", "sex", "--scale", "500,100", "--cut", "450,550", "-o", "out", "--all", "--parquet"
    )
    assert (done.code, done.err) == (0, "")
    for name in ("scores", "unexpected", "groups", "cuts"):
        assert pl.read_parquet(f"out/{name}.parquet").columns == list(read_csv(f"out/{name}.csv")[0])
    assert not Path("out/forms.csv").exists()  # everybody answered everything
    people = {(row["score"], row["measure"]) for row in read_csv("out/persons.csv")}
    scores = read_csv("out/scores.csv")
    by_score = {row["score"]: float(row["measure"]) for row in scores}
    assert all(float(measure) == pytest.approx(by_score[score], abs=1e-4) for score, measure in people)
    assert len(scores) == 13
    assert sum(int(row["n"]) for row in scores) == 400
    groups = read_csv("out/groups.csv")
    assert [row["group"] for row in groups] == ["f", "m", "(no label)"]
    assert float(groups[0]["measure_mean"]) > float(groups[1]["measure_mean"])
    classes = read_csv("out/cuts.csv")
    assert [row["class"] for row in classes] == ["1", "2", "3", "all"]
    assert sum(int(row["n"]) for row in classes[:3]) == int(classes[3]["n"]) == 400
    assert {row["person"] for row in read_csv("out/unexpected.csv")[:9]} == {"s0", "s1", "s2"}
    record = json.loads(Path("out/fit.json").read_text())
    assert record["forms"] == {"forms": 1, "people_on_forms": 400, "sets_of_items": 1}
    assert [row["n"] for row in record["cuts"]] == [int(row["n"]) for row in classes]
    text = " ".join(done.out.split())
    assert f"sex: f {groups[0]['n']} {float(groups[0]['measure_mean']):.1f}" in text
    assert "class 2 450" in text
    assert "all classes 400 1.00" in text

    assert cli("fit", school, "--skip", "persons", "-o", "out").code == 0
    left = ["fit.json", "items.csv"]  # the others are stale
    assert sorted(os.listdir("out")) == left


def test_raw_cuts_and_refusals(cli: Cli, school: Path) -> None:
    done = cli("fit", school, "--cut", "raw:6", "-o", "out")
    assert done.code == 0
    scores = [int(row["score"]) for row in read_csv("out/persons.csv")]
    low = sum(s < 6 for s in scores)
    assert [int(row["n"]) for row in read_csv("out/cuts.csv")] == [low, 400 - low, 400]
    for options, words in (
        (["--cut", "9"], "the cut 9 is outside the scale"),
        (["--scale", "500,100", "--cut", "4500"], "the cut 4500 is outside the scale"),
        (["--cut", "raw:13"], "not a raw score from 1 to 12"),
        (["--cut", "a,b"], "--cut is 'a,b'; it is numbers"),
        (["--cut", "1", "--skip", "persons"], "leave out --skip persons"),
    ):
        refused = cli("fit", school, *options, "-o", "nothing")
        assert (refused.code, refused.out) == (2, ""), options
        assert words in " ".join(refused.err.split())
        assert not Path("nothing").exists()


def test_booklets_have_a_table_each_and_adaptive_tests_none(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    right = drawn(rng.normal(size=300), np.linspace(-2, 2, 16), rng)
    items = [f"q{k + 1:02}" for k in range(16)]
    booklets = right.copy()
    booklets[:150, 10:], booklets[150:, :6] = np.nan, np.nan
    done = cli("fit", table_of(tmp_path / "booklets.csv", booklets, items), "-o", "two", "--all", "--cut", "0.3")
    assert done.code == 0
    rows = read_csv("two/forms.csv")
    assert [row["item"] for row in rows if row["form"] == "form 1"] == items[:10]
    assert [row["item"] for row in rows if row["form"] == "form 2"] == items[6:]
    assert [row["n_items"] for row in read_csv("two/scores.csv")] == ["10"] * 22
    refused = cli("fit", tmp_path / "booklets.csv", "--cut", "raw:5")
    assert refused.code == 2
    assert "--cut instead of --cut raw:NUMBER" in " ".join(refused.err.split())

    right[rng.random(right.shape) < 0.5] = np.nan
    done = cli("fit", table_of(tmp_path / "own.csv", right, items), "-o", "none", "--cut", "0.3")
    assert done.code == 0
    assert not Path("none/scores.csv").exists()
    assert "There is no table from raw score to ability" in " ".join(done.out.split())
    assert 0.6 < float(read_csv("none/cuts.csv")[1]["accuracy"]) < 1
    assert "forms" not in cli("fit", tmp_path / "own.csv").out  # said only of what is written


def test_weights_anchors_and_populations(cli: Cli, school: Path, tmp_path: Path) -> None:
    plain = cli("fit", school, "--ignore", "sex", "-o", "plain")
    assert plain.code == 0
    assert cli("fit", school, "--ignore", "sex", "--anchors", "plain/items.csv", "-o", "anchored").code == 0
    for column in ("n", "percentile"):
        before, after = ([row[column] for row in read_csv(f"{at}/scores.csv")] for at in ("plain", "anchored"))
        assert before == after
    ability = [[float(row["ability"]) for row in read_csv(f"{at}/scores.csv")] for at in ("plain", "anchored")]
    np.testing.assert_allclose(*ability, atol=1e-6)
    weights = "student,weight\n" + "".join(f"s{k},{1 + k % 3}\n" for k in range(400))
    Path("weights.csv").write_text(weights)
    done = cli(
        "fit", school, "--ignore", "sex", "--survey-weight", "weight", "--group-file", "weights.csv", "-o", "weighted"
    )
    assert done.code == 0
    assert [row["n"] for row in read_csv("weighted/scores.csv")] == [row["n"] for row in read_csv("plain/scores.csv")]
    assert not Path("weighted/groups.csv").exists()
    done = cli("fit", school, "--estimator", "mml", "--population-by", "sex", "-o", "populations")
    assert done.code == 0
    groups = {row["group"]: row for row in read_csv("populations/groups.csv")}
    for found in json.loads(Path("populations/fit.json").read_text())["populations"]:
        if found["group"] in groups:
            mine = groups[found["group"]]
            assert float(mine["latent_mean"]) == pytest.approx(found["mean"], abs=0.02)
            assert float(mine["latent_sd"]) == pytest.approx(found["sd"], abs=0.05)


def test_two_banks_are_equated(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for name, items, mean in (("a", range(12), 0.0), ("b", range(6, 20), 0.5)):
        beta = np.linspace(-2, 2, 20)[list(items)]
        right = drawn(rng.normal(mean, 1, 500), beta, rng)
        path = table_of(tmp_path / f"{name}.csv", right, [f"q{k + 1}" for k in items])
        assert cli("fit", path, "--bank", name).code == 0
    done = cli("link", "a", "b", "--equate", "equating.csv", "--common-items", "common.parquet", "-o", "b_on_a")
    assert (done.code, done.err) == (0, "")
    rows = read_csv("equating.csv")
    expected = equate(load("a"), load("b"))
    assert [float(row["equated"]) for row in rows[:13]] == pytest.approx(expected.equated[0].tolist())
    assert [row["from"] for row in rows] == ["A"] * 13 + ["B"] * 15
    assert rows[0]["se"] == ""
    text = " ".join(done.out.split())
    assert f"6 of 12 on A is {expected.equated[0][6]:.1f} of 14 on B (se {expected.se[0][6]:.2f})" in text
    assert "Written: b_on_a, common.parquet and equating.csv." in text
    refused = cli("link", "a", "b", "--equate", "equating.txt")
    assert refused.code == 2
    assert "none of .csv, .parquet and .xlsx" in " ".join(refused.err.split())
