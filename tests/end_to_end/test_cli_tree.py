"""`fit --dif-tree`: groups that are found along columns about persons, from option to files and report."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import column


@pytest.fixture
def answers():
    rng = np.random.default_rng(7)
    n = 1_500
    sex = rng.choice(np.array(["f", "m"]), n)
    beta = np.tile(np.linspace(-1, 1, 6), (n, 1))
    beta[sex == "f", 2] += 1.2
    right = (rng.random((n, 6)) < 1 / (1 + np.exp(beta - rng.normal(size=n)[:, None]))).astype(int)
    frame = pl.DataFrame({f"q{k}": right[:, k] for k in range(6)})
    grade = rng.choice(np.array(["low", "mid", "high"]), n)
    frame = frame.with_columns(sex=sex, age=rng.integers(18, 90, n), grade=grade, one=pl.lit("x"))
    frame.write_csv("answers.csv")


def test_files_terminal_and_report_have_the_tree(cli, answers):
    shown = cli.ok(
        "fit answers.csv --dif-tree 'age,sex,grade:low<mid<high' -o out --report report.html --plots pictures"
    )
    assert "DIF tree 2 groups by age, sex and grade: sex = f; sex = m." in shown
    assert "'q2' is harder by" in shown
    assert column("out/dif_tree.csv", "group") == ["all persons", "sex = f", "sex = m"]
    assert column("out/dif_tree.csv", "items")[0] == "q2"
    assert len(column("out/dif_tree_items.csv", "item")) == 6
    record = json.loads(Path("out/fit.json").read_text())
    assert record["dif_tree"]["columns"] == ["age", "sex", "grade"]
    page = Path("report.html").read_text()
    assert "Groups for whom items work differently" in page
    assert "Strobl, C." in page
    assert Path("pictures/dif_tree.svg").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--dif-tree one", "the column 'one' has a single value"),
        ("--dif-tree shoes", "shoes"),
        ("--dif-tree sex --dif-size D", "--dif-size is 'D'"),
        ("--dif-size C", "--dif-size goes with --dif-tree"),
        ("--dif-tree 'grade:low<high'", "lacks 'mid'"),
        ("--dif-tree sex --design adaptive", "these answers chose the items"),
    ],
)
def test_what_does_not_go_together_is_refused(cli, answers, options, message):
    cli.refused(f"fit answers.csv {options} -o out", message)
