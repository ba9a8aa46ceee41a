"""People scored by a bank through the command line."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import column, contents, form, numbers, read_csv, record
from spectral_irt import Analysis
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank import Bank
from spectral_irt.reading import read

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_new_people_are_scored(cli, bank, method):
    form("new.csv", 3, persons=50)
    said = cli.ok(f"score new.csv --bank bank -o scores.csv --ability {method}")
    rows = read_csv("scores.csv")
    people = Bank.load(bank).population
    prior = (people.mean, people.sd) if method == "eap" else None
    study = Analysis(Bank.load(bank).calibration, read("new.csv"), population=prior)
    expected = columns_of(study.persons, method)
    assert list(rows[0]) == list(expected)
    for name in ("ability", "se"):
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    assert "bank: 10 items, calibrated with 400 people" in said
    assert "Written: scores.csv." in said
    assert [said.count(word) for word in ("ablest", "least able", "largest outfit")] == [1, 1, 1]


def test_a_directory_gets_a_record_too(cli, bank):
    form("new.csv", 3, persons=50)
    cli.ok("score new.csv --bank bank -o out")
    assert sorted(os.listdir("out")) == ["persons.csv", "score.json"]
    found = record("out", "score.json")
    assert found["bank"] == {"folder": "bank", "items": 10, "persons": 400}
    assert found["counts"]["persons"] == 50
    assert found["reliability"]["method"] == "wle"
    cli.ok("score new.csv --bank bank -o out --ability ml")  # replaced
    cli.ok("score new.csv --bank bank -o scores.parquet")
    assert pl.read_parquet("scores.parquet").height == 50
    assert "Nothing was saved" in cli.ok("score new.csv --bank bank")
    cli.ok("fit old.csv -o fitted")
    cli.refused("score new.csv --bank bank -o fitted", "'persons.csv'", "choose another directory")
    cli.refused("score new.csv --bank bank -o new.csv", "being read")


def test_one_person_is_enough_and_somebody_without_answers_is_kept(cli, bank):
    Path("one.csv").write_text("person,q0,q1,q2\nann,1,1,0\nbob,,,\n")
    said = cli.ok("score one.csv --bank bank -o s.csv")
    ann, bob = read_csv("s.csv")
    assert (ann["n"], ann["score"], bob["n"], bob["ability"]) == ("3", "2", "0", "")
    assert "1 person has no answer that counts: 'bob'" in said
    Path("none.csv").write_text("person,q0,q1\nann,,\n")
    cli.refused("score none.csv --bank bank", "none.csv: there is no answer in it")


def test_items_that_the_bank_does_not_have(cli, bank):
    form("new.csv", 3, items=13)
    before = contents(bank)
    unknown = "3 items are not in the calibration: 'q10', 'q11', 'q12'"
    cli.refused("score new.csv --bank bank -o out", unknown, "--ignore-unknown")
    said = cli.ok("score new.csv --bank bank -o out --ignore-unknown")
    assert "3 items are not in the bank, and the answers to them do not count" in said
    assert set(column("out/persons.csv", "n")) == {"10"}
    form("foreign.csv", 3, items=3, first=15)
    cli.refused("score foreign.csv --bank bank --ignore-unknown", "none of its 3 items", "Check the labels")
    assert contents(bank) == before


def test_items_without_a_difficulty_do_not_count(cli):
    pl.read_csv(form("old.csv", 1)).with_columns(q9=pl.lit(None, dtype=pl.Int64)).write_csv("old.csv")
    cli.ok("fit old.csv --bank bank")
    form("new.csv", 3)
    assert "1 item has no difficulty in the bank" in cli.ok("score new.csv --bank bank -o s.csv")
    assert set(column("s.csv", "n")) == {"9"}
    Path("bare.csv").write_text("person,q9\nann,1\n")
    cli.refused("score bare.csv --bank bank", "none of the items answered has a difficulty")
    cli.refused("score new.csv --bank bank --largest-component", "is for a calibration")


def test_one_person_under_the_population_of_the_bank(cli, bank):
    Path("one.csv").write_text("person," + ",".join(f"q{k}" for k in range(8)) + "\nann,1,1,1,1,1,1,0,0\n")
    assert "estimated from 400 people" in cli.ok("score one.csv --bank bank --ability eap -o out")
    (ann,) = read_csv("out/persons.csv")
    assert 0.5 < float(ann["se"]) < 0.9
    assert record("out", "score.json")["population"]["persons"] == 400
    cli.ok("score one.csv --bank bank --ability eap -o s.csv --population -1,0.5")
    assert numbers("s.csv", "ability")[0] < float(ann["ability"])
    for wrong in ("1", "0,0", "a,b", "nan,1", "0,inf"):
        cli.refused(f"score one.csv --bank bank --ability eap --population {wrong}", "--population 0.5,1.2")
    cli.refused("score one.csv --bank bank --population 0,1", "--ability eap")
    pl.read_csv("old.csv").head(20).write_csv("few.csv")
    cli.ok("fit few.csv --bank few")  # too few for a population
    cli.refused("score one.csv --bank few --ability eap", "1 person", "--population", "--ability wle")


def test_people_on_two_scales_are_not_ranked_together(cli):
    tables = [pl.read_csv(form("a.csv", 1, items=6)), pl.read_csv(form("b.csv", 2, items=4, first=10))]
    both = pl.concat(tables, how="diagonal")
    both.write_csv("both.csv")
    cli.ok("fit both.csv --bank bank")
    some = ["a1", "a2", "a3", "b1", "b2"]
    both.filter(pl.col("person").is_in(some)).write_csv("some.csv")
    said = cli.ok("score some.csv --bank bank -o s.csv")
    assert column("s.csv", "scale") == ["1", "1", "1", "2", "2"]
    assert "on 2 scales that no answers link" in said
    order = [word[0] for word in said.split() if word in some]
    assert order == ["a", "a", "a", "b", "b"]  # one after the other, each under its heading
    assert "scale 1" in said
    assert "scale 2" in said
