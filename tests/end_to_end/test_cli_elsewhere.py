"""Answers in packed files and databases; estimators compared; simulated answers."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import numbers, read_csv, record, wide
from spectral_irt import SpectralRasch, datasets, simulate
from spectral_irt.estimators.by_name import METHODS
from spectral_irt.reading import read


@pytest.mark.slow
def test_a_packed_file_stands_for_the_files(cli, lsat):
    cli.ok("fit lsat.csv -q -o plain")
    assert "1,000 people, 5 items, 5,000 responses" in cli.ok("pack lsat.csv -o lsat.packed")
    cli.ok("fit lsat.packed -q --memory 1GB -o packed")
    for name in ("items.csv", "persons.csv"):
        assert Path("plain", name).read_bytes() == Path("packed", name).read_bytes()


@pytest.fixture
def database(cli):
    """LSAT section 6 as a table of school.duckdb."""
    duckdb = pytest.importorskip("duckdb")
    responses = datasets.load_lsat()
    person, item, right = responses.answers()
    frame = pl.DataFrame({"person": person, "item": responses.items[item].tolist(), "correct": right})
    with duckdb.connect("school.duckdb") as connection:
        connection.register("frame", frame.to_arrow())
        connection.execute('CREATE TABLE "the answers" AS SELECT * FROM frame')


@pytest.mark.slow
def test_a_fit_in_a_database(cli, database):
    said = cli.ok("fit 'duckdb:school.duckdb#the answers' -o out")
    assert "5 items" in said
    assert "People and fit were not computed" in said
    assert sorted(os.listdir("out")) == ["fit.json", "items.csv"]
    fit = SpectralRasch(refine=False).fit(datasets.load_lsat())
    assert numbers("out/items.csv", "difficulty") == pytest.approx(fit.difficulty_.tolist(), abs=1e-9)
    assert numbers("out/items.csv", "se") == pytest.approx(fit.se_.tolist(), abs=1e-6)
    assert record()["counts"]["persons"] == 1000
    assert record()["input"]["reading"] == {"table": "the answers"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("'#the answers' --skip none", "--skip none: the database gives difficulties and errors"),
        ("'#the answers' --model pcm", "--model: the database gives"),
        ("'#the answers' --estimator cml --set refine=true", "--estimator, --set refine: the database gives"),
        ("#answers", "there is no table or view 'answers' that we may see; it has 'the answers'"),
        ("", "is a database; say what to read from it with --sql"),
        ("'#the answers' answers.csv", "no file is read with it"),
    ],
)
def test_what_a_database_does_not_give(cli, database, options, says):
    cli.refused(f"fit duckdb:school.duckdb{options} -o out", says)


@pytest.mark.slow
def test_every_estimator_has_its_row(cli):
    wide("answers.csv", simulate.rasch(200, 6, design="sampled", p=0.8, seed=1).responses.to_dense())
    said = cli.ok("compare answers.csv --seed 3 -o compared.csv")
    rows = read_csv("compared.csv")
    assert [row["method"] for row in rows] == list(METHODS)
    assert all(row["problem"] == "" for row in rows)
    assert {row["method"]: float(row["distance_to_cml"]) for row in rows}["cml"] == 0
    assert "from CML" in said
    assert "eigenvector" in said


@pytest.mark.slow
def test_an_estimator_that_fails_says_why(cli):
    wide("sparse.csv", simulate.rasch(60, 30, design="sampled", p=0.2, seed=2).responses.to_dense())
    said = cli.ok("compare sparse.csv --estimators spectral,choppin")
    assert "choppin: sparse.csv:" in said
    assert "pairs of items lack" in said
    cli.refused("compare sparse.csv --estimators choppin -o out.csv", "no estimator has a result. choppin: sparse.csv:")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_file_holds_what_python_draws(cli, suffix):
    name = f"sub/a.{suffix}"
    said = cli.ok(f"simulate -o {name} --persons 200 --items 12 --seed 3 --truth sub/t.{suffix}")
    assert said == f"200 people, 12 items, 2,400 responses: {name} and sub/t.{suffix}"
    expected = simulate.rasch(200, 12, seed=3)
    assert read(name).digest() == expected.responses.digest()
    truth = pl.read_csv("sub/t.csv") if suffix == "csv" else pl.read_parquet("sub/t.parquet")
    assert truth.columns == ["item", "difficulty"]
    assert truth["difficulty"].to_list() == expected.difficulty.tolist()


@pytest.mark.parametrize(
    "options",
    [
        "--n-items 30 --design sampled --p 0.2",
        "--n-items 60 --design popularity --n-responses 4000 --exponent 0.5 --activity-sd 0.3",
        "--n-items 24 --design booklets --booklets 4 --length 9",
        "--design linked --forms 5 --length 8 --anchors 2",
        "--n-items 6 --ability-mean 1 --ability-sd 0.5 --difficulty-sd 2",
    ],
)
def test_designs(cli, options):
    cli.ok(f"simulate -o a.parquet --persons 300 --seed 1 {options.replace('--n-', '--')}")
    words = options.removeprefix("--").replace("-", "_").replace(" __", " ").split()
    named = {
        name: value if value.isalpha() else json.loads(value)
        for name, value in zip(words[::2], words[1::2], strict=True)
    }
    data = simulate.rasch(300, seed=1, **named).responses
    table = pl.read_parquet("a.parquet")
    assert len(table) == data.n_responses
    found = np.full((data.n_persons, data.n_items), np.nan)
    found[table["person"], table["item"]] = table["response"].to_numpy()
    np.testing.assert_array_equal(found, data.to_dense())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"),
    [("rasch", "--items 25"), ("pcm", "--items 6 --categories 4"), ("rsm", "--items 6 --categories 4")],
)
def test_a_fit_finds_the_truth_again(cli, model, options):
    """Estimates within four standard errors of the truth that was written, and without a bias."""
    cli.ok(f"simulate -o a.csv --persons 1500 --seed 3 --truth t.csv --model {model} {options}")
    cli.ok(f"fit a.csv --model {model} --skip fit -o out")
    ordered = ("thresholds", "threshold", ["item", "category"])
    name, value, keys = ("items", "difficulty", ["item"]) if model == "rasch" else ordered
    both = pl.read_csv(f"out/{name}.csv").join(pl.read_csv("t.csv"), on=keys, suffix="_true")
    error = both[value] - both[f"{value}_true"]
    assert len(both) == {"rasch": 25, "pcm": 18, "rsm": 18}[model]
    assert ((error / both["se"]).abs() < 4).all()
    assert model != "rasch" or ((error / both["se"]) ** 2).mean() < 2
    assert error.abs().mean() < 0.15


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-o a.txt --items 5", ["'a.txt'", ".csv nor .parquet"]),
        ("-o a.csv --items 5 --truth t.xlsx", ["'t.xlsx'", ".csv nor .parquet"]),
        ("-o a.csv --items 5 --truth a.csv", ["same file", "name of its own"]),
        ("-o a.csv --items 5 --truth sub/../a.csv", ["same file", "name of its own"]),
        ("-o a.csv", ["--items is missing", "say how many"]),
        ("-o a.csv --items 5 --persons 0", ["--persons is 0", "at least 1"]),
        ("-o a.csv --items 5 --design sampled --p 2", ["--p is 2", "at most 1"]),
        ("-o a.csv --items 5 --design popularity", ["needs --responses"]),
        ("-o a.csv --items 5 --design popularity --responses 9", ["--responses is 9", "give 2,000 to 5,000"]),
        ("-o a.csv --items 5 --categories 3", ["--categories is for ordered"]),
        ("-o a.csv --items 5 --model x", ["--model is 'x'"]),
        ("--items 5", ["'--output'", "spectral-irt simulate --help"]),
    ],
)
def test_mistakes(cli, options, says):
    Path("sub").mkdir()
    cli.refused(f"simulate {options}", *says)
