"""From a file of answers to items.csv and fit.json, through the command line."""

import hashlib
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import spectral_irt
from end_to_end.tables import WRITTEN, column, numbers, read_csv, record, wide
from spectral_irt import Finding, SpectralRasch, datasets, simulate
from spectral_irt.analysis.folder import NAMED_ITEMS, finding_record

pytestmark = pytest.mark.slow  # whole runs of commands

HEADER = ["item", "difficulty", "se", "ci_low", "ci_high", "n", "n_correct", "p_correct", "status"]


def test_items_csv_holds_every_digit_of_the_estimate(cli, lsat):
    cli.ok("fit lsat.csv -o out")
    rows = read_csv("out/items.csv")
    assert list(rows[0])[: len(HEADER)] == HEADER
    columns = SpectralRasch().fit(datasets.load_lsat()).item_columns()
    for name in HEADER:
        kind = float if columns[name].dtype.kind == "f" else str
        assert [kind(row[name]) for row in rows] == [kind(value) for value in columns[name].tolist()]


def test_fit_json_says_what_was_done(cli, lsat):
    cli.ok(f"fit {lsat} -o out --chain-weights persons --threads 1")
    found = record()
    assert found["program"] == "spectral-irt"
    assert found["versions"]["spectral_irt"] == spectral_irt.__version__
    assert set(found["versions"]) == {"spectral_irt", "python", "numpy", "scipy", "polars"}
    assert found["estimator"] == "spectral"
    assert found["settings"]["weighting"] == "persons"
    assert found["settings"]["threads"] == 1
    digests = {str(lsat): "sha256:" + hashlib.sha256(lsat.read_bytes()).hexdigest()}
    assert found["input"] == {"source": "lsat.csv", "files": [str(lsat)], "digests": digests, "reading": {}}
    counts = {"persons": 1000, "items": 5, "responses": 5000, "thresholds": 5, "right": 3819}
    for name in ("repeats_left_out", "columns_left_out", "counted_as_wrong", "items_anchored"):
        counts[name] = 0
    assert found["counts"] == {**counts, "items_with_estimate": 5}
    assert found["data_digest"] == datasets.load_lsat().digest()
    assert found["iterations"] >= 1
    assert found["residual"] < 1e-10
    assert 0 < found["contraction"] < 1
    assert found["regularization"]["kind"] == "none"
    assert "information" in found["regularization"]["reason"]
    assert found["se_method"] == "dense"
    assert {finding["code"] for finding in found["findings"]} >= {"silent_persons", "regularization"}
    assert all(
        set(f) == {"code", "severity", "sentence", "remedy", "option", "n_items", "items"} for f in found["findings"]
    )
    assert set(found["seconds"]) == {"read", "fit", "analysis", "total"}
    assert found["outputs"] == WRITTEN


def test_items_without_an_estimate_have_empty_cells(cli):
    Path("a.csv").write_text("u,q1,q2,q3,q4\na,1,0,1,\nb,0,1,1,\nc,1,0,0,\nd,0,1,0,\n")
    cli.ok("fit a.csv -o out --parquet")
    cells = list(read_csv("out/items.csv")[3].values())
    assert cells[:9] == ["q4", "", "", "", "", "0", "0", "", "no responses"]
    assert not any(cells[9:])
    assert pl.read_parquet("out/items.parquet").row(3)[1:5] == (None, None, None, None)
    assert record()["counts"]["items_with_estimate"] == 3


def test_long_lists_of_items_are_cut_in_the_record():
    found = finding_record(Finding("extreme_items", "warning", "Many.", items=tuple(range(NAMED_ITEMS + 5))))
    assert found["n_items"] == NAMED_ITEMS + 5
    assert found["items"] == list(range(NAMED_ITEMS))


def test_a_second_fit_replaces_the_first_and_nothing_else(cli, lsat):
    cli.ok("fit lsat.csv -o out --parquet")
    Path("out/notes.txt").write_text("mine")
    before = Path("out/items.csv").read_bytes()
    cli.ok("fit lsat.csv -o out --chain-weights pairs")
    assert Path("out/items.csv").read_bytes() != before
    assert sorted(os.listdir("out")) == sorted([*WRITTEN, "notes.txt"])  # the old Parquet files are stale
    cli.ok("fit lsat.csv -o out --skip persons,fit")
    assert sorted(os.listdir("out")) == ["fit.json", "items.csv", "notes.txt"]


def test_several_files_are_one_table(cli, lsat):
    header, *lines = lsat.read_text().splitlines()
    Path("part1.csv").write_text("\n".join([header, *lines[:400]]))
    Path("part2.csv").write_text("\n".join([header, *lines[400:]]))
    cli.ok("fit lsat.csv -o whole")
    for files in ("part1.csv part2.csv", "'part*.csv'"):
        cli.ok(f"fit {files} -o parts")
        assert Path("parts/items.csv").read_bytes() == Path("whole/items.csv").read_bytes()


def test_the_same_fit_gives_the_same_bytes(cli):
    person, item, right = simulate.rasch(300, 40, design="sampled", p=0.3, seed=1).responses.answers()
    pl.DataFrame({"person": person, "item": item, "response": right.astype(int)}).write_parquet("a.parquet")
    for threads in (1, 2):
        cli.ok(f"fit a.parquet -o {threads} --threads {threads}")
    assert Path("1/items.csv").read_bytes() == Path("2/items.csv").read_bytes()


def test_scoring_by_key_and_threshold(cli):
    Path("choices.csv").write_text("who,q1,q2,q3\na,A,B,9\nb,A,C,A\nc,B,B,C\nd,C,C,A\ne,B,B,A\n")
    Path("key.csv").write_text("item,key\nq1,A\nq2,B\nq3,C\n")
    cli.ok("fit choices.csv --person who --key key.csv --missing 9 -o out")
    assert (column("out/items.csv", "n"), column("out/items.csv", "n_correct")) == (["5", "5", "4"], ["2", "3", "1"])
    assert record()["input"]["reading"] == {"person": "who", "key": "key.csv", "missing": ["9"]}
    cli.ok("fit choices.csv --correct A --correct B --missing 9 -o out")
    assert column("out/items.csv", "n_correct") == ["4", "3", "3"]
    rows = "".join(f"u{k},m{k * j % 4},{j}\n" for k in (1, 3) for j in range(4))
    Path("ratings.csv").write_text("person,movie,rating\n" + rows)
    for threshold in ("0", "1.5"):
        cli.ok(f"fit ratings.csv --threshold {threshold} -o {threshold}")
    assert (record("0")["model"], record("0")["input"]["reading"]) == ("rasch", {"threshold": 0})
    assert sum(numbers("1.5/items.csv", "n_correct")) == 4


def test_missing_codes_that_look_like_options(cli):
    Path("a.csv").write_text("u,q1,q2\na,1,0\nb,0,1\nc,-1,.\nd,1,-99\n")
    cli.ok("fit a.csv --missing -1 --missing . --missing -99 -o out")
    assert column("out/items.csv", "n") == ["3", "2"]


def test_duplicates_orientation_and_column_names(cli):
    Path("long.csv").write_text("who,what,mark\na,x,1\na,x,0\na,y,0\nb,x,0\nb,y,1\nc,x,1\nc,y,0\n")
    for kept, right in (("first", ["2", "1"]), ("last", ["1", "1"])):
        cli.ok(f"fit long.csv --person who --item what --response mark --duplicates {kept} -o out")
        assert column("out/items.csv", "n_correct") == right
    Path("turned.csv").write_text("item,ann,bob,eve\nq1,1,0,1\nq2,0,1,1\n")
    cli.ok("fit turned.csv --layout items-in-rows -o turned")
    assert [(row["n"], row["n_correct"]) for row in read_csv("turned/items.csv")] == [("3", "2"), ("3", "2")]


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ("--estimator paper", SpectralRasch.paper()),
        ("--estimator paper --set nu_rule=together", SpectralRasch.paper(nu_rule="together")),
        ("--estimator paper --set nu=0.5 --set nu_rule=together", SpectralRasch.paper(nu=0.5, nu_rule="together")),
        ("--chain-weights pairs --set se=none", SpectralRasch(weighting="pairs", se="none")),
        ("--set regularization=2.5", SpectralRasch(regularization=2.5)),
        ("--set regularization=0", SpectralRasch(regularization=0.0)),
        ("--set regularization=auto --set max_iter=50", SpectralRasch(max_iter=50)),
    ],
)
def test_options_reach_the_estimator(cli, lsat, options, estimator):
    cli.ok(f"fit lsat.csv -o out {options}")
    assert numbers("out/items.csv", "difficulty") == estimator.fit(datasets.load_lsat()).difficulty_.tolist()
    assert record()["settings"] == estimator.get_params()


def test_the_largest_component_alone(cli):
    rows = "a,q1,1\na,q2,0\nb,q2,1\nb,q1,0\na,q3,1\nb,q3,0\nc,x1,1\nc,x2,0\nd,x1,0\nd,x2,1\n"
    Path("a.csv").write_text(f"person,item,response\n{rows}")
    cli.refused("fit a.csv --set regularization=0", "--largest-component")
    cli.ok("fit a.csv --set regularization=0 --largest-component -o out")
    assert column("out/items.csv", "item") == ["q1", "q2", "q3"]


# Which columns are items.

ITEMS = ["q1", "q2", "q3", "q4", "q5"]
TAKEN = "Left out of the items: 2 columns 'gender', 'class'"


@pytest.fixture
def school(cli):
    """school.csv: attributes of the people, all of them 0 or 1, before and after the answers."""
    gender, room = np.random.default_rng(3).integers(0, 2, (2, 120))
    table = np.column_stack([gender, simulate.rasch(120, 5, seed=3).responses.to_dense(), room])
    wide("school.csv", table, ["gender", *ITEMS, "class"], pupil=[f"p{k}" for k in range(120)])


def test_attributes_are_named_and_left_out(cli, school):
    said = cli.ok("fit school.csv -o out")
    assert column("out/items.csv", "item") == ITEMS
    assert "Items: 5 columns 'q1', 'q2', 'q3', 'q4', 'q5'." in said
    assert f"warning {TAKEN}" in said
    assert "--items 'q*,gender'" in said
    found = {finding["code"]: finding["items"] for finding in record()["findings"]}
    assert found["items_taken"] == ITEMS
    assert found["attribute_columns"] == ["gender", "class"]


@pytest.mark.parametrize(
    ("options", "items"),
    [
        ("--items q1,q2 --items 'g*'", ["gender", "q1", "q2"]),
        ("--ignore q4,q5,gender", ITEMS[:3]),
        ("--ignore q4 --ignore q5,gender", ITEMS[:3]),
        ("--group gender --ignore class", ITEMS),
        ("--key key.csv", ITEMS[:4]),
    ],
)
def test_items_as_asked_for(cli, school, options, items):
    Path("key.csv").write_text("item,key\n" + "".join(f"{item},1\n" for item in ITEMS[:4]))
    said = cli.ok(f"fit school.csv {options} -o out")
    assert column("out/items.csv", "item") == items
    if "--items" in options:
        assert record()["input"]["reading"] == {"items": ["q1,q2", "g*"]}
    assert ("3 columns 'gender', 'q5', 'class'" in said) == ("--key" in options)
    assert "--group" not in options or "Left out of the items" not in said


def test_items_that_are_not_there(cli, school):
    cli.refused("fit school.csv --items 'x*'", "no column 'x*' for --items", "--items 'q*'")
    Path("a.csv").write_text("person,item,response\nNA,q1,1\nann,q1,0\nNA,q2,1\nann,q2,1\n")
    cli.refused("fit a.csv", "column 'person' names the people, and rows 1, 3 have no name there")


def test_every_command_that_reads_says_which_columns_are_items(cli, school):
    cli.ok("fit school.csv --bank bank")
    head, *rows = Path("school.csv").read_text().splitlines()
    Path("more.csv").write_text("\n".join([head, *("x" + row for row in rows[20:])]) + "\n")
    score = "score school.csv --bank bank -o scored"
    for line in ("check school.csv", score, "compare school.csv --estimators spectral", "update bank more.csv"):
        assert TAKEN in cli.ok(line), line
    found = record("scored", "score.json")["findings"]
    assert {"items_taken", "attribute_columns"} <= {finding["code"] for finding in found}


def test_groups_by_labels_of_another_kind(cli, school):
    """People are numbers in one file and text in the other, because one of them there has a name."""
    pl.read_csv("school.csv").with_columns(pupil=pl.arange(0, 120)).write_csv("numbered.csv")
    Path("people.csv").write_text("pupil,band\nteacher,z\n" + "".join(f"{k},{'xy'[k % 2]}\n" for k in range(120)))
    cli.ok("fit numbered.csv --group-file people.csv -o out")
    assert record()["dif"]["groups"] == {"x": 60, "y": 60}
