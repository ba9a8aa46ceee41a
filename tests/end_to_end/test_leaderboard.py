"""`spectral-irt leaderboard` from logs to files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import harness_logs as make
from spectral_irt.cli.main import main

pytestmark = pytest.mark.slow  # many short runs of whole jobs


def logs(folder: Path, n: int = 120) -> None:
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=n)
    subjects = [f"s{k % 3}" for k in range(n)]
    for k, ability in enumerate((-1.0, 0.0, 0.1, 1.5)):
        right = rng.random(n) < 1 / (1 + np.exp(difficulty - ability))
        make.lm_eval(folder, f"model_{k}|x", {"acc": right.astype(float).tolist()}, subjects=subjects)


def test_from_logs_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "logs")
    out = tmp_path / "board"
    assert main(["leaderboard", str(tmp_path / "logs"), "--subject", "subject", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "4 models, 120 prompts, 480 answers" in said
    assert {path.name for path in out.iterdir()} == {
        "models.csv",
        "contrasts.csv",
        "prompts.csv",
        "subjects.csv",
        "leaderboard.json",
        "leaderboard.md",
        "ranks.svg",
    }
    models = pl.read_csv(out / "models.csv")
    assert models["model"][0] == "model_3|x"
    assert "model\\_3\\|x" in (out / "leaderboard.md").read_text()
    record = json.loads((out / "leaderboard.json").read_text())
    assert record["counts"] == {"models": 4, "prompts": 120, "answers": 480, "tiers": record["counts"]["tiers"]}
    assert record["models"][0]["model"] == "model_3|x"
    assert main(["leaderboard", str(tmp_path / "logs"), "-o", str(out)]) == 0  # the tables by subject are stale now
    assert not (out / "subjects.csv").exists()


def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    logs(tmp_path / "logs", 30)
    places = ["-o", str(tmp_path / "board"), "--report", str(tmp_path / "board.txt")]
    assert main(["leaderboard", str(tmp_path / "logs"), *places]) == 2
    assert not (tmp_path / "board").exists()


def test_a_table_of_models_and_prompts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    rows = [(m, f"q{k}", int(rng.random() < 0.3 + 0.2 * m), f"t{k % 25}") for m in range(3) for k in range(100)]
    path = tmp_path / "answers.csv"
    pl.DataFrame(rows, schema=["model", "prompt", "correct", "topic"], orient="row").write_csv(path)
    assert main(["leaderboard", str(path), "--clustered-by", "topic"]) == 0
    assert "25 clusters (topic)" in " ".join(capsys.readouterr().out.split())
    assert main(["leaderboard", str(path), "--clustered-by", "theme"]) == 2
    assert "no column 'theme'" in capsys.readouterr().err


def test_errors_are_one_line_in_the_words_of_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make.lm_eval(tmp_path, "a", {"acc": [1.0], "acc_norm": [0.0]})
    assert main(["leaderboard", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    assert "--metric acc" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "models.csv").write_text("mine")
    logs(tmp_path / "logs")
    assert main(["leaderboard", str(tmp_path / "logs"), "-o", str(tmp_path / "taken")]) == 2
    assert (tmp_path / "taken" / "models.csv").read_text() == "mine"


def test_one_page_without_network_whose_labels_are_text(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    names = ["<script>alert(1)</script>", "=1+1", "plain"]
    for name, ability in zip(("a", "b", "c"), (-0.5, 0.0, 0.8), strict=True):
        right = rng.random(80) < 1 / (1 + np.exp(-ability))
        path = make.lm_eval(tmp_path / "logs", name, {"acc": right.astype(float).tolist()})
        (path.parent / f"results_{make.DATE}.json").write_text(json.dumps({"model_name": names["abc".index(name)]}))
    page = tmp_path / "board.html"
    assert main(["leaderboard", str(tmp_path / "logs"), "-o", str(page)]) == 0
    assert main(["leaderboard", str(tmp_path / "logs"), "-o", str(page), "--report", str(page)]) == 2
    text = page.read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    for title in ("Models", "How sure the ranks are", "Pairs of models", "Prompts"):
        assert f">{title}</h2>" in text
    page.write_text("mine")
    assert main(["leaderboard", str(tmp_path / "logs"), "--report", str(page)]) == 2
    assert page.read_text() == "mine"
