"""`spectral-irt leaderboard` from logs to files."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import harness_logs as make
from end_to_end.tables import record

pytestmark = pytest.mark.slow  # many short runs of whole jobs


def logs(n=120, names=("model_0|x", "model_1|x", "model_2|x", "model_3|x")):
    """A folder `logs` of models from the worst to the best."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=n)
    subjects = [f"s{k % 3}" for k in range(n)]
    for k, (name, ability) in enumerate(zip(names, (-1.0, 0.0, 0.1, 1.5), strict=False)):
        right = (rng.random(n) < 1 / (1 + np.exp(difficulty - ability))).astype(float).tolist()
        path = make.lm_eval(Path("logs"), f"m{k}", {"acc": right}, subjects=subjects)
        (path.parent / f"results_{make.DATE}.json").write_text(json.dumps({"model_name": name}))


def test_from_logs_to_files(cli):
    logs()
    assert "4 models, 120 prompts, 480 answers" in cli.ok("leaderboard logs --subject subject -o board")
    tables = {"models.csv", "contrasts.csv", "prompts.csv", "subjects.csv"}
    assert set(os.listdir("board")) == {*tables, "leaderboard.json", "leaderboard.md", "ranks.svg"}
    assert pl.read_csv("board/models.csv")["model"][0] == "model_3|x"
    assert "model\\_3\\|x" in Path("board/leaderboard.md").read_text()
    found = record("board", "leaderboard.json")
    assert found["counts"] == {"models": 4, "prompts": 120, "answers": 480, "tiers": found["counts"]["tiers"]}
    assert found["models"][0]["model"] == "model_3|x"
    cli.ok("leaderboard logs -o board")  # the tables by subject are stale now
    assert not Path("board/subjects.csv").exists()


def test_a_table_of_models_and_prompts(cli):
    rng = np.random.default_rng(1)
    rows = [(m, f"q{k}", int(rng.random() < 0.3 + 0.2 * m), f"t{k % 25}") for m in range(3) for k in range(100)]
    pl.DataFrame(rows, schema=["model", "prompt", "correct", "topic"], orient="row").write_csv("answers.csv")
    assert "25 clusters (topic)" in cli.ok("leaderboard answers.csv --clustered-by topic")
    cli.refused("leaderboard answers.csv --clustered-by theme", "no column 'theme'")


def test_refusals_are_one_line_in_the_words_of_the_shell_and_write_nothing(cli):
    make.lm_eval(Path("two"), "a", {"acc": [1.0], "acc_norm": [0.0]})
    cli.refused("leaderboard two -o out", "--metric acc")
    logs(30)
    cli.refused("leaderboard logs -o board --report board.txt", "board.txt")
    for name in ("taken/models.csv", "taken/page.html"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("mine")
    cli.refused("leaderboard logs -o taken", "'models.csv'")
    cli.refused("leaderboard logs --report taken/page.html", "page.html")
    cli.refused("leaderboard logs -o page.html --report page.html", "page.html")


def test_one_page_without_network_whose_labels_are_text(cli):
    logs(80, ["<script>alert(1)</script>", "=1+1", "plain"])
    cli.ok("leaderboard logs -o board.html")
    text = Path("board.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    for title in ("Models", "How sure the ranks are", "Pairs of models", "Prompts"):
        assert f">{title}</h2>" in text
