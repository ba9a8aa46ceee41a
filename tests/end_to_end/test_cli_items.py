"""Which columns the command takes for items, and how that is said."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """A wide table with attributes of the people, all of them 0 or 1, before and after the answers."""
    rng = np.random.default_rng(3)
    answers = rng.random((120, 5)) < 1 / (1 + np.exp(np.linspace(-1, 1, 5) - rng.normal(size=(120, 1))))
    path = tmp_path / "school.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["pupil", "gender", *(f"q{k}" for k in range(1, 6)), "class"])
        for k, row in enumerate(answers.astype(int)):
            out.writerow([f"p{k}", rng.integers(2), *row, rng.integers(2)])
    return path


def items_of(folder: Path) -> list[str]:
    with (folder / "items.csv").open(newline="") as file:
        return [row["item"] for row in csv.DictReader(file)]


def one_line(text: str) -> str:
    return " ".join(text.split())


ITEMS = ["q1", "q2", "q3", "q4", "q5"]


def test_attributes_are_named_and_left_out(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    done = cli("fit", school, "-o", "out")
    assert done.code == 0, done.err
    assert items_of(tmp_path / "out") == ITEMS
    said = one_line(done.out)
    assert "Items: 5 columns 'q1', 'q2', 'q3', 'q4', 'q5'." in said
    assert "warning Left out of the items: 2 columns 'gender', 'class'" in said
    assert "--items 'q*,gender'" in said
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    found = {finding["code"]: finding["items"] for finding in record["findings"]}
    assert found["items_taken"] == ITEMS
    assert found["attribute_columns"] == ["gender", "class"]


def test_items_as_said(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    assert cli("fit", school, "--items", "q1,q2", "--items", "g*", "-o", "out").code == 0
    assert items_of(tmp_path / "out") == ["gender", "q1", "q2"]
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert record["input"]["reading"] == {"items": ["q1,q2", "g*"]}
    done = cli("fit", school, "--items", "x*")
    assert done.code == 2
    assert "no column 'x*' for --items" in done.err
    assert "--items 'q*'" in done.err


def test_columns_to_ignore(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    for said in (["--ignore", "q4,q5,gender"], ["--ignore", "q4", "--ignore", "q5,gender"]):
        assert cli("fit", school, *said, "-o", "out").code == 0
        assert items_of(tmp_path / "out") == ["q1", "q2", "q3"]


def test_a_group_is_not_an_item_and_needs_no_warning(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    done = cli("fit", school, "--group", "gender", "--ignore", "class", "-o", "out")
    assert done.code == 0, done.err
    assert items_of(tmp_path / "out") == ITEMS
    assert "Left out of the items" not in done.out


def test_columns_beside_the_key(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    (tmp_path / "key.csv").write_text("item,key\n" + "".join(f"{item},1\n" for item in ITEMS[:4]))
    done = cli("fit", school, "--key", "key.csv", "-o", "out")
    assert done.code == 0, done.err
    assert items_of(tmp_path / "out") == ITEMS[:4]
    assert "3 columns 'gender', 'q5', 'class'" in one_line(done.out)


def test_every_command_that_reads_says_so(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    assert cli("fit", school, "--bank", "bank").code == 0
    head, *rows = school.read_text().splitlines()
    (tmp_path / "more.csv").write_text("\n".join([head, *("x" + row for row in rows[20:])]) + "\n")
    for command in (
        ["check", school],
        ["score", school, "--bank", "bank"],
        ["compare", school, "--estimators", "spectral"],
        ["update", "bank", "more.csv"],
    ):
        done = cli(*command)
        assert done.code == 0, done.err
        assert "Left out of the items: 2 columns 'gender', 'class'" in one_line(done.out), command
    assert cli("score", school, "--bank", "bank", "-o", "scored").code == 0
    record = json.loads((tmp_path / "scored" / "score.json").read_text())
    assert {"items_taken", "attribute_columns"} <= {finding["code"] for finding in record["findings"]}


def test_nobody(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("person,item,response\nNA,q1,1\nann,q1,0\nNA,q2,1\nann,q2,1\n")
    done = cli("fit", "a.csv")
    assert done.code == 2
    assert "column 'person' names the people, and rows 1, 3 have no name there" in done.err


def test_groups_by_labels_of_another_kind(cli: Callable[..., Any], school: Path, tmp_path: Path) -> None:
    """People are numbers in one file and text in the other, because one of them there has a name."""
    rows = school.read_text().splitlines()
    numbered = [rows[0], *(line[1:] for line in rows[1:])]
    (tmp_path / "numbered.csv").write_text("\n".join(numbered) + "\n")
    people = ["pupil,band", "teacher,z", *(f"{k},{'xy'[k % 2]}" for k in range(120))]
    (tmp_path / "people.csv").write_text("\n".join(people) + "\n")
    done = cli("fit", "numbered.csv", "--group-file", "people.csv", "-o", "out")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert record["dif"]["groups"] == {"x": 60, "y": 60}
