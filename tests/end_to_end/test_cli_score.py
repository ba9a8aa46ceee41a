"""People scored by a bank through the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from end_to_end.banks import contents, refused, write
from end_to_end.tables import numbers, read_csv
from spectral_irt import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank import Bank
from spectral_irt.reading import read

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_new_people_are_scored(cli: Cli, bank: Path, method: str) -> None:
    write("new.csv", 3, persons=50)
    done = cli("score", "new.csv", "--bank", bank, "-o", "scores.csv", "--ability", method)
    assert (done.code, done.err) == (0, "")
    rows = read_csv("scores.csv")
    people = Bank.load(bank).population
    assert people is not None
    prior = (people.mean, people.sd) if method == "eap" else None
    study = Analysis(Bank.load(bank).calibration, read("new.csv"), population=prior)
    expected = columns_of(study.persons, method)
    assert list(rows[0]) == list(expected)
    np.testing.assert_array_equal(numbers(rows, "ability"), expected["ability"])
    np.testing.assert_array_equal(numbers(rows, "se"), expected["se"])
    assert "bank: 10 items, calibrated with 400 people" in " ".join(done.out.split())
    assert "Written: scores.csv." in done.out
    assert [done.out.count(word) for word in ("ablest", "least able", "largest outfit")] == [1, 1, 1]


def test_a_directory_gets_a_record_too(cli: Cli, bank: Path) -> None:
    write("new.csv", 3, persons=50)
    assert cli("score", "new.csv", "--bank", bank, "-o", "out").code == 0
    assert sorted(os.listdir("out")) == ["persons.csv", "score.json"]
    record = json.loads(Path("out/score.json").read_text())
    assert record["bank"] == {"folder": "bank", "items": 10, "persons": 400}
    assert record["counts"]["persons"] == 50
    assert record["reliability"]["method"] == "wle"
    assert cli("score", "new.csv", "--bank", bank, "-o", "out", "--ability", "ml").code == 0  # replaced
    assert cli("score", "new.csv", "--bank", bank, "-o", "scores.parquet").code == 0
    assert pl.read_parquet("scores.parquet").height == 50
    assert "Nothing was saved" in cli("score", "new.csv", "--bank", bank).out
    cli("fit", "old.csv", "-o", "fitted")
    refused(cli("score", "new.csv", "--bank", bank, "-o", "fitted"), "'persons.csv'", "choose another directory")
    refused(cli("score", "new.csv", "--bank", bank, "-o", "new.csv"), "being read")


def test_one_person_is_enough_and_somebody_without_answers_is_kept(cli: Cli, bank: Path) -> None:
    Path("one.csv").write_text("person,q0,q1,q2\nann,1,1,0\nbob,,,\n")
    done = cli("score", "one.csv", "--bank", bank, "-o", "one-scored.csv")
    assert done.code == 0
    ann, bob = read_csv("one-scored.csv")
    assert (ann["n"], ann["score"], bob["n"], bob["ability"]) == ("3", "2", "0", "")
    assert "1 person has no answer that counts: 'bob'" in " ".join(done.out.split())
    Path("none.csv").write_text("person,q0,q1\nann,,\n")
    refused(cli("score", "none.csv", "--bank", bank), "none.csv: there is no answer in it")


def test_items_that_the_bank_does_not_have(cli: Cli, bank: Path) -> None:
    write("new.csv", 3, items=13)
    before = contents(bank)
    refused(
        cli("score", "new.csv", "--bank", bank, "-o", "out"),
        "3 items are not in the calibration: 'q10', 'q11', 'q12'",
        "--ignore-unknown",
    )
    assert not Path("out").exists()
    done = cli("score", "new.csv", "--bank", bank, "-o", "out", "--ignore-unknown")
    assert done.code == 0
    assert "3 items are not in the bank, and the answers to them do not count" in " ".join(done.out.split())
    assert {row["n"] for row in read_csv("out/persons.csv")} == {"10"}
    write("foreign.csv", 3, items=3, first=15)
    refused(cli("score", "foreign.csv", "--bank", bank, "--ignore-unknown"), "none of its 3 items", "Check the labels")
    assert contents(bank) == before


def test_items_without_a_difficulty_do_not_count(cli: Cli) -> None:
    table = pl.read_csv(write("old.csv", 1)).with_columns(q9=pl.lit(None, dtype=pl.Int64))
    table.write_csv("old.csv")
    cli("fit", "old.csv", "--bank", "bank")
    write("new.csv", 3)
    done = cli("score", "new.csv", "--bank", "bank", "-o", "s.csv")
    assert done.code == 0
    assert "1 item has no difficulty in the bank" in " ".join(done.out.split())
    assert {row["n"] for row in read_csv("s.csv")} == {"9"}
    Path("bare.csv").write_text("person,q9\nann,1\n")
    refused(cli("score", "bare.csv", "--bank", "bank"), "none of the items answered has a difficulty")
    refused(cli("score", "new.csv", "--bank", "bank", "--largest-component"), "is for a calibration")


def test_one_person_under_the_population_of_the_bank(cli: Cli, bank: Path) -> None:
    Path("one.csv").write_text("person," + ",".join(f"q{k}" for k in range(8)) + "\nann,1,1,1,1,1,1,0,0\n")
    done = cli("score", "one.csv", "--bank", bank, "--ability", "eap", "-o", "out")
    assert (done.code, done.err) == (0, "")
    (ann,) = read_csv("out/persons.csv")
    assert 0.5 < float(ann["se"]) < 0.9
    record = json.loads(Path("out/score.json").read_text())
    assert record["population"]["persons"] == 400
    assert "estimated from 400 people" in " ".join(done.out.split())
    done = cli("score", "one.csv", "--bank", bank, "--ability", "eap", "-o", "s.csv", "--population", "-1,0.5")
    assert float(read_csv("s.csv")[0]["ability"]) < float(ann["ability"])
    for wrong in ("1", "0,0", "a,b", "nan,1", "0,inf"):
        refused(
            cli("score", "one.csv", "--bank", bank, "--ability", "eap", "--population", wrong), "--population 0.5,1.2"
        )
    refused(cli("score", "one.csv", "--bank", bank, "--population", "0,1"), "--ability eap")
    table = pl.read_csv("old.csv").head(20)
    table.write_csv("few.csv")
    assert cli("fit", "few.csv", "--bank", "few").code == 0  # too few for a population
    refused(cli("score", "one.csv", "--bank", "few", "--ability", "eap"), "1 person", "--population", "--ability wle")


def test_people_on_two_scales_are_not_ranked_together(cli: Cli) -> None:
    one, two = pl.read_csv(write("a.csv", 1, items=6)), pl.read_csv(write("b.csv", 2, items=4, first=10))
    both = pl.concat([one, two], how="diagonal")
    both.write_csv("both.csv")
    assert cli("fit", "both.csv", "--bank", "bank").code == 0
    both.filter(pl.col("person").is_in(["a1", "a2", "a3", "b1", "b2"])).write_csv("some.csv")
    done = cli("score", "some.csv", "--bank", "bank", "-o", "s.csv")
    assert done.code == 0
    assert [row["scale"] for row in read_csv("s.csv")] == ["1", "1", "1", "2", "2"]
    text = " ".join(done.out.split())
    assert "on 2 scales that no answers link" in text
    people = [
        line
        for line in done.out.splitlines()
        if line.split() and any(n in line.split() for n in ("a1", "a2", "a3", "b1", "b2"))
    ]
    order = [next(word for word in line.split() if word[0] in "ab" and word[1:].isdigit())[0] for line in people]
    assert order == ["a", "a", "a", "b", "b"]  # one after the other, each under its heading
    assert "scale 1" in done.out
    assert "scale 2" in done.out
