"""The command on statistics that went wrong unseen: several groupings, what is said of groups, huge numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from end_to_end.tables import read_csv
from spectral_irt import SpectralRasch, simulate

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each

Cli = Callable[..., Any]


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """900 students of two sexes and three towns, in a crossed design; q3 is harder for boys, q6 in the last town."""
    rng = np.random.default_rng(3)
    n, m = 900, 8
    sex, town = rng.integers(0, 2, n), rng.integers(0, 3, n)
    difficulty = np.tile(np.linspace(-1.5, 1.5, m), (n, 1))
    difficulty[:, 2] += 1.2 * sex
    difficulty[:, 5] += 1.4 * (town == 2)
    right = rng.random((n, m)) < 1 / (1 + np.exp(difficulty - rng.normal(0, 1, n)[:, None]))
    path = tmp_path / "school.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "sex", "town", *(f"q{k + 1}" for k in range(m))])
        rows = right.astype(int).tolist()
        writer.writerows([f"s{k}", "fm"[sex[k]], 10 + int(town[k]), *row] for k, row in enumerate(rows))
    return path


def test_several_groupings_are_all_compared(cli: Cli, school: Path) -> None:
    done = cli("fit", school, "--group", "sex", "--group", "town", "-o", "both")
    assert (done.code, done.err) == (0, "")
    rows = read_csv("both/dif.csv")
    assert list(rows[0])[:4] == ["grouping", "item", "group", "reference"]
    assert [(row["grouping"], row["group"]) for row in rows[::8]] == [("sex", "m"), ("town", "11"), ("town", "12")]
    flagged = {(row["grouping"], row["group"], row["item"]) for row in rows if row["flagged"] == "true"}
    assert {("sex", "m", "q3"), ("town", "12", "q6")} <= flagged
    text = " ".join(done.out.split())
    assert "sex: DIF in 1 of 8 items between the groups 'f', 'm': 'q3' is harder for 'm' by 1." in text
    assert "town: DIF in 1 of 8 items between the groups '10', '11', '12': 'q6' is harder for '12'" in text
    found = json.loads(Path("both/fit.json").read_text())
    assert [one["column"] for one in found["dif"]] == ["sex", "town"]
    assert len(read_csv("both/items.csv")) == 8  # neither column is an item

    for column, other in (("sex", "town"), ("town", "sex")):
        assert cli("fit", school, "--group", column, "--ignore", other, "-o", column).code == 0
        assert read_csv(f"{column}/dif.csv") == [row for row in rows if row["grouping"] == column]
        assert json.loads(Path(column, "fit.json").read_text())["dif"]["column"] == column


def test_several_groupings_of_a_table_of_people(cli: Cli, school: Path) -> None:
    rows = list(csv.reader(school.open(newline="")))
    for name, columns in (("people.csv", slice(1, 3)), ("answers.csv", slice(3, None))):
        with Path(name).open("w", newline="") as file:
            csv.writer(file).writerows([row[0], *row[columns]] for row in rows)
    done = cli("fit", "answers.csv", "--group-file", "people.csv", "--group", "town", "--group", "sex", "-o", "out")
    assert (done.code, done.err) == (0, "")
    assert [row["grouping"] for row in read_csv("out/dif.csv")] == ["town"] * 16 + ["sex"] * 8


def test_the_papers_estimator_prints_no_error_for_an_item_everyone_got_right(cli: Cli) -> None:
    table = simulate.rasch(200, 6, seed=2).responses.to_dense().astype(int)
    table[:, 0] = 1
    np.savetxt("easy.csv", table, fmt="%d", delimiter=",", header="a,b,c,d,e,f", comments="")
    done = cli("fit", "easy.csv", "--estimator", "paper", "-o", "out")
    assert done.code == 0
    first, *others = read_csv("out/items.csv")
    assert (first["status"], first["se"], first["ci_low"]) == ("all right", "", "")
    assert first["difficulty"] == repr(float(SpectralRasch.paper().fit(table).difficulty_[0]))
    assert all(float(row["se"]) > 0 for row in others)
