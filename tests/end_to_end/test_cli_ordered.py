"""`spectral-irt fit` on answers in ordered categories."""

import json
from pathlib import Path

import polars as pl
import pytest

from end_to_end.tables import column, numbers, read_csv, record
from reading import in_sqlite
from spectral_irt import SpectralPartialCredit
from spectral_irt.reading import tables

REFERENCE = Path(__file__).parents[1] / "reference"
SCALE8, CREDIT6 = REFERENCE / "scale8.csv", REFERENCE / "credit6.csv"
pytestmark = pytest.mark.slow


def test_categories_are_seen(cli):
    assert "in up to 5 ordered categories, for a partial credit model" in cli.ok(f"fit {SCALE8} -o out")
    assert (record()["model"], record()["estimator"]) == ("pcm", "spectral")
    assert len(read_csv("out/items.csv")) == 8
    assert len(read_csv("out/thresholds.csv")) == 32


@pytest.mark.parametrize(
    "line",
    [
        "fit a.csv --group sex --clustered-by room --survey-weight w --skip persons,fit",
        "pack a.csv --group sex --ignore room,w -o a.packed",
        "check a.csv --ignore sex,room,w",
        "compare a.csv --ignore sex,room,w",
    ],
)
def test_answers_are_read_once_whatever_they_are_and_whatever_is_asked_of_people(cli, line, monkeypatch):
    calls = []
    read = tables._scored_tables
    monkeypatch.setattr(tables, "_scored_tables", lambda *a, **k: (calls.append(a), read(*a, **k))[1])
    about = pl.DataFrame({"sex": ["f", "m"] * 200, "room": [k % 20 for k in range(400)], "w": [1.0, 2.0] * 200})
    answers = pl.read_csv(SCALE8)
    pl.concat([about[: len(answers)], answers[:400]], how="horizontal").write_csv("a.csv")
    cli.ok(line)
    assert len(calls) == 1


@pytest.mark.parametrize(("model", "estimator"), [("pcm", "cml"), ("rsm", "cml"), ("rsm", "spectral"), ("pcm", "mml")])
def test_models_and_estimators(cli, model, estimator):
    cli.ok(f"fit {SCALE8} --model {model} --estimator {estimator} -o out")
    assert (record()["model"], record()["estimator"]) == (model, estimator)
    if (model, estimator) == ("pcm", "cml"):
        theirs = json.loads((REFERENCE / "scale8_pcm.json").read_text())["psychotools"]["itempar_sum0"]
        ours = dict(zip(column("out/items.csv", "item"), numbers("out/items.csv", "difficulty"), strict=True))
        assert ours == pytest.approx({item: theirs[item] for item in ours}, abs=1e-5)


def test_labels_and_reversed_items(cli):
    answers = pl.read_csv(CREDIT6)
    words = {0: "never", 1: "sometimes", 2: "often", 3: "always"}
    turned = answers.with_columns((3 - pl.col("q2")).alias("q2"))
    turned.select(pl.col(name).replace_strict(words) for name in answers.columns).write_csv("survey.csv")
    cli.ok("fit survey.csv --recode never,sometimes,often,always --reverse q2 -o a")
    cli.ok(f"fit {CREDIT6} --model pcm -o b")
    for name in ("items.csv", "thresholds.csv", "persons.csv"):
        assert Path("a", name).read_text() == Path("b", name).read_text()
    labels = "holds 'always', which is not among the labels of the categories, 'never', 'sometimes', 'often'"
    cli.refused("fit survey.csv --recode never,sometimes,often", "column 'q2', row 2", labels)


def test_a_workbook_and_pictures(cli):
    said = cli.ok(f"fit {SCALE8} -o r.xlsx --plots p")
    sheets = "items, thresholds, persons, scores, unexpected, guttman, item_fit, item_trait, curves, dimensionality, "
    assert f"{sheets}residual_loadings, local_dependence and item_analysis. Also written:" in said
    assert sorted(path.name for path in Path().iterdir()) == ["p", "r.xlsx"]
    drawn = {"wright", "items", "fit", "information", "scores", "icc", "categories"}
    assert {path.name for path in Path("p").iterdir()} == {
        f"{name}.{kind}" for name in drawn for kind in ("svg", "png")
    }
    cli.ok(f"fit {SCALE8} -o out --all")
    for name in ("items", "thresholds", "persons", "item_fit"):
        sheet, table = pl.read_excel("r.xlsx", sheet_name=name, engine="openpyxl"), pl.read_csv(f"out/{name}.csv")
        assert (sheet.columns, len(sheet)) == (table.columns, len(table))
    Path("p/icc.svg").write_text("somebody's own")
    Path("own.xlsx").write_text("somebody's own")
    cli.refused(f"fit {SCALE8} --plots p", "did not make it")
    cli.refused(f"fit {SCALE8} -o own.xlsx", "own.xlsx")


def test_groups(cli):
    """A column of the answers themselves: it is not an item, and its groups are compared."""
    answers = pl.read_csv(SCALE8)
    sexes = pl.Series("sex", ["f", "m"] * (len(answers) // 2))
    moved = (pl.col("q2") + (pl.col("sex") == "m")).clip(0, 4)
    answers.with_columns(sexes).with_columns(moved.alias("q2")).write_csv("a.csv")
    said = cli.ok("fit a.csv --group sex --scale 500,100 -o out")
    assert "sex: DIF in 1 of 8 items between the groups 'f', 'm': 'q2' is harder for 'f'" in said
    assert [row["item"] for row in read_csv("out/dif.csv") if row["flagged"] == "true"] == ["q2"]
    assert set(column("out/dif_thresholds.csv", "grouping")) == {"sex"}
    assert abs(pl.read_csv("out/persons.csv")["measure"].mean() - 500) < 0.1
    assert len(read_csv("out/groups.csv")) == 2
    assert record()["dif"]["flagged"] == 1
    assert record()["fit_checks"]["shared"]["n_items"] == 8


def test_a_bank_scored_updated_linked_and_anchored(cli):
    answers = pl.read_csv(CREDIT6).with_row_index("who")
    first, second = answers[:200], answers[200:]
    first.write_csv("a.csv")
    second.write_csv("b.csv")
    second.drop("q1").write_csv("c.csv")
    cli.ok("fit a.csv --person who --bank bank -o first")
    for to, source in (("sfile", "bank"), ("ifile", "first"), ("pfile", "first")):
        cli.ok(f"export {source} --to {to} -o {to}.txt")
    assert "Rasch-Andrich threshold" in Path("sfile.txt").read_text()
    assert "mean person measure" in " ".join(cli.ok("score b.csv --person who --bank bank -o scored").split())
    found = record("scored", "score.json")
    assert found["counts"]["thresholds"] == 18
    assert found["reliability"]["alpha"] > 0.5
    said = cli.ok("update bank b.csv --person who -o new")
    assert "2,400 answers of 400 people to 6 items" in said
    cli.refused("update new b.csv --person who", "already")
    cli.ok("fit c.csv --person who --bank other")
    assert "of 15 thresholds of 5 common items" in cli.ok("link bank other -o linked")
    cli.ok("fit c.csv --person who --anchors bank -o out")
    assert column("out/items.csv", "status") == ["anchored"] * 5
    cli.refused("fit c.csv --person who --anchors bank --bank bank", "--anchors and --bank name the same bank")
    Path("x.csv").write_text("who,q1,q2\nann,1,7\nbob,0,1\n")
    cli.refused("score x.csv --bank bank", "'ann' answered 'q2' with 7; it has 0, 1, 2, 3")
    words = pl.col("q1", "q2").replace_strict({0: "no", 1: "a little", 2: "quite", 3: "very"})
    second.select("who", words).write_csv("w.csv")
    cli.ok("score w.csv --person who --bank bank --recode 'no,a little,quite,very'")


def test_an_adaptive_test_is_seen_and_calibrated_as_one(cli):
    drawn = "simulate -o log.csv --model pcm --persons 600 --items 40 --seed 1 --categories 3"
    cli.ok(f"{drawn} --design adaptive --length 10")
    for command in ("fit", "check"):
        sentence = "Thresholds by conditional and by marginal maximum likelihood (CML, MML) disagree"
        assert sentence in cli.ok(f"{command} log.csv")
    assert "come from marginal maximum likelihood" in cli.ok("fit log.csv --design adaptive -o out")
    assert (record()["design"], record()["estimator"]) == ("adaptive", "mml")


@pytest.mark.parametrize(
    "options",
    [
        "--clustered-by room",
        "--set refine=true --survey-weight w",
        "--estimator mml --population-by grade",
        "--model rsm --survey-weight w",
        "--model rsm --design adaptive --clustered-by room",
    ],
)
def test_clusters_populations_and_weights_go_with_ordered_answers(cli, options):
    rows = "".join(f"{k},{k % 20},{'ab'[k % 2]},{1 + k % 3}\n" for k in range(1, 401))
    Path("people.csv").write_text("person,room,grade,w\n" + rows)
    cli.ok(f"fit {SCALE8} --group-file people.csv {options} -o out")
    assert record()["argv"][0] == "fit"
    assert record()["seconds"]["total"] > 0
    assert record()["input"]["people"]["columns"] == [options.split()[-1]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--model pcm -o a.xlsx --parquet", "-o names a workbook"),
        ("--model rsm --anchors b", "leave out --model"),
        ("--model pcm --bank x --plots x", "a bank has a folder of its own"),
        ("--model pcm --threshold 1", "--threshold"),
        ("--model pcm --estimator jml", "estimator is 'jml'"),
        ("--model 2pl", "--model is '2pl'"),
        ("--model rasch", "neither 0/1 nor missing"),
    ],
)
def test_what_is_not_for_ordered_answers_is_said(cli, options, says):
    cli.refused(f"fit {SCALE8} {options}", says)


def test_a_place_that_cannot_be_written_is_said_before_the_work(cli, monkeypatch):
    monkeypatch.setattr(SpectralPartialCredit, "fit", None)
    Path("file").write_text("mine")
    for place in ("-o file/out", "--report file/r.html", "--plots file/p", "--bank file/b"):
        cli.refused(f"fit {SCALE8} {place}", "a part of the path is a file")


def test_answers_of_a_log_of_a_query_and_of_the_largest_part_are_those_of_the_table(cli):
    pl.read_csv(SCALE8).with_row_index("person").write_csv("a.csv")
    log = pl.read_csv("a.csv").unpivot(index="person", variable_name="item", value_name="response").with_columns(t=2)
    pl.concat([log, log[:300].with_columns(response=4 - pl.col("response"), t=1)]).write_csv("log.csv")
    others = log.filter(pl.col("item") != "q1").with_columns(pl.col("person") + 1000, item="x" + pl.col("item"))
    pl.concat([log, others]).write_csv("apart.csv")
    in_sqlite(log.drop("t"), Path("a.db"))
    cli.ok("fit a.csv -q --skip fit -o whole")
    query = "sqlite:a.db --sql 'SELECT * FROM a'"
    for line in ("log.csv --duplicates last:t", query, "apart.csv --largest-component"):
        cli.ok(f"fit {line} -q --skip fit -o out")
        found, expected = (numbers(f"{folder}/thresholds.csv", "threshold") for folder in ("out", "whole"))
        assert found == pytest.approx(expected, abs=1e-9), line
